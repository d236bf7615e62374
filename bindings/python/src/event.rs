//! What happened at a gate, as it is told to hooks.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tidegate::detector::Transition;
use tidegate::{LimitChange, Outcome, Priority, Rate, Reason, Shed, Ticket};

use crate::names;
use crate::reports::cause;
use crate::stats::by_priority;

/// The kinds of events. All but the last are rare or follow a refusal; `Released` is paid for by every permit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Shed = 0,
    Limit = 1,
    Thresholds = 2,
    Enforce = 3,
    Closed = 4,
    Drained = 5,
    Rate = 6,
    Pressure = 7,
    Released = 8,
}

impl Kind {
    pub(crate) const NAMES: [&str; 9] =
        ["shed", "limit", "thresholds", "enforce", "closed", "drained", "rate", "pressure", "released"];

    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A set of kinds.
#[derive(Clone, Copy)]
pub(crate) struct Kinds(u16);

impl Kinds {
    pub(crate) const NONE: Self = Self(0);
    /// What is told to hooks that do not choose: everything that costs a permit nothing.
    pub(crate) const DEFAULT: Self = Self((1 << Kind::Released as u8) - 1);

    /// With the kind of this name; `None` where there is no such kind.
    pub(crate) fn with(self, name: &str) -> Option<Self> {
        let at = Kind::NAMES.iter().position(|&known| known == name)?;
        Some(Self(self.0 | 1 << at))
    }

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The positions of its kinds among all.
    pub(crate) fn positions(self) -> impl Iterator<Item = usize> {
        (0..Kind::NAMES.len()).filter(move |at| self.0 >> at & 1 != 0)
    }
}

/// What an event says. Each kind has its own fields; the others are None.
#[derive(Default)]
pub(crate) struct Fields {
    priority: Option<Priority>,
    reason: Option<Reason>,
    outcome: Option<Outcome>,
    duration: Option<Duration>,
    weight: Option<u32>,
    over: Option<bool>,
    in_flight: Option<u32>,
    previous: Option<u32>,
    limit: Option<u32>,
    cause: Option<Box<str>>,
    thresholds: Option<[u32; Priority::ALL.len()]>,
    enforce: Option<bool>,
    rate: Option<Rate>,
    transition: Option<Transition>,
}

impl Fields {
    pub(crate) fn shed(shed: Shed) -> Self {
        Self {
            priority: Some(shed.priority),
            reason: Some(shed.reason),
            weight: Some(shed.weight),
            in_flight: Some(shed.in_flight),
            limit: Some(shed.limit),
            ..Self::default()
        }
    }

    pub(crate) fn limit(change: LimitChange) -> Self {
        let LimitChange { from, to, cause, .. } = change;
        Self { previous: Some(from), limit: Some(to), cause, ..Self::default() }
    }

    pub(crate) fn thresholds(thresholds: [u32; Priority::ALL.len()]) -> Self {
        Self { thresholds: Some(thresholds), ..Self::default() }
    }

    pub(crate) fn enforce(enforce: bool) -> Self {
        Self { enforce: Some(enforce), ..Self::default() }
    }

    pub(crate) fn rate(rate: Option<Rate>, cause: Option<&str>) -> Self {
        Self { rate, cause: cause.map(Box::from), ..Self::default() }
    }

    pub(crate) fn pressure(transition: Transition) -> Self {
        Self { cause: Some(cause(transition.cause).into()), transition: Some(transition), ..Self::default() }
    }

    pub(crate) fn closed(in_flight: u32) -> Self {
        Self { in_flight: Some(in_flight), ..Self::default() }
    }

    pub(crate) fn released(ticket: &Ticket, outcome: Outcome, duration: Option<Duration>) -> Self {
        Self {
            priority: Some(ticket.priority()),
            outcome: Some(outcome),
            duration,
            weight: Some(ticket.weight()),
            over: Some(ticket.over()),
            ..Self::default()
        }
    }
}

/// Something that happened at a gate. Which fields it has depends on its kind; the others are None.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) gate: Py<PyString>,
    pub(crate) at_ns: u64,
    pub(crate) fields: Fields,
}

