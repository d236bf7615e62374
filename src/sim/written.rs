//! How values of a scenario stand in JSON.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// A time, in seconds.
pub(super) fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// A time that there may be, in seconds.
#[allow(clippy::ref_option)] // serde's
pub(super) fn some_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}
