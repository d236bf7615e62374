//! One experiment: four windows at a raised, a lowered, a lowered and a raised limit.
//!
//! The order A B B A cancels what changes linearly meanwhile and needs two changes of the limit, not four. The
//! two windows at the same limit tell whether something else changed: then the experiment says nothing.
//!
//! Two measures of the slope come out. The *counted* one is from good answers a second, which is what matters;
//! where a few requests are fifty times the rest, it is so noisy that hours would not do. The *quick* one is from
//! typical latencies: a place earns one answer per latency, so in flight over latency is the rate (Little), and
//! the geometric mean of latencies hardly notices the few. It is true only if all kinds of request suffer alike.

use crate::controller::window::Window;

/// In flight must differ by this much in logarithms, else the difference is taken for it.
const LEAST_CONTRAST: f64 = 0.03;
/// More variances between equal limits are a change from outside.
const UNSTEADY: f64 = 16.0;
/// Completions are not quite independent: so much more noise than if they were.
const DEPENDENCE: f64 = 1.3;
/// Latencies that are all alike still have this variance in their logarithms.
const LEAST_NOISE: f64 = 0.02;

/// What one window came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arm {
    /// Logarithm of the time average of in flight,
    in_flight: f64,
    /// of the share of good answers over the typical latency: what one place earns,
    place: f64,
    /// and of good answers a second.
    counted: f64,
    count: f64,
}

impl Arm {
    pub(super) fn of(window: &Window) -> Self {
        let good = window.good_share().max(1e-9);
        Self {
            in_flight: window.in_flight().max(1e-9).ln(),
            place: (good / window.typical_latency()).ln(),
            counted: (window.count() * good / window.elapsed()).max(1e-9).ln(),
            count: window.count().max(1.0),
        }
    }

    /// Logarithm of what all places earn, by the quick measure.
    pub(super) fn earned(&self) -> f64 {
        self.in_flight + self.place
    }

    /// The slope from `before` to here as counted, with its variance, where latencies vary by `variation` and
    /// `drift` is what else may have changed; and the way from there in logarithms. None where it is too short.
    pub(super) fn secant(&self, before: &Self, variation: f64, drift: f64) -> Option<(f64, f64, f64)> {
        const SHORTEST: f64 = 0.3;
        let rise = self.in_flight - before.in_flight;
        let noise = variation * (1.0 / self.count + 1.0 / before.count) + drift * drift;
        (rise.abs() > SHORTEST).then(|| ((self.counted - before.counted) / rise, noise / rise.powi(2), rise))
    }
}

/// What a cycle says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    /// The slope, by the quick measure,
    pub(super) quick: f64,
    /// with this variance.
    pub(super) quick_variance: f64,
    /// The slope as counted,
    pub(super) counted: f64,
    /// with this variance.
    pub(super) counted_variance: f64,
    /// How many times its variance the difference between equal limits is, at most.
    excess: f64,
}

impl Finding {
    /// Whether the windows at equal limits agree.
    pub(super) fn is_steady(&self) -> bool {
        self.excess < UNSTEADY
    }

    /// The same, with the noise that the disagreement shows.
    pub(super) fn doubted(self) -> Self {
        let factor = self.excess.max(1.0);
        Self {
            quick_variance: self.quick_variance * factor,
            counted_variance: self.counted_variance * factor,
            ..self
        }
    }
}

/// Compares the four windows; `all` is their sum, `variation` the squared coefficient of variation of latencies.
pub(super) fn conclude(arms: &[Arm; 4], all: &Window, variation: f64) -> Finding {
    let [a, b, c, d] = arms;
    let contrast = (a.in_flight + d.in_flight - b.in_flight - c.in_flight) / 2.0;
    let contrast = contrast.max(LEAST_CONTRAST);
    let slope = |get: fn(&Arm) -> f64| (get(a) + get(d) - get(b) - get(c)) / (2.0 * contrast);
    let count = 4.0 / arms.iter().map(|arm| 1.0 / arm.count).sum::<f64>();
    let good = all.good_share().max(0.1);
    // Of the logarithm of a latency, and of the share of good ones.
    let noise = DEPENDENCE * (all.log_variance().max(LEAST_NOISE) + (1.0 - good) / good) / count;
    let apart = |x: &Arm, y: &Arm| (x.place - y.place).powi(2) / 2.0;
    Finding {
        quick: slope(Arm::earned),
        quick_variance: noise / contrast.powi(2),
        counted: slope(|arm| arm.counted),
        // Twice: the two measures share part of their noise.
        counted_variance: 2.0 * variation / (count * contrast.powi(2)),
        excess: apart(a, d).max(apart(b, c)) / noise,
    }
}

