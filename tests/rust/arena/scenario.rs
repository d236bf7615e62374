//! What the controllers are put through.
//!
//! Nearly all of it happens at one database: 3 answers a second alone, slower in company by the universal
//! scalability law, most with 42 inside: 45.4 a second. An answer is good within 3 s; whoever waits longer gives
//! up, and the work goes on for nobody.

use std::time::Duration;

use tidegate::Priority;
use tidegate::sim::{
    Arrivals, Change, Class, Clients, Cliff, Dependency, DependencyChange, OnTimeout, Retries, Scenario,
    Schedule, Service, Sizes, Trace,
};

/// A scenario without a gate, and what an answer is worth in it.
#[derive(Clone, Debug)]
pub(crate) struct Match {
    pub(crate) name: &'static str,
    /// In a sentence.
    pub(crate) about: &'static str,
    pub(crate) scenario: Scenario,
    /// Answers within this are good.
    pub(crate) objective: Option<Duration>,
    /// During this time nothing is answered.
    pub(crate) outage: Option<(f64, f64)>,
    /// Whether the bars hold here, or it is there to show what happens where their premises do not.
    pub(crate) is_judged: bool,
}

const LAMBDA: f64 = 3.0;
const SIGMA: f64 = 0.02;
const KAPPA: f64 = 5.55e-4;
/// The most it gives.
const BEST: f64 = 45.4;
/// In seconds.
const OBJECTIVE: f64 = 3.0;
const END: f64 = 2_100.0;
/// What changes does so from here
const FROM: f64 = 700.0;
/// to here.
const TO: f64 = 1_400.0;
/// Slices of a run: of which goodput is compared, and over which the limit is drawn.
pub(crate) const SLICES: u32 = 70;
/// Looks at the limit in a slice.
pub(crate) const POINTS: u32 = 30;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn database() -> Service {
    Service::shared(LAMBDA, SIGMA, KAPPA).sizes(Sizes::Lognormal { cv: 0.5 })
}

/// Loads, in multiples of the best, one after the other, as long as each other.
fn loads(loads: &[f64]) -> Arrivals {
    let length = seconds(END / loads.len() as f64);
    Arrivals::stages(loads.iter().map(|load| (load * BEST, length)))
}

fn named(name: &'static str, about: &'static str, arrivals: Arrivals, service: Service) -> Match {
    let mut scenario = Scenario::new(name, arrivals, service);
    scenario.clients = Clients::patient_for(seconds(OBJECTIVE));
    let made = Match { name, about, scenario, objective: None, outage: None, is_judged: true };
    made.objective(OBJECTIVE)
}

impl Match {
    fn objective(mut self, objective: f64) -> Self {
        self.objective = Some(seconds(objective));
        self.scenario.clients.timeout = self.objective;
        let length = self.scenario.arrivals.length().as_secs_f64();
        self.lasting(length)
    }

    fn lasting(mut self, end: f64) -> Self {
        self.scenario.duration = seconds(end);
        self.scenario.interval = self.scenario.duration / (SLICES * POINTS);
        self
    }

    /// The database is another one in the middle.
    fn between(mut self, changed: Change, back: Change) -> Self {
        self.scenario.service.changes =
            vec![Change { at: seconds(FROM), ..changed }, Change { at: seconds(TO), ..back }];
        self
    }

    /// It is there to show what happens where premises do not hold.
    fn shown(mut self) -> Self {
        self.is_judged = false;
        self
    }
}

pub(crate) fn all() -> Vec<Match> {
    [steady(), changing(), others(), hard()].concat()
}

fn steady() -> Vec<Match> {
    let bimodal = Sizes::Bimodal { share: 0.03, factor: 49.0 };
    vec![
        named("steady-2x", "twice as many as it can answer", loads(&[2.0]), database()),
        named("steady-5x", "five times as many", loads(&[5.0]), database()),
        named("mild-1.25x", "a quarter more than it can answer", loads(&[1.25]), database()),
        named(
            "bimodal-2x",
            "twice as many, and 3 % of them are 49 times the work of the rest",
            loads(&[2.0]),
            database().sizes(bimodal),
        ),
    ]
}

fn changing() -> Vec<Match> {
    let lambda = |lambda| Change { lambda: Some(lambda), ..Change::default() };
    let kappa = |kappa| Change { kappa: Some(kappa), ..Change::default() };
    let twice = |name, about| named(name, about, loads(&[2.0]), database());
    let mut slow = twice("slow-dependency", "in the middle third each waits 2 s more, elsewhere");
    slow.scenario.dependency = Some(Dependency {
        time: Duration::ZERO,
        changes: vec![
            DependencyChange { at: seconds(FROM), time: seconds(2.0) },
            DependencyChange { at: seconds(TO), time: Duration::ZERO },
        ],
    });
    let outage = twice("timeout-outage", "in the middle third nothing is answered: all run into the timeout");
    let mut outage = outage.between(lambda(0.0), lambda(LAMBDA));
    outage.outage = Some((FROM, TO));
    outage.scenario.clients.on_timeout = OnTimeout::Fail;
    vec![
        twice("capacity-quarter", "in the middle third the database is a quarter as fast")
            .between(lambda(LAMBDA / 4.0), lambda(LAMBDA)),
        twice("kappa-16x", "in the middle third it suffers sixteen times as much from company")
            .between(kappa(KAPPA * 16.0), kappa(KAPPA)),
        named("idle-burst", "nobody comes in the middle third", loads(&[2.0, 0.0, 2.0]), database()),
        named(
            "light-half",
            "half of what it can answer in the middle third",
            loads(&[2.0, 0.5, 2.0]),
            database(),
        ),
        slow,
        outage,
    ]
}

