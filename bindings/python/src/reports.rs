//! What a gate's controller and its signals are at, as Python values: readings, which do not change any more.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidegate::controller::Window as CoreWindow;
use tidegate::detector::{Cause, Transition as CoreTransition};
use tidegate::monitor::{PressureReport, SignalReport as CoreSignalReport};

use crate::stats::by_priority;

/// Nanoseconds on a gate's clock in seconds.
pub(crate) fn at(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// What a gate's controller is at: ``Gate.controller``.
#[pyclass(frozen, get_all, module = "tidegate")]
pub(crate) struct ControllerReport {
    /// Which one it is.
    kind: &'static str,
    /// The smallest limit.
    min: u32,
    /// The largest limit, the ceiling included.
    max: u32,
    /// Where it started, or was started again by ``set_limit``.
    prior: u32,
    /// In how many seconds an answer is good; None: every success is.
    objective: Option<f64>,
    /// The cause of its last decision: "hold", "probe", "raise", "lower" or "lost".
    cause: &'static str,
    /// How often it was asked.
    looks: u64,
    /// How often it moved the limit on evidence: what ``Gate.limit_history`` has of it.
    moves: u64,
    /// How often it moved the limit for an experiment, there and back.
    probes: u64,
    /// When it wants to be asked next, in seconds on the gate's monotonic clock.
    next_look: f64,
    /// When this was read, on the same clock.
    at: f64,
    /// What it was shown last.
    window: Py<Window>,
}

impl ControllerReport {
    pub(crate) fn new(py: Python<'_>, core: &tidegate::ControllerReport, now_ns: u64) -> PyResult<Self> {
        Ok(Self {
            kind: core.kind.as_str(),
            min: core.bounds.min(),
            max: core.bounds.max(),
            prior: core.bounds.prior(),
            objective: core.objective.map(|objective| objective.as_secs_f64()),
            cause: core.cause.as_str(),
            looks: core.looks,
            moves: core.moves,
            probes: core.probes,
            next_look: at(core.next_look_ns),
            at: at(now_ns),
            window: Py::new(py, Window::from(&core.window))?,
        })
    }
}

#[pymethods]
impl ControllerReport {
    fn __repr__(&self) -> String {
        let Self { kind, min, max, cause, moves, .. } = self;
        format!("<ControllerReport: {kind} within {min} to {max}, last {cause:?}, {moves} moves>")
    }
}

/// What happened at a gate between two looks of its controller. What ended with "ignore" is in none of it.
#[pyclass(frozen, get_all, module = "tidegate")]
pub(crate) struct Window {
    /// How long it was, in seconds.
    elapsed: f64,
    /// What ended with "success" or "overload".
    completions: u64,
    /// Of these, with "success" within the objective.
    good: u64,
    /// Of these, with "overload".
    overload: u64,
    /// For how long the completed were inside on average, in seconds; None where nothing was.
    mean_latency: Option<f64>,
    /// The time average of the weight in flight; None of no time.
    in_flight: Option<f64>,
    /// What was admitted.
    admissions: u64,
    /// What met a full gate.
    refusals: u64,
}

impl From<&CoreWindow> for Window {
    fn from(core: &CoreWindow) -> Self {
        let elapsed = at(core.elapsed_ns);
        #[allow(clippy::cast_precision_loss)] // a reading for people
        let count = core.completions as f64;
        Self {
            elapsed,
            completions: core.completions,
            good: core.good,
            overload: core.overload,
            mean_latency: (core.completions > 0).then(|| core.latency_sum / count),
            in_flight: (elapsed > 0.0).then(|| core.in_flight_seconds / elapsed),
            admissions: core.admissions,
            refusals: core.refusals,
        }
    }
}

#[pymethods]
impl Window {
    fn __repr__(&self) -> String {
        let Self { elapsed, completions, good, refusals, .. } = self;
        format!("<Window of {elapsed:.3} s: {completions} completed, {good} good, {refusals} refused>")
    }
}

/// What a gate's signals say, and what comes of it: ``Gate.pressure``.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Pressure {
    core: PressureReport,
}

impl From<PressureReport> for Pressure {
    fn from(core: PressureReport) -> Self {
        Self { core }
    }
}

#[pymethods]
impl Pressure {
    /// The pressure level, from 0 to 1: that of the worst signal.
    #[getter]
    fn level(&self) -> f64 {
        self.core.level
    }

