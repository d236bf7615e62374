//! `[classifier]`
use crate::classifier::{Classifier, Match, Rule};
use crate::document::{Table, Value};
use crate::file::gate::priority;

pub(crate) fn classifier(table: &Table<'_>) -> Option<Classifier> {
    let default = table.read("default", priority);
    let rules: Vec<_> = table.tables("rules", |rule| {
        let priority = rule.need("priority", priority);
        let matching = rule.table("match", |table| {
            let mut matching = Match::new();
            for (name, value) in table.named_values() {
                let patterns: Vec<String> = value
                    .read(|value| {
                        if value.is_array() {
                            value.array()?.iter().map(|value| value.string().map(str::to_owned)).collect()
                        } else {
                            Value::string(value).map(|text| vec![text.to_owned()])
                        }
                    })
                    .unwrap_or_default();
                matching = matching.when(name, patterns).ok()?;
            }
            Some(matching)
        });
        Rule::new(matching??, priority?).ok()
    });
    Classifier::new(rules.into_iter().flatten(), default).ok()
}
