//! From Python's arguments to the core's types. What does not fit is a `TypeError` where the type is
//! wrong and a `ConfigError` where the value is; nothing is rounded, wrapped or guessed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PyString};
use tidegate::{
    Ask, ConfigError, MAX_LIMIT, Outcome, Priority, Rate, Threshold, Thresholds, Weight, limit_from,
};

use crate::event::{Kind, Kinds};
use crate::names::{config_error, config_error_text};

type Any<'py> = Bound<'py, PyAny>;

pub(crate) fn wrong_type(what: &str, wanted: &str, got: &Any<'_>) -> PyErr {
    let class = got.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {wanted}, got {} ({class})", shown(got)))
}

/// A whole number: an int or what stands for one (`__index__`). Neither bool nor float.
/// One that is beyond 64 bits comes back as its digits.
fn whole(what: &str, value: &Any<'_>) -> PyResult<Result<i64, String>> {
    if value.is_instance_of::<PyBool>() || !value.hasattr("__index__")? {
        return Err(wrong_type(what, "an int", value));
    }
    let number = value.call_method0("__index__")?;
    match number.extract::<i64>() {
        Ok(number) => Ok(Ok(number)),
        Err(_) if number.is_instance_of::<PyInt>() => Ok(Err(digits(&number))),
        Err(error) => Err(error),
    }
}

/// The digits of a large int; of a very large one, how large it is (Python refuses to print it).
fn digits(number: &Any<'_>) -> String {
    number.str().map_or_else(
        |_| {
            let bits = number.call_method0("bit_length").map_or_else(|_| "?".into(), |n| n.to_string());
            format!("an int of {bits} bits")
        },
        |digits| digits.to_string_lossy().into_owned(),
    )
}

/// A bound of limits, under the name of its keyword.
pub(crate) fn whole_limit(what: &str, value: &Any<'_>) -> PyResult<u32> {
    let small = |number: i64| u32::try_from(number).ok().filter(|small| *small <= MAX_LIMIT);
    whole(what, value)?.and_then(|number| small(number).ok_or_else(|| number.to_string())).map_err(|got| {
        config_error_text(
            value.py(),
            &format!("{what} must be a whole number from 1 to {MAX_LIMIT}, got {got}"),
        )
    })
}

/// A value for a message.
pub(crate) fn shown(value: &Any<'_>) -> String {
    value.repr().map_or_else(|_| "?".to_owned(), |repr| repr.to_string_lossy().into_owned())
}

pub(crate) fn limit(value: &Any<'_>) -> PyResult<u32> {
    match whole("limit", value)? {
        Ok(number) => limit_from(number),
        Err(got) => Err(ConfigError::Limit { got }),
    }
    .map_err(|error| config_error(value.py(), &error))
}

pub(crate) fn weight(value: Option<&Any<'_>>) -> PyResult<Weight> {
    let Some(value) = value else {
        return Ok(Weight::ONE);
    };
    match whole("weight", value)? {
        Ok(number) => Weight::new(number),
        Err(got) => Err(ConfigError::Weight { got }),
    }
    .map_err(|error| config_error(value.py(), &error))
}

/// What `parse` makes of a text. One with lone surrogates has no UTF-8, so it is no name of anything:
/// `refuse` says so, with what can be shown of it.
fn text<T>(
    what: &str,
    value: &Any<'_>,
    parse: impl FnOnce(&str) -> Result<T, ConfigError>,
    refuse: impl FnOnce(String) -> ConfigError,
) -> PyResult<T> {
    let string = value.cast::<PyString>().map_err(|_| wrong_type(what, "a str", value))?;
    match string.to_str() {
        Ok(text) => parse(text),
        Err(_) => Err(refuse(string.to_string_lossy().into_owned())),
    }
    .map_err(|error| config_error(value.py(), &error))
}

pub(crate) fn name(value: &Any<'_>) -> PyResult<String> {
    text("name", value, |name| Ok(name.to_owned()), |got| ConfigError::Name { got })
}

