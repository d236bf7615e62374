//! What a window says of what happened.

use std::time::Duration;

use tidegate::controller::Window;
use tidegate::{Ask, Outcome, Priority, Weight};

use crate::{CRITICAL, MS, Rig, SECOND, assert_close, assert_same};

#[test]
fn a_window_is_what_happened() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_millis(50)));
    let Rig { gate, clock } = &rig;
    clock.set(7 * SECOND);
    let before = rig.reading();
    let mut wanted = Window::default();
    for (ms, outcome) in
        [(10, Outcome::Success), (50, Outcome::Success), (51, Outcome::Success), (20, Outcome::Overload)]
    {
        rig.serve(1, ms * MS, outcome);
        let success = outcome == Outcome::Success;
        wanted.complete(ms * MS, success && ms <= 50, !success);
    }
    rig.serve(1, 1_000 * MS, Outcome::Ignore);
    let all = [(); 4].map(|()| gate.try_admit(CRITICAL).expect("four fit"));
    assert!(gate.try_admit(CRITICAL).is_err());
    assert!(gate.try_admit(Priority::Sheddable).is_err());
    clock.advance(SECOND);
    drop(all);
    for _ in 0..4 {
        wanted.complete(SECOND, false, false);
    }
    wanted.elapsed_ns = 131 * MS + 2 * SECOND;
    wanted.admissions = 9;
    wanted.refusals = 2;
    let window = rig.reading().window_since(&before);
    assert_same(&window, &wanted);
    assert_close(window.in_flight_seconds, 0.131 + 1.0 + 4.0, 1e-9);
}

#[test]
fn weight_is_weight_in_flight_and_one_completion() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_secs(1)));
    let before = rig.reading();
    let permit =
        rig.gate.try_admit(Ask::from(CRITICAL).weight(Weight::new(3).expect("valid"))).expect("fits");
    rig.clock.advance(SECOND);
    drop(permit);
    let window = rig.reading().window_since(&before);
    assert_eq!((window.completions, window.admissions, window.extra_weight), (1, 1, 2));
    assert_close(window.in_flight_seconds, 3.0, 1e-9);
    assert_close(window.latency_sum, 1.0, 1e-6);
}

#[test]
fn refusals_by_priority_and_by_rate_are_no_full_gate() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_secs(1)));
    let before = rig.reading();
    let _three = [(); 3].map(|()| rig.gate.try_admit(CRITICAL).expect("fits"));
    for _ in 0..5 {
        assert!(rig.gate.try_admit(Priority::Sheddable).is_err());
    }
    let window = rig.reading().window_since(&before);
    assert_eq!((window.refusals, window.priority_refusals), (0, 5));
}

#[test]
fn sums_of_timeouts_do_not_swallow_what_comes_after_them() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_secs(1)));
    let begun = rig.reading();
    rig.serve(1_000, 180 * SECOND, Outcome::Overload);
    let before = rig.reading();
    let mut wanted = Window { elapsed_ns: 180_000 * SECOND, admissions: 1_000, ..Window::default() };
    for _ in 0..1_000 {
        wanted.complete(180 * SECOND, false, true);
    }
    assert_same(&before.window_since(&begun), &wanted);
    rig.serve(1_000, 25_000, Outcome::Success);
    let window = rig.reading().window_since(&before);
    let mut wanted = Window { elapsed_ns: 25 * MS, admissions: 1_000, ..Window::default() };
    for _ in 0..1_000 {
        wanted.complete(25_000, true, false);
    }
    assert_same(&window, &wanted);
    assert_close(window.in_flight_seconds, 0.025, 1e-9);
}

/// Bare entries have no latency of their own, but all of them have a mean.
#[test]
fn bare_entries_are_measured_all_together() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_millis(100)));
    let before = rig.reading();
    // Two at a time, of 20 ms and 60 ms.
    for _ in 0..50 {
        rig.gate.enter(None).expect("fits");
        rig.gate.enter(None).expect("fits");
        rig.clock.advance(20 * MS);
        assert!(rig.gate.exit(Outcome::Success));
        rig.clock.advance(40 * MS);
        assert!(rig.gate.exit(Outcome::Success));
    }
    let window = rig.reading().window_since(&before);
    assert_eq!((window.completions, window.overload), (100, 0));
    assert_close(window.latency_sum, 4.0, 1e-9);
    assert_close(window.in_flight_seconds, 4.0, 1e-9);
    // 1 - exp(-100 / 40) of an exponential distribution.
    assert_eq!(window.good, 92);
}

#[test]
fn bare_entries_and_permits_share_the_time_inside() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_secs(10)));
    let before = rig.reading();
    let permit = rig.gate.try_admit(CRITICAL).expect("fits");
    rig.gate.enter(None).expect("fits");
    rig.clock.advance(SECOND);
    assert!(rig.gate.exit(Outcome::Overload));
    rig.clock.advance(SECOND);
    drop(permit);
    let window = rig.reading().window_since(&before);
    assert_eq!((window.completions, window.good, window.overload), (2, 1, 1));
    assert_close(window.latency_sum, 3.0, 1e-6);
}
