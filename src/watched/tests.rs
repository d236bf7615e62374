use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::detector::Cause;
use crate::priority::PRIORITIES;
use crate::rate::Rate;
use crate::signal::fake::Tree;
use crate::signal::{Cpu, Kind};
use crate::sums::GateSum;

const MS: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);
const SHEDDABLE: Priority = Priority::Sheddable;

/// Overloaded at 0.85 for two seconds, with the whole level at once.
fn rule() -> Rule {
    Rule::default().rising_in(Duration::ZERO)
}

struct Rig {
    gate: Gate,
    clock: Arc<ManualClock>,
}

impl Rig {
    fn new(prepare: impl FnOnce(crate::GateBuilder) -> crate::GateBuilder) -> Self {
        let clock = Arc::new(ManualClock::new(1_000 * MS));
        let builder = Gate::builder("pressed", 1_000).clock(clock.clone());
        let builder = prepare(builder.signals([(Signal::pushed("db"), rule())]));
        Self { gate: builder.build().unwrap(), clock }
    }

    fn pushed() -> Self {
        Self::new(|builder| builder)
    }

    /// Pushes `value` for `seconds`, ten times a second, with a request of the most important after each.
    fn hold(&self, seconds: u64, value: f64) {
        for _ in 0..=10 * seconds {
            self.gate.signal("db", value, SECOND).unwrap();
            drop(self.gate.try_admit(Priority::CriticalPlus));
            self.clock.advance(100 * MS);
        }
    }

    /// How many of `tries` are shed by pressure.
    fn shed(&self, tries: usize, priority: Priority) -> usize {
        let shed = |_: &usize| match self.gate.try_admit(priority) {
            Ok(_) => false,
            Err(shed) => {
                assert_eq!(shed.reason, Reason::Pressure);
                true
            }
        };
        (0..tries).filter(shed).count()
    }

    fn reason(&self, priority: Priority) -> Option<Reason> {
        self.gate.try_admit(priority).err().map(|shed| shed.reason)
    }

    fn counted(&self, priority: Priority) -> u64 {
        self.gate.stats().shed(priority, Reason::Pressure)
    }
}

#[test]
fn pressure_sheds_the_least_important_first() {
    let rig = Rig::pushed();
    rig.hold(1, 0.85);
    assert_eq!(rig.shed(10, SHEDDABLE), 0, "the hold is not over");
    rig.hold(2, 0.85);
    assert_eq!(Priority::ALL.map(|priority| rig.shed(10, priority)), [0, 0, 10, 10]);
    assert_eq!(Priority::ALL.map(|priority| rig.counted(priority)), [0, 0, 10, 10]);
    let shed = rig.gate.try_admit(SHEDDABLE).unwrap_err();
    assert_eq!((shed.in_flight, shed.limit, shed.priority, shed.weight), (0, 1_000, SHEDDABLE, 1));
    assert_eq!(shed.to_string(), "shed by pressure: 0 of 1000 in flight (priority sheddable)");
    rig.hold(11, 0.2);
    assert_eq!(rig.shed(10, SHEDDABLE), 0);
}

/// At every level the shares are those of docs/signals.md, and `critical_plus` is touched last.
#[test]
fn at_a_level_that_holds_the_shares_are_exact() {
    for step in 0..=32u32 {
        let level = f64::from(step) / 32.0;
        let rig = Rig::pushed();
        rig.hold(3, 1.0);
        rig.hold(0, 0.70 + 0.30 * level);
        let report = rig.gate.pressure().unwrap();
        assert!((report.level - level).abs() < 1e-9, "{report:?}");
        let expected = [
            0.95 * (4.0 * level - 3.0).clamp(0.0, 1.0),
            0.95 * (4.0 * level - 2.0).clamp(0.0, 1.0),
            (4.0 * level - 1.0).clamp(0.0, 1.0),
            (4.0 * level).clamp(0.0, 1.0),
        ];
        let mut shed = [0.0; PRIORITIES];
        for (priority, count) in Priority::ALL.into_iter().zip(&mut shed) {
            #[allow(clippy::cast_precision_loss)]
            let share = rig.shed(2_000, priority) as f64 / 2_000.0;
            *count = share;
        }
        for (level, (shed, expected)) in shed.into_iter().zip(expected).enumerate() {
            assert!(
                (shed - expected).abs() < 0.0015,
                "{shed} of level {level}, {expected} expected at {step}/32"
            );
        }
        assert!(shed[0] <= 0.0 || shed[1] >= 0.9485, "critical_plus last: {shed:?}");
    }
}

