//! What is believed about the slope, and how sure: a Kalman filter of three numbers.
//!
//! - `slope`: d log(good answers a second) / d log(in flight) at the centre. Above 0 more concurrency pays.
//! - `bend`: how much the slope falls when the centre rises by one in logarithms. For the universal scalability
//!   law at its best limit it is 2 / (2 + sigma / sqrt(kappa)), 0.5 to 1; a cliff has more, a plateau none.
//! - `bias`: by how much the quick measure of the slope lies above the true one, where some kinds of request
//!   suffer from load and others do not.
//!
//! A step of the centre moves the slope by -bend times the step, which is linear, so the filter carries over
//! what it knew before the step, with a variance that says how well (R. E. Kalman, "A new approach to linear
//! filtering and prediction problems", 1960).

/// Slope, bend and bias with their covariances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    mean: [f64; 3],
    covariance: [[f64; 3]; 3],
}

const SLOPE: usize = 0;
const BEND: usize = 1;
const BIAS: usize = 2;

/// At first: nothing speaks for more or for less.
const MEAN: [f64; 3] = [0.0, 0.7, 0.0];
const VARIANCE: [f64; 3] = [0.5, 0.1, 0.001];
/// What may have changed in a cycle.
const WANDER: [f64; 3] = [0.004, 0.002, 0.0004];
/// Bends that steps are computed from.
const BENDS: std::ops::RangeInclusive<f64> = 0.5..=4.0;
/// Slopes of more are noise.
const STEEPEST: f64 = 3.0;
/// The slope is never less certain than this.
const MOST_DOUBT: f64 = 1.0;
/// In variances: what is further from the expected means that the expected is out of date.
const SURPRISE: f64 = 9.0;

impl Estimate {
    pub(super) fn new() -> Self {
        let mut covariance = [[0.0; 3]; 3];
        for (i, variance) in VARIANCE.into_iter().enumerate() {
            covariance[i][i] = variance;
        }
        Self { mean: MEAN, covariance }
    }

    pub(super) fn slope(&self) -> f64 {
        self.mean[SLOPE]
    }

    pub(super) fn variance(&self) -> f64 {
        self.covariance[SLOPE][SLOPE]
    }

    pub(super) fn bend(&self) -> f64 {
        self.mean[BEND].clamp(*BENDS.start(), *BENDS.end())
    }

    /// A cycle has passed.
    pub(super) fn age(&mut self) {
        for (i, (wander, most)) in WANDER.into_iter().zip(VARIANCE).enumerate() {
            let variance = &mut self.covariance[i][i];
            if *variance < most {
                *variance = (*variance + wander).min(most);
            }
        }
    }

    /// More does not pay, as far as is known.
    pub(super) fn no_more(&mut self) {
        self.mean[SLOPE] = self.mean[SLOPE].min(0.0);
    }

    /// What was known is in doubt.
    pub(super) fn doubt(&mut self, variance: f64) {
        let known = &mut self.covariance[SLOPE][SLOPE];
        *known = (*known + variance).min(MOST_DOUBT.max(*known));
    }

    /// Kinds of request may suffer differently: the quick measure may be wrong by this much, squared.
    pub(super) fn distrust(&mut self, variance: f64) {
        let known = &mut self.covariance[BIAS][BIAS];
        *known = known.max(variance);
    }

    /// The quick measure of the slope came out at `slope`, with this variance.
    pub(super) fn see_quick(&mut self, slope: f64, variance: f64, offset: f64) {
        let slope = slope.clamp(-STEEPEST, STEEPEST);
        let by = [1.0, -offset, 1.0];
        let surprise = (slope - dot(&self.mean, &by)).powi(2);
        if surprise > SURPRISE * (dot(&self.along(&by), &by) + variance) {
            self.doubt(surprise / 4.0);
        }
        self.update(by, slope, variance);
    }

