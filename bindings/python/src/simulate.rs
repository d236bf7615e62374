//! The simulator: scenarios and oracles in, JSON out. Python writes down and shows what comes out.

use std::path::Path;
use std::time::Instant;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tidegate::sim::Scenario;
use tidegate::sim::oracle::{Effort, Entry, Oracle, OracleError};

use crate::gate::SIGNAL_CHECK;
use crate::names::config_error_text;

/// How much more exact an oracle's runs are than what has to be noticed, which is a share that is 5 % off.
const AIM: f64 = 0.0125;

/// The most arrivals that they may take, which is half a minute to a minute.
const MOST: u64 = 240_000_000;

/// Runs the scenario that `text` is, the content of the file called `file`, and returns its report as JSON.
/// A trace is read from where the scenario says, relative to `file`. ConfigError with a line for each fault.
#[pyfunction]
pub(crate) fn simulate(py: Python<'_>, text: &str, file: &str, seed: u64) -> PyResult<String> {
    let trace = |name: &str| read_beside(file, name);
    let scenario = Scenario::from_toml_with(file, text, trace)
        .map_err(|error| config_error_text(py, &error.to_string()))?;
    let mut signals = Signals::new();
    let report = py
        .detach(|| scenario.run_while(seed, &mut || signals.look()))
        .map_err(|error| config_error_text(py, &format!("{file}, {error}")))?;
    json(&signals.raised(report)?)
}

fn read_beside(file: &str, name: &str) -> Result<String, String> {
    let path = Path::new(file).parent().unwrap_or(Path::new("")).join(name);
    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A gate in front of what does not slow down, by theory and by simulation: their shares shed as JSON, and a
/// note where the simulation is less exact than it should be. ConfigError where a number is outside its range.
#[pyfunction]
#[pyo3(signature = (limit, offered, /, *, service="exponential", seed=1, dry_run=false, bare=false))]
pub(crate) fn oracle_erlang_b(
    py: Python<'_>,
    limit: i64,
    offered: f64,
    service: &str,
    seed: u64,
    dry_run: bool,
    bare: bool,
) -> PyResult<(String, Option<String>)> {
    compare(py, Oracle::erlang_b(limit, offered), service, seed, entry(py, dry_run, bare)?)
}

/// As ``oracle_erlang_b``, in front of a database that slows down; rates are a minute.
#[pyfunction]
#[pyo3(signature = (rate, limit, lambda, sigma, kappa, /, *, service="exponential", seed=1))]
#[allow(clippy::too_many_arguments)] // Python's
pub(crate) fn oracle_degrading(
    py: Python<'_>,
    rate: f64,
    limit: i64,
    lambda: f64,
    sigma: f64,
    kappa: f64,
    service: &str,
    seed: u64,
) -> PyResult<(String, Option<String>)> {
    compare(py, Oracle::degrading(rate, limit, lambda, sigma, kappa), service, seed, Entry::Enforced)
}

/// As ``oracle_erlang_b``, with thresholds in whole weights and a load for each priority.
#[pyfunction]
#[pyo3(signature = (limit, thresholds, offered, /, *, service="exponential", seed=1, dry_run=false, bare=false))]
#[allow(clippy::too_many_arguments)] // Python's
pub(crate) fn oracle_thresholds(
    py: Python<'_>,
    limit: i64,
    thresholds: [i64; 4],
    offered: [f64; 4],
    service: &str,
    seed: u64,
    dry_run: bool,
    bare: bool,
) -> PyResult<(String, Option<String>)> {
    compare(py, Oracle::thresholds(limit, thresholds, offered), service, seed, entry(py, dry_run, bare)?)
}

fn entry(py: Python<'_>, dry_run: bool, bare: bool) -> PyResult<Entry> {
    match (dry_run, bare) {
        (false, false) => Ok(Entry::Enforced),
        (true, false) => Ok(Entry::DryRun),
        (true, true) => Ok(Entry::BareDryRun),
        (false, true) => Err(config_error_text(py, "bare entries go with a dry run")),
    }
}

fn compare(
    py: Python<'_>,
    oracle: Result<Oracle, OracleError>,
    service: &str,
    seed: u64,
    entry: Entry,
) -> PyResult<(String, Option<String>)> {
    let refused = |error: OracleError| config_error_text(py, &error.to_string());
    let (oracle, service) = (oracle.map_err(refused)?, service.parse().map_err(refused)?);
    let effort = Effort { aim: AIM, most: MOST, entry };
    let mut signals = Signals::new();
    let found = py.detach(|| oracle.simulate(service, seed, &effort, &mut || signals.look()));
    let found = signals.raised(found.map_err(refused)?)?;
    Ok((json(&found)?, found.note))
}

/// Looks for signals now and then, since a run may take a minute.
pub(crate) struct Signals {
    looked: Instant,
    found: PyResult<()>,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self { looked: Instant::now(), found: Ok(()) }
    }

    /// Whether to go on.
    pub(crate) fn look(&mut self) -> bool {
        if self.looked.elapsed() >= SIGNAL_CHECK {
            self.looked = Instant::now();
            #[allow(clippy::redundant_closure_for_method_calls)] // for any lifetime
            let found = Python::attach(|py| py.check_signals());
            self.found = found;
        }
        self.found.is_ok()
    }

    /// What a run came to, or what a signal's handler raised.
    pub(crate) fn raised<T>(self, run: Option<T>) -> PyResult<T> {
        self.found?;
        run.ok_or_else(|| PyRuntimeError::new_err("a run ends by itself or by a signal"))
    }
}

pub(crate) fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
