//! A limit that finds where the database gives most good answers, and follows it.
mod cycle;
mod estimate;
mod pace;
mod step;

use super::window::nanoseconds;
use super::{Bounds, Cause, Controller, Decision, Window};
use cycle::Arm;
use estimate::Estimate;
use pace::Pace;

/// Completions a window needs at least, when the arms are a tenth up and down.
const ENOUGH: f64 = 60.0;
/// A window with fewer decides nothing.
const FEW: f64 = 20.0;
/// From so many completions on a window may be given up as lost.
const LOST_AFTER: u64 = 30;
/// So many good ones and no other are life.
const ALIVE: u64 = 4;
const PATIENCE: [f64; 2] = [0.25, 4.0];
const REACH: f64 = 0.1;
/// A limit that turns away fewer does not bind.
const BINDING: f64 = 0.05;
/// Looks are not closer than this: what they cost is bounded.
const SHORTEST_LOOK: f64 = 1e-3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The limit does not bind: it stays, and is only watched.
    Watch,
    /// After a change: who is inside came in under another limit.
    Settle,
    /// Within the window of an arm.
    Measure,
    /// Between experiments, where they cost much: at the centre.
    Rest,
    /// After a cut: down here until something is good again.
    Lost,
    /// Back up, by doubling.
    Regain,
}

#[derive(Clone, Copy, Debug)]
pub struct Goodput {
    bounds: Bounds,
    centre: f64,
    estimate: Estimate,
    pace: Pace,
    phase: Phase,
    limit: u32,
    arm: usize,
    arms: [Arm; 4],
    gathered: Window,
    cycle: Window,
    patience: f64,
    needs: (f64, f64),
    clock: f64, last: Option<(f64, f64, f64)>, spread: f64,
    /// What to do once who is inside came in under this limit.
    then: Phase,
    /// The centre before the first of several cuts.
    before: f64,
    cuts: u32,
    /// What the limit half as high came to, on the way back.
    rung: Option<Arm>,
    asked_ns: u64,
}

