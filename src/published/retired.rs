//! What files held whose process is gone, or whose gate is: added up by the gate's name, so that restarting
//! workers leave one file behind and not one each.
//!
//! It is a text, replaced as a whole. It names the files that it holds, until these are gone: so a reader
//! that ends between replacing the text and removing them makes nobody count them twice.
//!
//! ```text
//! tidegate retired 2
//! holds NAME
//! gate db
//! counts 1 2 3 ...
//! durations 1 2 3 ...          one line for each outcome, where timing was on
//! cause 4 deploy
//! end
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::durations::{self, Durations};
use crate::outcome::OUTCOMES;
use crate::shard::{COUNTERS, Totals};
use crate::stats::Counts;

use super::layout::LAYOUT;

/// The sums, and the files that are in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Retired {
    pub(super) holds: Vec<String>,
    pub(super) gates: BTreeMap<Box<str>, Counts>,
}

impl Retired {
    pub(super) fn take_in(&mut self, file: String, gate: &str, counts: &Counts) {
        self.holds.push(file);
        self.gates.entry(gate.into()).or_default().add(counts);
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{}\n", first_line());
        for file in &self.holds {
            line(&mut text, "holds", file);
        }
        for (gate, counts) in &self.gates {
            line(&mut text, "gate", gate); // without control characters, as every name
            line(&mut text, "counts", &numbers(counts.totals.cells()));
            for durations in counts.durations.iter().flat_map(|by_outcome| by_outcome.iter()) {
                line(&mut text, "durations", &numbers(durations.cells()));
            }
            for (cause, changes) in counts.limit_changes() {
                line(&mut text, "cause", &format!("{changes} {cause}"));
            }
        }
        text.push_str("end\n");
        text
    }

    /// `None`: it is not what [`to_text`](Self::to_text) writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix("\nend\n")?.split('\n');
        if lines.next()? != first_line() {
            return None;
        }
        let mut retired = Self::default();
        let mut gate: Option<(Box<str>, Counts)> = None;
        let mut durations = Vec::new();
        for line in lines {
            let (kind, value) = line.split_once(' ')?;
            match kind {
                "holds" => retired.holds.push(value.to_owned()),
                "gate" => {
                    retired.finish(gate.replace((value.into(), Counts::default())), &mut durations)?;
                }
                "counts" => gate.as_mut()?.1.totals = Totals::from_cells(&array::<COUNTERS>(value)?),
                "durations" => {
                    durations.push(Durations::from_cells(array::<{ durations::CELLS }>(value)?));
                }
                "cause" => {
                    let (changes, cause) = value.split_once(' ')?;
                    gate.as_mut()?.1.limit_changes.add(cause, changes.parse().ok()?);
                }
                _ => return None,
            }
        }
        retired.finish(gate, &mut durations)?;
        Some(retired)
    }

    fn finish(&mut self, gate: Option<(Box<str>, Counts)>, durations: &mut Vec<Durations>) -> Option<()> {
        let durations = std::mem::take(durations);
        let Some((gate, mut counts)) = gate else {
            return durations.is_empty().then_some(());
        };
        if !durations.is_empty() {
            let by_outcome: [_; OUTCOMES] = durations.try_into().ok()?;
            counts.durations = Some(Box::new(by_outcome));
        }
        self.gates.insert(gate, counts);
        Some(())
    }
}

fn first_line() -> String {
    format!("tidegate retired {LAYOUT}")
}

fn line(text: &mut String, kind: &str, value: &str) {
    writeln!(text, "{kind} {value}").expect("a string takes everything");
}

fn numbers(cells: &[u64]) -> String {
    cells.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn array<const N: usize>(numbers: &str) -> Option<[u64; N]> {
    let cells: Vec<u64> = numbers.split(' ').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    cells.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Retired {
        let mut counts =
            Counts { totals: Totals::from_cells(&std::array::from_fn(|n| n as u64)), ..Counts::default() };
        counts.limit_changes.add("a deploy", 3);
        counts.limit_changes.add("other", 9);
        let mut retired = Retired::default();
        retired.take_in("first.tidegate".to_owned(), "db", &counts);
        counts.durations = Some(Box::new([Durations::from_cells([7; durations::CELLS]); OUTCOMES]));
        retired.take_in("second.tidegate".to_owned(), "a name", &counts);
        retired
    }

    #[test]
    fn what_is_written_is_read() {
        for retired in [Retired::default(), sample()] {
            assert_eq!(Retired::parse(&retired.to_text()), Some(retired));
        }
    }

    #[test]
    fn sums_add_up() {
        let mut retired = sample();
        let counts = retired.gates["db"].clone();
        retired.take_in("third.tidegate".to_owned(), "a name", &counts);
        let sum = &retired.gates["a name"];
        assert_eq!(sum.totals.cells()[5], 10);
        assert_eq!(sum.durations, sample().gates["a name"].durations, "the third had none");
        assert_eq!(sum.limit_changes().collect::<Vec<_>>(), [("a deploy", 6), ("other", 18)]);
    }

    #[test]
    fn anything_else_is_not_read() {
        let text = sample().to_text();
        for end in 0..text.len() {
            assert_eq!(Retired::parse(&text[..end]), None, "cut after {end} bytes");
        }
        let (this, next) = (format!("retired {LAYOUT}"), format!("retired {}", LAYOUT + 1));
        for (part, other) in
            [(&*this, &*next), ("counts 0 1", "counts 0"), ("gate db", "door db"), (" 7 7", " 7 x")]
        {
            assert_eq!(Retired::parse(&text.replacen(part, other, 1)), None);
        }
    }
}
