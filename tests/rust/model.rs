//! Random calls against a sequential model: a few plain numbers that follow the documented rules. After
//! each call the gate's whole reading must be the model's.
//!
//! A failure prints the shortest calls that fail; no file of seeds is kept, since those calls say it all.
//! `PROPTEST_CASES` sets how many cases run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use tidegate::{
    Ask, Gate, MAX_LIMIT, ManualClock, Outcome, OwnedPermit, PPM_ONE, Permit, Priority, Reason, RetryAfter,
    Shed, Threshold, Thresholds, Ticket, Weight,
};

/// One call.
#[derive(Clone, Debug)]
enum Op {
    Admit(Option<Priority>, u32, Kind),
    Release(usize, Outcome),
    Drop(usize),
    Enter(Option<Priority>),
    Exit(Outcome),
    SetLimit(u32),
    SetThresholds([Option<Threshold>; 4]),
    SetRisingThresholds,
    SetEnforce(bool),
    Close,
    Drain,
    OnDrained,
    RetryAfter(Priority, u32),
    Wait(u64),
}

/// The forms in which a caller can hold a permit.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Borrowed,
    Owned,
    Ticket,
}

enum Held<'a> {
    Borrowed(Permit<'a>),
    Owned(OwnedPermit),
    Ticket(Ticket),
}

impl Held<'_> {
    fn ticket(&self) -> Ticket {
        match self {
            Self::Borrowed(permit) => *permit.ticket(),
            Self::Owned(permit) => *permit.ticket(),
            Self::Ticket(ticket) => *ticket,
        }
    }
}

fn priority() -> impl Strategy<Value = Priority> {
    select(&Priority::ALL[..])
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![12 => 1_u32..4, 4 => 1_u32..14, 1 => Just(MAX_LIMIT)]
}

fn limit() -> impl Strategy<Value = u32> {
    prop_oneof![16 => 0_u32..14, 1 => Just(MAX_LIMIT)]
}

/// Thresholds that do not rise, all shares or all reserves, each set or not.
fn thresholds() -> impl Strategy<Value = [Option<Threshold>; 4]> {
    let kept_free = [0..=PPM_ONE, 0..=PPM_ONE, 0..=PPM_ONE];
    (any::<bool>(), kept_free, any::<[bool; 3]>()).prop_map(|(shares, mut kept_free, set)| {
        kept_free.sort_unstable();
        let threshold = |at: usize| match (set[at], shares) {
            (false, _) => None,
            (true, true) => Some(Threshold::Ppm(PPM_ONE - kept_free[at])),
            (true, false) => Some(Threshold::Reserve(kept_free[at] / 125_000)), // 0 to 8
        };
        [None, threshold(0), threshold(1), threshold(2)]
    })
}

fn op() -> impl Strategy<Value = Op> {
    let kind = select(&[Kind::Borrowed, Kind::Owned, Kind::Ticket][..]);
    let outcome = || select(&Outcome::ALL[..]);
    prop_oneof![
        24 => (proptest::option::weighted(0.8, priority()), weight(), kind)
            .prop_map(|(priority, weight, kind)| Op::Admit(priority, weight, kind)),
        12 => (any::<usize>(), outcome()).prop_map(|(which, outcome)| Op::Release(which, outcome)),
        6 => any::<usize>().prop_map(Op::Drop),
        8 => proptest::option::of(priority()).prop_map(Op::Enter),
        8 => outcome().prop_map(Op::Exit),
        4 => limit().prop_map(Op::SetLimit),
        2 => thresholds().prop_map(Op::SetThresholds),
        1 => Just(Op::SetRisingThresholds),
        3 => any::<bool>().prop_map(Op::SetEnforce),
        4 => (priority(), weight()).prop_map(|(priority, weight)| Op::RetryAfter(priority, weight)),
        4 => (0_u64..5_000).prop_map(Op::Wait),
    ]
}

/// A gate's life: most calls while it is open, a few more once it is closed.
fn life() -> impl Strategy<Value = Vec<Op>> {
    let end = select(vec![vec![Op::Close], vec![Op::Drain], vec![Op::OnDrained, Op::OnDrained], vec![]]);
    let open = proptest::collection::vec(op(), 1..150);
    let closed = proptest::collection::vec(prop_oneof![9 => op(), 1 => Just(Op::OnDrained)], 0..30);
    (open, end, closed).prop_map(|(open, end, closed)| [open, end, closed].concat())
}

