//! Nothing is lost, and the same seed gives the same run.

use std::time::Duration;

use tidegate::sim::{
    Arrivals, Change, Class, Clients, Dependency, OnTimeout, Retries, Scenario, Service, Sizes, Tally,
};
use tidegate::{Gate, GateBuilder, Priority, Weight};

/// Everything at once: four priorities of different weight and size, retries, timeouts, a dependency, steps.
fn busy(gate: Option<GateBuilder>, on_timeout: OnTimeout) -> Scenario {
    let mut service = Service::shared(2.0, 0.1, 0.002).sizes(Sizes::Hyperexponential { cv: 2.0 });
    service.changes = vec![
        Change { at: Duration::from_secs(200), lambda: Some(0.0), ..Change::default() },
        Change { at: Duration::from_secs(215), lambda: Some(3.0), ..Change::default() },
    ];
    let mut scenario = Scenario::new("busy", Arrivals::poisson(12.0, Duration::from_secs(400)), service);
    scenario.arrivals.mix = Priority::ALL
        .iter()
        .zip(1..)
        .map(|(&priority, n)| Class {
            priority,
            share: f64::from(n),
            size: 1.0 / f64::from(n),
            weight: Weight::new(5 - n).unwrap(),
        })
        .collect();
    scenario.gate = gate;
    scenario.interval = Duration::from_secs(7);
    scenario.dependency = Some(Dependency { time: Duration::from_millis(300), changes: Vec::new() });
    scenario.clients = Clients {
        timeout: Some(Duration::from_secs(5)),
        on_timeout,
        retries: Some(Retries {
            most: 2,
            after: Duration::from_millis(500),
            backoff: 3.0,
            jitter: 0.5,
            on_timeout: true,
            on_shed: true,
            until: None,
        }),
    };
    scenario
}

fn gates() -> [Option<GateBuilder>; 3] {
    [None, Some(Gate::builder("db", 25)), Some(Gate::builder("db", 25).enforce(false))]
}

#[test]
fn every_attempt_is_somewhere_at_every_boundary() {
    for gate in gates() {
        for on_timeout in [OnTimeout::Abandon, OnTimeout::Cancel] {
            let scenario = busy(gate.clone(), on_timeout);
            let report = scenario.run(7).unwrap();
            let mut sum = Tally::default();
            for point in &report.series {
                sum += &point.tally;
                let what = format!("{gate:?}, {on_timeout:?}, {} s", point.start_s);
                assert_eq!(sum.offered, sum.admitted + sum.would_shed + sum.shed(), "{what}");
                assert_eq!(sum.offered, sum.good + sum.late + sum.shed() + point.awaited, "{what}");
                let mut by_priority = Tally::default();
                point.by_priority.iter().for_each(|of| by_priority += &of.tally);
                assert_eq!(by_priority, point.tally, "{what}");
            }
            assert_eq!(sum, report.totals);
            // Each of them happened, so that the sums say something.
            assert!(sum.good > 0 && sum.late > 0 && sum.retries() > 0);
            assert_eq!(sum.cancelled > 0, on_timeout == OnTimeout::Cancel);
            assert_eq!(sum.wasted > 0, on_timeout == OnTimeout::Abandon);
            let enforced = gate.as_ref().is_some_and(|gate| gate.clone().build().unwrap().enforce());
            assert_eq!(sum.shed() > 0, enforced);
            assert_eq!(sum.would_shed > 0, gate.is_some() && !enforced);
        }
    }
}

#[test]
fn the_gate_counts_the_same() {
    for gate in gates().into_iter().flatten() {
        for on_timeout in [OnTimeout::Abandon, OnTimeout::Cancel] {
            let report = busy(Some(gate.clone()), on_timeout).run(8).unwrap();
            let (counted, totals) = (report.gate.unwrap(), report.totals);
            assert_eq!(counted.admitted, totals.admitted);
            assert_eq!(counted.shed, totals.shed());
            assert_eq!(counted.would_shed, totals.would_shed);
            let released = counted.success + counted.overload + counted.ignore;
            if totals.would_shed == 0 {
                assert_eq!(counted.success, totals.good);
                assert_eq!(counted.overload, totals.wasted);
                assert_eq!(counted.ignore, totals.cancelled);
                assert_eq!(u64::from(counted.in_flight), report.in_flight.end);
                assert_eq!(u64::from(counted.high_water), report.in_flight.peak);
            } else {
                // Those over the limit leave uncounted.
                assert!(released <= totals.good + totals.wasted + totals.cancelled);
                assert!(report.in_flight.peak > u64::from(counted.high_water));
            }
            assert!(counted.high_water <= 25);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let json = |seed| {
        let report = busy(Some(Gate::builder("db", 25)), OnTimeout::Abandon).run(seed).unwrap();
        serde_json::to_string(&report).unwrap()
    };
    assert_eq!(json(1), json(1));
    assert_ne!(json(1), json(2));
}

/// Common random numbers: whatever the gate and the service do, the same users come at the same moments.
#[test]
fn the_same_users_meet_every_gate() {
    let users = |scenario: &Scenario| -> Vec<Vec<u64>> {
        let series = scenario.run(9).unwrap().series;
        let by_priority = |point: &tidegate::sim::Point| {
            point.by_priority.iter().map(|of| of.tally.first_attempts).collect()
        };
        series.iter().map(by_priority).collect()
    };
    let ungated = busy(None, OnTimeout::Abandon);
    let expected = users(&ungated);
    for gate in gates() {
        let mut scenario = busy(gate, OnTimeout::Cancel);
        scenario.service.kappa = 0.01;
        assert_eq!(users(&scenario), expected);
    }
    // With the same work: of a lone queue, the times are the same whether or not others were shed before.
    let mut other = ungated;
    other.service.sizes = Sizes::Deterministic;
    assert_eq!(users(&other), expected);
}

#[test]
fn bare_entries_are_told_apart_by_what_is_in_flight() {
    for gate in gates().into_iter().flatten() {
        let mut scenario = busy(Some(gate), OnTimeout::Abandon);
        for class in &mut scenario.arrivals.mix {
            class.weight = Weight::ONE;
        }
        let permits = scenario.run(4).unwrap();
        scenario.bare_entries = true;
        let bare = scenario.run(4).unwrap();
        let counted = bare.gate.unwrap();
        assert_eq!((counted.admitted, counted.would_shed), (bare.totals.admitted, bare.totals.would_shed));
        if bare.totals.would_shed == 0 {
            assert_eq!(bare.totals, permits.totals);
        }
    }
}

/// The report's memory does not depend on how much happens, only on how many intervals there are.
#[test]
fn a_long_run_has_a_short_series() {
    let mut scenario = Scenario::new(
        "long",
        Arrivals::poisson(1.0, Duration::from_secs(100_000)),
        Service::servers(None, Duration::from_secs(1)),
    );
    scenario.interval = Duration::from_secs(30_000);
    let series = scenario.run(1).unwrap().series;
    assert_eq!(series.iter().map(|point| point.length_s).collect::<Vec<_>>(), [3e4, 3e4, 3e4, 1e4]);
    scenario.interval = Duration::from_millis(500);
    let refused = scenario.run(1).unwrap_err().to_string();
    assert!(refused.contains("interval: a series has at most 100000 intervals, got 200000"), "{refused}");
}