    /// Which share of each priority is shed, from 0 to 1.
    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        by_priority(py, |priority| Ok(self.core.shares[priority.level()]))
    }

    /// Whether any signal is overloaded.
    #[getter]
    fn overloaded(&self) -> bool {
        self.core.overloaded
    }

    /// The signals, in the order in which they were given.
    #[getter]
    fn signals(&self) -> Vec<SignalReport> {
        self.core.signals.iter().map(SignalReport::from).collect()
    }

    /// The last changes of signals between overloaded and not, at most 64, oldest first.
    #[getter]
    fn transitions(&self) -> Vec<Transition> {
        self.core.transitions.iter().map(Transition::from).collect()
    }

    /// How many such changes there have been.
    #[getter]
    fn transition_count(&self) -> u64 {
        self.core.transition_count
    }

    fn __repr__(&self) -> String {
        let overloaded: Vec<_> =
            self.core.signals.iter().filter(|signal| signal.overloaded).map(|signal| &*signal.name).collect();
        let overloaded = if overloaded.is_empty() { "nothing".to_owned() } else { overloaded.join(", ") };
        format!("<Pressure: level {:.2}, {overloaded} overloaded>", self.core.level)
    }
}

/// One signal of a gate.
#[pyclass(frozen, get_all, module = "tidegate")]
pub(crate) struct SignalReport {
    /// What it is called.
    name: String,
    /// What it said at the last look, from 0 to 1; None: unknown.
    value: Option<f64>,
    /// Whether it is overloaded.
    overloaded: bool,
    /// Its own level, from 0 to 1.
    level: f64,
    /// Overloaded at this or above.
    enter: f64,
    /// Not any more at this or below.
    leave: f64,
    /// Its level is 1 at this.
    full: f64,
    /// How often it was measured, or a value pushed.
    reads: u64,
    /// How often it did not know.
    failures: u64,
    /// What the last measurement took, in seconds.
    cost: f64,
    /// What it shows beside its value, each with its unit in its name.
    details: Vec<(&'static str, f64)>,
}

impl From<&CoreSignalReport> for SignalReport {
    fn from(core: &CoreSignalReport) -> Self {
        Self {
            name: core.name.to_string(),
            value: core.value,
            overloaded: core.overloaded,
            level: core.level,
            enter: core.enter,
            leave: core.leave,
            full: core.full,
            reads: core.reads,
            failures: core.failures,
            cost: core.cost.as_secs_f64(),
            details: core.details.clone(),
        }
    }
}

#[pymethods]
impl SignalReport {
    fn __repr__(&self) -> String {
        let value = self.value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.2}"));
        let overloaded = if self.overloaded { ", overloaded" } else { "" };
        format!("<SignalReport {:?}: {value}{overloaded}>", self.name)
    }
}

/// A change of a signal between overloaded and not. As text it is a sentence.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Transition {
    core: CoreTransition,
}

impl From<&CoreTransition> for Transition {
    fn from(core: &CoreTransition) -> Self {
        Self { core: core.clone() }
    }
}

/// A transition's cause in one word.
pub(crate) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Entered => "entered",
        Cause::Left => "left",
        Cause::Unknown => "unknown",
        Cause::Silence => "silence",
        Cause::Removed => "removed",
    }
}

#[pymethods]
impl Transition {
    /// Counts all transitions of a gate, from 1.
    #[getter]
    fn number(&self) -> u64 {
        self.core.number
    }

    /// When, in seconds on the gate's monotonic clock.
    #[getter]
    fn at(&self) -> f64 {
        at(self.core.at_ns)
    }

    /// The signal's name.
    #[getter]
    fn signal(&self) -> &str {
        &self.core.signal
    }

    /// "entered", "left", "unknown" (not known any more), "silence" (nobody had asked for a while), "removed".
    #[getter]
    fn cause(&self) -> &'static str {
        cause(self.core.cause)
    }

    /// Whether the signal means overload from then on.
    #[getter]
    fn overloaded(&self) -> bool {
        self.core.overloaded()
    }

    /// What it said, from 0 to 1; None: unknown.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.core.reading.value()
    }

    /// The threshold that decided.
    #[getter]
    fn threshold(&self) -> f64 {
        self.core.threshold
    }

    /// For how many seconds it had been beyond that.
    #[getter]
    fn held(&self) -> f64 {
        self.core.held.as_secs_f64()
    }

    fn __str__(&self) -> String {
        self.core.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Transition at {:.3} s: {}>", self.at(), self.core)
    }
}
