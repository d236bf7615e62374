//! `[clients]`.

use super::super::clients::{Clients, OnTimeout, Retries, jitter, most};
use super::super::rules::at_least;
use super::{number, one_of, some_time, time, whole};
use crate::document::{Table, Value};

pub(super) fn read(table: &Table<'_>) -> Clients {
    let timeout = table.read("timeout", some_time);
    let ends = [("abandon", OnTimeout::Abandon), ("cancel", OnTimeout::Cancel), ("fail", OnTimeout::Fail)];
    let on_timeout = table.read("on_timeout", one_of(&ends));
    let retries = table.table("retries", retries);
    if table.value("timeout").is_none() {
        if let Some(value) = table.value("on_timeout") {
            value.refuse("there is no timeout");
        }
        let after_timeouts =
            table.value("retries").filter(|_| retries.is_some_and(|retries| retries.on_timeout));
        if let Some(value) = after_timeouts {
            value.refuse("on has \"timeout\", and there is no timeout");
        }
    }
    Clients { timeout, on_timeout: on_timeout.unwrap_or_default(), retries }
}

fn retries(table: &Table<'_>) -> Retries {
    let on = table.need("on", on).unwrap_or_default();
    Retries {
        most: table.need("most", whole(most)).unwrap_or_default(),
        after: table.need("after", time).unwrap_or_default(),
        backoff: table.read("backoff", number(|factor| at_least(1.0, factor))).unwrap_or(1.0),
        jitter: table.read("jitter", number(jitter)).unwrap_or_default(),
        on_timeout: on.0,
        on_shed: on.1,
        until: table.read("until", time),
    }
}

/// Whether after a timeout, and whether after a shed.
fn on(value: &Value<'_>) -> Result<(bool, bool), String> {
    let mut on = (false, false);
    for value in value.array()? {
        match value.string()? {
            "timeout" => on.0 = true,
            "shed" => on.1 = true,
            other => return Err(format!("must have \"timeout\", \"shed\" or both, got {other:?}")),
        }
    }
    if on == (false, false) {
        return Err("must have \"timeout\", \"shed\" or both, got neither".to_owned());
    }
    Ok(on)
}
