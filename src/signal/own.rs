//! What a gate sees of its own work: how long it takes, against the objective, and how much of it fails.
//!
//! Both are means over a window that is counted in completions. It reaches back over the last [`ENOUGH`] completions
//! and the last second at least, twice that at most while they come quickly; fewer than so many in a minute
//! say nothing, and the signal is unknown. So a lone slow request is no overload, nor are three failures after a start.
//!
//! The latency is not that of the permits that came back, but the time integral of the weight in flight over the weight
//! that left (Little's law): that counts bare entries, which nobody times one by one, and what hangs counts
//! while it hangs. It is divided by the objective, and 1 from there on.

use std::time::Duration;

use super::{Detail, Reading};

/// Completions that say something.
const ENOUGH: u64 = 10;
/// A window begins at least this long ago, and no longer than twice [`LONGEST_NS`].
const SHORTEST_NS: u64 = 1_000_000_000;
const LONGEST_NS: u64 = 60_000_000_000;

/// What a gate has counted, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// The integral of the weight in flight, modulo 2^64; `None` where it is not measured, or somebody stands in the
    /// middle of that.
    pub(crate) occupancy_us: Option<u64>,
    pub(crate) released_weight: u64,
    /// What left, with any outcome.
    pub(crate) released: u64,
    pub(crate) success: u64,
    pub(crate) overload: u64,
    /// How long it may take.
    pub(crate) objective: Option<Duration>,
}

/// A gate, as its signals see it.
pub(crate) trait Own {
    fn figures(&self) -> Figures;

    /// Takes note of what was seen, with the monitor's lock held.
    fn show(&self, level: f64, overloaded: bool);
}

/// Which of the two it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Latency,
    Errors,
}

/// Measures one of the two.
#[derive(Debug)]
pub(crate) struct Probe {
    what: What,
    /// Where the window begins, and where the next one will.
    begin: Option<[Moment; 2]>,
    details: Vec<Detail>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    at_ns: u64,
    figures: Figures,
}

impl Moment {
    fn completions_since(&self, before: &Self, what: What) -> u64 {
        let count = |figures: &Figures| match what {
            What::Latency => figures.released,
            What::Errors => figures.success.wrapping_add(figures.overload),
        };
        count(&self.figures).wrapping_sub(count(&before.figures))
    }
}

impl Probe {
    pub(crate) fn new(what: What) -> Self {
        Self { what, begin: None, details: Vec::new() }
    }

    pub(crate) fn details(&self) -> Vec<Detail> {
        self.details.clone()
    }

    pub(crate) fn read(&mut self, now_ns: u64, figures: &Figures) -> Reading {
        let now = Moment { at_ns: now_ns, figures: *figures };
        self.details.clear();
        let Some([begin, next]) = self.begin else {
            self.begin = Some([now, now]);
            return Reading::UNKNOWN;
        };
        // A clock that went back has gone far beyond, too.
        if now_ns.wrapping_sub(next.at_ns) > LONGEST_NS {
            self.begin = Some([now, now]);
            return Reading::UNKNOWN;
        }
        let elapsed_ns = now_ns - next.at_ns;
        let begin = if elapsed_ns >= SHORTEST_NS && now.completions_since(&next, self.what) >= ENOUGH {
            self.begin = Some([next, now]);
            next
        } else {
            begin
        };
        if now.completions_since(&begin, self.what) < ENOUGH || now_ns == begin.at_ns {
            return Reading::UNKNOWN;
        }
        self.between(&begin, &now)
    }

    #[allow(clippy::cast_precision_loss)] // counts of minutes
    fn between(&mut self, begin: &Moment, now: &Moment) -> Reading {
        let completions = now.completions_since(begin, self.what) as f64;
        let seconds = Duration::from_nanos(now.at_ns - begin.at_ns).as_secs_f64();
        self.details.push(("completions", completions));
        self.details.push(("completions_per_s", completions / seconds));
        match self.what {
            What::Errors => {
                let overload = now.figures.overload.wrapping_sub(begin.figures.overload) as f64;
                Reading::at_most_one(overload / completions)
            }
            What::Latency => {
                let (Some(before_us), Some(now_us)) = (begin.figures.occupancy_us, now.figures.occupancy_us)
                else {
                    return Reading::UNKNOWN;
                };
                #[allow(clippy::cast_possible_wrap)] // a difference modulo 2^64
                let Ok(occupancy_us) = u64::try_from(now_us.wrapping_sub(before_us) as i64) else {
                    return Reading::UNKNOWN;
                };
                let weight = now.figures.released_weight.wrapping_sub(begin.figures.released_weight);
                let mean_s = occupancy_us as f64 / 1e6 / weight as f64;
                self.details.push(("mean_s", mean_s));
                now.figures.objective.map_or(Reading::UNKNOWN, |objective| {
                    Reading::at_most_one(mean_s / objective.as_secs_f64())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
