//! A limit that finds where most good answers come out, and follows it.
//!
//! The controller experiments. It holds the limit a little above and a little below its centre in turn, sees at
//! which of them more good answers a second come, and moves the centre that way. It needs no idea of what a good
//! latency is, so none can be wrong or go out of date; it never starves the gate to probe; it does not move on
//! what it cannot tell; and it never goes under the least limit.
//!
//! # The rule
//!
//! 1. **Four windows** at a lowered, a raised, a raised and a lowered limit ([`cycle`]). After each change it first
//!    waits until those inside came in under the new limit. The arms reach as far as it is uncertain where the best
//!    limit lies, and far only to the side where it is thought to be: a twentieth to a third. Waits and windows are counted in completions and in
//!    latencies, never in seconds of a clock, so it works at ten thousand a second and at ten a minute.
//! 2. **Two measures of the slope** of good answers over concurrency: as counted, and a quick one from typical
//!    latencies, for work in which a few requests are many times the rest. A third comes free when the centre has
//!    moved far: what the move itself did.
//! 3. **A filter** ([`estimate`]) weighs them by their noise, which is seen in the windows themselves, and keeps what
//!    it knew across moves.
//! 4. **A step** ([`step`]) to where the slope should be nil, shorter the less sure, at most double.
//! 5. **Patience**: after long steps the windows get shorter, at rest longer, up to four times what a request that
//!    is inside takes. Short windows favour raised limits, because new places give their short requests first;
//!    so good news from them counts less than bad.
//! 6. **A limit that does not bind** tells nothing: where hardly anybody is refused, the limit stays as it is.
//! 7. **Where most is late or fails**, it goes down at once ([`rescue`]).
//! 8. **Limits of a few permits**, where one permit is a large part, rest between experiments.
//! 9. **At first**, where more are inside than can be answered within the objective at the rate that is seen
//!    (Little's law), it begins with as many as can.
//! 10. **Downwards in strides** of a quarter: lowered at once, a limit would turn everybody away until enough have
//!     left, the most important, too.
//!
//! It comes from stochastic approximation (Kiefer and Wolfowitz 1952; Spall's SPSA, 1992), with a Kalman filter in
//! place of a gain that shrinks, so that it follows what changes.
//!
//! # What it cannot do
//!
//! Without an objective, and where timeouts are not reported as `overload`, an outage in which every request takes
//! its whole timeout looks like work whose throughput grows with concurrency: give one of the two. Two gates that
//! experiment on one database see each other's moves as noise. Convergence takes 5 to 10 cycles of at least 240
//! completions: at tens a minute that is an hour, so there the prior should come from a capacity test.

mod cycle;
mod estimate;
mod gather;
mod pace;
mod rescue;
mod step;

use super::{Bounds, Cause, Controller, Decision, Window};
use cycle::{Arm, Finding};
use estimate::Estimate;
use gather::{Gather, Needs};
use pace::Pace;
use rescue::Rescue;

/// Completions that a window needs where the arms are a tenth up and down; fewer where they are further apart,
const ENOUGH: f64 = 60.0;
const TENTH: f64 = 0.1;
/// but with fewer nothing is decided.
const FEW: f64 = 20.0;
/// A limit that refuses a smaller share does not bind.
const BINDING: f64 = 0.05;
/// The range of patience: windows as multiples of what a request that is inside takes.
const PATIENCE: std::ops::RangeInclusive<f64> = 0.25..=4.0;
/// A shorter step is rest,
const SHORT: f64 = 0.1;
/// a longer one is a journey.
const LONG: f64 = 0.3;
/// Arms whose limits differ by more cost much: between experiments there is rest,
const COSTLY: f64 = 0.13;
/// so many windows long.
const REST: f64 = 8.0;
/// A limit is lowered to this share at a time: what is inside then still leaves the more important their part, where
/// less important requests may fill three quarters.
const STRIDE: f64 = 0.75;
/// How wrong the quick measure may be, for each unit by which the spread of latencies grew.
const DISTRUST: f64 = 0.35;
/// How much of the excess of new places is in the quick measure: it hardly notices.
const QUICK_EXCESS: f64 = 0.15;
/// By how much the database may have changed, in logarithms, between two cycles.
const DRIFT: f64 = 0.1;
/// After so many cycles in a row in which something else changed, that is how it is.
const RESTLESS: u32 = 3;

