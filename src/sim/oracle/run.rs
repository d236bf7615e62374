//! An oracle's system, simulated: the engine with the real gate, until the error is small enough.
//!
//! A run goes on until its error is what was aimed at, or its budget is used up.

use serde::Serialize;

use super::driver::{Driver, IN_RANGE, MOST, scenario};
use super::estimate::{Batch, Estimate, estimate};
use super::fault::OracleError;
use super::plan::Plan;
use super::service::Service;
use super::system::Oracle;

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

/// The largest load of a dry run, which lets everybody in.
const MOST_INSIDE: f64 = 1e6;

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
            let estimates = Self::estimates(&plan, &batches);
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

    fn estimates(plan: &Plan, batches: &[[Batch; 4]]) -> [Estimate; 4] {
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
