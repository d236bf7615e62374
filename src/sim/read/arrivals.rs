//! `[arrivals]`.

use std::time::Duration;

use super::super::arrivals::{Arrivals, Class, Schedule, Stage, Trace};
use super::super::rules::{not_negative, positive, share};
use super::{Load, number, one_of, rate, some_time, text, time, trace};
use crate::ask::Weight;
use crate::document::{Table, Value};
use crate::file::priority;
use crate::priority::Priority;

/// The keys that say when requests come, of which there is one.
const SCHEDULES: [&str; 4] = ["rate", "stages", "ramp", "trace"];

pub(super) fn read(
    table: &Table<'_>,
    duration: Option<Duration>,
    default: Priority,
    load: &Load<'_>,
) -> Option<Arrivals> {
    let given: Vec<_> = SCHEDULES.into_iter().filter(|key| table.value(key).is_some()).collect();
    match given[..] {
        [] => table.refuse("rate, stages, ramp or trace is missing: when they come"),
        [_] => {}
        [first, second, ..] => {
            if let Some(value) = table.value(second) {
                value.refuse(format_args!(
                    "contradicts {first}: requests come by one of {}",
                    SCHEDULES.join(", ")
                ));
            }
        }
    }
    let keep = table.read("keep", number(share));
    let speed = table.read("speed", number(positive));
    if !given.contains(&"trace") {
        for value in ["keep", "speed"].into_iter().filter_map(|key| table.value(key)) {
            value.refuse("is for a trace, and there is none");
        }
    }
    let rate = table.read("rate", rate(not_negative));
    let stages = table.tables("stages", stage);
    let ramp = table.read("ramp", one_of(&[("article", ())]));
    let times = table.read("trace", |value| {
        let name = value.string()?;
        let text = load(name).map_err(|error| format!("{name:?} cannot be read: {error}"))?;
        trace::times(&text).map_err(|error| format!("{name:?}: {error}"))
    });
    let mut mix = table.tables("mix", |table| class(table, default));
    if table.value("mix").is_none() {
        mix.push(Class { priority: default, ..Class::default() });
    }
    let mut arrivals = match (rate, ramp, times) {
        (Some(rate), None, None) => Arrivals::poisson(rate, duration?),
        (None, Some(()), None) => Arrivals::article_ramp(),
        (None, None, Some(times)) => Arrivals {
            schedule: Schedule::Trace(Trace {
                times: times.into(),
                keep: keep.unwrap_or(1.0),
                speed: speed.unwrap_or(1.0),
            }),
            mix: Vec::new(),
        },
        (None, None, None) if given == ["stages"] => {
            Arrivals { schedule: Schedule::Stages(stages), mix: Vec::new() }
        }
        _ => return None,
    };
    arrivals.mix = mix;
    // The rules of each key were kept: what is left are those of lists.
    let Err(broken) = arrivals.check() else {
        return Some(arrivals);
    };
    let key = ["stages", "trace", "mix"].into_iter().find(|key| broken.key == format!("arrivals.{key}"));
    match key.and_then(|key| table.value(key)) {
        // What is no table was refused, and is missing in the list for that.
        Some(value) if !all_tables(&value) => {}
        Some(value) => value.refuse(broken.message),
        None => table.refuse(broken),
    }
    None
}

fn all_tables(list: &Value<'_>) -> bool {
    list.string().is_ok() || list.array().is_ok_and(|entries| entries.iter().all(Value::is_table))
}

fn stage(table: &Table<'_>) -> Stage {
    Stage {
        rate: table.need("rate", rate(not_negative)).unwrap_or_default(),
        length: table.need("for", some_time).unwrap_or_default(),
    }
}

/// What breaks its rule stands here as the default, which breaks none.
fn class(table: &Table<'_>, default: Priority) -> Class {
    Class {
        priority: table.read("priority", priority).unwrap_or(default),
        share: table.need("share", number(positive)).unwrap_or(1.0),
        size: table.read("size", number(positive)).unwrap_or(1.0),
        weight: table.read("weight", weight).unwrap_or_default(),
        elsewhere: table.read("elsewhere", time),
    }
}

fn weight(value: &Value<'_>) -> Result<Weight, String> {
    match value.integer() {
        Ok(weight) => Weight::new(weight).map_err(text),
        Err(_) => Err(value.not_a("a whole number from 1 to 2147483647")),
    }
}
