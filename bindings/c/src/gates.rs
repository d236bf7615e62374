//! Gates from a file.
//!
//! What C holds of a gate has slots for permits, so each name has one `tidegate_gate`, made when it is first asked
//! for and kept until the file is given up. They are a list that only grows: whoever adds to it swaps its head, and
//! looks again for the name if somebody else did. There is no lock: a forked child could find it held.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use tidegate_core::{Change, FileError, GateBuilder, Gates};

use crate::arguments::TIDEGATE_PRIORITY_DEFAULT;
use crate::deferred;
use crate::entry::{guard, read, reference, write};
use crate::gate::{give_up, tidegate_gate};
use crate::status::{
    Refusal, TIDEGATE_ERR_ARGUMENT, TIDEGATE_ERR_CONFIG, TIDEGATE_ERR_NULL, TIDEGATE_ERR_PANIC,
    tidegate_status,
};
use crate::text;

/// The most attributes that a request is classified by. More are a length that nobody initialised.
const MOST_ATTRIBUTES: usize = 4096;

/// The gates of a file, by name, and its classifier. Make it with `tidegate_open`, give it up with
/// `tidegate_gates_free`; in between every function may be called on it from any thread at any time.
pub struct tidegate_gates {
    core: Gates,
    /// All that were asked for, by their `next`.
    head: AtomicPtr<tidegate_gate>,
}

/// What is known of a request: see `tidegate_classify`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_attribute {
    /// Such as "path"; ends with NUL.
    pub name: *const c_char,
    /// `value_len` bytes, which need not end with NUL; NULL where the request lacks it.
    pub value: *const c_char,
    /// How many bytes the value has.
    pub value_len: usize,
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        Self::new(TIDEGATE_ERR_CONFIG, error.to_string())
    }
}

fn prepare(builder: GateBuilder) -> GateBuilder {
    #[cfg(feature = "test-hooks")]
    let builder = crate::test_hooks::on_the_test_clock(builder);
    builder
}

/// What a call with a buffer for a text says: `body`, and then why it did nothing.
unsafe fn saying(
    buffer: *mut c_char,
    capacity: usize,
    body: impl FnOnce(&mut String) -> Result<(), Refusal>,
) -> tidegate_status {
    let mut said = String::new();
    let status = guard(|| {
        body(&mut said).map_err(|refusal| {
            said = refusal.text;
            refusal.status
        })
    });
    if status == TIDEGATE_ERR_PANIC {
        "a fault inside the library".clone_into(&mut said);
    }
    // SAFETY: the caller's promise.
    unsafe { text::write(buffer, capacity, &said) };
    status
}

fn null(what: &str) -> Refusal {
    Refusal::new(TIDEGATE_ERR_NULL, format!("{what} is NULL"))
}

/// No object is longer, so that a length beyond it, such as -1, is not one.
fn length(what: &str, length: usize) -> Result<usize, Refusal> {
    if isize::try_from(length).is_ok() {
        return Ok(length);
    }
    Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, format!("{what} must be at most {}, got {length}", isize::MAX)))
}

/// The bytes that a pointer and a checked length stand for.
pub(crate) unsafe fn bytes<'a>(pointer: *const c_char, length: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller of the function says that there are so many bytes.
    (!pointer.is_null()).then(|| unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), length) })
}

/// A text in TOML. What is no UTF-8 is no TOML either, and said to be so at its line.
unsafe fn toml(file: &str, text: *const c_char, text_len: usize) -> Result<String, Refusal> {
    let text_len = length("text_len", text_len)?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(text, text_len) }.ok_or_else(|| null("text"))?;
    tidegate_core::toml_text(file, bytes.to_vec()).map_err(Refusal::from)
}

unsafe fn hand_out(
    out: *mut *mut tidegate_gates,
    open: impl FnOnce() -> Result<Gates, Refusal>,
) -> Result<(), Refusal> {
    // SAFETY: the caller's promise, here and below.
    unsafe { write(out, ptr::null_mut()) }.map_err(|_| null("out"))?;
    deferred::sweep();
    let gates = tidegate_gates { core: open()?, head: AtomicPtr::new(ptr::null_mut()) };
    unsafe { write(out, Box::into_raw(Box::new(gates))) }.map_err(|_| null("out"))
}

#[cfg(unix)]
fn path_of(path: &CStr) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(path.to_bytes()).into()
}

#[cfg(not(unix))]
fn path_of(path: &CStr) -> PathBuf {
    path.to_string_lossy().into_owned().into()
}

/// Reads a file of gates, in TOML: see docs/configuration.md.
///
/// `path`: the file, ended with NUL. `out` gets the gates, or NULL where the file cannot be used. `err`: a buffer
/// of `err_cap` bytes that gets the reason: everything that is wrong with the file, one problem a line with its
/// line, value and rule, cut if need be and always ended with NUL, or an empty string; may be NULL.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_CONFIG` where the file cannot be read or
/// breaks a rule.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_open(
    path: *const c_char,
    out: *mut *mut tidegate_gates,
    err: *mut c_char,
    err_cap: usize,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    let open = || {
        if path.is_null() {
            return Err(null("path"));
        }
        let path = path_of(unsafe { CStr::from_ptr(path) });
        Gates::load_with(path, prepare).map_err(Refusal::from)
    };
    unsafe { saying(err, err_cap, |_| hand_out(out, open)) }
}

