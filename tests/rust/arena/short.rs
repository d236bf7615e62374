//! The arena's short form, which runs with the tests: some of the scenarios, one seed or a few, the best limit as
//! the long form finds it.

use tidegate::controller::Kind;

use crate::judge;
use crate::play::{Played, Player, play};
use crate::scenario::{Match, all};
use crate::score::{Contest, Reference, Start, contest_at};

/// The best fixed limit of most scenarios here.
const BEST: u32 = 43;

fn one(name: &str) -> Match {
    all().into_iter().find(|place| place.name == name).expect("a scenario of this name")
}

fn ratio_to(best: u32, place: &Match, start: u32, seed: u64) -> f64 {
    let played = |kind, start| play(place, Player { kind, start }, seed).good();
    played(Kind::Goodput, start) / played(Kind::Fixed, best)
}

fn ratio(name: &str, start: u32) -> f64 {
    ratio_to(BEST, &one(name), start, 1)
}

/// With the bars of the long form, one seed and the limit that its sweep finds.
fn assert_bars(name: &str, best: u32, seed: u64) {
    let place = one(name);
    let played = vec![play(&place, Player { kind: Kind::Fixed, start: best }, seed)];
    let contest = contest_at(place, Reference { limit: best, played }, &[seed]);
    let checks = judge::checks(&contest);
    assert!(checks.len() >= 2, "{name} is judged");
    for check in checks {
        assert!(check.passed, "seed {seed}: {}", check.sentence());
    }
}

#[test]
fn a_degrading_database_from_below_at_and_above() {
    assert_bars("steady-2x", BEST, 1);
}

#[test]
fn a_flood_of_the_less_important_leaves_the_others_their_room() {
    assert_bars("two-priorities", 54, 1);
}

#[test]
fn during_an_outage_the_limit_never_rises_and_after_it_is_soon_back() {
    assert_bars("timeout-outage", BEST, 1);
}

#[test]
fn what_changes_is_followed() {
    assert_bars("kappa-16x", 33, 1);
    assert_bars("slow-dependency", 52, 1);
}

#[test]
fn a_silence_and_light_traffic_are_no_evidence() {
    assert!(ratio("idle-burst", BEST) > 0.97);
    assert!(ratio("light-half", BEST) > 0.97);
}

#[test]
fn bursts_of_retries_and_of_real_users() {
    assert!(ratio("retry-storm", BEST) > 0.97);
    assert!(ratio("trace-2x", BEST) > 0.97);
}

#[test]
fn a_few_requests_that_are_fifty_times_the_rest() {
    assert!(ratio("bimodal-2x", BEST) > 0.94);
    // Where short windows flatter raised limits, a climb that begins well must not go on past the best.
    for seed in 1..=4 {
        assert!(ratio_to(BEST, &one("bimodal-2x"), BEST / 3, seed) > 0.92, "seed {seed}");
    }
}

#[test]
fn where_its_premises_do_not_hold() {
    // Cheap requests that do not suffer must not hide those that do.
    assert!(ratio("cached", BEST) > 0.95);
    // Over an edge, a long step is judged by what it did.
    assert!(ratio_to(30, &one("cliff"), 10, 1) > 0.82);
    // Where one at a time is best, it rests between experiments: without rest, half the time is spent at two.
    assert!(ratio_to(1, &one("one"), 1, 1) > 0.945);
}

/// A bar that a limit which stays where it starts would pass is none.
#[test]
fn a_limit_that_is_three_times_too_low_or_four_times_too_high_is_noticed() {
    let place = one("steady-2x");
    let fixed = |start| play(&place, Player { kind: Kind::Fixed, start }, 1).good();
    assert!(fixed(BEST / 3) < 0.75 * fixed(BEST));
    assert!(fixed(BEST * 4) < 0.25 * fixed(BEST));
}

/// The outage's bars say no where they should.
#[test]
fn a_limit_that_rises_during_an_outage_is_noticed() {
    let place = one("timeout-outage");
    let reference = play(&place, Player { kind: Kind::Fixed, start: BEST }, 1);
    let mut contest: Contest = contest_at(place, Reference { limit: BEST, played: vec![reference] }, &[1]);
    let failed = |contest: &Contest| judge::checks(contest).iter().filter(|check| !check.passed).count();
    assert_eq!(failed(&contest), 0);
    let score =
        contest.scores.iter_mut().find(|score| score.kind == Kind::Goodput && score.start == Start::Best);
    let played: &mut Played = &mut score.expect("it played").played[0];
    let middle = played.limits.len() / 2;
    played.limits[middle] += 1;
    assert_eq!(failed(&contest), 1, "up by one for a moment");
    let fixed = contest.score(Kind::Fixed, Start::Best).played.clone();
    let score =
        contest.scores.iter_mut().find(|score| score.kind == Kind::Goodput && score.start == Start::Best);
    score.expect("it played").played = fixed;
    assert_eq!(failed(&contest), 1, "not half of it at the end");
}

#[test]
fn names_are_those_that_others_rely_on() {
    let judged: Vec<&str> = all().iter().filter(|place| place.is_judged).map(|place| place.name).collect();
    let names = "steady-2x steady-5x mild-1.25x bimodal-2x capacity-quarter kappa-16x idle-burst light-half \
                 slow-dependency timeout-outage retry-storm tiny-service two-priorities trace-2x slow-rate-prior";
    assert_eq!(judged, names.split_whitespace().collect::<Vec<_>>());
}
