//! What limits that move have got wrong elsewhere, and what no sequence of windows may bring about.
//!
//! The tests run a controller against a small world: so many requests a second, and what becomes of them at a
//! given number in flight. Numbers flow, they are not drawn: every run is the same.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // numbers of a test are small

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::window::{float, nanoseconds, seconds};
use super::{AnyController, Bounds, Cause, Controller, Goodput, Kind, Window};

/// What becomes of a request where so many are in flight.
#[derive(Clone, Copy, Debug)]
struct Fate {
    latency: f64,
    good: bool,
    overload: bool,
}

/// A gate whose limit `controller` moves, in a world of its own.
struct Run<C> {
    controller: C,
    limit: u32,
    look_after_ns: u64,
    now: f64,
    /// The part of a completion that is under way.
    rest: f64,
    looks: u32,
    completions: u64,
    highest: u32,
    lowest: u32,
    /// How often most was lost.
    lost: u32,
}

impl<C: Controller> Run<C> {
    fn new(controller: C) -> Self {
        let first = controller.begin();
        Self {
            controller,
            limit: first.limit,
            look_after_ns: first.look_after_ns,
            now: 0.0,
            rest: 0.0,
            looks: 0,
            completions: 0,
            highest: first.limit,
            lowest: first.limit,
            lost: 0,
        }
    }

    /// One look later. Requests come at `rate` a second.
    fn look(&mut self, rate: f64, fate: impl Fn(f64) -> Fate) {
        let elapsed = seconds(self.look_after_ns);
        // As many are in flight as come within a latency, at most the limit.
        let limit = f64::from(self.limit);
        let fits = rate * fate(limit).latency <= limit;
        let in_flight = if fits { rate * fate(1.0).latency } else { limit };
        let fate = fate(in_flight);
        let done = in_flight / fate.latency * elapsed + self.rest;
        self.rest = done.fract();
        let mut window = Window { in_flight_seconds: in_flight * elapsed, ..Window::default() };
        complete(&mut window, done as u64, fate);
        window.highest_in_flight = in_flight.ceil() as u32;
        window.admissions = window.completions;
        window.refusals = (rate * elapsed - done).max(0.0) as u64;
        window.elapsed_ns = self.look_after_ns;
        self.take(&window);
    }

    fn take(&mut self, window: &Window) {
        let decision = self.controller.look(window);
        self.limit = decision.limit;
        self.look_after_ns = decision.look_after_ns;
        self.now += window.elapsed();
        self.looks += 1;
        self.lost += u32::from(decision.cause == Cause::Lost);
        self.completions = self.completions.saturating_add(window.completions);
        self.highest = self.highest.max(self.limit);
        self.lowest = self.lowest.min(self.limit);
    }

    fn until(&mut self, end: f64, rate: f64, fate: impl Fn(f64) -> Fate + Copy) {
        self.highest = self.limit;
        self.lowest = self.limit;
        while self.now < end {
            self.look(rate, fate);
        }
    }
}

/// So many that fare alike.
fn complete(window: &mut Window, count: u64, fate: Fate) {
    let mut one = Window::default();
    one.complete(nanoseconds(fate.latency), fate.good, fate.overload);
    let times = float(count);
    window.append(&Window {
        completions: count,
        good: one.good * count,
        overload: one.overload * count,
        latency_sum: one.latency_sum * times,
        latency_square_sum: one.latency_square_sum * times,
        latency_log_sum: one.latency_log_sum * times,
        latency_log_square_sum: one.latency_log_square_sum * times,
        ..Window::default()
    });
}

fn bounds(min: u32, max: u32, prior: u32) -> Bounds {
    Bounds::new(min, max, prior)
        .and_then(|bounds| bounds.objective(Duration::from_secs(2)))
        .expect("valid bounds")
}

fn good(latency: f64) -> Fate {
    Fate { latency, good: latency <= 2.0, overload: false }
}

