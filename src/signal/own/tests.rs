use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// What the errors signal says at each of: seconds, completions until then, and those of them that failed.
fn errors(steps: &[(u64, u64, u64)]) -> Vec<Option<f64>> {
    let mut probe = Probe::new(What::Errors);
    let read = |&(second, completions, overload): &(u64, u64, u64)| {
        let figures = Figures { success: completions - overload, overload, ..Figures::default() };
        probe.read(second * SECOND_NS, &figures).value()
    };
    steps.iter().map(read).collect()
}

#[test]
fn a_window_has_ten_completions_and_a_second() {
    let readings = errors(&[(1, 0, 0), (2, 9, 9), (3, 10, 9), (4, 20, 9), (5, 25, 14)]);
    assert_eq!(readings, [None, None, Some(0.9), Some(0.0), Some(5.0 / 15.0)]);
    let quick = errors(&[(1, 0, 0), (1, 50, 50)]);
    assert_eq!(quick, [None, None], "in no time");
}

#[test]
fn a_window_moves_on_with_what_it_saw() {
    // Ten a second: each reading is of the last one or two of them.
    let steps =
        (1..=20).map(|second| (second, 10 * second, if second > 10 { 10 * (second - 10) } else { 0 }));
    let readings = errors(&steps.collect::<Vec<_>>());
    assert_eq!(readings[9], Some(0.0));
    assert_eq!(readings[10..], [Some(1.0); 10]);
}

#[test]
fn few_in_a_minute_say_nothing() {
    let readings = errors(&[(1, 0, 0), (31, 6, 6), (60, 9, 9), (61, 9, 9), (62, 19, 19), (63, 30, 30)]);
    assert_eq!(readings, [None, None, None, None, None, Some(1.0)]);
    let readings = errors(&[(1, 0, 0), (62, 100, 100), (63, 109, 100), (64, 110, 100)]);
    assert_eq!(readings, [None, None, None, Some(0.0)], "what came in a silence is not looked at");
}

#[test]
fn a_clock_or_counters_that_go_back_do_no_harm() {
    let readings = errors(&[(100, 50, 0), (3, 70, 20), (4, 80, 30)]);
    assert_eq!(readings, [None, None, Some(1.0)]);
    let readings = errors(&[(1, 50, 50), (2, 0, 0), (3, 10, 10)]);
    assert!(readings.iter().flatten().all(|value| (0.0..=1.0).contains(value)), "{readings:?}");
}

fn latency(objective: Option<Duration>, occupancy: [Option<u64>; 2]) -> Reading {
    let mut probe = Probe::new(What::Latency);
    let at = |occupancy_us, released| Figures {
        occupancy_us,
        released_weight: released,
        released,
        objective,
        ..Figures::default()
    };
    probe.read(SECOND_NS, &at(occupancy[0], 0));
    probe.read(2 * SECOND_NS, &at(occupancy[1], 10))
}

#[test]
fn latency_is_occupancy_by_what_left() {
    let second = Some(Duration::from_secs(1));
    assert_eq!(latency(second, [Some(0), Some(2_500_000)]).value(), Some(0.25));
    assert_eq!(latency(second, [Some(0), Some(25_000_000)]).value(), Some(1.0));
    let end = u64::MAX - 1_000_000;
    assert_eq!(latency(second, [Some(end), Some(1_499_999)]).value(), Some(0.25), "modulo 2^64");
    assert_eq!(latency(second, [Some(1), Some(0)]), Reading::UNKNOWN, "more has left than was there");
    for unknown in [
        latency(None, [Some(0), Some(1)]),
        latency(second, [None, Some(1)]),
        latency(second, [Some(0), None]),
    ] {
        assert_eq!(unknown, Reading::UNKNOWN);
    }
}
