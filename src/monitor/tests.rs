use std::sync::atomic::AtomicU32 as Count;
use std::sync::{Arc, Mutex as StdMutex, OnceLock, mpsc};

use super::*;
use crate::clock::ManualClock;
use crate::detector::Transition;

const MS: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// Overloaded at 0.85 for two seconds, with the whole level at once.
fn rule() -> Rule {
    Rule::default().rising_in(Duration::ZERO)
}

fn pushed() -> Monitor {
    Monitor::new([(Signal::pushed("db"), rule())])
}

/// Pushes `value` for `seconds`, ten times a second, with a request after each.
fn hold(monitor: &Monitor, clock: &ManualClock, seconds: u64, value: f64) {
    for _ in 0..=10 * seconds {
        monitor.push("db", value, SECOND, clock).unwrap();
        monitor.sheds(Priority::CriticalPlus, clock);
        clock.advance(100 * MS);
    }
}

fn shed_of_ten(monitor: &Monitor, clock: &ManualClock, priority: Priority) -> usize {
    (0..10).filter(|_| monitor.sheds(priority, clock)).count()
}

#[test]
fn what_is_pushed_sheds_the_least_important_until_it_has_passed() {
    let (monitor, clock) = (pushed(), ManualClock::new(7));
    hold(&monitor, &clock, 1, 0.85);
    assert_eq!(shed_of_ten(&monitor, &clock, Priority::Sheddable), 0, "the hold is not over");
    hold(&monitor, &clock, 2, 0.85);
    let shed = Priority::ALL.map(|priority| shed_of_ten(&monitor, &clock, priority));
    assert_eq!(shed, [0, 0, 10, 10], "half a level is two of four priorities");
    hold(&monitor, &clock, 11, 0.2);
    assert_eq!(shed_of_ten(&monitor, &clock, Priority::Sheddable), 0);
    let changes: Vec<_> = monitor.detector().history().map(Transition::overloaded).collect();
    assert_eq!(changes, [true, false]);
}

#[test]
fn what_is_pushed_is_looked_at_at_once() {
    let (monitor, clock) = (pushed(), ManualClock::new(7));
    for value in [0.1, 0.2, 0.3] {
        monitor.push("db", value, SECOND, &clock).unwrap();
        monitor.sheds(Priority::Critical, &clock);
        assert_eq!(monitor.detector().watched()[0].reading.value(), Some(value));
    }
}

#[test]
fn what_is_pushed_while_somebody_looks_is_looked_at_by_the_next() {
    let own: Arc<OnceLock<Arc<Monitor>>> = Arc::default();
    let inner = Arc::clone(&own);
    let pushing = Signal::function("pushing", SECOND, move || {
        inner.get().unwrap().push("db", 0.4, SECOND, &ManualClock::new(7)).unwrap();
        Some(0.1)
    });
    // "db" is read before the other one pushes.
    let monitor = Arc::new(Monitor::new([(Signal::pushed("db"), rule()), (pushing, rule())]));
    own.set(Arc::clone(&monitor)).unwrap();
    let clock = ManualClock::new(7);
    for expected in [None, Some(0.4)] {
        monitor.sheds(Priority::Critical, &clock);
        assert_eq!(monitor.detector().watched()[0].reading.value(), expected);
    }
}

#[test]
fn a_reading_that_is_good_for_long_holds_like_any_other() {
    let asked = Arc::new(Count::new(0));
    let count = Arc::clone(&asked);
    let answer = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Some(1.0)
    };
    let monitor = Monitor::new([(Signal::function("long", 4 * SECOND, answer), rule())]);
    let clock = ManualClock::new(7);
    for _ in 0..=20 {
        monitor.sheds(Priority::Critical, &clock);
        clock.advance(100 * MS);
    }
    assert!(monitor.detector().watched()[0].overloaded);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn no_silence_keeps_anybody_out() {
    let (monitor, clock) = (pushed(), ManualClock::new(7));
    hold(&monitor, &clock, 3, 1.0);
    assert!(monitor.sheds(Priority::Sheddable, &clock));
    clock.advance(3_600_000 * MS);
    assert!(!monitor.sheds(Priority::Sheddable, &clock), "the value has expired: unknown");

    hold(&monitor, &clock, 3, 1.0);
    clock.advance(3_600_000 * MS);
    monitor.push("db", 0.5, SECOND, &clock).unwrap();
    assert!(!monitor.sheds(Priority::Sheddable, &clock), "the fresh reading is below enter");

    hold(&monitor, &clock, 3, 1.0);
    clock.advance(3_600_000 * MS);
    monitor.push("db", 1.0, SECOND, &clock).unwrap();
    assert!(monitor.sheds(Priority::Sheddable, &clock), "it still is overload");
}

#[test]
fn a_clock_that_goes_back_keeps_nobody_out() {
    let (monitor, clock) = (pushed(), ManualClock::new(3_600_000 * MS));
    hold(&monitor, &clock, 3, 1.0);
    assert!(monitor.sheds(Priority::Sheddable, &clock));
    clock.set(7);
    assert!(!monitor.sheds(Priority::Sheddable, &clock));
}

/// A signal that waits to be told what to say, and the two ends of that.
fn told_signal() -> (Signal, mpsc::Receiver<()>, mpsc::Sender<f64>) {
    let (enter, entered) = mpsc::channel();
    let (tell, value) = mpsc::channel();
    let ends = StdMutex::new((enter, value));
    let signal = Signal::function("told", SECOND / 2, move || {
        let ends = ends.lock().unwrap();
        ends.0.send(()).unwrap();
        ends.1.recv().ok()
    });
    (signal, entered, tell)
}

