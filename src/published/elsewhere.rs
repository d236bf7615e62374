//! Where gates cannot be published: systems other than Linux and macOS, and models.

use std::io;
use std::path::Path;
use std::ptr::NonNull;

use crate::state::GateState;
use crate::sums::Published;
use crate::sync::AtomicU64;

fn unsupported<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "gates can be published on Linux and macOS only"))
}

pub(crate) fn read(_directory: &Path) -> io::Result<Published> {
    unsupported()
}

/// There is none.
pub(crate) enum Mapping {}

impl Mapping {
    pub(crate) fn create(_directory: &Path, _gate: &str, _timing: bool) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn state(&self) -> NonNull<GateState> {
        match *self {}
    }

    pub(crate) fn tail(&self) -> NonNull<[AtomicU64]> {
        match *self {}
    }

    pub(crate) fn is_file(&self) -> bool {
        match *self {}
    }

    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn note_forked(&self) {
        match *self {}
    }

    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn renew(&self) {
        match *self {}
    }
}
