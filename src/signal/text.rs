//! What the kernel's files say. Pure: text in, numbers out, and never a panic whatever the text.

use super::root::{Failed, Found};

/// A limit that the first version writes where there is none is the largest number of pages: 2^63 less a page.
/// No machine has 2^60 bytes.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// One number.
pub(crate) fn number(text: &str) -> Result<u64, Failed> {
    text.trim().parse().map_err(|_| Failed)
}

/// The number behind `key` in lines of `key number` (`cpu.stat`, `memory.stat`), or of `key: number kB`.
pub(crate) fn keyed(text: &str, key: &str) -> Result<u64, Failed> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let mut line = lines.find_map(|mut words| (words.next() == Some(key)).then_some(words)).ok_or(Failed)?;
    number(line.next().ok_or(Failed)?)
}

/// `cpu.max`: `"200000 100000"` is 2 CPUs, `"max 100000"` is no limit.
pub(crate) fn cpu_max(text: &str) -> Found<f64> {
    let mut words = text.split_ascii_whitespace();
    match (words.next(), words.next()) {
        (Some("max"), _) => Ok(None),
        (Some(quota), Some(period)) => quotient(quota, period).map(Some),
        _ => Err(Failed),
    }
}

/// `cpu.cfs_quota_us`, where -1 is no limit, over `cpu.cfs_period_us`.
pub(crate) fn cfs_quota(quota: &str, period: &str) -> Found<f64> {
    if quota.trim().starts_with('-') { Ok(None) } else { quotient(quota, period).map(Some) }
}

#[allow(clippy::cast_precision_loss)] // microseconds of one period
fn quotient(quota: &str, period: &str) -> Result<f64, Failed> {
    match (number(quota)?, number(period)?) {
        (0, _) | (_, 0) => Err(Failed),
        (quota, period) => Ok(quota as f64 / period as f64),
    }
}

/// How many CPUs a list such as `"0-3,7"` has; an empty one says nothing.
pub(crate) fn cpu_list(text: &str) -> Found<u64> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let mut sum = 0u64;
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        let count = last.checked_sub(first).and_then(|more| more.checked_add(1)).ok_or(Failed)?;
        sum = sum.checked_add(count).ok_or(Failed)?;
    }
    Ok(Some(sum))
}

/// `memory.max` or `memory.limit_in_bytes`. A limit of nothing is none that a process could live in.
pub(crate) fn byte_limit(text: &str) -> Found<u64> {
    if text.trim() == "max" || text.trim() == "-1" {
        return Ok(None);
    }
    match number(text)? {
        0 => Err(Failed),
        bytes => Ok(Some(bytes).filter(|&bytes| bytes < NO_LIMIT_BYTES)),
    }
}

/// The share of the last ten seconds in which some task waited, from a pressure file.
pub(crate) fn some_avg10(text: &str) -> Result<f64, Failed> {
    let line = text.lines().find_map(|line| line.strip_prefix("some ")).ok_or(Failed)?;
    let percent = line.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10=")).ok_or(Failed)?;
    let percent: f64 = percent.parse().map_err(|_| Failed)?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(Failed) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotas_keep_their_fraction() {
        assert_eq!(cpu_max("200000 100000\n"), Ok(Some(2.0)));
        assert_eq!(cpu_max("50000 100000"), Ok(Some(0.5)));
        assert_eq!(cpu_max("max 100000"), Ok(None));
        assert_eq!(cfs_quota("150000\n", "100000\n"), Ok(Some(1.5)));
        assert_eq!(cfs_quota("-1\n", "100000\n"), Ok(None));
        for bad in ["", "0 100000", "100000 0", "100000", "-5 100000", "1e5 100000", "min 100000"] {
            assert_eq!(cpu_max(bad), Err(Failed), "{bad:?}");
        }
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        for (list, count) in [("0-3,7\n", 5), ("0", 1), ("0-15", 16), ("1,3,5", 3), ("0-0,2-3", 3)] {
            assert_eq!(cpu_list(list), Ok(Some(count)), "{list:?}");
        }
        assert_eq!(cpu_list("\n"), Ok(None));
        let endless = format!("0-{}", u64::MAX);
        for bad in ["3-0", "a", "0-", "-", ",", "0,,1", "0-3-5", endless.as_str()] {
            assert_eq!(cpu_list(bad), Err(Failed), "{bad:?}");
        }
    }

    #[test]
    fn limits_of_memory() {
        assert_eq!(byte_limit("1073741824\n"), Ok(Some(1 << 30)));
        for none in ["max\n", "9223372036854771712\n", "-1\n"] {
            assert_eq!(byte_limit(none), Ok(None), "{none:?}");
        }
        for bad in ["0", "", "1G", "99999999999999999999999"] {
            assert_eq!(byte_limit(bad), Err(Failed), "{bad:?}");
        }
    }

    #[test]
    fn the_key_is_the_whole_word() {
        let stat = "inactive_file_x 7\nanon 5\ninactive_file 42\n";
        assert_eq!(keyed(stat, "inactive_file"), Ok(42));
        assert_eq!(keyed(stat, "active_file"), Err(Failed));
        assert_eq!(keyed("usage_usec", "usage_usec"), Err(Failed));
        assert_eq!(keyed("MemTotal:  16384 kB\n", "MemTotal:"), Ok(16384));
    }

    #[test]
    fn pressure_is_that_of_some_over_ten_seconds() {
        let file = "some avg10=12.50 avg60=1.00 avg300=0.00 total=9\nfull avg10=99.00 avg60=0.00 total=1\n";
        assert_eq!(some_avg10(file), Ok(0.125));
        for bad in
            ["", "full avg10=1.00", "some avg60=1", "some avg10=nan", "some avg10=101", "some avg10=-1"]
        {
            assert_eq!(some_avg10(bad), Err(Failed), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", other in "[-0-9a-z ,=.\n]*") {
            for text in [&text, &other] {
                let _ = (number(text), keyed(text, "a"), cpu_max(text), cfs_quota(text, "100000"));
                let _ = (cpu_list(text), byte_limit(text), some_avg10(text));
            }
        }
    }
}
