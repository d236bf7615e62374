//! Where a gate's state lives: in boxes, or in a mapped file that other processes can read. It is behind one
//! pointer either way, so the way in and out of a gate does not know which.

#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::ptr::NonNull;

use crate::published::Mapping;
use crate::state::{GateState, Tail};
use crate::sync::AtomicU64;

/// Owns a [`GateState`] and its [`Tail`].
pub(crate) struct Memory {
    state: NonNull<GateState>,
    tail: NonNull<[AtomicU64]>,
    /// What the two point into; without it they are boxes. Apart, so that what every admission reads of a
    /// gate stays close together.
    mapping: Option<Box<Mapping>>,
}

// SAFETY: it owns what it points to, as a `Box` does, and all of that is atomic.
unsafe impl Send for Memory {}
// SAFETY: as above: it hands out shared references to atomics only.
unsafe impl Sync for Memory {}

impl Memory {
    /// In this process alone.
    pub(crate) fn boxed(timing: bool) -> Self {
        let tail: Box<[_]> = (0..Tail::cells(timing)).map(|_| AtomicU64::new(0)).collect();
        Self {
            state: NonNull::from(Box::leak(Box::new(GateState::new()))),
            tail: NonNull::from(Box::leak(tail)),
            mapping: None,
        }
    }

    /// In a file of its own in `directory`.
    pub(crate) fn published(directory: &Path, gate: &str, timing: bool) -> io::Result<Self> {
        let mapping = Mapping::create(directory, gate, timing)?;
        Ok(Self { state: mapping.state(), tail: mapping.tail(), mapping: Some(Box::new(mapping)) })
    }

    #[inline]
    pub(crate) fn tail(&self) -> Tail<'_> {
        // SAFETY: it lives until `self` is dropped; a fork's child maps other memory, but at the same place.
        Tail::new(unsafe { self.tail.as_ref() })
    }

    /// Whether other processes can read it.
    pub(crate) fn is_published(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.is_file())
    }
}

/// What happens around a fork.
#[cfg(all(unix, not(tidegate_loom)))]
impl Memory {
    pub(crate) fn note_forked(&self) {
        if let Some(mapping) = &self.mapping {
            mapping.note_forked();
        }
    }

    /// In the child: what is in a file is in a file of its own from now on, and all zero there.
    pub(crate) fn leave_to_parent(&self) {
        if let Some(mapping) = &self.mapping {
            mapping.renew();
        }
    }
}

impl Deref for Memory {
    type Target = GateState;

    #[inline]
    fn deref(&self) -> &GateState {
        // SAFETY: as in `tail`.
        unsafe { self.state.as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.mapping.is_none() {
            // SAFETY: leaked boxes, and no reference outlives `self`. A mapping frees itself.
            drop(unsafe { (Box::from_raw(self.state.as_ptr()), Box::from_raw(self.tail.as_ptr())) });
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("published", &self.is_published()).finish_non_exhaustive()
    }
}
