//! The run: the next event happens, until the time is up.
//!
//! Events come from few places, each of which knows its next moment: the series' boundary, the steps of the
//! capacity, the pools of service and dependency, the timeouts (in the order of their requests, since all
//! clients are equally patient), the retries and the arrivals. The earliest wins; of those at the same
//! nanosecond, the first in this list: so whoever leaves makes room for whoever comes, and an answer that
//! arrives with the timeout is good.

use super::agenda::{Agenda, Step};
use super::clients::OnTimeout;
use super::door::{Answer, Door, Holding};
use super::pool::{Pool, Speed};
use super::recorder::Recorder;
use super::report::{GateReport, Report};
use super::requests::{Attempt, Key, Place, Request, Requests};
use super::rules::{ScenarioError, nanos};
use super::scenario::Scenario;
use super::service::{Dependency, Service};
use super::sizes::Sampler;
use super::source::{Draw, Source};
use super::streams::Streams;
use super::tally::seconds;
use crate::outcome::Outcome;
use crate::priority::Priority;

/// The most requests inside, or about to come again: some hundred megabytes.
const MOST_INSIDE: usize = 4_000_000;

/// So much happens between two questions whether to go on: some hundredths of a second.
const AT_ONCE: u64 = 100_000;

pub(super) fn run(
    scenario: &Scenario,
    seed: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Report>, ScenarioError> {
    let mut engine = Engine::new(scenario, seed)?;
    let end_ns = nanos(scenario.duration);
    while !engine.until(end_ns, AT_ONCE)? {
        if !go_on() {
            return Ok(None);
        }
    }
    Ok(Some(engine.report(seed)))
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Boundary,
    Step,
    Served,
    Answered,
    Timeout,
    Retry,
    Arrival,
}

#[derive(Debug)]
pub(super) struct Engine<'s> {
    scenario: &'s Scenario,
    door: Door,
    streams: Streams,
    source: Source<'s>,
    draw: Draw,
    sizes: Sampler,
    arrival_ns: u64,
    requests: Requests,
    service: Pool,
    dependency: Option<Pool>,
    agenda: Agenda,
    recorder: Recorder,
    events: u64,
    now_ns: u64,
}

impl<'s> Engine<'s> {
    pub(super) fn new(scenario: &'s Scenario, seed: u64) -> Result<Self, ScenarioError> {
        let door = Door::new(scenario.gate.as_ref(), scenario.bare_entries)?;
        let Service { lambda, sigma, kappa, processors, servers, .. } = scenario.service;
        let all = Speed::new(lambda / 1e9, sigma, kappa);
        let served = Speed { processors: processors.map_or(all.processors, f64::from), ..all };
        let speed_of = |dependency: &Dependency| Speed::new(dependency.speed(), 0.0, 0.0);
        let dependency = scenario.dependency.as_ref().map(speed_of);
        let mut engine = Self {
            scenario,
            door,
            streams: Streams::new(seed),
            source: Source::new(&scenario.arrivals.schedule),
            draw: Draw::new(&scenario.arrivals.mix),
            sizes: scenario.service.sizes.sampler(),
            arrival_ns: 0,
            requests: Requests::default(),
            service: Pool::new(Place::Service, served, servers),
            dependency: dependency.map(|speed| Pool::new(Place::Dependency, speed, None)),
            agenda: Agenda::new(scenario),
            recorder: Recorder::new(scenario),
            events: 0,
            now_ns: 0,
        };
        engine.draw_arrival();
        Ok(engine)
    }

    pub(super) fn gate(&self) -> Option<&crate::Gate> {
        self.door.gate()
    }

