//! What an exception says about the resource.
//!
//! | exception | outcome |
//! |---|---|
//! | none | success |
//! | of a class given to `Gate(outcomes=...)`, nearest in the MRO | as given |
//! | `TimeoutError` | overload |
//! | `Shed` of another gate | ignore: the resource was not reached |
//! | not an `Exception` (cancellation, generator exit, interrupt) | ignore |
//! | `concurrent.futures.CancelledError` | ignore |
//! | an exception group | overload if any of its leaves is, ignore if all are, else success |
//! | any other | success: the resource answered |
//!
//! Nothing here may fail, because a permit is waiting to be released: what cannot be found out is
//! taken as success.

use pyo3::exceptions::{PyBaseException, PyException, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMapping, PyType};
use tidegate::Outcome;

use crate::arguments;
use crate::names::shed_class;

/// The exceptions that a gate's owner gave a meaning.
#[derive(Default)]
pub(crate) struct Outcomes {
    given: Vec<(Py<PyType>, Outcome)>,
}

impl Outcomes {
    /// From `Gate(outcomes={TimeoutError: "overload"})`.
    pub(crate) fn new(mapping: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut given = Vec::new();
        let Some(mapping) = mapping else { return Ok(Self { given }) };
        let mapping = mapping.cast::<PyMapping>().map_err(|_| {
            arguments::wrong_type("outcomes", "a mapping from exception class to outcome", mapping)
        })?;
        for item in mapping.items()? {
            let (class, outcome): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            let exception = class
                .cast::<PyType>()
                .ok()
                .filter(|class| class.is_subclass_of::<PyBaseException>().unwrap_or(false))
                .ok_or_else(|| {
                    pyo3::exceptions::PyTypeError::new_err(format!(
                        "outcomes must map exception classes to outcomes, got the key {class}"
                    ))
                })?;
            given.push((exception.clone().unbind(), arguments::outcome(&outcome)?));
        }
        Ok(Self { given })
    }

    pub(crate) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.given.iter().try_for_each(|(class, _)| visit.call(class))
    }

    /// The outcome of a block that ended with this exception, or None.
    #[inline]
    pub(crate) fn of(&self, exception: &Bound<'_, PyAny>) -> Outcome {
        if exception.is_none() { Outcome::Success } else { self.of_exception(exception) }
    }

    #[cold]
    fn of_exception(&self, exception: &Bound<'_, PyAny>) -> Outcome {
        let py = exception.py();
        if let Some(outcome) = self.given_for(&exception.get_type()) {
            return outcome;
        }
        if let Some(outcome) = self.of_group(exception) {
            return outcome;
        }
        if exception.is_instance_of::<PyTimeoutError>() {
            return Outcome::Overload;
        }
        let shed = shed_class(py).and_then(|shed| exception.is_instance(shed)).unwrap_or(false);
        if shed || !exception.is_instance_of::<PyException>() || is_cancelled_future(exception) {
            return Outcome::Ignore;
        }
        Outcome::Success
    }

    fn given_for(&self, class: &Bound<'_, PyType>) -> Option<Outcome> {
        if self.given.is_empty() {
            return None;
        }
        class
            .mro()
            .iter()
            .find_map(|base| self.given.iter().find(|(given, _)| base.is(given)).map(|&(_, outcome)| outcome))
    }

    fn of_group(&self, exception: &Bound<'_, PyAny>) -> Option<Outcome> {
        static GROUP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = exception.py();
        let group = crate::names::imported(py, &GROUP, "builtins", "BaseExceptionGroup").ok()?;
        if !exception.is_instance(group).unwrap_or(false) {
            return None;
        }
        let mut all_ignored = true;
        for leaf in exception.getattr("exceptions").ok()?.try_iter().ok()?.flatten() {
            match self.of_exception(&leaf) {
                Outcome::Overload => return Some(Outcome::Overload),
                Outcome::Success => all_ignored = false,
                Outcome::Ignore => {}
            }
        }
        Some(if all_ignored { Outcome::Ignore } else { Outcome::Success })
    }
}

/// `concurrent.futures.CancelledError` is an `Exception`; it can only be one where its module is loaded.
fn is_cancelled_future(exception: &Bound<'_, PyAny>) -> bool {
    let find = || -> PyResult<bool> {
        let modules = exception.py().import("sys")?.getattr("modules")?;
        let module = modules.call_method1("get", ("concurrent.futures._base",))?;
        if module.is_none() { Ok(false) } else { exception.is_instance(&module.getattr("CancelledError")?) }
    };
    find().unwrap_or(false)
}
