//! The table of a controller: `[gates.NAME.controller]`.

use std::time::Duration;

use crate::controller::{Bounds, BoundsError, Choice, Kind};
use crate::document::{Table, Value, one_of};
use crate::error::MAX_LIMIT;

/// What a file says of a gate's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControllerTable {
    pub(crate) kind: Kind,
    /// As written: what of it changes is a change of the controller.
    pub(crate) choice: Choice,
    /// The gate's limit, where the file has one.
    pub(crate) limit: Option<u32>,
    /// What comes of it, with the gate's limit and objective.
    pub(crate) bounds: Bounds,
}

impl ControllerTable {
    /// What becomes of a gate that a file gave `before`, and that is at `limit` now: `None`, it goes on as it is.
    ///
    /// A controller that has to begin anew does so where the old one has come to, unless the file says now where to
    /// start: what was found under other bounds is the best that is known. The limit of the file says that only
    /// where there was no controller, or one that holds it.
    pub(super) fn after(self, before: Option<Self>, limit: u32) -> Option<Bounds> {
        let same = before.is_some_and(|before| self.is_as(before));
        if self.kind == Kind::Fixed {
            return (!same || limit != self.bounds.prior()).then_some(self.bounds);
        }
        if same {
            return None;
        }
        let wanted = match before.filter(|before| before.kind != Kind::Fixed) {
            Some(before) => self.choice.prior.filter(|_| self.choice.prior != before.choice.prior),
            None => self.choice.prior.or(self.limit),
        };
        Some(if wanted.is_some() { self.bounds } else { self.bounds.starting_at(limit) })
    }

    /// Whether it is the same controller, wherever it started.
    fn is_as(self, other: Self) -> bool {
        let here = |of: Self| (of.kind, of.choice, of.bounds.starting_at(of.bounds.min()));
        here(self) == here(other)
    }
}

/// Reads the controller of a gate with this limit and objective, and notes what breaks a rule: each bound at its own
/// line, the start at that of the limit where that is the start.
pub(super) fn controller(
    gate: &Table<'_>,
    limit: Option<u32>,
    objective: Option<Duration>,
) -> Option<ControllerTable> {
    let start = gate.value("limit");
    gate.table("controller", |table| {
        let kind = table.need("kind", one_of(&Kind::ALL.map(|kind| (kind.as_str(), kind))));
        let bound = |key| table.read(key, |value| whole(value, key));
        let choice =
            Choice { min: bound("min"), max: bound("max"), ceiling: bound("ceiling"), prior: bound("prior") };
        let all = [choice.min, choice.max, choice.ceiling, choice.prior];
        let read = ["min", "max", "ceiling", "prior"].into_iter().zip(all);
        if read.into_iter().any(|(key, bound)| table.has(key) && bound.is_none()) {
            return None; // noted; the others would be held against a default that nobody means
        }
        let bounds = choice.bounds(limit).and_then(|bounds| match objective {
            Some(objective) => bounds.objective(objective),
            None => Ok(bounds),
        });
        let bounds = bounds.map_err(|error| refuse(table, start.as_ref(), error)).ok()?;
        Some(ControllerTable { kind: kind?, choice, limit, bounds })
    })
    .flatten()
}

fn whole(value: &Value<'_>, key: &str) -> Result<u32, String> {
    let number = value.integer().ok().and_then(|number| u32::try_from(number).ok());
    number
        .filter(|number| (1..=MAX_LIMIT).contains(number))
        .ok_or_else(|| format!("{key} must be a whole number from 1 to {MAX_LIMIT}, got {}", value.shown()))
}