/// A change of the limit.
#[derive(Clone, Copy, Debug)]
struct Descent {
    from: u32,
    to: u32,
    cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The limit does not bind: it stays, and is only watched.
    Watch,
    /// On the way to a much lower limit.
    Descend,
    /// After a change: who is inside came in under another limit.
    Settle,
    /// Within the window of an arm.
    Measure,
    /// At the centre between experiments.
    Rest,
    /// After a cut: down here until something is good again.
    Lost,
    /// Back up, by doubling.
    Climb,
}

/// Finds where most good answers come out, and follows it.
///
/// It holds the limit a little above and a little below its centre in turn and moves the centre to where more good
/// answers a second come. It needs no idea of a good latency, never starves the gate to probe, does not move on
/// what it cannot tell, and stays where the limit does not bind. Where most is late or fails it goes down at once,
/// and back up by doubling on good answers: within 1,500 completions of the end of an outage.
///
/// Without an objective, and where timeouts are not reported as `overload`, an outage in which every request takes
/// its whole timeout looks like work whose throughput grows with concurrency: give one of the two. Two gates that
/// experiment on one database see each other's moves as noise. It takes 5 to 10 experiments of at least 240
/// completions, so at tens a minute it should start from a capacity test's limit.
#[derive(Clone, Copy, Debug)]
pub struct Goodput {
    bounds: Bounds,
    centre: f64,
    limit: u32,
    phase: Phase,
    /// What follows when the limit has settled.
    next: Phase,
    descent: Descent,
    gather: Gather,
    needs: Needs,
    pace: Pace,
    patience: f64,
    /// How far the arms are from the centre, in logarithms.
    reach: f64,
    arm: usize,
    arms: [Arm; 4],
    /// The windows of the cycle so far.
    cycle: Window,
    /// What the last cycle came to.
    before: Option<Arm>,
    unsteady: u32,
    /// No experiment was made yet,
    is_new: bool,
    /// and a window has passed meanwhile.
    is_warm: bool,
    estimate: Estimate,
    spread: f64,
    rescue: Rescue,
}