/// As `tidegate_open`, from a text of `text_len` bytes. `file`: what messages call it, ended with NUL; NULL is
/// "<text>".
///
/// Answers as that does, or `TIDEGATE_ERR_ARGUMENT` for a `text_len` such as -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_open_text(
    text: *const c_char,
    text_len: usize,
    file: *const c_char,
    out: *mut *mut tidegate_gates,
    err: *mut c_char,
    err_cap: usize,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    let open = || {
        let file = if file.is_null() { c"<text>" } else { unsafe { CStr::from_ptr(file) } };
        let file = file.to_string_lossy();
        let text = unsafe { toml(&file, text, text_len) }?;
        Gates::from_toml_with(&file, &text, prepare).map_err(Refusal::from)
    };
    unsafe { saying(err, err_cap, |_| hand_out(out, open)) }
}

/// Gives the gates up, all of them as `tidegate_gate_free` does: permits that are out keep their gate alive, closed,
/// and can be released as before. NULL is fine and does nothing.
///
/// No other call on them may be under way, but for `tidegate_release` of permits that are out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_gates_free(gates: *mut tidegate_gates) {
    guard(|| {
        if gates.is_null() {
            return Ok(());
        }
        // SAFETY: from `Box::into_raw`, and the caller gives it up.
        let gates = unsafe { Box::from_raw(gates) };
        let mut gate = gates.head.swap(ptr::null_mut(), Ordering::AcqRel);
        while !gate.is_null() {
            // SAFETY: on the list only live gates, of which this is now the only owner.
            unsafe {
                let next = (*gate).next.load(Ordering::Relaxed);
                give_up(gate);
                gate = next;
            }
        }
        deferred::sweep();
        Ok(())
    });
}

impl tidegate_gates {
    /// The handle of a gate that the file has.
    fn find(&self, name: &str) -> Option<*const tidegate_gate> {
        let core = self.core.gate(name)?;
        let mut made: *mut tidegate_gate = ptr::null_mut();
        loop {
            let head = self.head.load(Ordering::Acquire);
            if let Some(known) = Self::known(head, name) {
                if !made.is_null() {
                    // SAFETY: from `Box::into_raw` below, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(made) });
                }
                return Some(known);
            }
            if made.is_null() {
                let name = CString::new(name).ok()?; // names have no NUL
                made = Box::into_raw(Box::new(tidegate_gate::of_a_file(core.clone(), name)));
            }
            // SAFETY: it is live, and not on the list yet.
            unsafe { (*made).next.store(head, Ordering::Relaxed) };
            if self.head.compare_exchange(head, made, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Some(made);
            }
        }
    }

    fn known(mut gate: *mut tidegate_gate, name: &str) -> Option<*const tidegate_gate> {
        while !gate.is_null() {
            // SAFETY: what is on the list lives as long as the gates, which the caller holds.
            let this = unsafe { &*gate };
            if this.core.name() == name {
                return Some(gate);
            }
            gate = this.next.load(Ordering::Relaxed);
        }
        None
    }
}

/// The gate of a name, `name_len` bytes of UTF-8: the same pointer at every call. It belongs to the gates and is
/// valid until they are given up, also where a reload has the file without it, which closes it. `out` gets it,
/// or NULL where the file has no such gate.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` where the file has no such gate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_find(
    gates: *const tidegate_gates,
    name: *const c_char,
    name_len: usize,
    out: *mut *const tidegate_gate,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        write(out, ptr::null())?;
        let gates = reference(gates)?;
        if name_len > tidegate_core::MAX_NAME_BYTES {
            return Err(TIDEGATE_ERR_ARGUMENT); // not read: the length may be garbage
        }
        let name = bytes(name, name_len).ok_or(TIDEGATE_ERR_NULL)?;
        let name = std::str::from_utf8(name).map_err(|_| TIDEGATE_ERR_ARGUMENT)?;
        write(out, gates.find(name).ok_or(TIDEGATE_ERR_ARGUMENT)?)
    })
}

/// The gate at a position among those that the file has, from 0, in the file's order: for going through all of
/// them. Otherwise as `tidegate_find`; `TIDEGATE_ERR_ARGUMENT` behind the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_gate_at(
    gates: *const tidegate_gates,
    position: usize,
    out: *mut *const tidegate_gate,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        write(out, ptr::null())?;
        let gates = reference(gates)?;
        let names = gates.core.names();
        let name = names.get(position).ok_or(TIDEGATE_ERR_ARGUMENT)?;
        write(out, gates.find(name).ok_or(TIDEGATE_ERR_ARGUMENT)?)
    })
}

