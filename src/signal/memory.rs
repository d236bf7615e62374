//! How much of its memory limit a control group has in use.
//!
//! ```text
//! share = (memory in use - file pages that nobody used lately) / limit
//! ```
//!
//! for the process's own group and each ancestor with a limit; the worst of them. What is subtracted is page cache
//! that the kernel drops before it kills anybody: a database or a log writer fills any limit with it within
//! hours. Not averaged: memory does not flutter, and the end of it is sudden.
//!
//! Without a limit it is the machine that runs out: what of it is not available.

use std::time::Duration;

use super::cgroup::{Groups, Version};
use super::rarely::Rarely;
use super::root::{Failed, Found, Root};
use super::text::{byte_limit, keyed, number};
use super::{Detail, Reading, Source};

const GOOD_FOR: Duration = Duration::from_millis(500);

/// The memory signal.
#[derive(Debug)]
pub struct Memory {
    root: Root,
    limits: Rarely<Vec<Limit>>,
}

impl Memory {
    /// Of this process's control group.
    #[must_use]
    pub fn new() -> Self {
        Self::below(Root::system())
    }

    pub(crate) fn below(root: Root) -> Self {
        Self { root, limits: Rarely::new() }
    }

    fn share(&mut self, now_ns: u64) -> Result<f64, Failed> {
        let Self { root, limits } = self;
        let limits = limits.get(now_ns, |_| Limit::all(root)).ok_or(Failed)?;
        if limits.is_empty() {
            return machine_share(root);
        }
        limits.iter().try_fold(0.0, |worst, limit| Ok(limit.share(root)?.max(worst)))
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Source for Memory {
    fn read(&mut self, now_ns: u64) -> Reading {
        self.share(now_ns).map_or(Reading::UNKNOWN, Reading::at_most_one)
    }

    fn good_for(&self) -> Duration {
        GOOD_FOR
    }

    #[allow(clippy::cast_precision_loss)] // bytes
    fn details(&self) -> Vec<Detail> {
        let limits = self.limits.value().into_iter().flatten();
        let least = limits.map(|limit| limit.bytes).min();
        least.map(|bytes| ("limit_bytes", bytes as f64)).into_iter().collect()
    }
}

/// A group that has a limit.
#[derive(Debug)]
struct Limit {
    group: String,
    version: Version,
    bytes: u64,
}

impl Limit {
    fn all(root: &Root) -> Result<Vec<Self>, Failed> {
        let Some(memory) = Groups::read(root)?.and_then(|groups| groups.of("memory")) else {
            return Ok(Vec::new());
        };
        // More than there is cannot be reached.
        let machine = meminfo(root, "MemTotal:").unwrap_or(u64::MAX);
        let version = memory.version;
        let limit = |group: String| match bytes(root, version, &group) {
            Ok(Some(bytes)) if bytes <= machine => Some(Ok(Self { group, version, bytes })),
            Ok(_) => None,
            Err(Failed) => Some(Err(Failed)),
        };
        memory.levels().filter_map(limit).collect()
    }

    #[allow(clippy::cast_precision_loss)] // bytes
    fn share(&self, root: &Root) -> Result<f64, Failed> {
        let (used, idle_cache) = match self.version {
            Version::Two => ("memory.current", "inactive_file"),
            // The sum over the group and all below it, as the usage is.
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
        };
        let file = |name| root.read(&format!("{}/{name}", self.group))?.ok_or(Failed);
        let used = number(&file(used)?)?;
        let idle_cache = keyed(&file("memory.stat")?, idle_cache)?;
        Ok(used.saturating_sub(idle_cache) as f64 / self.bytes as f64)
    }
}

fn bytes(root: &Root, version: Version, group: &str) -> Found<u64> {
    let name = match version {
        Version::Two => "memory.max",
        Version::One => "memory.limit_in_bytes",
    };
    root.read(&format!("{group}/{name}"))?.map_or(Ok(None), |text| byte_limit(&text))
}

fn meminfo(root: &Root, key: &str) -> Result<u64, Failed> {
    let kilobytes = keyed(&root.read("/proc/meminfo")?.ok_or(Failed)?, key)?;
    kilobytes.checked_mul(1_024).ok_or(Failed)
}

#[allow(clippy::cast_precision_loss)] // bytes
fn machine_share(root: &Root) -> Result<f64, Failed> {
    let (total, available) = (meminfo(root, "MemTotal:")?, meminfo(root, "MemAvailable:")?);
    let used = total.checked_sub(available).filter(|_| total > 0).ok_or(Failed)?;
    Ok(used as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::fake::Tree;

    const GIGABYTE: u64 = 1 << 30;
    const GROUP: &str = "sys/fs/cgroup/pod/app";

    fn read(tree: &Tree) -> Option<f64> {
        Memory::below(tree.root()).read(0).value()
    }

    fn version_two(group: &str, limit: &str, used: u64, idle_cache: u64) -> Tree {
        let tree = Tree::version_two("/pod/app");
        tree.write(&format!("{group}/memory.max"), limit);
        tree.write(&format!("{group}/memory.current"), format!("{used}\n"));
        let stat = format!("anon 1\nactive_file 7\ninactive_file {idle_cache}\n");
        tree.write(&format!("{group}/memory.stat"), stat);
        tree
    }

    #[test]
    fn idle_cache_does_not_count() {
        let tree = version_two(GROUP, "1073741824\n", GIGABYTE, GIGABYTE / 4);
        assert_eq!(read(&tree), Some(0.75));
        tree.write(&format!("{GROUP}/memory.stat"), format!("inactive_file {}\n", 2 * GIGABYTE));
        assert_eq!(read(&tree), Some(0.0), "read a moment later, it may be more than was in use");
    }

    #[test]
    fn the_worst_of_all_limits_counts() {
        let tree = version_two(GROUP, "1073741824\n", GIGABYTE / 2, 0);
        assert_eq!(read(&tree), Some(0.5));
        tree.write("sys/fs/cgroup/pod/memory.max", format!("{}\n", 2 * GIGABYTE));
        tree.write("sys/fs/cgroup/pod/memory.current", format!("{}\n", GIGABYTE / 2 * 3));
        tree.write("sys/fs/cgroup/pod/memory.stat", "inactive_file 0\n");
        assert_eq!(read(&tree), Some(0.75), "its siblings fill the pod");
        tree.write(&format!("{GROUP}/memory.current"), format!("{}\n", GIGABYTE / 8 * 7));
        assert_eq!(read(&tree), Some(0.875), "or it fills its own");
    }

    #[test]
    fn without_a_limit_it_is_the_machine() {
        assert_eq!(read(&version_two(GROUP, "max\n", GIGABYTE, 0)), Some(0.5));
        let beyond = (65 * GIGABYTE).to_string();
        assert_eq!(read(&version_two(GROUP, &beyond, GIGABYTE, 0)), Some(0.5), "a limit beyond the machine");
        assert_eq!(read(&Tree::new()), None);
    }

    #[test]
    fn version_one_sums_up_the_group() {
        let tree = Tree::version_one("/docker/abc");
        let group = "sys/fs/cgroup/memory/docker/abc";
        tree.write(&format!("{group}/memory.limit_in_bytes"), "9223372036854771712\n");
        assert_eq!(read(&tree), Some(0.5), "no limit: the machine");
        tree.write(&format!("{group}/memory.limit_in_bytes"), "1073741824\n");
        assert_eq!(read(&tree), None, "a limit, and no usage");
        tree.write(&format!("{group}/memory.usage_in_bytes"), "1073741824\n");
        tree.write(&format!("{group}/memory.stat"), "inactive_file 0\ntotal_inactive_file 805306368\n");
        assert_eq!(read(&tree), Some(0.25));
    }

    #[test]
    fn what_cannot_be_is_unknown() {
        for bad in ["", "-1", "1e9", "18446744073709551616"] {
            let tree = version_two(GROUP, "1073741824", 0, 0);
            tree.write(&format!("{GROUP}/memory.current"), bad);
            assert_eq!(read(&tree), None, "{bad:?}");
        }
        let tree = version_two(GROUP, "1073741824", 5 * GIGABYTE, 0);
        assert_eq!(read(&tree), Some(1.0), "beyond its limit for a moment");
        tree.write(&format!("{GROUP}/memory.max"), "0");
        assert_eq!(read(&tree), None);
        let tree = Tree::new();
        tree.write("proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 2 kB\n");
        assert_eq!(read(&tree), None);
    }

    #[test]
    fn limits_are_read_anew() {
        let tree = version_two(GROUP, "1073741824", GIGABYTE / 2, 0);
        let mut memory = Memory::below(tree.root());
        assert_eq!(memory.read(0).value(), Some(0.5));
        tree.write(&format!("{GROUP}/memory.max"), "2147483648");
        assert_eq!(memory.read(29_000_000_000).value(), Some(0.5));
        assert_eq!(memory.read(30_000_000_000).value(), Some(0.25));
        assert_eq!(memory.details(), [("limit_bytes", 2_147_483_648.0)]);
        tree.write(&format!("{GROUP}/memory.max"), "what?");
        assert_eq!(memory.read(60_000_000_000).value(), Some(0.25), "one failed reading leaves the limit");
    }
}
