//! What a gate in front of the measured curve sheds, and so the rate that it takes and the threshold that keeps
//! room for what is essential. Pure.
//!
//! One that finds n inside is a step of a birth-death chain whose deaths come at the measured throughput of n. For
//! one priority the shed share is exact whatever the sizes are (a queue with state-dependent processor sharing is
//! insensitive to them: Kelly, "Reversibility and Stochastic Networks", 1979, chapter 3); with thresholds it is
//! exact for exponential ones.

use serde::Serialize;

use super::curve::Curve;
use crate::chain::Chain;
use crate::priority::PPM_ONE;

/// The share that may be shed at the recommended rate, and of what is essential.
pub(super) const SHED_SHARE: f64 = 0.01;
/// How finely a rate is found.
const HALVINGS: u32 = 30;

/// The share that `limit` turns away of `rate` a second, by Erlang's recursion with the throughput of n in place of n
/// servers: a limit of n sheds as often as the chain is in its last state, and that follows from the one before.
pub(super) fn shed(curve: &Curve, limit: u32, rate: f64) -> f64 {
    (1..=limit).map(f64::from).fold(1.0, |shed, inside| {
        let load = rate * shed;
        load / (curve.throughput(inside) + load)
    })
}

/// The largest rate of which `limit` turns away at most [`SHED_SHARE`].
pub(super) fn rate(curve: &Curve, limit: u32) -> f64 {
    // No more gets out than the best of the curve, so no more than that gets in.
    let (mut low, mut high) = (0.0, curve.best(limit).1 / (1.0 - SHED_SHARE));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if shed(curve, limit, middle) <= SHED_SHARE { low = middle } else { high = middle }
    }
    low
}

/// A threshold for what is not essential.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Reserved {
    /// The share of the requests that is essential.
    pub share: f64,
    /// Under so many a second in all.
    pub rate: f64,
    /// Others enter only while fewer are inside.
    pub threshold: u32,
    /// The same as a fraction of the limit, as a configuration has it.
    pub fraction: f64,
    /// The share of the essential ones that is shed.
    pub essential_shed: f64,
    /// The share of the others that is shed.
    pub other_shed: f64,
}

/// The largest threshold for the rest with which at most [`SHED_SHARE`] of the essential `share` is shed, of `rate` a
/// second in all. `None`: they are too many themselves.
pub(super) fn reserve(curve: &Curve, limit: u32, rate: f64, share: f64) -> Option<Reserved> {
    let at = |threshold: u32| {
        let come = |inside: u32| if inside < threshold { rate } else { rate * share };
        let chain = Chain::new(limit, come, |inside| curve.throughput(f64::from(inside)));
        let of = |from: u32| chain.mean(|inside| f64::from(u8::from(inside >= from)));
        (of(limit), of(threshold))
    };
    // The higher it is, the fuller the gate.
    let (mut holds, mut fails) = (0, limit + 1);
    if at(0).0 > SHED_SHARE {
        return None;
    }
    while fails - holds > 1 {
        let middle = holds.midpoint(fails);
        if at(middle).0 <= SHED_SHARE { holds = middle } else { fails = middle }
    }
    let (essential_shed, other_shed) = at(holds);
    Some(Reserved {
        share,
        rate,
        threshold: holds,
        fraction: fraction(holds, limit),
        essential_shed,
        other_shed,
    })
}

/// The shortest fraction of `limit` that comes to `threshold`: the gate rounds up.
fn fraction(threshold: u32, limit: u32) -> f64 {
    let ppm = u64::from(PPM_ONE);
    let exact = u64::from(threshold) * ppm / u64::from(limit);
    let rounded = [10_000, 1_000, 100, 10, 1].map(|to| exact / to * to);
    let comes_to = |fraction: &u64| (fraction * u64::from(limit)).div_ceil(ppm) == u64::from(threshold);
    #[allow(clippy::cast_precision_loss)] // up to 10^6
    let share = rounded.into_iter().find(comes_to).unwrap_or(exact) as f64 / f64::from(PPM_ONE);
    share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Usl;

    const ARTICLE: Curve = Curve::Law(Usl::new(3.0, 0.02, 5.55e-4));

    #[test]
    fn the_table_of_a_degrading_database() {
        for (per_minute, limit, share) in [(50.0, 30, 0.16826), (80.0, 25, 0.49121), (80.0, 42, 0.43319)] {
            let found = shed(&ARTICLE, limit, per_minute);
            let chain = Chain::new(limit, |_| per_minute, |n| ARTICLE.throughput(f64::from(n)));
            assert!(
                (found - share).abs() < 5e-6
                    && (found / chain.probabilities().last().unwrap() - 1.0).abs() < 1e-9
            );
        }
        assert_eq!(shed(&ARTICLE, 0, 1.0).to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn the_rate_is_where_one_in_a_hundred_is_shed() {
        let found = rate(&ARTICLE, 29);
        assert!((found - 33.8645).abs() < 1e-3, "{found}");
        assert!((shed(&ARTICLE, 29, found) - SHED_SHARE).abs() < 1e-6);
    }

    #[test]
    fn the_threshold_is_the_largest_that_keeps_what_is_essential() {
        for share in [0.1, 0.3, 0.4] {
            let found = reserve(&ARTICLE, 29, 80.0, share).unwrap();
            assert!(found.essential_shed <= SHED_SHARE && found.other_shed > 0.3, "{found:?}");
            let come =
                |threshold: u32| move |inside: u32| if inside < threshold { 80.0 } else { 80.0 * share };
            let chain = Chain::new(29, come(found.threshold + 1), |n| ARTICLE.throughput(f64::from(n)));
            assert!(*chain.probabilities().last().unwrap() > SHED_SHARE, "one more is too many: {found:?}");
        }
        assert_eq!(reserve(&ARTICLE, 29, 80.0, 0.9), None);
        // Where there is room for all, nobody is kept out.
        assert_eq!(reserve(&ARTICLE, 29, 20.0, 0.5).map(|found| found.threshold), Some(29));
    }

    #[test]
    fn a_fraction_comes_to_its_threshold() {
        for limit in [1, 3, 7, 29, 100, 997, 1_000_000] {
            for threshold in [0, 1, limit / 3, limit / 2, limit - 1, limit] {
                let fraction = fraction(threshold, limit);
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let ppm = (fraction * 1e6).round() as u64;
                let comes_to = (ppm * u64::from(limit)).div_ceil(1_000_000);
                assert_eq!(comes_to, u64::from(threshold), "{fraction} of {limit}");
            }
        }
        assert_eq!([fraction(20, 29), fraction(3, 4)].map(f64::to_bits), [0.68, 0.75].map(f64::to_bits));
    }
}
