//! The tables of a gate's signals: `[[gates.NAME.signals]]`.

use crate::config::check_name;
use crate::detector::Rule;
use crate::document::{Table, Value};
use crate::error::ConfigError;
use crate::signal::Kind;

/// What a file says of one signal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SignalTable {
    pub(crate) kind: Kind,
    pub(crate) name: Box<str>,
    pub(crate) rule: Rule,
}

/// Reads the signals of a gate, and notes what breaks a rule.
pub(super) fn signals(gate: &Table<'_>) -> Vec<SignalTable> {
    let has_objective = gate.has("objective");
    let mut before: Vec<(Kind, &str)> = Vec::new();
    let read = gate.tables("signals", |table| {
        let kind = table.need("kind", kind);
        let name = table.read("name", name);
        let rule = rule(table, kind.map_or_else(Rule::default, Kind::rule));
        let kind = kind?;
        let name = name.unwrap_or(kind.name());
        if kind == Kind::Latency && !has_objective {
            table.refuse(
                "a latency signal needs the gate's objective: the time within which an answer is good",
            );
        }
        if kind != Kind::Pushed && before.iter().any(|(other, _)| *other == kind) {
            table.refuse(format_args!(
                "only pushed signals may stand more than once in a gate, got {} twice",
                kind.name()
            ));
        } else if before.iter().any(|(_, other)| *other == name) {
            table.refuse(format_args!("the signals of a gate have different names, got {name:?} twice"));
        }
        before.push((kind, name));
        Some(SignalTable { kind, name: name.into(), rule: rule? })
    });
    read.into_iter().flatten().collect()
}

fn kind(value: &Value<'_>) -> Result<Kind, String> {
    value.string()?.parse().map_err(|error: ConfigError| error.to_string())
}

fn name<'d>(value: &Value<'d>) -> Result<&'d str, String> {
    let name = value.string()?;
    check_name(name).map(|()| name).map_err(|error| error.to_string())
}

/// What of a rule is not said is that of the signal's kind.
fn rule(table: &Table<'_>, default: Rule) -> Option<Rule> {
    let enter = read_or(table, "enter", default.enter(), Value::float);
    let leave = read_or(table, "leave", default.leave(), Value::float);
    let full = read_or(table, "full", default.full(), Value::float);
    let enter_for = read_or(table, "enter_for", default.enter_for(), Value::duration);
    let leave_for = read_or(table, "leave_for", default.leave_for(), Value::duration);
    let dwell = read_or(table, "dwell", default.dwell(), Value::duration);
    let ramp = read_or(table, "ramp", default.ramp(), Value::duration);
    let rule = default.between(enter?, leave?, full?);
    let rule =
        rule.map_err(|error| match ["enter", "leave", "full"].into_iter().find_map(|key| table.value(key)) {
            Some(value) => value.refuse(error),
            None => table.refuse(error),
        });
    Some(rule.ok()?.holding(enter_for?, leave_for?).resting(dwell?).rising_in(ramp?))
}

