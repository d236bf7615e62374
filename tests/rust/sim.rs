//! first
use std::time::Duration;
use tidegate::Gate;
use tidegate::sim::*;
#[test]
fn article() {
    let mut s = Scenario::new(
        "x",
        Arrivals::poisson(80.0 / 60.0, Duration::from_secs(1800)),
        Service::shared(3.0 / 60.0, 0.02, 0.000_555).sizes(Sizes::Lognormal { cv: 0.5 }),
    );
    s.clients = Clients::patient_for(Duration::from_secs(180));
    s.gate = Some(Gate::builder("db", 42));
    let r = s.run(1).unwrap();
    println!("{}", serde_json::to_string_pretty(&r).unwrap());
}
