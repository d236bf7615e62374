//! Additive increase, multiplicative decrease: `AIMDLimit` of Netflix concurrency-limits.
//!
//! A drop, or a latency over five seconds: the limit times 0.9, rounded down. Otherwise one more, where
//! half of the limit or more is in use. It never learns where the best limit is, it only bounces off drops; where
//! overload makes answers slow and not dropped, it climbs until they time out.
//!
//! Differences from the original: it steps once a window ([`super::published`] says which), where the original
//! does so at each sample; the bounds are the caller's, where the original's are 20 and 200; a window counts as
//! one over the timeout when its mean is.

use super::Bounds;
use super::published::{Rule, Sample};

const BACKOFF: f64 = 0.9;
/// In seconds.
const TIMEOUT: f64 = 5.0;

/// One more while nothing is dropped, a tenth less when something is.
#[derive(Clone, Copy, Debug)]
pub struct Aimd {
    bounds: Bounds,
    limit: u32,
}

impl Aimd {
    /// Starts at the bounds' prior.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, limit: bounds.prior() }
    }
}

impl Rule for Aimd {
    fn limit(&self) -> u32 {
        self.limit
    }

    fn step(&mut self, sample: Sample) {
        let limit = f64::from(self.limit);
        if sample.dropped || sample.latency > TIMEOUT {
            self.limit = self.bounds.whole(limit * BACKOFF);
        } else if sample.in_flight * 2.0 >= limit {
            self.limit = self.bounds.whole(limit + 1.0);
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::controller::published::full;

    #[test]
    fn one_more_in_use_a_tenth_less_at_a_drop_or_after_five_seconds() {
        let mut aimd = Aimd::new(Bounds::new(1, 100, 20).expect("valid"));
        assert_eq!(aimd.look(&full(10, 10, 20, false)).limit, 21);
        assert_eq!(aimd.look(&full(10, 10, 20, false)).limit, 21, "less than half in use");
        assert_eq!(aimd.look(&full(11, 10, 20, true)).limit, 18, "18.9");
        assert_eq!(aimd.look(&full(11, 5_001, 20, false)).limit, 16, "16.2");
        assert_eq!(aimd.look(&full(11, 5_000, 20, false)).limit, 17);
        let mut small = Aimd::new(Bounds::new(1, 100, 2).expect("valid"));
        assert_eq!(small.look(&full(2, 10, 20, true)).limit, 1);
        assert_eq!(small.look(&full(1, 10, 20, true)).limit, 1, "never under the least");
    }
}
