//! How much work a request is: distributions with mean one, told apart by their spread.

use rand_distr::{Distribution, Exp1, Open01, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::rules::{Of, ScenarioError, at_least, between, not_negative, positive};

/// How the work of a request is distributed. The mean is one; what one unit of work takes is up to the
/// [`Service`](super::Service).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sizes {
    /// Memoryless: coefficient of variation 1.
    #[default]
    Exponential,
    /// All the same.
    Deterministic,
    /// Lognormal, the usual shape of queries and answers.
    Lognormal {
        /// Coefficient of variation (standard deviation over mean), at least 0.
        cv: f64,
    },
    /// One of two exponentials with balanced means: more spread than one.
    Hyperexponential {
        /// Coefficient of variation, at least 1.
        cv: f64,
    },
    /// Two sizes: most are small, some are `factor` times as large.
    Bimodal {
        /// The share of large ones, above 0 and below 1.
        share: f64,
        /// How many times as large as the others they are.
        factor: f64,
    },
    /// Pareto, a heavy tail. The variance is infinite for `alpha` up to 2.
    Pareto {
        /// The tail's exponent, above 1 (else there is no mean).
        alpha: f64,
    },
}

impl Sizes {
    pub(super) fn check(&self, key: &str) -> Result<(), ScenarioError> {
        let of = |name: &str| format!("{key}.{name}");
        match *self {
            Self::Exponential | Self::Deterministic => Ok(()),
            Self::Lognormal { cv } => not_negative(cv).of(&of("cv")).map(drop),
            Self::Hyperexponential { cv } => at_least(1.0, cv).of(&of("cv")).map(drop),
            Self::Bimodal { share, factor } => {
                between(0.0, 1.0, share).of(&of("share"))?;
                positive(factor).of(&of("factor")).map(drop)
            }
            Self::Pareto { alpha } => between(1.0, 1e6, alpha).of(&of("alpha")).map(drop),
        }
    }

    /// What draws them.
    pub(super) fn sampler(&self) -> Sampler {
        match *self {
            Self::Exponential => Sampler::Exponential,
            Self::Deterministic => Sampler::Deterministic,
            Self::Lognormal { cv } => {
                let variance = (cv * cv).ln_1p();
                Sampler::Lognormal { mean: -variance / 2.0, deviation: variance.sqrt() }
            }
            Self::Hyperexponential { cv } => {
                let square = cv * cv;
                let often = 0.5 * (1.0 + ((square - 1.0) / (square + 1.0)).sqrt());
                // Each of the two carries half of the work.
                Sampler::Hyperexponential { often, means: [0.5 / often, 0.5 / (1.0 - often)] }
            }
            Self::Bimodal { share, factor } => {
                let small = 1.0 / (1.0 - share + share * factor);
                Sampler::Bimodal { share, sizes: [small * factor, small] }
            }
            Self::Pareto { alpha } => {
                Sampler::Pareto { least: (alpha - 1.0) / alpha, exponent: -1.0 / alpha }
            }
        }
    }
}

/// Draws sizes, with everything reckoned that is the same for each.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sampler {
    Exponential,
    Deterministic,
    Lognormal { mean: f64, deviation: f64 },
    Hyperexponential { often: f64, means: [f64; 2] },
    Bimodal { share: f64, sizes: [f64; 2] },
    Pareto { least: f64, exponent: f64 },
}

impl Sampler {
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        match *self {
            Self::Exponential => Exp1.sample(rng),
            Self::Deterministic => 1.0,
            Self::Lognormal { mean, deviation } => {
                let normal: f64 = StandardNormal.sample(rng);
                (mean + deviation * normal).exp()
            }
            Self::Hyperexponential { often, means: [small, large] } => {
                let uniform: f64 = Open01.sample(rng);
                let exponential: f64 = Exp1.sample(rng);
                exponential * if uniform < often { small } else { large }
            }
            Self::Bimodal { share, sizes: [large, small] } => {
                let uniform: f64 = Open01.sample(rng);
                if uniform < share { large } else { small }
            }
            Self::Pareto { least, exponent } => {
                let uniform: f64 = Open01.sample(rng);
                least * uniform.powf(exponent)
            }
        }
    }
}
