//! What a gate is made from.

#![allow(unsafe_code)] // says that the struct is plain numbers

use tidegate_core::{ConfigError, Gate, GateBuilder, Priority, Threshold, Thresholds, limit_from};

use crate::rate::tidegate_rate;

use crate::arguments;
use crate::status::{Refusal, TIDEGATE_ERR_ARGUMENT};
use crate::versioned::Versioned;

/// A C `bool`, of which any byte but zero is true: languages without one pass what they have.
pub(crate) type Flag = u8;

/// This priority's threshold is the gate's default: 1.0, 1.0, 0.9 and 0.75 of the limit, lowered to what
/// a more important priority and raised to what a less important one was set to.
pub const TIDEGATE_THRESHOLD_DEFAULT: i32 = 0;
/// The value is a share of the limit in parts per million, 0 to 1000000; rounded up to whole weight.
pub const TIDEGATE_THRESHOLD_PPM: i32 = 1;
/// The value is the weight that this priority leaves free, 0 to 2147483647.
pub const TIDEGATE_THRESHOLD_RESERVE: i32 = 2;

/// How full a gate may be for one priority still to enter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_threshold {
    /// One of the `TIDEGATE_THRESHOLD_` numbers.
    pub kind: i32,
    /// What the kind says; unused by `TIDEGATE_THRESHOLD_DEFAULT`.
    pub value: i64,
}

/// What a gate is made from. Start with `TIDEGATE_CONFIG_INIT`, and set at least `limit`:
///
///     tidegate_config config = TIDEGATE_CONFIG_INIT;
///     config.limit = 20;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tidegate_config {
    /// `sizeof(tidegate_config)`. Bytes that this library's version does not know must be zero.
    pub struct_size: u32,
    /// The priority of requests that ask for `TIDEGATE_PRIORITY_DEFAULT`. Critical.
    pub default_priority: i32,
    /// The most weight that may be in flight, 0 to 2147483647. Has to be set.
    pub limit: i64,
    /// By priority, most important first. The first is the limit itself: 1000000 ppm or a reserve of 0. They
    /// must not rise as importance falls. All default.
    pub thresholds: [tidegate_threshold; 4],
    /// False is dry run: everything is let in, and what would have been shed is counted. True.
    pub enforce: Flag,
    /// Whether to measure how long permits are held: two clock readings each, and 32 KiB a gate. False.
    pub timing: Flag,
    /// Whether `tidegate_enter` will be used. Then an exit too many does no harm at any moment. False.
    pub bare_entries: Flag,
    /// Zero.
    pub reserved: [u8; 5],
    /// How much may be admitted a time. Any.
    pub rate: tidegate_rate,
}

// SAFETY: numbers only.
unsafe impl Versioned for tidegate_config {
    const OLDER: &[usize] = &[std::mem::offset_of!(tidegate_config, rate)];
}

impl tidegate_config {
    pub(crate) fn builder(&self, name: &str) -> Result<GateBuilder, Refusal> {
        // A text of its own: the core's names the priorities, C has numbers.
        let default_priority = arguments::priority(self.default_priority).ok_or_else(|| {
            let text = format!(
                "default_priority must be 0 (critical_plus), 1 (critical), 2 (sheddable_plus) or 3 (sheddable), got {}",
                self.default_priority
            );
            Refusal::new(TIDEGATE_ERR_ARGUMENT, text)
        })?;
        Ok(Gate::builder(name, limit_from(self.limit)?)
            .thresholds(thresholds(&self.thresholds)?)
            .default_priority(default_priority)
            .enforce(self.enforce != 0)
            .timing(self.timing != 0)
            .rate(self.rate.read()?)
            .bare_entries(self.bare_entries != 0))
    }
}

pub(crate) fn thresholds(by_priority: &[tidegate_threshold; 4]) -> Result<Thresholds, Refusal> {
    let mut thresholds = Thresholds::default();
    for (priority, threshold) in Priority::ALL.into_iter().zip(by_priority) {
        let value = threshold.value;
        let threshold = match threshold.kind {
            TIDEGATE_THRESHOLD_DEFAULT => continue,
            TIDEGATE_THRESHOLD_PPM => u32::try_from(value)
                .map(Threshold::Ppm)
                .map_err(|_| ConfigError::Ppm { got: value.to_string() })?,
            TIDEGATE_THRESHOLD_RESERVE => u32::try_from(value)
                .map(Threshold::Reserve)
                .map_err(|_| ConfigError::Reserve { got: value.to_string() })?,
            kind => {
                let text =
                    format!("a threshold's kind must be 0 (default), 1 (ppm) or 2 (reserve), got {kind}");
                return Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text));
            }
        };
        thresholds = thresholds.with(priority, threshold);
    }
    Ok(thresholds)
}
