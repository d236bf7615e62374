//! Controllers beside all else that a gate does: dry run, closing, rates, broken clocks, metrics.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate::controller::Kind;
use tidegate::{Outcome, Per, Priority, Rate};

use crate::{CRITICAL, MS, Rig, SECOND, assert_close, bounds};

#[test]
fn dry_run_shows_the_controller_what_the_word_counts() {
    let rig = Rig::new(|builder| builder.controller(Kind::Aimd, bounds(1, 100, 4)).enforce(false));
    let before = rig.reading();
    let inside: Vec<_> = (0..6).map(|_| rig.gate.try_admit(CRITICAL).expect("dry run")).collect();
    let reserved = rig.gate.try_admit(Priority::Sheddable).expect("dry run");
    assert!(reserved.ticket().over());
    rig.clock.advance(500 * MS);
    drop((inside, reserved));
    let window = rig.reading().window_since(&before);
    assert_eq!((window.completions, window.admissions), (4, 4));
    assert_eq!((window.refusals, window.priority_refusals), (3, 0));
    assert_close(window.in_flight_seconds, 2.0, 1e-6);
    // It moves as under enforcement.
    let all: Vec<_> = (0..20).map(|_| rig.gate.try_admit(CRITICAL).expect("dry run")).collect();
    rig.clock.advance(100 * MS);
    drop(all);
    rig.serve(10, 100 * MS, Outcome::Success);
    assert_eq!(rig.gate.limit(), 5);
}

#[test]
fn dry_run_tells_a_full_gate_from_a_reserve() {
    let rig = Rig::new(|builder| builder.objective(Duration::from_secs(1)).enforce(false));
    let before = rig.reading();
    let _inside = [(); 3].map(|()| rig.gate.try_admit(CRITICAL).expect("fits"));
    let over = [(); 5].map(|()| rig.gate.try_admit(Priority::Sheddable).expect("dry run"));
    assert!(over.iter().all(|permit| permit.ticket().over()));
    let window = rig.reading().window_since(&before);
    assert_eq!((window.refusals, window.priority_refusals), (0, 5));
}

#[test]
fn a_closed_gate_stays_where_it_is() {
    let rig = Rig::controlled(Kind::Aimd, bounds(1, 100, 20));
    let all: Vec<_> = std::iter::from_fn(|| rig.gate.try_admit(CRITICAL).ok()).collect();
    rig.gate.close();
    rig.clock.advance(2 * SECOND);
    for permit in all {
        permit.release(Outcome::Overload);
    }
    rig.clock.advance(2 * SECOND);
    assert!(rig.gate.try_admit(CRITICAL).is_err());
    assert_eq!((rig.gate.limit(), rig.looks()), (20, 0));
    assert!(rig.gate.drain(Some(Duration::ZERO)));
}

#[test]
fn a_rate_beside_a_controller() {
    let rate = Rate::new(10_u64, Per::Second).expect("valid");
    let rig = Rig::new(|builder| builder.controller(Kind::Aimd, bounds(1, 100, 5)).rate(rate));
    let before = rig.reading();
    let mut admitted = 0;
    for _ in 0..300 {
        admitted += u64::from(rig.gate.try_admit(CRITICAL).is_ok());
        rig.clock.advance(10 * MS);
    }
    let window = rig.reading().window_since(&before);
    assert_eq!((window.admissions, window.completions, window.refusals), (admitted, admitted, 0));
    assert!((30..=40).contains(&admitted), "{admitted}");
    assert_eq!(rig.looks(), 2);
}

