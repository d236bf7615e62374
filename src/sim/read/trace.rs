//! A trace: arrival times in the first column of a CSV file, in seconds. Pure.

/// The most arrivals of a trace: as many as fit into a few hundred megabytes.
const MOST: usize = 20_000_000;

/// The times in order, since the first. A first line that is no number is a heading.
pub(super) fn times(text: &str) -> Result<Vec<f64>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut times = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let cell = line.split(',').next().unwrap_or_default().trim().trim_matches('"');
        if line.trim().is_empty() {
            continue;
        }
        match cell.parse::<f64>() {
            Ok(time) if time.is_finite() && time.abs() <= 1e12 => times.push(time),
            Err(_) if at == 0 => {}
            _ => return Err(format!("line {}: an arrival is a time in seconds, got {cell:?}", at + 1)),
        }
        if times.len() > MOST {
            return Err(format!("a trace has at most {MOST} arrivals"));
        }
    }
    times.sort_by(f64::total_cmp);
    let Some(&first) = times.first() else {
        return Err("there is no arrival in it".to_owned());
    };
    for time in &mut times {
        *time -= first;
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sorted_and_counted_from_the_first() {
        assert_eq!(times("seconds,tokens\n12.5,3\n\n10,4\r\n"), Ok(vec![0.0, 2.5]));
        assert_eq!(times("\u{feff}7\n7\n"), Ok(vec![0.0, 0.0]));
    }

    #[test]
    fn what_is_no_time_is_named_with_its_line() {
        for (text, part) in [
            ("seconds\n1\nlater\n", "line 3: an arrival is a time in seconds, got \"later\""),
            ("1\nnan\n", "line 2"),
            ("inf\n", "line 1"),
            ("1e300\n", "line 1"),
            ("seconds\n", "no arrival"),
            ("", "no arrival"),
        ] {
            let refused = times(text).unwrap_err();
            assert!(refused.contains(part), "{text:?}: {refused}");
        }
    }
}