    /// What happens up to a moment, but for what comes after `most` of it: whether that was all. The moment is
    /// at most the end of the scenario's time, which is passed only once.
    pub(super) fn until(&mut self, until_ns: u64, most: u64) -> Result<bool, ScenarioError> {
        let end_ns = nanos(self.scenario.duration);
        for _ in 0..most {
            let (at_ns, next) = self.next();
            if at_ns > until_ns {
                return Ok(true);
            }
            self.now_ns = at_ns;
            self.door.set_clock(at_ns);
            self.events += 1;
            match next {
                Next::Boundary => {
                    self.events -= 1;
                    let limit = self.door.gate().map(crate::Gate::limit);
                    self.recorder.end_interval(at_ns, limit);
                    if at_ns >= end_ns {
                        return Ok(true);
                    }
                }
                Next::Step => self.step(),
                Next::Served => self.served(),
                Next::Answered => self.answered(),
                Next::Timeout => self.timeout()?,
                Next::Retry => {
                    if let Some(attempt) = self.agenda.retry() {
                        self.attempt(attempt)?;
                    }
                }
                Next::Arrival => self.arrive()?,
            }
        }
        Ok(false)
    }

    fn next(&mut self) -> (u64, Next) {
        let others = [
            (self.agenda.step_ns(), Next::Step),
            (self.service.next_ns(), Next::Served),
            (self.dependency.as_ref().map_or(u64::MAX, Pool::next_ns), Next::Answered),
            (self.agenda.timeout_ns(&self.requests), Next::Timeout),
            (self.agenda.retry_ns(), Next::Retry),
            (self.arrival_ns, Next::Arrival),
        ];
        let mut first = (self.recorder.boundary_ns(), Next::Boundary);
        for other in others {
            if other.0 < first.0 {
                first = other;
            }
        }
        first
    }

    fn step(&mut self) {
        let Some(step) = self.agenda.step() else {
            return;
        };
        match (step, &mut self.dependency) {
            (Step::Service(change), _) => {
                let speed = self.service.speed();
                let speed = Speed {
                    alone: change.lambda.map_or(speed.alone, |lambda| lambda / 1e9),
                    sigma: change.sigma.unwrap_or(speed.sigma),
                    kappa: change.kappa.unwrap_or(speed.kappa),
                    ..speed
                };
                self.service.change(self.now_ns, speed, change.servers, &mut self.requests);
            }
            (Step::Dependency(alone), Some(pool)) => {
                let speed = Speed { alone, ..pool.speed() };
                pool.change(self.now_ns, speed, None, &mut self.requests);
            }
            (Step::Dependency(_), None) => {}
            (Step::Push(at), _) => self.door.push(&self.scenario.pushes[at]),
        }
    }

    fn draw_arrival(&mut self) {
        self.arrival_ns = self.source.next(&mut self.streams.arrivals).unwrap_or(u64::MAX);
    }

    fn arrive(&mut self) -> Result<(), ScenarioError> {
        self.draw_arrival();
        // Drawn whether it gets in or not, so that the next one is the same whatever the gate says.
        let class = self.draw.class(&mut self.streams.mix);
        let size = self.sizes.draw(&mut self.streams.sizes);
        let size = size * self.scenario.arrivals.mix[class].size;
        #[allow(clippy::cast_possible_truncation)] // few classes
        let class = class as u32;
        self.attempt(Attempt { class, tries: 0, size })
    }

    fn attempt(&mut self, attempt: Attempt) -> Result<(), ScenarioError> {
        let class = &self.scenario.arrivals.mix[attempt.class as usize];
        self.recorder.offered(class.priority, attempt.tries == 0);
        match self.door.ask(class) {
            Answer::Shed(reason) => {
                self.recorder.shed(class.priority, reason);
                if self.scenario.clients.retries.is_some_and(|retries| retries.on_shed) {
                    self.retry(attempt)?;
                }
                Ok(())
            }
            Answer::Admitted(holding) => self.let_in(attempt, holding, false),
            Answer::Over(holding) => self.let_in(attempt, holding, true),
        }
    }

    fn let_in(&mut self, attempt: Attempt, holding: Holding, over: bool) -> Result<(), ScenarioError> {
        let class = &self.scenario.arrivals.mix[attempt.class as usize];
        self.recorder.let_in(self.now_ns, class.priority, class.weight.get(), over);
        let request = Request { attempt, holding, since_ns: self.now_ns, place: Place::Queue, awaited: true };
        let key = match self.requests.insert(request) {
            Some(key) if self.requests.len() <= MOST_INSIDE => key,
            _ => return Err(self.too_many("inside")),
        };
        if let Some(timeout) = self.scenario.clients.timeout {
            self.agenda.add_timeout(self.now_ns.saturating_add(nanos(timeout)), key, &self.requests);
        }
        self.service.enter(self.now_ns, key, attempt.size, &mut self.requests);
        Ok(())
    }

