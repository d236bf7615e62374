//! Times as people write them: `"1.5s"`. Pure.

#![cfg_attr(not(feature = "sim"), allow(dead_code))] // only scenarios have times, so far

use std::time::Duration;

use crate::rate::Per;

/// What [`duration`] takes.
pub(crate) const A_DURATION: &str = "a time such as \"500ms\", \"1.5s\", \"15min\" or \"2h\"";

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

#[cfg(test)]
mod tests {
    use super::*;

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
