//! The gate: admit, release, change, close. The handle that users hold; what happens on the way in and
//! out is in `admission`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admission::{Entry, Inner};
use crate::ask::Ask;
use crate::config::GateBuilder;
use crate::control::{Control, LimitChange, leaves_room, limit_from};
use crate::controlled::ControllerReport;
use crate::drain::DrainId;
use crate::error::ConfigError;
use crate::fork;
use crate::measured::Reading;
use crate::outcome::Outcome;
use crate::permit::{OwnedPermit, Permit, Ticket};
use crate::priority::{PRIORITIES, Priority, Thresholds};
use crate::rate::Rate;
use crate::registry;
use crate::retry::Observation;
use crate::shard::Counter;
use crate::shed::{RetryAfter, Shed};
use crate::state::Flags;
use crate::stats::Stats;

/// The admission controller of one protected resource.
///
/// A gate is a handle: clones share one count. It never waits, holds no thread, file or socket
/// (unless it is [published](GateBuilder::publish_in)), and can be used from any thread.
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
    pub(crate) inner: Arc<Inner>,
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

    pub(crate) fn from_parts(config: GateBuilder, control: Control) -> Result<Self, ConfigError> {
        let inner = Arc::new(Inner::new(config, control)?);
        registry::register(&inner);
        Ok(Self { inner })
    }

    /// The gates of this process that somebody still holds, in the order in which they were built.
    #[must_use]
    pub fn all() -> Vec<Self> {
        registry::living().into_iter().map(|inner| Self { inner }).collect()
    }

    /// The name, a label: two gates may have the same.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Whether the gate is [published](GateBuilder::publish_in). Where there is no room for its file, also
    /// for that of a fork's child, it goes on unpublished.
    #[must_use]
    pub fn is_published(&self) -> bool {
        self.inner.state.is_published()
    }

    /// The priority of requests that name none.
    #[must_use]
    pub fn default_priority(&self) -> Priority {
        self.inner.state.config.default_priority()
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
        self.take(ask).map(|ticket| OwnedPermit::new(self.clone(), ticket))
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
    /// inside or nobody ever entered like that. An exit too many while others are inside cannot be told
    /// from one of theirs.
    ///
    /// In dry run an exit does not know whether its entry was over the limit, so it draws, in
    /// proportion to what is inside. That is right for exponential service times, and exact on
    /// average for no other; permits carry the mark and are exact.
    #[inline]
    #[allow(clippy::must_use_candidate)] // most callers cannot do anything about it
    pub fn exit(&self, outcome: Outcome) -> bool {
        self.inner.exit(outcome)
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
        // Under the lock, since a setter stores the four one by one.
        let control = self.inner.cold().control.lock();
        control.thresholds.at(control.limit)
    }

    /// Sets the limit, with `cause` for the [history](Self::limit_history). Once this has returned,
    /// nothing is admitted above it. Permits that are out stay valid: below them the gate admits
    /// nothing until enough have left. Returns what the history says of it.
    ///
    /// Where a [controller](GateBuilder::controller) moves the limit, it forgets what it knew and starts anew from
    /// here.
    ///
    /// # Errors
    /// [`ConfigError::Limit`] above 2^31 - 1, and [`ConfigError::LimitBounds`] outside the controller's bounds.
    pub fn set_limit(&self, limit: u32, cause: Option<&str>) -> Result<LimitChange, ConfigError> {
        let limit = limit_from(limit)?;
        let inner = &*self.inner;
        let now_ns = inner.clock.now_ns(); // somebody else's code: not under the lock
        let mut control = inner.cold().control.lock();
        if let Some(steered) = &control.steered {
            let (min, max) = (steered.bounds().min(), steered.bounds().max());
            if !(min..=max).contains(&limit) {
                return Err(ConfigError::LimitBounds { got: limit, min, max });
            }
        }
        let change = control.set_limit(limit, cause, now_ns);
        inner.state.causes.count(cause);
        control.store_thresholds(&inner.state.config);
        inner.word.publish(&inner.state);
        inner.steer_from_here(&mut control, now_ns);
        Ok(change)
    }

    /// Sets the thresholds of all four priorities, and returns them in weight, most important first.
    ///
    /// # Errors
    /// [`ConfigError`] when they rise as importance falls, or the first is not the limit; or where a controller could
    /// come to a limit that leaves nothing for the default priority.
    pub fn set_thresholds(&self, thresholds: Thresholds) -> Result<[u32; PRIORITIES], ConfigError> {
        let inner = &*self.inner;
        let mut control = inner.cold().control.lock();
        thresholds.validate(control.limit)?;
        if let Some(steered) = &control.steered {
            leaves_room(thresholds, control.default_priority, steered.configured())?;
        }
        control.thresholds = thresholds;
        let at_limit = thresholds.at(control.limit);
        control.store_thresholds(&inner.state.config);
        inner.word.publish(&inner.state);
        Ok(at_limit)
    }

    /// How much may be admitted a time; `None`: any.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.inner.cold().control.lock().rate
    }

    /// Sets the rate, or takes it away (`None`). Once this has returned, nothing is admitted by the old one.
    ///
    /// What was used of the old burst stays used, up to the whole of the new one, and comes back at the new
    /// rate. The same rate once more changes nothing. Where there was none, the burst is full.
    pub fn set_rate(&self, rate: impl Into<Option<Rate>>) {
        let inner = &*self.inner;
        let now_ns = inner.clock.now_ns(); // as in `set_limit`
        let mut control = inner.cold().control.lock();
        inner.store_rate(&mut control, rate.into(), now_ns);
        control.store_thresholds(&inner.state.config);
        inner.word.publish(&inner.state);
    }

    /// The last limit changes, at most 64, oldest first. Of a controller's those on evidence (`raise`, `lower`,
    /// `lost`): its experiments, a tenth up or down and back in a moment, are only
    /// [counted](crate::Counts::limit_changes), as `probe`.
    #[must_use]
    pub fn limit_history(&self) -> Vec<LimitChange> {
        self.inner.cold().control.lock().history.iter().map(|(_, change)| change.clone()).collect()
    }

    /// What the controller is at; `None` without one.
    #[must_use]
    pub fn controller(&self) -> Option<ControllerReport> {
        self.inner.controller_report()
    }

    /// The time within which an answer is good; `None`: every success is.
    #[must_use]
    pub fn objective(&self) -> Option<Duration> {
        self.inner.cold().control.lock().objective
    }

    /// How often a controller has moved the limit on evidence, this one and those before it: for bindings that tell of it, and compare this
    /// with what they told last. It costs one load.
    #[must_use]
    #[inline]
    pub fn controller_moves(&self) -> u64 {
        self.inner.state.config.moves()
    }

    /// The controllers' moves on evidence after the first `told` of them, oldest first, as far as the history still
    /// has them.
    #[must_use]
    pub fn controller_moves_after(&self, told: u64) -> Vec<LimitChange> {
        let control = self.inner.cold().control.lock();
        let untold = control.history.iter().filter(|(number, _)| number.is_some_and(|number| number > told));
        untold.map(|(_, change)| change.clone()).collect()
    }

    /// Whether entries and exits are timed: with timing, a controller or an objective, or after there was one.
    #[must_use]
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.inner.is_measured()
    }

    /// What was counted up to now, of which two make a [`Window`](crate::controller::Window). `None` where the gate
    /// does not [measure](Self::is_measured), or a thread was interrupted while it counted and has not gone on yet.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        const TRIES: u32 = 10;
        self.is_measured().then(|| self.inner.read_at_rest(self.inner.clock.now_ns(), TRIES)).flatten()
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
        inner.store_enforce(enforce);
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

    /// Admits nothing any more, also in dry run. What is inside may leave in its own time. Returns whether
    /// this call closed the gate: of several, one did.
    #[allow(clippy::must_use_candidate)] // it is closed either way
    pub fn close(&self) -> bool {
        self.inner.close()
    }

    /// Closes the gate and waits until everything inside has left, or `timeout` has passed (`None`:
    /// for ever). Says whether the gate is empty.
    #[must_use]
    pub fn drain(&self, timeout: Option<Duration>) -> bool {
        self.close();
        // A deadline past the end of the clock is none.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.inner.cold().drain.wait(deadline, || self.inner.is_empty())
    }

    /// Closes the gate and has `callback` called once everything inside has left: now, or by
    /// the call that releases the last of it. No lock is held during the call.
    #[allow(clippy::must_use_candidate)] // who waits for good needs no id
    pub fn on_drained(&self, callback: Box<dyn FnOnce() + Send>) -> DrainId {
        self.close();
        self.inner.cold().drain.when_empty(callback, || self.inner.is_empty())
    }

    /// As [`on_drained`](Self::on_drained), without closing the gate: for whoever tells of a gate that its
    /// file closed, and that may be open again before it is drained.
    #[allow(clippy::must_use_candidate)] // as above
    pub fn when_drained(&self, callback: Box<dyn FnOnce() + Send>) -> DrainId {
        self.inner.cold().drain.when_empty(callback, || self.closed() && self.inner.is_empty())
    }

    /// Forgets a callback that waits for the gate to be drained, which then is not called any more.
    /// `false` where it was called already, or is about to be.
    #[allow(clippy::must_use_candidate)] // it is forgotten either way
    pub fn forget_drained(&self, id: DrainId) -> bool {
        self.inner.cold().drain.forget(id)
    }
}

