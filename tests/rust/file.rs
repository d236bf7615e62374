//! Gates from a file, and what a reload does to them while they are in use.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Difference, FileError, Gate, Gates, ManualClock, Outcome, Priority, Reason, Threshold};

fn gates(text: &str) -> Gates {
    Gates::from_toml("f.toml", text).unwrap()
}

fn changes(gates: &Gates, text: &str) -> Vec<String> {
    gates.reload_toml(text).unwrap().iter().map(ToString::to_string).collect()
}

fn limited(limit: u32) -> String {
    format!("[gates.db]\nlimit = {limit}\n")
}

fn problems(error: &FileError) -> Vec<String> {
    error.problems.iter().map(ToString::to_string).collect()
}

/// Field fault D24, word for word.
#[test]
fn a_reload_keeps_what_is_held() {
    let gates = gates(&limited(5));
    let db = gates.gate("db").unwrap();
    let mut held: Vec<_> = (0..5).map(|_| db.try_admit(Priority::Critical).unwrap()).collect();
    let full = |gate: &Gate| gate.try_admit(Priority::Critical).unwrap_err().reason == Reason::Limit;

    assert!(changes(&gates, &limited(5)).is_empty());
    assert!(full(&db));

    assert_eq!(changes(&gates, &limited(3)), ["gate db: limit 5 -> 3"]);
    for in_flight in [5, 4, 3] {
        assert_eq!(db.in_flight(), in_flight);
        assert!(full(&db));
        held.pop();
    }
    held.push(db.try_admit(Priority::Critical).unwrap());
    assert!(full(&db));

    assert_eq!(changes(&gates, &limited(8)), ["gate db: limit 3 -> 8"]);
    held.truncate(5);
    while held.len() < 8 {
        held.push(db.try_admit(Priority::Critical).unwrap());
    }
    assert!(full(&db));
    assert_eq!(db.stats().high_water, 8);
}

#[test]
fn a_gate_that_was_removed_is_closed_and_comes_back_with_what_it_holds() {
    let gates = gates("[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1");
    let db = gates.gate("db").unwrap();
    let held = [db.try_admit(Priority::Critical).unwrap(), db.try_admit(Priority::Critical).unwrap()];

    assert_eq!(
        changes(&gates, "[gates.other]\nlimit = 1"),
        ["gate db: removed, and closed, with 2 in flight"]
    );
    assert!(gates.gate("db").is_none());
    assert_eq!(gates.names(), ["other"]);
    assert_eq!(db.try_admit(Priority::Critical).unwrap_err().reason, Reason::Closed);
    assert!(changes(&gates, "[gates.other]\nlimit = 1").is_empty(), "it is said once");

    assert_eq!(
        changes(&gates, "[gates.db]\nlimit = 3\n[gates.other]\nlimit = 1"),
        ["gate db: added again, and open, with 2 in flight", "gate db: limit 5 -> 3"]
    );
    let again = gates.gate("db").unwrap();
    assert_eq!(again.in_flight(), 2, "the same gate");
    let third = again.try_admit(Priority::Critical).unwrap();
    assert_eq!(db.try_admit(Priority::Critical).unwrap_err().reason, Reason::Limit);
    drop((held, third));
    assert_eq!(db.in_flight(), 0);
}

#[test]
fn what_the_program_closed_stays_closed() {
    for close_while_removed in [false, true] {
        let gates = gates("[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1");
        let db = gates.gate("db").unwrap();
        if !close_while_removed {
            assert!(db.close());
        }
        gates.reload_toml("[gates.other]\nlimit = 1").unwrap();
        if close_while_removed {
            assert!(!db.close(), "it was closed before");
        }
        assert_eq!(
            changes(&gates, "[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1"),
            ["gate db: added again, but it stays closed: it was closed by the program"]
        );
        assert!(db.closed());
        assert!(gates.explain().contains("it was closed by the program"), "{}", gates.explain());
    }
}

