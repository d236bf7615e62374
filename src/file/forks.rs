//! A fork comes between reloads: the forking thread holds the locks of all files meanwhile, so that a child finds
//! none half read or half made true, and none of the locks taken.
//!
//! The locks stay where they are, in the child, too: the thread that holds them is the one that the child has.

#[cfg(any(tidegate_loom, not(unix)))]
mod held {
    use std::sync::Arc;

    use crate::file::gates::Shared;

    pub(crate) fn register(_file: &Arc<Shared>) {}
}

#[cfg(all(unix, not(tidegate_loom)))]
mod held {
    #![allow(unsafe_code)]

    use std::sync::{Arc, Weak};

    use crate::file::gates::Shared;
    use crate::registry;
    use crate::sync::Mutex;

    struct Files {
        files: Vec<Weak<Shared>>,
        /// While a fork is under way: those whose locks are held for it.
        held: Vec<Arc<Shared>>,
    }

    static FILES: Mutex<Files> = Mutex::new(Files { files: Vec::new(), held: Vec::new() });

    pub(crate) fn register(file: &Arc<Shared>) {
        registry::handle_forks();
        let files = &mut FILES.lock().files;
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(file));
    }

    /// Before the fork.
    pub(crate) fn hold() {
        let mut files = FILES.lock();
        files.held = files.files.iter().filter_map(Weak::upgrade).collect();
        for file in &files.held {
            std::mem::forget(file.reloading.lock());
            std::mem::forget(file.current.lock());
        }
        std::mem::forget(files);
    }

    /// After it, in either process.
    pub(crate) fn let_go() {
        // SAFETY: `hold` locked it in this thread and forgot the guard.
        let mut files = unsafe { FILES.raw().make_guard_unchecked() };
        let held = std::mem::take(&mut files.held);
        for file in &held {
            // SAFETY: as above.
            unsafe {
                file.current.raw().force_unlock();
                file.reloading.raw().force_unlock();
            }
        }
        drop(files);
        drop(held); // possibly the last owner of a file: without the lock
    }
}

pub(crate) use held::*;
