//! How often the limit changed, by cause. Causes are free text, and each becomes a series in somebody's
//! monitoring: so a gate keeps the first few, and counts the rest as [`OTHER`].

use crate::sync::{AtomicU64, Ordering};
use crate::text::Text;

/// Causes that a gate tells apart.
#[cfg(not(tidegate_loom))]
pub(crate) const CAUSES: usize = 16;
/// Models tell one: loom pays for every atomic.
#[cfg(tidegate_loom)]
pub(crate) const CAUSES: usize = 1;

/// The cause of a change that was given none.
const MANUAL: &str = "manual";
/// The cause of all changes beyond those that are told apart.
pub(crate) const OTHER: &str = "other";

#[derive(Debug)]
#[repr(C)]
struct Cause {
    changes: AtomicU64,
    text: Text<6>,
}

/// The causes of one gate. Written under the gate's control lock; read by anybody.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Causes {
    known: [Cause; CAUSES],
    other: AtomicU64,
}

impl Causes {
    pub(crate) fn new() -> Self {
        let unused = |_| Cause { changes: AtomicU64::new(0), text: Text::new() };
        Self { known: std::array::from_fn(unused), other: AtomicU64::new(0) }
    }

    /// Counts a change. The first 48 bytes tell causes apart.
    pub(crate) fn count(&self, cause: Option<&str>) {
        let cause = label(cause);
        let cause = Text::<6>::fitting(&cause);
        for known in self.known.iter().filter(|_| cause != OTHER) {
            let changes = known.changes.load(Ordering::Relaxed);
            if changes == 0 {
                known.text.store(cause);
            } else if known.text.load().as_deref() != Some(cause) {
                continue;
            }
            // Release: whoever sees the count sees the text.
            known.changes.store(changes + 1, Ordering::Release);
            return;
        }
        self.other.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> LimitChanges {
        let mut read = LimitChanges::default();
        for Cause { changes, text } in &self.known {
            match (changes.load(Ordering::Acquire), text.load()) {
                (0, _) => {}
                // One line also where a damaged file says something else.
                (changes, text) => read.add(&label(Some(text.as_deref().unwrap_or(OTHER))), changes),
            }
        }
        match self.other.load(Ordering::Relaxed) {
            0 => {}
            changes => read.add(OTHER, changes),
        }
        read
    }

    #[cfg(all(unix, not(tidegate_loom)))]
    pub(crate) fn empty(&self) {
        for cause in &self.known {
            cause.changes.store(0, Ordering::Relaxed);
        }
        self.other.store(0, Ordering::Relaxed);
    }
}

/// One line of text, whatever the caller gave.
fn label(cause: Option<&str>) -> String {
    match cause {
        None | Some("") => MANUAL.to_owned(),
        Some(cause) => cause.chars().map(|char| if char.is_control() { ' ' } else { char }).collect(),
    }
}

/// Changes by cause: at most [`CAUSES`] that are told apart, in the order in which they first came, and the
/// rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitChanges {
    known: Vec<(Box<str>, u64)>,
    other: u64,
}

impl LimitChanges {
    pub(crate) fn add(&mut self, cause: &str, changes: u64) {
        if cause == OTHER {
            self.other += changes;
        } else if let Some((_, sum)) = self.known.iter_mut().find(|(known, _)| **known == *cause) {
            *sum += changes;
        } else if self.known.len() < CAUSES {
            self.known.push((cause.into(), changes));
        } else {
            self.other += changes;
        }
    }

    pub(crate) fn add_all(&mut self, changes: &Self) {
        for (cause, changes) in changes.iter() {
            self.add(cause, changes);
        }
    }

    /// Causes and counts, none of which is zero.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        let known = self.known.iter().map(|(cause, changes)| (&**cause, *changes));
        known.chain((self.other > 0).then_some((OTHER, self.other)))
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    fn read(causes: &Causes) -> Vec<(String, u64)> {
        causes.read().iter().map(|(cause, changes)| (cause.to_owned(), changes)).collect()
    }

    fn counts(causes: &[(&str, u64)]) -> Vec<(String, u64)> {
        causes.iter().map(|&(cause, changes)| (cause.to_owned(), changes)).collect()
    }

    #[test]
    fn each_cause_is_counted_and_none_is_manual() {
        let causes = Causes::new();
        assert_eq!(read(&causes), []);
        for cause in [Some("deploy"), None, Some("deploy"), Some(""), Some("other"), Some("a\nb\0")] {
            causes.count(cause);
        }
        assert_eq!(read(&causes), counts(&[("deploy", 2), ("manual", 2), ("a b ", 1), ("other", 1)]));
        causes.empty();
        assert_eq!(read(&causes), []);
    }

    #[test]
    fn what_is_read_is_one_line_also_from_a_damaged_file() {
        let causes = Causes::new();
        causes.count(Some("a deploy"));
        causes.known[0].text.store("a\nend");
        assert_eq!(read(&causes), counts(&[("a end", 1)]));
    }

    #[test]
    fn what_does_not_fit_is_counted_as_other() {
        let causes = Causes::new();
        causes.count(Some("other")); // takes no place
        for number in 0..100 {
            causes.count(Some(&format!("deploy {number}")));
        }
        causes.count(Some("deploy 15"));
        let read = read(&causes);
        assert_eq!(read.len(), CAUSES + 1);
        assert_eq!(read[15], ("deploy 15".to_owned(), 2));
        assert_eq!(read[16], ("other".to_owned(), 85));
    }

    #[test]
    fn a_long_cause_counts_by_its_beginning() {
        let causes = Causes::new();
        let long = "x".repeat(100);
        causes.count(Some(&long));
        causes.count(Some(&long[..48]));
        assert_eq!(read(&causes), [("x".repeat(48), 2)]);
    }

    #[test]
    fn sums_tell_apart_no_more_than_a_gate_does() {
        let (mut sum, other) = (LimitChanges::default(), Causes::new());
        for number in 0..CAUSES {
            sum.add(&number.to_string(), 1);
            other.count(Some(&(number + 8).to_string()));
        }
        sum.add_all(&other.read());
        let sums: Vec<_> = sum.iter().collect();
        assert_eq!(sums.len(), CAUSES + 1);
        assert_eq!((sums[0], sums[8], sums[16]), (("0", 1), ("8", 2), ("other", 8)));
    }
}
