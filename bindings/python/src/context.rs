//! The priority that `use_priority` set for everything called inside it.
//!
//! Reading a context variable costs about as much as an admission, so it is read only once
//! `use_priority` was used at all.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tidegate::Priority;

use crate::{arguments, names};

static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// From now on, priorities that nobody asked for are looked up in `variable` first.
#[pyfunction]
pub(crate) fn read_priority_from(variable: &Bound<'_, PyAny>) {
    let _ = VARIABLE.set(variable.py(), variable.clone().unbind()); // there is but one
}

/// The Priority of this name.
#[pyfunction]
pub(crate) fn priority_from(value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    names::priority(value.py(), arguments::priority(value)?)
}

/// The priority of the current context, if one was set.
#[inline]
pub(crate) fn priority(py: Python<'_>) -> PyResult<Option<Priority>> {
    match VARIABLE.get(py) {
        None => Ok(None),
        Some(variable) => read(variable.bind(py)),
    }
}

#[cold]
fn read(variable: &Bound<'_, PyAny>) -> PyResult<Option<Priority>> {
    let value = variable.call_method0(pyo3::intern!(variable.py(), "get"))?;
    if value.is_none() { Ok(None) } else { arguments::priority(&value).map(Some) }
}
