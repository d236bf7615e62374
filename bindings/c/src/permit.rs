//! The way in and out.

#![allow(unsafe_code)]

use tidegate_core::{Outcome, Ticket, own_index};

use crate::arguments::{ask, outcome, priority_or_default};
use crate::config::Flag;
use crate::deferred;
use crate::entry::{Answer, guard, reference, write};
use crate::gate::tidegate_gate;
use crate::status::{TIDEGATE_ERR_EXHAUSTED, TIDEGATE_ERR_STALE, of_shed, tidegate_status};
use crate::versioned::{self, Versioned};

/// Asks for a permit. Never waits.
///
/// `priority`: one of the `TIDEGATE_PRIORITY_` numbers. `weight`: how much of the limit the permit takes, 1
/// to 2147483647. `permit` gets a number that is never 0 and never given again, for `tidegate_release`, or 0
/// where nothing was admitted.
///
/// Answers `TIDEGATE_ADMITTED`, a `TIDEGATE_SHED_` reason, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_ARGUMENT` or
/// `TIDEGATE_ERR_EXHAUSTED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_try_admit(
    gate: *const tidegate_gate,
    priority: i32,
    weight: i64,
    permit: *mut u64,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        write(permit, 0)?;
        let gate = reference(gate)?;
        let vacant = gate.slots.vacant(own_index());
        let ticket = gate.core.take(ask(priority, weight)?).map_err(|shed| of_shed(&shed))?;
        let number = gate.slots.claim(vacant.as_ref(), ticket).ok_or_else(|| exhausted(gate, ticket))?;
        write(permit, number)
    })
}

#[cold]
#[inline(never)]
fn exhausted(gate: &tidegate_gate, ticket: Ticket) -> tidegate_status {
    gate.core.put(ticket, Outcome::Ignore);
    TIDEGATE_ERR_EXHAUSTED
}

/// Gives a permit back, exactly once, from any thread.
///
/// `outcome`: what its work came to, one of the `TIDEGATE_OUTCOME_` numbers.
///
/// Answers `TIDEGATE_ADMITTED`; `TIDEGATE_ERR_STALE` when the permit is not out on this gate, because it was
/// released before (of two threads that release it at once, one gets this answer) or by the parent of a
/// forked process; `TIDEGATE_ERR_ARGUMENT` for a number that is no outcome, which leaves the permit out;
/// `TIDEGATE_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_release(
    gate: *const tidegate_gate,
    permit: u64,
    outcome: i32,
) -> tidegate_status {
    // SAFETY: the caller's promise.
    guard(|| release(unsafe { reference(gate) }?, permit, Way::Released(self::outcome(outcome)?)))
}

/// As `tidegate_release` with outcome `ignore`, and counted as collected: for bindings to languages with a
/// garbage collector, whose finalizer found a permit that was forgotten.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_STALE` as `tidegate_release` does, or `TIDEGATE_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_release_collected(
    gate: *const tidegate_gate,
    permit: u64,
) -> tidegate_status {
    // SAFETY: the caller's promise.
    guard(|| release(unsafe { reference(gate) }?, permit, Way::Collected))
}

#[derive(Clone, Copy)]
enum Way {
    Released(Outcome),
    Collected,
}

#[allow(clippy::inline_always)] // one of its two callers is the way out that has to be short
#[inline(always)]
fn release(gate: &tidegate_gate, permit: u64, way: Way) -> Answer {
    let leaving = gate.slots.release(permit).ok_or(TIDEGATE_ERR_STALE)?;
    let ticket = leaving.ticket;
    let inert = gate.core.is_inert(&ticket);
    match way {
        Way::Released(outcome) => gate.core.put(ticket, outcome),
        Way::Collected => gate.core.put_collected(ticket),
    }
    let given_up = gate.given_up(); // asked while the slot still keeps the gate
    drop(leaving);
    if given_up {
        deferred::released();
    }
    if inert { Err(TIDEGATE_ERR_STALE) } else { Ok(()) }
}

/// What a permit that is out was admitted with. Start with `TIDEGATE_PERMIT_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_permit {
    /// `sizeof(tidegate_permit)`.
    pub struct_size: u32,
    /// The priority, 0 to 3.
    pub priority: i32,
    /// The weight.
    pub weight: i64,
    /// Whether dry run let it in although enforcement would have shed it.
    pub over: Flag,
    /// Zero.
    pub reserved: [u8; 7],
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_permit {}

/// Reads what a permit that is out was admitted with.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL`, `TIDEGATE_ERR_STALE` as `tidegate_release` does, or
/// `TIDEGATE_ERR_VERSION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_permit(
    gate: *const tidegate_gate,
    permit: u64,
    out: *mut tidegate_permit,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        let ticket = gate.slots.peek(permit).filter(|ticket| !gate.core.is_inert(ticket));
        let ticket = ticket.ok_or(TIDEGATE_ERR_STALE)?;
        versioned::write(out, |struct_size| tidegate_permit {
            struct_size,
            priority: ticket.priority() as i32,
            weight: ticket.weight().into(),
            over: ticket.over().into(),
            reserved: [0; 7],
        })
    })
}

/// Enters without a permit, with weight 1: for blocks whose structure guarantees that each entry has its
/// `tidegate_exit`. Where that is not certain use `tidegate_try_admit`, which notices. Set `bare_entries` in
/// the configuration of gates that are used like this.
///
/// Answers as `tidegate_try_admit` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_enter(gate: *const tidegate_gate, priority: i32) -> tidegate_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let gate = unsafe { reference(gate) }?;
        gate.core.enter(priority_or_default(priority)?).map_err(|shed| of_shed(&shed))
    })
}

/// Leaves after `tidegate_enter`. Has to have returned before the gate is given up.
///
/// Answers `TIDEGATE_ADMITTED`; `TIDEGATE_ERR_STALE`, counted in `unmatched_exits` and without effect, where
/// nothing is inside or nobody ever entered like that; `TIDEGATE_ERR_ARGUMENT`; `TIDEGATE_ERR_NULL`. An exit
/// too many while others are inside cannot be told from one of theirs. In dry run an exit draws whether its
/// entry was over the limit: right on average for exponential service times only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_exit(gate: *const tidegate_gate, outcome: i32) -> tidegate_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let gate = unsafe { reference(gate) }?;
        if gate.core.exit(self::outcome(outcome)?) { Ok(()) } else { Err(TIDEGATE_ERR_STALE) }
    })
}

/// For how long a request like this should stay away, in seconds: a lower bound, from how quickly the gate
/// drains for its priority. 0 when it would be admitted now, -1 when nothing is known yet, `HUGE_VAL` when
/// no retry can succeed (the gate is closed, or the weight exceeds the priority's threshold).
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_retry_after(
    gate: *const tidegate_gate,
    priority: i32,
    weight: i64,
    seconds: *mut f64,
) -> tidegate_status {
    use tidegate_core::RetryAfter;
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        let wait = match gate.core.retry_after(ask(priority, weight)?) {
            RetryAfter::Known(wait) => wait.as_secs_f64(),
            RetryAfter::Unknown => -1.0,
            RetryAfter::Never => f64::INFINITY,
        };
        write(seconds, wait)
    })
}
