//! Rates on a manual clock, against whole-number arithmetic in which nothing is rounded: time in units of
//! `1 / count` ns, in which an interval is the unit's nanoseconds.
//!
//! A failure prints the shortest calls that fail. `PROPTEST_CASES` sets how many cases run.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tidegate::{Ask, Gate, MAX_LIMIT, ManualClock, Per, Priority, Rate, Reason, RetryAfter, Weight};

const SECOND: u64 = 1_000_000_000;
const CRITICAL: Priority = Priority::Critical;

fn rate(text: &str, burst: u32) -> Rate {
    text.parse::<Rate>().unwrap().with_burst(burst).unwrap()
}

struct Rig {
    gate: Gate,
    clock: Arc<ManualClock>,
}

impl Rig {
    fn new(rate: Rate) -> Self {
        let clock = Arc::new(ManualClock::new(0));
        let gate = Gate::builder("rated", MAX_LIMIT).rate(rate).clock(clock.clone()).build().unwrap();
        Self { gate, clock }
    }

    /// Whether one is admitted; it leaves at once.
    fn admit(&self, weight: u32) -> bool {
        match self.gate.try_admit(ask(weight)) {
            Ok(_) => true,
            Err(shed) => {
                assert_eq!(shed.reason, Reason::Rate);
                false
            }
        }
    }

    fn count(&self, tries: u32) -> u32 {
        (0..tries).map(|_| u32::from(self.admit(1))).sum()
    }

    /// Admits as much as there is, in as few admissions as possible.
    fn drain(&self) -> u64 {
        let powers = (0..31).rev().map(|power| 1_u32 << power);
        powers
            .filter(|&weight| weight <= self.gate.rate().unwrap().burst() && self.admit(weight))
            .map(u64::from)
            .sum()
    }
}

fn ask(weight: u32) -> Ask {
    Ask::from(CRITICAL).weight(Weight::new(weight).unwrap())
}

fn unit_ns(rate: Rate) -> u128 {
    u128::from(rate.per().seconds()) * u128::from(SECOND)
}

/// The most that may enter in a time, but for the burst.
fn most(rate: Rate, ns: u64) -> u128 {
    u128::from(rate.count()) * u128::from(ns) / unit_ns(rate)
}

/// What the gate does, in whole numbers.
struct Model {
    rate: Rate,
    arrival: u128,
    latest_ns: u64,
}

impl Model {
    /// The nanosecond from which on it would be admitted; `None`: never.
    fn due_ns(&self, weight: u32) -> Option<u128> {
        if weight > self.rate.burst() {
            return None;
        }
        let ahead = u128::from(self.rate.burst() - weight) * unit_ns(self.rate);
        Some(self.arrival.saturating_sub(ahead).div_ceil(u128::from(self.rate.count())))
    }

    fn admit(&mut self, now_ns: u64, weight: u32) -> bool {
        let now_ns = now_ns.max(self.latest_ns);
        if self.due_ns(weight).is_none_or(|due_ns| due_ns > u128::from(now_ns)) {
            return false;
        }
        let now = u128::from(now_ns) * u128::from(self.rate.count());
        self.arrival = self.arrival.max(now) + u128::from(weight) * unit_ns(self.rate);
        self.latest_ns = now_ns;
        true
    }
}

#[derive(Clone, Debug)]
enum Op {
    Admit(u32),
    Wait(u64),
    Exactly,
    Back(u64),
}

fn some_rate() -> impl Strategy<Value = Rate> {
    let count = prop_oneof![select(&[1_u64, 7, 150, 700, 999, 120_000, 999_983][..]), 1_u64..1_000_000,];
    let burst = prop_oneof![3 => 1_u32..5, 2 => 1_u32..2_000, 1 => Just(MAX_LIMIT)];
    (count, select(&Per::ALL[..]), burst)
        .prop_map(|(count, per, burst)| Rate::new(count, per).unwrap().with_burst(burst).unwrap())
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => prop_oneof![3 => Just(1_u32), 2 => 1_u32..5, 1 => 1_u32..3_000].prop_map(Op::Admit),
        2 => prop_oneof![0_u64..50, 0..SECOND, 0..100 * 3_600 * SECOND].prop_map(Op::Wait),
        4 => Just(Op::Exactly),
        1 => prop_oneof![0_u64..50, 0..60 * SECOND].prop_map(Op::Back),
    ]
}

