//! A log-linear latency histogram: 32 buckets per octave from 1 us to 2^32 us (71 minutes).
//!
//! A value is reported as its bucket's middle, at most 1.6 % off. Shorter and longer values count in
//! the first and the last bucket. The method is that of `HdrHistogram` (Gil Tene), with a
//! fixed size of 8 KiB so that it can live in shared memory.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};

const SUB_BITS: u32 = 5;
const OCTAVES: usize = 32;
const UNIT_NS: u64 = 1_000;

/// Buckets of one histogram.
pub(crate) const BUCKETS: usize = OCTAVES << SUB_BITS;

/// The bucket that a latency counts in.
pub(crate) fn bucket(latency_ns: u64) -> usize {
    let Some(octave) = (latency_ns / UNIT_NS).checked_ilog2() else {
        return 0;
    };
    if octave as usize >= OCTAVES {
        return BUCKETS - 1;
    }
    // Below 2^32 us the shift by 5 bits stays within 2^57.
    let base = UNIT_NS << octave;
    let sub = ((latency_ns - base) << SUB_BITS) / base;
    ((octave as usize) << SUB_BITS) + usize::try_from(sub).unwrap_or(0)
}

/// The middle of a bucket, in nanoseconds.
fn middle_ns(bucket: usize) -> u64 {
    let base = UNIT_NS << (bucket >> SUB_BITS);
    let sub = (bucket & ((1 << SUB_BITS) - 1)) as u64;
    base + ((base * (2 * sub + 1)) >> (SUB_BITS + 1))
}

/// Counts one latency in a histogram's cells.
pub(crate) fn record(cells: &[AtomicU64], latency_ns: u64) {
    cells[bucket(latency_ns)].fetch_add(1, Ordering::Relaxed);
}

/// A reading of one priority's latencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
}

impl Histogram {
    pub(crate) fn read(cells: &[AtomicU64]) -> Self {
        Self { counts: cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect() }
    }

    /// One that nobody else counts in, and nothing was counted in yet.
    #[cfg(feature = "sim")]
    pub(crate) fn empty() -> Self {
        Self { counts: vec![0; BUCKETS].into_boxed_slice() }
    }

    /// Counts a latency.
    #[cfg(feature = "sim")]
    pub(crate) fn add(&mut self, latency_ns: u64) {
        self.counts[bucket(latency_ns)] += 1;
    }

    /// Counts what another one has counted.
    #[cfg(feature = "sim")]
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (sum, more) in self.counts.iter_mut().zip(&other.counts) {
            *sum += more;
        }
    }

    /// What was counted since an earlier reading of the same.
    #[cfg(all(feature = "sim", feature = "capacity"))]
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (now, before) in self.counts.iter_mut().zip(&earlier.counts) {
            *now -= before;
        }
        self
    }

    /// How many latencies were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The latency that a share `q` (0.0 to 1.0) of those counted did not exceed; `None` when
    /// nothing was counted. Within 1.6 %.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let mut seen = 0;
        let at = self.counts.iter().position(|&n| {
            seen += n;
            seen >= rank
        });
        at.map(|bucket| Duration::from_nanos(middle_ns(bucket)))
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_at_most_a_sixtieth_from_the_middle_of_its_bucket() {
        let mut ns = UNIT_NS;
        while ns < UNIT_NS << 32 {
            let middle = middle_ns(bucket(ns));
            assert!(ns.abs_diff(middle) * 60 <= ns, "{ns} ns in the bucket of {middle} ns");
            ns += ns / 97 + 1;
        }
    }

    #[test]
    fn buckets_are_filled_in_order_and_the_ends_saturate() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(999), 0);
        assert_eq!(bucket(1_000), 0);
        assert_eq!(bucket(2_000), 32);
        assert_eq!(bucket((UNIT_NS << 32) - 1), BUCKETS - 1);
        assert_eq!(bucket(UNIT_NS << 32), BUCKETS - 1);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for at in 1..BUCKETS {
            assert!(middle_ns(at) > middle_ns(at - 1));
            assert_eq!(bucket(middle_ns(at)), at);
        }
    }

    #[test]
    fn quantiles_count_ranks() {
        let cells: Vec<_> = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        assert_eq!(Histogram::read(&cells).quantile(0.5), None);
        for ms in 1..=100 {
            record(&cells, ms * 1_000_000);
        }
        let histogram = Histogram::read(&cells);
        assert_eq!(histogram.count(), 100);
        for (q, ms) in [(0.0, 1.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            let got = histogram.quantile(q).unwrap().as_secs_f64() * 1e3;
            assert!((got / ms - 1.0).abs() <= 1.0 / 60.0, "{q}: {got} ms");
        }
    }
}
