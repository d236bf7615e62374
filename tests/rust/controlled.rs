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
    let rate = tidegate::Rate::new(10_u64, tidegate::Per::Second).expect("valid");
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
    let mut inside = std::collections::VecDeque::new();
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
                permit.release(if i % 40 == 3 { Outcome::Overload } else { Outcome::Success });
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

// --- the faults of the field, at the gate itself ------------------------------------------------------

/// Requests that come evenly, and stay for as long as `fate` says of what is in flight.
struct World {
    rig: Rig,
    inside: std::collections::BinaryHeap<std::cmp::Reverse<(u64, u64)>>,
    tickets: Vec<(tidegate::Ticket, Outcome)>,
    now_ns: u64,
    completions: u64,
    lowest: u32,
    highest: u32,
}

impl World {
    fn new(kind: Kind, bounds: Bounds) -> Self {
        let bounds = bounds.objective(Duration::from_secs(2)).expect("valid");
        let rig = Rig::controlled(kind, bounds);
        let limit = rig.gate.limit();
        let inside = std::collections::BinaryHeap::new();
        Self { rig, inside, tickets: Vec::new(), now_ns: 0, completions: 0, lowest: limit, highest: limit }
    }

    fn limit(&self) -> u32 {
        self.rig.gate.limit()
    }

    fn centre(&self) -> f64 {
        match self.rig.gate.controller().expect("there is one").state {
            tidegate::controller::AnyController::Goodput(goodput) => goodput.centre(),
            _ => f64::from(self.limit()),
        }
    }

    fn note(&mut self) {
        self.lowest = self.lowest.min(self.limit());
        self.highest = self.highest.max(self.limit());
    }

    fn leave_until(&mut self, end_ns: u64) {
        while let Some(&std::cmp::Reverse((at_ns, id))) = self.inside.peek() {
            if at_ns > end_ns {
                return;
            }
            self.inside.pop();
            self.rig.clock.set(at_ns);
            let (ticket, outcome) = self.tickets[usize::try_from(id).expect("small")];
            self.rig.gate.put(ticket, outcome);
            self.completions += 1;
            self.note();
        }
    }

    /// For `seconds`, or until `done`.
    fn run_until(
        &mut self,
        seconds: u64,
        per_s: u64,
        fate: impl Fn(f64) -> (u64, Outcome),
        done: impl Fn(&Self) -> bool,
    ) {
        (self.lowest, self.highest) = (self.limit(), self.limit());
        let end_ns = self.now_ns + seconds * SECOND;
        while self.now_ns < end_ns && !done(self) {
            self.now_ns += SECOND / per_s;
            self.leave_until(self.now_ns);
            self.rig.clock.set(self.now_ns);
            if let Ok(ticket) = self.rig.gate.take(CRITICAL) {
                let (latency_ns, outcome) = fate(f64::from(self.rig.gate.in_flight()));
                self.inside.push(std::cmp::Reverse((self.now_ns + latency_ns, self.tickets.len() as u64)));
                self.tickets.push((ticket, outcome));
            }
            self.note();
        }
    }

    fn run(&mut self, seconds: u64, per_s: u64, fate: impl Fn(f64) -> (u64, Outcome)) {
        self.run_until(seconds, per_s, fate, |_| false);
    }

    fn silence(&mut self, seconds: u64) {
        self.now_ns += seconds * SECOND;
        self.leave_until(self.now_ns);
    }
}

