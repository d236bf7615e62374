//! When signals mean overload, and how much. Pure: times and readings in, a pressure level out.
//!
//! # One signal
//!
//! A signal is *overloaded* once it has stayed at its `enter` threshold or above for `enter_for`, and is not
//! any more once it has stayed at `leave` or below for `leave_for` and its level has come down to 0; between the two
//! thresholds it stays what it is. After either change it rests for `dwell`. So whatever a signal does, it changes at most once in
//! `max(enter_for, dwell)` and back at most once in `max(leave_for, dwell)`.
//!
//! While it is overloaded its level moves towards
//!
//! ```text
//! (reading - leave) / (full - leave), from 0 to 1
//! ```
//!
//! (Envoy's "scaled trigger"), no faster than from 0 to 1, or back, in `ramp`. The ramp sheds the less important
//! first in time, too: what matters is only touched if shedding the rest for some seconds was not enough. What is
//! shed now shows in the signal once the work inside has left, so a ramp that is short beside that makes both
//! swing between all and nothing (`loop_tests`): it should be ten times what the work takes, twenty are better.
//!
//! # Several signals
//!
//! The worst level counts. Each stands for another resource, and one that has run out is enough: a mean
//! would hide it behind the idle ones, and a sum would count one cause as often as there are signals that see it.
//!
//! # What is not known
//!
//! Unknown is not overloaded: a signal that becomes unknown leaves at once. Nor is what nobody looked at: after
//! a silence in which it could have left unseen ([`Rule::quiet`]) an overloaded signal is judged by its fresh
//! reading alone, which is overload at `enter` or above, and nothing below.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use self::rule::LEAST_QUIET;
use crate::pressure::Shares;
use crate::signal::Reading;

#[cfg(test)]
mod loop_tests;
mod rule;
#[cfg(test)]
#[allow(clippy::float_cmp)] // what is compared is exact
mod tests;
mod transition;

pub use rule::Rule;
pub use transition::{Cause, Transition};

/// Transitions that are remembered.
const HISTORY: usize = 64;

/// What the detector makes of all signals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// From 0 to 1.
    pub level: f64,
    /// Which signal it comes from, as an index into those that the detector was made for.
    pub worst: Option<usize>,
}

impl Pressure {
    /// How much of each priority it sheds.
    #[must_use]
    pub fn shares(&self) -> Shares {
        Shares::at(self.level)
    }

    /// Of several levels the worst counts.
    fn include(&mut self, index: usize, level: f64) {
        if level > self.level {
            *self = Self { level, worst: Some(index) };
        }
    }
}

/// A signal as the detector sees it.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Its name.
    pub name: Arc<str>,
    /// What its readings mean.
    pub rule: Rule,
    /// The latest reading that was looked at.
    pub reading: Reading,
    /// Whether it means overload.
    pub overloaded: bool,
    /// Its own pressure, from 0 to 1.
    pub level: f64,
    changed_ns: Option<u64>,
    /// Since when it has been where it must stay for a while to change.
    beyond_ns: Option<u64>,
}

/// Watches signals.
#[derive(Clone, Debug)]
pub struct Detector {
    watched: Vec<Watched>,
    looked_ns: Option<u64>,
    history: History,
}

/// The latest transitions, numbered.
#[derive(Clone, Debug, Default)]
struct History {
    last: VecDeque<Transition>,
    count: u64,
}

impl History {
    fn push(&mut self, transition: Transition) {
        self.count += 1;
        if self.last.len() == HISTORY {
            self.last.pop_front();
        }
        self.last.push_back(Transition { number: self.count, ..transition });
    }
}

impl Detector {
    /// Of signals, by name and rule, in the order in which their readings will come.
    #[must_use]
    pub fn new(signals: impl IntoIterator<Item = (Arc<str>, Rule)>) -> Self {
        let watched = signals.into_iter().map(|(name, rule)| Watched::new(name, rule)).collect();
        Self { watched, looked_ns: None, history: History::default() }
    }

    /// Judges what the signals say now. A reading that is missing is unknown.
    pub fn look(&mut self, now_ns: u64, readings: &[Reading]) -> Pressure {
        let before_ns = self.looked_ns.unwrap_or(now_ns);
        let since = Since::between(before_ns, now_ns);
        let now_ns = if matches!(since, Since::ClockWentBack) { now_ns } else { now_ns.max(before_ns) };
        self.looked_ns = Some(now_ns);
        let readings = readings.iter().copied().chain(std::iter::repeat(Reading::UNKNOWN));
        for (watched, reading) in self.watched.iter_mut().zip(readings) {
            if let Some(transition) = watched.look(now_ns, since, reading) {
                self.history.push(transition);
            }
        }
        self.pressure()
    }

