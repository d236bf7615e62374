//! How long the work takes, and how unequal it is: from it follow how long to wait after a change of the limit,
//! how long to watch, and how far counts are to be believed.

use crate::controller::window::Window;

/// Completions over which the shape of the latencies is remembered.
const MEMORY: f64 = 400.0;
/// What is further above the typical latency is one request that hung, and nobody waits for that.
const LONGEST: f64 = 200.0;
/// A mean this many times the typical says all there is to say.
const MOST_HASTE: f64 = 2.0;

/// The latest latencies, and their shape relative to the typical one. The shape is the work's own and hardly
/// changes with the limit; the typical latency changes at once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// In seconds, of the latest window: the geometric mean,
    typical: f64,
    /// and the plain one.
    mean: f64,
    /// Completions a second, in the latest window.
    rate: f64,
    /// Remembered: the mean over the typical,
    shape: f64,
    /// and the mean square over the typical squared.
    square: f64,
    /// Completions that the memory stands for.
    weight: f64,
}

impl Pace {
    pub(super) fn see(&mut self, window: &Window) {
        let count = window.count();
        if count == 0.0 {
            return;
        }
        self.typical = window.typical_latency();
        self.mean = window.mean_latency().min(LONGEST * self.typical);
        self.rate = count / window.elapsed();
        self.weight = (self.weight + count).min(MEMORY.max(count));
        let gain = (count / self.weight).min(1.0);
        self.shape += gain * ((self.mean / self.typical).min(1e6) - self.shape);
        self.square += gain * ((window.mean_square_latency() / self.typical.powi(2)).min(1e12) - self.square);
    }

    /// Completions a second; zero if none was seen yet.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// What a request takes, in seconds.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// What a request takes that is inside at some moment, in seconds: long ones are inside more often.
    pub(super) fn inside(&self) -> f64 {
        if self.shape <= 0.0 {
            return self.typical;
        }
        // From the typical or from the mean: each alone jumps where the mix of a window is odd.
        let by_typical = self.typical * self.square / self.shape;
        let by_mean = self.mean * self.square / self.shape.powi(2);
        by_typical.min(by_mean).clamp(self.typical, LONGEST * self.typical)
    }

    /// The squared coefficient of variation of latencies.
    pub(super) fn variation(&self) -> f64 {
        if self.shape > 0.0 { (self.square / self.shape.powi(2) - 1.0).max(0.1) } else { 1.0 }
    }

    /// How far the mean is above the typical, in logarithms: nil if all take equally long.
    pub(super) fn spread(&self) -> f64 {
        self.shape.max(1.0).ln()
    }

    /// By how much places that are new give more completions than they will in the long run, after `time`
    /// seconds at the new limit: the short ones come out first.
    pub(super) fn freshness(&self, time: f64) -> f64 {
        let haste = (self.shape - 1.0).clamp(0.0, MOST_HASTE);
        haste * (-1.5 * time / self.inside().max(1e-9)).exp()
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    fn window(latencies_ms: &[u64]) -> Window {
        let mut window = Window { elapsed_ns: 1_000_000_000, ..Window::default() };
        for latency in latencies_ms {
            window.complete(latency * 1_000_000, true, false);
        }
        window
    }

    #[test]
    fn who_is_inside_takes_the_mean_square_over_the_mean() {
        let mut pace = Pace::default();
        pace.see(&window(&[10; 100]));
        assert!((pace.inside() - 0.01).abs() < 1e-9 && pace.freshness(0.0).abs() < 1e-9);
        let mut pace = Pace::default();
        pace.see(&window(&[10, 10, 10, 50]));
        assert!((pace.mean() - 0.02).abs() < 1e-9 && (pace.rate() - 4.0).abs() < 1e-9);
        assert!((pace.inside() - 0.035).abs() < 1e-9, "700 over 20");
        assert!((pace.variation() - 0.75).abs() < 1e-9);
        assert!(pace.freshness(0.0) > pace.freshness(0.035));
    }

    #[test]
    fn one_that_hung_is_not_waited_for() {
        let mut pace = Pace::default();
        let mut latencies = [10; 100];
        latencies[7] = 3_600_000;
        pace.see(&window(&latencies));
        assert!(pace.mean() < 2.5 && pace.inside() < 2.5, "{pace:?}");
    }
}
