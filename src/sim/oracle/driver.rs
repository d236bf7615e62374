//! An oracle's system on the engine, taken in steps.
//!
//! What came and what was turned away is read from the gate's own counters. Times are stretched so that arrivals
//! lie well within nanoseconds and centuries: only rates relative to each other matter.

use std::time::Duration;

use super::estimate::Batch;
use super::plan::Plan;
use super::run::{Effort, Entry};
use super::service::Service;
use super::system::Oracle;
use crate::priority::{Priority, Threshold, Thresholds};
use crate::sim::engine::Engine;
use crate::sim::rules::nanos;
use crate::sim::{Arrivals, Class, Scenario, ScenarioError, Sizes};
use crate::{Gate, GateBuilder, Reason};

/// The largest budget: no run is longer than the engine takes.
pub(super) const MOST: u64 = 300_000_000;
/// Arrivals between two questions whether to go on.
const SLICE: f64 = 200_000.0;
/// The seconds between two arrivals, at least and at most. A visitor stays for a nanosecond.
const CLOSEST: f64 = 1e-3;
const FARTHEST: f64 = 10.0;
/// How much work a visitor is.
const VISIT: f64 = 1e-12;
/// Whoever offers less than this share of all is left to the visitors.
const NOBODY: f64 = 1e-9;

/// Why the engine takes what it is given: no number leaves its range, and a gate bounds those inside.
pub(super) const IN_RANGE: &str = "an oracle's numbers are within the engine's";

/// A run of the engine, taken in steps.
pub(super) struct Driver<'s> {
    engine: Engine<'s>,
    /// Seconds of the run in a unit of the oracle's time.
    unit: f64,
    /// Units between two questions.
    slice: f64,
    now: f64,
}

/// The system as the engine takes it, and the seconds in a unit of the oracle's time.
pub(super) fn scenario(oracle: &Oracle, plan: &Plan, service: Service, effort: &Effort) -> (Scenario, f64) {
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
    pub(super) fn new(
        scenario: &'s Scenario,
        unit: f64,
        seed: u64,
        plan: &Plan,
    ) -> Result<Self, ScenarioError> {
        scenario.check()?;
        Ok(Self { engine: Engine::new(scenario, seed)?, unit, slice: SLICE / plan.rate(), now: 0.0 })
    }

    /// Lets `time` pass; whether it did.
    pub(super) fn pass(&mut self, time: f64, go_on: &mut dyn FnMut() -> bool) -> bool {
        let end = self.now + time;
        while self.now < end {
            if !go_on() {
                return false;
            }
            self.now = (self.now + self.slice).min(end);
            let now_ns = nanos(Duration::from_secs_f64(self.now * self.unit));
            self.engine.until(now_ns, u64::MAX).expect(IN_RANGE);
        }
        true
    }

    pub(super) fn counts(&self) -> [Batch; 4] {
        let stats = self.engine.gate().expect("the scenario has one").stats();
        Priority::ALL.map(|priority| {
            let turned_away: u64 = Reason::ALL.iter().map(|&reason| stats.shed(priority, reason)).sum();
            let shed = turned_away + stats.would_shed(priority);
            Batch { arrivals: stats.admitted(priority) + shed, shed }
        })
    }

    pub(super) fn since(&self, before: [Batch; 4]) -> [Batch; 4] {
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
