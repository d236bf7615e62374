//! From what is known of a request to its priority, by rules.
//!
//! Rules are ordered, and the first that matches decides. A request is any set of named texts; what it is asked
//! for is asked once, and only when a rule gets there. Nothing is allocated.

mod pattern;
mod rule;

use std::collections::HashMap;
use std::fmt;

use self::pattern::{AnyOf, Pairs, check_size};
pub use self::rule::{Match, Rule};
use crate::error::ConfigError;
use crate::priority::Priority;

/// The most rules of a classifier.
const MAX_RULES: usize = 1000;

/// The most attributes that its rules may ask for. The values lie on the stack.
const MAX_ATTRIBUTES: usize = 32;

/// Tells the priority of a request by ordered rules.
///
/// ```
/// use tidegate::{Classifier, Match, Priority, Rule};
///
/// let reports = Match::new().when("method", ["GET"])?.when("path", ["/reports/*"])?;
/// let rules = [Rule::new(reports, Priority::Sheddable)?.named("reports")?];
/// let classifier = Classifier::new(rules, Some(Priority::Critical))?;
///
/// let request = |name: &str| match name {
///     "method" => Some("GET"),
///     "path" => Some("/reports/2026"),
///     _ => None,
/// };
/// assert_eq!(classifier.classify(request), Some(Priority::Sheddable));
/// assert_eq!(
///     classifier.explain(request).to_string(),
///     r#"sheddable, by rule 1 "reports": method = "GET", path = "/reports/*""#
/// );
/// # Ok::<(), tidegate::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Box<[Rule]>,
    default: Option<Priority>,
    attributes: Box<[Box<str>]>,
    /// What each rule asks for, by the position of the attribute.
    conditions: Box<[Box<[Condition]>]>,
}

#[derive(Clone, Debug)]
struct Condition {
    attribute: usize,
    patterns: AnyOf,
    /// A bit of its own where several rules have it, so that it is looked at once; else none.
    shared: u64,
}

impl Classifier {
    /// A classifier of these rules, in this order. Requests that none of them matches have the `default`; without
    /// one the classifier leaves them to whoever asks next, such as the gate with its own default.
    ///
    /// # Errors
    /// [`ConfigError::Size`] for more than 1000 rules, or more than 32 attributes that they ask for.
    pub fn new(
        rules: impl IntoIterator<Item = Rule>,
        default: Option<Priority>,
    ) -> Result<Self, ConfigError> {
        let rules: Box<[Rule]> = rules.into_iter().collect();
        check_size("the number of rules", 0, MAX_RULES, rules.len())?;
        let mut attributes: Vec<Box<str>> = Vec::new();
        let mut uses: HashMap<&(Box<str>, AnyOf), u32> = HashMap::new();
        for named in rules.iter().flat_map(|rule| rule.matching().attributes()) {
            if !attributes.contains(&named.0) {
                attributes.push(named.0.clone());
            }
            *uses.entry(named).or_default() += 1;
        }
        check_size("the number of attributes that rules ask for", 0, MAX_ATTRIBUTES, attributes.len())?;
        uses.retain(|_, count| *count > 1);
        let bits: HashMap<_, u64> = uses.into_keys().zip((0..u64::BITS).map(|bit| 1 << bit)).collect();
        let condition = |named: &(Box<str>, AnyOf)| Condition {
            attribute: attributes.iter().position(|known| *known == named.0).unwrap_or_default(),
            patterns: named.1.clone(),
            shared: bits.get(named).copied().unwrap_or_default(),
        };
        let conditions =
            rules.iter().map(|rule| rule.matching().attributes().iter().map(condition).collect()).collect();
        Ok(Self { rules, default, attributes: attributes.into(), conditions })
    }

