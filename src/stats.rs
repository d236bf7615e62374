//! A reading of a gate's counters.

use std::ops::Deref;

use crate::causes::LimitChanges;
use crate::durations::Durations;
use crate::histogram::Histogram;
use crate::outcome::{OUTCOMES, Outcome};
use crate::priority::{PRIORITIES, Priority};
use crate::shard::{Counter, Fallback, Totals};
use crate::shed::Reason;
use crate::state::{Flags, GateState, Tail};
use crate::sync::Ordering;
use crate::word::Word;

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
    /// The pressure level from 0 to 1, as of the last look at the signals; 0 where nobody has looked for five seconds,
    /// `None` without signals.
    pub pressure: Option<f64>,
    /// Whether any signal was overloaded then.
    pub overloaded: bool,
    pub(crate) counts: Counts,
    latency: Option<Box<[Histogram; PRIORITIES]>>,
}

impl Stats {
    /// All that stands in the state itself: for the occupancy the gate's clock is needed as well.
    pub(crate) fn read(word: Word, state: &GateState, tail: Tail<'_>) -> Self {
        let counts = Counts::read(state, tail);
        let view = word.view(state);
        let watched = state.config.flags().has(Flags::WATCHED);
        let (level, overloaded) = state.config.shown.load();
        Self {
            limit: state.config.limit(),
            in_flight: view.in_flight(),
            high_water: state.hot.high_water.load(Ordering::Relaxed),
            generation: view.generation(),
            over_in_flight: state.over_in_flight(),
            unmatched_exits: counts.totals.get(Counter::UnmatchedExit),
            collected: counts.totals.get(Counter::Collected),
            occupancy_us: None,
            pressure: watched.then_some(level),
            overloaded: watched && overloaded,
            counts,
            latency: tail.latencies().map(|by_priority| Box::new(by_priority.map(Histogram::read))),
        }
    }

    /// For what was seen too long ago.
    pub(crate) fn forget_pressure(&mut self) {
        self.pressure = self.pressure.and(Some(0.0));
        self.overloaded = false;
    }

    /// How long permits of a priority were held, without those whose outcome was `ignore`; `None`
    /// without timing. Bare entries keep no state, so they are in [`occupancy_us`](Self::occupancy_us) only.
    #[must_use]
    pub fn latency(&self, priority: Priority) -> Option<&Histogram> {
        self.latency.as_ref().map(|by_priority| &by_priority[priority.level()])
    }
}

/// A reading has all of its counts.
impl Deref for Stats {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

/// What was counted, by one gate or by several that are added up: the part of [`Stats`] for which sums make
/// sense.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub(crate) totals: Totals,
    pub(crate) durations: Option<Box<[Durations; OUTCOMES]>>,
    pub(crate) limit_changes: LimitChanges,
}

impl Counts {
    pub(crate) fn read(state: &GateState, tail: Tail<'_>) -> Self {
        Self {
            totals: Totals::read(&state.shards),
            durations: tail.durations().map(|by_outcome| Box::new(by_outcome.map(Durations::read))),
            limit_changes: state.causes.read(),
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.limit_changes.add_all(&other.limit_changes);
        if let Some(more) = &other.durations {
            let sums = self.durations.get_or_insert_default();
            for (sum, more) in sums.iter_mut().zip(more.iter()) {
                sum.add(more);
            }
        }
    }

    /// Whether nobody has ever asked for a permit.
    pub(crate) fn unused(&self) -> bool {
        let asked = |priority| self.admitted(priority) + self.would_shed(priority);
        self.shed_total() + Priority::ALL.map(asked).iter().sum::<u64>() == 0
    }

    /// Permits and bare entries admitted, not counting what dry run let in beyond the limit.
    #[must_use]
    pub fn admitted(&self, priority: Priority) -> u64 {
        self.totals.admitted(priority)
    }

    /// Requests turned away.
    #[must_use]
    pub fn shed(&self, priority: Priority, reason: Reason) -> u64 {
        self.totals.get(Counter::Shed(priority, reason))
    }

    /// All requests turned away.
    #[must_use]
    pub fn shed_total(&self) -> u64 {
        let of = |priority| Reason::ALL.map(|reason| self.shed(priority, reason)).iter().sum::<u64>();
        Priority::ALL.map(of).iter().sum()
    }

    /// Requests that dry run let in although enforcement would have shed them.
    #[must_use]
    pub fn would_shed(&self, priority: Priority) -> u64 {
        self.totals.get(Counter::WouldShed(priority))
    }

    /// Admitted permits and bare entries that have left.
    #[must_use]
    pub fn released(&self, outcome: Outcome) -> u64 {
        self.totals.get(Counter::Released(outcome))
    }

    /// Admissions whose priority was the gate's default because none was asked for.
    #[must_use]
    pub fn fallback_priority(&self) -> u64 {
        let of = |priority| self.totals.get(Counter::Admitted(priority, Fallback::Yes));
        Priority::ALL.map(of).iter().sum()
    }

    /// For how long permits of an outcome were held, in fixed buckets; `None` without timing. Without bare
    /// entries, which keep no state, and with what dry run let in beyond the limit.
    #[must_use]
    pub fn durations(&self, outcome: Outcome) -> Option<&Durations> {
        self.durations.as_ref().map(|by_outcome| &by_outcome[outcome as usize])
    }

    /// How often the limit was set, by cause: `manual` where none was given, and `other` for all beyond the
    /// first 16 causes. A cause counts by its first 48 bytes.
    pub fn limit_changes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.limit_changes.iter()
    }
}
