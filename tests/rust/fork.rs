//! Forks (D09): real children of a real process. Run without a test harness, since a forked child of a
//! threaded harness could only misbehave; the checks are functions that `main` calls in order.

#![allow(unsafe_code)] // fork and waitpid

mod common;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use tidegate::controller::{Bounds, Kind};
use tidegate::detector::Rule;
use tidegate::signal::Signal;
use tidegate::{Gate, ManualClock, Outcome, Per, Priority, Rate, Thresholds};

const CRITICAL: Priority = Priority::Critical;

#[cfg(not(unix))]
fn main() {
    println!("SKIPPED fork: this system has none");
}

#[cfg(unix)]
fn main() {
    let checks: &[(&str, fn())] = &[
        ("d09_a_child_starts_empty_and_inherited_permits_are_inert", child_starts_empty),
        ("d09_an_inherited_configuration_stays", configuration_stays),
        ("d09_a_child_has_a_full_burst_of_the_rate", rates_start_anew),
        ("d09_a_child_has_signals_of_its_own", signals_start_anew),
        ("d09_a_child_starts_its_controller_anew_from_the_present_limit", controllers_start_anew),
        ("d09_locks_in_use_at_the_fork_do_not_stop_the_child", locks_are_replaced),
        #[cfg(feature = "file")]
        ("d09_a_fork_comes_between_reloads", forks_amid_reloads),
    ];
    for (name, check) in checks {
        check();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed", checks.len());
}

/// Runs `body` in a child, which must end well within ten seconds.
#[cfg(unix)]
fn in_child(body: impl Fn()) {
    // SAFETY: the child runs `body` and leaves by `_exit`; it is alone, and uses what fork handlers made fit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        // SAFETY: plain system calls. The alarm ends a child that hangs, which its parent then reports.
        unsafe { libc::alarm(10) };
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&body)).is_ok();
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child failed, or hung (status {status})");
}

#[cfg(unix)]
fn child_starts_empty() {
    let gate = Gate::builder("fork", 5).timing(true).build().unwrap();
    let held = RefCell::new((0..3).map(|_| gate.try_admit_owned(CRITICAL).unwrap()).collect::<Vec<_>>());
    gate.enter(None).unwrap();
    let ticket = gate.take(CRITICAL).unwrap();
    in_child(|| {
        assert_eq!(gate.in_flight(), 0);
        let stats = gate.stats();
        assert_eq!((stats.admitted(CRITICAL), stats.high_water), (0, 0));
        assert!(gate.is_inert(&ticket));
        gate.put(ticket, Outcome::Success);
        drop(held.take());
        let own: Vec<_> = (0..5).map(|_| gate.try_admit(CRITICAL).unwrap()).collect();
        assert!(!gate.exit(Outcome::Success), "the parent's entry is not the child's to leave");
        assert_eq!((gate.in_flight(), gate.stats().unmatched_exits), (5, 1));
        assert!(gate.try_admit(CRITICAL).is_err());
        drop(own);
        assert_eq!((gate.in_flight(), gate.stats().released(Outcome::Success)), (0, 5));
        // A fork in the child makes its permits as inert as the first made those of the parent.
        let grand = gate.take(CRITICAL).unwrap();
        in_child(|| assert!(gate.is_inert(&grand) && gate.in_flight() == 0));
        assert!(!gate.is_inert(&grand));
        gate.put(grand, Outcome::Success);
    });
    assert_eq!(gate.in_flight(), 5);
    gate.put(ticket, Outcome::Success);
    assert!(gate.exit(Outcome::Success));
    drop(held);
    let stats = gate.stats();
    assert_eq!((stats.in_flight, stats.admitted(CRITICAL), stats.released(Outcome::Success)), (0, 5, 5));
}

#[cfg(unix)]
fn configuration_stays() {
    let gate = Gate::builder("fork", 5).enforce(false).build().unwrap();
    gate.set_limit(2, Some("before the fork")).unwrap();
    let over: Vec<_> = (0..4).map(|_| gate.take(CRITICAL).unwrap()).collect();
    let closed = Gate::new("closed", 5).unwrap();
    closed.close();
    in_child(|| {
        assert_eq!((gate.limit(), gate.enforce(), gate.stats().over_in_flight), (2, false, 0));
        assert_eq!(gate.limit_history().len(), 1);
        gate.set_limit(3, None).unwrap();
        assert!(closed.closed() && closed.try_admit(CRITICAL).is_err());
        assert!(gate.drain(Some(Duration::ZERO)), "nothing of the child's is inside");
    });
    assert_eq!((gate.limit(), gate.stats().over_in_flight), (2, 2));
    for ticket in over {
        gate.put(ticket, Outcome::Success);
    }
}

