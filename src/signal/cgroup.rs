//! Which control groups a process is in, as it can see them from inside its container.
//!
//! `/proc/self/cgroup` names the process's path in each hierarchy: one for all controllers in the second version
//! (`0::/path`), one for each set of them in the first (`4:memory:/path`), both side by side in a hybrid. The
//! path counts from the root of the cgroup namespace, and `/proc/self/mountinfo` says which path is mounted
//! where: the group's directory is the mount point and what the path has beyond the mount's own root. Docker
//! without a namespace mounts `/docker/ID` itself; with one both are `/`.
//!
//! A limit holds for all that is below it, so that of every ancestor up to the mount point counts, not only the
//! leaf's, which is often `max` (ninja-build/ninja#2805). What is above the mount point nobody inside can see.

use super::root::{Failed, Found, Root};

/// No kernel nests deeper by default than this, and no text can make a reader walk further.
const MOST_LEVELS: usize = 64;

/// The two versions of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// The groups that a process is in under one mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: Version,
    mount: String,
    parts: Vec<String>,
}

impl Hierarchy {
    /// The directories of the process's own group and of its ancestors, in this order.
    pub(crate) fn levels(&self) -> impl Iterator<Item = String> {
        let shallowest = self.parts.len().saturating_sub(MOST_LEVELS);
        (shallowest..=self.parts.len()).rev().map(|depth| {
            let mut directory = self.mount.clone();
            for part in &self.parts[..depth] {
                directory.push('/');
                directory.push_str(part);
            }
            directory
        })
    }

