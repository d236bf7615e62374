//! A target in virtual time: the steps of a capacity test, taken by the simulator and the real gate.

use std::time::Duration;

use super::step::{End, Measured, Phase, Step};
use super::watch::{Alarm, Glance, Watch};
use crate::Gate;
use crate::sim::trial::{Trial, trial};
use crate::sim::{Arrivals, Clients, Scenario, ScenarioError, Service};

/// How often is looked at a stage within one timeout.
const LOOKS: f64 = 60.0;
/// How many times what one alone does is offered for each that is to be kept inside, in a closed loop.
const PRESSURE: f64 = 20.0;

/// A target in virtual time. Each step begins with an empty system.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// What serves.
    pub service: Service,
    /// How long clients wait, in seconds. Their work goes on without them.
    pub timeout: f64,
}

impl Simulated {
    /// Takes a step. The same step and seed see the same.
    ///
    /// # Errors
    /// [`ScenarioError`] where the service, the timeout or the step is nothing that the simulator runs.
    pub fn run(&self, step: &Step, seed: u64) -> Result<Measured, ScenarioError> {
        self.run_while(step, seed, &mut || true).map(|seen| seen.expect("it was to go on"))
    }

    /// As [`run`](Self::run), asking now and then whether to go on: `None` where the answer was no.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_while(
        &self,
        step: &Step,
        seed: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Measured>, ScenarioError> {
        let look = self.timeout / LOOKS;
        let warm_up = (step.warm_up / look).ceil() * look;
        let rate =
            step.rate.unwrap_or_else(|| PRESSURE * self.service.lambda * f64::from(step.limit.unwrap_or(1)));
        let length = time("seconds", warm_up + step.seconds)?;
        let mut scenario = Scenario::new("a step", Arrivals::poisson(rate, length), self.service.clone());
        scenario.interval = time("timeout", look)?;
        scenario.clients = Clients::patient_for(time("timeout", self.timeout)?);
        scenario.gate = step.limit.map(|limit| Gate::builder("db", limit));
        scenario.check()?;
        let watched = (step.phase == Phase::Ramp).then(|| Watch::new(self.timeout)).transpose();
        let mut watch = watched.map_err(|fault| ScenarioError::new("timeout", fault.to_string()))?;
        let (mut alarm, mut stopped) = (None, false);
        let found = trial(&scenario, mixed(seed, step.number), time("warm_up", warm_up)?, &mut |so_far| {
            let Trial { totals, .. } = so_far;
            let glance = Glance {
                at: so_far.seconds,
                offered: totals.offered,
                good: totals.good,
                late: totals.late,
                failed: 0,
                in_flight: so_far.inside,
            };
            alarm = watch.as_mut().and_then(|watch| watch.see(glance));
            stopped = !go_on();
            alarm.is_none() && !stopped
        })?;
        if stopped {
            return Ok(None);
        }
        let end = match alarm {
            None => End::Held,
            Some(Alarm::Backlog(_)) => End::Aborted,
            Some(Alarm::Bad(..)) => End::Collapsed,
        };
        Ok(Some(Measured {
            seconds: found.seconds,
            offered: found.totals.offered,
            shed: found.totals.shed(),
            good: found.totals.good,
            late: found.totals.late,
            failed: 0,
            in_flight: found.in_flight,
            latencies: found.latencies,
            end,
        }))
    }
}

fn time(key: &str, seconds: f64) -> Result<Duration, ScenarioError> {
    Duration::try_from_secs_f64(seconds).map_err(|fault| ScenarioError::new(key, fault.to_string()))
}

/// A seed for each step, as different as can be: the finalizer of `SplitMix64` (Steele, Lea and Flood, 2014).
fn mixed(seed: u64, number: usize) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number as u64;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
