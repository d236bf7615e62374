//! A directory with a `proc` and a `sys` of its own, for tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::root::Root;

/// Removed with all that is in it when dropped.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("tidegate-tree-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    /// A machine with 16 CPUs and 64 GB, half of it available, and a process that is in `group` of version two.
    pub(crate) fn version_two(group: &str) -> Self {
        let tree = Self::new();
        tree.machine();
        tree.write("proc/self/cgroup", format!("0::{group}\n"));
        tree.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        tree
    }

    /// The same machine with `group` in version one.
    pub(crate) fn version_one(group: &str) -> Self {
        let tree = Self::new();
        tree.machine();
        let controllers = ["cpu", "cpuacct", "cpuset", "memory"];
        let memberships = controllers.map(|name| format!("1:{name}:{group}\n"));
        tree.write("proc/self/cgroup", memberships.concat());
        let mount = |name| format!("32 31 0:29 / /sys/fs/cgroup/{name} rw - cgroup cgroup rw,{name}\n");
        tree.write("proc/self/mountinfo", controllers.map(mount).concat());
        tree
    }

    fn machine(&self) {
        self.write("sys/devices/system/cpu/online", "0-15\n");
        self.write("proc/meminfo", "MemTotal: 67108864 kB\nMemFree: 1 kB\nMemAvailable: 33554432 kB\n");
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(&self.0)
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, contents).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.0.join(path)).unwrap();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
