//! One run of one scenario: the real gate, whose limit a controller moves between events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidegate::controller::{Controller, Window};
use tidegate::{Gate, Outcome, Priority, Ticket};

use crate::common::Rng;
use crate::database::Database;
use crate::scenario::{Scenario, Stage};

/// What came of it.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    /// Answers within the objective.
    pub(crate) good: u64,
    /// From when the limit was what.
    pub(crate) limits: Vec<(f64, u32)>,
}

struct Request {
    came: f64,
    ticket: Ticket,
    /// It is never answered.
    doomed: bool,
}

struct Play<'a> {
    scenario: &'a Scenario,
    controller: &'a mut dyn Controller,
    gate: Gate,
    rng: Rng,
    stage: Stage,
    database: Database,
    /// Those who wait for something else than the database, by when that ends, in nanoseconds.
    elsewhere: BinaryHeap<Reverse<(u64, usize)>>,
    requests: Vec<Request>,
    now: f64,
    arrival: f64,
    window: Window,
    window_from: f64,
    look_at: f64,
    played: Played,
}

pub(crate) fn play(scenario: &Scenario, controller: &mut dyn Controller, seed: u64) -> Played {
    let first = controller.begin();
    let mut play = Play {
        scenario,
        gate: Gate::new("arena", first.limit).expect("a valid gate"),
        rng: Rng::new(seed),
        stage: scenario.stages[0],
        database: Database::new(scenario.stages[0].law),
        elsewhere: BinaryHeap::new(),
        requests: Vec::new(),
        now: 0.0,
        arrival: 0.0,
        window: Window::default(),
        window_from: 0.0,
        look_at: first.look_after_ns as f64 / 1e9,
        played: Played { good: 0, limits: vec![(0.0, first.limit)] },
        controller,
    };
    play.draw_arrival();
    let mut stages = scenario.stages[1..].iter().copied().peekable();
    loop {
        let change = stages.peek().map_or(f64::INFINITY, |stage| stage.from);
        let served = play.database.next();
        let ended = play.elsewhere.peek().map_or(f64::INFINITY, |Reverse((at, _))| *at as f64 / 1e9);
        let next = change.min(play.arrival).min(served).min(ended);
        if next > scenario.end {
            return play.played;
        }
        play.window.in_flight_seconds += f64::from(play.gate.in_flight()) * (next - play.now);
        play.now = next;
        if next == change {
            play.stage = stages.next().expect("peeked");
            play.database.set_law(next, play.stage.law);
            play.draw_arrival();
        } else if next == play.arrival {
            play.arrive();
        } else if next == served {
            play.served();
        } else if let Some(Reverse((_, id))) = play.elsewhere.pop() {
            play.finish(id);
        }
        if play.now >= play.look_at {
            play.look();
        }
    }
}

impl Play<'_> {
    fn draw_arrival(&mut self) {
        let rate = self.stage.arrivals;
        self.arrival = if rate > 0.0 { self.now + self.rng.exponential() / rate } else { f64::INFINITY };
    }

    fn arrive(&mut self) {
        self.draw_arrival();
        // Drawn whether it gets in or not, so that the next one is the same whatever the limit is.
        let size = self.scenario.sizes.draw(&mut self.rng);
        let Ok(ticket) = self.gate.take(Priority::Critical) else {
            self.window.refusals += 1;
            return;
        };
        self.window.admissions += 1;
        self.window.highest_in_flight = self.window.highest_in_flight.max(self.gate.in_flight());
        let id = self.requests.len();
        self.requests.push(Request { came: self.now, ticket, doomed: self.stage.timeout.is_some() });
        match (self.stage.timeout, size) {
            (Some(timeout), _) => self.wait_elsewhere(timeout, id),
            (None, Some(size)) => self.database.add(self.now, id, size),
            (None, None) => self.wait_elsewhere(0.01, id),
        }
    }

    fn wait_elsewhere(&mut self, seconds: f64, id: usize) {
        self.elsewhere.push(Reverse((((self.now + seconds) * 1e9) as u64, id)));
    }

    fn served(&mut self) {
        let id = self.database.pop(self.now);
        if self.stage.after > 0.0 { self.wait_elsewhere(self.stage.after, id) } else { self.finish(id) }
    }

    fn finish(&mut self, id: usize) {
        let Request { came, ticket, doomed } = self.requests[id];
        let latency = self.now - came;
        // Who waits longer than the objective has gone: a timeout.
        let good = !doomed && latency <= self.scenario.objective;
        self.gate.put(ticket, if good { Outcome::Success } else { Outcome::Overload });
        self.window.complete((latency * 1e9) as u64, good, !good);
        self.played.good += u64::from(good);
    }

    fn look(&mut self) {
        self.window.elapsed_ns = ((self.now - self.window_from) * 1e9) as u64;
        let decision = self.controller.look(&self.window);
        self.window = Window { highest_in_flight: self.gate.in_flight(), ..Window::default() };
        self.window_from = self.now;
        self.look_at = self.now + decision.look_after_ns as f64 / 1e9;
        if decision.limit != self.gate.limit() {
            self.gate.set_limit(decision.limit, Some(decision.cause.as_str())).expect("a valid limit");
            self.played.limits.push((self.now, decision.limit));
        }
    }
}