fn told() -> (Arc<Monitor>, mpsc::Receiver<()>, mpsc::Sender<f64>) {
    let (signal, entered, tell) = told_signal();
    (Arc::new(Monitor::new([(signal, rule())])), entered, tell)
}

/// Makes it overloaded, and then has a thread hang in the next look, `later`.
fn hang(later: Duration) -> (Arc<Monitor>, Arc<ManualClock>, impl FnOnce()) {
    let (monitor, entered, tell) = told();
    let clock = Arc::new(ManualClock::new(7));
    for _ in 0..6 {
        tell.send(1.0).unwrap();
        monitor.sheds(Priority::Critical, &*clock);
        entered.recv().unwrap();
        clock.advance(500 * MS);
    }
    assert!(monitor.detector().watched()[0].overloaded);
    clock.advance(u64::try_from(later.as_nanos()).unwrap());
    let thread = {
        let (monitor, clock) = (Arc::clone(&monitor), Arc::clone(&clock));
        std::thread::spawn(move || monitor.sheds(Priority::Critical, &*clock))
    };
    entered.recv().unwrap();
    let end = move || {
        drop(tell);
        thread.join().unwrap();
    };
    (monitor, clock, end)
}

#[test]
fn a_source_that_hangs_keeps_nobody_out() {
    let (monitor, clock, end) = hang(Duration::ZERO);
    for _ in 0..100 {
        assert!(monitor.sheds(Priority::Sheddable, &*clock), "for a while what it said last counts");
        clock.advance(10 * MS);
    }
    clock.advance(1_000 * MS);
    assert!(!monitor.sheds(Priority::Sheddable, &*clock), "then it is unknown");
    end();
}

#[test]
fn after_a_silence_who_comes_while_another_looks_is_let_in() {
    let (monitor, clock, end) = hang(3_600 * SECOND);
    assert!(!monitor.sheds(Priority::Sheddable, &*clock));
    assert!(monitor.detector().watched()[0].overloaded, "nobody has judged it yet");
    end();
}

#[test]
fn a_source_that_hangs_leaves_the_other_signals() {
    let (hanging, entered, tell) = told_signal();
    let monitor = Arc::new(Monitor::new([(hanging, rule()), (Signal::pushed("db"), rule())]));
    let clock = Arc::new(ManualClock::new(7));
    let thread = {
        let (monitor, clock) = (Arc::clone(&monitor), Arc::clone(&clock));
        std::thread::spawn(move || monitor.sheds(Priority::Critical, &*clock))
    };
    entered.recv().unwrap();
    hold(&monitor, &clock, 3, 1.0);
    assert!(monitor.sheds(Priority::Sheddable, &*clock));
    drop(tell);
    thread.join().unwrap();
}

#[test]
fn nobody_looks_before_it_is_time() {
    let asked = Arc::new(Count::new(0));
    let count = Arc::clone(&asked);
    let answer = move || {
        count.fetch_add(1, Ordering::Relaxed);
        Some(0.0)
    };
    let monitor = Monitor::new([(Signal::function("counted", SECOND / 4, answer), rule())]);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let clock = ManualClock::new(0);
    for _ in 0..1_000 {
        monitor.sheds(Priority::Critical, &clock);
        clock.advance(10 * MS);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 40, "ten seconds by quarters");
    let reports = monitor.report(clock.now_ns()).signals;
    assert_eq!((reports.len(), reports[0].reads), (1, 40));
    clock.advance(1_000 * MS);
    let moved_on = monitor.pace.next_ns.load(Ordering::Relaxed) - 1;
    assert!(!monitor.claim(moved_on, clock.now_ns()));
    assert_eq!(asked.load(Ordering::Relaxed), 40, "somebody else was first");
}

#[test]
fn a_value_for_nobody_is_refused() {
    let (monitor, clock) = (pushed(), ManualClock::new(7));
    let refused = monitor.push("database", 0.5, SECOND, &clock).unwrap_err().to_string();
    assert!(refused.contains("\"database\""), "{refused}");
    assert!(monitor.push("db", 70.0, SECOND, &clock).is_err());
    assert_eq!(monitor.report(7).signals[0].reads, 0);
}

#[test]
fn a_child_starts_without_what_its_parent_saw() {
    let (monitor, clock) = (pushed(), ManualClock::new(7));
    hold(&monitor, &clock, 3, 1.0);
    let child = Monitor::of(monitor.watch.lock().signals.renewed());
    assert!(monitor.sheds(Priority::Sheddable, &clock) && !child.sheds(Priority::Sheddable, &clock));
    assert_eq!(child.detector().history().count(), 0);
    hold(&child, &clock, 3, 1.0);
    assert!(child.sheds(Priority::Sheddable, &clock));
}

/// Who read the clock before a look ended is behind what it left.
#[test]
fn a_look_that_takes_long_counts_at_once() {
    let clock = Arc::new(ManualClock::new(7));
    let slow = {
        let clock = Arc::clone(&clock);
        Signal::function("slow", SECOND, move || {
            clock.advance(3_000 * MS);
            Some(1.0)
        })
    };
    let monitor = Monitor::new([(slow, rule().holding(Duration::ZERO, Duration::ZERO))]);
    assert!(monitor.sheds(Priority::Sheddable, &*clock));
}
