//! For how long a request that was shed should stay away. Pure: observations in, an estimate out.
//!
//! ```text
//! retry_after = max( need / (releases per second - admissions per second of more important work),
//!                    the refusal streak )
//! ```
//!
//! - *need*: the weight that must leave before the request fits.
//! - The two rates, in weight, are taken over a window counted in completions: it reaches back over
//!   the last [`WINDOW`] completions at least, and at most twice that while questions come steadily.
//!   More important work that keeps arriving takes the room that is freed, so only the difference
//!   is left for the caller; work of equal importance competes, which makes this a lower bound.
//! - The *refusal streak*: for how long this priority has been refused without one admission. Who has
//!   been refused for ten seconds is not told to return in one.
//!
//! The counts come from the gate's counters and time is read only here, so the fast path pays
//! nothing. The price is that the window consists of the moments at which somebody asked. A silence
//! longer than the window and than [`SILENCE_NS`] starts it anew: what happened meanwhile says
//! nothing about how quickly a full gate drains. Within it an idle time makes the estimate too long
//! by at most `need x idle time / completions in the window`, until [`WINDOW`] completions later.
//!
//! Nothing completed in the window, or nothing is left for the caller: unknown.

use std::time::Duration;

use crate::priority::{PRIORITIES, Priority};
use crate::shed::RetryAfter;

/// Completions after which the window moves on.
const WINDOW: u64 = 64;
/// The shortest silence that ends a window.
const SILENCE_NS: u64 = 60_000_000_000;

/// A gate's counters at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Observation {
    pub(crate) now_ns: u64,
    pub(crate) completions: u64,
    pub(crate) released_weight: u64,
    pub(crate) admitted_weight: [u64; PRIORITIES],
}

#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    since_ns: u64,
    admitted_weight: u64,
}

/// What is remembered between two questions.
#[derive(Clone, Debug)]
pub(crate) struct RetryWindow {
    asked_ns: u64,
    /// Where the window begins,
    begin: Observation,
    /// and where it will begin once enough has completed since.
    next: Observation,
    streaks: [Streak; PRIORITIES],
}

impl RetryWindow {
    /// A window that begins with a new gate.
    pub(crate) fn new(now_ns: u64) -> Self {
        let begin = Observation { now_ns, ..Observation::default() };
        let streaks = [Streak { since_ns: now_ns, admitted_weight: 0 }; PRIORITIES];
        Self { asked_ns: now_ns, begin, next: begin, streaks }
    }

    /// The estimate for a request of `priority` that needs `need` weight to leave first.
    pub(crate) fn estimate(&mut self, now: Observation, priority: Priority, need: u64) -> RetryAfter {
        self.advance(now);
        let streak_ns = self.streak(now, priority, need);
        if need == 0 {
            return RetryAfter::Known(Duration::ZERO);
        }
        let span_ns = now.now_ns.saturating_sub(self.begin.now_ns);
        let mut free = now.released_weight.saturating_sub(self.begin.released_weight);
        for above in Priority::ALL.into_iter().filter(|&above| above > priority) {
            let level = above.level();
            free = free
                .saturating_sub(now.admitted_weight[level].saturating_sub(self.begin.admitted_weight[level]));
        }
        if free == 0 || span_ns == 0 {
            return RetryAfter::Unknown;
        }
        // Rounded up: zero means that there is room now.
        let wait_ns = (u128::from(need) * u128::from(span_ns)).div_ceil(u128::from(free));
        let wait_ns = u64::try_from(wait_ns).unwrap_or(u64::MAX);
        RetryAfter::Known(Duration::from_nanos(wait_ns.max(streak_ns)))
    }

    fn advance(&mut self, now: Observation) {
        let silence_ns = now.now_ns.saturating_sub(self.asked_ns);
        let span_ns = self.asked_ns.saturating_sub(self.begin.now_ns);
        self.asked_ns = now.now_ns;
        if silence_ns > SILENCE_NS.max(span_ns) {
            self.begin = now;
            self.next = now;
        } else if now.completions.saturating_sub(self.next.completions) >= WINDOW {
            self.begin = self.next;
            self.next = now;
        }
    }

