//! The test itself, as a pure state machine: what was seen so far says what to do next.
//!
//! One at a time; then an open ramp until it breaks, halved to a bracket; then the gate at rising limits under an
//! overload; then the recommended limit under that overload, until few enough fail, or with a lower limit again. Real
//! targets and simulated ones are driven by the same steps. Nothing but the log is kept, so that a test that was
//! interrupted goes on where its log ends.

use super::binomial::{CONFIDENCE, lower, sample_size, upper};
use super::fault::CapacityError;
use super::findings::Findings;
use super::plan::Plan;
use super::ramp::{Bracket, Found, judge, next_rate};
use super::step::{End, Measured, Phase, Step};
use super::sweep::{Cell, goodput, next_limit};
use super::watch::BAD_SHARE;

/// How many times as much as the next limit can do at most is offered, at least.
const FILL: f64 = 1.25;
/// How many may fail of as many as a proof is planned for.
const FAILURES: u64 = 2;
/// Some more, as a rate is never met exactly.
const MARGIN: f64 = 1.1;
/// A limit that fails its proof is lowered to this share ...
const LOWERED: f64 = 0.8;
/// ... so often.
const PROOFS: usize = 4;
/// How many are to be offered where a rate is to be accepted.
const ACCEPT_OFFERED: f64 = 1_500.0;
/// How many stages a ramp has until it breaks, usually, and how many limits a sweep.
const USUAL_RAMP: usize = 5;
const USUAL_SWEEP: usize = 10;

/// A capacity test under way.
#[derive(Clone, Debug)]
pub struct Search {
    plan: Plan,
    log: Vec<(Step, Measured)>,
}

impl Search {
    /// A test that has not begun.
    ///
    /// # Errors
    /// [`CapacityError`] where the plan breaks a rule.
    pub fn new(plan: Plan) -> Result<Self, CapacityError> {
        plan.check()?;
        Ok(Self { plan, log: Vec::new() })
    }

    /// What it was told.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What was done so far.
    #[must_use]
    pub fn log(&self) -> &[(Step, Measured)] {
        &self.log
    }

    /// What to do next; `None` where everything is known that will be. It is the same until it is reported.
    #[must_use]
    pub fn next_step(&self) -> Option<Step> {
        let plan = &self.plan;
        let Some(alone) = self.alone() else {
            let begun = self.of(Phase::Baseline).next().is_some();
            return (!begun).then(|| self.step(Phase::Baseline, None, Some(1), plan.cell));
        };
        if let Some(rate) = next_rate(plan, alone, &self.stages()) {
            return Some(self.step(Phase::Ramp, Some(rate), None, plan.stage));
        }
        let overload = self.overload();
        let cells = self.cells();
        let swept = self.proofs().next().is_some() || self.of(Phase::Before).next().is_some();
        if let Some(limit) = next_limit(&cells, plan.max_limit).filter(|_| !swept) {
            let rate = overload.map(|rate| rate.max(Self::filling(&cells, limit)));
            return Some(self.step(Phase::Sweep, rate, Some(limit), plan.cell));
        }
        self.step_of_the_proof(&Findings::of(&cells, plan.timeout)?, overload)
    }

    fn step_of_the_proof(&self, findings: &Findings, overload: Option<f64>) -> Option<Step> {
        let plan = &self.plan;
        if !plan.prove || findings.limit() == 0 {
            return None;
        }
        match self.proven(findings) {
            Proven::Not(limit) => {
                let seconds = proof_seconds(findings, limit).max(plan.timeout);
                if plan.before && overload.is_some() && self.of(Phase::Before).next().is_none() {
                    // No gate holds it back, so that the plan's highest rate has to.
                    let most = plan.max_rate.unwrap_or(f64::INFINITY);
                    return Some(self.step(
                        Phase::Before,
                        overload.map(|rate| rate.min(most)),
                        None,
                        seconds,
                    ));
                }
                Some(self.step(Phase::Proof, overload, Some(limit), seconds))
            }
            Proven::Holds(limit) => {
                let rate = plan.accept.filter(|_| self.of(Phase::Accept).next().is_none())?;
                let seconds = plan.cell.max(ACCEPT_OFFERED / rate);
                Some(self.step(Phase::Accept, Some(rate), Some(limit), seconds))
            }
            Proven::Failed => None,
        }
    }

    fn step(&self, phase: Phase, rate: Option<f64>, limit: Option<u32>, seconds: f64) -> Step {
        Step::new(self.log.len() + 1, phase, rate, limit, self.plan.warm_up, seconds)
    }

    /// Takes down what the next step saw.
    ///
    /// # Errors
    /// [`CapacityError`] where a value breaks a rule, or nothing is to be done any more. Nothing is taken down then.
    pub fn report(&mut self, seen: Measured) -> Result<(), CapacityError> {
        seen.check()?;
        let Some(step) = self.next_step() else {
            return Err(CapacityError::new("a report", "of a step that was asked for", "one after the last"));
        };
        self.log.push((step, seen));
        Ok(())
    }

