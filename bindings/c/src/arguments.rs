//! Numbers from C, checked. They arrive in types wide enough to show what a signed or larger language meant.

use tidegate_core::{Ask, MAX_LIMIT, Outcome, Priority, Weight};

use crate::entry::Answer;
use crate::status::TIDEGATE_ERR_ARGUMENT;

/// Shed last: serious, user-visible harm when it fails.
pub const TIDEGATE_PRIORITY_CRITICAL_PLUS: i32 = 0;
/// User-visible harm when it fails. Also called essential.
pub const TIDEGATE_PRIORITY_CRITICAL: i32 = 1;
/// Partial unavailability is expected: batch work, retries made later.
pub const TIDEGATE_PRIORITY_SHEDDABLE_PLUS: i32 = 2;
/// Shed first: frequent unavailability is expected. Also called non-essential.
pub const TIDEGATE_PRIORITY_SHEDDABLE: i32 = 3;
/// The gate's default priority; counted in `fallback_priority`. Far from the others, so that no sum or
/// cast makes one of it.
pub const TIDEGATE_PRIORITY_DEFAULT: i32 = 1000;

/// The resource answered, even with an error of its own.
pub const TIDEGATE_OUTCOME_SUCCESS: i32 = 0;
/// The resource was too busy: timed out, pool exhausted.
pub const TIDEGATE_OUTCOME_OVERLOAD: i32 = 1;
/// The work says nothing about the resource: cancelled, interrupted, never begun.
pub const TIDEGATE_OUTCOME_IGNORE: i32 = 2;

// A level and an outcome's position are part of the interface.
const _: () = {
    assert!(Priority::CriticalPlus as i32 == TIDEGATE_PRIORITY_CRITICAL_PLUS);
    assert!(Priority::Critical as i32 == TIDEGATE_PRIORITY_CRITICAL);
    assert!(Priority::SheddablePlus as i32 == TIDEGATE_PRIORITY_SHEDDABLE_PLUS);
    assert!(Priority::Sheddable as i32 == TIDEGATE_PRIORITY_SHEDDABLE);
    assert!(Outcome::Success as i32 == TIDEGATE_OUTCOME_SUCCESS);
    assert!(Outcome::Overload as i32 == TIDEGATE_OUTCOME_OVERLOAD);
    assert!(Outcome::Ignore as i32 == TIDEGATE_OUTCOME_IGNORE);
};

#[inline]
pub(crate) fn priority(number: i32) -> Option<Priority> {
    usize::try_from(number).ok().and_then(Priority::from_level)
}

/// A priority, or none where the gate's default is asked for.
#[inline]
pub(crate) fn priority_or_default(number: i32) -> Answer<Option<Priority>> {
    match priority(number) {
        Some(priority) => Ok(Some(priority)),
        None if number == TIDEGATE_PRIORITY_DEFAULT => Ok(None),
        None => Err(TIDEGATE_ERR_ARGUMENT),
    }
}

#[inline]
pub(crate) fn ask(priority: i32, weight: i64) -> Answer<Ask> {
    // As a 32-bit number, so that nothing of the error's text is compiled into the way in.
    let weight = u32::try_from(weight).ok().filter(|weight| (1..=MAX_LIMIT).contains(weight));
    let weight = weight.and_then(|weight| Weight::new(weight).ok()).ok_or(TIDEGATE_ERR_ARGUMENT)?;
    Ok(Ask::from(priority_or_default(priority)?).weight(weight))
}

#[inline]
pub(crate) fn outcome(number: i32) -> Answer<Outcome> {
    let position = usize::try_from(number).map_err(|_| TIDEGATE_ERR_ARGUMENT)?;
    Outcome::ALL.get(position).copied().ok_or(TIDEGATE_ERR_ARGUMENT)
}
