//! Signals in Python: what a gate looks at beside its limit.
//!
//! A `Signal` only describes: each gate makes its own of it, which share nothing. A function of the user's is kept by
//! the Python object, and the gate's core knows that object by a weak reference: so the garbage collector sees
//! all of a cycle, and a function that knows its gate goes with it. The door keeps the object.
//!
//! A function is called by a request that finds the last reading too old, with no lock held. What it raises is not
//! the caller's fault, so it is reported (`sys.unraisablehook`) and the signal is unknown; once in a row, since a
//! function that fails fails for every request. What is no `Exception` (an interrupt, an exit) is: it waits here until
//! the door has its answer, and goes on to the caller in its place.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyWeakrefMethods, PyWeakrefReference};
use tidegate::detector::Rule;
use tidegate::signal::{Kind, Signal as CoreSignal};
use tidegate::{ConfigError, MAX_NAME_BYTES};

use crate::arguments;
use crate::names::{config_error, config_error_text};

/// Where readings come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Measured(Kind),
    Pushed,
    Function,
}

/// The kind that is measured under a name, if any: "pushed" is a name like any other.
fn measured(name: &str) -> Option<Kind> {
    name.parse().ok().filter(|kind| *kind != Kind::Pushed)
}

/// A kind that is measured, for which a name of somebody's own was perhaps meant.
fn meant(name: &str) -> Option<Kind> {
    measured(&name.to_lowercase().replace('_', "-")).filter(|kind| kind.name() != name)
}

/// A pressure from 0 to 1 that a gate looks at, and from when on it is too much: ``Gate(signals=[Signal("cpu")])``.
///
/// Args:
///     name: "cpu", "memory", "psi-cpu", "psi-memory", "psi-io", "latency" or "errors", which are measured here; or a
///         name of yours, for a function or for values that ``Gate.signal`` pushes in.
///     function: Called without arguments when its last answer is too old: a number from 0 to 1, or None where it
///         does not know. It runs in a request, so it must not wait long.
///     enter: At or above this it is overload, once that has held for ``enter_for`` seconds; 0.85, of "errors" 0.1.
///     leave: At or below this it is not any more, once that has held for ``leave_for`` seconds; 0.7, of "errors"
///         0.05.
///     full: Where as much is shed as can be; 1.0, of "errors" 0.5.
///     enter_for: In seconds.
///     leave_for: In seconds.
///     dwell: The least time between two changes, in seconds.
///     ramp: In so many seconds shedding may rise from nothing to all, or fall.
///     good_for: For how many seconds an answer of ``function`` is good.
///
/// Raises:
///     ConfigError: A value breaks its rule (a ValueError, too).
///     TypeError: A value has the wrong type.
#[pyclass(frozen, weakref, module = "tidegate")]
pub(crate) struct Signal {
    name: String,
    source: Source,
    function: Option<Py<PyAny>>,
    good_for: Duration,
    rule: Rule,
    /// Whether its latest failure was told.
    told: AtomicBool,
}

#[pymethods]
impl Signal {
    #[new]
    #[pyo3(
        signature = (name, *, function=None, enter=None, leave=None, full=None, enter_for=None, leave_for=None,
                     dwell=None, ramp=None, good_for=None),
        text_signature = "(name, *, function=None, enter=None, leave=None, full=None, enter_for=2.0, \
                          leave_for=10.0, dwell=5.0, ramp=20.0, good_for=1.0)"
    )]
    #[allow(clippy::too_many_arguments)] // keyword arguments of a Python constructor
    fn new(
        name: &Bound<'_, PyAny>,
        function: Option<&Bound<'_, PyAny>>,
        enter: Option<&Bound<'_, PyAny>>,
        leave: Option<&Bound<'_, PyAny>>,
        full: Option<&Bound<'_, PyAny>>,
        enter_for: Option<&Bound<'_, PyAny>>,
        leave_for: Option<&Bound<'_, PyAny>>,
        dwell: Option<&Bound<'_, PyAny>>,
        ramp: Option<&Bound<'_, PyAny>>,
        good_for: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = name.py();
        let name = arguments::name(name)?;
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || name.chars().any(char::is_control) {
            return Err(config_error(py, &ConfigError::Name { got: name }));
        }
        let measured = measured(&name);
        if let Some(meant) = meant(&name) {
            let meant = meant.name();
            let text =
                format!("a signal of yours needs a name that is not so close to {meant:?}, got {name:?}");
            return Err(config_error_text(py, &text));
        }
        let source = match (function, measured) {
            (None, measured) => measured.map_or(Source::Pushed, Source::Measured),
            (Some(_), Some(_)) => {
                let text = format!("the signal {name:?} is measured here: a function needs another name");
                return Err(config_error_text(py, &text));
            }
            (Some(function), None) if !function.is_callable() => {
                return Err(arguments::wrong_type("function", "a callable", function));
            }
            (Some(_), None) => Source::Function,
        };
        if good_for.is_some() && source != Source::Function {
            return Err(config_error_text(py, "good_for goes with a function"));
        }
        let number = |what, given: Option<&Bound<'_, PyAny>>, default| {
            given.map_or(Ok(default), |given| arguments::number(what, given))
        };
        let seconds = |what, given: Option<&Bound<'_, PyAny>>, default: Duration| {
            given.map_or(Ok(default), |given| arguments::seconds(what, given))
        };
        let usual = measured.map_or_else(Rule::default, Kind::rule);
        let enter = number("enter", enter, usual.enter())?;
        let leave = number("leave", leave, usual.leave())?;
        let rule = Rule::new(enter, leave, number("full", full, usual.full())?)
            .map_err(|error| config_error(py, &error))?
            .holding(
                seconds("enter_for", enter_for, Duration::from_secs(2))?,
                seconds("leave_for", leave_for, Duration::from_secs(10))?,
            )
            .resting(seconds("dwell", dwell, Duration::from_secs(5))?)
            .rising_in(seconds("ramp", ramp, Duration::from_secs(20))?);
        Ok(Self {
            name,
            source,
            function: function.map(|function| function.clone().unbind()),
            good_for: seconds("good_for", good_for, Duration::from_secs(1))?,
            rule,
            told: AtomicBool::new(false),
        })
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        let source = match self.source {
            Source::Pushed => "pushed in",
            Source::Function => "by a function",
            Source::Measured(_) => "measured",
        };
        format!("<Signal {:?}: {source}>", self.name)
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("a Signal cannot be pickled or copied: make one in each process"))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.function.as_ref().map_or(Ok(()), |function| visit.call(function))
    }
}

