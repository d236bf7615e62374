//! The arena: every controller in every scenario, against the best fixed limit.
//!
//! The gate is the one that ships, and its controller works inside it; only who comes and what serves them is
//! simulated. For each scenario a sweep finds the best fixed limit; then each controller starts at a third of it, at
//! it, and at four times it, with the same requests as the fixed limit had. What is measured: good answers against
//! the fixed limit's, when 0.95 of them was reached, how long permits were held, how many of the most important
//! requests were answered, and the limit's path.
//!
//! ```sh
//! make arena                                   # all of it: writes target/arena.json and docs/arena.md
//! make arena ARGS='--seeds 5-12'               # with other seeds: writes nothing
//! make arena ARGS='--only bimodal'             # scenarios whose names have this: writes nothing
//! ```

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)] // small numbers
#![allow(clippy::cast_possible_wrap, clippy::float_cmp)]

mod chart;
mod judge;
mod page;
mod parallel;
mod play;
mod scenario;
mod score;
#[cfg(test)]
mod short;
mod written;

use std::path::Path;
use std::process::ExitCode;

use judge::Check;
use score::{Contest, Score};

/// The seeds of docs/arena.md.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// What the program was asked for.
struct Asked {
    seeds: Vec<u64>,
    only: Option<String>,
}

fn asked(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut asked = Asked { seeds: SEEDS.collect(), only: None };
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--only" => asked.only = Some(value),
            "--seeds" => {
                let ends =
                    value.split_once('-').and_then(|(from, to)| from.parse().ok().zip(to.parse().ok()));
                let Some((from, to)) = ends.filter(|(from, to)| from <= to) else {
                    return Err(format!(
                        "--seeds must be two whole numbers in order, as in 5-12, got {value}"
                    ));
                };
                asked.seeds = (from..=to).collect();
            }
            _ => return Err(format!("must be --seeds or --only, got {name}")),
        }
    }
    Ok(asked)
}

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("arena: {error}");
            return ExitCode::from(2);
        }
    };
    let (mut contests, mut checks) = (Vec::new(), Vec::new());
    for place in scenario::all() {
        if asked.only.as_ref().is_some_and(|text| !place.name.contains(text)) {
            continue;
        }
        let contest = score::contest(place, &asked.seeds);
        show(&contest);
        let found = judge::checks(&contest);
        for check in found.iter().filter(|check| !check.passed) {
            println!("    failed: {}", check.sentence());
        }
        checks.extend(found);
        contests.push(contest);
    }
    if asked.only.is_none() && asked.seeds == SEEDS.collect::<Vec<u64>>() {
        if let Err(error) = written::all(Path::new(env!("CARGO_MANIFEST_DIR")), &contests, &checks) {
            eprintln!("arena: {error}");
            return ExitCode::FAILURE;
        }
    }
    let passed = checks.iter().filter(|check| check.passed).count();
    let failed = checks.len() - passed;
    println!("arena: {passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(contest: &Contest) {
    println!("{}: best fixed limit {}", contest.place.name, contest.reference.limit);
    for score in &contest.scores {
        let Score { kind, start, .. } = score;
        let arrived = score.time_to_95.map_or("never".to_owned(), |time| format!("{time:.0} s"));
        println!(
            "    {:9} from {:10} {:.3} (worst {:.3}), at 0.95 after {arrived}",
            kind.as_str(),
            start.name(),
            score.mean(),
            score.worst()
        );
    }
}
