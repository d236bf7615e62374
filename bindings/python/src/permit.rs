//! Permits in Python: released exactly once, also by the garbage collector.

use pyo3::exceptions::{PyResourceWarning, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use tidegate::{Outcome, Ticket};

use crate::door::Door;
use crate::event::{Fields, Kind};
use crate::gate::Gate;
use crate::once_flag::OnceFlag;
use crate::{arguments, names};

/// The right to use the resource once. Release it, or use it as a context manager.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Permit {
    door: Py<Door>,
    ticket: Ticket,
    released: OnceFlag,
}

impl Permit {
    #[inline]
    pub(crate) fn new(door: Py<Door>, ticket: Ticket) -> Self {
        Self { door, ticket, released: OnceFlag::new() }
    }

    /// Whether this call was the one that released it. An error comes from a hook, after the release.
    #[inline]
    pub(crate) fn give_back(&self, py: Python<'_>, outcome: Outcome) -> PyResult<bool> {
        let door = self.door.get();
        let first = self.released.set(py) && !door.core.is_inert(&self.ticket);
        if first {
            let told = if door.hooks.want(Kind::Released) {
                self.put_and_tell(py, outcome)
            } else {
                door.core.put(self.ticket, outcome);
                Ok(())
            };
            let told_more = if door.has_news() { door.tell_news(py) } else { Ok(()) };
            told.and(told_more)?;
        }
        Ok(first)
    }

    #[cold]
    fn put_and_tell(&self, py: Python<'_>, outcome: Outcome) -> PyResult<()> {
        let door = self.door.get();
        let held = door.core.held(&self.ticket);
        door.core.put(self.ticket, outcome);
        door.tell(py, Kind::Released, || Fields::released(&self.ticket, outcome, held))
    }

    /// Ends a block: the exception, if any, tells the outcome.
    #[inline]
    pub(crate) fn end(&self, exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.give_back(exception.py(), self.outcome_of(exception)).map(|_| ())
    }

    /// What an exception, or None, says about the work.
    pub(crate) fn outcome_of(&self, exception: &Bound<'_, PyAny>) -> Outcome {
        self.door.get().outcomes.of(exception)
    }

    /// Gives back a permit that nobody is left to release: counts it as collected, tells and warns.
    pub(crate) fn collect(&self) {
        let door = self.door.get();
        if self.released() {
            return;
        }
        // At interpreter exit there is nobody left to tell or warn, nor anybody else to release it.
        let attached = Python::try_attach(|py| (self.released.set(py), PyErr::take(py)));
        let (first, on_its_way) = attached.unwrap_or((true, None));
        if !first {
            return;
        }
        let held = door.core.held(&self.ticket);
        door.core.put_collected(self.ticket);
        Python::try_attach(|py| {
            let fields = || Fields::released(&self.ticket, Outcome::Ignore, held);
            for told in [door.tell(py, Kind::Released, fields), door.tell_news(py)] {
                if let Err(error) = told {
                    error.write_unraisable(py, None);
                }
            }
            warn_collected(py, door.core.name());
            if let Some(error) = on_its_way {
                error.restore(py);
            }
        });
    }

    pub(crate) fn is_of(&self, gate: &Gate) -> bool {
        self.door.is(&gate.door)
    }
}

#[pymethods]
impl Permit {
    /// The priority it was admitted with.
    #[getter]
    fn priority(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        names::priority(py, self.ticket.priority())
    }

    /// How much of the limit it takes.
    #[getter]
    fn weight(&self) -> u32 {
        self.ticket.weight()
    }

    /// Whether dry run let it in although enforcement would have shed it.
    #[getter]
    fn over(&self) -> bool {
        self.ticket.over()
    }

    /// Whether it was given back, or belongs to this process's parent.
    #[getter]
    pub(crate) fn released(&self) -> bool {
        self.released.is_set() || self.door.get().core.is_inert(&self.ticket)
    }

    /// Gives the permit back and says what its work came to: "success", "overload" or "ignore". A second
    /// call does nothing. Returns whether this call was the one that released it.
    #[pyo3(signature = (outcome=None), text_signature = "($self, outcome='success')")]
    fn release(&self, py: Python<'_>, outcome: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let outcome = outcome.map_or(Ok(Outcome::Success), arguments::outcome)?;
        self.give_back(py, outcome)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().released() {
            return Err(PyRuntimeError::new_err("this permit was already released"));
        }
        Ok(slf)
    }

    fn __exit__(
        &self,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.end(exception)
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Permit cannot be pickled or copied: it is released exactly once, in its own process",
        ))
    }

    fn __repr__(&self) -> String {
        let state = if self.released() { "released" } else { "held" };
        let gate = self.door.get().core.name();
        format!(
            "<Permit of gate {gate:?}: {state}, priority {}, weight {}>",
            self.ticket.priority(),
            self.weight()
        )
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.collect();
    }
}

#[cold]
fn warn_collected(py: Python<'_>, gate: &str) {
    let text = format!(
        "a permit of gate '{gate}' was collected without release; use it in a with block, or call release()"
    );
    let category = py.get_type::<PyResourceWarning>();
    let warned = std::ffi::CString::new(text)
        .map_err(PyErr::from)
        .and_then(|text| PyErr::warn(py, &category, &text, 1));
    if let Err(error) = warned {
        error.write_unraisable(py, None);
    }
}
