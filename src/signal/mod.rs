//! Signals: measured pressures between 0 and 1, or unknown.
//!
//! A [`Source`] measures one thing when asked. A [`Signal`] asks it, lazily: there is no thread and no timer; a
//! reading is good for a while, and whoever wants one after that reads anew. What fails or grows old is unknown, and
//! unknown is never overload: a monitor that broke must not close the service.
//!
//! Beside those that are measured here ([`Cpu`], [`Memory`], [`Stalls`]) any function can be a source
//! ([`Signal::function`]), and values can be pushed in ([`Signal::pushed`]).
//!
//! ```
//! use std::time::Duration;
//! use tidegate::MonotonicClock;
//! use tidegate::signal::{Cpu, Signal};
//!
//! let cpu = Signal::new("cpu", Cpu::new);
//! let database = Signal::pushed("db");
//! assert_eq!(cpu.reading(&MonotonicClock).value(), None, "a share needs two readings");
//! database.push(0.7, Duration::from_secs(5), &MonotonicClock)?;
//! assert_eq!(database.reading(&MonotonicClock).value(), Some(0.7));
//! # Ok::<(), tidegate::ConfigError>(())
//! ```

mod average;
mod cgroup;
mod cores;
mod cpu;
#[cfg(test)]
pub(crate) mod fake;
mod kind;
mod lazy;
mod memory;
mod own;
mod psi;
mod rarely;
mod root;
mod text;

use std::time::Duration;

pub use average::Average;
pub use cores::cores;
pub use cpu::Cpu;
pub use kind::Kind;
pub use lazy::{Report, Signal};
pub use memory::Memory;
pub(crate) use own::{Figures, Own};
pub use psi::{Resource, Stalls};

use crate::error::ConfigError;

/// What a signal says: a pressure from 0 (idle) to 1 (no more to give), or that it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading(Option<f64>);

impl Reading {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self(None);

    /// A pressure that somebody else worked out.
    ///
    /// # Errors
    /// [`ConfigError::Pressure`] when it is not a number from 0 to 1. In particular 70 is no 70 %.
    pub fn known(value: f64) -> Result<Self, ConfigError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(Some(value)))
        } else {
            Err(ConfigError::Pressure { got: value })
        }
    }

    /// A quotient that was measured: a little above 1 is 1. What is negative or no number is unknown.
    #[must_use]
    pub fn at_most_one(value: f64) -> Self {
        Self((value >= 0.0).then_some(value.min(1.0)))
    }

    /// The pressure, where it is known.
    #[must_use]
    pub const fn value(self) -> Option<f64> {
        self.0
    }
}

/// A figure that is shown beside a reading: its name with its unit, and its value.
pub type Detail = (&'static str, f64);

/// Something that measures one pressure. It is asked by one thread at a time, without any lock held, so it may take
/// its time; whoever else asks meanwhile is given the reading before.
pub trait Source: Send {
    /// Measures now. The time is monotonic; it may have been set back in tests.
    fn read(&mut self, now_ns: u64) -> Reading;

    /// For how long such a reading is good. It is kept for a few times that if the next ones fail.
    fn good_for(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// What is worth showing of the latest reading.
    fn details(&self) -> Vec<Detail> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pressure_is_from_0_to_1() {
        for good in [0.0, -0.0, 0.5, 1.0] {
            assert_eq!(Reading::known(good).unwrap().value(), Some(good));
        }
        for bad in [-0.1, 1.000_001, 70.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let refused = Reading::known(bad).unwrap_err().to_string();
            assert!(refused.contains("from 0 to 1") && refused.ends_with(&format!("got {bad}")), "{refused}");
        }
    }

    #[test]
    fn a_measured_quotient_is_cut_at_1() {
        assert_eq!(Reading::at_most_one(1.2).value(), Some(1.0));
        for bad in [-0.1, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(Reading::at_most_one(bad), Reading::UNKNOWN, "{bad}");
        }
    }
}
