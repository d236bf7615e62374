//! Real threads. What must hold holds by construction, for any schedule: no test waits for luck.
//!
//! `TIDEGATE_SOAK_SECONDS` makes the storms long; otherwise each runs a fixed number of rounds.

#![allow(clippy::cast_possible_truncation)] // the numbers of a test are small

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::Rng;
use tidegate::{Ask, Gate, Outcome, Priority, Reason, Stats, Weight};

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

/// Rounds of a storm: `short` of them, or as many as fit into the soak's seconds.
fn rounds(short: u64) -> impl Iterator<Item = u64> {
    let seconds = std::env::var("TIDEGATE_SOAK_SECONDS").ok().map(|text| text.parse().unwrap());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
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
    fn visit(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn d05_never_above_the_limit_with_one_class() {
    let (gate, witness) = (Gate::new("one class", 10).unwrap(), Witness::default());
    together(64, |_| {
        for _ in rounds(10_000) {
            if let Ok(permit) = gate.try_admit(CRITICAL) {
                witness.visit();
                drop(permit);
            }
        }
    });
    assert!(witness.most.into_inner() <= 10);
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
    assert_eq!(witness.most.into_inner(), 1);
    assert_at_rest(&gate);
}

/// Three classes under one total: each class stays under its threshold, all together under the limit.
#[test]
fn d05_never_above_a_threshold_with_three_classes() {
    let gate = Gate::new("classes", 10).unwrap();
    let classes = [CRITICAL, Priority::SheddablePlus, Priority::Sheddable];
    let (total, low) = (Witness::default(), Witness::default());
    together(12, |number| {
        let mut rng = Rng::new(number + 1);
        for _ in rounds(20_000) {
            let class = classes[rng.below(3) as usize];
            let Ok(permit) = gate.try_admit(class) else { continue };
            if class == Priority::Sheddable {
                low.visit();
            } else {
                total.visit();
            }
            drop(permit);
        }
    });
    assert!(total.most.into_inner() <= 10);
    assert!(low.most.into_inner() <= 8, "three quarters of ten, rounded up");
    assert_at_rest(&gate);
}

/// While the limit moves: once it was lowered and the surplus has left, nobody is above it. The setter
/// is the only thread that changes it, so it knows which limit is in force.
#[test]
fn d05_d03_never_above_a_limit_that_moves() {
    let gate = Gate::new("moving", 100).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..8 {
            let (gate, done) = (&gate, &done);
            scope.spawn(move || {
                let mut rng = Rng::new(number + 1);
                while !done.load(Ordering::Relaxed) {
                    let weight = Weight::new(rng.below(9) as u32 + 1).unwrap();
                    drop(gate.try_admit(Ask::from(CRITICAL).weight(weight)));
                }
            });
        }
        for _ in rounds(20_000) {
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
        done.store(true, Ordering::Relaxed);
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
            for _ in 0..500 {
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

/// Whoever drains is woken by the last to leave, permits in the word and beyond it alike.
#[test]
fn a_drain_is_woken_by_the_last_release() {
    for round in rounds(200) {
        let gate = Gate::builder("drain", 2).enforce(round % 2 == 0).build().unwrap();
        let inside: Vec<_> = (0..4).filter_map(|_| gate.try_admit(CRITICAL).ok()).collect();
        assert!(!gate.drain(Some(Duration::ZERO)), "somebody is inside");
        let called = AtomicBool::new(false);
        thread::scope(|scope| {
            for permit in inside {
                scope.spawn(move || drop(permit));
            }
            // Without an end: were the last release not to wake it, this test would not end.
            called.store(gate.drain(None), Ordering::SeqCst);
        });
        assert!(called.into_inner() && gate.try_admit(CRITICAL).is_err());
    }
}

/// No lock is held while a drain waits: everything else goes on meanwhile.
#[test]
fn a_drain_holds_no_lock() {
    let gate = Gate::new("drain", 2).unwrap();
    let permit = gate.try_admit(CRITICAL).unwrap();
    thread::scope(|scope| {
        let draining = scope.spawn(|| gate.drain(None));
        while !gate.closed() {
            thread::yield_now();
        }
        gate.set_limit(3, None).unwrap();
        let _ = (
            gate.retry_after(CRITICAL),
            gate.stats(),
            gate.limit_history(),
            gate.drain(Some(Duration::ZERO)),
        );
        drop(permit);
        assert!(draining.join().unwrap());
    });
}

/// The occupancy integral over an interval is weight times time, whatever happened in between.
#[test]
fn occupancy_survives_a_storm() {
    let clock = std::sync::Arc::new(tidegate::ManualClock::new(1 << 50));
    let gate = Gate::builder("occupancy", 50).timing(true).clock(clock.clone()).build().unwrap();
    let before = gate.stats().occupancy_us.unwrap();
    let held = gate.take(Ask::from(CRITICAL).weight(Weight::new(7).unwrap())).unwrap();
    together(20, |_| (0..1_000).for_each(|_| drop(gate.try_admit(CRITICAL)))); // in no time at all
    clock.advance(3_000_000);
    gate.put(held, Outcome::Success);
    clock.advance(5_000_000);
    assert_eq!(gate.stats().occupancy_us.unwrap() - before, 7 * 3_000);
}
