//! What a reload changed, as data and in words.

use std::time::Duration;

use crate::controller::{Bounds, Kind};
use crate::detector::Rule;
use crate::priority::{Priority, Thresholds};
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
    /// The time within which an answer is good; `None`: every success is.
    Objective {
        /// Before.
        from: Option<Duration>,
        /// From now on.
        to: Option<Duration>,
    },
    /// The controller and between which limits it moves, from which on; `None`: there is none.
    Controller {
        /// Before.
        from: Option<(Kind, Bounds)>,
        /// From now on.
        to: Option<(Kind, Bounds)>,
    },
    /// The file's limit, where a controller goes on from the one that it has found.
    Start {
        /// Before; `None`: the file had none.
        from: Option<u32>,
        /// From now on.
        to: Option<u32>,
    },
    /// A signal is new.
    SignalAdded {
        /// Its name.
        name: Box<str>,
    },
    /// The file has a signal no more.
    SignalRemoved {
        /// Its name.
        name: Box<str>,
    },
    /// What a signal's readings mean.
    SignalChanged {
        /// Its name.
        name: Box<str>,
        /// Before.
        from: Rule,
        /// From now on.
        to: Rule,
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
            Self::Limit { .. } | Self::Start { .. } => "limit",
            Self::Thresholds { .. } => "thresholds",
            Self::Rate { .. } => "rate",
            Self::Objective { .. } => "objective",
            Self::Controller { .. } => "controller",
            Self::SignalAdded { .. } | Self::SignalRemoved { .. } | Self::SignalChanged { .. } => "signals",
            Self::DefaultPriority { .. } => "default_priority",
            Self::Enforce { .. } => "enforce",
        }
    }
}
