//! Models of the gate: loom runs each under every interleaving and every
//! reordering that the memory orderings allow. One property a model.
//!
//! `RUSTFLAGS="--cfg tidegate_loom" cargo test --release --test loom --target-dir target/loom`

#![cfg(tidegate_loom)]
#![allow(unsafe_code)] // loom's cell, which is how it sees unordered accesses

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use std::time::Duration;
use tidegate::controller::{Bounds, Kind};
use tidegate::detector::Rule;
use tidegate::signal::Signal;
use tidegate::{
    Ask, Gate, ManualClock, Outcome, Per, Priority, Rate, Reason, RetryAfter, Threshold, Thresholds, Ticket,
    Weight,
};

const CRITICAL: Priority = Priority::Critical;

fn gate(limit: u32) -> Arc<Gate> {
    Arc::new(Gate::new("model", limit).unwrap())
}

/// Runs `first` and `second` at the same time, each with the gate.
fn race(gate: &Arc<Gate>, first: impl FnOnce(&Gate) + 'static, second: impl FnOnce(&Gate)) {
    let shared = Arc::clone(gate);
    let other = thread::spawn(move || first(&shared));
    second(gate);
    other.join().unwrap();
}

#[test]
fn never_above_the_limit() {
    loom::model(|| {
        let gate = gate(1);
        let inside = Arc::new(AtomicU32::new(0));
        let visit = |inside: Arc<AtomicU32>| {
            move |gate: &Gate| {
                if let Ok(permit) = gate.try_admit(CRITICAL) {
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    drop(permit);
                }
            }
        };
        race(&gate, visit(Arc::clone(&inside)), visit(inside));
    });
}

/// The gate orders what one holder did before what the next one does, with permits
#[test]
fn a_holder_sees_what_the_holder_before_did() {
    loom::model(|| {
        let gate = gate(1);
        let work = Work::default();
        let visit = |work: Work| {
            move |gate: &Gate| {
                if let Ok(permit) = gate.try_admit(CRITICAL) {
                    work.add_one();
                    drop(permit);
                }
            }
        };
        race(&gate, visit(work.clone()), visit(work));
    });
}

/// and with bare entries.
#[test]
fn a_bare_holder_sees_what_the_holder_before_did() {
    loom::model(|| {
        let gate = gate(1);
        let work = Work::default();
        let visit = |work: Work| {
            move |gate: &Gate| {
                if gate.enter(None).is_ok() {
                    work.add_one();
                    assert!(gate.exit(Outcome::Success));
                }
            }
        };
        race(&gate, visit(work.clone()), visit(work));
    });
}

/// What is done inside: loom reports any two accesses to it that nothing orders.
#[derive(Clone, Default)]
struct Work(Arc<UnsafeCell<u32>>);

// SAFETY: whether it is touched by one thread at a time is what the models find out.
unsafe impl Send for Work {}

impl Work {
    fn add_one(&self) {
        // SAFETY: loom sees to it that nobody else is at it.
        self.0.with_mut(|done| unsafe { *done += 1 });
    }

    fn done(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|done| unsafe { *done })
    }
}

#[test]
fn no_permit_is_lost() {
    loom::model(|| {
        let gate = gate(2);
        let visit = |gate: &Gate| drop(gate.try_admit(CRITICAL));
        race(&gate, visit, visit);
        assert_eq!(gate.in_flight(), 0);
        let stats = gate.stats();
        assert_eq!((stats.admitted(CRITICAL), stats.released(Outcome::Success)), (2, 2));
        let _both = (gate.try_admit(CRITICAL).unwrap(), gate.try_admit(CRITICAL).unwrap());
    });
}

/// Whoever is seen to have left is seen counted.
#[test]
fn a_release_is_counted_before_it_is_seen() {
    loom::model(|| {
        let gate = gate(1);
        let ticket = gate.take(CRITICAL).unwrap();
        race(
            &gate,
            move |gate| gate.put(ticket, Outcome::Overload),
            |gate| {
                if gate.in_flight() == 0 {
                    assert_eq!(gate.stats().released(Outcome::Overload), 1);
                }
            },
        );
    });
}

