//! Latency against the shortest seen: `VegasLimit` of Netflix concurrency-limits.
//!
//! ```text
//! queue = ceil(limit (1 - shortest / latency)),  l = max(1, floor(log10 limit))
//! dropped, or queue > 6 l: limit - l
//! queue <= l: limit + 6 l
//! queue < 3 l: limit + l
//! ```
//!
//! Nothing is done where less than half of the limit was in use. Every 15 to 30 times the limit in samples the
//! shortest latency is replaced by the latest, even under load: that is its known failure, the baseline
//! inflates (issue 165).
//!
//! Differences from the original: it steps once a window ([`super::published`] says which) on the window's mean,
//! where the original does so at each sample (so its probes are counted in windows, too); the factor 0.5 to 1 of the probe's distance comes from a fixed
//! sequence and not from chance; the bounds are the caller's, where the original's are 1 and 1000.

use super::Bounds;
use super::published::{Rule, Sample};

const PROBE: f64 = 30.0;
/// The fractional parts of its multiples are spread evenly: the golden ratio.
const JITTER: f64 = 0.618_033_988_749_894_9;

/// Keeps a small queue, as estimated from the shortest latency.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    bounds: Bounds,
    limit: f64,
    /// In seconds; zero before the first.
    shortest: f64,
    samples: f64,
    /// Between 0 and 1.
    jitter: f64,
}

impl Vegas {
    /// Starts at the bounds' prior.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        let limit = f64::from(bounds.prior());
        Self { bounds, limit, shortest: 0.0, samples: 0.0, jitter: JITTER }
    }
}

impl Rule for Vegas {
    fn limit(&self) -> u32 {
        self.bounds.whole(self.limit)
    }

    fn step(&mut self, sample: Sample) {
        self.samples += 1.0;
        if self.samples >= PROBE * self.limit * (0.5 + self.jitter / 2.0) {
            self.samples = 0.0;
            self.jitter = (self.jitter + JITTER).fract();
            self.shortest = sample.latency;
            return;
        }
        if self.shortest == 0.0 || sample.latency < self.shortest {
            self.shortest = sample.latency;
            return;
        }
        let unit = self.limit.log10().floor().max(1.0);
        let queue = (self.limit * (1.0 - self.shortest / sample.latency)).ceil();
        let next = if sample.dropped {
            self.limit - unit
        } else if sample.in_flight * 2.0 < self.limit {
            self.limit
        } else if queue <= unit {
            self.limit + 6.0 * unit
        } else if queue < 3.0 * unit {
            self.limit + unit
        } else if queue > 6.0 * unit {
            self.limit - unit
        } else {
            self.limit
        };
        self.limit = self.bounds.clamp(next);
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::controller::published::full;

    #[test]
    fn steps_as_worked_out_by_hand() {
        let mut vegas = Vegas::new(Bounds::new(1, 1_000, 100).expect("valid"));
        assert_eq!(vegas.look(&full(100, 10, 20, false)).limit, 100, "the first is the shortest");
        // log10 100 = 2. Queue ceil(100 (1 - 10 / 10.1)) = 1, not above 2: + 12.
        let mut window = full(100, 10, 19, false);
        window.complete(12_000_000, true, false);
        assert_eq!(vegas.look(&window).limit, 112);
        // Queue ceil(112 (1 - 10 / 10.4)) = 5: below 6, + 2.
        let mut window = full(100, 10, 18, false);
        window.complete(14_000_000, true, false);
        window.complete(14_000_000, true, false);
        assert_eq!(vegas.look(&window).limit, 114);
        // Queue ceil(114 (1 - 10 / 11)) = 11: from 6 to 12 it stays.
        assert_eq!(vegas.look(&full(100, 11, 20, false)).limit, 114);
        // Queue 57, above 12: - 2. A drop: - 2. Less than half in use: stays.
        assert_eq!(vegas.look(&full(100, 20, 20, false)).limit, 112);
        assert_eq!(vegas.look(&full(100, 11, 20, true)).limit, 110);
        assert_eq!(vegas.look(&full(54, 20, 20, false)).limit, 110);
    }

    #[test]
    fn a_probe_takes_the_latest_for_the_shortest() {
        let mut vegas = Vegas::new(Bounds::new(1, 1_000, 2).expect("valid"));
        vegas.look(&full(1, 10, 20, false));
        // 30 x 2 x (0.5 + 0.618 / 2) = 48.5 windows.
        for _ in 1..48 {
            vegas.look(&full(0, 50, 20, false));
        }
        assert!((vegas.shortest - 0.01).abs() < 1e-12);
        vegas.look(&full(0, 50, 20, false));
        assert!((vegas.shortest - 0.05).abs() < 1e-12);
    }
}