/// A database that is best at 30 in flight: 10 ms alone (universal scalability law).
fn healthy(in_flight: f64) -> (u64, Outcome) {
    let ms = 10.0 * (1.0 + 0.02 * (in_flight - 1.0) + in_flight * (in_flight - 1.0) / 900.0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // milliseconds
    let ns = (ms * 1e6) as u64;
    (ns, Outcome::Success)
}

fn timeout(_: f64) -> (u64, Outcome) {
    (5 * SECOND, Outcome::Overload)
}

fn refused(_: f64) -> (u64, Outcome) {
    (MS, Outcome::Overload)
}

fn after(ms: u64) -> impl Fn(f64) -> (u64, Outcome) {
    move |_| (ms * MS, Outcome::Success)
}

/// What the documentation says: back within so many completions.
const BACK_WITHIN: u64 = 1_500;

#[test]
fn d18_the_quickest_work_leaves_a_limit_of_one_at_least() {
    for kind in Kind::ALL {
        for start in [1, 20] {
            let mut world = World::new(kind, bounds(1, 1_000, start));
            world.run(60, 10_000, |_| (25_000, Outcome::Success));
            assert!(world.lowest >= start, "{kind:?} from {start} went to {}", world.lowest);
            assert!(world.completions >= 599_990);
        }
    }
}

#[test]
fn d18_from_the_least_limit_after_a_silence_it_is_soon_back() {
    let mut world = World::new(Kind::Goodput, bounds(1, 1_000, 30));
    world.run(60, 4_000, healthy);
    let before = world.centre();
    assert!((20.0..40.0).contains(&before), "{before}");
    world.run(120, 4_000, refused);
    assert_eq!(world.limit(), 1, "driven to the least");
    world.silence(60);
    let from = world.completions;
    world.run_until(60, 4_000, healthy, |world| world.centre() >= 0.9 * before);
    assert!(world.centre() >= 0.9 * before, "{} of {before}", world.centre());
    assert!(world.completions - from < BACK_WITHIN, "{}", world.completions - from);
}

#[test]
fn d18_at_the_greatest_limit_without_congestion_it_stays() {
    for kind in Kind::ALL {
        let mut world = World::new(kind, bounds(1, 50, 50));
        world.run(10, 1_000, after(20));
        assert_eq!((world.lowest, world.highest), (50, 50), "{kind:?}");
    }
}

#[test]
fn d19_an_outage_of_constant_timeouts_never_raises_and_at_least_halves() {
    let mut world = World::new(Kind::Goodput, bounds(1, 1_000, 40));
    world.run(60, 4_000, healthy);
    let (onset, before) = (world.limit(), world.centre());
    let highest_arm = (before * 1.11).ceil() as u32; // the experiment that is under way
    world.run(600, 4_000, timeout);
    assert!(world.highest <= onset.max(highest_arm), "{} from {onset}", world.highest);
    assert!(world.limit() * 2 <= onset, "{} from {onset}", world.limit());
    assert!(world.limit() >= 1);
    let from = world.completions;
    world.run_until(600, 4_000, healthy, |world| world.centre() >= 0.9 * before);
    assert!(world.centre() >= 0.9 * before, "{} of {before}", world.centre());
    assert!(world.completions - from < BACK_WITHIN, "{}", world.completions - from);
}

/// Every permit hangs and nothing comes back: refusals alone make the looks, and nothing raises the limit.
#[test]
fn d19_when_all_hang_the_limit_does_not_rise() {
    let mut world = World::new(Kind::Goodput, bounds(1, 1_000, 40));
    world.run(60, 4_000, healthy);
    let highest = (world.centre() * 1.11).ceil() as u32;
    let looks = world.rig.looks();
    world.run(600, 4_000, |_| (3_600 * SECOND, Outcome::Overload));
    assert!(world.rig.looks() > looks);
    assert!(world.highest <= highest, "{} of {highest}", world.highest);
}

#[test]
fn d20_too_little_decides_nothing() {
    // One quick health check a second, then work of another kind.
    let mut world = World::new(Kind::Goodput, bounds(1, 1_000, 20));
    world.run(60, 1, |_| (100_000, Outcome::Success));
    world.run(30, 100, after(50));
    assert_eq!((world.lowest, world.highest), (20, 20));
    // A steady quarter more.
    world.run(60, 500, after(20));
    world.run(60, 500, after(25));
    assert_eq!(world.limit(), 20, "not full, and so left alone");
    // One hung among a thousand.
    let before = world.centre();
    world.run(1, 1, after(10_000));
    world.run(2, 500, after(25));
    assert!((world.centre() / before - 1.0).abs() <= 0.05, "{}", world.centre());
    // Of no length.
    world.run(5, 1_000, |_| (0, Outcome::Success));
    assert!((1..=1_000).contains(&world.limit()));
}

/// Full of what is important, the limit binds; a flood of what is not stays below it.
#[test]
fn a_flood_of_low_priority_meets_its_threshold_and_not_the_limit() {
    let rig = Rig::controlled(Kind::Goodput, bounds(1, 1_000, 40));
    let mut inside = std::collections::VecDeque::new();
    for _ in 0..20_000 {
        rig.clock.advance(MS / 4);
        while inside.front().is_some_and(|(at, _)| *at <= rig.gate.now_ns()) {
            inside.pop_front();
        }
        if let Ok(permit) = rig.gate.try_admit(Priority::Sheddable) {
            inside.push_back((rig.gate.now_ns() + 20 * MS, permit));
        }
    }
    assert_eq!(rig.gate.in_flight(), 30);
    let window = rig.gate.controller().expect("there is one").window;
    assert_eq!(window.refusals, 0);
    assert!(window.priority_refusals > window.admissions);
}
