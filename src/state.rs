//! Everything about a gate that is shared and mutable, in one `repr(C)` block without pointers.
//!
//! A process keeps it in boxes, or in a mapped file where others can read it (`memory`, `published`). Each
//! part has its own cache line (128 bytes: two 64-byte lines, since processors fetch them in pairs), grouped
//! by who writes it:
//!
//! | line | written by |
//! |---|---|
//! | [`Hot`] | every admission and release |
//! | [`Config`] | setters and looks only, so every core keeps a copy |
//! | [`RateState`] | every admission, where there is a rate |
//! | [`DryRun`] | only what dry run lets in beyond the limit |
//! | [`Shard`] each | one thread (see `thread`), or a few that share it |
//! | [`Causes`] | setters of the limit |
//! | [`Tail`] | releases, where timing is on: histograms, whose size is fixed at construction |

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::causes::Causes;
use crate::durations;
use crate::histogram::BUCKETS;
use crate::outcome::{OUTCOMES, Outcome};
use crate::priority::{PRIORITIES, Priority};
use crate::rate::RateState;
use crate::shard::{SHARDS, Shard};
use crate::shown::Shown;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The line that every admission and release takes for itself.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Hot {
    /// See `word`.
    pub(crate) word: AtomicU64,
    /// The most weight that was ever in flight. Beside the word: reading it costs nothing there.
    pub(crate) high_water: AtomicU32,
    /// The same since the last look, where the gate measures.
    pub(crate) highest: AtomicU32,
}

/// The line that admissions only read.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Config {
    /// The thresholds of the short way in; 0 where there is more to decide than whether there is room.
    short: [AtomicU32; PRIORITIES],
    thresholds: [AtomicU32; PRIORITIES],
    flags: AtomicU32,
    /// The level of the priority of requests that name none.
    default_priority: AtomicU32,
    /// Written by looks at signals, a few a second at most.
    pub(crate) shown: Shown,
    /// An answer within it is good; without an objective the end of time.
    objective_ns: AtomicU64,
    /// When somebody should look for the controller,
    next_look_ns: AtomicU64,
    /// and before which moment the clock must have gone back.
    back_ns: AtomicU64,
    /// Moves of the controller that stand in the history.
    moves: AtomicU64,
}

