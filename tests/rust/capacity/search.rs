//! What the test does next, on targets without chance.

use tidegate::capacity::{End, Measured, Phase, Plan, Search};

use super::ideal::{Ideal, phases, run};

const T: f64 = 180.0;

fn plan(change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan::new(T);
    change(&mut plan);
    plan
}

fn count(search: &Search, phase: Phase) -> usize {
    search.log().iter().filter(|(step, _)| step.phase == phase).count()
}

#[test]
fn one_phase_after_the_other() {
    use Phase::{Accept, Baseline, Before, Proof, Ramp, Sweep};
    assert_eq!(phases(&run(&Ideal::article(), Plan::new(T))), [Baseline, Ramp, Sweep, Proof]);
    let all = run(
        &Ideal::article(),
        plan(|plan| {
            plan.before = true;
            plan.accept = Some(0.5);
        }),
    );
    assert_eq!(phases(&all), [Baseline, Ramp, Sweep, Before, Proof, Accept]);
    for (step, _) in all.log() {
        let gated = !matches!(step.phase, Ramp | Before);
        assert_eq!(step.limit.is_some(), gated, "{step:?}");
        assert_eq!(step.rate.is_none(), step.phase == Baseline, "{step:?}");
        assert!(step.warm_up == T && step.seconds >= 4.0 * T, "{step:?}");
    }
    let (accept, _) = all.log().last().unwrap();
    // 1500 at 0.5 a second, behind the recommended gate.
    assert_eq!((accept.rate, accept.limit, accept.seconds), (Some(0.5), Some(29), 3000.0));
    let (proof, _) = &all.log()[all.log().len() - 2];
    // 628 and a tenth at 0.721 a second.
    assert!((proof.seconds - 690.8 / 0.721).abs() < 1.0, "{proof:?}");
    let unproven = run(&Ideal::article(), plan(|plan| plan.prove = false));
    assert_eq!(phases(&unproven), [Baseline, Ramp, Sweep]);
}

#[test]
fn the_gate_is_offered_more_than_what_breaks_the_target() {
    let search = run(&Ideal::article(), Plan::new(T));
    let found = search.recommendation().breaking_point;
    let middle = (found.held.unwrap() * found.broke.unwrap()).sqrt();
    for (step, _) in search.log().iter().filter(|(step, _)| matches!(step.phase, Phase::Sweep | Phase::Proof))
    {
        let offered = step.rate.unwrap() / middle;
        assert!(offered > 1.6 - 1e-9 && offered < 1.9, "{step:?}");
    }
}

#[test]
fn a_gate_that_does_not_fill_is_offered_more() {
    // The ramp breaks early, by what takes too long, while there is room for many more.
    let target = Ideal::new(|n| 0.05 * n.min(64.0));
    let mut search = Search::new(Plan::new(T)).unwrap();
    while let Some(step) = search.next_step() {
        let seen = match step.phase {
            Phase::Ramp if step.rate > Some(0.15) => Measured { end: End::Aborted, ..target.measure(&step) },
            Phase::Ramp => target.measure(&step),
            _ => {
                let inside = f64::from(step.limit.unwrap()).min(step.rate.unwrap_or(f64::INFINITY) / 0.05);
                Measured { in_flight: inside, ..target.measure(&step) }
            }
        };
        search.report(seen).unwrap();
        if step.limit >= Some(64) {
            assert!(step.rate.unwrap() > 0.05 * 64.0, "{step:?}");
            return;
        }
    }
    panic!("it never came to 64: {:?}", search.log().last());
}

#[test]
fn asking_changes_nothing_and_the_log_is_all_there_is() {
    let whole = run(&Ideal::article(), plan(|plan| plan.accept = Some(0.5)));
    let mut again = Search::new(whole.plan().clone()).unwrap();
    for (step, seen) in whole.log() {
        assert_eq!(again.next_step().as_ref(), Some(step));
        assert_eq!(again.next_step(), again.next_step());
        let _ = again.recommendation();
        again.report(seen.clone()).unwrap();
    }
    assert_eq!(again.next_step(), None);
    assert_eq!(again.recommendation().verdict, whole.recommendation().verdict);
}

