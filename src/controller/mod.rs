//! Limits that find themselves: what happened in a window goes in, the limit to hold comes out.
//!
//! A [`Controller`] is pure. It has no clock, no thread and no lock: whoever crosses the end of a window reads
//! the gate's counters, hands over the difference as a [`Window`] and gets a [`Decision`]: the limit from now on
//! and after how much time to look again. That time is all a gate has to compare on its fast path. A look that
//! comes late only makes the window longer.
//!
//! Every controller is plain numbers and `Copy`, so its state can live in memory that processes share. Equal
//! windows give equal limits, always: there is no chance in here.
//!
//! | controller | moves by | source |
//! |---|---|---|
//! | [`Fixed`] | nothing | |
//! | [`Aimd`] | drops | Netflix concurrency-limits, after TCP (Chiu and Jain 1989) |
//! | [`Gradient2`] | latency against its long average | Netflix concurrency-limits |
//! | [`Vegas`] | latency against the shortest seen | Netflix concurrency-limits, after TCP Vegas (Brakmo and Peterson 1995) |
//! | [`Goodput`] | good answers a second, by experiment | this crate |

mod aimd;
mod bounds;
mod fixed;
mod goodput;
mod gradient2;
mod kind;
mod published;
mod vegas;
mod window;

#[cfg(all(test, not(tidegate_loom)))]
mod faults;

pub use aimd::Aimd;
pub use bounds::{Bounds, BoundsError, Choice};
pub use fixed::Fixed;
pub use goodput::Goodput;
pub use gradient2::Gradient2;
pub use kind::{AnyController, Kind};
pub use vegas::Vegas;
pub use window::Window;

/// Moves a gate's limit.
pub trait Controller {
    /// The limit to begin with, and when to look first.
    fn begin(&self) -> Decision;

    /// What to do after `window`, which began at the last decision.
    fn look(&mut self, window: &Window) -> Decision;
}

/// The limit from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The limit to hold; the same as before where nothing is to change.
    pub limit: u32,
    /// Why, for the history of limits.
    pub cause: Cause,
    /// After this much time somebody should look again.
    pub look_after_ns: u64,
}

/// Why a limit is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Nothing speaks for a move.
    Hold,
    /// One arm of an experiment: a little above or below the centre, and back soon.
    Probe,
    /// The evidence is for more.
    Raise,
    /// The evidence is for less.
    Lower,
    /// Most answers were late or failed: down at once.
    Lost,
}

impl Cause {
    /// The cause in one word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Probe => "probe",
            Self::Raise => "raise",
            Self::Lower => "lower",
            Self::Lost => "lost",
        }
    }

    /// Of a move between two limits.
    fn of(from: u32, to: u32) -> Self {
        match to.cmp(&from) {
            std::cmp::Ordering::Less => Self::Lower,
            std::cmp::Ordering::Equal => Self::Hold,
            std::cmp::Ordering::Greater => Self::Raise,
        }
    }
}
