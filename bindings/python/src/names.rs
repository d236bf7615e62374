//! The Python objects that stand for the core's enums and errors: looked up once, then kept.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};
use tidegate::{ConfigError, FileError, Outcome, Priority, Problem, Reason};

use crate::event::Kind;

const MODULE: &str = "tidegate._names";

/// A value that is made once and kept. It is made before the cell is locked to keep it: making it may run
/// Python, and with that a signal handler, a finalizer or another thread's fork, which would find the lock
/// held for ever. Of several made at once, one is kept.
pub(crate) fn once<'py, T: Send + Sync>(
    py: Python<'py>,
    cell: &'static PyOnceLock<T>,
    make: impl FnOnce() -> PyResult<T>,
) -> PyResult<&'py T> {
    if cell.get(py).is_none() {
        let value = make()?;
        let _ = cell.set(py, value);
    }
    Ok(cell.get(py).expect("set above, by this thread or another"))
}

/// An object of the Python half, imported when first needed.
pub(crate) fn imported<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<&'py Bound<'py, PyAny>> {
    let object = once(py, cell, || py.import(module)?.getattr(name).map(Bound::unbind))?;
    Ok(object.bind(py))
}

/// The members of one of Python's enums, in the order of the core's.
struct Members(PyOnceLock<Box<[Py<PyAny>]>>);

impl Members {
    const fn new() -> Self {
        Self(PyOnceLock::new())
    }

    fn get(&'static self, py: Python<'_>, class: &str, names: &[&str], at: usize) -> PyResult<Py<PyAny>> {
        let members = once(py, &self.0, || {
            let class = py.import(MODULE)?.getattr(class)?;
            names.iter().map(|name| class.call1((name,)).map(Bound::unbind)).collect::<PyResult<_>>()
        })?;
        Ok(members[at].clone_ref(py))
    }
}

pub(crate) fn priority(py: Python<'_>, priority: Priority) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = Members::new();
    MEMBERS.get(py, "Priority", &Priority::ALL.map(Priority::name), priority.level())
}

pub(crate) fn outcome(py: Python<'_>, outcome: Outcome) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = Members::new();
    MEMBERS.get(py, "Outcome", &Outcome::ALL.map(Outcome::name), outcome as usize)
}

pub(crate) fn event_kind(py: Python<'_>, kind: Kind) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = Members::new();
    MEMBERS.get(py, "EventKind", &Kind::NAMES, kind as usize)
}

pub(crate) fn reason(py: Python<'_>, reason: Reason) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = Members::new();
    MEMBERS.get(py, "Reason", &Reason::ALL.map(Reason::name), reason as usize)
}

/// The exception class that sheds are raised as.
pub(crate) fn shed_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(imported(py, &CLASS, "tidegate._errors", "Shed")?.cast()?)
}

/// A file that cannot be used, as Python's `ConfigError` with all that is wrong with it.
pub(crate) fn file_error(py: Python<'_>, error: &FileError) -> PyErr {
    static PROBLEM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let with_problems = || {
        let problem = imported(py, &PROBLEM, "tidegate._errors", "Problem")?;
        let of = |each: &Problem| problem.call1((each.line, each.key.as_str(), each.message.as_str()));
        let problems = error.problems.iter().map(of).collect::<PyResult<Vec<_>>>()?;
        let raised = config_error_text(py, &error.to_string());
        raised.value(py).setattr("problems", PyTuple::new(py, problems)?)?;
        Ok(raised)
    };
    with_problems().unwrap_or_else(|failed: PyErr| failed)
}

/// A rule that was broken, as Python's `ConfigError`.
pub(crate) fn config_error(py: Python<'_>, error: &ConfigError) -> PyErr {
    config_error_text(py, &error.to_string())
}

pub(crate) fn config_error_text(py: Python<'_>, text: &str) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match imported(py, &CLASS, "tidegate._errors", "ConfigError") {
        Ok(class) => match class.call1((PyString::new(py, text),)) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        },
        Err(error) => error,
    }
}
