//! A birth-death chain: the number inside a gate, where one comes or goes at a time. Pure.
//!
//! Every oracle is such a chain, with its own rates. Its stationary probabilities follow from the balance
//! between neighbours, pi(n+1) down(n+1) = pi(n) up(n), and are summed as logarithms: at a limit of 10^5 the
//! smallest of them would be 0 long before the largest is reached. How long a simulation must be for a wanted
//! error follows from the chain's asymptotic variance (Whitt, "Asymptotic formulas for Markov processes with
//! applications to simulation", Operations Research 40, 1992) and how long it must warm up from its spectral
//! gap (Keilson, "Markov Chain Models", 1979).

/// A number inside that goes up and down by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// The rate at which one comes while n are inside.
    up: Vec<f64>,
    /// The rate at which one leaves while n + 1 are inside.
    down: Vec<f64>,
    probabilities: Vec<f64>,
}

/// The spectral gap is looked for by halving: down to this share of where it starts, then this finely.
const HALVINGS: u32 = 44;
const REFINEMENTS: u32 = 20;

impl Chain {
    /// The chain over 0 to `limit` inside, by the rates at which one comes to n and at which one of n leaves
    /// (n from 1, a rate above 0). States that nobody can reach have probability 0.
    #[must_use]
    pub fn new(limit: u32, come: impl Fn(u32) -> f64, leave: impl Fn(u32) -> f64) -> Self {
        let up: Vec<f64> = (0..limit).map(come).take_while(|&rate| rate > 0.0).collect();
        let down: Vec<f64> = (1..=limit).map(leave).take(up.len()).collect();
        let mut probabilities = Vec::with_capacity(up.len() + 1);
        let (mut log, mut highest) = (0.0_f64, 0.0_f64);
        probabilities.push(0.0);
        for (up, down) in up.iter().zip(&down) {
            log += up.ln() - down.ln();
            highest = highest.max(log);
            probabilities.push(log);
        }
        let mut total = 0.0;
        for probability in &mut probabilities {
            *probability = (*probability - highest).exp();
            total += *probability;
        }
        for probability in &mut probabilities {
            *probability /= total;
        }
        Self { up, down, probabilities }
    }

    /// The probability of each number inside, from 0 to the largest that can be reached.
    #[must_use]
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The mean of `of` the number inside.
    #[must_use]
    pub fn mean(&self, of: impl Fn(u32) -> f64) -> f64 {
        (0..).zip(&self.probabilities).map(|(inside, probability)| of(inside) * probability).sum()
    }

    /// What the variance of `of`'s average over a long time t comes to, times t. Infinite where the chain is
    /// practically cut in two.
    #[must_use]
    pub fn asymptotic_variance(&self, of: impl Fn(u32) -> f64) -> f64 {
        let mean = self.mean(&of);
        let off: Vec<f64> = (0..).zip(&self.probabilities).map(|(n, pi)| (of(n) - mean) * pi).collect();
        // The sum over all states is 0, so that below a state and that above it differ in sign alone: each is
        // taken where it has the smaller terms, which is where it loses nothing.
        let mut sum = 0.0;
        let summed = |term: &f64| {
            sum += term;
            sum
        };
        let mut above: Vec<f64> = off.iter().rev().map(summed).collect();
        above.reverse();
        let (mut below, mut mass, mut variance) = (0.0, 0.0, 0.0);
        for (n, (up, pi)) in self.up.iter().zip(&self.probabilities).enumerate() {
            below += off[n];
            mass += pi;
            let sum: f64 = if mass <= 0.5 { below } else { above[n + 1] };
            if sum != 0.0 {
                variance += 2.0 * (sum / pi) * (sum / up);
            }
        }
        variance
    }

    /// How long what is special about a start lasts: the time in which it fades to 1/e, which is 1 over the
    /// smallest eigenvalue but 0 of the generator. Infinite where that cannot be told from 0.
    #[must_use]
    pub fn relaxation(&self) -> f64 {
        let Some(mut gap) = self.up.iter().zip(&self.down).map(|(up, down)| up + down).reduce(f64::min)
        else {
            return 0.0;
        };
        // No eigenvalue is above the smallest diagonal element of a symmetric matrix.
        let mut tries = 0;
        while !self.gap_exceeds(gap) {
            gap /= 2.0;
            tries += 1;
            if tries > HALVINGS {
                return f64::INFINITY;
            }
        }
        let mut step = gap;
        for _ in 0..REFINEMENTS {
            step /= 2.0;
            if self.gap_exceeds(gap + step) {
                gap += step;
            }
        }
        1.0 / gap
    }

    /// Whether all eigenvalues but 0 exceed `bound`. They are those of the symmetric tridiagonal matrix with
    /// up(n) + down(n+1) on its diagonal and the square roots of up(n) down(n) beside it; it has none below
    /// `bound` if all pivots stay positive (Sturm).
    fn gap_exceeds(&self, bound: f64) -> bool {
        let mut beside = 0.0;
        for n in 0..self.up.len() {
            let pivot = self.up[n] + self.down[n] - bound - beside;
            if pivot <= 0.0 {
                return false;
            }
            beside = match self.up.get(n + 1) {
                Some(up) => self.down[n] * up / pivot,
                None => 0.0,
            };
        }
        true
    }

