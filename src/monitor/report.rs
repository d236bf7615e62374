//! What a gate's signals say, to be shown.

use std::sync::Arc;
use std::time::Duration;

use crate::detector::{Detector, Transition};
use crate::priority::{PRIORITIES, Priority};
use crate::signal::{Detail, Kind};

use super::Watchlist;

/// What the signals say, and what comes of it. See [`Gate::pressure`](crate::Gate::pressure).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PressureReport {
    /// The pressure level, from 0 to 1: that of the worst signal.
    pub level: f64,
    /// Which share of each priority it sheds, from 0 to 1, most important first.
    pub shares: [f64; PRIORITIES],
    /// Whether any signal is overloaded.
    pub overloaded: bool,
    /// The signals, in the order in which they were given.
    pub signals: Vec<SignalReport>,
    /// The last transitions, at most 64, oldest first. Their numbers tell whether some are missing.
    pub transitions: Vec<Transition>,
    /// How many there have been.
    pub transition_count: u64,
}

/// One signal of a gate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SignalReport {
    /// Its name.
    pub name: Arc<str>,
    /// What it measures; `None` for a source or a function of one's own.
    pub kind: Option<Kind>,
    /// What it said at the last look, from 0 to 1; `None`: unknown.
    pub value: Option<f64>,
    /// Whether it is overloaded.
    pub overloaded: bool,
    /// Its own level, from 0 to 1.
    pub level: f64,
    /// Overloaded at this or above.
    pub enter: f64,
    /// Not any more at this or below.
    pub leave: f64,
    /// Its level is 1 at this.
    pub full: f64,
    /// How often it was measured, or a value pushed.
    pub reads: u64,
    /// How often it did not know.
    pub failures: u64,
    /// What the last measurement took.
    pub cost: Duration,
    /// What it shows beside its value, each with its unit in its name.
    pub details: Vec<Detail>,
}

impl PressureReport {
    pub(super) fn of(signals: &Watchlist, detector: &Detector, now_ns: u64) -> Self {
        let pressure = detector.pressure();
        let shares = pressure.shares();
        let report = |((signal, _), watched): (&(_, _), &crate::detector::Watched)| {
            let signal: &Arc<crate::signal::Signal> = signal;
            let shown = signal.report(now_ns);
            SignalReport {
                name: Arc::clone(&watched.name),
                kind: signal.kind(),
                value: watched.reading.value(),
                overloaded: watched.overloaded,
                level: watched.level,
                enter: watched.rule.enter(),
                leave: watched.rule.leave(),
                full: watched.rule.full(),
                reads: shown.reads,
                failures: shown.failures,
                cost: shown.cost,
                details: shown.details,
            }
        };
        Self {
            level: pressure.level,
            shares: Priority::ALL.map(|priority| shares.share(priority)),
            overloaded: detector.is_overloaded(),
            signals: signals.iter().zip(detector.watched()).map(report).collect(),
            transitions: detector.history().cloned().collect(),
            transition_count: detector.transitions(),
        }
    }
}
