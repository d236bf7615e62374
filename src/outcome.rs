//! What became of a permit's work.

use std::fmt;
use std::str::FromStr;

use crate::error::ConfigError;

/// How many outcomes there are.
pub(crate) const OUTCOMES: usize = 3;

/// What the work of a permit came to. Controllers learn from it; a fixed limit only counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The resource answered, even with an error of its own.
    #[default]
    Success = 0,
    /// The resource was too busy: timed out, pool exhausted.
    Overload = 1,
    /// The work says nothing about the resource: cancelled, interrupted, never begun.
    Ignore = 2,
}

impl Outcome {
    /// All outcomes; the position is the number the C ABI and the vectors use.
    pub const ALL: [Self; OUTCOMES] = [Self::Success, Self::Overload, Self::Ignore];

    /// The name used in every language, in metrics and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Overload => "overload",
            Self::Ignore => "ignore",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Outcome {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.name() == name)
            .ok_or_else(|| ConfigError::Outcome { got: name.to_owned() })
    }
}
