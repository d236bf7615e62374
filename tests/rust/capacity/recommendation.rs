//! What is recommended, on targets without chance.

use tidegate::capacity::{Law, Plan, toml};

use super::ideal::{ARTICLE, Ideal, recommended, run};

fn near(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() <= share
}

#[test]
fn the_articles_numbers() {
    let found = recommended(&Ideal::article(), |plan| plan.accept = Some(0.5));
    assert_eq!((found.limit, found.c95, found.best.map(|best| best.0)), (Some(29), Some(29), Some(42)));
    assert!(near(found.best.unwrap().1, 45.4 / 60.0, 1e-3));
    assert!(near(found.rate.unwrap(), 33.864 / 60.0, 1e-3), "{:?}", found.rate);
    let (low, high) = found.rate_interval.unwrap();
    assert!(low < found.rate.unwrap() && found.rate.unwrap() < high && high / low < 1.05);
    let (held, broke) = (found.breaking_point.held.unwrap(), found.breaking_point.broke.unwrap());
    assert!(held <= 45.4 / 60.0 && 45.3 / 60.0 < broke && broke / held < 1.12);
    let Law { lambda, sigma, kappa, intervals, covariance, fits, .. } = found.law.unwrap();
    assert!(fits && near(lambda, 0.05, 1e-3) && near(sigma, 0.02, 0.02) && near(kappa, 5.55e-4, 0.02));
    for ((low, high), truth) in intervals.unwrap().into_iter().zip([0.05, 0.02, 5.55e-4]) {
        assert!(low < truth && truth < high, "{truth}: {low} to {high}");
    }
    for (one, row) in covariance.iter().enumerate() {
        let (low, high) = intervals.unwrap()[one];
        assert!(near(high - low, 2.0 * 1.96 * row[one].sqrt(), 0.15), "3.92 standard deviations");
        assert!((0..3).all(|other| row[other].to_bits() == covariance[other][one].to_bits()));
    }
    // Alone 20 s, and 1 in 200 takes 40.
    assert!(near(found.slowest_alone.unwrap(), 20.0, 0.01), "{:?}", found.slowest_alone);
    for level in &found.band {
        let truth = ARTICLE.throughput(level.concurrency);
        assert!(level.low <= level.throughput && level.throughput <= level.high, "{level:?}");
        assert!(near(level.throughput, truth, 0.01), "{level:?} for {truth}");
    }
    assert_eq!(found.points.len(), 11);
    assert_eq!((found.gated_error, found.accepted, found.complete), (Some(0.0), Some(true), true));
    assert!(found.error_upper.unwrap() < 0.01 && found.reasons.is_empty());
}

#[test]
fn the_timeout_bounds_the_limit() {
    // 1 in 100 takes 3.5 times as long as the mean: 70 s, and at most 2.57 times that in time: up to 38 at a time, since
    // slow(38) = 2.52 and slow(39) = 2.58.
    let sized = |large: f64| Ideal {
        sizes: (0..200).map(|at| if at < 198 { 1.0 } else { large }).collect(),
        ..Ideal::article()
    };
    let found = recommended(&sized(3.5), |plan| plan.prove = false);
    assert_eq!((found.limit, found.c95, found.c_timeout), (Some(29), Some(29), Some(38)));
    // 5 times: 1.8, and slow(24) = 1.77, slow(25) = 1.81.
    let found = recommended(&sized(5.0), |plan| plan.prove = false);
    assert_eq!((found.limit, found.c_timeout), (Some(24), Some(24)), "{}", found.verdict);
    assert!(near(found.slowest_alone.unwrap(), 100.0, 0.01));
    // 8.9 times: 178 s alone.
    let found = recommended(&sized(8.9), |plan| plan.prove = false);
    assert_eq!(found.limit, Some(1));
}

#[test]
fn where_none_is_in_time_it_is_said() {
    let mut target = Ideal::article();
    // 1 in 100 takes 200 s alone: of the 36 of a baseline hardly one.
    target.sizes = (0..200).map(|at| if at < 198 { 1.0 } else { 10.0 }).collect();
    target.many = 1.0;
    let found = recommended(&target, |plan| plan.accept = Some(0.5));
    assert_eq!((found.limit, found.rate, found.c_timeout), (None, None, Some(0)), "{}", found.verdict);
    assert_eq!((found.accepted, found.toml("db")), (Some(false), None));
    let said = "No limit satisfies this: more than 1 in 200 requests take longer than the timeout of 180.000 s, even \
                alone; classify or cap the expensive class.";
    assert!(found.verdict.contains(said), "{}", found.verdict);
    assert!(found.verdict.contains("30.0 a minute is refused: there is no gate to prove it with."));
}

