//! What happens on the way in and out of a gate. The decision itself is in `word` and `priority`; this
//! file is the order in which things happen.
//!
//! - Admission: read the word, read what the decision rests on, swap (see `word`), raise the
//!   high-water mark, count. Where timing is on the clock is read before the swap.
//! - Where there is a rate: see `rated`. Where signals are watched: see `watched`.
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
use crate::drain::Drain;
use crate::durations;
use crate::error::ConfigError;
use crate::fork;
use crate::histogram;
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
    in_flight: u32,
    limit: u32,
}

impl Inner {
    pub(crate) fn new(config: GateBuilder, control: Control) -> Result<Self, ConfigError> {
        let state = memory(&config)?;
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
        Ok(Self {
            word: Word::Local,
            state,
            timing: config.timing,
            name: config.name,
            cold: Replaceable::new(Cold::new(control, config.clock.now_ns())),
            clock: config.clock,
        })
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
        let since_ns = self.now_if_timing();
        let (over, since_ns) = match self.decide(priority, weight) {
            Ok(_) => {
                self.count_admitted(priority, fallback, weight, since_ns);
                (false, since_ns)
            }
            Err(shed) if !self.has_another_way(shed.reason) => {
                self.count(Counter::Shed(priority, shed.reason));
                return Err(shed);
            }
            Err(_) => {
                let mut since_ns = since_ns;
                let Answer { refused, over, in_flight, limit } =
                    self.admit_otherwise(priority, fallback, weight, entry, &mut since_ns);
                if let Some(reason) = refused {
                    return Err(Shed { reason, priority, weight, in_flight, limit });
                }
                (over, since_ns)
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
    pub(crate) fn count_admitted(&self, priority: Priority, fallback: Fallback, weight: u32, now_ns: u64) {
        let (place, shard) = self.shard();
        shard.count(place, Counter::Admitted(priority, fallback), 1);
        if weight > 1 {
            shard.count(place, Counter::ExtraAdmitted(priority), u64::from(weight - 1));
        }
        if self.timing {
            shard.flow(place, i64::from(weight), micros(now_ns));
        }
    }

    /// By the pressure, by the rate, and by dry run.
    #[inline(never)]
    fn admit_otherwise(
        &self,
        priority: Priority,
        fallback: Fallback,
        weight: u32,
        entry: Entry,
        since_ns: &mut u64,
    ) -> Answer {
        let Err(shed) = self.decide_watched(priority, fallback, weight, since_ns) else {
            self.count_admitted(priority, fallback, weight, *since_ns);
            return Answer { refused: None, over: false, in_flight: 0, limit: 0 };
        };
        let mut reason = shed.reason;
        if reason != Reason::Closed && self.state.config.flags().has(Flags::DRY_RUN) {
            if self.enter_over(entry) {
                self.count(Counter::WouldShed(priority));
                return Answer { refused: None, over: true, in_flight: 0, limit: 0 };
            }
            reason = Reason::Closed;
        }
        self.count(Counter::Shed(priority, reason));
        Answer { refused: Some(reason), over: false, in_flight: shed.in_flight, limit: shed.limit }
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
            self.count_released(Outcome::Ignore, 1, self.now_if_timing());
        }
        self.notify_if_empty();
        false
    }

    /// The time, where anybody wants to know it.
    #[inline]
    fn now_if_timing(&self) -> u64 {
        if self.timing { self.clock.now_ns() } else { 0 }
    }

    #[inline(always)]
    pub(crate) fn put(&self, ticket: Ticket, outcome: Outcome) {
        if !ticket.belongs_to(fork::epoch()) {
            return;
        }
        if self.timing {
            self.put_timed(ticket, outcome);
        } else {
            self.put_at(ticket, outcome, 0);
        }
    }

    #[inline(never)] // the way out without timing stays small
    fn put_timed(&self, ticket: Ticket, outcome: Outcome) {
        let now_ns = self.clock.now_ns();
        let held_ns = now_ns.saturating_sub(ticket.since_ns());
        let tail = self.state.tail();
        durations::record(tail.duration(outcome), held_ns);
        if outcome != Outcome::Ignore {
            histogram::record(tail.latency(ticket.priority()), held_ns);
        }
        self.put_at(ticket, outcome, now_ns);
    }

    #[inline(always)]
    fn put_at(&self, ticket: Ticket, outcome: Outcome, now_ns: u64) {
        if ticket.over() {
            self.put_over();
        } else if self.state.config.flags().has(Flags::CHECKED) {
            self.put_checked(ticket, outcome, now_ns);
        } else {
            self.count_released(outcome, ticket.weight(), now_ns);
            self.notify_if(self.word.put(&self.state, ticket.taken()));
        }
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
    fn put_checked(&self, ticket: Ticket, outcome: Outcome, now_ns: u64) {
        let left = self.word.put_checked(&self.state, ticket.weight());
        if left.missing == 0 {
            self.count_released(outcome, ticket.weight(), now_ns);
        } else {
            self.make_up_for(left.missing);
            if self.timing {
                let (place, shard) = self.shard();
                let gone = i64::from(ticket.weight() - left.missing);
                shard.flow(place, -gone, micros(now_ns));
            }
        }
        self.notify_if(left);
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
        self.count_released(outcome, 1, self.now_if_timing());
        self.notify_if(left);
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
        control.store_thresholds(&self.state.config);
        self.state.config.store_default_priority(control.default_priority);
        if let Some((word, flags)) = control.at_fork {
            self.state.config.restore(flags);
            self.word.start_anew(&self.state, word);
        }
        self.state.empty();
        if let Some(rate) = control.rate {
            self.state.rate.start(Settings::of(rate));
        }
        self.state.tail().empty();
        self.cold.replace_leaking(Cold::new(control, self.clock.now_ns()));
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