    /// For how long `priority` has been refused; an admission, or room for one, ends a streak.
    fn streak(&mut self, now: Observation, priority: Priority, need: u64) -> u64 {
        let streak = &mut self.streaks[priority.level()];
        let admitted_weight = now.admitted_weight[priority.level()];
        if need == 0 || admitted_weight != streak.admitted_weight {
            *streak = Streak { since_ns: now.now_ns, admitted_weight };
        }
        now.now_ns.saturating_sub(streak.since_ns)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seen(seconds: u64, released: u64, admitted: [u64; PRIORITIES]) -> Observation {
        Observation {
            now_ns: seconds * SECOND,
            completions: released,
            released_weight: released,
            admitted_weight: admitted,
        }
    }

    fn known(seconds: f64) -> RetryAfter {
        RetryAfter::Known(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn need_over_the_rate_left_by_more_important_work() {
        let mut window = RetryWindow::new(0);
        // 40 releases in 10 s, of which critical work took 30 again: one a second is left.
        let now = seen(10, 40, [0, 30, 0, 8]);
        assert_eq!(window.estimate(now, Priority::Sheddable, 3), known(3.0));
        assert_eq!(window.estimate(now, Priority::Critical, 3), known(0.75));
    }

    #[test]
    fn nothing_seen_is_unknown() {
        let mut window = RetryWindow::new(0);
        let full = seen(10, 0, [0, 5, 0, 0]);
        assert_eq!(window.estimate(full, Priority::Critical, 1), RetryAfter::Unknown);
        let starved = seen(20, 9, [0, 14, 0, 0]);
        assert_eq!(window.estimate(starved, Priority::Sheddable, 1), RetryAfter::Unknown);
    }

    #[test]
    fn a_refusal_streak_is_a_floor_until_one_is_admitted() {
        let mut window = RetryWindow::new(0);
        assert_eq!(window.estimate(seen(1, 10, [0, 9, 0, 1]), Priority::Sheddable, 1), known(1.0));
        // Refused again and again for nine seconds.
        assert_eq!(window.estimate(seen(10, 110, [0, 99, 0, 1]), Priority::Sheddable, 1), known(9.0));
        let ten_elevenths = RetryAfter::Known(Duration::from_nanos(909_090_910)); // 10 / 11 s, rounded up
        assert_eq!(window.estimate(seen(10, 110, [0, 99, 0, 2]), Priority::Sheddable, 1), ten_elevenths);
    }

    #[test]
    fn the_window_forgets_what_is_further_back_than_its_completions() {
        let mut window = RetryWindow::new(0);
        let mut released = 0;
        for second in 1..=20 {
            released += 1; // slow at first
            let now = seen(second, released, [0, released, 0, 0]);
            window.estimate(now, Priority::Critical, 1);
        }
        for second in 21..=24 {
            released += 100; // then a hundred a second
            let now = seen(second, released, [0, released, 0, 0]);
            window.estimate(now, Priority::Critical, 1);
        }
        let now = seen(25, released + 100, [0, released + 100, 0, 0]);
        assert_eq!(window.estimate(now, Priority::Critical, 100), known(1.0));
    }

    #[test]
    fn a_long_silence_begins_anew() {
        let mut window = RetryWindow::new(0);
        window.estimate(seen(1, 10, [0, 11, 0, 0]), Priority::Critical, 1);
        let back = seen(3_600, 20, [0, 21, 0, 0]);
        assert_eq!(window.estimate(back, Priority::Critical, 1), RetryAfter::Unknown);
        let next = seen(3_601, 30, [0, 31, 0, 0]);
        assert_eq!(window.estimate(next, Priority::Critical, 1), known(0.1));
    }

    #[test]
    fn a_clock_that_goes_back_or_counts_near_the_end_do_no_harm() {
        let mut window = RetryWindow::new(10 * SECOND);
        assert_eq!(window.estimate(seen(5, 10, [0, 10, 0, 0]), Priority::Critical, 1), RetryAfter::Unknown);
        let far =
            Observation { now_ns: u64::MAX, completions: 11, released_weight: 11, ..seen(0, 0, [0; 4]) };
        assert!(matches!(
            window.estimate(far, Priority::Critical, u64::from(u32::MAX)),
            RetryAfter::Unknown | RetryAfter::Known(_)
        ));
    }
}