/// What a gate is, as its documentation has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    limit: u32,
    set: [Option<Threshold>; 4],
    dry_run: bool,
    closed: bool,
    generation: u32,
    /// The weight that the limit counts,
    in_flight: u32,
    high_water: u32,
    /// and what dry run let in beyond it.
    over_permits: u64,
    over_bare: u64,
    /// Whether a bare entry was ever made. Before that a bare exit takes nothing of a permit's.
    bare_seen: bool,
    admitted: [u64; 4],
    fallback: u64,
    would_shed: [u64; 4],
    shed: [[u64; 7]; 4],
    released: [u64; 3],
    unmatched: u64,
    collected: u64,
    /// Weight-microseconds, modulo 2^64.
    occupancy: u64,
    latencies: [u64; 4],
    attempts: u64,
}

impl Model {
    fn threshold(&self, priority: Priority) -> u32 {
        let defaults = [1_000_000, 1_000_000, 900_000, 750_000].map(Threshold::Ppm);
        let weight = |threshold| match threshold {
            Threshold::Ppm(ppm) => {
                u32::try_from((u64::from(self.limit) * u64::from(ppm)).div_ceil(1_000_000)).unwrap()
            }
            Threshold::Reserve(weight) => self.limit.saturating_sub(weight),
        };
        let own = |level: usize| match self.set[level] {
            Some(set) => weight(set),
            // A default gives way to what is set: to the largest below it, and (by the minimum) above it.
            None => (level..4)
                .filter_map(|below| self.set[below].map(weight))
                .fold(weight(defaults[level]), u32::max),
        };
        (0..=priority.level()).map(own).min().unwrap()
    }

    fn fits(&self, priority: Priority, weight: u32) -> bool {
        u64::from(self.in_flight) + u64::from(weight) <= u64::from(self.threshold(priority))
    }

    fn is_empty(&self) -> bool {
        self.in_flight == 0 && self.over_permits == 0 && self.over_bare == 0
    }

    /// Whether a request enters, over the limit (`Ok(true)`) or under it.
    fn admit(&mut self, asked: Option<Priority>, weight: u32) -> Result<bool, Reason> {
        let priority = asked.unwrap_or_default();
        let level = priority.level();
        self.attempts += 1;
        let reason = if self.closed {
            Reason::Closed
        } else if self.fits(priority, weight) {
            self.in_flight += weight;
            self.high_water = self.high_water.max(self.in_flight);
            self.admitted[level] += 1;
            self.fallback += u64::from(asked.is_none());
            return Ok(false);
        } else if self.fits(Priority::CriticalPlus, weight) {
            Reason::Priority
        } else {
            Reason::Limit
        };
        if self.dry_run && reason != Reason::Closed {
            self.would_shed[level] += 1;
            return Ok(true);
        }
        self.shed[level][reason as usize] += 1;
        Err(reason)
    }

    /// A permit leaves. What bare exits took of its weight is taken from what they left.
    fn put(&mut self, ticket: &Ticket, outcome: Outcome) {
        self.latencies[ticket.priority().level()] += u64::from(outcome != Outcome::Ignore);
        if ticket.over() {
            self.over_permits -= 1;
            return;
        }
        let there = self.in_flight.min(ticket.weight());
        let missing = u64::from(ticket.weight() - there);
        self.in_flight -= there;
        if missing == 0 {
            self.released[outcome as usize] += 1;
        } else {
            self.unmatched += u64::from(missing > self.over_bare);
            self.over_bare = self.over_bare.saturating_sub(missing);
        }
    }

    /// A bare exit; whether it `drew` an entry that was over is for the gate to say, where there is a choice.
    fn exit(&mut self, outcome: Outcome, drew: bool) -> bool {
        let somebody = self.over_bare > 0 || (self.in_flight > 0 && self.bare_seen);
        if !somebody {
            self.unmatched += 1;
        } else if drew || self.in_flight == 0 {
            self.over_bare -= 1;
        } else {
            self.in_flight -= 1;
            self.released[outcome as usize] += 1;
        }
        somebody
    }