#[test]
fn permits_and_bare_entries_are_shed_alike() {
    let rig = Rig::pushed();
    rig.hold(3, 0.85);
    assert_eq!(rig.gate.enter(Some(SHEDDABLE)).unwrap_err().reason, Reason::Pressure);
    assert!(rig.gate.try_admit_owned(SHEDDABLE).is_err());
    assert!(rig.gate.enter(Some(Priority::Critical)).is_ok() && rig.gate.exit(Outcome::Success));
    let stats = rig.gate.stats();
    assert_eq!((stats.shed(SHEDDABLE, Reason::Pressure), stats.in_flight), (2, 0));
}

#[test]
fn a_closed_gate_is_closed() {
    let rig = Rig::pushed();
    rig.hold(3, 1.0);
    rig.gate.close();
    assert_eq!(rig.reason(SHEDDABLE), Some(Reason::Closed));
    let shed = rig.gate.inner.decide_watched(SHEDDABLE, Fallback::No, 1, &mut None).unwrap_err();
    assert_eq!(shed.reason, Reason::Closed, "also for who finds it closed only there");
    assert_eq!(rig.gate.retry_after(SHEDDABLE), RetryAfter::Never);
}

#[test]
fn dry_run_counts_and_lets_in() {
    let rig = Rig::new(|builder| builder.enforce(false));
    rig.hold(3, 0.7375 + 0.0375); // a quarter of a level: it is not overloaded yet
    assert_eq!(rig.gate.stats().would_shed(SHEDDABLE), 0);
    rig.hold(3, 0.85);
    let permits: Vec<_> = (0..10).map(|_| rig.gate.try_admit(SHEDDABLE).unwrap()).collect();
    assert!(permits.iter().all(|permit| permit.ticket().over()));
    rig.gate.enter(Some(SHEDDABLE)).unwrap();
    let stats = rig.gate.stats();
    assert_eq!((stats.would_shed(SHEDDABLE), stats.shed_total(), stats.in_flight), (11, 0, 0));
    drop(permits);
    assert!(rig.gate.exit(Outcome::Success));
    assert_eq!(rig.gate.stats().over_in_flight, 0);
    assert_eq!(rig.gate.retry_after(SHEDDABLE), RetryAfter::Known(Duration::ZERO), "it would be let in");
    rig.gate.set_enforce(true);
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
}

/// Pressure, then the limit, then the rate: what is shed by one uses nothing of the next.
#[test]
fn pressure_goes_before_limit_and_rate() {
    let rate: Rate = "1/h".parse::<Rate>().unwrap().with_burst(64).unwrap();
    let rig = Rig::new(|builder| builder.rate(rate));
    rig.hold(3, 0.85);
    assert_eq!(rig.shed(100, SHEDDABLE), 100);
    let admitted = (0..100).filter(|_| rig.gate.try_admit(Priority::Critical).is_ok()).count();
    assert_eq!(admitted, 64 - 31, "31 requests of `hold`, and none of those that were shed");
    assert_eq!(rig.reason(Priority::Critical), Some(Reason::Rate));
    assert_eq!(rig.reason(SHEDDABLE), Some(Reason::Pressure));
    rig.gate.set_limit(0, None).unwrap();
    assert_eq!(rig.reason(Priority::Critical), Some(Reason::Limit));
    assert_eq!(rig.reason(SHEDDABLE), Some(Reason::Pressure));
}

#[test]
fn how_long_pressure_lasts_is_unknown() {
    let rig = Rig::new(|builder| builder.rate("1/s".parse::<Rate>().unwrap().with_burst(64).unwrap()));
    let retry_after = |priority| rig.gate.retry_after(priority);
    assert_eq!(retry_after(SHEDDABLE), RetryAfter::Known(Duration::ZERO));
    rig.hold(3, 0.85);
    assert_eq!(retry_after(SHEDDABLE), RetryAfter::Unknown);
    assert_eq!(retry_after(Priority::Critical), RetryAfter::Known(Duration::ZERO), "none of it is shed");
    while rig.gate.try_admit(Priority::Critical).is_ok() {}
    let by_rate = retry_after(Priority::Critical);
    assert!(matches!(by_rate, RetryAfter::Known(wait) if !wait.is_zero()), "{by_rate:?}");
    assert_eq!(retry_after(SHEDDABLE), by_rate, "a lower bound");
    rig.clock.advance(60_000 * MS);
    assert_eq!(retry_after(SHEDDABLE), RetryAfter::Known(Duration::ZERO), "what was seen holds no more");
    let before = rig.gate.pressure().unwrap().signals[0].reads;
    assert_eq!(rig.gate.pressure().unwrap().signals[0].reads, before);
}

