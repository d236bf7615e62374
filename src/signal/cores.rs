//! How many CPUs a process may use, as a fraction: the least of the machine's, its cpuset's and the quotas' of
//! all its control groups. Half a CPU is 0.5, not 0, and a quota of one and a half is not 2.

use super::cgroup::{Groups, Hierarchy, Version};
use super::root::{Failed, Found, Root};
use super::text::{cfs_quota, cpu_list, cpu_max};

/// What the machine and the groups allow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cores {
    /// The machine's.
    pub(crate) machine: f64,
    /// What this process may use.
    pub(crate) usable: f64,
    /// The quotas of its groups, its own first; infinite where a group has none.
    pub(crate) quotas: Vec<f64>,
}

impl Cores {
    pub(crate) fn read(root: &Root, groups: Option<&Groups>) -> Result<Self, Failed> {
        let machine = machine(root);
        let levels = |controller| groups.and_then(|groups| groups.of(controller));
        let quotas = levels("cpu").map_or(Ok(Vec::new()), |cpu| quotas(root, &cpu))?;
        let sets = levels("cpuset").map_or(Ok(machine), |sets| smallest_set(root, &sets, machine))?;
        let usable = quotas.iter().copied().fold(machine.min(sets), f64::min);
        Ok(Self { machine, usable, quotas })
    }
}

/// How many CPUs this process may use: fractional, and right inside containers. Where limits cannot be read it is
/// what the machine has.
#[must_use]
pub fn cores() -> f64 {
    cores_below(&Root::system())
}

fn cores_below(root: &Root) -> f64 {
    let cores = Groups::read(root).and_then(|groups| Cores::read(root, groups.as_ref()));
    cores.map_or_else(|Failed| machine(root), |cores| cores.usable)
}

#[allow(clippy::cast_precision_loss)] // no machine has 2^52 CPUs
fn machine(root: &Root) -> f64 {
    let online = root.read("/sys/devices/system/cpu/online");
    match online.and_then(|list| list.map_or(Ok(None), |list| cpu_list(&list))) {
        Ok(Some(count)) => count as f64,
        _ => std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64),
    }
}

fn quotas(root: &Root, cpu: &Hierarchy) -> Result<Vec<f64>, Failed> {
    cpu.levels().map(|group| Ok(quota(root, cpu.version, &group)?.unwrap_or(f64::INFINITY))).collect()
}

fn quota(root: &Root, version: Version, group: &str) -> Found<f64> {
    match version {
        Version::Two => root.read(&format!("{group}/cpu.max"))?.map_or(Ok(None), |text| cpu_max(&text)),
        Version::One => {
            let file = |name| root.read(&format!("{group}/cpu.cfs_{name}_us"));
            match (file("quota")?, file("period")?) {
                (Some(quota), Some(period)) => cfs_quota(&quota, &period),
                _ => Ok(None),
            }
        }
    }
}

#[allow(clippy::cast_precision_loss)] // as above
fn smallest_set(root: &Root, sets: &Hierarchy, machine: f64) -> Result<f64, Failed> {
    sets.levels().try_fold(machine, |least, group| {
        Ok(set(root, &group)?.map_or(least, |count| least.min(count as f64)))
    })
}

/// What is effective is what is left of a set after its ancestors'; its name differs between the versions, and
/// in the first it may be missing.
fn set(root: &Root, group: &str) -> Found<u64> {
    for name in ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"] {
        if let Some(list) = root.read(&format!("{group}/{name}"))? {
            return match cpu_list(&list)? {
                Some(0) => Err(Failed),
                count => Ok(count),
            };
        }
    }
    Ok(None)
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // what is compared is exact
mod tests {
    use super::*;
    use crate::signal::fake::Tree;

    fn cores_of(tree: &Tree) -> f64 {
        cores_below(&tree.root())
    }

    #[test]
    fn a_quota_of_any_ancestor_holds() {
        let tree = Tree::version_two("/pod/app");
        tree.write("sys/fs/cgroup/pod/app/cpu.max", "max 100000\n");
        tree.write("sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
        assert_eq!(cores_of(&tree), 2.0);
        tree.write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
        assert_eq!(cores_of(&tree), 0.5);
        tree.write("sys/fs/cgroup/pod/app/cpu.max", "25000 100000\n");
        assert_eq!(cores_of(&tree), 0.25, "the least of them");
        for group in ["pod", "pod/app"] {
            tree.write(&format!("sys/fs/cgroup/{group}/cpu.max"), "max 100000\n");
        }
        assert_eq!(cores_of(&tree), 16.0);
    }

    #[test]
    fn without_limits_it_is_the_machine() {
        assert_eq!(cores_of(&Tree::version_two("/pod/app")), 16.0);
        let tree = Tree::new();
        tree.write("sys/devices/system/cpu/online", "0-15\n");
        assert_eq!(cores_of(&tree), 16.0);
        let nothing = cores_of(&Tree::new());
        assert!(nothing >= 1.0, "{nothing}");
    }

    #[test]
    fn in_a_namespace_of_its_own_the_group_is_the_mount_point() {
        let tree = Tree::version_two("/");
        tree.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
        assert_eq!(cores_of(&tree), 1.5);
    }

    #[test]
    fn version_one() {
        let tree = Tree::version_one("/docker/abc");
        tree.write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
        tree.write("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
        assert_eq!(cores_of(&tree), 16.0);
        tree.write("sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "350000\n");
        tree.write("sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
        assert_eq!(cores_of(&tree), 3.5);
        tree.write("sys/fs/cgroup/cpuset/docker/abc/cpuset.cpus", "2,5-6\n");
        assert_eq!(cores_of(&tree), 3.0);
    }

    #[test]
    fn the_effective_set_goes_before_the_one_asked_for() {
        let tree = Tree::version_two("/app");
        tree.write("sys/fs/cgroup/app/cpuset.cpus", "0-7\n");
        assert_eq!(cores_of(&tree), 8.0);
        tree.write("sys/fs/cgroup/app/cpuset.cpus.effective", "0-3,7\n");
        assert_eq!(cores_of(&tree), 5.0);
        tree.write("sys/fs/cgroup/app/cpu.max", "800000 100000\n");
        assert_eq!(cores_of(&tree), 5.0, "a quota may be wider than the set");
    }

    #[test]
    fn limits_that_mean_nothing_are_the_machine() {
        let tree = Tree::version_two("/app");
        for bad in ["", "0 100000", "many", "-7 100000"] {
            tree.write("sys/fs/cgroup/app/cpu.max", bad);
            assert_eq!(cores_of(&tree), 16.0, "{bad:?}");
        }
        tree.write("sys/fs/cgroup/app/cpu.max", [0xff, 0xfe, 0x00]);
        assert_eq!(cores_of(&tree), 16.0);
    }
}
