//! Random operations on a gate, beside a model of it that is written with plain numbers and one operation
//! at a time. Proptest prints the shortest sequence that fails and the seed that made it.

#![allow(clippy::cast_possible_truncation)] // the numbers of a test are small

use proptest::prelude::*;
use tidegate::{Ask, Gate, Outcome, Priority, Reason, Threshold, Thresholds, Ticket, Weight};

#[derive(Clone, Debug)]
enum Op {
    Admit(Priority, u32),
    Release(prop::sample::Index, Outcome),
    Enter,
    Exit(Outcome),
    Limit(u32),
    Shares([u32; 3]),
    Enforce(bool),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    let priority = prop::sample::select(Priority::ALL.to_vec());
    let outcome = prop::sample::select(Outcome::ALL.to_vec());
    let share = 0_u32..=10;
    prop_oneof![
        8 => (priority, 1_u32..=5).prop_map(|(priority, weight)| Op::Admit(priority, weight)),
        6 => (any::<prop::sample::Index>(), outcome.clone()).prop_map(|(which, outcome)| Op::Release(which, outcome)),
        3 => Just(Op::Enter),
        3 => outcome.prop_map(Op::Exit),
        2 => (0_u32..=12).prop_map(Op::Limit),
        1 => [share.clone(), share.clone(), share].prop_map(|mut shares| {
            shares.sort_unstable_by(|a, b| b.cmp(a));
            Op::Shares(shares)
        }),
        1 => any::<bool>().prop_map(Op::Enforce),
        1 => prop::bool::weighted(0.05).prop_map(|close| if close { Op::Close } else { Op::Enter }),
    ]
}

/// What a gate should be, one operation at a time.
struct Model {
    limit: u32,
    /// Tenths of the limit, by priority.
    shares: [u32; 4],
    enforce: bool,
    closed: bool,
    in_flight: u32,
    high_water: u32,
    bare: u32,
    admitted: [u64; 4],
    shed: [[u64; 7]; 4],
    would_shed: [u64; 4],
    released: [u64; 3],
}

impl Model {
    fn threshold(&self, priority: Priority) -> u32 {
        // The defaults are not in tenths.
        match (priority, self.shares[priority.level()]) {
            (Priority::Sheddable, 75) => (self.limit * 3).div_ceil(4),
            (_, tenths) => (self.limit * tenths).div_ceil(10),
        }
    }

    /// The reason against it, if there is one.
    fn refusal(&self, priority: Priority, weight: u32) -> Option<Reason> {
        let wanted = self.in_flight + weight;
        if self.closed {
            Some(Reason::Closed)
        } else if wanted > self.limit {
            Some(Reason::Limit)
        } else if wanted > self.threshold(priority) {
            Some(Reason::Priority)
        } else {
            None
        }
    }

    fn admit(&mut self, priority: Priority, weight: u32) {
        self.in_flight += weight;
        self.high_water = self.high_water.max(self.in_flight);
        self.admitted[priority.level()] += 1;
    }

    fn release(&mut self, weight: u32, outcome: Outcome) {
        self.in_flight -= weight;
        self.released[outcome as usize] += 1;
    }
}

