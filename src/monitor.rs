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
//! The atomics order nothing: each stands for itself, and what a word of shares rests on is in it.
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

use std::time::Duration;

use crate::clock::Clock;
use crate::detector::{Detector, Rule};
use crate::error::ConfigError;
use crate::pressure::{Draws, Shares};
use crate::priority::Priority;
use crate::signal::{Reading, Report, Signal};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// For how long shares hold without a look, and further ahead than any next look.
const HORIZON_NS: u64 = 5_000_000_000;
/// The next look is in this time at the latest, so that holds and silences are seen.
const LONGEST_NS: u64 = 1_000_000_000;
/// And not sooner than this, however short a reading is good for or however long a look takes.
const SHORTEST_NS: u64 = 10_000_000;

/// Signals, their rules, and what they come to.
#[derive(Debug)]
pub struct Monitor {
    signals: Box<[(Signal, Rule)]>,
    detector: Mutex<Detector>,
    next_ns: AtomicU64,
    until_ns: AtomicU64,
    shares: AtomicU64,
    draws: Draws,
}

impl Monitor {
    /// Of signals with their rules. Nothing is measured before somebody asks.
    #[must_use]
    pub fn new(signals: impl IntoIterator<Item = (Signal, Rule)>) -> Self {
        let signals: Box<[_]> = signals.into_iter().collect();
        let detector = Detector::new(signals.iter().map(|(signal, rule)| (signal.name().into(), *rule)));
        Self {
            signals,
            detector: Mutex::new(detector),
            next_ns: AtomicU64::new(0),
            until_ns: AtomicU64::new(0),
            shares: AtomicU64::new(0),
            draws: Draws::default(),
        }
    }

    /// Whether a request of this priority is shed now.
    #[inline]
    pub fn sheds(&self, priority: Priority, clock: &dyn Clock) -> bool {
        self.sheds_at(clock.now_ns(), priority, clock)
    }

    /// The same for who has just read the clock.
    #[inline]
    pub fn sheds_at(&self, now_ns: u64, priority: Priority, clock: &dyn Clock) -> bool {
        let next_ns = self.next_ns.load(Ordering::Relaxed);
        // Past, or so far ahead that the clock must have gone back.
        if is_beyond(next_ns, now_ns.wrapping_add(1)) {
            self.look_if_first(next_ns, now_ns, clock);
        }
        let shares = Shares::from_bits(self.shares.load(Ordering::Relaxed));
        !shares.is_none() && self.draw(shares, priority, now_ns)
    }

    #[cold]
    fn draw(&self, shares: Shares, priority: Priority, now_ns: u64) -> bool {
        !is_beyond(self.until_ns.load(Ordering::Relaxed), now_ns) && self.draws.next(shares, priority)
    }

    #[cold]
    fn look_if_first(&self, next_ns: u64, now_ns: u64, clock: &dyn Clock) {
        let after_ns = now_ns.saturating_add(SHORTEST_NS);
        let first = self.next_ns.compare_exchange(next_ns, after_ns, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.look(clock);
        }
    }

    /// Reads the signals that are due, and judges all of them.
    pub fn look(&self, clock: &dyn Clock) {
        let before_ns = self.next_ns.load(Ordering::Relaxed);
        let readings: Vec<Reading> = self.signals.iter().map(|(signal, _)| signal.reading(clock)).collect();
        let now_ns = clock.now_ns();
        let pressure = self.detector.lock().look(now_ns, &readings);
        self.until_ns.store(now_ns.saturating_add(HORIZON_NS), Ordering::Relaxed);
        self.shares.store(pressure.shares().bits(), Ordering::Relaxed);
        let due_ns = self.signals.iter().filter_map(|(signal, _)| signal.due_ns()).min();
        let ahead_ns = due_ns.map_or(LONGEST_NS, |due_ns| due_ns.saturating_sub(now_ns));
        let next_ns = now_ns.saturating_add(ahead_ns.clamp(SHORTEST_NS, LONGEST_NS));
        // Unless somebody has looked since, or pushed a value that was not looked at.
        let _ = self.next_ns.compare_exchange(before_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed);
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
        let mut signals = self.signals.iter().map(|(signal, _)| signal);
        let signal = signals
            .find(|signal| signal.name() == name)
            .ok_or_else(|| ConfigError::Signal { got: name.to_owned() })?;
        signal.push(value, good_for, clock)?;
        self.next_ns.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The detector as it was after the last look.
    #[must_use]
    pub fn detector(&self) -> Detector {
        self.detector.lock().clone()
    }

    /// What each signal has to show for itself, in the detector's order.
    pub fn reports(&self, now_ns: u64) -> impl Iterator<Item = Report> {
        self.signals.iter().map(move |(signal, _)| signal.report(now_ns))
    }

    /// The same signals and rules with nothing seen yet, for the child of a fork.
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::new(self.signals.iter().map(|(signal, rule)| (signal.renewed(), *rule)))
    }
}

/// Whether a time lies before now, or further ahead than the horizon.
#[inline]
fn is_beyond(time_ns: u64, now_ns: u64) -> bool {
    time_ns.wrapping_sub(now_ns) > HORIZON_NS
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
