//! Models of the gate: loom runs each under every interleaving and every
//! reordering that the memory orderings allow. One property a model.
//!
//! `RUSTFLAGS="--cfg tidegate_loom" cargo test --release --test loom --target-dir target/loom`

#![cfg(tidegate_loom)]
#![allow(unsafe_code)] // loom's cell, which is how it sees unordered accesses

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tidegate::{Gate, Outcome, Priority, Reason, Threshold, Thresholds};

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

/// The gate orders what one holder did before what the next one does.
#[test]
fn a_holder_sees_what_the_holder_before_did() {
    loom::model(|| {
        let gate = gate(1);
        let cell = Arc::new(loom::cell::UnsafeCell::new(0));
        let visit = |cell: Arc<loom::cell::UnsafeCell<u32>>| {
            move |gate: &Gate| {
                if let Ok(permit) = gate.try_admit(CRITICAL) {
                    // loom reports any two accesses that are not ordered.
                    cell.with_mut(|value| unsafe { *value += 1 });
                    drop(permit);
                }
            }
        };
        race(&gate, visit(Arc::clone(&cell)), visit(cell));
    });
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

/// Leaving one by one, two kinds of entries: whoever is last wakes those who drain.
#[test]
fn the_last_to_leave_wakes_the_drain() {
    loom::model(|| {
        let gate = Arc::new(Gate::builder("model", 1).enforce(false).build().unwrap());
        let (counted, over) = (gate.take(CRITICAL).unwrap(), gate.take(CRITICAL).unwrap());
        assert!(over.over());
        let woken = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let wake = std::sync::Arc::clone(&woken);
        gate.on_drained(Box::new(move || {
            wake.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }));
        race(
            &gate,
            move |gate| gate.put(counted, Outcome::Success),
            move |gate| gate.put(over, Outcome::Success),
        );
        assert_eq!(woken.load(std::sync::atomic::Ordering::Relaxed), 1);
    });
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
            move |gate| gate.on_drained(Box::new(move || ends.store(1, Ordering::SeqCst))),
        );
        let (held, drained) = (held.load(Ordering::SeqCst), drained.load(Ordering::SeqCst));
        assert_eq!(held + drained, 1, "held {held}, drained {drained}");
    });
}
