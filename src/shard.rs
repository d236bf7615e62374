//! Counters, spread so that counting does not cost another contended line.
//!
//! Each shard is written by one thread, or by a few (see `thread`); a reading sums them all. Every
//! counter only grows. Writes are Release and readings Acquire, and a reading takes what was
//! released before what was admitted: a permit that is seen released is therefore seen admitted.

use crossbeam_utils::CachePadded;

use crate::outcome::{OUTCOMES, Outcome};
use crate::priority::{PRIORITIES, Priority};
use crate::shed::{REASONS, Reason};
use crate::sync::{AtomicU64, Ordering};
use crate::thread::Place;

/// Shards owned by one thread each.
#[cfg(not(tidegate_loom))]
pub(crate) const EXCLUSIVE: usize = 16;
/// All shards; those past [`EXCLUSIVE`] are shared by the remaining threads.
#[cfg(not(tidegate_loom))]
pub(crate) const SHARDS: usize = EXCLUSIVE + 8;
/// Models run with one shared shard: loom pays for every atomic.
#[cfg(tidegate_loom)]
pub(crate) const SHARDS: usize = 1;

/// What is counted. Common ones first: they share the shard's first line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    /// Admissions, by whether the priority was asked for or was the gate's default.
    Admitted(Priority, Fallback),
    /// Permits and bare entries that left, by outcome.
    Released(Outcome),
    /// Let in by dry run although enforcement would have shed it.
    WouldShed(Priority),
    /// Exits without an entry.
    UnmatchedExit,
    /// Permits that were collected by a garbage collector instead of released.
    Collected,
    /// Weight beyond 1 that was admitted.
    ExtraAdmitted(Priority),
    /// Weight beyond 1 that was released.
    ExtraReleased,
    /// Turned away.
    Shed(Priority, Reason),
}

/// Whether an admission's priority was the gate's default because none was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    No = 0,
    Yes = 1,
}

const ADMITTED: usize = 0;
const RELEASED: usize = ADMITTED + 2 * PRIORITIES;
const WOULD_SHED: usize = RELEASED + OUTCOMES;
const UNMATCHED: usize = WOULD_SHED + PRIORITIES;
const COLLECTED: usize = UNMATCHED + 1;
const EXTRA_ADMITTED: usize = COLLECTED + 1;
const EXTRA_RELEASED: usize = EXTRA_ADMITTED + PRIORITIES;
const SHED: usize = EXTRA_RELEASED + 1;
const FLOW: usize = SHED + PRIORITIES * REASONS;
const CELLS: usize = 64;
const _: () = assert!(FLOW + 4 <= CELLS);

// The four cells of the occupancy's flow.
const BEGUN: usize = FLOW;
const ENDED: usize = FLOW + 1;
const LEVEL: usize = FLOW + 2;
const MOMENT: usize = FLOW + 3;

impl Counter {
    #[allow(clippy::inline_always)] // a constant wherever the counter is one
    #[inline(always)]
    const fn cell(self) -> usize {
        match self {
            Self::Admitted(priority, fallback) => ADMITTED + 2 * priority.level() + fallback as usize,
            Self::Released(outcome) => RELEASED + outcome as usize,
            Self::WouldShed(priority) => WOULD_SHED + priority.level(),
            Self::UnmatchedExit => UNMATCHED,
            Self::Collected => COLLECTED,
            Self::ExtraAdmitted(priority) => EXTRA_ADMITTED + priority.level(),
            Self::ExtraReleased => EXTRA_RELEASED,
            Self::Shed(priority, reason) => SHED + REASONS * priority.level() + reason as usize,
        }
    }
}

/// One thread's counters, or those of a few.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shard {
    cells: [AtomicU64; CELLS],
}

