//! The cases of a classifier among the vectors, built by the calls that a Rust program makes.

use serde_json::{Map, Value};
use tidegate::{Classifier, Match, Priority, Rule};

use crate::Unanswered;

/// Runs a case and returns how much of it Rust's types refuse.
pub(crate) fn run(case: &Value, name: &str) -> usize {
    let classifier = match (build(&case["classifier"]), case.get("expect")) {
        (Ok(classifier), None) => classifier,
        (Ok(_), Some(_)) => panic!("{name}: the classifier was made"),
        (Err(Unanswered::Inexpressible), Some(_)) => return 1,
        (Err(Unanswered::Refused(_)), Some(expected)) => {
            assert_eq!(expected["error"], "config", "{name}");
            return 0;
        }
        (Err(_), None) => panic!("{name}: the classifier was not made"),
    };
    for case in case["cases"].as_array().unwrap() {
        let lookup = |attribute: &str| case["attributes"].get(attribute).and_then(Value::as_str);
        let expected = &case["expect"];
        let explained = classifier.explain(lookup);
        assert_eq!(explained.priority.map(Priority::name), expected["priority"].as_str(), "{name}: {case}");
        let number = explained.rule.map(|(number, _)| number as u64);
        assert_eq!(number, expected["rule"].as_u64(), "{name}: {case}");
        assert_eq!(classifier.classify(lookup), explained.priority, "{name}: {case}");
    }
    0
}

fn build(config: &Value) -> Result<Classifier, Unanswered> {
    if let Some(essential) = config.get("essential") {
        if config.get("rules").or(config.get("default")).is_some() {
            return Err(Unanswered::Inexpressible);
        }
        let matches: Result<Vec<_>, _> = items(essential).map(matching).collect();
        return Ok(Classifier::essential(matches?)?);
    }
    let rules: Result<Vec<_>, _> = config.get("rules").into_iter().flat_map(items).map(rule).collect();
    let default = config.get("default").and_then(Value::as_str).map(str::parse).transpose()?;
    Ok(Classifier::new(rules?, default)?)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().unwrap().iter()
}

fn rule(rule: &Value) -> Result<Rule, Unanswered> {
    let known = ["match", "priority", "name"];
    let of = |key: &str| rule.get(key).ok_or(Unanswered::Inexpressible);
    if rule.as_object().unwrap().keys().any(|key| !known.contains(&key.as_str())) {
        return Err(Unanswered::Inexpressible);
    }
    let made = Rule::new(matching(of("match")?)?, text(of("priority")?)?.parse()?)?;
    Ok(match rule.get("name") {
        Some(name) => made.named(text(name)?)?,
        None => made,
    })
}

fn matching(conditions: &Value) -> Result<Match, Unanswered> {
    with(Match::new(), "", conditions.as_object().unwrap())
}

fn with(mut matching: Match, prefix: &str, conditions: &Map<String, Value>) -> Result<Match, Unanswered> {
    for (name, patterns) in conditions {
        let name = format!("{prefix}{name}");
        matching = match patterns {
            Value::Object(nested) => with(matching, &format!("{name}."), nested)?,
            Value::Array(patterns) => {
                matching.when(&name, patterns.iter().map(text).collect::<Result<Vec<_>, _>>()?)?
            }
            pattern => matching.when(&name, [text(pattern)?])?,
        };
    }
    Ok(matching)
}

fn text(value: &Value) -> Result<&str, Unanswered> {
    value.as_str().ok_or(Unanswered::Inexpressible)
}