/// A database that is best at 30 in flight: 10 ms alone, the universal scalability law.
fn healthy(in_flight: f64) -> Fate {
    good(0.01 * (1.0 + 0.02 * (in_flight - 1.0) + in_flight * (in_flight - 1.0) / 900.0))
}

fn timeouts(_: f64) -> Fate {
    Fate { latency: 5.0, good: false, overload: true }
}

fn refused(_: f64) -> Fate {
    Fate { latency: 0.001, good: false, overload: true }
}

// --- a limit below one, and no way back ----------------------------------------------------------

#[test]
fn work_so_quick_that_less_than_one_is_in_flight_leaves_a_limit_of_one_at_least() {
    for kind in Kind::ALL {
        for start in [1, 2, 20, 1_000] {
            let mut run = Run::new(kind.start(bounds(1, 1_000, start)));
            run.until(60.0, 10_000.0, |_| good(25e-6));
            assert!(run.lowest >= 1, "{kind:?} from {start}");
            assert!(run.lowest >= start, "{kind:?} from {start} went to {}", run.lowest);
        }
    }
}

/// What the documentation says: back within so many completions.
const BACK_WITHIN: u64 = 1_500;

#[test]
fn from_the_least_limit_after_a_silence_it_is_soon_back() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 30)));
    run.until(60.0, 20_000.0, healthy);
    let before = run.controller.centre();
    assert!((25.0..35.0).contains(&before), "{before}");
    run.until(120.0, 20_000.0, refused);
    assert_eq!(run.limit, 1, "driven to the least");
    // Nobody comes for a minute; then the first one looks.
    run.take(&Window { elapsed_ns: 60_000_000_000, ..Window::default() });
    assert_eq!(run.limit, 1);
    let (from, mut peak) = (run.completions, 0.0_f64);
    while peak < 0.9 * before {
        run.look(20_000.0, healthy);
        peak = peak.max(run.controller.centre());
        assert!(run.completions - from < BACK_WITHIN, "at {peak} of {before}");
    }
    run.until(run.now + 60.0, 20_000.0, healthy);
    assert!((0.8 * before..1.25 * before).contains(&run.controller.centre()), "and stays");
}

#[test]
fn at_the_greatest_limit_and_not_congested_it_stays_there() {
    for kind in Kind::ALL {
        let mut run = Run::new(kind.start(bounds(1, 50, 50)));
        run.until(10.0, 1_000.0, |_| good(0.02));
        assert!(run.completions >= 9_990, "{kind:?}");
        assert_eq!((run.lowest, run.highest), (50, 50), "{kind:?}");
    }
}

#[test]
fn full_at_the_greatest_limit_the_centre_stays_there_and_experiments_reach_a_tenth_down() {
    let mut run = Run::new(Goodput::new(bounds(1, 50, 50)));
    run.until(60.0, 10_000.0, |_| good(0.02));
    assert!((run.controller.centre() - 50.0).abs() < 1e-9);
    run.until(120.0, 10_000.0, |_| good(0.02));
    assert!((run.controller.centre() - 50.0).abs() < 1e-9);
    assert_eq!((run.lowest, run.highest), (46, 50));
}

#[test]
fn from_far_below_and_above_it_comes_to_the_best_and_not_past_it() {
    for start in [1, 5, 90, 300] {
        let mut run = Run::new(Goodput::new(bounds(1, 1_000, start)));
        let mut centres = Vec::new();
        while run.now < 60.0 {
            run.look(20_000.0, healthy);
            centres.push(run.controller.centre());
        }
        assert!((24.0..36.0).contains(&run.controller.centre()), "from {start}: {}", run.controller.centre());
        let furthest = centres.iter().copied().fold(0.0, if start < 30 { f64::max } else { |a, b| a - b });
        assert!(start > 30 || furthest < 45.0, "from {start} to {furthest}");
        assert!(start < 30 || centres.iter().all(|centre| *centre > 18.0), "from {start}: {centres:?}");
    }
}

