//! Runs `tests/vectors/*.json`; the format is described beside them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::{
    Ask, ConfigError, Gate, ManualClock, Outcome, Priority, Reason, RetryAfter, Stats, Threshold, Thresholds,
    Ticket, Weight, limit_from,
};

#[test]
fn every_vector_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut cases = 0;
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json")) {
        let text = fs::read_to_string(file).unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        for case in all.as_array().unwrap() {
            run(case, &format!("{}: {}", file.file_name().unwrap().display(), case["name"]));
            cases += 1;
        }
    }
    assert!(cases > 40, "only {cases} cases were found");
}

fn run(case: &Value, name: &str) {
    let clock = Arc::new(ManualClock::new(0));
    let config = &case["gate"];
    let gate = match build(config, clock.clone()) {
        Ok(gate) => gate,
        Err(error) => return assert_eq!(kind(&error), config["expect"], "{name}: {error}"),
    };
    assert!(config.get("expect").is_none(), "{name}: the gate was made");
    let mut permits = HashMap::new();
    for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        if let Some(at_ns) = step["at_ns"].as_u64() {
            clock.set(at_ns);
        }
        let got = perform(&gate, &mut permits, step);
        let expected = &step["expect"];
        assert!(meets(&got, expected), "{name}, step {number}: {step}\n expected {expected}\n got {got}");
    }
}

fn build(config: &Value, clock: Arc<ManualClock>) -> Result<Gate, ConfigError> {
    let limit = limit(&config["limit"])?;
    let mut builder = Gate::builder(config["name"].as_str().unwrap_or("vector"), limit)
        .thresholds(thresholds(&config["thresholds"])?)
        .enforce(config["enforce"].as_bool().unwrap_or(true))
        .clock(clock);
    if let Some(priority) = config["default_priority"].as_str() {
        builder = builder.default_priority(priority.parse()?);
    }
    builder.build()
}

/// What a step came to, in the words of `expect`.
fn perform(gate: &Gate, permits: &mut HashMap<String, Ticket>, step: &Value) -> Value {
    match answer(gate, permits, step) {
        Ok(value) => value,
        Err(error) => kind(&error),
    }
}

fn answer(gate: &Gate, permits: &mut HashMap<String, Ticket>, step: &Value) -> Result<Value, ConfigError> {
    let ok = json!({"ok": true});
    Ok(match step["op"].as_str().unwrap() {
        "try_admit" => match gate.take(ask(step)?) {
            Ok(ticket) => {
                let over = ticket.over();
                permits.insert(step["as"].as_str().unwrap_or_default().to_owned(), ticket);
                if over { json!({"admitted": true, "over": true}) } else { json!({"admitted": true}) }
            }
            Err(shed) => json!({"shed": shed.reason.name()}),
        },
        "release" => {
            let outcome = outcome(step)?;
            match permits.remove(step["permit"].as_str().unwrap()) {
                Some(ticket) => {
                    gate.put(ticket, outcome);
                    ok
                }
                // In Rust the permit is moved away: there is none to release again.
                None => json!({"error": "stale"}),
            }
        }
        "enter" => match gate.enter(None) {
            Ok(()) => json!({"admitted": true}),
            Err(shed) => json!({"shed": shed.reason.name()}),
        },
        "exit" => json!({"ok": gate.exit(outcome(step)?)}),
        "set_limit" => {
            gate.set_limit(limit(&step["limit"])?, None)?;
            ok
        }
        "set_thresholds" => {
            gate.set_thresholds(thresholds(&step["thresholds"])?)?;
            ok
        }
        "set_enforce" => {
            gate.set_enforce(step["enforce"].as_bool().unwrap());
            ok
        }
        "close" => {
            gate.close();
            ok
        }
        "retry_after" => match gate.retry_after(ask(step)?) {
            RetryAfter::Known(wait) => json!({"seconds": wait.as_secs_f64()}),
            RetryAfter::Unknown => json!({"seconds": "unknown"}),
            RetryAfter::Never => json!({"seconds": "never"}),
        },
        "stats" => stats(&gate.stats()),
        other => panic!("no such op: {other}"),
    })
}

fn ask(step: &Value) -> Result<Ask, ConfigError> {
    let priority = step["priority"].as_str().map(str::parse::<Priority>).transpose()?;
    let weight = match &step["weight"] {
        Value::Null => Weight::ONE,
        value => match value.as_i64() {
            Some(number) => Weight::new(number)?,
            None => return Err(ConfigError::Weight { got: value.to_string() }),
        },
    };
    Ok(Ask::from(priority).weight(weight))
}

fn outcome(step: &Value) -> Result<Outcome, ConfigError> {
    step["outcome"].as_str().map_or(Ok(Outcome::Success), str::parse)
}

fn limit(value: &Value) -> Result<u32, ConfigError> {
    match value.as_i64() {
        Some(number) => limit_from(number),
        None => Err(ConfigError::Limit { got: value.to_string() }),
    }
}

fn thresholds(value: &Value) -> Result<Thresholds, ConfigError> {
    let mut thresholds = Thresholds::default();
    for (priority, threshold) in value.as_object().into_iter().flatten() {
        let threshold = match threshold["reserve"].as_u64() {
            Some(weight) => Threshold::Reserve(u32::try_from(weight).unwrap()),
            None => Threshold::fraction(threshold.as_f64().unwrap())?,
        };
        thresholds = thresholds.with(priority.parse()?, threshold);
    }
    Ok(thresholds)
}

fn kind(error: &ConfigError) -> Value {
    let contradiction =
        matches!(error, ConfigError::TopThreshold { .. } | ConfigError::ThresholdRises { .. });
    json!({"error": if contradiction { "config" } else { "argument" }})
}

fn stats(stats: &Stats) -> Value {
    let by_priority = |value: &dyn Fn(Priority) -> Value| -> Value {
        Priority::ALL.iter().map(|&priority| (priority.name().to_owned(), value(priority))).collect()
    };
    json!({
        "limit": stats.limit,
        "in_flight": stats.in_flight,
        "high_water": stats.high_water,
        "generation": stats.generation,
        "unmatched_exits": stats.unmatched_exits,
        "collected": stats.collected,
        "fallback_priority": stats.fallback_priority(),
        "admitted": by_priority(&|priority| stats.admitted(priority).into()),
        "would_shed": by_priority(&|priority| stats.would_shed(priority).into()),
        "shed": by_priority(&|priority| {
            Reason::ALL.iter().map(|&reason| (reason.name().to_owned(), Value::from(stats.shed(priority, reason)))).collect()
        }),
        "released": Outcome::ALL
            .iter()
            .map(|&outcome| (outcome.name().to_owned(), Value::from(stats.released(outcome))))
            .collect::<Value>(),
    })
}

/// Whether `got` has all that is expected: maps may have more, seconds agree within a nanosecond.
fn meets(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| got.get(key).is_some_and(|got| meets(got, value)))
        }
        (Value::Number(got), Value::Number(expected)) => {
            let off = got.as_f64().unwrap() - expected.as_f64().unwrap();
            off.abs() <= Duration::from_nanos(1).as_secs_f64()
        }
        _ => got == expected,
    }
}