/// What `key` has, or the default; `None` where it breaks its rule, which is noted.
fn read_or<'d, T>(
    table: &Table<'d>,
    key: &'static str,
    default: T,
    rule: fn(&Value<'d>) -> Result<T, String>,
) -> Option<T> {
    table.value(key).map_or(Some(default), |value| value.read(rule))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::document;
    use crate::file::GateTable;

    fn read(text: &str) -> Result<Vec<SignalTable>, Vec<String>> {
        document::read("f.toml", text, |root| root.table("gate", GateTable::read).flatten())
            .map(|gate| gate.expect("nothing was noted").signals)
            .map_err(|error| error.problems.iter().map(ToString::to_string).collect())
    }

    fn gate(signals: &str) -> String {
        format!("[gate]\nlimit = 20\n{signals}")
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let read = read(&gate(
            "signals = [{ kind = 'cpu' }, { kind = 'pushed' }, { kind = 'pushed', name = 'db' }]",
        ));
        let read = read.unwrap();
        let names: Vec<_> = read.iter().map(|signal| (signal.kind, &*signal.name)).collect();
        assert_eq!(names, [(Kind::Cpu, "cpu"), (Kind::Pushed, "pushed"), (Kind::Pushed, "db")]);
        assert!(read.iter().all(|signal| signal.rule == Rule::default()));
        let errors = super::tests::read(&gate("signals = [{ kind = 'errors', full = 0.8 }]")).unwrap();
        assert_eq!(errors[0].rule, Rule::new(0.10, 0.05, 0.8).unwrap());
    }

    #[test]
    fn each_key_is_read() {
        let text = "objective = '2s'\n[[gate.signals]]\nkind = 'latency'\nname = 'slow'\nenter = 0.5\nleave = 0\nfull = 0.9\n\
                    enter_for = '1s'\nleave_for = '500ms'\ndwell = '0s'\nramp = '5min'";
        let rule = Rule::new(0.5, 0.0, 0.9).unwrap();
        let rule = rule.holding(Duration::from_secs(1), Duration::from_millis(500));
        let rule = rule.resting(Duration::ZERO).rising_in(Duration::from_secs(300));
        assert_eq!(
            read(&gate(text)).unwrap(),
            [SignalTable { kind: Kind::Latency, name: "slow".into(), rule }]
        );
    }

    #[test]
    fn each_fault_names_its_line_and_rule() {
        let faults = |text: &str| read(&gate(text)).unwrap_err();
        let all = "[[gate.signals]]\nkind = 'gpu'\nname = ''\nenter = 1.5\nleave = nan\nfull = '1'\nenter_for = 2\n\
                   leave_for = '-1s'\ndwell = ''\nramp = '1 d'\nweight = 1\n[[gate.signals]]";
        for (fault, start) in faults(all).iter().zip([
            "line 4: gate.signals[1].kind: signal must be one of cpu, memory, psi-cpu, psi-memory, psi-io, latency, errors, pushed, got \"gpu\"",
            "line 5: gate.signals[1].name: name must be 1 to 255 bytes",
            "line 7: gate.signals[1].leave: must be a number, got nan",
            "line 8: gate.signals[1].full: must be a number, got '1'",
            "line 9: gate.signals[1].enter_for: must be a time such as",
            "line 10: gate.signals[1].leave_for: must be a time such as",
            "line 11: gate.signals[1].dwell: must be a time such as",
            "line 12: gate.signals[1].ramp: must be a time such as",
            "line 13: unknown key \"weight\"; gate.signals[1] takes dwell, enter, enter_for, full, kind, leave, leave_for, name, ramp",
            "line 14: gate.signals[2]: kind is missing",
        ]) {
            assert!(fault.starts_with(start), "{fault:?} does not start with {start:?}");
        }
        assert_eq!(faults(all).len(), 10);

        let thresholds = "a signal's thresholds must be 0 <= leave < enter <= full <= 1, got leave";
        assert_eq!(
            faults("signals = [{ kind = 'cpu', leave = 0.9 }]"),
            [format!("line 3: gate.signals[1].leave: {thresholds} 0.9, enter 0.85, full 1")]
        );
        assert_eq!(
            faults("[[gate.signals]]\nkind = 'cpu'\nfull = 0.8\nleave = 0.1"),
            [format!("line 6: gate.signals[1].leave: {thresholds} 0.1, enter 0.85, full 0.8")]
        );
        assert_eq!(
            faults("[[gate.signals]]\nkind = 'cpu'\nleave = 0.9\nenter = 0.8"),
            [format!("line 6: gate.signals[1].enter: {thresholds} 0.9, enter 0.8, full 1")]
        );
        assert_eq!(
            faults("signals = [{ kind = 'cpu', enter = 0.7 }]"),
            [format!("line 3: gate.signals[1].enter: {thresholds} 0.7, enter 0.7, full 1")]
        );
    }

    #[test]
    fn signals_contradict_neither_each_other_nor_the_gate() {
        let faults = |text: &str| read(&gate(text)).unwrap_err();
        assert_eq!(
            faults("signals = [{ kind = 'latency' }]"),
            [
                "line 3: gate.signals[1]: a latency signal needs the gate's objective: the time within which an answer is good"
            ]
        );
        assert_eq!(
            faults("signals = [{ kind = 'cpu' }, { kind = 'cpu', name = 'again' }]"),
            [
                "line 3: gate.signals[2]: only pushed signals may stand more than once in a gate, got cpu twice"
            ]
        );
        assert_eq!(
            faults("signals = [{ kind = 'pushed' }, { kind = 'pushed' }]"),
            ["line 3: gate.signals[2]: the signals of a gate have different names, got \"pushed\" twice"]
        );
        assert_eq!(
            faults("signals = [{ kind = 'cpu' }, { kind = 'pushed', name = 'cpu' }]"),
            ["line 3: gate.signals[2]: the signals of a gate have different names, got \"cpu\" twice"]
        );
    }
}
