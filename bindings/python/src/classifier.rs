//! A classifier in Python: rules from mappings of the same shape as a configuration file has them.

use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyDict, PyMapping, PyString, PyTuple};
use tidegate::{ConfigError, Match, Priority, Rule};

use crate::arguments::{self, wrong_type};
use crate::names::{self, config_error, config_error_text};

type Any<'py> = Bound<'py, PyAny>;

const RULE_KEYS: [&str; 3] = ["match", "priority", "name"];

/// Tells the priority of a request by ordered rules, of which the first that matches decides.
///
/// ``Classifier(**tomllib.load(file)["classifier"])`` takes the table of a configuration file.
///
/// Args:
///     rules: Mappings with ``match``, ``priority`` and optionally ``name``. ``match`` maps the names of
///         attributes to a pattern or a list of patterns, of which one has to match the whole value; ``*``
///         stands for any characters, slashes among them. All attributes that it names have to match, and one
///         that the request lacks never does. ``{"header": {"x-plan": "free"}}`` is ``{"header.x-plan":
///         "free"}``. Names of headers are taken in lower case, patterns of ``method`` in upper case.
///     default: The priority of requests that no rule matches; None leaves them to the context and the gate.
///     essential: In place of both: what a request must match (as ``match``), one of these, to be "essential".
///         All others are "non-essential".
///
/// Raises:
///     ConfigError: A value breaks its rule; the message names the rule of the classifier by its number from 1.
///     TypeError: A value has the wrong type.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Classifier {
    core: tidegate::Classifier,
    /// The names of its attributes, in their order.
    names: Box<[Py<PyString>]>,
}

impl Classifier {
    pub(crate) fn new(py: Python<'_>, core: tidegate::Classifier) -> Self {
        let names = core.attributes().iter().map(|name| PyString::intern(py, name).unbind()).collect();
        Self { core, names }
    }

    /// What `decide` makes of the core and a lookup in `attributes`, by position.
    fn looked_up<'c, T>(
        &'c self,
        attributes: &Any<'_>,
        decide: impl FnOnce(&'c tidegate::Classifier, &mut dyn FnMut(usize) -> Option<Text>) -> T,
    ) -> PyResult<T> {
        let attributes = Attributes::new(attributes)?;
        let mut failed = None;
        let decided = decide(&self.core, &mut |at| {
            if failed.is_some() {
                return None;
            }
            attributes.value(&self.names[at]).unwrap_or_else(|error| {
                failed = Some(error);
                None
            })
        });
        failed.map_or(Ok(decided), Err)
    }
}

#[pymethods]
impl Classifier {
    #[new]
    #[pyo3(
        signature = (rules=None, *, default=None, essential=None),
        text_signature = "(rules=(), *, default=None, essential=None)"
    )]
    fn from_rules(
        py: Python<'_>,
        rules: Option<&Any<'_>>,
        default: Option<&Any<'_>>,
        essential: Option<&Any<'_>>,
    ) -> PyResult<Self> {
        let default = default.map(|default| within("default", default, arguments::priority)).transpose()?;
        let core = if let Some(essential) = essential {
            let more = rules.map(|_| "rules").or(default.map(|_| "default"));
            if let Some(got) = more {
                return Err(config_error(py, &ConfigError::EssentialAndMore { got }));
            }
            let rule =
                |of: &Any<'_>| made(py, Rule::new(matching("an essential match", of)?, Priority::Critical));
            tidegate::Classifier::new(each("essential", essential, rule)?, Some(Priority::Sheddable))
        } else {
            let rules = rules.map(|rules| each("rule", rules, rule)).transpose()?;
            tidegate::Classifier::new(rules.unwrap_or_default(), default)
        };
        Ok(Self::new(py, made(py, core)?))
    }

    /// The priority of a request; None where no rule matches and there is no default.
    ///
    /// Args:
    ///     attributes: What is known of the request, by name. None stands for what it lacks.
    ///
    /// Raises:
    ///     TypeError: It is no mapping, or one of the values that a rule asks for is neither a str nor None.
    pub(crate) fn classify(&self, py: Python<'_>, attributes: &Any<'_>) -> PyResult<Option<Py<PyAny>>> {
        let decided = self.looked_up(attributes, |core, lookup| core.classify_by_position(lookup))?;
        decided.map(|priority| names::priority(py, priority)).transpose()
    }

    /// The priority of a request, and why it has it.
    ///
    /// Args:
    ///     attributes: As for `classify`.
    ///
    /// Raises:
    ///     TypeError: As from `classify`.
    fn explain(&self, attributes: &Any<'_>) -> PyResult<Explanation> {
        let explained = self.looked_up(attributes, |core, lookup| core.explain_by_position(lookup))?;
        Ok(Explanation {
            priority: explained.priority,
            rule: explained.rule.map(|(number, _)| number),
            name: explained.rule.and_then(|(_, rule)| rule.name().map(String::from)),
            text: explained.rule.map(|(_, rule)| rule.matching().to_string()),
            sentence: explained.to_string(),
        })
    }

    /// The names of the attributes that its rules ask for, each once.
    #[getter]
    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.names)
    }

    /// The priority of requests that no rule matches.
    #[getter]
    fn default(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.core.default_priority().map(|priority| names::priority(py, priority)).transpose()
    }

    fn __repr__(&self) -> String {
        let default = self
            .core
            .default_priority()
            .map_or("no default".to_owned(), |priority| format!("default {priority}"));
        let count = self.core.rules().len();
        format!("<Classifier: {count} rule{}, {default}>", if count == 1 { "" } else { "s" })
    }
}

