//! The one place that names where atomics and locks come from: std and `parking_lot`, or loom's
//! doubles when the crate is built with `--cfg tidegate_loom` for the models in `tests/loom`.

#[cfg(not(tidegate_loom))]
mod real {
    use std::time::Duration;

    use crossbeam_utils::Backoff;

    pub(crate) use portable_atomic::AtomicU128;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use std::thread;

    /// `parking_lot`'s mutex, without its queue. The queues of all its locks are one table of nodes that lie
    /// on the waiting threads' stacks. A forked child inherits the table, but the C library gives those
    /// stacks to the child's own threads: whoever queues there after that can lose its wake-up. So nobody
    /// queues: what these locks guard takes less than a microsecond, or a fork.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(parking_lot::const_mutex(value))
        }

        pub(crate) fn lock(&self) -> parking_lot::MutexGuard<'_, T> {
            let backoff = Backoff::new();
            loop {
                if let Some(guard) = self.0.try_lock() {
                    return guard;
                }
                if backoff.is_completed() {
                    thread::sleep(Duration::from_micros(50)); // it may be a fork that holds it
                } else {
                    backoff.snooze();
                }
            }
        }

        /// For the handlers of a fork, which keep it locked without a guard.
        #[cfg(unix)]
        pub(crate) fn raw(&self) -> &parking_lot::Mutex<T> {
            &self.0
        }
    }
}

#[cfg(tidegate_loom)]
mod real {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use loom::thread;

    /// loom has none of this size: a value behind its mutex, whose every use is ordered as strongly.
    #[derive(Debug)]
    pub(crate) struct AtomicU128(Mutex<u128>);

    impl AtomicU128 {
        pub(crate) fn new(value: u128) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn load(&self, _: Ordering) -> u128 {
            *self.0.lock()
        }

        pub(crate) fn compare_exchange(
            &self,
            current: u128,
            new: u128,
            _: Ordering,
            _: Ordering,
        ) -> Result<u128, u128> {
            let mut value = self.0.lock();
            if *value != current {
                return Err(*value);
            }
            Ok(std::mem::replace(&mut value, new))
        }
    }

    /// loom's mutex with `parking_lot`'s surface.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics while it holds a lock")
        }
    }
}

pub(crate) use real::*;
