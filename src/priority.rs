//! Priorities and the thresholds that go with them. Pure: integers in, integers out.
//!
//! A priority may enter while the gate is no fuller than its threshold: trunk reservation, as
//! telephone exchanges have used it since the 1960s (Kelly, "Loss networks", 1991). The names are
//! the criticality levels of Google's SRE book, chapter "Handling Overload".

use std::fmt;
use std::str::FromStr;

use crate::error::{ConfigError, MAX_LIMIT};

/// How many priorities there are.
pub(crate) const PRIORITIES: usize = 4;

/// One whole, in the unit thresholds are kept in: parts per million of the limit.
pub const PPM_ONE: u32 = 1_000_000;

/// How important a request is. More important compares greater.
///
/// `"essential"` and `"non-essential"` are accepted as names for [`Critical`](Self::Critical) and
/// [`Sheddable`](Self::Sheddable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Priority {
    /// Shed last: serious, user-visible harm when it fails.
    CriticalPlus = 0,
    /// The default: user-visible harm when it fails. Also called essential.
    #[default]
    Critical = 1,
    /// Partial unavailability is expected: batch work, retries made later.
    SheddablePlus = 2,
    /// Shed first: frequent unavailability is expected. Also called non-essential.
    Sheddable = 3,
}

impl Priority {
    /// All priorities, most important first; the position is the numeric level (0 to 3).
    pub const ALL: [Self; PRIORITIES] =
        [Self::CriticalPlus, Self::Critical, Self::SheddablePlus, Self::Sheddable];

    /// The numeric level, 0 (most important) to 3, as the C ABI and the vectors write it.
    #[must_use]
    pub const fn level(self) -> usize {
        self as usize
    }

    /// The priority at a numeric level.
    #[must_use]
    pub fn from_level(level: usize) -> Option<Self> {
        Self::ALL.get(level).copied()
    }

    /// The name used in every language, in metrics and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CriticalPlus => "critical_plus",
            Self::Critical => "critical",
            Self::SheddablePlus => "sheddable_plus",
            Self::Sheddable => "sheddable",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Priority {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        match name {
            "essential" => Ok(Self::Critical),
            "non-essential" => Ok(Self::Sheddable),
            _ => Self::ALL
                .into_iter()
                .find(|priority| priority.name() == name)
                .ok_or_else(|| ConfigError::Priority { got: name.to_owned() }),
        }
    }
}

impl Ord for Priority {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.level().cmp(&self.level())
    }
}

impl PartialOrd for Priority {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How full a gate may be for one priority still to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// A share of the limit in parts per million, at most [`PPM_ONE`]; rounded up to whole weight,
    /// so that a share above zero never becomes zero.
    Ppm(u32),
    /// The limit less this much weight, never below zero.
    Reserve(u32),
}

impl Threshold {
    /// A share of the limit between 0.0 and 1.0, kept to one part per million.
    ///
    /// # Errors
    /// [`ConfigError::Fraction`] when `share` is not a number from 0 to 1.
    pub fn fraction(share: f64) -> Result<Self, ConfigError> {
        if !(0.0..=1.0).contains(&share) {
            return Err(ConfigError::Fraction { got: share });
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // 0 to 10^6, checked above
        let ppm = (share * f64::from(PPM_ONE)).round() as u32;
        Ok(Self::Ppm(ppm))
    }

    /// The whole limit.
    pub(crate) const ALL: Self = Self::Ppm(PPM_ONE);

    /// What `priority` has where nothing was set.
    #[cfg(feature = "file")]
    pub(crate) fn default_of(priority: Priority) -> Self {
        DEFAULTS[priority.level()]
    }

    /// The whole weight that it means at `limit`.
    pub(crate) fn at(self, limit: u32) -> u32 {
        match self {
            Self::Ppm(ppm) => {
                let scaled = (u64::from(limit) * u64::from(ppm)).div_ceil(u64::from(PPM_ONE));
                u32::try_from(scaled).unwrap_or(limit)
            }
            Self::Reserve(weight) => limit.saturating_sub(weight),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ppm(ppm) => write!(f, "{}", f64::from(*ppm) / f64::from(PPM_ONE)),
            Self::Reserve(weight) => write!(f, "limit - {weight}"),
        }
    }
}

/// The thresholds of the four priorities, as configured.
///
/// What is not set has a default (1.0, 1.0, 0.9, 0.75), lowered to what a more important priority and
/// raised to what a less important one was set to. Below a limit of 10 the default reserve of 0.1 rounds away to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thresholds {
    set: [Option<Threshold>; PRIORITIES],
}

const DEFAULTS: [Threshold; PRIORITIES] =
    [Threshold::ALL, Threshold::ALL, Threshold::Ppm(900_000), Threshold::Ppm(750_000)];

impl Thresholds {
    /// The defaults with one priority's threshold replaced.
    #[must_use]
    pub fn with(mut self, priority: Priority, threshold: Threshold) -> Self {
        self.set[priority.level()] = Some(threshold);
        self
    }

    /// What was set for `priority`; `None` where it has its default.
    #[must_use]
    pub fn get(&self, priority: Priority) -> Option<Threshold> {
        self.set[priority.level()]
    }

