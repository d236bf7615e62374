//! What happens on the way in and out of a gate. The decision itself is in `word` and `priority`; this
//! file is the order in which things happen.
//!
//! - Admission: read the word, read what the decision rests on, swap (see `word`), raise the
//!   high-water mark, count.
//! - Where there is a rate, or signals are watched, or the gate measures (timing, a controller, an objective), that
//!   short way is closed, and the long one (`watched`, `rated`) reads the clock before the swap.
//! - Refusal: count, nothing else. In dry run: count and let in, without touching the word.
//! - Release: count, then subtract, so a permit that is seen gone has been counted. Where bare entries are to
//!   be expected: subtract what is there, then count what was found.
//!
//! The way in and out is inlined into its callers: a ticket then travels in registers, and through
//! memory it costs as much again as both atomic operations.

#![allow(clippy::inline_always)]

use std::sync::Arc;

use crate::ask::Ask;
use crate::clock::Clock;
use crate::config::GateBuilder;
use crate::control::Control;
use crate::controlled::Steered;
use crate::drain::Drain;
use crate::durations;
use crate::error::ConfigError;
use crate::fork;
use crate::histogram;
use crate::measured::Ended;
use crate::memory::Memory;
use crate::monitor::Monitor;
use crate::outcome::Outcome;
use crate::permit::Ticket;
use crate::priority::Priority;
use crate::rate::Settings;
use crate::replaceable::Replaceable;
use crate::retry::RetryWindow;
use crate::shard::{Counter, Fallback, Shard, Totals};
use crate::shed::{Reason, Shed};
use crate::state::Flags;
use crate::stats::Stats;
use crate::sync::{AtomicU64, Mutex, Ordering, fence};
use crate::thread::{Place, place};
use crate::word::{Left, Taken, View, Word};

/// What the clones of a gate share. In this order, which is not the compiler's: with the state in front, its
/// address is computed before it is loaded, a cycle in every admission and release (measured: 5 %).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Inner {
    pub(crate) word: Word,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) name: Box<str>,
    cold: Replaceable<Cold>,
    pub(crate) state: Memory,
    pub(crate) timing: bool,
}

/// What is needed rarely and is behind locks.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) control: Mutex<Control>,
    pub(crate) retry: Mutex<RetryWindow>,
    pub(crate) drain: Drain,
    pub(crate) monitor: Monitor,
}

impl Cold {
    fn new(control: Control, now_ns: u64) -> Self {
        Self {
            monitor: Monitor::of(control.signals.clone()),
            control: Mutex::new(control),
            retry: Mutex::new(RetryWindow::new(now_ns)),
            drain: Drain::default(),
        }
    }
}

/// Whether an entry leaves with a ticket, or as a bare exit that has none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Permit,
    Bare,
}

/// What became of who did not get in by the short way: small enough for two registers. A permit or a shed that
/// is put together of a call's answer passes through memory, which costs every refusal a third.
#[derive(Clone, Copy)]
struct Answer {
    refused: Option<Reason>,
    over: bool,
    /// Of an admission when it was, of a refusal what was in flight and the limit.
    more: u64,
}

impl Answer {
    fn admitted(over: bool, since_ns: u64) -> Self {
        Self { refused: None, over, more: since_ns }
    }