#[test]
fn a_limit_that_stops_to_bind_stays() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 30)));
    run.until(30.0, 20_000.0, healthy);
    // The experiment that is under way ends, and its last window is half of the old traffic; none follows.
    run.until(33.0, 100.0, healthy);
    let centre = run.controller.centre();
    run.until(300.0, 100.0, healthy);
    assert!((run.controller.centre() - centre).abs() < 1e-12);
    assert_eq!((f64::from(run.lowest), f64::from(run.highest)), (centre.round(), centre.round()));
}

#[test]
fn an_outage_leaves_enough_out_there_to_notice_its_end() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
    run.until(60.0, 20_000.0, healthy);
    let onset = run.limit;
    run.until(660.0, 20_000.0, timeouts);
    assert!((2..onset).contains(&run.limit), "{} of {onset}", run.limit);
}

#[test]
fn a_second_outage_does_not_live_on_the_answers_after_the_first() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
    for round in 1..=2 {
        run.until(60.0 * f64::from(round) - 30.0, 20_000.0, healthy);
        let onset = run.limit;
        let from = run.looks;
        while run.limit * 3 > onset * 2 {
            run.look(20_000.0, timeouts);
            assert!(run.looks - from < 1_000, "round {round}: nothing is lost");
        }
        let down = run.limit;
        for _ in 0..2 {
            run.take(&Window { elapsed_ns: run.look_after_ns, ..Window::default() });
            assert_eq!(run.limit, down, "round {round}: nothing came, so nothing is known");
        }
        run.until(60.0 * f64::from(round), 20_000.0, timeouts);
    }
}

#[test]
fn good_answers_between_failures_are_no_recovery() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
    run.until(60.0, 20_000.0, healthy);
    run.until(90.0, 20_000.0, refused);
    let down = run.limit;
    for i in 0..200 {
        let one = Fate { good: i % 2 == 0, overload: i % 2 == 1, ..refused(1.0) };
        let mut window =
            Window { elapsed_ns: run.look_after_ns, in_flight_seconds: 0.001, ..Window::default() };
        complete(&mut window, 1, Fate { good: one.good && i % 4 == 0, overload: i % 4 != 0, ..one });
        run.take(&window);
        assert!(run.limit <= down, "{} after {i}", run.limit);
    }
}

// --- down, and no further than is called for --------------------------------------------------------

#[test]
fn where_less_fits_into_the_objective_it_begins_below_and_nothing_is_lost() {
    // At 400 an answer takes 1.9 s of the 2 that are good; at a tenth more, more than that.
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 400)));
    run.until(60.0, 20_000.0, healthy);
    assert_eq!((run.lost, run.highest), (0, 400));
}

#[test]
fn a_gate_that_is_filling_up_says_nothing_of_what_fits() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 30)));
    let mut first = Window { elapsed_ns: 60_000_000_000, in_flight_seconds: 60.0, ..Window::default() };
    complete(&mut first, 100, good(0.03));
    (first.admissions, first.refusals) = (100, 100);
    run.take(&first);
    run.until(70.0, 20_000.0, healthy);
    assert!(run.lowest > 20, "{}", run.lowest);
}

#[test]
fn from_far_above_it_goes_down_in_strides_of_a_quarter() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 300)));
    let mut strides = 0;
    while run.now < 60.0 {
        let before = run.limit;
        run.look(20_000.0, healthy);
        let least = (0.75 * f64::from(before)).ceil() as u32;
        assert!(run.limit >= least, "from {before} to {}", run.limit);
        strides += u32::from(run.limit == least);
    }
    assert_eq!(run.lost, 0);
    assert!(strides > 2, "{strides}");
}

/// More than 42 at once, and all are turned away.
fn edge(in_flight: f64) -> Fate {
    if in_flight <= 42.0 { good(0.03) } else { Fate { overload: true, good: false, ..good(0.03) } }
}

#[test]
fn an_experiment_over_an_edge_is_no_outage_that_halves_the_limit() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
    run.until(60.0, 20_000.0, edge);
    assert!(run.lost > 0 && run.lowest > 20, "{} times, down to {}", run.lost, run.lowest);
}

