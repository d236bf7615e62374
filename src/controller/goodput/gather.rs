//! A window that is long enough to decide on, put together from looks.
//!
//! Looks come when somebody happens to pass, so a window is gathered piece by piece until it has the completions
//! and the time that it needs. When to look again follows from how quickly completions come; before the first
//! the distance doubles, so that a gate without traffic costs next to nothing.

use super::pace::Pace;
use crate::controller::window::{Window, float, nanoseconds};

/// Looks are not closer than this, in seconds: what they cost is bounded.
const SHORTEST_LOOK: f64 = 1e-3;
/// Nor further apart than this.
const LONGEST_LOOK: f64 = 3_600.0;
/// A first look is taken after so many completions: enough to see that all is lost.
pub(super) const FIRST: u64 = 30;
/// So many times the completions that are needed make up for time.
const PLENTY: f64 = 100.0;
/// A look that comes so many times later than asked, with this share of the completions, follows a silence.
const LATE: u64 = 4;

/// What a window must have before it decides anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) completions: f64,
    /// In seconds.
    pub(super) time: f64,
}

/// What was seen since the limit was last changed or a window was last full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gather {
    window: Window,
    asked_ns: u64,
}

impl Gather {
    pub(super) fn new() -> Self {
        Self { window: Window::default(), asked_ns: nanoseconds(SHORTEST_LOOK) }
    }

    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    pub(super) fn asked_ns(&self) -> u64 {
        self.asked_ns
    }

    pub(super) fn start(&mut self) {
        self.window = Window::default();
    }

    /// Adds a piece. After a silence it starts anew: what it averages is not one state of affairs.
    pub(super) fn add(&mut self, piece: &Window, rate: f64) {
        let expected = rate * piece.elapsed();
        let silence = expected > 10.0 && piece.count() < expected / float(LATE);
        if silence && piece.elapsed_ns / LATE > self.asked_ns {
            self.start();
        } else {
            self.window.append(piece);
        }
    }

    pub(super) fn has(&self, needs: Needs) -> bool {
        let count = self.window.count();
        count >= needs.completions
            && (self.window.elapsed() >= needs.time || count >= PLENTY * needs.completions)
    }

    /// Looks again after `seconds`.
    pub(super) fn ask(&mut self, seconds: f64) -> u64 {
        self.asked_ns = nanoseconds(seconds.clamp(SHORTEST_LOOK, LONGEST_LOOK));
        self.asked_ns
    }

    /// Looks again when the window should have what it needs.
    pub(super) fn ask_for(&mut self, needs: Needs, pace: &Pace) -> u64 {
        let have = self.window.count();
        let elapsed = if self.window.elapsed_ns == 0 { 0.0 } else { self.window.elapsed() };
        let rate = if have > 0.0 { have / elapsed } else { pace.rate() };
        let first = float(FIRST);
        let (completions, time) =
            if have < first { (needs.completions.min(first), 0.0) } else { (needs.completions, needs.time) };
        // Few or none yet, whose rate says little: at most as long again. Before the first look no longer than
        // one place would take for all.
        let soon = match (have < first, elapsed > 0.0) {
            (false, _) => f64::INFINITY,
            (true, true) => elapsed,
            (true, false) => completions * pace.mean(),
        };
        let by_completions = if rate > 0.0 { (completions - have).max(0.0) / rate } else { elapsed };
        let plenty = if rate > 0.0 { PLENTY * completions / rate } else { f64::INFINITY };
        // Often enough to see in time that all is lost.
        let often = if rate > 0.0 { first / rate } else { f64::INFINITY };
        self.ask(by_completions.max((time - elapsed).min(plenty)).min(soon).min(often))
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    fn piece(ms: u64, count: u64) -> Window {
        let mut window = Window { elapsed_ns: ms * 1_000_000, ..Window::default() };
        for _ in 0..count {
            window.complete(1_000_000, true, false);
        }
        window
    }

    const NEEDS: Needs = Needs { completions: 60.0, time: 2.0 };

    #[test]
    fn a_window_needs_both_completions_and_time_or_plenty() {
        let mut gather = Gather::new();
        gather.add(&piece(1_000, 60), 0.0);
        assert!(!gather.has(NEEDS));
        gather.add(&piece(1_000, 0), 0.0);
        assert!(gather.has(NEEDS));
        gather.start();
        gather.add(&piece(1_000, 6_000), 0.0);
        assert!(gather.has(NEEDS));
    }

    #[test]
    fn looks_double_their_distance_until_somebody_comes() {
        let (mut gather, pace) = (Gather::new(), Pace::default());
        let mut ask_ns = gather.ask_for(NEEDS, &pace);
        assert_eq!(ask_ns, 1_000_000);
        for _ in 0..5 {
            gather.add(&piece(ask_ns / 1_000_000, 0), 0.0);
            ask_ns = gather.ask_for(NEEDS, &pace);
        }
        assert_eq!(ask_ns, 16_000_000);
        // Ten came in 50 ms: as long again, then at thirty, then when all should be there.
        gather.start();
        gather.add(&piece(50, 10), 0.0);
        assert_eq!(gather.ask_for(NEEDS, &pace), 50_000_000);
        gather.add(&piece(100, 20), 0.0);
        assert_eq!(gather.ask_for(NEEDS, &pace), 150_000_000, "thirty more");
    }

    #[test]
    fn a_silence_starts_the_window_anew_and_slow_traffic_does_not() {
        let mut gather = Gather::new();
        gather.ask(1.0);
        gather.add(&piece(1_000, 40), 40.0);
        gather.add(&piece(700_000, 1), 40.0);
        assert_eq!(gather.window().completions, 0);
        // As late, but nobody expected more.
        gather.add(&piece(1_000, 1), 0.001);
        gather.add(&piece(700_000, 1), 0.001);
        assert_eq!(gather.window().completions, 2);
    }
}