/// At the line that is likely to be changed for it.
fn refuse(table: &Table<'_>, limit: Option<&Value<'_>>, error: BoundsError) {
    let keys: &[&'static str] = match error {
        BoundsError::Max { .. } => &["max"],
        BoundsError::Ceiling { .. } => &["ceiling"],
        BoundsError::Prior { .. } => &["prior"],
        BoundsError::Min { .. } => &["min", "max"],
        // Noted where the objective stands.
        BoundsError::Objective | BoundsError::TwoObjectives { .. } => return,
    };
    let start = limit.filter(|_| matches!(error, BoundsError::Prior { .. }));
    match keys.iter().find_map(|key| table.value(key)).as_ref().or(start) {
        Some(value) => value.refuse(error),
        None => table.refuse(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document;
    use crate::file::GateTable;

    fn read(text: &str) -> Result<ControllerTable, Vec<String>> {
        document::read("f.toml", text, |root| root.table("gate", GateTable::read).flatten())
            .map(|gate| gate.and_then(|gate| gate.controller).expect("nothing was noted"))
            .map_err(|error| error.problems.iter().map(ToString::to_string).collect())
    }

    fn bounds(text: &str) -> (u32, u32, u32) {
        let bounds = read(text).unwrap().bounds;
        (bounds.min(), bounds.prior(), bounds.max())
    }

    #[test]
    fn the_limit_is_where_it_starts_and_may_be_left_out() {
        let goodput = "controller.kind = 'goodput'\n";
        assert_eq!(bounds(&format!("[gate]\n{goodput}")), (1, 32, 1_000));
        assert_eq!(bounds(&format!("[gate]\nlimit = 20\n{goodput}")), (1, 20, 1_000));
        assert_eq!(
            bounds("[gate]\nlimit = 20\n[gate.controller]\nkind = 'aimd'\nmin = 4\nmax = 200\nprior = 29"),
            (4, 29, 200)
        );
        assert_eq!(bounds("[gate]\nlimit = 20\ncontroller = { kind = 'vegas', ceiling = 10 }"), (1, 10, 10));
        let read = read("[gate]\nobjective = '1.5s'\ncontroller = { kind = 'gradient2' }").unwrap();
        assert_eq!((read.kind, read.bounds.objective_seconds()), (Kind::Gradient2, Some(1.5)));
    }

    #[test]
    fn each_fault_names_its_line_and_rule() {
        for (text, faults) in [
            (
                "[gate]\nlimit = 20\n[gate.controller]\nmin = -1\nmax = 2147483648\nceiling = true\nprior = 0\nspeed = 1",
                &[
                    "line 3: gate.controller: kind is missing",
                    "line 4: gate.controller.min: min must be a whole number from 1 to 2147483647, got -1",
                    "line 5: gate.controller.max: max must be a whole number from 1 to 2147483647, got 2147483648",
                    "line 6: gate.controller.ceiling: ceiling must be a whole number from 1 to 2147483647, got true",
                    "line 7: gate.controller.prior: prior must be a whole number from 1 to 2147483647, got 0",
                    "line 8: unknown key \"speed\"; gate.controller takes ceiling, kind, max, min, prior",
                ][..],
            ),
            (
                "[gate]\n[gate.controller]\nkind = 'pid'",
                &[
                    "line 3: gate.controller.kind: must be one of fixed, aimd, gradient2, vegas, goodput, got \"pid\"",
                ],
            ),
            (
                "[gate]\nlimit = 20\n[gate.controller]\nkind = 'aimd'\nmin = 30\nmax = 25",
                &["line 5: gate.controller.min: min must be a whole number from 1 to max (25), got 30"],
            ),
            (
                "[gate]\nlimit = 20\n[gate.controller]\nkind = 'aimd'\nmin = 30",
                &[
                    "line 2: gate.limit: the prior, or the limit where there is none, must be from min (30) to max (1000), got 20",
                ],
            ),
            (
                "[gate]\nlimit = 20\n[gate.controller]\nkind = 'aimd'\nmin = 10\nprior = 5",
                &[
                    "line 6: gate.controller.prior: the prior, or the limit where there is none, must be from min (10) to max (1000), got 5",
                ],
            ),
            (
                "[gate]\nlimit = 20\n[gate.controller]\nkind = 'aimd'\nmin = 10\nceiling = 5",
                &["line 6: gate.controller.ceiling: ceiling must be at least min (10), got 5"],
            ),
            (
                "[gate]\nlimit = 0\n[gate.controller]\nkind = 'fixed'",
                &[
                    "line 2: gate.limit: the prior, or the limit where there is none, must be from min (1) to max (1000), got 0",
                ],
            ),
            (
                "[gate]\nlimit = 20\n[gate.controller]\nkind = 'aimd'\nmin = 30\nmax = 0",
                &["line 6: gate.controller.max: max must be a whole number from 1 to 2147483647, got 0"],
            ),
            ("[gate]\ncontroller = 'goodput'", &["line 2: gate.controller: must be a table, got 'goodput'"]),
            (
                "[gate]\nobjective = '0s'\ncontroller = { kind = 'goodput' }",
                &["line 2: gate.objective: objective must be longer than zero"],
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), faults, "{text}");
        }
    }
}
