//! What blocks and permits hold on to: the way in and out of a gate, without the rest of its surface.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyWeakrefMethods, PyWeakrefReference};
use tidegate::{Ask, Difference, DrainId, LimitChange, Outcome, RetryAfter, Shed, Ticket};

use crate::block::Block;
use crate::event::{Event, Fields, Kind};
use crate::hooks::Hooks;
use crate::outcome::Outcomes;
use crate::permit::Permit;
use crate::signal::Signals;
use crate::told::Told;
use crate::{arguments, context, shed};

/// The native part of a gate, shared by the Python object, its permits and its sheds.
///
/// It is apart from `Gate` so that a gate can keep its own bound `__enter__` and `__exit__` (see
/// `prebound`) without being part of a reference cycle.
#[pyclass(frozen, weakref, module = "tidegate._native")]
pub(crate) struct Door {
    pub(crate) core: tidegate::Gate,
    pub(crate) outcomes: Outcomes,
    pub(crate) hooks: Hooks,
    signals: Signals,
    told: Told,
    /// Whether blocks keep tickets, each its own (see `block`).
    is_exact: AtomicBool,
    name: Py<PyString>,
}

impl Door {
    pub(crate) fn new(py: Python<'_>, core: tidegate::Gate, outcomes: Outcomes, signals: Signals) -> Self {
        let name = PyString::new(py, core.name()).unbind();
        let (hooks, told, is_exact) = (Hooks::new(py), Told::new(), AtomicBool::new(false));
        let door = Self { core, outcomes, hooks, signals, told, is_exact, name };
        door.see_what_is_measured();
        door
    }

    /// Finds out whether blocks keep tickets: what somebody judges by how long each took needs that.
    pub(crate) fn see_what_is_measured(&self) {
        let is_exact = self.core.controller().is_some() || self.core.objective().is_some();
        self.is_exact.store(is_exact, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_exact(&self) -> bool {
        self.is_exact.load(Ordering::Relaxed)
    }

    pub(crate) fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.name.clone_ref(py)
    }

    /// The context's priority, where the caller asked for none.
    #[inline]
    fn complete(py: Python<'_>, ask: Ask) -> PyResult<Ask> {
        if ask.has_priority() { Ok(ask) } else { Ok(ask.or_priority(context::priority(py)?)) }
    }

    #[inline]
    pub(crate) fn take(slf: &Bound<'_, Self>, ask: Ask) -> PyResult<Result<Py<Permit>, Shed>> {
        match slf.get().ask(slf.py(), Self::complete(slf.py(), ask)?)? {
            Err(refused) => {
                if slf.get().hooks.want(Kind::Shed) {
                    slf.get().tell_shed(slf.py(), refused)?;
                }
                Ok(Err(refused))
            }
            // Made a permit at once: if Python has no memory for the object, dropping it gives the
            // room back.
            Ok(ticket) => Py::new(slf.py(), Permit::new(slf.clone().unbind(), ticket)).map(Ok),
        }
    }

    /// Asks the gate. What happened besides goes on to the caller, who then holds nothing.
    #[inline]
    fn ask(&self, py: Python<'_>, ask: Ask) -> PyResult<Result<Ticket, Shed>> {
        let taken = self.core.take(ask);
        if let Err(raised) = self.besides(py) {
            match taken {
                Ok(ticket) => self.core.put(ticket, Outcome::Ignore),
                Err(refused) => self.tell_shed_besides(py, refused),
            }
            return Err(raised);
        }
        Ok(taken)
    }

    /// A ticket for a block, or the shed as an exception.
    pub(crate) fn ticket(slf: &Bound<'_, Self>, ask: Ask) -> PyResult<Ticket> {
        slf.get().ask(slf.py(), ask)?.map_err(|refused| Self::refuse(slf, refused))
    }

    /// The hooks are told, and the caller by an exception.
    #[cold]
    fn refuse(slf: &Bound<'_, Self>, refused: Shed) -> PyErr {
        let told = slf.get().tell_shed(slf.py(), refused);
        told.err().unwrap_or_else(|| shed::error(slf, refused))
    }

    /// A permit, or the shed as an exception.
    #[inline]
    pub(crate) fn admit(slf: &Bound<'_, Self>, ask: Ask) -> PyResult<Py<Permit>> {
        Self::take(slf, ask)?.map_err(|refused| shed::error(slf, refused))
    }

    /// Tells the hooks of something, where any wants to know it.
    #[inline]
    pub(crate) fn tell(&self, py: Python<'_>, kind: Kind, fields: impl FnOnce() -> Fields) -> PyResult<()> {
        if !self.hooks.want(kind) {
            return Ok(());
        }
        self.tell_of(py, kind, self.core.now_ns(), fields())
    }

    #[cold]
    fn tell_of(&self, py: Python<'_>, kind: Kind, at_ns: u64, fields: Fields) -> PyResult<()> {
        self.hooks.tell(py, Event { kind, gate: self.name(py), at_ns, fields })
    }

    #[cold]
    fn tell_shed(&self, py: Python<'_>, refused: Shed) -> PyResult<()> {
        self.tell(py, Kind::Shed, || Fields::shed(refused))
    }

    /// What happened besides in the call of the core that the door is in: something that a signal's function
    /// raised, or moves and transitions that its hooks want to hear of. An error is the caller's.
    #[inline]
    pub(crate) fn besides(&self, py: Python<'_>) -> PyResult<()> {
        self.signals.raised().map_or(Ok(()), Err)?;
        if self.has_news() { self.tell_news(py) } else { Ok(()) }
    }

    /// Whether there is something to tell that no call of the caller's did.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        (self.hooks.want(Kind::Limit) && self.told.here().moves.is_behind(self.core.controller_moves()))
            || (self.hooks.want(Kind::Pressure)
                && self.told.here().transitions.is_behind(self.core.pressure_transitions()))
    }

