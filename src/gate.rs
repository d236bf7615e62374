//! The gate: admit, release, change, close.
//!
//! The decision itself is in `word` and `priority`; this file is the order in which things happen.
//!
//! - Admission: read the word, read what the decision rests on, swap (see `word`), raise the
//!   high-water mark, count. Where timing is on the clock is read before the swap, so a permit's time
//!   includes no other thread's.
//! - Refusal: count, nothing else. In dry run: count and let in, without touching the word.
//! - Release: count, then subtract. A permit that is seen gone has been counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ask::Ask;
use crate::clock::Clock;
use crate::config::GateBuilder;
use crate::control::{Control, LimitChange, limit_from};
use crate::drain::Drain;
use crate::error::ConfigError;
use crate::fork;
use crate::histogram::{self, BUCKETS, Histogram};
use crate::outcome::Outcome;
use crate::permit::{OwnedPermit, Permit, Ticket};
use crate::priority::{PRIORITIES, Priority, Thresholds};
use crate::replaceable::Replaceable;
use crate::retry::{Observation, RetryWindow};
use crate::shard::{Counter, Fallback, Shard, Totals};
use crate::shed::{Reason, RetryAfter, Shed};
use crate::state::{Flags, GateState};
use crate::stats::Stats;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::thread::{Place, place};
use crate::word::{Left, Taken, View, Word};

/// The admission controller of one protected resource.
///
/// A gate is a handle: clones share one count. It never waits, holds no thread, file or socket, and
/// can be used from any thread.
///
/// ```
/// use tidegate::{Gate, Priority};
///
/// let gate = Gate::new("db", 1)?;
/// let permit = gate.try_admit(Priority::Critical).expect("one fits");
/// assert!(gate.try_admit(Priority::Critical).is_err(), "two do not");
/// drop(permit);
/// assert!(gate.try_admit(Priority::Critical).is_ok());
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    inner: Arc<Inner>,
}

/// What the clones of a gate share.
#[derive(Debug)]
pub(crate) struct Inner {
    word: Word,
    state: Box<GateState>,
    /// The tail of the state: a histogram for each priority, or nothing without timing.
    latency: Box<[AtomicU64]>,
    default_priority: Priority,
    timing: bool,
    clock: Arc<dyn Clock>,
    name: Box<str>,
    cold: Replaceable<Cold>,
}

/// What is needed rarely and is behind locks.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) control: Mutex<Control>,
    retry: Mutex<RetryWindow>,
    drain: Drain,
}

impl Cold {
    fn new(control: Control, now_ns: u64) -> Self {
        Self {
            control: Mutex::new(control),
            retry: Mutex::new(RetryWindow::new(now_ns)),
            drain: Drain::default(),
        }
    }
}

/// Whether an entry leaves with a ticket, or as a bare exit that has none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Permit,
    Bare,
}

/// Building, and what does not change.
impl Gate {
    /// A gate with default thresholds that admits at most `limit` weight at a time. A limit of 0
    /// admits nothing.
    ///
    /// # Errors
    /// [`ConfigError`] when the name or the limit breaks its rule.
    pub fn new(name: &str, limit: u32) -> Result<Self, ConfigError> {
        Self::builder(name, limit).build()
    }

    /// A gate with more to choose.
    pub fn builder(name: &str, limit: u32) -> GateBuilder {
        GateBuilder::new(name, limit)
    }

    pub(crate) fn from_parts(config: GateBuilder, control: Control) -> Self {
        let state = Box::new(GateState::new());
        state
            .config
            .store_bounds(control.thresholds.at(control.limit));
        if !config.enforce {
            state.config.raise(Flags::DRY_RUN_ON);
        }
        let cells = if config.timing {
            PRIORITIES * BUCKETS
        } else {
            0
        };
        let inner = Arc::new(Inner {
            word: Word::Local,
            state,
            latency: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            default_priority: config.default_priority,
            timing: config.timing,
            name: config.name,
            cold: Replaceable::new(Cold::new(control, config.clock.now_ns())),
            clock: config.clock,
        });
        fork::register(&inner);
        Self { inner }
    }

    /// The name, a label: two gates may have the same.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The priority of requests that name none.
    #[must_use]
    pub fn default_priority(&self) -> Priority {
        self.inner.default_priority
    }
}

