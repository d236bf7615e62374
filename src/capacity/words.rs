//! The recommendation in sentences, and as a configuration.

use super::binomial::{CONFIDENCE, lower, sample_size};
use super::plan::Plan;
use super::recommendation::{ACCEPT_SHARE, Recommendation, Share};
use super::search::Search;
use super::step::{End, Measured, Phase};
use super::watch::BAD_SHARE;
use crate::error::MAX_LIMIT;
use std::fmt::Write;

/// The threshold of the more important of what may be shed, unless the other is above it.
const PLUS: f64 = 0.9;
/// Below so many a second, rates are said a minute.
const MINUTES: f64 = 10.0;
/// How many times as high, or as low, as measured a controller may set the limit.
const ROOM: u32 = 4;

/// Says why something is not known, and what all of it comes to.
pub(super) fn explain(search: &Search, found: &mut Recommendation) {
    let mut reasons = Vec::new();
    let baseline = search.of(Phase::Baseline).next();
    if let Some((_, seen)) = baseline {
        reasons.extend(fails_alone(seen, search.plan()));
    }
    let ramped = search.of(Phase::Ramp).next().is_some();
    if ramped {
        reasons.extend(ramp_reason(found));
    }
    if found.complete && reasons.is_empty() {
        reasons.extend(no_limit(found, search.plan()));
    }
    if let Some(law) = found.law.filter(|law| !law.fits && found.limit.is_some()) {
        let what = "the universal scalability law is not near what was measured";
        reasons.push(format!(
            "{what} (it would have sigma {:.3} and kappa {:.2e}): the limit is read from the points themselves",
            law.sigma, law.kappa
        ));
    }
    if let (Some(share), Some(_), None) = (search.plan().essential, found.limit, found.thresholds) {
        reasons.push(format!(
            "no threshold keeps the essential {} under that overload: they are more than the target can do by \
             themselves",
            percent(share)
        ));
    }
    found.reasons = reasons;
    found.verdict = verdict(search, found);
}

fn fails_alone(seen: &Measured, plan: &Plan) -> Option<String> {
    if seen.end == End::Lagged {
        return Some(
            "could not be determined: the generator lagged behind with one request at a time".into(),
        );
    }
    if seen.answered() == 0 {
        return Some(format!(
            "could not be determined: one request at a time got no answer in {:.3} s; is the target there, and \
             does it answer within the timeout of {:.3} s?",
            seen.seconds, plan.timeout
        ));
    }
    let (bad, of) = (seen.bad(), seen.answered());
    if seen.good > 0 && lower(bad, of, CONFIDENCE) <= BAD_SHARE {
        return None;
    }
    Some(if seen.late > seen.failed {
        format!(
            "no limit satisfies this: even one at a time, {} of {of} took longer than the timeout of {:.3} s; \
             classify or cap the expensive class",
            seen.late, plan.timeout
        )
    } else {
        format!(
            "could not be determined: even one at a time, {} of {of} failed; mend that first",
            seen.failed
        )
    })
}

fn ramp_reason(found: &Recommendation) -> Option<String> {
    let bracket = found.breaking_point;
    if let Some(lagged) = bracket.lagged {
        return Some(format!(
            "the breaking point could not be determined: the generator lagged at {}; the target is faster than \
             it, or the machine that it runs on is busy",
            per(lagged)
        ));
    }
    match (found.complete, bracket.held, bracket.broke) {
        (true, Some(held), None) => Some(format!(
            "the breaking point was not reached: {} held, and no more was to be offered",
            per(held)
        )),
        (true, None, Some(broke)) => Some(format!(
            "the breaking point could not be determined: not even {} held, although one at a time is answered",
            per(broke)
        )),
        _ => None,
    }
}

fn no_limit(found: &Recommendation, plan: &Plan) -> Option<String> {
    if found.limit.is_some() {
        return None;
    }
    let timeout = plan.timeout;
    Some(match (found.c_timeout, found.proof) {
        (Some(0), _) => {
            let takes = found.slowest_alone.map_or_else(
                || format!("longer than the timeout of {timeout:.3} s"),
                |time| format!("{time:.3} s and more, of a timeout of {timeout:.3} s"),
            );
            format!(
                "no limit satisfies this: more than 1 in 200 requests take {takes}, even alone; classify or cap the \
                 expensive class"
            )
        }
        (_, Some(proof)) if proof.events == 0 && proof.upper < BAD_SHARE => {
            "the limit could not be proven: the run that was to prove it was stopped".to_owned()
        }
        (_, Some(proof)) if proof.events == 0 => format!(
            "the limit could not be proven: {} answers are too few, {} would be needed",
            proof.of,
            sample_size(0, BAD_SHARE, CONFIDENCE).unwrap_or_default()
        ),
        (_, Some(proof)) => format!(
            "no limit satisfies this: even with {} at a time, {} of {} were late or failed; classify or cap the \
             expensive class",
            proof.limit.unwrap_or(1),
            proof.events,
            proof.of
        ),
        _ => "could not be determined: throughput was measured at too few limits".to_owned(),
    })
}

