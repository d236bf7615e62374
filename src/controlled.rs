//! A gate whose limit a controller moves.
//!
//! Whoever goes in or out of such a gate has read the clock, and compares it with the time of the next look: one
//! load. Also who is turned away: a gate whose permits all hang sees no release, and its controller must hear of
//! that, too. Of those who find that it is time, the one whose compare-and-swap moves that time on looks; the others
//! go on under the limit that is. No thread looks, and a gate that nobody uses has no news.
//!
//! To look is to read the counters, to hand their difference to the controller as a window, and to publish the
//! limit that it answers, as any setter would. That happens under the setters' lock: it takes microseconds, and no
//! code of somebody else's runs under it. The time to look that stands in an atomic is a hint: what counts is the
//! one under the lock, so a hint that is lost, or seen twice, costs a look for nothing.
//!
//! Where a thread was interrupted in the middle of counting, the look is put off for a millisecond: nothing is
//! lost by that, the window becomes longer. The same where the clock went back: what was measured across
//! that has no length, so the window starts anew.
//!
//! In dry run the controller sees what the word counts, as enforcement would have it: those who were let in beyond
//! the limit are refusals, and how they fared is in no window.

use std::time::Duration;

use crate::admission::Inner;
use crate::control::Control;
use crate::controller::{AnyController, Bounds, Cause, Controller, Decision, Kind, Window};
use crate::measured::Reading;
use crate::priority::Priority;
use crate::shard::{Counter, Totals, sums_at_rest};
use crate::shed::Reason;
use crate::sync::Ordering;

/// Whoever looks has this long before another may; and a look that was put off comes after it.
const AGAIN_NS: u64 = 1_000_000;
/// Threads read the clock and are then interrupted: only what is further back is a clock that was set back.
const BACK_NS: u64 = 1_000_000_000;
/// So often each shard is read in the hope of not finding a thread in the middle of a count; in between the processor
/// is given away. Few, since the one who looks has a request to go on with.
#[cfg(not(tidegate_loom))]
pub(crate) const TRIES: u32 = 3;
#[cfg(tidegate_loom)]
pub(crate) const TRIES: u32 = 1;

/// The controller of a gate, and where it stands. Behind the setters' lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steered {
    kind: Kind,
    /// As they were configured,
    configured: Bounds,
    /// and as the controller was last started with them.
    bounds: Bounds,
    controller: AnyController,
    /// What was counted when the window began; none: it begins with the next look.
    begun: Option<Reading>,
    asked_ns: u64,
    next_ns: u64,
    cause: Cause,
    window: Window,
    looks: u64,
    moves: u64,
    probes: u64,
}

impl Steered {
    pub(crate) fn new(kind: Kind, bounds: Bounds, now_ns: u64) -> Self {
        let controller = kind.start(bounds);
        let Decision { cause, look_after_ns, .. } = controller.begin();
        Self {
            kind,
            configured: bounds,
            bounds,
            controller,
            begun: None,
            asked_ns: look_after_ns,
            next_ns: now_ns.saturating_add(look_after_ns),
            cause,
            window: Window::default(),
            looks: 0,
            moves: 0,
            probes: 0,
        }
    }

    pub(crate) fn configured(&self) -> (Kind, Bounds) {
        (self.kind, self.configured)
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Starts anew from `prior`. What it counted of itself goes on.
    pub(crate) fn start_at(&mut self, prior: u32, now_ns: u64) {
        let Self { kind, configured, looks, moves, probes, .. } = *self;
        let anew = Self::new(kind, self.bounds.starting_at(prior), now_ns);
        *self = Self { configured, looks, moves, probes, ..anew };
    }

    /// The window begins with `reading`.
    fn begin(&mut self, reading: Reading) {
        self.begun = Some(reading);
        self.next_ns = reading.now_ns.saturating_add(self.asked_ns);
    }

    /// What the controller makes of the window up to `reading`; `None` where there is no window.
    fn look(&mut self, reading: Reading, highest: u32) -> Option<Decision> {
        let before = self.begun.replace(reading)?;
        let mut window = reading.window_since(&before);
        window.highest_in_flight = highest;
        let decision = self.controller.look(&window);
        self.window = window;
        self.cause = decision.cause;
        self.asked_ns = decision.look_after_ns;
        self.looks += 1;
        Some(decision)
    }
}

/// What a gate's controller is at: [`Gate::controller`](crate::Gate::controller).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ControllerReport {
    /// Its name.
    pub kind: Kind,
    /// Between which limits it moves, and where it started.
    pub bounds: Bounds,
    /// The time within which an answer is good.
    pub objective: Option<Duration>,
    /// The cause of its last decision.
    pub cause: Cause,
    /// How often it was asked.
    pub looks: u64,
    /// How often it moved the limit on evidence: these moves stand in the
    /// [history](crate::Gate::limit_history).
    pub moves: u64,
    /// How often it moved the limit for an experiment, there and back.
    pub probes: u64,
    /// When it wants to be asked next, on the gate's clock.
    pub next_look_ns: u64,
    /// The last window that it was shown.
    pub window: Window,
    /// Its state.
    pub state: AnyController,
}