    fn too_many(&self, place: &str) -> ScenarioError {
        let message = format!(
            "a run has at most {MOST_INSIDE} requests {place}, got more after {} s: \
             what comes in does not get out",
            seconds(self.now_ns)
        );
        ScenarioError::new("arrivals", message)
    }

    fn served(&mut self) {
        let Some(key) = self.service.leave(self.now_ns, &mut self.requests) else {
            return;
        };
        match &mut self.dependency {
            Some(pool) => pool.enter(self.now_ns, key, 1.0, &mut self.requests),
            None => self.finish(key),
        }
    }

    fn answered(&mut self) {
        let key = self.dependency.as_mut().and_then(|pool| pool.leave(self.now_ns, &mut self.requests));
        if let Some(key) = key {
            self.finish(key);
        }
    }

    fn finish(&mut self, key: Key) {
        let Some(request) = self.requests.remove(key) else {
            return;
        };
        let priority = self.priority(request.attempt);
        if request.awaited {
            self.recorder.good(priority, self.now_ns - request.since_ns);
        } else {
            self.recorder.wasted(priority);
        }
        self.leave(&request, if request.awaited { Outcome::Success } else { Outcome::Overload });
    }

    fn leave(&mut self, request: &Request, outcome: Outcome) {
        let weight = self.scenario.arrivals.mix[request.attempt.class as usize].weight.get();
        self.recorder.left(self.now_ns, weight, self.now_ns - request.since_ns);
        self.door.leave(request.holding, outcome);
    }

    fn priority(&self, attempt: Attempt) -> Priority {
        self.scenario.arrivals.mix[attempt.class as usize].priority
    }

    fn timeout(&mut self) -> Result<(), ScenarioError> {
        let Some(key) = self.agenda.timeout() else {
            return Ok(());
        };
        let Some(request) = self.requests.get_mut(key) else {
            return Ok(());
        };
        request.awaited = false;
        let attempt = request.attempt;
        self.recorder.late(self.priority(attempt));
        if self.scenario.clients.on_timeout == OnTimeout::Cancel {
            self.cancel(key);
        }
        if self.scenario.clients.retries.is_some_and(|retries| retries.on_timeout) {
            self.retry(attempt)?;
        }
        Ok(())
    }

    fn cancel(&mut self, key: Key) {
        let Some(request) = self.requests.remove(key) else {
            return;
        };
        let pool = match (request.place, &mut self.dependency) {
            (Place::Dependency, Some(pool)) => pool,
            _ => &mut self.service,
        };
        pool.forget(self.now_ns, request.place, &mut self.requests);
        self.recorder.cancelled(self.priority(request.attempt));
        self.leave(&request, Outcome::Ignore);
    }

    fn retry(&mut self, failed: Attempt) -> Result<(), ScenarioError> {
        let Some(retries) = self.scenario.clients.retries else {
            return Ok(());
        };
        let attempt = Attempt { tries: failed.tries + 1, ..failed };
        let Some(pause_ns) = retries.pause_ns(attempt.tries, &mut self.streams.retries) else {
            return Ok(());
        };
        let at_ns = self.now_ns.saturating_add(pause_ns);
        let end = self.scenario.duration;
        if at_ns >= nanos(retries.until.map_or(end, |until| until.min(end))) {
            return Ok(());
        }
        if self.agenda.retries() >= MOST_INSIDE {
            return Err(self.too_many("that will be tried again"));
        }
        self.agenda.add_retry(at_ns, attempt);
        Ok(())
    }

    fn report(self, seed: u64) -> Report {
        let recorder = self.recorder;
        Report {
            scenario: self.scenario.clone(),
            seed,
            events: self.events,
            virtual_s: seconds(self.now_ns),
            totals: recorder.totals(),
            by_priority: recorder.by_priority(),
            latency: recorder.latency(),
            in_flight: recorder.in_flight(),
            gate: self.door.gate().map(|gate| GateReport::read(gate, recorder.tallies())),
            series: recorder.into_series(),
        }
    }
}
