//! One rule of a classifier: what a request must look like, and the priority that it then has.

use std::fmt;

use super::pattern::AnyOf;
use crate::config::{check_name, is_name};
use crate::error::ConfigError;
use crate::priority::Priority;

const METHOD: &str = "method";
const HEADER: &str = "header.";

/// What a request must look like: for each attribute that is named, one of the patterns must match its value.
///
/// A pattern is the value itself, or has `*` for any characters, slashes among them and possibly none. It has to
/// match the whole value, in upper and lower case as written. A request that lacks the attribute does not match,
/// not even `*`.
///
/// Attributes have any names. Two kinds are known to be written differently from what a request has, and are
/// brought to its form: the name of a header (`header.X-Plan` is `header.x-plan`) and the pattern of a `method`
/// (`get` is `GET`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    attributes: Vec<(Box<str>, AnyOf)>,
}

impl Match {
    /// Matches nothing yet: see [`when`](Self::when).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// ... and `attribute` must match one of `patterns`.
    ///
    /// # Errors
    /// [`ConfigError::Attribute`] for a name that is none, [`ConfigError::AttributeTwice`] for one that this match
    /// has already, and [`ConfigError::Size`] for no pattern, more than 1000, or one beyond 1024 bytes.
    pub fn when<P: AsRef<str>>(
        mut self,
        attribute: &str,
        patterns: impl IntoIterator<Item = P>,
    ) -> Result<Self, ConfigError> {
        if !is_name(attribute) {
            return Err(ConfigError::Attribute { got: attribute.to_owned() });
        }
        let attribute: Box<str> = match attribute.split_at_checked(HEADER.len()) {
            Some((HEADER, name)) => format!("{HEADER}{}", name.to_ascii_lowercase()).into(),
            _ => attribute.into(),
        };
        if self.attributes.iter().any(|(known, _)| *known == attribute) {
            return Err(ConfigError::AttributeTwice { got: attribute.into() });
        }
        let in_form = |pattern: P| match &*attribute {
            METHOD => pattern.as_ref().to_ascii_uppercase().into(),
            _ => pattern.as_ref().into(),
        };
        let patterns = AnyOf::new(patterns.into_iter().map(in_form).collect())?;
        self.attributes.push((attribute, patterns));
        Ok(self)
    }

    pub(super) fn attributes(&self) -> &[(Box<str>, AnyOf)] {
        &self.attributes
    }
}

/// In the form that a configuration file has it: `method = "GET", path = "/reports/*"`.
impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (attribute, patterns)) in self.attributes.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{attribute} = {patterns}")?;
        }
        Ok(())
    }
}

/// A priority, and the requests that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    matching: Match,
    priority: Priority,
    name: Option<Box<str>>,
}

impl Rule {
    /// Requests that look like `matching` have `priority`.
    ///
    /// # Errors
    /// [`ConfigError::EmptyMatch`] when `matching` has no attribute. It would be the default by another name, and
    /// hide all rules behind it; more likely somebody forgot something.
    pub fn new(matching: Match, priority: Priority) -> Result<Self, ConfigError> {
        if matching.attributes.is_empty() {
            return Err(ConfigError::EmptyMatch);
        }
        Ok(Self { matching, priority, name: None })
    }

    /// Gives the rule a name, for explanations.
    ///
    /// # Errors
    /// [`ConfigError::Name`] when it is empty, too long or holds a control character.
    pub fn named(mut self, name: &str) -> Result<Self, ConfigError> {
        check_name(name)?;
        self.name = Some(name.into());
        Ok(self)
    }

    /// What a request must look like.
    #[must_use]
    pub fn matching(&self) -> &Match {
        &self.matching
    }

    /// What it then has.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Its name, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}