#[test]
fn whoever_waits_for_a_removed_gate_is_told_when_it_is_drained() {
    let gates = gates("[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1");
    let db = gates.gate("db").unwrap();
    let told = Arc::new(AtomicU32::new(0));
    let tell = || {
        let told = Arc::clone(&told);
        Box::new(move || _ = told.fetch_add(1, Ordering::Relaxed))
    };
    let first = db.when_drained(tell());
    assert!(!db.closed(), "waiting closes nothing");
    let permit = db.try_admit(Priority::Critical).unwrap();
    gates.reload_toml("[gates.other]\nlimit = 1").unwrap();
    gates.reload_toml("[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1").unwrap();
    drop(permit);
    assert_eq!(told.load(Ordering::Relaxed), 0, "it is open");
    assert!(db.forget_drained(first));
    db.when_drained(tell());
    gates.reload_toml("[gates.other]\nlimit = 1").unwrap();
    assert_eq!(told.load(Ordering::Relaxed), 0, "nobody left it since");
    // A second one finds it closed and empty.
    db.when_drained(tell());
    assert_eq!(told.load(Ordering::Relaxed), 2);
}

#[test]
fn everything_that_can_change_does_at_once_and_is_told() {
    let gates = gates("[gates.db]\nlimit = 20\nthresholds = { sheddable = 0.5 }\n");
    let db = gates.gate("db").unwrap();
    let generation = db.stats().generation;
    let after = "[gates.db]\nlimit = 40\nthresholds = { sheddable_plus = { reserve = 4 } }\n\
                 default_priority = 'sheddable'\nenforce = false\nrate = '150/min'\nburst = 10\n";
    assert_eq!(
        changes(&gates, after),
        [
            "gate db: limit 20 -> 40",
            "gate db: thresholds {sheddable = 0.5} -> {sheddable_plus = {reserve = 4}}",
            "gate db: rate none -> 150/min (burst 10)",
            "gate db: default_priority critical -> sheddable",
            "gate db: enforce true -> false",
        ]
    );
    assert_eq!(db.stats().generation, generation + 1, "one change");
    assert_eq!((db.limit(), db.thresholds()), (40, [40, 40, 36, 30]));
    assert_eq!((db.default_priority(), db.enforce()), (Priority::Sheddable, false));
    drop(db.try_admit(None).unwrap());
    assert_eq!(db.stats().admitted(Priority::Sheddable), 1);
    let history = db.limit_history();
    assert_eq!(history.len(), 1);
    assert_eq!((history[0].from, history[0].to, history[0].cause.as_deref()), (20, 40, Some("reload")));

    assert!(changes(&gates, after).is_empty());
    assert_eq!(db.stats().generation, generation + 1, "nothing to change, nothing changed");
}

/// What the program did is not the file's: a reload makes the gate what the file says.
#[test]
fn a_reload_undoes_what_the_program_set() {
    let gates = gates(&limited(20));
    let db = gates.gate("db").unwrap();
    db.set_limit(7, Some("by hand")).unwrap();
    assert_eq!(changes(&gates, &limited(20)), ["gate db: limit 7 -> 20"]);
}

/// A mixture of a share and a reserve may be fine at either limit of two files, and not at the other's.
#[test]
fn limit_and_thresholds_go_together() {
    let mixed = |limit: u32, sheddable: f64| {
        format!(
            "[gates.db]\nlimit = {limit}\n\
             thresholds = {{ sheddable_plus = {{ reserve = 5 }}, sheddable = {sheddable} }}\n"
        )
    };
    let gates = gates(&mixed(20, 0.75));
    let db = gates.gate("db").unwrap();
    assert!(
        db.set_thresholds(
            tidegate::Thresholds::default()
                .with(Priority::SheddablePlus, Threshold::Reserve(5))
                .with(Priority::Sheddable, Threshold::Ppm(950_000))
        )
        .is_err(),
        "19 of 15"
    );
    gates.reload_toml(&mixed(100, 0.95)).unwrap();
    assert_eq!(db.thresholds(), [100, 100, 95, 95]);
    gates.reload_toml(&mixed(20, 0.75)).unwrap();
    assert_eq!(db.thresholds(), [20, 20, 15, 15]);
}

