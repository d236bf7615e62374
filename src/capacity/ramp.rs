//! Where it breaks: rates that rise until one does not hold, then halved between the two. Pure.
//!
//! Steps are factors, since nobody knows the scale beforehand. What is reported is a bracket: the highest rate that
//! held and the lowest that did not.

use serde::{Serialize, Serializer, ser::SerializeTuple};

use super::plan::Plan;
use super::step::{End, Measured};
use super::watch::{BAD_SHARE, grows, waits_too_long};

/// How many times as high each stage of the ramp is as the one before.
const FACTOR: f64 = 2.0;
/// How often a first rate that does not hold is halved.
const HALVINGS: i32 = 8;

/// What a stage said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Held,
    Broke,
    /// Nothing of the target: the generator could not keep the rate.
    Lagged,
}

/// Judges a stage by how it ended, and once more by its numbers.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
pub(super) fn judge(seen: &Measured, timeout: f64) -> Found {
    match seen.end {
        End::Lagged => return Found::Lagged,
        End::Collapsed | End::Aborted => return Found::Broke,
        End::Held => {}
    }
    let done = seen.good + seen.late;
    let bad = seen.bad() as f64 > BAD_SHARE * seen.answered() as f64;
    let drowns =
        grows(seen.offered, seen.answered()) && waits_too_long(seen.in_flight, done, seen.seconds, timeout);
    if bad || drowns { Found::Broke } else { Found::Held }
}

/// The highest rate that held below the lowest that did not, and that. Either may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Bracket {
    /// It held this.
    pub held: Option<f64>,
    /// It did not hold this.
    pub broke: Option<f64>,
    /// The generator did not keep up with this.
    pub lagged: Option<f64>,
}

impl Serialize for Bracket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&self.held)?;
        pair.serialize_element(&self.broke)?;
        pair.end()
    }
}

impl Bracket {
    pub(super) fn of(stages: &[(f64, Found)]) -> Self {
        let rates = |wanted: Found| {
            stages.iter().filter(move |(rate, found)| *found == wanted && *rate > 0.0).map(|(rate, _)| *rate)
        };
        let broke = rates(Found::Broke).reduce(f64::min);
        let below = |rate: &f64| broke.is_none_or(|broke| *rate < broke);
        let held = rates(Found::Held).filter(below).reduce(f64::max);
        Self { held, broke, lagged: rates(Found::Lagged).reduce(f64::min) }
    }

    /// What stands for it where one number is needed; `None` where it did not break.
    pub(super) fn middle(&self) -> Option<f64> {
        let broke = self.broke?;
        Some(self.held.map_or(broke, |held| (held * broke).sqrt()))
    }
}

