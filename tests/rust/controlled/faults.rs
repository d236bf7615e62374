//! What limits that move have got wrong elsewhere (D18, D19, D20), at the gate itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use tidegate::controller::{AnyController, Bounds, Kind};
use tidegate::{Outcome, Priority, Ticket};

use crate::{CRITICAL, MS, Rig, SECOND, bounds};

/// Requests that come evenly, and stay for as long as `fate` says of what is in flight.
struct World {
    rig: Rig,
    inside: BinaryHeap<Reverse<(u64, u64)>>,
    tickets: Vec<(Ticket, Outcome)>,
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
        let inside = BinaryHeap::new();
        Self { rig, inside, tickets: Vec::new(), now_ns: 0, completions: 0, lowest: limit, highest: limit }
    }

    fn limit(&self) -> u32 {
        self.rig.gate.limit()
    }

    fn centre(&self) -> f64 {
        match self.rig.gate.controller().expect("there is one").state {
            AnyController::Goodput(goodput) => goodput.centre(),
            _ => f64::from(self.limit()),
        }
    }

    fn note(&mut self) {
        self.lowest = self.lowest.min(self.limit());
        self.highest = self.highest.max(self.limit());
    }

    fn leave_until(&mut self, end_ns: u64) {
        while let Some(&Reverse((at_ns, id))) = self.inside.peek() {
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
                self.inside.push(Reverse((self.now_ns + latency_ns, self.tickets.len() as u64)));
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

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a limit
fn highest_arm(centre: f64) -> u32 {
    (centre * 1.11).ceil() as u32
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
    let highest_arm = highest_arm(before); // the experiment that is under way
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
    let highest = highest_arm(world.centre());
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

/// A flood of what is not important never meets the limit, and yet is held back by it: its threshold follows.
#[test]
fn a_flood_of_low_priority_meets_its_threshold_and_not_the_limit() {
    let rig = Rig::controlled(Kind::Goodput, bounds(1, 1_000, 40));
    let before = rig.reading();
    let mut inside = VecDeque::new();
    for _ in 0..20_000 {
        rig.clock.advance(MS / 4);
        while inside.front().is_some_and(|(at, _)| *at <= rig.gate.now_ns()) {
            inside.pop_front();
        }
        if let Ok(permit) = rig.gate.try_admit(Priority::Sheddable) {
            inside.push_back((rig.gate.now_ns() + 20 * MS, permit));
        }
    }
    assert!(rig.gate.limit() > 40, "all that comes in is served in time: {}", rig.gate.limit());
    let window = rig.reading().window_since(&before);
    // Of `limit` only for moments, where it has just come down on what is inside.
    assert!(window.priority_refusals > 20 * window.refusals.max(5), "{window:?}");
}
