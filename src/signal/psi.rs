//! Pressure stall information: the share of the last ten seconds in which some task that was ready to go on
//! waited for a resource. The kernel measures the waiting itself, which no usage figure shows: a machine may be
//! at 100 % CPU with nobody waiting, and at 60 % with a queue for every quota.
//!
//! The control group's own file counts only the waiting of its own tasks, whoever caused it. Without one (version
//! one, or a kernel that was built or started without) it is the machine's, in which the neighbours' waiting counts,
//! too. The kernel averages already.

use std::time::Duration;

use super::cgroup::Groups;
use super::rarely::Rarely;
use super::root::{Failed, Root};
use super::text::some_avg10;
use super::{Reading, Source};

/// The kernel renews its averages every two seconds.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A CPU, or the next period of a quota.
    Cpu,
    /// Memory that is being reclaimed or swapped in.
    Memory,
    /// Disks.
    Io,
}

impl Resource {
    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }
}

/// The signal of one resource's pressure.
#[derive(Debug)]
pub struct Stalls {
    root: Root,
    resource: Resource,
    file: Rarely<String>,
}

impl Stalls {
    /// Of this process's control group, or of the machine.
    #[must_use]
    pub fn new(resource: Resource) -> Self {
        Self::below(Root::system(), resource)
    }

    pub(crate) fn below(root: Root, resource: Resource) -> Self {
        Self { root, resource, file: Rarely::new() }
    }
}

impl Source for Stalls {
    fn read(&mut self, now_ns: u64) -> Reading {
        let Self { root, resource, file } = self;
        let share =
            file.get(now_ns, |_| locate(root, *resource)).ok_or(Failed).and_then(|file| read(root, file));
        share.map_or(Reading::UNKNOWN, Reading::at_most_one)
    }

    fn good_for(&self) -> Duration {
        GOOD_FOR
    }
}

/// The first file that can be read: one that is switched off is there, and fails.
fn locate(root: &Root, resource: Resource) -> Result<String, Failed> {
    let own_group = || Groups::read(root).ok()??.version_two()?.levels().next();
    let own = own_group().map(|group| format!("{group}/{}.pressure", resource.name()));
    let machine = format!("/proc/pressure/{}", resource.name());
    own.into_iter().chain([machine]).find(|file| read(root, file).is_ok()).ok_or(Failed)
}

fn read(root: &Root, file: &str) -> Result<f64, Failed> {
    some_avg10(&root.read(file)?.ok_or(Failed)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::fake::Tree;

    fn some(percent: &str) -> String {
        format!("some avg10={percent} avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00\n")
    }

    #[test]
    fn the_group_goes_before_the_machine() {
        let tree = Tree::version_two("/app");
        let read = |resource| Stalls::below(tree.root(), resource).read(0).value();
        assert_eq!(read(Resource::Io), None);
        tree.write("proc/pressure/io", some("80.00"));
        assert_eq!(read(Resource::Io), Some(0.8));
        tree.write("sys/fs/cgroup/app/io.pressure", some("25.00"));
        assert_eq!(read(Resource::Io), Some(0.25));
        assert_eq!(read(Resource::Memory), None);
        tree.write("sys/fs/cgroup/app/io.pressure", "");
        assert_eq!(read(Resource::Io), Some(0.8), "switched off for the group");
    }

    #[test]
    fn version_one_has_only_the_machine() {
        let tree = Tree::version_one("/app");
        tree.write("proc/pressure/cpu", some("98.28"));
        assert_eq!(Stalls::below(tree.root(), Resource::Cpu).read(0).value(), Some(0.9828));
    }

    #[test]
    fn a_file_that_fails_later_is_unknown() {
        let tree = Tree::version_two("/app");
        tree.write("proc/pressure/memory", some("3.00"));
        let mut stalls = Stalls::below(tree.root(), Resource::Memory);
        assert_eq!(stalls.read(0).value(), Some(0.03));
        tree.remove("proc/pressure/memory");
        assert_eq!(stalls.read(1).value(), None);
    }
}
