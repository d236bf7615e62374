//! Somebody else's static library, with its own copy of Rust's.

/// Uses threads, memory and panics of that copy.
#[unsafe(no_mangle)]
pub extern "C" fn other_sum(n: u32) -> u32 {
    let caught = std::panic::catch_unwind(|| assert!(n == 0, "on purpose")).is_err();
    let sum = std::thread::spawn(move || (0..n).collect::<Vec<_>>().iter().sum::<u32>());
    sum.join().unwrap_or(0) + u32::from(caught)
}
