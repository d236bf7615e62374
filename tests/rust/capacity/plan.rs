//! What a test may be told.

use tidegate::capacity::{Plan, Search};

fn refused(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = Plan::new(180.0);
    change(&mut plan);
    Search::new(plan).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn the_first_value_that_breaks_a_rule_is_named_with_it() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10] {
        let rule = format!("must be a number above 0 (from 1e-9 to 1e9), got {bad}");
        assert_eq!(refused(|plan| plan.timeout = bad), format!("timeout {rule}"));
        assert_eq!(refused(|plan| plan.stage = bad), format!("stage {rule}"));
        assert_eq!(refused(|plan| plan.cell = bad), format!("cell {rule}"));
        assert_eq!(refused(|plan| plan.start_rate = Some(bad)), format!("start_rate {rule}"));
        assert_eq!(refused(|plan| plan.max_rate = Some(bad)), format!("max_rate {rule}"));
        assert_eq!(refused(|plan| plan.accept = Some(bad)), format!("accept {rule}"));
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(|plan| plan.warm_up = bad).starts_with("warm_up must be a number from 0 to 1e9"));
        assert!(refused(|plan| plan.rates = vec![1.0, bad]).contains("rates must be"));
    }
    for bad in [0.0, 1.0, -0.1, f64::NAN] {
        let said = format!("essential must be a share above 0 and below 1, got {bad}");
        assert_eq!(refused(|plan| plan.essential = Some(bad)), said);
    }
    for bad in [1.0, 0.5, 101.0, f64::NAN] {
        assert!(
            refused(|plan| plan.overload = bad).starts_with("overload must be a number above 1, at most 100")
        );
    }
    for bad in [0.0, 11.0, f64::NAN] {
        assert!(refused(|plan| plan.width = bad).starts_with("width must be"));
    }
    assert!(
        refused(|plan| plan.max_limit = 0).starts_with("max_limit must be a whole number from 1 to 1000000")
    );
    assert_eq!(refused(|plan| plan.rates = vec![2.0, 1.0]), "rates must be in rising order, got [2.0, 1.0]");
    assert!(refused(|plan| plan.rates = vec![1.0; 1001]).contains("at most 1000, got 1001"));
    let above = |plan: &mut Plan| {
        plan.rates = vec![1.0, 3.0];
        plan.max_rate = Some(2.0);
    };
    assert_eq!(refused(above), "each rate of the ramp must be at most 2, got 3");
}
