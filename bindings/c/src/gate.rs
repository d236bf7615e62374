//! Making a gate, and giving it up.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use tidegate_core::{ConfigError, Gate, MAX_NAME_BYTES};

use crate::config::tidegate_config;
use crate::entry::{Answer, guard, reference, write};
use crate::slots::Slots;
use crate::status::{
    Refusal, TIDEGATE_ERR_ARGUMENT, TIDEGATE_ERR_NULL, TIDEGATE_ERR_PANIC, TIDEGATE_ERR_VERSION,
    tidegate_status,
};
use crate::{deferred, text, versioned};

/// The admission controller of one protected resource. Make it with `tidegate_gate_new`, give it up with
/// `tidegate_gate_free`; in between every function may be called on it from any thread at any time.
pub struct tidegate_gate {
    pub(crate) core: Gate,
    pub(crate) slots: Slots,
    name: CString,
    /// It belongs to the gates of a file, and is given up with them.
    of_a_file: bool,
    given_up: AtomicBool,
    /// Below it no slot keeps the gate any more, once it was given up.
    looked: AtomicUsize,
    /// The next one that was given up with permits out; before that, the next of the same file.
    pub(crate) next: AtomicPtr<tidegate_gate>,
}

impl tidegate_gate {
    fn new(core: Gate, name: CString) -> Self {
        Self {
            core,
            slots: Slots::new(),
            name,
            of_a_file: false,
            given_up: AtomicBool::new(false),
            looked: AtomicUsize::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    pub(crate) fn of_a_file(core: Gate, name: CString) -> Self {
        Self { of_a_file: true, ..Self::new(core, name) }
    }

    /// Whether its owner gave it up: then who releases the last permit frees it.
    #[inline]
    pub(crate) fn given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Whether no permit keeps a gate that was given up. Asked by one at a time, whoever has it off the list.
    ///
    /// Closed, it gives no new permits, so what was found free stays free. Each look goes on where the last one
    /// ended: all looks together cost as much as one, also with many permits that come back one by one.
    pub(crate) fn none_out(&self) -> bool {
        let out = self.slots.first_out(self.looked.load(Ordering::Relaxed));
        if let Some(index) = out {
            self.looked.store(index, Ordering::Relaxed);
        }
        out.is_none()
    }
}

/// The name that a pointer and a length stand for. What is too long is not read: the length may be garbage.
unsafe fn name_from(name: *const c_char, length: usize) -> Result<String, Refusal> {
    if length > MAX_NAME_BYTES {
        return Err(ConfigError::Name { got: format!("({length} bytes)") }.into());
    }
    if length == 0 {
        return Ok(String::new()); // for the core to refuse
    }
    if name.is_null() {
        return Err(Refusal::new(TIDEGATE_ERR_NULL, "name is NULL, with a length above 0"));
    }
    // SAFETY: the caller of `tidegate_gate_new` says that there are so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length) };
    match std::str::from_utf8(bytes) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => Err(ConfigError::Name { got: String::from_utf8_lossy(bytes).into_owned() }.into()),
    }
}

unsafe fn make(
    config: *const tidegate_config,
    name: *const c_char,
    name_len: usize,
) -> Result<Box<tidegate_gate>, Refusal> {
    // SAFETY: the caller of `tidegate_gate_new` promises what these need.
    let config = unsafe { versioned::read(config) }.map_err(|status| {
        let what = match status {
            TIDEGATE_ERR_VERSION => {
                "config is of a version that this library cannot serve: its struct_size \
                                     is not a known one, or it uses what this version does not know"
            }
            _ => "config is NULL",
        };
        Refusal::new(status, what)
    })?;
    if config.reserved != [0; 5] {
        return Err(Refusal::new(TIDEGATE_ERR_VERSION, "config.reserved must be zero"));
    }
    let name = unsafe { name_from(name, name_len) }?;
    let builder = unsafe { config.builder(&name) }?;
    #[cfg(feature = "test-hooks")]
    let builder = crate::test_hooks::on_the_test_clock(builder);
    let core = builder.build()?;
    let name = CString::new(name).map_err(|error| Refusal::new(TIDEGATE_ERR_ARGUMENT, error.to_string()))?;
    Ok(Box::new(tidegate_gate::new(core, name)))
}

/// Makes a gate.
///
/// `config`: see `tidegate_config`. `name`: a label for people, `name_len` bytes of UTF-8, 1 to 255, without
/// control characters; it is copied, and need not end with NUL. Two gates may have the same name. `out` gets
/// the gate, or NULL where none was made. `err`: a buffer of `err_cap` bytes that gets the reason in
/// English, naming the value and the rule, cut if need be and always ended with NUL, or an empty string; may
/// be NULL.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_ARGUMENT`, `TIDEGATE_ERR_VERSION` or
/// `TIDEGATE_ERR_CONFIG`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_gate_new(
    config: *const tidegate_config,
    name: *const c_char,
    name_len: usize,
    out: *mut *mut tidegate_gate,
    err: *mut c_char,
    err_cap: usize,
) -> tidegate_status {
    let mut said = String::new();
    // SAFETY: the caller's promise, here and below.
    let status = guard(|| unsafe {
        write(out, ptr::null_mut()).inspect_err(|_| "out is NULL".clone_into(&mut said))?;
        deferred::sweep();
        let gate = make(config, name, name_len).map_err(|refusal| {
            said = refusal.text;
            refusal.status
        })?;
        write(out, Box::into_raw(gate))
    });
    if status == TIDEGATE_ERR_PANIC {
        "a fault inside the library".clone_into(&mut said);
    }
    unsafe { text::write(err, err_cap, &said) };
    status
}

