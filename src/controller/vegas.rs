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

use super::published::{self, Sample, WINDOW_NS};
use super::{Bounds, Cause, Controller, Decision, Window};

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

impl Controller for Vegas {
    fn begin(&self) -> Decision {
        Decision { limit: self.bounds.whole(self.limit), cause: Cause::Hold, look_after_ns: WINDOW_NS }
    }

    fn look(&mut self, window: &Window) -> Decision {
        let before = self.begin().limit;
        if let Some(sample) = published::sample(window) {
            self.step(sample);
        }
        let after = self.begin();
        Decision { cause: Cause::of(before, after.limit), ..after }
    }
}
