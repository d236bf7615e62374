//! What a gate shows of its pressure to whoever reads its state, in other processes too: as of the last look, and when
//! that was.
//!
//! A gate that nobody asks looks no more, and must not show the pressure of its last request for hours. Gates'
//! own clocks begin anywhere, so the moment is one on the system's clock, which all processes of a host share.

use crate::monitor::HORIZON_NS;
use crate::sync::{AtomicU64, Ordering};

/// Two words: the level, and the moment with whether any signal is overloaded.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shown {
    level: AtomicU64,
    look: AtomicU64,
}

const OVERLOADED: u64 = 1;

impl Shown {
    pub(crate) fn new() -> Self {
        Self { level: AtomicU64::new(0), look: AtomicU64::new(0) }
    }

    pub(crate) fn store(&self, level: f64, overloaded: bool, uptime_ns: u64) {
        self.level.store(level.to_bits(), Ordering::Relaxed);
        self.look.store((uptime_ns & !OVERLOADED) | u64::from(overloaded), Ordering::Relaxed);
    }

    /// The level, and whether any signal is overloaded.
    pub(crate) fn load(&self) -> (f64, bool) {
        let overloaded = self.look.load(Ordering::Relaxed) & OVERLOADED != 0;
        let level = f64::from_bits(self.level.load(Ordering::Relaxed));
        // Any bits may stand in a file.
        (if (0.0..=1.0).contains(&level) { level } else { 0.0 }, overloaded)
    }

    /// Whether that still holds at `uptime_ns`.
    pub(crate) fn holds(&self, uptime_ns: u64) -> bool {
        uptime_ns.saturating_sub(self.look.load(Ordering::Relaxed)) <= HORIZON_NS
    }

    /// In a fork's child.
    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn empty(&self) {
        self.level.store(0, Ordering::Relaxed);
        self.look.store(0, Ordering::Relaxed);
    }
}

/// The system's monotonic clock. Where gates are not published, nobody asks.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(tidegate_loom)))]
pub(crate) fn uptime_ns() -> u64 {
    #![allow(unsafe_code)]
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it fills in what it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let (seconds, part) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or_default().saturating_mul(1_000_000_000).saturating_add(part.unwrap_or_default())
}

#[cfg(not(all(any(target_os = "linux", target_os = "macos"), not(tidegate_loom))))]
pub(crate) fn uptime_ns() -> u64 {
    0
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_last_look_for_as_long_as_that_holds() {
        let shown = Shown::new();
        assert_eq!(shown.load(), (0.0, false));
        shown.store(0.3, true, 1_000);
        assert_eq!(shown.load(), (0.3, true));
        assert!(shown.holds(0) && shown.holds(1_000 + HORIZON_NS) && !shown.holds(1_002 + HORIZON_NS));
        assert!(uptime_ns() > 1_000_000, "the system has been up for more than a moment");
        shown.store(0.0, false, 1_001);
        assert_eq!(shown.load(), (0.0, false));
    }

    #[test]
    fn what_no_gate_wrote_is_no_pressure() {
        let shown = Shown::new();
        for bits in [u64::MAX, f64::INFINITY.to_bits(), (-1.0_f64).to_bits(), 1.1_f64.to_bits()] {
            shown.level.store(bits, Ordering::Relaxed);
            assert_eq!(shown.load(), (0.0, false));
        }
    }
}