impl Goodput {
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            centre: f64::from(bounds.prior()),
            estimate: Estimate::new(),
            pace: Pace::default(),
            phase: Phase::Watch,
            limit: bounds.prior(),
            arm: 0,
            arms: [Arm::default(); 4],
            gathered: Window::default(),
            cycle: Window::default(),
            patience: PATIENCE[0], needs: (0.0, 0.0), clock: 0.0, last: None, spread: 0.0,
            then: Phase::Measure,
            before: 0.0,
            cuts: 0,
            rung: None,
            asked_ns: nanoseconds(SHORTEST_LOOK),
        }
    }

    pub fn debug(&self) -> (f64, f64, f64, f64, f64) {
        (self.centre, self.estimate.slope(), self.estimate.variance().sqrt(), self.estimate.bend(), 0.0)
    }

    fn limits(&self) -> (u32, u32) {
        let (high, low) = step::arms(self.centre, REACH, f64::from(self.bounds.min()), f64::from(self.bounds.max()));
        (self.bounds.whole(high), self.bounds.whole(low))
    }

    /// Completions and seconds that the window of an arm needs.
    fn needed(&self) -> (f64, f64) {
        let (high, low) = self.limits();
        let contrast = (f64::from(high) / f64::from(low)).ln() / 2.0;
        let count = (ENOUGH * (REACH / contrast.max(0.01)).powi(2)).clamp(FEW, ENOUGH);
        (count, (3.0 * self.pace.mean()).max(self.patience * self.pace.inside()))
    }

    fn settle(&self, from: u32) -> f64 {
        let time = (2.0 * self.pace.mean()).max(self.patience / 2.0 * self.pace.inside());
        let drain = f64::from(from.saturating_sub(self.limit)) / self.pace.rate().max(1e-9);
        time + if drain < 1e6 { drain } else { 0.0 }
    }

    fn ask(&mut self, cause: Cause, seconds: f64) -> Decision {
        self.asked_ns = nanoseconds(seconds.max(SHORTEST_LOOK));
        Decision { limit: self.limit, cause, look_after_ns: self.asked_ns }
    }

    /// When the window should have what it needs.
    fn ask_more(&mut self, cause: Cause) -> Decision {
        let (count, time) = if self.phase == Phase::Watch { (ENOUGH, 0.0) } else { self.needs };
        let elapsed = if self.gathered.elapsed_ns == 0 { 0.0 } else { self.gathered.elapsed() };
        let have = self.gathered.count();
        let rate = if have > 0.0 { have / elapsed } else { self.pace.rate() };
        let first = f64::from(LOST_AFTER as u32);
        let goal = if have < first { count.min(first) } else { count };
        let by_count = if rate > 0.0 { (goal - have).max(0.0) / rate } else { elapsed };
        let by_time = if have < first { 0.0 } else { time - elapsed };
        let seconds = by_count.max(by_time).min(if have > 0.0 || elapsed == 0.0 { f64::MAX } else { elapsed });
        self.ask(cause, seconds)
    }

    fn start_arm(&mut self, cause: Cause) -> Decision {
        let (high, low) = self.limits();
        let before = self.limit;
        self.limit = if self.arm == 0 || self.arm == 3 { high } else { low };
        self.gathered = Window::default();
        if self.limit == before {
            self.phase = Phase::Measure;
            return self.ask_more(cause);
        }
        self.phase = Phase::Settle;
        self.then = Phase::Measure;
        let seconds = self.settle(before);
        self.ask(cause, seconds)
    }

    fn start_cycle(&mut self, cause: Cause) -> Decision {
        self.arm = 0;
        self.cycle = Window::default();
        self.needs = self.needed();
        self.start_arm(cause)
    }

    fn watch(&mut self, cause: Cause) -> Decision {
        self.last = None;
        self.phase = Phase::Watch;
        self.limit = self.bounds.whole(self.centre.round());
        self.gathered = Window::default();
        self.ask_more(cause)
    }

    /// Holds the centre and waits for the last limit's to be gone.
    fn hold(&mut self, cause: Cause, then: Phase) -> Decision {
        let before = self.limit;
        self.limit = self.bounds.whole(self.centre.round());
        self.gathered = Window::default();
        self.phase = Phase::Settle;
        self.then = then;
        let seconds = self.settle(before);
        self.ask(cause, seconds)
    }

    fn cut(&mut self) -> Decision {
        self.last = None;
        self.pace.see(&self.gathered);
        let mut to = self.centre * 0.7;
        if let Some(objective) = self.bounds.objective_seconds() {
            to = to.min(0.8 * self.pace.rate() * objective);
        }
        if self.cuts == 0 {
            self.before = self.centre;
            self.estimate.doubt(0.2);
        }
        self.cuts += 1;
        self.centre = self.bounds.clamp(to.min(f64::from(self.limit)));
        self.hold(Cause::Lost, Phase::Lost)
    }

    /// Down after a cut: is there life?
    fn listen(&mut self, window: &Window) -> Decision {
        if window.good >= ALIVE && window.good_share() > 0.7 {
            self.pace.see(window);
            self.rung = None;
            self.gathered = Window::default();
            if self.cuts > 1 { self.centre = self.bounds.clamp((2.0 * self.centre).min(self.before)); }
            return if self.cuts > 1 { self.hold(Cause::Raise, Phase::Regain) } else { self.start_cycle(Cause::Probe) };
        }
        self.gathered.append(window);
        let good = self.gathered.good_share();
        let evidence = 10 * 3_u64.pow(self.cuts.saturating_sub(4).min(20));
        if self.gathered.completions >= evidence && good < 0.3 {
            return self.cut();
        }
        if self.gathered.completions >= evidence.max(LOST_AFTER) && good >= 0.3 {
            return self.start_cycle(Cause::Probe);
        }
        self.ask_for(Cause::Hold, 1.0)
    }

    fn ask_for(&mut self, cause: Cause, count: f64) -> Decision {
        let elapsed = if self.gathered.elapsed_ns == 0 { 0.0 } else { self.gathered.elapsed() };
        let rate = if elapsed > 0.0 { self.gathered.count() / elapsed } else { self.pace.rate() };
        let seconds = if rate > 0.0 { count / rate } else { elapsed };
        self.ask(cause, seconds)
    }

    fn climb(&mut self, window: &Window) -> Decision {
        self.gathered.append(window);
        if self.gathered.completions < 20 {
            return self.ask_for(Cause::Hold, FEW - self.gathered.count());
        }
        if self.gathered.good_share() < 0.5 {
            return self.cut();
        }
        self.pace.see(&self.gathered);
        if self.gathered.refused_share() < BINDING {
            return self.watch(Cause::Hold);
        }
        let rung = Arm::of(&self.gathered);
        let pays = self.rung.is_none_or(|below| rung.quick() - below.quick() > 0.26);
        if !pays {
            let worse = self.rung.is_some_and(|below| rung.quick() < below.quick());
            self.centre = self.bounds.clamp(if worse { self.centre / 1.41 } else { self.centre });
        }
        if !pays || self.centre >= self.before.min(f64::from(self.bounds.max())) {
            return self.start_cycle(Cause::Hold);
        }
        self.rung = Some(rung);
        self.centre = self.bounds.clamp((2.0 * self.centre).min(self.before));
        self.hold(Cause::Raise, Phase::Regain)
    }

    fn conclude(&mut self) -> Decision {
        if self.bounds.min() == self.bounds.max() || self.cycle.refused_share() < BINDING {
            return self.watch(Cause::Hold);
        }
        let noise = env("NOISE", 1.3)*(self.cycle.log_variance().max(0.02) + (1.0 - self.cycle.good_share()) / self.cycle.good_share().max(0.1));
        let finding = cycle::conclude(&self.arms, noise);
        if !finding.steady {
            return self.start_cycle(Cause::Hold);
        }
        self.cuts = 0;
        self.estimate.age();
        let spread = self.pace.spread();
        if spread > self.spread {
            self.estimate.may_be_biased((env("BIAS", 0.35) * (spread-self.spread)).powi(2));
            self.spread = spread;
        }
        let fresh = self.pace.haste().min(env("HASTE", 2.0)) * (-1.5 * self.needs.1.max(self.patience*self.pace.inside()) / self.pace.inside()).exp();
        self.estimate.see_quick(finding.quick, finding.variance + if finding.quick > self.estimate.slope() { (env("FRESH", 0.15) * fresh).powi(2) } else { 0.0 });
        if accounted(&self.cycle) {
            let variance = 2.0 * finding.per_variation * self.pace.variation().max(0.1) + if finding.counted > self.estimate.slope() { fresh.powi(2) } else { 0.0 };
            self.estimate.see_counted(finding.counted, variance);
        }
        let mark = (self.cycle.in_flight().max(1e-9).ln(), (self.cycle.count() * self.cycle.good_share() / self.cycle.elapsed()).max(1e-9).ln(), self.cycle.count());
        if let Some(last) = self.last {
            let rise = mark.0 - last.0;
            if rise.abs() > 0.3 && env("SECANT", 1.0) > 0.0 {
                let slope = (mark.1 - last.1) / rise;
                let variance = (self.pace.variation().max(0.1) * (1.0 / mark.2 + 1.0 / last.2) + env("DRIFT", 0.1).powi(2)) / rise.powi(2);
                let up = if slope > self.estimate.slope() { fresh.powi(2) } else { 0.0 };
                self.estimate.see_secant(slope, rise, variance + up);
            }
        }
        self.last = Some(mark);
        let from = self.centre;
        if std::env::var("DBG").is_ok() { eprintln!("   t{:.0} c {:.1} quick {:.2} sd {:.2} counted {:.2} -> slope {:.2} sd {:.2} bend {:.2} bias {:.2} sd {:.2} noise {:.3} patience {} haste {:.2} inside {:.1} typ {:.2} n {:.0}", self.clock, from, finding.quick, finding.variance.sqrt(), finding.counted, self.estimate.slope(), self.estimate.variance().sqrt(), self.estimate.bend(), self.estimate.mean[2], self.estimate.cov[2][2].sqrt(), noise, self.patience, self.pace.haste(), self.pace.inside(), self.pace.typical(), self.cycle.count()); }
        self.centre = self.bounds.clamp(from * step::step(&self.estimate).exp());
        let step = (self.centre / from).ln();
        self.estimate.moved(step);
        if step.abs() < 0.1 { self.patience = (self.patience * 2.0).min(PATIENCE[1]); }
        if step.abs() > 0.3 { self.patience = (self.patience / 2.0).max(PATIENCE[0]); }
        let (high, low) = self.limits();
        if step.abs() < 0.1 && f64::from(high) > env("REST", 1.3) * f64::from(low) {
            self.needs = (8.0 * self.needs.0, 8.0 * self.needs.1);
            return self.hold(Cause::Hold, Phase::Rest);
        }
        self.start_cycle(if self.centre > from { Cause::Raise } else { Cause::Lower })
    }
}

