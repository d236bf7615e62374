//! What the sweep says: the curve, and the two limits that bound the recommended one.

use super::bootstrap::draws;
use super::curve::{Counted, Curve};
use super::survival::{Seen, quantile};
use super::sweep::Cell;

/// The share of requests whose time alone is to be known.
const SLOWEST: f64 = 0.995;
/// Where more than this share came too late, latencies say little about the time alone.
const LATE_SHARE: f64 = 0.05;
/// Of the law.
const PARAMETERS: usize = 3;

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
        let mut counted: Vec<Counted> = cells.iter().filter_map(counted).collect();
        let curve = Curve::of(&counted)?;
        let scatter = scatter(&curve, &counted);
        for each in &mut counted {
            each.spread *= scatter;
        }
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

/// How many times as far from the law as chance has it the points lie, at least 1. A real target is never quite the
/// same twice, so its counts are taken to be less sure by that. (A dispersion estimated from Pearson's statistic:
/// `McCullagh` and Nelder, "Generalized Linear Models", 1989, chapter 4.5.)
#[allow(clippy::cast_precision_loss)] // a few
fn scatter(curve: &Curve, counted: &[Counted]) -> f64 {
    let Some(law) = curve.law().filter(|_| counted.len() > PARAMETERS) else {
        return 1.0;
    };
    let off = |each: &Counted| (each.throughput() / law.throughput(each.concurrency) - 1.0) / each.spread;
    let sum: f64 = counted.iter().map(|each| off(each).powi(2)).sum();
    (sum / (counted.len() - PARAMETERS) as f64).max(1.0).sqrt()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{Measured, Usl};

    const ARTICLE: Usl = Usl::new(0.05, 0.02, 5.55e-4);
    const LIMITS: [u32; 8] = [1, 4, 8, 16, 24, 32, 48, 64];

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn cells(off: impl Fn(usize) -> f64, latencies: &[f64]) -> Vec<Cell> {
        let cell = |(at, limit): (usize, u32)| {
            let concurrency = f64::from(limit);
            let good = (1e6 * ARTICLE.throughput(concurrency) * off(at)) as u64;
            let slow = ARTICLE.slowdown(concurrency);
            let latencies = latencies.iter().map(|alone| alone * slow).collect();
            let seen =
                Measured { seconds: 1e6, good, in_flight: concurrency, latencies, ..Measured::default() };
            (limit, seen)
        };
        LIMITS.into_iter().enumerate().map(cell).collect()
    }

    #[test]
    fn what_scatters_more_than_chance_is_less_sure() {
        let calm = Findings::of(&cells(|_| 1.0, &[20.0]), 180.0).unwrap();
        let chance = 1.0 / calm.counted[3].completions.sqrt();
        assert!((calm.counted[3].spread / chance - 1.0).abs() < 1e-9);
        // 3 % off, where chance has 0.14 to 0.45 %.
        let wild = Findings::of(&cells(|at| if at % 2 == 0 { 1.03 } else { 0.97 }, &[20.0]), 180.0).unwrap();
        assert!(wild.curve.law().is_some());
        assert!((0.01..0.06).contains(&wild.counted[3].spread), "{:?}", wild.counted);
    }

    #[test]
    fn times_that_vary_more_than_their_mean_make_counts_less_sure() {
        // 1 and 19 with shares 17/18 and 1/18: mean 2, variance 17.
        let times: Vec<f64> = (0..18).map(|at| if at == 0 { 19.0 } else { 1.0 }).collect();
        let findings = Findings::of(&cells(|_| 1.0, &times), 180.0).unwrap();
        let chance = 1.0 / findings.counted[3].completions.sqrt();
        assert!((findings.counted[3].spread / chance - (17.0_f64 / 4.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn as_many_requests_could_have_had_more_slow_ones() {
        // 500 in all, alone from 1 to 100 s: the slowest 1 in 200 is known to about one in a hundred.
        let times: Vec<f64> = (1..=100).map(f64::from).collect();
        let mut cells = cells(|_| 1.0, &times);
        for (_, seen) in &mut cells {
            seen.seconds = 62.0 / (f64::from(u32::try_from(seen.good).unwrap()) / seen.seconds);
            seen.good = 62;
        }
        let curve = Curve::Law(ARTICLE);
        let slowest = |luck: f64| {
            let counted = cells.iter().filter_map(counted).collect();
            Findings::by(&cells, 180.0, counted, curve.clone(), luck).unwrap().slowest
        };
        let found = [-3.0, -1.0, 0.0, 3.0].map(slowest);
        assert!(found.iter().zip([99.0, 100.0, 100.0, 100.0]).all(|(one, other)| (one - other).abs() < 0.5));
    }

    #[test]
    fn a_cell_says_as_much_about_times_as_it_counted() {
        let mut cells = cells(|_| 1.0, &[20.0]);
        // One cell has 10 s, and 1 in 3 of all that was counted.
        let all: u64 = cells.iter().map(|(_, seen)| seen.good).sum();
        cells[0].1.latencies = vec![10.0; 500];
        cells[0].1.good = all / 2;
        let curve = Curve::Law(ARTICLE);
        let mut seen = alone(&cells, 180.0, &curve);
        assert_eq!(quantile(&mut seen, 0.3), Some(10.0));
        assert!((quantile(&mut seen, 0.4).unwrap() - 20.0).abs() < 1e-9);
        // Where more than 1 in 20 is late, the others are not the usual ones.
        cells[7].1.late = cells[7].1.good / 10;
        assert!(alone(&cells, 180.0, &curve).len() < seen.len());
        // Late ones are known to be slow: half of those of the first cell take longer than 180 s.
        cells[0].1.late = cells[0].1.good;
        assert_eq!(quantile(&mut alone(&cells, 180.0, &curve), 0.8), Some(f64::INFINITY));
    }
}
