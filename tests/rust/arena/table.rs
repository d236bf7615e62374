//! The long run: every controller in every scenario from three starts, against the best fixed limit of a sweep.

use std::time::Duration;

use tidegate::controller::{Bounds, Kind};

use crate::play::play;
use crate::scenario::{Scenario, all};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

pub(crate) fn bounds(scenario: &Scenario, start: u32) -> Bounds {
    let bounds = Bounds::new(1, 1_000, start).expect("valid bounds");
    bounds.objective(Duration::from_secs_f64(scenario.objective)).expect("a valid objective")
}

/// Good answers by seed.
fn good(scenario: &Scenario, kind: Kind, start: u32) -> Vec<f64> {
    SEEDS.map(|seed| play(scenario, &mut kind.start(bounds(scenario, start)), seed).good as f64).collect()
}

/// The best limit of the sweep, and what it gives by seed.
fn best(scenario: &Scenario) -> (u32, Vec<f64>) {
    let rows = scenario.sweep.iter().map(|&limit| (limit, good(scenario, Kind::Fixed, limit)));
    let total = |row: &(u32, Vec<f64>)| row.1.iter().sum::<f64>();
    rows.max_by(|a, b| total(a).total_cmp(&total(b))).expect("a sweep has limits")
}

/// `ARENA` in the environment: only scenarios whose name has this in it.
pub(crate) fn print() {
    let only = std::env::var("ARENA").unwrap_or_default();
    println!("good answers against the best fixed limit: mean (worst) of {} seeds", SEEDS.count());
    println!("| scenario | best | controller | from a third | from the best | from four times |");
    println!("|---|---|---|---|---|---|");
    for scenario in all().iter().filter(|scenario| scenario.name.contains(&only)) {
        let (limit, reference) = best(scenario);
        for kind in [Kind::Goodput, Kind::Aimd, Kind::Gradient2, Kind::Vegas] {
            let cell = |start: u32| {
                let ratios: Vec<f64> = good(scenario, kind, start)
                    .iter()
                    .zip(&reference)
                    .map(|(good, best)| good / best)
                    .collect();
                let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
                format!("{mean:.3} ({:.3})", ratios.iter().copied().fold(f64::INFINITY, f64::min))
            };
            let [third, same, four] = [(limit / 3).max(1), limit, limit * 4].map(cell);
            println!("| {} | {limit} | {} | {third} | {same} | {four} |", scenario.name, kind.as_str());
        }
    }
}