    /// The whole weights that these thresholds mean at `limit`. The first is the limit, and none
    /// exceeds the one before it, whatever mixture of shares and reserves was configured.
    #[must_use]
    pub fn at(&self, limit: u32) -> [u32; PRIORITIES] {
        let mut bound = limit;
        std::array::from_fn(|level| {
            let threshold = self.set[level].map_or_else(
                || {
                    let below = self.set[level..].iter().flatten().map(|set| set.at(limit)).max();
                    DEFAULTS[level].at(limit).max(below.unwrap_or(0))
                },
                |set| set.at(limit),
            );
            bound = bound.min(threshold);
            bound
        })
    }

    /// Checks the rules: the top threshold is the limit, each is within its range, and what was set
    /// does not rise as importance falls. Shares are compared with shares and reserves with
    /// reserves, so the answer does not hang on rounding; a mixture is compared at `limit`.
    pub(crate) fn validate(&self, limit: u32) -> Result<(), ConfigError> {
        let mut above: Option<(Priority, Threshold)> = None;
        for priority in Priority::ALL {
            let Some(threshold) = self.set[priority.level()] else {
                continue;
            };
            match threshold {
                Threshold::Ppm(ppm) if ppm > PPM_ONE => {
                    return Err(ConfigError::Ppm { got: ppm.to_string() });
                }
                Threshold::Reserve(weight) if weight > MAX_LIMIT => {
                    return Err(ConfigError::Reserve { got: weight.to_string() });
                }
                _ => {}
            }
            if priority == Priority::CriticalPlus
                && !matches!(threshold, Threshold::Ppm(PPM_ONE) | Threshold::Reserve(0))
            {
                return Err(ConfigError::TopThreshold { got: threshold });
            }
            if let Some((more_important, bound)) = above {
                let rises = match (bound, threshold) {
                    (Threshold::Ppm(bound), Threshold::Ppm(ppm)) => ppm > bound,
                    (Threshold::Reserve(bound), Threshold::Reserve(weight)) => weight < bound,
                    _ => threshold.at(limit) > bound.at(limit),
                };
                if rises {
                    return Err(ConfigError::ThresholdRises { priority, threshold, more_important, bound });
                }
            }
            above = Some((priority, threshold));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_at_the_limits_of_the_oracle_table() {
        let thresholds = Thresholds::default();
        assert_eq!(thresholds.at(10), [10, 10, 9, 8]);
        assert_eq!(thresholds.at(40), [40, 40, 36, 30]);
        assert_eq!(thresholds.at(150), [150, 150, 135, 113]);
        assert_eq!(thresholds.at(4), [4, 4, 4, 3]);
        assert_eq!(thresholds.at(0), [0; 4]);
        assert_eq!(thresholds.at(1), [1; 4], "a share above zero never rounds to nothing");
        let top = crate::MAX_LIMIT;
        assert_eq!(thresholds.at(top)[0], top);
    }

    #[test]
    fn what_was_not_set_bends_to_what_was() {
        let half = Thresholds::default().with(Priority::SheddablePlus, Threshold::Ppm(500_000));
        assert_eq!(half.at(10), [10, 10, 5, 5]);
        assert!(half.validate(10).is_ok());
        let all = Thresholds::default().with(Priority::Sheddable, Threshold::Ppm(PPM_ONE));
        assert_eq!(all.at(10), [10; 4], "said for the least important, it holds for all");
    }

    #[test]
    fn a_rise_is_refused_even_where_rounding_hides_it() {
        let rising = Thresholds::default()
            .with(Priority::SheddablePlus, Threshold::Ppm(900_000))
            .with(Priority::Sheddable, Threshold::Ppm(950_000));
        assert!(matches!(rising.validate(1), Err(ConfigError::ThresholdRises { .. })));
    }

    #[test]
    fn a_mixture_never_rises_after_the_limit_moved() {
        let mixed = Thresholds::default()
            .with(Priority::SheddablePlus, Threshold::Reserve(5))
            .with(Priority::Sheddable, Threshold::Ppm(750_000));
        assert!(mixed.validate(20).is_ok());
        assert_eq!(mixed.at(10), [10, 10, 5, 5]);
        assert_eq!(mixed.at(3), [3, 3, 0, 0]);
    }

    #[test]
    fn the_top_threshold_is_the_limit() {
        let low_top = Thresholds::default().with(Priority::CriticalPlus, Threshold::Ppm(900_000));
        assert!(matches!(low_top.validate(10), Err(ConfigError::TopThreshold { .. })));
    }

    #[test]
    fn importance_orders_and_names_round_trip() {
        assert!(Priority::CriticalPlus > Priority::Critical);
        assert!(Priority::SheddablePlus > Priority::Sheddable);
        for priority in Priority::ALL {
            assert_eq!(priority.name().parse::<Priority>().unwrap(), priority);
            assert_eq!(Priority::from_level(priority.level()), Some(priority));
        }
        assert_eq!("essential".parse::<Priority>().unwrap(), Priority::Critical);
        assert_eq!("non-essential".parse::<Priority>().unwrap(), Priority::Sheddable);
        assert!("Critical".parse::<Priority>().is_err());
    }

    #[test]
    fn fractions_outside_zero_to_one_are_refused() {
        for bad in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Threshold::fraction(bad).is_err(), "{bad}");
        }
        assert_eq!(Threshold::fraction(0.9).unwrap(), Threshold::Ppm(900_000));
    }
}