pub(crate) fn attribute(value: &Any<'_>) -> PyResult<String> {
    let what = "an attribute's name";
    text(what, value, |name| Ok(name.to_owned()), |got| ConfigError::Attribute { got })
}

pub(crate) fn priority(value: &Any<'_>) -> PyResult<Priority> {
    text("priority", value, str::parse, |got| ConfigError::Priority { got })
}

pub(crate) fn outcome(value: &Any<'_>) -> PyResult<Outcome> {
    text("outcome", value, str::parse, |got| ConfigError::Outcome { got })
}

/// A rate and its burst, each given or not.
pub(crate) fn rate(rate: Option<&Any<'_>>, burst: Option<&Any<'_>>) -> PyResult<Option<Rate>> {
    let parsed = rate.map(|rate| text("rate", rate, str::parse::<Rate>, |got| ConfigError::Rate { got }));
    let (rate, burst) = match (parsed.transpose()?, burst) {
        (rate, None) => return Ok(rate),
        (None, Some(burst)) => {
            let got = whole("burst", burst)?.map_or_else(|got| got, |number| number.to_string());
            return Err(config_error(burst.py(), &ConfigError::BurstAlone { got }));
        }
        (Some(rate), Some(burst)) => (rate, burst),
    };
    match whole("burst", burst)? {
        Ok(number) => rate.with_burst(number),
        Err(got) => Err(ConfigError::Burst { got }),
    }
    .map(Some)
    .map_err(|error| config_error(burst.py(), &error))
}

/// The kinds of events that a hook is to be told: one, several, or None for the default.
pub(crate) fn kinds(value: Option<&Any<'_>>) -> PyResult<Kinds> {
    let Some(value) = value else {
        return Ok(Kinds::DEFAULT);
    };
    if value.is_instance_of::<PyString>() {
        return with_kind(Kinds::NONE, value);
    }
    let names = value.try_iter().map_err(|_| wrong_type("events", "kinds of events", value))?;
    let kinds = names.into_iter().try_fold(Kinds::NONE, |kinds, name| with_kind(kinds, &name?))?;
    if kinds.is_empty() {
        return Err(config_error_text(value.py(), "events must name at least one kind, got none"));
    }
    Ok(kinds)
}

fn with_kind(kinds: Kinds, name: &Any<'_>) -> PyResult<Kinds> {
    let text = name.cast::<PyString>().map_err(|_| wrong_type("a kind of event", "a str", name))?;
    kinds.with(&text.to_string_lossy()).ok_or_else(|| {
        let all = Kind::NAMES.join(", ");
        config_error_text(
            name.py(),
            &format!("a kind of event must be one of {all}, got {:?}", text.to_string_lossy()),
        )
    })
}

/// What is asked for; a priority of None is left to the context or the gate's default.
pub(crate) fn ask(priority_arg: Option<&Any<'_>>, weight_arg: Option<&Any<'_>>) -> PyResult<Ask> {
    let wanted = priority_arg.map(priority).transpose()?;
    Ok(Ask::from(wanted).weight(weight(weight_arg)?))
}

/// A mapping from priority to a fraction of the limit, or to `{"reserve": weight}`.
pub(crate) fn thresholds(value: Option<&Any<'_>>) -> PyResult<Thresholds> {
    let mut thresholds = Thresholds::default();
    let Some(value) = value else {
        return Ok(thresholds);
    };
    let mapping = value
        .cast::<PyMapping>()
        .map_err(|_| wrong_type("thresholds", "a mapping from priority to fraction", value))?;
    for item in mapping.items()? {
        let (key, value): (Any<'_>, Any<'_>) = item.extract()?;
        thresholds = thresholds.with(priority(&key)?, threshold(&value)?);
    }
    Ok(thresholds)
}

