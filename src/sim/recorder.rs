//! Takes down what happens, interval by interval, in memory that does not grow with the number of requests.

use super::report::{InFlight, Latencies, Point, PriorityReport, PriorityTally};
use super::rules::nanos;
use super::scenario::Scenario;
use super::tally::{Tally, Times, seconds};
#[cfg(feature = "capacity")]
use crate::histogram::Histogram;
use crate::priority::{PRIORITIES, Priority};
use crate::shed::Reason;

/// The weight inside over some time.
#[derive(Clone, Copy, Debug, Default)]
struct Area {
    /// Weight times nanoseconds.
    sum: u128,
    peak: u64,
}

impl Area {
    #[allow(clippy::cast_precision_loss)] // a mean
    fn mean(self, length_ns: u64) -> f64 {
        self.sum as f64 / length_ns as f64
    }
}

#[derive(Debug)]
pub(super) struct Recorder {
    interval_ns: u64,
    end_ns: u64,
    /// Which priorities come at all.
    coming: [bool; PRIORITIES],
    /// Of the interval, which began at `start_ns`.
    now: [Tally; PRIORITIES],
    good_now: Times,
    area_now: Area,
    start_ns: u64,
    /// Of all before it.
    before: [Tally; PRIORITIES],
    good: [Times; PRIORITIES],
    admitted: Times,
    area: Area,
    points: Vec<Point>,
    inside: u64,
    inside_since_ns: u64,
    awaited: u64,
}

impl Recorder {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut coming = [false; PRIORITIES];
        for class in &scenario.arrivals.mix {
            coming[class.priority.level()] = true;
        }
        Self {
            interval_ns: nanos(scenario.interval),
            end_ns: nanos(scenario.duration),
            coming,
            now: [Tally::default(); PRIORITIES],
            good_now: Times::new(),
            area_now: Area::default(),
            start_ns: 0,
            before: [Tally::default(); PRIORITIES],
            good: std::array::from_fn(|_| Times::new()),
            admitted: Times::new(),
            area: Area::default(),
            points: Vec::new(),
            inside: 0,
            inside_since_ns: 0,
            awaited: 0,
        }
    }

    /// When the interval ends.
    pub(super) fn boundary_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.interval_ns).min(self.end_ns)
    }

    fn of(&mut self, priority: Priority) -> &mut Tally {
        &mut self.now[priority.level()]
    }

    pub(super) fn offered(&mut self, priority: Priority, first: bool) {
        let tally = self.of(priority);
        tally.offered += 1;
        tally.first_attempts += u64::from(first);
    }

    pub(super) fn let_in(&mut self, now_ns: u64, priority: Priority, weight: u32, over: bool) {
        let tally = self.of(priority);
        if over {
            tally.would_shed += 1;
        } else {
            tally.admitted += 1;
        }
        self.awaited += 1;
        self.elapse(now_ns);
        self.inside += u64::from(weight);
        self.area_now.peak = self.area_now.peak.max(self.inside);
    }

    pub(super) fn shed(&mut self, priority: Priority, reason: Reason) {
        self.of(priority).shed_by_reason[reason as usize] += 1;
    }

    pub(super) fn good(&mut self, priority: Priority, took_ns: u64) {
        self.of(priority).good += 1;
        self.awaited -= 1;
        self.good_now.add(took_ns);
        self.good[priority.level()].add(took_ns);
    }

    pub(super) fn late(&mut self, priority: Priority) {
        self.of(priority).late += 1;
        self.awaited -= 1;
    }

    pub(super) fn cancelled(&mut self, priority: Priority) {
        self.of(priority).cancelled += 1;
    }

    pub(super) fn wasted(&mut self, priority: Priority) {
        self.of(priority).wasted += 1;
    }

    pub(super) fn left(&mut self, now_ns: u64, weight: u32, took_ns: u64) {
        self.elapse(now_ns);
        self.inside -= u64::from(weight);
        self.admitted.add(took_ns);
    }

    fn elapse(&mut self, now_ns: u64) {
        self.area_now.sum += u128::from(self.inside) * u128::from(now_ns - self.inside_since_ns);
        self.inside_since_ns = now_ns;
    }

    /// Ends the interval.
    pub(super) fn end_interval(&mut self, now_ns: u64, limit: Option<u32>) {
        self.elapse(now_ns);
        let length_ns = now_ns - self.start_ns;
        let several = self.coming.iter().filter(|&&coming| coming).count() > 1;
        let by_priority = self.coming().filter(|_| several);
        let by_priority =
            by_priority.map(|priority| PriorityTally { priority, tally: self.now[priority.level()] });
        self.points.push(Point {
            start_s: seconds(self.start_ns),
            length_s: seconds(length_ns),
            tally: sum(&self.now),
            by_priority: by_priority.collect(),
            latency: self.good_now.read(),
            in_flight: InFlight {
                mean: self.area_now.mean(length_ns),
                peak: self.area_now.peak,
                end: self.inside,
            },
            awaited: self.awaited,
            limit,
        });
        for (before, now) in self.before.iter_mut().zip(&self.now) {
            *before += now;
        }
        self.now = Default::default();
        self.good_now.clear();
        self.area.sum += self.area_now.sum;
        self.area.peak = self.area.peak.max(self.area_now.peak);
        self.area_now = Area { sum: 0, peak: self.inside };
        self.start_ns = now_ns;
    }

    fn coming(&self) -> impl Iterator<Item = Priority> + '_ {
        Priority::ALL.into_iter().filter(|priority| self.coming[priority.level()])
    }

    /// All attempts, by priority, of the intervals that have ended.
    pub(super) fn tallies(&self) -> &[Tally; PRIORITIES] {
        &self.before
    }

    pub(super) fn totals(&self) -> Tally {
        sum(&self.before)
    }

    pub(super) fn by_priority(&self) -> Vec<PriorityReport> {
        let report = |priority: Priority| PriorityReport {
            priority,
            tally: self.before[priority.level()],
            latency: self.good[priority.level()].read(),
        };
        self.coming().map(report).collect()
    }

    fn all_good(&self) -> Times {
        let mut good = Times::new();
        for of_one in &self.good {
            good.add_all(of_one);
        }
        good
    }

    pub(super) fn latency(&self) -> Latencies {
        Latencies { good: self.all_good().read(), admitted: self.admitted.read() }
    }

    /// How long the good answers so far took.
    #[cfg(feature = "capacity")]
    pub(super) fn good_times(&self) -> Histogram {
        self.all_good().into_histogram()
    }

    /// The intervals that have ended.
    #[cfg(feature = "capacity")]
    pub(super) fn series(&self) -> &[Point] {
        &self.points
    }

    pub(super) fn in_flight(&self) -> InFlight {
        InFlight { mean: self.area.mean(self.end_ns), peak: self.area.peak, end: self.inside }
    }

    pub(super) fn into_series(self) -> Vec<Point> {
        self.points
    }
}

fn sum(tallies: &[Tally; PRIORITIES]) -> Tally {
    let mut sum = Tally::default();
    for tally in tallies {
        sum += tally;
    }
    sum
}
