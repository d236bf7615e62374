//! Two pieces of code timed in turn, so that a drifting machine slows both, and the ratio of the two.

pub mod foreign;
pub mod rules;
pub mod worked;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use criterion::Criterion;
use serde_json::{Value, json};

use crate::worked::worked;

/// Chunks of this many iterations alternate between the two sides.
const CHUNK: u64 = 10_000;

/// One figure: medians of both sides and of their ratio, sample by sample.
pub struct Figure {
    name: &'static str,
    ours_ns: f64,
    peer_ns: f64,
    ratio: f64,
    bar: Option<f64>,
}

impl Figure {
    /// From the times of both sides, sample by sample.
    fn of(name: &'static str, bar: Option<f64>, samples: &[(f64, f64)]) -> Self {
        assert!(!samples.is_empty(), "{name}: no sample was long enough");
        let median_of = |value: &dyn Fn(&(f64, f64)) -> f64| median(samples.iter().map(value).collect());
        Self {
            name,
            ours_ns: median_of(&|sample| sample.0),
            peer_ns: median_of(&|sample| sample.1),
            ratio: median_of(&|sample| sample.0 / sample.1),
            bar,
        }
    }

    /// The figure as `target/bench.json` has it.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "name": self.name,
            "ours_ns": round(self.ours_ns),
            "peer_ns": round(self.peer_ns),
            "ratio": round(self.ratio),
            "bar": self.bar,
            "ok": self.bar.is_none_or(|bar| self.ratio <= bar),
        })
    }
}

/// Times `ours` against `peer` in alternating chunks under criterion's sampling. Each side runs
/// the given number of iterations.
pub fn compare(
    criterion: &mut Criterion,
    name: &'static str,
    bar: Option<f64>,
    mut ours: impl FnMut(u64),
    mut peer: impl FnMut(u64),
) -> Figure {
    sample(criterion, name, bar, |chunk| (time(&mut ours, chunk), time(&mut peer, chunk)))
}

/// Times `ours` against a microsecond for each iteration: in the time that this thread has worked, since the
/// microsecond does not slow down with a machine that others use, too. `ours` says how many it has run: as many
/// as it was given, or more.
pub fn against_a_microsecond(
    criterion: &mut Criterion,
    name: &'static str,
    bar: Option<f64>,
    mut ours: impl FnMut(u64) -> u64,
) -> Figure {
    sample(criterion, name, bar, |chunk| {
        let start = worked();
        let ran = ours(chunk);
        let share = f64::from(u32::try_from(chunk).expect("a chunk"))
            / f64::from(u32::try_from(ran).expect("a few chunks"));
        (worked().saturating_sub(start).mul_f64(share), Duration::from_micros(chunk))
    })
}

/// Has both sides of a chunk timed, under criterion's sampling.
fn sample(
    criterion: &mut Criterion,
    name: &'static str,
    bar: Option<f64>,
    mut both: impl FnMut(u64) -> (Duration, Duration),
) -> Figure {
    let samples = RefCell::new(Vec::new());
    criterion.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let (mut ours_time, mut peer_time) = (Duration::ZERO, Duration::ZERO);
            let mut left = iterations;
            while left > 0 {
                let chunk = left.min(CHUNK);
                let (ours, peer) = both(chunk);
                ours_time += ours;
                peer_time += peer;
                left -= chunk;
            }
            if iterations >= CHUNK {
                samples.borrow_mut().push((nanos(ours_time, iterations), nanos(peer_time, iterations)));
            }
            ours_time
        });
    });
    Figure::of(name, bar, &samples.into_inner())
}

#[allow(clippy::cast_precision_loss)] // far fewer than 2^52 iterations
fn nanos(time: Duration, iterations: u64) -> f64 {
    time.as_secs_f64() * 1e9 / iterations as f64
}

fn time(side: &mut impl FnMut(u64), iterations: u64) -> Duration {
    let start = Instant::now();
    side(iterations);
    start.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
