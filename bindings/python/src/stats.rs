//! A reading of a gate's counters, as Python values.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tidegate::{Outcome, Priority, Reason};

use crate::{arguments, names};

/// What a gate has counted. Counters only grow; at rest all of it is exact.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Stats {
    pub(crate) core: tidegate::Stats,
}

pub(crate) fn by_priority<'py, V: IntoPyObject<'py>>(
    py: Python<'py>,
    value: impl Fn(Priority) -> PyResult<V>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for priority in Priority::ALL {
        dict.set_item(names::priority(py, priority)?, value(priority)?)?;
    }
    Ok(dict)
}

#[pymethods]
impl Stats {
    /// The most weight that may be in flight.
    #[getter]
    fn limit(&self) -> u32 {
        self.core.limit
    }

    /// The weight in flight.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.core.in_flight
    }

    /// The most weight that was ever in flight.
    #[getter]
    fn high_water(&self) -> u32 {
        self.core.high_water
    }

    /// Admissions by priority, without those that dry run let in beyond the limit.
    #[getter]
    fn admitted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        by_priority(py, |priority| Ok(self.core.admitted(priority)))
    }

    /// Requests turned away, by priority and reason.
    #[getter]
    fn shed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        by_priority(py, |priority| {
            let by_reason = PyDict::new(py);
            for reason in Reason::ALL {
                by_reason.set_item(names::reason(py, reason)?, self.core.shed(priority, reason))?;
            }
            Ok(by_reason)
        })
    }

    /// Requests that dry run let in although enforcement would have shed them, by priority.
    #[getter]
    fn would_shed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        by_priority(py, |priority| Ok(self.core.would_shed(priority)))
    }

    /// Admissions that have left, by outcome.
    #[getter]
    fn released<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for outcome in Outcome::ALL {
            dict.set_item(names::outcome(py, outcome)?, self.core.released(outcome))?;
        }
        Ok(dict)
    }

    /// Exits without an entry.
    #[getter]
    fn unmatched_exits(&self) -> u64 {
        self.core.unmatched_exits
    }

    /// Permits that were garbage-collected instead of released.
    #[getter]
    fn collected(&self) -> u64 {
        self.core.collected
    }

    /// Admissions whose priority was the gate's default because none was asked for.
    #[getter]
    fn fallback_priority(&self) -> u64 {
        self.core.fallback_priority()
    }

    /// How often the configuration changed, modulo 2^29.
    #[getter]
    fn generation(&self) -> u32 {
        self.core.generation
    }

    /// What dry run let in beyond the limit and is still inside.
    #[getter]
    fn over_in_flight(&self) -> u64 {
        self.core.over_in_flight
    }

    /// The time integral of the weight in flight, in weight-seconds; None without timing.
    #[getter]
    fn occupancy(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss)] // exact for 285 weight-years
        self.core.occupancy_us.map(|us| us as f64 / 1e6)
    }

    /// The pressure level, from 0 to 1, as of the last look at the signals; 0 where nobody has looked for five
    /// seconds, None without signals.
    #[getter]
    fn pressure(&self) -> Option<f64> {
        self.core.pressure
    }

    /// Whether any signal was overloaded then.
    #[getter]
    fn overloaded(&self) -> bool {
        self.core.overloaded
    }

    /// For how long permits of a priority were held, in seconds: the value that a share ``q`` of them
    /// did not exceed, within 1.6 %. None without timing, or where nothing was counted.
    fn latency(&self, q: f64, priority: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        if !(0.0..=1.0).contains(&q) {
            return Err(PyValueError::new_err(format!("q must be a share from 0 to 1, got {q}")));
        }
        let histogram = self.core.latency(arguments::priority(priority)?);
        Ok(histogram.and_then(|histogram| histogram.quantile(q)).map(|held| held.as_secs_f64()))
    }

    fn __repr__(&self) -> String {
        let admitted: u64 = Priority::ALL.map(|priority| self.core.admitted(priority)).iter().sum();
        let would_shed: u64 = Priority::ALL.map(|priority| self.core.would_shed(priority)).iter().sum();
        format!(
            "<Stats: {} of {} in flight, admitted {admitted}, shed {}, would shed {would_shed}>",
            self.core.in_flight,
            self.core.limit,
            self.core.shed_total(),
        )
    }
}

/// One change of a gate's limit.
#[pyclass(frozen, get_all, module = "tidegate")]
pub(crate) struct LimitChange {
    /// When, in seconds on the gate's monotonic clock.
    at: f64,
    /// The limit before.
    previous: u32,
    /// The limit from then on.
    limit: u32,
    /// Why, as the caller gave it.
    cause: Option<String>,
}

impl From<tidegate::LimitChange> for LimitChange {
    fn from(change: tidegate::LimitChange) -> Self {
        #[allow(clippy::cast_precision_loss)] // a reading for people
        let at = change.at_ns as f64 / 1e9;
        Self { at, previous: change.from, limit: change.to, cause: change.cause.map(String::from) }
    }
}

#[pymethods]
impl LimitChange {
    fn __repr__(&self) -> String {
        let cause = self.cause.as_deref().unwrap_or("no cause given");
        format!("<LimitChange at {:.3} s: {} -> {} ({cause})>", self.at, self.previous, self.limit)
    }
}
