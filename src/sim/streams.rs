//! One seed, several independent streams of random numbers.
//!
//! What one part draws must not shift what another draws: then two runs with the same seed meet the same
//! requests at the same moments, whatever gate stands before them, and the difference between the runs is
//! the gate's alone (common random numbers: Law, "Simulation Modeling and Analysis", chapter 11).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// The streams of a run: xoshiro256++ (Blackman and Vigna, 2019), each 2^128 draws after the one before.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) arrivals: Xoshiro256PlusPlus,
    pub(super) sizes: Xoshiro256PlusPlus,
    pub(super) mix: Xoshiro256PlusPlus,
    pub(super) retries: Xoshiro256PlusPlus,
}

impl Streams {
    pub(super) fn new(seed: u64) -> Self {
        let mut next = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut stream = || {
            let stream = next.clone();
            next.jump();
            stream
        };
        Self { arrivals: stream(), sizes: stream(), mix: stream(), retries: stream() }
    }
}