/// In every reading no more has left than entered.
#[test]
fn a_reading_never_has_more_released_than_admitted() {
    loom::model(|| {
        let gate = gate(1);
        race(
            &gate,
            |gate| drop(gate.try_admit(CRITICAL).unwrap()),
            |gate| {
                let stats = gate.stats();
                assert!(stats.released(Outcome::Success) <= stats.admitted(CRITICAL));
            },
        );
    });
}

/// Permits and bare entries put back into the same count, the one without and the other with a check.
#[test]
fn permits_and_bare_entries_share_the_count() {
    loom::model(|| {
        let gate = gate(2);
        race(
            &gate,
            |gate| drop(gate.try_admit(CRITICAL).unwrap()),
            |gate| {
                gate.enter(None).unwrap();
                assert!(gate.exit(Outcome::Success));
            },
        );
        assert_eq!((gate.in_flight(), gate.stats().unmatched_exits), (0, 0));
    });
}

/// Once the setter has returned, nothing is admitted above the new limit.
#[test]
fn a_resize_against_an_admission() {
    loom::model(|| {
        let gate = gate(2);
        let _held = gate.take(CRITICAL).unwrap();
        race(
            &gate,
            |gate| {
                let _ = gate.take(CRITICAL);
            },
            |gate| {
                gate.set_limit(1, None).unwrap();
                let seen = gate.in_flight();
                assert!(gate.try_admit(CRITICAL).is_err());
                // Whatever got in got in before the setter returned.
                assert_eq!(gate.in_flight(), seen);
            },
        );
    });
}

/// Once `close` has returned, nothing is admitted.
#[test]
fn a_close_against_an_admission() {
    loom::model(|| {
        let gate = gate(2);
        race(
            &gate,
            |gate| {
                let _ = gate.take(CRITICAL);
            },
            |gate| {
                gate.close();
                let seen = gate.in_flight();
                assert_eq!(gate.try_admit(CRITICAL).unwrap_err().reason, Reason::Closed);
                assert_eq!(gate.in_flight(), seen);
            },
        );
    });
}

/// A file has a gate again that it had not, while its owner closes it: once `close` has returned, it is closed for
/// good, whatever the file made of it meanwhile.
#[test]
fn a_close_against_a_file() {
    for withdrawn_before in [true, false] {
        loom::model(move || {
            let gate = gate(1);
            if withdrawn_before {
                gate.model_withdraw();
            }
            race(
                &gate,
                |gate| {
                    gate.close();
                    assert_eq!(gate.try_admit(CRITICAL).unwrap_err().reason, Reason::Closed);
                },
                |gate| {
                    if !withdrawn_before {
                        gate.model_withdraw();
                    }
                    gate.model_reinstate();
                },
            );
            assert!(gate.closed());
        });
    }
}

/// A gate that a file has again counts what it held all the time, also what leaves at that moment.
#[test]
fn a_release_against_a_file() {
    loom::model(|| {
        let gate = gate(1);
        let ticket = gate.take(CRITICAL).unwrap();
        let work = Work::default();
        let before = work.clone();
        race(
            &gate,
            move |gate| {
                before.add_one();
                gate.put(ticket, Outcome::Success);
            },
            move |gate| {
                gate.model_withdraw();
                assert_eq!(gate.try_admit(CRITICAL).unwrap_err().reason, Reason::Closed);
                assert!(gate.model_reinstate());
                if let Ok(permit) = gate.try_admit(CRITICAL) {
                    work.add_one(); // after the one before it
                    drop(permit);
                }
            },
        );
        assert_eq!((gate.in_flight(), gate.closed()), (0, false));
    });
}

