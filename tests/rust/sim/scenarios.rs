//! The example scenarios: each is read and run, and shows what its comment says.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate::Priority;
use tidegate::sim::{Report, Scenario, Tally};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios")
}

pub(crate) fn read(name: &str) -> Scenario {
    let text = fs::read_to_string(directory().join(name)).expect("the scenario is there");
    let load = |trace: &str| fs::read_to_string(directory().join(trace)).map_err(|error| error.to_string());
    Scenario::from_toml_with(name, &text, load).unwrap_or_else(|error| panic!("{error}"))
}

fn run(name: &str) -> Report {
    read(name).run(1).expect("a valid scenario")
}

fn sum(report: &Report, minutes: std::ops::Range<usize>) -> Tally {
    let mut sum = Tally::default();
    report.series[minutes].iter().for_each(|point| sum += &point.tally);
    sum
}

fn errors(report: &Report, minutes: std::ops::Range<usize>) -> f64 {
    sum(report, minutes).error_rate().expect("somebody was answered or gave up")
}

fn sheds(report: &Report, minutes: std::ops::Range<usize>) -> f64 {
    sum(report, minutes).shed_share().expect("somebody came")
}

#[test]
fn each_of_them_runs() {
    let files = fs::read_dir(directory()).expect("there are examples");
    let paths = files.map(|file| file.expect("a file").path());
    let scenarios = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let mut names: Vec<_> =
        scenarios.map(|path| path.file_name().unwrap().to_str().expect("a plain name").to_owned()).collect();
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    for name in names {
        let report = run(&name);
        assert!(report.totals.offered > 1_000 && report.totals.good > 100, "{name}: {:?}", report.totals);
        assert!(!report.scenario.title.is_empty(), "{name}");
    }
}

#[test]
fn the_article_with_and_without_a_gate() {
    let ungated = run("article-ramp.toml");
    assert_eq!(ungated.series.len(), 90);
    assert!(errors(&ungated, 0..60) < 0.01, "{}", errors(&ungated, 0..60));
    assert!(errors(&ungated, 66..90) > 0.99);
    let gated = run("article-gated.toml");
    assert!(errors(&gated, 0..90) < 0.01, "{}", errors(&gated, 0..90));
    assert!(sum(&gated, 65..90).good > 25 * 42);
    assert_eq!(gated.totals.first_attempts, ungated.totals.first_attempts);
}

#[test]
fn the_article_scaled() {
    let report = run("article-scaled.toml");
    assert!(errors(&report, 0..30) < 0.01 && errors(&report, 45..60) > 0.9);
}

#[test]
fn a_retry_storm_until_somebody_ends_it() {
    let storm = read("retry-storm.toml");
    let report = storm.run(1).unwrap();
    assert!(errors(&report, 0..10) < 0.01);
    assert!(errors(&report, 30..60) > 0.5, "{}", errors(&report, 30..60));
    let mut calm = storm.clone();
    calm.clients.retries = None;
    let report = calm.run(1).unwrap();
    assert!(errors(&report, 30..60) < 0.01, "{}", errors(&report, 30..60));
    let mut gated = storm;
    gated.gate = Some(tidegate::Gate::builder("db", 30));
    let report = gated.run(1).unwrap();
    assert!(errors(&report, 0..60) < 0.01, "{}", errors(&report, 0..60));
}

#[test]
fn the_essential_keep_their_room() {
    let report = run("priorities.toml");
    let share = |priority: Priority| {
        let of = report.by_priority.iter().find(|of| of.priority == priority).expect("it came");
        of.tally.shed_share().expect("some came")
    };
    assert!(share(Priority::Critical) < 0.1, "{}", share(Priority::Critical));
    assert!(share(Priority::Sheddable) > 0.4, "{}", share(Priority::Sheddable));
}

#[test]
fn a_slow_dependency_fills_the_gate() {
    let report = run("slow-dependency.toml");
    assert!(sheds(&report, 0..10) < 0.01 && sheds(&report, 11..20) > 0.5 && sheds(&report, 21..30) < 0.01);
    // Who was let in was answered all the same.
    assert!(errors(&report, 0..30) < 0.01);
}

#[test]
fn two_kinds_of_queries() {
    let latency = run("bimodal.toml").latency.good;
    assert!(latency.p99_s > latency.p50_s.map(|median| 5.0 * median), "{latency:?}");
}

#[test]
fn a_quarter_of_the_capacity_for_a_while() {
    let report = run("capacity-step.toml");
    assert!(errors(&report, 0..10) < 0.01 && errors(&report, 12..20) > 0.2);
    assert!(errors(&report, 25..40) < 0.01, "{}", errors(&report, 25..40));
    let mut ungated = read("capacity-step.toml");
    ungated.gate = None;
    assert!(errors(&ungated.run(1).unwrap(), 25..40) > 0.9);
}

#[test]
fn real_users_come_in_bursts() {
    let report = run("real-trace.toml");
    let shares: Vec<_> = report.series.iter().filter_map(|point| point.tally.shed_share()).collect();
    assert!(report.series.len() == 59 && shares.iter().any(|&share| share < 0.1));
    assert!(shares.iter().any(|&share| share > 0.4), "{shares:?}");
    assert!(errors(&report, 0..59) < 0.02);
}
