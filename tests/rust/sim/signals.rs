//! Signals of a simulated gate: in virtual time, and none of this machine's.

use tidegate::sim::{Report, Scenario};
use tidegate::{Priority, Reason};

const PUSHED: &str = r#"duration = "3min"
interval = "1s"
[gate]
limit = 1000
signals = [{ kind = "pushed", name = "db", leave_for = "5s", ramp = "10s" }]
[[pushes]]
at = "1min"
signal = "db"
value = 0.95
good_for = "1min"
[arrivals]
rate = "50/s"
[[arrivals.mix]]
priority = "sheddable"
share = 1
[[arrivals.mix]]
priority = "critical_plus"
share = 1
[service]
kind = "servers"
time = "10ms"
"#;

fn shed_by_pressure(report: &Report, from_s: f64, to_s: f64) -> u64 {
    let points = report.series.iter().filter(|point| (from_s..to_s).contains(&point.start_s));
    points.map(|point| point.tally.shed_for(Reason::Pressure)).sum()
}

#[test]
fn a_value_that_is_pushed_sheds_for_as_long_as_it_is_good() {
    let report = Scenario::from_toml("f.toml", PUSHED).unwrap().run(1).unwrap();
    assert_eq!(shed_by_pressure(&report, 0.0, 62.0), 0, "it has to hold for two seconds");
    assert!(shed_by_pressure(&report, 80.0, 119.0) > 900, "about 39 s of 25 a second");
    assert_eq!(shed_by_pressure(&report, 122.0, 180.0), 0, "unknown is not overload");
    // The level is (0.95 - 0.7) / 0.3, at which all of the least important are shed and 31.67 % of the most.
    let steady = report.series.iter().filter(|point| (80.0..119.0).contains(&point.start_s));
    let tops =
        steady.flat_map(|point| &point.by_priority).filter(|one| one.priority == Priority::CriticalPlus);
    let (shed, offered) = tops.fold((0, 0), |(shed, offered), one| {
        (shed + one.tally.shed_for(Reason::Pressure), offered + one.tally.offered)
    });
    let share = shed as f64 / offered as f64;
    assert!((share - 0.3167).abs() < 0.01, "{shed} of {offered}");
    assert_eq!(report.totals.shed(), shed_by_pressure(&report, 0.0, 180.0));
}

/// A database that slows down to a tenth is seen by the gate's own latency.
#[test]
fn the_gates_own_latency_sheds_what_matters_least() {
    let text = r#"duration = "4min"
        interval = "1s"
        [gate]
        limit = 100
        objective = "1s"
        signals = [{ kind = "latency", enter = 0.8, leave = 0.4 }]
        [arrivals]
        rate = "40/s"
        [[arrivals.mix]]
        priority = "sheddable"
        share = 3
        [[arrivals.mix]]
        share = 1
        [service]
        kind = "shared"
        lambda = "100/s"
        sigma = 1.0
        [[service.changes]]
        at = "1min"
        lambda = "20/s"
    "#;
    let report = Scenario::from_toml("f.toml", text).unwrap().run(1).unwrap();
    assert_eq!(shed_by_pressure(&report, 0.0, 60.0), 0);
    assert!(shed_by_pressure(&report, 90.0, 240.0) > 1_000, "of some 4500 sheddable");
    let of = |priority| report.by_priority.iter().find(|one| one.priority == priority).unwrap().tally;
    let shed = |priority| of(priority).shed_for(Reason::Pressure) as f64 / of(priority).offered as f64;
    assert!(shed(Priority::Sheddable) > 4.0 * shed(Priority::Critical), "the least important first");
    assert_eq!(Scenario::from_toml("f.toml", text).unwrap().run(1).unwrap().totals, report.totals);
}

#[test]
fn what_a_scenario_does_not_have_is_refused_at_its_line() {
    let faults = |text: &str| {
        let error = Scenario::from_toml("f.toml", text).unwrap_err();
        error.problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let machine = PUSHED.replace("{ kind = \"pushed\"", "{ kind = \"cpu\" }, { kind = \"pushed\"");
    assert_eq!(
        faults(&machine),
        [
            "line 5: gate.signals: a simulator has no CPU, memory or disk to measure: the signals of a scenario are \
          latency, errors and pushed, got cpu"
        ]
    );
    for (from, to, fault) in [
        (
            "signal = \"db\"",
            "signal = \"d\"",
            "line 6: pushes[1]: the gate must have a pushed signal of this name, got \"d\"",
        ),
        ("value = 0.95", "value = 95", "line 6: pushes[1]: a pressure must be a number from 0 to 1, got 95"),
        (
            "at = \"1min\"",
            "at = \"3min\"",
            "line 7: pushes[1].at: must come before the end of the run at 180 s, got \"3min\"",
        ),
        (
            "good_for = \"1min\"",
            "good_for = \"0s\"",
            "line 10: pushes[1].good_for: must be a time above 0, got 0 s",
        ),
        ("good_for = \"1min\"\n", "", "line 6: pushes[1]: good_for is missing"),
    ] {
        assert_eq!(faults(&PUSHED.replace(from, to)), [fault], "{to}");
    }
}

#[test]
fn nor_may_a_program_give_it_one() {
    let mut scenario = Scenario::from_toml("f.toml", PUSHED).unwrap();
    let gate = scenario.gate.take().unwrap();
    let refused = scenario.run(1).unwrap_err();
    assert_eq!(refused.to_string(), "pushes: the gate must have a pushed signal of this name, got \"db\"");
    let cpu = tidegate::signal::Signal::named(tidegate::signal::Kind::Cpu, "cpu");
    scenario.gate = Some(gate.signals([(cpu, tidegate::detector::Rule::default())]));
    let refused = scenario.run(1).unwrap_err().to_string();
    assert!(
        refused.starts_with("gate.signals: a simulator has no CPU") && refused.ends_with("got cpu"),
        "{refused}"
    );
}

/// The database of docs/choosing.md, best with 42 inside.
#[test]
fn a_controller_of_a_scenario_finds_its_limit() {
    let text = r#"duration = "20min"
        [gate]
        limit = 10
        objective = "3s"
        controller = { kind = "goodput", min = 2, max = 400 }
        [arrivals]
        rate = "90/s"
        [service]
        kind = "shared"
        lambda = "3/s"
        sigma = 0.02
        kappa = 0.000555
        sizes = { kind = "lognormal", cv = 0.5 }
        [clients]
        timeout = "3s"
    "#;
    let scenario = Scenario::from_toml("f.toml", text).unwrap();
    let report = scenario.run(1).unwrap();
    let gate = report.gate.clone().unwrap();
    assert!((30..=60).contains(&gate.limit), "{}", gate.limit);
    assert!((7..=14).contains(&gate.limit_changes[0].from), "from an arm of the first experiment");
    assert!(gate.limit_changes.iter().any(|change| change.cause.as_deref() == Some("raise")));
    assert!(report.series.last().unwrap().limit.is_some_and(|limit| (27..=66).contains(&limit)));
    assert_eq!(scenario.run(1).unwrap().gate, Some(gate), "the same seed, the same path");
    let written = serde_json::to_value(&report.scenario).unwrap();
    assert_eq!(written.pointer("/gate/limit").unwrap(), 10);
    assert_eq!(
        *written.pointer("/gate/controller").unwrap(),
        serde_json::json!({"kind": "goodput", "min": 2, "max": 400, "prior": 10})
    );
    assert_eq!(written.pointer("/gate/objective_s").unwrap(), 3.0);
}