fn check(limit: u32, ops: &[Op]) -> Result<(), TestCaseError> {
    let gate = Gate::new("model", limit).unwrap();
    let mut model = Model {
        limit,
        shares: [10, 10, 9, 75],
        enforce: true,
        closed: false,
        in_flight: 0,
        high_water: 0,
        bare: 0,
        admitted: [0; 4],
        shed: [[0; 7]; 4],
        would_shed: [0; 4],
        released: [0; 3],
    };
    let mut held: Vec<Ticket> = Vec::new();
    for op in ops {
        step(&gate, &mut model, &mut held, op)?;
        let stats = gate.stats();
        prop_assert_eq!((stats.in_flight, stats.high_water), (model.in_flight, model.high_water), "{:?}", op);
        for priority in Priority::ALL {
            let level = priority.level();
            prop_assert_eq!(stats.admitted(priority), model.admitted[level]);
            prop_assert_eq!(stats.would_shed(priority), model.would_shed[level]);
            prop_assert_eq!(Reason::ALL.map(|reason| stats.shed(priority, reason)), model.shed[level]);
        }
        prop_assert_eq!(Outcome::ALL.map(|outcome| stats.released(outcome)), model.released);
        prop_assert_eq!(stats.over_in_flight, held.iter().filter(|ticket| ticket.over()).count() as u64);
    }
    for ticket in held {
        gate.put(ticket, Outcome::Success);
    }
    for _ in 0..model.bare {
        prop_assert!(gate.exit(Outcome::Success));
    }
    prop_assert!(!gate.exit(Outcome::Success));
    let stats = gate.stats();
    prop_assert_eq!((stats.in_flight, stats.over_in_flight, stats.unmatched_exits), (0, 0, 1));
    gate.set_enforce(true);
    let room = if model.closed { 0 } else { model.threshold(Priority::Critical) };
    let admitted = (0..20).filter(|_| gate.take(Priority::Critical).is_ok()).count();
    prop_assert_eq!(admitted, room as usize);
    Ok(())
}

fn step(gate: &Gate, model: &mut Model, held: &mut Vec<Ticket>, op: &Op) -> Result<(), TestCaseError> {
    match *op {
        Op::Admit(priority, weight) => {
            let refusal = model.refusal(priority, weight);
            match gate.take(Ask::from(priority).weight(Weight::new(weight).unwrap())) {
                Ok(ticket) => {
                    prop_assert_eq!(ticket.over(), refusal.is_some());
                    prop_assert_eq!((ticket.priority(), ticket.weight()), (priority, weight));
                    match refusal {
                        None => model.admit(priority, weight),
                        Some(_) => model.would_shed[priority.level()] += 1,
                    }
                    held.push(ticket);
                }
                Err(shed) => {
                    prop_assert_eq!(Some(shed.reason), refusal);
                    prop_assert!(model.enforce || model.closed, "dry run sheds nothing");
                    prop_assert_eq!((shed.in_flight, shed.limit), (model.in_flight, model.limit));
                    model.shed[priority.level()][shed.reason as usize] += 1;
                }
            }
        }
        Op::Release(ref which, outcome) if !held.is_empty() => {
            let ticket = held.swap_remove(which.index(held.len()));
            gate.put(ticket, outcome);
            if !ticket.over() {
                model.release(ticket.weight(), outcome);
            }
        }
        Op::Enter if model.enforce => {
            let refusal = model.refusal(Priority::Critical, 1);
            prop_assert_eq!(gate.enter(None).err().map(|shed| shed.reason), refusal);
            match refusal {
                None => {
                    model.admit(Priority::Critical, 1);
                    model.bare += 1;
                }
                Some(reason) => model.shed[Priority::Critical.level()][reason as usize] += 1,
            }
        }
        Op::Exit(outcome) if model.bare > 0 => {
            prop_assert!(gate.exit(outcome));
            model.release(1, outcome);
            model.bare -= 1;
        }
        // Nothing to release, or bare in dry run: those exits draw, so no model knows what they leave; the
        // vectors hold their sum.
        Op::Release(..) | Op::Enter | Op::Exit(_) => {}
        Op::Limit(limit) => {
            gate.set_limit(limit, None).unwrap();
            model.limit = limit;
        }
        Op::Shares(shares) => {
            let mut thresholds = Thresholds::default();
            for (priority, tenths) in Priority::ALL[1..].iter().zip(shares) {
                thresholds = thresholds.with(*priority, Threshold::Ppm(tenths * 100_000));
            }
            gate.set_thresholds(thresholds).unwrap();
            model.shares = [10, shares[0], shares[1], shares[2]];
        }
        Op::Enforce(enforce) => {
            gate.set_enforce(enforce);
            model.enforce = enforce;
        }
        Op::Close => {
            gate.close();
            model.closed = true;
        }
    }
    Ok(())
}

proptest! {
    // A failure prints its operations; a file of seeds in the tree would only rerun old ones.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_gate_does_what_its_model_does(limit in 0_u32..=12, ops in prop::collection::vec(op(), 1..80)) {
        check(limit, &ops)?;
    }
}
