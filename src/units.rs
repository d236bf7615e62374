//! Times and rates as people write them: `"1.5s"`, `"150/min"`. Pure.

use std::time::Duration;

use crate::rate::Per;

/// What [`duration`] takes.
pub(crate) const A_DURATION: &str = "a time such as \"500ms\", \"1.5s\", \"15min\" or \"2h\"";

/// What [`rate`] takes.
#[cfg(feature = "sim")]
pub(crate) const A_RATE: &str = "a rate such as \"1.5/s\", \"150/min\" or \"2000/h\"";

/// A time from `"500ms"`, `"1.5s"`, `"15min"` or `"2h"`. Never negative.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("must be {A_DURATION}, got {text:?}");
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(refused)?;
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| refused())?;
    let unit_s = match unit {
        "ms" => 1e-3,
        _ => f64::from(Per::named(unit).ok_or_else(refused)?.seconds()),
    };
    Duration::try_from_secs_f64(number * unit_s).map_err(|_| refused())
}

/// How many a second, from `"1.5/s"`, `"150/min"` or `"2000/h"`. Never negative.
#[cfg(feature = "sim")]
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let refused = || format!("must be {A_RATE}, got {text:?}");
    let (count, unit) = text.split_once('/').ok_or_else(refused)?;
    if !count.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(refused());
    }
    let count: f64 = count.parse().map_err(|_| refused())?;
    Ok(count / f64::from(Per::named(unit).ok_or_else(refused)?.seconds()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "sim")]
    #[test]
    fn rates_have_a_number_and_a_unit() {
        for (text, a_second) in [("1.5/s", 1.5), ("150/min", 2.5), ("7200/h", 2.0), ("0/s", 0.0)] {
            assert_eq!(rate(text), Ok(a_second), "{text}");
        }
        for text in ["", "1", "/s", "1/", "-1/s", "1e3/s", "1 /s", "1/d", "inf/s", "1/s/s"] {
            let refused = rate(text).unwrap_err();
            assert!(refused.starts_with("must be a rate") && refused.contains(text), "{refused}");
        }
    }

    #[test]
    fn times_have_a_number_and_a_unit() {
        for (text, seconds) in [("500ms", 0.5), ("1.5s", 1.5), ("15min", 900.0), ("2h", 7_200.0), ("0s", 0.0)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "1", "s", "-1s", "1 s", "1d", "1e3s", "1.2.3s", "inf s", "99999999999999999999h"] {
            let refused = duration(text).unwrap_err();
            assert!(refused.starts_with("must be a time") && refused.contains(text), "{refused}");
        }
    }
}
