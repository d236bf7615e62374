//! What signals say: values pushed in, and readings.

#![allow(unsafe_code)]

use std::ffi::c_char;
use std::time::Duration;

use tidegate_core::MAX_NAME_BYTES;

use crate::config::Flag;
use crate::entry::{guard, reference};
use crate::gate::tidegate_gate;
use crate::gates::bytes;
use crate::status::{Refusal, TIDEGATE_ERR_ARGUMENT, TIDEGATE_ERR_NULL, tidegate_status};
use crate::text;
use crate::versioned::{self, Versioned};

/// Pushes a value into a signal of kind `TIDEGATE_SIGNAL_PUSHED`; whoever asks for a permit next has it looked at.
///
/// `name`: the signal's, `name_len` bytes of UTF-8. `value`: a pressure from 0.0 to 1.0. `good_for_ms`: for how many
/// milliseconds it holds, from 0 on; after that the signal is unknown, which is never overload.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` where the gate has no such signal, or
/// one that is measured, and for numbers outside their rule. Then nothing was changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_signal(
    gate: *const tidegate_gate,
    name: *const c_char,
    name_len: usize,
    value: f64,
    good_for_ms: i64,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        if name_len > MAX_NAME_BYTES {
            return Err(TIDEGATE_ERR_ARGUMENT); // not read: the length may be garbage
        }
        let name = bytes(name, name_len).ok_or(TIDEGATE_ERR_NULL)?;
        let name = std::str::from_utf8(name).map_err(|_| TIDEGATE_ERR_ARGUMENT)?;
        let good_for_ms = u64::try_from(good_for_ms).map_err(|_| TIDEGATE_ERR_ARGUMENT)?;
        let pushed = gate.core.signal(name, value, Duration::from_millis(good_for_ms));
        pushed.map_err(|error| Refusal::from(error).status)
    })
}

/// What a gate's signals come to. Start with `TIDEGATE_PRESSURE_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_pressure {
    /// `sizeof(tidegate_pressure)`. What a later version added becomes zero.
    pub struct_size: u32,
    /// Whether any signal is overloaded.
    pub overloaded: Flag,
    /// Zero.
    pub reserved: [u8; 3],
    /// The pressure level, 0.0 to 1.0: that of the worst signal.
    pub level: f64,
    /// Which share of each priority it sheds, 0.0 to 1.0, most important first.
    pub shares: [f64; 4],
    /// How many signals there are.
    pub signals: u64,
    /// How often one became overloaded, or no longer was.
    pub transitions: u64,
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_pressure {}

/// Reads what the gate's signals come to; all zero without signals. Where it is time to look at them, this does.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_VERSION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_pressure(
    gate: *const tidegate_gate,
    out: *mut tidegate_pressure,
) -> tidegate_status {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let is = reference(gate)?.core.pressure();
        let is = is.as_ref();
        versioned::write(out, |struct_size| tidegate_pressure {
            struct_size,
            overloaded: is.is_some_and(|is| is.overloaded).into(),
            reserved: [0; 3],
            level: is.map_or(0.0, |is| is.level),
            shares: is.map_or([0.0; 4], |is| is.shares),
            signals: is.map_or(0, |is| is.signals.len() as u64),
            transitions: is.map_or(0, |is| is.transition_count),
        })
    })
}

// A name and its NUL fit.
const _: () = assert!(MAX_NAME_BYTES < 256);

/// What one signal says. Start with `TIDEGATE_SIGNAL_REPORT_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_signal_report {
    /// `sizeof(tidegate_signal_report)`. What a later version added becomes zero.
    pub struct_size: u32,
    /// Whether it is overloaded.
    pub overloaded: Flag,
    /// Zero.
    pub reserved: [u8; 3],
    /// What it said when it was last looked at, 0.0 to 1.0; -1 is unknown.
    pub value: f64,
    /// Its own pressure level, 0.0 to 1.0.
    pub level: f64,
    /// Overloaded at this or above.
    pub enter: f64,
    /// Not overloaded any more at this or below.
    pub leave: f64,
    /// Its level is 1 at this.
    pub full: f64,
    /// How often it was measured, or a value pushed.
    pub reads: u64,
    /// How often it did not know.
    pub failures: u64,
    /// What the last measurement took, in seconds.
    pub cost: f64,
    /// Its name, ended with NUL.
    pub name: [c_char; 256],
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_signal_report {}

/// Reads what the signal at a position says, from 0, in the order in which they were given. Where it is time to look at
/// the signals, this does.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_VERSION`, or `TIDEGATE_ERR_ARGUMENT` behind the
/// last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_signal(
    gate: *const tidegate_gate,
    position: usize,
    out: *mut tidegate_signal_report,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let pressure = reference(gate)?.core.pressure();
        let signal =
            pressure.as_ref().and_then(|is| is.signals.get(position)).ok_or(TIDEGATE_ERR_ARGUMENT)?;
        let mut name = [0; 256];
        text::write(name.as_mut_ptr(), name.len(), &signal.name);
        versioned::write(out, |struct_size| tidegate_signal_report {
            struct_size,
            overloaded: signal.overloaded.into(),
            reserved: [0; 3],
            value: signal.value.unwrap_or(-1.0),
            level: signal.level,
            enter: signal.enter,
            leave: signal.leave,
            full: signal.full,
            reads: signal.reads,
            failures: signal.failures,
            cost: signal.cost.as_secs_f64(),
            name,
        })
    })
}
