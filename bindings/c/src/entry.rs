//! What every entry from C goes through: no panic leaves, no NULL enters.

#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::status::{TIDEGATE_ADMITTED, TIDEGATE_ERR_NULL, TIDEGATE_ERR_PANIC, tidegate_status};

/// What a call comes to inside: done, or the status that says why not.
pub(crate) type Answer<T = ()> = Result<T, tidegate_status>;

/// Runs the body of a call. A panic ends here: unwinding into a C frame is undefined.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Answer) -> tidegate_status {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        #[cfg(feature = "test-hooks")]
        crate::test_hooks::panic_if_asked_to();
        match body() {
            Ok(()) => TIDEGATE_ADMITTED,
            Err(status) => status,
        }
    }));
    caught.unwrap_or_else(|payload| {
        // Dropping what was thrown might panic once more; what that throws is left alone.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(again);
        }
        TIDEGATE_ERR_PANIC
    })
}

/// What a pointer points at that came from this library.
///
/// # Safety
/// It is NULL, or points at a live value.
#[inline]
pub(crate) unsafe fn reference<'a, T>(pointer: *const T) -> Answer<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or(TIDEGATE_ERR_NULL)
}

/// Copies what a pointer from C points at, which need not be aligned. For types of which any bytes make a value.
///
/// # Safety
/// It is NULL, or points at a `T`.
#[inline]
pub(crate) unsafe fn read<T: Copy>(pointer: *const T) -> Answer<T> {
    if pointer.is_null() {
        return Err(TIDEGATE_ERR_NULL);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { pointer.read_unaligned() })
}

/// Writes an answer through a pointer from C, which need not be aligned.
///
/// # Safety
/// It is NULL, or points at room for a `T`.
#[inline]
pub(crate) unsafe fn write<T>(pointer: *mut T, value: T) -> Answer {
    if pointer.is_null() {
        return Err(TIDEGATE_ERR_NULL);
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.write_unaligned(value) };
    Ok(())
}
