//! Between which limits a controller may move, and what it knows beforehand.

use std::time::Duration;

use crate::error::MAX_LIMIT;

/// What a controller must keep to. No controller ever leaves `min..=max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    min: u32,
    max: u32,
    prior: u32,
    objective: Option<Duration>,
}

/// What is said of the bounds; the rest has defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The smallest limit, 1 unless said.
    pub min: Option<u32>,
    /// The largest, [`Choice::MAX`] unless said.
    pub max: Option<u32>,
    /// A limit that a capacity test has shown to hold.
    pub ceiling: Option<u32>,
    /// The limit to start from; unless said the gate's own limit, and where it has none, too, the geometric mean
    /// of the smallest and the largest: as far from either in factors.
    pub prior: Option<u32>,
}

impl Choice {
    /// The largest limit, unless said: as in Netflix's library.
    pub const MAX: u32 = 1_000;

    /// The bounds of a gate with this limit.
    ///
    /// # Errors
    /// [`BoundsError`] when they are not in the order 1, `min`, `prior`, `max`, 2^31 - 1.
    pub fn bounds(self, limit: Option<u32>) -> Result<Bounds, BoundsError> {
        let (min, max) = (self.min.unwrap_or(1), self.max.unwrap_or(Self::MAX));
        let bounds = Bounds::new(min, max, min).or_else(|error| match error {
            // With nobody to blame but the default.
            BoundsError::Min { got, .. } if self.max.is_none() && got > 0 => Bounds::new(got, got, got),
            error => Err(error),
        })?;
        let bounds = self.ceiling.map_or(Ok(bounds), |ceiling| bounds.ceiling(ceiling))?;
        let middle = || bounds.whole((f64::from(bounds.min()) * f64::from(bounds.max())).sqrt().round());
        let start = self.prior.or(limit).unwrap_or_else(middle);
        let start = if self.ceiling.is_some() && start <= max { start.min(bounds.max()) } else { start };
        Bounds::new(bounds.min(), bounds.max(), start)
    }
}

/// A bound that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// A limit of nothing would be seen by nobody, and could never rise again.
    #[error("min must be a whole number from 1 to max ({max}), got {got}")]
    Min {
        /// What was given.
        got: u32,
        /// The largest limit allowed.
        max: u32,
    },
    /// More than a limit can be.
    #[error("max must be a whole number from 1 to {MAX_LIMIT}, got {got}")]
    Max {
        /// What was given.
        got: u32,
    },
    /// A ceiling under the floor.
    #[error("ceiling must be at least min ({min}), got {got}")]
    Ceiling {
        /// What was given.
        got: u32,
        /// The smallest limit allowed.
        min: u32,
    },
    /// A start outside the bounds.
    #[error(
        "the prior, or the limit where there is none, must be from min ({min}) to max ({max}), got {got}"
    )]
    Prior {
        /// What was given.
        got: u32,
        /// The smallest limit allowed.
        min: u32,
        /// The largest limit allowed.
        max: u32,
    },
    /// An objective of no time: no answer would be good.
    #[error("objective must be longer than zero")]
    Objective,
    /// The gate's objective is not the bounds'.
    #[error("a gate has one objective: it has {gate:?}, and its controller's bounds have {bounds:?}")]
    TwoObjectives {
        /// The gate's.
        gate: Duration,
        /// That of the bounds.
        bounds: Duration,
    },
}

impl Bounds {
    /// From `min` to `max`, starting at `prior`.
    ///
    /// # Errors
    /// [`BoundsError`] when they are not in the order 1, `min`, `prior`, `max`, 2^31 - 1.
    pub fn new(min: u32, max: u32, prior: u32) -> Result<Self, BoundsError> {
        if !(1..=MAX_LIMIT).contains(&max) {
            return Err(BoundsError::Max { got: max });
        }
        if !(1..=max).contains(&min) {
            return Err(BoundsError::Min { got: min, max });
        }
        if !(min..=max).contains(&prior) {
            return Err(BoundsError::Prior { got: prior, min, max });
        }
        Ok(Self { min, max, prior, objective: None })
    }

    /// With a ceiling that a capacity test has shown to hold: the limit stays under it, and starts there at
    /// most.
    ///
    /// # Errors
    /// [`BoundsError::Ceiling`] when it is below `min`.
    pub fn ceiling(mut self, ceiling: u32) -> Result<Self, BoundsError> {
        if ceiling < self.min {
            return Err(BoundsError::Ceiling { got: ceiling, min: self.min });
        }
        self.max = self.max.min(ceiling);
        self.prior = self.prior.min(self.max);
        Ok(self)
    }

    /// With the time within which an answer is good. It must be the one by which the gate counts
    /// [`good`](super::Window::good).
    ///
    /// # Errors
    /// [`BoundsError::Objective`] when it is zero.
    pub fn objective(mut self, objective: Duration) -> Result<Self, BoundsError> {
        if objective.is_zero() {
            return Err(BoundsError::Objective);
        }
        self.objective = Some(objective);
        Ok(self)
    }

