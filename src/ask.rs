//! What a caller asks a gate for.

use crate::error::{ConfigError, MAX_LIMIT};
use crate::priority::Priority;

/// How much of the limit one permit takes: 1 to 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    /// The default: one.
    pub const ONE: Self = Self(1);

    /// A weight from any whole number.
    ///
    /// # Errors
    /// [`ConfigError::Weight`] outside 1 to 2^31 - 1.
    pub fn new<N: Copy + ToString + TryInto<u32>>(number: N) -> Result<Self, ConfigError> {
        match number.try_into() {
            Ok(weight @ 1..=MAX_LIMIT) => Ok(Self(weight)),
            _ => Err(ConfigError::Weight { got: number.to_string() }),
        }
    }

    /// The weight as a number.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

/// A request for a permit: a priority, or the gate's default, and a weight.
///
/// Most callers write just the priority: `gate.try_admit(Priority::Sheddable)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub(crate) priority: Option<Priority>,
    pub(crate) weight: Weight,
}

impl Ask {
    /// The same request with another weight.
    #[must_use]
    pub fn weight(mut self, weight: Weight) -> Self {
        self.weight = weight;
        self
    }

    /// Whether a priority was asked for.
    #[must_use]
    #[inline]
    pub fn has_priority(&self) -> bool {
        self.priority.is_some()
    }

    /// The same request, with `priority` where it asked for none.
    #[must_use]
    #[inline]
    pub fn or_priority(mut self, priority: Option<Priority>) -> Self {
        self.priority = self.priority.or(priority);
        self
    }
}

impl From<Priority> for Ask {
    #[inline]
    fn from(priority: Priority) -> Self {
        Some(priority).into()
    }
}

/// `None` asks with the gate's default priority, and is counted as a fallback.
impl From<Option<Priority>> for Ask {
    #[inline]
    fn from(priority: Option<Priority>) -> Self {
        Self { priority, weight: Weight::ONE }
    }
}
