//! A gate whose limit a controller moves: what it measures, when somebody looks, and what stands of it.

use std::sync::Arc;
use std::time::Duration;

use tidegate::controller::{Bounds, Cause, Choice, Kind, Window};
use tidegate::{Ask, ConfigError, Gate, GateBuilder, ManualClock, Outcome, Priority, Reading, Weight};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const CRITICAL: Priority = Priority::Critical;

fn bounds(min: u32, max: u32, prior: u32) -> Bounds {
    Bounds::new(min, max, prior).expect("valid bounds")
}

struct Rig {
    gate: Gate,
    clock: Arc<ManualClock>,
}

impl Rig {
    fn new(build: impl FnOnce(GateBuilder) -> GateBuilder) -> Self {
        let clock = Arc::new(ManualClock::new(0));
        let builder = Gate::builder("db", 4).clock(clock.clone());
        Self { gate: build(builder).build().expect("a valid gate"), clock }
    }

    fn controlled(kind: Kind, bounds: Bounds) -> Self {
        Self::new(|builder| builder.controller(kind, bounds))
    }

    fn reading(&self) -> Reading {
        self.gate.reading().expect("nobody else is here")
    }

    /// So many one after the other, each for `ns`.
    fn serve(&self, count: u64, ns: u64, outcome: Outcome) {
        for _ in 0..count {
            let permit = self.gate.try_admit(CRITICAL).expect("there is room");
            self.clock.advance(ns);
            permit.release(outcome);
        }
    }

    fn looks(&self) -> u64 {
        self.gate.controller().expect("there is one").looks
    }
}

#[track_caller]
fn assert_close(got: f64, wanted: f64, within: f64) {
    assert!((got - wanted).abs() <= within * wanted.abs().max(1e-12), "{got} instead of {wanted}");
}

/// Everything of two windows that a controller looks at.
#[track_caller]
fn assert_same(got: &Window, wanted: &Window) {
    assert_eq!(
        (got.elapsed_ns, got.completions, got.good, got.overload, got.admissions, got.refusals),
        (
            wanted.elapsed_ns,
            wanted.completions,
            wanted.good,
            wanted.overload,
            wanted.admissions,
            wanted.refusals
        )
    );
    assert_close(got.latency_sum, wanted.latency_sum, 5e-4); // counted in 16 ns
    assert_close(got.latency_square_sum, wanted.latency_square_sum, 1e-9);
    assert_close(got.latency_log_sum, wanted.latency_log_sum, 1e-4);
    assert_close(got.latency_log_square_sum, wanted.latency_log_square_sum, 1e-4);
}

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
    rig.serve(1_000, 180 * SECOND, Outcome::Overload);
    let before = rig.reading();
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

// --- looks ---------------------------------------------------------------------------------------

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
    let _hung = [(); 2].map(|()| rig.gate.try_admit(CRITICAL).expect("fits"));
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
