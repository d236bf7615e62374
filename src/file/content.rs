//! What a file says, checked as a whole.

use crate::classifier::Classifier;
use crate::config::check_name;
use crate::document::{self, FileError, Problem, Table, Value};
use crate::file::gates::Entry;
use crate::file::{GateTable, classifier};

/// The content of a file.
#[derive(Debug)]
pub(super) struct Content {
    /// In the file's order.
    pub(super) gates: Vec<NamedGate>,
    pub(super) classifier: Option<Classifier>,
}

/// A gate of the file, and where it stands.
#[derive(Debug)]
pub(super) struct NamedGate {
    pub(super) name: String,
    pub(super) table: GateTable,
    line: usize,
    key: String,
}

impl NamedGate {
    /// A problem with the gate as a whole.
    pub(super) fn problem(&self, message: String) -> Problem {
        Problem { line: self.line, key: self.key.clone(), message }
    }
}

impl Content {
    /// Reads `text`, the content of `file`. `live` knows the gates that are there already: what a file says of
    /// them must be something that can be changed.
    pub(super) fn read<'e>(
        file: &str,
        text: &str,
        live: impl Fn(&str) -> Option<&'e Entry>,
    ) -> Result<Self, FileError> {
        document::read(file, text, |root| {
            let mut names = 0;
            let gates = root.table("gates", |table| {
                names = table.named_values().len();
                gates(table, &live)
            });
            let classifier = root.table("classifier", classifier);
            let wrong = gates.is_none() && root.has("gates"); // which is noted already
            if names == 0 && !wrong && classifier.is_none() {
                root.refuse("the file has neither gates nor a classifier: has it been cut short?");
            }
            Self { gates: gates.unwrap_or_default(), classifier: classifier.flatten() }
        })
    }
}

fn gates<'e>(table: &Table<'_>, live: &impl Fn(&str) -> Option<&'e Entry>) -> Vec<NamedGate> {
    let mut gates = Vec::new();
    for (name, value) in table.named_values() {
        if let Err(error) = check_name(name) {
            value.refuse(error);
        }
        gates.extend(value.table(|table| gate(name, table, live(name))).flatten());
    }
    gates
}

fn gate(name: &str, table: &Table<'_>, live: Option<&Entry>) -> Option<NamedGate> {
    table.read("scope", scope);
    if let Some(live) = live {
        refuse_other_timing(table, live);
    }
    let read = GateTable::read(table)?;
    Some(NamedGate { name: name.to_owned(), table: read, line: table.line(), key: table.key().to_owned() })
}

fn refuse_other_timing(table: &Table<'_>, live: &Entry) {
    let (name, has) = (live.gate.name(), live.table.timing);
    let rule = format_args!(
        "timing is chosen when a gate is made and cannot be changed while it is in use: gate {name} has {has}"
    );
    match table.value("timing") {
        Some(value) if value.boolean() == Ok(!has) => value.refuse(rule),
        None if has => table.refuse(rule),
        _ => {}
    }
}

fn scope(value: &Value<'_>) -> Result<(), String> {
    match value.string().map_err(|_| value.not_a("\"process\""))? {
        "process" => Ok(()),
        "host" | "fleet" => Err(format!(
            "this version of Tidegate has no gates beyond one process yet: scope must be \"process\", got {}",
            value.shown()
        )),
        _ => Err(value.not_a("\"process\"")),
    }
}
