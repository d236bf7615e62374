//! Stopping a stage before it collapses.

use tidegate::capacity::{Alarm, Glance, Watch};

const T: f64 = 180.0;

/// Looks once a second at a stage of `rate` a second whose target gets `done` a second done; requests take
/// `fastest` seconds at least. When it is stopped, and why.
fn stopped(rate: f64, done: f64, fastest: f64, seconds: u32) -> Option<(f64, Alarm)> {
    let mut watch = Watch::new(T).unwrap();
    (1..=seconds).map(f64::from).find_map(|at| {
        let offered = (rate * at) as u64;
        let good = (done * (at - fastest).max(0.0)).min(offered as f64) as u64;
        let glance = Glance { at, offered, good, in_flight: offered - good, ..Glance::default() };
        watch.see(glance).map(|alarm| (at, alarm))
    })
}

#[test]
fn what_is_too_much_is_stopped_before_the_first_timeout() {
    for rate in [2.0, 4.0, 20.0, 1000.0] {
        let (at, alarm) = stopped(rate, 0.7, 20.0, 900).unwrap();
        assert!((0.75 * T..T).contains(&at), "{rate}: {at}");
        assert!(matches!(alarm, Alarm::Backlog(wait) if wait > T / 2.0), "{alarm:?}");
    }
    let (at, alarm) = stopped(1.0, 0.0, 20.0, 900).unwrap();
    assert!(at < T && alarm == Alarm::Backlog(f64::INFINITY));
    assert_eq!(alarm.to_string(), "nothing gets out any more");
}

#[test]
fn what_holds_goes_on() {
    assert_eq!(stopped(0.7, 1.0, 20.0, 900), None);
    // As many as fill a large system are inside, and wait no longer than they should.
    assert_eq!(stopped(10.0, 20.0, 60.0, 900), None);
    // Slowly more: whoever comes last waits little yet.
    assert_eq!(stopped(10.0, 9.5, 5.0, 600), None);
    assert_eq!(stopped(0.0, 1.0, 5.0, 900), None);
}

#[test]
fn a_moment_is_not_enough() {
    let mut watch = Watch::new(T).unwrap();
    let mut good = 0;
    for at in 1..900_u64 {
        // Answers come in bursts, each time before it has looked bad for 18 s.
        let offered = at;
        if at % 100 == 99 {
            good = offered;
        }
        let glance = Glance { at: at as f64, offered, good, in_flight: offered - good, ..Glance::default() };
        assert_eq!(watch.see(glance), None, "{at}");
    }
}

#[test]
fn failures_are_seen_at_any_time() {
    let see = |at: f64, good: u64, late: u64, failed: u64| {
        let offered = good + late + failed;
        Watch::new(T).unwrap().see(Glance { at, offered, good, late, failed, in_flight: 0 })
    };
    assert_eq!(see(1.0, 50, 0, 50), Some(Alarm::Bad(50, 100)));
    assert_eq!(see(1.0, 0, 1, 0), Some(Alarm::Bad(1, 1)));
    assert_eq!(see(300.0, 50, 50, 0).unwrap().to_string(), "50 of 100 were late or failed");
    // Of 100, 4 with 1 % to be expected are beyond chance; 3 are not.
    assert_eq!([see(1.0, 97, 2, 1), see(1.0, 96, 2, 2)], [None, Some(Alarm::Bad(4, 100))]);
    assert_eq!(see(1.0, 10_000, 100, 0), None);
}

#[test]
fn a_timeout_is_a_time() {
    assert!(Watch::new(0.0).is_err() && Watch::new(f64::NAN).is_err());
}
