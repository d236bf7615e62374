//! Whether a stage is about to collapse, from what is seen of it so far. Pure.
//!
//! What is inside and does not get out shows long before the first request runs into its timeout: by Little's law
//! (L = lambda W; Little, Operations Research 9, 1961) whoever comes last waits for inside / completion rate. Where
//! that is more than half of the timeout, and more came than left by three standard deviations of a Poisson count,
//! the stage is stopped. So the target is spared the timeouts, whose abandoned work would keep it from
//! recovering.

use std::collections::VecDeque;

use super::binomial::{CONFIDENCE, lower};
use super::fault::{CapacityError, positive};

/// The share of answers that may be late or failed.
pub(super) const BAD_SHARE: f64 = 0.01;
/// How many standard deviations more have come than have left.
const DEVIATIONS: f64 = 3.0;
/// The share of the timeout that whoever comes last may have to wait.
const WAIT_SHARE: f64 = 0.5;
/// The share of the timeout over which completions are counted ...
const WINDOW_SHARE: f64 = 0.5;
/// ... and before which nothing is said: a system that fills has not completed much yet.
const SILENT_SHARE: f64 = 0.75;
/// The share of the timeout for which it has to look bad without a break: some get out in bursts.
const LASTING_SHARE: f64 = 0.1;

/// What was seen since a stage began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Glance {
    /// Seconds since it began.
    pub at: f64,
    /// How many came.
    pub offered: u64,
    /// Answered in time.
    pub good: u64,
    /// Not answered in time.
    pub late: u64,
    /// Answered with an error.
    pub failed: u64,
    /// How many are inside now.
    pub in_flight: u64,
}

impl Glance {
    fn left(&self) -> u64 {
        self.good + self.late + self.failed
    }
}

/// Looks at one stage.
#[derive(Clone, Debug)]
pub struct Watch {
    timeout: f64,
    recent: VecDeque<Glance>,
    /// Since when it has looked bad.
    since: Option<f64>,
}

/// Why a stage is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alarm {
    /// What comes in does not get out: whoever comes last waits so many seconds.
    Backlog(f64),
    /// Too many are late or failed: so many, of so many.
    Bad(u64, u64),
}

impl Watch {
    /// A watch for a stage of requests with this timeout, in seconds.
    ///
    /// # Errors
    /// [`CapacityError`]: no timeout.
    pub fn new(timeout: f64) -> Result<Self, CapacityError> {
        positive("timeout", timeout)?;
        Ok(Self { timeout, recent: VecDeque::from([Glance::default()]), since: None })
    }

    /// Takes note of what was seen; an alarm says that the stage should be stopped now.
    pub fn see(&mut self, now: Glance) -> Option<Alarm> {
        let window = WINDOW_SHARE * self.timeout;
        // The first of those kept is the last that is a window old.
        while self.recent.get(1).is_some_and(|next| next.at <= now.at - window) {
            self.recent.pop_front();
        }
        let first = self.recent.front().copied().unwrap_or_default();
        self.recent.push_back(now);
        let (bad, left) = (now.late + now.failed, now.left());
        if bad > 0 && lower(bad, left, CONFIDENCE) > BAD_SHARE {
            return Some(Alarm::Bad(bad, left));
        }
        if now.at < SILENT_SHARE * self.timeout {
            return None;
        }
        let done = now.left().saturating_sub(first.left());
        let wait = wait(now.in_flight, done, now.at - first.at);
        if !(grows(now.offered, left) && wait > WAIT_SHARE * self.timeout) {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now.at);
        (now.at - since >= LASTING_SHARE * self.timeout).then_some(Alarm::Backlog(wait))
    }
}

/// Whether more came than left, beyond chance.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
pub(super) fn grows(offered: u64, left: u64) -> bool {
    offered.saturating_sub(left) as f64 > DEVIATIONS * (offered as f64).sqrt()
}

/// For how long whoever comes last waits, by Little's law.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
fn wait(in_flight: u64, done: u64, seconds: f64) -> f64 {
    if done == 0 { f64::INFINITY } else { in_flight as f64 * seconds / done as f64 }
}

/// The same of a whole stage, by averages.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
pub(super) fn waits_too_long(in_flight: f64, done: u64, seconds: f64, timeout: f64) -> bool {
    in_flight * seconds > WAIT_SHARE * timeout * done as f64
}

impl std::fmt::Display for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Backlog(wait) if wait.is_finite() => {
                write!(f, "more comes in than gets out: whoever comes last would wait {wait:.3} s")
            }
            Self::Backlog(_) => write!(f, "nothing gets out any more"),
            Self::Bad(bad, of) => write!(f, "{bad} of {of} were late or failed"),
        }
    }
}
