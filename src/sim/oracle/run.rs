//! An oracle's system, simulated: the engine with the real gate, until the error is small enough.
//!
//! What came and what was turned away is read from the gate's own counters. A run goes on until its error is
//! what was aimed at or its budget is used up. Times are stretched so that arrivals lie well within nanoseconds
//! and centuries: only rates relative to each other matter.

use std::time::Duration;

use serde::Serialize;

use super::estimate::{Batch, Estimate, estimate};
use super::fault::OracleError;
use super::plan::Plan;
use super::service::Service;
use super::system::Oracle;
use crate::priority::{Priority, Threshold, Thresholds};
use crate::sim::engine::Engine;
use crate::sim::rules::nanos;
use crate::sim::{Arrivals, Class, Scenario, ScenarioError, Sizes};
use crate::{Gate, GateBuilder, Reason};

/// How an oracle is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The relative standard error to aim at. Four times as much is good enough below a share of 0.005, and not
    /// even that is promised for shares so small that it would take too long.
    pub aim: f64,
    /// The most arrivals that it may take: fewer where hundreds are inside, who cost more time.
    pub most: u64,
    /// Whether the gate sheds, or only counts what it would have shed.
    pub entry: Entry,
}

impl Default for Effort {
    /// Enough to see that a share is 5 % off: three standard errors.
    fn default() -> Self {
        Self { aim: 0.05 / 3.0, most: 60_000_000, entry: Entry::Enforced }
    }
}

/// What the gate does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entry {
    /// It sheds.
    #[default]
    Enforced,
    /// Dry run, with permits.
    DryRun,
    /// Dry run, with bare entries, whose exits cannot tell whom enforcement would have shed: exact for
    /// exponential service.
    BareDryRun,
}

/// What theory and simulation say of the share that is shed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Exactly.
    pub expected: Shares,
    /// By the real gate.
    pub simulated: Shares,
    /// The standard error of that.
    pub stderr: Shares,
    /// Arrivals after the warm-up.
    pub n: u64,
    /// Where the error is larger than was aimed at: why.
    #[serde(skip)]
    pub note: Option<String>,
}

/// One share, or one for each priority, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Shares {
    /// Of all.
    All(f64),
    /// Of each priority.
    Each([f64; 4]),
}

impl Shares {
    /// As many as there are.
    #[must_use]
    pub fn as_slice(&self) -> &[f64] {
        match self {
            Self::All(share) => std::slice::from_ref(share),
            Self::Each(shares) => shares,
        }
    }
}

/// The largest budget.
const MOST: u64 = 400_000_000;
/// The largest load of a dry run, which lets everybody in.
const MOST_INSIDE: f64 = 1e6;
/// Arrivals between two questions whether to go on.
const SLICE: f64 = 200_000.0;
/// The seconds between two arrivals, at least and at most. A visitor stays for a nanosecond.
const CLOSEST: f64 = 1e-3;
const FARTHEST: f64 = 10.0;
/// How much work a visitor is.
const VISIT: f64 = 1e-12;
/// Whoever offers less than this share of all is left to the visitors.
const NOBODY: f64 = 1e-9;

