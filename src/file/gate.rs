//! The table of one gate: `[gates.NAME]` of a configuration, `[gate]` of a simulator's scenario.

use std::time::Duration;

use super::controller::{ControllerTable, controller};
use super::signals::{SignalTable, signals};
use crate::GateBuilder;
use crate::control::{Control, leaves_room, limit_from};
use crate::controller::BoundsError;
use crate::detector::Rule;
use crate::document::{Table, Value};
use crate::error::ConfigError;
use crate::gate::Gate;
use crate::monitor::Watchlist;
use crate::priority::{Priority, Threshold, Thresholds};
use crate::rate::{Rate, burst_from};
use crate::reconfigure::Settings;
use crate::signal::Signal;

/// What a file says of a gate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GateTable {
    /// Where there is a controller, the one that it starts from.
    pub(crate) limit: u32,
    pub(crate) thresholds: Thresholds,
    pub(crate) default_priority: Priority,
    pub(crate) enforce: bool,
    pub(crate) timing: bool,
    pub(crate) rate: Option<Rate>,
    pub(crate) objective: Option<Duration>,
    pub(crate) controller: Option<ControllerTable>,
    pub(crate) signals: Vec<SignalTable>,
}

impl GateTable {
    /// Reads the keys that a gate has, and notes what breaks their rules.
    pub(crate) fn read(table: &Table<'_>) -> Option<Self> {
        let limit =
            if table.has("controller") { table.read("limit", limit) } else { table.need("limit", limit) };
        let objective = table.read("objective", objective);
        let controller = controller(table, limit, objective);
        let limit = controller.map(|controller| controller.bounds.prior()).or(limit);
        let thresholds = table.table("thresholds", thresholds).unwrap_or_default();
        if let Some(Err(error)) = limit.map(|limit| Control::new(limit, thresholds, Priority::default())) {
            match table.value("thresholds") {
                Some(thresholds) => thresholds.refuse(error),
                None => table.refuse(error),
            }
        }
        let default_priority = table.read("default_priority", priority).unwrap_or_default();
        if let Some(controller) = controller {
            refuse_starving(table, thresholds, default_priority, controller);
        }
        Some(Self {
            default_priority,
            enforce: table.read("enforce", Value::boolean).unwrap_or(true),
            timing: table.read("timing", Value::boolean).unwrap_or(false),
            rate: rate(table),
            objective,
            controller,
            signals: signals(table),
            limit: limit?,
            thresholds,
        })
    }

    /// What of it can be changed while the gate is in use.
    pub(crate) fn settings(&self) -> Settings {
        let Self { limit, thresholds, rate, objective, default_priority, enforce, .. } = *self;
        let controller = self.controller.map(|controller| (controller.kind, controller.bounds));
        let signals = Watchlist::unchecked(self.watched());
        Settings { limit, thresholds, rate, objective, controller, default_priority, enforce, signals }
    }

    /// A builder for such a gate.
    pub(crate) fn builder(&self, name: &str) -> GateBuilder {
        let builder = Gate::builder(name, self.limit)
            .thresholds(self.thresholds)
            .default_priority(self.default_priority)
            .enforce(self.enforce)
            .timing(self.timing)
            .rate(self.rate)
            .objective(self.objective)
            .signals(self.watched());
        match self.controller {
            Some(ControllerTable { kind, bounds, .. }) => builder.controller(kind, bounds),
            None => builder,
        }
    }
}

impl GateTable {
    fn watched(&self) -> impl Iterator<Item = (Signal, Rule)> {
        self.signals.iter().map(|signal| (Signal::named(signal.kind, &*signal.name), signal.rule))
    }
}

fn objective(value: &Value<'_>) -> Result<Duration, String> {
    let objective = value.duration()?;
    if objective.is_zero() { Err(BoundsError::Objective.to_string()) } else { Ok(objective) }
}

fn refuse_starving(
    table: &Table<'_>,
    thresholds: Thresholds,
    priority: Priority,
    controller: ControllerTable,
) {
    let ControllerTable { kind, bounds, .. } = controller;
    let Err(error) = leaves_room(thresholds, priority, (kind, bounds)) else { return };
    match table.value("thresholds") {
        Some(thresholds) => thresholds.refuse(error),
        None => table.refuse(error),
    }
}

