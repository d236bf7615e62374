//! What a scenario's file says of signals.

use std::time::Duration;

use super::super::signals::{Push, check_kind};
use super::{moment, some_time};
use crate::document::{Table, Value};
use crate::file::GateTable;

/// The gate, whose signals are such as a simulator has.
pub(super) fn gate(table: &Table<'_>) -> Option<GateTable> {
    let gate = GateTable::read(table)?;
    for signal in &gate.signals {
        if let (Err(message), Some(signals)) = (check_kind(Some(signal.kind)), table.value("signals")) {
            signals.refuse(message);
        }
    }
    Some(gate)
}

/// Values that are pushed into signals.
pub(super) fn pushes(root: &Table<'_>, gate: Option<&GateTable>, end: Duration) -> Vec<Push> {
    let builder = gate.map(|gate| gate.builder("simulated"));
    let pushes = root.tables("pushes", |table| {
        let at = table.need("at", moment(end));
        let signal = table.need("signal", |value| value.string().map(str::to_owned));
        let value = table.need("value", Value::float);
        let good_for = table.need("good_for", some_time);
        let push = Push { at: at?, signal: signal?, value: value?, good_for: good_for? };
        push.check(builder.as_ref()).map_err(|message| table.refuse(message)).ok()?;
        Some(push)
    });
    pushes.into_iter().flatten().collect()
}
