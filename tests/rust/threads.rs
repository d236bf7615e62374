//! Real threads. What must hold holds by construction, for any schedule: no test waits for luck.
//!
//! `TIDEGATE_SOAK_SECONDS` makes the storms long; otherwise each runs a fixed number of rounds.

#![allow(clippy::cast_possible_truncation)] // the numbers of a test are small

mod common;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use common::{Raise, Rng};
use tidegate::controller::{Bounds, Kind};
use tidegate::{
    Ask, Clock, Gate, ManualClock, Outcome, Per, Priority, Rate, Reason, Stats, Thresholds, Weight,
};

const CRITICAL: Priority = Priority::Critical;

/// Runs `body` in `threads` threads that start together; each gets its number.
fn together(threads: u64, body: impl Fn(u64) + Sync) {
    let start = Barrier::new(usize::try_from(threads).unwrap());
    thread::scope(|scope| {
        for number in 0..threads {
            let (start, body) = (&start, &body);
            scope.spawn(move || {
                start.wait();
                body(number);
            });
        }
    });
}

/// Runs `body`, and fails instead of hanging where it does not end: for what waits.
fn in_time(body: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let running = thread::spawn(move || {
        body();
        ended.send(()).unwrap();
    });
    let patience = Duration::from_secs(60 + soak_seconds().unwrap_or(0));
    assert_ne!(end.recv_timeout(patience), Err(RecvTimeoutError::Timeout), "it hangs");
    running.join().unwrap();
}

fn soak_seconds() -> Option<u64> {
    std::env::var("TIDEGATE_SOAK_SECONDS").ok().map(|text| text.parse().unwrap())
}

/// Rounds of a storm: `short` of them, or as many as fit into the soak's seconds.
fn rounds(short: u64) -> impl Iterator<Item = u64> {
    let end = soak_seconds().map(|seconds| Instant::now() + Duration::from_secs(seconds));
    (0..).take_while(move |&round| end.map_or(round < short, |end| Instant::now() < end))
}

fn attempts(stats: &Stats) -> u64 {
    let by_priority = |priority| stats.admitted(priority) + stats.would_shed(priority);
    stats.shed_total() + Priority::ALL.map(by_priority).iter().sum::<u64>()
}

fn released(stats: &Stats) -> u64 {
    Outcome::ALL.map(|outcome| stats.released(outcome)).iter().sum()
}

fn assert_at_rest(gate: &Gate) {
    let stats = gate.stats();
    assert_eq!((stats.in_flight, stats.over_in_flight), (0, 0));
    assert_eq!(released(&stats), Priority::ALL.map(|priority| stats.admitted(priority)).iter().sum());
    let limit = gate.limit();
    let all: Vec<_> = (0..limit).map(|_| gate.try_admit(CRITICAL).expect("the gate is empty")).collect();
    assert_eq!(gate.try_admit(CRITICAL).unwrap_err().reason, Reason::Limit);
    drop(all);
}

/// Counts who is inside beside the gate, and would see one too many.
#[derive(Default)]
struct Witness {
    inside: AtomicU32,
    most: AtomicU32,
}

