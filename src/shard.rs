//! Counters, spread so that counting does not cost another contended line.
//!
//! Each shard is written by one thread, or by a few (see `thread`); a reading sums them all. Every
//! counter only grows. Writes are Release and readings Acquire, and a reading takes what was
//! released before what was admitted: a permit that is seen released is therefore seen admitted.

use crossbeam_utils::CachePadded;

use crate::measured::{self, Ended, Sums};
use crate::outcome::{OUTCOMES, Outcome};
use crate::priority::{PRIORITIES, Priority};
use crate::shed::{REASONS, Reason};
use crate::sync::{AtomicU64, Ordering, thread};
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

// Where a gate measures. What stands between the first two belongs together: see `flow`.
const BEGUN: usize = FLOW;
const ENDED: usize = FLOW + 1;
const LEVEL: usize = FLOW + 2;
const MOMENT: usize = FLOW + 3;
// See `measured` for what these are sums of.
const COMPLETED: usize = FLOW + 4;
const GOOD: usize = FLOW + 5;
const OVERLOAD: usize = FLOW + 6;
const LATENCY: usize = FLOW + 7;
const SQUARE: usize = FLOW + 8;
const SQUARE_HIGH: usize = FLOW + 9;
const LOG: usize = FLOW + 10;
const LOG_SQUARE: usize = FLOW + 11;
const BARE_SUCCESS: usize = FLOW + 12;
const BARE_OVERLOAD: usize = FLOW + 13;
const _: () = assert!(BARE_OVERLOAD < CELLS);

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
        let _ = self.add_to(place, cell, n);
    }

    /// Whether the sum wrapped.
    #[inline]
    fn add_to(&self, place: Place, cell: usize, n: u64) -> bool {
        let cell = &self.cells[cell];
        if place.exclusive {
            let (next, wrapped) = cell.load(Ordering::Relaxed).overflowing_add(n);
            cell.store(next, Ordering::Release);
            wrapped
        } else {
            cell.fetch_add(n, Ordering::Release).checked_add(n).is_none()
        }
    }

    /// Notes that the weight inside changed by `change` at `now_us`, and what `ended` by it.
    ///
    /// The time integral of the weight inside is `level x now - moments`, where `level` sums the
    /// changes and `moments` sums each change times its moment. The two belong together, and so does what
    /// ended, so they stand between two counters, and a reading that finds the counters apart is taken again.
    #[inline]
    pub(crate) fn flow(&self, place: Place, change: i64, now_us: u64, ended: Option<Ended>) {
        #[allow(clippy::cast_sign_loss)] // sums modulo 2^64: a negative change is a large addition
        let change = change as u64;
        self.add(place, BEGUN, 1);
        self.add(place, LEVEL, change);
        self.add(place, MOMENT, change.wrapping_mul(now_us));
        match ended {
            None | Some(Ended::Bare(Outcome::Ignore)) => {}
            Some(Ended::Bare(Outcome::Success)) => self.add(place, BARE_SUCCESS, 1),
            Some(Ended::Bare(Outcome::Overload)) => self.add(place, BARE_OVERLOAD, 1),
            Some(Ended::Permit { latency_ns, outcome, good }) => {
                self.complete(place, latency_ns, outcome, good);
            }
        }
        self.add(place, ENDED, 1);
    }

    #[inline]
    fn complete(&self, place: Place, latency_ns: u64, outcome: Outcome, good: bool) {
        if outcome == Outcome::Ignore {
            return;
        }
        self.add(place, COMPLETED, 1);
        if good {
            self.add(place, GOOD, 1);
        }
        if outcome == Outcome::Overload {
            self.add(place, OVERLOAD, 1);
        }
        self.add(place, LATENCY, measured::latency(latency_ns));
        let square = u128::from(latency_ns) * u128::from(latency_ns);
        #[allow(clippy::cast_possible_truncation)] // the lower half
        let carry = self.add_to(place, SQUARE, square as u64);
        let high = (square >> 64) as u64 + u64::from(carry); // below 2^64 - 1, and so it fits
        if high > 0 {
            self.add(place, SQUARE_HIGH, high);
        }
        let (log, log_square) = measured::logs(latency_ns);
        self.add(place, LOG, log);
        self.add(place, LOG_SQUARE, log_square);
    }

    fn sums(&self) -> Sums {
        Sums {
            level: self.read(LEVEL),
            moment: self.read(MOMENT),
            completed: self.read(COMPLETED),
            good: self.read(GOOD),
            overload: self.read(OVERLOAD),
            latency: self.read(LATENCY),
            latency_square: u128::from(self.read(SQUARE)) | u128::from(self.read(SQUARE_HIGH)) << 64,
            log: self.read(LOG),
            log_square: self.read(LOG_SQUARE),
            bare_success: self.read(BARE_SUCCESS),
            bare_overload: self.read(BARE_OVERLOAD),
        }
    }

    /// The sums at rest. A thread that was interrupted halfway gets the processor, since half a change is off by
    /// the gate's age. Bounded: of a shard that never comes to rest, the last reading as an error.
    fn sums_at_rest(&self, tries: u32) -> Result<Sums, Sums> {
        let mut sums = Sums::default();
        for _ in 0..tries {
            let ended = self.read(ENDED);
            sums = self.sums();
            if self.read(BEGUN) == ended {
                return Ok(sums);
            }
            thread::yield_now();
        }
        Err(sums)
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
        const TRIES: u32 = 1_000;
        let sum = |sums: Sums, shard: &CachePadded<Shard>| {
            sums.plus(&shard.sums_at_rest(TRIES).unwrap_or_else(|torn| torn))
        };
        let sum = shards.iter().fold(Sums::default(), sum).occupancy(now_us);
        #[allow(clippy::cast_possible_wrap)] // that is how a sum modulo 2^64 says that it is negative
        u64::try_from(sum as i64).unwrap_or(0)
    }
}

/// What a gate measured, over all shards. `None` where a thread was interrupted halfway and did not go on within
/// `tries` yields a shard.
pub(crate) fn sums_at_rest(shards: &[CachePadded<Shard>], tries: u32) -> Option<Sums> {
    let mut all = Sums::default();
    for shard in shards {
        all = all.plus(&shard.sums_at_rest(tries).ok()?);
    }
    Some(all)
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
        first.flow(own, 3, 10, None);
        second.flow(shared, 1, 20, None); // entered on one shard,
        first.flow(own, -1, 30, None); // left on another
        let at = |now| Totals::occupancy(&shards, now);
        assert_eq!(at(30), 3 * 20 + 10);
        assert_eq!(at(40), 3 * 20 + 10 + 3 * 10);
        first.flow(own, -3, 40, None);
        second.flow(shared, 9, 200, None);
        assert_eq!(at(199), 100 - 9, "counted after the clock was read: a moment short");
        assert_eq!(at(0), 0, "a clock set back");
    }
}
