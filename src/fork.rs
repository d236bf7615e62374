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
//! Lock order: the registry, then gates in registry order. Nothing else ever holds two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::admission::Inner;

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

#[cfg(any(not(unix), tidegate_loom))]
pub(crate) fn register(_gate: &Arc<Inner>) {}

#[cfg(all(unix, not(tidegate_loom)))]
pub(crate) use unix::register;

#[cfg(all(unix, not(tidegate_loom)))]
mod unix {
    #![allow(unsafe_code)]

    use std::sync::{Once, Weak};

    use super::{Arc, EPOCH, Inner, Ordering};
    use crate::replaceable::Replaceable;
    use crate::sync::Mutex;

    #[derive(Default)]
    struct Registry {
        gates: Vec<Weak<Inner>>,
        /// While a fork is under way: the gates whose control lock is held for it.
        held: Vec<Arc<Inner>>,
    }

    static REGISTRY: Replaceable<Mutex<Registry>> = Replaceable::empty();

    fn registry() -> &'static Mutex<Registry> {
        REGISTRY.get_or_init(Mutex::default)
    }

    /// Has `gate` emptied in every child that is forked while it lives.
    pub(crate) fn register(gate: &Arc<Inner>) {
        static HOOKS: Once = Once::new();
        let registry = registry();
        HOOKS.call_once(|| {
            // SAFETY: the handlers are functions of this library, which is never unloaded while
            // it is in use, and they call nothing that a fork handler must not.
            let refused = unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
            assert_eq!(refused, 0, "no memory to register the fork handlers");
        });
        let mut registry = registry.lock();
        if registry.gates.len() == registry.gates.capacity() {
            // Before the list grows: gates that are gone make room.
            registry.gates.retain(|gate| gate.strong_count() > 0);
        }
        registry.gates.push(Arc::downgrade(gate));
    }

    extern "C" fn prepare() {
        let mut registry = registry().lock();
        registry.held = registry.gates.iter().filter_map(Weak::upgrade).collect();
        for gate in &registry.held {
            std::mem::forget(gate.cold().control.lock());
        }
        std::mem::forget(registry);
    }

    extern "C" fn in_parent() {
        let lock = registry();
        // SAFETY: `prepare` locked it in this thread and forgot the guard.
        let mut registry = unsafe { lock.raw().make_guard_unchecked() };
        let held = std::mem::take(&mut registry.held);
        for gate in &held {
            // SAFETY: as above.
            unsafe { gate.cold().control.raw().force_unlock() };
        }
        drop(registry);
        drop(held); // possibly the last owner of a gate: without the lock
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
    }
}
