//! The gate against exact queueing theory: Poisson arrivals on a manual clock, the real `Gate`.
//!
//! A gate that never waits is an Erlang loss system, so the share it sheds is known exactly, whatever the
//! service times are; with thresholds it is a birth-death chain, exact for exponential service. Every row
//! must lie within three standard errors, which are taken from batch means. Seeds are fixed, so the test
//! is deterministic; the standard errors are checked to be small enough to notice a fault.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)] // small numbers

mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use common::Rng;
use serde_json::Value;
use tidegate::{Gate, ManualClock, Outcome, Priority, Ticket};

const BATCHES: usize = 40;
const BATCH: usize = 12_000;
const WARM_UP: usize = 2_000;

#[derive(Clone, Copy, Debug)]
enum Service {
    Exponential,
    Deterministic,
    Lognormal,
}

impl Service {
    /// A service time with mean one.
    fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential => rng.exponential(),
            Self::Deterministic => 1.0,
            // cv 1.31: mu = -sigma^2 / 2 makes the mean one.
            Self::Lognormal => (rng.normal() - 0.5).exp(),
        }
    }
}

/// How a request is let in, and what has to be done when it leaves.
#[derive(Clone, Copy)]
enum Inside {
    Permit(Ticket),
    Bare,
}

/// Runs Poisson arrivals of the offered loads through a gate, and returns for each priority the mean
/// and the standard error of the share for which `refused` grew.
fn simulate(
    gate: &Gate,
    clock: &ManualClock,
    offered: [f64; 4],
    service: Service,
    bare: bool,
    refused: impl Fn(Priority) -> u64,
    seed: u64,
) -> [(f64, f64); 4] {
    let mut rng = Rng::new(seed);
    let total: f64 = offered.iter().sum();
    let (mut now, mut number) = (0.0, 0_u64);
    let mut leaving = BinaryHeap::new();
    let mut inside = std::collections::HashMap::new();
    let mut shares = vec![[0.0; 4]; BATCHES];
    let mut arrivals = [0_u64; 4];
    let mut before = Priority::ALL.map(&refused);
    for arrival in 0..WARM_UP + BATCHES * BATCH {
        now += rng.exponential() / total;
        while leaving.peek().is_some_and(|&Reverse((at, _))| f64::from_bits(at) <= now) {
            let Reverse((at, id)) = leaving.pop().expect("just peeked");
            clock.set(nanos(f64::from_bits(at)));
            match inside.remove(&id).expect("everybody inside leaves once") {
                Inside::Permit(ticket) => gate.put(ticket, Outcome::Success),
                Inside::Bare => assert!(gate.exit(Outcome::Success)),
            }
        }
        clock.set(nanos(now));
        let priority = pick(&mut rng, offered, total);
        arrivals[priority.level()] += 1;
        let admitted = if bare {
            gate.enter(Some(priority)).ok().map(|()| Inside::Bare)
        } else {
            gate.take(priority).ok().map(Inside::Permit)
        };
        if let Some(entry) = admitted {
            number += 1;
            inside.insert(number, entry);
            // Positive floats are ordered as their bits are.
            leaving.push(Reverse(((now + service.draw(&mut rng)).to_bits(), number)));
        }
        if arrival >= WARM_UP && (arrival - WARM_UP) % BATCH == BATCH - 1 {
            let batch = (arrival - WARM_UP) / BATCH;
            let after = Priority::ALL.map(&refused);
            for level in 0..4 {
                shares[batch][level] = (after[level] - before[level]) as f64 / arrivals[level].max(1) as f64;
            }
            before = after;
            arrivals = [0; 4];
        } else if arrival + 1 == WARM_UP {
            before = Priority::ALL.map(&refused);
            arrivals = [0; 4];
        }
    }
    std::array::from_fn(|level| {
        let batch: Vec<f64> = shares.iter().map(|share| share[level]).collect();
        common::mean_and_error(&batch)
    })
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn pick(rng: &mut Rng, offered: [f64; 4], total: f64) -> Priority {
    let mut at = rng.uniform() * total;
    for priority in Priority::ALL {
        at -= offered[priority.level()];
        if at < 0.0 {
            return priority;
        }
    }
    Priority::Sheddable
}

fn assert_within(what: &str, (mean, error): (f64, f64), expected: f64) {
    let off = (mean - expected).abs();
    assert!(off <= 3.0 * error, "{what}: {mean:.6} +- {error:.6}, exactly {expected:.6}");
    // Enough power: a tenth of the value would be noticed, where the value is not tiny.
    if expected >= 0.005 {
        assert!(3.0 * error <= 0.15 * expected, "{what}: a standard error of {error} sees nothing");
    }
}

fn rows(name: &str) -> Vec<Value> {
    let text = include_str!("../oracles/oracles.json");
    let oracles: Value = serde_json::from_str(text).expect("the table is JSON");
    oracles[name].as_array().expect("the table has these rows").clone()
}

fn built(limit: &Value, enforce: bool) -> (Gate, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(0));
    let limit = u32::try_from(limit.as_u64().expect("a whole number")).expect("a small one");
    let gate = Gate::builder("oracle", limit).enforce(enforce).clock(clock.clone()).build().unwrap();
    (gate, clock)
}

