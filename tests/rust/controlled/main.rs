//! A gate whose limit a controller moves: what it measures, when somebody looks, and what stands of it.

mod around;
mod faults;
mod looks;
mod windows;

use std::sync::Arc;

use tidegate::controller::{Bounds, Kind, Window};
use tidegate::{Gate, GateBuilder, ManualClock, Outcome, Priority, Reading};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const CRITICAL: Priority = Priority::Critical;

pub(crate) fn bounds(min: u32, max: u32, prior: u32) -> Bounds {
    Bounds::new(min, max, prior).expect("valid bounds")
}

pub(crate) struct Rig {
    pub(crate) gate: Gate,
    pub(crate) clock: Arc<ManualClock>,
}

impl Rig {
    pub(crate) fn new(build: impl FnOnce(GateBuilder) -> GateBuilder) -> Self {
        let clock = Arc::new(ManualClock::new(0));
        let builder = Gate::builder("db", 4).clock(clock.clone());
        Self { gate: build(builder).build().expect("a valid gate"), clock }
    }

    pub(crate) fn controlled(kind: Kind, bounds: Bounds) -> Self {
        Self::new(|builder| builder.controller(kind, bounds))
    }

    pub(crate) fn reading(&self) -> Reading {
        self.gate.reading().expect("nobody else is here")
    }

    /// So many one after the other, each for `ns`.
    pub(crate) fn serve(&self, count: u64, ns: u64, outcome: Outcome) {
        for _ in 0..count {
            let permit = self.gate.try_admit(CRITICAL).expect("there is room");
            self.clock.advance(ns);
            permit.release(outcome);
        }
    }

    pub(crate) fn looks(&self) -> u64 {
        self.gate.controller().expect("there is one").looks
    }
}

#[track_caller]
pub(crate) fn assert_close(got: f64, wanted: f64, within: f64) {
    assert!((got - wanted).abs() <= within * wanted.abs().max(1e-12), "{got} instead of {wanted}");
}

/// Everything of two windows that a controller looks at.
#[track_caller]
pub(crate) fn assert_same(got: &Window, wanted: &Window) {
    assert_eq!(
        (got.elapsed_ns, got.completions, got.good, got.overload, got.admissions, got.refusals),
        (
            wanted.elapsed_ns,
            wanted.completions,
            wanted.good,
            wanted.overload,
            wanted.admissions,
            wanted.refusals
        )
    );
    assert_close(got.latency_sum, wanted.latency_sum, 5e-4); // counted in 16 ns
    assert_close(got.latency_square_sum, wanted.latency_square_sum, 1e-9);
    assert_close(got.latency_log_sum, wanted.latency_log_sum, 1e-4);
    assert_close(got.latency_log_square_sum, wanted.latency_log_square_sum, 1e-4);
}