    /// Tells what the controller did, and the signals. Of several threads, one tells each.
    #[cold]
    pub(crate) fn tell_news(&self, py: Python<'_>) -> PyResult<()> {
        let mut told = Ok(());
        if let Some((before, count)) = self.told.here().moves.claim(self.core.controller_moves()) {
            for change in self.core.controller_moves_after(before).into_iter().take(count) {
                told = told.and(self.tell_of(py, Kind::Limit, change.at_ns, Fields::limit(change)));
            }
        }
        if let Some((before, count)) = self.told.here().transitions.claim(self.core.pressure_transitions()) {
            for transition in self.core.pressure_transitions_after(before).into_iter().take(count) {
                let at_ns = transition.at_ns;
                told = told.and(self.tell_of(py, Kind::Pressure, at_ns, Fields::pressure(transition)));
            }
        }
        told
    }

    /// Whoever subscribes now is not told of what was before, unless others were to be.
    pub(crate) fn forget_news(&self) {
        if !self.hooks.want(Kind::Limit) {
            self.told.here().moves.claim(self.core.controller_moves());
        }
        if !self.hooks.want(Kind::Pressure) {
            self.told.here().transitions.claim(self.core.pressure_transitions());
        }
    }

    /// Where something else is on its way to the caller already.
    #[cold]
    fn tell_shed_besides(&self, py: Python<'_>, refused: Shed) {
        if let Err(error) = self.tell_shed(py, refused) {
            error.write_unraisable(py, None);
        }
    }

    /// Closes the gate. Its hooks are told by the call that did it, and of the last that leaves.
    pub(crate) fn close(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, door) = (slf.py(), slf.get());
        if !door.core.close() {
            return Ok(());
        }
        let told = door.tell_closed(py);
        Self::tell_when_drained(slf)?;
        told
    }

    pub(crate) fn tell_closed(&self, py: Python<'_>) -> PyResult<()> {
        self.tell(py, Kind::Closed, || Fields::closed(self.core.in_flight()))
    }

    /// Has the hooks told once the closed gate is drained, unless that is forgotten.
    pub(crate) fn tell_when_drained(slf: &Bound<'_, Self>) -> PyResult<DrainId> {
        // By the core, which lives in the door: a strong reference would keep both for ever.
        let door = PyWeakrefReference::new(slf)?.unbind();
        Ok(slf.get().core.when_drained(Box::new(move || {
            Python::try_attach(|py| {
                let Some(door) = door.bind(py).upgrade() else { return };
                let door = door.cast::<Door>().expect("it was made of one").get();
                if let Err(error) = door.tell(py, Kind::Drained, Fields::default) {
                    error.write_unraisable(py, None); // whoever left last is on its way out
                }
            });
        })))
    }

    /// Tells the hooks what a reload changed, as a setter does.
    pub(crate) fn tell_changed(&self, py: Python<'_>, difference: &Difference) -> PyResult<()> {
        self.see_what_is_measured();
        match *difference {
            Difference::Limit { from, to } => self.tell(py, Kind::Limit, || {
                let cause = Some(Difference::CAUSE.into());
                Fields::limit(LimitChange { at_ns: 0, from, to, cause })
            }),
            Difference::Thresholds { .. } => {
                self.tell(py, Kind::Thresholds, || Fields::thresholds(self.core.thresholds()))
            }
            Difference::Rate { to, .. } => {
                self.tell(py, Kind::Rate, || Fields::rate(to, Some(Difference::CAUSE)))
            }
            Difference::Enforce { to, .. } => self.tell(py, Kind::Enforce, || Fields::enforce(to)),
            _ => Ok(()),
        }
    }

    pub(crate) fn wait(&self, py: Python<'_>, ask: Ask) -> PyResult<Option<f64>> {
        Ok(match self.core.retry_after(Self::complete(py, ask)?) {
            RetryAfter::Known(wait) => Some(wait.as_secs_f64()),
            RetryAfter::Unknown => None,
            RetryAfter::Never => Some(f64::INFINITY),
        })
    }
}

#[pymethods]
impl Door {
    #[inline]
    pub(crate) fn enter(slf: &Bound<'_, Self>) -> PyResult<()> {
        if slf.get().is_exact() {
            if let Some(block) = Block::looked_up(slf) {
                return Block::enter(&block);
            }
        }
        let priority = context::priority(slf.py())?;
        let entered = slf.get().core.enter(priority);
        if let Err(raised) = slf.get().besides(slf.py()) {
            match entered {
                Ok(()) => drop(slf.get().core.exit(Outcome::Ignore)),
                Err(refused) => slf.get().tell_shed_besides(slf.py(), refused),
            }
            return Err(raised);
        }
        entered.map_err(|refused| Self::refuse(slf, refused))
    }

    /// For sheds, which keep the door they were turned away from.
    fn retry_after(
        &self,
        py: Python<'_>,
        priority: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
    ) -> PyResult<Option<f64>> {
        self.wait(py, arguments::ask(Some(priority), Some(weight))?)
    }

    /// The gate's rate in words, for the text of a shed.
    #[getter]
    fn rate(&self) -> Option<String> {
        self.core.rate().map(|rate| format!("{rate} (burst {})", rate.burst()))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.outcomes.traverse(&visit)?;
        self.signals.traverse(&visit)?;
        self.hooks.traverse(&visit)
    }
}
