//! What a reload does to controllers and signals of gates in use.

use std::sync::Arc;
use std::time::Duration;

use tidegate::controller::{Cause, Kind};
use tidegate::{Gate, Gates, ManualClock, Outcome, Priority, Reason};

const SECOND: u64 = 1_000_000_000;

/// Gates of a file on a clock that is set by hand.
struct Served {
    gates: Gates,
    db: Gate,
    clock: Arc<ManualClock>,
}

fn served(text: &str) -> Served {
    let clock = Arc::new(ManualClock::new(0));
    let shared = Arc::clone(&clock);
    let gates = Gates::from_toml_with("f.toml", text, move |builder| builder.clock(shared.clone())).unwrap();
    Served { db: gates.gate("db").unwrap(), gates, clock }
}

impl Served {
    fn reload(&self, text: &str) -> Vec<String> {
        self.gates.reload_toml(text).unwrap().iter().map(ToString::to_string).collect()
    }

    /// Seconds in which all of `count` are inside together and come back with `outcome`.
    fn seconds(&self, seconds: u32, count: usize, outcome: Outcome) {
        for _ in 0..seconds {
            let held: Vec<_> =
                (0..count).map(|_| self.db.try_admit(Priority::Critical).expect("there is room")).collect();
            self.clock.set(self.db.now_ns() + SECOND);
            for permit in held {
                permit.release(outcome);
            }
        }
    }

    /// As found by `aimd` in some seconds of success: above 20.
    fn climbed(&self) -> u32 {
        self.seconds(6, 20, Outcome::Success);
        let found = self.db.limit();
        assert!(found > 22, "{found}");
        found
    }

    fn looks(&self) -> u64 {
        self.db.controller().expect("it has one").looks
    }
}

fn aimd(rest: &str) -> String {
    format!("[gates.db]\nlimit = 20\ncontroller = {{ kind = 'aimd', min = 4, max = 200 }}\n{rest}")
}

#[test]
fn a_reload_that_leaves_the_controller_leaves_what_it_has_found() {
    let served = served(&aimd(""));
    let found = served.climbed();
    let looks = served.looks();
    assert!(served.reload(&aimd("")).is_empty());
    assert_eq!(
        served.reload(&aimd(
            "enforce = false\nthresholds = { sheddable = 0.5 }\nrate = '9/s'\ndefault_priority = 'sheddable'"
        )),
        [
            "gate db: thresholds {} -> {sheddable = 0.5}",
            "gate db: rate none -> 9/s (burst 9)",
            "gate db: default_priority critical -> sheddable",
            "gate db: enforce true -> false",
        ]
    );
    assert_eq!((served.db.limit(), served.looks()), (found, looks));
    assert_eq!(served.db.thresholds()[3], found.div_ceil(2), "thresholds follow the limit that was found");
    served.reload(&aimd("signals = [{ kind = 'errors' }]"));
    served.reload(&aimd(""));
    assert_eq!((served.db.limit(), served.looks()), (found, looks));
    served.seconds(2, 20, Outcome::Success);
    assert!(served.db.limit() > found, "and it goes on");
}

#[test]
fn the_files_limit_is_only_a_start() {
    let served = served(&aimd(""));
    let found = served.climbed();
    let looks = served.looks();
    assert_eq!(
        served.reload(&aimd("").replace("limit = 20", "limit = 30")),
        [
            "gate db: limit 20 -> 30 in the file, from which the controller starts: it goes on from what it has found"
        ]
    );
    assert_eq!((served.db.limit(), served.looks()), (found, looks));
    assert_eq!(
        served.reload(&aimd("").replace("limit = 20\n", "")),
        [
            "gate db: limit 30 -> none in the file, from which the controller starts: it goes on from what it has found"
        ]
    );
    assert_eq!((served.db.limit(), served.looks()), (found, looks));
    let named =
        served.db.limit_history().iter().filter(|change| change.cause.as_deref() == Some("reload")).count();
    assert_eq!(named, 0);
}

#[test]
fn a_controller_that_changed_begins_where_the_old_one_has_come_to() {
    for (from, to, sentence) in [
        ("max = 200", "max = 300", "controller aimd (4 to 200, from 20) -> aimd (4 to 300, from FOUND)"),
        ("'aimd'", "'vegas'", "controller aimd (4 to 200, from 20) -> vegas (4 to 200, from FOUND)"),
        ("min = 4", "ceiling = 100", "controller aimd (4 to 200, from 20) -> aimd (1 to 100, from FOUND)"),
    ] {
        let served = served(&aimd(""));
        let found = served.climbed();
        let sentence = format!("gate db: {}", sentence.replace("FOUND", &found.to_string()));
        assert_eq!(served.reload(&aimd("").replace(from, to)), [sentence]);
        let report = served.db.controller().unwrap();
        assert_eq!((served.db.limit(), report.bounds.prior(), report.looks), (found, found, 0));
        assert!(served.reload(&aimd("").replace(from, to)).is_empty(), "once");
    }
}

