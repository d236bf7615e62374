//! Gates from a file, in Python: a mapping of names to gates.
//!
//! The core has the gates and what a reload does to them. Here each has its one Python object, made when it is
//! first asked for, and a reload tells that object's hooks what changed, as the setters do.
//!
//! What is kept is in dicts, whose operations are atomic: no lock is there for a fork to find.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator, PyMapping, PyString};
use tidegate::{DrainId, FileError};

use crate::arguments;
use crate::change::Change;
use crate::classifier::Classifier;
use crate::clock::ManualClock;
use crate::door::Door;
use crate::gate::{Gate, warn_unpublished};
use crate::names::{self, config_error_text, imported};
use crate::outcome::Outcomes;
use crate::signal::Signals;

/// The gates that a file has, by name, and its classifier: a mapping. Made by `tidegate.load`.
///
/// Each name has one gate, the same object whenever it is asked for; ``reload`` changes it in place.
#[pyclass(frozen, weakref, mapping, module = "tidegate")]
pub(crate) struct Gates {
    core: tidegate::Gates,
    /// Name to `Gate`, also of gates that the file has no more.
    objects: Py<PyDict>,
    /// Name to exception class to outcome, as it was given.
    outcomes: Py<PyDict>,
    /// Name to the number of the callback that waits for a removed gate to be drained.
    draining: Py<PyDict>,
    /// None to the `Rules` that are valid now.
    rules: Py<PyDict>,
    published: bool,
}

/// The object of a classifier.
#[pyclass(frozen, module = "tidegate._native")]
struct Rules {
    core: Arc<tidegate::Classifier>,
    object: Py<Classifier>,
}

/// What gates are built with that a file does not say.
struct Surroundings {
    clock: Option<Arc<tidegate::ManualClock>>,
    directory: Option<PathBuf>,
}

impl Surroundings {
    fn prepare(&self, builder: tidegate::GateBuilder) -> tidegate::GateBuilder {
        let mut builder = builder.bare_entries(true);
        if let Some(clock) = &self.clock {
            builder = builder.clock(clock.clone());
        }
        match &self.directory {
            Some(directory) => builder.publish_in(directory),
            None => builder,
        }
    }
}

/// Makes the gates of a file, by `make` from what builds them.
fn made(
    py: Python<'_>,
    outcomes: Option<&Bound<'_, PyAny>>,
    clock: Option<&Bound<'_, ManualClock>>,
    make: impl FnOnce(
        Box<dyn Fn(tidegate::GateBuilder) -> tidegate::GateBuilder + Send + Sync>,
    ) -> Result<tidegate::Gates, FileError>
    + Send,
) -> PyResult<Gates> {
    let clock = clock.map(|clock| clock.get().core.clone());
    let directory = arguments::metrics_directory(py)?;
    let published = directory.is_some();
    let around = Surroundings { clock, directory };
    let core = py.detach(|| make(Box::new(move |builder| around.prepare(builder))));
    let core = core.map_err(|error| names::file_error(py, &error))?;
    let gates = Gates {
        outcomes: outcomes_by_name(py, &core, outcomes)?,
        core,
        objects: PyDict::new(py).unbind(),
        draining: PyDict::new(py).unbind(),
        rules: PyDict::new(py).unbind(),
        published,
    };
    gates.warn_unpublished(py)?;
    Ok(gates)
}

