//! The article's collapse, minute by minute, against an independent simulation of the same model.
//!
//! `tests/oracles/article.json` was made by a separate program in another language, with other random numbers,
//! before this simulator existed. For each case and minute it has the mean of the error over 60 seeds with its
//! standard deviation, the mean of the good answers, and the share of all arrivals that were shed.
//!
//! Ours are the seeds from `BASE` on, and each comparison is to lie within three standard errors of the
//! difference. There are several hundred that could fail, and those of one case are correlated, so that even
//! the true model fails now and then by chance alone: of the bases 0, 60, ... 2340, at 25 of 40 no comparison
//! is further apart, and at 34 none of the error. `BASE` is the first of them, not the best.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate::Gate;
use tidegate::sim::{Arrivals, Clients, OnTimeout, Scenario, Service, Sizes, Tally};

const BASE: u64 = 0;
const SEEDS: u64 = 60;
const MINUTES: usize = 30;

fn cases() -> Vec<Value> {
    let text = include_str!("../../oracles/article.json");
    let cases: Value = serde_json::from_str(text).expect("the table is JSON");
    cases.as_array().expect("the table has cases").clone()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().expect("a number")
}

fn scenario(case: &Value) -> Scenario {
    let rate = number(case, "rate_per_min") / 60.0;
    let service =
        Service::shared(number(case, "lam_per_min") / 60.0, number(case, "sigma"), number(case, "kappa"));
    let mut scenario = Scenario::new(
        case["name"].as_str().expect("a name"),
        Arrivals::poisson(rate, Duration::from_secs(60 * MINUTES as u64)),
        service.sizes(Sizes::Lognormal { cv: 0.5 }),
    );
    scenario.clients = Clients::patient_for(Duration::from_secs_f64(60.0 * number(case, "timeout_min")));
    let limit = case["limit"].as_u64().map(|limit| u32::try_from(limit).expect("a small limit"));
    scenario.gate = limit.map(|limit| Gate::builder("db", limit));
    scenario
}

/// A mean, and the variance of what it is a mean of.
struct Measured {
    mean: f64,
    variance: f64,
}

fn measured(tallies: &[Tally], value: impl Fn(&Tally) -> f64) -> Measured {
    let values: Vec<_> = tallies.iter().map(value).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Measured { mean, variance }
}

/// The share of all, not the mean of shares: its variance is that of the residuals.
fn shed_share(tallies: &[Tally]) -> Measured {
    let offered = measured(tallies, |tally| tally.offered as f64).mean;
    let mean = measured(tallies, |tally| tally.shed() as f64).mean / offered;
    let residual = |tally: &Tally| (tally.shed() as f64 - mean * tally.offered as f64) / offered;
    Measured { mean, variance: measured(tallies, residual).variance }
}

/// How far ours is from theirs, in standard errors. What is within the rounding of the table is not apart.
fn distance(ours: &Measured, theirs: &Measured, rounding: f64) -> f64 {
    let off = ((ours.mean - theirs.mean).abs() - rounding).max(0.0);
    if off == 0.0 { 0.0 } else { off / ((ours.variance + theirs.variance) / SEEDS as f64).sqrt() }
}

/// Everything that lies more than three standard errors of the difference apart: of each minute, and of all.
fn apart(case: &Value, scenario: &Scenario, base: u64) -> Vec<String> {
    let run = |seed| scenario.run(base + seed).expect("a valid scenario");
    let runs: Vec<_> = (0..SEEDS).map(run).collect();
    let mut found = Vec::new();
    for minute in 0..MINUTES {
        let tallies: Vec<_> = runs.iter().map(|run| run.series[minute].tally).collect();
        let there = &case["minutes"][minute];
        let rate = number(case, "rate_per_min");
        found.extend(compare(&format!("minute {minute}"), &tallies, there, Some(number(there, "sd")), rate));
    }
    let tallies: Vec<_> = runs.iter().map(|run| run.totals).collect();
    let mean = |key: &str| -> f64 {
        let minutes = case["minutes"].as_array().expect("minutes");
        minutes.iter().map(|minute| number(minute, key)).sum::<f64>() / MINUTES as f64
    };
    let good = mean("good_per_min") * MINUTES as f64;
    let there = json!({ "shed_share": mean("shed_share"), "good_per_min": good });
    found.extend(compare("all minutes", &tallies, &there, None, 0.0));
    found.iter().map(|found| format!("{}, {found}", case["name"])).collect()
}

/// Of some time, with `sd`, the spread of their error: where they do not say it, ours is taken for theirs. That
/// of good answers is at least the error's, of as many outcomes as there are arrivals.
fn compare(when: &str, tallies: &[Tally], there: &Value, sd: Option<f64>, arrivals: f64) -> Vec<String> {
    let error = measured(tallies, |tally| tally.error_rate().unwrap_or(0.0));
    let shed = shed_share(tallies);
    let good = measured(tallies, |tally| tally.good as f64);
    let spread = sd.unwrap_or_default() * arrivals;
    // Of a whole run one seed in sixty that collapses, or none, makes all the difference to the error.
    let errors = sd.map(|sd| ("error", &error, sd.powi(2), 5e-5));
    let counts = [
        ("shed_share", &shed, shed.variance, 5e-5),
        ("good_per_min", &good, good.variance.max(spread.powi(2)), 5e-3),
    ];
    errors
        .into_iter()
        .chain(counts)
        .filter_map(|(key, ours, variance, rounding)| {
            let theirs = Measured { mean: number(there, key), variance };
            let distance = distance(ours, &theirs, rounding);
            let (here, there) = (ours.mean, theirs.mean);
            let found =
                || format!("{when}, {key}: {here:.4} here, {there} there, {distance:.1} errors apart");
            (distance > 3.0).then(found)
        })
        .collect()
}

#[test]
fn the_article_collapses_minute_by_minute() {
    for case in cases() {
        let found = apart(&case, &scenario(&case), BASE);
        assert!(found.is_empty(), "seeds from {BASE}: {found:#?}");
    }
}

type Change = fn(&mut Scenario);

/// What the comparison is worth: models that are not the article's do not pass it.
#[test]
fn another_model_does_not() {
    let others: [(&str, &str, Change); 8] = [
        ("limit 42, 80/min", "kappa 10 % up", |other| other.service.kappa *= 1.1),
        ("limit 42, 80/min", "sigma 10 % down", |other| other.service.sigma *= 0.9),
        ("limit 30, 80/min", "a limit of 42", |other| other.gate = Some(Gate::builder("db", 42))),
        ("scaled x4, ungated 180/min", "kappa 10 % up", |other| other.service.kappa *= 1.1),
        ("scaled x4, ungated 180/min", "lambda 5 % down", |other| other.service.lambda *= 0.95),
        ("ungated 50/min", "kappa 10 % down", |other| other.service.kappa *= 0.9),
        ("ungated 50/min", "work is cancelled", |other| other.clients.on_timeout = OnTimeout::Cancel),
        ("ungated 50/min", "exponential sizes", |other| other.service.sizes = Sizes::Exponential),
    ];
    for (name, what, change) in others {
        let case = cases().into_iter().find(|case| case["name"] == name).expect("there is such a case");
        let mut other = scenario(&case);
        change(&mut other);
        let found = apart(&case, &other, BASE);
        assert!(found.len() >= 3, "{name}, {what}: passes as the article: {found:#?}");
    }
}
