//! `Gate.__enter__`, `__exit__` and `__aexit__`, bound once for each gate instead of once for each block.
//!
//! Before 3.14 a `with` statement looks its methods up and lets their descriptors bind them: for an ordinary
//! native method that allocates two objects a block, a third of its whole cost (measured: 88 ns with, 56 ns
//! without). These descriptors hand out what the gate has kept since it was made.
//!
//! Where blocks are timed, each has a way out of its own instead (see `block`).
//!
//! An exit is bound before its block is entered, so it also knows in which process that was: in a child that
//! is forked inside the block it does nothing, as an inherited permit does nothing.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tidegate::Process;

use crate::block::Block;
use crate::door::Door;
use crate::gate::Gate;
use crate::ready::Ready;

/// The ways out of a gate, for blocks entered in one process.
#[pyclass(frozen, module = "tidegate._native")]
struct Exit {
    door: Py<Door>,
    process: Process,
}

impl Exit {
    #[inline]
    fn leave(&self, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.process == Process::current() {
            let door = self.door.get();
            door.core.exit(door.outcomes.of(exception));
            if door.has_news() {
                door.tell_news(exception.py())?;
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Exit {
    fn exit(
        &self,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.leave(exception)
    }

    fn aexit(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Ready>> {
        self.leave(exception)?;
        Ready::done(py)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.door)
    }
}

/// The methods of a gate, bound.
pub(crate) struct Bindings {
    process: Process,
    enter: Py<PyAny>,
    exit: Py<PyAny>,
    aexit: Py<PyAny>,
    /// Those of the child that uses the gate after a fork, and so on: as long as the line of forks.
    in_child: OnceLock<Box<Bindings>>,
}

impl Bindings {
    pub(crate) fn new(door: &Bound<'_, Door>) -> PyResult<Self> {
        let process = Process::current();
        let exit = Bound::new(door.py(), Exit { door: door.clone().unbind(), process })?;
        Ok(Self {
            process,
            enter: door.getattr("enter")?.unbind(),
            exit: exit.getattr("exit")?.unbind(),
            aexit: exit.getattr("aexit")?.unbind(),
            in_child: OnceLock::new(),
        })
    }

    /// Those of this process.
    #[inline]
    fn here(&self, door: &Bound<'_, Door>) -> PyResult<&Self> {
        let process = Process::current();
        let mut bindings = self;
        while bindings.process != process {
            if bindings.in_child.get().is_none() {
                // Made outside the lock, which nothing that runs Python may hold.
                let made = Box::new(Self::new(door)?);
                let _ = bindings.in_child.set(made);
            }
            bindings = bindings.in_child.get().expect("set above, by this thread or another");
        }
        Ok(bindings)
    }

    pub(crate) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.enter)?;
        visit.call(&self.exit)?;
        visit.call(&self.aexit)?;
        self.in_child.get().map_or(Ok(()), |bindings| bindings.traverse(visit))
    }
}

/// A method of `Gate` that is bound already.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Prebound {
    name: &'static str,
    doc: &'static str,
    pick: fn(&Bindings) -> &Py<PyAny>,
    /// A way out, for gates whose blocks have each its own; of `async with`?
    way_out: Option<bool>,
}

impl Prebound {
    pub(crate) const ENTER: Self = Self {
        name: "__enter__",
        doc: "Enters, or raises Shed at once.",
        pick: |bindings| &bindings.enter,
        way_out: None,
    };
    pub(crate) const EXIT: Self = Self {
        name: "__exit__",
        doc: "Leaves; the exception, if any, tells the outcome.",
        pick: |bindings| &bindings.exit,
        way_out: Some(false),
    };
    pub(crate) const AEXIT: Self =
        Self { name: "__aexit__", pick: |bindings| &bindings.aexit, way_out: Some(true), ..Self::EXIT };

    fn of<'py>(&self, gate: &Bound<'py, Gate>) -> PyResult<Bound<'py, PyAny>> {
        let py = gate.py();
        let Gate { door, bindings, .. } = gate.get();
        Ok((self.pick)(bindings.here(door.bind(py))?).bind(py).clone())
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
        let gate = gate.cast::<Gate>()?;
        match slf.get().way_out {
            Some(is_async) if gate.get().door.get().is_exact() => {
                Block::look_up(gate.get().door.bind(gate.py()), is_async).map(Bound::into_any)
            }
            _ => slf.get().of(gate),
        }
    }

    /// Called through the class with the gate as an argument, as `contextlib.ExitStack` does.
    #[pyo3(signature = (gate, /, *args))]
    fn __call__<'py>(
        &self,
        gate: &Bound<'py, Gate>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.of(gate)?.call1(args)
    }
}
