//! Runs `tests/vectors/*.json`; the format is described beside them.

mod classifier;
#[cfg(feature = "file")]
mod configuration;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate::{
    Ask, ConfigError, Gate, ManualClock, Outcome, OwnedPermit, Priority, Rate, Reason, RetryAfter, Stats,
    Threshold, Thresholds, Weight, limit_from,
};

#[test]
fn every_vector_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let (mut cases, mut skipped) = (0, 0);
    for file in files {
        let all: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for case in all.as_array().unwrap() {
            let name = format!("{}: {}", file.file_name().unwrap().display(), case["name"]);
            let run = if case.get("classifier").is_some() {
                classifier::run
            } else if case.get("toml").is_some() {
                of_a_file
            } else {
                run
            };
            skipped += run(case, &name);
            cases += 1;
        }
    }
    println!("{cases} cases; Rust's types refuse {skipped} steps");
    assert!(cases >= 60, "only {cases} cases were found");
}

#[cfg(feature = "file")]
use configuration::run as of_a_file;

/// Without files a case is one step that cannot be made.
#[cfg(not(feature = "file"))]
fn of_a_file(_case: &Value, _name: &str) -> usize {
    1
}

/// Runs a case and returns how many of its steps Rust's types refuse.
fn run(case: &Value, name: &str) -> usize {
    let clock = Arc::new(ManualClock::new(0));
    let config = &case["gate"];
    let gate = match (build(config, clock.clone()), config.get("expect")) {
        (Ok(gate), None) => gate,
        (Ok(_), Some(_)) => panic!("{name}: the gate was made"),
        (Err(Unanswered::Inexpressible), Some(_)) => return 1,
        (Err(Unanswered::Refused(error)), Some(expected)) => {
            assert_eq!(&kind(&error), expected, "{name}: {error}");
            return 0;
        }
        (Err(_), None) => panic!("{name}: the gate was not made"),
    };
    let mut permits = HashMap::new();
    let mut skipped = 0;
    for (number, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        if let Some(at_ns) = step["at_ns"].as_u64() {
            clock.set(at_ns);
        }
        let expected = &step["expect"];
        let got = match answer(&gate, &mut permits, step) {
            Ok(value) => value,
            Err(Unanswered::Refused(error)) => kind(&error),
            Err(Unanswered::Inexpressible) => {
                assert_eq!(expected, &json!({"error": "argument"}), "{name}, step {number}: skipped");
                skipped += 1;
                continue;
            }
        };
        assert!(meets(&got, expected), "{name}, step {number}: {step}\n expected {expected}\n got {got}");
    }
    skipped
}

/// Why a call has no answer.
enum Unanswered {
    Refused(ConfigError),
    /// The argument's type has no such value: this program could not be written.
    Inexpressible,
}

impl From<ConfigError> for Unanswered {
    fn from(error: ConfigError) -> Self {
        Self::Refused(error)
    }
}

fn build(config: &Value, clock: Arc<ManualClock>) -> Result<Gate, Unanswered> {
    let mut builder = Gate::builder(config["name"].as_str().unwrap_or("vector"), limit(&config["limit"])?)
        .thresholds(thresholds(&config["thresholds"])?)
        .rate(rate(config)?)
        .enforce(config["enforce"].as_bool().unwrap_or(true))
        .clock(clock);
    if let Some(priority) = config["default_priority"].as_str() {
        builder = builder.default_priority(priority.parse()?);
    }
    Ok(builder.build()?)
}

type Permits = HashMap<String, OwnedPermit>;

/// Makes a step's call; the answer is in the words of `expect`.
fn answer(gate: &Gate, permits: &mut Permits, step: &Value) -> Result<Value, Unanswered> {
    let ok = json!({"ok": true});
    Ok(match step["op"].as_str().unwrap() {
        "try_admit" => match gate.try_admit_owned(ask(step)?) {
            Ok(permit) => {
                let over = permit.ticket().over();
                let label = step["as"].as_str().expect("a permit has a label").to_owned();
                assert!(permits.insert(label, permit).is_none(), "a label is given once: {step}");
                json!({"admitted": true, "over": over})
            }
            Err(shed) => json!({"shed": shed.reason.name()}),
        },
        "release" => {
            let outcome = outcome(step)?;
            match permits.remove(step["permit"].as_str().unwrap()) {
                Some(permit) => {
                    permit.release(outcome);
                    ok
                }
                // The first release moved the permit away: there is none to release again.
                None => json!({"error": "stale"}),
            }
        }
        "enter" => match gate.enter(None) {
            Ok(()) => json!({"admitted": true, "over": false}),
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
        "set_rate" => {
            gate.set_rate(rate(step)?);
            ok
        }
        "set_enforce" => {
            gate.set_enforce(step["enforce"].as_bool().unwrap());
            ok
        }
        "signal" => {
            let good_for =
                u64::try_from(whole(&step["good_for_ms"])?).map_err(|_| Unanswered::Inexpressible)?;
            let name = step["name"].as_str().unwrap();
            gate.signal(name, step["value"].as_f64().unwrap(), Duration::from_millis(good_for))?;
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

fn ask(step: &Value) -> Result<Ask, Unanswered> {
    let priority = step["priority"].as_str().map(str::parse::<Priority>).transpose()?;
    let weight = match step.get("weight") {
        Some(number) => Weight::new(whole(number)?)?,
        None => Weight::ONE,
    };
    Ok(Ask::from(priority).weight(weight))
}

fn outcome(step: &Value) -> Result<Outcome, ConfigError> {
    step["outcome"].as_str().map_or(Ok(Outcome::Success), str::parse)
}

fn limit(number: &Value) -> Result<u32, Unanswered> {
    Ok(limit_from(whole(number)?)?)
}

fn whole(number: &Value) -> Result<i64, Unanswered> {
    number.as_i64().ok_or(Unanswered::Inexpressible)
}

fn thresholds(value: &Value) -> Result<Thresholds, Unanswered> {
    let mut thresholds = Thresholds::default();
    for (priority, threshold) in value.as_object().into_iter().flatten() {
        let threshold = match threshold.get("reserve") {
            Some(weight) => {
                Threshold::Reserve(u32::try_from(whole(weight)?).map_err(|_| Unanswered::Inexpressible)?)
            }
            None => Threshold::fraction(threshold.as_f64().unwrap())?,
        };
        thresholds = thresholds.with(priority.parse()?, threshold);
    }
    Ok(thresholds)
}

/// A rate has its burst, so one alone cannot be written.
fn rate(of: &Value) -> Result<Option<Rate>, Unanswered> {
    let burst = of.get("burst");
    let text = match of.get("rate") {
        None | Some(Value::Null) if burst.is_none() => return Ok(None),
        Some(Value::String(text)) => text,
        _ => return Err(Unanswered::Inexpressible),
    };
    let rate: Rate = text.parse()?;
    Ok(Some(match burst {
        Some(burst) => rate.with_burst(whole(burst)?)?,
        None => rate,
    }))
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

/// Whether `got` has all that is expected. Maps may have more, but an `over` that nobody expects is false;
/// seconds agree within a nanosecond.
fn meets(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => {
            let over = |of: &Map<String, Value>| of.get("over").is_some_and(|over| over == true);
            over(got) == over(expected)
                && expected.iter().all(|(key, value)| got.get(key).is_some_and(|got| meets(got, value)))
        }
        (Value::Number(got), Value::Number(expected)) => {
            let off = got.as_f64().unwrap() - expected.as_f64().unwrap();
            off.abs() <= Duration::from_nanos(1).as_secs_f64()
        }
        _ => got == expected,
    }
}