/// Admission and release.
impl Gate {
    /// Asks for a permit; the answer comes at once.
    ///
    /// # Errors
    /// [`Shed`] when there is no room for the priority, or the gate is closed.
    #[inline]
    pub fn try_admit(&self, ask: impl Into<Ask>) -> Result<Permit<'_>, Shed> {
        self.take(ask).map(|ticket| Permit::new(self, ticket))
    }

    /// As [`try_admit`](Self::try_admit), for a permit that keeps the gate alive.
    ///
    /// # Errors
    /// [`Shed`] when there is no room for the priority, or the gate is closed.
    #[inline]
    pub fn try_admit_owned(&self, ask: impl Into<Ask>) -> Result<OwnedPermit, Shed> {
        self.take(ask)
            .map(|ticket| OwnedPermit::new(self.clone(), ticket))
    }

    /// The plain form of [`try_admit`](Self::try_admit), for bindings: the ticket must be
    /// [`put`](Self::put) back exactly once.
    ///
    /// # Errors
    /// [`Shed`] when there is no room for the priority, or the gate is closed.
    #[inline]
    pub fn take(&self, ask: impl Into<Ask>) -> Result<Ticket, Shed> {
        self.inner.admit(ask.into(), Entry::Permit)
    }

    /// Puts back what [`take`](Self::take) took. In a forked child, a ticket of the parent's is inert.
    #[inline]
    pub fn put(&self, ticket: Ticket, outcome: Outcome) {
        self.inner.put(ticket, outcome);
    }

    /// Whether a ticket was taken before a fork, by the parent of this process.
    #[must_use]
    pub fn is_inert(&self, ticket: &Ticket) -> bool {
        !ticket.belongs_to(fork::epoch())
    }

    /// Enters without a permit, with weight 1. Whoever enters calls [`exit`](Self::exit) once:
    /// for block statements, whose structure guarantees it.
    ///
    /// # Errors
    /// [`Shed`] when there is no room for the priority, or the gate is closed.
    #[inline]
    pub fn enter(&self, priority: Option<Priority>) -> Result<(), Shed> {
        self.inner.admit(priority.into(), Entry::Bare).map(|_| ())
    }

    /// Leaves after [`enter`](Self::enter). `false`, counted and without effect, where nothing is
    /// inside. An exit too many while others are inside cannot be told from one of theirs.
    ///
    /// In dry run an exit does not know whether its entry was over the limit, so it draws, in
    /// proportion to what is inside. That is right for exponential service times, and exact on
    /// average for no other; permits carry the mark and are exact.
    #[inline]
    pub fn exit(&self, outcome: Outcome) -> bool {
        self.inner.exit(outcome)
    }
}

impl Inner {
    // Inlined into the caller, so that a ticket travels in registers: through memory it costs as much
    // again as both atomic operations.
    #[inline(always)]
    fn admit(&self, ask: Ask, entry: Entry) -> Result<Ticket, Shed> {
        let (priority, fallback) = match ask.priority {
            Some(priority) => (priority, Fallback::No),
            None => (self.default_priority, Fallback::Yes),
        };
        let weight = ask.weight.get();
        if entry == Entry::Bare && !self.state.config.flags().has(Flags::BARE_SEEN) {
            self.state.config.raise(Flags::BARE_SEEN);
        }
        let since_ns = self.now_if_timing();
        let (taken, over) = match self.decide(priority, weight) {
            Ok(taken) => {
                self.count_admitted(priority, fallback, weight, since_ns);
                (taken, false)
            }
            Err(shed) => (self.refuse(shed, entry)?, true),
        };
        Ok(Ticket::new(taken, priority, over, fork::epoch(), since_ns))
    }

    /// The loop of `word`'s text: what the decision rests on is read after the word.
    #[inline(always)]
    fn decide(&self, priority: Priority, weight: u32) -> Result<Taken, Shed> {
        let state = &*self.state;
        let mut view = self.word.view(state);
        loop {
            let threshold = state.config.threshold(priority.level());
            if view.closed() || !view.fits(weight, threshold) {
                return Err(self.shed(view, priority, weight));
            }
            match self.word.try_take(state, view, weight) {
                Ok(taken) => {
                    state.note_high_water(view.in_flight() + weight);
                    return Ok(taken);
                }
                Err(now) => view = now,
            }
        }
    }

    #[cold]
    fn shed(&self, view: View, priority: Priority, weight: u32) -> Shed {
        let limit = self.state.config.limit();
        let reason = if view.closed() {
            Reason::Closed
        } else if view.fits(weight, limit) {
            Reason::Priority
        } else {
            Reason::Limit
        };
        Shed {
            reason,
            priority,
            weight,
            in_flight: view.in_flight(),
            limit,
        }
    }

