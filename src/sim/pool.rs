//! Requests that get on at one common rate, which depends on how many there are.
//!
//! All of them attain work at the same pace, so one number says how much each has attained since the pool was
//! last empty, and a request is done when that number reaches its mark: the number at its start plus its
//! size. The next to be done is the smallest mark, whatever becomes of the rate until then; so marks never
//! change, a heap of them is enough, and any event costs O(log n) rather than a walk over everybody inside
//! (virtual time, as in weighted fair queueing: Parekh and Gallager, 1993). A step of the rate leaves marks
//! alone: what was attained is kept.
//!
//! Who is cancelled leaves the count at once, and the heap when its mark comes up, or when there are more
//! such marks than others.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use super::requests::{Key, Place, Requests};
use super::service::Cliff;

/// How fast each of those in a pool gets on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// Units of work a nanosecond of one alone. Infinite: all are done at once.
    pub(super) alone: f64,
    pub(super) sigma: f64,
    pub(super) kappa: f64,
    /// How many get on at a time; infinite: all.
    pub(super) processors: f64,
    pub(super) cliff: Option<Cliff>,
}

impl Speed {
    /// Where all get on at a time.
    pub(super) const fn new(alone: f64, sigma: f64, kappa: f64) -> Self {
        Self { alone, sigma, kappa, processors: f64::INFINITY, cliff: None }
    }

    /// With how many.
    #[allow(clippy::cast_precision_loss)] // far fewer than 2^52
    fn with(self, serving: usize) -> f64 {
        let serving = serving as f64;
        let at_work = serving.min(self.processors);
        let others = at_work - 1.0;
        let share = at_work / serving;
        let fall =
            self.cliff.map_or(1.0, |cliff| if serving > f64::from(cliff.above) { cliff.factor } else { 1.0 });
        self.alone * share / fall / (1.0 + self.sigma * others + self.kappa * at_work * others)
    }
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: f64,
    key: Key,
}

impl PartialEq for Mark {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Mark {}

impl PartialOrd for Mark {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Mark {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.key.cmp(&other.key))
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    speed: Speed,
    servers: usize,
    /// Where those inside are said to be.
    place: Place,
    /// The work that each has attained since the pool was last empty, at `since_ns`.
    attained: f64,
    since_ns: u64,
    /// Of each, now.
    rate: f64,
    serving: usize,
    marks: BinaryHeap<Reverse<Mark>>,
    queue: VecDeque<(Key, f64)>,
    next_ns: u64,
}

impl Pool {
    pub(super) fn new(place: Place, speed: Speed, servers: Option<u32>) -> Self {
        Self {
            speed,
            servers: servers.map_or(usize::MAX, |servers| servers as usize),
            place,
            attained: 0.0,
            since_ns: 0,
            rate: 0.0,
            serving: 0,
            marks: BinaryHeap::new(),
            queue: VecDeque::new(),
            next_ns: u64::MAX,
        }
    }

    /// When the next one is done; `u64::MAX` where none ever is.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    pub(super) fn enter(&mut self, now_ns: u64, key: Key, size: f64, requests: &mut Requests) {
        self.advance(now_ns);
        self.queue.push_back((key, size));
        self.settle(requests);
    }

    /// The one that is done at [`next_ns`](Self::next_ns), which is now.
    pub(super) fn leave(&mut self, now_ns: u64, requests: &mut Requests) -> Option<Key> {
        self.advance(now_ns);
        let Reverse(Mark { at, key }) = self.marks.pop()?;
        self.attained = self.attained.max(at); // by a rounding error
        self.serving -= 1;
        self.settle(requests);
        Some(key)
    }

    /// After one that was in service, or before it in the queue, was removed from the requests.
    pub(super) fn forget(&mut self, now_ns: u64, was_in: Place, requests: &mut Requests) {
        self.advance(now_ns);
        if was_in == self.place {
            self.serving -= 1;
        }
        if self.marks.len() > 2 * self.serving + 64 {
            self.marks.retain(|Reverse(mark)| requests.has(mark.key));
        }
        self.settle(requests);
    }

    pub(super) fn change(
        &mut self,
        now_ns: u64,
        speed: Speed,
        servers: Option<u32>,
        requests: &mut Requests,
    ) {
        self.advance(now_ns);
        self.speed = speed;
        self.servers = servers.map_or(self.servers, |servers| servers as usize);
        self.settle(requests);
    }

    /// What everybody attained until now.
    fn advance(&mut self, now_ns: u64) {
        // At an infinite rate all are done before any time passes.
        if self.serving > 0 && self.rate.is_finite() {
            #[allow(clippy::cast_precision_loss)] // 2^53 ns are 104 days between two events
            let elapsed = (now_ns - self.since_ns) as f64;
            self.attained += self.rate * elapsed;
        }
        self.since_ns = now_ns;
    }

    /// Fills the servers, and reckons who is done next.
    fn settle(&mut self, requests: &mut Requests) {
        while let Some(&(key, size)) = self.queue.front() {
            let request = requests.get_mut(key);
            if request.is_some() && self.serving >= self.servers {
                break;
            }
            self.queue.pop_front();
            if let Some(request) = request {
                request.place = self.place;
                self.serving += 1;
                self.marks.push(Reverse(Mark { at: self.attained + size, key }));
            }
        }
        while self.marks.peek().is_some_and(|Reverse(mark)| !requests.has(mark.key)) {
            self.marks.pop();
        }
        let Some(Reverse(next)) = self.marks.peek() else {
            self.attained = 0.0;
            self.next_ns = u64::MAX;
            return;
        };
        self.rate = self.speed.with(self.serving);
        let left = (next.at - self.attained).max(0.0) / self.rate;
        // Rounded up, so that it has attained its mark by then. Saturates; nothing over nothing is now.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let left = left.ceil() as u64;
        self.next_ns = self.since_ns.saturating_add(left);
    }
}

#[cfg(test)]
mod tests {
    use super::super::door::Holding;
    use super::super::requests::{Attempt, Request};
    use super::*;

    fn request() -> Request {
        let attempt = Attempt { class: 0, tries: 0, size: 1.0 };
        Request { attempt, holding: Holding::Nothing, since_ns: 0, place: Place::Queue, awaited: true }
    }

    /// However many are cancelled, and however far off their marks are.
    #[test]
    fn cancelled_requests_leave_the_memory() {
        let speed = Speed::new(1e-9, 1.0, 0.0);
        let mut pool = Pool::new(Place::Service, speed, Some(10));
        let mut requests = Requests::default();
        let first = requests.insert(request()).unwrap();
        pool.enter(0, first, 1.0, &mut requests);
        for n in 0..10_000 {
            let key = requests.insert(request()).unwrap();
            pool.enter(n, key, 1e9, &mut requests);
            let place = requests.remove(key).unwrap().place;
            pool.forget(n, place, &mut requests);
            assert!(pool.marks.len() <= 2 + 64 && pool.queue.is_empty() && pool.serving == 1);
        }
        let done = pool.next_ns();
        assert_eq!(pool.leave(done, &mut requests), Some(first));
        assert_eq!((pool.next_ns(), pool.marks.len()), (u64::MAX, 0));
        // Nobody was beside it for any time.
        assert!(done.abs_diff(1_000_000_000) <= 1, "{done}");
    }
}
