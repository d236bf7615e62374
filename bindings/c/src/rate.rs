//! How much a gate admits a time.

#![allow(unsafe_code)] // the exported names

use tidegate_core::{Per, Rate};

use crate::entry::{guard, read, reference, write};
use crate::gate::tidegate_gate;
use crate::status::{Refusal, TIDEGATE_ERR_ARGUMENT, tidegate_status};

/// A rate per second.
pub const TIDEGATE_PER_SECOND: i32 = 1;
/// A rate per minute.
pub const TIDEGATE_PER_MINUTE: i32 = 60;
/// A rate per hour.
pub const TIDEGATE_PER_HOUR: i32 = 3600;

const UNITS: [(i32, Per); Per::ALL.len()] =
    [(TIDEGATE_PER_SECOND, Per::Second), (TIDEGATE_PER_MINUTE, Per::Minute), (TIDEGATE_PER_HOUR, Per::Hour)];

/// How much may be admitted a time, by weight: in any stretch of time T no more than burst + T x count / per. All
/// zero is no rate: any.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_rate {
    /// 0 to 10000000000. Of 0 the burst is admitted once, and then nothing.
    pub count: i64,
    /// The most weight that may enter at once, 1 to 2147483647; 0 is the default: what one second brings, rounded up,
    /// and 1 at least.
    pub burst: i64,
    /// `TIDEGATE_PER_SECOND`, `TIDEGATE_PER_MINUTE` or `TIDEGATE_PER_HOUR`.
    pub per: i32,
    /// Zero.
    pub reserved: i32,
}

impl tidegate_rate {
    const NONE: Self = Self { count: 0, burst: 0, per: 0, reserved: 0 };

    /// `None` for all zero.
    pub(crate) fn read(self) -> Result<Option<Rate>, Refusal> {
        let Self { count, burst, per, reserved } = self;
        if (count, burst, per, reserved) == (0, 0, 0, 0) {
            return Ok(None);
        }
        let unit = UNITS.into_iter().find(|&(number, _)| number == per && reserved == 0);
        let Some((_, unit)) = unit else {
            let text = format!(
                "rate.per must be 1 (second), 60 (minute) or 3600 (hour), and rate.reserved 0, or all of rate 0 \
                 for none, got {per} and {reserved}"
            );
            return Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text));
        };
        let rate = Rate::new(count, unit)?;
        Ok(Some(if burst == 0 { rate } else { rate.with_burst(burst)? }))
    }

    fn of(rate: Rate) -> Self {
        let count = i64::try_from(rate.count()).unwrap_or(i64::MAX); // at most 10^10
        let unit = UNITS.into_iter().find(|&(_, unit)| unit == rate.per());
        Self { count, burst: rate.burst().into(), per: unit.map_or(0, |(number, _)| number), reserved: 0 }
    }
}

/// Sets the rate, or takes it away by one that is all zero. Once this has returned, nothing is admitted by the old
/// one. What was used of the old burst stays used, up to the whole of the new one; where there was no rate
/// the burst is full.
///
/// Answers `TIDEGATE_ADMITTED`, `TIDEGATE_ERR_NULL` or `TIDEGATE_ERR_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_set_rate(
    gate: *const tidegate_gate,
    rate: *const tidegate_rate,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        gate.core.set_rate(read(rate)?.read().map_err(|refusal| refusal.status)?);
        Ok(())
    })
}

/// Reads the rate, with its burst; all zero where there is none.
///
/// Answers `TIDEGATE_ADMITTED` or `TIDEGATE_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_get_rate(
    gate: *const tidegate_gate,
    rate: *mut tidegate_rate,
) -> tidegate_status {
    // SAFETY: the caller's promise, here and below.
    guard(|| unsafe {
        let gate = reference(gate)?;
        write(rate, gate.core.rate().map_or(tidegate_rate::NONE, tidegate_rate::of))
    })
}