    fn of(gate: &Gate, unseen: &Self) -> Self {
        let stats = gate.stats();
        Self {
            limit: stats.limit,
            dry_run: !gate.enforce(),
            closed: gate.closed(),
            generation: stats.generation,
            in_flight: stats.in_flight,
            high_water: stats.high_water,
            admitted: Priority::ALL.map(|priority| stats.admitted(priority)),
            fallback: stats.fallback_priority(),
            would_shed: Priority::ALL.map(|priority| stats.would_shed(priority)),
            shed: Priority::ALL.map(|priority| Reason::ALL.map(|reason| stats.shed(priority, reason))),
            released: Outcome::ALL.map(|outcome| stats.released(outcome)),
            unmatched: stats.unmatched_exits,
            collected: stats.collected,
            occupancy: stats.occupancy_us.unwrap(),
            latencies: Priority::ALL.map(|priority| stats.latency(priority).unwrap().count()),
            attempts: Priority::ALL.iter().map(|&p| stats.admitted(p) + stats.would_shed(p)).sum::<u64>()
                + stats.shed_total(),
            // What a reading does not show:
            set: unseen.set,
            over_permits: unseen.over_permits,
            over_bare: unseen.over_bare,
            bare_seen: unseen.bare_seen,
        }
    }
}

/// The gate and the model, with whatever is inside.
struct Pair<'a> {
    gate: &'a Gate,
    clock: &'a ManualClock,
    model: Model,
    held: Vec<Held<'a>>,
    /// Bare entries that have not been left.
    entered: u32,
    asked_for_end: u64,
    told_of_end: Arc<AtomicU64>,
}

