//! The one place that names where atomics and locks come from: std and `parking_lot`, or loom's
//! doubles when the crate is built with `--cfg tidegate_loom` for the models in `tests/loom`.

#[cfg(not(tidegate_loom))]
mod real {
    pub(crate) use parking_lot::{Condvar, Mutex};
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[cfg(tidegate_loom)]
mod real {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

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

    /// loom's condition variable with `parking_lot`'s surface, as far as the models need it.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar;

    impl Condvar {
        pub(crate) fn notify_all(&self) {}
    }
}

pub(crate) use real::*;
