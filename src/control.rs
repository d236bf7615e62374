//! The configuration that setters change, behind a lock that no admission takes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::controlled::Steered;
use crate::controller::{Bounds, Kind};
use crate::error::{ConfigError, MAX_LIMIT};
use crate::monitor::Watchlist;
use crate::priority::{Priority, Thresholds};
use crate::rate::Rate;
use crate::state::{Config, Flags};
use crate::word::View;

/// Limit changes that are remembered.
const HISTORY: usize = 64;

/// One change of a gate's limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitChange {
    /// When, on the gate's clock.
    pub at_ns: u64,
    /// The limit before.
    pub from: u32,
    /// The limit from then on.
    pub to: u32,
    /// Why, as the caller gave it.
    pub cause: Option<Box<str>>,
}

/// What is configured, and how it came to be so.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) limit: u32,
    pub(crate) thresholds: Thresholds,
    pub(crate) default_priority: Priority,
    pub(crate) rate: Option<Rate>,
    /// An answer within it is good.
    pub(crate) objective: Option<Duration>,
    /// What sheds by pressure.
    pub(crate) signals: Watchlist,
    /// What moves the limit.
    pub(crate) steered: Option<Steered>,
    /// How many moves there have been, of whatever controllers: those who are told of them count on.
    pub(crate) moves: u64,
    /// The last changes, each with the number of the controller's move that it was.
    pub(crate) history: VecDeque<(Option<u64>, LimitChange)>,
    /// The rest of the configuration as it was when the last fork began: what is published is the parent's by
    /// the time the child could read it.
    pub(crate) at_fork: Option<(View, Flags)>,
}

impl Control {
    pub(crate) fn new(
        limit: u32,
        thresholds: Thresholds,
        default_priority: Priority,
    ) -> Result<Self, ConfigError> {
        let limit = limit_from(limit)?;
        thresholds.validate(limit)?;
        Ok(Self {
            limit,
            thresholds,
            default_priority,
            rate: None,
            objective: None,
            signals: Watchlist::unchecked([]),
            steered: None,
            moves: 0,
            history: VecDeque::new(),
            at_fork: None,
        })
    }

    /// Stores what admissions rest on. A rate closes the short way in, and so do signals, and measuring.
    pub(crate) fn store_thresholds(&self, config: &Config) {
        let plain = self.rate.is_none() && self.signals.is_empty();
        let short_way = plain && !config.flags().has(Flags::MEASURED);
        config.store_thresholds(self.thresholds.at(self.limit), short_way);
    }

    /// Sets the limit, and notes it in the history.
    pub(crate) fn set_limit(&mut self, limit: u32, cause: Option<&str>, at_ns: u64) -> LimitChange {
        self.note(None, limit, cause, at_ns)
    }

    /// The same, as the next move of the controller.
    pub(crate) fn move_limit(&mut self, limit: u32, cause: &str, at_ns: u64) {
        self.moves += 1;
        self.note(Some(self.moves), limit, Some(cause), at_ns);
    }

    fn note(&mut self, number: Option<u64>, limit: u32, cause: Option<&str>, at_ns: u64) -> LimitChange {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        let change = LimitChange { at_ns, from: self.limit, to: limit, cause: cause.map(Box::from) };
        self.history.push_back((number, change.clone()));
        self.limit = limit;
        change
    }
}

/// A controller learns from answers. At its least limit there must be room for those who come, or it never rises again.
///
/// # Errors
/// [`ConfigError::NoRoom`].
pub(crate) fn leaves_room(
    thresholds: Thresholds,
    priority: Priority,
    (kind, bounds): (Kind, Bounds),
) -> Result<(), ConfigError> {
    let left_at = |limit| thresholds.at(limit)[priority.level()];
    // Who is let in at no limit at all is not who comes.
    if kind == Kind::Fixed || left_at(bounds.min()) > 0 || left_at(bounds.max()) == 0 {
        return Ok(());
    }
    Err(ConfigError::NoRoom { min: bounds.min(), priority })
}

/// A limit from any whole number, for bindings to languages whose numbers are signed or larger.
///
/// # Errors
/// [`ConfigError::Limit`] outside 0 to 2^31 - 1.
pub fn limit_from<N: Copy + ToString + TryInto<u32>>(number: N) -> Result<u32, ConfigError> {
    match number.try_into() {
        Ok(limit @ 0..=MAX_LIMIT) => Ok(limit),
        _ => Err(ConfigError::Limit { got: number.to_string() }),
    }
}