    #[inline(always)]
    fn count_admitted(&self, priority: Priority, fallback: Fallback, weight: u32, now_ns: u64) {
        let (place, shard) = self.shard();
        shard.count(place, Counter::Admitted(priority, fallback), 1);
        if weight > 1 {
            shard.count(
                place,
                Counter::ExtraAdmitted(priority),
                u64::from(weight - 1),
            );
        }
        if self.timing {
            shard.flow(place, i64::from(weight), micros(now_ns));
        }
    }

    /// A refusal is counted; in dry run it is let in. A closed gate is closed in dry run too: closing
    /// is about the gate's life, not about load.
    #[cold]
    fn refuse(&self, shed: Shed, entry: Entry) -> Result<Taken, Shed> {
        let (place, shard) = self.shard();
        if shed.reason == Reason::Closed || !self.state.config.flags().has(Flags::DRY_RUN) {
            shard.count(place, Counter::Shed(shed.priority, shed.reason), 1);
            return Err(shed);
        }
        shard.count(place, Counter::WouldShed(shed.priority), 1);
        let over = match entry {
            Entry::Permit => &self.state.dry_run.over_permits,
            Entry::Bare => &self.state.dry_run.over_bare,
        };
        over.fetch_add(1, Ordering::Relaxed);
        Ok(Taken::of(shed.weight))
    }

    /// The time, where anybody wants to know it.
    #[inline]
    fn now_if_timing(&self) -> u64 {
        if self.timing { self.clock.now_ns() } else { 0 }
    }

    #[inline(always)]
    fn put(&self, ticket: Ticket, outcome: Outcome) {
        if !ticket.belongs_to(fork::epoch()) {
            return;
        }
        let now_ns = self.now_if_timing();
        if self.timing && outcome != Outcome::Ignore {
            self.record_latency(&ticket, now_ns);
        }
        if ticket.over() {
            self.put_over();
        } else if self.state.config.flags().has(Flags::BARE_SEEN) {
            self.put_checked(ticket, outcome, now_ns);
        } else {
            self.count_released(outcome, ticket.weight(), now_ns);
            self.notify_if(self.word.put(&self.state, ticket.taken()));
        }
    }

    #[inline]
    fn notify_if(&self, left: Left) {
        if left.drained {
            self.cold().drain.notify();
        }
    }

    /// Where bare entries were made, one exit too many may have taken what this permit puts back,
    /// and a bare exit in dry run may have drawn it. Then what is missing is taken from what is
    /// left on the other side, so that all that entered has left in the end.
    #[cold]
    fn put_checked(&self, ticket: Ticket, outcome: Outcome, now_ns: u64) {
        let left = self.word.put_checked(&self.state, ticket.weight());
        let (place, shard) = self.shard();
        if left.missing == 0 {
            self.count_released(outcome, ticket.weight(), now_ns);
        } else {
            let found = (0..left.missing)
                .take_while(|_| self.take_over_bare())
                .count();
            if found < left.missing as usize {
                shard.count(place, Counter::UnmatchedExit, 1);
            }
            if self.timing {
                let gone = i64::from(ticket.weight() - left.missing);
                shard.flow(place, -gone, micros(now_ns));
            }
        }
        self.notify_if(left);
    }

    #[cold]
    fn put_over(&self) {
        self.state
            .dry_run
            .over_permits
            .fetch_sub(1, Ordering::Release);
        self.left_over();
    }

    #[inline]
    fn exit(&self, outcome: Outcome) -> bool {
        if self.state.config.flags().has(Flags::DRY_RUN_SEEN) && self.draw_over() {
            self.left_over();
            return true;
        }
        let left = self.word.put_checked(&self.state, 1);
        if left.missing > 0 {
            return self.exit_missing();
        }
        self.count_released(outcome, 1, self.now_if_timing());
        self.notify_if(left);
        true
    }

    #[cold]
    fn exit_missing(&self) -> bool {
        if self.take_over_bare() {
            self.left_over();
            return true;
        }
        let (place, shard) = self.shard();
        shard.count(place, Counter::UnmatchedExit, 1);
        false
    }

    /// Whether a bare exit is one of those that were over: drawn in proportion to what is inside.
    #[cold]
    fn draw_over(&self) -> bool {
        let over = self.state.dry_run.over_bare.load(Ordering::Relaxed);
        if over == 0 {
            return false;
        }
        let counted = u64::from(self.word.view(&self.state).in_flight());
        let draw = splitmix(self.state.dry_run.draws.fetch_add(1, Ordering::Relaxed));
        let drawn = u128::from(draw) * u128::from(over + counted) >> 64;
        drawn < u128::from(over) && self.take_over_bare()
    }

