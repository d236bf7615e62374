//! What a controller sees: sums over the time since it last decided.

/// What happened at a gate between two looks. Everything is a sum, so that windows add up, and all of it can be
/// read off counters that only grow. Permits that ended with `ignore` are in none of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// How long it was.
    pub elapsed_ns: u64,
    /// Permits that came back with `success` or `overload`.
    pub completions: u64,
    /// Those with `success` within the objective (without an objective: all with `success`).
    pub good: u64,
    /// Those with `overload`.
    pub overload: u64,
    /// How long the completed were held, in seconds, summed,
    pub latency_sum: f64,
    /// squared, in square seconds,
    pub latency_square_sum: f64,
    /// as natural logarithms of nanoseconds (none counts as one),
    pub latency_log_sum: f64,
    /// and these logarithms squared.
    pub latency_log_square_sum: f64,
    /// The integral of in flight over the window, in seconds.
    pub in_flight_seconds: f64,
    /// The highest in flight.
    pub highest_in_flight: u32,
    /// Requests that were admitted.
    pub admissions: u64,
    /// Requests that met a full gate: shed with `limit`.
    pub refusals: u64,
    /// Turned away below the limit, by their priority's threshold: shed with `priority`.
    pub priority_refusals: u64,
    /// The weight beyond 1 of what was released.
    pub extra_weight: u64,
}

impl Window {
    /// Adds one completion.
    pub fn complete(&mut self, latency_ns: u64, good: bool, overload: bool) {
        let latency = seconds(latency_ns);
        let log = float(latency_ns.max(1)).ln();
        self.completions += 1;
        self.good += u64::from(good);
        self.overload += u64::from(overload);
        self.latency_sum += latency;
        self.latency_square_sum += latency * latency;
        self.latency_log_sum += log;
        self.latency_log_square_sum += log * log;
    }

    /// Adds a window that followed this one.
    pub fn append(&mut self, next: &Self) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(next.elapsed_ns);
        self.completions = self.completions.saturating_add(next.completions);
        self.good = self.good.saturating_add(next.good);
        self.overload = self.overload.saturating_add(next.overload);
        self.latency_sum += next.latency_sum;
        self.latency_square_sum += next.latency_square_sum;
        self.latency_log_sum += next.latency_log_sum;
        self.latency_log_square_sum += next.latency_log_square_sum;
        self.in_flight_seconds += next.in_flight_seconds;
        self.highest_in_flight = self.highest_in_flight.max(next.highest_in_flight);
        self.admissions = self.admissions.saturating_add(next.admissions);
        self.refusals = self.refusals.saturating_add(next.refusals);
        self.priority_refusals = self.priority_refusals.saturating_add(next.priority_refusals);
        self.extra_weight = self.extra_weight.saturating_add(next.extra_weight);
    }

    /// How long it was, in seconds, never zero.
    pub(crate) fn elapsed(&self) -> f64 {
        seconds(self.elapsed_ns.max(1))
    }

    /// Completions as a number to calculate with.
    pub(crate) fn count(&self) -> f64 {
        float(self.completions)
    }

    /// The time average of in flight.
    pub(crate) fn in_flight(&self) -> f64 {
        finite(self.in_flight_seconds / self.elapsed())
    }

    /// The weight of one that completed, on average.
    pub(crate) fn mean_weight(&self) -> f64 {
        1.0 + float(self.extra_weight) / self.count().max(1.0)
    }

    /// The mean latency, in seconds; of none, zero.
    pub(crate) fn mean_latency(&self) -> f64 {
        if self.completions == 0 { 0.0 } else { finite(self.latency_sum / self.count()) }
    }

    /// The mean of squared latencies.
    pub(crate) fn mean_square_latency(&self) -> f64 {
        if self.completions == 0 { 0.0 } else { finite(self.latency_square_sum / self.count()) }
    }

    /// The typical latency, in seconds: the geometric mean, at least a nanosecond.
    pub(crate) fn typical_latency(&self) -> f64 {
        (finite(self.latency_log_sum / self.count().max(1.0)).exp() / 1e9).clamp(1e-9, 1e9)
    }

    /// The variance of the logarithms of latencies.
    pub(crate) fn log_variance(&self) -> f64 {
        let count = self.count().max(1.0);
        let mean = self.latency_log_sum / count;
        finite(self.latency_log_square_sum / count - mean * mean)
    }

    /// Which share of the completed was good; of none, all.
    pub(crate) fn good_share(&self) -> f64 {
        if self.completions == 0 { 1.0 } else { (float(self.good) / self.count()).min(1.0) }
    }

    /// Which share of those who asked met a full gate.
    pub(crate) fn refused_share(&self) -> f64 {
        let refusals = float(self.refusals);
        refusals / (refusals + float(self.admissions)).max(1.0)
    }
}

/// Nanoseconds in seconds.
pub(crate) fn seconds(ns: u64) -> f64 {
    float(ns) / 1e9
}

/// Seconds in nanoseconds, at least one.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a cast saturates, and that is meant
    let ns = (seconds * 1e9) as u64;
    ns.max(1)
}

/// A count to calculate with: what is lost beyond 2^53 is not missed here.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// A number that later arithmetic survives: sums from outside may be absurd.
fn finite(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.clamp(0.0, 1e30) }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_what_completed() {
        let mut window = Window { elapsed_ns: 2_000_000_000, in_flight_seconds: 6.0, ..Window::default() };
        window.complete(1_000_000_000, true, false);
        window.complete(4_000_000_000, false, true);
        assert!((window.mean_latency() - 2.5).abs() < 1e-12);
        assert!((window.mean_square_latency() - 8.5).abs() < 1e-12);
        assert!((window.typical_latency() - 2.0).abs() < 1e-9, "the geometric mean");
        assert!((window.log_variance() - 2.0_f64.ln().powi(2)).abs() < 1e-9);
        assert!((window.in_flight() - 3.0).abs() < 1e-12);
        assert!((window.good_share() - 0.5).abs() < 1e-12);
        assert_eq!((window.completions, window.good, window.overload), (2, 1, 1));
    }

    #[test]
    fn windows_add_up() {
        let (mut one, mut two, mut both) = (Window::default(), Window::default(), Window::default());
        for (i, latency) in [10, 20, 0, 40_000, 7].into_iter().enumerate() {
            if i % 2 == 0 { &mut one } else { &mut two }.complete(latency, i > 1, i == 3);
            both.complete(latency, i > 1, i == 3);
        }
        one.refusals = 3;
        two.admissions = 1;
        one.highest_in_flight = 2;
        one.append(&two);
        assert_eq!((one.completions, one.good, one.overload), (both.completions, both.good, both.overload));
        assert!((one.latency_log_sum - both.latency_log_sum).abs() < 1e-9);
        assert!((one.latency_square_sum - both.latency_square_sum).abs() < 1e-20);
        assert!((one.refused_share() - 0.75).abs() < 1e-12);
        assert_eq!(one.highest_in_flight, 2);
    }
}
