//! Waiting for a closed gate to empty: the one place where anything waits.

use std::fmt;
use std::time::Instant;

use crate::sync::{Condvar, Mutex};

type Callback = Box<dyn FnOnce() + Send>;

/// Who waits for the last permit to leave.
#[derive(Default)]
pub(crate) struct Drain {
    callbacks: Mutex<Vec<Callback>>,
    emptied: Condvar,
}

impl Drain {
    /// Waits until `empty` holds or `deadline` has passed, and says whether it holds. A release
    /// that empties the gate calls [`notify`](Self::notify), which takes the same lock: it
    /// cannot fall between the question and the wait.
    #[cfg(not(tidegate_loom))]
    pub(crate) fn wait(&self, deadline: Option<Instant>, empty: impl Fn() -> bool) -> bool {
        let mut callbacks = self.callbacks.lock();
        while !empty() {
            match deadline {
                None => self.emptied.wait(&mut callbacks),
                Some(deadline) => {
                    if self.emptied.wait_until(&mut callbacks, deadline).timed_out() {
                        return empty();
                    }
                }
            }
        }
        true
    }

    #[cfg(tidegate_loom)]
    pub(crate) fn wait(&self, _: Option<Instant>, empty: impl Fn() -> bool) -> bool {
        empty()
    }

    /// Has `callback` called, without any lock, once `empty` holds: at the latest by whoever makes
    /// it hold.
    pub(crate) fn when_empty(&self, callback: Callback, empty: impl Fn() -> bool) {
        self.callbacks.lock().push(callback);
        if empty() {
            self.notify();
        }
    }

    /// Wakes everybody. Called when the gate has become empty, by more than one where they leave together.
    pub(crate) fn notify(&self) {
        let callbacks = {
            let mut waiting = self.callbacks.lock();
            self.emptied.notify_all();
            std::mem::take(&mut *waiting)
        };
        for callback in callbacks {
            callback();
        }
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}