impl Witness {
    fn enter(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Enters, lets others run, and leaves.
    fn visit(&self) {
        self.enter();
        thread::yield_now();
        self.leave();
    }

    fn most(&self) -> u32 {
        self.most.load(Ordering::SeqCst)
    }
}

#[test]
fn d05_never_above_the_limit_with_one_class() {
    let (gate, witness) = (Gate::new("one class", 10).unwrap(), Witness::default());
    together(64, |_| {
        for _ in rounds(100_000) {
            if let Ok(permit) = gate.try_admit(CRITICAL) {
                witness.visit();
                drop(permit);
            }
        }
    });
    assert!(witness.most() <= 10, "{} inside", witness.most());
    assert_at_rest(&gate);
}

#[test]
fn d05_a_limit_of_one_is_a_lock() {
    let (gate, witness) = (Gate::new("one", 1).unwrap(), Witness::default());
    together(2, |_| {
        for _ in rounds(100_000) {
            if gate.enter(None).is_ok() {
                witness.visit();
                assert!(gate.exit(Outcome::Success));
            }
        }
    });
    assert_eq!(witness.most(), 1);
    assert_at_rest(&gate);
}

/// Three classes under one total: each class stays within its threshold, all together within the limit.
#[test]
fn d05_never_above_a_threshold_with_three_classes() {
    let gate = Gate::new("classes", 10).unwrap();
    let classes = [(CRITICAL, 10), (Priority::SheddablePlus, 9), (Priority::Sheddable, 8)];
    let (all, own) = (Witness::default(), [(); 3].map(|()| Witness::default()));
    together(32, |number| {
        let mut rng = Rng::new(number + 1);
        for _ in rounds(50_000) {
            let class = rng.below(3) as usize;
            let Ok(permit) = gate.try_admit(classes[class].0) else { continue };
            own[class].enter();
            all.visit();
            own[class].leave();
            drop(permit);
        }
    });
    assert!(all.most() <= 10);
    for ((priority, threshold), own) in classes.iter().zip(&own) {
        assert!(own.most() <= *threshold, "{} of {priority}", own.most());
    }
    assert_at_rest(&gate);
}

/// While the limit moves: once it was lowered and the surplus has left, nobody is above it. The setter
/// is the only thread that changes it, so it knows which limit is in force.
#[test]
fn d05_d03_never_above_a_limit_that_moves() {
    let gate = Gate::new("moving", 100).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..32 {
            let (gate, done) = (&gate, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(number + 1);
                while !done.load(Ordering::Relaxed) {
                    let weight = Weight::new(rng.below(9) as u32 + 1).unwrap();
                    drop(gate.try_admit(Ask::from(CRITICAL).weight(weight)));
                }
            });
        }
        let _end = Raise(&done);
        for _ in rounds(100_000) {
            gate.set_limit(1, None).unwrap();
            // Whatever is inside was admitted under the old limit, and nothing can be added to it.
            let mut bound = gate.in_flight().max(1);
            for _ in 0..5 {
                let seen = gate.in_flight();
                assert!(seen <= bound, "{seen} in flight after {bound} under a limit of 1");
                bound = seen.max(1);
            }
            gate.set_limit(100, None).unwrap();
        }
    });
    assert_at_rest(&gate);
    assert!(gate.stats().high_water <= 100);
}

/// Lowering the limit does not wait for those inside.
#[test]
fn d03_a_setter_never_waits_for_holders() {
    let gate = Gate::new("stuck", 10).unwrap();
    let stuck: Vec<_> = (0..10).map(|_| gate.try_admit(CRITICAL).unwrap()).collect();
    gate.set_limit(5, None).unwrap(); // with the holders in this very thread, waiting would be for ever
    assert_eq!((gate.limit(), gate.in_flight()), (5, 10));
    drop(stuck);
    assert_at_rest(&gate);
}

