//! A value of the file, as one of the kinds that rules ask for.

use std::fmt::Display;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::{Notes, Table, cut};
use crate::units;

/// A value, with the key that it belongs to.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // there is no better word
pub(crate) struct Value<'d> {
    key: String,
    value: &'d Spanned<DeValue<'d>>,
    notes: &'d Notes<'d>,
}

impl<'d> Value<'d> {
    pub(super) fn new(key: String, value: &'d Spanned<DeValue<'d>>, notes: &'d Notes<'d>) -> Self {
        Self { key, value, notes }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Notes that it breaks a rule.
    pub(crate) fn refuse(&self, message: impl Display) {
        self.notes.add(self.value.span(), &self.key, message);
    }

    /// The value by `rule`; `None` where it breaks it, which is noted.
    pub(crate) fn read<T, E: Display>(&self, rule: impl FnOnce(&Self) -> Result<T, E>) -> Option<T> {
        rule(self).map_err(|message| self.refuse(message)).ok()
    }

    /// The table that it is, by `read`. What `read` did not ask for is noted as unknown.
    pub(crate) fn table<T>(&self, read: impl FnOnce(&Table<'d>) -> T) -> Option<T> {
        let Some(entries) = self.value.get_ref().as_table() else {
            self.refuse(self.not_a("a table"));
            return None;
        };
        let table = Table::new(self.key.clone(), self.value.span(), entries, self.notes);
        let read = read(&table);
        table.refuse_unknown();
        Some(read)
    }

    /// The values of the array that it is.
    pub(crate) fn array(&self) -> Result<Vec<Self>, String> {
        let array = self.value.get_ref().as_array().ok_or_else(|| self.not_a("an array"))?;
        let named = |(at, value)| Self::new(format!("{}[{}]", self.key, at + 1), value, self.notes);
        Ok(array.iter().enumerate().map(named).collect())
    }

    pub(crate) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(crate) fn is_array(&self) -> bool {
        self.value.get_ref().is_array()
    }

    pub(crate) fn string(&self) -> Result<&'d str, String> {
        self.value.get_ref().as_str().ok_or_else(|| self.not_a("a string"))
    }

    pub(crate) fn boolean(&self) -> Result<bool, String> {
        self.value.get_ref().as_bool().ok_or_else(|| self.not_a("true or false"))
    }

    /// A whole number.
    pub(crate) fn integer(&self) -> Result<i64, String> {
        self.value
            .get_ref()
            .as_integer()
            .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
            .ok_or_else(|| self.not_a("a whole number"))
    }

    /// A finite number, whole or not.
    pub(crate) fn float(&self) -> Result<f64, String> {
        let value = self.value.get_ref();
        let number = match value.as_float() {
            Some(number) => number.as_str().parse().ok(),
            #[allow(clippy::cast_precision_loss)] // a measure, not a count
            None => value
                .as_integer()
                .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
                .map(|number| number as f64),
        };
        number.filter(|number: &f64| number.is_finite()).ok_or_else(|| self.not_a("a number"))
    }

    /// A time such as `"1.5s"`; the units are those of [`units::duration`].
    pub(crate) fn duration(&self) -> Result<Duration, String> {
        units::duration(self.string().map_err(|_| self.not_a(units::A_DURATION))?)
    }

    /// What it was to be, and what it is.
    pub(crate) fn not_a(&self, kind: &str) -> String {
        format!("must be {kind}, got {}", self.shown())
    }

    /// How it stands in the file, cut short.
    pub(crate) fn shown(&self) -> String {
        let text = self.notes.text.get(self.value.span()).unwrap_or_default();
        cut(text.lines().next().unwrap_or_default())
    }
}

/// One of a few names.
pub(crate) fn one_of<'n, T: Copy>(
    names: &'n [(&'n str, T)],
) -> impl FnOnce(&Value<'_>) -> Result<T, String> + 'n {
    |value| {
        let text = value.string()?;
        let found = names.iter().find(|(name, _)| *name == text);
        found.map(|(_, one)| *one).ok_or_else(|| {
            let all: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            format!("must be one of {}, got {text:?}", all.join(", "))
        })
    }
}