#[test]
fn another_objective_is_another_controller() {
    let served = served(&aimd(""));
    let found = served.climbed();
    assert_eq!(
        served.reload(&aimd("objective = '1500ms'")),
        [
            "gate db: objective none -> 1.5s".to_owned(),
            format!("gate db: controller aimd (4 to 200, from 20) -> aimd (4 to 200, from {found})"),
        ]
    );
    assert_eq!(served.db.limit(), found);
    assert_eq!(served.db.objective(), Some(Duration::from_millis(1_500)));
    assert_eq!(served.db.controller().unwrap().objective, Some(Duration::from_millis(1_500)));
}

#[test]
fn what_was_found_is_held_within_new_bounds() {
    let served = served(&aimd(""));
    let found = served.climbed();
    assert_eq!(
        served.reload(&aimd("").replace("max = 200", "max = 10").replace("limit = 20", "limit = 9")),
        [
            format!("gate db: limit {found} -> 10"),
            "gate db: controller aimd (4 to 200, from 20) -> aimd (4 to 10, from 10)".to_owned(),
        ]
    );
    let last = served.db.limit_history().pop().unwrap();
    assert_eq!((last.from, last.to, last.cause.as_deref()), (found, 10, Some("reload")));
    let held: Vec<_> = (0..10).map(|_| served.db.try_admit(Priority::Critical).unwrap()).collect();
    assert_eq!(served.db.try_admit(Priority::Critical).unwrap_err().reason, Reason::Limit);
    drop(held);
}

#[test]
fn a_prior_that_changed_is_where_to_begin() {
    let served = served(&aimd(""));
    let found = served.climbed();
    let prior = aimd("").replace("max = 200", "max = 200, prior = 29");
    assert_eq!(
        served.reload(&prior),
        [
            format!("gate db: limit {found} -> 29"),
            "gate db: controller aimd (4 to 200, from 20) -> aimd (4 to 200, from 29)".to_owned(),
        ]
    );
    served.seconds(6, 29, Outcome::Success);
    let found = served.db.limit();
    assert!(found > 29);
    // Without it: from what was found.
    assert_eq!(
        served.reload(&aimd("")),
        [format!("gate db: controller aimd (4 to 200, from 29) -> aimd (4 to 200, from {found})")]
    );
    assert_eq!(served.db.limit(), found);
}

#[test]
fn a_controller_comes_and_goes() {
    let served = served("[gates.db]\nlimit = 15");
    assert!(served.db.controller().is_none());
    assert_eq!(
        served.reload(&aimd("")),
        ["gate db: limit 15 -> 20", "gate db: controller none -> aimd (4 to 200, from 20)"]
    );
    let found = served.climbed();
    assert_eq!(
        served.reload("[gates.db]\nlimit = 15"),
        [
            format!("gate db: limit {found} -> 15"),
            "gate db: controller aimd (4 to 200, from 20) -> none".to_owned(),
        ]
    );
    assert!(served.db.controller().is_none());
    served.seconds(5, 15, Outcome::Success);
    assert_eq!(served.db.limit(), 15, "nothing moves it any more");
    // Where the file has no limit it begins where the gate is.
    assert_eq!(
        served.reload(&aimd("").replace("limit = 20\n", "")),
        ["gate db: controller none -> aimd (4 to 200, from 15)"]
    );
    assert_eq!(served.db.limit(), 15);
}

#[test]
fn fixed_holds_what_the_file_says() {
    let fixed = |limit: u32| format!("[gates.db]\nlimit = {limit}\ncontroller = {{ kind = 'fixed' }}");
    let served = served(&fixed(20));
    served.db.set_limit(50, None).unwrap();
    assert_eq!(served.reload(&fixed(20)), ["gate db: limit 50 -> 20"]);
    assert_eq!(served.db.limit(), 20);
    assert!(served.reload(&fixed(20)).is_empty());
    assert_eq!(
        served.reload(&fixed(30)),
        [
            "gate db: limit 20 -> 30",
            "gate db: controller fixed (1 to 1000, from 20) -> fixed (1 to 1000, from 30)"
        ]
    );
    assert_eq!(served.db.limit(), 30);
    assert_eq!(
        served.reload(&aimd("")),
        [
            "gate db: limit 30 -> 20",
            "gate db: controller fixed (1 to 1000, from 30) -> aimd (4 to 200, from 20)"
        ]
    );
}

