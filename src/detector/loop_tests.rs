//! The detector in a loop with what it measures: a machine whose CPU does what the gate lets in.

use super::*;
use crate::priority::{PRIORITIES, Priority};
use crate::signal::Average;

const STEP: Duration = Duration::from_millis(250);

/// What came of the second half of a hundred minutes.
#[derive(Debug)]
struct Outcome {
    /// The share of the CPU that was used, on average, and at the least moment.
    used: f64,
    lowest: f64,
    /// The least share of each priority's work that was let in at any moment.
    least: [f64; PRIORITIES],
    transitions: usize,
}

/// `offered`: work of each priority that arrives, in machines. What was let in is worked on for `service` steps.
fn run(rule: Rule, service: u32, offered: [f64; PRIORITIES]) -> Outcome {
    const STEPS: u32 = 4 * 6_000;
    let mut inside = VecDeque::new();
    let mut detector = Detector::new([("cpu".into(), rule)]);
    let mut average = Average::new(Duration::from_secs(1));
    let mut pressure = Pressure::default();
    let mut outcome = Outcome { used: 0.0, lowest: 1.0, least: [1.0; PRIORITIES], transitions: 0 };
    for step in 0..STEPS {
        let shares = Priority::ALL.map(|priority| 1.0 - pressure.shares().share(priority));
        let let_in: f64 = (0..PRIORITIES).map(|level| offered[level] * shares[level]).sum();
        inside.push_front(let_in / f64::from(service));
        inside.truncate(service as usize);
        let used = inside.iter().sum::<f64>().min(1.0);
        let reading = average.add(used, STEP).map_or(Reading::UNKNOWN, Reading::at_most_one);
        let now_ns = u64::from(step) * 250_000_000;
        pressure = detector.look(now_ns, &[reading]);
        if step >= STEPS / 2 {
            outcome.used += used * 2.0 / f64::from(STEPS);
            outcome.lowest = outcome.lowest.min(used);
            for (least, share) in outcome.least.iter_mut().zip(shares) {
                *least = least.min(share);
            }
        }
    }
    outcome.transitions = detector.history().count();
    outcome
}

/// More than the machine can do, by a half to ten times, with all the weight on one priority or on several.
const OVERLOADS: [[f64; PRIORITIES]; 6] = [
    [0.1, 0.5, 0.4, 1.0],
    [0.1, 1.4, 0.2, 0.3],
    [0.1, 2.0, 2.0, 5.0],
    [0.0, 2.0, 0.0, 0.0],
    [0.0, 5.0, 0.0, 0.0],
    [0.0, 0.0, 0.0, 2.0],
];

#[test]
fn overload_sheds_what_is_too_much_and_no_more() {
    // A quarter of a second's work with the default ramp, and 20 seconds' with 20 times that.
    for (service, ramp) in [(1, 20), (80, 400)] {
        for offered in OVERLOADS {
            let outcome = run(Rule::default().rising_in(ramp * Duration::from_secs(1)), service, offered);
            assert!((0.70..0.95).contains(&outcome.used), "{offered:?}: {outcome:?}");
            assert!(outcome.lowest > 0.55, "it never swings to idle: {offered:?}: {outcome:?}");
            assert!(outcome.least[0] >= 1.0, "critical_plus is spared: {offered:?}: {outcome:?}");
            assert_eq!(outcome.transitions, 1, "{offered:?}: {outcome:?}");
        }
    }
    let light = run(Rule::default(), 1, [0.1, 0.3, 0.2, 0.2]);
    assert_eq!((light.least, light.transitions), ([1.0; PRIORITIES], 0));
}

/// Where shedding the two sheddable priorities is enough, the others are not touched. Without the ramp they are.
#[test]
fn the_ramp_spares_what_matters() {
    let two_seconds = 8;
    let offered = OVERLOADS[0];
    let with = run(Rule::default(), two_seconds, offered);
    assert_eq!(with.least[..2], [1.0, 1.0], "{with:?}");
    let without = run(Rule::default().rising_in(Duration::ZERO), two_seconds, offered);
    assert!(without.least[0] < 0.9 && without.least[1] < 0.1, "{without:?}");
}
