//! Laws of throughput, fitted to measurements.

use pyo3::prelude::*;
use tidegate::capacity::{self, Point, Usl};

use crate::names::config_error_text;

/// The Universal Scalability Law that comes closest to `points`: pairs of concurrency and throughput, or
/// triples with a weight (in proportion to 1 / variance of concurrency / throughput).
///
/// With `kappa=False` it is Amdahl's law, for which two concurrencies are enough.
#[pyfunction]
#[pyo3(signature = (points, *, kappa=true))]
pub(crate) fn fit_usl(py: Python<'_>, points: Vec<Measured>, kappa: bool) -> PyResult<UslFit> {
    let points: Vec<Point> = points.into_iter().map(Measured::point).collect();
    let fit = if kappa { Usl::fit(&points) } else { Usl::fit_amdahl(&points) };
    fit.map(|core| UslFit { core }).map_err(|error| config_error_text(py, &error.to_string()))
}

#[derive(FromPyObject)]
pub(crate) enum Measured {
    Weighted(f64, f64, f64),
    Plain(f64, f64),
}

impl Measured {
    fn point(self) -> Point {
        match self {
            Self::Plain(concurrency, throughput) => Point::new(concurrency, throughput),
            Self::Weighted(concurrency, throughput, weight) => {
                Point::new(concurrency, throughput).weighted(weight)
            }
        }
    }
}

/// X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), fitted.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct UslFit {
    core: capacity::UslFit,
}

#[pymethods]
impl UslFit {
    /// The throughput of one at a time.
    #[getter]
    fn lambda_(&self) -> f64 {
        self.core.usl.lambda
    }

    /// The share of the work that cannot be done at the same time.
    #[getter]
    fn sigma(&self) -> f64 {
        self.core.usl.sigma
    }

    /// What each pair costs.
    #[getter]
    fn kappa(&self) -> f64 {
        self.core.usl.kappa
    }

    /// Measured less fitted concurrency / throughput, in the order of the points.
    #[getter]
    fn residuals(&self) -> Vec<f64> {
        self.core.residuals.clone()
    }

    /// The concurrency with the highest throughput; None where more is always better.
    #[getter]
    fn best_concurrency(&self) -> Option<f64> {
        self.core.usl.best_concurrency()
    }

    /// The highest throughput, or what it comes ever nearer to; None where it grows without end.
    #[getter]
    fn best_throughput(&self) -> Option<f64> {
        self.core.usl.best_throughput()
    }

    /// The throughput of `concurrency` at a time.
    fn throughput(&self, concurrency: f64) -> f64 {
        self.core.usl.throughput(concurrency)
    }
}
