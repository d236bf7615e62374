//! No text makes the simulator panic, hang or report what is no number.

use std::cell::Cell;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tidegate::sim::Scenario;

use crate::files::{GOOD, SERVERS};

/// Values that break rules, or nearly do.
const ODD: [&str; 32] = [
    "0",
    "-1",
    "1",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "9223372036854775807",
    "1e-300",
    "true",
    "''",
    "'0/s'",
    "'1e9/s'",
    "'999999999999/s'",
    "'0.000000001/h'",
    "'0s'",
    "'1ms'",
    "'876000h'",
    "'9999999999999999999h'",
    "'sheddable'",
    "'shared'",
    "'servers'",
    "'pareto'",
    "'trace.csv'",
    "[]",
    "{}",
    "[1, 2]",
    "['shed']",
    "{ kind = 'pareto', alpha = 1.001 }",
    "{ kind = 'lognormal', cv = 1e12 }",
    "{ kind = 'bimodal', share = 0.999999, factor = 1e12 }",
    "[{ rate = '3/s', for = '100h' }]",
];

/// A text with some of its values, lines or characters changed.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (0..4_usize, any::<prop::sample::Index>(), 0..ODD.len(), any::<prop::sample::Index>());
    (any::<bool>(), prop::collection::vec(edit, 1..4)).prop_map(|(first, edits)| {
        let mut lines: Vec<String> = if first { GOOD } else { SERVERS }.lines().map(str::to_owned).collect();
        for (how, at, odd, other) in edits {
            let at = at.index(lines.len());
            match how {
                0 | 1 => {
                    // One value of the line, of which an inline table has several.
                    let places: Vec<_> = lines[at].match_indices("= ").map(|(place, _)| place + 2).collect();
                    if !places.is_empty() {
                        let start = places[other.index(places.len())];
                        let rest = &lines[at][start..];
                        let end = start + rest.find([',', '}']).unwrap_or(rest.len());
                        lines[at].replace_range(start..end, ODD[odd]);
                    }
                }
                2 => {
                    let line = lines[other.index(lines.len())].clone();
                    lines.insert(at, line);
                }
                _ => {
                    let line = &mut lines[at];
                    if let Some((place, _)) = line.char_indices().nth(other.index(line.len().max(1))) {
                        line.remove(place);
                    }
                }
            }
        }
        lines.join("\n")
    })
}

#[test]
fn no_text_panics() {
    let config = Config { cases: 3_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (read, ran) = (Cell::new(0), Cell::new(0));
    let load = |_: &str| Ok("0\n1\n5\n".to_owned());
    let result = runner.run(&mutated(), |text| {
        match Scenario::from_toml_with("f.toml", &text, load) {
            Ok(mut scenario) => {
                read.set(read.get() + 1);
                // What is legal may take minutes; here a little of it is enough.
                scenario.duration = scenario.duration.min(Duration::from_secs(60));
                scenario.interval = scenario.interval.max(scenario.duration / 100);
                if let Ok(report) = scenario.run(1) {
                    ran.set(ran.get() + 1);
                    let json = serde_json::to_value(&report).expect("a report is JSON");
                    prop_assert!(!json.to_string().contains("null,\"mean\""), "a mean is no number");
                    prop_assert!(report.in_flight.mean.is_finite());
                }
            }
            Err(error) => {
                prop_assert!(!error.problems.is_empty());
                for problem in &error.problems {
                    prop_assert!(problem.line >= 1 && problem.line <= text.lines().count() + 1, "{problem}");
                    prop_assert!(!problem.message.is_empty());
                }
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let (read, ran) = (read.get(), ran.get());
    assert!(
        read > 200 && ran > 150,
        "of the mutants {read} were read and {ran} ran: too few to say anything"
    );
}
