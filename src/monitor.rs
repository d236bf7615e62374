//! The monitor: signals and the detector over them, kept up by whoever asks for permission and finds that it is
//! time to look.
//!
//! Without pressure the way in costs a reading of the clock, a comparison with the time of the next look, and a look
//! at one word that is 0. Of those who find that it is time, the one that moves that time on looks; the others go
//! on with the shares of the look before, which hold for five seconds at most. After a silence it is time to look, so
//! the first who comes is judged by what that says, not by what was before.
//!
//! A source that hangs keeps its request, and nobody else: ten milliseconds later another may look, to whom that
//! signal says what it said last, then that it does not know, and the other signals say what they measure.
//!
//! The atomics order nothing: each stands for itself, and what a word of shares rests on is in it. What a look leaves
//! behind, and when the next one is, is stored with the lock held.
//!
//! ```
//! use std::time::Duration;
//! use tidegate::detector::Rule;
//! use tidegate::monitor::Monitor;
//! use tidegate::signal::{Cpu, Signal};
//! use tidegate::{MonotonicClock, Priority};
//!
//! let monitor = Monitor::new([
//!     (Signal::new("cpu", Cpu::new), Rule::default()),
//!     (Signal::pushed("db"), Rule::new(0.8, 0.6, 1.0)?),
//! ]);
//! monitor.push("db", 0.95, Duration::from_secs(5), &MonotonicClock)?;
//! assert!(!monitor.sheds(Priority::Sheddable, &MonotonicClock), "it has not held for long enough");
//! # Ok::<(), tidegate::ConfigError>(())
//! ```

use std::sync::Arc;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::clock::Clock;
use crate::detector::{Detector, Rule};
use crate::error::ConfigError;
use crate::pressure::{Draws, Shares};
use crate::priority::Priority;
use crate::signal::{Own, Reading, Signal};
use crate::sync::{AtomicU64, Mutex, Ordering};

mod report;
mod watchlist;

pub use report::{PressureReport, SignalReport};
pub(crate) use watchlist::Watchlist;

/// For how long shares hold without a look, and further ahead than any next look.
pub(crate) const HORIZON_NS: u64 = 5_000_000_000;
/// The next look is in this time at the latest, so that holds and silences are seen.
const LONGEST_NS: u64 = 1_000_000_000;
/// And not sooner than this, however short a reading is good for or however long a look takes.
const SHORTEST_NS: u64 = 10_000_000;

/// Signals, their rules, and what they come to.
#[derive(Debug)]
pub struct Monitor {
    pace: CachePadded<Pace>,
    draws: CachePadded<Draws>,
    watch: Mutex<Watch>,
}

/// What everybody reads who asks.
#[derive(Debug)]
struct Pace {
    next_ns: AtomicU64,
    until_ns: AtomicU64,
    shares: AtomicU64,
    transitions: AtomicU64,
}

#[derive(Debug)]
struct Watch {
    signals: Watchlist,
    detector: Detector,
}

impl Monitor {
    /// Of signals with their rules. Nothing is measured before somebody asks.
    #[must_use]
    pub fn new(signals: impl IntoIterator<Item = (Signal, Rule)>) -> Self {
        Self::of(Watchlist::unchecked(signals))
    }

    pub(crate) fn of(signals: Watchlist) -> Self {
        let detector = Detector::new(signals.iter().map(|(signal, rule)| (signal.name().into(), *rule)));
        Self {
            pace: CachePadded::new(Pace {
                next_ns: AtomicU64::new(0),
                until_ns: AtomicU64::new(0),
                shares: AtomicU64::new(0),
                transitions: AtomicU64::new(0),
            }),
            draws: CachePadded::default(),
            watch: Mutex::new(Watch { signals, detector }),
        }
    }

    /// Whether a request of this priority is shed now.
    pub fn sheds(&self, priority: Priority, clock: &dyn Clock) -> bool {
        let now_ns = clock.now_ns();
        if self.is_due(now_ns) {
            self.look_if_first(now_ns, clock, None);
        }
        self.draw(priority, now_ns)
    }

