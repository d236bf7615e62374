//! `[service]` and `[dependency]`.

use std::time::Duration;

use super::super::rules::{at_least, between, not_negative, positive};
use super::super::service::{Change, Cliff, Dependency, DependencyChange, Service};
use super::super::sizes::Sizes;
use super::{moment, number, one_of, rate, some_time, time, whole};
use crate::document::{Table, Value};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shared,
    Servers,
}

pub(super) fn read(table: &Table<'_>, end: Duration) -> Option<Service> {
    let kind = table.need("kind", one_of(&[("shared", Kind::Shared), ("servers", Kind::Servers)]));
    let sizes = table.table("sizes", sizes).flatten().unwrap_or_default();
    let mut service = match kind {
        Some(Kind::Shared) => Service {
            processors: table.read("processors", whole(some)),
            cliff: table.table("cliff", |table| Cliff {
                above: table.need("above", whole(some)).unwrap_or(1),
                factor: table.need("factor", number(|factor| at_least(1.0, factor))).unwrap_or(1.0),
            }),
            servers: table.read("servers", whole(some)),
            ..Service::shared(
                table.need("lambda", rate(positive)).unwrap_or(1.0),
                table.read("sigma", number(not_negative)).unwrap_or_default(),
                table.read("kappa", number(not_negative)).unwrap_or_default(),
            )
        },
        Some(Kind::Servers) => Service::servers(
            table.read("servers", whole(some)),
            table.need("time", some_time).unwrap_or(Duration::from_secs(1)),
        ),
        None => {
            // What else it takes depends on the kind: nothing is called unknown for now.
            table.named_values();
            return None;
        }
    };
    service.sizes = sizes;
    service.changes = table.tables("changes", |table| change(table, kind, end));
    Some(service)
}

fn some(servers: u32) -> Result<u32, String> {
    if servers > 0 {
        return Ok(servers);
    }
    Err("must be a whole number above 0, got 0".to_owned())
}

fn change(table: &Table<'_>, kind: Option<Kind>, end: Duration) -> Change {
    let at = table.need("at", moment(end)).unwrap_or_default();
    let keys: &[&str] =
        if kind == Some(Kind::Shared) { &["lambda", "sigma", "kappa"] } else { &["servers", "time"] };
    if keys.iter().all(|key| table.value(key).is_none()) {
        table.refuse(format_args!("changes nothing: say at least one of {}", keys.join(", ")));
    }
    if kind == Some(Kind::Shared) {
        return Change {
            at,
            lambda: table.read("lambda", rate(not_negative)),
            sigma: table.read("sigma", number(not_negative)),
            kappa: table.read("kappa", number(not_negative)),
            servers: None,
        };
    }
    Change {
        at,
        lambda: table.read("time", some_time).map(|time| 1.0 / time.as_secs_f64()),
        servers: table.read("servers", whole(some)),
        ..Change::default()
    }
}

fn sizes(table: &Table<'_>) -> Option<Sizes> {
    let kind = table.need("kind", |value: &Value<'_>| {
        let kinds = ["exponential", "deterministic", "lognormal", "hyperexponential", "bimodal", "pareto"];
        let names: Vec<_> = kinds.into_iter().map(|kind| (kind, kind)).collect();
        one_of(&names)(value)
    });
    Some(match kind {
        Some("exponential") => Sizes::Exponential,
        Some("deterministic") => Sizes::Deterministic,
        Some("lognormal") => Sizes::Lognormal { cv: table.need("cv", number(not_negative))? },
        Some("hyperexponential") => {
            Sizes::Hyperexponential { cv: table.need("cv", number(|cv| at_least(1.0, cv)))? }
        }
        Some("bimodal") => {
            let share = table.need("share", number(|share| between(0.0, 1.0, share)));
            let factor = table.need("factor", number(positive));
            Sizes::Bimodal { share: share?, factor: factor? }
        }
        Some("pareto") => {
            Sizes::Pareto { alpha: table.need("alpha", number(|alpha| between(1.0, 1e6, alpha)))? }
        }
        _ => {
            table.named_values();
            return None;
        }
    })
}

pub(super) fn read_dependency(table: &Table<'_>, end: Duration) -> Dependency {
    Dependency {
        time: table.need("time", time).unwrap_or_default(),
        changes: table.tables("changes", |table| DependencyChange {
            at: table.need("at", moment(end)).unwrap_or_default(),
            time: table.need("time", time).unwrap_or_default(),
        }),
    }
}