    /// The smallest limit, at least 1.
    #[must_use]
    pub fn min(&self) -> u32 {
        self.min
    }

    /// The largest limit, the ceiling included.
    #[must_use]
    pub fn max(&self) -> u32 {
        self.max
    }

    /// The limit to start from.
    #[must_use]
    pub fn prior(&self) -> u32 {
        self.prior
    }

    /// The time within which an answer is good.
    pub(crate) fn said_objective(&self) -> Option<Duration> {
        self.objective
    }

    /// With the gate's objective.
    pub(crate) fn for_gate(mut self, objective: Option<Duration>) -> Self {
        self.objective = objective;
        self
    }

    /// Starting at `prior`, which is within the bounds.
    pub(crate) fn starting_at(mut self, prior: u32) -> Self {
        self.prior = prior.clamp(self.min, self.max);
        self
    }

    /// The objective in seconds.
    pub(crate) fn objective_seconds(&self) -> Option<f64> {
        self.objective.map(|objective| objective.as_secs_f64())
    }

    /// A limit within the bounds.
    pub(crate) fn clamp(&self, limit: f64) -> f64 {
        // What is no number says nothing: the lower bound is the safe side.
        if limit.is_nan() {
            return f64::from(self.min);
        }
        limit.clamp(f64::from(self.min), f64::from(self.max))
    }

    /// A whole limit within the bounds.
    pub(crate) fn whole(&self, limit: f64) -> u32 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within 1 to 2^31 - 1
        let whole = self.clamp(limit) as u32;
        whole
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_a_rule_is_named() {
        let says = |result: Result<Bounds, BoundsError>| result.expect_err("broken").to_string();
        assert_eq!(says(Bounds::new(0, 9, 5)), "min must be a whole number from 1 to max (9), got 0");
        assert_eq!(says(Bounds::new(10, 9, 9)), "min must be a whole number from 1 to max (9), got 10");
        assert_eq!(says(Bounds::new(1, 0, 1)), "max must be a whole number from 1 to 2147483647, got 0");
        assert_eq!(
            says(Bounds::new(1, 1 << 31, 1)),
            "max must be a whole number from 1 to 2147483647, got 2147483648"
        );
        assert_eq!(
            says(Bounds::new(4, 9, 3)),
            "the prior, or the limit where there is none, must be from min (4) to max (9), got 3"
        );
        assert_eq!(
            says(Bounds::new(4, 9, 10)),
            "the prior, or the limit where there is none, must be from min (4) to max (9), got 10"
        );
        let bounds = Bounds::new(4, 9, 8).expect("valid");
        assert_eq!(says(bounds.ceiling(3)), "ceiling must be at least min (4), got 3");
        assert_eq!(says(bounds.objective(Duration::ZERO)), "objective must be longer than zero");
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let bounds = |choice: Choice, limit| {
            let bounds = choice.bounds(limit).expect("valid");
            (bounds.min(), bounds.prior(), bounds.max())
        };
        let none = Choice::default();
        assert_eq!(bounds(none, None), (1, 32, 1_000));
        assert_eq!(bounds(none, Some(20)), (1, 20, 1_000));
        assert_eq!(bounds(Choice { min: Some(4), max: Some(200), ..none }, None), (4, 28, 200));
        assert_eq!(bounds(Choice { prior: Some(29), ..none }, Some(20)), (1, 29, 1_000));
        assert_eq!(bounds(Choice { ceiling: Some(10), ..none }, Some(20)), (1, 10, 10));
        assert_eq!(bounds(Choice { min: Some(2_000), ..none }, None), (2_000, 2_000, 2_000));
        for (choice, limit) in [
            (Choice { min: Some(0), ..none }, None),
            (Choice { min: Some(5), max: Some(4), ..none }, None),
            (Choice { min: Some(5), ..none }, Some(4)),
            (none, Some(1_001)),
            (Choice { ceiling: Some(10), ..none }, Some(1_001)),
            (Choice { min: Some(5), ceiling: Some(4), ..none }, None),
        ] {
            assert!(choice.bounds(limit).is_err(), "{choice:?} {limit:?}");
        }
    }

    #[test]
    fn a_ceiling_lowers_max_and_prior_and_never_raises_them() {
        let bounds = Bounds::new(4, 9, 8).expect("valid");
        let low = bounds.ceiling(6).expect("valid");
        assert_eq!((low.max(), low.prior()), (6, 6));
        let high = bounds.ceiling(60).expect("valid");
        assert_eq!((high.max(), high.prior()), (9, 8));
    }

    #[test]
    fn limits_stay_within_whatever_is_computed() {
        let bounds = Bounds::new(4, 9, 8).expect("valid");
        for (limit, whole) in
            [(f64::NAN, 4), (f64::INFINITY, 9), (f64::NEG_INFINITY, 4), (5.9, 5), (0.0, 4), (1e300, 9)]
        {
            assert_eq!(bounds.whole(limit), whole, "{limit}");
        }
    }
}
