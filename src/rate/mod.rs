//! How many permits a time a gate gives, whatever is in flight: the rate as it is configured. What it decides is
//! in `gcra`, what it remembers in `state`.

mod gcra;
mod state;

use std::fmt;
use std::str::FromStr;

use crate::error::{ConfigError, MAX_LIMIT, MAX_RATE_COUNT};

pub(crate) use gcra::Settings;
pub(crate) use state::RateState;

/// The unit of time that a rate counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Per {
    /// `s`
    Second,
    /// `min`
    Minute,
    /// `h`
    Hour,
}

impl Per {
    /// All units.
    pub const ALL: [Self; 3] = [Self::Second, Self::Minute, Self::Hour];

    /// The name used in every language and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }

    /// How long it is.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }

    /// The unit of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|per| per.name() == name)
    }

    pub(crate) const fn nanos(self) -> u64 {
        self.seconds() as u64 * 1_000_000_000
    }
}

/// How many permits a time, by weight: a count per unit, and a burst.
///
/// In any stretch of time `T` no more weight is admitted than `burst + rate x T`. The burst is what may enter at
/// once after a time with nothing; by default it is what one second brings, rounded up, and one at least. A rate
/// of 0 admits the burst once, and then nothing.
///
/// ```
/// use tidegate::{Per, Rate};
///
/// let rate: Rate = "150/min".parse()?;
/// assert_eq!((rate.count(), rate.per(), rate.burst()), (150, Per::Minute, 3));
/// assert_eq!(rate.with_burst(10)?, Rate::new(150, Per::Minute)?.with_burst(10)?);
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u64,
    per: Per,
    burst: u32,
}

impl Rate {
    /// A rate from any whole number, with the default burst.
    ///
    /// # Errors
    /// [`ConfigError::Rate`] outside 0 to 10^10.
    pub fn new<N: Copy + ToString + TryInto<u64>>(count: N, per: Per) -> Result<Self, ConfigError> {
        match count.try_into() {
            Ok(count @ 0..=MAX_RATE_COUNT) => Ok(Self { count, per, burst: default_burst(count, per) }),
            _ => Err(ConfigError::Rate { got: format!("{}/{}", count.to_string(), per.name()) }),
        }
    }

    /// The same rate with another burst, from any whole number.
    ///
    /// # Errors
    /// [`ConfigError::Burst`] outside 1 to 2^31 - 1. What shall admit nothing is a limit of 0, or closed.
    pub fn with_burst<N: Copy + ToString + TryInto<u32>>(self, burst: N) -> Result<Self, ConfigError> {
        Ok(Self { burst: burst_from(burst)?, ..self })
    }

    /// How many permits of weight 1 in each [`per`](Self::per).
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The unit of time.
    #[must_use]
    pub const fn per(&self) -> Per {
        self.per
    }

    /// The most weight that may enter at once.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.burst
    }
}

/// A burst from any whole number.
pub(crate) fn burst_from<N: Copy + ToString + TryInto<u32>>(number: N) -> Result<u32, ConfigError> {
    match number.try_into() {
        Ok(burst @ 1..=MAX_LIMIT) => Ok(burst),
        _ => Err(ConfigError::Burst { got: number.to_string() }),
    }
}

fn default_burst(count: u64, per: Per) -> u32 {
    let in_a_second = count.div_ceil(u64::from(per.seconds()));
    u32::try_from(in_a_second).map_or(MAX_LIMIT, |burst| burst.clamp(1, MAX_LIMIT))
}

/// Without the burst, as it is written.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.per.name())
    }
}

/// `COUNT/UNIT`, such as `150/min`: digits, and `s`, `min` or `h`. Less than one a second is more than one a
/// minute or an hour: `30/min`, not `0.5/s`.
impl FromStr for Rate {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let refused = || ConfigError::Rate { got: text.to_owned() };
        let (count, per) = text.split_once('/').ok_or_else(refused)?;
        if !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused()); // a sign, which the number's own parser takes
        }
        let count: u64 = count.parse().map_err(|_| refused())?;
        Self::new(count, Per::named(per).ok_or_else(refused)?)
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_and_a_unit() {
        for (text, count, per, burst) in [
            ("150/min", 150, Per::Minute, 3),
            ("0/s", 0, Per::Second, 1),
            ("7/h", 7, Per::Hour, 1),
            ("120/min", 120, Per::Minute, 2),
            ("2000000000/s", 2_000_000_000, Per::Second, 2_000_000_000),
            ("10000000000/s", 10_000_000_000, Per::Second, MAX_LIMIT),
            ("10000000000/min", 10_000_000_000, Per::Minute, 166_666_667),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.count(), rate.per(), rate.burst()), (count, per, burst), "{text}");
            assert_eq!(rate.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_by_its_rule() {
        for text in [
            "",
            "/",
            "1",
            "1/",
            "/s",
            "1/d",
            "1/sec",
            "1/S",
            "1 /s",
            "1/ s",
            " 1/s",
            "+1/s",
            "-1/s",
            "0.5/s",
            "1e3/s",
            "nan/s",
            "inf/s",
            "1/1/s",
            "10000000001/s",
            "99999999999999999999/h",
            "١/s",
        ] {
            let refused = text.parse::<Rate>().unwrap_err();
            assert_eq!(refused, ConfigError::Rate { got: text.to_owned() });
            assert!(refused.to_string().contains("a whole number from 0 to 10000000000"), "{refused}");
        }
        assert_eq!(Rate::new(-1, Per::Hour), Err(ConfigError::Rate { got: "-1/h".to_owned() }));
        let rate = Rate::new(1, Per::Second).unwrap();
        for burst in [-1, 0, 1 << 31] {
            assert_eq!(rate.with_burst(burst), Err(ConfigError::Burst { got: burst.to_string() }));
        }
        assert_eq!(rate.with_burst(MAX_LIMIT).unwrap().burst(), MAX_LIMIT);
    }
}