fn threshold(value: &Any<'_>) -> PyResult<Threshold> {
    let rule = "a fraction of the limit from 0 to 1, or {\"reserve\": weight}";
    if let Ok(reserve) = value.cast::<PyDict>() {
        return match (reserve.len(), reserve.get_item("reserve")?) {
            (1, Some(weight)) => match whole("a reserve", &weight)? {
                Ok(number) => limit_from(number).map_err(|_| number.to_string()),
                Err(got) => Err(got),
            }
            .map(Threshold::Reserve)
            .map_err(|got| config_error(value.py(), &ConfigError::Reserve { got })),
            _ => Err(wrong_type("a threshold", rule, value)),
        };
    }
    if value.is_instance_of::<PyBool>()
        || !(value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>())
    {
        return Err(wrong_type("a threshold", rule, value));
    }
    // An int too large for a float is too large for a fraction.
    let share = value.extract::<f64>().unwrap_or(f64::INFINITY);
    Threshold::fraction(share).map_err(|error| config_error(value.py(), &error))
}

/// A number: an int, a float or what stands for one (`__float__`). An int beyond all floats is infinite.
pub(crate) fn number(what: &str, value: &Any<'_>) -> PyResult<f64> {
    number_of(what, "a number", value)
}

fn number_of(what: &str, wanted: &str, value: &Any<'_>) -> PyResult<f64> {
    if value.is_instance_of::<PyBool>() || !value.hasattr("__float__")? {
        return Err(wrong_type(what, wanted, value));
    }
    match value.extract::<f64>() {
        Ok(number) => Ok(number),
        Err(_) if value.is_instance_of::<PyInt>() => Ok(f64::INFINITY.copysign(sign(value)?)),
        Err(_) => Err(wrong_type(what, wanted, value)),
    }
}

/// A span of time in seconds, from 0.
pub(crate) fn seconds(what: &str, value: &Any<'_>) -> PyResult<Duration> {
    let seconds = number_of(what, "a number of seconds", value)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        let rule = if (1.0..f64::INFINITY).contains(&seconds) {
            "less than 2**64 seconds"
        } else {
            "a number of seconds from 0"
        };
        config_error_text(value.py(), &format!("{what} must be {rule}, got {}", written(seconds)))
    })
}

/// As Python would write it: not with three hundred digits.
fn written(seconds: f64) -> String {
    let is_long = seconds.is_finite() && seconds != 0.0 && !(1e-4..1e16).contains(&seconds.abs());
    if is_long { format!("{seconds:e}") } else { seconds.to_string() }
}

/// The time within which an answer is good.
pub(crate) fn objective(value: Option<&Any<'_>>) -> PyResult<Option<Duration>> {
    let Some(value) = value else { return Ok(None) };
    let seconds = number_of("objective", "a number of seconds", value)?;
    let objective = Duration::try_from_secs_f64(seconds).ok().filter(|objective| !objective.is_zero());
    objective.map(Some).ok_or_else(|| {
        let rule = match seconds {
            1.0..f64::INFINITY => "less than 2**64 seconds",
            0.0..1.0 if seconds > 0.0 => "at least a nanosecond",
            _ => "a number of seconds above 0",
        };
        config_error_text(value.py(), &format!("objective must be {rule}, got {}", written(seconds)))
    })
}

/// Seconds to wait: None and infinity are for ever, as is what no clock can count.
pub(crate) fn timeout(value: Option<&Any<'_>>) -> PyResult<Option<Duration>> {
    let Some(value) = value else { return Ok(None) };
    let seconds = number_of("timeout", "a number of seconds or None", value)?;
    if seconds.is_nan() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!("timeout must be 0 seconds or more, got {seconds}")));
    }
    Ok(Duration::try_from_secs_f64(seconds).ok())
}

/// The sign of an int that no float can hold.
fn sign(value: &Any<'_>) -> PyResult<f64> {
    Ok(if value.lt(0)? { -1.0 } else { 1.0 })
}

/// Where gates are published, if anywhere: read from Python's environment, which is what a program has
/// changed.
pub(crate) fn metrics_directory(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    let environment = py.import("os")?.getattr("environ")?;
    let directory = environment.call_method1("get", ("TIDEGATE_METRICS_DIR", ""))?.extract::<OsString>()?;
    Ok((!directory.is_empty()).then(|| directory.into()))
}
