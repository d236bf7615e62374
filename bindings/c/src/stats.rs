//! Readings.

#![allow(unsafe_code)]

use tidegate_core::{Outcome, Priority, Reason};

use crate::arguments;
use crate::config::Flag;
use crate::entry::{Answer, guard, reference, write};
use crate::gate::tidegate_gate;
use crate::status::{TIDEGATE_ERR_ARGUMENT, TIDEGATE_ERR_NULL, tidegate_status};
use crate::versioned::{self, Versioned};

/// A reading of a gate's counters. Start with `TIDEGATE_STATS_INIT`.
///
/// Each counter only grows, and in every reading no more was released than admitted. At rest, that is when
/// no call is under way, all of it is exact. Every attempt is counted once, in `admitted`, `shed` or
/// `would_shed`; what is in `would_shed` is in neither `admitted` nor, later, `released`. After a fork the
/// child counts from zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_stats {
    /// `sizeof(tidegate_stats)`. What a later version added becomes zero.
    pub struct_size: u32,
    /// How often the configuration changed, modulo 2^29.
    pub generation: u32,
    /// The most weight that may be in flight.
    pub limit: u32,
    /// The weight in flight, without what dry run let in beyond the limit.
    pub in_flight: u32,
    /// The most weight that was ever in flight.
    pub high_water: u32,
    /// How full the gate may be for each priority still to enter, in weight.
    pub thresholds: [u32; 4],
    /// The priority of requests that name none.
    pub default_priority: i32,
    /// Whether the gate turns requests away; false in dry run.
    pub enforce: Flag,
    /// Whether the gate was closed.
    pub closed: Flag,
    /// Whether it measures how long permits are held.
    pub timing: Flag,
    /// Zero.
    pub reserved: [u8; 5],
    /// Admissions by priority.
    pub admitted: [u64; 4],
    /// Requests turned away, by priority and by reason:
    /// `shed[TIDEGATE_PRIORITY_CRITICAL][TIDEGATE_SHED_LIMIT - 1]`.
    pub shed: [[u64; 7]; 4],
    /// What dry run let in although enforcement would have shed it, by priority.
    pub would_shed: [u64; 4],
    /// Admissions that were released, by outcome.
    pub released: [u64; 3],
    /// Exits without an entry.
    pub unmatched_exits: u64,
    /// Permits that were released by `tidegate_release_collected`.
    pub collected: u64,
    /// Admissions that asked for `TIDEGATE_PRIORITY_DEFAULT`.
    pub fallback_priority: u64,
    /// What dry run let in beyond the limit and is still inside, in permits.
    pub over_in_flight: u64,
    /// With timing, the time integral of the weight in flight, in weight-microseconds modulo 2^63. Its
    /// difference over an interval, divided by the interval, is the mean weight in flight. No counter: a
    /// reading during calls may be off by what they do, so take the difference as a signed number.
    pub occupancy_us: u64,
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_stats {}

/// Reads all counters.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_VERSION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_stats(
    gate: *const tidegate_gate,
    out: *mut tidegate_stats,
) -> tidegate_status {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let gate = reference(gate)?;
        versioned::write(out, |struct_size| read(gate, struct_size))
    })
}

fn read(gate: &tidegate_gate, struct_size: u32) -> tidegate_stats {
    let core = &gate.core;
    let stats = core.stats();
    tidegate_stats {
        struct_size,
        generation: stats.generation,
        limit: stats.limit,
        in_flight: stats.in_flight,
        high_water: stats.high_water,
        thresholds: core.thresholds(),
        default_priority: core.default_priority() as i32,
        enforce: core.enforce().into(),
        closed: core.closed().into(),
        timing: stats.occupancy_us.is_some().into(),
        reserved: [0; 5],
        admitted: Priority::ALL.map(|priority| stats.admitted(priority)),
        shed: Priority::ALL.map(|priority| Reason::ALL.map(|reason| stats.shed(priority, reason))),
        would_shed: Priority::ALL.map(|priority| stats.would_shed(priority)),
        released: Outcome::ALL.map(|outcome| stats.released(outcome)),
        unmatched_exits: stats.unmatched_exits,
        collected: stats.collected,
        fallback_priority: stats.fallback_priority(),
        over_in_flight: stats.over_in_flight,
        occupancy_us: stats.occupancy_us.unwrap_or(0),
    }
}

/// The weight in flight, without what dry run let in beyond the limit: one load, where `tidegate_get_stats`
/// adds up all counters. `TIDEGATE_ERR_NULL` (negative) for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_in_flight(gate: *const tidegate_gate) -> i64 {
    // SAFETY: the caller's promise.
    number(|| Ok(unsafe { reference(gate) }?.core.in_flight()))
}

/// The most weight that may be in flight. `TIDEGATE_ERR_NULL` (negative) for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_limit(gate: *const tidegate_gate) -> i64 {
    // SAFETY: the caller's promise.
    number(|| Ok(unsafe { reference(gate) }?.core.limit()))
}

/// A number, or the error.
fn number(body: impl FnOnce() -> Answer<u32>) -> i64 {
    let mut number = 0;
    let status = guard(|| {
        number = body()?.into();
        Ok(())
    });
    if status == 0 { number } else { status.into() }
}

/// How long permits of a priority were held, in seconds: what a share `q` (0.0 to 1.0) of them did not
/// exceed, within 1.6 %. Permits that were released with outcome `ignore` are left out. -1 without timing,
/// or where nothing was measured yet.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` for a `q` that is not from 0
/// to 1 and for a number that is none of the four priorities.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_latency(
    gate: *const tidegate_gate,
    priority: i32,
    q: f64,
    seconds: *mut f64,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        if seconds.is_null() {
            return Err(TIDEGATE_ERR_NULL);
        }
        let priority = arguments::priority(priority).ok_or(TIDEGATE_ERR_ARGUMENT)?;
        if !(0.0..=1.0).contains(&q) {
            return Err(TIDEGATE_ERR_ARGUMENT);
        }
        let stats = gate.core.stats();
        let held = stats.latency(priority).and_then(|histogram| histogram.quantile(q));
        write(seconds, held.map_or(-1.0, |held| held.as_secs_f64()))
    })
}
