//! Scenarios built in code keep the same rules as those from files.

use std::time::Duration;

use tidegate::sim::{
    Arrivals, Change, Clients, Cliff, Dependency, DependencyChange, Retries, Scenario, Schedule, Service,
    Sizes, Stage,
};
use tidegate::{Gate, Priority, Threshold, Thresholds};

const LONG: Duration = Duration::MAX;

fn scenario() -> Scenario {
    let arrivals = Arrivals::poisson(1.0, Duration::from_secs(10));
    let mut scenario = Scenario::new("rules", arrivals, Service::shared(1.0, 0.1, 0.01));
    scenario.service.changes = vec![Change::default()];
    scenario.clients = Clients::patient_for(Duration::from_secs(3));
    scenario.clients.retries = Some(Retries {
        most: 1,
        after: Duration::from_secs(1),
        backoff: 1.0,
        jitter: 0.0,
        on_timeout: true,
        on_shed: true,
        until: None,
    });
    scenario
}

fn retries(scenario: &mut Scenario) -> &mut Retries {
    scenario.clients.retries.as_mut().expect("there are some")
}

fn trace(scenario: &mut Scenario, times: &[f64], keep: f64, speed: f64) {
    let Schedule::Trace(mut trace) = Arrivals::trace(times).schedule else {
        panic!("a trace is a trace");
    };
    (trace.keep, trace.speed) = (keep, speed);
    scenario.arrivals.schedule = Schedule::Trace(trace);
}

/// A number put in somewhere, and the key that is said to be wrong.
type Number = (&'static str, fn(&mut Scenario, f64));

const NUMBERS: [Number; 20] = [
    ("service.lambda", |scenario, number| scenario.service.lambda = number),
    ("service.sigma", |scenario, number| scenario.service.sigma = number),
    ("service.kappa", |scenario, number| scenario.service.kappa = number),
    ("service.changes[1].lambda", |scenario, number| scenario.service.changes[0].lambda = Some(number)),
    ("service.changes[1].sigma", |scenario, number| scenario.service.changes[0].sigma = Some(number)),
    ("service.changes[1].kappa", |scenario, number| scenario.service.changes[0].kappa = Some(number)),
    ("service.cliff.factor", |scenario, factor| scenario.service.cliff = Some(Cliff { above: 1, factor })),
    ("service.sizes.cv", |scenario, cv| scenario.service.sizes = Sizes::Lognormal { cv }),
    ("service.sizes.cv", |scenario, cv| scenario.service.sizes = Sizes::Hyperexponential { cv }),
    ("service.sizes.share", |scenario, share| scenario.service.sizes = Sizes::Bimodal { share, factor: 2.0 }),
    ("service.sizes.factor", |scenario, factor| {
        scenario.service.sizes = Sizes::Bimodal { share: 0.5, factor }
    }),
    ("service.sizes.alpha", |scenario, alpha| scenario.service.sizes = Sizes::Pareto { alpha }),
    ("arrivals.stages[1].rate", |scenario, rate| {
        scenario.arrivals.schedule = Schedule::Stages(vec![Stage { rate, length: Duration::from_secs(1) }]);
    }),
    ("arrivals.keep", |scenario, keep| trace(scenario, &[0.0], keep, 1.0)),
    ("arrivals.speed", |scenario, speed| trace(scenario, &[0.0], 1.0, speed)),
    ("arrivals.trace", |scenario, time| trace(scenario, &[time], 1.0, 1.0)),
    ("arrivals.mix[1].share", |scenario, number| scenario.arrivals.mix[0].share = number),
    ("arrivals.mix[1].size", |scenario, number| scenario.arrivals.mix[0].size = number),
    ("clients.retries.backoff", |scenario, number| retries(scenario).backoff = number),
    ("clients.retries.jitter", |scenario, number| retries(scenario).jitter = number),
];

#[test]
fn numbers_that_are_none() {
    assert!(scenario().run(1).is_ok());
    for (key, put) in NUMBERS {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -f64::MIN_POSITIVE, f64::MAX] {
            let mut scenario = scenario();
            put(&mut scenario, number);
            let refused = scenario.run(1).expect_err(key);
            assert_eq!(refused.key, key, "{number}: {refused}");
        }
    }
}

type Put = fn(&mut Scenario);

#[test]
fn values_that_have_no_use() {
    let others: [(&str, Put); 18] = [
        ("service.processors", |scenario| scenario.service.processors = Some(0)),
        ("service.cliff.above", |scenario| {
            scenario.service.cliff = Some(Cliff { above: 0, factor: 2.0 });
        }),
        ("arrivals.mix[1].elsewhere", |scenario| scenario.arrivals.mix[0].elsewhere = Some(LONG)),
        ("clients.retries.until", |scenario| retries(scenario).until = Some(LONG)),
        ("duration", |scenario| scenario.duration = Duration::ZERO),
        ("duration", |scenario| scenario.duration = LONG),
        ("interval", |scenario| scenario.interval = Duration::ZERO),
        ("interval", |scenario| scenario.interval = Duration::from_nanos(1)),
        ("arrivals.stages", |scenario| scenario.arrivals.schedule = Schedule::Stages(Vec::new())),
        ("arrivals.trace", |scenario| trace(scenario, &[], 1.0, 1.0)),
        ("arrivals.trace", |scenario| trace(scenario, &[2.0, 1.0], 1.0, 1.0)),
        ("arrivals.mix", |scenario| scenario.arrivals.mix.clear()),
        ("service.servers", |scenario| scenario.service.servers = Some(0)),
        ("service.changes[1].at", |scenario| scenario.service.changes[0].at = LONG),
        ("clients.timeout", |scenario| scenario.clients.timeout = Some(Duration::ZERO)),
        ("clients.retries.after", |scenario| retries(scenario).after = LONG),
        ("clients.retries.most", |scenario| retries(scenario).most = u32::MAX),
        ("gate", |scenario| {
            let rising = Thresholds::default().with(Priority::Critical, Threshold::Reserve(9));
            let rising = rising.with(Priority::Sheddable, Threshold::Reserve(1));
            scenario.gate = Some(Gate::builder("db", 10).thresholds(rising));
        }),
    ];
    for (key, put) in others {
        let mut scenario = scenario();
        put(&mut scenario);
        let refused = scenario.run(1).expect_err(key);
        assert_eq!(refused.key, key, "{refused}");
    }
    let mut scenario = scenario();
    let changes = vec![DependencyChange { at: Duration::ZERO, time: LONG }];
    scenario.dependency = Some(Dependency { time: Duration::ZERO, changes });
    assert_eq!(scenario.run(1).expect_err("too long").key, "dependency.changes[1].time");
}
