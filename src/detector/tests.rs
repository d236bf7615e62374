use proptest::prelude::*;

use super::*;
use crate::priority::Priority;

const MS: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

fn known(value: f64) -> Reading {
    Reading::known(value).unwrap()
}

fn detector(rule: Rule) -> Detector {
    Detector::new([("cpu".into(), rule)])
}

/// Enter at 0.85 for 2 s, leave at 0.70 for 10 s, no rest, the level at once.
fn plain() -> Rule {
    Rule::default().resting(Duration::ZERO).rising_in(Duration::ZERO)
}

/// A detector of one signal on a clock of its own.
struct Bench {
    detector: Detector,
    now_ns: u64,
}

impl Bench {
    fn new(rule: Rule) -> Self {
        Self { detector: detector(rule), now_ns: 1 }
    }

    /// Looks every 100 ms, at the start and the end of `seconds`.
    fn hold(&mut self, seconds: f64, value: f64) -> &mut Self {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let steps = (seconds * 10.0).round() as u64;
        for step in 0..=steps {
            self.now_ns += if step == 0 { 0 } else { 100 * MS };
            self.look(known(value));
        }
        self
    }

    fn after(&mut self, seconds: u64, reading: Reading) -> bool {
        self.now_ns += seconds * 1_000 * MS;
        self.look(reading);
        self.overloaded()
    }

    fn look(&mut self, reading: Reading) -> Pressure {
        self.detector.look(self.now_ns, &[reading])
    }

    fn overloaded(&self) -> bool {
        self.detector.watched()[0].overloaded
    }

    fn causes(&self) -> Vec<Cause> {
        self.detector.history().map(|transition| transition.cause).collect()
    }
}

#[test]
fn it_enters_after_its_hold_and_leaves_after_its_own() {
    let mut bench = Bench::new(plain());
    assert!(!bench.hold(1.9, 0.85).overloaded());
    assert!(bench.hold(0.1, 0.85).overloaded());
    assert!(bench.hold(60.0, 0.71).overloaded(), "between the thresholds it stays");
    assert!(bench.hold(9.9, 0.70).overloaded());
    assert!(!bench.hold(0.1, 0.70).overloaded());
    assert!(!bench.hold(60.0, 0.84).overloaded(), "between the thresholds it stays");
    assert_eq!(bench.causes(), [Cause::Entered, Cause::Left]);
}

#[test]
fn a_hold_that_is_interrupted_starts_anew() {
    let mut bench = Bench::new(plain());
    for _ in 0..10 {
        assert!(!bench.hold(1.9, 1.0).hold(0.0, 0.84).overloaded());
    }
    assert!(bench.hold(2.0, 1.0).overloaded());
    for _ in 0..10 {
        assert!(bench.hold(9.9, 0.0).hold(0.0, 0.71).overloaded());
    }
}

#[test]
fn it_rests_after_a_change() {
    let mut bench = Bench::new(plain().resting(30 * SECOND));
    assert!(bench.hold(2.0, 1.0).overloaded(), "there was no change before");
    assert!(bench.hold(29.9, 0.0).overloaded());
    assert!(!bench.hold(0.1, 0.0).overloaded());
    assert!(!bench.hold(29.9, 1.0).overloaded());
    assert!(bench.hold(0.1, 1.0).overloaded());
}

#[test]
fn unknown_is_not_overload() {
    let mut bench = Bench::new(plain());
    for _ in 0..100 {
        assert!(!bench.after(1, Reading::UNKNOWN));
    }
    bench.hold(2.0, 1.0);
    assert!(!bench.after(0, Reading::UNKNOWN), "at once, whatever the holds");
    assert_eq!(bench.look(Reading::UNKNOWN), Pressure::default());
    assert!(!bench.hold(1.9, 1.0).overloaded(), "and the hold starts anew");
    bench.after(0, Reading::UNKNOWN);
    assert!(!bench.hold(1.9, 1.0).overloaded());
    assert_eq!(bench.causes(), [Cause::Entered, Cause::Unknown]);
    let pressure = bench.detector.look(bench.now_ns, &[]);
    assert_eq!(pressure, Pressure::default(), "a reading that is missing is unknown");
}

#[test]
fn after_a_silence_the_fresh_reading_decides() {
    let quiet = plain().quiet().as_secs();
    for (after, value, overloaded) in
        [(quiet, 0.2, true), (quiet + 1, 0.2, false), (3_600, 0.84, false), (3_600, 0.85, true)]
    {
        let mut bench = Bench::new(plain());
        bench.hold(2.0, 1.0);
        assert_eq!(bench.after(after, known(value)), overloaded, "{value} after {after} s");
        assert_eq!(bench.causes().contains(&Cause::Silence), !overloaded);
    }
}