#[pymethods]
impl Event {
    /// What happened.
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        names::event_kind(py, self.kind)
    }

    /// The name of the gate.
    #[getter]
    fn gate(&self, py: Python<'_>) -> Py<PyString> {
        self.gate.clone_ref(py)
    }

    /// When, in seconds on the gate's monotonic clock.
    #[getter]
    fn at(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // a reading for people
        let at = self.at_ns as f64 / 1e9;
        at
    }

    /// The priority of the request or permit (shed, released).
    #[getter]
    fn priority(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.fields.priority.map(|priority| names::priority(py, priority)).transpose()
    }

    /// Why the request was turned away (shed).
    #[getter]
    fn reason(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.fields.reason.map(|reason| names::reason(py, reason)).transpose()
    }

    /// What the permit's work came to (released).
    #[getter]
    fn outcome(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.fields.outcome.map(|outcome| names::outcome(py, outcome)).transpose()
    }

    /// For how long the permit was held, in seconds (released); None without ``Gate(timing=True)``.
    #[getter]
    fn duration(&self) -> Option<f64> {
        self.fields.duration.map(|duration| duration.as_secs_f64())
    }

    /// The weight of the request or permit (shed, released).
    #[getter]
    fn weight(&self) -> Option<u32> {
        self.fields.weight
    }

    /// Whether dry run had let the permit in beyond the limit (released).
    #[getter]
    fn over(&self) -> Option<bool> {
        self.fields.over
    }

    /// The weight in flight at that moment (shed, closed).
    #[getter]
    fn in_flight(&self) -> Option<u32> {
        self.fields.in_flight
    }

    /// The limit before (limit).
    #[getter]
    fn previous(&self) -> Option<u32> {
        self.fields.previous
    }

    /// The limit at that moment (shed), or from then on (limit).
    #[getter]
    fn limit(&self) -> Option<u32> {
        self.fields.limit
    }

    /// Why the limit or the rate was changed, as the caller gave it, or a controller's "raise", "lower" or "lost"
    /// (limit, rate); what the signal did: "entered", "left", "unknown", "silence" or "removed" (pressure).
    #[getter]
    fn cause(&self) -> Option<&str> {
        self.fields.cause.as_deref()
    }

    /// How full the gate may be from then on for each priority still to enter, in weight (thresholds).
    #[getter]
    fn thresholds<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let thresholds = self.fields.thresholds;
        thresholds.map(|at| by_priority(py, |priority| Ok(at[priority.level()]))).transpose()
    }

    /// Whether requests are turned away from then on (enforce).
    #[getter]
    fn enforce(&self) -> Option<bool> {
        self.fields.enforce
    }

    /// How much may be admitted a time from then on, as "150/min" (rate); None for any.
    #[getter]
    fn rate(&self) -> Option<String> {
        self.fields.rate.map(|rate| rate.to_string())
    }

    /// The most weight that the rate lets in at once from then on (rate).
    #[getter]
    fn burst(&self) -> Option<u32> {
        self.fields.rate.map(|rate| rate.burst())
    }

    /// The name of the signal that changed (pressure).
    #[getter]
    fn signal(&self) -> Option<&str> {
        self.fields.transition.as_ref().map(|transition| &*transition.signal)
    }

    /// Whether the signal means overload from then on (pressure).
    #[getter]
    fn overloaded(&self) -> Option<bool> {
        self.fields.transition.as_ref().map(Transition::overloaded)
    }

    /// What the signal said, from 0 to 1 (pressure); None where it was unknown.
    #[getter]
    fn value(&self) -> Option<f64> {
        self.fields.transition.as_ref().and_then(|transition| transition.reading.value())
    }

    /// The threshold of the signal that decided (pressure).
    #[getter]
    fn threshold(&self) -> Option<f64> {
        self.fields.transition.as_ref().map(|transition| transition.threshold)
    }

    /// For how many seconds the signal had been beyond its threshold (pressure).
    #[getter]
    fn held(&self) -> Option<f64> {
        self.fields.transition.as_ref().map(|transition| transition.held.as_secs_f64())
    }

    /// The fields that are not None, by name, without kind, gate and at: for logs.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        set(&fields, "reason", self.reason(py)?)?;
        set(&fields, "priority", self.priority(py)?)?;
        set(&fields, "outcome", self.outcome(py)?)?;
        set(&fields, "duration", self.duration())?;
        set(&fields, "weight", self.weight())?;
        set(&fields, "over", self.over())?;
        set(&fields, "in_flight", self.in_flight())?;
        set(&fields, "previous", self.previous())?;
        set(&fields, "limit", self.limit())?;
        set(&fields, "cause", self.cause())?;
        set(&fields, "signal", self.signal())?;
        set(&fields, "overloaded", self.overloaded())?;
        set(&fields, "value", self.value())?;
        set(&fields, "threshold", self.threshold())?;
        set(&fields, "held", self.held())?;
        set(&fields, "thresholds", self.thresholds(py)?)?;
        set(&fields, "enforce", self.enforce())?;
        set(&fields, "rate", self.rate())?;
        set(&fields, "burst", self.burst())?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let gate = self.gate.bind(py).repr()?;
        let fields: Vec<_> =
            self.fields(py)?.iter().map(|(name, value)| format!(", {name} {value}")).collect();
        Ok(format!("<Event {} of gate {gate} at {:.3} s{}>", self.kind.name(), self.at(), fields.concat()))
    }
}

fn set<'py>(fields: &Bound<'py, PyDict>, name: &str, value: Option<impl IntoPyObject<'py>>) -> PyResult<()> {
    value.map_or(Ok(()), |value| fields.set_item(name, value))
}