    fn refused(reason: Reason, shed: Shed) -> Self {
        Self {
            refused: Some(reason),
            over: false,
            more: u64::from(shed.in_flight) << 32 | u64::from(shed.limit),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // the two halves
    fn numbers(self) -> (u32, u32) {
        ((self.more >> 32) as u32, self.more as u32)
    }
}

impl Inner {
    pub(crate) fn new(config: GateBuilder, mut control: Control) -> Result<Self, ConfigError> {
        let state = memory(&config)?;
        let now_ns = config.clock.now_ns();
        if let Some((kind, bounds)) = config.controller {
            control.steered = Some(Steered::new(kind, bounds, now_ns));
        }
        if config.timing || control.steered.is_some() || control.objective.is_some() {
            state.config.raise(Flags::MEASURED);
        }
        if !config.enforce {
            state.config.raise(Flags::DRY_RUN_ON);
        }
        if config.bare_entries {
            state.config.raise(Flags::CHECKED);
        }
        if let Some(rate) = control.rate {
            state.rate.start(Settings::of(rate));
            state.config.raise(Flags::RATED_ON);
        }
        if !control.signals.is_empty() {
            state.config.raise(Flags::WATCHED_ON);
        }
        control.store_thresholds(&state.config);
        state.config.store_default_priority(control.default_priority);
        state.config.store_objective(control.objective);
        let inner = Self {
            word: Word::Local,
            state,
            timing: config.timing,
            name: config.name,
            cold: Replaceable::new(Cold::new(control, now_ns)),
            clock: config.clock,
        };
        inner.steer_from_here(&mut inner.cold().control.lock(), now_ns);
        Ok(inner)
    }

    pub(crate) fn store_enforce(&self, enforce: bool) {
        if enforce {
            self.state.config.lower(Flags::DRY_RUN);
        } else {
            self.state.config.raise(Flags::DRY_RUN_ON);
        }
    }

    #[inline(always)]
    pub(crate) fn admit(&self, ask: Ask, entry: Entry) -> Result<Ticket, Shed> {
        let (priority, fallback) = match ask.priority {
            Some(priority) => (priority, Fallback::No),
            None => (self.state.config.default_priority(), Fallback::Yes),
        };
        let weight = ask.weight.get();
        if entry == Entry::Bare && !self.state.config.flags().has(Flags::BARE_SEEN) {
            self.state.config.raise(Flags::BARE);
        }
        let (over, since_ns) = match self.decide(priority, weight) {
            Ok(_) => {
                self.count_admitted(priority, fallback, weight);
                (false, 0)
            }
            Err(shed) if !self.has_another_way(shed.reason) => {
                self.count(Counter::Shed(priority, shed.reason));
                return Err(shed);
            }
            Err(_) => {
                let answer = self.admit_otherwise(priority, fallback, weight, entry);
                if let Some(reason) = answer.refused {
                    let (in_flight, limit) = answer.numbers();
                    return Err(Shed { reason, priority, weight, in_flight, limit });
                }
                (answer.over, answer.more)
            }
        };
        Ok(Ticket::new(Taken::of(weight), priority, over, fork::epoch(), since_ns))
    }

    /// Whether who does not get in by the short way may get in by another. A closed gate has none, in dry
    /// run either: closing is about the gate's life, not about load.
    #[inline(always)]
    fn has_another_way(&self, reason: Reason) -> bool {
        fence(Ordering::Acquire); // see `store_thresholds`
        reason != Reason::Closed && self.state.config.flags().has(Flags::ANOTHER_WAY)
    }

    /// The loop of `word`'s text: what the decision rests on is read after the word.
    #[inline(always)]
    fn decide(&self, priority: Priority, weight: u32) -> Result<Taken, Shed> {
        let state = &*self.state;
        let mut view = self.word.view(state);
        loop {
            let threshold = state.config.short_threshold(priority.level());
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

    #[inline(always)]
    pub(crate) fn shed(&self, view: View, priority: Priority, weight: u32) -> Shed {
        let limit = self.state.config.limit();
        let reason = if view.closed() {
            Reason::Closed
        } else if view.fits(weight, limit) {
            Reason::Priority
        } else {
            Reason::Limit
        };
        Shed { reason, priority, weight, in_flight: view.in_flight(), limit }
    }

    #[inline(always)]
    pub(crate) fn count_admitted(&self, priority: Priority, fallback: Fallback, weight: u32) {
        let (place, shard) = self.shard();
        shard.count(place, Counter::Admitted(priority, fallback), 1);
        if weight > 1 {
            shard.count(place, Counter::ExtraAdmitted(priority), u64::from(weight - 1));
        }
    }

    /// Where the gate measures: the weight inside changed, by what `ended` if something did.
    #[inline]
    pub(crate) fn flow(&self, change: i64, now_ns: u64, ended: Option<Ended>) {
        let (place, shard) = self.shard();
        shard.flow(place, change, micros(now_ns), ended);
    }

    /// By the pressure, by the rate, by dry run, and where the gate measures.
    #[inline(never)]
    fn admit_otherwise(&self, priority: Priority, fallback: Fallback, weight: u32, entry: Entry) -> Answer {
        let mut measured_ns = self.is_measured().then(|| self.now_of_entry());
        let decided = self.decide_watched(priority, fallback, weight, &mut measured_ns);
        let since_ns = measured_ns.unwrap_or(0);
        let answer = match decided {
            Ok(_) => {
                self.count_admitted(priority, fallback, weight);
                if measured_ns.is_some() {
                    self.flow(i64::from(weight), since_ns, None);
                }
                Answer::admitted(false, since_ns)
            }
            Err(shed) => self.refuse_or_let_in(shed, entry, since_ns),
        };
        if measured_ns.is_some() {
            self.look_if_due(since_ns);
        }
        answer
    }

    #[inline]
    fn refuse_or_let_in(&self, shed: Shed, entry: Entry, since_ns: u64) -> Answer {
        let Shed { mut reason, priority, .. } = shed;
        if reason != Reason::Closed && self.state.config.flags().has(Flags::DRY_RUN) {
            if self.enter_over(entry) {
                self.count_over(priority, reason);
                return Answer::admitted(true, since_ns);
            }
            reason = Reason::Closed;
        }
        self.count(Counter::Shed(priority, reason));
        Answer::refused(reason, shed)
    }

    fn count_over(&self, priority: Priority, reason: Reason) {
        self.count(Counter::WouldShed(priority));
        match reason {
            Reason::Limit => self.state.dry_run.full.fetch_add(1, Ordering::Relaxed),
            Reason::Priority => self.state.dry_run.reserved.fetch_add(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// Lets one in beyond the limit, unless the gate was closed since it was looked at. No swap of the word
    /// would notice that, so it is looked at once more, after being counted inside: either this sees the
    /// gate closed, or whoever closed it sees this inside (the fence pairs with that of `close`).
    fn enter_over(&self, entry: Entry) -> bool {
        let over = match entry {
            Entry::Permit => &self.state.dry_run.over_permits,
            Entry::Bare => &self.state.dry_run.over_bare,
        };
        over.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.word.view(&self.state).closed() {
            return true;
        }
        if !take_one(over) && self.word.put_checked(&self.state, 1).missing == 0 {
            // A bare exit drew it meanwhile, and so left its own place in the word to be emptied here.
            self.count_released(Outcome::Ignore, 1);
            if self.is_measured() {
                self.flow(-1, self.clock.now_ns(), None);
            }
        }
        self.notify_if_empty();
        false
    }

    #[inline]
    pub(crate) fn is_measured(&self) -> bool {
        self.state.config.flags().has(Flags::MEASURED)
    }

    /// The time of an entry, which a ticket keeps. Without timing 0 means that nobody has measured.
    #[inline]
    pub(crate) fn now_of_entry(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        if self.timing { now_ns } else { now_ns.max(1) }
    }

    #[inline(always)]
    pub(crate) fn put(&self, ticket: Ticket, outcome: Outcome) {
        if !ticket.belongs_to(fork::epoch()) {
            return;
        }
        let flags = self.state.config.flags();
        if flags.has(Flags::MEASURED) {
            self.put_measured(ticket, outcome);
        } else if ticket.over() {
            self.put_over();
        } else if flags.has(Flags::CHECKED) {
            let left = self.put_checked(ticket, outcome);
            self.notify_if(left);
        } else {
            self.count_released(outcome, ticket.weight());
            self.notify_if(self.word.put(&self.state, ticket.taken()));
        }
    }

    #[inline(never)] // the way out of a gate that does not measure stays small
    fn put_measured(&self, ticket: Ticket, outcome: Outcome) {
        let now_ns = self.clock.now_ns();
        let latency_ns = now_ns.saturating_sub(ticket.since_ns());
        if self.timing {
            let tail = self.state.tail();
            durations::record(tail.duration(outcome), latency_ns);
            if outcome != Outcome::Ignore {
                histogram::record(tail.latency(ticket.priority()), latency_ns);
            }
        }
        if ticket.over() {
            self.put_over();
        } else {
            // One that came before anybody measured has no latency.
            let known = self.timing || ticket.since_ns() != 0;
            let good = outcome == Outcome::Success && latency_ns <= self.state.config.objective_ns();
            let ended = known.then_some(Ended::Permit { latency_ns, outcome, good });
            if self.state.config.flags().has(Flags::CHECKED) {
                let left = self.put_checked(ticket, outcome);
                let found = ticket.weight() - left.missing;
                self.flow(-i64::from(found), now_ns, ended.filter(|_| left.missing == 0));
                self.notify_if(left);
            } else {
                self.count_released(outcome, ticket.weight());
                self.flow(-i64::from(ticket.weight()), now_ns, ended);
                self.notify_if(self.word.put(&self.state, ticket.taken()));
            }
        }
        self.look_if_due(now_ns);
    }

    #[inline]
    pub(crate) fn notify_if(&self, left: Left) {
        if left.drained {
            self.notify_if_empty();
        }
    }

    /// After the last of the word or the last that was over has left a closed gate. They are counted
    /// apart, so each looks at the other's count after changing its own; the fence, and the one in
    /// `close`, keep both from looking too early.
    #[cold]
    fn notify_if_empty(&self) {
        fence(Ordering::SeqCst);
        if self.word.view(&self.state).closed() && self.is_empty() {
            self.cold().drain.notify();
        }
    }

    /// Admits nothing from now on, for good; whether this call closed it.
    ///
    /// A gate that is withdrawn is closed already, and might be reinstated at this moment: then its word is
    /// changed nevertheless. Either that comes before the swap by which `reinstate` opens it, which then fails and
    /// finds the gate ended; or it comes after, and closes it. Of a gate that is not, `reinstate` sees that it has
    /// ended: it comes after a `withdraw` whose change of the flags came after the one made here.
    pub(crate) fn close(&self) -> bool {
        let flags = self.state.config.raise(Flags::ENDED);
        let closed = if flags.has(Flags::WITHDRAWN) {
            self.word.close_anew(&self.state)
        } else {
            self.word.close(&self.state)
        };
        fence(Ordering::SeqCst);
        closed
    }

    /// As [`close`](Self::close), until [`reinstate`](Self::reinstate). Callers serialise the two.
    #[cfg(any(feature = "file", tidegate_loom))]
    pub(crate) fn withdraw(&self) -> bool {
        self.state.config.raise(Flags::WITHDRAWN);
        let closed = self.word.close(&self.state);
        fence(Ordering::SeqCst);
        closed
    }

    /// Opens a withdrawn gate; `false` where its owner closed it, too, for good. What is inside was counted all
    /// the time. Nobody waits for it to be drained on behalf of its owner, who would have closed it.
    #[cfg(any(feature = "file", tidegate_loom))]
    pub(crate) fn reinstate(&self) -> bool {
        let opened = self.word.open_unless(&self.state, || self.state.config.flags().has(Flags::ENDED));
        self.state.config.lower(Flags::WITHDRAWN);
        opened
    }

    /// Where bare entries were made, one exit too many may have taken what this permit puts back,
    /// and a bare exit in dry run may have drawn it. Then what is missing is taken from what is
    /// left on the other side, so that all that entered has left in the end.
    #[inline(never)] // the other way out stays small
    fn put_checked(&self, ticket: Ticket, outcome: Outcome) -> Left {
        let left = self.word.put_checked(&self.state, ticket.weight());
        if left.missing == 0 {
            self.count_released(outcome, ticket.weight());
        } else {
            self.make_up_for(left.missing);
        }
        left
    }

    /// For what was missing from the word: what is still inside on the other side leaves in its place.
    pub(crate) fn make_up_for(&self, missing: u32) {
        let found = (0..missing).take_while(|_| self.take_over_bare()).count();
        if found < missing as usize {
            self.count(Counter::UnmatchedExit);
        }
    }

    /// Puts back what was taken of the word, by the way that is sound for this gate.
    pub(crate) fn put_back(&self, taken: Taken) -> Left {
        if self.state.config.flags().has(Flags::CHECKED) {
            self.word.put_checked(&self.state, taken.weight())
        } else {
            self.word.put(&self.state, taken)
        }
    }

    #[cold]
    fn put_over(&self) {
        self.state.dry_run.over_permits.fetch_sub(1, Ordering::Release);
        self.notify_if_empty();
    }

    /// Where no bare entry was ever made, what is inside belongs to permits, which put it back without
    /// checking: an exit must not touch it.
    #[inline]
    pub(crate) fn exit(&self, outcome: Outcome) -> bool {
        let flags = self.state.config.flags();
        if !flags.has(Flags::BARE_SEEN) {
            return self.exit_missing();
        }
        if flags.has(Flags::DRY_RUN_SEEN) && self.draw_over() {
            self.notify_if_empty();
            return true;
        }
        let left = self.word.put_checked(&self.state, 1);
        if left.missing > 0 {
            return self.exit_missing();
        }
        self.count_released(outcome, 1);
        if flags.has(Flags::MEASURED) {
            let now_ns = self.clock.now_ns();
            self.flow(-1, now_ns, Some(Ended::Bare(outcome)));
            self.notify_if(left);
            self.look_if_due(now_ns);
        } else {
            self.notify_if(left);
        }
        true
    }

    #[cold]
    fn exit_missing(&self) -> bool {
        if self.take_over_bare() {
            self.notify_if_empty();
            return true;
        }
        self.count(Counter::UnmatchedExit);
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
        let drawn = (u128::from(draw) * u128::from(over + counted)) >> 64;
        drawn < u128::from(over) && self.take_over_bare()
    }

    fn take_over_bare(&self) -> bool {
        take_one(&self.state.dry_run.over_bare)
    }

    #[inline(always)]
    fn count_released(&self, outcome: Outcome, weight: u32) {
        let (place, shard) = self.shard();
        shard.count(place, Counter::Released(outcome), 1);
        if weight > 1 {
            shard.count(place, Counter::ExtraReleased, u64::from(weight - 1));
        }
    }

    /// For how long a ticket has been held, where timing is on.
    pub(crate) fn held_ns(&self, ticket: &Ticket) -> Option<u64> {
        self.timing.then(|| self.clock.now_ns().saturating_sub(ticket.since_ns()))
    }

    #[inline(always)]
    fn shard(&self) -> (Place, &Shard) {
        let place = place();
        (place, &self.state.shards[place.index])
    }

    #[inline]
    pub(crate) fn cold(&self) -> &Cold {
        self.cold.get()
    }

    /// The weight that is inside, with what dry run let in beyond the limit.
    pub(crate) fn is_empty(&self) -> bool {
        self.word.view(&self.state).in_flight() == 0 && self.state.over_in_flight() == 0
    }

    /// Counts one.
    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        let (place, shard) = self.shard();
        shard.count(place, counter, 1);
    }

    pub(crate) fn totals(&self) -> Totals {
        Totals::read(&self.state.shards)
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::read(self.word, &self.state, self.state.tail());
        if self.timing {
            let now_us = micros(self.clock.now_ns());
            stats.occupancy_us = Some(Totals::occupancy(&self.state.shards, now_us));
        }
        if stats.pressure.is_some() && !self.cold().monitor.holds(self.clock.now_ns()) {
            stats.forget_pressure();
        }
        stats
    }
}

/// What happens around a fork, with the control lock held.
#[cfg(all(unix, not(tidegate_loom)))]
impl Inner {
    pub(crate) fn before_fork(&self, control: &mut Control) {
        control.at_fork = Some((self.word.view(&self.state), self.state.config.flags()));
    }

    /// In the child: an empty gate with the configuration that it had at the fork.
    pub(crate) fn start_anew(&self, mut control: Control) {
        control.signals = control.signals.renewed();
        self.state.leave_to_parent();
        self.state.config.store_default_priority(control.default_priority);
        let (word, flags) = control.at_fork.expect("noted before the fork");
        self.state.config.restore(flags);
        control.store_thresholds(&self.state.config);
        self.word.start_anew(&self.state, word);
        self.state.empty();
        if let Some(rate) = control.rate {
            self.state.rate.start(Settings::of(rate));
        }
        self.state.tail().empty();
        self.state.config.store_objective(control.objective);
        let now_ns = self.clock.now_ns();
        self.cold.replace_leaking(Cold::new(control, now_ns));
        let mut control = self.cold().control.lock();
        self.steer_from_here(&mut control, now_ns);
        self.state.config.store_moves(control.moves);
    }
}

fn memory(config: &GateBuilder) -> Result<Memory, ConfigError> {
    let Some(directory) = &config.directory else {
        return Ok(Memory::boxed(config.timing));
    };
    Memory::published(directory, &config.name, config.timing).map_err(|error| ConfigError::Directory {
        directory: directory.display().to_string(),
        problem: error.to_string(),
    })
}

/// Takes one from a count, unless there is none.
fn take_one(count: &AtomicU64) -> bool {
    count.fetch_update(Ordering::Release, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
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
