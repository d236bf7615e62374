//! The gate in Python. Entering and leaving are native, so no signal can fall between the count and the
//! block; no state is kept anywhere but in the gate and in permits.

use std::ffi::CString;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use tidegate::DrainId;

use crate::admission::Admission;
use crate::arguments;
use crate::block::Block;
use crate::clock::ManualClock;
use crate::control::Limits;
use crate::door::Door;
use crate::event::{Fields, Kind};
use crate::hooks::Subscription;
use crate::names::{self, config_error, imported};
use crate::outcome::Outcomes;
use crate::permit::Permit;
use crate::prebound::{Bindings, Prebound};
use crate::ready::Ready;
use crate::reports::{ControllerReport, Pressure};
use crate::signal::Signals;
use crate::stats::{LimitChange, Stats, by_priority};

/// How long a drain waits before it lets Python handle signals. A release wakes it at once.
pub(crate) const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// The admission controller of one protected resource.
///
/// Args:
///     name: A label for messages and metrics, 1 to 255 bytes without control characters.
///     limit: The most weight that may be in flight, 0 to 2**31 - 1. Per process. With a controller, where it starts.
///     controller: Who moves the limit: "goodput", "aimd", "gradient2", "vegas"; "fixed" moves nothing. None: only
///         ``set_limit`` does.
///     objective: In how many seconds an answer is good, for the controller and the signals "latency" and "errors";
///         None: every success is good.
///     min: The smallest limit of the controller, 1 unless given.
///     max: The largest, 1000 unless given.
///     prior: Where the controller starts; ``limit`` unless given, and without that halfway, in factors, between
///         ``min`` and ``max``.
///     ceiling: A limit that a capacity test has shown to hold: the controller stays under it.
///     signals: What to look at beside the limit: an iterable of ``Signal``.
///     thresholds: Priority to fraction of the limit (0.9), or to ``{"reserve": weight}``.
///     rate: How much may be admitted a time, by weight: "150/min", of s, min and h; None for any.
///     burst: The most weight that the rate lets in at once, 1 to 2**31 - 1; by default what one second brings, rounded
///         up.
///     default_priority: The priority of requests that name none.
///     enforce: False is dry run: count what would be shed, shed nothing.
///     timing: Whether to measure how long permits are held.
///     outcomes: Exception class to "success", "overload" or "ignore".
///     clock: A ``tidegate.testing.ManualClock``, for tests.
///
/// With the environment variable ``TIDEGATE_METRICS_DIR`` set, the gate's state lives in a file in that
/// directory, so that ``tidegate.prometheus`` can add up the gates of all processes.
///
/// Raises:
///     ConfigError: A value breaks its rule (a ValueError, too), or the directory does. One that has no room for
///         a file is a RuntimeWarning: the gate works, and its counts are missing there.
///     TypeError: A value has the wrong type.
#[pyclass(frozen, weakref, module = "tidegate")]
pub(crate) struct Gate {
    pub(crate) door: Py<Door>,
    pub(crate) bindings: Bindings,
    entering: Py<Ready>,
}

impl Gate {
    pub(crate) fn core(&self) -> &tidegate::Gate {
        &self.door.get().core
    }

    pub(crate) fn from_core(
        py: Python<'_>,
        core: tidegate::Gate,
        outcomes: Outcomes,
        signals: Signals,
    ) -> PyResult<Self> {
        let door = Bound::new(py, Door::new(py, core, outcomes, signals))?;
        Ok(Self { bindings: Bindings::new(&door)?, entering: Ready::enter(&door)?, door: door.unbind() })
    }

    fn tell(&self, py: Python<'_>, kind: Kind, fields: impl FnOnce() -> Fields) -> PyResult<()> {
        self.door.get().tell(py, kind, fields)
    }
}

