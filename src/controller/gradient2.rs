//! Latency against its own long average: `Gradient2Limit` of Netflix concurrency-limits.
//!
//! ```text
//! long     = average of the windows' latencies over 600 windows
//! long    *= 0.95                                  where long / short > 2
//! gradient = clamp(1.5 long / short, 0.5, 1)
//! limit    = 0.8 limit + 0.2 (gradient limit + 4)  where half of the limit or more was in use
//! ```
//!
//! Known to fail in two ways, which it does here too: it does not look at drops (issue 176), and under mild
//! lasting overload the long average follows the latency, so the limit climbs (issue 134).
//!
//! Differences from the original: the bounds are the caller's, where the original's are 20 and 200.

use super::Bounds;
use super::published::{Rule, Sample};

const SMOOTHING: f64 = 0.2;
const QUEUE: f64 = 4.0;
const TOLERANCE: f64 = 1.5;
/// The long average takes the plain mean of so many windows first,
const WARM_UP: u32 = 10;
/// and then this much of each: 2 / (600 + 1).
const LONG_GAIN: f64 = 2.0 / 601.0;

/// Follows the ratio of long and short latency.
#[derive(Clone, Copy, Debug)]
pub struct Gradient2 {
    bounds: Bounds,
    limit: f64,
    long: f64,
    windows: u32,
}

impl Gradient2 {
    /// Starts at the bounds' prior.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, limit: f64::from(bounds.prior()), long: 0.0, windows: 0 }
    }

    fn remember(&mut self, short: f64) {
        let gain = if self.windows < WARM_UP {
            self.windows += 1;
            1.0 / f64::from(self.windows)
        } else {
            LONG_GAIN
        };
        self.long += gain * (short - self.long);
    }
}

impl Rule for Gradient2 {
    fn limit(&self) -> u32 {
        self.bounds.whole(self.limit)
    }

    fn step(&mut self, sample: Sample) {
        let short = sample.latency;
        self.remember(short);
        let long = self.long;
        if long / short > 2.0 {
            self.long *= 0.95;
        }
        if sample.in_flight >= self.limit / 2.0 {
            let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
            let next = self.limit * gradient + QUEUE;
            self.limit = self.bounds.clamp(self.limit * (1.0 - SMOOTHING) + next * SMOOTHING);
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::controller::published::full;

    #[test]
    fn steps_as_worked_out_by_hand() {
        let mut gradient = Gradient2::new(Bounds::new(10, 200, 50).expect("valid"));
        // Long and short are 10 ms: gradient 1, 0.8 * 50 + 0.2 * 54.
        assert_eq!(gradient.look(&full(50, 10, 20, false)).limit, 50);
        assert!((gradient.limit - 50.8).abs() < 1e-9);
        // Short 100 ms, long (10 + 100) / 2: 1.5 * 55 / 100 = 0.825; 0.8 * 50.8 + 0.2 * (50.8 * 0.825 + 4).
        gradient.look(&full(50, 100, 20, false));
        assert!((gradient.limit - 49.822).abs() < 1e-9, "{}", gradient.limit);
        // Less than half in use: the limit stays, the average does not.
        gradient.look(&full(24, 40, 20, false));
        assert!((gradient.limit - 49.822).abs() < 1e-9 && (gradient.long - 0.05).abs() < 1e-9);
        // Long (10 + 100 + 40 + 10) / 4 = 40 over 10 is more than two: 40 * 0.95 is kept.
        gradient.look(&full(50, 10, 20, false));
        assert!((gradient.long - 0.038).abs() < 1e-9, "{}", gradient.long);
    }

    #[test]
    fn after_the_warm_up_the_long_average_takes_two_parts_of_601() {
        let mut gradient = Gradient2::new(Bounds::new(10, 200, 50).expect("valid"));
        for _ in 0..10 {
            gradient.look(&full(1, 10, 20, false));
        }
        gradient.look(&full(1, 20, 20, false));
        assert!((gradient.long - (0.01 + 0.01 * 2.0 / 601.0)).abs() < 1e-12);
    }
}