    /// The mean time from nobody inside until as many are as in the median.
    #[must_use]
    pub fn filling(&self) -> f64 {
        let (mut mass, mut step, mut time, mut leave) = (0.0, 0.0, 0.0, 0.0);
        for (n, (up, pi)) in self.up.iter().zip(&self.probabilities).enumerate() {
            mass += pi;
            if mass >= 0.5 {
                break;
            }
            step = (1.0 + leave * step) / up;
            leave = self.down[n];
            time += step;
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) -> bool {
        (got - expected).abs() <= 1e-9 * expected.abs()
    }

    #[test]
    fn a_switch_is_known_in_closed_form() {
        // Two states, up at 2 and down at 3: pi = (3/5, 2/5), gap 5, and the variance of an average over t of
        // "is up" is 2 pi0 pi1 / 5.
        let chain = Chain::new(1, |_| 2.0, |_| 3.0);
        assert!(near(chain.probabilities()[0], 0.6) && near(chain.mean(f64::from), 0.4));
        assert!(near(chain.asymptotic_variance(f64::from), 2.0 * 0.6 * 0.4 / 5.0));
        assert!((chain.relaxation() - 0.2).abs() < 1e-5, "{}", chain.relaxation());
        assert!(near(chain.filling(), 0.0), "the median is to be empty");
        assert!(near(Chain::new(1, |_| 4.0, |_| 3.0).filling(), 0.25));
    }

    #[test]
    fn without_a_bound_it_is_poisson() {
        // Servers for everybody: mean and variance are the load, correlations fade as e^-t, and the number's
        // average over t has variance 2 load / t.
        let load = 20.0;
        let chain = Chain::new(200, |_| load, f64::from);
        assert!(near(chain.mean(f64::from), load));
        assert!(near(chain.mean(|n| (f64::from(n) - load).powi(2)), load));
        assert!(near(chain.asymptotic_variance(f64::from), 2.0 * load));
        assert!((chain.relaxation() - 1.0).abs() < 1e-5, "{}", chain.relaxation());
        // The mean number rises as load (1 - e^-t): it comes near the median in a few service times.
        assert!((2.0..6.0).contains(&chain.filling()), "{}", chain.filling());
    }

    #[test]
    fn a_walk_between_walls_relaxes_in_its_square() {
        // Up and down at 1 on 0..=m: gap 2 - 2 cos(pi / (m + 1)).
        for m in [1, 2, 9, 100] {
            let chain = Chain::new(m, |_| 1.0, |_| 1.0);
            let gap = 2.0 - 2.0 * (std::f64::consts::PI / f64::from(m + 1)).cos();
            assert!((chain.relaxation() * gap - 1.0).abs() < 1e-5, "{m}: {}", chain.relaxation());
        }
    }

    #[test]
    fn what_cannot_be_reached_is_never_met() {
        let chain = Chain::new(5, |n| if n < 2 { 1.0 } else { 0.0 }, f64::from);
        assert_eq!(chain.probabilities().len(), 3);
        let nobody = Chain::new(5, |_| 0.0, f64::from);
        assert_eq!((nobody.probabilities(), nobody.relaxation(), nobody.filling()), (&[1.0][..], 0.0, 0.0));
        assert_eq!(nobody.asymptotic_variance(f64::from).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn large_limits_and_far_tails_stay_finite() {
        for (limit, load) in [(100_000, 100_000.0), (100_000, 1.0), (100_000, 1e9), (3, 1e-9)] {
            let chain = Chain::new(limit, |_| load, f64::from);
            let full = |n| f64::from(u8::from(n == limit));
            let total: f64 = chain.probabilities().iter().sum();
            assert!((total - 1.0).abs() < 1e-9, "{limit}, {load}: {total}");
            let variance = chain.asymptotic_variance(full);
            assert!(variance.is_finite() && variance >= 0.0, "{limit}, {load}: {variance}");
            assert!(chain.relaxation().is_finite() && chain.filling().is_finite(), "{limit}, {load}");
        }
    }

    #[test]
    fn two_basins_take_for_ever() {
        // Drawn to both ends, the more so the longer it is.
        let slope = |m: u32| {
            Chain::new(
                m,
                move |n| if n < m / 2 { 1.0 } else { 2.0 },
                move |n| if n <= m / 2 { 2.0 } else { 1.0 },
            )
        };
        let (short, long) = (slope(20).relaxation(), slope(40).relaxation());
        assert!(short > 1e2 && long > 500.0 * short, "{short}, {long}");
        assert!(slope(400).relaxation().is_infinite());
        let half = |m: u32| move |n: u32| f64::from(u8::from(n > m / 2));
        assert!(slope(40).asymptotic_variance(half(40)) > long / 4.0);
    }
}
