//! An awaitable that is ready: the gate never waits, so awaiting it never suspends.

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

#[pyclass(frozen, module = "tidegate._native")]
pub(crate) struct Ready {
    value: Option<Py<PyAny>>,
}

impl Ready {
    /// Ready with a value.
    pub(crate) fn with(py: Python<'_>, value: Py<PyAny>) -> PyResult<Py<Self>> {
        Py::new(py, Self { value: Some(value) })
    }

    /// Ready with None: always the same object, since it has no state.
    #[inline]
    pub(crate) fn none(py: Python<'_>) -> PyResult<Py<Self>> {
        static NONE: PyOnceLock<Py<Ready>> = PyOnceLock::new();
        Ok(NONE.get_or_try_init(py, || Py::new(py, Self { value: None }))?.clone_ref(py))
    }
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
        match &self.value {
            None => Ok(None),
            Some(value) => Err(PyStopIteration::new_err((value.clone_ref(py),))),
        }
    }
}
