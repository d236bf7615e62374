//! What a capacity test recommends, how sure that is, and why.

use serde::Serialize;

use super::binomial::{CONFIDENCE, upper};
use super::bootstrap::{covariance, interval};
use super::curve::{Counted, law};
use super::findings::Findings;
use super::ramp::Bracket;
use super::search::{Proven, Search};
use super::shedding::{Reserved, rate, reserve};
use super::step::{End, Measured, Phase, Step};
use super::usl::Usl;
use super::words;

/// A rate is sustained where less than this share of it is turned away, late or failed.
pub(super) const ACCEPT_SHARE: f64 = 0.02;
/// How many points a band has, at most.
const BAND: u32 = 64;

/// What a capacity test recommends: rates a second, times in seconds. What is not known is `None`, and
/// [`reasons`](Self::reasons) say why.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Recommendation {
    /// What an answer may take, in seconds: the objective of the recommended gate.
    pub timeout: f64,
    /// The highest rate that held without a gate, and the lowest that did not.
    pub breaking_point: Bracket,
    /// How many to let in at a time.
    pub limit: Option<u32>,
    /// Where it lies with 95 % confidence.
    pub limit_interval: Option<(u32, u32)>,
    /// Up to this rate the limit turns away at most one in a hundred.
    pub rate: Option<f64>,
    /// Where it lies with 95 % confidence.
    pub rate_interval: Option<(f64, f64)>,
    /// The smallest limit that has 95 % of the best throughput.
    pub c95: Option<u32>,
    /// The largest limit at which all but 1 in 200 are answered in time.
    pub c_timeout: Option<u32>,
    /// The limit with the best throughput of those measured, and that.
    pub best: Option<(u32, f64)>,
    /// What all but 1 in 200 take at most, alone.
    pub slowest_alone: Option<f64>,
    /// The law that is closest to what was measured.
    pub law: Option<Law>,
    /// Throughput by concurrency, as the recommendation has it.
    pub band: Vec<Level>,
    /// The same as measured.
    pub points: Vec<Level>,
    /// What became of those let in under overload, behind the recommended gate.
    pub proof: Option<Share>,
    /// The same without a gate.
    pub before: Option<Share>,
    /// What became of all that came at the rate that was to be accepted.
    pub acceptance: Option<Share>,
    /// The share of those let in that may fail under overload, with 95 % confidence.
    pub error_upper: Option<f64>,
    /// The share that did.
    pub gated_error: Option<f64>,
    /// Whether the rate that was asked for is sustained.
    pub accepted: Option<bool>,
    /// A threshold that keeps room for what is essential.
    pub thresholds: Option<Reserved>,
    /// Whether there is nothing more to do.
    pub complete: bool,
    /// Why something is not known, or not recommended.
    pub reasons: Vec<String>,
    /// All of it in some sentences.
    pub verdict: String,
}

/// A law, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Law {
    /// Answers a second of one alone.
    pub lambda: f64,
    /// The share of the work that cannot be done at the same time.
    pub sigma: f64,
    /// What each pair costs.
    pub kappa: f64,
    /// Where each of them lies with 95 % confidence.
    pub intervals: Option<[(f64, f64); 3]>,
    /// How they vary together.
    pub covariance: [[f64; 3]; 3],
    /// Whether it is near all that was measured. Else the points count.
    pub fits: bool,
}

/// A throughput, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Level {
    /// So many at a time.
    pub concurrency: f64,
    /// Get so many done a second.
    pub throughput: f64,
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
}

/// A share that was counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Share {
    /// At so many a second; `None` in a closed loop.
    pub rate: Option<f64>,
    /// Behind a gate with this limit.
    pub limit: Option<u32>,
    /// So many.
    pub events: u64,
    /// Of so many.
    pub of: u64,
    /// Which is this share.
    pub share: f64,
    /// And may be up to this, with 95 % confidence.
    pub upper: f64,
}

impl Share {
    #[allow(clippy::cast_precision_loss)] // counts far below 2^52
    fn new(step: &Step, events: u64, of: u64) -> Self {
        let share = if of == 0 { 0.0 } else { events as f64 / of as f64 };
        Self { rate: step.rate, limit: step.limit, events, of, share, upper: upper(events, of, CONFIDENCE) }
    }

    /// Those let in that were late or failed.
    fn bad((step, seen): &(Step, Measured)) -> Self {
        Self::new(step, seen.bad(), seen.answered())
    }

    /// All that came and were not answered in time.
    fn lost((step, seen): &(Step, Measured)) -> Self {
        Self::new(step, seen.shed + seen.bad(), seen.shed + seen.answered())
    }
}

