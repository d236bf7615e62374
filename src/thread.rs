//! Which shard of a gate's counters the current thread writes.
//!
//! The first [`EXCLUSIVE`] threads that meet any gate own a shard index each: nobody else writes
//! there, so counting is a load, an addition and a store, without a locked instruction. Later
//! threads share the remaining indices and count by `fetch_add`. An index goes back when its thread
//! ends. The word of a busy gate is contended long before its shards are.

#[cfg(all(unix, not(tidegate_loom)))]
pub(crate) use owned::forget_other_threads;
#[cfg(not(tidegate_loom))]
pub(crate) use owned::place;
#[cfg(not(tidegate_loom))]
pub use owned::{OWN_INDICES, own_index};

/// A thread's place among the shards.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) index: usize,
    /// Nobody else writes the shard at `index`.
    pub(crate) exclusive: bool,
}

/// Models count on one shared shard, so that loom sees every access.
#[cfg(tidegate_loom)]
pub(crate) fn place() -> Place {
    Place { index: 0, exclusive: false }
}

#[cfg(not(tidegate_loom))]
mod owned {
    use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

    use super::Place;
    use crate::shard::{EXCLUSIVE, SHARDS};
    use crate::thread_number;

    /// One bit for each owned index.
    static OWNED: AtomicU32 = AtomicU32::new(0);
    const UNCLAIMED: usize = usize::MAX;

    /// The index of the current thread. Its number is one more, so that the zero of a new thread is unclaimed.
    #[inline]
    fn index() -> usize {
        thread_number::get().wrapping_sub(1)
    }

    fn set_index(index: usize) {
        thread_number::set(index.wrapping_add(1));
    }

    thread_local! {
        static GUARD: GiveBack = const { GiveBack };
    }

    /// Gives the index back when the thread ends. Releases made by later destructors of the same
    /// thread count on a shared shard.
    struct GiveBack;

    impl Drop for GiveBack {
        fn drop(&mut self) {
            let index = index();
            set_index(shared());
            if index < EXCLUSIVE {
                OWNED.fetch_and(!(1 << index), Ordering::Release);
            }
        }
    }

    /// The current thread's place.
    #[inline]
    pub(crate) fn place() -> Place {
        let mut index = index();
        if index == UNCLAIMED {
            index = claim();
        }
        Place { index, exclusive: index < EXCLUSIVE }
    }

    /// How many threads have an index of their own.
    pub const OWN_INDICES: usize = EXCLUSIVE;

    /// An index below [`OWN_INDICES`] that no other living thread of this process has, where this thread is one of
    /// those that have one. For bindings that keep something by thread as the counters are kept.
    #[must_use]
    #[inline]
    pub fn own_index() -> Option<usize> {
        let Place { index, exclusive } = place();
        exclusive.then_some(index)
    }

    #[cold]
    fn claim() -> usize {
        // Without the guard (the thread is ending) nobody would give an index back.
        let index = GUARD.try_with(|_| own().unwrap_or_else(shared)).unwrap_or_else(|_| shared());
        set_index(index);
        index
    }

    fn own() -> Option<usize> {
        let free = |owned: u32| {
            let index = owned.trailing_ones();
            ((index as usize) < EXCLUSIVE).then_some(owned | (1 << index))
        };
        // Acquire: what the previous owner of the index stored is seen before it is added to.
        let before = OWNED.fetch_update(Ordering::AcqRel, Ordering::Relaxed, free).ok()?;
        Some(before.trailing_ones() as usize)
    }

    fn shared() -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        EXCLUSIVE + NEXT.fetch_add(1, Ordering::Relaxed) % (SHARDS - EXCLUSIVE)
    }

    /// In a fork's child only the forking thread exists: the other indices are free again.
    #[cfg(unix)]
    pub(crate) fn forget_other_threads() {
        let own = match index() {
            index if index < EXCLUSIVE => 1 << index,
            _ => 0,
        };
        OWNED.store(own, Ordering::Release);
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;
    use crate::shard::{EXCLUSIVE, SHARDS};
    use std::sync::Barrier;

    #[test]
    fn no_two_living_threads_own_the_same_index() {
        let barrier = Barrier::new(40);
        let mut places: Vec<_> = std::thread::scope(|scope| {
            let spawned: Vec<_> = (0..40)
                .map(|_| {
                    scope.spawn(|| {
                        let place = place();
                        barrier.wait();
                        place
                    })
                })
                .collect();
            spawned.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(places.iter().all(|place| place.index < SHARDS));
        places.retain(|place| place.exclusive);
        let mut owned: Vec<_> = places.iter().map(|place| place.index).collect();
        owned.sort_unstable();
        owned.dedup();
        assert_eq!(owned.len(), places.len());
        assert!(owned.len() <= EXCLUSIVE);
    }
}
