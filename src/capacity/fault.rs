//! Values that a capacity test cannot use.

use std::fmt::Display;

/// Which value breaks which rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} must be {rule}, got {got}")]
pub struct CapacityError {
    name: &'static str,
    rule: String,
    got: String,
}

impl CapacityError {
    pub(super) fn new(name: &'static str, rule: impl Into<String>, got: impl Display) -> Self {
        Self { name, rule: rule.into(), got: got.to_string() }
    }
}

/// A time or a rate: what is beyond these ends is none that anybody could use.
pub(super) fn positive(name: &'static str, number: f64) -> Result<(), CapacityError> {
    if (1e-9..=1e9).contains(&number) {
        return Ok(());
    }
    Err(CapacityError::new(name, "a number above 0 (from 1e-9 to 1e9)", number))
}
