//! What is going to happen at moments that are known: steps of the capacity, timeouts, retries.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use super::requests::{Attempt, Key, Requests};
use super::rules::nanos;
use super::scenario::Scenario;
use super::service::Change;

/// A step of the capacity.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Service(Change),
    /// The speed of the dependency from then on.
    Dependency(f64),
    /// This one of the scenario's pushes.
    Push(usize),
}

/// A retry that will be made.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at_ns: u64,
    /// In the order in which they were decided.
    number: u64,
    attempt: Attempt,
}

impl PartialEq for Retry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Retry {}

impl PartialOrd for Retry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Retry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.number).cmp(&(other.at_ns, other.number))
    }
}

#[derive(Debug)]
pub(super) struct Agenda {
    /// In order, the last one first.
    steps: Vec<(u64, Step)>,
    /// In the order of their requests, which is that of their moments: all clients are equally patient.
    timeouts: VecDeque<(u64, Key)>,
    retries: BinaryHeap<Reverse<Retry>>,
    decided: u64,
}

impl Agenda {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let changes = scenario.service.changes.iter();
        let mut steps: Vec<_> = changes.map(|change| (nanos(change.at), Step::Service(*change))).collect();
        for change in scenario.dependency.iter().flat_map(|dependency| &dependency.changes) {
            steps.push((nanos(change.at), Step::Dependency(change.speed())));
        }
        let pushes = scenario.pushes.iter().enumerate();
        steps.extend(pushes.map(|(at, push)| (nanos(push.at), Step::Push(at))));
        steps.sort_by_key(|(at_ns, _)| *at_ns);
        steps.reverse();
        Self { steps, timeouts: VecDeque::new(), retries: BinaryHeap::new(), decided: 0 }
    }

    pub(super) fn step_ns(&self) -> u64 {
        self.steps.last().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    pub(super) fn step(&mut self) -> Option<Step> {
        self.steps.pop().map(|(_, step)| step)
    }

    pub(super) fn add_timeout(&mut self, at_ns: u64, key: Key, requests: &Requests) {
        self.timeouts.push_back((at_ns, key));
        // Those answered behind one that waits on.
        if self.timeouts.len() > 2 * requests.len() + 64 {
            self.timeouts.retain(|(_, key)| requests.has(*key));
        }
    }

    pub(super) fn timeout_ns(&mut self, requests: &Requests) -> u64 {
        // Most of those who wait are answered.
        while self.timeouts.front().is_some_and(|(_, key)| !requests.has(*key)) {
            self.timeouts.pop_front();
        }
        self.timeouts.front().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    pub(super) fn timeout(&mut self) -> Option<Key> {
        self.timeouts.pop_front().map(|(_, key)| key)
    }

    pub(super) fn add_retry(&mut self, at_ns: u64, attempt: Attempt) {
        self.decided += 1;
        self.retries.push(Reverse(Retry { at_ns, number: self.decided, attempt }));
    }

    pub(super) fn retries(&self) -> usize {
        self.retries.len()
    }

    pub(super) fn retry_ns(&self) -> u64 {
        self.retries.peek().map_or(u64::MAX, |Reverse(retry)| retry.at_ns)
    }

    pub(super) fn retry(&mut self) -> Option<Attempt> {
        self.retries.pop().map(|Reverse(retry)| retry.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::super::door::Holding;
    use super::super::requests::{Place, Request};
    use super::super::{Arrivals, Service};
    use super::*;

    /// However long the first one waits.
    #[test]
    fn answered_requests_leave_the_memory() {
        let hour = std::time::Duration::from_secs(3600);
        let scenario = Scenario::new("", Arrivals::poisson(1.0, hour), Service::shared(1.0, 0.0, 0.0));
        let (mut agenda, mut requests) = (Agenda::new(&scenario), Requests::default());
        let attempt = Attempt { class: 0, tries: 0, size: 1.0 };
        let place = Place::Service;
        let request = Request { attempt, holding: Holding::Nothing, since_ns: 0, place, awaited: true };
        let first = requests.insert(request).unwrap();
        agenda.add_timeout(1_000_000, first, &requests);
        for n in 1..10_000 {
            let key = requests.insert(request).unwrap();
            agenda.add_timeout(1_000_000 + n, key, &requests);
            requests.remove(key);
            assert!(agenda.timeouts.len() <= 2 + 2 + 64, "{n}: {}", agenda.timeouts.len());
        }
        assert_eq!((agenda.timeout_ns(&requests), agenda.timeout()), (1_000_000, Some(first)));
        assert_eq!(agenda.timeout_ns(&requests), u64::MAX);
    }
}