    /// Watches other signals from now on: each with the place that it had, if it is one of those before. Such a one
    /// stays what it is, and its new rule counts from the next look on.
    pub fn change(
        &mut self,
        now_ns: u64,
        signals: impl IntoIterator<Item = (Arc<str>, Rule, Option<usize>)>,
    ) {
        let mut before: Vec<_> = std::mem::take(&mut self.watched).into_iter().map(Some).collect();
        for (name, rule, place) in signals {
            let kept = place.and_then(|place| before.get_mut(place)?.take());
            self.watched.push(match kept {
                Some(watched) if watched.rule == rule => watched,
                Some(watched) => Watched { rule, beyond_ns: None, ..watched },
                None => Watched::new(name, rule),
            });
        }
        for mut removed in before.into_iter().flatten().filter(|removed| removed.overloaded) {
            let transition = removed.transition(now_ns, Cause::Removed);
            self.history.push(transition);
        }
    }

    /// Whether any signal is overloaded.
    #[must_use]
    pub fn is_overloaded(&self) -> bool {
        self.watched.iter().any(|watched| watched.overloaded)
    }

    /// What the last look came to.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        let mut pressure = Pressure::default();
        for (index, watched) in self.watched.iter().enumerate() {
            pressure.include(index, watched.level);
        }
        pressure
    }

    /// The signals as they were at the last look.
    #[must_use]
    pub fn watched(&self) -> &[Watched] {
        &self.watched
    }

    /// The latest transitions, the oldest first; their numbers tell whether some are missing.
    #[must_use]
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &Transition> {
        self.history.last.iter()
    }

    /// How many transitions there have been.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.history.count
    }
}

/// How long ago the last look was.
#[derive(Clone, Copy)]
enum Since {
    Looked(Duration),
    ClockWentBack,
}

impl Since {
    /// A moment back is another thread that read the clock first and looked last.
    fn between(before_ns: u64, now_ns: u64) -> Self {
        if age(before_ns, now_ns) > LEAST_QUIET {
            Self::ClockWentBack
        } else {
            Self::Looked(age(now_ns, before_ns))
        }
    }

    /// Whether what was true at the last look may have been untrue meanwhile.
    fn is_silence(self, quiet: Duration) -> bool {
        match self {
            Self::Looked(elapsed) => elapsed > quiet,
            Self::ClockWentBack => true,
        }
    }

    /// What counts for a level: after a silence it stays.
    fn step(self, silence: bool) -> Duration {
        match self {
            Self::Looked(elapsed) if !silence => elapsed,
            _ => Duration::ZERO,
        }
    }
}

impl Watched {
    fn new(name: Arc<str>, rule: Rule) -> Self {
        let reading = Reading::UNKNOWN;
        Self { name, rule, reading, overloaded: false, level: 0.0, changed_ns: None, beyond_ns: None }
    }

    fn look(&mut self, now_ns: u64, since: Since, reading: Reading) -> Option<Transition> {
        self.reading = reading;
        let silence = since.is_silence(self.rule.quiet());
        if silence {
            self.beyond_ns = None;
        }
        if matches!(since, Since::ClockWentBack) {
            self.changed_ns = None;
        }
        let change = self.change(now_ns, silence).map(|cause| self.transition(now_ns, cause));
        self.level = match reading.value() {
            Some(value) if self.overloaded => self.towards(self.rule.target(value), since.step(silence)),
            _ => 0.0,
        };
        change
    }

    /// Why the signal changes now, if it does.
    fn change(&mut self, now_ns: u64, silence: bool) -> Option<Cause> {
        let Some(value) = self.reading.value() else {
            self.beyond_ns = None;
            return self.overloaded.then_some(Cause::Unknown);
        };
        let rule = self.rule;
        if self.overloaded && silence && value < rule.enter {
            return Some(Cause::Silence);
        }
        let (beyond, hold, cause) = if self.overloaded {
            (value <= rule.leave, rule.leave_for, Cause::Left)
        } else {
            (value >= rule.enter, rule.enter_for, Cause::Entered)
        };
        if !beyond {
            self.beyond_ns = None;
            return None;
        }
        let since_ns = *self.beyond_ns.get_or_insert(now_ns);
        let stayed = age(now_ns, since_ns) >= hold;
        let rested = self.changed_ns.is_none_or(|changed_ns| age(now_ns, changed_ns) >= rule.dwell);
        // A level that would fall from a height lets in at once all that it kept out.
        let come_down = self.level <= 0.0;
        (stayed && rested && come_down).then_some(cause)
    }

    fn transition(&mut self, now_ns: u64, cause: Cause) -> Transition {
        self.overloaded = cause == Cause::Entered;
        self.changed_ns = Some(now_ns);
        Transition {
            number: 0,
            at_ns: now_ns,
            signal: Arc::clone(&self.name),
            cause,
            reading: self.reading,
            threshold: if cause == Cause::Left { self.rule.leave } else { self.rule.enter },
            held: self.beyond_ns.take().map_or(Duration::ZERO, |since_ns| age(now_ns, since_ns)),
            level: self.level,
        }
    }

    fn towards(&self, target: f64, elapsed: Duration) -> f64 {
        if self.rule.ramp.is_zero() {
            return target;
        }
        let step = elapsed.as_secs_f64() / self.rule.ramp.as_secs_f64();
        self.level + (target - self.level).clamp(-step, step)
    }
}

fn age(now_ns: u64, since_ns: u64) -> Duration {
    Duration::from_nanos(now_ns.saturating_sub(since_ns))
}
