//! What serves the requests: a database, or any other bottleneck, and what stands beyond it.

use std::time::Duration;

use serde::Serialize;

use super::rules::{self, Of, ScenarioError, at_least, not_negative, positive};
use super::sizes::Sizes;
use super::written;

/// What work is done by, and how fast.
///
/// Of `n` requests in service each gets on at `lambda / (1 + sigma (n - 1) + kappa n (n - 1))` units of
/// work a second: Gunther's universal scalability law, "Guerrilla Capacity Planning", 2007, chapter 4.
/// With `sigma` 1 that is a processor shared evenly, with `sigma` and `kappa` 0 servers that do not disturb
/// each other. Where there are `processors`, `n` counts up to as many, and who is beyond them takes turns with
/// the others: throughput stays at what it is there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Service {
    /// Units of work a second of a request that is alone; a request is one unit on average.
    pub lambda: f64,
    /// Contention: how much the others slow a request down.
    pub sigma: f64,
    /// Coherency: how much all pairs slow a request down. What makes throughput fall beyond a peak.
    pub kappa: f64,
    /// How many get on at a time: the others of those served wait for their turn and disturb nobody.
    /// `None`: all.
    pub processors: Option<u32>,
    /// Where everything becomes slower at once; `None`: nowhere.
    pub cliff: Option<Cliff>,
    /// How many are served at a time; the rest wait before it, first come, first served. `None`: all.
    pub servers: Option<u32>,
    /// How much work a request is.
    pub sizes: Sizes,
    /// What changes on the way, in any order. Work in service keeps what it has attained.
    pub changes: Vec<Change>,
}

/// What no smooth law has: with one more than fits, say into memory, everything is slower at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cliff {
    /// As many in service are well.
    pub above: u32,
    /// With more each takes so many times as long.
    pub factor: f64,
}

/// A step of the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// When.
    #[serde(rename = "at_s", serialize_with = "written::seconds")]
    pub at: Duration,
    /// From then on; 0 is an outage.
    pub lambda: Option<f64>,
    /// From then on.
    pub sigma: Option<f64>,
    /// From then on.
    pub kappa: Option<f64>,
    /// From then on. Whoever is in service stays there.
    pub servers: Option<u32>,
}

impl Service {
    /// A database that all inside share, with the universal scalability law's slowdown. `lambda` is a second.
    #[must_use]
    pub fn shared(lambda: f64, sigma: f64, kappa: f64) -> Self {
        Self {
            lambda,
            sigma,
            kappa,
            processors: None,
            cliff: None,
            servers: None,
            sizes: Sizes::default(),
            changes: Vec::new(),
        }
    }

    /// `servers` that do not disturb each other (`None`: as many as there are requests), each of which takes
    /// `time` for a request on average.
    #[must_use]
    pub fn servers(servers: Option<u32>, time: Duration) -> Self {
        Self { servers, ..Self::shared(1.0 / time.as_secs_f64(), 0.0, 0.0) }
    }

    /// The same with other sizes.
    #[must_use]
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = sizes;
        self
    }

    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        positive(self.lambda).of("service.lambda")?;
        not_negative(self.sigma).of("service.sigma")?;
        not_negative(self.kappa).of("service.kappa")?;
        some(self.processors).of("service.processors")?;
        some(self.servers).of("service.servers")?;
        if let Some(cliff) = self.cliff {
            some(Some(cliff.above)).of("service.cliff.above")?;
            at_least(1.0, cliff.factor).of("service.cliff.factor")?;
        }
        self.sizes.check("service.sizes")?;
        for (at, change) in self.changes.iter().enumerate() {
            let key = |name: &str| format!("service.changes[{}].{name}", at + 1);
            rules::time(change.at).of(&key("at"))?;
            change.lambda.map_or(Ok(0.0), not_negative).of(&key("lambda"))?;
            change.sigma.map_or(Ok(0.0), not_negative).of(&key("sigma"))?;
            change.kappa.map_or(Ok(0.0), not_negative).of(&key("kappa"))?;
            some(change.servers).of(&key("servers"))?;
        }
        Ok(())
    }
}

fn some(servers: Option<u32>) -> Result<(), String> {
    match servers {
        Some(0) => Err("must be a whole number above 0, got 0".to_owned()),
        _ => Ok(()),
    }
}

/// Something outside that a request waits for after its work is done, still holding its permit: another
/// service, a slow client. It takes the same time for everybody and does not slow the [`Service`] down.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Dependency {
    /// How long it takes.
    #[serde(rename = "time_s", serialize_with = "written::seconds")]
    pub time: Duration,
    /// What changes on the way, in any order. Who waits keeps the share that has passed.
    pub changes: Vec<DependencyChange>,
}

/// A step of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DependencyChange {
    /// When.
    #[serde(rename = "at_s", serialize_with = "written::seconds")]
    pub at: Duration,
    /// How long it takes from then on.
    #[serde(rename = "time_s", serialize_with = "written::seconds")]
    pub time: Duration,
}

/// Units of work a nanosecond, of which it is one; no time at all is infinitely fast.
fn speed(time: Duration) -> f64 {
    1e-9 / time.as_secs_f64()
}

impl DependencyChange {
    pub(super) fn speed(&self) -> f64 {
        speed(self.time)
    }
}

impl Dependency {
    pub(super) fn speed(&self) -> f64 {
        speed(self.time)
    }

    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        rules::time(self.time).of("dependency.time")?;
        for (at, change) in self.changes.iter().enumerate() {
            rules::time(change.at).of(&format!("dependency.changes[{}].at", at + 1))?;
            rules::time(change.time).of(&format!("dependency.changes[{}].time", at + 1))?;
        }
        Ok(())
    }
}
