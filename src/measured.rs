//! What a gate measures of each completion, and how a window comes of it.
//!
//! All of it is sums of whole numbers that only grow and may wrap: the difference of two readings is exact, however
//! much was counted before. Floating-point sums would be simpler, but what a day of timeouts leaves in one swallows
//! every short latency after it. With 10^9 completions of 180 s each no difference overflows:
//!
//! | sum | unit |
//! |---|---|
//! | latency | 16 ns, to the nearest |
//! | latency squared | ns², in two cells |
//! | log2 of the latency in ns | 2^-16 |
//! | its square | 2^-20 |
//!
//! # Bare entries
//!
//! They keep no state, so nobody knows how long one was inside. All together they are known exactly: the integral
//! of the weight inside is the sum of all stays (Little, "A proof for the queuing formula L = lambda W", 1961). What
//! permits do not account for is theirs, and divided by their number it is their mean. What the mean cannot say is
//! taken from the exponential distribution, the one assumption that a gate makes elsewhere, too (dry run's draws):
//! the mean square, the logarithms, and the share within the objective. The mean is right whatever the distribution
//! is; the share is off by as much as the distribution differs. Whoever needs more takes a permit: the Python
//! module's blocks do on gates that measure.

use crate::controller::Window;
use crate::outcome::Outcome;

/// How one that was inside has left, for the sums.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Permit { latency_ns: u64, outcome: Outcome, good: bool },
    Bare(Outcome),
}

/// Shift of a latency in nanoseconds to its unit.
const LATENCY_SHIFT: u32 = 4;
/// Bits behind the point of a logarithm,
const LOG_BITS: u32 = 16;
/// and of its square.
const LOG_SQUARE_BITS: u32 = 20;

/// The latency in its unit.
#[inline]
pub(crate) fn latency(ns: u64) -> u64 {
    ns.saturating_add(1 << (LATENCY_SHIFT - 1)) >> LATENCY_SHIFT
}

/// The logarithm and its square, each in its unit. No time counts as one nanosecond.
#[inline]
pub(crate) fn logs(ns: u64) -> (u64, u64) {
    let log = log2(ns.max(1));
    (log, (log * log) >> (2 * LOG_BITS - LOG_SQUARE_BITS))
}

const TABLE_BITS: u32 = 6;
const TABLE: usize = 1 << TABLE_BITS;

/// log2(1 + i / 64) in units of 2^-16, rounded.
const LOGS: [u32; TABLE + 1] = {
    let mut logs = [0; TABLE + 1];
    let mut at = 0;
    while at <= TABLE {
        logs[at] = log2_of_fraction(at as u64);
        at += 1;
    }
    logs
};

/// Bit by bit, by squaring (Knuth, The Art of Computer Programming 1, exercise 1.2.2-25): log2(1 + at / 64).
#[allow(clippy::cast_possible_truncation)] // 0 to 2 with 16 bits behind the point
const fn log2_of_fraction(at: u64) -> u32 {
    const ONE: u64 = 1 << 30;
    let mut x = ONE + (at << (30 - TABLE_BITS));
    let mut log = 0;
    if x >= 2 * ONE {
        return 1 << LOG_BITS;
    }
    let mut bit = 0;
    while bit <= LOG_BITS {
        x = (x * x) >> 30;
        log <<= 1;
        if x >= 2 * ONE {
            x >>= 1;
            log |= 1;
        }
        bit += 1;
    }
    (log + 1) >> 1
}

/// The binary logarithm in units of 2^-16, of 1 and more: by a table and a straight line between its entries,
/// which is at most 2^-14 off.
#[inline]
fn log2(x: u64) -> u64 {
    let exponent = x.ilog2();
    // The bits behind the leading one, in front.
    let fraction = (x << (63 - exponent)) << 1;
    #[allow(clippy::cast_possible_truncation)] // six bits
    let at = (fraction >> (64 - TABLE_BITS)) as usize;
    let between = (fraction << TABLE_BITS) >> 48;
    let (low, high) = (u64::from(LOGS[at]), u64::from(LOGS[at + 1]));
    (u64::from(exponent) << LOG_BITS) + low + (((high - low) * between) >> 16)
}

/// The sums of one shard or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// The weight inside,
    pub(crate) level: u64,
    /// and each of its changes times its moment in microseconds.
    pub(crate) moment: u64,
    /// Of permits that did not end with `ignore`:
    pub(crate) completed: u64,
    pub(crate) good: u64,
    pub(crate) overload: u64,
    pub(crate) latency: u64,
    pub(crate) latency_square: u128,
    pub(crate) log: u64,
    pub(crate) log_square: u64,
    /// Of bare exits:
    pub(crate) bare_success: u64,
    pub(crate) bare_overload: u64,
}