impl Controller for Goodput {
    fn begin(&self) -> Decision {
        Decision { limit: self.limit, cause: Cause::Hold, look_after_ns: self.asked_ns }
    }

    fn look(&mut self, window: &Window) -> Decision {
        self.clock += window.elapsed();
        if self.phase == Phase::Settle {
            self.phase = self.then;
            return match self.phase {
                Phase::Lost => self.ask_for(Cause::Hold, 1.0),
                Phase::Regain => self.ask_for(Cause::Hold, FEW),
                _ => self.ask_more(Cause::Probe),
            };
        }
        match self.phase {
            Phase::Lost => return self.listen(window),
            Phase::Regain => return self.climb(window),
            _ => {}
        }
        let expected = self.pace.rate() * window.elapsed();
        if window.elapsed_ns / 4 > self.asked_ns && window.count() < expected / 4.0 && expected > 10.0 {
            self.gathered = Window::default();
            return self.ask_more(Cause::Hold);
        }
        self.gathered.append(window);
        let have = self.gathered.completions;
        let good = self.gathered.good_share();
        let (count, time) = if self.phase == Phase::Watch { (ENOUGH, 0.0) } else { self.needs };
        let full = self.gathered.count() >= count && self.gathered.elapsed() >= time;
        if have >= LOST_AFTER && (good < 0.3 || full && good < 0.5) {
            return self.cut();
        }
        if !full {
            return self.ask_more(if self.phase == Phase::Watch { Cause::Hold } else { Cause::Probe });
        }
        self.pace.see(&self.gathered);
        if self.phase == Phase::Rest {
            return self.start_cycle(Cause::Probe);
        }
        if self.phase == Phase::Watch {
            if self.gathered.refused_share() < BINDING || self.bounds.min() == self.bounds.max() {
                return self.watch(Cause::Hold);
            }
            return self.start_cycle(Cause::Probe);
        }
        self.arms[self.arm] = Arm::of(&self.gathered);
        self.cycle.append(&self.gathered);
        self.arm += 1;
        if self.arm < 4 { self.start_arm(Cause::Probe) } else { self.conclude() }
    }
}

/// Whether those who came out account for what was inside, by Little's law. If not, long requests are inside
/// that came out neither now nor ever before, and what was counted is the quick ones' alone.
fn accounted(cycle: &Window) -> bool {
    (cycle.in_flight_seconds / cycle.latency_sum).ln().abs() < 0.15
}

pub(super) fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).map_or(default, |x| x.parse().unwrap())
}