fn others() -> Vec<Match> {
    let burst = |load: f64, length: f64| (load * BEST, seconds(length));
    let bursts =
        [burst(0.8, 650.0), burst(3.0, 100.0), burst(0.8, 600.0), burst(3.0, 100.0), burst(0.8, 650.0)];
    let mut storm = named(
        "retry-storm",
        "a fifth less than it can answer, two bursts of three times as many, and all come again up to three times",
        Arrivals::stages(bursts),
        database(),
    );
    storm.scenario.clients.retries = Some(Retries {
        most: 3,
        after: seconds(1.0),
        backoff: 2.0,
        jitter: 0.5,
        on_timeout: true,
        on_shed: true,
        until: None,
    });
    let tiny = named(
        "tiny-service",
        "10,000 a second of 25 microseconds each: a quarter of one is inside on average",
        Arrivals::poisson(10_000.0, seconds(60.0)),
        Service::shared(40_000.0, SIGMA, KAPPA),
    );
    let mut flood = named(
        "two-priorities",
        "a quarter of what it can answer is critical, and a flood of twice as many as it can answer is sheddable",
        loads(&[2.25]),
        database(),
    );
    let class = |priority, share| Class { priority, share, ..Class::default() };
    flood.scenario.arrivals.mix = vec![class(Priority::Critical, 0.25), class(Priority::Sheddable, 2.0)];
    let trace = named(
        "trace-2x",
        "real users of a chatbot, an hour again and again, so much faster that they are twice as many",
        trace(),
        database(),
    );
    let slow = named(
        "slow-rate-prior",
        "the article's database, 60 times as slow, with twice as many as it can answer: 91 a minute, eight hours",
        Arrivals::poisson(2.0 * BEST / 60.0, seconds(8.0 * 3_600.0)),
        Service { lambda: LAMBDA / 60.0, ..database() },
    );
    vec![storm, tiny.objective(0.01), flood.objective(20.0), trace.lasting(END), slow.objective(180.0)]
}

/// An hour of real arrivals, again and again, at twice the best.
fn trace() -> Arrivals {
    const TEXT: &str = include_str!("../../../python/tidegate/demo/data/azure-llm-conv-thinned.csv");
    let times: Vec<f64> = TEXT.lines().skip(1).map(|line| line.parse().expect("a time")).collect();
    let hour = times.last().expect("an hour") + 1.0;
    let speed = 2.0 * BEST * hour / times.len() as f64;
    let hours = (END * speed / hour).ceil() as u32;
    let all: Vec<f64> =
        (0..hours).flat_map(|n| times.iter().map(move |time| time + f64::from(n) * hour)).collect();
    let mut arrivals = Arrivals::trace(&all);
    arrivals.schedule = Schedule::Trace(Trace { times: all.into(), keep: 1.0, speed });
    arrivals
}

/// What the rule of `goodput` rests on does not hold, or hardly.
fn hard() -> Vec<Match> {
    let mut cached = named("cached", "70 % are answered from a cache in 10 ms", loads(&[6.0]), database());
    let memory = Class { share: 0.7, elsewhere: Some(seconds(0.01)), ..Class::default() };
    cached.scenario.arrivals.mix = vec![memory, Class { share: 0.3, ..Class::default() }];
    let mut blind = named("no-objective", "every answer is good, however late", loads(&[2.0]), database());
    blind.objective = None;
    blind.scenario.clients = Clients::default();
    let on = |name, about, service: Service| named(name, about, loads(&[2.0]), service);
    let cliff = Some(Cliff { above: 30, factor: 3.0 });
    let flat = Service { sigma: 0.0, kappa: 0.0, processors: Some(20), ..database() };
    [
        cached,
        on("exponential", "sizes vary more", database().sizes(Sizes::Exponential)),
        blind,
        on("cliff", "with more than 30 inside all are three times as slow", Service { cliff, ..database() }),
        on("plateau", "20 processors that do not disturb each other", flat),
        on("three", "three at a time are best", Service { kappa: 0.1, ..database() }),
        on("one", "one at a time is best", Service { sigma: 1.5, ..database() }),
    ]
    .map(Match::shown)
    .to_vec()
}