#[test]
fn the_first_cut_is_deeper_where_hardly_anything_is_good() {
    let cut_at = |good_share: u64| {
        let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
        run.until(60.0, 20_000.0, healthy);
        let before = run.controller.centre();
        // Everything takes three times as long: for whatever limit, that is more than an edge.
        let latency = 3.0 * healthy(before).latency;
        while run.lost == 0 {
            let elapsed_ns = nanoseconds(1_000.0 * latency / f64::from(run.limit));
            let mut window = Window { elapsed_ns, in_flight_seconds: 1_000.0 * latency, ..Window::default() };
            complete(&mut window, 10 * good_share, good(latency));
            complete(&mut window, 1_000 - 10 * good_share, Fate { good: false, ..good(latency) });
            (window.admissions, window.refusals) = (1_000, 1_000);
            run.take(&window);
            assert!(run.now < 120.0, "{good_share} % good is lost");
        }
        run.controller.centre() / before
    };
    assert!((cut_at(10) - 0.5).abs() < 0.01, "{}", cut_at(10));
    assert!((cut_at(40) - 0.7).abs() < 0.01, "{}", cut_at(40));
}

/// Those who are refused would be at any limit: requests that weigh more than it, say.
#[test]
fn a_limit_that_in_flight_does_not_follow_stays() {
    let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
    while run.looks < 2_000 {
        let elapsed_ns = run.look_after_ns.max(1_000_000);
        let mut window =
            Window { elapsed_ns, in_flight_seconds: 10.0 * seconds(elapsed_ns), ..Window::default() };
        complete(&mut window, elapsed_ns / 2_000_000, good(0.02));
        (window.admissions, window.refusals) = (window.completions, window.completions);
        run.take(&window);
        assert!((run.controller.centre() - 40.0).abs() < 1e-9, "{}", run.controller.centre());
    }
    assert!(run.lowest < 40, "it has tried");
}

// --- an outage that looks stable -----------------------------------------------------------------

#[test]
fn an_outage_of_constant_timeouts_never_raises_and_at_least_halves() {
    // Told as overload, or only late by the objective.
    for overload in [true, false] {
        let fate = |_: f64| Fate { overload, ..timeouts(0.0) };
        let mut run = Run::new(Goodput::new(bounds(1, 1_000, 40)));
        run.until(60.0, 20_000.0, healthy);
        let onset = run.limit;
        let mut last = onset;
        let end = run.now + 600.0;
        while run.now < end {
            run.look(20_000.0, fate);
            // The experiment that was under way may come to its next arm.
            assert!(run.limit <= onset.max(last), "{} after {last}", run.limit);
            last = run.limit;
        }
        assert!(run.limit * 2 <= onset, "{} of {onset}", run.limit);
        let from = run.completions;
        while run.controller.centre() < 0.9 * f64::from(onset) {
            run.look(20_000.0, healthy);
            assert!(run.completions - from < BACK_WITHIN, "at {} of {onset}", run.controller.centre());
        }
    }
}

#[test]
fn the_published_ones_in_such_an_outage() {
    let end = |kind: Kind, overload: bool| {
        let mut run = Run::new(kind.start(bounds(1, 200, 40)));
        run.until(60.0, 20_000.0, |_| good(0.01));
        run.until(660.0, 20_000.0, |_| Fate { latency: 0.5, good: false, overload });
        run.limit
    };
    // Told as overload, these come down until a second has fewer than ten samples, which their window leaves out.
    assert!((4..=5).contains(&end(Kind::Aimd, true)));
    assert!((4..=5).contains(&end(Kind::Vegas, true)));
    // Known: it does not look at drops, and its long average drifts up to the timeout.
    assert!(end(Kind::Gradient2, true) > 150);
    assert_eq!(end(Kind::Gradient2, true), end(Kind::Gradient2, false));
}