#[test]
fn a_bad_file_changes_nothing_and_says_everything() {
    let first = "[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1\n";
    let gates = gates(first);
    let db = gates.gate("db").unwrap();
    let before = (db.stats().generation, gates.explain(), gates.names());
    let error = gates
        .reload_toml(
            "speed = 9\n[gates.db]\nlimit = -5\ntiming = true\n[gates.new]\nlimit = 3\nscope = 'host'\n\
             objective = '0s'\n[gates.new.controller]\nkind = 'pid'\n[[gates.new.signals]]\nkind = 'gpu'\n\
             [gates.\"a\\u0007\"]\nlimit = 1\n[gates.third]\nscope = 3\n",
        )
        .unwrap_err();
    assert!(error.to_string().starts_with("f.toml, line 1: unknown key \"speed\""), "{error}");
    assert_eq!(
        problems(&error),
        [
            "line 1: unknown key \"speed\"; the file takes classifier, gates",
            "line 3: gates.db.limit: limit must be a whole number from 0 to 2147483647, got -5",
            "line 4: gates.db.timing: timing is chosen when a gate is made and cannot be changed while it is in use: \
             gate db has false",
            "line 7: gates.new.scope: this version of Tidegate has no gates beyond one process yet: scope must \
             be \"process\", got 'host'",
            "line 8: gates.new.objective: objective must be longer than zero",
            "line 10: gates.new.controller.kind: must be one of fixed, aimd, gradient2, vegas, goodput, got \"pid\"",
            "line 12: gates.new.signals[1].kind: signal must be one of cpu, memory, psi-cpu, psi-memory, psi-io, \
             latency, errors, pushed, got \"gpu\"",
            "line 13: gates.\"a\\u{7}\": name must be 1 to 255 bytes of UTF-8 without control characters, got \
             \"a\\u{7}\"",
            "line 15: gates.third: limit is missing",
            "line 16: gates.third.scope: must be \"process\", got 3",
        ]
    );
    assert_eq!((db.stats().generation, gates.explain(), gates.names()), before);
}

#[test]
fn timing_stays_as_it_was_made() {
    let gates = gates("[gates.db]\nlimit = 5\ntiming = true");
    let refused = |text: &str| problems(&gates.reload_toml(text).unwrap_err());
    let sentence =
        "timing is chosen when a gate is made and cannot be changed while it is in use: gate db has true";
    assert_eq!(
        refused("[gates.db]\nlimit = 6\n\ntiming = false"),
        [format!("line 4: gates.db.timing: {sentence}")]
    );
    assert_eq!(refused("\n[gates.db]\nlimit = 6"), [format!("line 2: gates.db: {sentence}")]);
    assert_eq!(gates.gate("db").unwrap().limit(), 5);
}

#[test]
fn an_empty_file_closes_nothing() {
    let gates = gates(&limited(5));
    for empty in ["", "# only a comment\n", "[gates]\n"] {
        let error = gates.reload_toml(empty).unwrap_err();
        assert_eq!(
            problems(&error),
            ["line 1: the file has neither gates nor a classifier: has it been cut short?"]
        );
    }
    assert!(!gates.gate("db").unwrap().closed());
    let wrong = gates.reload_toml("gates = []").unwrap_err();
    assert_eq!(problems(&wrong), ["line 1: gates: must be a table, got []"], "that alone");
}

