//! The CPU signal over trees of files, and D31's faults: a share read wrongly inside a container.

use std::time::Duration;

use proptest::prelude::*;

use super::Cpu;
use crate::clock::ManualClock;
use crate::signal::fake::Tree;
use crate::signal::{Memory, Resource, Signal, Source, Stalls};

const SECOND_NS: u64 = 1_000_000_000;
const APP: &str = "sys/fs/cgroup/pod/app";
const POD: &str = "sys/fs/cgroup/pod";

fn write_usage(tree: &Tree, group: &str, usage_us: u64) {
    tree.write(
        &format!("{group}/cpu.stat"),
        format!("usage_usec {usage_us}\nuser_usec 1\nnr_throttled 3\nthrottled_usec 2500000\n"),
    );
}

/// A group without a limit in a pod with one, neither of which has used anything.
fn pod(quota: &str) -> Tree {
    let tree = Tree::version_two("/pod/app");
    tree.write(&format!("{APP}/cpu.max"), "max 100000\n");
    tree.write(&format!("{POD}/cpu.max"), quota);
    write_usage(&tree, APP, 0);
    write_usage(&tree, POD, 0);
    tree
}

/// What the signal says after each of the steps: seconds, and CPU seconds used by the group until then.
fn after(tree: &Tree, steps: &[(f64, f64)]) -> Vec<Option<f64>> {
    let mut cpu = Cpu::below(tree.root());
    steps
        .iter()
        .map(|&(seconds, used)| {
            let micros = |seconds: f64| u64::try_from(Duration::from_secs_f64(seconds).as_micros()).unwrap();
            write_usage(tree, APP, micros(used));
            cpu.read(1_000 * micros(seconds)).value()
        })
        .collect()
}

fn assert_near(value: Option<f64>, expected: f64) {
    assert!(value.is_some_and(|value| (value - expected).abs() < 1e-9), "{value:?}, not {expected}");
}

#[test]
fn one_cpu_second_in_a_second_of_two_cpus_is_half() {
    let shares = after(&pod("200000 100000\n"), &[(10.0, 100.0), (11.0, 101.0)]);
    assert_eq!(shares[0], None, "one reading is no difference");
    assert_near(shares[1], 0.5);
    assert_near(after(&pod("50000 100000\n"), &[(10.0, 0.0), (11.0, 0.25)])[1], 0.5);
    assert_near(after(&pod("max 100000\n"), &[(10.0, 0.0), (11.0, 4.0)])[1], 0.25);
    assert_near(after(&pod("200000 100000\n"), &[(10.0, 0.0), (11.0, 2.5)])[1], 1.0);
}

#[test]
fn siblings_that_use_up_the_pods_quota_count() {
    let tree = pod("200000 100000\n");
    let mut cpu = Cpu::below(tree.root());
    cpu.read(SECOND_NS);
    write_usage(&tree, APP, 100_000);
    write_usage(&tree, POD, 1_900_000);
    assert_near(cpu.read(2 * SECOND_NS).value(), 0.95);
    assert_eq!(cpu.details(), [("cores", 2.0), ("throttled_s", 2.5)]);
}

#[test]
fn a_counter_that_goes_back_or_jumps_says_nothing() {
    let steps = [(1.0, 10.0), (2.0, 11.0), (3.0, 5.0), (4.0, 6.0), (5.0, 9_000.0), (6.0, 9_001.0)];
    let shares = after(&pod("200000 100000\n"), &steps);
    for known in [1, 3, 5] {
        assert_near(shares[known], 0.5);
    }
    assert_eq!((shares[2], shares[4]), (None, None));
}

/// What the whole signal says every quarter of a second, by what its group's file has; None: no file.
fn signal_over(contents: &[Option<&str>]) -> Vec<Option<f64>> {
    let tree = pod("200000 100000\n");
    let (below, stat) = (tree.root(), format!("{APP}/cpu.stat"));
    let signal = Signal::new("cpu", move || Cpu::below(below.clone()));
    let clock = ManualClock::new(SECOND_NS);
    let step = |contents: Option<&str>| {
        clock.advance(SECOND_NS / 4);
        match contents {
            Some(text) => tree.write(&stat, text),
            None => tree.remove(&stat),
        }
        signal.reading(&clock).value()
    };
    contents.iter().copied().map(step).collect()
}

#[test]
fn after_one_failed_reading_the_signal_says_what_it_said_before() {
    let (first, second) = (Some("usage_usec 1000000"), Some("usage_usec 1250000"));
    for broken in [Some("usage_usec 0"), Some("usage_usec 99999999999"), Some("usage_usec what"), None] {
        let readings = signal_over(&[first, second, broken]);
        assert_eq!(readings[0], None);
        assert_near(readings[1], 0.5);
        assert_near(readings[2], 0.5);
    }
    let readings = signal_over(&[first, second, Some(""), Some(""), Some(""), Some(""), first, second]);
    assert_eq!(
        readings[2..6],
        [Some(0.5), Some(0.5), Some(0.5), None],
        "kept for a second, and then unknown"
    );
    assert_eq!(readings[6], None, "the counter went back");
    assert_near(readings[7], 0.5);
}

