//! A collapse that stays when its cause has gone.

use std::time::Duration;

use tidegate::Gate;
use tidegate::sim::{Arrivals, Clients, OnTimeout, Report, Retries, Scenario, Service, Sizes};

const MINUTE: Duration = Duration::from_secs(60);

/// The article's ramp, then half an hour of a load that its database carries easily.
fn after_the_ramp() -> Scenario {
    let ramp = [0.0, 10.0, 20.0, 40.0, 80.0, 150.0, 20.0].map(|per_minute| per_minute / 60.0);
    let lengths = [15, 15, 15, 15, 15, 15, 30].map(|minutes| minutes * MINUTE);
    let service = Service::shared(3.0 / 60.0, 0.02, 0.000_555).sizes(Sizes::Lognormal { cv: 0.5 });
    let mut scenario = Scenario::new("storm", Arrivals::stages(ramp.into_iter().zip(lengths)), service);
    scenario.clients = Clients::patient_for(3 * MINUTE);
    scenario
}

/// The share of errors in minutes of the run.
fn errors(report: &Report, minutes: std::ops::Range<usize>) -> f64 {
    let sum = |of: fn(&tidegate::sim::Tally) -> u64| -> f64 {
        report.series[minutes.clone()].iter().map(|point| of(&point.tally) as f64).sum()
    };
    sum(|tally| tally.late) / (sum(|tally| tally.late) + sum(|tally| tally.good))
}

#[test]
fn abandoned_work_keeps_the_database_down_and_cancelling_it_does_not() {
    for seed in 1..=5 {
        let abandoning = after_the_ramp();
        let report = abandoning.run(seed).unwrap();
        assert!(errors(&report, 80..90) > 0.999, "seed {seed}: 150/min do not collapse");
        assert!(errors(&report, 90..120) > 0.999, "seed {seed}: 20/min recover");
        let mut cancelling = abandoning.clone();
        cancelling.clients.on_timeout = OnTimeout::Cancel;
        let report = cancelling.run(seed).unwrap();
        assert!(errors(&report, 80..90) > 0.9, "seed {seed}: 150/min do not collapse");
        assert!(errors(&report, 100..120) < 0.001, "seed {seed}: 20/min do not recover");
        let mut gated = abandoning.clone();
        gated.gate = Some(Gate::builder("db", 30));
        let report = gated.run(seed).unwrap();
        assert!(errors(&report, 0..120) < 0.01, "seed {seed}: the gate does not hold");
        assert!(report.totals.good > 2_000, "seed {seed}: the gate holds too much");
    }
}

/// Retries feed the collapse: a load that is carried without them is not carried with them after a burst.
#[test]
fn retries_keep_a_burst_alive() {
    let mut scenario = after_the_ramp();
    let stages = [(30.0, 10), (100.0, 5), (30.0, 45)];
    scenario.arrivals = Arrivals::stages(stages.map(|(rate, minutes)| (rate / 60.0, minutes * MINUTE)));
    scenario.duration = 60 * MINUTE;
    scenario.clients.on_timeout = OnTimeout::Cancel;
    let alone = scenario.run(3).unwrap();
    scenario.clients.retries = Some(Retries {
        most: 3,
        after: Duration::from_secs(1),
        backoff: 1.0,
        jitter: 0.0,
        on_timeout: true,
        on_shed: false,
        until: None,
    });
    let storm = scenario.run(3).unwrap();
    assert!(errors(&alone, 30..60) < 0.01, "{}", errors(&alone, 30..60));
    assert!(errors(&storm, 30..60) > 0.5, "{}", errors(&storm, 30..60));
    assert_eq!(alone.totals.first_attempts, storm.totals.first_attempts);
}
