//! One permit for all that a request does: the edge takes it, and whatever the request checks out of a pool
//! joins it instead of taking another.
//!
//! Each user has a `Hold` of its own and leaves once; the permit goes with the last of them. So a connection
//! that outlives the request that checked it out stays counted until it is given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use pyo3::prelude::*;
use tidegate::Outcome;

use crate::arguments;
use crate::door::Door;
use crate::gate::Gate;
use crate::once_flag::OnceFlag;
use crate::permit::Permit;

/// What the holds of one permit share.
struct Shared {
    permit: Py<Permit>,
    /// Those that have not left. At zero the permit is gone, and nobody joins any more.
    users: AtomicU32,
    /// The gravest outcome so far, by [`gravity`].
    gravest: AtomicU8,
}

/// Work that was too much for the resource makes all of it so, and what says nothing gives way to what does.
const BY_GRAVITY: [Outcome; 3] = [Outcome::Ignore, Outcome::Success, Outcome::Overload];

fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Ignore => 0,
        Outcome::Success => 1,
        Outcome::Overload => 2,
    }
}

/// One user's part in a permit that several may share. For integrations.
#[pyclass(frozen, weakref, module = "tidegate._native")]
pub(crate) struct Hold {
    shared: Arc<Shared>,
    left: OnceFlag,
}

impl Hold {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, left: OnceFlag::new() }
    }

    /// An error comes from a hook, after the release.
    fn leave_as(&self, py: Python<'_>, outcome: Outcome) -> PyResult<bool> {
        if !self.left.set(py) {
            return Ok(false);
        }
        let shared = &*self.shared;
        shared.gravest.fetch_max(gravity(outcome), Ordering::AcqRel);
        if shared.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            let gravest = BY_GRAVITY[usize::from(shared.gravest.load(Ordering::Acquire))];
            shared.permit.get().give_back(py, gravest)?;
        }
        Ok(true)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.left.is_set() && self.shared.users.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Holds that have left may live on, and with them the permit: it does not wait for that.
            Python::try_attach(|_| self.shared.permit.get().collect());
        }
    }
}

#[pymethods]
impl Hold {
    /// The first hold of a new permit. Raises Shed.
    #[staticmethod]
    #[pyo3(signature = (gate, *, priority=None, weight=None))]
    fn enter(
        gate: &Bound<'_, Gate>,
        priority: Option<&Bound<'_, PyAny>>,
        weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let permit = Door::admit(gate.get().door.bind(gate.py()), arguments::ask(priority, weight)?)?;
        let shared = Shared { permit, users: AtomicU32::new(1), gravest: AtomicU8::new(0) };
        Ok(Self::new(Arc::new(shared)))
    }

    /// A further hold of the same permit; None when its last user has left, or in a forked child.
    fn join(&self) -> Option<Self> {
        if self.shared.permit.get().released() {
            return None;
        }
        let one_more = |users| if users == 0 { None } else { Some(users + 1) };
        self.shared.users.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Self::new(Arc::clone(&self.shared)))
    }

    /// Whether the permit is one of this gate's.
    fn is_of(&self, gate: &Bound<'_, Gate>) -> bool {
        self.shared.permit.get().is_of(gate.get())
    }

    /// The permit that is shared.
    #[getter]
    fn permit(&self, py: Python<'_>) -> Py<Permit> {
        self.shared.permit.clone_ref(py)
    }

    /// Whether the permit is gone.
    #[getter]
    fn released(&self) -> bool {
        self.shared.permit.get().released()
    }

    /// Leaves, with what the work came to; the last to leave releases the permit, with the gravest outcome
    /// of all. A second call does nothing. Returns whether this call was the first.
    #[pyo3(signature = (outcome=None), text_signature = "($self, outcome='success')")]
    fn leave(&self, py: Python<'_>, outcome: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let outcome = outcome.map_or(Ok(Outcome::Success), arguments::outcome)?;
        self.leave_as(py, outcome)
    }

    /// Leaves; the exception, or None, tells the outcome.
    fn end(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.leave_as(exception.py(), self.shared.permit.get().outcome_of(exception))
    }

    /// Leaves what came to nothing: the exception says why the resource was not reached, so what would be
    /// success is ignored. A database that refuses all connections must not look like a fast one.
    fn fail(&self, exception: &Bound<'_, PyAny>) -> PyResult<bool> {
        let outcome = match self.shared.permit.get().outcome_of(exception) {
            Outcome::Success => Outcome::Ignore,
            other => other,
        };
        self.leave_as(exception.py(), outcome)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.end(exception).map(|_| ())
    }
}