    fn take_over_bare(&self) -> bool {
        let over = &self.state.dry_run.over_bare;
        over.fetch_update(Ordering::Release, Ordering::Relaxed, |n| n.checked_sub(1))
            .is_ok()
    }

    /// After an over-limit entry left: it may have been the last thing inside.
    fn left_over(&self) {
        if self.state.over_in_flight() == 0 && self.word.view(&self.state).closed() {
            self.cold().drain.notify();
        }
    }

    #[inline(always)]
    fn count_released(&self, outcome: Outcome, weight: u32, now_ns: u64) {
        let (place, shard) = self.shard();
        shard.count(place, Counter::Released(outcome), 1);
        if weight > 1 {
            shard.count(place, Counter::ExtraReleased, u64::from(weight - 1));
        }
        if self.timing {
            shard.flow(place, -i64::from(weight), micros(now_ns));
        }
    }

    fn record_latency(&self, ticket: &Ticket, now_ns: u64) {
        let first = ticket.priority().level() * BUCKETS;
        let cells = &self.latency[first..first + BUCKETS];
        histogram::record(cells, now_ns.saturating_sub(ticket.since_ns()));
    }

    #[inline]
    fn shard(&self) -> (Place, &Shard) {
        let place = place();
        (place, &self.state.shards[place.index])
    }

    #[inline]
    pub(crate) fn cold(&self) -> &Cold {
        self.cold.get()
    }

    /// The weight that is inside, with what dry run let in beyond the limit.
    fn is_empty(&self) -> bool {
        self.word.view(&self.state).in_flight() == 0 && self.state.over_in_flight() == 0
    }

    fn totals(&self) -> Totals {
        Totals::read(self.state.shards.iter().map(|shard| &**shard))
    }

    /// In a fork's child: an empty gate with the same configuration.
    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn start_anew(&self, control: Control) {
        self.state.empty();
        for cell in &self.latency {
            cell.store(0, Ordering::Relaxed);
        }
        self.word.empty(&self.state);
        self.cold
            .replace_leaking(Cold::new(control, self.clock.now_ns()));
    }
}

/// Changing a gate while it is in use.
impl Gate {
    /// The most weight that may be in flight.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.inner.state.config.limit()
    }

    /// How full the gate may be for each priority still to enter, most important first.
    #[must_use]
    pub fn thresholds(&self) -> [u32; PRIORITIES] {
        self.inner.state.config.bounds()
    }

    /// Sets the limit, with `cause` for the [history](Self::limit_history). Once this has returned,
    /// nothing is admitted above it. Permits that are out stay valid: below them the gate admits
    /// nothing until enough have left.
    ///
    /// # Errors
    /// [`ConfigError::Limit`] above 2^31 - 1.
    pub fn set_limit(&self, limit: u32, cause: Option<&str>) -> Result<(), ConfigError> {
        let limit = limit_from(limit)?;
        let inner = &*self.inner;
        let mut control = inner.cold().control.lock();
        control.set_limit(limit, cause, inner.clock.now_ns());
        inner
            .state
            .config
            .store_bounds(control.thresholds.at(limit));
        inner.word.publish(&inner.state);
        Ok(())
    }

    /// Sets the thresholds of all four priorities.
    ///
    /// # Errors
    /// [`ConfigError`] when they rise as importance falls, or the first is not the limit.
    pub fn set_thresholds(&self, thresholds: Thresholds) -> Result<(), ConfigError> {
        let inner = &*self.inner;
        let mut control = inner.cold().control.lock();
        thresholds.validate(control.limit)?;
        control.thresholds = thresholds;
        inner
            .state
            .config
            .store_bounds(thresholds.at(control.limit));
        inner.word.publish(&inner.state);
        Ok(())
    }

    /// The last limit changes, at most 64, oldest first.
    #[must_use]
    pub fn limit_history(&self) -> Vec<LimitChange> {
        self.inner
            .cold()
            .control
            .lock()
            .history
            .iter()
            .cloned()
            .collect()
    }

    /// Whether the gate turns requests away; `false` in dry run.
    #[must_use]
    pub fn enforce(&self) -> bool {
        !self.inner.state.config.flags().has(Flags::DRY_RUN)
    }

    /// Switches dry run off (`true`) or on (`false`).
    pub fn set_enforce(&self, enforce: bool) {
        let inner = &*self.inner;
        let _serialised = inner.cold().control.lock();
        if enforce {
            inner.state.config.lower(Flags::DRY_RUN);
        } else {
            inner.state.config.raise(Flags::DRY_RUN_ON);
        }
        inner.word.publish(&inner.state);
    }
}

