//! What a controller is at, and how the limit came to be what it is.

#![allow(unsafe_code)]

use std::ffi::c_char;

use tidegate_core::controller::Cause;

use crate::controller::{TIDEGATE_CONTROLLER_NONE, number_of};
use crate::entry::{guard, reference};
use crate::gate::tidegate_gate;
use crate::status::{TIDEGATE_ERR_ARGUMENT, tidegate_status};
use crate::text;
use crate::versioned::{self, Versioned};

/// Nothing spoke for a move.
pub const TIDEGATE_CAUSE_HOLD: i32 = 0;
/// One arm of an experiment: a little above or below, and back soon.
pub const TIDEGATE_CAUSE_PROBE: i32 = 1;
/// The evidence was for more.
pub const TIDEGATE_CAUSE_RAISE: i32 = 2;
/// The evidence was for less.
pub const TIDEGATE_CAUSE_LOWER: i32 = 3;
/// Most answers were late or failed: down at once.
pub const TIDEGATE_CAUSE_LOST: i32 = 4;

/// What a gate's controller is at. Start with `TIDEGATE_CONTROLLER_REPORT_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_controller_report {
    /// `sizeof(tidegate_controller_report)`. What a later version added becomes zero.
    pub struct_size: u32,
    /// One of the `TIDEGATE_CONTROLLER_` numbers; `TIDEGATE_CONTROLLER_NONE` where there is none, and then all else
    /// is zero.
    pub kind: i32,
    /// The smallest limit.
    pub min: u32,
    /// The largest, the ceiling included.
    pub max: u32,
    /// Where it started.
    pub prior: u32,
    /// Why the limit is what it is: one of the `TIDEGATE_CAUSE_` numbers.
    pub cause: i32,
    /// The time within which an answer is good, in seconds; 0: every success is.
    pub objective: f64,
    /// How often it looked.
    pub looks: u64,
    /// How often it moved the limit on evidence.
    pub moves: u64,
    /// How often it moved the limit for an experiment, there and back.
    pub probes: u64,
    /// Of the window that it looked at last: how long it was, in seconds,
    pub window: f64,
    /// the permits that came back with `success` or `overload`,
    pub completions: u64,
    /// those that were good,
    pub good: u64,
    /// those with `overload`,
    pub overload: u64,
    /// requests that were admitted,
    pub admissions: u64,
    /// and those that met a full gate.
    pub refusals: u64,
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_controller_report {}

/// Reads what the gate's controller is at.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_VERSION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_controller(
    gate: *const tidegate_gate,
    out: *mut tidegate_controller_report,
) -> tidegate_status {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let gate = reference(gate)?;
        versioned::write(out, |struct_size| read(gate, struct_size))
    })
}

fn read(gate: &tidegate_gate, struct_size: u32) -> tidegate_controller_report {
    let mut report = tidegate_controller_report {
        struct_size,
        kind: TIDEGATE_CONTROLLER_NONE,
        min: 0,
        max: 0,
        prior: 0,
        cause: TIDEGATE_CAUSE_HOLD,
        objective: 0.0,
        looks: 0,
        moves: 0,
        probes: 0,
        window: 0.0,
        completions: 0,
        good: 0,
        overload: 0,
        admissions: 0,
        refusals: 0,
    };
    if let Some(is) = gate.core.controller() {
        report.kind = number_of(is.kind);
        report.min = is.bounds.min();
        report.max = is.bounds.max();
        report.prior = is.bounds.prior();
        report.cause = cause_of(is.cause);
        report.objective = is.objective.map_or(0.0, |objective| objective.as_secs_f64());
        report.looks = is.looks;
        report.moves = is.moves;
        report.probes = is.probes;
        report.window = std::time::Duration::from_nanos(is.window.elapsed_ns).as_secs_f64();
        report.completions = is.window.completions;
        report.good = is.window.good;
        report.overload = is.window.overload;
        report.admissions = is.window.admissions;
        report.refusals = is.window.refusals;
    }
    report
}

fn cause_of(cause: Cause) -> i32 {
    match cause {
        Cause::Probe => TIDEGATE_CAUSE_PROBE,
        Cause::Raise => TIDEGATE_CAUSE_RAISE,
        Cause::Lower => TIDEGATE_CAUSE_LOWER,
        Cause::Lost => TIDEGATE_CAUSE_LOST,
        _ => TIDEGATE_CAUSE_HOLD,
    }
}

/// One change of a gate's limit. Start with `TIDEGATE_LIMIT_CHANGE_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_limit_change {
    /// `sizeof(tidegate_limit_change)`. What a later version added becomes zero.
    pub struct_size: u32,
    /// The limit before.
    pub from: u32,
    /// The limit from then on.
    pub to: u32,
    /// Zero.
    pub reserved: u32,
    /// How long ago it was, in seconds.
    pub age: f64,
    /// Why, as whoever changed it said, or "raise", "lower" or "lost" for a controller; cut to 63 bytes and ended
    /// with NUL; empty for nothing.
    pub cause: [c_char; 64],
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_limit_change {}

/// Reads one of the last 64 changes of the limit: the one at `position`, from 0, the latest first. A controller's
/// experiments are not among them.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_VERSION`, or `TIDEGATE_ERR_ARGUMENT` behind the
/// last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_limit_change(
    gate: *const tidegate_gate,
    position: usize,
    out: *mut tidegate_limit_change,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        let history = gate.core.limit_history();
        let change = history.iter().rev().nth(position).ok_or(TIDEGATE_ERR_ARGUMENT)?;
        let age = std::time::Duration::from_nanos(gate.core.now_ns().saturating_sub(change.at_ns));
        let mut cause = [0; 64];
        text::write(cause.as_mut_ptr(), cause.len(), change.cause.as_deref().unwrap_or_default());
        versioned::write(out, |struct_size| tidegate_limit_change {
            struct_size,
            from: change.from,
            to: change.to,
            reserved: 0,
            age: age.as_secs_f64(),
            cause,
        })
    })
}
