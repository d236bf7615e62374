//! Controllers against the best fixed limit: the real gate in front of a simulated database that gets slower the
//! more is inside.
//!
//! The short version runs with the tests. The long one prints the table of `docs/choosing.md`:
//!
//! ```sh
//! cargo test --release --test arena -- --ignored --nocapture
//! ```

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)] // small numbers
#![allow(clippy::float_cmp)] // a minimum is one of its arguments

#[path = "../common/mod.rs"]
mod common;
mod database;
mod play;
mod scenario;
mod table;

use play::{Played, play};
use scenario::{Scenario, named};
use table::bounds;
use tidegate::controller::Kind;

/// The best fixed limit of most scenarios here, as the long version's sweep finds it.
const BEST: u32 = 42;

fn ratio(scenario: &Scenario, start: u32) -> f64 {
    ratio_to(BEST, scenario, start, 1)
}

fn ratio_to(best: u32, scenario: &Scenario, start: u32, seed: u64) -> f64 {
    let goodput = play(scenario, &mut Kind::Goodput.start(bounds(scenario, start)), seed).good;
    let fixed = play(scenario, &mut Kind::Fixed.start(bounds(scenario, best)), seed).good;
    goodput as f64 / fixed as f64
}

#[test]
#[ignore = "minutes long: prints the table"]
fn long() {
    table::print();
}

#[test]
fn a_degrading_database_from_below_at_and_above() {
    let scenario = named("steady-2x");
    assert!(ratio(&scenario, BEST) > 0.97);
    assert!(ratio(&scenario, BEST / 3) > 0.95);
    assert!(ratio(&scenario, BEST * 4) > 0.95);
}

#[test]
fn a_few_requests_that_are_fifty_times_the_rest() {
    let scenario = named("bimodal-2x");
    assert!(ratio(&scenario, BEST) > 0.95);
    assert!(ratio(&scenario, BEST * 4) > 0.93);
    // Where short windows flatter raised limits, a climb that begins well must not go on past the best.
    for seed in 1..=8 {
        assert!(ratio_to(BEST, &scenario, BEST / 3, seed) > 0.92, "seed {seed}");
    }
}

#[test]
fn cheap_requests_that_do_not_suffer_do_not_hide_those_that_do() {
    assert!(ratio(&named("cached"), BEST) > 0.95);
}

#[test]
fn over_an_edge_a_long_step_is_judged_by_what_it_did() {
    assert!(ratio_to(30, &named("cliff"), 10, 1) > 0.82);
}

#[test]
fn where_one_at_a_time_is_best_it_rests_between_experiments() {
    assert!(ratio_to(1, &named("one"), 1, 1) > 0.945); // without rest, half the time is spent at two: 0.91
}

#[test]
fn a_silence_in_the_middle_of_an_experiment_is_no_evidence() {
    assert!(ratio(&named("idle-burst"), BEST) > 0.97);
}

#[test]
fn during_an_outage_the_limit_never_rises_and_after_it_is_soon_back() {
    let scenario = named("timeout-outage");
    let Played { limits, .. } = play(&scenario, &mut Kind::Goodput.start(bounds(&scenario, BEST)), 1);
    let at =
        |time: f64| limits.iter().take_while(|(from, _)| *from <= time).last().expect("from the start").1;
    let (start, end) = (scenario.stages[1].from, scenario.stages[2].from);
    let onset = at(start);
    let during: Vec<u32> =
        limits.iter().filter(|(from, _)| (start..end).contains(from)).map(|(_, limit)| *limit).collect();
    // The experiment that was under way may come to its next arm before the first request has timed out.
    let falling = during.iter().skip_while(|limit| **limit >= onset);
    assert!(falling.clone().is_sorted_by(|a, b| a >= b), "{during:?}");
    assert!(at(end) * 2 <= onset, "{during:?}");
    assert!(at(end + 60.0) * 3 >= onset * 2, "{} a minute later, {onset} before", at(end + 60.0));
}
