//! What one reading of each signal costs on this machine, and what looking at all of them does.
//!
//! `cargo bench -p tidegate-benches --bench signals`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::detector::{Detector, Rule};
use tidegate::monitor::Monitor;
use tidegate::pressure::{Draws, Shares};
use tidegate::signal::{Cpu, Memory, Reading, Resource, Signal, Source, Stalls};
use tidegate::{Clock, MonotonicClock, Priority};

const READINGS: usize = 2_001;

fn main() {
    let mut sources: [(&str, Box<dyn Source>); 5] = [
        ("cpu", Box::new(Cpu::new())),
        ("memory", Box::new(Memory::new())),
        ("psi-cpu", Box::new(Stalls::new(Resource::Cpu))),
        ("psi-memory", Box::new(Stalls::new(Resource::Memory))),
        ("psi-io", Box::new(Stalls::new(Resource::Io))),
    ];
    for (name, source) in &mut sources {
        let mut read = || {
            black_box(source.read(MonotonicClock.now_ns()));
        };
        let first = nanos(1, &mut read);
        report(&format!("{name}, first reading"), first);
        report(&format!("{name}, median"), median(READINGS, 1, read));
    }
    let mut detector = Detector::new(["a", "b", "c", "d", "e"].map(|name| (name.into(), Rule::default())));
    let readings = [0.9, 0.8, 0.5, 0.1, 0.7].map(|value| Reading::known(value).expect("a pressure"));
    let mut now_ns = 0;
    let look = || {
        now_ns += 250_000_000;
        black_box(detector.look(now_ns, &readings).shares());
    };
    report("detector, a look at five signals", median(101, 1_000, look));
    let (draws, shares) = (Draws::default(), Shares::at(0.6));
    report(
        "which request, under pressure",
        median(101, 10_000, || {
            black_box(draws.next(black_box(shares), Priority::Critical));
        }),
    );
    way_in();
}

/// What the way in of a gate with signals has to do beyond the rest.
fn way_in() {
    let signal = Signal::function("idle", Duration::from_millis(250), || Some(0.1));
    let monitor = Monitor::new([(signal, Rule::default())]);
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let sheds = || {
        black_box(monitor.sheds(black_box(Priority::Critical), &*clock));
    };
    report("way in, no pressure, with its reading of the clock", median(101, 10_000, sheds));
    let read = || {
        black_box(clock.now_ns());
    };
    report("a reading of the clock alone", median(101, 10_000, read));
}

fn report(name: &str, nanos: f64) {
    println!("{name}: {:.3} us", nanos / 1e3);
}

fn nanos(times: u32, mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..times {
        work();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}

fn median(samples: usize, times: u32, mut work: impl FnMut()) -> f64 {
    let mut all: Vec<_> = (0..samples).map(|_| nanos(times, &mut work)).collect();
    all.sort_by(f64::total_cmp);
    all[samples / 2]
}
