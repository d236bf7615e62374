//! The figures of the Rust core, each as a ratio to its peer in the same run.
//!
//! `cargo bench -p tidegate-benches`; writes the file named by `TIDEGATE_BENCH_OUT`. With the libraries that
//! `TIDEGATE_BENCH_C` and `TIDEGATE_BENCH_CPP` name, also those of C and C++.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::Criterion;
use tidegate::controller::{Choice, Kind};
use tidegate::sim::{Arrivals, Clients, Scenario, Service, Sizes};
use tidegate::{Classifier, Clock, Gate, MonotonicClock, Per, Priority, Rate};
use tidegate_benches::foreign::Pairs;
use tidegate_benches::rules::{self, MISSED};
use tidegate_benches::{Figure, against_a_microsecond, compare};
use tokio::sync::Semaphore;

const LIMIT: u32 = 20;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(50)
        .without_plots()
        .configure_from_args();
    let gate = Gate::new("bench", LIMIT).expect("a valid gate");
    let full = Gate::new("full", 1).expect("a valid gate");
    let _inside = full.try_admit(Priority::Critical).expect("the first fits");
    let rated = Gate::builder("rated", LIMIT).rate(endless_rate()).build().expect("a valid gate");
    let controlled = controlled();
    let word = AtomicU64::new(0);
    let semaphore = Semaphore::new(LIMIT as usize);

    let mut figures = vec![
        compare(
            &mut criterion,
            "rust.pair_vs_bare_atomics",
            Some(1.6),
            |n| pairs(&gate, n),
            |n| bare_atomics(&word, n),
        ),
        compare(
            &mut criterion,
            "rust.pair_vs_tokio_1t",
            Some(0.667),
            |n| pairs(&gate, n),
            |n| tokio_pairs(&semaphore, n),
        ),
        compare(
            &mut criterion,
            "rust.pair_vs_tokio_2t",
            Some(1.0),
            |n| on_two_threads(|| pairs(&gate, n)),
            |n| on_two_threads(|| tokio_pairs(&semaphore, n)),
        ),
        compare(&mut criterion, "rust.reject_vs_pair", Some(0.8), |n| rejects(&full, n), |n| pairs(&gate, n)),
        compare(
            &mut criterion,
            "rust.rate_vs_pair_plus_clock",
            Some(1.5),
            |n| pairs(&rated, n),
            |n| pairs_and_clock(&gate, n),
        ),
        compare(
            &mut criterion,
            "rust.goodput_vs_pair_plus_two_clocks",
            Some(1.7),
            |n| pairs(&controlled, n),
            |n| pairs_and_two_clocks(&gate, n),
        ),
    ];
    let classifier = rules::fifty();
    assert_eq!(rules::classify(&classifier, &MISSED), None, "every rule is tried");
    figures.push(against_a_microsecond(
        &mut criterion,
        "rust.classify_50_rules_vs_microsecond",
        Some(1.0),
        |n| {
            classifications(&classifier, n);
            n
        },
    ));
    let (c, cpp) = (Pairs::load("TIDEGATE_BENCH_C"), Pairs::load("TIDEGATE_BENCH_CPP"));
    if let Some(c) = &c {
        let rust = |n| pairs(&gate, n);
        figures.push(compare(&mut criterion, "c.pair_vs_rust", Some(2.0), |n| c.run(n), rust));
    }
    if let (Some(c), Some(cpp)) = (&c, &cpp) {
        figures.push(compare(&mut criterion, "cpp.pair_vs_c", Some(1.1), |n| cpp.run(n), |n| c.run(n)));
    }
    figures.push(simulated(&mut criterion));
    criterion.final_summary();
    if let Some(path) = std::env::var_os("TIDEGATE_BENCH_OUT") {
        let figures: Vec<_> = figures.iter().map(Figure::json).collect();
        let json = serde_json::json!({ "figures": figures });
        std::fs::write(path, format!("{json:#}\n")).expect("the output file can be written");
    }
}

fn simulated(criterion: &mut Criterion) -> Figure {
    let article = article();
    against_a_microsecond(criterion, "sim.event_vs_microsecond", Some(1.0), |n| {
        let mut events = 0;
        while events < n {
            events += article.run(1).expect("a valid scenario").events;
        }
        events
    })
}

/// The article's database behind a gate at twice its capacity, for some ten thousand events.
fn article() -> Scenario {
    let arrivals = Arrivals::poisson(80.0 / 60.0, Duration::from_secs(10_000));
    let service = Service::shared(3.0 / 60.0, 0.02, 0.000_555).sizes(Sizes::Lognormal { cv: 0.5 });
    let mut scenario = Scenario::new("article", arrivals, service);
    scenario.gate = Some(Gate::builder("db", 42));
    scenario.clients = Clients::patient_for(Duration::from_secs(180));
    scenario
}

fn pairs(gate: &Gate, n: u64) {
    for _ in 0..n {
        drop(black_box(gate.try_admit(Priority::Critical)));
    }
}

/// One that no caller can use up, so that each admission takes the whole way.
fn endless_rate() -> Rate {
    Rate::new(10_000_000_000_u64, Per::Second).expect("a valid rate")
}

/// As the rate's admissions read the clock: by the trait.
fn pairs_and_clock(gate: &Gate, n: u64) {
    let clock: &dyn Clock = black_box(&MonotonicClock);
    for _ in 0..n {
        black_box(clock.now_ns());
        drop(black_box(gate.try_admit(Priority::Critical)));
    }
}

/// With an objective, as in use. One caller never fills it, so that its limit stays.
fn controlled() -> Gate {
    let bounds = Choice::default().bounds(Some(LIMIT)).expect("valid bounds");
    let builder = Gate::builder("controlled", LIMIT).controller(Kind::Goodput, bounds);
    builder.objective(Duration::from_secs(2)).build().expect("a valid gate")
}

/// As a controlled gate reads the clock: on the way in and on the way out.
fn pairs_and_two_clocks(gate: &Gate, n: u64) {
    let clock: &dyn Clock = black_box(&MonotonicClock);
    for _ in 0..n {
        black_box(clock.now_ns());
        let permit = black_box(gate.try_admit(Priority::Critical));
        black_box(clock.now_ns());
        drop(permit);
    }
}

fn rejects(full: &Gate, n: u64) {
    for _ in 0..n {
        drop(black_box(full.try_admit(Priority::Critical)));
    }
}

fn bare_atomics(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.fetch_add(1, Ordering::Acquire));
        black_box(word.fetch_sub(1, Ordering::Release));
    }
}

fn tokio_pairs(semaphore: &Semaphore, n: u64) {
    for _ in 0..n {
        drop(black_box(semaphore.try_acquire()));
    }
}

fn classifications(classifier: &Classifier, n: u64) {
    for _ in 0..n {
        black_box(rules::classify(classifier, black_box(&MISSED)));
    }
}

fn on_two_threads(side: impl Fn() + Sync) {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                side();
            });
        }
    });
}
