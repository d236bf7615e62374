//! Who is told what happens at a gate.
//!
//! - Hooks are called where it happened, by the thread that did it, when the gate is done with it: nothing is
//!   held for a caller that its hooks could lose, and no lock is.
//! - What a hook raises is reported (`sys.unraisablehook`) and goes no further: it is not the caller's fault.
//!   What is no `Exception` is not the hook's fault either (an interrupt or an exit that a signal handler raised
//!   while the hook ran): it goes on to the caller, once the others were told.
//! - A hook is not called for what happens in its thread while it runs: its own doing. The other hooks
//!   are told of that, and nobody of what they do in turn. So no chain of hooks is without end.
//!
//! The list is a Python dict, whose order is that of subscription. Its operations are atomic with and without
//! the interpreter's lock, no fork finds it locked, and the garbage collector sees and empties it: a hook that
//! knows its gate is a cycle. A gate without hooks looks at one number and does not touch it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::door::Door;
use crate::event::{Event, Kind, Kinds};

/// The hooks of a gate.
pub(crate) struct Hooks {
    /// Hook to None.
    list: Py<PyDict>,
    /// How many hooks each kind has.
    wanted: [AtomicU32; Kind::NAMES.len()],
}

impl Hooks {
    pub(crate) fn new(py: Python<'_>) -> Self {
        Self { list: PyDict::new(py).unbind(), wanted: Default::default() }
    }

    /// Whether anybody is to be told of this kind.
    #[inline]
    pub(crate) fn want(&self, kind: Kind) -> bool {
        self.wanted[kind as usize].load(Ordering::Relaxed) != 0
    }

    fn add(&self, hook: &Bound<'_, Hook>) -> PyResult<()> {
        self.list.bind(hook.py()).set_item(hook, hook.py().None())?;
        for at in hook.get().kinds.positions() {
            self.wanted[at].fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A second call finds nothing to remove.
    fn remove(&self, hook: &Bound<'_, Hook>) {
        if self.list.bind(hook.py()).del_item(hook).is_ok() {
            for at in hook.get().kinds.positions() {
                self.wanted[at].fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Calls the hooks that want this event. An error is what goes on to the caller.
    #[cold]
    pub(crate) fn tell(&self, py: Python<'_>, event: Event) -> PyResult<()> {
        let kind = event.kind;
        let list = self.list.bind(py);
        let event = match Py::new(py, event) {
            Ok(event) => event,
            Err(error) => {
                error.write_unraisable(py, None); // no memory for it
                return Ok(());
            }
        };
        let mut passed_on = Ok(());
        for hook in list.keys() {
            let hook = hook.cast::<Hook>().expect("the list has nothing else");
            let unsubscribed = !list.contains(hook)?; // meanwhile, by one before it
            if unsubscribed || !hook.get().kinds.has(kind) {
                continue;
            }
            let Some(_running) = Running::begin(hook) else { continue };
            let callable = hook.get().callable.bind(py);
            if let Err(error) = callable.call1((&event,)) {
                if passed_on.is_err() || error.is_instance_of::<PyException>(py) {
                    error.write_unraisable(py, Some(callable));
                } else {
                    passed_on = Err(error);
                }
            }
        }
        passed_on
    }

    pub(crate) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.list)
    }
}

/// A callable and what it is told.
#[pyclass(frozen, module = "tidegate._native")]
struct Hook {
    callable: Py<PyAny>,
    kinds: Kinds,
}

#[pymethods]
impl Hook {
    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.callable)
    }
}

/// How deep hooks may cause what hooks are told.
const DEPTH: usize = 2;

thread_local! {
    /// The hooks that run in this thread, by address; 0 is none.
    static RUNNING: Cell<[usize; DEPTH]> = const { Cell::new([0; DEPTH]) };
}

/// A hook that runs in this thread. Kept by place, not as a stack: greenlets end in any order.
struct Running {
    place: usize,
}

impl Running {
    /// `None` where the hook runs already, or too many do.
    fn begin(hook: &Bound<'_, Hook>) -> Option<Self> {
        let address = hook.as_ptr() as usize;
        let mut running = RUNNING.get();
        if running.contains(&address) {
            return None;
        }
        let place = running.iter().position(|&other| other == 0)?;
        running[place] = address;
        RUNNING.set(running);
        Some(Self { place })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = RUNNING.get();
        running[self.place] = 0;
        RUNNING.set(running);
    }
}

/// A hook's place in its gate's list. Call it to unsubscribe, or use it as a context manager.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Subscription {
    door: Py<Door>,
    hook: Py<Hook>,
}

impl Subscription {
    pub(crate) fn new(door: &Bound<'_, Door>, callable: &Bound<'_, PyAny>, kinds: Kinds) -> PyResult<Self> {
        let hook = Bound::new(door.py(), Hook { callable: callable.clone().unbind(), kinds })?;
        door.get().forget_news();
        door.get().hooks.add(&hook)?;
        Ok(Self { door: door.clone().unbind(), hook: hook.unbind() })
    }
}

#[pymethods]
impl Subscription {
    /// Unsubscribes. A second call does nothing; a call of the hook that is under way in another thread ends.
    fn __call__(&self, py: Python<'_>) {
        self.door.get().hooks.remove(self.hook.bind(py));
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        _class: &Bound<'_, PyAny>,
        exception: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.__call__(exception.py());
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let callable = self.hook.get().callable.bind(py).repr()?;
        Ok(format!("<Subscription of {callable} to gate {:?}>", self.door.get().core.name()))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.door)?;
        visit.call(&self.hook)
    }
}
