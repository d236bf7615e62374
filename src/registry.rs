//! The gates of this process: for forks, and for whoever wants to show them all.

use std::sync::Arc;

use crate::admission::Inner;

/// Models have none: it is not part of what they look at.
#[cfg(tidegate_loom)]
mod gates {
    use super::{Arc, Inner};

    pub(crate) fn register(_gate: &Arc<Inner>) {}

    #[cfg(feature = "file")]
    pub(crate) fn handle_forks() {}

    pub(crate) fn living() -> Vec<Arc<Inner>> {
        Vec::new()
    }
}

#[cfg(not(tidegate_loom))]
mod gates {
    use std::sync::{Once, Weak};

    use super::{Arc, Inner};
    use crate::replaceable::Replaceable;
    use crate::sync::Mutex;

    #[derive(Default)]
    pub(crate) struct Registry {
        pub(crate) gates: Vec<Weak<Inner>>,
        /// While a fork is under way: the gates whose control lock is held for it.
        pub(crate) held: Vec<Arc<Inner>>,
    }

    impl Registry {
        pub(crate) fn living(&self) -> Vec<Arc<Inner>> {
            self.gates.iter().filter_map(Weak::upgrade).collect()
        }
    }

    pub(crate) static REGISTRY: Replaceable<Mutex<Registry>> = Replaceable::empty();

    pub(crate) fn registry() -> &'static Mutex<Registry> {
        REGISTRY.get_or_init(Mutex::default)
    }

    /// From now on forks are handled.
    pub(crate) fn handle_forks() {
        static HANDLERS: Once = Once::new();
        registry(); // a handler allocates nothing
        HANDLERS.call_once(|| {
            #[cfg(unix)]
            crate::fork::install_handlers();
        });
    }

    pub(crate) fn register(gate: &Arc<Inner>) {
        handle_forks();
        let mut registry = registry().lock();
        if registry.gates.len() == registry.gates.capacity() {
            // Before the list grows: gates that are gone make room.
            registry.gates.retain(|gate| gate.strong_count() > 0);
        }
        registry.gates.push(Arc::downgrade(gate));
    }

    pub(crate) fn living() -> Vec<Arc<Inner>> {
        // The guard is gone before any of the gates can be: the last owner's drop takes no lock.
        registry().lock().living()
    }
}

pub(crate) use gates::*;
