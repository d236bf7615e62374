//! What a reload changed, as data and in words.

use std::fmt;

use crate::priority::{Priority, Threshold, Thresholds};
use crate::rate::Rate;

/// One thing that a reload changed. Shown as a sentence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The gate; `None` where it is about the classifier.
    pub gate: Option<Box<str>>,
    /// What is different now.
    pub difference: Difference,
}

/// What can be different after a reload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// The gate is new.
    Added,
    /// The file has the gate no more: it is closed.
    Removed {
        /// The weight that was still inside.
        in_flight: u32,
    },
    /// The file has a removed gate again: it is open.
    Reopened {
        /// The weight that was still inside.
        in_flight: u32,
    },
    /// The file has a removed gate again, but its owner had closed it, too, and that is for good.
    StaysClosed,
    /// The limit.
    Limit {
        /// Before.
        from: u32,
        /// From now on.
        to: u32,
    },
    /// The thresholds, as they are configured.
    Thresholds {
        /// Before.
        from: Thresholds,
        /// From now on.
        to: Thresholds,
    },
    /// The rate, with its burst; `None`: any.
    Rate {
        /// Before.
        from: Option<Rate>,
        /// From now on.
        to: Option<Rate>,
    },
    /// The priority of requests that name none.
    DefaultPriority {
        /// Before.
        from: Priority,
        /// From now on.
        to: Priority,
    },
    /// Whether requests are turned away; `false` is dry run.
    Enforce {
        /// Before.
        from: bool,
        /// From now on.
        to: bool,
    },
    /// The classifier's rules or its default.
    Classifier,
}

impl Difference {
    /// The cause of a changed limit, in its [history](crate::Gate::limit_history).
    pub const CAUSE: &str = "reload";

    /// The key of the file that it is about: `"limit"`; of the gate or the classifier as a whole, `""`.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Added
            | Self::Removed { .. }
            | Self::Reopened { .. }
            | Self::StaysClosed
            | Self::Classifier => "",
            Self::Limit { .. } => "limit",
            Self::Thresholds { .. } => "thresholds",
            Self::Rate { .. } => "rate",
            Self::DefaultPriority { .. } => "default_priority",
            Self::Enforce { .. } => "enforce",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.gate {
            Some(gate) => write!(f, "gate {gate}: {}", self.difference),
            None => write!(f, "{}", self.difference),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added => f.write_str("added"),
            Self::Removed { in_flight } => write!(f, "removed, and closed{}", Inside(*in_flight)),
            Self::Reopened { in_flight } => write!(f, "added again, and open{}", Inside(*in_flight)),
            Self::StaysClosed => {
                f.write_str("added again, but it stays closed: it was closed by the program")
            }
            Self::Limit { from, to } => write!(f, "limit {from} -> {to}"),
            Self::Thresholds { from, to } => write!(f, "thresholds {} -> {}", Shares(from), Shares(to)),
            Self::Rate { from, to } => write!(f, "rate {} -> {}", Burst(*from), Burst(*to)),
            Self::DefaultPriority { from, to } => write!(f, "default_priority {from} -> {to}"),
            Self::Enforce { from, to } => write!(f, "enforce {from} -> {to}"),
            Self::Classifier => f.write_str("classifier: changed"),
        }
    }
}

struct Inside(u32);

impl fmt::Display for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(f, ", with {} in flight", self.0) } else { Ok(()) }
    }
}

/// A rate with its burst, or that there is none.
struct Burst(Option<Rate>);

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => write!(f, "{rate} (burst {})", rate.burst()),
            None => f.write_str("none"),
        }
    }
}

/// As the file has them: `{sheddable = 0.5}`.
struct Shares<'t>(&'t Thresholds);

impl fmt::Display for Shares<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        let set = Priority::ALL.into_iter().filter_map(|priority| Some((priority, self.0.get(priority)?)));
        for (at, (priority, threshold)) in set.enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match threshold {
                Threshold::Ppm(_) => write!(f, "{comma}{priority} = {threshold}")?,
                Threshold::Reserve(weight) => write!(f, "{comma}{priority} = {{reserve = {weight}}}")?,
            }
        }
        f.write_str("}")
    }
}
