//! What a gate watches besides its limit.

#![allow(unsafe_code)] // reads what a caller's pointers point at

use std::ffi::{CStr, c_char};
use std::time::Duration;

use tidegate_core::ConfigError;
use tidegate_core::detector::Rule;
use tidegate_core::signal::{Kind, Signal};

use crate::status::{Refusal, TIDEGATE_ERR_ARGUMENT, TIDEGATE_ERR_NULL, TIDEGATE_ERR_VERSION};
use crate::versioned::{self, Versioned};

/// CPU time used of what the process may use.
pub const TIDEGATE_SIGNAL_CPU: i32 = 1;
/// Memory in use of what the process may use.
pub const TIDEGATE_SIGNAL_MEMORY: i32 = 2;
/// The share of time in which something waited for a CPU.
pub const TIDEGATE_SIGNAL_PSI_CPU: i32 = 3;
/// The share of time in which something waited for memory.
pub const TIDEGATE_SIGNAL_PSI_MEMORY: i32 = 4;
/// The share of time in which something waited for a disk.
pub const TIDEGATE_SIGNAL_PSI_IO: i32 = 5;
/// How long the gate's own permits are held, as a share of its objective.
pub const TIDEGATE_SIGNAL_LATENCY: i32 = 6;
/// The share of the gate's own answers that were overload.
pub const TIDEGATE_SIGNAL_ERRORS: i32 = 7;
/// What `tidegate_signal` pushes.
pub const TIDEGATE_SIGNAL_PUSHED: i32 = 8;

const KINDS: [(i32, Kind); Kind::ALL.len()] = [
    (TIDEGATE_SIGNAL_CPU, Kind::Cpu),
    (TIDEGATE_SIGNAL_MEMORY, Kind::Memory),
    (TIDEGATE_SIGNAL_PSI_CPU, Kind::PsiCpu),
    (TIDEGATE_SIGNAL_PSI_MEMORY, Kind::PsiMemory),
    (TIDEGATE_SIGNAL_PSI_IO, Kind::PsiIo),
    (TIDEGATE_SIGNAL_LATENCY, Kind::Latency),
    (TIDEGATE_SIGNAL_ERRORS, Kind::Errors),
    (TIDEGATE_SIGNAL_PUSHED, Kind::Pushed),
];

/// More signals than anybody has are a count that nobody initialised.
const MOST: usize = 1024;

/// A signal that a gate watches, and what its readings mean: docs/signals.md. Start with `TIDEGATE_SIGNAL_INIT`, and
/// set `kind`. What is negative has the kind's default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_signal_config {
    /// `sizeof(tidegate_signal_config)`.
    pub struct_size: u32,
    /// One of the `TIDEGATE_SIGNAL_` numbers. Has to be set.
    pub kind: i32,
    /// A label that ends with NUL; each signal of a gate has one of its own. NULL is the kind's name: "cpu",
    /// "memory", "psi-cpu", "psi-memory", "psi-io", "latency", "errors", "pushed".
    pub name: *const c_char,
    /// Overloaded at this pressure or above, 0.0 to 1.0.
    pub enter: f64,
    /// Not overloaded any more at this pressure or below; below `enter`.
    pub leave: f64,
    /// The pressure at which all is shed that can be; `enter` or above.
    pub full: f64,
    /// For how long it must stay at `enter` or above, in seconds.
    pub enter_for: f64,
    /// For how long it must stay at `leave` or below, in seconds.
    pub leave_for: f64,
    /// How long it rests after a change, in seconds.
    pub dwell: f64,
    /// In which time what it sheds may rise from nothing to all, in seconds.
    pub ramp: f64,
}

// SAFETY: numbers, and a pointer, of which any bytes make one.
unsafe impl Versioned for tidegate_signal_config {}

/// The signals of an array of the caller's.
///
/// # Safety
/// `array` is NULL, or there are `count` of them, each as large as the first one says.
pub(crate) unsafe fn signals(
    array: *const tidegate_signal_config,
    count: usize,
) -> Result<Vec<(Signal, Rule)>, Refusal> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if array.is_null() {
        return Err(Refusal::new(TIDEGATE_ERR_NULL, "signals is NULL, with a signal_count above 0"));
    }
    if count > MOST {
        let text = format!("signal_count must be at most {MOST}, got {count}");
        return Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text));
    }
    // SAFETY: the caller's promise, here and below. All have the size of the first.
    let stride = unsafe { array.cast::<u32>().read_unaligned() };
    let mut signals = Vec::with_capacity(count);
    for at in 0..count {
        let place = array.wrapping_byte_add(at * stride as usize);
        let config = unsafe { versioned::read(place) };
        let config = config.ok().filter(|config| config.struct_size == stride).ok_or_else(|| {
            let text = format!(
                "signals[{at}] is of a version that this library cannot serve: its struct_size is not a known one or \
                 not that of the first, or it uses what this version does not know"
            );
            Refusal::new(TIDEGATE_ERR_VERSION, text)
        })?;
        signals.push(
            unsafe { config.read() }.map_err(|refusal| {
                Refusal::new(refusal.status, format!("signals[{at}]: {}", refusal.text))
            })?,
        );
    }
    Ok(signals)
}

impl tidegate_signal_config {
    unsafe fn read(&self) -> Result<(Signal, Rule), Refusal> {
        let Some((_, kind)) = KINDS.into_iter().find(|&(number, _)| number == self.kind) else {
            let text = format!("kind must be one of the TIDEGATE_SIGNAL_ numbers, 1 to 8, got {}", self.kind);
            return Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text));
        };
        let default = kind.rule();
        let share = |value: f64, default: f64| if value < 0.0 { default } else { value };
        let rule = default.between(
            share(self.enter, default.enter()),
            share(self.leave, default.leave()),
            share(self.full, default.full()),
        )?;
        let rule = rule
            .holding(
                seconds("enter_for", self.enter_for)?.unwrap_or(default.enter_for()),
                seconds("leave_for", self.leave_for)?.unwrap_or(default.leave_for()),
            )
            .resting(seconds("dwell", self.dwell)?.unwrap_or(default.dwell()))
            .rising_in(seconds("ramp", self.ramp)?.unwrap_or(default.ramp()));
        if self.name.is_null() {
            return Ok((Signal::named(kind, kind.name()), rule));
        }
        // SAFETY: the caller's promise.
        let name = unsafe { CStr::from_ptr(self.name) }.to_bytes();
        let name = std::str::from_utf8(name)
            .map_err(|_| ConfigError::Name { got: String::from_utf8_lossy(name).into_owned() })?;
        Ok((Signal::named(kind, name), rule))
    }
}

/// A time; `None` for what is negative.
pub(crate) fn seconds(name: &str, seconds: f64) -> Result<Option<Duration>, Refusal> {
    if seconds < 0.0 {
        return Ok(None);
    }
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| {
        let text = format!("{name} must be a time in seconds, 0 or more, got {seconds}");
        Refusal::new(TIDEGATE_ERR_ARGUMENT, text)
    })
}
