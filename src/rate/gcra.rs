//! The decision of a rate, pure: the generic cell rate algorithm in its form of virtual scheduling (ATM Forum,
//! Traffic Management Specification 4.0, section 4.4.2; ITU-T I.371, annex A).
//!
//! One number is remembered, the *theoretical arrival time*: when all that was admitted would be due, had it come
//! evenly. An admission of weight `w` moves it on by `w` intervals, from now where it lies in the past; it is
//! allowed if the result is no further than the burst's intervals ahead of now. So nothing has to be filled up as
//! time goes by, and no product of elapsed time exists that could overflow.
//!
//! # Fractions
//!
//! Times are in units of 2^-44 ns, whatever the rate: 117 bits hold 2^64 ns and the longest burst ahead of them
//! (2^31 - 1 at one an hour). The interval is rounded up to a unit, so a rate is never exceeded. What that loses in
//! 60 s at the largest rate, 10^10 a second, is 60 x 10^20 x 2^-44 / 10^9 = 0.34 permits.
//!
//! Yet the 700th permit at 700 a minute must be there after 60 s, not a nanosecond later. Clocks read whole
//! nanoseconds, and permits are due at whole multiples of `1 / count` ns. So whoever comes less than that too early
//! comes, but for the rounding, in time: the burst reaches ahead by that much more, less one unit. For weight `w`
//! admitted in `T` whole ns that gives `w - burst < (T x count + 1) / unit`, and since all of these are whole
//! numbers `w - burst <= T x count / unit`: the bound still holds exactly.
//!
//! # A rate of 0
//!
//! Time stands still at 0, and an interval is one unit: the number is the weight that was ever admitted.

use std::time::Duration;

use crate::rate::Rate;
use crate::shed::RetryAfter;

const FRACTION_BITS: u32 = 44;
/// What a theoretical arrival time takes.
pub(super) const TIME_BITS: u32 = 117;
const SECOND_NS: u128 = 1_000_000_000;
/// The precision at which a part of a permit is carried from one rate to another.
const PART_BITS: u32 = 32;

/// What the decision needs of a [`Rate`], in units of 2^-44 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Between two permits; 0 where there will never be another.
    pub(super) interval: u128,
    /// How far ahead of now the theoretical arrival time may be.
    pub(super) span: u128,
}

impl Settings {
    pub(crate) fn of(rate: Rate) -> Self {
        let burst = u128::from(rate.burst());
        let Some(count) = Some(u128::from(rate.count())).filter(|&count| count > 0) else {
            return Self { interval: 0, span: burst };
        };
        let interval = (u128::from(rate.per().nanos()) << FRACTION_BITS).div_ceil(count);
        let early = ((1 << FRACTION_BITS) - 1) / count;
        Self { interval, span: burst * interval + early }
    }

    fn step(self) -> u128 {
        self.interval.max(1)
    }

    fn at(self, now_ns: u64) -> u128 {
        if self.interval == 0 { 0 } else { u128::from(now_ns) << FRACTION_BITS }
    }

    /// At most 2^31 x 2^86.
    fn cost(self, weight: u32) -> u128 {
        u128::from(weight) * self.step()
    }

    /// The theoretical arrival time after an admission; `None`: not now.
    #[inline]
    pub(super) fn admit(self, arrival: u128, now_ns: u64, weight: u32) -> Option<u128> {
        let now = self.at(now_ns);
        let after = arrival.max(now) + self.cost(weight);
        (after <= now + self.span).then_some(after)
    }

    /// For how long from `now_ns` a request must stay away to be admitted: exactly, if no other is
    /// meanwhile. `latest_ns` is a time that counts as having come, also where `now_ns` is before it.
    pub(super) fn wait(self, arrival: u128, latest_ns: u64, now_ns: u64, weight: u32) -> RetryAfter {
        if self.admit(arrival, now_ns.max(latest_ns), weight).is_some() {
            return RetryAfter::Known(Duration::ZERO);
        }
        if self.interval == 0 || self.cost(weight) > self.span {
            return RetryAfter::Never;
        }
        let due = arrival + self.cost(weight) - self.span; // of time 0 it would be admitted
        let wait_ns = due.div_ceil(1 << FRACTION_BITS) - u128::from(now_ns);
        let seconds = u64::try_from(wait_ns / SECOND_NS).expect("at most 2^73 ns");
        #[allow(clippy::cast_possible_truncation)] // a remainder
        RetryAfter::Known(Duration::new(seconds, (wait_ns % SECOND_NS) as u32))
    }

    /// The theoretical arrival time under other settings: what was used of the burst, in permits, stays used, up
    /// to all of the new burst. Rounded up.
    pub(super) fn carry(self, arrival: u128, now_ns: u64, to: Self) -> u128 {
        let ahead = arrival.saturating_sub(self.at(now_ns)).min(self.span);
        let (whole, rest) = (ahead / self.step(), ahead % self.step());
        let part = (rest << PART_BITS).div_ceil(self.step());
        let used = whole * to.step() + (part * to.step()).div_ceil(1 << PART_BITS);
        to.at(now_ns) + used.min(to.span)
    }
}
