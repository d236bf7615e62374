//! A storm for `ThreadSanitizer`, which sees an ordering only where it was compiled in. std was not, so this
//! runs without the test harness, whose channels it would report, and joins its threads by `pthread_join`,
//! which the sanitizer knows.
//!
//! With `TIDEGATE_PLANT_RACE=1` it plants a race: a sanitizer that does not find that one finds nothing.

#![allow(unsafe_code)] // the data that only a gate protects, and the race

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::thread;

use tidegate::{Gate, Outcome, Priority};

/// Plain memory, for whoever is inside a gate with a limit of one. If the gate did not order its
/// holders, every access would be a race.
struct Protected {
    gate: Gate,
    value: UnsafeCell<u64>,
}

// SAFETY: `value` is touched only inside the gate, which admits one. (The planted race does not keep to it.)
unsafe impl Sync for Protected {}

fn main() {
    let planted = std::env::var_os("TIDEGATE_PLANT_RACE").is_some();
    // A gate that has seen a bare entry releases its permits another way: each way has a gate of its own.
    for bare in [false, true] {
        let gate = Gate::builder("sanitized", 1).timing(true).build().unwrap();
        let shared = Arc::new(Protected { gate, value: UnsafeCell::new(0) });
        let threads: Vec<_> = (0..20_u64)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || storm(&shared, number, bare, planted))
            })
            .collect();
        let inside: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        // SAFETY: nobody else is left.
        let counted = unsafe { *shared.value.get() };
        assert!(planted || counted == inside);
        assert!(shared.gate.drain(None));
    }
    println!(
        "test a_storm_on_memory_that_only_the_gate_protects ... ok\n\ntest result: ok. 1 passed; 0 failed"
    );
}

/// Everything a gate has, from one of many threads. Returns how often it was inside.
fn storm(shared: &Protected, number: u64, bare: bool, planted: bool) -> u64 {
    let gate = &shared.gate;
    let mut inside = 0;
    let mut touch = || {
        // SAFETY: inside the gate, alone.
        unsafe { *shared.value.get() += 1 };
        inside += 1;
    };
    for round in 0..2_000 {
        let permit = gate.try_admit(Priority::Critical);
        if permit.is_ok() || planted {
            touch();
        }
        drop(permit);
        if bare && gate.enter(None).is_ok() {
            touch();
            gate.exit(Outcome::Overload);
        }
        match (number + round) % 64 {
            0 => _ = gate.set_limit(1, Some("storm")).unwrap(),
            1 => drop(gate.stats()),
            2 => _ = gate.retry_after(Priority::Sheddable),
            3 => drop(gate.limit_history()),
            _ => {}
        }
    }
    inside
}
