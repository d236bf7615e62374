//! What moves a gate's limit.

use tidegate_core::MAX_LIMIT;
use tidegate_core::controller::{Bounds, Choice, Kind};

use crate::status::{Refusal, TIDEGATE_ERR_ARGUMENT};

/// Nothing moves the limit.
pub const TIDEGATE_CONTROLLER_NONE: i32 = 0;
/// Holds the limit. Everything else that a controller shows is there.
pub const TIDEGATE_CONTROLLER_FIXED: i32 = 1;
/// One more while nothing is overload, a tenth less when something is.
pub const TIDEGATE_CONTROLLER_AIMD: i32 = 2;
/// By latency against its long average.
pub const TIDEGATE_CONTROLLER_GRADIENT2: i32 = 3;
/// By latency against the shortest seen.
pub const TIDEGATE_CONTROLLER_VEGAS: i32 = 4;
/// Climbs to where most good answers come out.
pub const TIDEGATE_CONTROLLER_GOODPUT: i32 = 5;

const KINDS: [(i32, Kind); Kind::ALL.len()] = [
    (TIDEGATE_CONTROLLER_FIXED, Kind::Fixed),
    (TIDEGATE_CONTROLLER_AIMD, Kind::Aimd),
    (TIDEGATE_CONTROLLER_GRADIENT2, Kind::Gradient2),
    (TIDEGATE_CONTROLLER_VEGAS, Kind::Vegas),
    (TIDEGATE_CONTROLLER_GOODPUT, Kind::Goodput),
];

/// What moves a gate's limit, and within which bounds; docs/choosing.md says which when. All zero is nothing.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_controller {
    /// One of the `TIDEGATE_CONTROLLER_` numbers.
    pub kind: i32,
    /// Zero.
    pub reserved: i32,
    /// The smallest limit, 1 to `max`; 0 is the default: 1.
    pub min: i64,
    /// The largest, 1 to 2147483647; 0 is the default: 1000, or `min` if that is more.
    pub max: i64,
    /// A limit that a capacity test has shown to hold, at least `min`: nothing goes above it. 0: none.
    pub ceiling: i64,
    /// The limit to start from, `min` to `max`; 0 is the default: the gate's own limit, and where that is left out,
    /// too, the geometric mean of `min` and `max`.
    pub prior: i64,
}

impl tidegate_controller {
    /// `None` for all zero. `limit`: the gate's own, where it has one.
    pub(crate) fn read(self, limit: Option<u32>) -> Result<Option<(Kind, Bounds)>, Refusal> {
        let Self { kind, reserved, min, max, ceiling, prior } = self;
        if (kind, reserved, min, max, ceiling, prior) == (TIDEGATE_CONTROLLER_NONE, 0, 0, 0, 0, 0) {
            return Ok(None);
        }
        let known = KINDS.into_iter().find(|&(number, _)| number == kind && reserved == 0);
        let Some((_, kind)) = known else {
            let text = format!(
                "controller.kind must be 1 (fixed), 2 (aimd), 3 (gradient2), 4 (vegas) or 5 (goodput), and \
                 controller.reserved 0, or all of controller 0 for none, got {kind} and {reserved}"
            );
            return Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text));
        };
        let choice = Choice {
            min: bound("min", min)?,
            max: bound("max", max)?,
            ceiling: bound("ceiling", ceiling)?,
            prior: bound("prior", prior)?,
        };
        Ok(Some((kind, choice.bounds(limit).map_err(tidegate_core::ConfigError::from)?)))
    }
}

pub(crate) fn number_of(kind: Kind) -> i32 {
    let known = KINDS.into_iter().find(|&(_, known)| known == kind);
    known.map_or(TIDEGATE_CONTROLLER_NONE, |(number, _)| number)
}

fn bound(name: &str, number: i64) -> Result<Option<u32>, Refusal> {
    match u32::try_from(number) {
        Ok(0) => Ok(None),
        Ok(number @ 1..=MAX_LIMIT) => Ok(Some(number)),
        _ => {
            let text = format!(
                "controller.{name} must be a whole number from 1 to {MAX_LIMIT}, or 0 for its default, got {number}"
            );
            Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text))
        }
    }
}