/// Every reading is possible: counters never fall, and no more has left than entered.
#[test]
fn readings_are_consistent_under_load() {
    let gate = Gate::builder("read", 4).timing(true).build().unwrap();
    let running = AtomicI64::new(6);
    thread::scope(|scope| {
        for number in 0..6 {
            let (gate, running) = (&gate, &running);
            scope.spawn(move || {
                let mut rng = Rng::new(number + 1);
                for _ in rounds(20_000) {
                    let priority = Priority::ALL[rng.below(4) as usize];
                    if let Ok(permit) = gate.try_admit(priority) {
                        permit.release(Outcome::ALL[rng.below(3) as usize]);
                    }
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut before = gate.stats();
        while running.load(Ordering::SeqCst) > 0 {
            let stats = gate.stats();
            let admitted = |stats: &Stats| Priority::ALL.map(|priority| stats.admitted(priority));
            assert!(released(&stats) <= admitted(&stats).iter().sum());
            assert!(admitted(&before).iter().zip(admitted(&stats)).all(|(before, now)| *before <= now));
            assert!(released(&before) <= released(&stats) && attempts(&before) <= attempts(&stats));
            assert!(before.high_water <= stats.high_water && stats.high_water <= 4);
            assert!(stats.in_flight <= 4);
            before = stats;
        }
    });
    assert_at_rest(&gate);
    let counted: u64 =
        Priority::ALL.map(|priority| gate.stats().latency(priority).unwrap().count()).iter().sum();
    let stats = gate.stats();
    assert_eq!(counted, stats.released(Outcome::Success) + stats.released(Outcome::Overload));
}

/// Counts are exact beyond the sixteen threads that have counters of their own, and as threads come and go.
#[test]
fn d34_every_attempt_is_counted_once_by_any_number_of_threads() {
    let gate = Gate::new("many", 3).unwrap();
    let tried = AtomicU64::new(0);
    for _ in 0..5 {
        together(40, |number| {
            let mut rng = Rng::new(number + 1);
            for _ in 0..20_000 {
                tried.fetch_add(1, Ordering::Relaxed);
                let _ = gate.try_admit(Priority::ALL[rng.below(4) as usize]);
            }
        });
    }
    assert_eq!(attempts(&gate.stats()), tried.into_inner());
    assert_at_rest(&gate);
}

/// Two threads release the same place: one of them is refused.
#[test]
fn d06_two_exits_for_one_entry() {
    let gate = Gate::new("double", 1).unwrap();
    for round in rounds(300) {
        gate.enter(None).unwrap();
        let matched = AtomicU32::new(0);
        together(2, |_| {
            matched.fetch_add(u32::from(gate.exit(Outcome::Success)), Ordering::Relaxed);
        });
        assert_eq!((matched.into_inner(), gate.in_flight()), (1, 0), "round {round}");
        assert_eq!(gate.stats().unmatched_exits, round + 1);
    }
}

/// A thread that dies inside leaves, and its work says nothing about the resource.
#[test]
fn d06_unwinding_gives_the_permit_back_once_as_ignored() {
    let gate = Gate::new("unwind", 2).unwrap();
    for owned in [false, true] {
        thread::scope(|scope| {
            let dying = scope.spawn(|| {
                let _borrowed = (!owned).then(|| gate.try_admit(CRITICAL).unwrap());
                let _owned = owned.then(|| gate.try_admit_owned(CRITICAL).unwrap());
                std::panic::resume_unwind(Box::new("the work failed")); // without the hook's message
            });
            assert!(dying.join().is_err());
        });
    }
    assert_eq!(Outcome::ALL.map(|outcome| gate.stats().released(outcome)), [0, 0, 2]);
    assert_at_rest(&gate);
}

/// Whoever drains is woken by the last to leave, permits in the word and beyond it alike.
#[test]
fn a_drain_is_woken_by_the_last_release() {
    in_time(|| {
        for round in rounds(200) {
            let gate = Gate::builder("drain", 2).enforce(round % 2 == 0).build().unwrap();
            let inside: Vec<_> = (0..4).filter_map(|_| gate.try_admit(CRITICAL).ok()).collect();
            assert!(!gate.drain(Some(Duration::ZERO)), "somebody is inside");
            thread::scope(|scope| {
                for permit in inside {
                    scope.spawn(move || drop(permit));
                }
                // Two, and without an end: were the last release not to wake both, this would hang.
                scope.spawn(|| assert!(gate.drain(None)));
                assert!(gate.drain(None));
            });
            let stats = gate.stats();
            assert_eq!(released(&stats), stats.admitted(CRITICAL), "whoever has left has been counted");
            assert_eq!(gate.try_admit(CRITICAL).unwrap_err().reason, Reason::Closed);
        }
    });
}

/// In dry run, against entries that find the gate closed when they are in already: whoever waits is woken
/// again, and nobody is inside once it has been told that nobody is.
#[test]
fn a_drain_against_entries_beyond_the_limit() {
    in_time(|| {
        for _ in rounds(2_000) {
            let gate = Gate::builder("drain", 0).enforce(false).build().unwrap();
            let (drained, start) = (AtomicBool::new(false), Barrier::new(3));
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        start.wait();
                        while !gate.closed() {
                            if let Ok(permit) = gate.try_admit(CRITICAL) {
                                assert!(!drained.load(Ordering::SeqCst), "inside a drained gate");
                                drop(permit);
                            }
                        }
                    });
                }
                start.wait();
                assert!(gate.drain(None));
                drained.store(true, Ordering::SeqCst);
            });
            assert_eq!(gate.stats().over_in_flight, 0);
        }
    });
}