/// Gives a gate up. NULL is fine and does nothing.
///
/// No other call on this gate may be under way, but for `tidegate_release` of permits that are out. While
/// any are, the gate lives on, closed, and they can be released as before; with the last of them it is gone.
/// With no permit out it is gone when this returns, and its pointer and permits must not be used again. A gate of
/// a file belongs to its `tidegate_gates`: here it is left as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_gate_free(gate: *mut tidegate_gate) {
    guard(|| {
        // SAFETY: the caller's promise.
        let Ok(given_up) = (unsafe { reference(gate) }) else {
            return Ok(());
        };
        if given_up.of_a_file || given_up.given_up.swap(true, Ordering::AcqRel) {
            return Ok(()); // not the caller's; or a second time, while permits still keep it
        }
        // SAFETY: from `Box::into_raw`, and nobody but this call gives it up.
        unsafe { leave_to_permits(gate) };
        deferred::sweep();
        Ok(())
    });
}

/// Gives up a gate of a file, with the others of it.
///
/// # Safety
/// It came from `Box::into_raw`, and nobody else gives it up.
pub(crate) unsafe fn give_up(gate: *mut tidegate_gate) {
    // SAFETY: the caller's promise.
    unsafe {
        (*gate).given_up.store(true, Ordering::Release);
        leave_to_permits(gate);
    }
}

/// Closes a gate that was given up, and frees it with the last permit that keeps it, or at the next sweep.
unsafe fn leave_to_permits(gate: *mut tidegate_gate) {
    // SAFETY: the caller's promise.
    unsafe { &*gate }.core.close();
    deferred::push(gate);
}

/// The gate's name, ended with NUL, valid as long as the gate. NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_gate_name(gate: *const tidegate_gate) -> *const c_char {
    let mut name = ptr::null();
    guard(|| -> Answer {
        // SAFETY: the caller's promise.
        name = unsafe { reference(gate) }?.name.as_ptr();
        Ok(())
    });
    name
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_core::{Ask, Clock, Outcome};

    use super::*;
    use crate::permit::{tidegate_release, tidegate_try_admit};

    /// Owned by its gate: it tells whether that is still there.
    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now_ns(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_gate_that_was_given_up_goes_with_its_last_permit() {
        for count in [0, 3] {
            let clock = Arc::new(Still);
            let core = Gate::builder("g", 3).clock(clock.clone()).build().unwrap();
            let gate = Box::into_raw(Box::new(tidegate_gate::new(core, CString::from(c"g"))));
            let mut permits = vec![0; count];
            // SAFETY: the gate lives until the last release.
            unsafe {
                for permit in &mut permits {
                    assert_eq!(tidegate_try_admit(gate, 1, 1, permit), 0);
                }
                tidegate_gate_free(gate);
                for permit in permits {
                    assert!(Arc::strong_count(&clock) > 1);
                    assert_eq!(tidegate_release(gate, permit, 0), 0);
                }
            }
            assert_eq!(Arc::strong_count(&clock), 1);
        }
    }

    /// Otherwise n permits that come back to a gate that was given up would cost n^2 looks.
    #[test]
    fn each_slot_is_looked_at_once() {
        const PERMITS: u32 = 1_000;
        let core = Gate::builder("g", PERMITS).build().unwrap();
        let gate = tidegate_gate::new(core, CString::from(c"g"));
        let mut numbers: Vec<_> = (0..PERMITS)
            .map(|_| gate.slots.claim(None, gate.core.take(Ask::default()).unwrap()).unwrap())
            .collect();
        numbers.sort_unstable_by_key(|number| number & 0xff_ffff);
        for number in numbers {
            assert!(!gate.none_out());
            assert_eq!(gate.looked.load(Ordering::Relaxed) as u64, number & 0xff_ffff);
            let leaving = gate.slots.release(number).unwrap();
            gate.core.put(leaving.ticket, Outcome::Success);
            assert!(!gate.none_out(), "it is on its way");
        }
        assert!(gate.none_out());
    }
}
