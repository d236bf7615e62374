//! Gates added up by name, as Python values: what an exposition is made of.

use std::path::PathBuf;

use pyo3::prelude::*;
use tidegate::{Counts, Outcome, Priority, Published, Reason};

use crate::gate::Gate;

/// All that the gates of a name have counted, and what is inside of those that are there.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct GateSum {
    core: tidegate::GateSum,
}

/// For how long permits of one outcome were held: the counts of the buckets up to each bound, and the sum.
type Durations = (String, Vec<(f64, u64)>, f64);

#[pymethods]
impl GateSum {
    #[getter]
    fn gate(&self) -> &str {
        &self.core.gate
    }

    /// Processes with such a gate that is open, or has something inside.
    #[getter]
    fn processes(&self) -> usize {
        self.core.processes
    }

    /// The sum of the limits; None where no gate is open.
    #[getter]
    fn limit(&self) -> Option<u64> {
        self.core.limit
    }

    /// The weight in flight; None where no gate is open or has something inside.
    #[getter]
    fn in_flight(&self) -> Option<u64> {
        self.core.in_flight
    }

    /// The highest pressure level of the gates that are open; None where none has signals.
    #[getter]
    fn pressure(&self) -> Option<f64> {
        self.core.pressure
    }

    /// How many of these are overloaded; None where none has signals.
    #[getter]
    fn overloaded(&self) -> Option<u64> {
        self.core.overloaded
    }

    /// Priority, outcome, reason and count of all attempts, each of which is in one of them.
    #[getter]
    fn requests(&self) -> Vec<(&'static str, &'static str, &'static str, u64)> {
        let counts = &self.core.counts;
        let mut requests = Vec::new();
        for priority in Priority::ALL {
            requests.push((priority.name(), "admitted", "", counts.admitted(priority)));
            requests.push((priority.name(), "would_shed", "", counts.would_shed(priority)));
            requests.extend(
                Reason::ALL
                    .map(|reason| (priority.name(), "shed", reason.name(), counts.shed(priority, reason))),
            );
        }
        requests
    }

    /// Outcome and count of what has left.
    #[getter]
    fn released(&self) -> Vec<(&'static str, u64)> {
        Outcome::ALL.map(|outcome| (outcome.name(), self.core.counts.released(outcome))).into()
    }

    /// Outcome, cumulative buckets and sum in seconds, of permits; empty without timing.
    #[getter]
    fn durations(&self) -> Vec<Durations> {
        Outcome::ALL.iter().filter_map(|&outcome| durations(&self.core.counts, outcome)).collect()
    }

    /// Cause and count of the changes of the limit.
    #[getter]
    fn limit_changes(&self) -> Vec<(String, u64)> {
        self.core.counts.limit_changes().map(|(cause, changes)| (cause.to_owned(), changes)).collect()
    }
}

fn durations(counts: &Counts, outcome: Outcome) -> Option<Durations> {
    let durations = counts.durations(outcome)?;
    let seconds =
        |bound: Option<std::time::Duration>| bound.map_or(f64::INFINITY, |bound| bound.as_secs_f64());
    let buckets = durations.buckets().map(|(bound, count)| (seconds(bound), count)).collect();
    Some((outcome.name().to_owned(), buckets, durations.sum().as_secs_f64()))
}

fn wrap(sums: Vec<tidegate::GateSum>) -> Vec<GateSum> {
    sums.into_iter().map(|core| GateSum { core }).collect()
}

/// The sums of some gates of this process, or of all that there are.
#[pyfunction]
#[pyo3(signature = (gates=None))]
pub(crate) fn sums_here(gates: Option<Vec<PyRef<'_, Gate>>>) -> Vec<GateSum> {
    wrap(match gates {
        Some(gates) => tidegate::GateSum::of(gates.iter().map(|gate| gate.core())),
        None => tidegate::GateSum::of(&tidegate::Gate::all()),
    })
}

/// The sums over all processes that publish their gates in a directory; how many files were not understood;
/// how many gates of this process are in no file.
#[pyfunction]
pub(crate) fn sums_in(py: Python<'_>, directory: PathBuf) -> PyResult<(Vec<GateSum>, usize, usize)> {
    let published = py.detach(|| Published::read(directory))?;
    let unpublished = tidegate::Gate::all().iter().filter(|gate| !gate.is_published()).count();
    Ok((wrap(published.sums()), published.unreadable, unpublished))
}
