//! What a pressure level sheds: how much of which priority, and which of the requests. Pure but for a counter.
//!
//! # How much
//!
//! A level from 0 to 1 is spent on one priority after another, a quarter each, the least important first:
//!
//! ```text
//! share(priority) = most(priority) x clamp(4 x level - place, 0, 1)
//!
//! place: sheddable 0, sheddable_plus 1, critical 2, critical_plus 3
//! most:  1 for the two sheddable ones, 0.95 for the two critical ones
//! ```
//!
//! The share never falls as the level rises, and none of a priority is shed before the one below it is shed as far
//! as it can be. One in twenty of the critical ones always goes on: the pressure may have another cause than
//! these requests, and a gate that lets nobody in never learns that things are well again.
//!
//! # Which
//!
//! Request number `n` of a priority is shed when `frac(n x phi)` lies below the share, with phi = 0.618..., the
//! golden ratio's fraction. That sequence fills the interval as evenly as any can, at every length (Weyl; Knuth,
//! TAOCP vol. 3, section 6.4: 2^32 phi as a multiplier). So of any ten requests in a row at a share of 30 % two, three or four
//! are shed, and in the long run exactly 30 %; a coin would shed all of four in a row every two minutes at a request a
//! second. It never falls into step with clients that take turns, as shedding every third would; and who is shed at a share is shed at any
//! greater one, too.

use crate::priority::{PRIORITIES, Priority};
use crate::sync::{AtomicU32, Ordering};

/// All of a priority, in the unit that shares are kept in.
const WHOLE: u16 = u16::MAX;
/// 2^32 times the golden ratio's fraction, odd.
const GOLDEN: u32 = 0x9E37_79B9;
/// What of each priority is shed at most, most important first.
const MOST: [f64; PRIORITIES] = [0.95, 0.95, 1.0, 1.0];

/// How much of each priority is shed, in one word: 0 is nothing, which is what the way in looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares(u64);

impl Shares {
    /// Nothing is shed.
    pub const NONE: Self = Self(0);

    /// The shares at a pressure level from 0 to 1; what is outside counts as the nearer end, and what is no
    /// number as 0.
    #[must_use]
    pub fn at(level: f64) -> Self {
        let word = Priority::ALL.into_iter().fold(0, |word, priority| {
            let share = curve(level, priority);
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // 0 to 1, or no number, which becomes 0
            let cell = (share * f64::from(WHOLE)).round() as u16;
            word | u64::from(cell) << shift(priority)
        });
        Self(word)
    }

    /// The share of a priority that is shed, from 0 to 1.
    #[must_use]
    pub fn share(self, priority: Priority) -> f64 {
        f64::from(self.cell(priority)) / f64::from(WHOLE)
    }

    /// Whether nothing is shed.
    #[must_use]
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether request `number` of a priority is shed.
    #[must_use]
    pub fn sheds(self, priority: Priority, number: u32) -> bool {
        let place = u64::from(number.wrapping_mul(GOLDEN));
        // From 0 to WHOLE - 1, so that nothing is below a share of none and all is below the whole.
        (place * u64::from(WHOLE)) >> 32 < u64::from(self.cell(priority))
    }

    /// As a number, to be stored in an atomic.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// From what [`bits`](Self::bits) answered.
    #[must_use]
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[allow(clippy::cast_possible_truncation)] // one of four cells
    fn cell(self, priority: Priority) -> u16 {
        (self.0 >> shift(priority)) as u16
    }
}

fn shift(priority: Priority) -> usize {
    priority.level() * 16
}

#[allow(clippy::cast_precision_loss)] // four priorities
fn curve(level: f64, priority: Priority) -> f64 {
    let place = (PRIORITIES - 1 - priority.level()) as f64;
    let spent = PRIORITIES as f64 * level - place;
    MOST[priority.level()] * spent.clamp(0.0, 1.0)
}

/// Counts the requests of each priority while there is pressure, to say which of them are shed.
#[derive(Debug, Default)]
pub struct Draws([AtomicU32; PRIORITIES]);