/// What a gate does beyond its fixed limit; a plain gate has none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// Refusals are counted and let in.
    pub(crate) const DRY_RUN: Self = Self(1);
    /// Dry run was on at some time: over-limit entries may still be inside.
    pub(crate) const DRY_RUN_SEEN: Self = Self(1 << 1);
    /// Dry run, switched on.
    pub(crate) const DRY_RUN_ON: Self = Self(Self::DRY_RUN.0 | Self::DRY_RUN_SEEN.0);
    /// A bare entry was made in this process: an exit may belong to one.
    pub(crate) const BARE_SEEN: Self = Self(1 << 2);
    /// Bare entries are to be expected: an exit too many may take what a permit puts back, so permits
    /// check. Once raised it stays.
    pub(crate) const CHECKED: Self = Self(1 << 3);
    /// There is a rate.
    pub(crate) const RATED: Self = Self(1 << 4);
    /// There was one at some time: the short way in may have been closed for it.
    pub(crate) const RATED_SEEN: Self = Self(1 << 5);
    /// What setting a rate raises.
    pub(crate) const RATED_ON: Self = Self(Self::RATED.0 | Self::RATED_SEEN.0);
    /// Signals are watched.
    pub(crate) const WATCHED: Self = Self(1 << 12);
    /// Some were at some time, as for a rate.
    pub(crate) const WATCHED_SEEN: Self = Self(1 << 13);
    /// What setting signals raises.
    pub(crate) const WATCHED_ON: Self = Self(Self::WATCHED.0 | Self::WATCHED_SEEN.0);
    /// Entries and exits are timed, for `timing` or for a controller. Once raised it stays, so that whoever was
    /// counted in is counted out.
    pub(crate) const MEASURED: Self = Self(1 << 8);
    /// Whether who does not get in by the short way may get in by another.
    pub(crate) const ANOTHER_WAY: Self =
        Self(Self::DRY_RUN.0 | Self::RATED_SEEN.0 | Self::WATCHED_SEEN.0 | Self::MEASURED.0);
    /// What the first bare entry raises.
    pub(crate) const BARE: Self = Self(Self::BARE_SEEN.0 | Self::CHECKED.0);
    /// Its owner closed it, for good.
    pub(crate) const ENDED: Self = Self(1 << 6);
    /// The file that it is from has it no more: closed until the file has it again.
    pub(crate) const WITHDRAWN: Self = Self(1 << 7);

    #[inline]
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl Config {
    /// The most weight that may be in flight.
    #[inline]
    pub(crate) fn limit(&self) -> u32 {
        self.thresholds[0].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn threshold(&self, level: usize) -> u32 {
        self.thresholds[level].load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn short_threshold(&self, level: usize) -> u32 {
        self.short[level].load(Ordering::Relaxed)
    }

    /// Whether the short way in is open is stored last: who finds it closed, and has passed a fence, finds the flag
    /// that says why.
    pub(crate) fn store_thresholds(&self, thresholds: [u32; PRIORITIES], short_way: bool) {
        for ((cell, short), threshold) in self.thresholds.iter().zip(&self.short).zip(thresholds) {
            cell.store(threshold, Ordering::Relaxed);
            short.store(if short_way { threshold } else { 0 }, Ordering::Release);
        }
    }

    #[inline]
    pub(crate) fn flags(&self) -> Flags {
        Flags(self.flags.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn default_priority(&self) -> Priority {
        let level = self.default_priority.load(Ordering::Relaxed) as usize;
        Priority::from_level(level).unwrap_or_default()
    }

    pub(crate) fn store_default_priority(&self, priority: Priority) {
        self.default_priority.store(u32::from(priority as u8), Ordering::Relaxed);
    }

    /// The objective in nanoseconds; without one the end of time.
    #[inline]
    pub(crate) fn objective_ns(&self) -> u64 {
        self.objective_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn store_objective(&self, objective: Option<Duration>) {
        let ns = |objective: Duration| u64::try_from(objective.as_nanos()).unwrap_or(u64::MAX);
        self.objective_ns.store(objective.map_or(u64::MAX, ns), Ordering::Relaxed);
    }

    /// Whether somebody should look, and then the time that was set for it.
    #[inline]
    pub(crate) fn due_look(&self, now_ns: u64) -> Option<u64> {
        let next_ns = self.next_look_ns.load(Ordering::Relaxed);
        (now_ns >= next_ns || now_ns < self.back_ns.load(Ordering::Relaxed)).then_some(next_ns)
    }

    /// Of those who find that it is time, the one who looks.
    pub(crate) fn claim_look(&self, due_ns: u64, next_ns: u64) -> bool {
        let claim = self.next_look_ns.compare_exchange(due_ns, next_ns, Ordering::Relaxed, Ordering::Relaxed);
        claim.is_ok()
    }

    /// A look is due at `next_ns`, and where the clock reads less than `back_ns`.
    pub(crate) fn arm_look(&self, next_ns: u64, back_ns: u64) {
        self.back_ns.store(back_ns, Ordering::Relaxed);
        self.next_look_ns.store(next_ns, Ordering::Relaxed);
    }

    pub(crate) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// With the control lock held. Release: whoever sees the number finds the moves in the history.
    pub(crate) fn store_moves(&self, moves: u64) {
        self.moves.store(moves, Ordering::Release);
    }

    /// What the flags were before. A flag that is seen raised, or lowered, carries what was done before that.
    pub(crate) fn raise(&self, flag: Flags) -> Flags {
        Flags(self.flags.fetch_or(flag.0, Ordering::AcqRel))
    }

    pub(crate) fn lower(&self, flag: Flags) {
        self.flags.fetch_and(!flag.0, Ordering::AcqRel);
    }

    /// In a fork's child: the flags as they were at the fork.
    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn restore(&self, flags: Flags) {
        self.flags.store(flags.0, Ordering::Relaxed);
    }
}

/// What dry run let in although enforcement would have shed it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct DryRun {
    /// Permits inside that carry the `over` mark.
    pub(crate) over_permits: AtomicU64,
    /// Bare entries inside that were over; which of the exits belong to them nobody can know.
    pub(crate) over_bare: AtomicU64,
    /// Draws made for bare exits, the state of their generator.
    pub(crate) draws: AtomicU64,
    /// Let in although the gate was full,
    pub(crate) full: AtomicU64,
    /// or full for the priority: what enforcement would have shed with `limit` and `priority`.
    pub(crate) reserved: AtomicU64,
}

/// The shared, mutable state of a gate.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct GateState {
    pub(crate) hot: CachePadded<Hot>,
    pub(crate) config: CachePadded<Config>,
    pub(crate) rate: CachePadded<RateState>,
    pub(crate) dry_run: CachePadded<DryRun>,
    pub(crate) shards: [CachePadded<Shard>; SHARDS],
    pub(crate) causes: CachePadded<Causes>,
}

// Where a host's processes will share it, the layout is fixed.
#[cfg(all(not(tidegate_loom), any(target_arch = "x86_64", target_arch = "aarch64")))]
const _: () = {
    assert!(align_of::<GateState>() == 128);
    assert!(size_of::<GateState>() == 4 * 128 + SHARDS * 512 + 1152);
};

impl GateState {
    pub(crate) fn new() -> Self {
        Self {
            hot: CachePadded::new(Hot {
                word: AtomicU64::new(0),
                high_water: AtomicU32::new(0),
                highest: AtomicU32::new(0),
            }),
            config: CachePadded::new(Config {
                short: std::array::from_fn(|_| AtomicU32::new(0)),
                thresholds: std::array::from_fn(|_| AtomicU32::new(0)),
                flags: AtomicU32::new(0),
                default_priority: AtomicU32::new(0),
                shown: Shown::new(),
                objective_ns: AtomicU64::new(u64::MAX),
                next_look_ns: AtomicU64::new(u64::MAX),
                back_ns: AtomicU64::new(0),
                moves: AtomicU64::new(0),
            }),
            rate: CachePadded::new(RateState::new()),
            dry_run: CachePadded::new(DryRun {
                over_permits: AtomicU64::new(0),
                over_bare: AtomicU64::new(0),
                draws: AtomicU64::new(0),
                full: AtomicU64::new(0),
                reserved: AtomicU64::new(0),
            }),
            shards: std::array::from_fn(|_| CachePadded::new(Shard::new())),
            causes: CachePadded::new(Causes::new()),
        }
    }

    /// Raises the high-water mark. Exact at rest: whoever raised the count raises the mark.
    #[inline]
    pub(crate) fn note_high_water(&self, in_flight: u32) {
        if in_flight > self.hot.high_water.load(Ordering::Relaxed) {
            self.hot.high_water.fetch_max(in_flight, Ordering::Relaxed);
        }
    }

    /// Raises the mark of the time since the last look, after an admission.
    #[inline]
    pub(crate) fn note_highest(&self, in_flight: u32) {
        if in_flight > self.hot.highest.load(Ordering::Relaxed) {
            self.hot.highest.fetch_max(in_flight, Ordering::Relaxed);
        }
    }

    /// The most weight in flight since this was last asked; `in_flight` is read anew, since the next time starts
    /// with what is inside.
    pub(crate) fn take_highest(&self, in_flight: impl Fn() -> u32) -> u32 {
        let highest = self.hot.highest.swap(0, Ordering::Relaxed);
        let now = in_flight();
        self.note_highest(now);
        highest.max(now)
    }

    /// The weight inside that dry run let in beyond the limit, in entries.
    pub(crate) fn over_in_flight(&self) -> u64 {
        self.dry_run.over_permits.load(Ordering::Acquire) + self.dry_run.over_bare.load(Ordering::Acquire)
    }

    /// In a fork's child, where no other thread exists: counts start anew, the configuration stays.
    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn empty(&self) {
        self.hot.high_water.store(0, Ordering::Relaxed);
        self.hot.highest.store(0, Ordering::Relaxed);
        self.dry_run.full.store(0, Ordering::Relaxed);
        self.dry_run.reserved.store(0, Ordering::Relaxed);
        self.dry_run.over_permits.store(0, Ordering::Relaxed);
        self.dry_run.over_bare.store(0, Ordering::Relaxed);
        // Exits of blocks that the parent entered find no bare entry here, and take nothing.
        self.config.lower(Flags::BARE_SEEN);
        self.config.shown.empty();
        for shard in &self.shards {
            shard.empty();
        }
        self.causes.empty();
    }
}

/// What stands behind the state where timing is on: a latency histogram for each priority, and the durations
/// of each outcome. Without timing it is empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail<'a>(&'a [AtomicU64]);

const LATENCIES: usize = PRIORITIES * BUCKETS;

impl<'a> Tail<'a> {
    pub(crate) const fn cells(timing: bool) -> usize {
        if timing { LATENCIES + OUTCOMES * durations::CELLS } else { 0 }
    }

    /// What [`cells`](Self::cells) says is needed.
    pub(crate) fn new(cells: &'a [AtomicU64]) -> Self {
        debug_assert!([0, Self::cells(true)].contains(&cells.len()));
        Self(cells)
    }

    pub(crate) fn latency(self, priority: Priority) -> &'a [AtomicU64] {
        &self.0[priority.level() * BUCKETS..][..BUCKETS]
    }

    pub(crate) fn duration(self, outcome: Outcome) -> &'a [AtomicU64] {
        &self.0[LATENCIES + outcome as usize * durations::CELLS..][..durations::CELLS]
    }

    /// The latencies of all priorities, where there are any.
    pub(crate) fn latencies(self) -> Option<[&'a [AtomicU64]; PRIORITIES]> {
        (!self.0.is_empty()).then(|| Priority::ALL.map(|priority| self.latency(priority)))
    }

    /// The durations of all outcomes, where there are any.
    pub(crate) fn durations(self) -> Option<[&'a [AtomicU64]; OUTCOMES]> {
        (!self.0.is_empty()).then(|| Outcome::ALL.map(|outcome| self.duration(outcome)))
    }

    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn empty(self) {
        for cell in self.0 {
            cell.store(0, Ordering::Relaxed);
        }
    }
}
