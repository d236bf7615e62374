//! What the simulator has for the sake of a backend's pool: threads before a few processors, and clients who
//! come again, but not for ever.

use std::sync::Arc;
use std::time::Duration;

use tidegate::sim::{Arrivals, Class, Clients, Report, Retries, Scenario, Schedule, Service, Sizes, Trace};

/// `together` requests at the start, all the same, of which one alone takes 20 ms.
fn at_once(together: usize, change: impl FnOnce(&mut Scenario)) -> Report {
    let times: Arc<[f64]> = vec![0.0; together].into();
    let arrivals = Arrivals {
        schedule: Schedule::Trace(Trace { times, keep: 1.0, speed: 1.0 }),
        mix: vec![Class::default()],
    };
    let service = Service::shared(50.0, 0.0, 0.0).sizes(Sizes::Deterministic);
    let mut scenario = Scenario::new("at once", arrivals, service);
    scenario.duration = Duration::from_secs(10);
    scenario.interval = Duration::from_secs(10);
    change(&mut scenario);
    scenario.run(1).unwrap()
}

fn longest(report: &Report) -> f64 {
    report.latency.good.max_s.unwrap()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn who_is_beyond_the_processors_takes_turns() {
    for (together, seconds) in [(1, 0.02), (2, 0.02), (3, 0.03), (40, 0.4)] {
        let report = at_once(together, |scenario| scenario.service.processors = Some(2));
        assert!(near(longest(&report), seconds), "{together}: {report:?}");
    }
    assert!(near(longest(&at_once(40, |_| {})), 0.02), "without processors nobody waits");
}

#[test]
fn the_law_counts_up_to_the_processors() {
    let at = |processors| {
        let report = at_once(40, |scenario| {
            scenario.service.sigma = 0.1;
            scenario.service.kappa = 0.01;
            scenario.service.processors = processors;
        });
        longest(&report)
    };
    // Four at a time get 4 * 50 / (1 + 0.3 + 0.12) done a second; forty, 40 * 50 / (1 + 3.9 + 15.6).
    assert!(near(at(Some(4)), 40.0 / (200.0 / 1.42)), "{}", at(Some(4)));
    assert!(near(at(None), 40.0 / (2000.0 / 20.5)), "{}", at(None));
    assert!(near(at(Some(40)), at(None)) && near(at(Some(1000)), at(None)));
}

#[test]
fn whoever_finds_no_server_waits_in_line() {
    // Two of them are done every 20 ms.
    let report = at_once(40, |scenario| {
        scenario.service.processors = Some(2);
        scenario.service.servers = Some(2);
    });
    assert!(near(longest(&report), 0.4), "{report:?}");
    assert!(near(report.latency.good.mean_s.unwrap(), 0.21), "{report:?}");
}

#[test]
fn nobody_comes_again_when_it_is_too_late() {
    let attempts = |until: Option<f64>| {
        let report = at_once(1, |scenario| {
            scenario.service.lambda = 1e-3;
            scenario.clients = Clients::patient_for(Duration::from_secs(1));
            scenario.clients.retries = Some(Retries {
                most: 2,
                after: Duration::from_millis(500),
                backoff: 1.0,
                jitter: 0.0,
                on_timeout: true,
                on_shed: false,
                until: until.map(Duration::from_secs_f64),
            });
        });
        assert_eq!(report.totals.offered, report.totals.late);
        report.totals.offered
    };
    // At 0 s, 1.5 s and 3 s.
    assert_eq!([None, Some(3.1), Some(3.0), Some(1.5), Some(0.0)].map(attempts), [3, 3, 2, 1, 1]);
}