impl Draws {
    /// Whether the next request of this priority is shed. Where none or all are, nothing is counted.
    #[must_use]
    pub fn next(&self, shares: Shares, priority: Priority) -> bool {
        match shares.cell(priority) {
            0 => false,
            WHOLE => true,
            _ => shares.sheds(priority, self.0[priority.level()].fetch_add(1, Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // what is compared is exact
mod tests {
    use super::*;

    /// Shares by priority, most important first, in percent.
    fn percents(level: f64) -> [f64; PRIORITIES] {
        Priority::ALL.map(|priority| (Shares::at(level).share(priority) * 1_000.0).round() / 10.0)
    }

    /// The table of docs/signals.md.
    #[test]
    fn least_important_first() {
        for (level, expected) in [
            (0.0, [0.0, 0.0, 0.0, 0.0]),
            (0.125, [0.0, 0.0, 0.0, 50.0]),
            (0.25, [0.0, 0.0, 0.0, 100.0]),
            (0.375, [0.0, 0.0, 50.0, 100.0]),
            (0.5, [0.0, 0.0, 100.0, 100.0]),
            (0.625, [0.0, 47.5, 100.0, 100.0]),
            (0.75, [0.0, 95.0, 100.0, 100.0]),
            (0.875, [47.5, 95.0, 100.0, 100.0]),
            (1.0, [95.0, 95.0, 100.0, 100.0]),
        ] {
            assert_eq!(percents(level), expected, "level {level}");
        }
    }

    #[test]
    fn shares_never_fall_as_the_level_rises() {
        let mut before = Shares::NONE;
        for step in 0..=10_000 {
            let shares = Shares::at(f64::from(step) / 10_000.0);
            for priority in Priority::ALL {
                assert!(shares.cell(priority) >= before.cell(priority), "{priority} at step {step}");
            }
            for pair in Priority::ALL.windows(2) {
                let below = shares.share(pair[1]);
                assert!(shares.share(pair[0]) == 0.0 || below >= MOST[pair[1].level()] - 1e-5);
            }
            before = shares;
        }
    }

    #[test]
    fn a_level_that_is_none_sheds_nothing() {
        for level in [f64::NAN, -1.0, f64::NEG_INFINITY, 0.0] {
            assert!(Shares::at(level).is_none(), "{level}");
        }
        assert_eq!(Shares::at(f64::INFINITY), Shares::at(1.0));
        assert_eq!(Shares::from_bits(Shares::at(0.4).bits()), Shares::at(0.4));
    }

    fn share_of_sheddable(share: f64) -> Shares {
        Shares::at(share / 4.0)
    }

    #[test]
    fn every_window_sheds_its_share() {
        for percent in [1u32, 10, 30, 50, 62, 90, 99] {
            let shares = share_of_sheddable(f64::from(percent) / 100.0);
            let sheds = |number: u32| u32::from(shares.sheds(Priority::Sheddable, number));
            for (window, most_off) in [(10u32, 2.0), (100, 3.0), (10_000, 4.0)] {
                let mut count: u32 = (0..window).map(sheds).sum();
                for start in 0..20_000 {
                    let off = f64::from(count) - f64::from(window * percent) / 100.0;
                    assert!(off.abs() < most_off, "{count} of {window} from {start} at {percent} %");
                    count = count + sheds(start + window) - sheds(start);
                }
            }
        }
    }

    #[test]
    fn three_of_ten_in_the_long_run() {
        let draws = Draws::default();
        let shed =
            (0..1_000_000).filter(|_| draws.next(share_of_sheddable(0.3), Priority::Sheddable)).count();
        assert!((299_990..=300_010).contains(&shed), "{shed}");
        let sheds = |number: &u32| share_of_sheddable(0.3).sheds(Priority::Sheddable, *number);
        for start in 0..100_000 {
            let shed = (start..start + 10).filter(sheds).count();
            assert!((2..=4).contains(&shed), "{shed} of ten from {start}");
        }
    }

    #[test]
    fn who_is_shed_is_shed_at_any_greater_share() {
        let (less, more) = (share_of_sheddable(0.3), share_of_sheddable(0.31));
        for number in (0..100_000).chain(u32::MAX - 1_000..=u32::MAX) {
            let sheds = |shares: Shares| shares.sheds(Priority::Sheddable, number);
            assert!(!sheds(less) || sheds(more), "{number}");
            assert!(sheds(Shares::at(0.25)) && !sheds(Shares::NONE), "all and none");
        }
    }

    #[test]
    fn clients_that_take_turns_are_shed_alike() {
        let shares = share_of_sheddable(0.5);
        for turns in 2..=8u32 {
            for turn in 0..turns {
                let shed = (0..1_000).filter(|round| shares.sheds(Priority::Sheddable, round * turns + turn));
                let shed = shed.count();
                assert!((480..=520).contains(&shed), "{shed} of 1000 of client {turn} of {turns}");
            }
        }
    }

    #[test]
    fn each_priority_has_its_own_turn() {
        let draws = Draws::default();
        let shares = Shares::from_bits(Shares::at(0.125).bits() | Shares::at(0.625).bits());
        assert!(!draws.next(shares, Priority::CriticalPlus));
        let first = [(); 4].map(|()| draws.next(shares, Priority::Critical));
        let _ = draws.next(shares, Priority::Sheddable);
        let again = Draws::default();
        assert_eq!(first, [(); 4].map(|()| again.next(shares, Priority::Critical)));
        assert_eq!(first, [true, false, true, false]);
    }
}
