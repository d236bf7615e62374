//! A clock that moves when told to, for tests.

use std::sync::Arc;

use pyo3::prelude::*;

/// A clock in whole nanoseconds that moves only when told to. Give it to ``Gate(clock=...)``.
#[pyclass(frozen, module = "tidegate.testing")]
pub(crate) struct ManualClock {
    pub(crate) core: Arc<tidegate::ManualClock>,
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (now_ns=0))]
    fn new(now_ns: u64) -> Self {
        Self { core: Arc::new(tidegate::ManualClock::new(now_ns)) }
    }

    /// Makes the clock read ``now_ns``.
    fn set(&self, now_ns: u64) {
        self.core.set(now_ns);
    }

    /// Moves the clock on by ``ns``.
    fn advance(&self, ns: u64) {
        self.core.advance(ns);
    }

    /// What the clock reads, in nanoseconds.
    #[getter]
    fn now_ns(&self) -> u64 {
        tidegate::Clock::now_ns(&*self.core)
    }
}
