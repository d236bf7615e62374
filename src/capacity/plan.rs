//! What a capacity test is told.

use super::fault::{CapacityError, positive};

/// Largest limit of a sweep.
const MOST_LIMIT: u32 = 1_000_000;
/// Most rates of a ramp.
const MOST_RATES: usize = 1_000;

/// What a capacity test is told: times in seconds, rates a second.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// What an answer may take.
    pub timeout: f64,
    /// For how long a stage of the ramp is measured, after its warm-up.
    pub stage: f64,
    /// For how long a limit of the sweep is measured, after its warm-up.
    pub cell: f64,
    /// What passes before anything counts.
    pub warm_up: f64,
    /// The first rate of the ramp; `None`: twice what one alone does.
    pub start_rate: Option<f64>,
    /// The rates of the ramp, instead of doubling; 0 is a pause.
    pub rates: Vec<f64>,
    /// Whether to look for the breaking point between the last rate that held and the first that did not.
    pub bisect: bool,
    /// The highest rate that may be offered where no gate stands before the target, or accepted.
    pub max_rate: Option<f64>,
    /// The highest limit that the sweep may try.
    pub max_limit: u32,
    /// How many times the breaking point is offered to the gate.
    pub overload: f64,
    /// How many times as high as its lower end the upper end of the breaking point may be, less one.
    pub width: f64,
    /// The share of requests that are essential; they are to keep their success under the overload.
    pub essential: Option<f64>,
    /// The rate that is to be sustained behind the gate.
    pub accept: Option<f64>,
    /// Whether to offer the overload without a gate, too.
    pub before: bool,
    /// Whether to prove what is recommended.
    pub prove: bool,
    /// Of the bootstrap.
    pub seed: u64,
}

impl Plan {
    /// A test for requests with this timeout, whose stages, with their warm-ups of one timeout, take five.
    #[must_use]
    pub fn new(timeout: f64) -> Self {
        Self {
            timeout,
            stage: 4.0 * timeout,
            cell: 4.0 * timeout,
            warm_up: timeout,
            start_rate: None,
            rates: Vec::new(),
            bisect: true,
            max_rate: None,
            max_limit: 512,
            overload: 1.6,
            width: 0.12,
            essential: None,
            accept: None,
            before: false,
            prove: true,
            seed: 1,
        }
    }

    /// Says whether it can be used.
    ///
    /// # Errors
    /// [`CapacityError`]: the first value that breaks a rule.
    pub fn check(&self) -> Result<(), CapacityError> {
        positive("timeout", self.timeout)?;
        positive("stage", self.stage)?;
        positive("cell", self.cell)?;
        if !(0.0..=1e9).contains(&self.warm_up) {
            return Err(CapacityError::new("warm_up", "a number from 0 to 1e9", self.warm_up));
        }
        for (name, rate) in
            [("start_rate", self.start_rate), ("max_rate", self.max_rate), ("accept", self.accept)]
        {
            rate.map_or(Ok(()), |rate| positive(name, rate))?;
        }
        if self.rates.len() > MOST_RATES {
            let rule = format!("at most {MOST_RATES}");
            return Err(CapacityError::new("the number of rates", rule, self.rates.len()));
        }
        for rate in self.rates.iter().filter(|rate| **rate != 0.0) {
            positive("each of rates", *rate)?;
        }
        if !self.rates.is_sorted() {
            return Err(CapacityError::new("rates", "in rising order", format!("{:?}", self.rates)));
        }
        if let (Some(most), Some(rate)) = (self.max_rate, self.start_rate.or(self.rates.last().copied())) {
            if rate > most {
                return Err(CapacityError::new("each rate of the ramp", format!("at most {most}"), rate));
            }
        }
        if let (Some(most), Some(rate)) = (self.max_rate, self.accept) {
            if rate > most {
                return Err(CapacityError::new("accept", format!("at most max_rate, {most}"), rate));
            }
        }
        if !(1..=MOST_LIMIT).contains(&self.max_limit) {
            let rule = format!("a whole number from 1 to {MOST_LIMIT}");
            return Err(CapacityError::new("max_limit", rule, self.max_limit));
        }
        if !(self.overload > 1.0 && self.overload <= 100.0) {
            return Err(CapacityError::new("overload", "a number above 1, at most 100", self.overload));
        }
        if !(0.001..=10.0).contains(&self.width) {
            return Err(CapacityError::new("width", "a number from 0.001 to 10", self.width));
        }
        match self.essential {
            Some(share) if !(share > 0.0 && share < 1.0) => {
                Err(CapacityError::new("essential", "a share above 0 and below 1", share))
            }
            _ => Ok(()),
        }
    }
}