// --- too little data ---------------------------------------------------------------------------------

fn lone(latency_ns: u64) -> Window {
    let mut window =
        Window { elapsed_ns: 1_000_000_000, admissions: 1, highest_in_flight: 1, ..Window::default() };
    window.complete(latency_ns, true, false);
    window.in_flight_seconds = seconds(latency_ns);
    window
}

#[test]
fn lone_health_checks_decide_nothing() {
    for kind in Kind::ALL {
        let mut run = Run::new(kind.start(bounds(1, 200, 20)));
        for _ in 0..100 {
            run.take(&lone(100_000));
            assert_eq!(run.limit, 20, "{kind:?}");
        }
        // 50 ms whatever the limit, and less than it: nothing says that 20 is too many.
        run.until(run.now + 60.0, 300.0, |_| good(0.05));
        assert!(run.lowest >= 20, "{kind:?} went to {}", run.lowest);
    }
}

#[test]
fn windows_without_traffic_decide_nothing() {
    for kind in Kind::ALL {
        let mut run = Run::new(kind.start(bounds(1, 200, 20)));
        for _ in 0..1_000 {
            let look_after_ns = run.look_after_ns;
            run.take(&Window { elapsed_ns: look_after_ns, ..Window::default() });
            assert_eq!(run.limit, 20, "{kind:?}");
        }
    }
}

#[test]
fn a_quarter_more_latency_is_within_the_published_tolerance() {
    let mut run = Run::new(Kind::Gradient2.start(bounds(1, 40, 40)));
    run.until(60.0, 10_000.0, |_| good(0.02));
    run.until(120.0, 10_000.0, |_| good(0.025));
    assert_eq!(run.lowest, 40);
}

#[test]
fn one_outlier_in_a_thousand_moves_hardly_anything() {
    for kind in Kind::ALL {
        for at in 0..40 {
            let mut calm = Run::new(kind.start(bounds(1, 200, 40)));
            calm.until(20.0, 20_000.0, healthy);
            for _ in 0..at {
                calm.look(20_000.0, healthy);
            }
            // The same window, with one request of ten seconds in it or not.
            let mut window = Window { elapsed_ns: calm.look_after_ns, ..Window::default() };
            window.in_flight_seconds = f64::from(calm.limit) * window.elapsed();
            window.highest_in_flight = calm.limit;
            window.admissions = 1_000;
            window.refusals = 1_000;
            let fate = healthy(f64::from(calm.limit));
            complete(&mut window, 999, fate);
            let before = centre(&calm.controller);
            let mut odd = Run { controller: calm.controller, ..calm };
            let mut with = window;
            complete(&mut window, 1, fate);
            with.complete(10_000_000_000, false, false);
            calm.take(&window);
            odd.take(&with);
            assert!(centre(&odd.controller) >= 0.95 * before, "{kind:?}, look {at}");
            if kind != Kind::Goodput {
                continue;
            }
            for _ in 0..12 {
                calm.look(20_000.0, healthy);
                odd.look(20_000.0, healthy);
            }
            let (calm, odd) = (centre(&calm.controller), centre(&odd.controller));
            assert!((odd / calm - 1.0).abs() <= 0.05, "look {at}: {odd} against {calm}");
        }
    }
}

fn centre(controller: &AnyController) -> f64 {
    match controller {
        AnyController::Goodput(goodput) => goodput.centre(),
        other => f64::from(other.begin().limit),
    }
}

#[test]
fn samples_of_no_length_leave_it_finite_and_within_bounds() {
    for kind in Kind::ALL {
        let mut run = Run::new(kind.start(bounds(3, 200, 20)));
        for _ in 0..200 {
            let mut window =
                Window { admissions: 100, refusals: 100, highest_in_flight: 20, ..Window::default() };
            for _ in 0..100 {
                window.complete(0, true, false);
            }
            run.take(&window);
            assert!((3..=200).contains(&run.limit), "{kind:?}: {}", run.limit);
        }
    }
}

