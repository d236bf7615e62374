//! The capacity test on simulated targets whose truth is known: the article's system, and that four times as large.
//!
//! `TIDEGATE_CAPACITY_SEEDS`: how many seeds (40).

use tidegate::capacity::{End, Measured, Phase, Plan, Recommendation, Search, Simulated, Step};
use tidegate::sim::{Arrivals, Class, Scenario, Service, Sizes};
use tidegate::{Gate, Priority, Threshold, Thresholds};

const TIMEOUT: f64 = 180.0;
const MINUTE: f64 = 60.0;

/// `scale` 1 is the article's: 20 s alone, the best 45.4 a minute at 42, 95 % of that at 29. 4 is that after
/// scaling: the best 179 a minute at 169, 95 % of that at 116.
fn article(scale: f64) -> Simulated {
    let service = Service::shared(3.0 / MINUTE, 0.02 / scale, 5.55e-4 / (scale * scale));
    Simulated { service: service.sizes(Sizes::Lognormal { cv: 0.5 }), timeout: TIMEOUT }
}

fn test(target: &Simulated, mut plan: Plan, seed: u64) -> (Recommendation, Vec<(Step, Measured)>) {
    plan.seed = seed;
    let mut search = Search::new(plan).expect("a legal plan");
    while let Some(step) = search.next_step() {
        assert!(step.number < 60, "seed {seed}: it ends: {:?}", search.log());
        search.report(target.run(&step, seed).expect("a legal step")).expect("a legal report");
    }
    (search.recommendation(), search.log().to_vec())
}

fn seeds() -> std::ops::Range<u64> {
    0..std::env::var("TIDEGATE_CAPACITY_SEEDS").map_or(40, |seeds| seeds.parse().expect("a whole number"))
}