/// A priority by its name.
pub(crate) fn priority(value: &Value<'_>) -> Result<Priority, String> {
    value.string()?.parse().map_err(|error: ConfigError| error.to_string())
}

/// A whole number that `rule` takes; what it does not take, and what is no whole number, are told alike.
fn whole(
    value: &Value<'_>,
    rule: fn(i64) -> Result<u32, ConfigError>,
    broken: fn(String) -> ConfigError,
) -> Result<u32, String> {
    let number = value.integer().ok().and_then(|number| rule(number).ok());
    number.ok_or_else(|| broken(value.shown()).to_string())
}

fn limit(value: &Value<'_>) -> Result<u32, String> {
    whole(value, limit_from, |got| ConfigError::Limit { got })
}

fn rate(table: &Table<'_>) -> Option<Rate> {
    let written = table.value("rate");
    let rate = written.as_ref().and_then(|value| value.read(text_rate));
    let Some(value) = table.value("burst") else { return rate };
    if written.is_none() {
        value.refuse(ConfigError::BurstAlone { got: value.shown() });
    }
    let burst = value.read(burst)?;
    rate?.with_burst(burst).ok()
}

fn text_rate(value: &Value<'_>) -> Result<Rate, String> {
    let broken = |_| ConfigError::Rate { got: value.shown() }.to_string();
    value.string().map_err(broken)?.parse().map_err(|error: ConfigError| error.to_string())
}

fn burst(value: &Value<'_>) -> Result<u32, String> {
    whole(value, burst_from, |got| ConfigError::Burst { got })
}

fn thresholds(table: &Table<'_>) -> Thresholds {
    let mut thresholds = Thresholds::default();
    for priority in Priority::ALL {
        if let Some(threshold) = table.value(priority.name()).and_then(|value| threshold(&value)) {
            thresholds = thresholds.with(priority, threshold);
        }
    }
    thresholds
}

/// A share of the limit, or `{ reserve = N }`.
fn threshold(value: &Value<'_>) -> Option<Threshold> {
    if value.is_table() {
        return value.table(|table| table.need("reserve", reserve)).flatten().map(Threshold::Reserve);
    }
    value.read(|value| Threshold::fraction(value.float()?).map_err(|error| error.to_string()))
}