    /// Whether both have the same groups, so that their levels go together.
    pub(crate) fn has_groups_of(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

/// What the process's two files say.
#[derive(Debug)]
pub(crate) struct Groups {
    memberships: Vec<Membership>,
    mounts: Vec<Mount>,
}

#[derive(Debug)]
struct Membership {
    /// Empty in the second version.
    controllers: String,
    path: String,
}

#[derive(Debug)]
struct Mount {
    version: Version,
    root: String,
    point: String,
    /// In the first version the controllers are among these.
    options: String,
}

impl Groups {
    /// `None` where there are no control groups.
    pub(crate) fn read(root: &Root) -> Found<Self> {
        let (Some(memberships), Some(mounts)) =
            (root.read("/proc/self/cgroup")?, root.read("/proc/self/mountinfo")?)
        else {
            return Ok(None);
        };
        Ok(Some(Self {
            memberships: memberships.lines().filter_map(membership).collect(),
            mounts: mounts.lines().filter_map(mount).collect(),
        }))
    }

    /// Where `controller` counts this process: a controller is in one version or in the other.
    pub(crate) fn of(&self, controller: &str) -> Option<Hierarchy> {
        self.version_one(controller).or_else(|| self.version_two())
    }

    /// The second version's hierarchy, which in a hybrid has no controllers, but pressure.
    pub(crate) fn version_two(&self) -> Option<Hierarchy> {
        self.find(|member| member.controllers.is_empty(), |mount| mount.version == Version::Two)
    }

    fn version_one(&self, controller: &str) -> Option<Hierarchy> {
        let among = |list: &str| list.split(',').any(|name| name == controller);
        self.find(
            |member| among(&member.controllers),
            |mount| mount.version == Version::One && among(&mount.options),
        )
    }

    /// The mount that shows most of the process's ancestors.
    fn find(
        &self,
        member: impl Fn(&Membership) -> bool,
        mounted: impl Fn(&Mount) -> bool,
    ) -> Option<Hierarchy> {
        let path = &self.memberships.iter().find(|entry| member(entry))?.path;
        let seen = |mount: &Mount| {
            let parts = beyond(&mount.root, path)?;
            Some(Hierarchy { version: mount.version, mount: mount.point.clone(), parts })
        };
        let mounts = self.mounts.iter().filter(|mount| mounted(mount));
        mounts.filter_map(seen).max_by_key(|hierarchy| hierarchy.parts.len())
    }
}

/// The parts that `path` has beyond the mount's `root`. Both count from the root of the namespace, and what is
/// outside of that begins with `..`: a root of only such parts is an ancestor of the namespace, whose limits
/// hold here too. None where the mount shows other groups than the process's own.
fn beyond(root: &str, path: &str) -> Option<Vec<String>> {
    let mut root = parts(root).peekable();
    let mut path = parts(path).peekable();
    while root.peek().is_some() && root.peek() == path.peek() {
        root.next();
        path.next();
    }
    let path: Vec<_> = path.map(str::to_owned).collect();
    if path.iter().any(|part| part == "..") {
        return None;
    }
    if root.peek().is_none() {
        return Some(path);
    }
    root.all(|part| part == "..").then(Vec::new)
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// `HIERARCHY:CONTROLLER,...:PATH`; a path may hold colons.
fn membership(line: &str) -> Option<Membership> {
    let mut fields = line.splitn(3, ':').skip(1);
    let controllers = fields.next()?.to_owned();
    // What became of a process whose group was removed.
    let path = fields.next()?.trim_end_matches(" (deleted)").to_owned();
    Some(Membership { controllers, path })
}

/// `ID PARENT DEVICE ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS`
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let version = match after.next()? {
        "cgroup" => Version::One,
        "cgroup2" => Version::Two,
        _ => return None,
    };
    let mut before = before.split(' ').skip(3);
    let (root, point) = (unescape(before.next()?).ok()?, unescape(before.next()?).ok()?);
    Some(Mount { version, root, point, options: after.nth(1).unwrap_or_default().to_owned() })
}

/// Spaces, tabs, line ends and backslashes are octal there: `\040`.
fn unescape(field: &str) -> Result<String, Failed> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(3).ok_or(Failed)?;
        let digits = std::str::from_utf8(digits).map_err(|_| Failed)?;
        bytes.push(u8::from_str_radix(digits, 8).map_err(|_| Failed)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| Failed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signal::fake::Tree;

    const V2_MOUNT: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    fn groups(cgroup: &str, mountinfo: &str) -> Groups {
        let tree = Tree::new();
        tree.write("proc/self/cgroup", cgroup);
        tree.write("proc/self/mountinfo", mountinfo);
        Groups::read(&tree.root()).unwrap().unwrap()
    }

    fn levels(hierarchy: Option<Hierarchy>) -> Vec<String> {
        hierarchy.map(|found| found.levels().collect()).unwrap_or_default()
    }

    #[test]
    fn version_two_with_all_ancestors() {
        let groups = groups("0::/kube/pod/app\n", V2_MOUNT);
        let expected = ["/sys/fs/cgroup/kube/pod/app", "/sys/fs/cgroup/kube/pod", "/sys/fs/cgroup/kube"];
        assert_eq!(levels(groups.of("cpu")), [&expected[..], &["/sys/fs/cgroup"]].concat());
    }

    #[test]
    fn version_one_by_controller() {
        let groups = groups(
            "9:name=systemd:/\n4:memory:/docker/a:b\n2:cpu,cpuacct:/docker/a:b\n",
            "32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /cg/memory rw shared:7 master:1 - cgroup cgroup rw,memory\n",
        );
        let cpu = levels(groups.of("cpu"));
        assert_eq!(cpu, ["/cg/cpu,cpuacct/docker/a:b", "/cg/cpu,cpuacct/docker", "/cg/cpu,cpuacct"]);
        assert_eq!(levels(groups.of("cpuacct")), cpu);
        assert_eq!(levels(groups.of("memory"))[0], "/cg/memory/docker/a:b");
        assert_eq!(groups.of("cpuset"), None);
    }

    #[test]
    fn a_hybrid_has_each_controller_where_it_is() {
        let groups = groups(
            "4:memory:/app\n0::/slice/app\n",
            "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
             41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n",
        );
        assert_eq!(levels(groups.of("memory"))[0], "/cg/memory/app");
        assert_eq!(levels(groups.of("cpu"))[0], "/cg/unified/slice/app");
        assert_eq!(levels(groups.version_two())[0], "/cg/unified/slice/app");
    }

    #[test]
    fn a_container_without_a_namespace_mounts_its_own_group() {
        let mount = "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        assert_eq!(levels(groups("1:cpu:/docker/abc\n", mount).of("cpu")), ["/sys/fs/cgroup/cpu"]);
        let nested = levels(groups("1:cpu:/docker/abc/worker\n", mount).of("cpu"));
        assert_eq!(nested, ["/sys/fs/cgroup/cpu/worker", "/sys/fs/cgroup/cpu"]);
        assert_eq!(
            groups("1:cpu:/docker/abcd\n", mount).of("cpu"),
            None,
            "another group's name begins alike"
        );
    }

    #[test]
    fn outside_of_the_namespace() {
        let above = "30 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(levels(groups("0::/\n", above).of("cpu")), ["/sys/fs/cgroup"]);
        assert_eq!(groups("0::/../other\n", V2_MOUNT).of("cpu"), None);
        let sibling = levels(groups("0::/../other\n", &above.replace("/../..", "/..")).of("cpu"));
        assert_eq!(sibling, ["/sys/fs/cgroup/other", "/sys/fs/cgroup"]);
    }

    #[test]
    fn of_several_mounts_the_one_that_shows_most() {
        let inner = "31 23 0:26 /kube/pod /inner rw - cgroup2 cgroup2 rw\n";
        for mounts in [format!("{inner}{V2_MOUNT}"), format!("{V2_MOUNT}{inner}")] {
            assert_eq!(levels(groups("0::/kube/pod/app\n", &mounts).of("cpu")).len(), 4);
        }
    }

    #[test]
    fn a_mount_point_may_hold_a_space() {
        let groups = groups("0::/\n", &V2_MOUNT.replace("/sys/fs/cgroup", r"/my\040groups\134"));
        assert_eq!(levels(groups.of("cpu")), [r"/my groups\"]);
    }

    #[test]
    fn without_files_there_are_no_groups() {
        assert!(Groups::read(&Tree::new().root()).unwrap().is_none());
        assert!(Groups::read(&Root::at("/nowhere/at/all".as_ref())).unwrap().is_none());
    }

    #[test]
    fn a_bottomless_path_is_walked_no_further_than_that() {
        let groups = groups(&format!("0::{}\n", "/a".repeat(10_000)), V2_MOUNT);
        assert_eq!(levels(groups.of("cpu")).len(), MOST_LEVELS + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_text_panics(cgroup in "(([0-9]{0,2}:[a-z,]{0,4}:[/.a-z]{0,8}|.*)\n){0,4}", mounts in
            r"((1 2 3 [/.a]{0,6} [/.a\\0-9]{0,8} rw - cgroup2? x [a-z,]{0,4}|.*)\n){0,4}") {
            let groups = groups(&cgroup, &mounts);
            for controller in ["cpu", "a", ""] {
                let _ = levels(groups.of(controller));
            }
        }
    }
}