#[test]
fn the_report_says_what_was_seen() {
    let rig = Rig::pushed();
    rig.hold(3, 0.9);
    let report = rig.gate.pressure().unwrap();
    assert!(report.overloaded && (report.level - 2.0 / 3.0).abs() < 1e-9, "{report:?}");
    assert!((report.shares[3] - 1.0).abs() < 1e-9 && report.shares[0] <= 0.0);
    let signal = &report.signals[0];
    assert_eq!((&*signal.name, signal.kind, signal.value), ("db", Some(Kind::Pushed), Some(0.9)));
    assert_eq!((signal.enter, signal.leave, signal.full), (0.85, 0.70, 1.0));
    assert_eq!((signal.reads, signal.failures, signal.overloaded), (31, 0, true));
    assert_eq!((report.transitions.len(), report.transition_count), (1, 1));
    let transition = &report.transitions[0];
    assert_eq!(
        (transition.number, transition.cause, transition.reading.value()),
        (1, Cause::Entered, Some(0.9))
    );
    assert_eq!(transition.to_string(), "signal \"db\" overloaded: 0.90 is at or above 0.85 for 2.0 s");
    assert_eq!(Gate::new("plain", 1).unwrap().pressure(), None);
    assert!(Gate::new("plain", 1).unwrap().signal("db", 0.5, SECOND).is_err());
}

#[test]
fn the_last_64_transitions_are_kept_and_all_are_counted() {
    let clock = Arc::new(ManualClock::new(7));
    let flighty = rule().holding(Duration::ZERO, Duration::ZERO).resting(Duration::ZERO);
    let builder = Gate::builder("flighty", 1).signals([(Signal::pushed("db"), flighty)]);
    let gate = builder.clock(clock.clone()).build().unwrap();
    for turn in 0..200u32 {
        // It leaves once its level is 0, so it takes two looks.
        gate.signal("db", if turn % 3 == 0 { 1.0 } else { 0.0 }, SECOND).unwrap();
        drop(gate.try_admit(SHEDDABLE));
        clock.advance(100 * MS);
    }
    let report = gate.pressure().unwrap();
    let count = report.transition_count;
    assert_eq!(count, 133);
    let numbers: Vec<_> = report.transitions.iter().map(|transition| transition.number).collect();
    assert_eq!(numbers, (count - 63..=count).collect::<Vec<_>>());
}

/// Whoever comes after a silence is judged by what the signals say then, and so is who only looks.
#[test]
fn a_silence_keeps_nobody_out() {
    let looks: [fn(&Rig) -> bool; 2] =
        [|rig| rig.reason(SHEDDABLE).is_some(), |rig| rig.gate.pressure().unwrap().overloaded];
    for look in looks {
        let rig = Rig::pushed();
        rig.hold(3, 1.0);
        assert!(look(&rig));
        rig.clock.advance(3_600_000 * MS);
        assert!(!look(&rig), "the value has expired");
        rig.hold(3, 1.0);
        rig.clock.advance(3_600_000 * MS);
        rig.gate.signal("db", 0.8, SECOND).unwrap();
        assert!(!look(&rig), "below enter");
        rig.hold(3, 1.0);
        rig.clock.advance(3_600_000 * MS);
        rig.gate.signal("db", 1.0, SECOND).unwrap();
        assert!(look(&rig), "it still is overload");
    }
}

/// A clock that moves on whenever it is read: a look takes time, and who reads the clock before it ends is behind.
#[derive(Debug)]
struct Ticking(ManualClock);

impl Clock for Ticking {
    fn now_ns(&self) -> u64 {
        self.0.advance(1_000);
        self.0.now_ns()
    }
}

#[test]
fn who_looks_is_shed_as_everybody_is() {
    let clock = Arc::new(Ticking(ManualClock::new(1_000 * MS)));
    let full = Signal::function("full", Duration::from_millis(1), || Some(1.0));
    let rule = rule().holding(Duration::ZERO, Duration::ZERO);
    let gate = Gate::builder("ticking", 9).signals([(full, rule)]).clock(clock.clone()).build().unwrap();
    for round in 0..10 {
        assert!(gate.try_admit(SHEDDABLE).is_err(), "round {round}");
        clock.0.advance(20 * MS);
    }
}