/// No lock is held while a drain waits: everything else goes on meanwhile.
#[test]
fn a_drain_holds_no_lock() {
    in_time(|| {
        let gate = Gate::new("drain", 2).unwrap();
        let permit = gate.try_admit(CRITICAL).unwrap();
        thread::scope(|scope| {
            let draining = scope.spawn(|| gate.drain(None));
            while !gate.closed() {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(20)); // by now it waits
            use_everything(&gate);
            drop(permit);
            assert!(draining.join().unwrap());
        });
    });
}

/// Nor while the callbacks of a drain run, each once: they may use the gate, and ask to be called again.
#[test]
fn a_drained_callback_may_use_the_gate() {
    in_time(|| {
        let gate = Gate::new("drain", 2).unwrap();
        let permit = gate.try_admit_owned(CRITICAL).unwrap();
        let called = Arc::new(AtomicU32::new(0));
        for _ in 0..3 {
            let (inner, called) = (gate.clone(), Arc::clone(&called));
            gate.on_drained(Box::new(move || {
                use_everything(&inner);
                let again = Arc::clone(&called);
                inner.on_drained(Box::new(move || _ = again.fetch_add(1, Ordering::SeqCst)));
            }));
        }
        assert_eq!(called.load(Ordering::SeqCst), 0);
        drop(permit);
        assert_eq!(called.load(Ordering::SeqCst), 3);
    });
}

/// A forgotten callback is not called, even if the gate's last permit is in it and leaves with it.
#[test]
fn a_forgotten_callback_is_not_called() {
    in_time(|| {
        let gate = Gate::new("drain", 1).unwrap();
        let last = gate.try_admit_owned(CRITICAL).unwrap();
        let called = Arc::new(AtomicU32::new(0));
        let by = |number: u32| {
            let called = Arc::clone(&called);
            move || _ = called.fetch_add(number, Ordering::SeqCst)
        };
        let kept = gate.on_drained(Box::new(by(1)));
        let forget = by(100);
        let forgotten = gate.on_drained(Box::new(move || {
            drop(last);
            forget();
        }));
        assert!(gate.forget_drained(forgotten));
        assert!(!gate.forget_drained(forgotten) && !gate.forget_drained(kept));
        assert_eq!((called.load(Ordering::SeqCst), gate.in_flight()), (1, 0));
    });
}

/// Each call that takes a lock.
fn use_everything(gate: &Gate) {
    gate.set_limit(3, None).unwrap();
    gate.set_enforce(true);
    gate.set_thresholds(Thresholds::default()).unwrap();
    let _ = (gate.retry_after(CRITICAL), gate.stats(), gate.limit_history());
    let _ = gate.drain(Some(Duration::ZERO));
}

