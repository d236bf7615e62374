//! A race on purpose, for `make soak`: a ThreadSanitizer that does not find this one finds nothing.
//!
//! Only the soak plants it (`TIDEGATE_PLANT_RACE=1`); otherwise this test does nothing.

#![allow(unsafe_code)] // the race

use std::cell::UnsafeCell;

struct Shared(UnsafeCell<u64>);

// SAFETY: it is not. That is what the sanitizer has to say.
unsafe impl Sync for Shared {}

#[test]
fn planted_race() {
    if std::env::var_os("TIDEGATE_PLANT_RACE").is_none() {
        return;
    }
    let shared = Shared(UnsafeCell::new(0));
    let shared = &shared;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                for _ in 0..1_000 {
                    // SAFETY: none, see above.
                    unsafe { *shared.0.get() += 1 };
                }
            });
        }
    });
}
