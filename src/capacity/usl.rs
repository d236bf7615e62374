//! The Universal Scalability Law, fitted to throughput by concurrency.
//!
//! Of N at a time, a system answers X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)): `lambda` is the
//! rate of one alone, `sigma` the share of the work in which they wait for each other, `kappa` what each
//! pair costs in keeping up with each other. (Gunther, *Guerrilla Capacity Planning*, 2007, chapter 4.)
//!
//! Turned round it is linear: N / X = b0 + b1 (N - 1) + b2 N (N - 1), with lambda = 1 / b0, sigma = b1 lambda
//! and kappa = b2 lambda, and none of the three may be negative. So the fit is a least-squares one, with one
//! answer and no starting point. N / X is the mean time of one request among N.

use super::least_squares::non_negative;

/// Throughput at one concurrency, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Point {
    /// How many were at work at a time, on average.
    pub concurrency: f64,
    /// Answers per unit of time, whichever unit; [`Usl::lambda`] has the same.
    pub throughput: f64,
    /// How much this point counts: in proportion to 1 / variance of N / X. A point that counts 0 is left out.
    pub weight: f64,
}

impl Point {
    /// A point that counts as much as any other.
    #[must_use]
    pub const fn new(concurrency: f64, throughput: f64) -> Self {
        Self { concurrency, throughput, weight: 1.0 }
    }

    /// A point that was found by counting `completions` over `time`. It counts by how well these are known:
    /// a count of k is off by about one in the root of k.
    #[must_use]
    pub fn counted(concurrency: f64, completions: f64, time: f64) -> Self {
        let throughput = completions / time;
        Self { concurrency, throughput, weight: completions * (throughput / concurrency).powi(2) }
    }

    /// The same point, that counts so much.
    #[must_use]
    pub const fn weighted(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
}

/// A system by the law.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Usl {
    /// Answers per unit of time of one at a time.
    pub lambda: f64,
    /// The share of the work that cannot be done at the same time.
    pub sigma: f64,
    /// What each pair costs.
    pub kappa: f64,
}

impl Usl {
    /// A system with these parameters.
    #[must_use]
    pub const fn new(lambda: f64, sigma: f64, kappa: f64) -> Self {
        Self { lambda, sigma, kappa }
    }

    /// How many times as long as alone one takes among `concurrency`.
    #[must_use]
    pub fn slowdown(&self, concurrency: f64) -> f64 {
        let others = concurrency - 1.0;
        1.0 + self.sigma * others + self.kappa * concurrency * others
    }

    /// Answers per unit of time of `concurrency` at a time.
    #[must_use]
    pub fn throughput(&self, concurrency: f64) -> f64 {
        self.lambda * concurrency / self.slowdown(concurrency)
    }

    /// The concurrency with the highest throughput, 1 at least. `None` where more is always better.
    #[must_use]
    pub fn best_concurrency(&self) -> Option<f64> {
        if self.sigma >= 1.0 {
            return Some(1.0);
        }
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
    }

    /// The highest throughput, or what it comes ever nearer to. `None` where it grows without end.
    #[must_use]
    pub fn best_throughput(&self) -> Option<f64> {
        match self.best_concurrency() {
            Some(best) => Some(self.throughput(best)),
            None => (self.sigma > 0.0).then(|| self.lambda / self.sigma),
        }
    }

    /// The law that comes closest to `points`, in N / X and by their weights.
    ///
    /// # Errors
    /// [`UslError`]: the points are of fewer than three concurrencies, or no such law is near them.
    pub fn fit(points: &[Point]) -> Result<UslFit, UslError> {
        Self::fit_parameters(points, 3)
    }

    /// The same with `kappa` 0, which is Amdahl's law. Two concurrencies are enough.
    ///
    /// # Errors
    /// [`UslError`]: the points are of fewer than two concurrencies, or no such law is near them.
    pub fn fit_amdahl(points: &[Point]) -> Result<UslFit, UslError> {
        Self::fit_parameters(points, 2)
    }

