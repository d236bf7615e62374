//! The capacity test: its state machine, its watch and its simulated target. `tidegate.capacity.analysis` says what
//! they mean, and checks types.

use pyo3::prelude::*;
use tidegate::capacity::{self, CapacityError, End, Glance, Measured, Phase, Plan, Step};
use tidegate::sim::{Service, Sizes};

use crate::names::config_error_text;
use crate::simulate::{Signals, json};

/// number, phase, rate, limit, warm_up, seconds
type StepTuple = (usize, String, Option<f64>, Option<u32>, f64, f64);
/// seconds, offered, shed, good, late, failed, in_flight, latencies, end
type MeasuredTuple = (f64, u64, u64, u64, u64, u64, f64, Vec<f64>, String);

fn refused(py: Python<'_>, error: &CapacityError) -> PyErr {
    config_error_text(py, &error.to_string())
}

fn end(py: Python<'_>, name: &str) -> PyResult<End> {
    End::ALL.into_iter().find(|end| end.name() == name).ok_or_else(|| {
        let names = End::ALL.map(End::name).join(", ");
        config_error_text(py, &format!("end must be one of {names}, got {name:?}"))
    })
}

/// A capacity test under way.
#[pyclass(module = "tidegate._native")]
pub(crate) struct CapacitySearch {
    core: capacity::Search,
}

#[pymethods]
impl CapacitySearch {
    #[new]
    #[pyo3(signature = (
        *, timeout, stage, cell, warm_up, start_rate, rates, bisect, max_rate, max_limit, overload, width, essential,
        accept, before, prove, seed
    ))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // a dataclass, taken apart
    fn new(
        py: Python<'_>,
        timeout: f64,
        stage: Option<f64>,
        cell: Option<f64>,
        warm_up: Option<f64>,
        start_rate: Option<f64>,
        rates: Vec<f64>,
        bisect: bool,
        max_rate: Option<f64>,
        max_limit: u32,
        overload: f64,
        width: f64,
        essential: Option<f64>,
        accept: Option<f64>,
        before: bool,
        prove: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let mut plan = Plan::new(timeout);
        plan.stage = stage.unwrap_or(plan.stage);
        plan.cell = cell.unwrap_or(plan.cell);
        plan.warm_up = warm_up.unwrap_or(plan.warm_up);
        plan.start_rate = start_rate;
        plan.rates = rates;
        plan.bisect = bisect;
        plan.max_rate = max_rate;
        plan.max_limit = max_limit;
        plan.overload = overload;
        plan.width = width;
        plan.essential = essential;
        plan.accept = accept;
        plan.before = before;
        plan.prove = prove;
        plan.seed = seed;
        capacity::Search::new(plan).map(|core| Self { core }).map_err(|error| refused(py, &error))
    }

    fn next(&self) -> Option<StepTuple> {
        let Step { number, phase, rate, limit, warm_up, seconds, .. } = self.core.next_step()?;
        Some((number, phase.name().to_owned(), rate, limit, warm_up, seconds))
    }

    fn report(&mut self, py: Python<'_>, seen: MeasuredTuple) -> PyResult<()> {
        let (seconds, offered, shed, good, late, failed, in_flight, latencies, name) = seen;
        let end = end(py, &name)?;
        let seen = Measured { seconds, offered, shed, good, late, failed, in_flight, latencies, end };
        self.core.report(seen).map_err(|error| refused(py, &error))
    }

    fn outlook(&self) -> (usize, f64) {
        self.core.outlook()
    }

    /// As JSON.
    fn recommendation(&self, py: Python<'_>) -> PyResult<String> {
        let found = py.detach(|| self.core.recommendation());
        json(&found)
    }
}

/// Looks at one stage.
#[pyclass(module = "tidegate._native")]
pub(crate) struct CapacityWatch {
    core: capacity::Watch,
}

#[pymethods]
impl CapacityWatch {
    #[new]
    fn new(py: Python<'_>, timeout: f64) -> PyResult<Self> {
        capacity::Watch::new(timeout).map(|core| Self { core }).map_err(|error| refused(py, &error))
    }

    fn see(
        &mut self,
        at: f64,
        offered: u64,
        good: u64,
        late: u64,
        failed: u64,
        in_flight: u64,
    ) -> Option<(bool, String)> {
        let alarm = self.core.see(Glance { at, offered, good, late, failed, in_flight })?;
        Some((matches!(alarm, capacity::Alarm::Bad(..)), alarm.to_string()))
    }
}

/// A target in virtual time; rates are a second.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct CapacitySimulated {
    core: capacity::Simulated,
}

#[pymethods]
impl CapacitySimulated {
    #[new]
    fn new(
        py: Python<'_>,
        lambda: f64,
        sigma: f64,
        kappa: f64,
        service: &str,
        cv: f64,
        timeout: f64,
    ) -> PyResult<Self> {
        let sizes = match service {
            "exponential" => Sizes::Exponential,
            "deterministic" => Sizes::Deterministic,
            "lognormal" => Sizes::Lognormal { cv },
            "hyperexponential" => Sizes::Hyperexponential { cv },
            _ => {
                let names = "one of lognormal, exponential, deterministic, hyperexponential";
                return Err(config_error_text(py, &format!("service must be {names}, got {service:?}")));
            }
        };
        let service = Service::shared(lambda, sigma, kappa).sizes(sizes);
        Ok(Self { core: capacity::Simulated { service, timeout } })
    }

    fn run(&self, py: Python<'_>, step: StepTuple, seed: u64) -> PyResult<MeasuredTuple> {
        let (number, name, rate, limit, warm_up, seconds) = step;
        let phase = Phase::ALL.into_iter().find(|phase| phase.name() == name).unwrap_or(Phase::Ramp);
        let step = Step::new(number, phase, rate, limit, warm_up, seconds);
        let mut signals = Signals::new();
        let found = py.detach(|| self.core.run_while(&step, seed, &mut || signals.look()));
        let found = signals.raised(found.map_err(|error| config_error_text(py, &error.to_string()))?)?;
        let Measured { seconds, offered, shed, good, late, failed, in_flight, latencies, end } = found;
        Ok((seconds, offered, shed, good, late, failed, in_flight, latencies, end.name().to_owned()))
    }
}

/// The largest share that `events` of `of` leave possible.
#[pyfunction]
pub(crate) fn capacity_upper(events: u64, of: u64, confidence: f64) -> f64 {
    capacity::upper(events, of, confidence)
}

/// How many are needed for a bound below `share`, of whom `failures` may fail.
#[pyfunction]
pub(crate) fn capacity_sample_size(failures: u64, share: f64, confidence: f64) -> Option<u64> {
    capacity::sample_size(failures, share, confidence)
}

/// A configuration of the recommended gate.
#[pyfunction]
pub(crate) fn capacity_toml(
    gate: &str,
    limit: u32,
    objective: f64,
    sheddable: Option<f64>,
    why: &str,
) -> String {
    capacity::toml(gate, limit, objective, sheddable, why)
}