/// Readings.
impl Gate {
    /// The weight in flight. What dry run let in beyond the limit is not part of it.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.inner.word.view(&self.inner.state).in_flight()
    }

    /// What the gate's clock reads, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.inner.clock.now_ns()
    }

    /// For how long a ticket has been held; `None` without timing.
    #[must_use]
    pub fn held(&self, ticket: &Ticket) -> Option<Duration> {
        self.inner.held_ns(ticket).map(Duration::from_nanos)
    }

    /// For how long a request like this should stay away: a lower bound, computed from the gate's
    /// counters when asked for.
    ///
    /// `max(need / (releases per second - admissions per second of more important work), the time
    /// for which this priority has been refused without an admission)`, where `need` is the weight
    /// that must leave before the request fits, and the rates are taken over the last 64 completions
    /// or more. Zero when it would be admitted now, which in dry run is always.
    ///
    /// Where there is a [rate](Self::rate), and it keeps the request away for longer than that, exactly as
    /// long: a lone caller who waits so long is admitted, and none who waits less.
    ///
    /// While [pressure](Self::pressure) sheds some of this priority, nobody knows for how long it will: then what
    /// keeps it away besides is the lower bound, and where nothing else does it is unknown.
    #[must_use]
    pub fn retry_after(&self, ask: impl Into<Ask>) -> RetryAfter {
        let inner = &*self.inner;
        let Ask { priority, weight } = ask.into();
        let priority = priority.unwrap_or_else(|| self.default_priority());
        let view = inner.word.view(&inner.state);
        let threshold = inner.state.config.threshold(priority.level());
        if view.closed() {
            return RetryAfter::Never;
        }
        if !self.enforce() {
            return RetryAfter::Known(Duration::ZERO);
        }
        if weight.get() > threshold {
            return RetryAfter::Never;
        }
        let wanted = u64::from(view.in_flight()) + u64::from(weight.get());
        let need = wanted.saturating_sub(u64::from(threshold));
        let totals = inner.totals();
        let now_ns = inner.clock.now_ns();
        let now = Observation {
            now_ns,
            completions: totals.completions(),
            released_weight: totals.released_weight(),
            admitted_weight: totals.admitted_weight(),
        };
        let room = inner.cold().retry.lock().estimate(now, priority, need);
        room.and(inner.rate_wait(now_ns, weight.get())).and(inner.pressure_wait(now_ns, priority))
    }

    /// A reading of all counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Puts back a ticket whose permit was forgotten, and counts that: for bindings to languages with
    /// a garbage collector.
    pub fn put_collected(&self, ticket: Ticket) {
        if self.is_inert(&ticket) {
            return;
        }
        self.inner.count(Counter::Collected);
        self.put(ticket, Outcome::Ignore);
    }
}