#[test]
fn a_silence_does_not_count_as_a_hold() {
    let mut bench = Bench::new(plain());
    bench.hold(0.0, 1.0);
    assert!(!bench.after(3_600, known(1.0)), "two readings an hour apart are no two seconds");
    assert!(bench.after(2, known(1.0)));
    let seldom = 9;
    let mut bench = Bench::new(plain());
    assert!(!bench.after(seldom, known(1.0)));
    assert!(bench.after(seldom, known(1.0)), "who looks seldom sees overload, too");
}

#[test]
fn after_a_silence_a_level_stays_where_it_was() {
    let mut bench = Bench::new(plain().rising_in(20 * SECOND));
    let before = bench.hold(7.0, 1.0).look(known(1.0)).level;
    bench.now_ns += 3_600 * 1_000 * MS;
    assert_eq!(bench.look(known(1.0)).level, before);
    bench.now_ns += 1_000 * MS;
    assert!(bench.look(known(1.0)).level > before);
}

#[test]
fn it_leaves_once_its_level_has_come_down() {
    let mut bench = Bench::new(plain().rising_in(40 * SECOND));
    bench.hold(22.0, 1.0);
    assert!(bench.hold(19.9, 0.1).overloaded(), "half of a level, half of the ramp");
    assert!(!bench.hold(0.4, 0.1).overloaded());
    assert_eq!(bench.causes(), [Cause::Entered, Cause::Left]);
}

#[test]
fn a_clock_that_goes_back_keeps_nothing() {
    let mut bench = Bench::new(Rule::default());
    bench.now_ns = 3_600 * 1_000 * MS;
    bench.hold(2.0, 1.0);
    bench.now_ns = 1;
    bench.look(known(0.2));
    assert_eq!((bench.overloaded(), bench.causes()), (false, vec![Cause::Entered, Cause::Silence]));

    let mut bench = Bench::new(Rule::default());
    bench.now_ns = 3_600 * 1_000 * MS;
    bench.hold(2.0, 1.0).hold(20.0, 0.1);
    bench.now_ns = 1;
    assert!(bench.hold(7.0, 1.0).overloaded(), "it rests no hour");
}

#[test]
fn a_thread_that_read_the_clock_first_and_looks_last_changes_nothing() {
    let mut bench = Bench::new(plain());
    bench.hold(2.0, 1.0);
    bench.now_ns -= MS;
    assert!(!bench.after(0, Reading::UNKNOWN) && !bench.hold(1.9, 1.0).overloaded());
    assert!(bench.hold(0.2, 1.0).overloaded());
    bench.now_ns -= 4_000 * MS;
    assert!(bench.after(0, known(0.2)), "no silence");
    assert!(bench.hold(9.9, 0.2).overloaded());
}

#[test]
fn the_level_is_where_the_reading_lies_between_leave_and_full() {
    let mut bench = Bench::new(plain());
    bench.hold(2.0, 1.0);
    for (value, level) in [(1.0, 1.0), (0.85, 0.5), (0.7, 0.0), (0.2, 0.0), (0.775, 0.25)] {
        assert!((bench.look(known(value)).level - level).abs() < 1e-9, "{value}");
    }
    let rule = Rule::new(0.5, 0.4, 0.6).unwrap().rising_in(Duration::ZERO);
    let mut bench = Bench::new(rule);
    assert_eq!(bench.hold(2.0, 0.9).look(known(0.9)).level, 1.0);
}

#[test]
fn the_level_rises_in_its_ramp_and_falls_in_it() {
    let mut bench = Bench::new(plain().rising_in(20 * SECOND));
    bench.hold(2.0, 1.0);
    let entered = bench.look(known(1.0)).level;
    assert!(entered <= 0.005 + 1e-9, "{entered}");
    bench.hold(10.0, 1.0);
    let half = bench.look(known(1.0)).level;
    assert!((half - entered - 0.5).abs() < 1e-6, "{half}");
    assert_eq!(bench.hold(20.0, 1.0).look(known(1.0)).level, 1.0);
    bench.hold(5.0, 0.5);
    let fallen = bench.look(known(0.5)).level;
    assert!((fallen - 0.75).abs() < 1e-6, "{fallen}");
    assert_eq!(bench.look(Reading::UNKNOWN).level, 0.0);
}

#[test]
fn of_several_signals_the_worst_counts() {
    let names = ["cpu", "memory", "db"];
    let mut detector = Detector::new(names.map(|name| (name.into(), plain())));
    let mut look = |second: u64, values: [Option<f64>; 3]| {
        detector.look(second * 1_000 * MS, &values.map(|value| value.map_or(Reading::UNKNOWN, known)))
    };
    let all_high = [Some(0.85), Some(0.97), Some(0.1)];
    look(1, all_high);
    let pressure = look(3, all_high);
    assert_eq!(pressure.worst, Some(1));
    assert!((pressure.level - 0.9).abs() < 1e-9, "no mean, no sum: {pressure:?}");
    assert_eq!(look(4, [Some(0.97), Some(0.85), Some(0.1)]).worst, Some(0));
    let pressure = look(5, [Some(0.85), None, Some(0.1)]);
    assert_eq!(pressure.worst, Some(0));
    assert!((pressure.level - 0.5).abs() < 1e-9, "{pressure:?}");
    assert_eq!(pressure.shares().share(Priority::Sheddable), 1.0);
    assert_eq!(
        detector.history().map(|change| &*change.signal).collect::<Vec<_>>(),
        ["cpu", "memory", "memory"]
    );
}