#[test]
fn nothing_wrong_is_taken_down() {
    let mut search = Search::new(Plan::new(T)).unwrap();
    let right = Measured { seconds: 1.0, offered: 9, good: 9, in_flight: 1.0, ..Measured::default() };
    let wrong = [
        (
            Measured { seconds: 0.0, ..right.clone() },
            "seconds must be a number above 0 (from 1e-9 to 1e9), got 0",
        ),
        (Measured { seconds: f64::NAN, ..right.clone() }, "seconds must be"),
        (Measured { in_flight: -1.0, ..right.clone() }, "in_flight must be a number from 0 to 1e12, got -1"),
        (Measured { in_flight: f64::INFINITY, ..right.clone() }, "in_flight must be"),
        (Measured { shed: 10, ..right.clone() }, "shed must be at most what was offered, got 10"),
        (Measured { late: u64::MAX, ..right.clone() }, "each count must be a whole number from 0 to 1e12"),
        (Measured { latencies: vec![1.0, f64::NAN], ..right.clone() }, "each of latencies must be"),
    ];
    for (seen, said) in wrong {
        let error = search.report(seen).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
        assert!(search.log().is_empty());
    }
    search.report(right.clone()).unwrap();
    let mut over = run(&Ideal::article(), Plan::new(T));
    let steps = over.log().len();
    assert!(over.report(right).unwrap_err().to_string().contains("of a step that was asked for"));
    assert_eq!(over.log().len(), steps);
}

#[test]
fn a_limit_that_fails_its_proof_is_lowered() {
    let mut target = Ideal::article();
    // 29 and 23 fail, 18 holds. A sweep does not show it.
    target.fails = Box::new(|limit| if (19..=30).contains(&limit) && limit != 24 { 0.02 } else { 0.0 });
    let search = run(&target, Plan::new(T));
    let tried: Vec<_> = search.log().iter().filter(|(step, _)| step.phase == Phase::Proof).collect();
    let limits: Vec<_> = tried.iter().map(|(step, _)| step.limit.unwrap()).collect();
    assert_eq!(limits, [29, 23, 18]);
    let found = search.recommendation();
    assert_eq!((found.limit, found.c95), (Some(18), Some(29)));
    let (low, high) = found.limit_interval.unwrap();
    assert!(low <= 18 && (18..29).contains(&high), "{low} to {high}");
    assert_eq!(found.gated_error, Some(0.0));

    target.fails = Box::new(|limit| if limit < 31 && limit > 8 && limit % 4 != 0 { 0.02 } else { 0.0 });
    let search = run(&target, Plan::new(T));
    assert_eq!(count(&search, Phase::Proof), 4, "it gives up");
    let found = search.recommendation();
    assert_eq!((found.limit, found.rate, found.accepted), (None, None, None));
    assert!(found.verdict.contains("classify or cap the expensive class"), "{}", found.verdict);
}

#[test]
fn a_proof_with_too_few_is_none() {
    let mut search = Search::new(Plan::new(T)).unwrap();
    let target = Ideal::article();
    while let Some(step) = search.next_step() {
        let seen = target.measure(&step);
        let few = Measured { good: 100, late: 0, ..seen.clone() };
        search.report(if step.phase == Phase::Proof { few } else { seen }).unwrap();
    }
    assert_eq!(count(&search, Phase::Proof), 1);
    let found = search.recommendation();
    assert_eq!(found.limit, None);
    assert!(found.verdict.contains("100 answers are too few, 299 would be needed"), "{}", found.verdict);
}

#[test]
fn a_proof_that_was_stopped_is_none() {
    for end in [End::Aborted, End::Collapsed, End::Lagged] {
        let mut search = Search::new(Plan::new(T)).unwrap();
        while let Some(step) = search.next_step() {
            let seen = Ideal::article().measure(&step);
            let end = if step.phase == Phase::Proof { end } else { seen.end };
            search.report(Measured { end, ..seen }).unwrap();
        }
        let found = search.recommendation();
        assert_eq!((found.limit, count(&search, Phase::Proof)), (None, 1));
        assert!(found.verdict.contains("could not be proven: the run that was to prove it was stopped"));
    }
}

