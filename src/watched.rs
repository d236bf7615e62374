//! Admission where signals are watched, besides the limit.
//!
//! The pressure decides first, before the word and the rate are looked at, so what it sheds uses nothing of either.
//! A closed gate is closed, whatever its signals say. A gate without signals pays nothing, as one without a rate (see
//! `rated`): the short way in is closed where there are some.
//!
//! Who finds that it is time looks at the signals (see `monitor`), which may take a while. Only then does the time begin
//! for which the permit is held: a slow source is no latency of what the gate protects.

use std::time::Duration;

use crate::admission::Inner;
use crate::control::Control;
use crate::controlled::TRIES;
use crate::detector::{Rule, Transition};
use crate::error::ConfigError;
use crate::gate::Gate;
use crate::monitor::{Monitor, PressureReport, Watchlist};
use crate::outcome::Outcome;
use crate::priority::Priority;
use crate::shard::{Counter, Fallback, sums_at_rest};
use crate::shed::{Reason, RetryAfter, Shed};
use crate::shown::uptime_ns;
use crate::signal::{Figures, Own, Signal};
use crate::state::Flags;
use crate::word::Taken;

impl Inner {
    /// As `decide_rated`, with the pressure. Where the gate measures, the time of the entry becomes that after a look.
    pub(crate) fn decide_watched(
        &self,
        priority: Priority,
        fallback: Fallback,
        weight: u32,
        measured_ns: &mut Option<u64>,
    ) -> Result<Taken, Shed> {
        let mut read_ns = None;
        if self.state.config.flags().has(Flags::WATCHED) {
            let now_ns = self.watch_at(measured_ns.unwrap_or_else(|| self.clock.now_ns()));
            *measured_ns = measured_ns.map(|before_ns| now_ns.max(before_ns));
            read_ns = Some(now_ns);
            if self.monitor().draw(priority, now_ns) {
                return Err(self.shed_by_pressure(priority, weight));
            }
        }
        self.decide_rated(priority, fallback, weight, read_ns, measured_ns)
    }

    /// Looks at the signals if it is time, and says what time it is then.
    fn watch_at(&self, now_ns: u64) -> u64 {
        let monitor = self.monitor();
        let looked = monitor.is_due(now_ns) && monitor.look_if_first(now_ns, &*self.clock, Some(self));
        if looked { self.clock.now_ns() } else { now_ns }
    }

    #[cold]
    fn shed_by_pressure(&self, priority: Priority, weight: u32) -> Shed {
        let view = self.word.view(&self.state);
        let reason = if view.closed() { Reason::Closed } else { Reason::Pressure };
        Shed { reason, priority, weight, in_flight: view.in_flight(), limit: self.state.config.limit() }
    }

    /// For how long the pressure alone keeps a request away: nobody knows, unless it does not.
    pub(crate) fn pressure_wait(&self, now_ns: u64, priority: Priority) -> RetryAfter {
        let watched = self.state.config.flags().has(Flags::WATCHED);
        if watched && self.monitor().shares(now_ns).share(priority) > 0.0 {
            RetryAfter::Unknown
        } else {
            RetryAfter::Known(Duration::ZERO)
        }
    }

    fn monitor(&self) -> &Monitor {
        &self.cold().monitor
    }
}

impl Own for Inner {
    fn figures(&self) -> Figures {
        let totals = self.totals();
        let now_us = self.clock.now_ns() / 1_000;
        let measured = self.is_measured().then(|| sums_at_rest(&self.state.shards, TRIES)).flatten();
        let objective_ns = Some(self.state.config.objective_ns()).filter(|&ns| ns < u64::MAX);
        Figures {
            occupancy_us: measured.map(|sums| sums.occupancy(now_us)),
            released_weight: totals.released_weight(),
            released: totals.completions(),
            success: totals.get(Counter::Released(Outcome::Success)),
            overload: totals.get(Counter::Released(Outcome::Overload)),
            objective: objective_ns.map(Duration::from_nanos),
        }
    }

