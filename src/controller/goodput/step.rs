//! From what is believed to where to go.

use super::estimate::Estimate;

/// A slope of less is not worth the latency: on a plateau the limit comes down to where it begins.
const THRIFT: f64 = 0.04;
/// The largest steps, in logarithms.
const UP: f64 = std::f64::consts::LN_2;
const DOWN: f64 = 1.0;

/// How far to move the centre, in logarithms: to where the slope should be nil, less the less sure it is.
pub(super) fn step(estimate: &Estimate) -> f64 {
    let slope = estimate.slope() - THRIFT;
    let trust = slope.powi(2) / (slope.powi(2) + estimate.variance());
    let down = if slope < -1.0 { super::env("CLIFF", 0.3) } else { DOWN };
    (trust * slope / estimate.bend()).clamp(-down, UP)
}

/// Whether the best limit is surely far from here, so that a quick look is enough.
pub(super) fn is_far(estimate: &Estimate) -> bool {
    estimate.slope().powi(2) > (4.0 * estimate.variance()).max(0.0625)
}

/// The raised and the lowered limit around `centre`: a tenth up and down, and whole permits.
pub(super) fn arms(centre: f64, reach: f64, min: f64, max: f64) -> (f64, f64) {
    let half = (centre * reach).max(0.5);
    let low = (centre - half).round().clamp(min, (max - 1.0).max(min));
    let high = (centre + half).round().max(low + 1.0).min(max);
    (high, low)
}
