//! What calls answer. The numbers are explicit and never used for anything else again.
//!
//! Retired numbers: none.

use std::ffi::{CStr, c_char};

use tidegate_core::controller::BoundsError;
use tidegate_core::{ConfigError, Reason, Shed};

/// The version of this interface. It changes when a program that was compiled with an older header would
/// no longer work, and with it changes the library's soname. Compare it with `tidegate_abi_version()` where
/// header and library may come from different places.
pub const TIDEGATE_ABI_VERSION: u32 = 1;

/// What a call answers: `TIDEGATE_ADMITTED` (0), a positive reason for which the request was shed, or a
/// negative error. An error has changed nothing, but where its own text says otherwise.
pub type tidegate_status = i32;

/// Admitted; from calls that do not ask for admission: done.
pub const TIDEGATE_ADMITTED: tidegate_status = 0;

/// Shed: the weight does not fit under the limit, the gate is full.
pub const TIDEGATE_SHED_LIMIT: tidegate_status = 1;
/// Shed: it would fit under the limit, but the rest is kept for more important priorities.
pub const TIDEGATE_SHED_PRIORITY: tidegate_status = 2;
/// Shed: the rate limit is used up. Reserved: no gate has one yet.
pub const TIDEGATE_SHED_RATE: tidegate_status = 3;
/// Shed: a signal says that the resource is overloaded. Reserved.
pub const TIDEGATE_SHED_PRESSURE: tidegate_status = 4;
/// Shed: the gate is closed.
pub const TIDEGATE_SHED_CLOSED: tidegate_status = 5;
/// The wait was longer than allowed: what `tidegate_drain` answers when permits are still out.
pub const TIDEGATE_SHED_TIMEOUT: tidegate_status = 6;
/// Shed: this host's share of the fleet's limit is used up. Reserved.
pub const TIDEGATE_SHED_SHARE: tidegate_status = 7;

/// A pointer that must not be NULL is NULL.
pub const TIDEGATE_ERR_NULL: tidegate_status = -1;
/// An argument is outside its rule.
pub const TIDEGATE_ERR_ARGUMENT: tidegate_status = -2;
/// The permit is not out: it was released before, belongs to another gate or, in a forked child, to the
/// parent, or was never given. Also an exit without its entry.
pub const TIDEGATE_ERR_STALE: tidegate_status = -3;
/// A fault inside the library, which was caught. Please report it.
pub const TIDEGATE_ERR_PANIC: tidegate_status = -4;
/// A struct of a version that this library cannot serve.
pub const TIDEGATE_ERR_VERSION: tidegate_status = -5;
/// The configuration contradicts itself: thresholds that rise as importance falls, or a top one that is not
/// the limit. Of a file: it cannot be read, or something in it breaks a rule.
pub const TIDEGATE_ERR_CONFIG: tidegate_status = -6;
/// No room for another permit: 2^24 of this gate are out, or there is no memory. The admission was taken
/// back; the gate counted it as admitted and released with outcome `ignore`.
pub const TIDEGATE_ERR_EXHAUSTED: tidegate_status = -7;

/// The answer to a request that was shed: the reason's position plus one.
#[inline]
pub(crate) fn of_shed(shed: &Shed) -> tidegate_status {
    shed.reason as tidegate_status + 1
}

// A reason's number is part of the interface.
const _: () = {
    assert!(Reason::Limit as tidegate_status + 1 == TIDEGATE_SHED_LIMIT);
    assert!(Reason::Priority as tidegate_status + 1 == TIDEGATE_SHED_PRIORITY);
    assert!(Reason::Rate as tidegate_status + 1 == TIDEGATE_SHED_RATE);
    assert!(Reason::Pressure as tidegate_status + 1 == TIDEGATE_SHED_PRESSURE);
    assert!(Reason::Closed as tidegate_status + 1 == TIDEGATE_SHED_CLOSED);
    assert!(Reason::Timeout as tidegate_status + 1 == TIDEGATE_SHED_TIMEOUT);
    assert!(Reason::Share as tidegate_status + 1 == TIDEGATE_SHED_SHARE);
};

/// Why a call with an error buffer did nothing: the status, and for people what was wrong.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: tidegate_status,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: tidegate_status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        let status = match error {
            // A configuration that contradicts itself is one thing, a value outside its rule another.
            ConfigError::TopThreshold { .. }
            | ConfigError::ThresholdRises { .. }
            | ConfigError::SignalTwice { .. }
            | ConfigError::SignalObjective { .. }
            | ConfigError::Bounds(
                BoundsError::Min { .. } | BoundsError::Ceiling { .. } | BoundsError::Prior { .. },
            ) => TIDEGATE_ERR_CONFIG,
            _ => TIDEGATE_ERR_ARGUMENT,
        };
        Self::new(status, error.to_string())
    }
}

fn text(status: tidegate_status) -> &'static CStr {
    match status {
        TIDEGATE_ADMITTED => c"admitted",
        TIDEGATE_SHED_LIMIT => c"shed: the gate is full",
        TIDEGATE_SHED_PRIORITY => c"shed: the rest is kept for more important priorities",
        TIDEGATE_SHED_RATE => c"shed: the rate limit is used up",
        TIDEGATE_SHED_PRESSURE => c"shed: the resource is overloaded",
        TIDEGATE_SHED_CLOSED => c"shed: the gate is closed",
        TIDEGATE_SHED_TIMEOUT => c"timeout: the wait was longer than allowed",
        TIDEGATE_SHED_SHARE => c"shed: this host's share of the fleet's limit is used up",
        TIDEGATE_ERR_NULL => c"error: a pointer is NULL that must not be",
        TIDEGATE_ERR_ARGUMENT => c"error: an argument is outside its rule",
        TIDEGATE_ERR_STALE => c"error: the permit is not out on this gate",
        TIDEGATE_ERR_PANIC => c"error: a fault inside the library",
        TIDEGATE_ERR_VERSION => c"error: a struct of a version that this library cannot serve",
        TIDEGATE_ERR_CONFIG => c"error: the configuration contradicts itself, or its file cannot be used",
        TIDEGATE_ERR_EXHAUSTED => c"error: no room for another permit",
        _ => c"unknown status",
    }
}

/// What a status means, in English. Never NULL; valid for ever; also for numbers that mean nothing.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // for the exported name
pub extern "C" fn tidegate_status_str(status: tidegate_status) -> *const c_char {
    text(status).as_ptr()
}

/// The `TIDEGATE_ABI_VERSION` that the library was built with.
#[unsafe(no_mangle)]
#[allow(unsafe_code)] // for the exported name
pub extern "C" fn tidegate_abi_version() -> u32 {
    TIDEGATE_ABI_VERSION
}