/// Checked for each gate when it is given, not when the gate is first used.
fn outcomes_by_name(
    py: Python<'_>,
    core: &tidegate::Gates,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyDict>> {
    let by_name = PyDict::new(py);
    let Some(given) = given else { return Ok(by_name.unbind()) };
    let given = given
        .cast::<PyMapping>()
        .map_err(|_| arguments::wrong_type("outcomes", "a mapping from name of a gate to outcomes", given))?;
    for item in given.items()? {
        let (name, outcomes): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let name = arguments::name(&name)?;
        if core.gate(&name).is_none() {
            let text = format!("outcomes are given for gate {name:?}, which {} does not have", core.file());
            return Err(config_error_text(py, &text));
        }
        Outcomes::new(Some(&outcomes))?;
        by_name.set_item(name, outcomes)?;
    }
    Ok(by_name.unbind())
}

/// A text of Python's as the core reads it. What has no UTF-8 is said to be so at its line.
fn toml(file: &str, text: &Bound<'_, PyString>) -> PyResult<String> {
    if let Ok(text) = text.to_str() {
        return Ok(text.to_owned());
    }
    let bytes: Vec<u8> = text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()?;
    tidegate::toml_text(file, bytes).map_err(|error| names::file_error(text.py(), &error))
}

/// The gates of a TOML file.
///
/// Args:
///     path: The file.
///     outcomes: What a file cannot say: for the name of a gate, exception class to "success", "overload" or
///         "ignore", as `Gate` takes it.
///     clock: A ``tidegate.testing.ManualClock``, for tests.
///
/// Raises:
///     ConfigError: The file cannot be read, or something in it breaks its rule: the message has all of that, one
///         problem a line, and so has ``problems``. Or ``outcomes`` name a gate that the file does not have.
///     TypeError: A value has the wrong type.
#[pyfunction]
#[pyo3(signature = (path, *, outcomes=None, clock=None))]
pub(crate) fn load(
    path: &Bound<'_, PyAny>,
    outcomes: Option<&Bound<'_, PyAny>>,
    clock: Option<&Bound<'_, ManualClock>>,
) -> PyResult<Gates> {
    let py = path.py();
    let path: PathBuf =
        path.extract().map_err(|_| arguments::wrong_type("path", "a str or an os.PathLike", path))?;
    made(py, outcomes, clock, |prepare| tidegate::Gates::load_with(path, prepare))
}

#[pymethods]
impl Gates {
    /// The gates of a text in TOML.
    ///
    /// Args:
    ///     text: What a file would have.
    ///     file: What messages call it.
    ///     outcomes: As for `tidegate.load`.
    ///     clock: As for `tidegate.load`.
    ///
    /// Raises:
    ///     ConfigError: As from `tidegate.load`.
    ///     TypeError: A value has the wrong type.
    #[staticmethod]
    #[pyo3(signature = (text, *, file="<text>", outcomes=None, clock=None))]
    fn from_toml(
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        file: &str,
        outcomes: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, ManualClock>>,
    ) -> PyResult<Self> {
        let text = toml(file, text)?;
        made(py, outcomes, clock, |prepare| tidegate::Gates::from_toml_with(file, &text, prepare))
    }

    /// Reads the file again, or ``text`` in its place, and makes the gates what it says now.
    ///
    /// Gates keep what they count, and once this has returned nothing is admitted above a new limit. A gate that
    /// the file has no more is closed until it has it again. What was set by the program becomes what the file
    /// says. Hooks are told as by the setters, with the cause "reload".
    ///
    /// Returns:
    ///     What was changed; empty where nothing was.
    ///
    /// Raises:
    ///     ConfigError: As from `tidegate.load`, or ``timing`` is another than a gate has. Nothing was changed.
    #[pyo3(signature = (text=None))]
    fn reload(&self, py: Python<'_>, text: Option<&Bound<'_, PyString>>) -> PyResult<Vec<Change>> {
        let text = text.map(|text| toml(self.core.file(), text)).transpose()?;
        let changes = py.detach(|| match &text {
            Some(text) => self.core.reload_toml(text),
            None => self.core.reload(),
        });
        let changes = changes.map_err(|error| names::file_error(py, &error))?;
        let mut told = self.warn_unpublished(py);
        for change in &changes {
            told = told.and(self.tell(py, change)); // the others are told, too
        }
        told.map(|()| changes.into_iter().map(Change::from).collect())
    }

    /// What the gates and the rules do, in words, with what is worth a second look.
    fn explain(&self) -> String {
        self.core.explain()
    }

    /// The classifier that the file has now, or None. The same object until a reload changes the rules; whoever
    /// keeps it keeps the old ones. See also `classify`.
    #[getter]
    fn classifier(&self, py: Python<'_>) -> PyResult<Option<Py<Classifier>>> {
        let Some(core) = self.core.classifier() else { return Ok(None) };
        let kept = self.rules.bind(py);
        if let Some(rules) = kept.get_item(py.None())? {
            let rules = rules.cast::<Rules>()?.get();
            if Arc::ptr_eq(&rules.core, &core) {
                return Ok(Some(rules.object.clone_ref(py)));
            }
        }
        let object = Py::new(py, Classifier::new(py, (*core).clone()))?;
        kept.set_item(py.None(), Py::new(py, Rules { core, object: object.clone_ref(py) })?)?;
        Ok(Some(object))
    }

    /// The priority of a request by the rules that the file has now; None where no rule matches and there is no
    /// default, or no classifier.
    ///
    /// Args:
    ///     attributes: What is known of the request, by name, as for `Classifier.classify`.
    ///
    /// Raises:
    ///     TypeError: As from `Classifier.classify`.
    fn classify(&self, py: Python<'_>, attributes: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        match self.classifier(py)? {
            Some(classifier) => classifier.get().classify(py, attributes),
            None => Ok(None),
        }
    }

    /// Where the file is; None for gates that were made from a text.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.core.path().map(PathBuf::from)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Gate>> {
        let this = slf.get();
        let found = match name.cast::<PyString>().ok().and_then(|name| name.to_str().ok()) {
            Some(text) => this.object(slf.py(), text)?,
            None => None,
        };
        found.ok_or_else(|| {
            let names = this.core.names().join(", ");
            let name = name.repr().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            PyKeyError::new_err(format!("{} has no gate {name}; it has {names}", this.core.file()))
        })
    }

    /// The gate of this name, or ``default`` where the file has none.
    #[pyo3(signature = (name, default=None, /))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match Self::__getitem__(slf, name) {
            Ok(gate) => Ok(Some(gate.into_any())),
            Err(error) if error.is_instance_of::<PyKeyError>(slf.py()) => Ok(default),
            Err(error) => Err(error),
        }
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> bool {
        let text = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok());
        text.is_some_and(|name| self.core.gate(name).is_some())
    }

    fn __len__(&self) -> usize {
        self.core.names().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.core.names().into_pyobject(py)?.try_iter()
    }

    /// The names, in the file's order.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static VIEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        imported(slf.py(), &VIEW, "collections.abc", "KeysView")?.call1((slf,))
    }

    /// The gates that the file has now, in its order: a reload meanwhile changes nothing of it.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.now(py)?.call_method0("values")
    }

    /// Names and gates that the file has now, in its order: a reload meanwhile changes nothing of it.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.now(py)?.call_method0("items")
    }

    fn __reduce_ex__(&self, _protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "Gates cannot be pickled or copied: they count in this process; load the file in each process",
        ))
    }

    fn __repr__(&self) -> String {
        format!("<Gates of {}: {}>", self.core.file(), self.core.names().join(", "))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        visit.call(&self.objects)?;
        visit.call(&self.outcomes)?;
        visit.call(&self.rules)
    }
}

