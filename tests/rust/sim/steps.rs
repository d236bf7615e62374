//! Small runs whose every moment can be reckoned by hand.

use std::time::Duration;

use tidegate::Gate;
use tidegate::sim::{
    Arrivals, Change, Class, Clients, Cliff, Dependency, DependencyChange, OnTimeout, Report, Retries,
    Scenario, Schedule, Service, Sizes, Trace,
};

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Requests of size one at these moments, for a hundred seconds.
fn at(times: &[f64], service: Service) -> Scenario {
    let mut scenario = Scenario::new("by hand", Arrivals::trace(times), service.sizes(Sizes::Deterministic));
    scenario.duration = seconds(100.0);
    scenario.interval = seconds(1.0);
    scenario
}

/// When good answers came, by the second, and how long they took.
fn answers(report: &Report) -> Vec<(f64, f64)> {
    let good = report.series.iter().filter(|point| point.tally.good > 0);
    good.map(|point| (point.start_s, (point.latency.mean_s.unwrap() * 1e6).round() / 1e6)).collect()
}

fn run(scenario: &Scenario) -> Vec<(f64, f64)> {
    answers(&scenario.run(1).unwrap())
}

fn change(at: f64, lambda: f64) -> Change {
    Change { at: seconds(at), lambda: Some(lambda), ..Change::default() }
}

#[test]
fn a_step_of_the_capacity_keeps_what_was_attained() {
    // Half is done when the rest takes twice as long.
    let mut service = Service::servers(None, seconds(10.0));
    service.changes = vec![change(5.0, 1.0 / 20.0)];
    assert_eq!(run(&at(&[0.0], service)), [(15.0, 15.0)]);
    // Shared by two from 2 s on, 0.4 and 0.2 done when it stops for 3 s.
    let mut service = Service::shared(0.1, 1.0, 0.0);
    service.changes = vec![change(9.0, 0.1), change(6.0, 0.0)];
    assert_eq!(run(&at(&[0.0, 2.0], service)), [(21.0, 21.0), (23.0, 21.0)]);
}

#[test]
fn steps_of_contention_and_of_servers() {
    let mut service = Service::shared(0.5, 0.0, 0.0);
    service.changes = vec![Change { at: seconds(1.0), sigma: Some(1.0), ..Change::default() }];
    assert_eq!(run(&at(&[0.0, 0.0], service)), [(3.0, 3.0)]);
    let mut service = Service::shared(0.5, 0.0, 0.0);
    service.changes = vec![Change { at: seconds(1.0), kappa: Some(1.5), ..Change::default() }];
    assert_eq!(run(&at(&[0.0, 0.0], service)), [(5.0, 5.0)]); // 1 + 1.5 x 2 x 1: four times as slow
    let mut service = Service::servers(Some(1), seconds(4.0));
    service.changes = vec![Change { at: seconds(1.0), servers: Some(2), ..Change::default() }];
    assert_eq!(run(&at(&[0.0, 0.0, 0.5], service)), [(4.0, 4.0), (5.0, 5.0), (8.0, 7.5)]);
}

#[test]
fn what_is_inside_over_time() {
    let mut scenario = at(&[0.5, 1.5], Service::servers(None, seconds(2.0)));
    scenario.duration = seconds(5.0);
    let report = scenario.run(1).unwrap();
    let means: Vec<_> = report.series.iter().map(|point| point.in_flight.mean).collect();
    let peaks: Vec<_> = report.series.iter().map(|point| point.in_flight.peak).collect();
    let ends: Vec<_> = report.series.iter().map(|point| (point.in_flight.end, point.awaited)).collect();
    for (mean, expected) in means.iter().zip([0.5, 1.5, 1.5, 0.5, 0.0]) {
        assert!((mean - expected).abs() < 1e-8, "{means:?}");
    }
    assert_eq!(peaks, [1, 2, 2, 1, 0]);
    assert_eq!(ends, [(1, 1), (2, 2), (1, 1), (0, 0), (0, 0)]);
    assert!((report.in_flight.mean - 0.8).abs() < 1e-8);
    assert_eq!((report.in_flight.peak, report.in_flight.end), (2, 0));
}

