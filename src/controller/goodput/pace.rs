//! How quick the work is: from it follow how long to wait after a change and how long to watch.

use crate::controller::window::Window;

/// Completions over which the shape of the latencies is remembered.
const MEMORY: f64 = 400.0;

/// The latest typical latency, and the shape of latencies relative to it. The shape is the work's own and hardly
/// changes with the limit; the typical latency changes at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// In seconds, of the latest window.
    typical: f64,
    /// The mean of the latest window.
    latest_mean: f64,
    /// Mean over typical.
    mean: f64,
    /// Mean square over typical squared.
    square: f64,
    /// Completions seen, up to the memory,
    weight: f64,
    /// and all of them.
    seen: f64,
    /// Completions a second.
    rate: f64,
}

impl Pace {
    pub(super) fn see(&mut self, window: &Window) {
        let count = window.count();
        if count == 0.0 {
            return;
        }
        self.typical = window.typical_latency().clamp(1e-9, 1e9);
        self.latest_mean = window.mean_latency();
        self.rate = count / window.elapsed();
        self.seen += count;
        self.weight = (self.weight + count).min(MEMORY.max(count));
        let gain = (count / self.weight).min(1.0);
        self.mean += gain * ((window.mean_latency() / self.typical).min(1e6) - self.mean);
        self.square += gain * ((window.mean_square_latency() / self.typical.powi(2)).min(1e12) - self.square);
    }

    /// Completions a second, in the latest window; zero if none was seen yet.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// What most requests take, in seconds.
    pub(super) fn typical(&self) -> f64 {
        self.typical
    }

    /// What a request takes on average, in the latest window.
    pub(super) fn mean(&self) -> f64 {
        self.latest_mean
    }

    /// What a request takes that is inside at some moment, in seconds: longer ones are inside more often.
    pub(super) fn inside(&self) -> f64 {
        if self.mean == 0.0 {
            return self.typical;
        }
        // By the typical or by the mean: each alone jumps where the mix of a window is odd.
        let by_typical = self.typical * self.square / self.mean;
        let by_mean = self.latest_mean * self.square / self.mean.powi(2);
        by_typical.min(by_mean).max(self.typical)
    }

    /// The squared coefficient of variation of latencies.
    pub(super) fn variation(&self) -> f64 {
        if self.mean > 0.0 { (self.square / self.mean.powi(2) - 1.0).max(0.0) } else { 1.0 }
    }

    /// Whether enough was seen to know the shape.
    pub(super) fn is_known(&self) -> bool {
        self.seen > 2.0 * MEMORY
    }

    /// How far the mean is above the typical, in logarithms: nil if all take equally long.
    pub(super) fn spread(&self) -> f64 {
        self.mean.max(1.0).ln()
    }

    /// How much more quickly than the average the typical request gives its place back.
    pub(super) fn haste(&self) -> f64 {
        (self.mean - 1.0).max(0.0)
    }
}