impl Signal {
    /// For the core of one gate. Whoever has it keeps the object, for as long as the gate is in use.
    fn core(slf: &Bound<'_, Self>) -> PyResult<(CoreSignal, Rule)> {
        let this = slf.get();
        let name = this.name.as_str();
        let signal = match this.source {
            Source::Measured(kind) => CoreSignal::of(kind),
            Source::Pushed => CoreSignal::pushed(name),
            Source::Function => {
                let object = PyWeakrefReference::new(slf)?.unbind();
                CoreSignal::function(name, this.good_for, move || {
                    Python::try_attach(|py| {
                        let object = object.bind(py).upgrade()?; // None: the gate is on its way out
                        Signal::ask(object.cast().expect("it was made of one"))
                    })?
                })
            }
        };
        Ok((signal, this.rule))
    }

    fn ask(slf: &Bound<'_, Self>) -> Option<f64> {
        let (py, this) = (slf.py(), slf.get());
        let function = this.function.as_ref()?.bind(py);
        let answered = function.call0().and_then(|answer| this.value(&answer));
        match answered {
            Ok(value) => {
                if value.is_some() {
                    this.told.store(false, Ordering::Relaxed);
                }
                value
            }
            Err(error) if error.is_instance_of::<PyException>(py) => {
                if !this.told.swap(true, Ordering::Relaxed) {
                    error.write_unraisable(py, Some(function));
                }
                None
            }
            Err(error) => {
                ON_ITS_WAY.with_borrow_mut(|kept| kept.replace(error));
                None
            }
        }
    }

    fn value(&self, answer: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        if answer.is_none() {
            return Ok(None);
        }
        let what = format!("the answer of signal {:?}", self.name);
        if answer.is_instance_of::<PyBool>() {
            return Err(arguments::wrong_type(&what, "a number from 0 to 1, or None", answer));
        }
        let value = arguments::number(&what, answer)?;
        if (0.0..=1.0).contains(&value) {
            return Ok(Some(value));
        }
        let text = format!("{what} must be a number from 0 to 1, or None, got {value}");
        Err(config_error_text(answer.py(), &text))
    }
}

thread_local! {
    /// What a function raised in this thread that is the caller's: until the door has looked.
    static ON_ITS_WAY: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// What a function raised that goes on to the caller of the gate.
pub(crate) fn on_its_way() -> Option<PyErr> {
    ON_ITS_WAY.with_borrow_mut(Option::take)
}

/// The signals of a gate: as its core takes them, and the objects that must live as long as it is used.
#[derive(Default)]
pub(crate) struct Signals {
    objects: Vec<Py<Signal>>,
    /// Whether any of them runs code of the user's.
    functions: bool,
}

impl Signals {
    /// From ``Gate(signals=...)``.
    pub(crate) fn new(given: Option<&Bound<'_, PyAny>>) -> PyResult<(Self, Vec<(CoreSignal, Rule)>)> {
        let Some(given) = given else { return Ok(Default::default()) };
        let rule = "an iterable of Signal";
        let mut signals = Self::default();
        let mut core = Vec::new();
        for item in given.try_iter().map_err(|_| arguments::wrong_type("signals", rule, given))? {
            let item = item?;
            let signal = item.cast::<Signal>().map_err(|_| arguments::wrong_type("signals", rule, given))?;
            core.push(Signal::core(signal)?);
            signals.functions |= signal.get().source == Source::Function;
            signals.objects.push(signal.clone().unbind());
        }
        Ok((signals, core))
    }

    /// What a function raised in the call that the door is in, if any.
    #[inline]
    pub(crate) fn raised(&self) -> Option<PyErr> {
        if self.functions { on_its_way() } else { None }
    }

    pub(crate) fn traverse(&self, visit: &pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        self.objects.iter().try_for_each(|signal| visit.call(signal))
    }
}
