//! What a reload does to the gates that are there, and what it says of it.

use super::change::{Change, Difference};
use super::content::NamedGate;
use super::controller::ControllerTable;
use super::gates::Entry;
use super::signals::SignalTable;
use crate::controller::Bounds;
use crate::gate::Gate;

/// What a reload makes true, and what it says of it.
#[derive(Default)]
pub(super) struct Changes(pub(super) Vec<Change>);

impl Changes {
    pub(super) fn add(&mut self, gate: &Gate, difference: Difference) {
        self.0.push(Change { gate: Some(gate.name().into()), difference });
    }

    /// Makes a gate that is there what the file says: changed before it is opened, so that it opens as that.
    pub(super) fn follow(&mut self, entry: &Entry, named: &NamedGate) {
        let gate = &entry.gate;
        let (before, after) = (&entry.table, &named.table);
        let mut to = after.settings();
        let found = gate.limit();
        let begun = after.controller.and_then(|controller| controller.after(before.controller, found));
        to.controller = match (after.controller, begun) {
            (Some(controller), Some(bounds)) => Some((controller.kind, bounds)),
            (Some(_), None) => gate.settings().controller, // which goes on
            (None, _) => None,
        };
        to.limit = to.controller.map_or(to.limit, |(_, bounds)| bounds.prior());
        let from = gate.configure(&to, Difference::CAUSE);
        let was = if from.controller.is_some() { found } else { from.limit };
        let is = if to.controller.is_some() && begun.is_none() { was } else { to.limit };
        if !entry.listed {
            let opened = gate.reinstate();
            let reopened = Difference::Reopened { in_flight: gate.in_flight() };
            self.add(gate, if opened { reopened } else { Difference::StaysClosed });
        }
        self.differ(gate, was, is, |from, to| Difference::Limit { from, to });
        self.differ(gate, from.thresholds, to.thresholds, |from, to| Difference::Thresholds { from, to });
        self.differ(gate, from.rate, to.rate, |from, to| Difference::Rate { from, to });
        self.differ(gate, before.objective, after.objective, |from, to| Difference::Objective { from, to });
        self.controllers(gate, before.controller, after.controller, begun);
        self.signals(gate, &before.signals, &after.signals);
        self.differ(gate, from.default_priority, to.default_priority, |from, to| {
            Difference::DefaultPriority { from, to }
        });
        self.differ(gate, from.enforce, to.enforce, |from, to| Difference::Enforce { from, to });
    }

    fn differ<T: PartialEq>(&mut self, gate: &Gate, from: T, to: T, is: impl FnOnce(T, T) -> Difference) {
        if from != to {
            self.add(gate, is(from, to));
        }
    }

    /// `begun`: where a new one begins.
    fn controllers(
        &mut self,
        gate: &Gate,
        from: Option<ControllerTable>,
        to: Option<ControllerTable>,
        begun: Option<Bounds>,
    ) {
        let goes_on = begun.is_none() && to.is_some();
        if goes_on {
            let start = |table: Option<ControllerTable>| {
                table.filter(|table| table.choice.prior.is_none()).and_then(|table| table.limit)
            };
            self.differ(gate, start(from), start(to), |from, to| Difference::Start { from, to });
            return;
        }
        let from = from.map(|table| (table.kind, table.bounds));
        let to = to.zip(begun).map(|(table, bounds)| (table.kind, bounds));
        self.differ(gate, from, to, |from, to| Difference::Controller { from, to });
    }

    fn signals(&mut self, gate: &Gate, from: &[SignalTable], to: &[SignalTable]) {
        let is = |one: &SignalTable, other: &SignalTable| (one.kind, &one.name) == (other.kind, &other.name);
        for before in from.iter().filter(|before| !to.iter().any(|after| is(before, after))) {
            self.add(gate, Difference::SignalRemoved { name: before.name.clone() });
        }
        for after in to {
            let name = after.name.clone();
            match from.iter().find(|before| is(before, after)) {
                None => self.add(gate, Difference::SignalAdded { name }),
                Some(before) => self.differ(gate, before.rule, after.rule, |from, to| {
                    Difference::SignalChanged { name, from, to }
                }),
            }
        }
    }

    /// Closes a gate that the file has no more.
    pub(super) fn withdraw(&mut self, entry: &Entry) {
        if entry.listed {
            entry.gate.withdraw();
            self.add(&entry.gate, Difference::Removed { in_flight: entry.gate.in_flight() });
        }
    }
}
