//! What a run came to.

use serde::{Serialize, Serializer};

use super::scenario::Scenario;
use super::tally::{Latency, Tally, seconds};
use crate::control::LimitChange;
use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::priority::Priority;
use crate::shed::Reason;

/// What a run came to. Nothing in it depends on the machine or on how fast it was.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What was run.
    pub scenario: Scenario,
    /// With which random numbers.
    pub seed: u64,
    /// How many events there were: attempts, ends of work, timeouts, steps.
    pub events: u64,
    /// The time that passed in the simulation.
    pub virtual_s: f64,
    /// All attempts.
    pub totals: Tally,
    /// The attempts of each priority that came, most important first.
    pub by_priority: Vec<PriorityReport>,
    /// How long answers took, from the attempt on.
    pub latency: Latencies,
    /// What was inside.
    pub in_flight: InFlight,
    /// What the gate itself counted.
    pub gate: Option<GateReport>,
    /// The same over time.
    pub series: Vec<Point>,
}

/// One priority.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriorityReport {
    /// Which.
    #[serde(serialize_with = "name")]
    pub priority: Priority,
    /// Its attempts.
    #[serde(flatten)]
    pub tally: Tally,
    /// How long its good answers took.
    pub latency: Latency,
}

/// How long things took, from the attempt on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latencies {
    /// Good answers.
    pub good: Latency,
    /// All that were let in and have left, also those that nobody waited for any more: how long permits
    /// are held.
    pub admitted: Latency,
}

/// The weight inside, with what a dry run let in beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct InFlight {
    /// Averaged over time.
    pub mean: f64,
    /// The most.
    pub peak: u64,
    /// At the end.
    pub end: u64,
}

/// An interval of the series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// When it began.
    pub start_s: f64,
    /// How long it was: the last one may be cut.
    pub length_s: f64,
    /// What happened in it.
    #[serde(flatten)]
    pub tally: Tally,
    /// The same by priority, where more than one came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_priority: Vec<PriorityTally>,
    /// How long the good answers that came in it took.
    pub latency: Latency,
    /// What was inside.
    pub in_flight: InFlight,
    /// Requests inside whom a client waits for, at its end.
    pub awaited: u64,
    /// The gate's limit at its end.
    pub limit: Option<u32>,
}

/// One priority in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PriorityTally {
    /// Which.
    #[serde(serialize_with = "name")]
    pub priority: Priority,
    /// Its attempts.
    #[serde(flatten)]
    pub tally: Tally,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's
fn name<S: Serializer>(priority: &Priority, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(priority.name())
}

/// What a gate counted, which the report's own counts must agree with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateReport {
    /// The limit at the end.
    pub limit: u32,
    /// The weight in flight at the end.
    pub in_flight: u32,
    /// The most weight that ever was.
    pub high_water: u32,
    /// Permits and bare entries admitted.
    pub admitted: u64,
    /// Turned away.
    pub shed: u64,
    /// What a dry run let in.
    pub would_shed: u64,
    /// Released with success.
    pub success: u64,
    /// Released with overload.
    pub overload: u64,
    /// Released with ignore.
    pub ignore: u64,
    /// The weight in flight averaged over time, as the gate itself measured it; `None` without timing.
    pub in_flight_mean: Option<f64>,
    /// The last changes of the limit, at most 64.
    pub limit_changes: Vec<LimitStep>,
}

/// One change of a limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitStep {
    /// When.
    pub at_s: f64,
    /// The limit before.
    pub from: u32,
    /// The limit from then on.
    pub to: u32,
    /// Why.
    pub cause: Option<String>,
}

impl From<LimitChange> for LimitStep {
    fn from(change: LimitChange) -> Self {
        let LimitChange { at_ns, from, to, cause } = change;
        Self { at_s: seconds(at_ns), from, to, cause: cause.map(String::from) }
    }
}

impl GateReport {
    /// A reading of a gate, which is checked against what the simulator saw of it.
    #[allow(clippy::cast_precision_loss)] // a mean
    pub(super) fn read(gate: &Gate, seen: &[Tally; Priority::ALL.len()]) -> Self {
        let stats = gate.stats();
        for (priority, seen) in Priority::ALL.into_iter().zip(seen) {
            debug_assert_eq!(stats.admitted(priority), seen.admitted, "{priority}");
            debug_assert_eq!(stats.would_shed(priority), seen.would_shed, "{priority}");
            for reason in Reason::ALL {
                debug_assert_eq!(stats.shed(priority, reason), seen.shed_for(reason), "{priority} {reason}");
            }
        }
        let sum = |of: &dyn Fn(Priority) -> u64| Priority::ALL.into_iter().map(of).sum();
        Self {
            limit: stats.limit,
            in_flight: stats.in_flight,
            high_water: stats.high_water,
            admitted: sum(&|priority| stats.admitted(priority)),
            shed: stats.shed_total(),
            would_shed: sum(&|priority| stats.would_shed(priority)),
            success: stats.released(Outcome::Success),
            overload: stats.released(Outcome::Overload),
            ignore: stats.released(Outcome::Ignore),
            in_flight_mean: stats.occupancy_us.map(|area| area as f64 / (gate.now_ns() as f64 / 1e3)),
            limit_changes: gate.limit_history().into_iter().map(LimitStep::from).collect(),
        }
    }
}