/// Set by hand is found, too: the next reload leaves it.
#[test]
fn what_was_set_by_hand_is_where_the_controller_is() {
    let served = served(&aimd(""));
    served.db.set_limit(50, Some("by hand")).unwrap();
    assert!(served.reload(&aimd("")).is_empty());
    assert_eq!(served.db.limit(), 50);
    assert_eq!(served.db.controller().unwrap().kind, Kind::Aimd);
}

#[test]
fn a_gate_that_comes_back_goes_on_too() {
    let served = served(&aimd(""));
    let found = served.climbed();
    let other = "[gates.other]\nlimit = 1";
    assert_eq!(served.reload(other), ["gate other: added", "gate db: removed, and closed"]);
    assert_eq!(served.reload(&format!("{}{other}", aimd(""))), ["gate db: added again, and open"]);
    assert_eq!(served.db.limit(), found);
    served.seconds(4, 12, Outcome::Overload);
    assert_eq!(served.db.controller().unwrap().cause, Cause::Lower);
    assert!(served.db.limit() < found);
}

#[test]
fn signals_keep_what_they_have_read() {
    let pushed = |rest: &str| {
        format!(
            "[gates.db]\nlimit = 20\nsignals = [{{ kind = 'pushed', enter_for = '0s', ramp = '0s'{rest} }}]"
        )
    };
    let served = served(&pushed(""));
    served.db.signal("pushed", 0.8, Duration::from_secs(60)).unwrap();
    let sheds =
        || served.db.try_admit(Priority::Sheddable).is_err_and(|shed| shed.reason == Reason::Pressure);
    assert!(!sheds());
    assert_eq!(served.reload(&pushed(", enter = 0.75")), ["gate db: signal pushed: enter 0.85 -> 0.75"]);
    served.clock.set(SECOND);
    assert!(sheds());
    assert_eq!(served.db.pressure().unwrap().signals[0].reads, 1);
    assert_eq!(
        served.reload(&pushed(", enter = 0.75, name = 'x'")),
        ["gate db: signal pushed: removed", "gate db: signal x: added"]
    );
    assert!(!sheds());
    assert_eq!(served.db.pressure().unwrap().signals[0].reads, 0);
    assert_eq!(served.reload("[gates.db]\nlimit = 20"), ["gate db: signal x: removed"]);
    assert!(served.db.pressure().is_none());
}

#[test]
fn a_latency_signal_comes_to_a_gate_in_use() {
    let text = "[gates.db]\nlimit = 20\nobjective = '2s'\nsignals = [{ kind = 'latency', enter_for = '1h' }]";
    let served = served("[gates.db]\nlimit = 20");
    served.seconds(2, 12, Outcome::Success);
    assert_eq!(served.reload(text), ["gate db: objective none -> 2s", "gate db: signal latency: added"]);
    served.seconds(3, 12, Outcome::Success);
    let value = || served.db.pressure().unwrap().signals[0].value;
    assert_eq!(value(), Some(0.5), "a second is half of the objective");
    assert_eq!(served.reload(&text.replace("'2s'", "'1s'")), ["gate db: objective 2s -> 1s"]);
    served.seconds(3, 12, Outcome::Success);
    assert_eq!(value(), Some(1.0));
    assert_eq!(
        served.reload("[gates.db]\nlimit = 20"),
        ["gate db: objective 1s -> none", "gate db: signal latency: removed"]
    );
    assert!(served.db.pressure().is_none());
}

#[test]
fn a_bad_reload_leaves_controllers_and_signals() {
    let served = served(&aimd("signals = [{ kind = 'pushed' }]"));
    let found = served.climbed();
    let before = (served.gates.explain(), served.looks(), served.db.stats().generation);
    for bad in [
        aimd("signals = [{ kind = 'pushed', enter = 0.1 }]"),
        aimd("").replace("min = 4", "min = 300"),
        aimd("").replace("'aimd'", "'pid'"),
        aimd("objective = '0s'"),
        aimd("thresholds = { critical = { reserve = 4 } }"),
        format!("{}\n[gates.new]\nlimit = -1", aimd("").replace("max = 200", "max = 300")),
    ] {
        assert!(served.gates.reload_toml(&bad).is_err(), "{bad}");
        assert_eq!((served.gates.explain(), served.looks(), served.db.stats().generation), before, "{bad}");
        assert_eq!(served.db.limit(), found);
    }
}
