use std::cell::RefCell;

use super::*;

fn matching(conditions: &[(&str, &[&str])]) -> Match {
    conditions.iter().fold(Match::new(), |matching, (name, patterns)| matching.when(name, *patterns).unwrap())
}

fn rule(conditions: &[(&str, &[&str])], priority: Priority) -> Rule {
    Rule::new(matching(conditions), priority).unwrap()
}

/// A request with these attributes, as a lookup.
fn request<'r>(attributes: &'r [(&'r str, &'r str)]) -> impl Fn(&str) -> Option<&'r str> {
    move |wanted| attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
}

#[test]
fn the_first_match_decides_and_the_default_the_rest() {
    let rules = [
        rule(&[("method", &["GET", "HEAD"]), ("path", &["/reports/*"])], Priority::Sheddable),
        rule(&[("path", &["/reports/yearly", "/orders"])], Priority::CriticalPlus).named("dear").unwrap(),
    ];
    let classifier = Classifier::new(rules, Some(Priority::SheddablePlus)).unwrap();
    for (method, path, priority, explanation) in [
        (
            "HEAD",
            "/reports/yearly",
            Priority::Sheddable,
            r#"sheddable, by rule 1: method = ["GET", "HEAD"], path = "/reports/*""#,
        ),
        (
            "POST",
            "/reports/yearly",
            Priority::CriticalPlus,
            r#"critical_plus, by rule 2 "dear": path = ["/reports/yearly", "/orders"]"#,
        ),
        ("GET", "/", Priority::SheddablePlus, "sheddable_plus, by default: no rule matches"),
    ] {
        let pairs = [("path", path), ("method", method)];
        assert_eq!(classifier.classify(request(&pairs)), Some(priority));
        let explained = classifier.explain(request(&pairs));
        assert_eq!((explained.priority, explained.to_string().as_str()), (Some(priority), explanation));
    }
}

#[test]
fn without_a_default_it_leaves_the_rest_to_others() {
    let rules = [rule(&[("tenant", &["acme"])], Priority::CriticalPlus)];
    let classifier = Classifier::new(rules, None).unwrap();
    assert_eq!(classifier.classify(request(&[("tenant", "other")])), None);
    let explained = classifier.explain(request(&[]));
    assert_eq!(explained, Explanation { priority: None, rule: None });
    assert_eq!(explained.to_string(), "undecided: no rule matches, and there is no default");
    assert_eq!(Classifier::new([], None).unwrap().classify(request(&[])), None);
}

#[test]
fn what_a_request_lacks_matches_nothing() {
    let classifier = Classifier::new([rule(&[("tenant", &["*"])], Priority::Sheddable)], None).unwrap();
    assert_eq!(classifier.classify(request(&[])), None);
    assert_eq!(classifier.classify(request(&[("tenant", "")])), Some(Priority::Sheddable));
}

#[test]
fn essential_and_the_rest() {
    let classifier =
        Classifier::essential([matching(&[("path", &["/chat/*"])]), matching(&[("plan", &["paid"])])])
            .unwrap();
    assert_eq!(classifier.classify(request(&[("path", "/chat/1")])), Some(Priority::Critical));
    assert_eq!(classifier.classify(request(&[("plan", "paid")])), Some(Priority::Critical));
    assert_eq!(classifier.classify(request(&[("path", "/x")])), Some(Priority::Sheddable));
}

#[test]
fn an_attribute_is_asked_for_once_and_only_when_a_rule_gets_there() {
    let rules = [
        rule(&[("method", &["PUT"]), ("tenant", &["a"])], Priority::Sheddable),
        rule(&[("method", &["GET"]), ("path", &["/a"])], Priority::Sheddable),
        rule(&[("path", &["/b"])], Priority::Critical),
        rule(&[("client", &["*"])], Priority::Critical),
    ];
    let classifier = Classifier::new(rules, None).unwrap();
    assert!(classifier.attributes().iter().map(|name| &**name).eq(["method", "tenant", "path", "client"]));
    let asked = RefCell::new(Vec::new());
    let lookup = |name: &str| {
        asked.borrow_mut().push(name.to_owned());
        Some(if name == "method" { "GET" } else { "/b" })
    };
    assert_eq!(classifier.explain(lookup).rule.unwrap().0, 3);
    assert_eq!(asked.into_inner(), ["method", "path"]);
}

#[test]
fn headers_and_methods_take_the_form_that_requests_have() {
    let rules = [rule(&[("method", &["get"]), ("header.X-Plan", &["Free"])], Priority::Sheddable)];
    let classifier = Classifier::new(rules, None).unwrap();
    let found = |plan| classifier.classify(request(&[("method", "GET"), ("header.x-plan", plan)]));
    assert_eq!(found("Free"), Some(Priority::Sheddable));
    assert_eq!(found("free"), None, "values are compared as they are");
}

#[test]
fn what_breaks_a_rule_says_so() {
    let long = "x".repeat(256);
    for name in ["", "a\nb", &long] {
        let error = Match::new().when(name, ["x"]).unwrap_err();
        assert_eq!(error, ConfigError::Attribute { got: name.to_owned() });
        let named = rule(&[("path", &["/"])], Priority::Critical).named(name);
        assert_eq!(named.unwrap_err(), ConfigError::Name { got: name.to_owned() });
    }
    let twice = matching(&[("header.a", &["x"])]).when("header.A", ["y"]).unwrap_err();
    assert_eq!(twice, ConfigError::AttributeTwice { got: "header.a".to_owned() });
    assert_eq!(Rule::new(Match::new(), Priority::Critical).unwrap_err(), ConfigError::EmptyMatch);
    assert_eq!(Classifier::essential([Match::new()]).unwrap_err(), ConfigError::EmptyMatch);
}

#[test]
fn absurd_sizes_are_refused() {
    let one = rule(&[("path", &["/"])], Priority::Critical);
    assert!(Classifier::new(vec![one.clone(); 1000], None).is_ok());
    let error = Classifier::new(vec![one; 1001], None).unwrap_err();
    assert_eq!(error.to_string(), "the number of rules must be from 0 to 1000, got 1001");
    let each = |count: usize| {
        let rules = (0..count).map(|at| rule(&[(&format!("a{at}"), &["x"])], Priority::Critical));
        Classifier::new(rules, None)
    };
    let last = each(32).unwrap();
    assert_eq!(last.explain(request(&[("a31", "x")])).rule.unwrap().0, 32);
    assert_eq!(
        each(33).unwrap_err().to_string(),
        "the number of attributes that rules ask for must be from 0 to 32, got 33"
    );
}

#[test]
fn more_conditions_are_shared_than_are_remembered() {
    let paths: Vec<_> = (0..100).map(|at| format!("/{at}/*")).collect();
    let of = |method: &'static str, priority| {
        paths.iter().map(move |path| rule(&[("path", &[path]), ("method", &[method])], priority))
    };
    let rules = of("GET", Priority::Sheddable).chain(of("POST", Priority::CriticalPlus));
    let classifier = Classifier::new(rules, None).unwrap();
    for at in 0..100 {
        let path = format!("/{at}/x");
        for (method, number, priority) in
            [("GET", at + 1, Priority::Sheddable), ("POST", at + 101, Priority::CriticalPlus)]
        {
            let pairs = [("path", path.as_str()), ("method", method)];
            let explained = classifier.explain(request(&pairs));
            assert_eq!((explained.rule.unwrap().0, explained.priority), (number, Some(priority)));
        }
        let put = [("path", path.as_str()), ("method", "PUT")];
        assert_eq!(classifier.classify(request(&put)), None);
    }
}