proptest! {
    /// Each answer is that of the exact model, also where the clock was set back; what it says of waiting is so
    /// to the nanosecond; and in no stretch of time is more admitted than burst and rate allow.
    #[test]
    fn as_if_nothing_were_rounded(rate in some_rate(), ops in proptest::collection::vec(op(), 1..120)) {
        let rig = Rig::new(rate);
        let mut model = Model { rate, arrival: 0, latest_ns: 0 };
        let (mut now_ns, mut weight) = (0_u64, 1);
        let mut log: Vec<(u64, u128)> = Vec::new();
        for op in ops {
            match op {
                Op::Admit(next) => weight = next,
                Op::Wait(ns) => now_ns += ns,
                Op::Exactly => match rig.gate.retry_after(ask(weight)) {
                    RetryAfter::Known(Duration::ZERO) => {}
                    RetryAfter::Known(wait) => {
                        let wait_ns = u64::try_from(wait.as_nanos()).unwrap();
                        rig.clock.set(now_ns + wait_ns - 1);
                        prop_assert!(!rig.admit(weight), "admitted a nanosecond before {wait:?}");
                        now_ns += wait_ns;
                        rig.clock.set(now_ns);
                        prop_assert_eq!(rig.gate.retry_after(ask(weight)), RetryAfter::Known(Duration::ZERO));
                    }
                    never => {
                        prop_assert_eq!(never, RetryAfter::Never);
                        prop_assert!(weight > rate.burst());
                    }
                },
                Op::Back(ns) => now_ns = now_ns.saturating_sub(ns),
            }
            rig.clock.set(now_ns);
            let admitted = rig.admit(weight);
            prop_assert_eq!(admitted, model.admit(now_ns, weight), "{} of {} at {}", weight, rate, now_ns);
            if admitted {
                log.push((model.latest_ns, u128::from(weight)));
            }
        }
        for (first, (from_ns, _)) in log.iter().enumerate() {
            let mut sum = 0;
            for (to_ns, weight) in &log[first..] {
                sum += weight;
                prop_assert!(sum <= u128::from(rate.burst()) + most(rate, to_ns - from_ns));
            }
        }
        prop_assert_eq!(rig.gate.in_flight(), 0);
    }

    /// Whatever the rate was before: from a change on, what is admitted keeps to the new burst and rate.
    #[test]
    fn a_change_gives_nothing_away(
        rates in proptest::collection::vec((some_rate(), 0_u64..3 * SECOND, any::<bool>()), 2..8),
    ) {
        let rig = Rig::new(rates[0].0);
        for (rate, wait_ns, nothing_used) in rates {
            let full = rig.gate.rate() != Some(rate) && nothing_used;
            rig.gate.set_rate(rate);
            let at_once = rig.drain();
            prop_assert!(at_once <= u64::from(rate.burst()), "{} of {:?}", at_once, rate);
            if full {
                rig.clock.advance(1_000_000 * 3_600 * SECOND);
            }
            rig.clock.advance(wait_ns);
            let later = u128::from(rig.drain());
            if !full {
                let all = u128::from(rate.burst()) + most(rate, wait_ns);
                prop_assert!(u128::from(at_once) + later <= all, "{} and {} of {:?}", at_once, later, rate);
            }
        }
    }
}

/// 60 s of demand without end bring what burst and rate allow, or one less.
#[test]
fn d33_nothing_is_lost_to_rounding() {
    for (text, burst) in [
        ("7/h", 1),
        ("7/h", 3),
        ("700/min", 1),
        ("700/min", 10),
        ("120000/min", 2_000),
        ("999999937/s", MAX_LIMIT),
        ("3000000000/s", MAX_LIMIT),
        ("10000000000/s", MAX_LIMIT),
    ] {
        let rate = rate(text, burst);
        let rig = Rig::new(rate);
        let mut admitted = 0;
        let mut now_ns = 0;
        for step in 0_u64.. {
            rig.clock.set(now_ns);
            admitted += rig.drain();
            if now_ns == 60 * SECOND {
                break;
            }
            // Often enough that the burst never overflows, at no regular distance.
            let wait_ns = match (rig.gate.retry_after(ask(1)), burst) {
                (RetryAfter::Known(wait), 1..MAX_LIMIT) => u64::try_from(wait.as_nanos()).unwrap(),
                _ => 100_000_000 + step % 97 * 1_000_003 % 99_999_989,
            };
            now_ns = (now_ns + wait_ns).min(60 * SECOND);
        }
        let all = u128::from(burst) + most(rate, 60 * SECOND);
        let lost = all.checked_sub(u128::from(admitted)).expect("never above");
        assert!(lost <= 1, "{text}: {lost} of {all} lost");
    }
}

#[test]
fn d22_any_idle_time_brings_the_burst_and_no_more() {
    const HOUR: u64 = 3_600 * SECOND;
    for idle_ns in [12 * HOUR, 6 * 24 * HOUR, 292 * 365 * 24 * HOUR, u64::MAX - SECOND] {
        let rig = Rig::new(rate("1000000/s", 1_000_000));
        rig.clock.set(SECOND);
        assert_eq!(rig.drain(), 1_000_000);
        rig.clock.advance(idle_ns);
        assert_eq!(rig.gate.retry_after(ask(1_000_000)), RetryAfter::Known(Duration::ZERO));
        assert_eq!(rig.drain(), 1_000_000, "after {idle_ns} ns");
        assert!(!rig.admit(1));
    }
}

/// A caller with an older time finds what is left of the burst, and its coming brings no time back.
#[test]
fn d22_a_clock_that_goes_back() {
    let rig = Rig::new(rate("10/s", 10));
    rig.clock.set(60 * SECOND);
    assert_eq!(rig.count(4), 4);
    rig.clock.set(55 * SECOND);
    assert_eq!(rig.count(10), 6, "the rest of the burst");
    let until_one_is_due = Duration::from_millis(5_100);
    assert_eq!(rig.gate.retry_after(ask(1)), RetryAfter::Known(until_one_is_due));
    rig.clock.set(60 * SECOND);
    assert!(!rig.admit(1), "nothing was minted");
    rig.clock.set(60 * SECOND + SECOND / 10);
    assert_eq!(rig.count(10), 1);
}

