//! Who looks and when, and what comes of it.

use std::time::Duration;

use tidegate::controller::{Cause, Choice, Kind, Window};
use tidegate::{ConfigError, Gate, Outcome, Priority, Threshold, Thresholds};

use crate::{CRITICAL, MS, Rig, SECOND, assert_close, assert_same, bounds};

#[test]
fn the_gate_starts_at_the_prior_and_moves_as_the_controller_says() {
    let rig = Rig::controlled(Kind::Aimd, bounds(1, 100, 3));
    assert_eq!(rig.gate.limit(), 3);
    for limit in 4..=6 {
        // Full in use, ten completions and a second.
        let all: Vec<_> = std::iter::from_fn(|| rig.gate.try_admit(CRITICAL).ok()).collect();
        rig.clock.advance(100 * MS);
        drop(all);
        rig.serve(10, 100 * MS, Outcome::Success);
        assert_eq!(rig.gate.limit(), limit);
    }
    rig.serve(11, 100 * MS, Outcome::Overload);
    assert_eq!(rig.gate.limit(), 5, "nine tenths of six");
    let causes: Vec<_> =
        rig.gate.limit_history().into_iter().map(|change| (change.cause, change.to)).collect();
    let raise = |to| (Some("raise".into()), to);
    assert_eq!(causes, [raise(4), raise(5), raise(6), (Some("lower".into()), 5)]);
    let report = rig.gate.controller().expect("there is one");
    assert_eq!((report.kind, report.cause, report.looks, report.moves), (Kind::Aimd, Cause::Lower, 4, 4));
    assert_eq!(rig.gate.controller_moves(), 4);
    assert_eq!(rig.gate.controller_moves_after(2), rig.gate.limit_history()[2..]);
    let changes: Vec<_> = rig.gate.stats().limit_changes().map(|(cause, n)| (cause.to_owned(), n)).collect();
    assert_eq!(changes, [("raise".to_owned(), 3), ("lower".to_owned(), 1)]);
}

#[test]
fn who_is_turned_away_looks_too() {
    let rig = Rig::controlled(Kind::Aimd, bounds(1, 100, 2));
    let hung = [(); 2].map(|()| rig.gate.try_admit(CRITICAL).expect("fits"));
    rig.clock.advance(SECOND - 1);
    assert!(rig.gate.try_admit(CRITICAL).is_err());
    assert_eq!(rig.looks(), 0);
    rig.clock.advance(1);
    assert!(rig.gate.try_admit(CRITICAL).is_err());
    assert_eq!(rig.looks(), 1);
    let window = rig.gate.controller().expect("there is one").window;
    assert_eq!((window.elapsed_ns, window.completions, window.refusals), (SECOND, 0, 2));
    assert_eq!((window.admissions, window.highest_in_flight), (2, 2));
    assert_close(window.in_flight_seconds, 2.0, 1e-6);
    // Who was inside when a window began is part of its highest.
    drop(hung);
    rig.clock.advance(SECOND);
    drop(rig.gate.try_admit(CRITICAL).expect("fits"));
    let report = rig.gate.controller().expect("there is one");
    assert_eq!((report.looks, report.window.highest_in_flight, report.window.completions), (2, 2, 2));
}

#[test]
fn windows_follow_each_other_without_a_gap() {
    let rig = Rig::controlled(Kind::Vegas, bounds(1, 100, 10));
    let (before, mut sum) = (rig.reading(), Window::default());
    for i in 0..5_000 {
        rig.serve(1, (1 + i % 7) * MS, if i % 11 == 0 { Outcome::Overload } else { Outcome::Success });
        let report = rig.gate.controller().expect("there is one");
        if report.looks > 0
            && report.window.elapsed_ns > 0
            && rig.reading().now_ns() + SECOND == report.next_look_ns
        {
            sum.append(&report.window);
        }
    }
    assert!(rig.looks() > 15);
    while rig.reading().now_ns() + SECOND != rig.gate.controller().expect("there is one").next_look_ns {
        rig.serve(1, MS, Outcome::Success);
    }
    sum.append(&rig.gate.controller().expect("there is one").window);
    assert_same(&rig.reading().window_since(&before), &sum);
}

