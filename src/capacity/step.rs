//! What a capacity test does next, and what it saw when it did.

use serde::Serialize;

use super::fault::{CapacityError, positive};

/// Which part of the test a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// One at a time.
    Baseline,
    /// Open, without a gate, at a higher rate each: where does it break?
    Ramp,
    /// Behind the gate, with more than it lets in: how much gets done at each limit?
    Sweep,
    /// Overload without a gate.
    Before,
    /// The same overload behind the gate with the recommended limit.
    Proof,
    /// Behind that gate, at the rate that is to be sustained.
    Accept,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Baseline, Self::Ramp, Self::Sweep, Self::Before, Self::Proof, Self::Accept];

    /// The name that logs and reports have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Ramp => "ramp",
            Self::Sweep => "sweep",
            Self::Before => "before",
            Self::Proof => "proof",
            Self::Accept => "accept",
        }
    }
}

/// What to do: offer so much for so long, from an empty system on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// From 1.
    pub number: usize,
    /// What it is for.
    pub phase: Phase,
    /// Arrivals a second, on a schedule that waits for nobody. `None`: in a closed loop, always as many as the limit.
    pub rate: Option<f64>,
    /// Of the gate. `None`: there is none.
    pub limit: Option<u32>,
    /// Seconds before anything counts.
    pub warm_up: f64,
    /// Seconds after that.
    pub seconds: f64,
}

impl Step {
    /// A step that nobody asked for, as of a log.
    #[must_use]
    pub const fn new(
        number: usize,
        phase: Phase,
        rate: Option<f64>,
        limit: Option<u32>,
        warm_up: f64,
        seconds: f64,
    ) -> Self {
        Self { number, phase, rate, limit, warm_up, seconds }
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It ran for its time.
    #[default]
    Held,
    /// It was stopped when requests failed.
    Collapsed,
    /// It was stopped before that, because it was about to ([`Watch`](super::Watch)).
    Aborted,
    /// The generator could not keep the rate: nothing is known of the target.
    Lagged,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Held, Self::Collapsed, Self::Aborted, Self::Lagged];

    /// The name that logs and reports have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Collapsed => "collapsed",
            Self::Aborted => "aborted",
            Self::Lagged => "lagged",
        }
    }
}

/// What a step saw after its warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measured {
    /// For how long.
    pub seconds: f64,
    /// How many came.
    pub offered: u64,
    /// Of these, turned away by the gate.
    pub shed: u64,
    /// Answered in time.
    pub good: u64,
    /// Not answered in time.
    pub late: u64,
    /// Answered with an error.
    pub failed: u64,
    /// How many were inside on average.
    pub in_flight: f64,
    /// For how long the good ones took, in seconds: all, or as many quantiles of them at equal distances.
    #[serde(skip)]
    pub latencies: Vec<f64>,
    /// How it ended.
    pub end: End,
}

impl Measured {
    /// Those let in that came to something.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.good + self.late + self.failed
    }

    /// Those let in that came to nothing good.
    #[must_use]
    pub fn bad(&self) -> u64 {
        self.late + self.failed
    }

    pub(super) fn check(&self) -> Result<(), CapacityError> {
        positive("seconds", self.seconds)?;
        if !(0.0..=1e12).contains(&self.in_flight) {
            return Err(CapacityError::new("in_flight", "a number from 0 to 1e12", self.in_flight));
        }
        for count in [self.offered, self.shed, self.good, self.late, self.failed] {
            if count > 1_000_000_000_000 {
                return Err(CapacityError::new("each count", "a whole number from 0 to 1e12", count));
            }
        }
        if self.shed > self.offered {
            return Err(CapacityError::new("shed", "at most what was offered", self.shed));
        }
        match self.latencies.iter().find(|latency| !(0.0..=1e12).contains(*latency)) {
            Some(wrong) => Err(CapacityError::new("each of latencies", "a number from 0 to 1e12", wrong)),
            None => Ok(()),
        }
    }
}
