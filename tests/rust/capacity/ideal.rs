//! A target without chance: by a law of throughput, as if counted for very long.

use tidegate::capacity::{End, Measured, Phase, Plan, Recommendation, Search, Step, Usl};

/// The article's, in seconds: the best 0.757 a second at 42, 95 % of that at 29.
pub(crate) const ARTICLE: Usl = Usl::new(0.05, 0.02, 5.55e-4);

pub(crate) struct Ideal {
    pub(crate) throughput: Box<dyn Fn(f64) -> f64>,
    /// The time that each of 200 requests takes alone, relative to the mean.
    pub(crate) sizes: Vec<f64>,
    /// The share of those let in that fails, by limit.
    pub(crate) fails: Box<dyn Fn(u32) -> f64>,
    /// The rate that the generator does not reach.
    pub(crate) generator: f64,
    /// How many are counted, relative to the time.
    pub(crate) many: f64,
    pub(crate) timeout: f64,
}

impl Ideal {
    pub(crate) fn new(throughput: impl Fn(f64) -> f64 + 'static) -> Self {
        Self {
            throughput: Box::new(throughput),
            // All alike, but for one.
            sizes: (0..200).map(|at| if at < 199 { 1.0 } else { 2.0 }).collect(),
            fails: Box::new(|_| 0.0),
            generator: f64::INFINITY,
            many: 1000.0,
            timeout: 180.0,
        }
    }

    pub(crate) fn article() -> Self {
        Self::new(|n| ARTICLE.throughput(n))
    }

    /// The most that it gets done.
    fn most(&self) -> f64 {
        (1..=4096).map(|n| (self.throughput)(f64::from(n))).fold(0.0, f64::max)
    }

    pub(crate) fn measure(&self, step: &Step) -> Measured {
        let seconds = step.seconds;
        let count = |rate: f64| (self.many * rate * seconds).round() as u64;
        let seen = Measured { seconds: self.many * seconds, ..Measured::default() };
        let Some(limit) = step.limit else {
            let rate = step.rate.expect("an open loop has a rate");
            let end = match rate {
                rate if rate >= self.generator => End::Lagged,
                rate if rate > self.most() => End::Aborted,
                _ => End::Held,
            };
            return Measured { offered: count(rate), good: count(rate), in_flight: 1.0, end, ..seen };
        };
        let done = (self.throughput)(f64::from(limit)).min(step.rate.unwrap_or(f64::INFINITY));
        let alone = 1.0 / (self.throughput)(1.0);
        let time = f64::from(limit) / (self.throughput)(f64::from(limit)) / alone;
        let times: Vec<f64> = self.sizes.iter().map(|size| size * alone * time).collect();
        let in_time: Vec<f64> = times.iter().copied().filter(|time| *time <= self.timeout).collect();
        let failed = count(done * (self.fails)(limit));
        let late = count(done * (1.0 - in_time.len() as f64 / times.len() as f64));
        let good = count(done) - failed - late;
        let offered = step.rate.map_or_else(|| count(done), count);
        Measured {
            offered,
            shed: offered - count(done),
            good,
            late,
            failed,
            in_flight: f64::from(limit),
            latencies: in_time,
            ..seen
        }
    }
}

/// All steps, with what they saw.
pub(crate) fn run(target: &Ideal, plan: Plan) -> Search {
    let mut search = Search::new(plan).expect("a legal plan");
    while let Some(step) = search.next_step() {
        assert!(step.number < 60, "it ends: {:?}", search.log());
        search.report(target.measure(&step)).expect("a legal report");
    }
    search
}

pub(crate) fn recommended(target: &Ideal, change: impl FnOnce(&mut Plan)) -> Recommendation {
    let mut plan = Plan::new(target.timeout);
    change(&mut plan);
    run(target, plan).recommendation()
}

pub(crate) fn phases(search: &Search) -> Vec<Phase> {
    let mut phases: Vec<Phase> = search.log().iter().map(|(step, _)| step.phase).collect();
    phases.dedup();
    phases
}
