//! How much of the CPU time that it may use a process's control group uses.
//!
//! ```text
//! share = CPU seconds used / (seconds gone by x CPUs that may be used)
//! ```
//!
//! of the process's own group against all that limits it, and of each ancestor that has a quota against that
//! quota: a sibling that uses up the pod's quota throttles this container just the same. The worst of them is
//! averaged over a second. Counters are differences between two readings, so that the first says nothing. One that
//! went back (the root group's does: livekit#7102) or that ran faster than the machine could is a reading that failed.
//!
//! Throttled time is shown beside it, not counted in: a process that uses its quota in bursts is throttled at
//! half load already.

use std::time::Duration;

use super::average::Average;
use super::cgroup::{Groups, Hierarchy, Version};
use super::cores::Cores;
use super::rarely::Rarely;
use super::root::{Failed, Root};
use super::text::{keyed, number};
use super::{Detail, Reading, Source};

/// Two and a half of the kernel's periods of a quota.
const GOOD_FOR: Duration = Duration::from_millis(250);
const TAU: Duration = Duration::from_secs(1);
/// Between the clock's reading and the counter's a busy machine may take a break. What is faster than that many
/// times the machine is a counter that jumped.
const ABSURD: f64 = 4.0;

/// The CPU signal.
#[derive(Debug)]
pub struct Cpu {
    root: Root,
    budgets: Rarely<Budgets>,
    average: Average,
    read_ns: Option<u64>,
}

impl Cpu {
    /// Of this process's control group.
    #[must_use]
    pub fn new() -> Self {
        Self::below(Root::system())
    }

    pub(crate) fn below(root: Root) -> Self {
        Self { root, budgets: Rarely::new(), average: Average::new(TAU), read_ns: None }
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl Source for Cpu {
    fn read(&mut self, now_ns: u64) -> Reading {
        let Self { root, budgets, average, read_ns } = self;
        let worst =
            budgets.get(now_ns, |old| Budgets::read(root, old)).map(|budgets| budgets.worst(root, now_ns));
        let Some(Ok(Some(share))) = worst else {
            return Reading::UNKNOWN;
        };
        let elapsed = now_ns.saturating_sub(read_ns.replace(now_ns).unwrap_or(now_ns));
        average.add(share, Duration::from_nanos(elapsed)).map_or(Reading::UNKNOWN, Reading::at_most_one)
    }

    fn good_for(&self) -> Duration {
        GOOD_FOR
    }

    #[allow(clippy::cast_precision_loss)] // microseconds
    fn details(&self) -> Vec<Detail> {
        let Some(budgets) = self.budgets.value() else {
            return Vec::new();
        };
        let throttled_us = budgets.all.iter().map(|budget| budget.throttled_us).max().unwrap_or(0);
        vec![("cores", budgets.cores.usable), ("throttled_s", throttled_us as f64 / 1e6)]
    }
}

/// What there is to use, and who uses it.
#[derive(Debug)]
struct Budgets {
    cores: Cores,
    all: Vec<Budget>,
}

impl Budgets {
    fn read(root: &Root, old: Option<&Self>) -> Result<Self, Failed> {
        let groups = Groups::read(root)?;
        let cores = Cores::read(root, groups.as_ref())?;
        let mut all = groups.map_or_else(Vec::new, |groups| Budget::all(&groups, &cores));
        for budget in &mut all {
            let before = old.and_then(|old| old.all.iter().find(|old| old.files == budget.files));
            budget.last = before.and_then(|before| before.last);
        }
        Ok(Self { cores, all })
    }

    /// None where nothing can be said yet.
    fn worst(&mut self, root: &Root, now_ns: u64) -> Result<Option<f64>, Failed> {
        let absurd = ABSURD * self.cores.machine;
        // All of them are read, so that each knows its counter the next time.
        let shares: Vec<_> = self.all.iter_mut().map(|budget| budget.share(root, now_ns, absurd)).collect();
        let shares: Vec<_> = shares.into_iter().collect::<Result<_, _>>()?;
        Ok(shares.into_iter().flatten().reduce(f64::max))
    }
}

/// One group's CPU time against what it may use.
#[derive(Debug)]
struct Budget {
    files: Files,
    cores: f64,
    last: Option<Used>,
    throttled_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    us: u64,
    at_ns: u64,
}

/// Where a group's CPU time and its throttled time are.
#[derive(Debug, PartialEq, Eq)]
enum Files {
    /// `cpu.stat` has both.
    Two { stat: String },
    /// `cpuacct.usage` has the one, `cpu.stat` of the same group the other.
    One { usage: String, stat: Option<String> },
}

impl Budget {
    fn new(files: Files, cores: f64) -> Self {
        Self { files, cores, last: None, throttled_us: 0 }
    }

    fn all(groups: &Groups, cores: &Cores) -> Vec<Self> {
        let Some(accounts) = groups.of("cpuacct") else {
            return Vec::new();
        };
        let limits = groups.of("cpu").filter(|limits| limits.has_groups_of(&accounts));
        let limits: Vec<_> = limits.iter().flat_map(Hierarchy::levels).collect();
        let levels = accounts.levels().enumerate();
        levels
            .filter_map(|(level, group)| {
                let quota = cores.quotas.get(level).copied().filter(|quota| quota.is_finite());
                let cores = if level == 0 { cores.usable } else { quota.filter(|_| level < limits.len())? };
                Some(Self::new(Files::of(accounts.version, &group, limits.get(level)), cores))
            })
            .collect()
    }

    /// The share since the last time; None the first time.
    #[allow(clippy::cast_precision_loss)] // microseconds and nanoseconds between two readings
    fn share(&mut self, root: &Root, now_ns: u64, absurd: f64) -> Result<Option<f64>, Failed> {
        let us = self.files.usage_us(root, &mut self.throttled_us)?;
        let Some(last) = self.last.replace(Used { us, at_ns: now_ns }) else {
            return Ok(None);
        };
        let used_us = us.checked_sub(last.us).ok_or(Failed)?;
        let elapsed_ns = now_ns.checked_sub(last.at_ns).filter(|&ns| ns > 0).ok_or(Failed)?;
        let busy = used_us as f64 * 1e3 / elapsed_ns as f64;
        if busy > absurd { Err(Failed) } else { Ok(Some((busy / self.cores).min(1.0))) }
    }
}

impl Files {
    fn of(version: Version, group: &str, limits: Option<&String>) -> Self {
        match version {
            Version::Two => Self::Two { stat: format!("{group}/cpu.stat") },
            Version::One => Self::One {
                usage: format!("{group}/cpuacct.usage"),
                stat: limits.map(|group| format!("{group}/cpu.stat")),
            },
        }
    }

    fn usage_us(&self, root: &Root, throttled_us: &mut u64) -> Result<u64, Failed> {
        match self {
            Self::Two { stat } => {
                let stat = root.read(stat)?.ok_or(Failed)?;
                // Missing where the controller is off.
                *throttled_us = keyed(&stat, "throttled_usec").unwrap_or(*throttled_us);
                keyed(&stat, "usage_usec")
            }
            Self::One { usage, stat } => {
                if let Some(stat) = stat.as_ref().and_then(|stat| root.read(stat).ok().flatten()) {
                    *throttled_us = keyed(&stat, "throttled_time").map_or(*throttled_us, |ns| ns / 1_000);
                }
                Ok(number(&root.read(usage)?.ok_or(Failed)?)? / 1_000)
            }
        }
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests;