/// Why a request has its priority. As text it is a sentence.
#[pyclass(frozen, module = "tidegate")]
pub(crate) struct Explanation {
    priority: Option<Priority>,
    /// The number of the rule that decided, from 1; None where none matched.
    #[pyo3(get)]
    rule: Option<usize>,
    /// That rule's name, if it has one.
    #[pyo3(get)]
    name: Option<String>,
    /// What that rule matches, as a configuration file has it.
    #[pyo3(get)]
    text: Option<String>,
    sentence: String,
}

#[pymethods]
impl Explanation {
    /// What `classify` answers.
    #[getter]
    fn priority(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.priority.map(|priority| names::priority(py, priority)).transpose()
    }

    fn __str__(&self) -> &str {
        &self.sentence
    }

    fn __repr__(&self) -> String {
        format!("<Explanation: {}>", self.sentence)
    }
}

// --- requests -----------------------------------------------------------------------------------

/// A mapping from names to values.
enum Attributes<'a, 'py> {
    Dict(&'a Bound<'py, PyDict>),
    Mapping(&'a Bound<'py, PyMapping>),
}

impl<'a, 'py> Attributes<'a, 'py> {
    fn new(given: &'a Any<'py>) -> PyResult<Self> {
        if let Ok(dict) = given.cast_exact::<PyDict>() {
            return Ok(Self::Dict(dict));
        }
        let mapping = given.cast::<PyMapping>().map_err(|_| wrong_type("attributes", "a mapping", given))?;
        Ok(Self::Mapping(mapping))
    }

    fn value(&self, name: &Py<PyString>) -> PyResult<Option<Text>> {
        let value = match self {
            Self::Dict(dict) => dict.get_item(name)?,
            Self::Mapping(mapping) => match mapping.get_item(name) {
                Ok(value) => Some(value),
                Err(error) if error.is_instance_of::<PyKeyError>(mapping.py()) => None,
                Err(error) => return Err(error),
            },
        };
        let Some(value) = value.filter(|value| !value.is_none()) else {
            return Ok(None);
        };
        match value.cast::<PyString>() {
            Ok(text) => Ok(Some(Text::new(text))),
            Err(_) => Err(wrong_type(
                &format!("attribute {}", name.bind(value.py()).repr()?),
                "a str or None",
                &value,
            )),
        }
    }
}

/// A text of Python's. What has no UTF-8 was sent by a client, and must match what has a star for it.
enum Text {
    Whole(PyBackedStr),
    Replaced(String),
}

impl Text {
    fn new(text: &Bound<'_, PyString>) -> Self {
        PyBackedStr::try_from(text.clone())
            .map_or_else(|_| Self::Replaced(text.to_string_lossy().into_owned()), Self::Whole)
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        match self {
            Self::Whole(text) => text,
            Self::Replaced(text) => text,
        }
    }
}

