//! What a forked child does with the gates it inherits.
//!
//! The child is a process of its own with one thread, and nothing that its parent holds is its to
//! release. So in the child every gate is empty, its counters start at zero, and permits taken before
//! the fork are inert: they carry the epoch of their process, which the child has moved on.
//!
//! A lock may be held, at the moment of the fork, by a thread that does not exist in the child. So the
//! child puts every lock's content into a new lock and leaves the old one behind. The forking thread
//! holds each gate's control lock across the fork, so that the content is never half changed. (Nobody
//! queues for a lock: see `sync`.)
//!
//! What a gate has published belongs to its parent's file, which the child must not write, and which changes
//! again as soon as the fork is done. So the child maps memory of its own in its place (`published`), and
//! takes the configuration from the lock's content, where it was noted before the fork.
//!
//! Lock order: those of files (see `file::forks`), then the registry, then gates in registry order. A reload of a
//! file holds the file's and one more; nothing else ever holds two.

use std::sync::atomic::{AtomicU32, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the first process and this one.
#[inline]
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// A process, told apart from those it is forked from. For bindings whose objects may be inherited by a child
/// in which they mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The process that asks.
    #[must_use]
    #[inline]
    pub fn current() -> Self {
        Self(epoch())
    }
}

#[cfg(all(unix, not(tidegate_loom)))]
pub(crate) use unix::install_handlers;

#[cfg(all(unix, not(tidegate_loom)))]
mod unix {
    #![allow(unsafe_code)]

    use super::{EPOCH, Ordering};
    use crate::registry::{REGISTRY, Registry, registry};
    use crate::sync::Mutex;

    /// Has all gates of the registry emptied in every child. Called once.
    pub(crate) fn install_handlers() {
        // SAFETY: the handlers are functions of this library, which is never unloaded while
        // it is in use, and they call nothing that a fork handler must not.
        let refused = unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
        assert_eq!(refused, 0, "no memory to register the fork handlers");
    }

    extern "C" fn prepare() {
        #[cfg(feature = "file")]
        crate::file::forks::hold();
        let mut registry = registry().lock();
        registry.held = registry.living();
        for gate in &registry.held {
            let mut control = gate.cold().control.lock();
            gate.before_fork(&mut control);
            std::mem::forget(control);
        }
        std::mem::forget(registry);
    }

    extern "C" fn in_parent() {
        let lock = registry();
        // SAFETY: `prepare` locked it in this thread and forgot the guard.
        let mut registry = unsafe { lock.raw().make_guard_unchecked() };
        let held = std::mem::take(&mut registry.held);
        for gate in &held {
            gate.state.note_forked();
            // SAFETY: as above.
            unsafe { gate.cold().control.raw().force_unlock() };
        }
        drop(registry);
        drop(held); // possibly the last owner of a gate: without the lock
        #[cfg(feature = "file")]
        crate::file::forks::let_go();
    }

    extern "C" fn in_child() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
        crate::thread::forget_other_threads();
        let old = registry();
        // SAFETY: `prepare` locked it in this thread, the only one there is, and forgot the guard.
        let old = unsafe { &mut *old.raw().data_ptr() };
        let held = std::mem::take(&mut old.held);
        let gates = std::mem::take(&mut old.gates);
        REGISTRY.replace_leaking(Mutex::new(Registry { gates, held: Vec::new() }));
        for gate in &held {
            // SAFETY: as above.
            let control = unsafe { &*gate.cold().control.raw().data_ptr() }.clone();
            gate.start_anew(control);
        }
        #[cfg(feature = "file")]
        crate::file::forks::let_go();
    }
}