#[test]
fn servers_are_taken_in_order() {
    let service = Service::servers(Some(2), seconds(4.0));
    assert_eq!(run(&at(&[0.0, 1.0, 1.5, 2.5], service)), [(4.0, 4.0), (5.0, 4.0), (8.0, 6.5), (9.0, 6.5)]);
}

#[test]
fn a_dependency_holds_the_permit_and_not_the_service() {
    let mut scenario = at(&[0.0, 0.5, 4.0], Service::servers(Some(1), seconds(1.0)));
    scenario.dependency = Some(Dependency {
        time: seconds(2.0),
        changes: vec![DependencyChange { at: seconds(5.5), time: seconds(4.0) }],
    });
    // The third has passed a quarter of it when it slows down.
    assert_eq!(run(&scenario), [(3.0, 3.0), (4.0, 3.5), (8.0, 4.5)]);
    scenario.gate = Some(Gate::builder("db", 1));
    let report = scenario.run(1).unwrap();
    assert_eq!(answers(&report), [(3.0, 3.0), (8.0, 4.5)]);
    assert_eq!(report.totals.shed(), 1);
    // No time at all, then some, then none again.
    scenario.gate = None;
    scenario.dependency = Some(Dependency {
        time: Duration::ZERO,
        changes: vec![
            DependencyChange { at: seconds(1.2), time: seconds(2.0) },
            DependencyChange { at: seconds(5.2), time: Duration::ZERO },
        ],
    });
    assert_eq!(run(&scenario), [(1.0, 1.0), (4.0, 3.5), (5.0, 1.2)]);
}

#[test]
fn a_cancelled_request_makes_room() {
    let mut service = Service::servers(Some(1), seconds(10.0));
    service.changes = vec![change(6.0, 1.0)];
    let mut scenario = at(&[0.0, 4.0], service);
    scenario.clients = Clients::patient_for(seconds(5.0));
    // Abandoned, the first is done at 6.4 s; cancelled, it leaves the second a second from 5 s on.
    let abandoned = scenario.run(1).unwrap();
    assert_eq!(answers(&abandoned), [(7.0, 3.4)]);
    assert_eq!((abandoned.totals.late, abandoned.totals.wasted, abandoned.totals.cancelled), (1, 1, 0));
    scenario.clients.on_timeout = OnTimeout::Cancel;
    let cancelled = scenario.run(1).unwrap();
    assert_eq!(answers(&cancelled), [(6.0, 2.9)]);
    assert_eq!((cancelled.totals.late, cancelled.totals.wasted, cancelled.totals.cancelled), (1, 0, 1));
    // Behind a gate, too: the second is let in only where the first has left.
    scenario.gate = Some(Gate::builder("db", 1));
    scenario.arrivals = Arrivals::trace(&[0.0, 5.5]);
    let cancelled = scenario.run(1).unwrap();
    assert_eq!((cancelled.totals.admitted, cancelled.totals.good), (2, 1));
    assert_eq!(
        cancelled.gate.as_ref().map(|gate| (gate.success, gate.ignore, gate.in_flight)),
        Some((1, 1, 0))
    );
    scenario.clients.on_timeout = OnTimeout::Abandon;
    let abandoned = scenario.run(1).unwrap();
    assert_eq!((abandoned.totals.admitted, abandoned.totals.shed()), (1, 1));
    assert_eq!(abandoned.gate.map(|gate| (gate.success, gate.overload)), Some((0, 1)));
}

#[test]
fn failed_work_leaves_as_an_overload() {
    let mut service = Service::servers(Some(1), seconds(10.0));
    service.changes = vec![change(5.0, 1.0)];
    let mut scenario = at(&[0.0, 5.5], service);
    scenario.gate = Some(Gate::builder("db", 1));
    scenario.clients = Clients::patient_for(seconds(5.0));
    scenario.clients.on_timeout = OnTimeout::Fail;
    let report = scenario.run(1).unwrap();
    assert_eq!(answers(&report), [(6.0, 1.0)]);
    assert_eq!((report.totals.late, report.totals.wasted, report.totals.cancelled), (1, 0, 1));
    let gate = report.gate.unwrap();
    assert_eq!((gate.success, gate.overload, gate.ignore, gate.in_flight), (1, 1, 0, 0));
}