#[test]
fn a_clock_that_goes_back_starts_the_window_anew() {
    let rig = Rig::controlled(Kind::Aimd, bounds(1, 100, 20));
    rig.clock.set(3_600 * SECOND);
    rig.serve(30, 100 * MS, Outcome::Success);
    let looks = rig.looks();
    let held = rig.gate.try_admit(CRITICAL).expect("fits");
    rig.clock.set(5 * SECOND);
    held.release(Outcome::Success);
    assert_eq!(rig.looks(), looks, "what was measured across it has no length");
    rig.serve(25, 100 * MS, Outcome::Success);
    assert_eq!(rig.looks(), looks + 2);
    let window = rig.gate.controller().expect("there is one").window;
    assert_eq!((window.elapsed_ns, window.completions), (SECOND, 10));
    assert_close(window.in_flight_seconds, 1.0, 1e-6);
}

#[test]
fn a_thread_that_was_slow_to_compare_is_no_clock_that_goes_back() {
    let rig = Rig::controlled(Kind::Aimd, bounds(1, 100, 20));
    rig.serve(10, 100 * MS, Outcome::Success);
    assert_eq!(rig.looks(), 1);
    let next = rig.gate.controller().expect("there is one").next_look_ns;
    rig.clock.set(SECOND / 2);
    rig.serve(1, MS, Outcome::Success);
    assert_eq!(rig.gate.controller().expect("there is one").next_look_ns, next);
}

#[test]
fn times_at_the_end_of_the_clock_do_no_harm() {
    for kind in Kind::ALL {
        let rig = Rig::controlled(kind, bounds(2, 100, 20));
        let forever = rig.gate.try_admit(CRITICAL).expect("fits");
        rig.serve(20, 0, Outcome::Success);
        rig.clock.set(u64::MAX / 2);
        rig.serve(20, 0, Outcome::Overload);
        rig.clock.set(u64::MAX);
        drop(forever);
        rig.serve(20, u64::MAX, Outcome::Success);
        assert!((2..=100).contains(&rig.gate.limit()), "{kind:?}: {}", rig.gate.limit());
    }
}

/// Each move in the limit that metrics read and in the counts by cause, and each attempt once.
#[test]
fn d34_what_is_counted_follows_the_moves_and_loses_no_attempt() {
    let rig = Rig::controlled(Kind::Goodput, bounds(1, 100, 8));
    let before = rig.reading();
    let (mut admitted, mut shed) = (0, 0);
    let mut inside = VecDeque::new();
    for i in 0..50_000_u64 {
        rig.clock.advance(MS);
        let limit = rig.gate.limit();
        match rig.gate.try_admit(CRITICAL) {
            Ok(permit) => {
                admitted += 1;
                inside.push_back(permit);
            }
            Err(refused) => {
                shed += 1;
                assert_eq!(refused.limit, limit, "before it looked, if it did");
            }
        }
        if i % 4 == 3 {
            if let Some(permit) = inside.pop_front() {
                // In the end all of it times out, so that the limit surely moves.
                permit.release(if i % 40 == 3 || i > 40_000 { Outcome::Overload } else { Outcome::Success });
            }
        }
        assert_eq!(rig.gate.stats().limit, rig.gate.limit());
    }
    inside.clear();
    let stats = rig.gate.stats();
    assert_eq!(admitted + shed, 50_000);
    assert_eq!((stats.admitted(CRITICAL), stats.shed_total()), (admitted, shed));
    assert_eq!(stats.released(Outcome::Success) + stats.released(Outcome::Overload), admitted);
    let window = rig.reading().window_since(&before);
    assert_eq!((window.admissions, window.refusals, window.completions), (admitted, shed, admitted));
    let report = rig.gate.controller().expect("there is one");
    let by_cause = |of: &[&str]| -> u64 {
        stats.limit_changes().filter(|(cause, _)| of.contains(cause)).map(|(_, changes)| changes).sum()
    };
    assert!(report.probes > 10 && report.moves > 0, "{report:?}");
    assert_eq!(by_cause(&["probe"]), report.probes);
    assert_eq!(by_cause(&["raise", "lower", "lost"]), report.moves);
    assert_eq!(u64::from(stats.generation), report.probes + report.moves);
    // Experiments push nothing out of the history.
    assert_eq!(rig.gate.limit_history().len() as u64, report.moves.min(64));
}