/// A controller measures in its process. The child's begins where the parent's was, also in a file of its own.
#[cfg(unix)]
fn controllers_start_anew() {
    let directory = std::env::temp_dir().join(format!("tidegate-test-controllers-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let bounds = Bounds::new(1, 100, 20).unwrap();
    for published in [false, true] {
        let clock = std::sync::Arc::new(ManualClock::new(0));
        let mut builder = Gate::builder("controlled", 5).clock(clock.clone()).controller(Kind::Aimd, bounds);
        builder = builder.objective(Duration::from_secs(2));
        if published {
            builder = builder.publish_in(&directory);
        }
        let gate = builder.build().unwrap();
        let serve = |count, outcome| {
            for _ in 0..count {
                let permit = gate.try_admit(CRITICAL).unwrap();
                clock.advance(100_000_000);
                permit.release(outcome);
            }
        };
        serve(15, Outcome::Overload);
        assert_eq!(gate.limit(), 18);
        let inherited = gate.take(CRITICAL).unwrap();
        in_child(|| {
            assert!(gate.is_measured());
            let report = gate.controller().unwrap();
            assert_eq!((gate.limit(), report.bounds.prior(), report.kind), (18, 18, Kind::Aimd));
            assert_eq!(
                (report.objective, gate.objective()),
                (Some(Duration::from_secs(2)), report.objective)
            );
            assert_eq!((gate.controller_moves(), gate.controller_moves_after(1).len()), (1, 0));
            let begun = gate.reading().unwrap();
            gate.put(inherited, Outcome::Success);
            serve(9, Outcome::Success);
            assert_eq!(gate.controller().unwrap().looks, report.looks, "a second has not passed");
            serve(2, Outcome::Overload);
            assert_eq!((gate.limit(), gate.controller_moves()), (16, 2));
            let window = gate.reading().unwrap().window_since(&begun);
            assert_eq!((window.completions, window.good, window.admissions), (11, 9, 11));
            assert!((window.in_flight_seconds - 1.1).abs() < 1e-6);
        });
        assert_eq!(gate.limit(), 18);
        gate.put(inherited, Outcome::Success);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A rate counts in its process, as everything does; the parent's goes on.
#[cfg(unix)]
fn rates_start_anew() {
    let directory = std::env::temp_dir().join(format!("tidegate-test-rates-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let rate = Rate::new(0, Per::Second).unwrap().with_burst(3).unwrap();
    let clock = std::sync::Arc::new(ManualClock::new(1_000));
    for published in [false, true] {
        let mut builder = Gate::builder("fork", 9).rate(rate).clock(clock.clone());
        if published {
            builder = builder.publish_in(&directory);
        }
        let gate = builder.build().unwrap();
        let admitted = |tries| (0..tries).filter(|_| gate.try_admit(CRITICAL).is_ok()).count();
        assert_eq!(admitted(2), 2);
        in_child(|| {
            assert_eq!((gate.rate(), admitted(9)), (Some(rate), 3));
            gate.set_rate(None);
            in_child(|| assert_eq!((gate.rate(), admitted(9)), (None, 9)));
        });
        assert_eq!(admitted(9), 1);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// What the parent's signals have read, what was pushed into them and what came of it is the parent's. So is a lock
/// that one of its threads holds, and a source that it is asking.
#[cfg(unix)]
fn signals_start_anew() {
    let clock = std::sync::Arc::new(ManualClock::new(1_000));
    let rule = Rule::default().holding(Duration::ZERO, Duration::ZERO).rising_in(Duration::ZERO);
    let (asked, is_asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel::<()>();
    let ends = Mutex::new((asked, answers));
    let parent = std::process::id();
    let hanging = Signal::function("hanging", Duration::from_secs(1), move || {
        if std::process::id() == parent {
            let ends = ends.lock().unwrap();
            ends.0.send(()).unwrap();
            let _ = ends.1.recv();
        }
        Some(0.1)
    });
    let builder = Gate::builder("fork", 9).signals([(Signal::pushed("db"), rule), (hanging, rule)]);
    let gate = builder.clock(clock.clone()).build().unwrap();
    let sheds = || gate.try_admit(Priority::Sheddable).is_err();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| gate.pressure().is_some());
        is_asked.recv().unwrap();
        clock.advance(20_000_000);
        gate.signal("db", 1.0, Duration::from_secs(60)).unwrap();
        assert!(sheds());
        in_child(|| {
            assert!(!sheds());
            assert_eq!((gate.stats().pressure, gate.stats().overloaded), (Some(0.0), false));
            let report = gate.pressure().unwrap();
            assert_eq!((report.transition_count, report.level.to_bits()), (0, 0));
            let read: Vec<_> = report.signals.iter().map(|signal| (signal.value, signal.reads)).collect();
            assert_eq!(read, [(None, 0), (Some(0.1), 1)], "the child's source is its own");
            gate.signal("db", 1.0, Duration::from_secs(60)).unwrap();
            assert!(sheds());
            assert_eq!(gate.pressure().unwrap().transition_count, 1);
            gate.set_signals([]).unwrap();
            in_child(|| assert!(gate.pressure().is_none() && !sheds()));
        });
        assert!(sheds());
        drop(answer);
        assert!(thread.join().unwrap());
    });
}

/// While threads of the parent fight over every lock, and wait, many children use them all, from two threads,
/// and find no change half made.
#[cfg(unix)]
fn locks_are_replaced() {
    let gate = Gate::new("fork", 2).unwrap();
    let draining = Gate::new("draining", 2).unwrap();
    let inside = (gate.try_admit(CRITICAL).unwrap(), draining.try_admit(CRITICAL).unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (gate, draining, stop) = (&gate, &draining, &stop);
            scope.spawn(move || {
                for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    gate.set_limit(2 + (round + number) % 100, None).unwrap();
                    use_locks(gate);
                    assert!(!draining.drain(Some(Duration::from_micros(50))), "a permit is inside");
                }
            });
        }
        let _end = common::Raise(&stop);
        for _ in 0..200 {
            in_child(|| {
                let last = gate.limit_history().last().map_or(2, |change| change.to);
                assert_eq!((gate.limit(), gate.thresholds()), (last, Thresholds::default().at(last)));
                std::thread::scope(|scope| {
                    for _ in 0..2 {
                        scope.spawn(|| {
                            for limit in 1..20 {
                                gate.set_limit(limit, None).unwrap();
                                use_locks(&gate);
                                assert!(
                                    draining.drain(Some(Duration::from_secs(5))),
                                    "nothing of the child's"
                                );
                            }
                        });
                    }
                });
                assert!(gate.drain(None));
            });
        }
    });
    drop(inside);
    assert!(gate.try_admit(CRITICAL).is_ok() && draining.drain(Some(Duration::ZERO)));
}

/// While threads of the parent reload a file, and take its gate away, children find it whole and reload it, too.
#[cfg(all(unix, feature = "file"))]
fn forks_amid_reloads() {
    const TWO: &str = "[gates.db]\nlimit = 5\n[gates.other]\nlimit = 1\n[classifier]\ndefault = 'critical'\n";
    const ONE: &str = "[gates.other]\nlimit = 2\n";
    let gates = tidegate::Gates::from_toml("fork.toml", TWO).unwrap();
    let db = gates.gate("db").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    gates.reload_toml(ONE).unwrap();
                    gates.reload_toml(TWO).unwrap();
                }
            });
        }
        let _end = common::Raise(&stop);
        for _ in 0..100 {
            in_child(|| {
                let whole = gates.names().len() == 2;
                assert_eq!((gates.classifier().is_some(), !db.closed()), (whole, whole), "all of one file");
                assert_eq!(gates.gate("other").unwrap().limit(), if whole { 1 } else { 2 });
                gates.reload_toml(TWO).unwrap();
                assert!(db.try_admit(CRITICAL).is_ok());
            });
        }
    });
}

#[cfg(unix)]
fn use_locks(gate: &Gate) {
    gate.set_enforce(true);
    gate.set_thresholds(Thresholds::default()).unwrap();
    let _ = (gate.retry_after(CRITICAL), gate.limit_history());
    // Construction takes the registry's lock.
    drop(Gate::new("passing", 1).unwrap());
}
