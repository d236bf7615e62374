//! The window that the published controllers share: `WindowedLimit` of Netflix concurrency-limits.
//!
//! It is one second long (in the original: twice its shortest latency, kept within one second and one second),
//! counts only with ten samples or more, and gives a rule the mean latency, the highest in flight and whether
//! any sample was dropped. A latency under 100 microseconds is left out. Here only sums are seen, so a window is
//! left out as a whole when its mean is under that; so fast a service is never moved, as with the original.
//!
//! By default the original runs AIMD and Vegas on every sample and lets a user put this window in front, and
//! runs Gradient2 behind it. Here all three are behind it: one step a second, not one a sample, which is
//! gentler in both directions.

use super::{Cause, Controller, Decision, Window};

/// How long a window is.
const WINDOW_NS: u64 = 1_000_000_000;
/// Fewer samples say nothing.
const SAMPLES: u64 = 10;
/// What is quicker is not looked at, in seconds.
const SHORTEST_LATENCY: f64 = 100e-6;

/// A window as these rules see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The mean latency, in seconds.
    pub(super) latency: f64,
    /// The highest in flight.
    pub(super) in_flight: f64,
    /// Whether anything was dropped: timed out or refused by what the gate protects.
    pub(super) dropped: bool,
}

/// A published rule, one step a window.
pub(super) trait Rule {
    /// The limit in whole permits.
    fn limit(&self) -> u32;

    /// What a window says of it.
    fn step(&mut self, sample: Sample);
}

impl<R: Rule> Controller for R {
    fn begin(&self) -> Decision {
        Decision { limit: self.limit(), cause: Cause::Hold, look_after_ns: WINDOW_NS }
    }

    fn look(&mut self, window: &Window) -> Decision {
        let before = self.limit();
        if let Some(sample) = sample(window) {
            self.step(sample);
        }
        Decision { cause: Cause::of(before, self.limit()), ..self.begin() }
    }
}

/// What a rule may use of `window`, if anything.
fn sample(window: &Window) -> Option<Sample> {
    let latency = window.mean_latency();
    (window.completions >= SAMPLES && latency >= SHORTEST_LATENCY).then(|| Sample {
        latency,
        in_flight: f64::from(window.highest_in_flight),
        dropped: window.overload > 0,
    })
}

/// So many samples of one latency with the limit in use, for the rules' tests.
#[cfg(all(test, not(tidegate_loom)))]
pub(super) fn full(limit: u32, latency_ms: u64, samples: u64, dropped: bool) -> Window {
    let mut window = Window { elapsed_ns: WINDOW_NS, highest_in_flight: limit, ..Window::default() };
    for _ in 0..samples {
        window.complete(latency_ms * 1_000_000, !dropped, dropped);
    }
    window
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_from_ten_samples_and_a_tenth_of_a_millisecond_on() {
        assert!(sample(&full(5, 1, 9, false)).is_none());
        assert!(sample(&full(5, 1, 10, false)).is_some());
        let mut quick = Window::default();
        for _ in 0..100 {
            quick.complete(99_000, true, false);
        }
        assert!(sample(&quick).is_none());
    }
}
