//! Gates that were given up while permits were out: a list from which they are freed once no permit is.
//!
//! Sweeping takes the whole list, frees the gates that are done with and puts the others back. Whoever holds
//! a gate's slot holds the gate; it looks whether the gate was given up before it lets go, since afterwards
//! the gate may be gone. If it was, it sweeps. A sweep that runs at the same time may have looked at the
//! slot too early and put the gate back too late to be seen: so releases are counted, and a sweep that finds
//! the count changed sweeps again. All of that in one total order (`SeqCst`).
//!
//! Who looked just before the gate was given up does not sweep; that gate is freed by the next sweep, which
//! every gate that is made or given up brings.
//!
//! There is no lock: a forked child could find it held by a thread that it does not have.

#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::gate::tidegate_gate;

static HEAD: AtomicPtr<tidegate_gate> = AtomicPtr::new(ptr::null_mut());
static RELEASES: AtomicU64 = AtomicU64::new(0);

/// Puts a gate on the list, which owns it from now on.
pub(crate) fn push(gate: *mut tidegate_gate) {
    // SAFETY: the caller owns the gate, so it is live.
    let next = unsafe { &(*gate).next };
    let mut head = HEAD.load(Ordering::SeqCst);
    loop {
        next.store(head, Ordering::Relaxed);
        match HEAD.compare_exchange_weak(head, gate, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// After the release of a permit whose gate was given up.
#[cold]
pub(crate) fn released() {
    RELEASES.fetch_add(1, Ordering::SeqCst);
    sweep();
}

/// Frees the gates that no permit keeps any more.
pub(crate) fn sweep() {
    loop {
        let before = RELEASES.load(Ordering::SeqCst);
        let mut gate = HEAD.swap(ptr::null_mut(), Ordering::SeqCst);
        while !gate.is_null() {
            // SAFETY: on the list only live gates, and whoever took it owns them.
            let next = unsafe { (*gate).next.load(Ordering::Relaxed) };
            if unsafe { &*gate }.none_out() {
                // SAFETY: from `Box::into_raw`, and nobody holds a slot: nobody will touch it again.
                drop(unsafe { Box::from_raw(gate) });
            } else {
                push(gate);
            }
            gate = next;
        }
        if RELEASES.load(Ordering::SeqCst) == before {
            return;
        }
    }
}