/// A look that takes long is no part of the time for which a permit is held.
#[test]
fn a_slow_source_is_no_latency() {
    let clock = Arc::new(ManualClock::new(1_000 * MS));
    let slow = {
        let clock = Arc::clone(&clock);
        Signal::function("slow", SECOND, move || {
            clock.advance(3_000 * MS);
            Some(0.0)
        })
    };
    let builder = Gate::builder("timed", 9).signals([(slow, rule())]).timing(true);
    let gate = builder.clock(clock.clone()).build().unwrap();
    let ticket = gate.take(Priority::Critical).unwrap();
    assert_eq!(clock.now_ns(), 4_000 * MS);
    clock.advance(5 * MS);
    assert_eq!(gate.held(&ticket), Some(Duration::from_millis(5)));
    gate.put(ticket, Outcome::Success);
    assert_eq!(gate.stats().occupancy_us, Some(5_000));
}

#[test]
fn a_function_may_use_its_gate() {
    let own: Arc<std::sync::OnceLock<Gate>> = Arc::default();
    let asked = Arc::new(AtomicU32::new(0));
    let curious = {
        let (own, asked) = (Arc::clone(&own), Arc::clone(&asked));
        Signal::function("curious", SECOND, move || {
            asked.fetch_add(1, Ordering::Relaxed);
            let gate = own.get()?;
            drop(gate.try_admit(Priority::CriticalPlus));
            gate.set_limit(gate.limit() + 1, None).ok()?;
            gate.set_signals([(Signal::pushed("other"), rule())]).ok()?;
            gate.pressure().map(|report| report.level)
        })
    };
    let builder = Gate::builder("curious", 5).signals([(curious, rule())]);
    own.set(builder.clock(Arc::new(ManualClock::new(7))).build().unwrap()).unwrap();
    let gate = own.get().unwrap();
    assert!(gate.try_admit(SHEDDABLE).is_ok());
    assert_eq!((gate.limit(), asked.load(Ordering::Relaxed)), (6, 1));
    let report = gate.pressure().unwrap();
    assert_eq!(report.signals.len(), 1, "its reading went nowhere: it is not watched any more");
    assert_eq!((&*report.signals[0].name, report.signals[0].value), ("other", None));
}

#[test]
fn what_is_wrong_is_refused() {
    let build = |signals: Vec<(Signal, Rule)>| Gate::builder("g", 1).signals(signals).build().map(drop);
    let pushed = |name: &str| (Signal::pushed(name), rule());
    assert_eq!(
        build(vec![pushed("a"), pushed("b"), pushed("a")]),
        Err(ConfigError::SignalTwice { got: "a".into() })
    );
    assert!(matches!(build(vec![pushed("")]), Err(ConfigError::Name { .. })));
    let latency = Signal::of(Kind::Latency);
    let refused = build(vec![(latency, rule())]).unwrap_err().to_string();
    assert!(refused.contains("objective") && refused.contains("latency"), "{refused}");
    let rig = Rig::pushed();
    for bad in [f64::NAN, -0.1, 70.0, f64::INFINITY] {
        assert_eq!(
            rig.gate.signal("db", bad, SECOND).unwrap_err().to_string(),
            ConfigError::Pressure { got: bad }.to_string()
        );
    }
    assert_eq!(rig.gate.signal("cpu", 0.5, SECOND), Err(ConfigError::Signal { got: "cpu".into() }));
    assert!(rig.gate.set_signals([pushed("x"), pushed("x")]).is_err());
    let report = rig.gate.pressure().unwrap();
    assert_eq!((report.signals.len(), report.signals[0].reads), (1, 0));
}

#[test]
fn signals_that_stay_keep_what_they_are() {
    let rig = Rig::pushed();
    rig.hold(3, 0.85);
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
    // Another rule for the same signal, and another signal before it.
    let calmer = Rule::new(0.95, 0.8, 1.0).unwrap().rising_in(Duration::ZERO);
    rig.gate.set_signals([(Signal::pushed("new"), rule()), (Signal::pushed("db"), calmer)]).unwrap();
    let report = rig.gate.pressure().unwrap();
    let [new, db] = &report.signals[..] else { panic!("{report:?}") };
    assert_eq!((new.value, new.overloaded, new.reads), (None, false, 0));
    assert_eq!((db.value, db.overloaded, db.reads, db.enter), (Some(0.85), true, 31, 0.95));
    assert!((db.level - 0.25).abs() < 1e-9, "as the new rule says: {db:?}");
    assert_eq!(report.transition_count, 1);
    // The same name, and something else behind it.
    let other = Signal::function("db", SECOND, || Some(0.1));
    rig.gate.set_signals([(other, rule())]).unwrap();
    let report = rig.gate.pressure().unwrap();
    assert!(!report.overloaded && report.signals[0].value == Some(0.1), "{report:?}");
    assert_eq!(report.transitions[1].cause, Cause::Removed);
    assert_eq!(report.transitions[1].to_string(), "signal \"db\" not overloaded any more: it was removed");
    assert_eq!(rig.shed(10, SHEDDABLE), 0);
    rig.gate.set_signals([]).unwrap();
    assert_eq!(rig.gate.pressure(), None);
    assert!(rig.reason(SHEDDABLE).is_none());
}

