//! Awaitables that are ready: the gate never waits, so awaiting them never suspends.
//!
//! What they stand for happens when they are awaited, not when they are made: a task may be cancelled, and a
//! signal may arrive, between the call of `__aenter__` and its await, and nobody would leave again.

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::admission::Admission;
use crate::block::Block;
use crate::door::Door;
use crate::names::once;
use crate::permit::Permit;

#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Ready(When);

enum When {
    Done,
    Enter(Py<Door>),
    Timed(Py<Block>),
    Block(Py<Admission>),
    Admit(Py<Admission>),
}

impl Ready {
    /// Nothing is left to do: always the same object, since it has no state.
    #[inline]
    pub(crate) fn done(py: Python<'_>) -> PyResult<Py<Self>> {
        static DONE: PyOnceLock<Py<Ready>> = PyOnceLock::new();
        Ok(once(py, &DONE, || Py::new(py, Self(When::Done)))?.clone_ref(py))
    }

    /// Enters the door each time it is awaited. It has no state either, so a gate needs but one.
    pub(crate) fn enter(door: &Bound<'_, Door>) -> PyResult<Py<Self>> {
        Py::new(door.py(), Self(When::Enter(door.clone().unbind())))
    }

    /// Enters by a block that keeps its ticket.
    pub(crate) fn timed(block: &Bound<'_, Block>) -> PyResult<Py<Self>> {
        Py::new(block.py(), Self(When::Timed(block.clone().unbind())))
    }

    /// Enters the admission's block.
    pub(crate) fn block(admission: &Bound<'_, Admission>) -> PyResult<Py<Self>> {
        Py::new(admission.py(), Self(When::Block(admission.clone().unbind())))
    }

    /// Takes the admission's permit, which is then the caller's.
    pub(crate) fn admit(admission: &Bound<'_, Admission>) -> PyResult<Py<Self>> {
        Py::new(admission.py(), Self(When::Admit(admission.clone().unbind())))
    }
}

/// Awaiting ends with this permit.
#[inline(never)]
fn returned(permit: PyResult<Py<Permit>>) -> PyResult<Option<()>> {
    Err(PyStopIteration::new_err((permit?,)))
}

#[pymethods]
impl Ready {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<()>> {
        match &self.0 {
            When::Done => Ok(None),
            When::Enter(door) => Door::enter(door.bind(py)).map(|()| None),
            When::Timed(block) => Block::enter(block.bind(py)).map(|()| None),
            When::Block(admission) => returned(admission.get().enter(py)),
            When::Admit(admission) => returned(admission.get().admit(py)),
        }
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match &self.0 {
            When::Done => Ok(()),
            When::Enter(door) => visit.call(door),
            When::Timed(block) => visit.call(block),
            When::Block(admission) | When::Admit(admission) => visit.call(admission),
        }
    }
}