#[test]
fn rules_are_those_of_the_last_file() {
    let rule = |priority: &str| {
        format!(
            "[classifier]\ndefault = 'critical'\n[[classifier.rules]]\nmatch = {{ path = '/r*' }}\npriority = '{priority}'\n"
        )
    };
    let gates = gates(&rule("sheddable"));
    let reports = |gates: &Gates| {
        gates.classifier().unwrap().classify(|name| (name == "path").then_some("/reports")).unwrap()
    };
    assert_eq!(reports(&gates), Priority::Sheddable);
    let old = gates.classifier().unwrap();
    assert!(changes(&gates, &rule("sheddable")).is_empty());
    assert_eq!(changes(&gates, &rule("sheddable_plus")), ["classifier: changed"]);
    assert_eq!(reports(&gates), Priority::SheddablePlus);
    assert_eq!(old.classify(|_| Some("/r")), Some(Priority::Sheddable));
    assert_eq!(changes(&gates, &limited(1)), ["gate db: added", "classifier: changed"]);
    assert!(gates.classifier().is_none());
}

#[test]
fn what_a_file_cannot_say_is_prepared() {
    let clock = Arc::new(ManualClock::new(7));
    let gates =
        Gates::from_toml_with("f.toml", &limited(5), move |builder| builder.clock(clock.clone())).unwrap();
    assert_eq!(gates.gate("db").unwrap().now_ns(), 7);
    gates.reload_toml("[gates.new]\nlimit = 1").unwrap();
    assert_eq!(gates.gate("new").unwrap().now_ns(), 7);

    let nowhere =
        Gates::from_toml_with("f.toml", "\n[gates.db]\nlimit = 5", |builder| builder.publish_in("/no/such"));
    let error = nowhere.unwrap_err().to_string();
    assert!(
        error.starts_with("f.toml, line 2: gates.db: a gate is published in a directory that exists"),
        "{error}"
    );
}

/// A folder of this test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tidegate-file-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_read_again() {
    let folder = Folder::new("again");
    let path = folder.0.join("tidegate.toml");
    fs::write(&path, limited(5)).unwrap();
    let gates = Gates::load(&path).unwrap();
    assert_eq!(gates.path(), Some(&*path));
    fs::write(&path, limited(6)).unwrap();
    assert_eq!(gates.reload().unwrap()[0].difference, Difference::Limit { from: 5, to: 6 });
    fs::remove_file(&path).unwrap();
    let error = gates.reload().unwrap_err();
    assert!(error.to_string().starts_with(&format!("{}: cannot be read: ", path.display())), "{error}");
    assert_eq!(gates.gate("db").unwrap().limit(), 6);
    let error = self::gates(&limited(1)).reload().unwrap_err();
    assert_eq!(error.to_string(), "f.toml: was given as text: there is no file to read again");
}

/// A reload that has read an older text than another, which was done meanwhile, does not bring that back.
#[cfg(unix)]
#[test]
fn the_newest_text_wins() {
    use std::io::Write;
    use std::process::Command;

    let folder = Folder::new("newest");
    let path = folder.0.join("tidegate.toml");
    fs::write(&path, limited(1)).unwrap();
    let gates = Gates::load(&path).unwrap();
    // A pipe keeps its reader until there is a writer, which is then sure that the reader has begun.
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    thread::scope(|scope| {
        let slow = scope.spawn(|| gates.reload().unwrap());
        let mut pipe = fs::OpenOptions::new().write(true).open(&path).unwrap();
        gates.reload_toml(&limited(3)).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, limited(4)).unwrap();
        pipe.write_all(limited(2).as_bytes()).unwrap();
        drop(pipe);
        let changes = slow.join().unwrap();
        assert_eq!(changes[0].difference, Difference::Limit { from: 3, to: 4 });
    });
    assert_eq!(gates.gate("db").unwrap().limit(), 4);
}

