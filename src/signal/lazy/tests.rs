use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;

use super::*;
use crate::clock::ManualClock;

const SECOND_NS: u64 = 1_000_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// A source that answers what it was told to, in this order, and then that it does not know.
fn scripted(script: &[Option<f64>]) -> (Signal, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let (count, script) = (Arc::clone(&asked), script.to_vec());
    let answer = move || script.get(count.fetch_add(1, Ordering::Relaxed) as usize).copied().flatten();
    (Signal::function("scripted", SECOND, answer), asked)
}

#[test]
fn a_reading_is_good_for_its_time_and_then_read_anew() {
    let (signal, asked) = scripted(&[Some(0.1), Some(0.2), Some(0.3)]);
    let clock = ManualClock::new(5 * SECOND_NS);
    assert_eq!(asked.load(Ordering::Relaxed), 0, "nothing is measured before somebody asks");
    for (after_ns, value, count) in
        [(0, 0.1, 1), (SECOND_NS - 1, 0.1, 1), (1, 0.2, 2), (0, 0.2, 2), (3_600 * SECOND_NS, 0.3, 3)]
    {
        clock.advance(after_ns);
        assert_eq!(signal.reading(&clock).value(), Some(value));
        assert_eq!(asked.load(Ordering::Relaxed), count);
    }
    assert_eq!(signal.due_ns(), Some(clock.now_ns() + SECOND_NS));
}

#[test]
fn a_failed_reading_leaves_the_one_before_until_that_is_old() {
    let (signal, asked) = scripted(&[Some(0.9)]);
    let clock = ManualClock::new(0);
    let mut readings = Vec::new();
    for _ in 0..6 {
        readings.push(signal.reading(&clock).value());
        clock.advance(SECOND_NS);
    }
    let kept = Some(0.9);
    assert_eq!(
        readings,
        [kept, kept, kept, kept, None, None],
        "after a second it is old, after four unknown"
    );
    assert_eq!(asked.load(Ordering::Relaxed), 6, "each time it was due");
    assert_eq!(signal.report(0).failures, 5);
}

