//! What the gate's signals say in virtual time: its own latency and errors, and what the scenario pushes in.

use std::time::Duration;

use serde::Serialize;

use super::rules::{Of, ScenarioError, time};
use super::written;
use crate::config::GateBuilder;
use crate::signal::{Kind, Reading};

/// A value that is pushed into one of the gate's signals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Push {
    /// When.
    #[serde(rename = "at_s", serialize_with = "written::seconds")]
    pub at: Duration,
    /// The signal's name.
    pub signal: String,
    /// The pressure, from 0 to 1.
    pub value: f64,
    /// For how long it holds.
    #[serde(rename = "good_for_s", serialize_with = "written::seconds")]
    pub good_for: Duration,
}

/// A simulator has neither CPUs nor memory of its own, and what this machine does is no part of a scenario.
pub(super) fn check_kind(kind: Option<Kind>) -> Result<(), String> {
    match kind {
        Some(Kind::Latency | Kind::Errors | Kind::Pushed) => Ok(()),
        Some(kind) => Err(format!(
            "a simulator has no CPU, memory or disk to measure: the signals of a scenario are latency, errors and \
             pushed, got {kind}"
        )),
        None => {
            Err("the signals of a scenario are latency, errors and pushed, got one with a source".to_owned())
        }
    }
}

pub(super) fn check(gate: Option<&GateBuilder>, pushes: &[Push]) -> Result<(), ScenarioError> {
    for (signal, _) in gate.iter().flat_map(|gate| &gate.signals) {
        check_kind(signal.kind()).of("gate.signals")?;
    }
    pushes.iter().try_for_each(|push| push.check(gate)).of("pushes")
}

impl Push {
    pub(super) fn check(&self, gate: Option<&GateBuilder>) -> Result<(), String> {
        Reading::known(self.value).map_err(|error| error.to_string())?;
        time(self.at)?;
        time(self.good_for)?;
        let mut signals = gate.iter().flat_map(|gate| &gate.signals).map(|(signal, _)| signal);
        if signals.any(|signal| signal.kind() == Some(Kind::Pushed) && signal.name() == self.signal) {
            return Ok(());
        }
        Err(format!("the gate must have a pushed signal of this name, got {:?}", self.signal))
    }
}
