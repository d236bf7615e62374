//! What is counted, and for how long things took.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Serialize, Serializer};

use crate::histogram::Histogram;
use crate::shed::{REASONS, Reason};

/// Attempts of clients, by what became of them.
///
/// At any moment `offered = good + late + shed + those inside whom a client waits for`, and `offered =
/// admitted + would_shed + shed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Attempts: first ones and retries.
    pub offered: u64,
    /// Of these, those that are no retries: as many as there are users.
    pub first_attempts: u64,
    /// Let in by the gate, or because there is none.
    pub admitted: u64,
    /// Let in by a dry run, although enforcement would have shed them.
    pub would_shed: u64,
    /// Turned away, by [`Reason`].
    pub shed_by_reason: [u64; REASONS],
    /// Answered while the client waited; counted at that moment.
    pub good: u64,
    /// Let in, and not answered when the client's timeout came; counted at that moment.
    pub late: u64,
    /// Late ones whose work was cancelled.
    pub cancelled: u64,
    /// Late ones whose work went on and came to its end; counted at that moment.
    pub wasted: u64,
}

impl Tally {
    /// All that were turned away.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.shed_by_reason.iter().sum()
    }

    /// Turned away for this reason.
    #[must_use]
    pub fn shed_for(&self, reason: Reason) -> u64 {
        self.shed_by_reason[reason as usize]
    }

    /// Attempts that were no first ones.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.offered - self.first_attempts
    }

    /// Late ones among those that were let in and came to something; `None` where nothing did.
    #[must_use]
    pub fn error_rate(&self) -> Option<f64> {
        ratio(self.late, self.good + self.late)
    }

    /// Sheds among the attempts; `None` where there were none.
    #[must_use]
    pub fn shed_share(&self) -> Option<f64> {
        ratio(self.shed(), self.offered)
    }
}

#[allow(clippy::cast_precision_loss)] // far fewer than 2^52
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        self.offered += other.offered;
        self.first_attempts += other.first_attempts;
        self.admitted += other.admitted;
        self.would_shed += other.would_shed;
        for (sum, more) in self.shed_by_reason.iter_mut().zip(other.shed_by_reason) {
            *sum += more;
        }
        self.good += other.good;
        self.late += other.late;
        self.cancelled += other.cancelled;
        self.wasted += other.wasted;
    }
}

impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written {
            offered: u64,
            first_attempts: u64,
            retries: u64,
            admitted: u64,
            would_shed: u64,
            shed: u64,
            shed_by_reason: BTreeMap<&'static str, u64>,
            good: u64,
            late: u64,
            cancelled: u64,
            wasted: u64,
            error_rate: Option<f64>,
            shed_share: Option<f64>,
        }
        let by_reason = Reason::ALL.map(|reason| (reason.name(), self.shed_for(reason)));
        Written {
            offered: self.offered,
            first_attempts: self.first_attempts,
            retries: self.retries(),
            admitted: self.admitted,
            would_shed: self.would_shed,
            shed: self.shed(),
            shed_by_reason: by_reason.into_iter().filter(|(_, count)| *count > 0).collect(),
            good: self.good,
            late: self.late,
            cancelled: self.cancelled,
            wasted: self.wasted,
            error_rate: self.error_rate(),
            shed_share: self.shed_share(),
        }
        .serialize(serializer)
    }
}

/// For how long things took, in seconds; `None` where there were none. The mean and the longest are exact,
/// the others within 1.6 %, from 1 us to 71 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The mean.
    pub mean_s: Option<f64>,
    /// Half took no longer.
    pub p50_s: Option<f64>,
    /// 95 % took no longer.
    pub p95_s: Option<f64>,
    /// 99 % took no longer.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// Times as they come.
#[derive(Clone, Debug)]
pub(super) struct Times {
    histogram: Histogram,
    count: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Times {
    pub(super) fn new() -> Self {
        Self { histogram: Histogram::empty(), count: 0, sum_ns: 0, max_ns: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, ns: u64) {
        self.histogram.add(ns);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.histogram.add_all(&other.histogram);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(super) fn clear(&mut self) {
        if self.count > 0 {
            *self = Self::new();
        }
    }

    #[cfg(feature = "capacity")]
    pub(super) fn into_histogram(self) -> Histogram {
        self.histogram
    }

    pub(super) fn read(&self) -> Latency {
        if self.count == 0 {
            return Latency::default();
        }
        let max_s = seconds(self.max_ns);
        // The middle of a bucket may lie beyond what is in it.
        let quantile = |q| self.histogram.quantile(q).map(|time| time.as_secs_f64().min(max_s));
        #[allow(clippy::cast_precision_loss)] // far fewer than 2^52
        let mean_s = self.sum_ns as f64 / self.count as f64 / 1e9;
        Latency {
            count: self.count,
            mean_s: Some(mean_s),
            p50_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: Some(max_s),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // 2^53 ns are 104 days, and nobody needs them to the nanosecond
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
