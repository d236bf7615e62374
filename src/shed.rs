//! The answer "not now".

use std::fmt;
use std::time::Duration;

use crate::priority::Priority;

/// How many reasons there are.
pub(crate) const REASONS: usize = 7;

/// Why a request was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The weight does not fit under the limit: the gate is full.
    Limit = 0,
    /// It would fit under the limit, but the rest is kept for more important priorities.
    Priority = 1,
    /// The rate limit is used up.
    Rate = 2,
    /// A signal says that the resource is overloaded.
    Pressure = 3,
    /// The gate is closed.
    Closed = 4,
    /// The wait was longer than allowed.
    Timeout = 5,
    /// This host's share of the fleet's limit is used up.
    Share = 6,
}

impl Reason {
    /// All reasons; the position plus one is the status that the C ABI returns.
    pub const ALL: [Self; REASONS] =
        [Self::Limit, Self::Priority, Self::Rate, Self::Pressure, Self::Closed, Self::Timeout, Self::Share];

    /// The name used in every language, in metrics and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Priority => "priority",
            Self::Rate => "rate",
            Self::Pressure => "pressure",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::Share => "share",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A request was turned away. An outcome, not a failure: small, `Copy`, and nothing is formatted or
/// computed until somebody asks.
///
/// For how long to stay away ask [`Gate::retry_after`](crate::Gate::retry_after) with the shed's
/// priority and weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[must_use]
pub struct Shed {
    /// Why.
    pub reason: Reason,
    /// The priority that was asked for, or the gate's default.
    pub priority: Priority,
    /// The weight that was asked for.
    pub weight: u32,
    /// The weight in flight when the decision was made.
    pub in_flight: u32,
    /// The gate's limit when the decision was made.
    pub limit: u32,
}

impl fmt::Display for Shed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, priority, in_flight, limit, .. } = self;
        match reason {
            Reason::Limit => write!(f, "full: {in_flight} of {limit} in flight (priority {priority})"),
            Reason::Rate => {
                write!(f, "over its rate: {in_flight} of {limit} in flight (priority {priority})")
            }
            Reason::Closed => write!(f, "closed: {in_flight} of {limit} in flight"),
            _ => write!(f, "shed by {reason}: {in_flight} of {limit} in flight (priority {priority})"),
        }
    }
}

/// How long a request that was turned away should stay away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// At least this long; zero when it would be admitted now.
    Known(Duration),
    /// Nothing was seen to tell it from.
    Unknown,
    /// As long as the gate is configured like this, never: it is closed, the weight exceeds the priority's
    /// threshold or the rate's burst, or the rate is 0 and its burst used up.
    Never,
}

impl RetryAfter {
    /// The answer where two things must come together. What one of them says is a lower bound also where nothing
    /// is known of the other, unless it says now.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Known(one), Self::Known(other)) => Self::Known(one.max(other)),
            (Self::Known(Duration::ZERO) | Self::Unknown, Self::Unknown)
            | (Self::Unknown, Self::Known(Duration::ZERO)) => Self::Unknown,
            (known, Self::Unknown) | (Self::Unknown, known) => known,
        }
    }
}
