//! What those who asked do: how long they wait, what becomes of their work, whether they come again.

use std::time::Duration;

use rand_distr::{Distribution, Open01};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::rules::{self, Of, ScenarioError, at_least, nanos};
use super::written;

/// The most retries that a client may make.
const MOST_RETRIES: u32 = 1_000;

/// What clients do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Clients {
    /// How long they wait for an answer, from the moment they asked; `None`: for ever.
    #[serde(rename = "timeout_s", serialize_with = "written::some_seconds")]
    pub timeout: Option<Duration>,
    /// What becomes of their work when they do not wait any longer.
    pub on_timeout: OnTimeout,
    /// Whether they come again.
    pub retries: Option<Retries>,
}

/// What becomes of work that nobody waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// It goes on, and holds its permit until it ends.
    #[default]
    Abandon,
    /// It is cancelled, and leaves at once: the gate is told to ignore it.
    Cancel,
    /// It fails, as a statement does that runs into its timeout, and leaves at once: an overload to the gate.
    Fail,
}

/// How clients come again with the same request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Retries {
    /// How often, at most.
    pub most: u32,
    /// How long after the first failure.
    #[serde(rename = "after_s", serialize_with = "written::seconds")]
    pub after: Duration,
    /// How many times as long after each further one.
    pub backoff: f64,
    /// Up to which share of that pause is left out, at random: 0 for none, 1 for up to all of it.
    pub jitter: f64,
    /// After a timeout.
    pub on_timeout: bool,
    /// After a shed.
    pub on_shed: bool,
    /// When it is too late in the run to come again; `None`: never.
    #[serde(rename = "until_s", serialize_with = "written::some_seconds")]
    pub until: Option<Duration>,
}

impl Clients {
    /// Clients who wait for `timeout` and leave their work behind.
    #[must_use]
    pub fn patient_for(timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..Self::default() }
    }

    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.timeout.map_or(Ok(Duration::ZERO), rules::some_time).of("clients.timeout")?;
        let Some(retries) = self.retries else {
            return Ok(());
        };
        most(retries.most).of("clients.retries.most")?;
        rules::time(retries.after).of("clients.retries.after")?;
        retries.until.map_or(Ok(Duration::ZERO), rules::time).of("clients.retries.until")?;
        at_least(1.0, retries.backoff).of("clients.retries.backoff")?;
        jitter(retries.jitter).of("clients.retries.jitter").map(drop)
    }
}

pub(super) fn most(most: u32) -> Result<u32, String> {
    if most <= MOST_RETRIES {
        return Ok(most);
    }
    Err(format!("must be a whole number from 0 to {MOST_RETRIES}, got {most}"))
}

pub(super) fn jitter(share: f64) -> Result<f64, String> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(format!("must be a share from 0 to 1, got {share}"))
}

impl Retries {
    /// The pause before the retry with this number, from 1; `None` where there is none any more.
    pub(super) fn pause_ns(&self, number: u32, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        if number > self.most {
            return None;
        }
        let mut pause = self.after.as_secs_f64() * self.backoff.powi(i32::try_from(number - 1).ok()?);
        if self.jitter > 0.0 {
            let drawn: f64 = Open01.sample(rng);
            pause *= 1.0 - self.jitter * drawn;
        }
        Some(Duration::try_from_secs_f64(pause).map_or(u64::MAX, nanos))
    }
}
