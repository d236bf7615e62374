//! From what is believed to where to go, and where to look around.

use super::estimate::Estimate;
use crate::controller::Bounds;

/// How far the arms of an experiment are from the centre, in logarithms: this much of how uncertain it is where
/// the best limit lies,
const REACH: f64 = 0.5;
/// and no less or more than this. Where it is more than
const NEAR: f64 = 0.1;
/// one arm stays as near.
const REACHES: std::ops::RangeInclusive<f64> = 0.08..=0.2;
/// A slope of less is not worth the latency: on a plateau the limit comes down to where it begins.
const THRIFT: f64 = 0.04;
/// The largest steps, in logarithms.
const UP: f64 = std::f64::consts::LN_2;
const DOWN: f64 = 1.0;
/// A slope below this has an edge between the arms: no smooth law falls so steeply. A long step would only lead
/// away from it.
const EDGE: f64 = -1.0;
const DOWN_FROM_EDGE: f64 = 0.3;

/// How far to move the centre, in logarithms: to where the slope should be nil, less the less sure it is.
pub(super) fn step(estimate: &Estimate) -> f64 {
    let slope = estimate.slope() - THRIFT;
    let trust = slope.powi(2) / (slope.powi(2) + estimate.variance());
    let down = if slope < EDGE { DOWN_FROM_EDGE } else { DOWN };
    (trust * slope / estimate.bend()).clamp(-down, UP)
}

/// How far to look around, in logarithms.
pub(super) fn reach(estimate: &Estimate) -> f64 {
    (REACH * estimate.variance().sqrt() / estimate.bend()).clamp(*REACHES.start(), *REACHES.end())
}

/// The raised and the lowered limit around `centre`: whole permits, one apart at least where the bounds allow.
/// What reaches far does so to where the best limit is thought to be.
pub(super) fn arms(centre: f64, reach: f64, slope: f64, bounds: Bounds) -> (u32, u32) {
    let near = reach.min(NEAR);
    let far = 2.0 * reach - near;
    let (down, up) = if slope > 0.0 { (near, far) } else { (far, near) };
    let low = (centre * (-down).exp()).min(centre - 0.5).round();
    let low = bounds.whole(low.min(f64::from(bounds.max()) - 1.0));
    let high = (centre * up.exp()).max(centre + 0.5).round();
    let high = bounds.whole(high.max(f64::from(low) + 1.0));
    (high, low)
}

/// Half the difference of the arms, in logarithms.
pub(super) fn contrast((high, low): (u32, u32)) -> f64 {
    (f64::from(high) / f64::from(low)).ln() / 2.0
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn arms_are_a_tenth_away_or_one_permit_and_within_the_bounds() {
        let bounds = Bounds::new(1, 200, 10).expect("valid");
        for (centre, high, low) in
            [(1.0, 2, 1), (2.0, 3, 2), (3.4, 4, 3), (42.0, 46, 38), (200.0, 200, 181), (199.5, 200, 181)]
        {
            assert_eq!(arms(centre, 0.1, 0.0, bounds), (high, low), "around {centre}");
        }
        let narrow = Bounds::new(7, 7, 7).expect("valid");
        assert_eq!(arms(7.0, 0.1, 0.0, narrow), (7, 7));
        let pair = Bounds::new(7, 8, 7).expect("valid");
        assert_eq!(arms(8.0, 0.1, 0.0, pair), (8, 7));
    }

    #[test]
    fn unsure_steps_are_short_and_no_step_is_longer_than_double() {
        let mut estimate = Estimate::new();
        let unsure = step(&estimate);
        estimate.see_counted(0.3, 1e-3, 0.0);
        assert!(step(&estimate) > 2.0 * unsure, "{unsure} and {}", step(&estimate));
        estimate.see_counted(3.0, 1e-6, 0.0);
        assert!((step(&estimate) - UP).abs() < 1e-12);
        estimate.see_counted(-0.9, 1e-9, 0.0);
        assert!((step(&estimate) + DOWN).abs() < 1e-12);
        estimate.see_counted(-3.0, 1e-12, 0.0);
        assert!((step(&estimate) + DOWN_FROM_EDGE).abs() < 1e-12);
    }

    #[test]
    fn on_a_plateau_it_goes_down() {
        let mut estimate = Estimate::new();
        estimate.see_counted(0.0, 1e-9, 0.0);
        assert!(step(&estimate) < -0.01);
    }
}
