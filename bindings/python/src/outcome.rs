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
//! | an exception group | overload if any of its leaves is, ignore if all are, else success; as far as its first thousand members |
//! | any other | success: the resource answered |
//!
//! Nothing here may fail, because a permit is waiting to be released: what cannot be found out is
//! taken as success.

use pyo3::exceptions::{PyBaseException, PyException, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMapping, PyTuple, PyType};
use tidegate::Outcome;

use crate::arguments;
use crate::names::{imported, shed_class};

/// Members of groups that are looked at.
const MEMBERS: usize = 1_000;

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

    /// Looks through groups without recursion: they may be nested deeper than a stack is, share members a
    /// thousandfold, or contain themselves.
    #[cold]
    fn of_exception(&self, exception: &Bound<'_, PyAny>) -> Outcome {
        let mut all_ignored = true;
        let mut left = vec![exception.clone()];
        for _ in 0..MEMBERS {
            let Some(exception) = left.pop() else {
                return if all_ignored { Outcome::Ignore } else { Outcome::Success };
            };
            let given = self.given_for(&exception.get_type());
            if given.is_none() && unpack(&exception, &mut left) {
                continue;
            }
            match given.unwrap_or_else(|| of_single(&exception)) {
                Outcome::Overload => return Outcome::Overload,
                Outcome::Success => all_ignored = false,
                Outcome::Ignore => {}
            }
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
}

/// The outcome of an exception that is no group.
fn of_single(exception: &Bound<'_, PyAny>) -> Outcome {
    if exception.is_instance_of::<PyTimeoutError>() {
        return Outcome::Overload;
    }
    let shed = shed_class(exception.py()).and_then(|shed| exception.is_instance(shed)).unwrap_or(false);
    if shed || !exception.is_instance_of::<PyException>() || is_cancelled_future(exception) {
        return Outcome::Ignore;
    }
    Outcome::Success
}

/// Adds the members of a group; `false` where the exception is none.
fn unpack<'py>(exception: &Bound<'py, PyAny>, members: &mut Vec<Bound<'py, PyAny>>) -> bool {
    static GROUP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let Ok(group) = imported(exception.py(), &GROUP, "builtins", "BaseExceptionGroup") else { return false };
    if !exception.is_instance(group).unwrap_or(false) {
        return false;
    }
    // The attribute as BaseExceptionGroup has it, a tuple: a subclass may answer with anything.
    let own = group.getattr("exceptions").and_then(|own| own.call_method1("__get__", (exception,)));
    let Ok(own) = own.and_then(|own| Ok(own.cast_into::<PyTuple>()?)) else { return false };
    members.extend(own.iter().take(MEMBERS));
    true
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