/// Each must hold for such a share of the seeds.
#[derive(Default)]
struct Count(Vec<(&'static str, f64, Vec<String>)>);

impl Count {
    fn expect(&mut self, what: &'static str, share: f64, holds: bool, seen: &dyn std::fmt::Debug) {
        let known = self.0.iter().position(|each| each.0 == what);
        let at = known.unwrap_or_else(|| {
            self.0.push((what, share, Vec::new()));
            self.0.len() - 1
        });
        if !holds {
            self.0[at].2.push(format!("{seen:?}"));
        }
    }

    fn check(self, seeds: u64) {
        for (what, share, failed) in self.0 {
            let held = 1.0 - failed.len() as f64 / seeds as f64;
            println!("{what}: {held:.3} of {seeds} seeds");
            assert!(
                held >= share,
                "{what} for {held:.3} of {seeds} seeds, {share} wanted; not for {failed:#?}"
            );
        }
    }
}

#[test]
fn finds_the_articles_limits() {
    let mut count = Count::default();
    for seed in seeds() {
        let (found, log) = test(&article(1.0), Plan::new(TIMEOUT), seed);
        let seen = (seed, &found.verdict);
        let (held, broke) = (found.breaking_point.held.unwrap(), found.breaking_point.broke.unwrap());
        let meets = held * MINUTE <= 50.0 && broke * MINUTE >= 40.0;
        count.expect("the bracket meets 40 to 50 a minute", 0.9, meets, &seen);
        let limit = found.limit.unwrap_or_default();
        let near = (0.85..=1.15).contains(&(f64::from(limit) / 29.0));
        count.expect("the limit is near 29", 0.9, near, &seen);
        let (low, high) = found.limit_interval.unwrap();
        count.expect("the interval has 29 in it", 0.9, (low..=high).contains(&29), &seen);
        let (low, high) = found.rate_interval.unwrap();
        let rate = 33.86 / MINUTE;
        count.expect(
            "the rate is near 33.9",
            0.9,
            (0.9..=1.1).contains(&(found.rate.unwrap() / rate)),
            &seen,
        );
        count.expect("its interval has 33.9 in it", 0.8, (low..=high).contains(&rate), &seen);
        count.expect("gated errors below 1 %", 0.95, found.gated_error.unwrap() < 0.01, &seen);
        count.expect("proven so", 0.95, found.error_upper.unwrap() < 0.01, &seen);
        count.expect("the law is near", 0.95, found.law.unwrap().fits, &seen);
        // Near its peak one in some hundreds takes too long, whatever is done.
        let beyond = |step: &Step| step.phase == Phase::Ramp && step.rate > Some(60.0 / MINUTE);
        let mut stages = log.iter().filter(|(step, _)| beyond(step));
        let spared = stages.all(|(_, seen)| seen.end == End::Aborted && seen.late == 0);
        count.expect("what is beyond it is stopped before the first timeout", 1.0, spared, &seen);
        let hours: f64 = log.iter().map(|(step, seen)| step.warm_up + seen.seconds).sum::<f64>() / 3600.0;
        count.expect("it takes some four hours", 1.0, (3.0..6.0).contains(&hours), &(seed, hours));
    }
    count.check(seeds().end);
}

#[test]
fn accepts_after_scaling_what_the_article_accepted() {
    let mut count = Count::default();
    for seed in seeds() {
        for (rate, wanted) in [(150.0, true), (200.0, false)] {
            let mut plan = Plan::new(TIMEOUT);
            plan.accept = Some(rate / MINUTE);
            let (found, _) = test(&article(4.0), plan, seed);
            let what = if wanted { "150 a minute is accepted" } else { "200 a minute is refused" };
            count.expect(what, 0.9, found.accepted == Some(wanted), &(seed, &found.verdict));
            let limit = f64::from(found.limit.unwrap_or_default());
            let near = (0.85..=1.15).contains(&(limit / 116.0));
            count.expect("the limit is near 116", 0.9, near, &(seed, &found.verdict));
        }
    }
    count.check(seeds().end);
}

#[test]
fn each_step_meets_requests_of_its_own() {
    let run = |number, seed| {
        let step = Step::new(number, Phase::Sweep, Some(1.2), Some(16), TIMEOUT, 720.0);
        article(1.0).run(&step, seed).expect("a legal step")
    };
    assert_eq!(run(3, 1), run(3, 1));
    assert!(run(3, 1) != run(4, 1) && run(3, 1) != run(3, 2) && run(3, 1) != run(1, 3));
}

/// With the fraction as a configuration has it, and exponential service, for which the theory is exact.
#[test]
fn a_real_gate_keeps_room_for_what_is_essential() {
    let mut plan = Plan::new(TIMEOUT);
    plan.essential = Some(0.3);
    let (found, _) = test(&article(1.0), plan, 1);
    let (reserved, law) = (found.thresholds.expect("there is room"), found.law.expect("there is one"));
    let length = std::time::Duration::from_secs(400 * 3600);
    let mut arrivals = Arrivals::poisson(reserved.rate, length);
    let class = |priority, share| Class { priority, share, ..Class::default() };
    arrivals.mix = vec![class(Priority::Critical, 0.3), class(Priority::Sheddable, 0.7)];
    let service = Service::shared(law.lambda, law.sigma, law.kappa).sizes(Sizes::Exponential);
    let mut scenario = Scenario::new("thresholds", arrivals, service);
    scenario.interval = length;
    let ppm = (1e6 * reserved.fraction).round() as u32;
    let thresholds = Thresholds::default().with(Priority::Sheddable, Threshold::Ppm(ppm));
    scenario.gate = Some(Gate::builder("db", found.limit.expect("a limit")).thresholds(thresholds));
    let report = scenario.run(1).expect("a legal scenario");
    let share = |at: usize| report.by_priority[at].tally.shed_share().expect("some came");
    assert!((share(0) / reserved.essential_shed - 1.0).abs() < 0.05, "{} for {reserved:?}", share(0));
    assert!((share(1) / reserved.other_shed - 1.0).abs() < 0.01, "{} for {reserved:?}", share(1));
}
