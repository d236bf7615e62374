//! What a value may look like: exactly so, or with `*` for any characters.
//!
//! The parts between the stars are looked for from left to right, each once and as early as it can be found: if a
//! value matches at all, it does so this way (the greedy matching of R. Cox, "Glob Matching Can Be Simple And Fast
//! Too", 2017). So a match takes time linear in the value, whatever a client sends and however many stars there are.

use std::cmp::Ordering;
use std::fmt;

use crate::error::ConfigError;

/// The longest pattern, in bytes.
const MAX_BYTES: usize = 1024;

/// The most patterns for one attribute of one rule.
const MAX_PATTERNS: usize = 1000;

/// Patterns of which one has to match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct AnyOf {
    /// Of every one of them.
    pairs: Pairs,
    /// Without a star, in the order of [`by_length`].
    exact: Box<[Box<str>]>,
    wild: Box<[Wild]>,
    /// All of them as they were given.
    texts: Box<[Box<str>]>,
}

impl AnyOf {
    pub(super) fn new(texts: Box<[Box<str>]>) -> Result<Self, ConfigError> {
        check_size("the number of patterns for one attribute", 1, MAX_PATTERNS, texts.len())?;
        for text in &texts {
            check_size("the length of a pattern in bytes", 0, MAX_BYTES, text.len())?;
        }
        let pairs = texts.iter().map(|text| Pairs::of_pattern(text)).reduce(Pairs::in_both);
        let wild = texts.iter().filter_map(|text| Wild::new(text)).collect();
        let mut exact: Box<[_]> = texts.iter().filter(|text| !text.contains('*')).cloned().collect();
        exact.sort_unstable_by(|one, other| by_length(one, other));
        Ok(Self { pairs: pairs.unwrap_or(Pairs::NONE), exact, wild, texts })
    }

    #[inline]
    pub(super) fn matches(&self, value: &str, pairs: Pairs) -> bool {
        pairs.has(self.pairs) && self.any_matches(value, pairs)
    }

    fn any_matches(&self, value: &str, pairs: Pairs) -> bool {
        self.exact.binary_search_by(|text| by_length(text, value)).is_ok()
            || self.wild.iter().any(|wild| pairs.has(wild.pairs) && wild.matches(value))
    }
}

/// In the form that a configuration file has it.
impl fmt::Display for AnyOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.texts {
            [only] => write!(f, "{only:?}"),
            texts => write!(f, "{texts:?}"),
        }
    }
}

/// An order in which two texts are seldom read to be told apart.
#[inline]
fn by_length(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

/// Which bytes stand side by side in a text, as a set with few bits (B. Bloom, 1970). What a pattern has and a value
/// lacks tells that they do not match, mostly without reading either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pairs(u64);

impl Pairs {
    const NONE: Self = Self(0);

    /// In a longer value most pairs occur, and taking note of them costs more than it saves.
    const LONGEST: usize = 128;

    /// Those of a value, and all there are in place of those of a long one.
    pub(super) fn of_value(value: &str) -> Self {
        if value.len() > Self::LONGEST { Self(u64::MAX) } else { Self::of_part(value) }
    }

    fn of_part(text: &str) -> Self {
        let bit = |pair: &[u8]| 1 << ((pair[0].wrapping_mul(5) ^ pair[1]) % 64);
        Self(text.as_bytes().windows(2).fold(0, |bits, pair| bits | bit(pair)))
    }

    fn of_pattern(text: &str) -> Self {
        text.split('*').map(Self::of_part).fold(Self::NONE, |all, part| Self(all.0 | part.0))
    }

    fn in_both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn has(self, part: Self) -> bool {
        part.0 & !self.0 == 0
    }
}

/// A pattern with at least one star.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Wild {
    /// Of all its parts.
    pairs: Pairs,
    prefix: Box<str>,
    between: Box<[Box<str>]>,
    suffix: Box<str>,
}

