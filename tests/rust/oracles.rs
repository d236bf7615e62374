//! The gate against exact queueing theory, by the simulator: what it sheds is known.
//!
//! A gate that never waits is an Erlang loss system, in front of a degrading database a processor shared by many:
//! in both the share it sheds is known exactly, whatever the service times are. With thresholds it is a birth-death
//! chain, exact for exponential service. Every row must lie within three standard errors, at fixed seeds; and these
//! must be small enough to notice a share that is off by 5 %, or by 20 % where it is below 0.005.

use serde_json::Value;
use tidegate::sim::oracle::{Comparison, Effort, Entry, Oracle, Service};

/// Three of these are 5 %.
const AIM: f64 = 0.05 / 3.0;
const RARE: f64 = 0.005;

fn rows(name: &str) -> Vec<Value> {
    let text = include_str!("../oracles/oracles.json");
    let oracles: Value = serde_json::from_str(text).expect("the table is JSON");
    let rows = oracles[name].as_array().expect("the table has these rows").clone();
    assert!(rows.len() >= 3, "{name} has rows");
    rows
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().expect("a number")
}

fn whole(row: &Value, key: &str) -> i64 {
    row[key].as_i64().expect("a whole number")
}

fn simulate(oracle: &Oracle, service: Service, seed: u64, entry: Entry) -> Comparison {
    let effort = Effort { aim: AIM, entry, ..Effort::default() };
    oracle.simulate(service, seed, &effort, &mut || true).expect("exact").expect("not interrupted")
}

/// The expected shares are the table's, not only the simulator's own.
fn assert_within(what: &str, found: &Comparison, table: &[f64]) {
    let each = found.simulated.as_slice().iter().zip(found.stderr.as_slice()).zip(found.expected.as_slice());
    for (((share, error), expected), exact) in each.zip(table) {
        assert!((expected / exact - 1.0).abs() < 1e-9, "{what}: {expected} is not the table's {exact}");
        assert!((share - exact).abs() <= 3.0 * error, "{what}: {share:.6} +- {error:.6}, exactly {exact:.6}");
        let power = if *exact >= RARE { AIM } else { 4.0 * AIM };
        assert!(*error <= power * exact, "{what}: a standard error of {error} sees too little of {exact}");
    }
    assert_eq!(found.simulated.as_slice().len(), table.len());
}

fn erlang(row: &Value) -> Oracle {
    Oracle::erlang_b(whole(row, "limit"), number(row, "offered")).expect("legal")
}

#[test]
fn sheds_as_erlang_b_says_whatever_the_service_times() {
    for (row, seed) in rows("erlang_b").iter().zip(1..) {
        for service in Service::ALL {
            let found = simulate(&erlang(row), service, seed, Entry::Enforced);
            assert_within(&format!("{row}, {service:?}, seed {seed}"), &found, &[number(row, "shed")]);
        }
    }
}

#[test]
fn sheds_as_the_shared_processor_says_whatever_the_sizes() {
    for (row, seed) in rows("degrading").iter().zip(101..) {
        let (rate, lambda) = (number(row, "rate_per_min"), number(row, "lam_per_min"));
        let oracle =
            Oracle::degrading(rate, whole(row, "limit"), lambda, number(row, "sigma"), number(row, "kappa"));
        for service in Service::ALL {
            let found = simulate(oracle.as_ref().expect("legal"), service, seed, Entry::Enforced);
            assert_within(&format!("{row}, {service:?}, seed {seed}"), &found, &[number(row, "shed")]);
        }
    }
}

#[test]
fn sheds_as_the_birth_death_chain_says_with_thresholds() {
    for (row, seed) in rows("thresholds").iter().zip(201..) {
        let list = |key: &str| -> [f64; 4] { std::array::from_fn(|level| row[key][level].as_f64().unwrap()) };
        let thresholds = std::array::from_fn(|level| row["thresholds"][level].as_i64().unwrap());
        let oracle = Oracle::thresholds(whole(row, "limit"), thresholds, list("offered")).expect("legal");
        let found = simulate(&oracle, Service::Exponential, seed, Entry::Enforced);
        assert_within(&format!("{row}, seed {seed}"), &found, &list("shed"));
    }
}

/// Dry run sheds nothing, and what it would have shed is what enforcement sheds: counting everybody inside instead
/// would say 76 % where the truth is 30 %.
#[test]
fn dry_run_would_shed_as_erlang_b_says() {
    for (row, seed) in rows("erlang_b").iter().zip(301..) {
        let entries = [
            (Service::Exponential, Entry::DryRun),
            (Service::Deterministic, Entry::DryRun),
            (Service::Lognormal, Entry::DryRun),
            (Service::Exponential, Entry::BareDryRun), // bare exits draw: exact for this service alone
        ];
        for (service, entry) in entries {
            let found = simulate(&erlang(row), service, seed, entry);
            let what = format!("{row}, {service:?}, {entry:?}, seed {seed}");
            assert_within(&what, &found, &[number(row, "shed")]);
        }
    }
}

