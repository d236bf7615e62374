//! The long run: every controller in every scenario, against the best fixed limit of a sweep.

use std::time::Duration;

use tidegate::controller::{Aimd, Bounds, Controller, Fixed, Goodput, Gradient2, Vegas};

use crate::play::play;
use crate::scenario::{Scenario, all};

const SEEDS: std::ops::Range<u64> = 1..9;

pub(crate) fn bounds(scenario: &Scenario, start: u32) -> Bounds {
    Bounds::new(1, scenario.max, start)
        .and_then(|bounds| bounds.objective(Duration::from_secs_f64(scenario.objective)))
        .expect("valid bounds")
}

/// The best limit of the sweep, and what it gives by seed.
fn best(scenario: &Scenario) -> (u32, Vec<f64>) {
    let mut rows: Vec<(u32, Vec<f64>)> = scenario
        .sweep
        .iter()
        .map(|&limit| {
            let good = SEEDS
                .map(|seed| play(scenario, &mut Fixed::new(bounds(scenario, limit)), seed).good as f64)
                .collect();
            (limit, good)
        })
        .collect();
    rows.sort_by(|a, b| b.1.iter().sum::<f64>().total_cmp(&a.1.iter().sum::<f64>()));
    rows.swap_remove(0)
}

pub(crate) fn print() {
    let only = std::env::var("ARENA").unwrap_or_default();
    let peers = std::env::var("PEERS").is_ok();
    let trace = std::env::var("TRACE").is_ok();
    for scenario in all() {
        if !scenario.name.contains(&only) {
            continue;
        }
        let (limit, reference) = best(&scenario);
        let mut line = format!("{:17} best {:3} |", scenario.name, limit);
        for start in [(limit / 3).max(1), limit, limit * 4] {
            let ratios: Vec<f64> = SEEDS
                .map(|seed| {
                    let mut controller = Goodput::new(bounds(&scenario, start));
                    let outcome = play(&scenario, &mut controller, seed);
                    if trace && seed == std::env::var("SEED").map_or(1, |x| x.parse().unwrap()) {
                        let mut shown = 0.0;
                        for (at, limit, cause) in &outcome.limits {
                            if *at >= shown {
                                eprintln!("  {at:8.1} {limit} {cause:?}");
                                shown = at + std::env::var("TRACE").unwrap().parse::<f64>().unwrap();
                            }
                        }
                        eprintln!("{:?}", outcome.slices);
                    }
                    outcome.good as f64 / reference[seed as usize - 1]
                })
                .collect();
            let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
            let worst = ratios.iter().copied().fold(f64::MAX, f64::min);
            line += &format!(" {start:3}: {mean:.3}/{worst:.3} |");
            if std::env::var("EACH").is_ok() {
                line += &format!("{ratios:.3?}");
            }
        }
        if peers {
            type Make = fn(Bounds) -> Box<dyn Controller>;
            let makes: [(&str, Make); 3] = [
                ("aimd", |bounds| Box::new(Aimd::new(bounds))),
                ("gradient2", |bounds| Box::new(Gradient2::new(bounds))),
                ("vegas", |bounds| Box::new(Vegas::new(bounds))),
            ];
            for (name, make) in makes {
                let mean = SEEDS
                    .map(|seed| {
                        let mut controller = make(bounds(&scenario, limit));
                        play(&scenario, &mut *controller, seed).good as f64 / reference[seed as usize - 1]
                    })
                    .sum::<f64>()
                    / SEEDS.count() as f64;
                line += &format!(" {name} {mean:.2}");
            }
        }
        println!("{line}");
    }
}
