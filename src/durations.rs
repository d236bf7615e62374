//! For how long permits were held, in the fixed buckets that monitoring wants. The finer log-linear histogram
//! (`histogram`) answers for quantiles of one process; these add up over processes.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering};

const MS: u64 = 1_000_000;

/// The upper bounds of the buckets, in nanoseconds, inclusive. One more bucket takes what is longer.
pub(crate) const BOUNDS_NS: [u64; 17] = [
    MS,
    2_500_000,
    5 * MS,
    10 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    1_000 * MS,
    2_500 * MS,
    5_000 * MS,
    10_000 * MS,
    30_000 * MS,
    60_000 * MS,
    120_000 * MS,
    300_000 * MS,
];

const BUCKETS: usize = BOUNDS_NS.len() + 1;
const SUM: usize = BUCKETS;
/// Cells of one outcome: the buckets, and the sum in nanoseconds.
pub(crate) const CELLS: usize = BUCKETS + 1;

/// Counts one duration in its cells.
pub(crate) fn record(cells: &[AtomicU64], held_ns: u64) {
    let bucket = BOUNDS_NS.partition_point(|&bound| bound < held_ns);
    cells[SUM].fetch_add(held_ns, Ordering::Relaxed);
    cells[bucket].fetch_add(1, Ordering::Relaxed);
}

/// For how long permits of one outcome were held: counts in fixed buckets from 1 ms to 300 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations([u64; CELLS]);

impl Durations {
    pub(crate) fn read(cells: &[AtomicU64]) -> Self {
        Self(std::array::from_fn(|at| cells[at].load(Ordering::Relaxed)))
    }

    /// Each bucket's inclusive upper bound (`None`: no bound) and how many were held no longer than that.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        let bounds = BOUNDS_NS.into_iter().map(|ns| Some(Duration::from_nanos(ns))).chain([None]);
        bounds.zip(self.0).scan(0_u64, |sum, (bound, count)| {
            *sum = sum.wrapping_add(count);
            Some((bound, *sum))
        })
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0[..BUCKETS].iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// For how long all of them together were held.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.0[SUM])
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (cell, more) in self.0.iter_mut().zip(other.0) {
            *cell = cell.wrapping_add(more);
        }
    }

    pub(crate) fn cells(&self) -> &[u64] {
        &self.0
    }

    /// Back from [`cells`](Self::cells).
    pub(crate) fn from_cells(cells: [u64; CELLS]) -> Self {
        Self(cells)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_their_bounds_inclusive() {
        let cells: [AtomicU64; CELLS] = std::array::from_fn(|_| AtomicU64::new(0));
        for ns in [0, MS, MS + 1, 300_000 * MS, 300_000 * MS + 1] {
            record(&cells, ns);
        }
        let read = Durations::read(&cells);
        let buckets: Vec<_> = read.buckets().collect();
        assert_eq!(buckets.len(), BUCKETS);
        assert_eq!(buckets[0], (Some(Duration::from_millis(1)), 2));
        assert_eq!(buckets[1], (Some(Duration::from_micros(2_500)), 3));
        assert_eq!(buckets[16], (Some(Duration::from_secs(300)), 4));
        assert_eq!(buckets[17], (None, 5));
        assert_eq!(read.count(), 5);
        assert_eq!(read.sum(), Duration::from_nanos(2 * (MS + 300_000 * MS + 1)));
        let mut twice = read;
        twice.add(&read);
        assert_eq!((twice.count(), Durations::from_cells(twice.0)), (10, twice));
    }
}