#[test]
fn it_is_an_average_over_a_second_seeded_with_the_first() {
    let tree = pod("100000 100000\n");
    let shares = after(&tree, &[(0.0, 0.0), (1.0, 0.8), (2.0, 0.8), (2.25, 0.8)]);
    assert_near(shares[1], 0.8);
    assert_near(shares[2], 0.8 * (-1.0f64).exp());
    assert_near(shares[3], 0.8 * (-1.25f64).exp());
    let burst = after(&tree, &[(0.0, 0.0), (1.0, 4.0), (2.0, 4.0)]);
    assert_near(burst[2], (-1.0f64).exp());
}

#[test]
fn version_one_counts_in_nanoseconds() {
    let tree = Tree::version_one("/docker/abc");
    let (quotas, usage) = ("sys/fs/cgroup/cpu/docker", "sys/fs/cgroup/cpuacct/docker");
    tree.write(&format!("{quotas}/abc/cpu.cfs_quota_us"), "200000\n");
    tree.write(&format!("{quotas}/abc/cpu.cfs_period_us"), "100000\n");
    tree.write(
        &format!("{quotas}/abc/cpu.stat"),
        "nr_periods 9\nnr_throttled 3\nthrottled_time 2500000000\n",
    );
    tree.write(&format!("{usage}/abc/cpuacct.usage"), "7000000000\n");
    let mut cpu = Cpu::below(tree.root());
    assert_eq!(cpu.read(0).value(), None);
    tree.write(&format!("{usage}/abc/cpuacct.usage"), "8000000000\n");
    assert_near(cpu.read(SECOND_NS).value(), 0.5);
    assert_eq!(cpu.details(), [("cores", 2.0), ("throttled_s", 2.5)]);
}

#[test]
fn a_quota_that_changes_counts_half_a_minute_later() {
    let tree = pod("200000 100000\n");
    let mut cpu = Cpu::below(tree.root());
    let mut read = |second: u64| {
        write_usage(&tree, APP, second * 1_000_000);
        cpu.read(second * SECOND_NS).value()
    };
    read(1);
    assert_near(read(2), 0.5);
    tree.write(&format!("{POD}/cpu.max"), "400000 100000\n");
    assert_near(read(30), 0.5);
    let anew = read(31).unwrap();
    assert!((0.25..0.5).contains(&anew), "the counter goes on: {anew}");
    tree.write(&format!("{POD}/cpu.max"), "?");
    assert_near(read(61), 0.25);
}

#[test]
fn without_groups_it_is_unknown() {
    let mut cpu = Cpu::below(Tree::new().root());
    assert_eq!([0, SECOND_NS].map(|now_ns| cpu.read(now_ns).value()), [None, None]);
    assert!(
        after(&pod("max"), &[(5.0, 1.0), (5.0, 1.0), (4.0, 1.0)]).iter().all(Option::is_none),
        "no time gone"
    );
}

/// Any bytes in any of the files, changed between readings: a pressure or unknown, and no panic.
#[test]
fn no_contents_of_the_files_panic() {
    let files = [
        "proc/self/cgroup",
        "proc/self/mountinfo",
        "proc/meminfo",
        "proc/pressure/io",
        "sys/devices/system/cpu/online",
        "sys/fs/cgroup/pod/app/cpu.max",
        "sys/fs/cgroup/pod/app/cpu.stat",
        "sys/fs/cgroup/pod/app/cpuset.cpus",
        "sys/fs/cgroup/pod/app/memory.max",
        "sys/fs/cgroup/pod/app/memory.current",
        "sys/fs/cgroup/pod/app/memory.stat",
        "sys/fs/cgroup/pod/app/io.pressure",
    ];
    let likely = "(usage_usec|inactive_file|some avg10=|0::/pod|max|MemTotal:|-1|[0-9]{1,20}|[-,. \n]){0,8}";
    let contents = prop_oneof![likely.prop_map(String::into_bytes), any::<Vec<u8>>()];
    let step = (0..files.len(), contents, 0..u64::MAX);
    proptest!(ProptestConfig::with_cases(24), |(steps in prop::collection::vec(step, 1..12))| {
        let tree = pod("200000 100000\n");
        tree.write(&format!("{APP}/memory.max"), "1000000");
        let mut sources: [Box<dyn Source>; 3] = [
            Box::new(Cpu::below(tree.root())),
            Box::new(Memory::below(tree.root())),
            Box::new(Stalls::below(tree.root(), Resource::Io)),
        ];
        for (file, contents, now_ns) in steps {
            tree.write(files[file], contents);
            for source in &mut sources {
                let value = source.read(now_ns).value();
                prop_assert!(value.is_none_or(|value| (0.0..=1.0).contains(&value)), "{value:?}");
            }
        }
    });
}
