//! What can be wrong with a configuration. Each message names the value and the rule, and reads
//! the same in every language.

use crate::controller::BoundsError;
use crate::priority::{Priority, Threshold};

/// The largest limit and the largest weight: 2^31 - 1.
pub const MAX_LIMIT: u32 = (1 << 31) - 1;

/// The largest count of a rate: 10^10 a second, a minute or an hour.
pub const MAX_RATE_COUNT: u64 = 10_000_000_000;

/// The longest name of a gate, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 255;

/// A value that breaks a rule. Nothing was changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A limit outside 0 to 2^31 - 1.
    #[error("limit must be a whole number from 0 to {MAX_LIMIT}, got {got}")]
    Limit {
        /// What was given.
        got: String,
    },
    /// A weight outside 1 to 2^31 - 1.
    #[error("weight must be a whole number from 1 to {MAX_LIMIT}, got {got}")]
    Weight {
        /// What was given.
        got: String,
    },
    /// A gate's name that is empty, too long or holds a control character.
    #[error("name must be 1 to {MAX_NAME_BYTES} bytes of UTF-8 without control characters, got {got:?}")]
    Name {
        /// What was given.
        got: String,
    },
    /// No priority has this name.
    #[error(
        "priority must be one of critical_plus, critical (essential), sheddable_plus, \
         sheddable (non-essential), got {got:?}"
    )]
    Priority {
        /// What was given.
        got: String,
    },
    /// No outcome has this name.
    #[error("outcome must be one of success, overload, ignore, got {got:?}")]
    Outcome {
        /// What was given.
        got: String,
    },
    /// A threshold that is not a share of the limit.
    #[error("a threshold must be a fraction of the limit from 0 to 1, got {got}")]
    Fraction {
        /// What was given.
        got: f64,
    },
    /// A threshold above one million parts per million.
    #[error("a threshold must be 0 to 1000000 parts per million of the limit, got {got}")]
    Ppm {
        /// What was given.
        got: String,
    },
    /// A reserve outside 0 to 2^31 - 1.
    #[error("a reserve must be a whole number from 0 to {MAX_LIMIT}, got {got}")]
    Reserve {
        /// What was given.
        got: String,
    },
    /// A rate that is not a count per unit.
    #[error(
        "rate must be COUNT/UNIT, a whole number from 0 to {MAX_RATE_COUNT} and s, min or h, \
         such as \"150/min\", got {got:?}"
    )]
    Rate {
        /// What was given.
        got: String,
    },
    /// A burst outside 1 to 2^31 - 1.
    #[error("burst must be a whole number from 1 to {MAX_LIMIT}, got {got}")]
    Burst {
        /// What was given.
        got: String,
    },
    /// A burst of no rate.
    #[error("burst needs a rate, got {got} without one")]
    BurstAlone {
        /// What was given.
        got: String,
    },
    /// The directory that a gate was to be published in cannot take its file.
    #[error(
        "a gate is published in a directory that exists, where this process may create files, \
         got {directory:?}: {problem}"
    )]
    Directory {
        /// What was given.
        directory: String,
        /// What the system said.
        problem: String,
    },
    /// The most important priority may fill the gate: its threshold is the limit.
    #[error("the threshold of critical_plus is the limit itself (1.0), got {got}")]
    TopThreshold {
        /// What was given.
        got: Threshold,
    },
    /// A less important priority would be let in where a more important one is not.
    #[error(
        "thresholds must not rise as importance falls: {priority} ({threshold}) is above \
         {more_important} ({bound})"
    )]
    ThresholdRises {
        /// The less important priority.
        priority: Priority,
        /// Its threshold.
        threshold: Threshold,
        /// The more important priority that it would pass.
        more_important: Priority,
        /// The more important one's threshold.
        bound: Threshold,
    },
    /// An attribute's name that is empty, too long or holds a control character.
    #[error(
        "an attribute's name must be 1 to {MAX_NAME_BYTES} bytes of UTF-8 without control characters, got {got:?}"
    )]
    Attribute {
        /// What was given.
        got: String,
    },
    /// Two sets of patterns for one attribute.
    #[error("an attribute may stand once in a match, with a list for alternatives, got {got:?} twice")]
    AttributeTwice {
        /// The attribute, in the form in which names are compared.
        got: String,
    },
    /// A rule that would match everything.
    #[error("a match must name an attribute; what holds for all the rest is the default, got an empty match")]
    EmptyMatch,
    /// Essential requests beside rules.
    #[error(
        "essential takes neither rules nor a default beside it, since all the rest is non-essential, got {got}"
    )]
    EssentialAndMore {
        /// What was given besides.
        got: &'static str,
    },
    /// Something that there is too much or too little of.
    #[error("{what} must be from {least} to {most}, got {got}")]
    Size {
        /// What was counted.
        what: &'static str,
        /// The least that is allowed.
        least: usize,
        /// The most that is allowed.
        most: usize,
        /// How much there is.
        got: usize,
    },
    /// A pressure that is not a share.
    #[error("a pressure must be a number from 0 to 1, got {got}")]
    Pressure {
        /// What was given.
        got: f64,
    },
    /// A signal's thresholds that leave no band between them.
    #[error(
        "a signal's thresholds must be 0 <= leave < enter <= full <= 1, \
         got leave {leave}, enter {enter}, full {full}"
    )]
    SignalThresholds {
        /// Not overloaded any more at this pressure or below.
        leave: f64,
        /// Overloaded at this pressure or above.
        enter: f64,
        /// As overloaded as can be.
        full: f64,
    },
    /// No signal has this name.
    #[error("no signal has the name {got:?}")]
    Signal {
        /// What was given.
        got: String,
    },
    /// No signal is of this kind.
    #[error(
        "signal must be one of cpu, memory, psi-cpu, psi-memory, psi-io, latency, errors, pushed, got {got:?}"
    )]
    SignalKind {
        /// What was given.
        got: String,
    },
    /// Two signals of one gate have the same name.
    #[error("each signal of a gate has a name of its own, got {got:?} twice")]
    SignalTwice {
        /// The name.
        got: String,
    },
    /// A gate's latency is measured against its objective.
    #[error("the signal {name:?} measures latency against the gate's objective, got none")]
    SignalObjective {
        /// The signal.
        name: String,
    },
    /// A value was pushed into a signal that has a source of its own.
    #[error("values can only be pushed into a signal without a source; {name:?} is measured")]
    SignalMeasured {
        /// The signal.
        name: String,
    },
    /// Bounds of a controller that break a rule.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    /// A limit that the gate's controller may not hold.
    #[error("limit must be from min ({min}) to max ({max}) of the gate's controller, got {got}")]
    LimitBounds {
        /// What was given.
        got: u32,
        /// The smallest limit allowed.
        min: u32,
        /// The largest limit allowed.
        max: u32,
    },
    /// A controller that could come to a limit at which nobody is let in, and hears of no answers there.
    #[error(
        "the reserves must leave something for the default priority at the controller's least limit, or it never \
         rises again: got min {min} with nothing left for {priority}"
    )]
    NoRoom {
        /// The controller's smallest limit.
        min: u32,
        /// The priority of requests that name none.
        priority: Priority,
    },
}
