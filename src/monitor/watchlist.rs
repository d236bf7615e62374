//! Which signals are watched, and by which rules.

use std::sync::Arc;
use std::time::Duration;

use crate::config::check_name;
use crate::detector::Rule;
use crate::error::ConfigError;
use crate::signal::{Kind, Signal};

/// Signals with their rules. Clones are the same signals, with what they have read.
#[derive(Clone, Debug)]
pub(crate) struct Watchlist(Arc<[(Arc<Signal>, Rule)]>);

impl Watchlist {
    /// Checked: each has a name of its own, and what is measured against an objective has one.
    pub(crate) fn new(
        signals: impl IntoIterator<Item = (Signal, Rule)>,
        objective: Option<Duration>,
    ) -> Result<Self, ConfigError> {
        let list = Self::unchecked(signals);
        for (at, (signal, _)) in list.iter().enumerate() {
            let name = signal.name();
            check_name(name)?;
            if list.iter().take(at).any(|(before, _)| before.name() == name) {
                return Err(ConfigError::SignalTwice { got: name.to_owned() });
            }
            if signal.kind() == Some(Kind::Latency) && objective.is_none() {
                return Err(ConfigError::SignalObjective { name: name.to_owned() });
            }
        }
        Ok(list)
    }

    pub(crate) fn unchecked(signals: impl IntoIterator<Item = (Signal, Rule)>) -> Self {
        Self(signals.into_iter().map(|(signal, rule)| (Arc::new(signal), rule)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &(Arc<Signal>, Rule)> {
        self.0.iter()
    }

    /// What `next` says, with the signals of this list where they are the same.
    pub(crate) fn becoming(&self, next: &Self) -> Self {
        let kept = |(signal, rule): &(Arc<Signal>, Rule)| {
            let before = self.0.iter().map(|(before, _)| before).find(|before| *before == signal);
            (Arc::clone(before.unwrap_or(signal)), *rule)
        };
        Self(next.0.iter().map(kept).collect())
    }

    /// The place of this very signal.
    pub(crate) fn place(&self, signal: &Arc<Signal>) -> Option<usize> {
        self.0.iter().position(|(own, _)| Arc::ptr_eq(own, signal))
    }

    /// Whether it is this very list.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The same with nothing read yet.
    pub(crate) fn renewed(&self) -> Self {
        Self::unchecked(self.0.iter().map(|(signal, rule)| (signal.renewed(), *rule)))
    }
}

/// The same signals by the same rules, whatever they have read.
impl PartialEq for Watchlist {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