impl Shard {
    pub(crate) fn new() -> Self {
        Self { cells: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn empty(&self) {
        for cell in &self.cells {
            cell.store(0, Ordering::Relaxed);
        }
    }

    /// Counts `n`.
    #[inline]
    pub(crate) fn count(&self, place: Place, counter: Counter, n: u64) {
        self.add(place, counter.cell(), n);
    }

    #[inline]
    fn add(&self, place: Place, cell: usize, n: u64) {
        let cell = &self.cells[cell];
        if place.exclusive {
            let next = cell.load(Ordering::Relaxed).wrapping_add(n);
            cell.store(next, Ordering::Release);
        } else {
            cell.fetch_add(n, Ordering::Release);
        }
    }

    /// Notes that the weight inside changed by `change` at `now_us`.
    ///
    /// The time integral of the weight inside is `level x now - moments`, where `level` sums the
    /// changes and `moments` sums each change times its moment. The two belong together, so they
    /// stand between two counters, and a reading that finds the counters apart is taken again.
    #[inline]
    pub(crate) fn flow(&self, place: Place, change: i64, now_us: u64) {
        #[allow(clippy::cast_sign_loss)] // sums modulo 2^64: a negative change is a large addition
        let change = change as u64;
        self.add(place, BEGUN, 1);
        self.add(place, LEVEL, change);
        self.add(place, MOMENT, change.wrapping_mul(now_us));
        self.add(place, ENDED, 1);
    }

    /// The part of the occupancy integral that this shard has seen, in weight-microseconds modulo
    /// 2^64. A thread that was interrupted halfway gets the processor, since half a change is off by the
    /// gate's age. Bounded: a shard that never comes to rest yields its last reading.
    fn occupancy(&self, now_us: u64) -> u64 {
        let mut occupancy = 0;
        for _ in 0..1_000 {
            let ended = self.read(ENDED);
            let (level, moment) = (self.read(LEVEL), self.read(MOMENT));
            occupancy = level.wrapping_mul(now_us).wrapping_sub(moment);
            if self.read(BEGUN) == ended {
                break;
            }
            std::thread::yield_now();
        }
        occupancy
    }

    fn read(&self, cell: usize) -> u64 {
        self.cells[cell].load(Ordering::Acquire)
    }
}

/// Counters of a shard.
pub(crate) const COUNTERS: usize = FLOW;

/// The sums over all shards of a gate, by cell; of several gates where they are added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals([u64; COUNTERS]);

impl Default for Totals {
    fn default() -> Self {
        Self([0; COUNTERS])
    }
}

impl Totals {
    /// Reads the last cell first: what was released stands behind what was admitted (see the module's text).
    pub(crate) fn read(shards: &[CachePadded<Shard>]) -> Self {
        let mut sums = Self::default();
        for (cell, sum) in sums.0.iter_mut().enumerate().rev() {
            *sum = shards.iter().fold(0, |sum: u64, shard| sum.wrapping_add(shard.read(cell)));
        }
        sums
    }

    pub(crate) fn get(&self, counter: Counter) -> u64 {
        self.0[counter.cell()]
    }

    /// Admissions, with priorities asked for and by default.
    pub(crate) fn admitted(&self, priority: Priority) -> u64 {
        [Fallback::No, Fallback::Yes]
            .map(|fallback| self.get(Counter::Admitted(priority, fallback)))
            .iter()
            .sum()
    }

    pub(crate) fn admitted_weight(&self) -> [u64; PRIORITIES] {
        Priority::ALL.map(|priority| self.admitted(priority) + self.get(Counter::ExtraAdmitted(priority)))
    }

    pub(crate) fn completions(&self) -> u64 {
        Outcome::ALL.map(|outcome| self.get(Counter::Released(outcome))).iter().sum()
    }

    pub(crate) fn released_weight(&self) -> u64 {
        self.completions() + self.get(Counter::ExtraReleased)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(more);
        }
    }

    pub(crate) fn cells(&self) -> &[u64] {
        &self.0
    }

    /// Back from [`cells`](Self::cells).
    pub(crate) fn from_cells(cells: &[u64; COUNTERS]) -> Self {
        Self(*cells)
    }

    /// The occupancy integral in weight-microseconds, modulo 2^63. Never negative: a change that was counted
    /// after `now_us` was read would make it so by a moment, a clock set back by more.
    pub(crate) fn occupancy(shards: &[CachePadded<Shard>], now_us: u64) -> u64 {
        let sum = shards.iter().fold(0u64, |sum, shard| sum.wrapping_add(shard.occupancy(now_us)));
        #[allow(clippy::cast_possible_wrap)] // that is how a sum modulo 2^64 says that it is negative
        u64::try_from(sum as i64).unwrap_or(0)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_cell_of_its_own() {
        let mut counters = vec![Counter::UnmatchedExit, Counter::Collected, Counter::ExtraReleased];
        counters.extend(Outcome::ALL.map(Counter::Released));
        for priority in Priority::ALL {
            counters.push(Counter::Admitted(priority, Fallback::No));
            counters.push(Counter::Admitted(priority, Fallback::Yes));
            counters.push(Counter::WouldShed(priority));
            counters.push(Counter::ExtraAdmitted(priority));
            counters.extend(Reason::ALL.map(|reason| Counter::Shed(priority, reason)));
        }
        let mut cells: Vec<_> = counters.into_iter().map(Counter::cell).collect();
        cells.sort_unstable();
        assert_eq!(cells, (0..FLOW).collect::<Vec<_>>());
    }

    #[test]
    fn the_occupancy_integral_is_weight_times_time() {
        let shards = [CachePadded::new(Shard::new()), CachePadded::new(Shard::new())];
        let [first, second] = &shards;
        let (own, shared) = (Place { index: 0, exclusive: true }, Place { index: 1, exclusive: false });
        first.flow(own, 3, 10);
        second.flow(shared, 1, 20); // entered on one shard,
        first.flow(own, -1, 30); // left on another
        let at = |now| Totals::occupancy(&shards, now);
        assert_eq!(at(30), 3 * 20 + 10);
        assert_eq!(at(40), 3 * 20 + 10 + 3 * 10);
        first.flow(own, -3, 40);
        second.flow(shared, 9, 200);
        assert_eq!(at(199), 100 - 9, "counted after the clock was read: a moment short");
        assert_eq!(at(0), 0, "a clock set back");
    }
}
