//! When requests come, and which: an open schedule that waits for nobody's answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::rules::{self, Of, ScenarioError, not_negative, positive, share};
use super::written;
use crate::ask::Weight;
use crate::priority::Priority;

/// The most classes of a mix, and the most stages of a schedule.
const MOST_PARTS: usize = 10_000;

/// Who asks, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrivals {
    /// When.
    pub schedule: Schedule,
    /// Who: one class at least.
    pub mix: Vec<Class>,
}

/// When requests come.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Schedule {
    /// As a Poisson process whose rate is constant in each stage. After the last stage nobody comes.
    Stages(Vec<Stage>),
    /// At the moments of a record.
    Trace(Trace),
}

/// A part of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// Arrivals a second; 0 is a pause.
    pub rate: f64,
    /// For how long.
    #[serde(rename = "for_s", serialize_with = "written::seconds")]
    pub length: Duration,
}

/// A record of arrivals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    /// Seconds since the start, in order.
    #[serde(serialize_with = "how_many")]
    pub times: Arc<[f64]>,
    /// The share of them that come, each at random: thinned like that, bursts stay bursts.
    pub keep: f64,
    /// How many times as fast as it was recorded.
    pub speed: f64,
}

fn how_many<S: serde::Serializer>(times: &Arc<[f64]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(times.len() as u64)
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// How important.
    pub priority: Priority,
    /// How many of all are of this kind, in proportion to the shares of the others.
    pub share: f64,
    /// How much work one is, relative to a size of the service.
    pub size: f64,
    /// How much of the limit one takes.
    pub weight: Weight,
    /// One that needs neither service nor dependency is answered after this long, with a permit: from a
    /// cache, by another database. `None`: it needs them.
    pub elsewhere: Option<Duration>,
}

impl Default for Class {
    fn default() -> Self {
        Self { priority: Priority::default(), share: 1.0, size: 1.0, weight: Weight::ONE, elsewhere: None }
    }
}

impl Serialize for Class {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written {
            priority: &'static str,
            share: f64,
            size: f64,
            weight: u32,
            #[serde(rename = "elsewhere_s", serialize_with = "written::some_seconds")]
            elsewhere: Option<Duration>,
        }
        let Self { priority, share, size, weight, elsewhere } = *self;
        Written { priority: priority.name(), share, size, weight: weight.get(), elsewhere }
            .serialize(serializer)
    }
}

impl Arrivals {
    /// A Poisson process of `rate` requests a second, all critical, for `length`.
    #[must_use]
    pub fn poisson(rate: f64, length: Duration) -> Self {
        Self::stages([(rate, length)])
    }

    /// One rate a second after the other, all critical.
    #[must_use]
    pub fn stages(stages: impl IntoIterator<Item = (f64, Duration)>) -> Self {
        let stages = stages.into_iter().map(|(rate, length)| Stage { rate, length }).collect();
        Self { schedule: Schedule::Stages(stages), mix: vec![Class::default()] }
    }

    /// The ramp of the article's capacity test: 0, 10, 20, 40, 80 and 150 a minute, fifteen minutes each.
    #[must_use]
    pub fn article_ramp() -> Self {
        let quarter = Duration::from_secs(15 * 60);
        Self::stages([0.0, 10.0, 20.0, 40.0, 80.0, 150.0].map(|per_minute| (per_minute / 60.0, quarter)))
    }

    /// At these moments, in seconds since the start and in order, all critical.
    #[must_use]
    pub fn trace(times: &[f64]) -> Self {
        let trace = Trace { times: times.into(), keep: 1.0, speed: 1.0 };
        Self { schedule: Schedule::Trace(trace), mix: vec![Class::default()] }
    }

    /// How long the schedule is. A trace is a nanosecond longer than it takes until its last arrival, who comes, too;
    /// no time at all where all of them come at once.
    #[must_use]
    pub fn length(&self) -> Duration {
        match &self.schedule {
            Schedule::Stages(stages) => {
                stages.iter().fold(Duration::ZERO, |sum, stage| sum.saturating_add(stage.length))
            }
            Schedule::Trace(trace) => {
                let last = trace.times.last().copied().unwrap_or_default() / trace.speed;
                match as_nanos(last) {
                    0 => Duration::ZERO,
                    last_ns => Duration::from_nanos(last_ns.saturating_add(1)),
                }
            }
        }
    }

    /// How many are to be expected within `duration`.
    pub(super) fn expected(&self, duration: Duration) -> f64 {
        match &self.schedule {
            Schedule::Stages(stages) => {
                let mut left = duration;
                let mut sum = 0.0;
                for stage in stages {
                    let length = stage.length.min(left);
                    left -= length;
                    sum += stage.rate * length.as_secs_f64();
                }
                sum
            }
            #[allow(clippy::cast_precision_loss)] // an estimate
            Schedule::Trace(trace) => {
                let end = duration.as_secs_f64() * trace.speed;
                trace.times.partition_point(|&time| time <= end) as f64 * trace.keep
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        match &self.schedule {
            Schedule::Stages(stages) => {
                few(stages.len()).of("arrivals.stages")?;
                for (at, stage) in stages.iter().enumerate() {
                    not_negative(stage.rate).of(&format!("arrivals.stages[{}].rate", at + 1))?;
                    rules::time(stage.length).of(&format!("arrivals.stages[{}].for", at + 1))?;
                }
            }
            Schedule::Trace(trace) => {
                share(trace.keep).of("arrivals.keep")?;
                positive(trace.speed).of("arrivals.speed")?;
                check_times(&trace.times).of("arrivals.trace")?;
            }
        }
        few(self.mix.len()).of("arrivals.mix")?;
        for (at, class) in self.mix.iter().enumerate() {
            positive(class.share).of(&format!("arrivals.mix[{}].share", at + 1))?;
            positive(class.size).of(&format!("arrivals.mix[{}].size", at + 1))?;
            class
                .elsewhere
                .map_or(Ok(Duration::ZERO), rules::time)
                .of(&format!("arrivals.mix[{}].elsewhere", at + 1))?;
        }
        Ok(())
    }
}

/// The moment of a run, in nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates
pub(super) fn as_nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn few(parts: usize) -> Result<(), String> {
    if (1..=MOST_PARTS).contains(&parts) {
        return Ok(());
    }
    Err(format!("must have 1 to {MOST_PARTS} entries, got {parts}"))
}

fn check_times(times: &[f64]) -> Result<(), String> {
    let Some(last) = times.last() else {
        return Err("must have one arrival at least, got none".to_owned());
    };
    rules::not_negative(*last)?;
    if !times.is_sorted() || times[0] < 0.0 {
        return Err("must be seconds since the start in order, got some before others".to_owned());
    }
    Ok(())
}
