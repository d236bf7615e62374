//! Queues whose mean times are known exactly, each within three standard errors over independent seeds.

use std::time::Duration;

use tidegate::Gate;
use tidegate::sim::{Arrivals, Report, Scenario, Service, Sizes, Tally};

use crate::common::mean_and_error;

const SEEDS: u64 = 24;

/// Poisson arrivals at a service, all of whom are let in.
fn queue(rate: f64, seconds: u64, service: Service) -> Scenario {
    let mut scenario = Scenario::new("queue", Arrivals::poisson(rate, Duration::from_secs(seconds)), service);
    scenario.interval = Duration::from_secs(seconds);
    scenario
}

/// A value of a run, what it is exactly, and the standard error over seeds, relative to it, that is enough.
type Check = (fn(&Report) -> f64, f64, f64);

fn assert_are(what: &str, scenario: &Scenario, checks: &[Check]) {
    let runs: Vec<_> = (1..=SEEDS).map(|seed| scenario.run(seed).expect("a valid scenario")).collect();
    for (at, (value, expected, enough)) in checks.iter().enumerate() {
        let values: Vec<_> = runs.iter().map(value).collect();
        let (mean, error) = mean_and_error(&values);
        let what = format!("{what}, value {at}: {mean:.5} +- {error:.5}, exactly {expected:.5}");
        assert!((mean - expected).abs() <= 3.0 * error, "{what}");
        assert!(error <= enough * expected, "{what}: this sees nothing");
    }
}

fn assert_is(what: &str, scenario: &Scenario, value: fn(&Report) -> f64, expected: f64, enough: f64) {
    assert_are(what, scenario, &[(value, expected, enough)]);
}

fn sojourn(report: &Report) -> f64 {
    report.latency.good.mean_s.expect("somebody was served")
}

/// With as many servers as there are requests nobody waits: M/D/inf.
#[test]
fn as_many_servers_as_requests() {
    let service = Service::servers(None, Duration::from_secs(2)).sizes(Sizes::Deterministic);
    let scenario = queue(5.0, 2_000, service);
    let report = scenario.run(1).unwrap();
    // To the nanosecond to which events are rounded.
    assert!((sojourn(&report) - 2.0).abs() < 2e-9, "{}", sojourn(&report));
    assert!((report.latency.good.max_s.unwrap() - 2.0).abs() < 2e-9);
    // Little: L = rate x time, less the two seconds that it takes to fill up.
    assert_is("L", &scenario, |report| report.in_flight.mean, 10.0 * (1.0 - 1.0 / 2_000.0), 0.01);
}

/// A processor shared evenly: 1 / (mu - rate), whatever the sizes are.
#[test]
fn a_shared_processor() {
    for sizes in [
        Sizes::Exponential,
        Sizes::Deterministic,
        Sizes::Lognormal { cv: 1.0 },
        Sizes::Hyperexponential { cv: 1.5 },
        Sizes::Bimodal { share: 0.1, factor: 6.0 },
    ] {
        let scenario = queue(0.6, 15_000, Service::shared(1.0, 1.0, 0.0).sizes(sizes));
        assert_is(&format!("{sizes:?}"), &scenario, sojourn, 2.5, 0.02);
    }
}

/// One server, first come, first served: Pollaczek and Khinchine, 1 + rho (1 + cv^2) / (2 (1 - rho)).
#[test]
fn one_server_with_a_queue() {
    for (sizes, cv_squared) in [
        (Sizes::Exponential, 1.0),
        (Sizes::Deterministic, 0.0),
        (Sizes::Lognormal { cv: 0.5 }, 0.25),
        (Sizes::Hyperexponential { cv: 1.5 }, 2.25),
    ] {
        let service = Service::servers(Some(1), Duration::from_secs(1)).sizes(sizes);
        let expected = 1.0 + 0.6 * (1.0 + cv_squared) / (2.0 * 0.4);
        assert_is(&format!("{sizes:?}"), &queue(0.6, 15_000, service), sojourn, expected, 0.03);
    }
}