#[test]
fn what_is_no_file_of_text_is_said_to_be_none() {
    let folder = Folder::new("text");
    let path = folder.0.join("tidegate.toml");
    let refused = || {
        let error = Gates::load(&path).unwrap_err();
        error.to_string().strip_prefix(&path.display().to_string()).unwrap().to_owned()
    };
    assert!(refused().starts_with(": cannot be read: "), "{}", refused());
    fs::write(&path, b"[gates.db]\nlimit = 5 # \xff\n").unwrap();
    assert_eq!(refused(), ", line 2: is not UTF-8, as TOML has to be");
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(refused(), ": is larger than 1048576 bytes, the most that is read");
    fs::write(&path, "[gates.db]\r\nlimit = \r\n").unwrap();
    assert!(refused().starts_with(", line 2: no TOML: "), "{}", refused());
    fs::write(&path, "\u{feff}[gates.db]\r\nlimit = 5\r\n").unwrap();
    assert_eq!(
        Gates::load(&path).unwrap().names(),
        ["db"],
        "with a byte order mark, as some editors write it"
    );
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(refused(), ": is a directory, not a file");
}

#[test]
fn a_file_is_explained() {
    let gates = gates(
        "[gates.db]\nlimit = 20\n[gates.small]\nlimit = 3\nenforce = false\ntiming = true\n\
         [gates.shut]\nlimit = 0\n[gates.picky]\nlimit = 5\ndefault_priority = 'sheddable_plus'\nrate = '150/min'\nburst = 10\n\
         thresholds = { critical = 1, sheddable_plus = { reserve = 1 }, sheddable = { reserve = 9 } }\n\
         [classifier]\n[[classifier.rules]]\nmatch = { method = ['GET', 'HEAD'], path = '/r/*' }\npriority = 'sheddable'\n",
    );
    assert_eq!(
        gates.explain(),
        "gate db: at most 20 at once; sheddable_plus while fewer than 18 are inside, sheddable while fewer than 15
  requests that name no priority are critical
gate small: at most 3 at once
  requests that name no priority are critical
  how long permits are held is measured
  warning: sheddable_plus may fill it: 0.9 of 3, rounded up, is 3
  warning: sheddable may fill it: 0.75 of 3, rounded up, is 3
  warning: dry run: nobody is turned away, and who would have been is counted
gate shut: at most 0 at once
  requests that name no priority are critical
  warning: a limit of 0 admits nothing
gate picky: at most 5 at once; sheddable_plus while fewer than 4 are inside, sheddable never
  at most 150 a minute, plus a burst of 10
  requests that name no priority are sheddable_plus
  warning: sheddable is never admitted: nothing of 5 is left for it
classifier: the first rule that matches a request decides
  rule 1: sheddable, if method = [\"GET\", \"HEAD\"], path = \"/r/*\"
  all other requests have the priority that their gate gives to those that name none
"
    );
}

/// Pieces that files are made of, and such that they are not.
const PIECES: &[&str] = &[
    "[gates.db]\n",
    "[gates.\"a b\"]\n",
    "[gates]\n",
    "[classifier]\n",
    "[[classifier.rules]]\n",
    "[[gates.db.signals]]\n",
    "limit = 20\n",
    "limit = -1\n",
    "limit = \"é\"\n",
    "enforce = false\n",
    "timing = true\n",
    "rate = '5/s'\n",
    "rate = 5\n",
    "burst = 3\n",
    "thresholds = { sheddable = 0.5 }\n",
    "thresholds = { critical = 0.1, sheddable = { reserve = 1 } }\n",
    "thresholds = 3\n",
    "default_priority = 'essential'\n",
    "scope = 'host'\n",
    "objective = '2s'\n",
    "objective = 2\n",
    "controller = { kind = 'goodput', min = 4 }\n",
    "controller = { kind = 'aimd', max = 3, prior = 9 }\n",
    "[gates.db.controller]\nkind = 'fixed'\n",
    "kind = 'pushed'\n",
    "kind = 'latency'\nenter = 0.9\n",
    "enter = 0.2\n",
    "ramp = '1min'\n",
    "default = 'critical'\n",
    "priority = 'sheddable'\n",
    "match = { path = ['/a*', '*'] }\n",
    "match = { \"header.X-é\" = '' }\n",
    "essential = [{ path = '/' }]\n",
    "essential = []\n",
    "\u{feff}",
    "= =\n",
    "'''",
    "\"\"\"",
    "{",
    "[",
    "é\n",
    "\r\n",
    "\0",
    "# only this",
    "a.b.c = 1\n",
    "gates = 3\n",
    "gates.x = { limit = 1 }\n",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    /// Whatever a file says, it is taken or told what is wrong with it, at a line that it has; and what is told
    /// changes nothing.
    #[test]
    fn any_text_is_a_file_or_has_problems(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12)) {
        let text = pieces.concat();
        let gates = gates("[gates.db]\nlimit = 3\n");
        let before = gates.explain();
        match gates.reload_toml(&text) {
            Ok(_) => prop_assert!(!gates.names().is_empty() || gates.classifier().is_some()),
            Err(error) => {
                prop_assert!(!error.problems.is_empty());
                let lines = text.split('\n').count();
                prop_assert!(error.problems.iter().all(|problem| (1..=lines).contains(&problem.line)), "{}", error);
                prop_assert_eq!(error.to_string().lines().count(), error.problems.len(), "one a line: {:?}", error);
                prop_assert_eq!(gates.explain(), before);
            }
        }
    }
}

