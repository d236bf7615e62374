//! A flag that is set once.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::Python;

/// Tells the first to set it from all others, which is what "exactly once" rests on.
pub(crate) struct OnceFlag(AtomicBool);

impl OnceFlag {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Sets the flag; whether this call was the first. Whoever has a `Python` token holds the interpreter's
    /// lock, so nobody comes between the load and the store; a locked instruction for each would be a
    /// tenth of what `with gate.admit():` costs. Without that lock, the token proves nothing.
    #[inline]
    pub(crate) fn set(&self, _attached: Python<'_>) -> bool {
        if cfg!(Py_GIL_DISABLED) {
            !self.0.swap(true, Ordering::AcqRel)
        } else {
            let first = !self.0.load(Ordering::Acquire);
            self.0.store(true, Ordering::Release);
            first
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
