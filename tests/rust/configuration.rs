//! The vectors of configuration files.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate::{FileError, Gate, Gates, ManualClock};

use super::{Unanswered, answer, kind, meets};

const FILE: &str = "vector.toml";

/// Runs a case; Rust's types refuse none of its steps.
pub(super) fn run(case: &Value, name: &str) -> usize {
    let clock = Arc::new(ManualClock::new(0));
    let shared = Arc::clone(&clock);
    let made = Gates::from_toml_with(FILE, &text(case), move |builder| builder.clock(shared.clone()));
    let gates = match (made, case.get("problems")) {
        (Ok(gates), None) => gates,
        (Err(error), Some(expected)) => {
            assert_problems(&error, expected, name);
            return 0;
        }
        (Ok(_), Some(_)) => panic!("{name}: the file was taken"),
        (Err(error), None) => panic!("{name}: {error}"),
    };
    let (mut known, mut permits) = (HashMap::new(), HashMap::new());
    for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        if let Some(at_ns) = step["at_ns"].as_u64() {
            clock.set(at_ns);
        }
        for gate in gates.names() {
            let handle = gates.gate(&gate).unwrap();
            known.insert(gate, handle); // to be there also when the file has it no more
        }
        let place = format!("{name}, step {number}");
        let expected = &step["expect"];
        let got = match step["op"].as_str().unwrap() {
            "names" => json!({"names": gates.names()}),
            "gate" => state(&known[step["gate"].as_str().unwrap()]),
            "explain" => json!({"text": gates.explain().lines().collect::<Vec<_>>()}),
            "classify" => classified(&gates, &step["attributes"]),
            "reload" => match gates.reload_toml(&text(step)) {
                Ok(changes) => {
                    json!({"changes": changes.iter().map(ToString::to_string).collect::<Vec<_>>()})
                }
                Err(error) => {
                    assert_problems(&error, &expected["problems"], &place);
                    continue;
                }
            },
            _ => answer(&known[step["gate"].as_str().unwrap()], &mut permits, step).unwrap_or_else(
                |unanswered| match unanswered {
                    Unanswered::Refused(error) => kind(&error),
                    Unanswered::Inexpressible => panic!("{place}: {step}"),
                },
            ),
        };
        assert!(meets(&got, expected), "{place}: {step}\n expected {expected}\n got {got}");
    }
    0
}

fn text(of: &Value) -> String {
    let lines: Vec<_> = of["toml"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    lines.join("\n")
}

fn assert_problems(error: &FileError, expected: &Value, place: &str) {
    let expected = expected.as_array().unwrap_or_else(|| panic!("{place}: {error}"));
    assert_eq!(error.problems.len(), expected.len(), "{place}: {error}");
    for (got, expected) in error.problems.iter().zip(expected) {
        assert_eq!(
            (json!(got.line), json!(got.key)),
            (expected["line"].clone(), expected["key"].clone()),
            "{place}"
        );
        let start = expected["message"].as_str().unwrap();
        assert!(got.message.starts_with(start), "{place}: {:?} does not start with {start:?}", got.message);
    }
}

fn state(gate: &Gate) -> Value {
    let rate = gate
        .rate()
        .map(|rate| json!({"count": rate.count(), "seconds": rate.per().seconds(), "burst": rate.burst()}));
    json!({
        "limit": gate.limit(),
        "thresholds": gate.thresholds(),
        "default_priority": gate.default_priority().name(),
        "enforce": gate.enforce(),
        "timing": gate.stats().occupancy_us.is_some(),
        "closed": gate.closed(),
        "rate": rate,
    })
}

fn classified(gates: &Gates, attributes: &Value) -> Value {
    let Some(classifier) = gates.classifier() else {
        return json!({"priority": null});
    };
    let lookup = |name: &str| attributes.get(name).and_then(Value::as_str);
    let explained = classifier.explain(lookup);
    assert_eq!(classifier.classify(lookup), explained.priority);
    json!({"priority": explained.priority.map(tidegate::Priority::name), "why": explained.to_string()})
}
