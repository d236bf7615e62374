//! The signals that a gate measures of itself.

use super::*;
use crate::ask::{Ask, Weight};

/// A gate with an objective of a second and the signal of `kind`, overloaded at 0.85 at once.
fn rig(kind: Kind) -> Rig {
    let clock = Arc::new(ManualClock::new(1_000 * MS));
    let rule = rule().holding(Duration::ZERO, Duration::ZERO).resting(Duration::ZERO);
    let builder = Gate::builder("own", 1_000).objective(SECOND).signals([(Signal::of(kind), rule)]);
    Rig { gate: builder.clock(clock.clone()).build().unwrap(), clock }
}

impl Rig {
    /// Ten at once are inside for so long, and leave with these outcomes.
    fn ten(&self, ms: u64, overload: usize) {
        let tickets: Vec<_> = (0..10).map(|_| self.gate.take(Priority::CriticalPlus).unwrap()).collect();
        self.clock.advance(ms * MS);
        for (place, ticket) in tickets.into_iter().enumerate() {
            self.gate.put(ticket, if place < overload { Outcome::Overload } else { Outcome::Success });
        }
    }

    fn value(&self) -> Option<f64> {
        self.gate.pressure().unwrap().signals[0].value
    }

    fn detail(&self, name: &str) -> f64 {
        let details = self.gate.pressure().unwrap().signals[0].details.clone();
        details.into_iter().find(|detail| detail.0 == name).unwrap().1
    }
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-9
}

#[test]
fn latency_is_the_mean_against_the_objective() {
    let rig = rig(Kind::Latency);
    assert_eq!(rig.value(), None, "one look is no window");
    rig.ten(500, 0);
    rig.clock.advance(500 * MS);
    assert!(near(rig.value().unwrap(), 0.5), "{:?}", rig.value());
    assert!(near(rig.detail("mean_s"), 0.5) && near(rig.detail("completions_per_s"), 10.0));
    rig.ten(900, 0);
    rig.clock.advance(100 * MS);
    assert!(near(rig.value().unwrap(), 0.9), "the window before is over: {:?}", rig.value());
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
    rig.ten(3_000, 0);
    assert!(near(rig.value().unwrap(), 1.0), "cut");
    assert!(near(rig.detail("mean_s"), 3.0));
}

#[test]
fn bare_entries_have_latency_and_weights_count() {
    let rig = rig(Kind::Latency);
    rig.value();
    for _ in 0..9 {
        rig.gate.enter(Some(Priority::CriticalPlus)).unwrap();
    }
    let heavy = rig.gate.take(Ask::from(Priority::CriticalPlus).weight(Weight::new(11).unwrap())).unwrap();
    rig.clock.advance(600 * MS);
    for _ in 0..9 {
        assert!(rig.gate.exit(Outcome::Success));
    }
    rig.clock.advance(400 * MS);
    rig.gate.put(heavy, Outcome::Success);
    // 9 of 0.6 s, and 11 of 1 s.
    assert!(near(rig.value().unwrap(), (9.0 * 0.6 + 11.0) / 20.0), "{:?}", rig.value());
}

/// What hangs counts while it hangs.
#[test]
fn what_hangs_is_seen_before_it_ends() {
    let rig = rig(Kind::Latency);
    rig.value();
    rig.ten(100, 0);
    let hanging: Vec<_> = (0..10).map(|_| rig.gate.take(Priority::CriticalPlus).unwrap()).collect();
    rig.clock.advance(900 * MS);
    assert!(near(rig.value().unwrap(), 1.0), "ten have left, and twenty were inside: {:?}", rig.value());
    for ticket in hanging {
        rig.gate.put(ticket, Outcome::Success);
    }
}

#[test]
fn errors_are_the_share_that_ended_in_overload() {
    let rig = rig(Kind::Errors);
    assert_eq!(rig.value(), None);
    for ticket in [(); 100].map(|()| rig.gate.take(Priority::CriticalPlus).unwrap()) {
        rig.gate.put(ticket, Outcome::Ignore);
    }
    rig.ten(1_000, 9);
    assert!(near(rig.value().unwrap(), 0.9), "what is ignored is no completion: {:?}", rig.value());
    assert!(near(rig.detail("completions"), 10.0));
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
    rig.ten(1_000, 0);
    assert!(near(rig.value().unwrap(), 0.0));
    assert_eq!(rig.shed(10, SHEDDABLE), 0);
}

/// D20: three failures after a start, or a lone request that took for ever, are no overload.
#[test]
fn d20_too_few_completions_are_unknown() {
    for kind in [Kind::Errors, Kind::Latency] {
        let rig = rig(kind);
        rig.value();
        for _ in 0..9 {
            let ticket = rig.gate.take(Priority::CriticalPlus).unwrap();
            rig.clock.advance(5_000 * MS);
            rig.gate.put(ticket, Outcome::Overload);
            assert_eq!((rig.value(), rig.shed(10, SHEDDABLE)), (None, 0), "{kind}");
            // What the ten let in left at once, and is no failure: start anew.
            rig.clock.advance(61_000 * MS);
            rig.value();
        }
    }
}

#[test]
fn after_a_silence_what_was_is_forgotten() {
    let rig = rig(Kind::Errors);
    rig.value();
    rig.ten(1_000, 10);
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
    rig.clock.advance(3_600_000 * MS);
    assert_eq!(rig.shed(10, SHEDDABLE), 0);
    assert_eq!(rig.gate.pressure().unwrap().transitions.last().unwrap().cause, Cause::Unknown);
    rig.ten(1_000, 10);
    assert_eq!(rig.shed(10, SHEDDABLE), 0, "half of twenty, with those that were let in");
    rig.ten(1_000, 10);
    rig.ten(1_000, 10);
    assert_eq!(rig.shed(10, SHEDDABLE), 10);
}

#[test]
fn the_kinds_have_defaults_that_fit() {
    let signals = Kind::ALL.map(|kind| (Signal::of(kind), kind.rule()));
    let gate = Gate::builder("all", 9).objective(SECOND).signals(signals).build().unwrap();
    let report = gate.pressure().unwrap();
    assert_eq!(report.signals.len(), 8);
    for signal in report.signals {
        let errors = signal.kind == Some(Kind::Errors);
        let expected = if errors { (0.05, 0.10, 0.5) } else { (0.70, 0.85, 1.0) };
        assert_eq!((signal.leave, signal.enter, signal.full), expected);
    }
}