impl Sums {
    /// Each field of both, put together.
    fn with(&self, other: &Self, narrow: fn(u64, u64) -> u64, wide: fn(u128, u128) -> u128) -> Self {
        Self {
            level: narrow(self.level, other.level),
            moment: narrow(self.moment, other.moment),
            completed: narrow(self.completed, other.completed),
            good: narrow(self.good, other.good),
            overload: narrow(self.overload, other.overload),
            latency: narrow(self.latency, other.latency),
            latency_square: wide(self.latency_square, other.latency_square),
            log: narrow(self.log, other.log),
            log_square: narrow(self.log_square, other.log_square),
            bare_success: narrow(self.bare_success, other.bare_success),
            bare_overload: narrow(self.bare_overload, other.bare_overload),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::wrapping_add, u128::wrapping_add)
    }

    fn minus(&self, other: &Self) -> Self {
        self.with(other, u64::wrapping_sub, u128::wrapping_sub)
    }

    /// The time integral of the weight inside in weight-microseconds, modulo 2^64.
    pub(crate) fn occupancy(&self, now_us: u64) -> u64 {
        self.level.wrapping_mul(now_us).wrapping_sub(self.moment)
    }
}

/// What a gate had counted at one moment. The difference of two is a [`Window`]:
/// [`window_since`](Self::window_since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub(crate) now_ns: u64,
    pub(crate) sums: Sums,
    pub(crate) extra_released: u64,
    pub(crate) admissions: u64,
    pub(crate) refusals: u64,
    pub(crate) priority_refusals: u64,
    pub(crate) in_flight: u32,
    pub(crate) objective_ns: u64,
}

impl Reading {
    /// When, on the gate's clock.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// What happened between `before` and this reading, of the same gate. Its `highest_in_flight` is the higher of
    /// the two moments.
    #[must_use]
    pub fn window_since(&self, before: &Self) -> Window {
        let sums = self.sums.minus(&before.sums);
        let occupancy = self.sums.occupancy(self.now_ns / 1_000);
        let occupancy = occupancy.wrapping_sub(before.sums.occupancy(before.now_ns / 1_000));
        #[allow(clippy::cast_possible_wrap)] // a difference modulo 2^64: a clock set back makes it negative
        let in_flight_us = u64::try_from(occupancy as i64).unwrap_or(0);
        let log_unit = std::f64::consts::LN_2 / f64::from(1 << LOG_BITS);
        let log_square_unit = std::f64::consts::LN_2.powi(2) / f64::from(1 << LOG_SQUARE_BITS);
        let mut window = Window {
            elapsed_ns: self.now_ns.saturating_sub(before.now_ns),
            completions: sums.completed,
            good: sums.good,
            overload: sums.overload,
            latency_sum: float(sums.latency) * f64::from(1 << LATENCY_SHIFT) / 1e9,
            latency_square_sum: wide_float(sums.latency_square) / 1e18,
            latency_log_sum: float(sums.log) * log_unit,
            latency_log_square_sum: float(sums.log_square) * log_square_unit,
            in_flight_seconds: float(in_flight_us) / 1e6,
            highest_in_flight: self.in_flight.max(before.in_flight),
            admissions: self.admissions.wrapping_sub(before.admissions),
            refusals: self.refusals.wrapping_sub(before.refusals),
            priority_refusals: self.priority_refusals.wrapping_sub(before.priority_refusals),
            extra_weight: self.extra_released.wrapping_sub(before.extra_released),
        };
        add_bare(&mut window, sums.bare_success, sums.bare_overload, self.objective_ns);
        window
    }
}

/// The bare exits of a window that has only permits so far.
fn add_bare(window: &mut Window, success: u64, overload: u64, objective_ns: u64) {
    /// Of the logarithm of an exponential variable of mean 1 (Euler and Mascheroni's constant),
    const LOG_MEAN: f64 = -0.577_215_664_901_532_9;
    /// with the variance pi^2 / 6.
    const LOG_VARIANCE: f64 = std::f64::consts::PI * std::f64::consts::PI / 6.0;
    let count = success.saturating_add(overload);
    if count == 0 {
        return;
    }
    let permits = window.latency_sum * window.mean_weight();
    let stays = (window.in_flight_seconds - permits).max(0.0);
    let times = float(count);
    let mean = stays / times;
    let log = (mean * 1e9).max(1.0).ln() + LOG_MEAN;
    window.completions = window.completions.saturating_add(count);
    window.overload = window.overload.saturating_add(overload);
    window.latency_sum += stays;
    window.latency_square_sum += times * 2.0 * mean * mean;
    window.latency_log_sum += times * log;
    window.latency_log_square_sum += times * (log * log + LOG_VARIANCE);
    window.good = window.good.saturating_add(within(success, mean, objective_ns));
}

/// How many of `count` are within the objective, if they are exponential.
fn within(count: u64, mean: f64, objective_ns: u64) -> u64 {
    if objective_ns == u64::MAX || mean <= 0.0 {
        return count;
    }
    let share = 1.0 - (-float(objective_ns) / 1e9 / mean).exp();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of a count
    let within = (share * float(count)).round() as u64;
    within.min(count)
}