/// The occupancy integral is weight times time: each thread knows between which two sums its part lies.
#[test]
fn the_occupancy_integral_adds_up_after_a_storm() {
    const START_NS: u64 = 1 << 50; // far along: the sums in between exceed what a double can tell apart
    let clock = Arc::new(ManualClock::new(START_NS));
    let gate = Gate::builder("occupancy", 50).timing(true).clock(clock.clone()).build().unwrap();
    let (least, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let now_us = || clock.now_ns() / 1_000;
    together(24, |number| {
        let mut rng = Rng::new(number + 1);
        for _ in rounds(5_000) {
            let weight = rng.below(3) + 1;
            let ask = Ask::from(CRITICAL).weight(Weight::new(weight).unwrap());
            let before = now_us();
            let Ok(permit) = gate.try_admit(ask) else { continue };
            let inside = now_us();
            clock.advance(rng.below(3_000));
            let still_inside = now_us();
            drop(permit);
            least.fetch_add(weight * (still_inside - inside), Ordering::Relaxed);
            most.fetch_add(weight * (now_us() - before), Ordering::Relaxed);
        }
    });
    let occupancy = gate.stats().occupancy_us.unwrap();
    assert!((least.into_inner()..=most.into_inner()).contains(&occupancy));
    clock.advance(5_000_000);
    assert_eq!(gate.stats().occupancy_us.unwrap(), occupancy, "nobody is inside");
}

/// Burst and rate are exact from many threads, also while some hold old readings of the clock, the gate is full half
/// of the time, and whoever loses the rate gives its room back.
#[test]
fn d21_threads_never_get_more_than_burst_and_rate() {
    for seed in rounds(2) {
        let clock = Arc::new(ManualClock::new(0));
        let rate = Rate::new(999_983, Per::Minute).unwrap().with_burst(7).unwrap();
        let gate = Gate::builder("rate", 6).rate(rate).clock(clock.clone()).build().unwrap();
        let (witness, weighed) = (Witness::default(), AtomicU64::new(0));
        together(8, |number| {
            let mut rng = Rng::new(seed * 8 + number + 1);
            for _ in 0..4_000 {
                let weight = Weight::new(rng.below(2) as u32 + 1).unwrap();
                if let Ok(permit) = gate.try_admit(Ask::from(CRITICAL).weight(weight)) {
                    weighed.fetch_add(weight.get().into(), Ordering::Relaxed);
                    witness.visit();
                    drop(permit);
                }
                clock.advance(rng.below(8_000));
            }
        });
        let stats = gate.stats();
        let time_ns = u128::from(clock.now_ns());
        let most = 7 + 999_983 * time_ns / 60_000_000_000;
        let admitted = u128::from(weighed.load(Ordering::Relaxed));
        assert!(admitted <= most, "seed {seed}: {admitted} of {most}");
        assert!(admitted >= 7, "seed {seed}: not even the burst");
        assert!(witness.most() <= 6 && stats.high_water <= 6);
        assert_eq!((stats.in_flight, released(&stats)), (0, stats.admitted(CRITICAL)));
        assert_eq!(attempts(&stats), 8 * 4_000);
    }
}

/// While the rate changes all the time nothing is lost, and each new one holds from then on.
#[test]
fn d24_a_rate_that_changes_under_load() {
    let gate = Gate::new("rate", 10).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..4 {
            let (gate, done) = (&gate, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(number + 1);
                while !done.load(Ordering::Relaxed) {
                    let weight = Weight::new(rng.below(3) as u32 + 1).unwrap();
                    drop(gate.try_admit(Ask::from(CRITICAL).weight(weight)));
                }
            });
        }
        let _end = Raise(&done);
        for round in rounds(50) {
            // Of a rate of nothing only the burst is admitted, whoever comes while it holds.
            gate.set_rate(Rate::new(0, Per::Second).unwrap().with_burst(round % 50 + 1).unwrap());
            let before = gate.stats().admitted(CRITICAL);
            thread::yield_now();
            let since = gate.stats().admitted(CRITICAL) - before;
            // Four may have been admitted before and counted since.
            assert!(since <= round % 50 + 1 + 4, "{since} of {}", round % 50 + 1);
            gate.set_rate(if round % 2 == 0 { None } else { Some(Rate::new(round, Per::Minute).unwrap()) });
        }
    });
    gate.set_rate(None);
    assert_at_rest(&gate);
}

