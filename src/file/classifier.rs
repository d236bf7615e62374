//! The table of a classifier: `[classifier]` of a configuration.

use crate::classifier::{Classifier, Match, Rule};
use crate::config::check_name;
use crate::document::{Table, Value};
use crate::error::ConfigError;
use crate::file::gate::priority;
use crate::priority::Priority;

/// Reads the rules and their default, or what is essential, and notes what breaks a rule.
pub(crate) fn classifier(table: &Table<'_>) -> Option<Classifier> {
    let default = table.read("default", priority);
    let rules = table.tables("rules", rule);
    let essential = table.tables("essential", |table| Rule::new(matching(table)?, Priority::Critical).ok());
    let classifier = if table.has("essential") {
        for got in ["rules", "default"].into_iter().filter(|key| table.has(key)) {
            table.refuse(ConfigError::EssentialAndMore { got });
        }
        Classifier::new(essential.into_iter().flatten(), Some(Priority::Sheddable))
    } else {
        Classifier::new(rules.into_iter().flatten(), default)
    };
    classifier.map_err(|error| table.refuse(error)).ok()
}

fn rule(table: &Table<'_>) -> Option<Rule> {
    let matching = table.need("match", |value| Ok::<_, String>(value.table(matching).flatten())).flatten();
    let priority = table.need("priority", priority);
    let name = table.read("name", name);
    let rule = Rule::new(matching?, priority?).ok()?;
    if let Some(name) = name { rule.named(name).ok() } else { Some(rule) }
}

fn name<'d>(value: &Value<'d>) -> Result<&'d str, String> {
    let name = value.string()?;
    check_name(name).map(|()| name).map_err(|error| error.to_string())
}

/// `{ method = "GET", path = ["/reports/*", "/exports/*"], header.x-plan = "free" }`.
fn matching(table: &Table<'_>) -> Option<Match> {
    let mut conditions = Vec::new();
    flatten("", table, &mut conditions);
    if conditions.is_empty() {
        table.refuse(ConfigError::EmptyMatch);
        return None;
    }
    // One fault must not hide the next.
    let mut whole = Match::new();
    for (attribute, value) in conditions {
        let more =
            patterns(&value).and_then(|patterns| value.read(|_| whole.clone().when(&attribute, patterns)));
        whole = more.unwrap_or(whole);
    }
    Some(whole)
}

/// A table within a match is a part of the name: `header.x-plan` is one attribute.
fn flatten<'d>(prefix: &str, table: &Table<'d>, conditions: &mut Vec<(String, Value<'d>)>) {
    for (name, value) in table.named_values() {
        let attribute = format!("{prefix}{name}");
        if value.is_table() {
            value.table(|table| flatten(&format!("{attribute}."), table, conditions));
        } else {
            conditions.push((attribute, value));
        }
    }
}

