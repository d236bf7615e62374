//! Raising a shed as fast as Python can raise anything.

#![allow(unsafe_code)]

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use pyo3::{IntoPyObject, IntoPyObjectExt};
use tidegate::Shed;

use crate::door::Door;
use crate::names;

/// The exception for a shed. Its arguments are objects that exist already; its message and its
/// `retry_after` are made when somebody asks, from the door kept in `_asked`.
#[cold]
pub(crate) fn error(door: &Bound<'_, Door>, shed: Shed) -> PyErr {
    build(door, shed).unwrap_or_else(|error| error)
}

fn build(door: &Bound<'_, Door>, shed: Shed) -> PyResult<PyErr> {
    let py = door.py();
    let args = (
        door.get().name(py),
        names::reason(py, shed.reason)?,
        names::priority(py, shed.priority)?,
        shed.in_flight,
        shed.limit,
    )
        .into_pyobject(py)?;
    let exception = without_init(names::shed_class(py)?, &args)?;
    let asked = (door.clone(), shed.weight).into_bound_py_any(py)?;
    exception.setattr(pyo3::intern!(py, "_asked"), asked)?;
    Ok(PyErr::from_value(exception))
}

/// An instance whose `__init__` was not run: `BaseException.__new__` alone keeps the arguments, and
/// a Python-level `__init__` would cost more than the whole refusal.
fn without_init<'py>(class: &Bound<'py, PyType>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    static NEW: PyOnceLock<usize> = PyOnceLock::new();
    let py = class.py();
    let slot = *NEW.get_or_init(py, || {
        // SAFETY: `class` is a heap type, of which any slot may be asked for.
        unsafe { ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_new) as usize }
    });
    // SAFETY: the slot of an exception class is a `newfunc`, never null; it was read as one.
    let new: ffi::newfunc = unsafe { std::mem::transmute(slot) };
    // SAFETY: called as Python calls it: a type, a tuple, no keywords; a new reference or an error.
    unsafe { Bound::from_owned_ptr_or_err(py, new(class.as_type_ptr(), args.as_ptr(), std::ptr::null_mut())) }
}