/// Threads that share shards, windows of a millisecond, limits set by hand: at rest nothing was lost, the integral of
/// the weight inside is the sum of all stays, and the limit stayed in its bounds.
#[test]
fn a_controlled_gate_is_exact_at_rest() {
    const THREADS: u64 = 20;
    for round in rounds(3) {
        let bounds = Bounds::new(2, 12, 8).unwrap();
        let gate = Gate::builder("controlled", 1)
            .controller(Kind::Goodput, bounds)
            .objective(Duration::from_millis(50))
            .build()
            .unwrap();
        let before = gate.reading().expect("nobody counts yet");
        let witness = Witness::default();
        let (asked, by_hand) = (AtomicU64::new(0), AtomicU64::new(0));
        together(THREADS, |number| {
            let mut rng = Rng::new(1_000 * round + number);
            for _ in 0..4_000 {
                asked.fetch_add(1, Ordering::Relaxed);
                let Ok(permit) = gate.try_admit(CRITICAL) else {
                    thread::yield_now();
                    continue;
                };
                witness.enter();
                if rng.below(4) == 0 {
                    thread::yield_now();
                }
                witness.leave();
                permit.release(Outcome::ALL[rng.below(3) as usize]);
                if rng.below(2_000) == 0 {
                    gate.set_limit(2 + rng.below(11) as u32, None).unwrap();
                    by_hand.fetch_add(1, Ordering::Relaxed);
                }
                let limit = gate.limit();
                assert!((2..=12).contains(&limit), "seed {round}: {limit}");
            }
        });
        let stats = gate.stats();
        assert!(witness.most.load(Ordering::Relaxed) <= 12);
        let window = gate.reading().expect("at rest").window_since(&before);
        let completions = stats.released(Outcome::Success) + stats.released(Outcome::Overload);
        assert_eq!((window.completions, window.overload), (completions, stats.released(Outcome::Overload)));
        assert_eq!(window.admissions, stats.admitted(CRITICAL));
        assert_eq!(window.admissions + window.refusals, asked.load(Ordering::Relaxed));
        assert_eq!(window.refusals, stats.shed(CRITICAL, Reason::Limit));
        let later = gate.reading().expect("at rest").window_since(&before);
        assert!((later.in_flight_seconds - window.in_flight_seconds).abs() < 1e-12, "nobody is inside");
        let report = gate.controller().unwrap();
        let changes: u64 = stats.limit_changes().map(|(_, changes)| changes).sum();
        assert_eq!(changes, report.moves + report.probes + by_hand.load(Ordering::Relaxed));
        assert!(report.looks > 0, "seed {round}");
        gate.set_limit(4, None).unwrap();
        assert_at_rest(&gate);
    }
}

/// The sum of all stays, measured one by one, is the integral of what is inside.
#[test]
fn a_controlled_gate_measures_each_stay() {
    let gate = Gate::builder("measured", 64).objective(Duration::from_secs(1)).build().unwrap();
    let before = gate.reading().expect("nobody counts yet");
    together(20, |_| {
        for _ in 0..5_000 {
            let permit = gate.try_admit(CRITICAL).expect("there is room");
            thread::yield_now();
            drop(permit);
        }
    });
    let window = gate.reading().expect("at rest").window_since(&before);
    assert_eq!((window.completions, window.good, window.admissions), (100_000, 100_000, 100_000));
    // Each stay in 16 ns, each way in and out in microseconds.
    let off = (window.in_flight_seconds - window.latency_sum).abs();
    assert!(
        off < 0.02 * window.latency_sum + 1e-3,
        "{} and {}",
        window.in_flight_seconds,
        window.latency_sum
    );
    let mean_square = window.latency_square_sum / 100_000.0;
    assert!(mean_square >= (window.latency_sum / 100_000.0).powi(2));
}