/// One pattern or several.
fn patterns<'d>(value: &Value<'d>) -> Option<Vec<&'d str>> {
    if !value.is_array() {
        let pattern =
            value.read(|value| value.string().map_err(|_| value.not_a("a pattern or a list of them")));
        return pattern.map(|pattern| vec![pattern]);
    }
    let patterns: Vec<_> = value.read(Value::array)?.iter().map(|item| item.read(Value::string)).collect();
    patterns.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::Value as Json;

    use super::*;
    use crate::document;

    fn read(text: &str) -> Result<Classifier, Vec<String>> {
        document::read("f.toml", text, |root| root.table("classifier", classifier).flatten())
            .map(|read| read.expect("nothing was noted"))
            .map_err(|error| error.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn rules_with_names_and_headers() {
        let classifier = read(
            r#"
            [classifier]
            default = "critical"

            [[classifier.rules]]
            name = "reports"
            match = { method = ["GET", "head"], path = "/reports/*" }
            priority = "sheddable"

            [[classifier.rules]]
            match = { header.X-Plan = "free" }
            priority = "non-essential"

            [[classifier.rules]]
            priority = "critical_plus"
            [classifier.rules.match]
            "header.x-plan" = "paid"
            tenant.region = "eu-*"
            "#,
        );
        let classifier = classifier.unwrap();
        assert_eq!(classifier.default_priority(), Some(Priority::Critical));
        let texts: Vec<_> = classifier.rules().iter().map(|rule| rule.matching().to_string()).collect();
        assert_eq!(
            texts,
            [
                r#"method = ["GET", "HEAD"], path = "/reports/*""#,
                r#"header.x-plan = "free""#,
                r#"header.x-plan = "paid", tenant.region = "eu-*""#,
            ]
        );
        assert_eq!(classifier.rules()[0].name(), Some("reports"));
        assert_eq!(
            classifier.rules().iter().map(Rule::priority).collect::<Vec<_>>(),
            [Priority::Sheddable, Priority::Sheddable, Priority::CriticalPlus]
        );
    }

    #[test]
    fn what_is_essential() {
        let classifier = read("[classifier]\nessential = [{ path = '/chat/*' }, { plan = 'paid' }]").unwrap();
        let of = |path| classifier.classify(|name| (name == "path").then_some(path));
        assert_eq!((of("/chat/1"), of("/x")), (Some(Priority::Critical), Some(Priority::Sheddable)));
    }

    #[test]
    fn each_fault_names_its_line_and_rule() {
        let text = r#"[classifier]
            default = "urgent"
            [[classifier.rules]]
            match = { method = 7, path = [
                "/a",
                8,
            ], header.x = "y", "header.X" = "z" }
            [[classifier.rules]]
            match = {}
            priority = "vip"
            name = ""
            color = "red"
            [[classifier.rules]]
            priority = "sheddable"
            [[classifier.rules]]
            match = { path = [], "" = "x" }
            priority = "sheddable"
        "#;
        let faults = read(text).unwrap_err();
        for (fault, start) in faults.iter().zip([
            "line 2: classifier.default: priority must be one of",
            "line 3: classifier.rules[1]: priority is missing",
            "line 4: classifier.rules[1].match.method: must be a pattern or a list of them, got 7",
            "line 6: classifier.rules[1].match.path[2]: must be a string, got 8",
            "line 7: classifier.rules[1].match.\"header.X\": an attribute may stand once in a match",
            "line 9: classifier.rules[2].match: a match must name an attribute",
            "line 10: classifier.rules[2].priority: priority must be one of",
            "line 11: classifier.rules[2].name: name must be 1 to 255 bytes",
            "line 12: unknown key \"color\"; classifier.rules[2] takes match, name, priority",
            "line 13: classifier.rules[3]: match is missing",
            "line 16: classifier.rules[4].match.path: the number of patterns for one attribute must be from 1",
            "line 16: classifier.rules[4].match.\"\": an attribute's name must be 1 to 255 bytes",
        ]) {
            assert!(fault.starts_with(start), "{fault:?} does not start with {start:?}");
        }
        assert_eq!(faults.len(), 12, "{faults:#?}");
    }

    #[test]
    fn essential_stands_alone() {
        let faults = read("[classifier]\nessential = []\nrules = []\ndefault = 'critical'").unwrap_err();
        assert_eq!(faults.len(), 2);
        assert!(faults[0].starts_with("line 1: classifier: essential takes neither rules"), "{faults:?}");
        assert!(faults[0].ends_with("got rules") && faults[1].ends_with("got default"), "{faults:?}");
    }

    #[test]
    fn the_vectors_hold_for_a_file() {
        let cases: Json = serde_json::from_str(include_str!("../../tests/vectors/classifier.json")).unwrap();
        for case in cases.as_array().unwrap() {
            let name = &case["name"];
            let entries = case["classifier"].as_object().unwrap().iter();
            let lines: Vec<_> = entries.map(|(key, value)| format!("{key} = {}\n", toml(value))).collect();
            let read = read(&format!("[classifier]\n{}", lines.concat()));
            if case.get("expect").is_some() {
                assert!(read.is_err(), "{name}: it was taken");
                continue;
            }
            let classifier = read.unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
            for case in case["cases"].as_array().unwrap() {
                let attributes: HashMap<String, String> =
                    serde_json::from_value(case["attributes"].clone()).unwrap();
                let found = classifier.explain(|name| attributes.get(name));
                let priority = found.priority.map(Priority::name);
                assert_eq!(priority, case["expect"]["priority"].as_str(), "{name}: {case}");
                let rule = found.rule.map(|(number, _)| number as u64);
                assert_eq!(rule, case["expect"]["rule"].as_u64(), "{name}: {case}");
            }
        }
    }

    /// A value as a file has it: JSON, but for the colon.
    fn toml(value: &Json) -> String {
        match value {
            Json::Object(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|(key, value)| format!("{key:?} = {}", toml(value))).collect();
                format!("{{ {} }}", entries.join(", "))
            }
            Json::Array(values) => format!("[{}]", values.iter().map(toml).collect::<Vec<_>>().join(", ")),
            value => value.to_string(),
        }
    }
}