#[test]
fn a_corner_is_read_from_the_points() {
    let found = recommended(&Ideal::new(|n| 0.05 * n.min(4.0)), |_| {});
    assert_eq!(found.limit, Some(4));
    assert!(!found.law.unwrap().fits && found.verdict.contains("read from the points themselves"));
}

#[test]
fn a_ramp_that_never_breaks_says_so() {
    let found = recommended(&Ideal::article(), |plan| plan.max_rate = Some(0.5));
    assert_eq!((found.breaking_point.held, found.breaking_point.broke), (Some(0.5), None));
    assert_eq!(found.limit, Some(29), "the sweep does not need it");
    assert!(found.verdict.contains("was not reached: 30.0 a minute held"), "{}", found.verdict);
    assert!(found.verdict.contains("So in a closed loop, 0 of"), "{}", found.verdict);
}

#[test]
fn a_test_that_was_interrupted_says_what_it_knows() {
    let whole = run(&Ideal::article(), Plan::new(180.0));
    for done in 0..whole.log().len() {
        let mut search = tidegate::capacity::Search::new(Plan::new(180.0)).unwrap();
        for (_, seen) in &whole.log()[..done] {
            search.report(seen.clone()).unwrap();
        }
        let found = search.recommendation();
        assert!(!found.complete && found.verdict.contains("The test was not finished."), "{}", found.verdict);
        assert!(found.reasons.is_empty(), "{:?}", found.reasons);
        assert!(found.proof.is_none() && found.accepted.is_none());
    }
}

#[test]
fn acceptance_counts_all_that_came() {
    // 80 a minute are offered, 43 get in.
    let found = recommended(&Ideal::article(), |plan| plan.accept = Some(80.0 / 60.0));
    let share = found.acceptance.unwrap();
    assert_eq!((found.accepted, share.limit), (Some(false), Some(29)));
    assert!(near(share.share, 1.0 - 43.27 / 80.0, 0.01), "{share:?}");
    assert!(found.verdict.contains("80.0 a minute is refused"), "{}", found.verdict);
}

#[test]
fn room_for_what_is_essential() {
    let found = recommended(&Ideal::article(), |plan| plan.essential = Some(0.3));
    let reserved = found.thresholds.unwrap();
    assert!(reserved.essential_shed <= 0.01 && reserved.other_shed > 0.4, "{reserved:?}");
    let text = found.toml("db").unwrap();
    let line = format!("thresholds = {{ sheddable_plus = 0.9, sheddable = {:?} }}", reserved.fraction);
    assert!(text.contains(&line), "{text}");
    let found = recommended(&Ideal::article(), |plan| plan.essential = Some(0.95));
    assert_eq!(found.thresholds, None);
    assert!(found.verdict.contains("No threshold keeps the essential 95 %"), "{}", found.verdict);
}

#[test]
fn a_configuration_of_it() {
    let found = recommended(&Ideal::article(), |_| {});
    let text = found.toml("db").unwrap();
    let body = "\n[gates.db]\nlimit = 29\nobjective = \"180s\"\n\n[gates.db.controller]\nkind = \"goodput\"\nmin = 7\nmax = 116\nprior = 29\n";
    assert!(text.starts_with("# Recommended by a capacity test.\n# It breaks between "), "{text}");
    assert!(text.ends_with(body), "{text}");
    assert!(text.lines().take_while(|line| line.starts_with('#')).count() >= 4);
    assert!(toml("a \"b\"\\\n", 1, 2.0, None, "").contains("[gates.\"a \\\"b\\\"\\\\\\u000a\"]"));
    assert!(toml("a", 1, 2.0, Some(0.95), "").contains("{ sheddable_plus = 0.95, sheddable = 0.95 }"));
    let small = toml("a", 1, 2.0, None, "one\ntwo. three");
    assert!(small.contains("min = 1\nmax = 4\nprior = 1"), "{small}");
    assert!(toml("a", i32::MAX as u32, 2.0, None, "").contains("max = 2147483647"));
    for line in small.lines().take_while(|line| !line.starts_with('[')) {
        assert!(line.starts_with('#'), "{small}");
    }
}