#[allow(clippy::cast_precision_loss)] // what is lost beyond 2^53 is not missed
fn float(count: u64) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss)] // as above
fn wide_float(count: u128) -> f64 {
    count as f64
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right_to_four_digits_and_never_fall() {
        let (mut ns, mut last) = (1_u64, 0);
        while ns < u64::MAX / 2 {
            let (log, square) = logs(ns);
            let exact = float(ns).log2();
            let got = float(log) / f64::from(1 << LOG_BITS);
            assert!((got - exact).abs() <= 1.0 / f64::from(1 << 13), "{ns}: {got} instead of {exact}");
            let got = float(square) / f64::from(1 << LOG_SQUARE_BITS);
            assert!((got - exact * exact).abs() <= 0.02, "{ns}: {got} instead of {}", exact * exact);
            assert!(log >= last);
            last = log;
            ns += ns / 97 + 1;
        }
        assert_eq!(logs(0), (0, 0));
        assert_eq!(logs(1 << 37), (37 << LOG_BITS, (37 * 37) << LOG_SQUARE_BITS));
        assert!(logs(u64::MAX).0 <= 64 << LOG_BITS);
    }

    /// What a window may come to at most, as said above.
    #[test]
    fn a_thousand_million_of_three_minutes_each_overflow_nothing() {
        let (ns, count) = (180_000_000_000_u64, 1_000_000_000_u64);
        let (log, log_square) = logs(ns);
        assert!(latency(ns).checked_mul(count).is_some());
        assert!((u128::from(ns) * u128::from(ns)).checked_mul(u128::from(count)).is_some());
        assert!(log.checked_mul(count).is_some() && log_square.checked_mul(count).is_some());
    }

    #[test]
    fn differences_are_exact_where_the_sums_have_wrapped() {
        let mut before = Reading { now_ns: 5_000, ..Reading::default() };
        before.sums.latency = u64::MAX - 10;
        before.sums.latency_square = u128::MAX - 99;
        before.sums.log = u64::MAX;
        before.sums.level = 2;
        before.admissions = u64::MAX;
        let mut now = before;
        now.now_ns = 1_000_005_000;
        now.sums.latency = before.sums.latency.wrapping_add(625_000);
        now.sums.latency_square = before.sums.latency_square.wrapping_add(100_000_000_000_000);
        now.sums.log = before.sums.log.wrapping_add(3 << LOG_BITS);
        now.sums.completed = 1;
        now.admissions = 1;
        let window = now.window_since(&before);
        assert!((window.latency_sum - 0.01).abs() < 1e-12);
        assert!((window.latency_square_sum - 1e-4).abs() < 1e-12);
        assert!((window.latency_log_sum - 3.0 * std::f64::consts::LN_2).abs() < 1e-12);
        assert!((window.in_flight_seconds - 2.0).abs() < 1e-9);
        assert_eq!((window.elapsed_ns, window.admissions), (1_000_000_000, 2));
    }

    #[test]
    fn bare_exits_are_as_exponential_about_their_mean() {
        let reading = |sums| Reading { now_ns: 0, sums, objective_ns: 2_000_000_000, ..Reading::default() };
        let before = reading(Sums::default());
        // A thousand that stayed two seconds each, altogether.
        let moment = 2_000_000_000_u64.wrapping_neg();
        let sums = Sums { moment, bare_success: 900, bare_overload: 100, ..Sums::default() };
        let window = reading(sums).window_since(&before);
        assert_eq!((window.completions, window.overload), (1_000, 100));
        assert_eq!(window.good, 569, "900 times 1 - 1/e");
        assert!((window.latency_sum - 2_000.0).abs() < 1e-6);
        assert!((window.latency_square_sum - 8_000.0).abs() < 1e-6);
        assert!((window.typical_latency() - 2.0 * (-0.577_215_66_f64).exp()).abs() < 1e-6);
        assert!((window.log_variance() - 1.644_934).abs() < 1e-5);
    }

    #[test]
    fn no_sums_make_what_is_no_number() {
        let odd = |x: u64| Sums {
            level: x,
            moment: x.wrapping_mul(7),
            completed: x,
            latency: x.rotate_left(9),
            latency_square: u128::from(x) << 60,
            log: x,
            log_square: x,
            bare_success: x & 3,
            bare_overload: x >> 1,
            ..Sums::default()
        };
        for x in [0, 1, 3, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
            for y in [0, 2, u64::MAX / 2, u64::MAX] {
                let one = Reading { now_ns: x, sums: odd(y), objective_ns: y, ..Reading::default() };
                let two = Reading { now_ns: y, sums: odd(x), objective_ns: x, ..Reading::default() };
                let window = one.window_since(&two);
                let numbers = [window.latency_sum, window.latency_square_sum, window.in_flight_seconds];
                assert!(numbers.iter().all(|number| number.is_finite() && *number >= 0.0), "{window:?}");
                assert!(window.good <= window.completions, "{window:?}");
            }
        }
    }
}