/// Reads the file again and makes its gates what it says now. Nothing is admitted above a new limit once this has
/// returned, and no count is lost. A gate that the file has no more is closed until it has it again.
///
/// `report`: a buffer of `report_cap` bytes that gets what was changed, one change a line, or why nothing was, as
/// `tidegate_open` has it; cut if need be and always ended with NUL; may be NULL.
///
/// Answers `TIDEGATE_ADMITTED`, also where there was nothing to change; `TIDEGATE_ERR_NULL`; or
/// `TIDEGATE_ERR_CONFIG` where the file cannot be used, or wants something of a gate in use that is fixed when it is
/// made (`timing`). Then nothing was changed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_reload(
    gates: *const tidegate_gates,
    report: *mut c_char,
    report_cap: usize,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        saying(report, report_cap, |said| {
            let gates = reference(gates).map_err(|_| null("gates"))?;
            report_changes(said, &gates.core.reload()?);
            Ok(())
        })
    }
}

/// As `tidegate_reload`, from a text of `text_len` bytes.
///
/// Answers as that does, or `TIDEGATE_ERR_ARGUMENT` for a `text_len` such as -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_reload_text(
    gates: *const tidegate_gates,
    text: *const c_char,
    text_len: usize,
    report: *mut c_char,
    report_cap: usize,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        saying(report, report_cap, |said| {
            let gates = reference(gates).map_err(|_| null("gates"))?;
            let text = toml(gates.core.file(), text, text_len)?;
            report_changes(said, &gates.core.reload_toml(&text)?);
            Ok(())
        })
    }
}

fn report_changes(to: &mut String, changes: &[Change]) {
    let sentences: Vec<_> = changes.iter().map(ToString::to_string).collect();
    *to = sentences.join("\n");
}

/// What the gates and rules do, in words, with what is worth a second look, as `tidegate check FILE` prints it.
///
/// `text`: a buffer of `text_cap` bytes, filled as `err` of `tidegate_open`; may be NULL. `length` gets how long the
/// whole text is, in bytes without the NUL; may be NULL.
///
/// Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_explain(
    gates: *const tidegate_gates,
    text: *mut c_char,
    text_cap: usize,
    length: *mut usize,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        saying(text, text_cap, |said| {
            *said = reference(gates).map_err(|_| null("gates"))?.core.explain();
            if !length.is_null() {
                length.write_unaligned(said.len());
            }
            Ok(())
        })
    }
}

/// The priority of a request by the rules that the file has now.
///
/// `attributes`: what is known of it, `count` of them; of several with one name the first counts. What a client
/// sent need not be UTF-8. `priority` gets one of the `TIDEGATE_PRIORITY_` numbers, `TIDEGATE_PRIORITY_DEFAULT` where
/// no rule matches and there is no default, or no classifier: fit for `tidegate_try_admit` either way. `why`: a
/// buffer of `why_cap` bytes that gets a sentence with the rule that decided, filled as `err` of `tidegate_open`;
/// may be NULL, which costs less.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, or `TIDEGATE_ERR_ARGUMENT` for more than 4096 attributes or a
/// `value_len` such as -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_classify(
    gates: *const tidegate_gates,
    attributes: *const tidegate_attribute,
    count: usize,
    priority: *mut i32,
    why: *mut c_char,
    why_cap: usize,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    unsafe {
        saying(why, why_cap, |said| {
            let gates = reference(gates).map_err(|_| null("gates"))?;
            write(priority, TIDEGATE_PRIORITY_DEFAULT).map_err(|_| null("priority"))?;
            if count > MOST_ATTRIBUTES {
                let text = format!("attributes must be at most {MOST_ATTRIBUTES}, got {count}");
                return Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text));
            }
            for at in 0..count {
                match read(attributes.wrapping_add(at)) {
                    Ok(attribute) if !attribute.name.is_null() => {
                        length("value_len", attribute.value_len)?;
                    }
                    _ => return Err(null("an attribute's name, or attributes,")),
                }
            }
            let Some(classifier) = gates.core.classifier() else {
                "undecided: there is no classifier".clone_into(said);
                return Ok(());
            };
            let lookup = |name: &str| {
                (0..count).find_map(|at| {
                    let attribute = read(attributes.wrapping_add(at)).ok()?;
                    (CStr::from_ptr(attribute.name).to_bytes() == name.as_bytes()).then_some(attribute)
                })
            };
            let value = |name: &str| {
                let attribute = lookup(name)?;
                Some(String::from_utf8_lossy(bytes(attribute.value, attribute.value_len)?))
            };
            let decided = if why.is_null() {
                classifier.classify(value)
            } else {
                let explained = classifier.explain(value);
                *said = explained.to_string();
                explained.priority
            };
            let number = decided.map_or(TIDEGATE_PRIORITY_DEFAULT, |decided| decided as i32);
            write(priority, number).map_err(|_| null("priority"))
        })
    }
}
