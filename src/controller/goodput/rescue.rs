//! When most answers are late or fail: down at once, listen, and back up by doubling.
//!
//! While nothing is good there is no slope to measure. If the limit was too high, one or two cuts mend it. If
//! the database does not answer at all, no limit does: each further cut needs three times the evidence, so that
//! enough requests stay out there to notice when it is back. Then the limit doubles, rung by rung, as long as a
//! rung earns more than the one below, up to where the trouble began. It rises on good answers alone, so never
//! during an outage.

use super::cycle::Arm;
use super::gather::{FIRST, Needs};
use super::{BINDING, Goodput, Phase};
use crate::controller::{Cause, Decision, Window};

/// Under this share of good answers a window is lost,
const LOST: f64 = 0.5;
/// and under this it need not be full.
const PLAINLY_LOST: f64 = 0.3;
/// A cut goes to this share of the limit,
const CUT: f64 = 0.7;
/// the first one further, to this share of what may be inside if all is to be answered in time at the present rate
/// (Little's law). Where that did not help, latencies do not follow the limit.
const IN_TIME: f64 = 0.8;
/// What a cut does to what was known of the slope.
const DOUBT: f64 = 0.2;
/// Completions for the first further cuts; later ones need three times more each.
const EVIDENCE: u64 = 10;
const QUICK_CUTS: u32 = 2;
/// So many good answers, and this share of the latest looks', are life.
const ALIVE: u64 = 4;
const ALIVE_SHARE: f64 = 0.7;
/// Completions for a rung.
const RUNG: f64 = 20.0;
/// Twice the limit must earn this much more, in logarithms, to go on,
const PAYS: f64 = 0.26;
/// and one that earns less goes back this far.
const BACK: f64 = 0.7;

/// What is known of the trouble.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rescue {
    cuts: u32,
    /// The centre before the first cut.
    before: f64,
    /// The latest looks, since the last one that brought nothing good.
    alive: Window,
    /// What half the limit earned, on the way back.
    below: Option<Arm>,
}

impl Rescue {
    /// All is well.
    pub(super) fn over(&mut self) {
        self.cuts = 0;
    }
}

impl Goodput {
    /// Whether what was gathered is lost.
    pub(super) fn is_lost(&self, is_full: bool) -> bool {
        let window = self.gather.window();
        let good = window.good_share();
        window.completions >= FIRST && (good < PLAINLY_LOST || is_full && good < LOST)
    }

    /// Goes down and listens.
    pub(super) fn cut(&mut self) -> Decision {
        self.pace.see(self.gather.window());
        let mut to = self.centre * CUT;
        if self.rescue.cuts == 0 {
            if let Some(objective) = self.bounds.objective_seconds() {
                to = to.min(IN_TIME * self.pace.rate() * objective * self.gather.window().mean_weight());
            }
            self.rescue.before = self.centre;
            self.estimate.doubt(DOUBT);
        }
        self.rescue.cuts = self.rescue.cuts.saturating_add(1);
        self.rescue.alive = Window::default();
        self.before = None;
        self.centre = self.bounds.clamp(to);
        self.hold(Cause::Lost, Phase::Lost)
    }

    /// Down after a cut: is there life?
    pub(super) fn listen(&mut self, piece: &Window) -> Decision {
        if piece.good_share() <= ALIVE_SHARE {
            self.rescue.alive = Window::default();
        } else if piece.completions > 0 {
            self.rescue.alive.append(piece);
        }
        let alive = self.rescue.alive;
        if alive.good >= ALIVE {
            self.pace.see(&alive);
            if self.rescue.cuts == 1 {
                return self.start_cycle(Cause::Hold);
            }
            self.rescue.below = None;
            return self.double();
        }
        self.gather.add(piece, self.pace.rate());
        let window = self.gather.window();
        let evidence =
            EVIDENCE.saturating_mul(3_u64.saturating_pow(self.rescue.cuts.saturating_sub(QUICK_CUTS)));
        if window.completions >= evidence {
            if window.good_share() < PLAINLY_LOST {
                return self.cut();
            }
            if window.completions >= FIRST {
                return self.start_cycle(Cause::Hold);
            }
        }
        self.listen_on()
    }

    /// Looks again at the next completion.
    pub(super) fn listen_on(&mut self) -> Decision {
        let next = Needs { completions: self.gather.window().count() + 1.0, time: 0.0 };
        let look_after_ns = self.gather.ask_for(next, &self.pace);
        Decision { limit: self.limit, cause: Cause::Hold, look_after_ns }
    }

    /// On the way back: does twice the limit earn more?
    pub(super) fn climb(&mut self, piece: &Window) -> Decision {
        self.gather.add(piece, self.pace.rate());
        let needs = Needs { completions: RUNG, time: 0.0 };
        if !self.gather.has(needs) {
            return self.gather_on(Cause::Hold);
        }
        let window = *self.gather.window();
        if window.good_share() < LOST {
            return self.cut();
        }
        self.pace.see(&window);
        if window.refused_share() < BINDING {
            return self.watch();
        }
        let rung = Arm::of(&window);
        let gain = self.rescue.below.map_or(f64::INFINITY, |below| rung.earned() - below.earned());
        if gain < 0.0 {
            self.centre = self.bounds.clamp(self.centre * BACK);
        }
        if gain < PAYS || self.centre >= self.rescue.before.min(f64::from(self.bounds.max())) {
            return self.start_cycle(Cause::Hold);
        }
        self.rescue.below = Some(rung);
        self.double()
    }

    fn double(&mut self) -> Decision {
        self.centre = self.bounds.clamp((2.0 * self.centre).min(self.rescue.before.max(self.centre)));
        self.needs = Needs { completions: RUNG, time: 0.0 };
        self.hold(Cause::Raise, Phase::Climb)
    }
}