/// Reloads from several threads, among them such that take the gate away, while others come and go.
#[test]
fn reloads_under_load_lose_nothing() {
    const MOST: u32 = 8;
    let soak = std::env::var("TIDEGATE_SOAK_RELOADS").ok();
    let rounds: usize = soak.map_or(1_000, |rounds| rounds.parse().unwrap());
    let texts: Vec<String> = [
        "[gates.db]\nlimit = 8\n[gates.other]\nlimit = 1",
        "[gates.db]\nlimit = 2\nthresholds = { sheddable = 0.1 }\n[gates.other]\nlimit = 1",
        "[gates.other]\nlimit = 2",
        "[gates.db]\nlimit = 5\nenforce = false\n[gates.other]\nlimit = 1",
        "[gates.db]\nlimit = -1",
        "[gates.db]\nlimit = 8\ncontroller = { kind = 'aimd', max = 8 }\n[gates.other]\nlimit = 1",
        "[gates.db]\ncontroller = { kind = 'goodput', min = 2, max = 7 }\nobjective = '1ms'\n\
         signals = [{ kind = 'errors' }, { kind = 'pushed' }]\n[gates.other]\nlimit = 1",
    ]
    .map(str::to_owned)
    .into();
    let gates = gates(&texts[0]);
    let db = gates.gate("db").unwrap();
    let (stop, inside) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        for priority in [Priority::Critical, Priority::Sheddable] {
            let (db, stop, inside) = (db.clone(), &stop, &inside);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(permit) = db.try_admit(priority) {
                        if !permit.ticket().over() {
                            assert!(inside.fetch_add(1, Ordering::SeqCst) < MOST);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                        permit.release(Outcome::Success);
                    } else {
                        thread::yield_now();
                    }
                }
            });
        }
        let reloading: Vec<_> = (0..2)
            .map(|thread| {
                let (gates, texts) = (gates.clone(), &texts);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let text = &texts[(round * (thread + 1) + thread) % texts.len()];
                        assert_eq!(gates.reload_toml(text).is_err(), text.contains("-1"));
                    }
                })
            })
            .collect();
        for thread in reloading {
            thread.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    gates.reload_toml(&texts[0]).unwrap();
    let stats = db.stats();
    assert_eq!(stats.in_flight, 0);
    assert_eq!(stats.over_in_flight, 0);
    assert!(stats.high_water <= MOST, "{}", stats.high_water);
    assert_eq!(gates.names(), ["db", "other"]);
    assert!(!db.closed());
    let all: Vec<_> = (0..8).map(|_| db.try_admit(Priority::Critical).unwrap()).collect();
    assert!(db.try_admit(Priority::Critical).is_err());
    drop(all);
    assert!(db.drain(Some(Duration::ZERO)));
}