/// A standard error says what it is to say: two of them hold the truth in about 95 of 100 runs.
#[test]
fn standard_errors_are_honest() {
    let erlang = Oracle::erlang_b(5, 3.0).expect("legal");
    let degrading = Oracle::degrading(50.0, 30, 3.0, 0.02, 0.000_555).expect("legal");
    for (oracle, service) in [
        (&erlang, Service::Exponential),
        (&erlang, Service::Hyperexponential),
        (&degrading, Service::Deterministic),
    ] {
        let effort = Effort { most: 20_000, ..Effort::default() };
        let within = |seed| {
            let found = oracle.simulate(service, seed, &effort, &mut || true).expect("exact").expect("done");
            let off = found.simulated.as_slice()[0] - found.expected.as_slice()[0];
            off.abs() <= 2.0 * found.stderr.as_slice()[0]
        };
        let held = (1..=200).filter(|&seed| within(seed)).count();
        assert!((180..=198).contains(&held), "{service:?}: {held} of 200");
    }
}

/// Where the sheds come in few long bursts, or none was seen, the error is large rather than 0.
#[test]
fn what_a_run_cannot_know_it_does_not_claim() {
    // A basin in which all is well, and one in which hardly anything is, with minutes of thousands between.
    let metastable = Oracle::degrading(40.0, 200, 3.0, 0.02, 0.000_555).expect("legal");
    let effort = Effort { most: 30_000, ..Effort::default() };
    for seed in 1..=20 {
        let found = metastable
            .simulate(Service::Exponential, seed, &effort, &mut || true)
            .expect("exact")
            .expect("done");
        let off = (found.simulated.as_slice()[0] - found.expected.as_slice()[0]).abs();
        let error = found.stderr.as_slice()[0];
        assert!(off <= 3.0 * error && error > 0.1 && found.note.is_some(), "seed {seed}: {found:?}");
    }
    let rare = Oracle::erlang_b(20, 2.0).expect("legal");
    let found = rare.simulate(Service::Exponential, 1, &effort, &mut || true).expect("exact").expect("done");
    assert_eq!(found.simulated.as_slice(), [0.0]);
    assert!(found.stderr.as_slice()[0] * 20_000.0 > 0.5, "{found:?}");
}

#[test]
fn the_ends_are_exact() {
    let simulate = |oracle: Oracle| simulate(&oracle, Service::Exponential, 1, Entry::Enforced);
    for (oracle, share) in [
        (Oracle::erlang_b(0, 3.0), 1.0),
        (Oracle::erlang_b(0, 0.0), 1.0),
        (Oracle::erlang_b(5, 0.0), 0.0),
        (Oracle::degrading(0.0, 5, 3.0, 0.02, 0.0), 0.0),
    ] {
        let found = simulate(oracle.expect("legal"));
        assert_eq!((found.simulated.as_slice(), found.expected.as_slice()), (&[share][..], &[share][..]));
        assert!(found.n > 0 && found.note.is_none(), "{found:?}");
    }
    let thresholds = Oracle::thresholds(5, [5, 5, 0, 0], [0.0, 0.0, 2.0, 0.0]).expect("legal");
    assert_eq!(simulate(thresholds).simulated.as_slice(), [0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn a_run_is_the_same_for_its_seed_and_can_be_interrupted() {
    let oracle = Oracle::erlang_b(5, 3.0).expect("legal");
    let run = |seed| simulate(&oracle, Service::Lognormal, seed, Entry::Enforced);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).simulated, run(2).simulated);
    let mut asked = 0;
    let mut twice = || {
        asked += 1;
        asked <= 2
    };
    assert_eq!(oracle.simulate(Service::Exponential, 1, &Effort::default(), &mut twice), Ok(None));
}

#[test]
fn what_is_not_exact_is_refused() {
    let refused = |oracle: Result<Oracle, _>, service, entry| {
        let effort = Effort { entry, ..Effort::default() };
        oracle.expect("legal").simulate(service, 1, &effort, &mut || true).unwrap_err().to_string()
    };
    let thresholds = Oracle::thresholds(1, [1; 4], [1.0; 4]);
    assert_eq!(
        refused(thresholds, Service::Lognormal, Entry::Enforced),
        "service must be exponential with thresholds, which are exact for no other, got lognormal"
    );
    let erlang = Oracle::erlang_b(1, 1.0);
    assert!(refused(erlang.clone(), Service::Lognormal, Entry::BareDryRun).contains("with bare entries"));
    let degrading = Oracle::degrading(1.0, 1, 1.0, 0.1, 0.0);
    assert!(refused(degrading, Service::Exponential, Entry::DryRun).contains("does not slow down"));
    assert!(
        refused(
            Oracle::erlang_b(1, 1e6).and(Oracle::thresholds(1, [1; 4], [5e5; 4])),
            Service::Exponential,
            Entry::DryRun
        )
        .contains("at most 1e6")
    );
}