#[test]
fn beyond_a_cliff_all_are_slower() {
    let mut service = Service::shared(0.5, 0.0, 0.0);
    service.cliff = Some(Cliff { above: 2, factor: 3.0 });
    assert_eq!(run(&at(&[0.0, 0.0], service.clone())), [(2.0, 2.0)]);
    // A third of half a unit a second from 1 s on; done at 4 s are those who had half at 1 s, and the third
    // has half a unit left then, at half a unit a second.
    assert_eq!(run(&at(&[0.0, 0.0, 1.0], service)), [(4.0, 4.0), (5.0, 4.0)]);
}

#[test]
fn who_is_answered_elsewhere_holds_a_permit_and_disturbs_nobody() {
    let mut scenario = at(&[0.0, 0.0, 1.0], Service::servers(Some(1), seconds(4.0)));
    scenario.arrivals.mix = vec![Class { elsewhere: Some(seconds(2.0)), ..Class::default() }];
    scenario.gate = Some(Gate::builder("db", 2));
    scenario.dependency = Some(Dependency { time: seconds(9.0), changes: Vec::new() });
    let report = scenario.run(1).unwrap();
    assert_eq!(answers(&report), [(2.0, 2.0)]);
    assert_eq!((report.totals.good, report.totals.shed()), (2, 1));
    // Cut off there, too.
    scenario.clients = Clients::patient_for(seconds(1.5));
    scenario.clients.on_timeout = OnTimeout::Cancel;
    let report = scenario.run(1).unwrap();
    assert_eq!((report.totals.cancelled, report.totals.good, report.in_flight.end), (2, 0, 0));
}

/// Wherever a request is when it is cancelled: before the service, in it, or waiting for the dependency.
#[test]
fn cancelled_wherever_it_is() {
    let mut scenario = at(&[0.0, 0.0, 0.0, 0.0], Service::servers(Some(1), seconds(1.0)));
    scenario.dependency = Some(Dependency { time: seconds(1.0), changes: Vec::new() });
    scenario.clients = Clients::patient_for(seconds(2.5));
    scenario.clients.on_timeout = OnTimeout::Cancel;
    let report = scenario.run(1).unwrap();
    assert_eq!(answers(&report), [(2.0, 2.0)]);
    assert_eq!((report.totals.cancelled, report.in_flight.end), (3, 0));
}

#[test]
fn an_answer_that_comes_with_the_timeout_is_good() {
    let mut scenario = at(&[0.0], Service::servers(None, seconds(2.0)));
    scenario.clients = Clients::patient_for(seconds(2.0));
    assert_eq!(run(&scenario), [(2.0, 2.0)]);
}

#[test]
fn clients_come_again_later_and_later() {
    let mut scenario = at(&[0.0, 0.0], Service::servers(None, seconds(20.0)));
    scenario.gate = Some(Gate::builder("db", 1));
    let retries = Retries {
        most: 3,
        after: seconds(2.0),
        backoff: 2.0,
        jitter: 0.0,
        on_timeout: false,
        on_shed: true,
        until: None,
    };
    scenario.clients.retries = Some(retries);
    let attempts = |scenario: &Scenario| -> Vec<f64> {
        let series = scenario.run(1).unwrap().series;
        series.iter().filter(|point| point.tally.retries() > 0).map(|point| point.start_s).collect()
    };
    assert_eq!(attempts(&scenario), [2.0, 6.0, 14.0]);
    // After a timeout, too, with the work that nobody waits for still inside.
    scenario.clients.timeout = Some(seconds(5.5));
    scenario.clients.retries = Some(Retries { on_timeout: true, on_shed: false, ..retries });
    assert_eq!(attempts(&scenario), [7.0]);
    // Jitter shortens a pause, to nothing at most.
    scenario.clients.retries = Some(Retries { jitter: 1.0, ..retries });
    let early = attempts(&scenario);
    assert!(early.len() == 3 && early[2] < 14.0, "{early:?}");
}