#[test]
fn signals_come_and_go_while_the_gate_is_in_use() {
    let clock = Arc::new(ManualClock::new(1_000 * MS));
    let gate = Gate::builder("live", 1_000).clock(clock.clone()).build().unwrap();
    let rig = Rig { gate, clock };
    assert_eq!(rig.gate.pressure(), None);
    rig.gate.set_signals([(Signal::pushed("db"), rule())]).unwrap();
    rig.hold(3, 0.85);
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
    rig.gate.set_signals([]).unwrap();
    assert_eq!(rig.shed(10, SHEDDABLE), 0);
    rig.gate.set_signals([(Signal::pushed("db"), rule())]).unwrap();
    assert_eq!(rig.gate.pressure().unwrap().signals[0].reads, 0, "what was gone starts anew");
}

#[test]
fn new_transitions_are_told_from_those_before() {
    let rig = Rig::pushed();
    assert_eq!((rig.gate.pressure_transitions(), rig.gate.pressure_transitions_after(0)), (0, vec![]));
    rig.hold(3, 0.85);
    rig.hold(11, 0.2);
    assert_eq!(rig.gate.pressure_transitions(), 2);
    let numbers = |after| -> Vec<_> {
        rig.gate.pressure_transitions_after(after).iter().map(|transition| transition.number).collect()
    };
    assert_eq!((numbers(0), numbers(1), numbers(2)), (vec![1, 2], vec![2], vec![]));
    rig.hold(6, 0.85);
    rig.gate.set_signals([]).unwrap();
    assert_eq!(rig.gate.pressure_transitions(), 4, "that one was taken away is told, too");
}

#[test]
fn stats_have_the_level_for_as_long_as_it_holds() {
    let rig = Rig::pushed();
    let shown = || (rig.gate.stats().pressure, rig.gate.stats().overloaded);
    assert_eq!(shown(), (Some(0.0), false));
    rig.hold(3, 0.85);
    let (level, overloaded) = shown();
    assert!((level.unwrap() - 0.5).abs() < 1e-9 && overloaded);
    let other = Gate::new("pressed", 1).unwrap();
    let sum = &GateSum::of([&rig.gate, &other])[0];
    assert_eq!((sum.pressure, sum.overloaded), (level, Some(1)));
    assert_eq!((GateSum::of([&other])[0].pressure, GateSum::of([&other])[0].overloaded), (None, None));
    rig.clock.advance(4_000 * MS);
    assert_eq!(shown(), (level, true));
    rig.clock.advance(3_000 * MS);
    assert_eq!(shown(), (Some(0.0), false), "nobody has looked for five seconds");
    rig.hold(3, 0.85);
    rig.gate.set_signals([]).unwrap();
    assert_eq!(shown(), (None, false));
    rig.gate.set_signals([(Signal::pushed("db"), rule())]).unwrap();
    assert_eq!(shown(), (Some(0.0), false));
}

