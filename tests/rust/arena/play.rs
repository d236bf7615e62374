//! One run: the gate that ships, with its controller, in the simulator.

use tidegate::Gate;
use tidegate::controller::{Bounds, Kind};
use tidegate::sim::{Point, Report};

use crate::scenario::{Match, POINTS};

/// Who moves the limit, and from where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Player {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    /// Good answers, by slice.
    pub(crate) slices: Vec<u64>,
    /// The limit at the end of each of many short intervals.
    pub(crate) limits: Vec<u32>,
    /// How long permits are held: 99 % no longer, in seconds.
    pub(crate) p99: f64,
    /// Of the most important priority that came: good answers over attempts.
    pub(crate) top_success: f64,
}

impl Played {
    pub(crate) fn good(&self) -> f64 {
        self.slices.iter().sum::<u64>() as f64
    }
}

/// The largest limit that a controller may try.
const MAX: u32 = 1_000;

pub(crate) fn play(place: &Match, player: Player, seed: u64) -> Played {
    let bounds = Bounds::new(1, MAX.max(player.start), player.start).expect("valid bounds");
    let bounds = place.objective.map_or(Ok(bounds), |objective| bounds.objective(objective));
    let builder = Gate::builder("arena", player.start).objective(place.objective);
    let mut scenario = place.scenario.clone();
    scenario.gate = Some(builder.controller(player.kind, bounds.expect("a valid objective")));
    let report =
        scenario.run(seed).unwrap_or_else(|error| panic!("{} with seed {seed}: {error}", place.name));
    read(&report)
}

fn read(report: &Report) -> Played {
    let good = |points: &[Point]| points.iter().map(|point| point.tally.good).sum();
    let top = &report.by_priority[0].tally;
    Played {
        slices: report.series.chunks(POINTS as usize).map(good).collect(),
        limits: report.series.iter().map(|point| point.limit.expect("there is a gate")).collect(),
        p99: report.latency.admitted.p99_s.unwrap_or(f64::INFINITY),
        top_success: top.good as f64 / top.offered.max(1) as f64,
    }
}
