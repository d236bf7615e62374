//! The requests of a run, one after the other: when each comes, and of which class it is.

use rand_distr::{Distribution, Exp1, Open01};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::arrivals::{Class, Schedule, Stage, as_nanos};

/// The arrivals of a run, one after the other.
#[derive(Debug)]
pub(super) enum Source<'s> {
    Stages { left: std::slice::Iter<'s, Stage>, rate: f64, until: f64, now: f64 },
    Trace { left: std::slice::Iter<'s, f64>, keep: f64, speed: f64 },
}

impl<'s> Source<'s> {
    pub(super) fn new(schedule: &'s Schedule) -> Self {
        match schedule {
            Schedule::Stages(stages) => Self::Stages { left: stages.iter(), rate: 0.0, until: 0.0, now: 0.0 },
            Schedule::Trace(trace) => {
                Self::Trace { left: trace.times.iter(), keep: trace.keep, speed: trace.speed }
            }
        }
    }

    /// When the next one comes, in nanoseconds.
    pub(super) fn next(&mut self, rng: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let seconds = match self {
            Self::Stages { left, rate, until, now } => {
                // An exponential of mean one, used up at the rate of each stage that it reaches into.
                let mut exponential: f64 = Exp1.sample(rng);
                loop {
                    let room = (*until - *now) * *rate;
                    if exponential < room {
                        *now += exponential / *rate;
                        break *now;
                    }
                    exponential -= room;
                    *now = *until;
                    let stage = left.next()?;
                    *rate = stage.rate;
                    *until += stage.length.as_secs_f64();
                }
            }
            Self::Trace { left, keep, speed } => loop {
                let time = left.next()?;
                let drawn: f64 = Open01.sample(rng);
                if drawn <= *keep {
                    break time / *speed;
                }
            },
        };
        Some(as_nanos(seconds))
    }
}

/// Draws the class of each request.
#[derive(Debug)]
pub(super) struct Draw {
    /// Sums of the shares so far.
    sums: Vec<f64>,
}

impl Draw {
    pub(super) fn new(mix: &[Class]) -> Self {
        let sum = |sum: &mut f64, class: &Class| {
            *sum += class.share;
            Some(*sum)
        };
        Self { sums: mix.iter().scan(0.0, sum).collect() }
    }

    pub(super) fn class(&self, rng: &mut Xoshiro256PlusPlus) -> usize {
        let last = self.sums.len() - 1;
        if last == 0 {
            return 0;
        }
        let uniform: f64 = Open01.sample(rng);
        let at = uniform * self.sums[last];
        self.sums.partition_point(|&sum| sum <= at).min(last)
    }
}
