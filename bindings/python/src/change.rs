//! What a reload changed, as Python sees it.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidegate::controller::{Bounds, Kind};
use tidegate::detector::Rule;
use tidegate::{Difference, Priority, Rate, Threshold, Thresholds};

use crate::names;

/// One thing that a reload changed. As text it is a sentence.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Change {
    core: tidegate::Change,
}

impl From<tidegate::Change> for Change {
    fn from(core: tidegate::Change) -> Self {
        Self { core }
    }
}

#[pymethods]
impl Change {
    /// The name of the gate; None where it is about the classifier.
    #[getter]
    fn gate(&self) -> Option<&str> {
        self.core.gate.as_deref()
    }

    /// "added", "removed" (the gate is closed), "reopened", "stays_closed" (the program had closed it, too), or
    /// "changed".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.core.difference {
            Difference::Added => "added",
            Difference::Removed { .. } => "removed",
            Difference::Reopened { .. } => "reopened",
            Difference::StaysClosed => "stays_closed",
            _ => "changed",
        }
    }

    /// The key of the file whose value changed, such as "limit"; None where that is no single one.
    #[getter]
    fn key(&self) -> Option<&'static str> {
        Some(self.core.difference.key()).filter(|key| !key.is_empty())
    }

    /// The value of the key before, as `Gate` takes it: for "rate" a mapping of "rate" and "burst", for "controller" one
    /// of "controller", "min", "max" and "prior", for a signal whose meaning changed one of its thresholds and
    /// times; None where there was none.
    #[getter]
    fn previous(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.value_of(py, false)
    }

    /// The value of the key from now on, as `previous` has it.
    #[getter]
    fn value(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.value_of(py, true)
    }

    fn __str__(&self) -> String {
        self.core.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Change: {}>", self.core)
    }
}

impl Change {
    fn value_of(&self, py: Python<'_>, now: bool) -> PyResult<Option<Py<PyAny>>> {
        fn pick<T>(now: bool, from: T, to: T) -> T {
            if now { to } else { from }
        }
        Ok(match self.core.difference {
            Difference::Limit { from, to } => {
                Some(pick(now, from, to).into_pyobject(py)?.into_any().unbind())
            }
            Difference::Thresholds { from, to } => Some(thresholds(py, pick(now, from, to))?),
            Difference::Rate { from, to } => pick(now, from, to).map(|to| rate(py, to)).transpose()?,
            Difference::Start { from, to } => number(py, pick(now, from, to))?,
            Difference::Objective { from, to } => {
                number(py, pick(now, from, to).map(|objective| objective.as_secs_f64()))?
            }
            Difference::Controller { from, to } => {
                pick(now, from, to).map(|to| controller(py, to)).transpose()?
            }
            Difference::SignalChanged { from, to, .. } => Some(rule(py, &pick(now, from, to))?),
            Difference::DefaultPriority { from, to } => Some(names::priority(py, pick(now, from, to))?),
            Difference::Enforce { from, to } => {
                Some(pick(now, from, to).into_pyobject(py)?.to_owned().into_any().unbind())
            }
            _ => None,
        })
    }
}

/// As `Gate(thresholds=...)` takes them.
fn thresholds(py: Python<'_>, thresholds: Thresholds) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    for priority in Priority::ALL {
        let Some(threshold) = thresholds.get(priority) else { continue };
        let key = names::priority(py, priority)?;
        match threshold {
            Threshold::Ppm(ppm) => dict.set_item(key, f64::from(ppm) / f64::from(tidegate::PPM_ONE))?,
            Threshold::Reserve(weight) => {
                let reserve = PyDict::new(py);
                reserve.set_item("reserve", weight)?;
                dict.set_item(key, reserve)?;
            }
        }
    }
    Ok(dict.into_any().unbind())
}

fn number<'py, T: IntoPyObject<'py>>(py: Python<'py>, number: Option<T>) -> PyResult<Option<Py<PyAny>>>
where
    PyErr: From<T::Error>,
{
    use pyo3::BoundObject;
    let object = number.map(|number| number.into_pyobject(py)).transpose()?;
    Ok(object.map(|object| object.into_any().into_bound().unbind()))
}

fn controller(py: Python<'_>, (kind, bounds): (Kind, Bounds)) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    dict.set_item("controller", kind.as_str())?;
    dict.set_item("min", bounds.min())?;
    dict.set_item("max", bounds.max())?;
    dict.set_item("prior", bounds.prior())?;
    Ok(dict.into_any().unbind())
}

/// As `Signal` takes it.
fn rule(py: Python<'_>, rule: &Rule) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    let pressures = [("enter", rule.enter()), ("leave", rule.leave()), ("full", rule.full())];
    let times = [
        ("enter_for", rule.enter_for()),
        ("leave_for", rule.leave_for()),
        ("dwell", rule.dwell()),
        ("ramp", rule.ramp()),
    ];
    for (key, pressure) in pressures {
        dict.set_item(key, pressure)?;
    }
    for (key, time) in times {
        dict.set_item(key, time.as_secs_f64())?;
    }
    Ok(dict.into_any().unbind())
}

fn rate(py: Python<'_>, rate: Rate) -> PyResult<Py<PyAny>> {
    let dict = PyDict::new(py);
    dict.set_item("rate", rate.to_string())?;
    dict.set_item("burst", rate.burst())?;
    Ok(dict.into_any().unbind())
}