impl Wild {
    /// The pattern, if there is a star in it.
    fn new(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('*')?;
        let (between, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        Some(Self {
            pairs: Pairs::of_pattern(text),
            prefix: prefix.into(),
            between: between.split('*').filter(|part| !part.is_empty()).map(Box::from).collect(),
            suffix: suffix.into(),
        })
    }

    #[inline]
    fn matches(&self, value: &str) -> bool {
        // The suffix is looked for behind the prefix: they may not overlap.
        let rest = value.strip_prefix(&*self.prefix).and_then(|rest| rest.strip_suffix(&*self.suffix));
        rest.is_some_and(|rest| self.between.is_empty() || self.holds_between(rest))
    }

    #[cold]
    fn holds_between(&self, mut rest: &str) -> bool {
        self.between.iter().all(|part| match rest.split_once(&**part) {
            Some((_, behind)) => {
                rest = behind;
                true
            }
            None => false,
        })
    }
}

pub(super) fn check_size(
    what: &'static str,
    least: usize,
    most: usize,
    got: usize,
) -> Result<(), ConfigError> {
    if (least..=most).contains(&got) { Ok(()) } else { Err(ConfigError::Size { what, least, most, got }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_of(texts: &[&str]) -> AnyOf {
        AnyOf::new(texts.iter().map(|&text| text.into()).collect()).unwrap()
    }

    fn matches(any: &AnyOf, value: &str) -> bool {
        any.matches(value, Pairs::of_value(value))
    }

    /// Tries everything that a star may stand for.
    fn naive(pattern: &[char], value: &[char]) -> bool {
        match pattern.split_first() {
            None => value.is_empty(),
            Some(('*', pattern)) => (0..=value.len()).any(|skipped| naive(pattern, &value[skipped..])),
            Some((&first, pattern)) => {
                value.split_first().is_some_and(|(&got, value)| got == first && naive(pattern, value))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn as_a_matcher_that_tries_everything(
            patterns in prop::collection::vec("[a*bé]{0,9}", 1..4),
            value in "[abé]{0,12}",
        ) {
            let texts: Vec<_> = patterns.iter().map(String::as_str).collect();
            let value_chars: Vec<_> = value.chars().collect();
            let expected = patterns.iter().any(|pattern| naive(&pattern.chars().collect::<Vec<_>>(), &value_chars));
            prop_assert_eq!(matches(&any_of(&texts), &value), expected);
        }
    }

    #[test]
    fn a_star_stands_for_any_characters_and_nothing_else_is_special() {
        for (pattern, matching, others) in [
            ("/reports/*", &["/reports/", "/reports/a/b\nc"][..], &["/reports", "/x/reports/a"][..]),
            ("*", &["", "/", "*"], &[]),
            ("", &[""], &["x"]),
            ("/ab*ba", &["/abba", "/ab/ba"], &["/aba"]),
            ("/**/x", &["//x", "/a/x"], &["/x"]),
            ("/*/b/*/c", &["/a/b/x/c", "/a/b/c/b/x/c"], &["/b/x/c", "/a/b/c", "/a/b/x/c/"]),
            ("/a.[b]?(c)", &["/a.[b]?(c)"], &["/axb", "/a.bc"]),
            ("Free", &["Free"], &["free", "FREE"]),
            (
                "/reports/*-export",
                &[&format!("/reports/{}-export", "x".repeat(200))],
                &[&"/reports/".repeat(20)],
            ),
        ] {
            let pattern = any_of(&[pattern]);
            assert!(matching.iter().all(|value| matches(&pattern, value)), "{pattern}");
            assert!(!others.iter().any(|value| matches(&pattern, value)), "{pattern}");
        }
    }

    #[test]
    fn one_of_a_thousand_is_found() {
        let tenants: Vec<_> = (0..MAX_PATTERNS).map(|number| format!("tenant-{number}")).collect();
        let any = any_of(&tenants.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(tenants.iter().all(|tenant| matches(&any, tenant)));
        assert!(!matches(&any, "tenant-1000") && !matches(&any, "tenant-") && !matches(&any, ""));
    }

    #[test]
    fn many_stars_and_a_long_value_are_little_work() {
        // A search that goes back tries more combinations than there are atoms. This one takes milliseconds.
        let almost = "ab".repeat(500_000);
        for pattern in ["*a".repeat(512), "*ab*ba".repeat(170), "*a*".repeat(300) + "c"] {
            matches(&any_of(&[&pattern]), &almost);
        }
        assert!(matches(&any_of(&[&"*a".repeat(512)]), &"a".repeat(512)));
        assert!(!matches(&any_of(&[&"*a".repeat(512)]), &"a".repeat(511)));
        assert!(!matches(&any_of(&[&("*".repeat(500) + "c")]), &almost));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        let refused = |texts: Vec<String>| {
            AnyOf::new(texts.into_iter().map(String::into_boxed_str).collect()).unwrap_err().to_string()
        };
        assert_eq!(refused(vec![]), "the number of patterns for one attribute must be from 1 to 1000, got 0");
        assert_eq!(
            refused(vec![String::from("x"); 1001]),
            "the number of patterns for one attribute must be from 1 to 1000, got 1001"
        );
        assert_eq!(
            refused(vec!["x".repeat(1025)]),
            "the length of a pattern in bytes must be from 0 to 1024, got 1025"
        );
    }
}
