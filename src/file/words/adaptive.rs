//! What controllers and signals do, in words.

use std::fmt::{self, Write};
use std::time::Duration;

use crate::controller::Kind;
use crate::file::GateTable;
use crate::file::controller::ControllerTable;
use crate::file::signals::SignalTable;
use crate::priority::Priority;
use crate::signal::{self, Cpu, Memory, Resource, Source, Stalls};

pub(super) fn explain(to: &mut String, table: &GateTable) -> fmt::Result {
    if let Some(controller) = table.controller {
        explain_controller(to, controller)?;
    }
    if let Some(objective) = table.objective {
        writeln!(to, "  good is a success within {objective:?}")?;
    }
    for signal in &table.signals {
        explain_signal(to, signal)?;
    }
    if !table.signals.is_empty() {
        writeln!(
            to,
            "  pressure is that of the worst signal: it sheds sheddable first, then sheddable_plus, then up to 95 % of \
             critical, then of critical_plus"
        )?;
    }
    Ok(())
}

fn explain_controller(to: &mut String, controller: ControllerTable) -> fmt::Result {
    let ControllerTable { kind, bounds, .. } = controller;
    let (name, min, max, start) = (kind.as_str(), bounds.min(), bounds.max(), bounds.prior());
    let by = match kind {
        Kind::Fixed => return writeln!(to, "  fixed holds the limit at {start}"),
        Kind::Goodput => {
            "it tries a tenth more and a tenth less in turn, and goes where more good answers come out"
        }
        Kind::Aimd => "one more in a second that needs it and has no overload, a tenth less in one that has",
        Kind::Gradient2 => "less where latency is more than 1.5 times its long average, more where it is not",
        Kind::Vegas => "so that few wait, by latency against the shortest seen",
    };
    writeln!(to, "  {name} moves the limit between {min} and {max}, from {start} on: {by}")?;
    match kind {
        Kind::Goodput => writeln!(
            to,
            "  it has found the limit after 5 to 10 experiments of at least 240 completions each: a minute or two at \
             45 a second, an hour or two at 45 a minute; to see 2 % more or less takes some 2500"
        ),
        _ => writeln!(to, "  it looks once a second, at seconds with 10 completions or more"),
    }
}

fn explain_signal(to: &mut String, signal: &SignalTable) -> fmt::Result {
    let SignalTable { kind, name, rule } = signal;
    let what = match kind {
        signal::Kind::Cpu => "CPU time used of what this process may use",
        signal::Kind::Memory => "memory in use of what this process may use",
        signal::Kind::PsiCpu => "the share of time in which something here waited for a CPU",
        signal::Kind::PsiMemory => "the share of time in which something here waited for memory",
        signal::Kind::PsiIo => "the share of time in which something here waited for a disk",
        signal::Kind::Latency => "how long permits are held, as a share of the objective",
        signal::Kind::Errors => "the share of answers that were overload",
        signal::Kind::Pushed => "what the program pushes",
    };
    writeln!(to, "  signal {name}: {what}")?;
    writeln!(
        to,
        "    overload at {} or above for {:?}, until at {} or below for {:?}; full pressure at {}, which takes {:?} to reach",
        rule.enter(),
        rule.enter_for(),
        rule.leave(),
        rule.leave_for(),
        rule.full(),
        rule.ramp(),
    )
}

/// What may not be meant.
pub(super) fn warnings(table: &GateTable) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(controller) = table.controller {
        controller_warnings(&mut warnings, table, controller);
    }
    for signal in &table.signals {
        let enter_for = signal.rule.enter_for();
        if let Some(good_for) = good_for(signal.kind).filter(|good_for| enter_for < *good_for) {
            warnings.push(format!(
                "signal {} needs {enter_for:?} for overload, and a reading is good for {good_for:?}: one alone decides",
                signal.name
            ));
        }
    }
    let sees_cpus = |signal: &SignalTable| matches!(signal.kind, signal::Kind::Cpu | signal::Kind::PsiCpu);
    let sees_answers = |signal: &SignalTable| {
        matches!(signal.kind, signal::Kind::Latency | signal::Kind::Errors | signal::Kind::Pushed)
    };
    if table.signals.iter().any(sees_cpus) && !table.signals.iter().any(sees_answers) {
        warnings.push(
            "CPU signals do not see a database drown: latency, errors or what you push from it do".to_owned(),
        );
    }
    warnings
}

fn controller_warnings(warnings: &mut Vec<String>, table: &GateTable, controller: ControllerTable) {
    let ControllerTable { kind, choice, limit, bounds } = controller;
    let said = choice.prior.or(limit);
    if kind == Kind::Fixed {
        if said.is_none() {
            warnings.push(format!("fixed holds {}, which nobody chose: set limit", bounds.prior()));
        }
        let starts_at_ceiling = said.zip(choice.ceiling).is_some_and(|(said, ceiling)| said > ceiling);
        if choice.min.or(choice.max).or(choice.ceiling).is_some() && !starts_at_ceiling {
            warnings.push("fixed does not move: min, max and ceiling do nothing".to_owned());
        }
    } else if bounds.min() == bounds.max() {
        warnings.push(format!("the limit cannot move: its least and its largest are both {}", bounds.min()));
    }
    if let (Some(said), Some(ceiling)) = (said, choice.ceiling)
        && said > ceiling
    {
        warnings.push(format!("it starts at the ceiling, {ceiling}, which is below {said}"));
    }
    if kind == Kind::Goodput && table.objective.is_none() {
        warnings.push("without an objective every success is good, however late it comes".to_owned());
    }
    if kind == Kind::Fixed {
        return; // it has one limit, which is judged as any
    }
    let (lowest, first) = (table.thresholds.at(bounds.min()), table.thresholds.at(bounds.prior()));
    for priority in Priority::ALL {
        if lowest[priority.level()] == 0 && first[priority.level()] > 0 {
            warnings.push(format!(
                "{priority} is not admitted where the limit is at its least, {}",
                bounds.min()
            ));
        }
    }
}

/// For how long a reading is good; `None` where whoever pushes it says so.
fn good_for(kind: signal::Kind) -> Option<Duration> {
    match kind {
        signal::Kind::Cpu => Some(Cpu::new().good_for()),
        signal::Kind::Memory => Some(Memory::new().good_for()),
        signal::Kind::PsiCpu | signal::Kind::PsiMemory | signal::Kind::PsiIo => {
            Some(Stalls::new(Resource::Cpu).good_for())
        }
        signal::Kind::Latency | signal::Kind::Errors => Some(Duration::from_secs(1)),
        signal::Kind::Pushed => None,
    }
}
