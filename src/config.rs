//! Building a gate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, MonotonicClock};
use crate::control::{Control, leaves_room};
use crate::controller::{Bounds, BoundsError, Kind};
use crate::detector::Rule;
use crate::error::{ConfigError, MAX_NAME_BYTES};
use crate::gate::Gate;
use crate::monitor::Watchlist;
use crate::priority::{Priority, Thresholds};
use crate::rate::Rate;
use crate::signal::Signal;

/// Everything about a gate that can be chosen when it is built. See [`Gate::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct GateBuilder {
    pub(crate) name: Box<str>,
    pub(crate) limit: u32,
    pub(crate) thresholds: Thresholds,
    pub(crate) rate: Option<Rate>,
    pub(crate) objective: Option<Duration>,
    pub(crate) controller: Option<(Kind, Bounds)>,
    pub(crate) signals: Vec<(Signal, Rule)>,
    pub(crate) default_priority: Priority,
    pub(crate) enforce: bool,
    pub(crate) timing: bool,
    pub(crate) bare_entries: bool,
    pub(crate) directory: Option<Box<Path>>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl GateBuilder {
    pub(crate) fn new(name: &str, limit: u32) -> Self {
        Self {
            name: name.into(),
            limit,
            thresholds: Thresholds::default(),
            rate: None,
            objective: None,
            controller: None,
            signals: Vec::new(),
            default_priority: Priority::default(),
            enforce: true,
            timing: false,
            bare_entries: false,
            directory: None,
            clock: Arc::new(MonotonicClock),
        }
    }

    /// How full the gate may be for each priority still to enter.
    pub fn thresholds(mut self, thresholds: Thresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// How much may be admitted a time, besides what may be in flight; `None`, the default: any. It costs a
    /// clock reading and a swap for each admission.
    pub fn rate(mut self, rate: impl Into<Option<Rate>>) -> Self {
        self.rate = rate.into();
        self
    }

    /// The time within which an answer is good, for the controller and for the signals `latency` and `errors`;
    /// `None`, the default: every success is good. A gate with an objective times its permits, controller or not.
    pub fn objective(mut self, objective: impl Into<Option<Duration>>) -> Self {
        self.objective = objective.into();
        self
    }

    /// Has the limit moved by a controller: it starts at the bounds' prior, which takes the place of the limit
    /// that the builder was made with. The thresholds follow the limit.
    ///
    /// There is no thread: whoever comes or goes, or is turned away, when the controller wants to look does it, in some
    /// microseconds, and everybody else goes on. It costs two readings of the clock for each permit, and a fraction
    /// of one of those to count.
    ///
    /// [Bare entries](Gate::enter) are seen all together: how many, how they ended, and their mean latency, which is
    /// exact; how it varies, and how many were good, as if it were exponential. Permits are seen one by one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::Gate;
    /// use tidegate::controller::{Choice, Kind};
    ///
    /// let bounds = Choice { min: Some(4), max: Some(200), ..Choice::default() }.bounds(None)?;
    /// let gate = Gate::builder("db", 0)
    ///     .controller(Kind::Goodput, bounds)
    ///     .objective(Duration::from_secs(2))
    ///     .build()?;
    /// assert_eq!(gate.limit(), 28); // as far from 4 as from 200
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn controller(mut self, kind: Kind, bounds: Bounds) -> Self {
        self.controller = Some((kind, bounds));
        self
    }

    /// Sheds by pressure: signals, each with the rule that says what its readings mean. Each has a name of its
    /// own. It costs a clock reading for each admission; who finds that it is time to look at them looks. The signal
    /// `latency` needs an [objective](Self::objective).
    pub fn signals(mut self, signals: impl IntoIterator<Item = (Signal, Rule)>) -> Self {
        self.signals = signals.into_iter().collect();
        self
    }

    /// The priority of requests that name none. [`Priority::Critical`] unless set.
    pub fn default_priority(mut self, priority: Priority) -> Self {
        self.default_priority = priority;
        self
    }

    /// `false`: dry run. Everything is let in, and what would have been shed is counted.
    pub fn enforce(mut self, enforce: bool) -> Self {
        self.enforce = enforce;
        self
    }

    /// Whether to measure how long permits are held: two clock readings each, and 33 KiB a gate.
    pub fn timing(mut self, timing: bool) -> Self {
        self.timing = timing;
        self
    }

    /// Whether [`Gate::enter`] will be used. Then permits are put back by a checked swap from the start, and
    /// an exit too many does no harm to the count at any moment. Without it they are from the first bare
    /// entry on (see [`limitations`](crate::limitations)).
    pub fn bare_entries(mut self, bare_entries: bool) -> Self {
        self.bare_entries = bare_entries;
        self
    }

    /// Publishes the gate: its state lives in a mapped file in `directory`, one for each gate and process,
    /// which [`Published::read`](crate::Published::read) reads from any process. What a process had counted
    /// when it was killed stays readable. A fork's child gets a file of its own.
    ///
    /// A disk that is full must not end a service: there the gate works, and is not published
    /// ([`Gate::is_published`]).
    ///
    /// The directory must exist and belong to the gates of one container. Take one in memory, such as under
    /// `/dev/shm` or `/run`: on a disk, a write-back of the file can hold up whoever counts meanwhile.
    pub fn publish_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into().into_boxed_path());
        self
    }

    /// Where the gate takes the time from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the gate.
    ///
    /// # Errors
    /// [`ConfigError`] when the name, the limit, the thresholds, the objective, the signals or the directory break
    /// their rule.
    pub fn build(mut self) -> Result<Gate, ConfigError> {
        check_name(&self.name)?;
        self.agree_on_objective()?;
        let limit = self.controller.map_or(self.limit, |(_, bounds)| bounds.prior());
        let mut control = Control::new(limit, self.thresholds, self.default_priority)?;
        if let Some(controller) = self.controller {
            leaves_room(self.thresholds, self.default_priority, controller)?;
        }
        control.rate = self.rate;
        control.objective = self.objective;
        control.signals = Watchlist::new(std::mem::take(&mut self.signals), self.objective)?;
        Gate::from_parts(self, control)
    }

    /// One objective for the gate and its controller: either may have said it.
    fn agree_on_objective(&mut self) -> Result<(), BoundsError> {
        let of_bounds = self.controller.and_then(|(_, bounds)| bounds.said_objective());
        match (self.objective, of_bounds) {
            (Some(Duration::ZERO), _) => return Err(BoundsError::Objective),
            (Some(gate), Some(bounds)) if gate != bounds => {
                return Err(BoundsError::TwoObjectives { gate, bounds });
            }
            _ => {}
        }
        self.objective = self.objective.or(of_bounds);
        self.controller = self.controller.map(|(kind, bounds)| (kind, bounds.for_gate(self.objective)));
        Ok(())
    }
}

/// A name is a label that ends up in logs, metrics and C strings, so it holds nothing that can cut
/// or forge those. Anything else goes, slashes and emoji included.
pub(crate) fn check_name(name: &str) -> Result<(), ConfigError> {
    if is_name(name) { Ok(()) } else { Err(ConfigError::Name { got: name.to_owned() }) }
}

pub(crate) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}