#[test]
fn transitions_say_what_they_rest_on() {
    let mut bench = Bench::new(plain());
    bench.hold(2.0, 0.91).hold(10.0, 0.5);
    bench.hold(2.0, 0.91).after(0, Reading::UNKNOWN);
    bench.hold(2.0, 0.91).after(60, known(0.8));
    let texts: Vec<_> = bench.detector.history().map(ToString::to_string).collect();
    assert_eq!(
        texts[..4],
        [
            "signal \"cpu\" overloaded: 0.91 is at or above 0.85 for 2.0 s",
            "signal \"cpu\" not overloaded any more: 0.50 is at or below 0.7 for 10.0 s",
            "signal \"cpu\" overloaded: 0.91 is at or above 0.85 for 2.0 s",
            "signal \"cpu\" not overloaded any more: it is unknown",
        ]
    );
    assert_eq!(texts[5], "signal \"cpu\" not overloaded any more: 0.80 is below 0.85, after a silence");
    let first = bench.detector.history().next().unwrap();
    assert_eq!((first.number, first.at_ns, first.held), (1, 1 + 2_000 * MS, 2 * SECOND));
}

#[test]
fn the_history_is_bounded_and_numbered() {
    let mut bench = Bench::new(plain().holding(Duration::ZERO, Duration::ZERO));
    for _ in 0..100 {
        bench.hold(0.0, 1.0).hold(0.0, 0.0).hold(0.0, 0.0);
    }
    let numbers: Vec<_> = bench.detector.history().map(|transition| transition.number).collect();
    assert_eq!(numbers, (137..=200).collect::<Vec<_>>());
}

#[test]
fn thresholds_that_make_no_band_are_refused() {
    for (enter, leave, full) in [
        (0.7, 0.7, 1.0),
        (0.7, 0.8, 1.0),
        (0.7, -0.1, 1.0),
        (0.9, 0.7, 0.8),
        (0.9, 0.7, 1.1),
        (f64::NAN, 0.5, 1.0),
        (0.9, f64::NAN, 1.0),
        (0.9, 0.5, f64::NAN),
        (85.0, 70.0, 100.0),
    ] {
        let refused = Rule::new(enter, leave, full).unwrap_err().to_string();
        assert!(refused.contains(&format!("leave {leave}, enter {enter}, full {full}")), "{refused}");
    }
    assert_eq!(Rule::new(0.85, 0.7, 1.0).unwrap(), Rule::default());
}

/// Any readings at any times: changes are bounded by the holds, and what does not hold is never kept.
#[test]
fn no_input_makes_it_flutter() {
    let reading = prop_oneof![
        1 => Just(Reading::UNKNOWN),
        4 => (0.0..=1.0).prop_map(known),
        4 => Just(known(0.9)),
        4 => Just(known(0.5)),
    ];
    let step = (prop_oneof![10 => 0..500u64, 2 => 500..5_000u64, 1 => 5_000..100_000u64], reading);
    let holds = (0..4u32, 0..4u32, 0..4u32);
    proptest!(|(steps in prop::collection::vec(step, 1..400), (enter_for, leave_for, dwell) in holds)| {
        let rule = Rule::default().holding(enter_for * SECOND, leave_for * SECOND).resting(dwell * SECOND);
        let mut bench = Bench::new(rule);
        for (ms, reading) in steps {
            bench.now_ns += ms * MS;
            let pressure = bench.look(reading);
            prop_assert!((0.0..=1.0).contains(&pressure.level));
            prop_assert_eq!(pressure.worst.is_some(), pressure.level > 0.0);
            prop_assert!(bench.overloaded() || pressure.level == 0.0);
            prop_assert!(reading != Reading::UNKNOWN || !bench.overloaded());
        }
        let history: Vec<_> = bench.detector.history().cloned().collect();
        for pair in history.windows(2) {
            prop_assert_ne!(pair[0].overloaded(), pair[1].overloaded());
            let apart = Duration::from_nanos(pair[1].at_ns - pair[0].at_ns);
            let least = match pair[1].cause {
                Cause::Entered => rule.enter_for.max(rule.dwell),
                Cause::Left => rule.leave_for.max(rule.dwell),
                Cause::Unknown | Cause::Silence | Cause::Removed => Duration::ZERO,
            };
            prop_assert!(apart >= least, "{:?}", pair);
        }
    });
}
