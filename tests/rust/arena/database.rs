//! A database that shares its power among what is inside and has less of it the more that is: processor sharing
//! with the universal scalability law.
//!
//! With n inside, work is done at rate n / (s (1 + sigma (n - 1) + kappa n (n - 1))), shared equally. All
//! requests advance alike, so each is done when the work done for one of them reaches its size more than it was
//! when it came: a heap of those marks is all there is to keep.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// How quick it is, and how it suffers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Law {
    /// Requests a second, alone.
    pub(crate) rate: f64,
    pub(crate) sigma: f64,
    pub(crate) kappa: f64,
    /// No more than so many get on at the same time; the rest shares with them.
    pub(crate) workers: f64,
    /// With more than so many inside, all is three times as slow.
    pub(crate) cliff: usize,
}

impl Law {
    /// What each of n gets done in a second.
    fn share(self, n: usize) -> f64 {
        let fall = if n > self.cliff { 3.0 } else { 1.0 };
        let n = n as f64;
        self.rate * (self.workers / n).min(1.0)
            / fall
            / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    mark: f64,
    id: usize,
}

impl PartialEq for Job {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Job {}

impl PartialOrd for Job {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Job {
    fn cmp(&self, other: &Self) -> Ordering {
        other.mark.total_cmp(&self.mark).then(other.id.cmp(&self.id))
    }
}

/// What is inside.
#[derive(Debug)]
pub(crate) struct Database {
    law: Law,
    jobs: BinaryHeap<Job>,
    done: f64,
    now: f64,
}

impl Database {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, jobs: BinaryHeap::new(), done: 0.0, now: 0.0 }
    }

    pub(crate) fn advance(&mut self, now: f64) {
        if !self.jobs.is_empty() {
            self.done += (now - self.now) * self.law.share(self.jobs.len());
        }
        self.now = now;
    }

    pub(crate) fn set_law(&mut self, now: f64, law: Law) {
        self.advance(now);
        self.law = law;
    }

    pub(crate) fn add(&mut self, now: f64, id: usize, size: f64) {
        self.advance(now);
        self.jobs.push(Job { mark: self.done + size, id });
    }

    /// When the next will be done, if nothing changes.
    pub(crate) fn next(&self) -> f64 {
        self.jobs.peek().map_or(f64::INFINITY, |job| {
            self.now + (job.mark - self.done).max(0.0) / self.law.share(self.jobs.len())
        })
    }

    /// Takes out the one that is done at `now`.
    pub(crate) fn pop(&mut self, now: f64) -> usize {
        self.advance(now);
        let job = self.jobs.pop().expect("somebody is done");
        self.done = job.mark;
        job.id
    }
}