    /// How many steps are left, and how many seconds they take, if it goes as it usually does.
    #[must_use]
    pub fn outlook(&self) -> (usize, f64) {
        if self.next_step().is_none() {
            return (0, 0.0);
        }
        let done = |phase: Phase| self.of(phase).count();
        // From twice to 1 + width times as high, by halves.
        let halvings = (2.0_f64.ln() / self.plan.width.ln_1p()).log2().ceil().max(0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a few
        let halvings = if self.plan.bisect { halvings as usize } else { 0 };
        let ramp = if self.plan.rates.is_empty() { USUAL_RAMP } else { self.plan.rates.len() } + halvings;
        let beyond_ramp = done(Phase::Sweep) + done(Phase::Proof) > 0;
        let left_of = |usual: usize, phase: Phase| usual.saturating_sub(done(phase)).max(1);
        let ramp = if beyond_ramp { 0 } else { left_of(ramp, Phase::Ramp) };
        let sweep = if done(Phase::Proof) > 0 { 0 } else { left_of(USUAL_SWEEP, Phase::Sweep) };
        let once = |wanted: bool, phase: Phase| usize::from(wanted && done(phase) == 0);
        let others = once(true, Phase::Baseline)
            + once(self.plan.before, Phase::Before)
            + once(self.plan.prove, Phase::Proof)
            + once(self.plan.accept.is_some(), Phase::Accept);
        #[allow(clippy::cast_precision_loss)] // a few
        let seconds = ramp as f64 * (self.plan.warm_up + self.plan.stage)
            + (sweep + others) as f64 * (self.plan.warm_up + self.plan.cell);
        (ramp + sweep + others, seconds)
    }

    pub(super) fn of(&self, phase: Phase) -> impl Iterator<Item = &(Step, Measured)> {
        self.log.iter().filter(move |(step, _)| step.phase == phase)
    }

    fn proofs(&self) -> impl Iterator<Item = &(Step, Measured)> {
        self.of(Phase::Proof)
    }

    /// What one alone does in a second. `None` where that is not known, or nothing more is to be learnt since
    /// even one at a time fails.
    fn alone(&self) -> Option<f64> {
        let (_, seen) = self.of(Phase::Baseline).next()?;
        #[allow(clippy::cast_precision_loss)] // counts far below 2^52
        let done = (seen.good + seen.late) as f64;
        let fails = lower(seen.bad(), seen.answered(), CONFIDENCE) > BAD_SHARE;
        (seen.good > 0 && !fails).then(|| done / seen.seconds / seen.in_flight.clamp(0.1, 1.0))
    }

    pub(super) fn stages(&self) -> Vec<(f64, Found)> {
        let judged = |(step, seen): &(Step, Measured)| Some((step.rate?, judge(seen, self.plan.timeout)));
        self.of(Phase::Ramp).filter_map(judged).collect()
    }

    pub(super) fn bracket(&self) -> Bracket {
        Bracket::of(&self.stages())
    }

    /// What is offered to a gate to keep it full. `None`: whatever it takes, in a closed loop.
    pub(super) fn overload(&self) -> Option<f64> {
        self.bracket().middle().map(|rate| self.plan.overload * rate)
    }

    /// What fills a gate with the next limit, even if nobody slows anybody down: a ramp can break long before its
    /// target is busy, by the few requests that take longest.
    fn filling(cells: &[Cell], limit: u32) -> f64 {
        let each = |(_, seen): &Cell| goodput(seen) / seen.in_flight.max(0.01);
        cells.last().map_or(0.0, |last| FILL * each(last) * f64::from(limit))
    }

    /// One at a time and the sweep, by limit.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let cell = |(step, seen): &(Step, Measured)| Some((step.limit?, seen.clone()));
        self.of(Phase::Baseline).chain(self.of(Phase::Sweep)).filter_map(cell).collect()
    }

    pub(super) fn proven(&self, findings: &Findings) -> Proven {
        let Some((step, seen)) = self.proofs().last() else {
            return Proven::Not(findings.limit());
        };
        let limit = step.limit.unwrap_or(1);
        if seen.end == End::Held && upper(seen.bad(), seen.answered(), CONFIDENCE) < BAD_SHARE {
            return Proven::Holds(limit);
        }
        // Too few were let in for any proof: a lower limit would let in fewer.
        if seen.bad() == 0 || limit == 1 || self.proofs().count() >= PROOFS {
            return Proven::Failed;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below the limit
        let lowered = (LOWERED * f64::from(limit)) as u32;
        Proven::Not(lowered.max(1))
    }
}

/// What the proof says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proven {
    /// Not yet; this limit is to be tried.
    Not(u32),
    Holds(u32),
    Failed,
}

#[allow(clippy::cast_precision_loss)] // a few hundred
fn proof_seconds(findings: &Findings, limit: u32) -> f64 {
    let wanted = sample_size(FAILURES, BAD_SHARE, CONFIDENCE).unwrap_or_default() as f64;
    MARGIN * wanted / findings.curve.throughput(f64::from(limit))
}