    fn show(&self, level: f64, overloaded: bool) {
        self.state.config.shown.store(level, overloaded, uptime_ns());
    }
}

/// Signals.
impl Gate {
    /// Pushes a value into the signal of this name, good for so long; then it is unknown until the next one. Whoever
    /// asks for a permit next has it looked at.
    ///
    /// # Errors
    /// [`ConfigError::Signal`] when the gate has no such signal, [`ConfigError::SignalMeasured`] when that is measured
    /// and not pushed, [`ConfigError::Pressure`] when the value is not a number from 0 to 1. Nothing is changed then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::Gate;
    /// use tidegate::detector::Rule;
    /// use tidegate::signal::Signal;
    ///
    /// let gate = Gate::builder("db", 20).signals([(Signal::pushed("waits"), Rule::default())]).build()?;
    /// gate.signal("waits", 0.7, Duration::from_secs(5))?;
    /// assert_eq!(gate.pressure().expect("it has signals").signals[0].value, Some(0.7));
    /// # Ok::<(), tidegate::ConfigError>(())
    /// ```
    pub fn signal(&self, name: &str, value: f64, good_for: Duration) -> Result<(), ConfigError> {
        self.inner.monitor().push(name, value, good_for, &*self.inner.clock)
    }

    /// What the gate's signals say, and what comes of it; `None` where it has none.
    ///
    /// Where it is time for a look this looks, as a request would: nobody is told of an overload that nobody has
    /// seen for hours.
    #[must_use]
    pub fn pressure(&self) -> Option<PressureReport> {
        let inner = &*self.inner;
        if !inner.state.config.flags().has(Flags::WATCHED) {
            return None;
        }
        let now_ns = inner.watch_at(inner.clock.now_ns());
        Some(inner.monitor().report(now_ns))
    }

    /// How many transitions of signals there have been: one load, for whoever wants to know whether there are new ones.
    #[must_use]
    pub fn pressure_transitions(&self) -> u64 {
        self.inner.monitor().transitions()
    }

    /// Of the last 64 transitions those with a greater number, oldest first.
    #[must_use]
    pub fn pressure_transitions_after(&self, number: u64) -> Vec<Transition> {
        let detector = self.inner.monitor().detector();
        detector.history().filter(|transition| transition.number > number).cloned().collect()
    }

    /// Watches other signals from now on. Those that stay, by name and by what they measure, keep what they have read
    /// and whether they are overloaded; a changed rule counts from the next look on. No signals: no pressure.
    ///
    /// # Errors
    /// [`ConfigError::SignalTwice`], [`ConfigError::Name`] for a signal's name, and [`ConfigError::SignalObjective`].
    /// Nothing is changed then.
    pub fn set_signals(&self, signals: impl IntoIterator<Item = (Signal, Rule)>) -> Result<(), ConfigError> {
        let signals: Vec<_> = signals.into_iter().collect(); // somebody else's code: not under the lock
        let inner = &*self.inner;
        let now_ns = inner.clock.now_ns();
        let mut control = inner.cold().control.lock();
        let signals = Watchlist::new(signals, control.objective)?;
        let before = inner.store_signals(&mut control, &signals, now_ns);
        control.store_thresholds(&inner.state.config);
        inner.word.publish(&inner.state);
        drop(control);
        drop(before); // somebody else's code, too
        Ok(())
    }
}

impl Inner {
    /// Takes signals over, with the control lock held, for whoever then stores the thresholds and publishes. Returns
    /// what is to be dropped without the lock.
    pub(crate) fn store_signals(&self, control: &mut Control, signals: &Watchlist, now_ns: u64) -> Watchlist {
        let signals = control.signals.becoming(signals);
        self.monitor().change(&signals, now_ns, self);
        if signals.is_empty() {
            self.state.config.lower(Flags::WATCHED);
        } else {
            self.state.config.raise(Flags::WATCHED_ON);
        }
        std::mem::replace(&mut control.signals, signals)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