#[test]
fn thresholds_follow_the_limit() {
    let rig = Rig::controlled(Kind::Aimd, bounds(1, 100, 20));
    assert_eq!(rig.gate.thresholds(), [20, 20, 18, 15]);
    rig.serve(11, 100 * MS, Outcome::Overload);
    assert_eq!(rig.gate.thresholds(), [18, 18, 17, 14]);
}

/// As in a file. At the least limit nobody would be let in any more, and nobody answered.
#[test]
fn a_controllers_least_limit_leaves_room_for_those_who_come() {
    let reserve = |weight| Thresholds::default().with(Priority::Critical, Threshold::Reserve(weight));
    let built = |kind, weight| {
        Gate::builder("db", 0).controller(kind, bounds(5, 100, 20)).thresholds(reserve(weight)).build()
    };
    let no_room = ConfigError::NoRoom { min: 5, priority: Priority::Critical };
    assert_eq!(built(Kind::Goodput, 5).err(), Some(no_room.clone()));
    assert!(built(Kind::Fixed, 5).is_ok(), "it never comes there");
    assert!(built(Kind::Goodput, 100).is_ok(), "at no limit is any of them let in");
    let gate = built(Kind::Goodput, 4).expect("one is left");
    assert_eq!(gate.set_thresholds(reserve(5)), Err(no_room));
    assert_eq!(gate.thresholds(), [20, 16, 16, 15], "nothing was changed");
    assert!(gate.set_thresholds(reserve(3)).is_ok());
}

#[test]
fn a_limit_set_by_hand_is_where_the_controller_starts_anew() {
    let rig = Rig::controlled(Kind::Goodput, bounds(2, 100, 20));
    let change = rig.gate.set_limit(50, Some("deploy")).expect("within the bounds");
    assert_eq!((change.from, change.to), (20, 50));
    assert_eq!(rig.gate.controller().expect("there is one").bounds.prior(), 50);
    for wrong in [0, 1, 101] {
        let error = rig.gate.set_limit(wrong, None).expect_err("outside the bounds");
        assert_eq!(error, ConfigError::LimitBounds { got: wrong, min: 2, max: 100 });
        assert_eq!(
            error.to_string(),
            format!("limit must be from min (2) to max (100) of the gate's controller, got {wrong}")
        );
    }
    assert_eq!(rig.gate.limit(), 50);
    assert_eq!(rig.gate.limit_history().len(), 1);
}

#[test]
fn one_objective_for_the_gate_and_its_controller() {
    let second = Duration::from_secs(1);
    let with = bounds(1, 9, 5).objective(second).expect("valid");
    let built = |objective: Option<Duration>, bounds| {
        Gate::builder("db", 1).objective(objective).controller(Kind::Goodput, bounds).build()
    };
    assert_eq!(built(None, with).expect("valid").objective(), Some(second));
    let gate = built(Some(second), bounds(1, 9, 5)).expect("valid");
    assert_eq!(gate.controller().expect("there is one").objective, Some(second));
    assert!(built(Some(second), with).is_ok());
    assert_eq!(
        built(Some(second * 2), with).expect_err("two").to_string(),
        "a gate has one objective: it has 2s, and its controller's bounds have 1s"
    );
    let none = Gate::builder("db", 1).objective(Duration::ZERO).build().expect_err("no time");
    assert_eq!(none.to_string(), "objective must be longer than zero");
}

#[test]
fn a_plain_gate_has_none_of_it() {
    let rig = Rig::new(|builder| builder);
    assert!(rig.gate.controller().is_none());
    assert!(!rig.gate.is_measured());
    assert!(rig.gate.reading().is_none());
    assert!(Choice::default().bounds(Some(4)).is_ok());
}
