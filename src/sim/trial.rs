//! A run in two parts: a warm-up of which nothing is kept, and what is measured. Somebody looks at it at each end of an
//! interval, and may end it.

use std::time::Duration;

use super::engine::Engine;
use super::rules::{ScenarioError, nanos};
use super::scenario::Scenario;
use super::tally::{Tally, seconds};
use crate::histogram::Histogram;

/// As many quantiles of the latencies are kept.
const KEPT: u64 = 500;

/// What a run came to, or has so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial {
    /// What was measured; of what was ended in its warm-up, all; of what still runs, since its start.
    pub(crate) totals: Tally,
    /// Over so many seconds.
    pub(crate) seconds: f64,
    /// The mean number inside.
    pub(crate) in_flight: f64,
    /// The number inside at the end.
    pub(crate) inside: u64,
    /// Of the good answers: all, or quantiles at equal distances.
    pub(crate) latencies: Vec<f64>,
}

/// Runs it, as long as `go_on` says so. The warm-up is to be whole intervals.
pub(crate) fn trial(
    scenario: &Scenario,
    seed: u64,
    warm_up: Duration,
    go_on: &mut dyn FnMut(&Trial) -> bool,
) -> Result<Trial, ScenarioError> {
    let mut engine = Engine::new(scenario, seed)?;
    let (end_ns, interval_ns, warm_ns) = (nanos(scenario.duration), nanos(scenario.interval), nanos(warm_up));
    let mut before = (0, Histogram::empty());
    let mut so_far = Trial::default();
    let mut now_ns = 0;
    while now_ns < end_ns {
        now_ns = now_ns.saturating_add(interval_ns).min(end_ns);
        engine.until(now_ns, u64::MAX)?;
        if now_ns <= warm_ns {
            before = (engine.recorder().series().len(), engine.recorder().good_times());
        }
        if let Some(point) = engine.recorder().series().last() {
            so_far.totals += &point.tally;
            so_far.inside = point.in_flight.end;
        }
        so_far.seconds = seconds(now_ns);
        if !go_on(&so_far) {
            break;
        }
    }
    let (points, times) = if now_ns > warm_ns { before } else { (0, Histogram::empty()) };
    let mut found = Trial { inside: so_far.inside, ..Trial::default() };
    for point in &engine.recorder().series()[points..] {
        found.totals += &point.tally;
        found.seconds += point.length_s;
        found.in_flight += point.in_flight.mean * point.length_s;
    }
    found.in_flight /= found.seconds;
    found.latencies = quantiles(&engine.recorder().good_times().since(&times));
    Ok(found)
}

#[allow(clippy::cast_precision_loss)] // few
fn quantiles(times: &Histogram) -> Vec<f64> {
    let kept = times.count().min(KEPT);
    let at = |rank: u64| times.quantile((rank as f64 + 0.5) / kept as f64);
    (0..kept).filter_map(at).map(|time| time.as_secs_f64()).collect()
}