impl Search {
    /// What is recommended by all that was seen so far.
    #[must_use]
    pub fn recommendation(&self) -> Recommendation {
        let mut found = Recommendation {
            timeout: self.plan().timeout,
            breaking_point: self.bracket(),
            complete: self.next_step().is_none(),
            proof: self.of(Phase::Proof).last().map(Share::bad),
            before: self.of(Phase::Before).last().map(Share::bad),
            acceptance: self.of(Phase::Accept).last().map(Share::lost),
            ..Recommendation::default()
        };
        found.error_upper = found.proof.map(|share| share.upper);
        found.gated_error = found.proof.map(|share| share.share);
        if let Some(findings) = Findings::of(&self.cells(), self.plan().timeout) {
            self.recommend(&mut found, &findings);
        }
        if self.plan().accept.is_some() && found.complete {
            let sustained = |share: Share| share.upper < ACCEPT_SHARE;
            let ended = self.of(Phase::Accept).all(|(_, seen)| seen.end == End::Held);
            found.accepted = Some(ended && found.acceptance.is_some_and(sustained));
        }
        words::explain(self, &mut found);
        found
    }

    fn recommend(&self, found: &mut Recommendation, findings: &Findings) {
        let curve = &findings.curve;
        found.c95 = Some(findings.good_enough);
        found.c_timeout = Some(findings.in_time);
        found.best = Some(curve.best(findings.most));
        found.slowest_alone = Some(findings.slowest).filter(|time| time.is_finite());
        let proven = self.proven(findings);
        found.limit = match proven {
            Proven::Not(limit) | Proven::Holds(limit) => Some(limit).filter(|limit| *limit > 0),
            Proven::Failed => None,
        };
        let (mut limits, mut rates, mut laws) = (Vec::new(), Vec::new(), Vec::new());
        let at = concurrencies(findings.most);
        let mut bands = vec![Vec::new(); at.len()];
        let cells = self.cells();
        for drawn in findings.redrawn(&cells, self.plan().timeout, self.plan().seed) {
            limits.push(f64::from(drawn.limit()));
            rates.extend(found.limit.map(|limit| rate(&drawn.curve, limit)));
            laws.extend(law(&drawn.counted).map(|law| [law.lambda, law.sigma, law.kappa]));
            for (band, at) in bands.iter_mut().zip(&at) {
                band.push(drawn.curve.throughput(*at));
            }
        }
        if let Some(limit) = found.limit {
            // A proof that made it lower makes the interval lower by the same share.
            let lowered = f64::from(limit) / f64::from(findings.limit());
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // they were limits
            let whole = |(low, high): (f64, f64)| {
                ((lowered * low).floor().max(1.0) as u32, (lowered * high).ceil() as u32)
            };
            found.limit_interval = interval(limits).map(whole);
            found.rate = Some(rate(curve, limit));
            found.rate_interval = interval(rates);
            let overload = self.overload().or(self.plan().accept);
            if let (Some(share), Some(rate)) = (self.plan().essential, overload) {
                found.thresholds = reserve(curve, limit, rate, share);
            }
        }
        found.law = law(&findings.counted).map(|law| with_intervals(law, &laws, curve.law().is_some()));
        let levels = at.iter().zip(bands).filter_map(|(at, band)| {
            let (low, high) = interval(band)?;
            Some(Level { concurrency: *at, throughput: curve.throughput(*at), low, high })
        });
        found.band = levels.collect();
        found.points = findings.counted.iter().map(point).collect();
    }
}

fn with_intervals(law: Usl, drawn: &[[f64; 3]], fits: bool) -> Law {
    let of = |at: usize| interval(drawn.iter().map(|each| each[at]).collect());
    let intervals = match (of(0), of(1), of(2)) {
        (Some(lambda), Some(sigma), Some(kappa)) => Some([lambda, sigma, kappa]),
        _ => None,
    };
    let Usl { lambda, sigma, kappa } = law;
    Law { lambda, sigma, kappa, intervals, covariance: covariance(drawn), fits }
}

/// 1.96 standard deviations to each side.
fn point(counted: &Counted) -> Level {
    let throughput = counted.throughput();
    let off = 1.96 * counted.spread * throughput;
    Level {
        concurrency: counted.concurrency,
        throughput,
        low: (throughput - off).max(0.0),
        high: throughput + off,
    }
}

/// Whole ones, up to `most`, and not too many.
fn concurrencies(most: u32) -> Vec<f64> {
    let step = most.div_ceil(BAND).max(1);
    let mut all: Vec<u32> = (1..=most).step_by(step as usize).collect();
    if all.last() != Some(&most) {
        all.push(most);
    }
    all.into_iter().map(f64::from).collect()
}
