//! One run of one scenario behind a gate whose limit a controller moves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidegate::controller::{Cause, Controller, Window};

use crate::common::Rng;
use crate::database::Database;
use crate::scenario::Scenario;

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) good: u64,
    /// Good answers a second in slices of 20.
    pub(crate) slices: Vec<u64>,
    /// When the limit was what.
    pub(crate) limits: Vec<(f64, u32, Cause)>,
}

const NEVER: f64 = f64::INFINITY;

pub(crate) fn play(scenario: &Scenario, controller: &mut dyn Controller, seed: u64) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut database = Database::new(scenario.stages[0].law);
    let mut stage = scenario.stages[0];
    let mut stages = scenario.stages[1..].iter().copied().peekable();
    // Requests that are past the database, by when they end.
    let mut outside: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut arrived: Vec<f64> = Vec::new();
    let mut doomed: Vec<bool> = Vec::new();
    let mut now = 0.0_f64;
    let mut inside = 0_u32;
    let mut window = Window::default();
    let mut window_from = 0.0;
    let decision = controller.begin();
    let mut limit = decision.limit;
    let mut look_at = decision.look_after_ns as f64 / 1e9;
    let slice = scenario.end / 105.0;
    let mut outcome = Outcome { good: 0, slices: vec![0; 106], limits: vec![(0.0, limit, decision.cause)] };
    let gap = |rng: &mut Rng, rate: f64| if rate > 0.0 { rng.exponential() / rate } else { NEVER };
    let mut arrival = gap(&mut rng, stage.arrivals);
    loop {
        let change = stages.peek().map_or(NEVER, |stage| stage.from);
        let done = database.next();
        let late = outside.peek().map_or(NEVER, |Reverse((at, _))| *at as f64 / 1e9);
        let next = change.min(arrival).min(done).min(late);
        if next > scenario.end {
            return outcome;
        }
        window.in_flight_seconds += f64::from(inside) * (next - now);
        now = next;
        if next == change {
            stage = stages.next().expect("there is one");
            database.set_law(now, stage.law);
            arrival = now + gap(&mut rng, stage.arrivals);
            continue;
        }
        let mut ended = None;
        if next == arrival {
            arrival = now + gap(&mut rng, stage.arrivals);
            let size = scenario.sizes.draw(&mut rng);
            if inside < limit {
                inside += 1;
                window.admissions += 1;
                window.highest_in_flight = window.highest_in_flight.max(inside);
                let id = arrived.len();
                arrived.push(now);
                doomed.push(stage.timeout.is_some_and(|timeout| timeout > 0.0));
                match stage.timeout {
                    Some(timeout) => outside.push(Reverse((((now + timeout.abs()) * 1e9) as u64, id))),
                    None if size == 0.0 => outside.push(Reverse((((now + 0.01) * 1e9) as u64, id))),
                    None => database.add(now, id, size),
                }
            } else {
                window.refusals += 1;
            }
        } else if next == done {
            let id = database.pop(now);
            if stage.after > 0.0 {
                outside.push(Reverse((((now + stage.after) * 1e9) as u64, id)));
            } else {
                ended = Some(id);
            }
        } else {
            ended = outside.pop().map(|Reverse((_, id))| id);
        }
        if let Some(id) = ended {
            inside -= 1;
            let latency = now - arrived[id];
            let good = !doomed[id] && latency <= scenario.objective;
            window.complete((latency * 1e9) as u64, good, doomed[id]);
            outcome.good += u64::from(good);
            outcome.slices[(now / slice) as usize] += u64::from(good);
        }
        if now >= look_at {
            window.elapsed_ns = ((now - window_from) * 1e9) as u64;
            let decision = controller.look(&window);
            window = Window { highest_in_flight: inside, ..Window::default() };
            window_from = now;
            look_at = now + decision.look_after_ns as f64 / 1e9;
            if decision.limit != limit {
                limit = decision.limit;
                outcome.limits.push((now, limit, decision.cause));
            }
        }
    }
}
