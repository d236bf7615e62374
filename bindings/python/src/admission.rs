//! `gate.admit(...)`: holds nothing until it is entered, and is entered once.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use tidegate::Ask;

use crate::door::Door;
use crate::once_flag::OnceFlag;
use crate::permit::Permit;
use crate::ready::Ready;

/// A single-use admission: ``with gate.admit(...) as permit:``, ``async with``, or ``await``.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Admission {
    door: Py<Door>,
    ask: Ask,
    entered: OnceFlag,
    /// The permit to release at the end of the block, owned; null until then. Stored once, by whoever set
    /// `entered`: a lock for that would cost as much as the admission.
    permit: AtomicPtr<ffi::PyObject>,
}

impl Admission {
    pub(crate) fn new(door: Py<Door>, ask: Ask) -> Self {
        Self { door, ask, entered: OnceFlag::new(), permit: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    pub(crate) fn admit(&self, py: Python<'_>) -> PyResult<Py<Permit>> {
        if !self.entered.set(py) {
            return Err(PyRuntimeError::new_err(
                "this admission was already entered; call gate.admit() anew for each entry",
            ));
        }
        Door::admit(self.door.bind(py), self.ask)
    }

    /// Admits, and keeps the permit for the end of the block.
    #[inline]
    pub(crate) fn enter(&self, py: Python<'_>) -> PyResult<Py<Permit>> {
        let permit = self.admit(py)?;
        self.permit.store(permit.clone_ref(py).into_ptr(), Ordering::Release);
        Ok(permit)
    }

    #[inline]
    fn exit(&self, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        let permit = self.permit.load(Ordering::Acquire);
        // SAFETY: null, or a reference that this object owns and gives up only in `drop`.
        let permit = unsafe { Bound::from_borrowed_ptr_or_opt(exception.py(), permit) };
        let Some(permit) = permit else { return Ok(()) };
        // SAFETY: `enter` stored a permit.
        unsafe { permit.cast_unchecked::<Permit>() }.get().end(exception)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let permit = *self.permit.get_mut();
        // SAFETY: Python drops its objects attached; null, or owned and not used again.
        drop(unsafe { Bound::from_owned_ptr_or_opt(Python::assume_attached(), permit) });
    }
}

#[pymethods]
impl Admission {
    fn __repr__(&self) -> String {
        let state = if self.entered.is_set() { "entered" } else { "not entered: it holds nothing" };
        format!("<Admission to gate {:?}: {state}>", self.door.get().core.name())
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Permit>> {
        self.enter(py)
    }

    fn __exit__(
        &self,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.exit(exception)
    }

    fn __aenter__(slf: &Bound<'_, Self>) -> PyResult<Py<Ready>> {
        Ready::block(slf)
    }

    fn __aexit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<Py<Ready>> {
        self.exit(exception)?;
        Ready::done(py)
    }

    /// The permit is the caller's to release.
    fn __await__(slf: &Bound<'_, Self>) -> PyResult<Py<Ready>> {
        Ready::admit(slf)
    }
}