/// Whether those who came out account for what was inside, by Little's law. If not, long requests are inside
/// that came out neither now nor ever before, and what was counted is the quick ones' alone.
pub(super) fn is_accounted(all: &Window) -> bool {
    const OFF: f64 = 0.15;
    (all.in_flight_seconds / (all.latency_sum * all.mean_weight())).ln().abs() < OFF
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    /// A window at `in_flight` with `count` completions of `latency_ms` and as long as Little's law says.
    fn window(in_flight: f64, count: u64, latency_ms: u64) -> Window {
        let mut window = Window::default();
        for _ in 0..count {
            window.complete(latency_ms * 1_000_000, true, false);
        }
        window.in_flight_seconds = window.latency_sum;
        window.elapsed_ns = crate::controller::window::nanoseconds(window.latency_sum / in_flight);
        window
    }

    fn finding(windows: &[Window; 4]) -> Finding {
        let mut all = Window::default();
        for window in windows {
            all.append(window);
        }
        conclude(&windows.each_ref().map(Arm::of), &all, 1.0)
    }

    #[test]
    fn the_slope_is_of_answers_over_in_flight() {
        // A fifth more in flight, the same latency: as much more comes out.
        let (up, down) = (window(12.0, 60, 100), window(10.0, 60, 100));
        let flat = finding(&[up, down, down, up]);
        assert!((flat.quick - 1.0).abs() < 1e-6 && (flat.counted - 1.0).abs() < 1e-6, "{flat:?}");
        // A fifth more latency: nothing more comes out.
        let up = window(12.0, 60, 120);
        let nil = finding(&[up, down, down, up]);
        assert!(nil.quick.abs() < 1e-6 && nil.counted.abs() < 1e-6 && nil.is_steady(), "{nil:?}");
    }

    #[test]
    fn what_changes_evenly_cancels_and_what_jumps_is_noticed() {
        let drifts = finding(&[
            window(12.0, 60, 100),
            window(10.0, 60, 102),
            window(10.0, 60, 104),
            window(12.0, 60, 106),
        ]);
        assert!((drifts.quick - 1.0).abs() < 0.01 && drifts.is_steady(), "{drifts:?}");
        let jumps = finding(&[
            window(12.0, 60, 100),
            window(10.0, 60, 100),
            window(10.0, 60, 100),
            window(12.0, 60, 200),
        ]);
        assert!(!jumps.is_steady(), "{jumps:?}");
        assert!(jumps.doubted().quick_variance > 16.0 * jumps.quick_variance);
    }

    #[test]
    fn long_ones_that_are_still_inside_make_the_count_no_evidence() {
        let mut window = window(10.0, 60, 100);
        assert!(is_accounted(&window));
        window.in_flight_seconds *= 1.2;
        assert!(!is_accounted(&window));
        assert!(!is_accounted(&Window::default()));
    }

    #[test]
    fn a_secant_needs_a_way() {
        let (near, far) = (Arm::of(&window(10.0, 60, 100)), Arm::of(&window(20.0, 60, 200)));
        assert!(near.secant(&near, 1.0, 0.1).is_none());
        let (slope, variance, rise) = far.secant(&near, 1.0, 0.1).expect("double");
        assert!(slope.abs() < 1e-6 && (rise - 2.0_f64.ln()).abs() < 1e-6);
        assert!((variance - (2.0 / 60.0 + 0.01) / rise.powi(2)).abs() < 1e-9);
    }
}