#[test]
fn a_rate_is_accepted_by_its_bound_and_by_a_whole_run() {
    let accepted = |good: u64, shed: u64, end: End| {
        let mut search = Search::new(plan(|plan| plan.accept = Some(0.5))).unwrap();
        while let Some(step) = search.next_step() {
            let seen = Ideal::article().measure(&step);
            let other = Measured { offered: good + shed, good, shed, late: 0, end, ..seen.clone() };
            search.report(if step.phase == Phase::Accept { other } else { seen }).unwrap();
        }
        search.recommendation().accepted
    };
    assert_eq!(accepted(1500, 0, End::Held), Some(true));
    assert_eq!(accepted(1500, 0, End::Aborted), Some(false));
    // 19 of 1500 may be 1.8 %, 24 may be 2.2 %.
    assert_eq!([19, 24].map(|shed| accepted(1500 - shed, shed, End::Held)), [Some(true), Some(false)]);
}

#[test]
fn what_never_breaks_is_not_overloaded_without_a_gate() {
    let careful = |plan: &mut Plan| {
        plan.before = true;
        plan.max_rate = Some(0.3);
    };
    assert_eq!(count(&run(&Ideal::article(), plan(careful)), Phase::Before), 0);
}

#[test]
fn it_ends_at_once_where_one_at_a_time_fails() {
    let first = |seen: Measured| {
        let mut search = Search::new(Plan::new(T)).unwrap();
        search.report(seen).unwrap();
        search
    };
    let seen = Measured { seconds: 720.0, offered: 36, good: 36, in_flight: 1.0, ..Measured::default() };
    for (other, said) in [
        (Measured { good: 0, ..seen.clone() }, "got no answer in 720.000 s"),
        (Measured { good: 6, failed: 30, ..seen.clone() }, "30 of 36 failed"),
        (Measured { good: 0, failed: 36, ..seen.clone() }, "36 of 36 failed"),
        (
            Measured { good: 6, late: 30, ..seen.clone() },
            "30 of 36 took longer than the timeout of 180.000 s",
        ),
    ] {
        let search = first(other);
        assert_eq!((search.next_step(), search.outlook()), (None, (0, 0.0)));
        let found = search.recommendation();
        assert!(found.complete && found.limit.is_none() && found.reasons.len() == 1, "{found:?}");
        assert!(found.verdict.contains(said), "{}", found.verdict);
    }
    // One of 36 is nothing to go by.
    let search = first(Measured { good: 35, failed: 1, ..seen });
    assert_eq!(search.next_step().map(|step| step.phase), Some(Phase::Ramp));
}

#[test]
fn a_generator_that_lags_is_said_and_the_curve_is_measured_all_the_same() {
    let target = Ideal { generator: 0.3, ..Ideal::article() };
    let search = run(&target, Plan::new(T));
    let found = search.recommendation();
    assert_eq!((found.breaking_point.broke, found.limit), (None, Some(29)));
    assert!(found.verdict.contains("the generator lagged at 24.0 a minute"), "{}", found.verdict);
    assert!(search.log().iter().all(|(step, _)| step.phase != Phase::Sweep || step.rate.is_none()));
}

#[test]
fn the_outlook_is_near_what_comes() {
    let whole = run(&Ideal::article(), Plan::new(T));
    let mut search = Search::new(Plan::new(T)).unwrap();
    let mut last = usize::MAX;
    for (done, (_, seen)) in whole.log().iter().enumerate() {
        let (steps, seconds) = search.outlook();
        let left = whole.log().len() - done;
        assert!(steps.abs_diff(left) <= 5 && steps > 0, "{steps} for {left}");
        assert!((seconds / steps as f64 - 900.0).abs() < 1.0);
        assert!(steps <= last, "it does not grow");
        last = steps;
        search.report(seen.clone()).unwrap();
    }
    assert_eq!(search.outlook(), (0, 0.0));
}
