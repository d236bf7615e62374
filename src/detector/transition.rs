//! A change of one signal between overloaded and not, with the values that it rests on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::signal::Reading;

/// Why a signal changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It stayed at its enter threshold or above: overloaded from now on.
    Entered,
    /// It stayed at its leave threshold or below.
    Left,
    /// It is not known any more.
    Unknown,
    /// Nobody had looked for a while, and it is below its enter threshold now.
    Silence,
    /// It was taken away while it was overloaded.
    Removed,
}

/// One change of a signal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Transition {
    /// Counts all transitions of a detector, from 1.
    pub number: u64,
    /// When, on the clock of whoever looked.
    pub at_ns: u64,
    /// The signal's name.
    pub signal: Arc<str>,
    /// Why.
    pub cause: Cause,
    /// What it said.
    pub reading: Reading,
    /// The threshold that decided.
    pub threshold: f64,
    /// For how long it had been beyond that.
    pub held: Duration,
    /// Its level before.
    pub level: f64,
}

impl Transition {
    /// Whether the signal means overload from then on.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        self.cause == Cause::Entered
    }
}

/// As it stands in logs: `signal "cpu" overloaded: 0.91 is at or above 0.85 for 2.0 s`.
impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.overloaded() { "overloaded" } else { "not overloaded any more" };
        write!(f, "signal {:?} {state}: ", self.signal)?;
        let value = self.reading.value().unwrap_or(f64::NAN);
        let (threshold, held) = (self.threshold, self.held.as_secs_f64());
        match self.cause {
            Cause::Entered => write!(f, "{value:.2} is at or above {threshold} for {held:.1} s"),
            Cause::Left => write!(f, "{value:.2} is at or below {threshold} for {held:.1} s"),
            Cause::Unknown => f.write_str("it is unknown"),
            Cause::Removed => f.write_str("it was removed"),
            Cause::Silence => write!(f, "{value:.2} is below {threshold}, after a silence"),
        }
    }
}
