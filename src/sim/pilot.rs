//! Moves the gate's limit by its controller, until gates do so themselves.

use super::door::Answer;
use crate::controller::{AnyController, Controller, Window};
use crate::outcome::Outcome;
use crate::shed::Reason;

#[derive(Debug)]
pub(super) struct Pilot {
    controller: AnyController,
    objective_ns: u64,
    window: Window,
    from_ns: u64,
    since_ns: u64,
    in_flight: u32,
    look_ns: u64,
}

impl Pilot {
    pub(super) fn new(builder: &crate::GateBuilder, gate: &crate::Gate) -> Option<Self> {
        let (kind, bounds) = builder.controller?;
        let controller = kind.start(bounds);
        let first = controller.begin();
        gate.set_limit(first.limit, None).expect("valid");
        Some(Self {
            controller,
            objective_ns: builder.objective.map_or(u64::MAX, super::rules::nanos),
            window: Window::default(),
            from_ns: 0,
            since_ns: 0,
            in_flight: 0,
            look_ns: first.look_after_ns,
        })
    }

    fn elapse(&mut self, now_ns: u64) {
        self.window.in_flight_seconds += f64::from(self.in_flight) * (now_ns - self.since_ns) as f64 / 1e9;
        self.since_ns = now_ns;
    }

    pub(super) fn asked(&mut self, now_ns: u64, gate: &crate::Gate, answer: Answer) {
        self.elapse(now_ns);
        match answer {
            Answer::Admitted(_) => self.window.admissions += 1,
            Answer::Shed(Reason::Limit) => self.window.refusals += 1,
            Answer::Shed(Reason::Priority) => self.window.priority_refusals += 1,
            _ => {}
        }
        self.tick(now_ns, gate);
    }

    pub(super) fn left(&mut self, now_ns: u64, gate: &crate::Gate, took_ns: u64, outcome: Outcome) {
        self.elapse(now_ns);
        if outcome != Outcome::Ignore {
            let good = outcome == Outcome::Success && took_ns <= self.objective_ns;
            self.window.complete(took_ns, good, outcome == Outcome::Overload);
        }
        self.tick(now_ns, gate);
    }

    fn tick(&mut self, now_ns: u64, gate: &crate::Gate) {
        self.in_flight = gate.in_flight();
        self.window.highest_in_flight = self.window.highest_in_flight.max(self.in_flight);
        if now_ns < self.look_ns {
            return;
        }
        self.window.elapsed_ns = now_ns - self.from_ns;
        let decision = self.controller.look(&self.window);
        self.window = Window { highest_in_flight: self.in_flight, ..Window::default() };
        self.from_ns = now_ns;
        self.look_ns = now_ns + decision.look_after_ns;
        if decision.limit != gate.limit() {
            gate.set_limit(decision.limit, Some(decision.cause.as_str())).expect("valid");
        }
    }
}
