//! What a gate is made from.

#![allow(unsafe_code)] // says that the struct is plain numbers

use std::mem::offset_of;
use std::time::Duration;

use tidegate_core::controller::BoundsError;
use tidegate_core::{ConfigError, Gate, GateBuilder, Priority, Threshold, Thresholds, limit_from};

use crate::arguments;
use crate::controller::{TIDEGATE_CONTROLLER_NONE, tidegate_controller};
use crate::rate::tidegate_rate;
use crate::signal::{signals, tidegate_signal_config};
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
    /// The most weight that may be in flight, 0 to 2147483647. Has to be set, but with a controller, which starts from
    /// it; -1 there leaves the start to its default.
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
    /// What moves the limit. Nothing.
    pub controller: tidegate_controller,
    /// The time within which an answer is good, in seconds, for the controller and for latency signals; 0 is none:
    /// every success is good. None.
    pub objective: f64,
    /// The signals to watch, `signal_count` of them. None.
    pub signals: *const tidegate_signal_config,
    /// How many there are.
    pub signal_count: usize,
}

// SAFETY: numbers, and a pointer, of which any bytes make one.
unsafe impl Versioned for tidegate_config {
    const OLDER: &[usize] = &[offset_of!(tidegate_config, rate), offset_of!(tidegate_config, controller)];
}

impl tidegate_config {
    /// # Safety
    /// What it points at is there.
    pub(crate) unsafe fn builder(&self, name: &str) -> Result<GateBuilder, Refusal> {
        // A text of its own: the core's names the priorities, C has numbers.
        let default_priority = arguments::priority(self.default_priority).ok_or_else(|| {
            let text = format!(
                "default_priority must be 0 (critical_plus), 1 (critical), 2 (sheddable_plus) or 3 (sheddable), got {}",
                self.default_priority
            );
            Refusal::new(TIDEGATE_ERR_ARGUMENT, text)
        })?;
        let left_out = self.controller.kind != TIDEGATE_CONTROLLER_NONE && self.limit == LEFT_OUT;
        let limit = if left_out { None } else { Some(limit_from(self.limit)?) };
        let controller = self.controller.read(limit)?;
        let start = controller.map(|(_, bounds)| bounds.prior());
        let builder = Gate::builder(name, start.or(limit).unwrap_or_default())
            .thresholds(thresholds(&self.thresholds)?)
            .default_priority(default_priority)
            .enforce(self.enforce != 0)
            .timing(self.timing != 0)
            .rate(self.rate.read()?)
            .objective(objective(self.objective)?)
            // SAFETY: the caller's promise.
            .signals(unsafe { signals(self.signals, self.signal_count) }?)
            .bare_entries(self.bare_entries != 0);
        Ok(match controller {
            Some((kind, bounds)) => builder.controller(kind, bounds),
            None => builder,
        })
    }
}

/// As the limit of a gate with a controller: wherever that starts by itself.
const LEFT_OUT: i64 = -1;

fn objective(seconds: f64) -> Result<Option<Duration>, Refusal> {
    if seconds == 0.0 {
        return Ok(None);
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(Duration::ZERO) => Err(ConfigError::from(BoundsError::Objective).into()),
        Ok(objective) => Ok(Some(objective)),
        Err(_) => {
            let text = format!("objective must be a time in seconds above 0, or 0 for none, got {seconds}");
            Err(Refusal::new(TIDEGATE_ERR_ARGUMENT, text))
        }
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
