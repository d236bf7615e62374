//! The rules that numbers of a scenario keep, each with its sentence. Pure.

use std::fmt;
use std::time::Duration;

/// A scenario that cannot be run: which of its values, and which rule it breaks. Nothing was run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct ScenarioError {
    /// The value, as a file would call it: `service.sigma`.
    pub key: String,
    /// The rule and the value that breaks it.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl ScenarioError {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }
}

/// Says which value a broken rule is about.
pub(super) trait Of<T> {
    fn of(self, key: &str) -> Result<T, ScenarioError>;
}

impl<T> Of<T> for Result<T, String> {
    fn of(self, key: &str) -> Result<T, ScenarioError> {
        self.map_err(|message| ScenarioError::new(key, message))
    }
}

/// The largest number that a scenario may hold. Products of two stay far from infinity.
const MOST: f64 = 1e12;

/// The longest time that a scenario may name, which is also the longest run: 100 years, well within
/// 64 bits of nanoseconds.
pub(super) const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

pub(super) fn not_negative(number: f64) -> Result<f64, String> {
    if (0.0..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(format!("must be a number from 0 to {MOST:e}, got {number}"))
}

/// Above 0. Numbers too close to it have no use, and their inverses no room.
pub(super) fn positive(number: f64) -> Result<f64, String> {
    if (1.0 / MOST..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(format!("must be a number above 0 (from {:e} to {MOST:e}), got {number}", 1.0 / MOST))
}

pub(super) fn share(number: f64) -> Result<f64, String> {
    if number > 0.0 && number <= 1.0 {
        return Ok(number);
    }
    Err(format!("must be a share above 0, at most 1, got {number}"))
}

pub(super) fn at_least(least: f64, number: f64) -> Result<f64, String> {
    if (least..=MOST).contains(&number) {
        return Ok(number);
    }
    Err(format!("must be a number from {least} to {MOST:e}, got {number}"))
}

/// Strictly between the two.
pub(super) fn between(low: f64, high: f64, number: f64) -> Result<f64, String> {
    if number > low && number < high {
        return Ok(number);
    }
    Err(format!("must be a number above {low} and below {high}, got {number}"))
}

pub(super) fn time(time: Duration) -> Result<Duration, String> {
    if time <= LONGEST {
        return Ok(time);
    }
    Err(format!("must be a time of at most 100 years, got {} s", time.as_secs_f64()))
}

pub(super) fn some_time(some: Duration) -> Result<Duration, String> {
    if some.is_zero() {
        return Err("must be a time above 0, got 0 s".to_owned());
    }
    time(some)
}

/// Nanoseconds of a time that is within [`LONGEST`]; of a longer one, as many as there are.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
