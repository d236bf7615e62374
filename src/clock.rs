//! Time as a gate sees it: monotonic nanoseconds. Wall-clock time is never used for intervals.

use std::fmt::Debug;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A source of monotonic time.
pub trait Clock: Debug + Send + Sync {
    /// Nanoseconds since an arbitrary fixed moment; never goes back.
    fn now_ns(&self) -> u64;
}

/// The system's monotonic clock, counted from its first use in this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now_ns(&self) -> u64 {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        // 2^64 nanoseconds are 584 years.
        u64::try_from(ORIGIN.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A clock that moves only when told to: for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that reads `now_ns`.
    #[must_use]
    pub const fn new(now_ns: u64) -> Self {
        Self(AtomicU64::new(now_ns))
    }

    /// Makes the clock read `now_ns`. It may be set back: that is how a test shows what a broken
    /// clock does.
    pub fn set(&self, now_ns: u64) {
        self.0.store(now_ns, Ordering::Relaxed);
    }

    /// Moves the clock on by `ns`, or to its end, as the system's clock stops there: after 584 years.
    pub fn advance(&self, ns: u64) {
        let later = |now: u64| Some(now.saturating_add(ns));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