/// Three servers at two erlangs: Erlang C, 4/9 of all wait.
#[test]
fn three_servers_with_a_queue() {
    let service = Service::servers(Some(3), Duration::from_secs(1));
    assert_is("M/M/3", &queue(2.0, 8_000, service), sojourn, 1.0 + 4.0 / 9.0, 0.02);
}

/// A gate before servers that do not disturb each other sheds as Erlang B says: 81/736 of 3 erlangs at 5.
#[test]
fn a_gate_that_never_waits() {
    for sizes in [Sizes::Exponential, Sizes::Deterministic, Sizes::Pareto { alpha: 2.5 }] {
        let mut scenario = queue(3.0, 8_000, Service::servers(None, Duration::from_secs(1)).sizes(sizes));
        scenario.gate = Some(Gate::builder("db", 5));
        let shed = |report: &Report| report.totals.shed_share().expect("somebody came");
        assert_is(&format!("{sizes:?}"), &scenario, shed, 81.0 / 736.0, 0.01);
    }
}

/// The degrading database behind a gate, from the table of exact values.
#[test]
fn a_degrading_database() {
    let text = include_str!("../../oracles/oracles.json");
    let oracles: serde_json::Value = serde_json::from_str(text).expect("the table is JSON");
    for row in oracles["degrading"].as_array().expect("the table has these rows") {
        let number = |key: &str| row[key].as_f64().expect("a number");
        let service = Service::shared(number("lam_per_min") / 60.0, number("sigma"), number("kappa"));
        let mut scenario = queue(number("rate_per_min") / 60.0, 40_000, service);
        let limit = u32::try_from(row["limit"].as_u64().expect("a limit")).expect("a small one");
        scenario.gate = Some(Gate::builder("db", limit));
        scenario.interval = Duration::from_secs(2_000); // the first of them warms up
        let checks: [Check; 3] = [
            (|report| later(report).shed_share().expect("somebody came"), number("shed"), 0.01),
            (later_in_flight, number("in_flight"), 0.005),
            (
                |report| later_in_flight(report) / later(report).good as f64 * 38_000.0,
                60.0 * number("latency"),
                0.005,
            ),
        ];
        assert_are(&format!("{row}"), &scenario, &checks);
    }
}

fn later(report: &Report) -> Tally {
    let mut sum = Tally::default();
    report.series[1..].iter().for_each(|point| sum += &point.tally);
    sum
}

fn later_in_flight(report: &Report) -> f64 {
    let means = report.series[1..].iter().map(|point| point.in_flight.mean);
    means.sum::<f64>() / (report.series.len() - 1) as f64
}

/// All sizes have mean one, and the spread that they are named for.
#[test]
fn sizes_are_as_they_are_called() {
    for (sizes, cv) in [
        (Sizes::Exponential, 1.0),
        (Sizes::Lognormal { cv: 0.5 }, 0.5),
        (Sizes::Hyperexponential { cv: 3.0 }, 3.0),
        // Second moment (0.9 + 0.1 x 36) / 1.5^2 = 2.
        (Sizes::Bimodal { share: 0.1, factor: 6.0 }, 1.0),
        // alpha 5: variance 1 / (alpha (alpha - 2)).
        (Sizes::Pareto { alpha: 5.0 }, (1.0_f64 / 15.0).sqrt()),
    ] {
        let mut scenario = queue(200.0, 1_000, Service::servers(None, Duration::from_secs(1)).sizes(sizes));
        scenario.interval = Duration::from_secs(1);
        let series = scenario.run(1).unwrap().series;
        // Whoever left in the last of the time left early: keep away from the ends.
        let means: Vec<_> = series[50..900].iter().filter_map(|point| point.latency.mean_s).collect();
        let (mean, error) = mean_and_error(&means);
        assert!((mean - 1.0).abs() <= 4.0 * error && error < 0.02, "{sizes:?}: {mean} +- {error}");
        // Of about 200 in a second: their mean varies by the square root of that less.
        let spread = error * (means.len() as f64).sqrt() * 200.0_f64.sqrt();
        assert!((spread / cv - 1.0).abs() < 0.15, "{sizes:?}: cv {spread}, not {cv}");
    }
}