/// Two exits for one entry: one of them is refused, and the count stays right.
#[test]
fn a_double_release_is_refused() {
    loom::model(|| {
        let gate = gate(1);
        gate.enter(None).unwrap();
        let matched = Arc::new(AtomicU32::new(0));
        let leave = |matched: Arc<AtomicU32>| {
            move |gate: &Gate| {
                if gate.exit(Outcome::Success) {
                    matched.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        race(&gate, leave(Arc::clone(&matched)), leave(Arc::clone(&matched)));
        assert_eq!(matched.load(Ordering::Relaxed), 1);
        assert_eq!((gate.in_flight(), gate.stats().unmatched_exits), (0, 1));
    });
}

/// A reserve stays free for the more important, whoever is first.
#[test]
fn a_priority_never_takes_a_reserve() {
    loom::model(|| {
        let thresholds = Thresholds::default().with(Priority::Sheddable, Threshold::Reserve(1));
        let gate = Arc::new(Gate::builder("model", 2).thresholds(thresholds).build().unwrap());
        let visit = |gate: &Gate| {
            let _ = gate.take(Priority::Sheddable);
        };
        race(&gate, visit, visit);
        assert_eq!(gate.in_flight(), 1);
        assert!(gate.try_admit(CRITICAL).is_ok());
    });
}

/// Leaving one by one, two kinds of entries: whoever is last wakes those who drain, and they see what was done
/// inside.
#[test]
fn the_last_to_leave_wakes_the_drain() {
    for enforced_limit in [1, 2] {
        loom::model(move || {
            let gate = Gate::builder("model", enforced_limit).enforce(false).build().unwrap();
            let gate = Arc::new(gate);
            let (first, second) = (gate.take(CRITICAL).unwrap(), gate.take(CRITICAL).unwrap());
            assert_eq!((first.over(), second.over()), (false, enforced_limit == 1));
            let work = [Work::default(), Work::default()];
            let woken = Woken::when_drained(&gate, work.clone());
            let [one, other] = work;
            race(
                &gate,
                move |gate| {
                    one.add_one();
                    gate.put(first, Outcome::Success);
                },
                move |gate| {
                    other.add_one();
                    gate.put(second, Outcome::Success);
                },
            );
            assert_eq!(woken.times(), 1);
        });
    }
}

/// Closing while the last one leaves, in the word or beyond it: somebody notices that it was the last.
#[test]
fn a_close_against_the_last_to_leave() {
    for limit in [0, 1] {
        loom::model(move || {
            let gate = Arc::new(Gate::builder("model", limit).enforce(false).build().unwrap());
            let ticket = gate.take(CRITICAL).unwrap();
            assert_eq!(ticket.over(), limit == 0);
            let mut woken = None;
            race(
                &gate,
                move |gate| gate.put(ticket, Outcome::Success),
                |gate| woken = Some(Woken::when_drained(gate, [])),
            );
            assert_eq!(woken.unwrap().times(), 1);
        });
    }
}

/// In dry run an entry beyond the limit and a drain: either it is inside and the drain waits, or it is refused.
#[test]
fn a_drain_never_ends_before_the_last_is_out() {
    loom::model(|| {
        let gate = Arc::new(Gate::builder("model", 0).enforce(false).build().unwrap());
        let (held, drained) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (holds, ends) = (Arc::clone(&held), Arc::clone(&drained));
        race(
            &gate,
            move |gate| {
                if gate.take(CRITICAL).is_ok() {
                    holds.store(1, Ordering::SeqCst); // and keeps it
                }
            },
            move |gate| _ = gate.on_drained(Box::new(move || ends.store(1, Ordering::SeqCst))),
        );
        let (held, drained) = (held.load(Ordering::SeqCst), drained.load(Ordering::SeqCst));
        assert_eq!(held + drained, 1, "held {held}, drained {drained}");
    });
}

/// A rate of nothing, which admits its burst once: for models the clock stands still.
fn once(burst: u32) -> Rate {
    Rate::new(0, Per::Second).unwrap().with_burst(burst).unwrap()
}

/// Setting a rate is many steps: their every order would take hours. Two switches of threads at any steps are what
/// nearly all faults need (Musuvathi and Qadeer, "Iterative context bounding", 2007).
fn few_switches(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 20_000;
    builder.check(model);
}

fn rated(limit: u32, burst: u32) -> Arc<Gate> {
    Arc::new(Gate::builder("model", limit).rate(once(burst)).build().unwrap())
}

/// Two race for the last of a rate. Whoever loses, after it was in already or before, leaves no trace but its
/// refusal.
#[test]
fn never_above_the_rate() {
    loom::model(|| {
        let gate = rated(2, 1);
        let visit = |gate: &Gate| match gate.try_admit(CRITICAL) {
            Ok(permit) => drop(permit),
            Err(shed) => assert_eq!(shed.reason, Reason::Rate),
        };
        race(&gate, visit, visit);
        let stats = gate.stats();
        assert_eq!(stats.in_flight, 0);
        assert!(stats.high_water <= 2, "who was admitted may have seen the other for a moment");
        assert_eq!((stats.admitted(CRITICAL), stats.released(Outcome::Success)), (1, 1));
        assert_eq!(stats.shed(CRITICAL, Reason::Rate), 1);
    });
}

/// What was taken of the limit for nothing is there again.
#[test]
fn a_race_for_the_rate_gives_the_room_back() {
    loom::model(|| {
        let gate = rated(1, 1);
        let visit = |gate: &Gate| {
            if let Err(shed) = gate.try_admit(CRITICAL) {
                assert!([Reason::Limit, Reason::Rate].contains(&shed.reason));
            }
        };
        race(&gate, visit, visit);
        assert_eq!((gate.in_flight(), gate.stats().admitted(CRITICAL)), (0, 1));
        gate.set_rate(None);
        assert!(gate.try_admit(CRITICAL).is_ok());
    });
}

/// A bare exit too many may take what was there for a moment: then that was an admission, and no count goes below
/// another.
#[test]
fn a_race_for_the_rate_against_an_exit_too_many() {
    few_switches(|| {
        let gate = rated(2, 2);
        gate.enter(None).unwrap();
        assert!(gate.exit(Outcome::Success));
        race(
            &gate,
            |gate| {
                if gate.enter(None).is_ok() {
                    gate.exit(Outcome::Success);
                }
            },
            |gate| {
                drop(gate.try_admit(CRITICAL));
                gate.exit(Outcome::Success);
            },
        );
        let stats = gate.stats();
        assert_eq!(stats.in_flight, 0);
        assert_eq!(stats.released(Outcome::Success), stats.admitted(CRITICAL));
        assert_eq!(stats.unmatched_exits, 1);
    });
}

/// Whoever leaves a closed gate because it lost the rate may be the last, and then wakes the drain.
#[test]
fn losing_the_rate_may_end_a_drain() {
    few_switches(|| {
        let gate = rated(2, 1);
        let mut woken = None;
        race(
            &gate,
            |gate| drop(gate.try_admit(CRITICAL)),
            |gate| {
                drop(gate.try_admit(CRITICAL));
                woken = Some(Woken::when_drained(gate, []));
            },
        );
        assert_eq!(woken.unwrap().times(), 1);
    });
}

/// Once the setter has returned, nothing is admitted but by the rate,
#[test]
fn a_first_rate_against_an_admission() {
    few_switches(|| {
        let gate = gate(3);
        let mut before = 0;
        race(
            &gate,
            |gate| _ = gate.take(CRITICAL),
            |gate| {
                gate.set_rate(once(1));
                before = gate.in_flight();
                let _ = gate.take(CRITICAL);
            },
        );
        assert!(gate.in_flight() <= before + 1);
    });
}

/// and by the new one: who has looked at the old one, and has not taken of it, does not take of it any more.
#[test]
fn another_rate_against_an_admission() {
    few_switches(|| {
        let gate = rated(3, 2);
        let mut unused = false;
        race(
            &gate,
            |gate| _ = gate.take(Ask::from(CRITICAL).weight(Weight::new(2).unwrap())),
            |gate| {
                gate.set_rate(once(1));
                unused = gate.retry_after(CRITICAL) == RetryAfter::Known(Duration::ZERO);
            },
        );
        assert_eq!(gate.in_flight(), if unused { 0 } else { 2 });
        assert_eq!(gate.take(CRITICAL).is_ok(), unused, "what was used of the old one stays used");
    });
}

/// A gate with a signal that says 1 when asked, and that is overload at once; and how often it was asked.
fn pressed() -> (Arc<Gate>, std::sync::Arc<std::sync::atomic::AtomicU32>) {
    let asked = std::sync::Arc::<std::sync::atomic::AtomicU32>::default();
    let count = std::sync::Arc::clone(&asked);
    let full = Signal::function("full", Duration::from_secs(1), move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(1.0)
    });
    (watched(full), asked)
}

fn watched(signal: Signal) -> Arc<Gate> {
    let builder = Gate::builder("model", 9).signals([(signal, at_once())]);
    Arc::new(builder.clock(std::sync::Arc::new(ManualClock::new(7))).build().unwrap())
}

fn at_once() -> Rule {
    Rule::default().holding(Duration::ZERO, Duration::ZERO).rising_in(Duration::ZERO)
}

/// Of two who find that it is time to look at the signals one looks, and the other goes on with what was seen.
#[test]
fn one_looks_at_the_signals() {
    few_switches(|| {
        let (gate, asked) = pressed();
        let visit = |gate: &Gate| match gate.try_admit(Priority::Sheddable) {
            Ok(permit) => drop(permit),
            Err(shed) => assert_eq!(shed.reason, Reason::Pressure),
        };
        race(&gate, visit, visit);
        assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
        assert!(gate.try_admit(Priority::Sheddable).is_err(), "everybody sees what one saw");
        let stats = gate.stats();
        let shed = stats.shed(Priority::Sheddable, Reason::Pressure);
        assert_eq!((stats.admitted(Priority::Sheddable) + shed, stats.in_flight), (3, 0));
    });
}

/// What was pushed while somebody looked is looked at by the next,
#[test]
fn no_pushed_value_is_overlooked() {
    few_switches(|| {
        let gate = watched(Signal::pushed("db"));
        race(
            &gate,
            |gate| _ = gate.try_admit(Priority::Sheddable),
            |gate| gate.signal("db", 1.0, Duration::from_secs(1)).unwrap(),
        );
        assert_eq!(gate.try_admit(Priority::Sheddable).unwrap_err().reason, Reason::Pressure);
    });
}

/// and a look at signals that are watched no more comes to nothing.
#[test]
fn a_look_at_what_is_watched_no_more_sheds_nobody() {
    few_switches(|| {
        let (gate, _) = pressed();
        race(
            &gate,
            |gate| _ = gate.try_admit(Priority::Sheddable),
            |gate| gate.set_signals([(Signal::pushed("db"), at_once())]).unwrap(),
        );
        assert!(gate.try_admit(Priority::Sheddable).is_ok());
        gate.set_signals([]).unwrap();
        assert!(gate.try_admit(Priority::Sheddable).is_ok() && gate.pressure().is_none());
    });
}

/// How often a drained gate's callback was called.
struct Woken(std::sync::Arc<std::sync::atomic::AtomicU32>);

impl Woken {
    /// Closes `gate`, and once it is drained looks at what was done inside.
    fn when_drained<const N: usize>(gate: &Gate, work: [Work; N]) -> Self {
        let woken = Self(std::sync::Arc::default()); // loom's would be one more thing to interleave
        let times = std::sync::Arc::clone(&woken.0);
        gate.on_drained(Box::new(move || {
            assert!(work.iter().all(|work| work.done() == 1));
            times.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }));
        woken
    }

    fn times(&self) -> u32 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// The first bare entry, an exit too many, and a permit on its way out: the count never wraps.
#[test]
fn an_exit_too_many_against_a_release() {
    loom::model(|| {
        let gate = Arc::new(Gate::builder("model", 2).bare_entries(true).build().unwrap());
        let ticket = gate.take(CRITICAL).unwrap();
        race(
            &gate,
            move |gate| gate.put(ticket, Outcome::Success),
            |gate| {
                gate.enter(None).unwrap();
                assert!(gate.exit(Outcome::Success));
                gate.exit(Outcome::Success);
            },
        );
        assert_eq!((gate.in_flight(), gate.stats().unmatched_exits), (0, 1));
    });
}

/// A gate whose window has ended, with two inside.
fn at_the_end_of_a_window(kind: Kind) -> (Arc<Gate>, std::sync::Arc<ManualClock>, [Ticket; 2]) {
    let clock = std::sync::Arc::new(ManualClock::new(0));
    let bounds = Bounds::new(1, 9, 2).unwrap();
    let gate = Gate::builder("model", 1).clock(clock.clone()).controller(kind, bounds).build().unwrap();
    let tickets = [gate.take(CRITICAL).unwrap(), gate.take(CRITICAL).unwrap()];
    clock.set(1_000_000_000);
    (Arc::new(gate), clock, tickets)
}

/// One of the two who find that it is time looks, or neither where it finds the other counting. Either way what they
/// counted is in one window, this or the next.
#[test]
fn two_at_the_end_of_a_window() {
    few_switches(|| {
        let (gate, clock, [first, second]) = at_the_end_of_a_window(Kind::Aimd);
        race(
            &gate,
            move |gate| gate.put(first, Outcome::Success),
            move |gate| gate.put(second, Outcome::Success),
        );
        let report = gate.controller().unwrap();
        assert!(report.looks <= 1);
        let seen = report.window.completions;
        if report.looks == 1 {
            // Whoever has left by then: half a count would show.
            assert!((report.window.in_flight_seconds - 2.0).abs() < 1e-9);
        }
        clock.advance(2_000_000_000);
        drop(gate.try_admit(CRITICAL).unwrap());
        let later = gate.controller().unwrap();
        // The way in looks, before the way out counts.
        assert_eq!((later.looks, seen + later.window.completions), (report.looks + 1, 2));
        assert_eq!((gate.in_flight(), gate.stats().released(Outcome::Success)), (0, 3));
    });
}

/// Who is let in was let in under a limit that held at that moment, while a look lowers it.
#[test]
fn a_look_that_lowers_the_limit_against_an_admission() {
    few_switches(|| {
        let clock = std::sync::Arc::new(ManualClock::new(0));
        let bounds = Bounds::new(1, 9, 2).unwrap();
        let gate = Gate::builder("model", 1).clock(clock.clone()).controller(Kind::Aimd, bounds);
        let gate = Arc::new(gate.build().unwrap());
        for _ in 0..10 {
            let ticket = gate.take(CRITICAL).unwrap();
            clock.advance(1_000_000);
            gate.put(ticket, Outcome::Overload);
        }
        let held = gate.take(CRITICAL).unwrap();
        clock.set(1_000_000_000);
        race(
            &gate,
            |gate| {
                let _ = gate.take(CRITICAL);
            },
            |gate| {
                let _ = gate.take(Priority::Sheddable);
                if gate.controller().unwrap().looks == 1 {
                    assert_eq!(gate.limit(), 1);
                    let seen = gate.in_flight();
                    assert!(gate.take(CRITICAL).is_err());
                    assert_eq!(gate.in_flight(), seen, "whatever got in got in before");
                }
            },
        );
        assert!(gate.in_flight() <= 2);
        gate.put(held, Outcome::Success);
    });
}