#[test]
fn a_trace_is_thinned_at_random_and_played_faster() {
    let times: Vec<f64> = (0..10_000).map(f64::from).collect();
    let trace = Trace { times: times.into(), keep: 0.25, speed: 100.0 };
    let arrivals = Arrivals { schedule: Schedule::Trace(trace), mix: vec![Class::default()] };
    let mut scenario = Scenario::new("trace", arrivals, Service::servers(None, seconds(0.001)));
    assert!((scenario.duration.as_secs_f64() - 99.99).abs() < 1e-6);
    scenario.interval = seconds(1.0);
    let report = scenario.run(1).unwrap();
    assert!((2_350..2_650).contains(&report.totals.offered), "{}", report.totals.offered);
    // Evenly thinned they would be 25 in each second.
    assert!(report.series.iter().any(|point| point.tally.offered < 20));
    assert!(report.series.iter().any(|point| point.tally.offered > 30));
}

#[test]
fn nobody_comes_in_a_pause() {
    let mut scenario = Scenario::new("ramp", Arrivals::article_ramp(), Service::servers(None, seconds(1.0)));
    scenario.interval = seconds(900.0);
    let series = scenario.run(1).unwrap().series;
    let counts: Vec<_> = series.iter().map(|point| point.tally.offered).collect();
    assert_eq!(counts.len(), 6);
    for (count, expected) in counts.iter().zip([0.0, 150.0, 300.0, 600.0, 1200.0, 2250.0]) {
        assert!((*count as f64 - expected).abs() <= 4.0 * f64::sqrt(expected), "{counts:?}");
    }
}

#[test]
fn the_last_of_a_trace_comes_too() {
    let service = Service::servers(None, seconds(0.5));
    for times in [&[7.0][..], &[0.0, 1.0, 2.0, 2.0], &[0.1, 0.2, 0.3, 1e9 / 3.0]] {
        for speed in [1.0, 3.0, 0.7] {
            let mut arrivals = Arrivals::trace(times);
            if let Schedule::Trace(trace) = &mut arrivals.schedule {
                trace.speed = speed;
            }
            let mut scenario = Scenario::new("to the end", arrivals, service.clone());
            scenario.interval = Duration::from_secs(1_000_000);
            let report = scenario.run(1).unwrap();
            assert_eq!(report.totals.offered, times.len() as u64, "{times:?} at {speed}");
        }
    }
}

#[test]
fn whoever_would_come_again_after_the_end_is_forgotten() {
    // More than there is room for.
    let (second, hour) = (seconds(1.0), seconds(3600.0));
    let arrivals = Arrivals::stages([(4_100_000.0, second), (0.0, second)]);
    let mut scenario = Scenario::new("never again", arrivals, Service::servers(None, second));
    scenario.gate = Some(Gate::builder("db", 0));
    let retries = Retries {
        most: 1,
        after: hour,
        backoff: 1.0,
        jitter: 0.0,
        on_timeout: false,
        on_shed: true,
        until: None,
    };
    scenario.clients.retries = Some(retries);
    let totals = scenario.run(1).unwrap().totals;
    assert!(totals.offered > 4_050_000 && totals.retries() == 0, "{totals:?}");
    // Up to the end they come, whatever `until` says.
    for (after, until, retried) in
        [(1.9, None, true), (1.9, Some(1.5), false), (1.9, Some(9.0), true), (2.1, Some(9.0), false)]
    {
        let mut few = Scenario::new("again", Arrivals::stages([(1000.0, second)]), scenario.service.clone());
        few.duration = seconds(2.0);
        few.gate = scenario.gate.clone();
        let until = until.map(seconds);
        few.clients.retries = Some(Retries { after: seconds(after), until, ..retries });
        let totals = few.run(1).unwrap().totals;
        assert_eq!(totals.retries() > 0, retried, "{after}, {until:?}: {totals:?}");
    }
}

#[test]
fn a_burst_can_be_ended_as_well() {
    // Nearly all that happens does so in a millionth of the time.
    let arrivals = Arrivals::stages([(1e6, seconds(1.0)), (0.0, seconds(1e6))]);
    let mut scenario = Scenario::new("a burst", arrivals, Service::servers(None, seconds(0.1)));
    scenario.interval = seconds(1e6);
    let mut asked = 0_u64;
    let mut go_on = || {
        asked += 1;
        true
    };
    let events = scenario.run_while(1, &mut go_on).unwrap().unwrap().events;
    assert!(events > 1_900_000 && asked >= events / 200_000, "{events} events, asked {asked} times");
    assert!(scenario.run_while(1, &mut || false).unwrap().is_none());
}
