//! An exponential average over uneven steps. Pure.
//!
//! The first sample is the average: an average that starts at zero calls a machine idle that has been busy since
//! before anybody looked. After that a sample weighs `alpha = 1 - exp(-dt / tau)` by the time since the one
//! before, so that it does not matter how often somebody asks. (A fixed alpha, as go-zero and Kratos have it,
//! needs a timer that is never late.)

use std::time::Duration;

/// An average with the time constant `tau`: after it, 63 % of a change is in.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    tau: f64,
    value: Option<f64>,
}

impl Average {
    /// Nothing seen yet. With a `tau` of zero the average is the latest sample.
    #[must_use]
    pub fn new(tau: Duration) -> Self {
        Self { tau: tau.as_secs_f64(), value: None }
    }

    /// Takes in a sample that stands for the last `elapsed`, and answers the average. What is not finite is
    /// not taken in.
    pub fn add(&mut self, sample: f64, elapsed: Duration) -> Option<f64> {
        if sample.is_finite() {
            self.value = Some(match self.value {
                None => sample,
                Some(before) => before + self.alpha(elapsed) * (sample - before),
            });
        }
        self.value
    }

    fn alpha(&self, elapsed: Duration) -> f64 {
        if self.tau > 0.0 { -(-elapsed.as_secs_f64() / self.tau).exp_m1() } else { 1.0 }
    }

    /// The average, once there was a sample.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_first_sample_is_the_average() {
        let mut average = Average::new(SECOND);
        assert_eq!(average.value(), None);
        assert_eq!(average.add(0.9, Duration::ZERO), Some(0.9));
    }

    #[test]
    fn after_tau_63_percent_of_a_step_is_in_however_often_it_was_asked() {
        let expected = 1.0 - (-1.0f64).exp();
        for steps in [1u32, 4, 1_000] {
            let mut average = Average::new(SECOND);
            average.add(0.0, Duration::ZERO);
            for _ in 0..steps {
                average.add(1.0, SECOND / steps);
            }
            let value = average.value().unwrap();
            assert!((value - expected).abs() < 1e-6, "{value} after {steps} steps");
        }
    }

    #[test]
    fn after_a_long_gap_only_the_new_sample_counts() {
        let mut average = Average::new(SECOND);
        average.add(1.0, Duration::ZERO);
        assert!(average.add(0.25, Duration::from_secs(3_600)).unwrap() - 0.25 < 1e-12);
        assert_eq!(Average::new(Duration::ZERO).add(0.5, Duration::ZERO), Some(0.5));
    }

    #[test]
    fn what_is_not_finite_changes_nothing() {
        let mut average = Average::new(SECOND);
        average.add(0.5, Duration::ZERO);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(average.add(bad, SECOND), Some(0.5));
        }
    }
}
