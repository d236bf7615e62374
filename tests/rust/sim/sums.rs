//! Nothing is lost, and the same seed gives the same run.

use std::time::Duration;

use tidegate::sim::{
    Arrivals, Change, Class, Clients, Dependency, OnTimeout, Retries, Scenario, Service, Sizes, Tally,
};
use tidegate::{Gate, GateBuilder, Priority, Threshold, Thresholds, Weight};

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
            elsewhere: (n == 3).then_some(Duration::from_millis(700)),
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
        for on_timeout in [OnTimeout::Abandon, OnTimeout::Cancel, OnTimeout::Fail] {
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
            assert_eq!(sum.cancelled > 0, on_timeout != OnTimeout::Abandon);
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
        for on_timeout in [OnTimeout::Abandon, OnTimeout::Cancel, OnTimeout::Fail] {
            let report = busy(Some(gate.clone()), on_timeout).run(8).unwrap();
            let (counted, totals) = (report.gate.unwrap(), report.totals);
            assert_eq!(counted.admitted, totals.admitted);
            assert_eq!(counted.shed, totals.shed());
            assert_eq!(counted.would_shed, totals.would_shed);
            let released = counted.success + counted.overload + counted.ignore;
            if totals.would_shed == 0 {
                assert_eq!(counted.success, totals.good);
                let failed = if on_timeout == OnTimeout::Fail { totals.cancelled } else { 0 };
                assert_eq!(counted.overload, totals.wasted + failed);
                assert_eq!(counted.ignore, totals.cancelled - failed);
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

/// What the gate measures by its clock is what the simulator reckons without it.
#[test]
fn the_gate_lives_in_virtual_time() {
    let mut scenario = busy(Some(Gate::builder("db", 25).timing(true)), OnTimeout::Cancel);
    let report = scenario.run(6).unwrap();
    let measured = report.gate.unwrap().in_flight_mean.expect("it measures");
    // The gate's area is in whole microseconds.
    assert!((measured / report.in_flight.mean - 1.0).abs() < 1e-6, "{measured} {}", report.in_flight.mean);
    scenario.gate = Some(Gate::builder("db", 25));
    assert_eq!(scenario.run(6).unwrap().gate.unwrap().in_flight_mean, None);
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
    let mut other = ungated;
    other.service.sizes = Sizes::Deterministic;
    assert_eq!(users(&other), expected);
}

/// With the same work: where nobody slows anybody down, who was let in takes as long, whoever else was shed.
#[test]
fn the_same_users_bring_the_same_work() {
    let mut scenario = busy(None, OnTimeout::Cancel);
    scenario.service = Service::servers(None, Duration::from_secs(1)).sizes(Sizes::Lognormal { cv: 1.0 });
    scenario.clients = Clients::default();
    let all = scenario.run(5).unwrap();
    let closed = Thresholds::default().with(Priority::Sheddable, Threshold::Reserve(100_000));
    scenario.gate = Some(Gate::builder("db", 100_000).thresholds(closed));
    let some = scenario.run(5).unwrap();
    assert_eq!(some.by_priority[3].tally.admitted, 0);
    assert!(all.by_priority[3].tally.admitted > 0 && all.by_priority[0].tally.admitted > 0);
    for (some, all) in some.by_priority.iter().zip(&all.by_priority[..3]) {
        assert_eq!(some.tally, all.tally);
        // To the nanoseconds to which events are rounded.
        let (some, all) = (some.latency.mean_s.unwrap(), all.latency.mean_s.unwrap());
        assert!((some - all).abs() < 3e-9, "{some} {all}");
    }
}

/// A retry asks for the same work again: who was late once, on an idle server, is late every time.
#[test]
fn a_retry_brings_the_same_work() {
    let mut scenario = busy(None, OnTimeout::Cancel);
    scenario.arrivals = Arrivals::trace(&[0.0]);
    scenario.service = Service::servers(None, Duration::from_secs(1));
    scenario.dependency = None;
    scenario.clients.timeout = Some(Duration::from_millis(700));
    let mut late = 0;
    for seed in 0..40 {
        let totals = scenario.run(seed).unwrap().totals;
        assert!((totals.good, totals.retries()) == (1, 0) || (totals.late, totals.retries()) == (3, 2));
        late += totals.late / 3;
    }
    assert!((10..30).contains(&late), "{late}");
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
