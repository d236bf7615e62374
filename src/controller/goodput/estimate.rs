//! What is believed about the slope, and how sure: a Kalman filter of three numbers.
//!
//! - `slope`: d log(good answers a second) / d log(in flight) at the centre. Above 0 more concurrency pays.
//! - `bend`: how much the slope falls when the centre rises by one in logarithms. For the universal scalability
//!   law at its best limit it is 2 / (2 + sigma / sqrt(kappa)), 0.5 to 1; a cliff has more, a plateau none.
//! - `bias`: by how much the quick measure of the slope (from typical latencies) lies above the true one (from
//!   counts), where some kinds of request suffer from load and others do not.
//!
//! A step of the centre moves the slope by -bend times the step, which is linear, so the filter carries over
//! what it knew before the step, with a variance that says how well.

/// Slope, bend and bias with their covariances.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) mean: [f64; 3],
    pub(super) cov: [[f64; 3]; 3],
}

const SLOPE: usize = 0;
const BEND: usize = 1;
const BIAS: usize = 2;

/// At first: more pays a little, which is true of any limit that is too low.
const MEAN: [f64; 3] = [0.3, 0.7, 0.0];
const VARIANCE: [f64; 3] = [0.5, 0.1, 0.001];
/// What may have changed in a cycle.
const WANDER: [f64; 3] = [0.004, 0.002, 0.0004];
/// Bends that steps are computed from.
const BENDS: std::ops::RangeInclusive<f64> = 0.5..=4.0;
/// Slopes of more are noise.
const STEEPEST: f64 = 3.0;

impl Estimate {
    pub(super) fn new() -> Self {
        let mut cov = [[0.0; 3]; 3];
        for (i, variance) in VARIANCE.into_iter().enumerate() {
            cov[i][i] = variance;
        }
        Self { mean: MEAN, cov }
    }

    pub(super) fn slope(&self) -> f64 {
        self.mean[SLOPE]
    }

    pub(super) fn variance(&self) -> f64 {
        self.cov[SLOPE][SLOPE]
    }

    pub(super) fn bend(&self) -> f64 {
        self.mean[BEND].clamp(*BENDS.start(), *BENDS.end())
    }

    /// Time has passed.
    pub(super) fn age(&mut self) {
        for (i, (wander, most)) in WANDER.into_iter().zip(VARIANCE).enumerate() {
            self.cov[i][i] = (self.cov[i][i] + wander).min(most.max(self.cov[i][i]));
        }
    }

    /// What was known is in doubt.
    pub(super) fn doubt(&mut self, variance: f64) {
        self.cov[SLOPE][SLOPE] = (self.cov[SLOPE][SLOPE] + variance).min(1.0);
    }

    /// The quick measure of the slope came out at `slope`, with this variance.
    pub(super) fn see_quick(&mut self, slope: f64, variance: f64) {
        let slope = slope.clamp(-STEEPEST, STEEPEST);
        let expected = self.mean[SLOPE] + self.mean[BIAS];
        let certain = self.cov[SLOPE][SLOPE] + 2.0 * self.cov[SLOPE][BIAS] + self.cov[BIAS][BIAS];
        let surprise = (slope - expected).powi(2);
        if surprise > 9.0 * (certain + variance) {
            self.doubt(surprise / 4.0);
        }
        self.update([1.0, 0.0, 1.0], slope, variance);
    }

    /// The slope as counted came out at `slope`, with this variance.
    pub(super) fn see_counted(&mut self, slope: f64, variance: f64) {
        self.update([1.0, 0.0, 0.0], slope.clamp(-STEEPEST, STEEPEST), variance);
    }

    /// From the last centre to this one, `rise` higher in logarithms, the slope was this on average: it is that
    /// in the middle.
    pub(super) fn see_secant(&mut self, slope: f64, rise: f64, variance: f64) {
        self.update([1.0, rise / 2.0, 0.0], slope.clamp(-STEEPEST, STEEPEST), variance);
    }

    /// Latencies of different kinds may suffer differently: the quick measure may be wrong by this much, squared.
    pub(super) fn may_be_biased(&mut self, variance: f64) {
        self.cov[BIAS][BIAS] = self.cov[BIAS][BIAS].max(variance);
    }

    /// The centre was moved by `step` in logarithms.
    pub(super) fn moved(&mut self, step: f64) {
        self.mean[SLOPE] -= self.bend() * step;
        // F cov F', F the identity but for F[slope][bend] = -step.
        for column in 0..3 {
            self.cov[SLOPE][column] -= step * self.cov[BEND][column];
        }
        for row in 0..3 {
            self.cov[row][SLOPE] -= step * self.cov[row][BEND];
        }
    }

    fn update(&mut self, by: [f64; 3], seen: f64, variance: f64) {
        let dot = |row: &[f64; 3]| row.iter().zip(by).map(|(a, b)| a * b).sum::<f64>();
        let along = self.cov.map(|row| dot(&row));
        let total = dot(&along) + variance;
        let surprise = seen - dot(&self.mean);
        for i in 0..3 {
            self.mean[i] += along[i] / total * surprise;
            for j in 0..3 {
                self.cov[i][j] -= along[i] * along[j] / total;
            }
        }
    }
}
