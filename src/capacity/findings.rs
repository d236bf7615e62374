//! What the sweep says: the curve, and the two limits that bound the recommended one.

use super::bootstrap::draws;
use super::curve::{Counted, Curve};
use super::survival::{Seen, quantile};
use super::sweep::Cell;

/// The share of requests whose time alone is to be known.
const SLOWEST: f64 = 0.995;
/// Where more than this share came too late, latencies say little about the time alone.
const LATE_SHARE: f64 = 0.05;

/// What the sweep says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Findings {
    pub(super) counted: Vec<Counted>,
    pub(super) curve: Curve,
    /// The highest concurrency that was measured.
    pub(super) most: u32,
    /// The smallest limit that is as good as the best.
    pub(super) good_enough: u32,
    /// The time that 99.5 % take at most, alone.
    pub(super) slowest: f64,
    /// The largest limit at which these are in time; 0 where none is.
    pub(super) in_time: u32,
}

impl Findings {
    /// `None` where too little was measured for any curve.
    pub(super) fn of(cells: &[Cell], timeout: f64) -> Option<Self> {
        let counted: Vec<Counted> = cells.iter().filter_map(counted).collect();
        let curve = Curve::of(&counted)?;
        Self::by(cells, timeout, counted, curve, 0.0)
    }

    /// `luck`: by how many standard deviations as many requests as these would have other shares of slow ones.
    fn by(cells: &[Cell], timeout: f64, counted: Vec<Counted>, curve: Curve, luck: f64) -> Option<Self> {
        let most = cells.iter().map(measured_up_to).max()?;
        let mut alone = alone(cells, timeout, &curve);
        let many: f64 = alone.iter().map(|each| each.weight).sum();
        let share = SLOWEST + luck * (SLOWEST * (1.0 - SLOWEST) / many.max(1.0)).sqrt();
        let slowest = quantile(&mut alone, share.clamp(0.0, 1.0))?;
        let in_time = curve.in_time(slowest, timeout, most);
        let good_enough = curve.good_enough(most);
        Some(Self { counted, curve, most, good_enough, slowest, in_time })
    }

    /// The recommended limit; 0 where none is.
    pub(super) fn limit(&self) -> u32 {
        self.good_enough.min(self.in_time)
    }

    /// The same from counts that might have been.
    pub(super) fn redrawn<'a>(
        &'a self,
        cells: &'a [Cell],
        timeout: f64,
        seed: u64,
    ) -> impl Iterator<Item = Self> + 'a {
        draws(&self.counted, seed).filter_map(move |(counted, luck)| {
            let curve = self.curve.like(&counted)?;
            Self::by(cells, timeout, counted, curve, luck)
        })
    }
}

/// A limit is measured as far as the gate was full.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
fn measured_up_to((limit, seen): &Cell) -> u32 {
    (seen.in_flight.ceil() as u32).clamp(1, *limit)
}

/// A count of k is off by about the root of k, and by more where times vary by more than their mean (as renewals do:
/// Cox, "Renewal Theory", 1962, chapter 4). It is not taken to be off by less, as a real target has other noise.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
fn counted((_, seen): &Cell) -> Option<Counted> {
    let completions = (seen.good + seen.late) as f64;
    let variation = variation(&seen.latencies).max(1.0);
    (completions > 0.0 && seen.in_flight > 0.0).then(|| Counted {
        concurrency: seen.in_flight,
        completions,
        seconds: seen.seconds,
        spread: (variation / completions).sqrt(),
    })
}

/// The variance over the square of the mean.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
fn variation(times: &[f64]) -> f64 {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / count;
    if mean > 0.0 { variance / (mean * mean) } else { 0.0 }
}

/// What requests take alone, from all cells that say something about it.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
fn alone(cells: &[Cell], timeout: f64, curve: &Curve) -> Vec<Seen> {
    let mut all = Vec::new();
    for (limit, seen) in cells {
        let few_late = seen.late as f64 <= LATE_SHARE * seen.answered() as f64;
        if *limit > 1 && !few_late {
            continue;
        }
        let slowdown = curve.slowdown(seen.in_flight.max(1.0));
        let weight = seen.good as f64 / seen.latencies.len().max(1) as f64;
        let ended = seen.latencies.iter().map(|time| Seen { time: time / slowdown, weight, ended: true });
        all.extend(ended);
        if seen.late > 0 {
            all.push(Seen { time: timeout / slowdown, weight: seen.late as f64, ended: false });
        }
    }
    all
}
