//! Waiting for a closed gate to empty: the one place where anything waits.

use std::fmt;
use std::thread::{self, Thread};
use std::time::Instant;

use crate::sync::Mutex;

type Callback = Box<dyn FnOnce() + Send>;

/// Names a callback that waits for a gate to empty, to forget it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainId(u64);

impl DrainId {
    /// The id as a number, for bindings.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        self.0
    }

    /// The id of such a number. One that was never given out names nothing.
    #[must_use]
    pub fn from_u64(id: u64) -> Self {
        Self(id)
    }
}

enum Waiter {
    Thread(Thread),
    Callback(Callback),
}

#[derive(Default)]
struct Waiting {
    waiters: Vec<(DrainId, Waiter)>,
    ids: u64,
}

/// Who waits for the last permit to leave.
#[derive(Default)]
pub(crate) struct Drain {
    waiting: Mutex<Waiting>,
}

impl Drain {
    fn list(&self, waiter: Waiter) -> DrainId {
        let mut waiting = self.waiting.lock();
        waiting.ids += 1;
        let id = DrainId(waiting.ids);
        waiting.waiters.push((id, waiter));
        id
    }

    /// Waits until `empty` holds or `deadline` has passed, and says whether it holds. The thread is
    /// listed before it looks, and a release that empties the gate calls [`notify`](Self::notify)
    /// after that: it cannot fall between the look and the wait. It is listed anew each time it was woken,
    /// since being woken took it off the list and the gate may not be empty for the blink of an entry that
    /// finds it closed.
    pub(crate) fn wait(&self, deadline: Option<Instant>, empty: impl Fn() -> bool) -> bool {
        loop {
            let id = self.list(Waiter::Thread(thread::current()));
            let emptied = empty();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let done = emptied || left.is_some_and(|left| left.is_zero());
            if !done {
                left.map_or_else(thread::park, thread::park_timeout);
            }
            self.forget(id);
            if done {
                return emptied;
            }
        }
    }

    /// Has `callback` called, without any lock, once `empty` holds: at the latest by whoever makes
    /// it hold.
    pub(crate) fn when_empty(&self, callback: Callback, empty: impl Fn() -> bool) -> DrainId {
        let id = self.list(Waiter::Callback(callback));
        if empty() {
            self.notify();
        }
        id
    }

    /// Forgets who waits under `id`; whether it was still waiting.
    pub(crate) fn forget(&self, id: DrainId) -> bool {
        let forgotten = {
            let waiters = &mut self.waiting.lock().waiters;
            let at = waiters.iter().position(|&(waiting, _)| waiting == id);
            at.map(|at| waiters.swap_remove(at))
        };
        // Dropped here, without the lock: it may own anything.
        forgotten.is_some()
    }

    /// Wakes everybody. Called when the gate has become empty, by more than one where they leave together.
    pub(crate) fn notify(&self) {
        let waiters = std::mem::take(&mut self.waiting.lock().waiters);
        for (_, waiter) in waiters {
            match waiter {
                Waiter::Thread(thread) => thread.unpark(),
                Waiter::Callback(callback) => callback(),
            }
        }
    }
}

impl fmt::Debug for Drain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").finish_non_exhaustive()
    }
}