/// The rate of the next stage; `None` where the ramp is over. `alone` is what one at a time does.
pub(super) fn next_rate(plan: &Plan, alone: f64, stages: &[(f64, Found)]) -> Option<f64> {
    let bracket = Bracket::of(stages);
    // More than the highest limit gets done, even if nobody slows anybody down.
    let most = plan.max_rate.unwrap_or(FACTOR * alone * f64::from(plan.max_limit));
    if bracket.lagged.is_some() {
        return None;
    }
    if bracket.broke.is_none() {
        if !plan.rates.is_empty() {
            return plan.rates.get(stages.len()).copied();
        }
        let next = match bracket.held {
            Some(held) => held * FACTOR,
            None => plan.start_rate.unwrap_or(FACTOR * alone),
        };
        return (bracket.held.is_none_or(|held| held < most)).then_some(next.min(most));
    }
    let broke = bracket.broke?;
    match bracket.held {
        _ if !plan.bisect => None,
        Some(held) => (broke / held - 1.0 > plan.width).then(|| (held * broke).sqrt()),
        None => {
            let first = stages.iter().map(|(rate, _)| *rate).find(|rate| *rate > 0.0)?;
            (broke > first / FACTOR.powi(HALVINGS)).then_some(broke / FACTOR)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ramp of a target that breaks above `truth`.
    fn ramp(plan: &Plan, alone: f64, truth: f64) -> Vec<(f64, Found)> {
        let mut stages = Vec::new();
        while let Some(rate) = next_rate(plan, alone, &stages) {
            stages.push((rate, if rate <= truth { Found::Held } else { Found::Broke }));
            assert!(stages.len() < 100, "it ends");
        }
        stages
    }

    #[test]
    fn it_ends_with_a_narrow_bracket_around_the_truth() {
        for truth in [0.9, 3.1, 45.0, 1e3] {
            let stages = ramp(&Plan::new(180.0), 3.0, truth);
            let bracket = Bracket::of(&stages);
            let (held, broke) = (bracket.held.unwrap(), bracket.broke.unwrap());
            assert!(held <= truth && truth < broke && broke / held <= 1.12, "{truth}: {stages:?}");
        }
        assert!(ramp(&Plan::new(180.0), 3.0, 45.0).len() <= 8);
    }

    #[test]
    fn the_articles_stages_are_gone_through_and_refined() {
        let rates = vec![0.0, 10.0, 20.0, 40.0, 80.0, 150.0];
        let mut plan = Plan { rates, ..Plan::new(180.0) };
        let stages = ramp(&plan, 3.0, 45.0);
        let first: Vec<f64> = stages.iter().take(5).map(|(rate, _)| *rate).collect();
        assert_eq!(first, [0.0, 10.0, 20.0, 40.0, 80.0]);
        assert!(stages.len() > 5 && stages.iter().all(|(rate, _)| *rate < 150.0), "{stages:?}");
        assert_eq!(ramp(&plan, 3.0, 1e3).len(), 6);
        plan.bisect = false;
        let bracket = Bracket::of(&ramp(&plan, 3.0, 45.0));
        assert_eq!((bracket.held, bracket.broke), (Some(40.0), Some(80.0)));
    }

    #[test]
    fn it_keeps_below_its_cap_and_says_that_it_did_not_break() {
        let plan = Plan { max_rate: Some(30.0), ..Plan::new(180.0) };
        let stages = ramp(&plan, 3.0, 45.0);
        assert_eq!(stages.last(), Some(&(30.0, Found::Held)));
        assert_eq!(Bracket::of(&stages).middle(), None);
        let stages = ramp(&Plan::new(180.0), 3.0, f64::INFINITY);
        assert_eq!(stages.last(), Some(&(3.0 * 1024.0, Found::Held)));
    }

    #[test]
    fn what_never_holds_is_given_up() {
        let stages = ramp(&Plan::new(180.0), 3.0, 0.0);
        assert_eq!(stages.len(), 9);
        assert_eq!(Bracket::of(&stages).held, None);
    }

    #[test]
    fn a_generator_that_lags_ends_the_ramp() {
        let stages = [(6.0, Found::Held), (12.0, Found::Lagged)];
        assert_eq!(next_rate(&Plan::new(180.0), 3.0, &stages), None);
        assert_eq!(Bracket::of(&stages), Bracket { held: Some(6.0), broke: None, lagged: Some(12.0) });
    }

    #[test]
    fn numbers_count_where_nobody_stopped_the_stage() {
        let held =
            Measured { seconds: 720.0, offered: 480, good: 478, in_flight: 25.0, ..Measured::default() };
        assert_eq!(judge(&held, 180.0), Found::Held);
        assert_eq!(judge(&Measured { late: 4, ..held.clone() }, 180.0), Found::Held);
        assert_eq!(judge(&Measured { late: 5, ..held.clone() }, 180.0), Found::Broke);
        assert_eq!(judge(&Measured { failed: 5, ..held.clone() }, 180.0), Found::Broke);
        // Inside grew by 100, which is more than chance; but 25 / 380 of 720 s is still a short wait.
        let grown = Measured { good: 380, ..held.clone() };
        assert_eq!(judge(&grown, 180.0), Found::Held);
        assert_eq!(judge(&Measured { in_flight: 60.0, ..grown }, 180.0), Found::Broke);
        assert_eq!(judge(&Measured { in_flight: 60.0, ..held.clone() }, 180.0), Found::Held);
        assert_eq!(judge(&Measured { end: End::Aborted, ..held.clone() }, 180.0), Found::Broke);
        assert_eq!(judge(&Measured { end: End::Lagged, ..held }, 180.0), Found::Lagged);
    }
}