impl Oracle {
    /// Simulates it with the real gate and compares. `go_on` is asked now and then; where it says no, the answer
    /// is `None`.
    ///
    /// # Errors
    /// [`OracleError`] where the theory is not exact for this service or this entry.
    pub fn simulate(
        &self,
        service: Service,
        seed: u64,
        effort: &Effort,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Comparison>, OracleError> {
        self.check_exact(service, effort.entry)?;
        #[allow(clippy::cast_precision_loss)] // a budget
        let most = effort.most.min(MOST) as f64;
        let plan = Plan::new(self, service, effort.aim, most);
        let (scenario, unit) = scenario(self, &plan, service, effort);
        let mut driver = Driver::new(&scenario, unit, seed, &plan).expect(IN_RANGE);
        if !driver.pass(plan.warm_up, go_on) {
            return Ok(None);
        }
        let mut batches: Vec<[Batch; 4]> = Vec::with_capacity(plan.batches);
        let mut planned = plan.batches;
        loop {
            while batches.len() < planned {
                let before = driver.counts();
                if !driver.pass(plan.batch, go_on) {
                    return Ok(None);
                }
                batches.push(driver.since(before));
            }
            let estimates = self.estimates(&plan, &batches);
            let missed = self.asked().any(|level| estimates[level].error > plan.targets[level]);
            planned += plan.batches;
            let time = plan.warm_up + plan.batch * small(planned);
            if !missed || plan.cut || time > plan.budget {
                return Ok(Some(self.comparison(&plan, &estimates, missed || plan.cut)));
            }
        }
    }

    fn check_exact(&self, service: Service, entry: Entry) -> Result<(), OracleError> {
        let refused = |name, rule: &str, got: &str| {
            Err(OracleError { name, rule: rule.to_owned(), got: got.to_owned() })
        };
        if self.by_priority() && service != Service::Exponential {
            return refused(
                "service",
                "exponential with thresholds, which are exact for no other",
                service.name(),
            );
        }
        if entry == Entry::BareDryRun && service != Service::Exponential {
            return refused(
                "service",
                "exponential with bare entries, which are exact for no other",
                service.name(),
            );
        }
        if entry != Entry::Enforced && self.slows_down() {
            return refused(
                "a dry run's oracle",
                "one that does not slow down: whoever is let in beyond the limit slows the others",
                "degrading",
            );
        }
        let inside: f64 = self.offered.iter().sum();
        if entry != Entry::Enforced && inside > MOST_INSIDE {
            return refused(
                "a dry run's load",
                &format!("at most {MOST_INSIDE:e}, as it lets everybody in"),
                &inside.to_string(),
            );
        }
        Ok(())
    }

    fn estimates(&self, plan: &Plan, batches: &[[Batch; 4]]) -> [Estimate; 4] {
        std::array::from_fn(|level| {
            let of_level: Vec<Batch> = batches.iter().map(|batch| batch[level]).collect();
            estimate(&of_level, plan.bursts[level])
        })
    }

    fn comparison(&self, plan: &Plan, estimates: &[Estimate; 4], short: bool) -> Comparison {
        let shares = |of: &dyn Fn(usize) -> f64| {
            if self.by_priority() { Shares::Each(std::array::from_fn(of)) } else { Shares::All(of(1)) }
        };
        Comparison {
            expected: shares(&|level| plan.expected[level]),
            simulated: shares(&|level| estimates[level].share),
            stderr: shares(&|level| estimates[level].error),
            n: estimates.iter().map(|estimate| estimate.arrivals).sum(),
            note: short.then(|| {
                format!(
                    "the run was ended by its budget of {:.0} arrivals: with these numbers the past is felt for so \
                     long that the standard error is larger, and less certain, than was aimed at",
                    plan.budget * plan.rate()
                )
            }),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // few
fn small(count: usize) -> f64 {
    count as f64
}

/// Why the engine takes what it is given: no number leaves its range, and a gate bounds those inside.
const IN_RANGE: &str = "an oracle's numbers are within the engine's";

/// A run of the engine, taken in steps.
struct Driver<'s> {
    engine: Engine<'s>,
    /// Seconds of the run in a unit of the oracle's time.
    unit: f64,
    /// Units between two questions.
    slice: f64,
    now: f64,
}

/// The system as the engine takes it, and the seconds in a unit of the oracle's time.
fn scenario(oracle: &Oracle, plan: &Plan, service: Service, effort: &Effort) -> (Scenario, f64) {
    let rate = plan.rate();
    let unit = (1.0 / rate).clamp(CLOSEST, FARTHEST) * rate;
    let sizes = match service {
        Service::Exponential => Sizes::Exponential,
        Service::Deterministic => Sizes::Deterministic,
        Service::Lognormal => Sizes::Lognormal { cv: service.variation() },
        Service::Hyperexponential => Sizes::Hyperexponential { cv: service.variation() },
    };
    // Far beyond these ends nobody leaves, or everybody at once.
    let lambda = (oracle.speed.lambda / unit).clamp(1e-12, 1e12);
    #[allow(clippy::cast_precision_loss)] // a budget
    let most = Duration::from_secs_f64(effort.most.min(MOST) as f64 / rate * unit + 1.0);
    let mut arrivals = Arrivals::poisson(rate / unit, most);
    arrivals.mix = mix(plan);
    let database = crate::sim::Service::shared(lambda, oracle.speed.sigma, oracle.speed.kappa);
    let mut scenario = Scenario::new("oracle", arrivals, database.sizes(sizes));
    scenario.interval = most;
    scenario.gate = Some(gate(oracle).enforce(effort.entry == Entry::Enforced));
    scenario.bare_entries = effort.entry == Entry::BareDryRun;
    (scenario, unit)
}

impl<'s> Driver<'s> {
    fn new(scenario: &'s Scenario, unit: f64, seed: u64, plan: &Plan) -> Result<Self, ScenarioError> {
        scenario.check()?;
        Ok(Self { engine: Engine::new(scenario, seed)?, unit, slice: SLICE / plan.rate(), now: 0.0 })
    }

    /// Lets `time` pass; whether it did.
    fn pass(&mut self, time: f64, go_on: &mut dyn FnMut() -> bool) -> bool {
        let end = self.now + time;
        while self.now < end {
            if !go_on() {
                return false;
            }
            self.now = (self.now + self.slice).min(end);
            self.engine.until(nanos(Duration::from_secs_f64(self.now * self.unit))).expect(IN_RANGE);
        }
        true
    }

    fn counts(&self) -> [Batch; 4] {
        let stats = self.engine.gate().expect("the scenario has one").stats();
        Priority::ALL.map(|priority| {
            let turned_away: u64 = Reason::ALL.iter().map(|&reason| stats.shed(priority, reason)).sum();
            let shed = turned_away + stats.would_shed(priority);
            Batch { arrivals: stats.admitted(priority) + shed, shed }
        })
    }

    fn since(&self, before: [Batch; 4]) -> [Batch; 4] {
        let mut batches = self.counts();
        for (batch, before) in batches.iter_mut().zip(before) {
            batch.arrivals -= before.arrivals;
            batch.shed -= before.shed;
        }
        batches
    }
}

/// The gate with exactly these thresholds: as reserves, which no rounding touches.
fn gate(oracle: &Oracle) -> GateBuilder {
    let mut thresholds = Thresholds::default();
    for (priority, threshold) in Priority::ALL.into_iter().zip(oracle.thresholds) {
        thresholds = thresholds.with(priority, Threshold::Reserve(oracle.limit - threshold));
    }
    Gate::builder("oracle", oracle.limit).thresholds(thresholds)
}

/// Who comes: work of each priority, and visitors.
fn mix(plan: &Plan) -> Vec<Class> {
    let total: f64 = plan.offered.iter().sum();
    let of = |rates: [f64; 4], size: f64| {
        let classes = Priority::ALL.into_iter().zip(rates).filter(move |&(_, rate)| rate > NOBODY * total);
        classes.map(move |(priority, rate)| Class {
            priority,
            share: rate / (total + 1.0),
            size,
            ..Class::default()
        })
    };
    of(plan.offered, 1.0).chain(of(plan.visits, VISIT)).collect()
}