// --- rules --------------------------------------------------------------------------------------

fn rule(given: &Any<'_>) -> PyResult<Rule> {
    let py = given.py();
    let mapping = given.cast::<PyMapping>().map_err(|_| wrong_type("a rule", "a mapping", given))?;
    for key in mapping.keys()? {
        if !RULE_KEYS.iter().any(|known| key.eq(*known).unwrap_or(false)) {
            let keys = RULE_KEYS.join(", ");
            return Err(config_error_text(py, &format!("unknown key {}; a rule takes {keys}", key.repr()?)));
        }
    }
    let of = |key: &str| if mapping.contains(key)? { mapping.get_item(key).map(Some) } else { Ok(None) };
    let needed = |key: &str| of(key)?.ok_or_else(|| config_error_text(py, &format!("{key} is missing")));
    let matching = matching("match", &needed("match")?)?;
    let rule = made(py, Rule::new(matching, arguments::priority(&needed("priority")?)?))?;
    match of("name")?.filter(|name| !name.is_none()) {
        Some(name) => made(py, rule.named(&arguments::name(&name)?)),
        None => Ok(rule),
    }
}

fn matching(what: &str, given: &Any<'_>) -> PyResult<Match> {
    let conditions = given.cast::<PyMapping>().map_err(|_| wrong_type(what, "a mapping", given))?;
    with(Match::new(), "", conditions)
}

fn with(mut matching: Match, prefix: &str, conditions: &Bound<'_, PyMapping>) -> PyResult<Match> {
    for condition in conditions.items()? {
        let (name, patterns): (Any<'_>, Any<'_>) = condition.extract()?;
        let name = format!("{prefix}{}", arguments::attribute(&name)?);
        matching = if let Ok(nested) = patterns.cast::<PyMapping>() {
            with(matching, &format!("{name}."), nested)?
        } else {
            let of_name =
                |patterns: &Any<'_>| made(patterns.py(), matching.when(&name, self::patterns(patterns)?));
            within(&format!("{name:?}"), &patterns, of_name)?
        };
    }
    Ok(matching)
}

/// One pattern or several.
fn patterns(given: &Any<'_>) -> PyResult<Vec<String>> {
    if given.is_instance_of::<PyString>() {
        return Ok(vec![pattern(given)?]);
    }
    let wrong = |_| wrong_type("a pattern", "a str or a list of them", given);
    given.try_iter().map_err(wrong)?.map(|each| pattern(&each?)).collect()
}

fn pattern(given: &Any<'_>) -> PyResult<String> {
    let text = given.cast::<PyString>().map_err(|_| wrong_type("a pattern", "a str", given))?;
    text.to_str().map(String::from).map_err(|_| {
        let shown = text.to_string_lossy();
        config_error_text(given.py(), &format!("a pattern must be one that UTF-8 can write, got {shown:?}"))
    })
}

/// What `read` makes of each item; its complaints name the item by its number.
fn each<T>(what: &str, items: &Any<'_>, read: impl Fn(&Any<'_>) -> PyResult<T>) -> PyResult<Vec<T>> {
    if items.is_instance_of::<PyString>() || items.is_instance_of::<PyMapping>() {
        return Err(wrong_type(what, "a list of mappings", items));
    }
    let iterator = items.try_iter().map_err(|_| wrong_type(what, "a list of mappings", items))?;
    iterator.zip(1..).map(|(item, number)| within(&format!("{what} {number}"), &item?, &read)).collect()
}

/// What `read` makes of a value; its complaints begin with where the value stands.
fn within<T>(place: &str, value: &Any<'_>, read: impl FnOnce(&Any<'_>) -> PyResult<T>) -> PyResult<T> {
    let py = value.py();
    read(value).map_err(|error| {
        let text = format!("{place}: {}", error.value(py));
        if error.get_type(py).is(py.get_type::<PyTypeError>()) {
            PyTypeError::new_err(text)
        } else if error.is_instance_of::<PyValueError>(py) {
            config_error_text(py, &text)
        } else {
            error
        }
    })
}

fn made<T>(py: Python<'_>, result: Result<T, ConfigError>) -> PyResult<T> {
    result.map_err(|error| config_error(py, &error))
}