/// The longest burst and the slowest rate, at the end of time: nothing overflows.
#[test]
fn the_largest_numbers() {
    let rig = Rig::new(rate("1/h", MAX_LIMIT));
    rig.clock.set(u64::MAX);
    assert!(rig.admit(MAX_LIMIT));
    let RetryAfter::Known(wait) = rig.gate.retry_after(ask(MAX_LIMIT)) else {
        panic!("it is long, and known")
    };
    assert_eq!(wait, Duration::from_secs(3_600 * u64::from(MAX_LIMIT)));
    rig.gate.set_rate(rate("10000000000/s", MAX_LIMIT));
    assert!(!rig.admit(1), "all was used");
    rig.gate.set_rate(rate("1/h", 1));
    assert!(!rig.admit(1));
}

/// Used stays used, at the new rate; what is the same changes nothing.
#[test]
fn d24_a_change_carries_what_was_used() {
    let rig = Rig::new(rate("1/s", 10));
    assert_eq!(rig.count(6), 6);
    rig.gate.set_rate(rate("100/s", 20));
    assert_eq!(rig.gate.rate(), Some(rate("100/s", 20)));
    assert_eq!(rig.count(99), 14, "six of the new twenty are used");
    rig.clock.advance(SECOND / 20);
    assert_eq!(rig.count(99), 5, "they come back at the new rate");
    rig.gate.set_rate(rate("1/s", 2));
    assert!(!rig.admit(1), "all of the new burst is used,");
    assert_eq!(rig.gate.retry_after(ask(2)), RetryAfter::Known(Duration::from_secs(2)), "and no more");
    rig.clock.advance(SECOND / 2);
    rig.gate.set_rate(rate("1/s", 2));
    assert_eq!(rig.gate.retry_after(ask(1)), RetryAfter::Known(Duration::from_millis(500)));
    rig.gate.set_rate(None);
    assert_eq!((rig.gate.rate(), rig.count(99)), (None, 99));
    rig.gate.set_rate(rate("1/s", 2));
    assert_eq!(rig.count(99), 2, "nothing was counted meanwhile");
}

/// To nothing and back: parts of a permit are not given away.
#[test]
fn a_rate_of_nothing_keeps_what_is_left() {
    let rig = Rig::new(rate("1/s", 10));
    assert_eq!(rig.count(6), 6);
    rig.clock.advance(SECOND / 2);
    rig.gate.set_rate(rate("0/s", 10));
    rig.clock.advance(1_000 * SECOND);
    assert_eq!(rig.gate.retry_after(ask(4)), RetryAfter::Known(Duration::ZERO));
    assert_eq!(rig.gate.retry_after(ask(5)), RetryAfter::Never);
    assert_eq!(rig.count(99), 4);
    assert_eq!(rig.gate.retry_after(ask(1)), RetryAfter::Never);
    rig.gate.set_rate(rate("1/s", 10));
    assert!(!rig.admit(1));
    rig.clock.advance(SECOND);
    assert_eq!(rig.count(99), 1);
}

/// Many small changes lose nothing that anybody would notice.
#[test]
fn a_rate_that_moves_all_the_time() {
    let rig = Rig::new(rate("1000/s", 50));
    assert_eq!(rig.drain(), 50);
    let mut admitted = 0;
    for step in 0..10_000 {
        rig.clock.advance(SECOND / 1_000);
        admitted += rig.drain();
        rig.gate.set_rate(rate(if step % 2 == 0 { "2000/s" } else { "1000/s" }, 50));
    }
    assert!((14_998..=15_000).contains(&admitted), "{admitted} in ten seconds at 1500 a second");
}

/// What the gate knows of waiting for room, and of the rate, is the longer of both.
#[test]
fn room_and_rate_must_come_together() {
    let clock = Arc::new(ManualClock::new(0));
    let rate = rate("1/s", 2);
    let gate = Gate::builder("both", 1).rate(rate).clock(clock.clone()).build().unwrap();
    let held = gate.try_admit(CRITICAL).unwrap();
    assert_eq!(gate.retry_after(CRITICAL), RetryAfter::Unknown, "the rate has one, and room comes some time");
    clock.advance(SECOND / 4);
    drop(held);
    let held = gate.try_admit(CRITICAL).unwrap();
    // A release in 0.25 s; the next of the rate is due after 0.75 s.
    assert_eq!(gate.retry_after(CRITICAL), RetryAfter::Known(Duration::from_millis(750)));
    assert_eq!(gate.try_admit(CRITICAL).unwrap_err().reason, Reason::Limit, "the limit decides first");
    drop(held);
    let shed = gate.try_admit(CRITICAL).unwrap_err();
    assert_eq!(shed.to_string(), "over its rate: 0 of 1 in flight (priority critical)");
}
