//! What only tests may do. Compiled into a library of their own, never into one that is shipped; declared
//! in `tests/c/tidegate_test.h`.

#![allow(unsafe_code)] // for the exported names

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tidegate_core::{Clock, GateBuilder};

static MANUAL: AtomicBool = AtomicBool::new(false);
static NOW_NS: AtomicU64 = AtomicU64::new(0);
static PANIC: AtomicBool = AtomicBool::new(false);
static FULL: AtomicBool = AtomicBool::new(false);

/// The clock of all gates that were made after the first `tidegate_test_set_clock`.
#[derive(Debug)]
struct TestClock;

impl Clock for TestClock {
    fn now_ns(&self) -> u64 {
        NOW_NS.load(Ordering::Relaxed)
    }
}

pub(crate) fn on_the_test_clock(builder: GateBuilder) -> GateBuilder {
    if MANUAL.load(Ordering::Relaxed) { builder.clock(Arc::new(TestClock)) } else { builder }
}

pub(crate) fn panic_if_asked_to() {
    assert!(!PANIC.swap(false, Ordering::Relaxed), "a test asked for this panic");
}

pub(crate) fn is_full() -> bool {
    FULL.swap(false, Ordering::Relaxed)
}

/// Sets the time, and has gates that are made from now on go by it.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_test_set_clock(now_ns: u64) {
    NOW_NS.store(now_ns, Ordering::Relaxed);
    MANUAL.store(true, Ordering::Relaxed);
}

/// Has the next call of any thread panic inside the library.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_test_panic_next() {
    PANIC.store(true, Ordering::Relaxed);
}

/// Has the next permit find no room, as when 2^24 are out.
#[unsafe(no_mangle)]
pub extern "C" fn tidegate_test_full_next() {
    FULL.store(true, Ordering::Relaxed);
}