fn reserve(value: &Value<'_>) -> Result<u32, String> {
    whole(value, limit_from, |got| ConfigError::Reserve { got })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;

    fn read(text: &str) -> Result<Option<GateTable>, Vec<String>> {
        document::read("gate.toml", text, GateTable::read)
            .map_err(|error| error.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_limit_is_enough() {
        let table = read("limit = 20").unwrap().unwrap();
        assert_eq!((table.limit, table.default_priority, table.enforce), (20, Priority::Critical, true));
        assert_eq!(table.thresholds.at(20), [20, 20, 18, 15]);
    }

    #[test]
    fn shares_and_reserves() {
        let table = read(
            "limit = 20\ndefault_priority = 'non-essential'\nenforce = false\ntiming = true\n\
             thresholds = { sheddable_plus = 0.9, sheddable = { reserve = 5 } }",
        );
        let gate = table.unwrap().unwrap().builder("db").build().unwrap();
        assert_eq!(gate.thresholds(), [20, 20, 18, 15]);
        assert_eq!((gate.default_priority(), gate.enforce()), (Priority::Sheddable, false));
    }

    #[test]
    fn each_fault_names_its_line_and_rule() {
        let faults = read(
            "limit = -1\ndefault_priority = 'urgent'\nenforce = 1\nlimits = 3\n\
             thresholds = { sheddable_plus = 1.5, sheddable = { reserve = -5 }, other = 1 }",
        );
        let faults = faults.unwrap_err();
        for (fault, part) in faults.iter().zip([
            "line 1: limit: limit must be a whole number from 0 to 2147483647, got -1",
            "line 2: default_priority: priority must be one of",
            "line 3: enforce: must be true or false, got 1",
            "line 4: unknown key \"limits\"",
            "line 5: thresholds.sheddable_plus: a threshold must be a fraction of the limit from 0 to 1, got 1.5",
            "line 5: thresholds.sheddable.reserve: a reserve must be a whole number from 0",
            "line 5: unknown key \"other\"; thresholds takes critical, critical_plus, sheddable, sheddable_plus",
        ]) {
            assert!(fault.starts_with(part), "{fault:?} does not start with {part:?}");
        }
        assert_eq!(faults.len(), 7, "{faults:?}");
    }

    #[test]
    fn thresholds_that_rise_are_refused() {
        let faults = read("limit = 20\nthresholds = { critical = 0.5, sheddable = 0.8 }").unwrap_err();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("thresholds must not rise as importance falls"), "{faults:?}");
    }

    #[test]
    fn a_rate_and_its_burst() {
        let rate = |text: &str| read(&format!("limit = 20\n{text}")).unwrap().unwrap().rate;
        assert_eq!(rate(""), None);
        assert_eq!(rate("rate = '150/min'"), Some("150/min".parse().unwrap()));
        let table = read("limit = 20\nrate = '150/min'\nburst = 10").unwrap().unwrap();
        let gate = table.builder("db").build().unwrap();
        assert_eq!(gate.rate(), Some("150/min".parse::<Rate>().unwrap().with_burst(10).unwrap()));
    }

    #[test]
    fn a_rate_that_breaks_its_rule_is_refused() {
        for (text, part) in [
            ("rate = 150", "line 2: rate: rate must be COUNT/UNIT"),
            ("rate = '150/d'", "line 2: rate: rate must be COUNT/UNIT"),
            ("burst = 10", "line 2: burst: burst needs a rate, got 10 without one"),
            (
                "rate = '1/s'\nburst = 0",
                "line 3: burst: burst must be a whole number from 1 to 2147483647, got 0",
            ),
            ("rate = '1/s'\nburst = 1.5", "line 3: burst: burst must be a whole number from 1"),
            ("rate = '1/s'\nburst = '10'", "line 3: burst: burst must be a whole number from 1"),
        ] {
            let faults = read(&format!("limit = 20\n{text}")).unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with(part), "{:?} does not start with {part:?}", faults[0]);
        }
        assert_eq!(read("limit = 20\nrate = '0.5/s'\nburst = 0").unwrap_err().len(), 2);
    }

    #[test]
    fn a_limit_is_needed_unless_a_controller_finds_it() {
        assert_eq!(read("enforce = true").unwrap_err(), ["line 1: limit is missing"]);
        assert_eq!(read("controller.kind = 'goodput'").unwrap().unwrap().limit, 32);
        let start = read("limit = 20\ncontroller = { kind = 'goodput', prior = 29 }").unwrap().unwrap();
        assert_eq!(start.limit, 29);
    }

    #[test]
    fn an_objective_is_a_time() {
        let objective = |text: &str| read(&format!("limit = 20\nobjective = {text}"));
        assert_eq!(objective("'2s'").unwrap().unwrap().objective, Some(Duration::from_secs(2)));
        for (text, fault) in [
            ("'0s'", "objective must be longer than zero"),
            ("2", "must be a time such as \"500ms\", \"1.5s\", \"15min\" or \"2h\", got 2"),
            ("'-1s'", "must be a time such as \"500ms\", \"1.5s\", \"15min\" or \"2h\", got \"-1s\""),
        ] {
            assert_eq!(objective(text).unwrap_err(), [format!("line 2: objective: {fault}")]);
        }
    }

    /// A gate that admits nobody has nobody to learn from.
    #[test]
    fn the_least_limit_leaves_room_for_who_comes() {
        let gate =
            |rest: &str| read(&format!("limit = 20\n{rest}\ncontroller = {{ kind = 'aimd', min = 5 }}"));
        let starving = "the reserves must leave something for the default priority at the controller's least limit, \
                        or it never rises again: got min 5 with nothing left for";
        for (thresholds, who) in [
            ("thresholds = { critical = { reserve = 5 } }", "critical"),
            (
                "thresholds = { sheddable_plus = { reserve = 6 } }\ndefault_priority = 'sheddable'",
                "sheddable",
            ),
        ] {
            assert_eq!(gate(thresholds).unwrap_err(), [format!("line 2: thresholds: {starving} {who}")]);
        }
        for fine in [
            "thresholds = { critical = { reserve = 4 } }",
            "thresholds = { sheddable = { reserve = 5 } }",
            "thresholds = { sheddable = 0.0 }\ndefault_priority = 'sheddable'",
        ] {
            assert!(gate(fine).is_ok(), "{fine}");
        }
    }
}