// --- absurd windows ---------------------------------------------------------------------------------

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..10.0, 0.0..1e12, Just(1e300), Just(f64::MAX), Just(f64::INFINITY), Just(-1.0)]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..100_u64, 0..1_000_000_u64, Just(u64::MAX)]
}

prop_compose! {
    fn any_window()(
        counts in prop::array::uniform8(count()),
        numbers in prop::array::uniform5(number()),
        highest_in_flight in any::<u32>(),
    ) -> Window {
        Window {
            elapsed_ns: counts[0],
            completions: counts[1],
            good: counts[2],
            overload: counts[3],
            latency_sum: numbers[0],
            latency_square_sum: numbers[1],
            latency_log_sum: numbers[2],
            latency_log_square_sum: numbers[3],
            in_flight_seconds: numbers[4],
            highest_in_flight,
            admissions: counts[4],
            refusals: counts[5],
            priority_refusals: counts[6],
            extra_weight: counts[7],
        }
    }
}

/// A window that could be, so that a run gets further than the first.
fn plain_window() -> impl Strategy<Value = Window> {
    (1..200_u64, 1_000..5_000_000_000_u64, 0..=100_u64, 0..3_u64, 1..60_u32).prop_map(
        |(completions, latency_ns, good, refused, in_flight)| {
            let mut window = Window::default();
            for i in 0..completions {
                let good = i * 100 < good * completions;
                window.complete(latency_ns + i, good, !good);
            }
            window.elapsed_ns = latency_ns * completions / u64::from(in_flight) + 1;
            window.in_flight_seconds = f64::from(in_flight) * window.elapsed();
            window.highest_in_flight = in_flight;
            window.admissions = completions;
            window.refusals = refused * completions;
            window
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20),
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_sequence_of_windows_leads_out_of_the_bounds(
        (min, spread, start) in (1..50_u32, 0..1_000_u32, 0.0..=1.0),
        windows in prop::collection::vec(prop_oneof![3 => plain_window(), 1 => any_window()], 1..120),
        has_objective in any::<bool>(),
    ) {
        let prior = min + (f64::from(spread) * start) as u32;
        let mut bounds = Bounds::new(min, min + spread, prior).expect("valid");
        if has_objective {
            bounds = bounds.objective(Duration::from_millis(700)).expect("valid");
        }
        for kind in Kind::ALL {
            let mut controller = kind.start(bounds);
            let mut again = controller;
            for window in &windows {
                let decision = controller.look(window);
                prop_assert!((min..=min + spread).contains(&decision.limit), "{kind:?} {decision:?}");
                prop_assert!(decision.look_after_ns > 0);
                prop_assert!(decision.look_after_ns <= 3_600_000_000_000, "{kind:?} {decision:?}");
                prop_assert_eq!(decision, again.look(window), "equal windows, equal limits");
                prop_assert_eq!(decision.limit, controller.begin().limit);
                if let AnyController::Goodput(goodput) = controller {
                    let (slope, error) = goodput.slope();
                    prop_assert!(goodput.centre().is_finite() && slope.is_finite() && error.is_finite());
                }
            }
        }
    }

    /// Whatever it was, outages, hung requests and silences: after it, the best limit is found again.
    #[test]
    fn goodput_recovers_from_any_past(
        windows in prop::collection::vec(plain_window(), 1..60),
        hung in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut run = Run::new(Goodput::new(bounds(1, 1_000, 30)));
        for (window, hung) in windows.iter().zip(hung) {
            let mut window = *window;
            if hung {
                window.complete(3_600_000_000_000, false, true);
            }
            run.take(&window);
        }
        // A window that is under way wants the time that such latencies ask for; then it is quick.
        run.now = 0.0;
        run.until(2_000.0, 2_000.0, |in_flight| good(10.0 * healthy(in_flight).latency));
        let centre = run.controller.centre();
        prop_assert!((22.0..40.0).contains(&centre), "{} {:?}", centre, run.controller);
    }
}
