//! What a controller's runs are worth against the best fixed limit.

use tidegate::controller::Kind;

use crate::parallel;
use crate::play::{Played, Player, play};
use crate::scenario::{Match, SLICES};

/// Steps of the rough sweep, and of the fine one around its best.
const ROUGH: f64 = 1.3;
const FINE: f64 = 1.04;
/// The largest limit of the sweep.
const MOST: f64 = 300.0;
/// A slice with this much of what the best fixed limit gives in it has arrived.
const ARRIVED: f64 = 0.95;

/// Where a controller starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Third,
    Best,
    FourTimes,
}

impl Start {
    pub(crate) const ALL: [Self; 3] = [Self::Third, Self::Best, Self::FourTimes];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Third => "third",
            Self::Best => "best",
            Self::FourTimes => "four_times",
        }
    }

    pub(crate) fn of(self, best: u32) -> u32 {
        match self {
            Self::Third => (best / 3).max(1),
            Self::Best => best,
            Self::FourTimes => best * 4,
        }
    }
}

/// The best fixed limit of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) limit: u32,
    /// What it gives, by seed.
    pub(crate) played: Vec<Played>,
}

/// A controller from one start.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    pub(crate) kind: Kind,
    pub(crate) start: Start,
    /// Good answers over those of the best fixed limit, by seed.
    pub(crate) ratios: Vec<f64>,
    /// When it had arrived with the seed for which that took longest, in seconds; none where it never did.
    pub(crate) time_to_95: Option<f64>,
    pub(crate) top_success: f64,
    /// How long permits were held, the mean over seeds.
    pub(crate) p99: f64,
    pub(crate) played: Vec<Played>,
}

impl Score {
    pub(crate) fn mean(&self) -> f64 {
        mean(self.ratios.iter().copied())
    }

    pub(crate) fn worst(&self) -> f64 {
        self.ratios.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

pub(crate) fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len() as f64;
    numbers.sum::<f64>() / count
}

/// Whole limits from `low` to `high`, each `step` times the one before.
fn sweep(low: f64, high: f64, step: f64) -> Vec<u32> {
    let steps = ((high / low).ln() / step.ln()).ceil() as i32;
    let mut limits: Vec<u32> = (0..=steps)
        .map(|n| (low * step.powi(n)).min(high).round() as u32)
        .filter(|limit| *limit > 0)
        .collect();
    limits.dedup();
    limits
}

/// The best fixed limit of a sweep: rough with one seed, then fine with all of them. Of equals the lowest.
pub(crate) fn reference(place: &Match, seeds: &[u64]) -> Reference {
    let fixed = |limit: u32, seed: u64| play(place, Player { kind: Kind::Fixed, start: limit }, seed);
    let rough = sweep(1.0, MOST, ROUGH);
    let good = parallel::map(&rough, |&limit| fixed(limit, seeds[0]).good());
    let near = f64::from(rough[highest(&good)]);
    let fine = sweep((near / ROUGH).max(1.0), near * ROUGH, FINE);
    let rows =
        parallel::map(&fine, |&limit| seeds.iter().map(|&seed| fixed(limit, seed)).collect::<Vec<_>>());
    let total: Vec<f64> = rows.iter().map(|row| row.iter().map(Played::good).sum()).collect();
    let at = highest(&total);
    Reference { limit: fine[at], played: rows[at].clone() }
}

fn highest(numbers: &[f64]) -> usize {
    (0..numbers.len()).rev().max_by(|&a, &b| numbers[a].total_cmp(&numbers[b])).expect("there are some")
}

/// Everything that was played in one scenario.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    pub(crate) place: Match,
    pub(crate) reference: Reference,
    pub(crate) scores: Vec<Score>,
}

impl Contest {
    pub(crate) fn score(&self, kind: Kind, start: Start) -> &Score {
        let found = self.scores.iter().find(|score| score.kind == kind && score.start == start);
        found.expect("all kinds play from all starts")
    }
}

/// All controllers from all starts.
pub(crate) fn contest(place: Match, seeds: &[u64]) -> Contest {
    let reference = reference(&place, seeds);
    contest_at(place, reference, seeds)
}

/// The same where the best fixed limit is known.
pub(crate) fn contest_at(place: Match, reference: Reference, seeds: &[u64]) -> Contest {
    let pairs = Kind::ALL.into_iter().flat_map(|kind| Start::ALL.map(|start| (kind, start)));
    let pairs: Vec<(Kind, Start)> = pairs.collect();
    let scores = parallel::map(&pairs, |&(kind, start)| score(&place, &reference, kind, start, seeds));
    Contest { place, reference, scores }
}

/// `kind` from `start`, with all seeds.
fn score(place: &Match, reference: &Reference, kind: Kind, start: Start, seeds: &[u64]) -> Score {
    let from = start.of(reference.limit);
    let played: Vec<Played> =
        seeds.iter().map(|&seed| play(place, Player { kind, start: from }, seed)).collect();
    let pairs = || played.iter().zip(&reference.played);
    let slice = place.scenario.duration.as_secs_f64() / f64::from(SLICES);
    let arrived = pairs().map(|(ours, best)| arrival(&ours.slices, &best.slices));
    Score {
        kind,
        start,
        ratios: pairs().map(|(ours, best)| ours.good() / best.good()).collect(),
        time_to_95: arrived
            .collect::<Option<Vec<usize>>>()
            .map(|slices| slices.into_iter().max().unwrap_or_default() as f64 * slice),
        top_success: mean(played.iter().map(|played| played.top_success)),
        p99: mean(played.iter().map(|played| played.p99)),
        played,
    }
}

/// How many slices had ended with the first one that reached the bar. Slices in which nobody comes say nothing.
fn arrival(ours: &[u64], best: &[u64]) -> Option<usize> {
    let reached = |(ours, best): (&u64, &u64)| *best > 0 && *ours as f64 >= ARRIVED * *best as f64;
    ours.iter().zip(best).position(reached).map(|at| at + 1)
}