impl Gates {
    /// The object of a gate that the file has. Of two that are made at once, one stays.
    fn object<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, Gate>>> {
        let Some(core) = self.core.gate(name) else { return Ok(None) };
        if let Some(known) = self.known(py, name)? {
            return Ok(Some(known));
        }
        let outcomes = Outcomes::new(self.outcomes.bind(py).get_item(name)?.as_ref())?;
        let gate = Bound::new(py, Gate::from_core(py, core, outcomes, Signals::default())?)?;
        let kept = self.objects.bind(py).call_method1("setdefault", (name, gate))?;
        Ok(Some(kept.cast_into()?))
    }

    /// The gates that the file has at the moment. A view of the mapping itself would ask for gates that a reload
    /// takes away while somebody goes through it.
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for name in self.core.names() {
            if let Some(gate) = self.object(py, &name)? {
                all.set_item(name, gate)?;
            }
        }
        Ok(all)
    }

    /// The object of a gate, if it has one yet.
    fn known<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, Gate>>> {
        let known = self.objects.bind(py).get_item(name)?;
        Ok(known.map(Bound::cast_into).transpose()?)
    }

    /// Tells the hooks of the gate that was changed.
    fn tell(&self, py: Python<'_>, change: &tidegate::Change) -> PyResult<()> {
        use tidegate::Difference::{Removed, Reopened, StaysClosed};

        let Some(name) = change.gate.as_deref() else { return Ok(()) };
        let Some(gate) = self.known(py, name)? else { return Ok(()) }; // nobody can have subscribed
        let door = gate.get().door.bind(py);
        let draining = self.draining.bind(py);
        match &change.difference {
            Removed { .. } => {
                let told = door.get().tell_closed(py);
                let waiting = Door::tell_when_drained(door)?.to_u64();
                self.forget_draining(door, name)?; // where two reloads are told of out of order
                draining.set_item(name, waiting)?;
                // Another reload, perhaps by a hook just now, may have opened it again, and found nothing to forget.
                if door.get().core.closed() { told } else { told.and(self.forget_draining(door, name)) }
            }
            Reopened { .. } => self.forget_draining(door, name),
            // Its drain is still to come.
            StaysClosed => draining.call_method1("pop", (name, py.None())).map(drop),
            difference => door.get().tell_changed(py, difference),
        }
    }

    /// Nobody waits any more for a removed gate to be drained.
    fn forget_draining(&self, door: &Bound<'_, Door>, name: &str) -> PyResult<()> {
        let py = door.py();
        let waiting = self.draining.bind(py).call_method1("pop", (name, py.None()))?;
        if let Some(waiting) = waiting.extract()? {
            door.get().core.forget_drained(DrainId::from_u64(waiting));
        }
        Ok(())
    }

    fn warn_unpublished(&self, py: Python<'_>) -> PyResult<()> {
        if !self.published {
            return Ok(());
        }
        let gates = self.core.names().into_iter().filter_map(|name| self.core.gate(&name));
        for gate in gates.filter(|gate| !gate.is_published()) {
            warn_unpublished(py, gate.name())?;
        }
        Ok(())
    }
}