#[test]
fn what_is_out_of_range_or_panics_is_unknown() {
    for bad in [Some(70.0), Some(-0.1), Some(f64::NAN), Some(f64::INFINITY), None] {
        let (signal, _) = scripted(&[bad]);
        assert_eq!(signal.reading(&ManualClock::new(0)), Reading::UNKNOWN, "{bad:?}");
    }
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let signal = Signal::function("breaks", SECOND, move || {
        // `resume_unwind` panics without a word on standard error.
        if counted.fetch_add(1, Ordering::Relaxed) == 0 {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        Some(0.5)
    });
    let clock = ManualClock::new(0);
    assert_eq!(signal.reading(&clock), Reading::UNKNOWN);
    clock.advance(SECOND_NS);
    assert_eq!(signal.reading(&clock).value(), Some(0.5), "it is asked again");
}

#[test]
fn while_one_measures_the_others_have_the_old_reading() {
    let (enter, entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel();
    let (enter, may_leave) = (StdMutex::new(enter), StdMutex::new(may_leave));
    let signal = Arc::new(Signal::function("slow", SECOND, move || {
        enter.lock().unwrap().send(()).unwrap();
        may_leave.lock().unwrap().recv().unwrap()
    }));
    let clock = Arc::new(ManualClock::new(0));
    let measure = || {
        let (signal, clock) = (Arc::clone(&signal), Arc::clone(&clock));
        let thread = std::thread::spawn(move || signal.reading(&*clock));
        entered.recv().unwrap();
        thread
    };
    let first = measure();
    assert_eq!(signal.reading(&*clock), Reading::UNKNOWN, "there is no old one");
    leave.send(Some(0.25)).unwrap();
    assert_eq!(first.join().unwrap().value(), Some(0.25));

    clock.advance(SECOND_NS);
    let second = measure();
    assert_eq!(signal.reading(&*clock).value(), Some(0.25));
    clock.advance(3 * SECOND_NS);
    assert_eq!(signal.reading(&*clock), Reading::UNKNOWN, "too old, and still nobody else measures");
    leave.send(Some(0.75)).unwrap();
    assert_eq!(second.join().unwrap().value(), Some(0.75));
}

#[test]
fn a_source_may_ask_its_own_signal() {
    let own: Arc<StdMutex<Option<Arc<Signal>>>> = Arc::default();
    let inner = Arc::clone(&own);
    let signal = Arc::new(Signal::function("own", SECOND, move || {
        let signal = inner.lock().unwrap().clone().unwrap();
        assert_eq!(signal.reading(&ManualClock::new(0)), Reading::UNKNOWN);
        Some(0.5)
    }));
    *own.lock().unwrap() = Some(Arc::clone(&signal));
    assert_eq!(signal.reading(&ManualClock::new(0)).value(), Some(0.5));
    own.lock().unwrap().take();
}

#[test]
fn a_slow_source_is_asked_less_often() {
    let clock = Arc::new(ManualClock::new(0));
    let (moved, asked) = (Arc::clone(&clock), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&asked);
    let signal = Signal::function("slow", SECOND, move || {
        count.fetch_add(1, Ordering::Relaxed);
        moved.advance(SECOND_NS / 2);
        Some(0.5)
    });
    while clock.now_ns() < 1_000 * SECOND_NS {
        signal.reading(&*clock);
        clock.advance(SECOND_NS / 10);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 20, "half a second in every fifty and a half");
    assert_eq!(signal.report(0).cost, SECOND / 2);
}

#[test]
fn a_clock_that_went_back_makes_readings_old() {
    let (signal, _) = scripted(&[Some(0.9), Some(0.2)]);
    let clock = ManualClock::new(3_600 * SECOND_NS);
    signal.reading(&clock);
    clock.set(SECOND_NS);
    assert_eq!(signal.report(clock.now_ns()).reading, Reading::UNKNOWN);
    assert_eq!(signal.reading(&clock).value(), Some(0.2));
}

#[test]
fn who_read_the_clock_just_before_another_measured_uses_that() {
    let (signal, _) = scripted(&[Some(0.9)]);
    signal.reading(&ManualClock::new(SECOND_NS));
    assert_eq!(signal.report(SECOND_NS - 1_000).reading.value(), Some(0.9));
}

#[test]
fn a_pushed_value_expires() {
    let signal = Signal::pushed("db");
    let clock = ManualClock::new(0);
    assert_eq!(signal.reading(&clock), Reading::UNKNOWN);
    signal.push(0.7, 5 * SECOND, &clock).unwrap();
    clock.set(5 * SECOND_NS - 1);
    assert_eq!(signal.reading(&clock).value(), Some(0.7));
    clock.advance(1);
    assert_eq!(signal.reading(&clock), Reading::UNKNOWN);
    signal.push(0.2, Duration::MAX, &clock).unwrap();
    assert_eq!(signal.reading(&ManualClock::new(u64::MAX - 1)).value(), Some(0.2));
    assert_eq!((signal.due_ns(), signal.report(0).reads), (None, 2));
}

#[test]
fn a_value_that_breaks_the_rule_is_refused_and_changes_nothing() {
    let signal = Signal::pushed("db");
    let clock = ManualClock::new(0);
    signal.push(0.7, SECOND, &clock).unwrap();
    for bad in [70.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(signal.push(bad, SECOND, &clock).is_err(), "{bad}");
    }
    assert_eq!(signal.reading(&clock).value(), Some(0.7));
    let (measured, _) = scripted(&[]);
    let refused = measured.push(0.5, SECOND, &clock).unwrap_err().to_string();
    assert!(refused.contains("\"scripted\""), "{refused}");
}

#[test]
fn a_renewed_signal_has_read_nothing() {
    let (signal, _) = scripted(&[Some(0.1), Some(0.2)]);
    let clock = ManualClock::new(0);
    signal.reading(&clock);
    let renewed = signal.renewed();
    assert_eq!((renewed.name(), renewed.report(0).reads), ("scripted", 0));
    assert_eq!(renewed.reading(&clock).value(), Some(0.2));
}

/// The real files, on a real clock: what a reading costs is bounded, whatever it is.
#[test]
fn the_machines_own_signals_keep_to_their_share() {
    use crate::clock::MonotonicClock;
    use crate::signal::{Cpu, Memory, Resource, Stalls};

    let signals = [
        Signal::new("cpu", Cpu::new),
        Signal::new("memory", Memory::new),
        Signal::new("psi-cpu", || Stalls::new(Resource::Cpu)),
        Signal::new("psi-memory", || Stalls::new(Resource::Memory)),
        Signal::new("psi-io", || Stalls::new(Resource::Io)),
    ];
    for signal in &signals {
        let before_ns = MonotonicClock.now_ns();
        signal.reading(&MonotonicClock);
        let report = signal.report(MonotonicClock.now_ns());
        println!("{}: {report:?}", signal.name());
        assert_eq!(report.reads, 1);
        let pause_ns = signal.due_ns().unwrap() - before_ns;
        assert!(u128::from(pause_ns) >= 100 * report.cost.as_nanos(), "{}", signal.name());
    }
}