    fn fit_parameters(points: &[Point], parameters: usize) -> Result<UslFit, UslError> {
        check(points, parameters)?;
        // As many units of time and of weight as there are, so that no unit is too large or too small.
        let unit = points.iter().map(Point::time).fold(0.0, f64::max);
        let heaviest = points.iter().map(|point| point.weight).fold(0.0, f64::max);
        let column = |value: fn(&Point) -> f64| {
            points.iter().map(|point| value(point) * (point.weight / heaviest).sqrt()).collect::<Vec<_>>()
        };
        let columns = [
            column(|_| 1.0),
            column(|point| point.concurrency - 1.0),
            column(|point| point.concurrency * (point.concurrency - 1.0)),
        ];
        let wanted: Vec<f64> = column(Point::time).into_iter().map(|time| time / unit).collect();
        match non_negative(&columns[..parameters], &wanted) {
            Some([alone, waiting, pairs]) if alone > 0.0 => {
                let usl = Self::new(1.0 / (alone * unit), waiting / alone, pairs / alone);
                let residuals = points
                    .iter()
                    .map(|point| point.time() - point.concurrency / usl.throughput(point.concurrency))
                    .collect();
                Ok(UslFit { usl, residuals })
            }
            _ => Err(UslError::NoTimeAlone),
        }
    }
}

impl Point {
    /// The mean time of one request, by Little's law.
    fn time(&self) -> f64 {
        self.concurrency / self.throughput
    }
}

/// A law, and how far off it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UslFit {
    /// The law.
    pub usl: Usl,
    /// Measured less fitted N / X, in the order of the points.
    pub residuals: Vec<f64>,
}

/// Points that no law can be fitted to.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UslError {
    /// Each parameter needs a concurrency.
    #[error("a fit needs throughput at {needed} different concurrencies at least, got {got}")]
    TooFew {
        /// How many parameters there are.
        needed: usize,
        /// How many there are, of those that count.
        got: usize,
    },
    /// A value that breaks a rule.
    #[error("point {point}: {what} must be {rule}, got {got}")]
    Value {
        /// Which point, from 1.
        point: usize,
        /// Which of its values.
        what: &'static str,
        /// The rule.
        rule: &'static str,
        /// What was given.
        got: f64,
    },
    /// The closest law answers one alone in no time.
    #[error(
        "throughput falls so steeply that nothing is left for the time of one alone: measure at lower \
         concurrencies, too"
    )]
    NoTimeAlone,
}

