//! A value that can be put out of use without being touched: for locks in a forked child.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Owns a boxed value, and can leave it behind for a new one.
pub(crate) struct Replaceable<T> {
    value: AtomicPtr<T>,
    // AtomicPtr is Send and Sync whatever it points to; this type is so only where `T` is.
    owns: PhantomData<T>,
}

impl<T> Replaceable<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: AtomicPtr::new(Box::into_raw(Box::new(value))), owns: PhantomData }
    }

    /// No value yet: for statics, which [`get_or_init`](Self::get_or_init) fills.
    #[cfg(not(tidegate_loom))]
    pub(crate) const fn empty() -> Self {
        Self { value: AtomicPtr::new(std::ptr::null_mut()), owns: PhantomData }
    }

    /// The value, made by `init` where there is none. Of several made at once, one stays.
    #[cfg(not(tidegate_loom))]
    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if self.value.load(Ordering::Acquire).is_null() {
            let made = Box::into_raw(Box::new(init()));
            let empty = std::ptr::null_mut();
            if self.value.compare_exchange(empty, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: from `Box::into_raw` above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        self.get()
    }

    #[inline]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: not null: `empty` is only made for statics, whose users go through `get_or_init`. The
        // pointer came from `Box::into_raw`, and no value is freed while `self` lives:
        // a replaced one is leaked, the last one is freed by `drop`, which borrows exclusively.
        unsafe { &*self.value.load(Ordering::Acquire) }
    }

    /// Uses `value` from now on. The old value is leaked: somebody who no longer exists may stand in
    /// the middle of using it.
    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn replace_leaking(&self, value: T) {
        self.value.store(Box::into_raw(Box::new(value)), Ordering::Release);
    }
}

impl<T> Drop for Replaceable<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw`, and no reference from `get` outlives `self`.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Replaceable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
