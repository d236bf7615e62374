//! An oracle's system, simulated: the engine with the real gate, until the error is small enough.
//!
//! What came and what was turned away is read from the gate's own counters. A run goes on until its error is
//! what was aimed at or its budget is used up. Times are stretched so that arrivals lie well within nanoseconds
//! and centuries: only rates relative to each other matter.

use std::time::Duration;

use serde::Serialize;

use super::estimate::{Batch, Estimate, estimate};
use super::fault::OracleError;
use super::plan::{Plan, RARE, RARE_FACTOR};
use super::service::Service;
use super::system::{MAX_AMOUNT, Oracle};
use crate::gate::Gate;
use crate::priority::{Priority, Threshold, Thresholds};
use crate::sim::{Arrivals, Class, Run, Scenario, ScenarioError, Sizes};
use crate::{GateBuilder, Reason};

/// How an oracle is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The relative standard error to aim at. Four times as much is good enough below a share of 0.005, and not
    /// even that is promised for shares so small that it would take too long.
    pub aim: f64,
    /// The most arrivals that it may take.
    pub most: u64,
    /// Whether the gate sheds, or only counts what it would have shed.
    pub entry: Entry,
}

impl Default for Effort {
    /// Enough to see that a share is 5 % off: three standard errors.
    fn default() -> Self {
        Self { aim: 0.05 / 3.0, most: 40_000_000, entry: Entry::Enforced }
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

/// A run whose error is this much larger than was aimed at goes on: errors are uncertain themselves.
const TOLERANCE: f64 = 1.0;
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
        let most = effort.most as f64;
        let plan = Plan::new(self, service, effort.aim, most);
        let mut driver = Driver::new(self, &plan, service, seed, effort).expect("numbers within their ranges");
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
            let missed = self.asked().any(|level| missed(plan.expected[level], estimates[level].error, effort.aim));
            planned += plan.batches;
            let time = plan.warm_up + plan.batch * small(planned);
            if !missed || plan.cut || time * plan.rate() > most {
                return Ok(Some(self.comparison(&plan, &estimates, missed.then_some(most))));
            }
        }
    }

    fn check_exact(&self, service: Service, entry: Entry) -> Result<(), OracleError> {
        let refused = |name, rule: &str, got: &str| {
            Err(OracleError { name, rule: rule.to_owned(), got: got.to_owned() })
        };
        if self.by_priority() && service != Service::Exponential {
            return refused("service", "exponential with thresholds, which are exact for no other", service.name());
        }
        if entry == Entry::BareDryRun && service != Service::Exponential {
            return refused("service", "exponential with bare entries, which are exact for no other", service.name());
        }
        if entry != Entry::Enforced && self.slows_down() {
            return refused("a dry run's oracle", "one that does not slow down: whoever is let in beyond the limit slows the others", "degrading");
        }
        Ok(())
    }

    fn estimates(&self, plan: &Plan, batches: &[[Batch; 4]]) -> [Estimate; 4] {
        std::array::from_fn(|level| {
            let of_level: Vec<Batch> = batches.iter().map(|batch| batch[level]).collect();
            estimate(&of_level, plan.bursts[level])
        })
    }

    fn comparison(&self, plan: &Plan, estimates: &[Estimate; 4], short_of: Option<f64>) -> Comparison {
        let shares = |of: &dyn Fn(usize) -> f64| {
            if self.by_priority() { Shares::Each(std::array::from_fn(of)) } else { Shares::All(of(1)) }
        };
        Comparison {
            expected: shares(&|level| plan.expected[level]),
            simulated: shares(&|level| estimates[level].share),
            stderr: shares(&|level| estimates[level].error),
            n: estimates.iter().map(|estimate| estimate.arrivals).sum(),
            note: short_of.map(|most| {
                format!(
                    "the run was ended after its budget of {most:e} arrivals: with these numbers the past is felt \
                     for so long that the standard error is still larger than was aimed at"
                )
            }),
        }
    }
}

/// Whether the error is larger than was aimed at.
fn missed(expected: f64, error: f64, aim: f64) -> bool {
    // What is rarer is as exact as it could be in the time.
    expected >= RARE && error > TOLERANCE * aim * expected
}

#[allow(clippy::cast_precision_loss)] // few
fn small(count: usize) -> f64 {
    count as f64
}

/// A run of the engine, taken in steps.
struct Driver {
    run: Run,
    gate: Gate,
    /// Seconds of the run in a unit of the oracle's time.
    unit: f64,
    /// Units between two questions.
    slice: f64,
    now: f64,
}

impl Driver {
    fn new(oracle: &Oracle, plan: &Plan, service: Service, seed: u64, effort: &Effort) -> Result<Self, ScenarioError> {
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
        let most = Duration::from_secs_f64(effort.most as f64 / rate * unit + 1.0);
        let mut arrivals = Arrivals::poisson(rate / unit, most);
        arrivals.mix = mix(plan);
        let database = crate::sim::Service::shared(lambda, oracle.speed.sigma, oracle.speed.kappa);
        let mut scenario = Scenario::new("oracle", arrivals, database.sizes(sizes));
        scenario.interval = most;
        scenario.gate = Some(gate(oracle).enforce(effort.entry == Entry::Enforced));
        scenario.bare_entries = effort.entry == Entry::BareDryRun;
        let run = scenario.start(seed)?;
        let gate = run.gate().expect("the scenario has one").clone();
        Ok(Self { run, gate, unit, slice: SLICE / rate, now: 0.0 })
    }

    /// Lets `time` pass; whether it did.
    fn pass(&mut self, time: f64, go_on: &mut dyn FnMut() -> bool) -> bool {
        let end = self.now + time;
        while self.now < end {
            if !go_on() {
                return false;
            }
            self.now = (self.now + self.slice).min(end);
            self.run.until(Duration::from_secs_f64(self.now * self.unit));
        }
        true
    }

    fn counts(&self) -> [Batch; 4] {
        let stats = self.gate.stats();
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
        classes.map(move |(priority, rate)| Class { priority, share: rate / (total + 1.0), size, ..Class::default() })
    };
    of(plan.offered, 1.0).chain(of(plan.visits, VISIT)).collect()
}