fn check(points: &[Point], needed: usize) -> Result<(), UslError> {
    // Beyond these bounds the squares of a fit are no numbers any more.
    const POSITIVE: &str = "a positive number, from 1e-60 to 1e60";
    let positive = |value: f64| (1e-60..=1e60).contains(&value);
    for (at, point) in points.iter().enumerate() {
        let wrong = |what, rule, got| Err(UslError::Value { point: at + 1, what, rule, got });
        if !positive(point.concurrency) {
            return wrong("concurrency", POSITIVE, point.concurrency);
        }
        if !positive(point.throughput) {
            return wrong("throughput", POSITIVE, point.throughput);
        }
        if !(point.weight == 0.0 || positive(point.weight)) {
            return wrong("weight", "0 or a positive number, from 1e-60 to 1e60", point.weight);
        }
    }
    let mut different: Vec<f64> =
        points.iter().filter(|point| point.weight > 0.0).map(|point| point.concurrency).collect();
    different.sort_by(f64::total_cmp);
    different.dedup();
    let got = different.len();
    if got < needed { Err(UslError::TooFew { needed, got }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARTICLE: Usl = Usl::new(3.0, 0.02, 5.55e-4);

    fn measured(usl: Usl, concurrencies: &[f64]) -> Vec<Point> {
        concurrencies.iter().map(|at| Point::new(*at, usl.throughput(*at))).collect()
    }

    fn near(found: f64, wanted: f64, share: f64) -> bool {
        (found - wanted).abs() <= share * wanted.abs()
    }

    #[test]
    fn the_best_of_the_article() {
        assert!(near(ARTICLE.best_concurrency().unwrap(), 42.0, 0.001));
        assert!(near(ARTICLE.best_throughput().unwrap(), 45.4, 0.001));
    }

    #[test]
    fn where_more_is_always_better_there_is_no_best() {
        let waits = Usl::new(10.0, 0.25, 0.0);
        assert_eq!((waits.best_concurrency(), waits.best_throughput()), (None, Some(40.0)));
        let free = Usl::new(10.0, 0.0, 0.0);
        assert_eq!((free.best_concurrency(), free.best_throughput()), (None, None));
        let alone = Usl::new(10.0, 1.2, 0.0);
        assert_eq!((alone.best_concurrency(), alone.best_throughput()), (Some(1.0), Some(10.0)));
    }

    #[test]
    fn residuals_are_what_the_law_leaves() {
        let mut points = measured(ARTICLE, &[1.0, 4.0, 16.0, 64.0]);
        points.push(Point::new(8.0, 10.0).weighted(0.0));
        let fit = Usl::fit(&points).unwrap();
        assert!(fit.residuals[..4].iter().all(|rest| rest.abs() < 1e-9), "{fit:?}");
        assert!(near(fit.residuals[4], 0.8 - 8.0 / ARTICLE.throughput(8.0), 1e-9), "{fit:?}");
    }

    #[test]
    fn amdahls_law_has_two_parameters() {
        let truth = Usl::new(50.0, 0.1, 0.0);
        let fit = Usl::fit_amdahl(&measured(truth, &[1.0, 8.0])).unwrap().usl;
        assert!(near(fit.lambda, 50.0, 1e-9) && near(fit.sigma, 0.1, 1e-9) && fit.kappa == 0.0, "{fit:?}");
        // Twice as much from two, and more: they do not wait for each other, and one is a little faster.
        let fit = Usl::fit_amdahl(&[Point::new(1.0, 50.0), Point::new(2.0, 106.0)]).unwrap().usl;
        assert!(fit.sigma == 0.0 && (50.0..53.0).contains(&fit.lambda), "{fit:?}");
        let fit = Usl::fit_amdahl(&measured(ARTICLE, &[1.0, 2.0, 64.0])).unwrap();
        assert!(fit.usl.kappa == 0.0 && fit.residuals[1].abs() > 0.005, "{fit:?}");
        let error = Usl::fit_amdahl(&[Point::new(1.0, 50.0)]).unwrap_err().to_string();
        assert_eq!(error, "a fit needs throughput at 2 different concurrencies at least, got 1");
    }

    #[test]
    fn a_count_weighs_by_how_well_it_is_known() {
        let point = Point::counted(4.0, 200.0, 10.0);
        // The variance of N / X is (N / X)^2 / k.
        assert_eq!((point.throughput, point.weight), (20.0, 200.0 * 25.0));
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let said = |points: &[Point]| Usl::fit(points).unwrap_err().to_string();
        let two = [Point::new(1.0, 1.0), Point::new(2.0, 2.0), Point::new(2.0, 1.9)];
        assert_eq!(said(&two), "a fit needs throughput at 3 different concurrencies at least, got 2");
        assert_eq!(said(&[]), "a fit needs throughput at 3 different concurrencies at least, got 0");
        let mut points = measured(ARTICLE, &[1.0, 2.0, 4.0]);
        points[2].weight = 0.0;
        assert_eq!(said(&points), "a fit needs throughput at 3 different concurrencies at least, got 2");
        points[2].weight = -1.0;
        assert_eq!(
            said(&points),
            "point 3: weight must be 0 or a positive number, from 1e-60 to 1e60, got -1"
        );
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            points[1] = Point::new(2.0, bad);
            assert!(said(&points).starts_with("point 2: throughput must be a positive number"));
            points[1] = Point::new(bad, 2.0);
            assert!(said(&points).starts_with("point 2: concurrency must be a positive number"));
        }
        let steep = [Point::new(2.0, 100.0), Point::new(3.0, 3.0), Point::new(4.0, 0.001)];
        assert!(said(&steep).starts_with("throughput falls so steeply"));
    }

    fn law() -> impl Strategy<Value = Usl> {
        let share = |most: f64| prop_oneof![Just(0.0), 1e-6..most];
        (1e-3_f64..1e3, share(0.9), share(0.1))
            .prop_map(|(lambda, sigma, kappa)| Usl::new(lambda, sigma, kappa))
    }

    proptest! {
        #[test]
        fn a_law_is_recovered_from_its_own_points(truth in law(), unit in -20_i32..20) {
            let truth = Usl { lambda: truth.lambda * 10_f64.powi(unit), ..truth };
            let fit = Usl::fit(&measured(truth, &[1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0])).unwrap().usl;
            prop_assert!(near(fit.lambda, truth.lambda, 1e-7), "{fit:?}");
            prop_assert!((fit.sigma - truth.sigma).abs() < 1e-7, "{fit:?}");
            prop_assert!((fit.kappa - truth.kappa).abs() < 1e-8, "{fit:?}");
        }

        #[test]
        fn no_parameter_is_negative_whatever_was_measured(
            throughputs in prop::collection::vec(0.01_f64..100.0, 4),
        ) {
            let points: Vec<_> =
                throughputs.iter().zip([1.0, 2.0, 4.0, 8.0]).map(|(x, n)| Point::new(n, *x)).collect();
            match Usl::fit(&points) {
                Ok(UslFit { usl, .. }) => {
                    prop_assert!(usl.lambda > 0.0 && usl.lambda.is_finite(), "{usl:?}");
                    prop_assert!(usl.sigma >= 0.0 && usl.sigma.is_finite(), "{usl:?}");
                    prop_assert!(usl.kappa >= 0.0 && usl.kappa.is_finite(), "{usl:?}");
                }
                Err(error) => prop_assert_eq!(error, UslError::NoTimeAlone),
            }
        }

        #[test]
        fn a_weight_is_so_many_points(truth in law(), noise in prop::collection::vec(0.8_f64..1.2, 5)) {
            let points: Vec<_> = measured(truth, &[1.0, 2.0, 4.0, 8.0, 16.0])
                .into_iter()
                .zip(noise)
                .map(|(point, factor)| Point { throughput: point.throughput * factor, ..point })
                .collect();
            let mut heavy = points.clone();
            heavy[3].weight = 3.0;
            let copies = [&points[..], &[points[3], points[3]]].concat();
            // At 1.2 against 0.8 a law can be out of reach; then it is out of reach both times.
            match (Usl::fit(&heavy), Usl::fit(&copies)) {
                (Ok(one), Ok(other)) => {
                    prop_assert!(near(one.usl.lambda, other.usl.lambda, 1e-6), "{one:?} {other:?}");
                    prop_assert!((one.usl.sigma - other.usl.sigma).abs() < 1e-6, "{one:?} {other:?}");
                    prop_assert!((one.usl.kappa - other.usl.kappa).abs() < 1e-6, "{one:?} {other:?}");
                }
                (one, other) => prop_assert_eq!(one.is_err(), other.is_err()),
            }
        }

        #[test]
        fn a_heavy_point_draws_the_law_to_itself(truth in law(), off in 1.05_f64..1.3, at in 0_usize..6) {
            let mut points = measured(truth, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
            points[at].throughput *= off;
            let light = Usl::fit(&points);
            points[at].weight = 1e6;
            let heavy = Usl::fit(&points);
            if let (Ok(light), Ok(heavy)) = (light, heavy) {
                prop_assert!(
                    heavy.residuals[at].abs() <= light.residuals[at].abs() * (1.0 + 1e-9),
                    "{light:?} {heavy:?}"
                );
            }
        }
    }
}
