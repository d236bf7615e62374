//! At most one line a while, and how many were left out.
//!
//! Two numbers, no lock: a line may be due in a signal handler that interrupts another line, or in a child that
//! was forked in the middle of one. Whoever moves `next_ns` on has the line; everybody else counts. So each
//! event is either a line or in the count of one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use crate::event::Event;
use crate::names::config_error_text;

/// Lets one event through in each ``interval`` seconds of the gate's clock, and counts the others.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Throttle {
    interval_ns: u64,
    /// From when on the next is let through.
    next_ns: AtomicU64,
    suppressed: AtomicU64,
}

#[pymethods]
impl Throttle {
    #[new]
    fn new(py: Python<'_>, interval: f64) -> PyResult<Self> {
        let interval = Duration::try_from_secs_f64(interval).map_err(|_| {
            config_error_text(py, &format!("interval must be a number of seconds from 0, got {interval}"))
        })?;
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self { interval_ns, next_ns: AtomicU64::new(0), suppressed: AtomicU64::new(0) })
    }

    /// How many were suppressed since the last one that was let through; None where this one is suppressed, too:
    /// it is too early, or nobody would read of it.
    fn let_through(&self, event: &Event, read: bool) -> Option<u64> {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        let after_ns = event.at_ns.saturating_add(self.interval_ns);
        let due = read
            && event.at_ns >= next_ns
            && self.next_ns.compare_exchange(next_ns, after_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if due {
            return Some(self.take_suppressed());
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// How many were suppressed since this was last told.
    fn take_suppressed(&self) -> u64 {
        self.suppressed.swap(0, Ordering::Relaxed)
    }
}
