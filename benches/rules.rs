//! The rules of a middling web service, and a request that none of them matches.

use tidegate::{Classifier, Match, Priority, Rule};

/// What a request of the benchmark is known by: enough for each rule to be tried, and missed late.
pub struct Request {
    method: &'static str,
    path: &'static str,
    tenant: &'static str,
    plan: &'static str,
}

/// Missed by every rule of [`fifty`], by most of them only in its path.
pub const MISSED: Request = Request {
    method: "GET",
    path: "/api/v1/customers/4711/invoices/2026-11/positions",
    tenant: "tenant-0815",
    plan: "enterprise",
};

/// The priority of a request; its attributes are found by their names.
#[must_use]
pub fn classify(classifier: &Classifier, request: &Request) -> Option<Priority> {
    classifier.classify(|name| match name {
        "method" => Some(request.method),
        "path" => Some(request.path),
        "tenant" => Some(request.tenant),
        "header.x-plan" => Some(request.plan),
        _ => None,
    })
}

/// Fifty rules: methods and paths with and without a star, lists of tenants, a header.
///
/// # Panics
/// Never: the rules are valid.
#[must_use]
pub fn fifty() -> Classifier {
    let resources = ["orders", "customers", "invoices", "reports", "products", "users", "carts", "payments"];
    let mut rules = Vec::new();
    for (at, resource) in resources.iter().cycle().take(40).enumerate() {
        let (method, path) = match at / resources.len() {
            0 => ("GET", format!("/api/v1/{resource}/*/export")),
            1 => ("GET", format!("/api/v1/{resource}/{at}/*")),
            2 => ("GET", format!("/api/v1/{resource}/search")),
            3 => ("GET", format!("/api/v1/*/old-{resource}/*")),
            _ => ("POST", format!("/api/v1/{resource}/*")),
        };
        rules.push(rule(&[("method", &[method]), ("path", &[&path])]));
    }
    for at in 0..5 {
        let tenants = [format!("tenant-{at}"), format!("tenant-1{at}"), format!("tenant-08{at}0")];
        let tenants: Vec<_> = tenants.iter().map(String::as_str).collect();
        rules.push(rule(&[("tenant", &tenants), ("path", &["/api/v1/*"])]));
    }
    for at in 0..5 {
        let path = format!("/api/v{at}/*");
        rules.push(rule(&[("header.x-plan", &["free", "trial"]), ("path", &[&path])]));
    }
    assert_eq!(rules.len(), 50);
    Classifier::new(rules, None).expect("valid rules")
}

fn rule(conditions: &[(&str, &[&str])]) -> Rule {
    let matching =
        conditions.iter().try_fold(Match::new(), |matching, (name, patterns)| matching.when(name, *patterns));
    matching.and_then(|matching| Rule::new(matching, Priority::Sheddable)).expect("a valid rule")
}
