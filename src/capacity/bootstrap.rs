//! How sure the recommendation is: the same counts, drawn again and again.
//!
//! Each cell's count is drawn anew from a normal distribution about what was counted, with its spread; then everything
//! that follows from the counts is found anew. The middle 95 % of what comes out is the interval. (Efron and
//! Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6.5, the parametric bootstrap, and 13.3,
//! percentile intervals.) Of latencies only a quantile is needed, and to draw n of them anew is to read it at a rank that
//! is drawn: it has the mean q n and the variance q (1 - q) n.

use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::curve::Counted;

/// How often it is drawn.
pub(super) const DRAWS: usize = 400;
/// What lies outside of an interval, on each side.
const OUTSIDE: f64 = 0.025;
/// Of a count something is left, however unlucky the draw.
const LEAST: f64 = 0.05;

/// The counts, drawn so many times, each time with a standard normal for a rank.
pub(super) fn draws(counted: &[Counted], seed: u64) -> impl Iterator<Item = (Vec<Counted>, f64)> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let counted = counted.to_vec();
    (0..DRAWS).map(move |_| {
        let mut draw = |each: &Counted| {
            let normal: f64 = StandardNormal.sample(&mut rng);
            Counted { completions: each.completions * (1.0 + each.spread * normal).max(LEAST), ..*each }
        };
        let drawn = counted.iter().map(&mut draw).collect();
        (drawn, StandardNormal.sample(&mut rng))
    })
}

/// The middle 95 % of them; `None` of none.
pub(super) fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // few
    let outside = (OUTSIDE * values.len() as f64) as usize;
    Some((*values.get(outside)?, values[values.len() - 1 - outside]))
}

/// How each pair of them varies together.
#[allow(clippy::cast_precision_loss)] // few
pub(super) fn covariance(values: &[[f64; 3]]) -> [[f64; 3]; 3] {
    let count = values.len().max(1) as f64;
    let mean: [f64; 3] = std::array::from_fn(|at| values.iter().map(|value| value[at]).sum::<f64>() / count);
    let pair = |one: usize, other: usize| {
        values.iter().map(|value| (value[one] - mean[one]) * (value[other] - mean[other])).sum::<f64>()
            / count
    };
    std::array::from_fn(|one| std::array::from_fn(|other| pair(one, other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED: Counted = Counted { concurrency: 4.0, completions: 1e4, seconds: 10.0, spread: 0.02 };

    #[test]
    fn draws_spread_as_the_counts_do() {
        let drawn: Vec<f64> = draws(&[COUNTED], 1).map(|(draw, _)| draw[0].completions).collect();
        assert_eq!(drawn.len(), DRAWS);
        let (low, high) = interval(drawn.clone()).unwrap();
        // 1.96 standard deviations, on 400 draws within a tenth or so.
        assert!((low / 9_608.0 - 1.0).abs() < 0.01 && (high / 10_392.0 - 1.0).abs() < 0.01, "{low} {high}");
        assert_eq!(drawn, draws(&[COUNTED], 1).map(|(draw, _)| draw[0].completions).collect::<Vec<_>>());
        assert_ne!(drawn, draws(&[COUNTED], 2).map(|(draw, _)| draw[0].completions).collect::<Vec<_>>());
        let ranks: Vec<f64> = draws(&[COUNTED], 1).map(|(_, rank)| rank).collect();
        let (low, high) = interval(ranks).unwrap();
        assert!((-2.3..-1.6).contains(&low) && (1.6..2.3).contains(&high), "{low} {high}");
        let wild = Counted { spread: 10.0, ..COUNTED };
        assert!(draws(&[wild], 1).all(|(draw, _)| draw[0].completions > 0.0));
    }

    #[test]
    fn an_interval_is_the_middle() {
        let hundred = (0..100).rev().map(f64::from).collect();
        assert_eq!(interval(hundred), Some((2.0, 97.0)));
        assert_eq!((interval(vec![7.0]), interval(Vec::new())), (Some((7.0, 7.0)), None));
    }

    #[test]
    fn what_varies_together() {
        let values = [[1.0, 2.0, 5.0], [3.0, 6.0, 5.0]];
        assert_eq!(covariance(&values), [[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0; 3]]);
    }
}