    /// The slope as counted came out at `slope`, with this variance.
    pub(super) fn see_counted(&mut self, slope: f64, variance: f64, offset: f64) {
        self.update([1.0, -offset, 0.0], slope.clamp(-STEEPEST, STEEPEST), variance);
    }

    /// From the last centre to this one, `rise` higher in logarithms, the slope was this on average: it is that
    /// in the middle.
    pub(super) fn see_secant(&mut self, slope: f64, variance: f64, rise: f64) {
        self.update([1.0, rise / 2.0, 0.0], slope.clamp(-STEEPEST, STEEPEST), variance);
    }

    /// The centre was moved by `step` in logarithms.
    pub(super) fn moved(&mut self, step: f64) {
        self.mean[SLOPE] -= self.bend() * step;
        // F covariance F', F the identity but for F[slope][bend] = -step.
        let bends = self.covariance[BEND];
        for (column, bend) in bends.into_iter().enumerate() {
            self.covariance[SLOPE][column] -= step * bend;
        }
        for row in &mut self.covariance {
            row[SLOPE] -= step * row[BEND];
        }
    }

    fn along(&self, by: &[f64; 3]) -> [f64; 3] {
        self.covariance.map(|row| dot(&row, by))
    }

    fn update(&mut self, by: [f64; 3], seen: f64, variance: f64) {
        let along = self.along(&by);
        let total = dot(&along, &by) + variance;
        let surprise = seen - dot(&self.mean, &by);
        for i in 0..3 {
            self.mean[i] += along[i] / total * surprise;
            for j in 0..3 {
                self.covariance[i][j] -= along[i] * along[j] / total;
            }
        }
    }
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn evidence_moves_the_slope_and_makes_it_surer() {
        let mut estimate = Estimate::new();
        estimate.see_counted(-0.5, 0.1, 0.0);
        // Prior 0 with variance 0.5, seen -0.5 with 0.1: -0.5 * 0.5 / 0.6, variance 0.5 * 0.1 / 0.6.
        assert!((estimate.slope() + 0.416_666).abs() < 1e-5, "{estimate:?}");
        assert!((estimate.variance() - 0.083_333).abs() < 1e-5, "{estimate:?}");
    }

    #[test]
    fn a_step_to_where_the_slope_should_be_nil_makes_it_nil_and_less_sure() {
        let mut estimate = Estimate::new();
        estimate.see_counted(0.7, 1e-6, 0.0);
        let sure = estimate.variance();
        estimate.moved(estimate.slope() / estimate.bend());
        assert!(estimate.slope().abs() < 1e-9, "{estimate:?}");
        assert!((estimate.variance() - sure - 0.1).abs() < 1e-3, "a step of one brings the bend's variance");
    }

    #[test]
    fn a_bend_is_learnt_from_what_a_step_did() {
        let mut estimate = Estimate::new();
        estimate.see_counted(0.6, 1e-4, 0.0);
        estimate.moved(0.5);
        estimate.see_counted(-1.4, 1e-4, 0.0); // fell by 2 in half a step: a bend of 4
        assert!(estimate.bend() > 3.0, "{estimate:?}");
    }

    #[test]
    fn where_the_measures_disagree_the_count_is_right_and_the_rest_is_bias() {
        let mut estimate = Estimate::new();
        estimate.distrust(0.25);
        for _ in 0..40 {
            estimate.see_quick(0.5, 0.02, 0.0);
            estimate.see_counted(-0.3, 0.1, 0.0);
        }
        assert!((estimate.slope() + 0.3).abs() < 0.1, "{estimate:?}");
    }

    #[test]
    fn a_surprise_makes_the_news_count_more() {
        let mut sure = Estimate::new();
        for _ in 0..20 {
            sure.see_quick(0.0, 0.01, 0.0);
        }
        let mut hardly = sure;
        hardly.see_quick(-0.2, 0.01, 0.0);
        let mut much = sure;
        much.see_quick(-2.0, 0.01, 0.0);
        assert!(hardly.slope() > -0.1, "{hardly:?}");
        assert!(much.slope() < -1.5, "{much:?}");
    }
}
