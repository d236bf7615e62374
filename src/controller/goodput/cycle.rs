//! One experiment: four windows at a raised, a lowered, a lowered and a raised limit.
//!
//! The order A B B A cancels what changes linearly meanwhile and needs two changes of the limit, not four. The
//! two windows at the same limit tell how noisy the measure is, and whether something else changed: then the
//! experiment says nothing.

use crate::controller::window::Window;

/// What one window came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arm {
    /// Logarithm of the time average of in flight.
    in_flight: f64,
    /// Logarithm of in flight over the typical latency, times the share of good answers: what a place earns
    /// times places, if all requests suffer alike.
    quick: f64,
    /// Logarithm of good answers a second.
    counted: f64,
    count: f64,
}

impl Arm {
    pub(super) fn quick(&self) -> f64 {
        self.quick
    }

    pub(super) fn of(window: &Window) -> Self {
        let in_flight = window.in_flight().max(1e-9).ln();
        let good = window.good_share().max(1e-9);
        Self {
            in_flight,
            quick: in_flight - window.typical_latency().clamp(1e-9, 1e9).ln() + good.ln(),
            counted: (window.count() * good / window.elapsed()).max(1e-9).ln(),
            count: window.count().max(1.0),
        }
    }
}

/// What a cycle says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    /// The slope, by the quick measure,
    pub(super) quick: f64,
    /// with this variance.
    pub(super) variance: f64,
    /// The slope as counted,
    pub(super) counted: f64,
    /// with this variance for each unit of squared variation of latencies.
    pub(super) per_variation: f64,
    /// Whether the windows at equal limits agree.
    pub(super) steady: bool,
}

/// In flight must differ by this much in logarithms, else the difference is taken for it.
const LEAST_CONTRAST: f64 = 0.03;
/// At equal limits, more standard deviations are a change from outside.
const UNSTEADY: f64 = 4.0;
pub(super) fn conclude(arms: &[Arm; 4], noise: f64) -> Finding {
    let [a, b, c, d] = arms;
    let contrast = (a.in_flight + d.in_flight - b.in_flight - c.in_flight) / 2.0;
    let contrast = contrast.max(LEAST_CONTRAST);
    let slope = |get: fn(&Arm) -> f64| (get(a) + get(d) - get(b) - get(c)) / (2.0 * contrast);
    let count = 4.0 / arms.iter().map(|arm| 1.0 / arm.count).sum::<f64>();
    let one = noise / count;
    // In flight is known exactly, so only what is measured at it can disagree.
    let apart = |x: &Arm, y: &Arm| ((x.quick - y.quick) - (x.in_flight - y.in_flight)).powi(2) / 2.0;
    let (outer, inner) = (apart(a, d), apart(b, c));
    let steady = outer.max(inner) < UNSTEADY.powi(2) * one;
    Finding {
        quick: slope(|arm| arm.quick),
        variance: one / contrast.powi(2),
        counted: slope(|arm| arm.counted),
        per_variation: 1.0 / (count * contrast.powi(2)),
        steady,
    }
}
