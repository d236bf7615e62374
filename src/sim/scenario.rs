//! All that a run is told.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::arrivals::Arrivals;
use super::clients::Clients;
use super::door::Door;
use super::engine;
use super::report::Report;
use super::rules::{self, Of, ScenarioError};
use super::service::{Dependency, Service};
use super::signals::{self, Push};
use super::written;
use crate::config::GateBuilder;
use crate::controller::{Bounds, Kind};
use crate::priority::Priority;

/// The most events that a run may be expected to have: minutes of work.
pub(super) const MOST_EVENTS: f64 = 1e9;

/// The most intervals of a series.
const MOST_INTERVALS: u128 = 100_000;

/// Who comes, which gate they meet, what serves them and what they do then.
///
/// ```
/// use std::time::Duration;
/// use tidegate::Gate;
/// use tidegate::sim::{Arrivals, Clients, Scenario, Service, Sizes};
///
/// let hour = Duration::from_secs(3600);
/// let arrivals = Arrivals::poisson(80.0 / 60.0, hour);
/// let database = Service::shared(3.0 / 60.0, 0.02, 0.000_555).sizes(Sizes::Lognormal { cv: 0.5 });
/// let mut scenario = Scenario::new("The article's collapse", arrivals, database);
/// scenario.clients = Clients::patient_for(Duration::from_secs(180));
/// let ungated = scenario.run(1)?;
/// scenario.gate = Some(Gate::builder("db", 42));
/// let gated = scenario.run(1)?; // the same users
/// assert!(ungated.totals.error_rate() > Some(0.9));
/// assert!(gated.totals.error_rate() < Some(0.01));
/// # Ok::<(), tidegate::sim::ScenarioError>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// What it is about.
    pub title: String,
    /// How long it runs.
    #[serde(rename = "duration_s", serialize_with = "written::seconds")]
    pub duration: Duration,
    /// How long each interval of the report's series is.
    #[serde(rename = "interval_s", serialize_with = "written::seconds")]
    pub interval: Duration,
    /// The gate, whose clock will be the simulator's; `None`: everybody gets in.
    #[serde(serialize_with = "gate")]
    pub gate: Option<GateBuilder>,
    /// Values that are pushed into its signals.
    pub pushes: Vec<Push>,
    /// Whether requests use [`Gate::enter`](crate::Gate::enter) and `exit` rather than permits.
    pub bare_entries: bool,
    /// Who comes, and when.
    pub arrivals: Arrivals,
    /// What serves them.
    pub service: Service,
    /// What they wait for after that.
    pub dependency: Option<Dependency>,
    /// What they do.
    pub clients: Clients,
}

impl Scenario {
    /// A scenario as long as its arrivals, with a series by the minute, no gate, and clients who wait for ever.
    #[must_use]
    pub fn new(title: impl Into<String>, arrivals: Arrivals, service: Service) -> Self {
        Self {
            title: title.into(),
            duration: arrivals.length(),
            interval: Duration::from_secs(60),
            gate: None,
            pushes: Vec::new(),
            bare_entries: false,
            arrivals,
            service,
            dependency: None,
            clients: Clients::default(),
        }
    }

    /// Says whether it can be run.
    ///
    /// # Errors
    /// [`ScenarioError`]: the first value that breaks a rule.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.arrivals.check()?;
        self.service.check()?;
        self.dependency.as_ref().map_or(Ok(()), Dependency::check)?;
        self.clients.check()?;
        rules::some_time(self.duration).of("duration")?;
        rules::some_time(self.interval).of("interval")?;
        signals::check(self.gate.as_ref(), &self.pushes)?;
        Door::new(self.gate.as_ref(), self.bare_entries)?;
        self.check_bare_entries().of("bare_entries")?;
        self.check_intervals().of("interval")?;
        self.check_events().of("duration")
    }

    pub(super) fn check_bare_entries(&self) -> Result<(), String> {
        if !self.bare_entries {
            return Ok(());
        }
        match self.arrivals.mix.iter().find(|class| class.weight.get() > 1) {
            Some(class) => Err(format!("a bare entry has weight 1, got a mix with {}", class.weight.get())),
            None => Ok(()),
        }
    }

    pub(super) fn check_intervals(&self) -> Result<(), String> {
        let intervals = self.duration.as_nanos().div_ceil(self.interval.as_nanos().max(1));
        if intervals <= MOST_INTERVALS {
            return Ok(());
        }
        Err(format!("a series has at most {MOST_INTERVALS} intervals, got {intervals}: take longer ones"))
    }

    /// A run too long to wait for is refused rather than begun.
    pub(super) fn check_events(&self) -> Result<(), String> {
        let tries = 1.0 + self.clients.retries.map_or(0.0, |retries| f64::from(retries.most));
        let stages = if self.dependency.is_some() { 3.0 } else { 2.0 };
        let events = self.arrivals.expected(self.duration) * tries * stages;
        if events <= MOST_EVENTS {
            return Ok(());
        }
        Err(format!(
            "a run has at most {MOST_EVENTS:e} events, got about {events:.1e} to expect: \
             take a lower rate, fewer retries or less time"
        ))
    }

    /// Runs it. The same seed gives the same report, and the same requests at the same moments to whatever
    /// gate, service and clients they meet.
    ///
    /// # Errors
    /// [`ScenarioError`] where it breaks a rule, or the requests inside outgrow the memory.
    pub fn run(&self, seed: u64) -> Result<Report, ScenarioError> {
        self.run_while(seed, &mut || true).map(|report| report.expect("it was to go on"))
    }

    /// As [`run`](Self::run), asking now and then whether to go on: `None` where the answer was no.
    ///
    /// # Errors
    /// [`ScenarioError`] where it breaks a rule, or the requests inside outgrow the memory.
    pub fn run_while(
        &self,
        seed: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Report>, ScenarioError> {
        self.check()?;
        engine::run(self, seed, go_on)
    }
}

#[allow(clippy::ref_option)] // serde's
fn gate<S: Serializer>(builder: &Option<GateBuilder>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Written {
        limit: u32,
        thresholds: [u32; Priority::ALL.len()],
        default_priority: &'static str,
        enforce: bool,
        objective_s: Option<f64>,
        controller: Option<Controller>,
        signals: Vec<String>,
    }
    #[derive(Serialize)]
    struct Controller {
        kind: &'static str,
        min: u32,
        max: u32,
        prior: u32,
    }
    let controller = |(kind, bounds): (Kind, Bounds)| Controller {
        kind: kind.as_str(),
        min: bounds.min(),
        max: bounds.max(),
        prior: bounds.prior(),
    };
    // Where it starts.
    let limit =
        |builder: &GateBuilder| builder.controller.map_or(builder.limit, |(_, bounds)| bounds.prior());
    let written = builder.as_ref().map(|builder| Written {
        limit: limit(builder),
        thresholds: builder.thresholds.at(limit(builder)),
        default_priority: builder.default_priority.name(),
        enforce: builder.enforce,
        objective_s: builder.objective.map(|objective| objective.as_secs_f64()),
        controller: builder.controller.map(controller),
        signals: builder.signals.iter().map(|(signal, _)| signal.name().to_owned()).collect(),
    });
    written.serialize(serializer)
}