    /// The two classes of a request that is served or not: what matches any of these is essential
    /// ([`Priority::Critical`]), and everything else is not ([`Priority::Sheddable`]).
    ///
    /// # Errors
    /// As [`Rule::new`] and [`new`](Self::new).
    pub fn essential(matches: impl IntoIterator<Item = Match>) -> Result<Self, ConfigError> {
        let rules: Result<Vec<_>, _> =
            matches.into_iter().map(|matching| Rule::new(matching, Priority::Critical)).collect();
        Self::new(rules?, Some(Priority::Sheddable))
    }

    /// The priority of a request; `None` where no rule matches and there is no default.
    ///
    /// `lookup` gives the value of an attribute by its name, and `None` where the request lacks it.
    #[inline]
    pub fn classify<V: AsRef<str>>(&self, mut lookup: impl FnMut(&str) -> Option<V>) -> Option<Priority> {
        self.classify_by_position(|at| lookup(&self.attributes[at]))
    }

    /// As [`classify`](Self::classify), where `lookup` is given the attribute's position in
    /// [`attributes`](Self::attributes): for who prepares something for each of them.
    #[inline]
    pub fn classify_by_position<V: AsRef<str>>(
        &self,
        lookup: impl FnMut(usize) -> Option<V>,
    ) -> Option<Priority> {
        self.first_match(lookup).map_or(self.default, |at| Some(self.rules[at].priority()))
    }

    /// The priority of a request, and why it has it.
    pub fn explain<V: AsRef<str>>(&self, mut lookup: impl FnMut(&str) -> Option<V>) -> Explanation<'_> {
        self.explain_by_position(|at| lookup(&self.attributes[at]))
    }

    /// As [`explain`](Self::explain), by position as [`classify_by_position`](Self::classify_by_position).
    pub fn explain_by_position<V: AsRef<str>>(
        &self,
        lookup: impl FnMut(usize) -> Option<V>,
    ) -> Explanation<'_> {
        match self.first_match(lookup) {
            Some(at) => {
                let rule = &self.rules[at];
                Explanation { priority: Some(rule.priority()), rule: Some((at + 1, rule)) }
            }
            None => Explanation { priority: self.default, rule: None },
        }
    }

    /// The attributes that the rules ask for, each once, in the order in which they are first named.
    #[must_use]
    pub fn attributes(&self) -> &[Box<str>] {
        &self.attributes
    }

    /// The rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What requests have that no rule matches.
    #[must_use]
    pub fn default_priority(&self) -> Option<Priority> {
        self.default
    }

    #[inline]
    fn first_match<V: AsRef<str>>(&self, mut lookup: impl FnMut(usize) -> Option<V>) -> Option<usize> {
        let mut values = [const { None }; MAX_ATTRIBUTES];
        let (mut seen, mut held) = (0, 0); // of the conditions that are shared
        self.conditions.iter().position(|conditions| {
            conditions.iter().all(|Condition { attribute, patterns, shared }| {
                if seen & shared != 0 {
                    return held & shared != 0;
                }
                let value = values[*attribute].get_or_insert_with(|| {
                    lookup(*attribute).map(|value| (Pairs::of_value(value.as_ref()), value))
                });
                let holds =
                    value.as_ref().is_some_and(|(pairs, value)| patterns.matches(value.as_ref(), *pairs));
                seen |= shared;
                held |= if holds { *shared } else { 0 };
                holds
            })
        })
    }
}

/// Why a request has its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation<'c> {
    /// What [`Classifier::classify`] answers.
    pub priority: Option<Priority>,
    /// The rule that matches, with its number from 1; `None` where none does.
    pub rule: Option<(usize, &'c Rule)>,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((number, rule)) = self.rule else {
            return match self.priority {
                Some(priority) => write!(f, "{priority}, by default: no rule matches"),
                None => f.write_str("undecided: no rule matches, and there is no default"),
            };
        };
        write!(f, "{}, by rule {number}", rule.priority())?;
        if let Some(name) = rule.name() {
            write!(f, " {name:?}")?;
        }
        write!(f, ": {}", rule.matching())
    }
}

#[cfg(test)]
mod tests;