/// The end of a gate.
impl Gate {
    /// Whether the gate was closed.
    #[must_use]
    pub fn closed(&self) -> bool {
        self.inner.word.view(&self.inner.state).closed()
    }

    /// Admits nothing any more, also in dry run. What is inside may leave in its own time.
    pub fn close(&self) {
        self.inner.word.close(&self.inner.state);
    }

    /// Closes the gate and waits until everything inside has left, or `timeout` has passed (`None`:
    /// for ever). Says whether the gate is empty.
    #[must_use]
    pub fn drain(&self, timeout: Option<Duration>) -> bool {
        self.close();
        // A deadline past the end of the clock is none.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.inner
            .cold()
            .drain
            .wait(deadline, || self.inner.is_empty())
    }

    /// Closes the gate and has `callback` called once everything inside has left: now, or by
    /// the call that releases the last of it. No lock is held during the call.
    pub fn on_drained(&self, callback: Box<dyn FnOnce() + Send>) {
        self.close();
        self.inner
            .cold()
            .drain
            .when_empty(callback, || self.inner.is_empty());
    }
}

/// Readings.
impl Gate {
    /// The weight in flight. What dry run let in beyond the limit is not part of it.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.inner.word.view(&self.inner.state).in_flight()
    }

    /// For how long a request like this should stay away: a lower bound, computed from the gate's
    /// counters when asked for.
    ///
    /// `max(need / (releases per second - admissions per second of more important work), the time
    /// for which this priority has been refused without an admission)`, where `need` is the weight
    /// that must leave before the request fits, and the rates are taken over the last 64 completions
    /// or more. Zero when it would be admitted now.
    #[must_use]
    pub fn retry_after(&self, ask: impl Into<Ask>) -> RetryAfter {
        let inner = &*self.inner;
        let Ask { priority, weight } = ask.into();
        let priority = priority.unwrap_or(inner.default_priority);
        let view = inner.word.view(&inner.state);
        let threshold = inner.state.config.threshold(priority.level());
        if view.closed() || weight.get() > threshold {
            return RetryAfter::Never;
        }
        let wanted = u64::from(view.in_flight()) + u64::from(weight.get());
        let need = wanted.saturating_sub(u64::from(threshold));
        let totals = inner.totals();
        let now = Observation {
            now_ns: inner.clock.now_ns(),
            completions: totals.released.iter().sum(),
            released_weight: totals.released_weight,
            admitted_weight: totals.admitted_weight,
        };
        inner.cold().retry.lock().estimate(now, priority, need)
    }

    /// A reading of all counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let inner = &*self.inner;
        let totals = inner.totals();
        let view = inner.word.view(&inner.state);
        let occupancy_us = inner.timing.then(|| {
            let shards = inner.state.shards.iter().map(|shard| &**shard);
            Totals::occupancy(shards, micros(inner.clock.now_ns()))
        });
        let latency = inner.timing.then(|| {
            Box::new(Priority::ALL.map(|priority| {
                let first = priority.level() * BUCKETS;
                Histogram::read(&inner.latency[first..first + BUCKETS])
            }))
        });
        Stats {
            limit: self.limit(),
            in_flight: view.in_flight(),
            high_water: inner.state.hot.high_water.load(Ordering::Relaxed),
            generation: view.generation(),
            over_in_flight: inner.state.over_in_flight(),
            unmatched_exits: totals.unmatched_exits,
            collected: totals.collected,
            occupancy_us,
            totals,
            latency,
        }
    }

    /// Puts back a ticket whose permit was forgotten, and counts that: for bindings to languages with
    /// a garbage collector.
    pub fn put_collected(&self, ticket: Ticket) {
        if self.is_inert(&ticket) {
            return;
        }
        let (place, shard) = self.inner.shard();
        shard.count(place, Counter::Collected, 1);
        self.put(ticket, Outcome::Ignore);
    }
}

fn micros(ns: u64) -> u64 {
    ns / 1_000
}

/// A 64-bit finaliser (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014): turns a counter into draws.
fn splitmix(counter: u64) -> u64 {
    let mut z = counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
