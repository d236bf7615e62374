//! `Gate.__enter__` and `Gate.__exit__`, bound once for each gate instead of once for each block.
//!
//! Before 3.14 a `with` statement looks both up and lets their descriptors bind them: for an ordinary native
//! method that allocates two objects a block, a third of its whole cost (measured: 88 ns with, 60 ns
//! without). These descriptors hand out what the gate has kept since it was made.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::door::Door;
use crate::gate::Gate;

/// The two methods of a gate, bound to its door.
pub(crate) struct Bindings {
    enter: Py<PyAny>,
    exit: Py<PyAny>,
}

impl Bindings {
    pub(crate) fn new(door: &Bound<'_, Door>) -> PyResult<Self> {
        Ok(Self { enter: door.getattr("enter")?.unbind(), exit: door.getattr("exit")?.unbind() })
    }

    pub(crate) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.enter)?;
        visit.call(&self.exit)
    }
}

/// A method of `Gate` that is bound already.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Prebound {
    name: &'static str,
    doc: &'static str,
    pick: fn(&Bindings) -> &Py<PyAny>,
}

impl Prebound {
    pub(crate) const ENTER: Self =
        Self { name: "__enter__", doc: "Enters, or raises Shed at once.", pick: |bindings| &bindings.enter };
    pub(crate) const EXIT: Self = Self {
        name: "__exit__",
        doc: "Leaves; the exception, if any, tells the outcome.",
        pick: |bindings| &bindings.exit,
    };

    fn of<'py>(&self, gate: &Bound<'py, Gate>) -> Bound<'py, PyAny> {
        (self.pick)(&gate.get().bindings).bind(gate.py()).clone()
    }
}

#[pymethods]
impl Prebound {
    #[getter]
    fn __name__(&self) -> &'static str {
        self.name
    }

    #[getter]
    fn __doc__(&self) -> &'static str {
        self.doc
    }

    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        gate: &Bound<'py, PyAny>,
        _owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if gate.is_none() {
            return Ok(slf.clone().into_any()); // looked up on the class
        }
        Ok(slf.get().of(gate.cast()?))
    }

    /// Called through the class with the gate as an argument, as `contextlib.ExitStack` does.
    #[pyo3(signature = (gate, /, *args))]
    fn __call__<'py>(
        &self,
        gate: &Bound<'py, Gate>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.of(gate).call1(args)
    }
}
