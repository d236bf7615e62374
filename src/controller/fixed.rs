//! The limit that was measured: a capacity test's result, held.

use super::{Bounds, Cause, Controller, Decision, Window};

/// An hour: a fixed limit has nothing to look for.
const LOOK_AFTER_NS: u64 = 3_600_000_000_000;

/// Holds the prior.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    limit: u32,
}

impl Fixed {
    /// Holds the bounds' prior.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { limit: bounds.prior() }
    }
}

impl Controller for Fixed {
    fn begin(&self) -> Decision {
        Decision { limit: self.limit, cause: Cause::Hold, look_after_ns: LOOK_AFTER_NS }
    }

    fn look(&mut self, _window: &Window) -> Decision {
        self.begin()
    }
}