fn verdict(search: &Search, found: &Recommendation) -> String {
    let mut said = Vec::new();
    if let (Some(held), Some(broke)) = (found.breaking_point.held, found.breaking_point.broke) {
        said.push(format!("It breaks between {} and {}.", number(held, broke), per(broke)));
    }
    if let Some(limit) = found.limit {
        let interval = match found.limit_interval {
            Some((low, high)) => format!(" (95 % confidence: {low} to {high})"),
            None => String::new(),
        };
        said.push(format!("Let {limit} in at a time{interval}."));
        if let Some(rate) = found.rate {
            said.push(format!("Up to {}, that turns away at most one in a hundred.", per(rate)));
        }
    }
    if let (Some(proof), Some(_)) = (found.proof, found.limit) {
        said.push(proven(&proof));
    } else if found.limit.is_some() && found.complete {
        said.push("Not proven.".to_owned());
    }
    if let (Some(accepted), Some(rate)) = (found.accepted, search.plan().accept) {
        said.push(acceptance(accepted, rate, found.acceptance));
    }
    if let Some(reserved) = found.thresholds {
        said.push(format!(
            "With others only while fewer than {} are inside, {} of the essential {} are turned away under {}.",
            reserved.threshold,
            percent(reserved.essential_shed),
            percent(reserved.share),
            per(reserved.rate)
        ));
    }
    if !found.complete {
        said.push("The test was not finished.".to_owned());
    }
    said.extend(found.reasons.iter().map(|reason| {
        let mut letters = reason.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        let stop = if reason.ends_with('?') { "" } else { "." };
        format!("{first}{}{stop}", letters.as_str())
    }));
    said.join(" ")
}

fn proven(proof: &Share) -> String {
    let under =
        proof.rate.map_or_else(|| "in a closed loop".to_owned(), |rate| format!("under {}", per(rate)));
    format!(
        "So {under}, {} of {} let in were late or failed: below {} with 95 % confidence.",
        proof.events,
        proof.of,
        percent(proof.upper)
    )
}

fn acceptance(accepted: bool, rate: f64, share: Option<Share>) -> String {
    let rate = per(rate);
    match (accepted, share) {
        (true, Some(share)) => format!(
            "{rate} is accepted: {} of {} were turned away or not answered in time, below {} with 95 % confidence.",
            share.events,
            share.of,
            percent(share.upper)
        ),
        (_, Some(share)) => format!(
            "{rate} is refused: {} of {} were turned away or not answered in time, and {} are allowed.",
            share.events,
            share.of,
            percent(ACCEPT_SHARE)
        ),
        (_, None) => format!("{rate} is refused: there is no gate to prove it with."),
    }
}

/// A rate in the unit in which it is read most easily.
pub(super) fn per(rate: f64) -> String {
    if rate < MINUTES {
        format!("{} a minute", short(60.0 * rate))
    } else {
        format!("{} a second", short(rate))
    }
}

/// The number alone, in the unit that `other` is said in.
fn number(rate: f64, other: f64) -> String {
    if other < MINUTES { short(60.0 * rate) } else { short(rate) }
}

/// Three digits.
fn short(number: f64) -> String {
    match number {
        number if number >= 100.0 => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        number => format!("{number:.2}"),
    }
}

fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.001 {
        format!("{:.3} %", 100.0 * share)
    } else {
        format!("{} %", short_percent(share))
    }
}

fn short_percent(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Recommendation {
    /// A configuration of the recommended gate, with the measured limit as its controller's prior. `None` where there
    /// is none.
    #[must_use]
    pub fn toml(&self, gate: &str) -> Option<String> {
        let sheddable = self.thresholds.map(|reserved| reserved.fraction);
        Some(toml(gate, self.limit?, self.timeout, sheddable, &self.verdict))
    }
}

/// A configuration of a gate with this limit, which lets the sheddable in up to a fraction of it, and where an answer
/// within `objective` seconds is good; `why` stands above it.
#[must_use]
pub fn toml(gate: &str, limit: u32, objective: f64, sheddable: Option<f64>, why: &str) -> String {
    let key = key(gate);
    let mut text = String::from("# Recommended by a capacity test.\n");
    for line in why.lines().flat_map(|line| line.split_inclusive(". ")) {
        let _ = writeln!(text, "# {}", line.trim_end());
    }
    let _ = writeln!(text, "[gates.{key}]\nlimit = {limit}\nobjective = \"{objective}s\"");
    if let Some(sheddable) = sheddable {
        // What is more important is not to meet a lower threshold.
        let plus = sheddable.max(PLUS);
        let _ = writeln!(text, "thresholds = {{ sheddable_plus = {plus:?}, sheddable = {sheddable:?} }}");
    }
    let (least, most) = ((limit / ROOM).max(1), limit.saturating_mul(ROOM).min(MAX_LIMIT));
    let _ = writeln!(
        text,
        "\n[gates.{key}.controller]\nkind = \"goodput\"\nmin = {least}\nmax = {most}\nprior = {limit}"
    );
    text
}

/// A name as a key: bare where it may be.
fn key(name: &str) -> String {
    let bare = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if !name.is_empty() && name.chars().all(bare) {
        return name.to_owned();
    }
    let escaped = name.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        letter if letter.is_control() => format!("\\u{:04x}", letter as u32),
        letter => letter.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
