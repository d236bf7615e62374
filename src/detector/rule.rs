//! What a signal's readings mean: thresholds, how long they must hold, and how fast the level follows.

use std::time::Duration;

use crate::error::ConfigError;

/// A signal is not silent before this has passed, however short its holds are.
pub(super) const LEAST_QUIET: Duration = Duration::from_secs(5);

/// What a signal's readings mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    pub(super) enter: f64,
    pub(super) leave: f64,
    full: f64,
    pub(super) enter_for: Duration,
    pub(super) leave_for: Duration,
    pub(super) dwell: Duration,
    pub(super) ramp: Duration,
}

/// Enter at 0.85 for 2 s, leave at 0.70 for 10 s, rest 5 s; full at 1.0, reached in 20 s.
impl Default for Rule {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Rule {
    /// What [`Kind::rule`](crate::signal::Kind::rule) says of errors.
    pub(crate) const ERRORS: Self = Self { enter: 0.10, leave: 0.05, full: 0.5, ..Self::DEFAULT };

    const DEFAULT: Self = Self {
        enter: 0.85,
        leave: 0.70,
        full: 1.0,
        enter_for: Duration::from_secs(2),
        leave_for: Duration::from_secs(10),
        dwell: Duration::from_secs(5),
        ramp: Duration::from_secs(20),
    };

    /// The default with other thresholds: overloaded at `enter`, not any more at `leave`, and the level is 1 at
    /// `full`.
    ///
    /// # Errors
    /// [`ConfigError::SignalThresholds`] unless 0 <= leave < enter <= full <= 1.
    pub fn new(enter: f64, leave: f64, full: f64) -> Result<Self, ConfigError> {
        Self::default().between(enter, leave, full)
    }

    /// The same with other thresholds.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn between(self, enter: f64, leave: f64, full: f64) -> Result<Self, ConfigError> {
        if 0.0 <= leave && leave < enter && enter <= full && full <= 1.0 {
            Ok(Self { enter, leave, full, ..self })
        } else {
            Err(ConfigError::SignalThresholds { leave, enter, full })
        }
    }

    /// The same with other hold times.
    #[must_use]
    pub fn holding(self, enter_for: Duration, leave_for: Duration) -> Self {
        Self { enter_for, leave_for, ..self }
    }

    /// The same with another rest after a change.
    #[must_use]
    pub fn resting(self, dwell: Duration) -> Self {
        Self { dwell, ..self }
    }

    /// The same with another time for the level to rise from 0 to 1, or to fall.
    #[must_use]
    pub fn rising_in(self, ramp: Duration) -> Self {
        Self { ramp, ..self }
    }

    /// At this or above for [`enter_for`](Self::enter_for) it is overloaded.
    #[must_use]
    pub const fn enter(&self) -> f64 {
        self.enter
    }

    /// At this or below for [`leave_for`](Self::leave_for) it is not any more.
    #[must_use]
    pub const fn leave(&self) -> f64 {
        self.leave
    }

    /// Where its level is 1.
    #[must_use]
    pub const fn full(&self) -> f64 {
        self.full
    }

    /// How long it must stay at `enter` or above.
    #[must_use]
    pub const fn enter_for(&self) -> Duration {
        self.enter_for
    }

    /// How long it must stay at `leave` or below.
    #[must_use]
    pub const fn leave_for(&self) -> Duration {
        self.leave_for
    }

    /// How long it rests after a change.
    #[must_use]
    pub const fn dwell(&self) -> Duration {
        self.dwell
    }

    /// How long its level takes from 0 to 1.
    #[must_use]
    pub const fn ramp(&self) -> Duration {
        self.ramp
    }

    /// After so long without a look nobody can say that the signal stayed what it was: the longer of its
    /// holds, at least five seconds.
    #[must_use]
    pub fn quiet(&self) -> Duration {
        self.enter_for.max(self.leave_for).max(LEAST_QUIET)
    }

    /// The level that a reading asks for.
    pub(super) fn target(&self, value: f64) -> f64 {
        ((value - self.leave) / (self.full - self.leave)).clamp(0.0, 1.0)
    }
}