impl Inner {
    /// Looks for the controller, if it is time.
    #[inline]
    pub(crate) fn look_if_due(&self, now_ns: u64) {
        if let Some(due_ns) = self.state.config.due_look(now_ns) {
            self.look_if_first(due_ns, now_ns);
        }
    }

    #[cold]
    fn look_if_first(&self, due_ns: u64, now_ns: u64) {
        if self.state.config.claim_look(due_ns, now_ns.saturating_add(AGAIN_NS)) {
            self.look();
        }
    }

    fn look(&self) {
        let now_ns = self.clock.now_ns(); // somebody else's code: not under the lock
        let mut control = self.cold().control.lock();
        if let Some(mut steered) = control.steered {
            if self.look_locked(&mut control, &mut steered, now_ns) {
                control.steered = Some(steered);
                self.arm(&control);
            } else {
                self.state.config.arm_look(now_ns.saturating_add(AGAIN_NS), 0);
            }
        } else {
            self.arm(&control);
        }
    }

    /// With the lock held. `false` where it has to be done again.
    fn look_locked(&self, control: &mut Control, steered: &mut Steered, now_ns: u64) -> bool {
        let begun_ns = steered.begun.map_or(now_ns, |begun| begun.now_ns);
        let went_back = begun_ns.saturating_sub(now_ns) > BACK_NS;
        if now_ns < steered.next_ns && !went_back {
            return true; // somebody has looked meanwhile
        }
        let Some(reading) = self.read_at_rest(now_ns, TRIES) else {
            return false;
        };
        let view = || self.word.view(&self.state);
        let highest = self.state.take_highest(|| view().in_flight());
        if went_back || view().closed() {
            steered.begin(reading); // of a closed gate there is nothing to learn
            return true;
        }
        if let Some(Decision { limit, cause, .. }) = steered.look(reading, highest) {
            if limit != control.limit {
                self.move_limit(control, steered, limit, cause, now_ns);
            }
        }
        steered.next_ns = now_ns.saturating_add(steered.asked_ns);
        true
    }

    fn move_limit(
        &self,
        control: &mut Control,
        steered: &mut Steered,
        limit: u32,
        cause: Cause,
        now_ns: u64,
    ) {
        if matches!(cause, Cause::Raise | Cause::Lower | Cause::Lost) {
            steered.moves += 1;
            control.move_limit(limit, cause.as_str(), now_ns);
            self.state.causes.count(Some(cause.as_str()));
            self.state.config.store_moves(control.moves);
        } else {
            // There and back: an experiment a second would soon be all of the history.
            steered.probes += 1;
            control.limit = limit;
            self.state.causes.count(Some(Cause::Probe.as_str()));
        }
        control.store_thresholds(&self.state.config);
        self.word.publish(&self.state);
    }

    /// Stores when to look next, with the lock held.
    pub(crate) fn arm(&self, control: &Control) {
        let (next_ns, back_ns) = control.steered.map_or((u64::MAX, 0), |steered| {
            let begun_ns = steered.begun.map_or(0, |begun| begun.now_ns);
            (steered.next_ns, begun_ns.saturating_sub(BACK_NS))
        });
        self.state.config.arm_look(next_ns, back_ns);
    }

    /// With the lock held: the controller starts anew, from the present limit.
    pub(crate) fn steer_from_here(&self, control: &mut Control, now_ns: u64) {
        let limit = control.limit;
        if let Some(steered) = &mut control.steered {
            steered.start_at(limit, now_ns);
            steered.begun = self.read_at_rest(now_ns, TRIES);
            self.state.take_highest(|| self.word.view(&self.state).in_flight());
        }
        self.arm(control);
    }

    /// What was counted up to now; `None` where a thread stands in the middle of counting.
    pub(crate) fn read_at_rest(&self, now_ns: u64, tries: u32) -> Option<Reading> {
        let state = &*self.state;
        let sums = sums_at_rest(&state.shards, tries)?;
        let totals = Totals::read(&state.shards);
        let shed = |reason| Priority::ALL.map(|priority| totals.get(Counter::Shed(priority, reason)));
        let would = |count: &crate::sync::AtomicU64| count.load(Ordering::Relaxed);
        Some(Reading {
            now_ns,
            sums,
            extra_released: totals.get(Counter::ExtraReleased),
            admissions: Priority::ALL.map(|priority| totals.admitted(priority)).iter().sum(),
            refusals: shed(Reason::Limit).iter().sum::<u64>() + would(&state.dry_run.full),
            priority_refusals: shed(Reason::Priority).iter().sum::<u64>() + would(&state.dry_run.reserved),
            in_flight: self.word.view(state).in_flight(),
            objective_ns: state.config.objective_ns(),
        })
    }

    pub(crate) fn controller_report(&self) -> Option<ControllerReport> {
        let control = self.cold().control.lock();
        let steered = control.steered?;
        Some(ControllerReport {
            kind: steered.kind,
            bounds: steered.bounds,
            objective: control.objective,
            cause: steered.cause,
            looks: steered.looks,
            moves: steered.moves,
            probes: steered.probes,
            next_look_ns: steered.next_ns,
            window: steered.window,
            state: steered.controller,
        })
    }
}