/// Other processes read it, and do not take the last request's for today's.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn a_published_gate_shows_its_level_for_as_long_as_it_holds() {
    let directory = std::env::temp_dir().join(format!("tidegate-test-shown-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let rig = Rig::new(|builder| builder.publish_in(&directory));
    let shown = || {
        let sum = crate::Published::read(&directory).unwrap().sums().remove(0);
        (sum.pressure, sum.overloaded)
    };
    assert_eq!(shown(), (Some(0.0), Some(0)));
    rig.hold(3, 0.85);
    let level = rig.gate.pressure().unwrap().level;
    assert_eq!(shown(), (Some(level), Some(1)));
    let five_seconds_ago = uptime_ns().saturating_sub(5_001 * MS);
    rig.gate.inner.state.config.shown.store(level, true, five_seconds_ago);
    assert_eq!(shown(), (Some(0.0), Some(0)));
    std::fs::remove_dir_all(directory).unwrap();
}

/// What a file says of signals, in one step with the rest.
#[cfg(feature = "file")]
#[test]
fn a_reload_changes_signals_and_keeps_those_that_stay() {
    use crate::monitor::Watchlist;
    use crate::reconfigure::Settings;

    let rig = Rig::pushed();
    rig.hold(3, 0.85);
    let list = |signals: &[(Kind, f64)]| {
        let signal = |&(kind, enter): &(Kind, f64)| {
            let rule = rule().between(enter, 0.1, 1.0).unwrap();
            (if kind == Kind::Pushed { Signal::pushed("db") } else { Signal::of(kind) }, rule)
        };
        Watchlist::new(signals.iter().map(signal), Some(SECOND)).unwrap()
    };
    let generation = || rig.gate.stats().generation;
    let before = generation();
    let to = |signals| Settings { signals, ..rig.gate.settings() };
    let more = to(list(&[(Kind::Errors, 0.9), (Kind::Pushed, 0.9)]));
    let was = rig.gate.configure(&more, "reload");
    assert!(was.signals != more.signals && rig.gate.settings() == more);
    assert_eq!(generation(), before + 1);
    let report = rig.gate.pressure().unwrap();
    assert_eq!((&*report.signals[0].name, report.signals[1].value), ("errors", Some(0.85)));
    assert!(report.signals[1].overloaded && (report.level - 0.75 / 0.9).abs() < 1e-9, "{report:?}");
    let _ = rig.gate.configure(&to(list(&[(Kind::Errors, 0.9), (Kind::Pushed, 0.9)])), "reload");
    assert_eq!(generation(), before + 1, "the same once more changes nothing");
    let _ = rig.gate.configure(&to(list(&[])), "reload");
    assert!(rig.gate.pressure().is_none() && rig.shed(10, SHEDDABLE) == 0);
    assert_eq!(rig.gate.stats().generation, before + 2);
}

/// What pressure sheds says nothing of the limit.
#[test]
fn pressure_is_no_refusal_to_a_controller() {
    use crate::controller::{Bounds, Kind as Controller};

    for enforce in [true, false] {
        let bounds = Bounds::new(1, 100, 50).unwrap();
        let rig = Rig::new(|builder| builder.controller(Controller::Aimd, bounds).enforce(enforce));
        rig.hold(3, 0.85);
        let tickets: Vec<_> = (0..10).filter_map(|_| rig.gate.take(SHEDDABLE).ok()).collect();
        assert_eq!(tickets.len(), if enforce { 0 } else { 10 });
        let reading = rig.gate.inner.read_at_rest(rig.gate.now_ns(), 1).unwrap();
        assert_eq!((reading.refusals, reading.priority_refusals), (0, 0));
        assert_eq!(reading.admissions, 31);
        for ticket in tickets {
            rig.gate.put(ticket, Outcome::Success);
        }
    }
}

/// D31: in a container of half a CPU the gate sheds by what that half does.
#[test]
fn d31_a_fraction_of_a_cpu_is_what_is_pressed() {
    let tree = Tree::version_two("/app");
    let group = "sys/fs/cgroup/app";
    tree.write(&format!("{group}/cpu.max"), "50000 100000");
    let used = |us: u64| tree.write(&format!("{group}/cpu.stat"), format!("usage_usec {us}\n"));
    used(0);
    let clock = Arc::new(ManualClock::new(1_000 * MS));
    let root = tree.root();
    let cpu = Signal::new("cpu", move || Cpu::below(root.clone()));
    let gate = Gate::builder("d31", 9).signals([(cpu, rule())]).clock(clock.clone()).build().unwrap();
    let rig = Rig { gate, clock };
    // 0.46 CPUs of the half: 0.92 of what is allowed. One reading that fails changes nothing.
    for step in 1..=40u64 {
        rig.clock.advance(250 * MS);
        if step == 30 {
            tree.remove(&format!("{group}/cpu.stat"));
        } else {
            used(step * 115_000);
        }
        drop(rig.gate.try_admit(Priority::CriticalPlus));
    }
    let report = rig.gate.pressure().unwrap();
    let value = report.signals[0].value.unwrap();
    assert!((value - 0.92).abs() < 0.01 && report.overloaded, "{report:?}");
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
    assert_eq!(report.transition_count, 1);
}

mod own;
