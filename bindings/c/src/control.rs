//! Changing a gate while it is in use, and its end.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::time::Duration;

use tidegate_core::limit_from;

use crate::config::{Flag, TIDEGATE_THRESHOLD_PPM, thresholds, tidegate_threshold};
use crate::entry::{Answer, guard, read, reference};
use crate::gate::tidegate_gate;
use crate::status::{Refusal, TIDEGATE_ERR_ARGUMENT, TIDEGATE_SHED_TIMEOUT, tidegate_status};

/// As a timeout: for ever.
pub const TIDEGATE_FOREVER: i64 = -1;

fn status_of(refusal: impl Into<Refusal>) -> tidegate_status {
    refusal.into().status
}

/// Sets the most weight that may be in flight, 0 to 2147483647. Once this has returned, nothing is admitted
/// above it. Permits that are out stay valid: below them the gate admits nothing until enough have left.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_set_limit(gate: *const tidegate_gate, limit: i64) -> tidegate_status {
    // SAFETY: the caller's promise.
    guard(|| set_limit(unsafe { reference(gate) }?, limit, None))
}

/// As `tidegate_set_limit`, with the cause for the gate's history: a string that ends with NUL, copied, with
/// what is no UTF-8 in it replaced; or NULL.
///
/// Answers as that does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_set_limit_cause(
    gate: *const tidegate_gate,
    limit: i64,
    cause: *const c_char,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        let cause = (!cause.is_null()).then(|| CStr::from_ptr(cause).to_string_lossy());
        set_limit(gate, limit, cause.as_deref())
    })
}

fn set_limit(gate: &tidegate_gate, limit: i64, cause: Option<&str>) -> Answer {
    limit_from(limit).and_then(|limit| gate.core.set_limit(limit, cause)).map_err(status_of)?;
    Ok(())
}

/// Sets all thresholds as shares of the limit in parts per million, most important priority first: the first
/// is 1000000, and none exceeds the one before it.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_ARGUMENT` for a share above 1000000 or
/// `TIDEGATE_ERR_CONFIG` where they contradict each other.
///
/// cbindgen:ptrs-as-arrays=[[ppm;4]]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_set_thresholds(
    gate: *const tidegate_gate,
    ppm: *const u32,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        let share = |ppm: u32| tidegate_threshold { kind: TIDEGATE_THRESHOLD_PPM, value: ppm.into() };
        set_thresholds(gate, &read(ppm.cast::<[u32; 4]>())?.map(share))
    })
}

/// Sets all thresholds, each as a share, as a reserve, or to its default: the general form of
/// `tidegate_set_thresholds`.
///
/// Answers as that does; `TIDEGATE_ERR_ARGUMENT` also for a number that is no kind and for a value outside its
/// kind's rule.
///
/// cbindgen:ptrs-as-arrays=[[thresholds;4]]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_set_threshold_kinds(
    gate: *const tidegate_gate,
    thresholds: *const tidegate_threshold,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        set_thresholds(reference(gate)?, &read(thresholds.cast::<[tidegate_threshold; 4]>())?)
    })
}

fn set_thresholds(gate: &tidegate_gate, by_priority: &[tidegate_threshold; 4]) -> Answer {
    let thresholds = thresholds(by_priority).map_err(status_of)?;
    gate.core.set_thresholds(thresholds).map_err(status_of)?;
    Ok(())
}

/// Switches dry run off (true) or on (false). In dry run everything is let in, and what would have been shed
/// is counted.
///
/// Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_set_enforce(gate: *const tidegate_gate, enforce: Flag) -> tidegate_status {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { reference(gate) }?.core.set_enforce(enforce != 0);
        Ok(())
    })
}

/// Closes the gate for good: nothing is admitted any more, also in dry run. What is inside may leave in its
/// own time. Closing it again changes nothing.
///
/// Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_close(gate: *const tidegate_gate) -> tidegate_status {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { reference(gate) }?.core.close();
        Ok(())
    })
}

/// Closes the gate and waits until everything inside has left, at most `timeout_ms` milliseconds; 0 looks
/// without waiting, `TIDEGATE_FOREVER` (-1) waits as long as it takes. Several threads may wait at once.
///
/// Answers `TIDEGATE_ADMITTED` when nothing is inside, `TIDEGATE_SHED_TIMEOUT` when something still is,
/// `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` for any other negative number, which does not close the
/// gate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_drain(gate: *const tidegate_gate, timeout_ms: i64) -> tidegate_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let gate = unsafe { reference(gate) }?;
        let timeout = match timeout_ms {
            TIDEGATE_FOREVER => None,
            _ => Some(Duration::from_millis(u64::try_from(timeout_ms).map_err(|_| TIDEGATE_ERR_ARGUMENT)?)),
        };
        if gate.core.drain(timeout) { Ok(()) } else { Err(TIDEGATE_SHED_TIMEOUT) }
    })
}