impl<'a> Pair<'a> {
    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Admit(priority, weight, kind) => self.admit(priority, weight, kind),
            Op::Release(which, outcome) => self.release(which, |gate, held| {
                match held {
                    Held::Borrowed(permit) => permit.release(outcome),
                    Held::Owned(permit) => permit.release(outcome),
                    Held::Ticket(ticket) => gate.put(ticket, outcome),
                }
                (outcome, 0)
            }),
            // A ticket does not drop itself: that is what a garbage collector's binding does with it.
            Op::Drop(which) => self.release(which, |gate, held| match held {
                Held::Ticket(ticket) => {
                    gate.put_collected(ticket);
                    (Outcome::Ignore, 1)
                }
                permit => {
                    drop(permit);
                    (Outcome::Success, 0)
                }
            }),
            Op::Enter(priority) => {
                let got = self.gate.enter(priority).map_err(|shed| shed.reason);
                let expected = self.model.admit(priority, 1);
                self.model.bare_seen = true;
                assert_eq!(got, expected.map(|_| ()));
                self.model.over_bare += u64::from(expected == Ok(true));
                self.entered += u32::from(expected.is_ok());
            }
            Op::Exit(outcome) => self.exit(outcome),
            Op::SetLimit(limit) => {
                self.gate.set_limit(limit, None).unwrap();
                self.model.limit = limit;
                self.model.generation += 1;
            }
            Op::SetThresholds(set) => {
                let thresholds = Priority::ALL.into_iter().zip(set).fold(
                    Thresholds::default(),
                    |thresholds, (priority, threshold)| match threshold {
                        Some(threshold) => thresholds.with(priority, threshold),
                        None => thresholds,
                    },
                );
                self.gate.set_thresholds(thresholds).unwrap();
                self.model.set = set;
                self.model.generation += 1;
            }
            Op::SetRisingThresholds => {
                let rising = Thresholds::default()
                    .with(Priority::Critical, Threshold::Ppm(300_000))
                    .with(Priority::Sheddable, Threshold::Ppm(300_001));
                assert!(self.gate.set_thresholds(rising).is_err());
            }
            Op::SetEnforce(enforce) => {
                self.gate.set_enforce(enforce);
                self.model.dry_run = !enforce;
                self.model.generation += 1;
            }
            Op::Close => {
                self.gate.close();
                self.closed();
            }
            Op::Drain => {
                assert_eq!(self.gate.drain(Some(Duration::ZERO)), self.model.is_empty());
                self.closed();
            }
            Op::OnDrained => {
                let told = Arc::clone(&self.told_of_end);
                self.gate.on_drained(Box::new(move || {
                    told.fetch_add(1, Ordering::Relaxed);
                }));
                self.asked_for_end += 1;
                self.closed();
            }
            Op::RetryAfter(priority, weight) => self.retry_after(priority, weight),
            Op::Wait(micros) => {
                self.clock.advance(micros * 1_000);
                let grown = u64::from(self.model.in_flight).wrapping_mul(micros);
                self.model.occupancy = self.model.occupancy.wrapping_add(grown);
            }
        }
    }

    fn admit(&mut self, priority: Option<Priority>, weight: u32, kind: Kind) {
        let ask = Ask::from(priority).weight(Weight::new(weight).unwrap());
        let before = self.model.clone();
        let expected = self.model.admit(priority, weight);
        let got = match kind {
            Kind::Borrowed => self.gate.try_admit(ask).map(Held::Borrowed),
            Kind::Owned => self.gate.try_admit_owned(ask).map(Held::Owned),
            Kind::Ticket => self.gate.take(ask).map(Held::Ticket),
        };
        match (got, expected) {
            (Ok(held), Ok(over)) => {
                let ticket = held.ticket();
                assert_eq!((ticket.over(), ticket.weight()), (over, weight));
                assert_eq!(ticket.priority(), priority.unwrap_or_default());
                self.model.over_permits += u64::from(over);
                self.held.push(held);
            }
            (Err(shed), Err(reason)) => {
                let priority = priority.unwrap_or_default();
                let Model { in_flight, limit, .. } = before;
                assert_eq!(shed, Shed { reason, priority, weight, in_flight, limit });
            }
            (got, expected) => panic!("admitted {}, expected {expected:?}", got.is_ok()),
        }
    }

    fn release(&mut self, which: usize, put: impl FnOnce(&Gate, Held<'a>) -> (Outcome, u64)) {
        if self.held.is_empty() {
            return;
        }
        let held = self.held.swap_remove(which % self.held.len());
        let ticket = held.ticket();
        let (outcome, collected) = put(self.gate, held);
        self.model.put(&ticket, outcome);
        self.model.collected += collected;
    }

    fn exit(&mut self, outcome: Outcome) {
        let before = self.gate.stats().over_in_flight;
        let matched = self.gate.exit(outcome);
        let drew = self.gate.stats().over_in_flight < before;
        assert_eq!(matched, self.model.exit(outcome, drew));
        self.entered = self.entered.saturating_sub(1);
    }

    fn closed(&mut self) {
        self.model.generation += u32::from(!self.model.closed);
        self.model.closed = true;
    }

    fn retry_after(&self, priority: Priority, weight: u32) {
        let answer = self.gate.retry_after(Ask::from(priority).weight(Weight::new(weight).unwrap()));
        // Dry run admits whatever it is asked.
        let open = self.model.dry_run && !self.model.closed;
        let never = !open && (self.model.closed || weight > self.model.threshold(priority));
        assert_eq!(answer == RetryAfter::Never, never, "{answer:?}");
        let now = open || !never && self.model.fits(priority, weight);
        assert_eq!(answer == RetryAfter::Known(Duration::ZERO), now, "{answer:?}");
    }

    fn check(&self) {
        assert_eq!(Model::of(self.gate, &self.model), self.model);
        assert_eq!(self.gate.thresholds(), Priority::ALL.map(|priority| self.model.threshold(priority)));
        assert_eq!(self.gate.stats().over_in_flight, self.model.over_permits + self.model.over_bare);
        let ended = self.model.closed && self.model.is_empty();
        let told = self.told_of_end.load(Ordering::Relaxed);
        assert_eq!(told, if ended { self.asked_for_end } else { 0 }, "callbacks of a drained gate");
    }

    /// Everybody leaves; then the gate is empty, and exactly its limit fits in.
    fn come_to_rest(&mut self) {
        while !self.held.is_empty() {
            self.apply(&Op::Drop(0));
            self.check();
        }
        while self.entered > 0 {
            self.apply(&Op::Exit(Outcome::Success));
            self.check();
        }
        assert!(self.model.is_empty(), "at rest: {:?}", self.model);
        if self.model.closed {
            return;
        }
        let limit = self.model.limit.min(20);
        self.apply(&Op::SetEnforce(true));
        self.apply(&Op::SetLimit(limit));
        for _ in 0..limit {
            self.held.push(Held::Borrowed(self.gate.try_admit(Priority::CriticalPlus).unwrap()));
        }
        assert_eq!(self.gate.try_admit(Priority::CriticalPlus).unwrap_err().reason, Reason::Limit);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_gate_is_its_model(limit in limit(), ops in life()) {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let gate = Gate::builder("model", limit).timing(true).clock(clock.clone()).build().unwrap();
        let mut pair = Pair {
            gate: &gate,
            clock: &clock,
            model: Model { limit, ..Model::default() },
            held: Vec::new(),
            entered: 0,
            asked_for_end: 0,
            told_of_end: Arc::default(),
        };
        for op in &ops {
            pair.apply(op);
            pair.check();
        }
        pair.come_to_rest();
    }
}
