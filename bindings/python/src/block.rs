//! `with gate:` where it counts how long each block took: at gates with an objective or a controller.
//!
//! A bare entry keeps nothing, so of many of them a gate knows how long they took on average, but not how many took
//! too long. There each block has an object of its own, which keeps its ticket. A `with` statement looks up its way
//! out before it enters, in every version of Python: that lookup makes the object, and the entry that follows in the
//! same thread finds it.
//!
//! Whoever enters without such a lookup (an `ExitStack`, which asks the class; a call by hand) enters bare, and an
//! object that nobody entered by leaves bare: so the two sides agree whatever was looked up when. A block that is
//! forgotten is not released, as a bare one is not: both trust in the structure of blocks.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use tidegate::{Ask, Outcome, Process, Ticket};

use crate::context;
use crate::door::Door;
use crate::once_flag::OnceFlag;
use crate::ready::Ready;

thread_local! {
    /// The way out that was looked up last in this thread, until somebody enters.
    static LOOKED_UP: RefCell<Option<Py<Block>>> = const { RefCell::new(None) };
}

/// The way out of one block.
#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Block {
    door: Py<Door>,
    process: Process,
    /// Of `async with`, whose way out is awaited.
    is_async: bool,
    ticket: OnceLock<Ticket>,
    left: OnceFlag,
}

impl Block {
    /// A way out, for whoever enters next in this thread.
    pub(crate) fn look_up<'py>(door: &Bound<'py, Door>, is_async: bool) -> PyResult<Bound<'py, Self>> {
        let (ticket, left) = (OnceLock::new(), OnceFlag::new());
        let block = Self { door: door.clone().unbind(), process: Process::current(), is_async, ticket, left };
        let block = Bound::new(door.py(), block)?;
        let before = LOOKED_UP.replace(Some(block.clone().unbind()));
        drop(before); // which may run Python, and look up another
        Ok(block)
    }

    /// The way out that was looked up for this entry, if one was. One that nobody else holds is none.
    pub(crate) fn looked_up<'py>(door: &Bound<'py, Door>) -> Option<Bound<'py, Self>> {
        let py = door.py();
        let block = LOOKED_UP.take()?.into_bound(py);
        // SAFETY: it is an object, and this thread is attached.
        let is_held = unsafe { ffi::Py_REFCNT(block.as_ptr()) } > 1;
        let is_fresh = block.get().ticket.get().is_none() && block.get().process == Process::current();
        (is_held && is_fresh && block.get().door.is(door)).then_some(block)
    }

    /// Enters, or raises the shed.
    pub(crate) fn enter(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, block) = (slf.py(), slf.get());
        let ask = Ask::from(context::priority(py)?);
        let ticket = Door::ticket(block.door.bind(py), ask)?;
        // It is fresh, and this thread's alone.
        let _ = block.ticket.set(ticket);
        Ok(())
    }

    fn leave(&self, py: Python<'_>, outcome: Outcome) -> PyResult<()> {
        let door = self.door.get();
        match self.ticket.get() {
            Some(ticket) if self.left.set(py) => door.core.put(*ticket, outcome),
            _ if self.process == Process::current() => drop(door.core.exit(outcome)),
            _ => {}
        }
        if door.has_news() { door.tell_news(py) } else { Ok(()) }
    }
}

#[pymethods]
impl Block {
    fn __call__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<Ready>>> {
        self.leave(py, self.door.get().outcomes.of(exception))?;
        if self.is_async { Ready::done(py).map(Some) } else { Ok(None) }
    }

    fn __repr__(&self) -> String {
        format!("<the way out of a block of gate {:?}>", self.door.get().core.name())
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.door)
    }
}