impl Goodput {
    /// Starts at the bounds' prior.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            centre: f64::from(bounds.prior()),
            limit: bounds.prior(),
            phase: Phase::Watch,
            next: Phase::Watch,
            descent: Descent { from: bounds.prior(), to: bounds.prior(), cause: Cause::Hold },
            gather: Gather::new(),
            needs: Needs { completions: ENOUGH, time: 0.0 },
            pace: Pace::default(),
            patience: *PATIENCE.start(),
            reach: 0.0,
            arm: 0,
            arms: [Arm::default(); 4],
            cycle: Window::default(),
            before: None,
            unsteady: 0,
            is_new: true,
            is_warm: false,
            estimate: Estimate::new(),
            spread: 0.0,
            rescue: Rescue::default(),
        }
    }

    /// The centre of its experiments: the limit without their ups and downs.
    #[must_use]
    pub fn centre(&self) -> f64 {
        self.centre
    }

    /// The slope of good answers over concurrency, in logarithms, and its standard error.
    #[must_use]
    pub fn slope(&self) -> (f64, f64) {
        (self.estimate.slope(), self.estimate.variance().max(0.0).sqrt())
    }

    // --- moving on -----------------------------------------------------------------------------

    /// Goes on with the window that is being gathered.
    fn gather_on(&mut self, cause: Cause) -> Decision {
        let look_after_ns = self.gather.ask_for(self.needs, &self.pace);
        Decision { limit: self.limit, cause, look_after_ns }
    }

    /// Sets the limit; `next` begins when it has settled.
    fn change(&mut self, limit: u32, cause: Cause, next: Phase) -> Decision {
        self.descent = Descent { from: self.limit, to: limit, cause };
        self.next = next;
        self.descend()
    }

    /// The next stride to the limit that was set. One that is too high for answers in time is left at once.
    fn descend(&mut self) -> Decision {
        let Descent { from, to: limit, cause } = self.descent;
        let before = f64::from(self.limit);
        let stride = self.bounds.whole((STRIDE * before).ceil());
        let next = self.next;
        if limit < stride && stride < self.limit && cause != Cause::Lost {
            self.limit = stride;
            self.phase = Phase::Descend;
            let look_after_ns = self.gather.ask((1.0 - STRIDE) * self.pace.mean());
            return Decision { limit: stride, cause, look_after_ns };
        }
        self.limit = limit;
        self.gather.start();
        if from == limit && next == Phase::Measure {
            self.phase = next;
            return self.gather_on(cause);
        }
        self.phase = Phase::Settle;
        let inside = if next == Phase::Climb { 0.0 } else { self.patience / 2.0 * self.pace.inside() };
        // If as many come out as before, they take longer or less long in proportion; and those above a lowered
        // limit must leave first.
        let scale = f64::from(limit) / f64::from(from.max(1));
        let drain = self.pace.mean() * (1.0 - f64::from(limit) / before.max(1.0)).max(0.0);
        let look_after_ns = self.gather.ask(scale * (2.0 * self.pace.mean()).max(inside) + drain);
        Decision { limit, cause, look_after_ns }
    }

    /// Holds the centre; `next` begins when it has settled.
    fn hold(&mut self, cause: Cause, next: Phase) -> Decision {
        self.change(self.bounds.whole(self.centre.round()), cause, next)
    }

    fn watch(&mut self) -> Decision {
        self.before = None;
        self.phase = Phase::Watch;
        self.limit = self.bounds.whole(self.centre.round());
        self.needs = Needs { completions: ENOUGH, time: 0.0 };
        self.gather.start();
        self.gather_on(Cause::Hold)
    }

    fn arms_now(&self) -> (u32, u32) {
        step::arms(self.centre, self.reach, self.estimate.slope(), self.bounds)
    }

    fn start_cycle(&mut self, cause: Cause) -> Decision {
        self.reach = step::reach(&self.estimate);
        let contrast = step::contrast(self.arms_now());
        let completions = (ENOUGH * (TENTH / contrast.max(TENTH / 2.0)).powi(2)).clamp(FEW, ENOUGH);
        self.needs = Needs { completions, time: self.window_time() };
        self.cycle = Window::default();
        self.arm = 0;
        self.start_arm(cause)
    }

    /// How long a window must be, in seconds.
    fn window_time(&self) -> f64 {
        (3.0 * self.pace.mean()).max(self.patience * self.pace.inside())
    }

    fn start_arm(&mut self, cause: Cause) -> Decision {
        // What turns out to be quicker than was thought need not be watched for so long.
        self.needs.time = self.needs.time.min(self.window_time());
        let (high, low) = self.arms_now();
        self.change(if matches!(self.arm, 1 | 2) { high } else { low }, cause, Phase::Measure)
    }

    // --- at the end of a cycle -----------------------------------------------------------------

    fn conclude(&mut self) -> Decision {
        if self.cycle.refused_share() < BINDING || !self.is_felt() {
            return self.watch();
        }
        let mut finding = cycle::conclude(&self.arms, &self.cycle, self.pace.variation());
        if finding.is_steady() {
            self.unsteady = 0;
        } else {
            self.unsteady += 1;
            self.estimate.doubt(rescue::DOUBT);
            if self.unsteady < RESTLESS {
                return self.start_cycle(Cause::Hold);
            }
            finding = finding.doubted();
        }
        self.rescue.over();
        self.learn(&finding);
        self.step()
    }

    /// Whether in flight follows the limit at all: not where those who are refused would be at any limit.
    fn is_felt(&self) -> bool {
        const LEAST: f64 = 0.2;
        cycle::contrast(&self.arms) > LEAST * step::contrast(self.arms_now())
    }

    fn learn(&mut self, finding: &Finding) {
        self.estimate.age();
        let spread = self.pace.spread();
        if spread > self.spread {
            self.estimate.distrust((DISTRUST * (spread - self.spread)).powi(2));
            self.spread = spread;
        }
        let excess = self.pace.freshness(self.needs.time);
        // New places can only flatter a raised limit.
        let good_news = |slope: f64, known: &Estimate, excess: f64| {
            if slope > known.slope() { excess.powi(2) } else { 0.0 }
        };
        let doubt = good_news(finding.quick, &self.estimate, QUICK_EXCESS * excess);
        let (high, low) = self.arms_now();
        let offset = (f64::from(high) * f64::from(low)).ln() / 2.0 - self.centre.ln();
        self.estimate.see_quick(finding.quick, finding.quick_variance + doubt, offset);
        if cycle::is_accounted(&self.cycle) {
            let doubt = good_news(finding.counted, &self.estimate, excess);
            self.estimate.see_counted(finding.counted, finding.counted_variance + doubt, offset);
        }
        let now = Arm::of(&self.cycle);
        if let Some((slope, variance, rise)) =
            self.before.and_then(|before| now.secant(&before, self.pace.variation(), DRIFT))
        {
            let doubt = good_news(slope, &self.estimate, excess);
            self.estimate.see_secant(slope, variance + doubt, rise);
        }
        self.before = Some(now);
    }

    fn step(&mut self) -> Decision {
        let from = self.centre;
        let wanted = step::step(&self.estimate);
        self.centre = self.bounds.clamp(from * wanted.exp());
        let step = (self.centre / from).ln();
        self.estimate.moved(step);
        if step.abs() < SHORT {
            self.patience = (self.patience * 2.0).min(*PATIENCE.end());
            let contrast = step::contrast(self.arms_now());
            if contrast > COSTLY || step.abs() < wanted.abs() / 2.0 {
                self.needs =
                    Needs { completions: REST * self.needs.completions, time: REST * self.needs.time };
                return self.hold(Cause::Hold, Phase::Rest);
            }
        } else if step.abs() > LONG {
            self.patience = (self.patience / 2.0).max(*PATIENCE.start());
        }
        self.start_cycle(if step > 0.0 { Cause::Raise } else { Cause::Lower })
    }

    /// The limit has settled.
    fn begin_next(&mut self) -> Decision {
        self.phase = self.next;
        match self.phase {
            Phase::Lost => self.listen_on(),
            Phase::Measure => self.gather_on(Cause::Probe),
            _ => self.gather_on(Cause::Hold),
        }
    }

    /// The first full windows. Where more are inside than can be answered in time, experiments would begin
    /// with a loss: rather below. The rate of a window in which the gate was filling up says too little for
    /// that, so it takes another one.
    fn begin_within(&mut self) -> Decision {
        let in_time = self.in_time();
        if in_time < self.centre && !self.is_warm {
            self.is_warm = true;
            return self.watch();
        }
        self.is_new = false;
        self.centre = self.bounds.clamp(self.centre.min(in_time));
        self.start_cycle(Cause::of(self.limit, self.bounds.whole(self.centre.round())))
    }

    /// The window is full.
    fn full(&mut self) -> Decision {
        let window = *self.gather.window();
        self.pace.see(&window);
        match self.phase {
            Phase::Measure => {
                self.arms[self.arm] = Arm::of(&window);
                self.cycle.append(&window);
                self.arm += 1;
                if self.arm < self.arms.len() { self.start_arm(Cause::Probe) } else { self.conclude() }
            }
            Phase::Rest => self.start_cycle(Cause::Probe),
            _ if window.refused_share() < BINDING || self.bounds.min() == self.bounds.max() => self.watch(),
            _ if self.is_new => self.begin_within(),
            _ => self.start_cycle(Cause::Probe),
        }
    }
}

impl Controller for Goodput {
    fn begin(&self) -> Decision {
        Decision { limit: self.limit, cause: Cause::Hold, look_after_ns: self.gather.asked_ns() }
    }

    fn look(&mut self, piece: &Window) -> Decision {
        match self.phase {
            Phase::Descend => return self.descend(),
            Phase::Settle => return self.begin_next(),
            Phase::Lost => return self.listen(piece),
            Phase::Climb => return self.climb(piece),
            Phase::Watch | Phase::Measure | Phase::Rest => {}
        }
        self.gather.add(piece, self.pace.rate());
        let is_full = self.gather.has(self.needs);
        if self.is_lost(piece, is_full) {
            if self.is_edge() { self.edge() } else { self.cut() }
        } else if is_full {
            self.full()
        } else {
            self.gather_on(if self.phase == Phase::Measure { Cause::Probe } else { Cause::Hold })
        }
    }
}