    /// Whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        // Past, or so far ahead that the clock must have gone back.
        is_beyond(self.pace.next_ns.load(Ordering::Relaxed), now_ns.wrapping_add(1))
    }

    /// Looks, unless somebody else does; whether it has.
    #[cold]
    pub(crate) fn look_if_first(&self, now_ns: u64, clock: &dyn Clock, gate: Option<&dyn Own>) -> bool {
        let next_ns = self.pace.next_ns.load(Ordering::Relaxed);
        let first = is_beyond(next_ns, now_ns.wrapping_add(1)) && self.claim(next_ns, now_ns);
        if first {
            self.look(clock, gate);
        }
        first
    }

    fn claim(&self, next_ns: u64, now_ns: u64) -> bool {
        let after_ns = now_ns.saturating_add(SHORTEST_NS);
        let next = &self.pace.next_ns;
        next.compare_exchange(next_ns, after_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether the next request of this priority is shed, as was last seen.
    #[inline]
    pub(crate) fn draw(&self, priority: Priority, now_ns: u64) -> bool {
        let shares = self.shares(now_ns);
        !shares.is_none() && self.draws.next(shares, priority)
    }

    /// How much of each priority is shed, as was last seen, if that still holds.
    #[inline]
    pub(crate) fn shares(&self, now_ns: u64) -> Shares {
        let shares = Shares::from_bits(self.pace.shares.load(Ordering::Relaxed));
        if shares.is_none() || self.holds(now_ns) { shares } else { Shares::NONE }
    }

    /// Whether what was last seen still holds.
    pub(crate) fn holds(&self, now_ns: u64) -> bool {
        // Whoever read the clock before a look ended finds the horizon further ahead.
        self.pace.until_ns.load(Ordering::Relaxed).wrapping_sub(now_ns) <= 2 * HORIZON_NS
    }

    /// How many transitions there have been.
    pub(crate) fn transitions(&self) -> u64 {
        self.pace.transitions.load(Ordering::Relaxed)
    }

    /// Reads the signals that are due, and judges all of them. No lock is held meanwhile.
    fn look(&self, clock: &dyn Clock, gate: Option<&dyn Own>) {
        let (signals, before_ns) = {
            let watch = self.watch.lock();
            (watch.signals.clone(), self.pace.next_ns.load(Ordering::Relaxed))
        };
        let readings: Vec<Reading> =
            signals.iter().map(|(signal, _)| signal.reading_of(clock, gate)).collect();
        let now_ns = clock.now_ns();
        let due_ns = signals.iter().filter_map(|(signal, _)| signal.due_ns()).min();
        let ahead_ns = due_ns.map_or(LONGEST_NS, |due_ns| due_ns.saturating_sub(now_ns));
        let next_ns = now_ns.saturating_add(ahead_ns.clamp(SHORTEST_NS, LONGEST_NS));

        let mut watch = self.watch.lock();
        if !watch.signals.is(&signals) {
            return; // these readings are not of what is watched now, and the next who asks looks
        }
        watch.detector.look(now_ns, &readings);
        self.tell(&watch.detector, now_ns, gate);
        // Unless somebody has looked since, or pushed a value that was not looked at: with the lock held, as by a push,
        // so that one of the two sees the other.
        let next = &self.pace.next_ns;
        let _ = next.compare_exchange(before_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// With the lock held: what came of an earlier look never replaces what came of a later one.
    fn tell(&self, detector: &Detector, now_ns: u64, gate: Option<&dyn Own>) {
        let pressure = detector.pressure();
        self.pace.until_ns.store(now_ns.saturating_add(HORIZON_NS), Ordering::Relaxed);
        self.pace.shares.store(pressure.shares().bits(), Ordering::Relaxed);
        self.pace.transitions.store(detector.transitions(), Ordering::Relaxed);
        if let Some(gate) = gate {
            gate.show(pressure.level, detector.is_overloaded());
        }
    }

    /// Pushes a value into the signal of this name. The next who asks looks at it.
    ///
    /// # Errors
    /// [`ConfigError::Signal`] when there is no such signal, and those of [`Signal::push`].
    pub fn push(
        &self,
        name: &str,
        value: f64,
        good_for: Duration,
        clock: &dyn Clock,
    ) -> Result<(), ConfigError> {
        let signals = self.watch.lock().signals.clone();
        let mut names = signals.iter().map(|(signal, _)| signal);
        let signal = names
            .find(|signal| signal.name() == name)
            .ok_or_else(|| ConfigError::Signal { got: name.to_owned() })?;
        signal.push(value, good_for, clock)?;
        self.look_soon(&self.watch.lock());
        Ok(())
    }

    /// Watches other signals from now on; those that were here before stay what they are.
    pub(crate) fn change(&self, signals: &Watchlist, now_ns: u64, gate: &dyn Own) {
        let mut watch = self.watch.lock();
        let before = watch.signals.clone();
        let names =
            signals.iter().map(|(signal, rule)| (Arc::from(signal.name()), *rule, before.place(signal)));
        watch.detector.change(now_ns, names);
        watch.signals = signals.clone();
        self.tell(&watch.detector, now_ns, Some(gate));
        self.look_soon(&watch);
    }

    /// The next who asks looks.
    fn look_soon(&self, _locked: &Watch) {
        self.pace.next_ns.store(0, Ordering::Relaxed);
    }

    /// The detector as it was after the last look.
    #[must_use]
    pub fn detector(&self) -> Detector {
        self.watch.lock().detector.clone()
    }

    /// What was seen at the last look.
    #[must_use]
    pub fn report(&self, now_ns: u64) -> PressureReport {
        let (signals, detector) = {
            let watch = self.watch.lock();
            (watch.signals.clone(), watch.detector.clone())
        };
        PressureReport::of(&signals, &detector, now_ns)
    }
}

/// Whether a time lies before now, or further ahead than the horizon.
#[inline]
fn is_beyond(time_ns: u64, now_ns: u64) -> bool {
    time_ns.wrapping_sub(now_ns) > HORIZON_NS
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
