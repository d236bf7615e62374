//! A reading of a gate's counters.

use crate::histogram::Histogram;
use crate::outcome::Outcome;
use crate::priority::{PRIORITIES, Priority};
use crate::shard::Totals;
use crate::shed::{REASONS, Reason};

/// What a gate has counted.
///
/// Each counter only grows, and in every reading no more was released than admitted. At rest, that
/// is when no call is under way, all of it is exact. After a fork the child counts from zero.
#[derive(Clone, Debug)]
pub struct Stats {
    /// The most weight that may be in flight.
    pub limit: u32,
    /// The weight in flight.
    pub in_flight: u32,
    /// The most weight that was ever in flight.
    pub high_water: u32,
    /// How often the configuration changed, modulo 2^29.
    pub generation: u32,
    /// What dry run let in beyond the limit and is still inside, in permits and bare entries.
    pub over_in_flight: u64,
    /// Exits without an entry.
    pub unmatched_exits: u64,
    /// Permits that were collected instead of released.
    pub collected: u64,
    /// The time integral of the weight in flight, in weight-microseconds modulo 2^63; `None` without timing.
    /// Its difference over an interval, divided by the interval, is the mean weight in flight.
    pub occupancy_us: Option<u64>,
    pub(crate) totals: Totals,
    pub(crate) latency: Option<Box<[Histogram; PRIORITIES]>>,
}

impl Stats {
    /// Permits and bare entries admitted, not counting what dry run let in beyond the limit.
    #[must_use]
    pub fn admitted(&self, priority: Priority) -> u64 {
        self.totals.admitted[priority.level()].iter().sum()
    }

    /// Requests turned away.
    #[must_use]
    pub fn shed(&self, priority: Priority, reason: Reason) -> u64 {
        self.totals.shed[priority.level()][reason as usize]
    }

    /// All requests turned away.
    #[must_use]
    pub fn shed_total(&self) -> u64 {
        self.totals.shed.iter().flat_map(|by_reason: &[u64; REASONS]| by_reason).sum()
    }

    /// Requests that dry run let in although enforcement would have shed them.
    #[must_use]
    pub fn would_shed(&self, priority: Priority) -> u64 {
        self.totals.would_shed[priority.level()]
    }

    /// Admitted permits and bare entries that have left.
    #[must_use]
    pub fn released(&self, outcome: Outcome) -> u64 {
        self.totals.released[outcome as usize]
    }

    /// Admissions whose priority was the gate's default because none was asked for.
    #[must_use]
    pub fn fallback_priority(&self) -> u64 {
        self.totals.admitted.iter().map(|[_, fallback]| fallback).sum()
    }

    /// How long permits of a priority were held, without those whose outcome was `ignore`; `None`
    /// without timing. Bare entries keep no state, so they are in [`occupancy_us`](Self::occupancy_us) only.
    #[must_use]
    pub fn latency(&self, priority: Priority) -> Option<&Histogram> {
        self.latency.as_ref().map(|by_priority| &by_priority[priority.level()])
    }
}
