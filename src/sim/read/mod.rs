//! A scenario from a TOML file, with everything that is wrong with it noted at its line.

mod arrivals;
mod clients;
mod service;
mod signals;
mod trace;

use std::fmt::Display;
use std::time::Duration;

use super::arrivals::Arrivals;
use super::rules::{self, LONGEST};
use super::scenario::Scenario;
use super::service::Service;
use crate::document::{self, FileError, Table, Value, one_of};
use crate::units;

/// How a trace is got: from its name in the scenario to its text, or why there is none.
type Load<'l> = dyn Fn(&str) -> Result<String, String> + 'l;

impl Scenario {
    /// A scenario from `text`, the content of the file called `file`. Its arrivals are no trace, since this
    /// reads no other file; [`from_toml_with`](Self::from_toml_with) is for those.
    ///
    /// # Errors
    /// [`FileError`] with everything that is wrong, each at its line.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, FileError> {
        Self::from_toml_with(file, text, |_| Err("no other file is read here".to_owned()))
    }

    /// As [`from_toml`](Self::from_toml), where `load` returns the text of the trace that the scenario names,
    /// by convention relative to `file`, or says why it cannot.
    ///
    /// # Errors
    /// [`FileError`] with everything that is wrong, each at its line.
    pub fn from_toml_with(
        file: &str,
        text: &str,
        load: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, FileError> {
        document::read(file, text, |root| scenario(root, &load))
    }
}

/// What broke its rule was noted and is absent here; the whole is thrown away then.
fn scenario(root: &Table<'_>, load: &Load<'_>) -> Scenario {
    let title = root.read("title", Value::string).unwrap_or("untitled").to_owned();
    let duration = root.read("duration", some_time);
    let interval = root.read("interval", some_time);
    let gate = root.table("gate", signals::gate).flatten();
    let default_priority = gate.as_ref().map(|gate| gate.default_priority).unwrap_or_default();
    let arrivals = need(root, "arrivals", "who comes, and when", |table| {
        if root.value("duration").is_none() && table.value("rate").is_some() {
            table.refuse("rate has no end: say for how long at the top, as in duration = \"30min\"");
        }
        arrivals::read(table, duration, default_priority, load)
    });
    let end = duration.or_else(|| arrivals.as_ref().map(Arrivals::length)).unwrap_or(LONGEST);
    let service = need(root, "service", "what serves them", |table| service::read(table, end));
    let complete = arrivals.is_some();
    let arrivals = arrivals.unwrap_or_else(|| Arrivals::poisson(0.0, end));
    let mut scenario =
        Scenario::new(title, arrivals, service.unwrap_or_else(|| Service::shared(1.0, 0.0, 0.0)));
    scenario.duration = end;
    scenario.interval = interval.unwrap_or(scenario.interval);
    scenario.pushes = signals::pushes(root, gate.as_ref(), end);
    scenario.gate = gate.map(|gate| gate.builder("simulated"));
    scenario.bare_entries = root.read("bare_entries", Value::boolean).unwrap_or_default();
    scenario.dependency = root.table("dependency", |table| service::read_dependency(table, end));
    scenario.clients = root.table("clients", clients::read).unwrap_or_default();
    if complete {
        check_whole(root, &scenario);
    }
    scenario
}

fn need<'d, T>(
    root: &Table<'d>,
    key: &'static str,
    what: &str,
    read: impl FnOnce(&Table<'d>) -> Option<T>,
) -> Option<T> {
    if root.value(key).is_none() {
        root.refuse(format_args!("[{key}] is missing: {what}"));
    }
    root.table(key, read).flatten()
}

/// What only all of it together says, each at the key that is likely to be changed for it.
fn check_whole(root: &Table<'_>, scenario: &Scenario) {
    let check = |keys: &[&'static str], result: Result<(), String>| {
        let Err(message) = result else {
            return;
        };
        match keys.iter().find_map(|key| root.value(key)) {
            Some(value) => value.refuse(message),
            None => root.refuse(message),
        }
    };
    if scenario.duration.is_zero() {
        let message = "all come at once: say how long it runs at the top, as in duration = \"30min\"";
        check(&["arrivals"], Err(message.to_owned()));
        return;
    }
    check(&["duration", "arrivals"], rules::some_time(scenario.duration).map(drop));
    check(&["interval", "duration", "arrivals"], scenario.check_intervals());
    check(&["duration", "arrivals"], scenario.check_events());
    check(&["bare_entries", "arrivals"], scenario.check_bare_entries());
}

/// A value by a rule for numbers.
fn number(rule: impl FnOnce(f64) -> Result<f64, String>) -> impl FnOnce(&Value<'_>) -> Result<f64, String> {
    |value| rule(value.float()?)
}

/// A rate a second, by a rule for numbers.
fn rate(rule: impl FnOnce(f64) -> Result<f64, String>) -> impl FnOnce(&Value<'_>) -> Result<f64, String> {
    |value| {
        let text = value.string().map_err(|_| value.not_a(units::A_RATE))?;
        rule(units::rate(text)?).map_err(|message| format!("{message} a second, which is {text:?}"))
    }
}

fn time(value: &Value<'_>) -> Result<Duration, String> {
    rules::time(value.duration()?)
}

fn some_time(value: &Value<'_>) -> Result<Duration, String> {
    rules::some_time(value.duration()?)
}

/// A whole number from 0, by a rule for those.
fn whole(rule: impl FnOnce(u32) -> Result<u32, String>) -> impl FnOnce(&Value<'_>) -> Result<u32, String> {
    |value| {
        let kind = "a whole number from 0 to 4294967295";
        rule(u32::try_from(value.integer()?).map_err(|_| value.not_a(kind))?)
    }
}

/// A moment before the end of the run.
fn moment(end: Duration) -> impl FnOnce(&Value<'_>) -> Result<Duration, String> {
    move |value| {
        let at = value.duration()?;
        if at < end {
            return Ok(at);
        }
        Err(format!("must come before the end of the run at {} s, got {}", end.as_secs_f64(), value.shown()))
    }
}

/// For rules whose messages name the value already.
fn text(error: impl Display) -> String {
    error.to_string()
}
