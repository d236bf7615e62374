//! The gate that requests come to: the real one, on a clock that the simulator sets before every call.

use std::sync::Arc;

use crate::ask::Ask;
use crate::clock::ManualClock;
use crate::config::GateBuilder;
use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::permit::Ticket;
use crate::shed::Reason;

use super::arrivals::Class;
use super::rules::ScenarioError;
use super::signals::Push;

/// What a request has of the gate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holding {
    /// There is no gate.
    Nothing,
    Permit(Ticket),
    Bare,
}

/// What the gate says.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    Admitted(Holding),
    /// Let in by a dry run, although enforcement would have shed it.
    Over(Holding),
    Shed(Reason),
}

#[derive(Debug)]
pub(super) struct Door {
    gate: Option<Gate>,
    clock: Arc<ManualClock>,
    bare: bool,
}

impl Door {
    pub(super) fn new(gate: Option<&GateBuilder>, bare: bool) -> Result<Self, ScenarioError> {
        let clock = Arc::new(ManualClock::new(0));
        let build = |builder: &GateBuilder| {
            // Nobody is to take it for a gate that protects something.
            let private = GateBuilder { directory: None, ..builder.clone() };
            private.clock(clock.clone()).build()
        };
        let gate = gate.map(build).transpose();
        let gate = gate.map_err(|error| ScenarioError::new("gate", error.to_string()))?;
        Ok(Self { gate, clock, bare })
    }

    pub(super) fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// All that follows happens at this moment.
    #[inline]
    pub(super) fn set_clock(&self, now_ns: u64) {
        self.clock.set(now_ns);
    }

    #[inline]
    pub(super) fn ask(&self, class: &Class) -> Answer {
        let Some(gate) = &self.gate else {
            return Answer::Admitted(Holding::Nothing);
        };
        if self.bare {
            return Self::enter(gate, class);
        }
        match gate.take(Ask::from(class.priority).weight(class.weight)) {
            Ok(ticket) if ticket.over() => Answer::Over(Holding::Permit(ticket)),
            Ok(ticket) => Answer::Admitted(Holding::Permit(ticket)),
            Err(shed) => Answer::Shed(shed.reason),
        }
    }

    /// A bare entry has nothing that says whether it was over the limit; but nobody else is at this gate, so
    /// what is in flight says it.
    fn enter(gate: &Gate, class: &Class) -> Answer {
        let before = gate.in_flight();
        match gate.enter(Some(class.priority)) {
            Ok(()) if gate.in_flight() == before => Answer::Over(Holding::Bare),
            Ok(()) => Answer::Admitted(Holding::Bare),
            Err(shed) => Answer::Shed(shed.reason),
        }
    }

    /// Checked before the run: the gate has the signal, and takes the value.
    pub(super) fn push(&self, push: &Push) {
        if let Some(gate) = &self.gate {
            let pushed = gate.signal(&push.signal, push.value, push.good_for);
            debug_assert_eq!(pushed, Ok(()));
        }
    }

    #[inline]
    pub(super) fn leave(&self, holding: Holding, outcome: Outcome) {
        match (&self.gate, holding) {
            (Some(gate), Holding::Permit(ticket)) => gate.put(ticket, outcome),
            (Some(gate), Holding::Bare) => {
                let left = gate.exit(outcome);
                debug_assert!(left, "everybody who entered leaves once");
            }
            (_, Holding::Nothing) | (None, _) => {}
        }
    }
}