#[pymethods]
impl Gate {
    #[new]
    #[pyo3(
        signature = (name, limit=None, *, controller=None, objective=None, min=None, max=None, prior=None,
                     ceiling=None, signals=None, thresholds=None, rate=None, burst=None, default_priority=None,
                     enforce=true, timing=false, outcomes=None, clock=None),
        text_signature = "(name, limit=None, *, controller=None, objective=None, min=None, max=None, \
                          prior=None, ceiling=None, signals=None, thresholds=None, rate=None, burst=None, \
                          default_priority='critical', enforce=True, timing=False, outcomes=None, \
                          clock=None)"
    )]
    #[allow(clippy::too_many_arguments)] // keyword arguments of a Python constructor
    fn new(
        name: &Bound<'_, PyAny>,
        limit: Option<&Bound<'_, PyAny>>,
        controller: Option<&Bound<'_, PyAny>>,
        objective: Option<&Bound<'_, PyAny>>,
        min: Option<&Bound<'_, PyAny>>,
        max: Option<&Bound<'_, PyAny>>,
        prior: Option<&Bound<'_, PyAny>>,
        ceiling: Option<&Bound<'_, PyAny>>,
        signals: Option<&Bound<'_, PyAny>>,
        thresholds: Option<&Bound<'_, PyAny>>,
        rate: Option<&Bound<'_, PyAny>>,
        burst: Option<&Bound<'_, PyAny>>,
        default_priority: Option<&Bound<'_, PyAny>>,
        enforce: bool,
        timing: bool,
        outcomes: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, ManualClock>>,
    ) -> PyResult<Self> {
        let py = name.py();
        let label = arguments::name(name)?;
        let (limit, controller) = Limits { limit, controller, min, max, prior, ceiling }.read(py)?;
        let (signals, measured) = Signals::new(signals)?;
        let mut builder = tidegate::Gate::builder(&label, limit)
            .objective(arguments::objective(objective)?)
            .signals(measured)
            .thresholds(arguments::thresholds(thresholds)?)
            .rate(arguments::rate(rate, burst)?)
            .enforce(enforce)
            .timing(timing)
            .bare_entries(true);
        if let Some((kind, bounds)) = controller {
            builder = builder.controller(kind, bounds);
        }
        if let Some(priority) = default_priority {
            builder = builder.default_priority(arguments::priority(priority)?);
        }
        if let Some(clock) = clock {
            builder = builder.clock(clock.get().core.clone());
        }
        let directory = arguments::metrics_directory(py)?;
        let published = directory.is_some();
        if let Some(directory) = directory {
            builder = builder.publish_in(directory);
        }
        let core = builder.build().map_err(|error| config_error(py, &error))?;
        if published && !core.is_published() {
            warn_unpublished(py, core.name())?;
        }
        Self::from_core(py, core, Outcomes::new(outcomes)?, signals)
    }

    /// The label given at construction.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyString> {
        self.door.get().name(py)
    }

    /// The most weight that may be in flight.
    #[getter]
    fn limit(&self) -> u32 {
        self.core().limit()
    }

    /// The weight in flight, without what dry run let in beyond the limit.
    #[getter]
    fn in_flight(&self) -> u32 {
        self.core().in_flight()
    }

    /// How full the gate may be for each priority still to enter, in weight.
    #[getter]
    fn thresholds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let thresholds = self.core().thresholds();
        by_priority(py, |priority| Ok(thresholds[priority.level()]))
    }

    /// How much may be admitted a time, as "150/min"; None for any.
    #[getter]
    fn rate(&self) -> Option<String> {
        self.core().rate().map(|rate| rate.to_string())
    }

    /// The most weight that the rate lets in at once; None without a rate.
    #[getter]
    fn burst(&self) -> Option<u32> {
        self.core().rate().map(|rate| rate.burst())
    }

    /// The priority of requests that name none.
    #[getter]
    fn default_priority(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        names::priority(py, self.core().default_priority())
    }

    /// Whether requests are turned away; False in dry run.
    #[getter]
    fn enforce(&self) -> bool {
        self.core().enforce()
    }

    /// Whether the gate was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.core().closed()
    }

    /// The last limit changes, at most 64, oldest first.
    #[getter]
    fn limit_history(&self) -> Vec<LimitChange> {
        self.core().limit_history().into_iter().map(LimitChange::from).collect()
    }

    /// What the controller is at; None without one.
    #[getter]
    fn controller(&self, py: Python<'_>) -> PyResult<Option<ControllerReport>> {
        let report = self.core().controller();
        report.map(|report| ControllerReport::new(py, &report, self.core().now_ns())).transpose()
    }

    /// In how many seconds an answer is good; None: every success is.
    #[getter]
    fn objective(&self) -> Option<f64> {
        self.core().objective().map(|objective| objective.as_secs_f64())
    }

    /// What the signals say, and what comes of it; None without signals. If it is time for a look, this looks, as
    /// a request would.
    #[getter]
    fn pressure(&self, py: Python<'_>) -> PyResult<Option<Pressure>> {
        let pressure = self.core().pressure();
        self.door.get().besides(py)?;
        Ok(pressure.map(Pressure::from))
    }

    /// Pushes a value from 0 to 1 into the signal of this name. It is good for ``good_for`` seconds; then the
    /// signal is unknown until the next one. Who asks for a permit next has it looked at.
    ///
    /// Raises:
    ///     ConfigError: The gate has no such signal, or that is measured; or a value breaks its rule.
    ///     TypeError: A value has the wrong type.
    #[pyo3(
        signature = (name, value, *, good_for=None),
        text_signature = "($self, name, value, *, good_for=5.0)"
    )]
    fn signal(
        &self,
        name: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        good_for: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        const GOOD_FOR: Duration = Duration::from_secs(5);
        let label = arguments::name(name)?;
        let value = arguments::number("value", value)?;
        let good_for = good_for.map_or(Ok(GOOD_FOR), |given| arguments::seconds("good_for", given))?;
        let pushed = self.core().signal(&label, value, good_for);
        pushed.map_err(|error| config_error(name.py(), &error))
    }

    #[classattr]
    fn __enter__() -> Prebound {
        Prebound::ENTER
    }

    #[classattr]
    fn __exit__() -> Prebound {
        Prebound::EXIT
    }

    fn __aenter__(&self, py: Python<'_>) -> PyResult<Py<Ready>> {
        let door = self.door.bind(py);
        let block = if door.get().is_exact() { Block::looked_up(door) } else { None };
        block.map_or_else(|| Ok(self.entering.clone_ref(py)), |block| Ready::timed(&block))
    }

    #[classattr]
    fn __aexit__() -> Prebound {
        Prebound::AEXIT
    }

    /// An admission to enter with ``with`` or ``async with``, or to await. Holds nothing until then.
    #[pyo3(
        signature = (*, priority=None, weight=None),
        text_signature = "($self, *, priority=None, weight=1)"
    )]
    fn admit(
        &self,
        py: Python<'_>,
        priority: Option<&Bound<'_, PyAny>>,
        weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Admission> {
        Ok(Admission::new(self.door.clone_ref(py), arguments::ask(priority, weight)?))
    }

    /// A permit, which is the caller's to release, or None. Never waits.
    #[pyo3(
        signature = (*, priority=None, weight=None),
        text_signature = "($self, *, priority=None, weight=1)"
    )]
    fn try_admit(
        &self,
        py: Python<'_>,
        priority: Option<&Bound<'_, PyAny>>,
        weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<Permit>>> {
        Ok(Door::take(self.door.bind(py), arguments::ask(priority, weight)?)?.ok())
    }

    /// Decorates a function, coroutine function, generator or async generator: each run of its
    /// body holds a permit. Use as ``@gate.guard`` or ``@gate.guard(priority=..., weight=...)``.
    #[pyo3(
        signature = (function=None, /, *, priority=None, weight=None),
        text_signature = "($self, function=None, /, *, priority=None, weight=1)"
    )]
    fn guard<'py>(
        slf: &Bound<'py, Self>,
        function: Option<&Bound<'py, PyAny>>,
        priority: Option<&Bound<'py, PyAny>>,
        weight: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static GUARD: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        arguments::ask(priority, weight)?; // wrong arguments are told where they are written
        let guard = imported(slf.py(), &GUARD, "tidegate._guard", "guard")?;
        guard.call1((slf, function, priority, weight))
    }

    /// Sets the limit. Once this has returned nothing is admitted above it; permits that are out stay
    /// valid. ``cause`` is kept in ``limit_history``. A controller forgets what it knew and starts anew from there.
    #[pyo3(signature = (n, *, cause=None))]
    fn set_limit(&self, n: &Bound<'_, PyAny>, cause: Option<&str>) -> PyResult<()> {
        let limit = arguments::limit(n)?;
        let changed = self.core().set_limit(limit, cause);
        let change = changed.map_err(|error| config_error(n.py(), &error))?;
        self.tell(n.py(), Kind::Limit, || Fields::limit(change))
    }

    /// Sets the thresholds: priority to fraction of the limit, or to ``{"reserve": weight}``. What is not
    /// named has its default.
    fn set_thresholds(&self, mapping: &Bound<'_, PyAny>) -> PyResult<()> {
        let thresholds = arguments::thresholds(Some(mapping))?;
        let changed = self.core().set_thresholds(thresholds);
        let at_limit = changed.map_err(|error| config_error(mapping.py(), &error))?;
        self.tell(mapping.py(), Kind::Thresholds, || Fields::thresholds(at_limit))
    }

    /// Sets the rate, as "150/min", or takes it away (None). What was used of the old burst stays used, up to
    /// the whole of the new one; where there was no rate the burst is full. ``cause`` is told to hooks.
    #[pyo3(signature = (rate, *, burst=None, cause=None))]
    fn set_rate(
        &self,
        py: Python<'_>,
        rate: Option<&Bound<'_, PyAny>>,
        burst: Option<&Bound<'_, PyAny>>,
        cause: Option<&str>,
    ) -> PyResult<()> {
        let rate = arguments::rate(rate, burst)?;
        self.core().set_rate(rate);
        self.tell(py, Kind::Rate, || Fields::rate(rate, cause))
    }

    /// Switches dry run off (True) or on (False).
    fn set_enforce(&self, py: Python<'_>, flag: bool) -> PyResult<()> {
        self.core().set_enforce(flag);
        self.tell(py, Kind::Enforce, || Fields::enforce(flag))
    }

    /// For how many seconds a request like this should stay away, at least: 0.0 when it would be
    /// admitted now, None when that is unknown, infinity when it is never.
    #[pyo3(
        signature = (*, priority=None, weight=None),
        text_signature = "($self, *, priority=None, weight=1)"
    )]
    fn retry_after(
        &self,
        py: Python<'_>,
        priority: Option<&Bound<'_, PyAny>>,
        weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<f64>> {
        self.door.get().wait(py, arguments::ask(priority, weight)?)
    }

    /// Admits nothing any more, also in dry run. What is inside may leave in its own time.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Door::close(self.door.bind(py))
    }

    /// Closes the gate and waits until everything inside has left. Returns whether it has, within
    /// ``timeout`` seconds (None: for ever). RuntimeError under a running event loop, which it would
    /// block: use ``drain_async`` there.
    #[pyo3(signature = (timeout=None))]
    fn drain(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        static REFUSE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let timeout = arguments::timeout(timeout)?;
        imported(py, &REFUSE, "tidegate._drain", "refuse_in_event_loop")?.call0()?;
        self.close(py)?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SIGNAL_CHECK, |left| left.min(SIGNAL_CHECK));
            if py.detach(|| self.core().drain(Some(slice))) {
                return Ok(true);
            }
            py.check_signals()?;
            if left.is_some_and(|left| left <= SIGNAL_CHECK) {
                return Ok(false);
            }
        }
    }

    /// As ``drain``, for a coroutine on asyncio or trio: the event loop goes on meanwhile.
    #[pyo3(signature = (timeout=None))]
    fn drain_async<'py>(
        slf: &Bound<'py, Self>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static DRAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let seconds = arguments::timeout(timeout)?.map(|timeout| timeout.as_secs_f64());
        imported(slf.py(), &DRAIN, "tidegate._drain", "drain_async")?.call1((slf, seconds))
    }

    /// Closes the gate; ``callback()`` is called once everything inside has left, by whoever
    /// releases the last of it, in any thread. Returns what ``_forget_drained`` takes.
    fn _on_drained(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<u64> {
        self.close(py)?;
        let id = self.core().on_drained(Box::new(move || {
            // At interpreter exit nobody waits any more.
            Python::try_attach(|py| {
                if let Err(error) = callback.call0(py) {
                    error.write_unraisable(py, Some(callback.bind(py)));
                }
            });
        }));
        Ok(id.to_u64())
    }

    /// Forgets a callback that nobody waits for any more.
    fn _forget_drained(&self, waiting: u64) {
        self.core().forget_drained(DrainId::from_u64(waiting));
    }

    /// Has ``hook(event)`` called when something happens at this gate. Returns what unsubscribes it, when
    /// called or at the end of a ``with`` block.
    ///
    /// A hook is called by the thread that did what happened, so it should be quick and must not wait. What it
    /// raises goes to ``sys.unraisablehook``, never to the caller, except what is no ``Exception`` (an
    /// interrupt, an exit): that goes on to the caller. A hook is not called for what happens in its thread
    /// while it runs; the other hooks are, and nobody for what they do in turn.
    ///
    /// Args:
    ///     hook: Called with an Event.
    ///     events: The kinds of events, or one; None for all but "released", which costs every permit. What a
    ///         controller or a signal did is told by the call that noticed it.
    ///
    /// Raises:
    ///     ConfigError: There is no such kind of event, or none was named.
    ///     TypeError: The hook cannot be called.
    #[pyo3(signature = (hook, events=None))]
    fn subscribe(
        &self,
        hook: &Bound<'_, PyAny>,
        events: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Subscription> {
        if !hook.is_callable() {
            return Err(arguments::wrong_type("hook", "a callable", hook));
        }
        Subscription::new(self.door.bind(hook.py()), hook, arguments::kinds(events)?)
    }

    /// A reading of all counters.
    fn stats(&self) -> Stats {
        Stats { core: self.core().stats() }
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Gate cannot be pickled or copied: it counts in this process; make one in each process",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let closed = if self.closed() { ", closed" } else { "" };
        let dry = if self.enforce() { "" } else { ", dry run" };
        let name = self.name(py).bind(py).repr()?;
        let (in_flight, limit) = (self.in_flight(), self.limit());
        Ok(format!("<Gate {name}: {in_flight} of {limit} in flight{dry}{closed}>"))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.door)?;
        visit.call(&self.entering)?;
        self.bindings.traverse(&visit)
    }
}

#[cold]
pub(crate) fn warn_unpublished(py: Python<'_>, gate: &str) -> PyResult<()> {
    let text = format!("TIDEGATE_METRICS_DIR has no room for gate '{gate}': metrics go without it");
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &CString::new(text)?, 1)
}