#[test]
fn sheds_as_erlang_b_says_whatever_the_service_times() {
    for (row, seed) in rows("erlang_b").iter().zip(1..) {
        for service in [Service::Exponential, Service::Deterministic, Service::Lognormal] {
            let (gate, clock) = built(&row["limit"], true);
            let offered = [0.0, row["offered"].as_f64().unwrap(), 0.0, 0.0];
            let shed = |priority| gate.stats().shed(priority, tidegate::Reason::Limit);
            let shares = simulate(&gate, &clock, offered, service, false, shed, seed);
            assert_within(
                &format!("{row}, {service:?}, seed {seed}"),
                shares[1],
                row["shed"].as_f64().unwrap(),
            );
        }
    }
}

#[test]
fn sheds_as_the_birth_death_chain_says_with_thresholds() {
    for (row, seed) in rows("thresholds").iter().zip(101..) {
        let (gate, clock) = built(&row["limit"], true);
        let numbers =
            |key: &str| -> [f64; 4] { std::array::from_fn(|level| row[key][level].as_f64().unwrap()) };
        let shed = |priority| {
            let stats = gate.stats();
            tidegate::Reason::ALL.iter().map(|&reason| stats.shed(priority, reason)).sum()
        };
        let service = Service::Exponential;
        let shares = simulate(&gate, &clock, numbers("offered"), service, false, shed, seed);
        for priority in Priority::ALL {
            let (mean, error) = shares[priority.level()];
            // A share of 10^-4 is a handful of sheds, of which the batches may show none: its error is
            // not less than one event among those of the priority.
            let offered = numbers("offered");
            let arrivals = (BATCHES * BATCH) as f64 * offered[priority.level()] / offered.iter().sum::<f64>();
            let error = error.max(1.0 / arrivals);
            assert_within(
                &format!("{row}, {priority}, seed {seed}"),
                (mean, error),
                numbers("shed")[priority.level()],
            );
        }
    }
}

/// Dry run sheds nothing, and what it would have shed is what enforcement sheds: counting everybody
/// inside instead would say 76 % where the truth is 30 %.
#[test]
fn dry_run_would_shed_as_erlang_b_says() {
    for (row, seed) in rows("erlang_b").iter().zip(201..) {
        let entries = [
            (Service::Exponential, false),
            (Service::Deterministic, false),
            (Service::Lognormal, false),
            (Service::Exponential, true), // bare exits draw: exact for this service alone
        ];
        for (service, bare) in entries {
            // Built so, or switched on live.
            let live = seed % 2 == 0;
            let (gate, clock) = built(&row["limit"], live);
            if live {
                gate.set_enforce(false);
            }
            let offered = [0.0, row["offered"].as_f64().unwrap(), 0.0, 0.0];
            let would = |priority| gate.stats().would_shed(priority);
            let shares = simulate(&gate, &clock, offered, service, bare, would, seed);
            assert_eq!(gate.stats().shed_total(), 0);
            assert_within(
                &format!("{row}, {service:?}, bare {bare}, seed {seed}"),
                shares[1],
                row["shed"].as_f64().unwrap(),
            );
        }
    }
}
