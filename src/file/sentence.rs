//! What a reload changed, in words.

use std::fmt;
use std::time::Duration;

use super::change::{Change, Difference};
use crate::controller::{Bounds, Kind};
use crate::detector::Rule;
use crate::priority::{Priority, Threshold, Thresholds};
use crate::rate::Rate;

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
            Self::Objective { from, to } => write!(f, "objective {} -> {}", Time(*from), Time(*to)),
            Self::Controller { from, to } => {
                write!(f, "controller {} -> {}", Moved(*from), Moved(*to))
            }
            Self::Start { from, to } => write!(
                f,
                "limit {} -> {} in the file, from which the controller starts: it goes on from what it has found",
                Whole(*from),
                Whole(*to)
            ),
            Self::SignalAdded { name } => write!(f, "signal {name}: added"),
            Self::SignalRemoved { name } => write!(f, "signal {name}: removed"),
            Self::SignalChanged { name, from, to } => {
                write!(f, "signal {name}: ")?;
                meaning(f, from, to)
            }
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

/// A time, or that there is none.
struct Time(Option<Duration>);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(time) => write!(f, "{time:?}"),
            None => f.write_str("none"),
        }
    }
}

/// A number, or that there is none.
struct Whole(Option<u32>);

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("none"),
        }
    }
}

/// `goodput (4 to 200, from 29)`, or that there is none.
struct Moved(Option<(Kind, Bounds)>);

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((kind, bounds)) => {
                write!(f, "{} ({} to {}, from {})", kind.as_str(), bounds.min(), bounds.max(), bounds.prior())
            }
            None => f.write_str("none"),
        }
    }
}

/// What is different between two rules: `enter 0.85 -> 0.9, enter_for 2s -> 5s`.
fn meaning(f: &mut fmt::Formatter<'_>, from: &Rule, to: &Rule) -> fmt::Result {
    let shares = [
        ("enter", from.enter(), to.enter()),
        ("leave", from.leave(), to.leave()),
        ("full", from.full(), to.full()),
    ];
    let times = [
        ("enter_for", from.enter_for(), to.enter_for()),
        ("leave_for", from.leave_for(), to.leave_for()),
        ("dwell", from.dwell(), to.dwell()),
        ("ramp", from.ramp(), to.ramp()),
    ];
    let shares = shares.iter().map(|(key, from, to)| (key, from.to_string(), to.to_string()));
    let times = times.iter().map(|(key, from, to)| (key, format!("{from:?}"), format!("{to:?}")));
    let different = shares.chain(times).filter(|(_, from, to)| from != to);
    let parts: Vec<_> = different.map(|(key, from, to)| format!("{key} {from} -> {to}")).collect();
    f.write_str(&parts.join(", "))
}
