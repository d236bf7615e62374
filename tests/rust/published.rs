//! Publishing: gates whose state other processes can read. Run without a test harness, as `fork` is: the
//! checks fork, and are killed; they are functions that `main` calls in order.

#![allow(unsafe_code)] // fork, kill and waitpid

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn main() {
    let error = tidegate::Gate::builder("db", 1).publish_in(".").build().unwrap_err();
    assert!(error.to_string().contains("Linux and macOS"), "{error}");
    println!("SKIPPED published: this system has none");
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn main() {
    let checks: [(&str, fn()); 18] = [
        ("what_a_gate_counts_is_what_others_read", checks::counts_are_read),
        ("a_directory_that_cannot_take_a_file_is_an_error", checks::directory_errors),
        ("d09_a_child_has_a_file_of_its_own", checks::children_have_files),
        ("d09_a_child_has_the_configuration_of_the_moment_of_the_fork", checks::configuration_at_the_fork),
        ("d09_a_child_without_room_for_a_file_works_on_unpublished", checks::child_without_a_file),
        ("without_room_on_the_disk_nothing_is_left_behind", checks::no_room),
        ("a_disk_that_is_full_of_finished_files_makes_room", checks::full_disk),
        ("d09_forks_while_threads_count_and_change", checks::forks_under_load),
        ("d34_the_limit_that_others_read_is_where_its_controller_moved_it", checks::moves_are_read),
        ("d34_a_killed_process_leaves_its_counts_and_takes_its_gauges", checks::killed_process),
        ("a_dropped_or_closed_gate_leaves_its_counts_and_takes_its_gauges", checks::dropped_and_closed),
        ("a_process_that_became_another_program_takes_its_gauges", checks::another_program),
        ("finished_files_do_not_pile_up", checks::files_are_folded),
        ("ever_so_many_finished_files_are_counted_at_once_and_go_in_portions", checks::many_files),
        ("a_reader_that_ended_between_its_two_steps_makes_nobody_count_twice", checks::fold_that_was_cut),
        ("what_is_no_file_of_ours_is_skipped_and_reported", checks::unreadable_files),
        ("a_pid_that_is_used_again_is_not_the_process", checks::pid_reuse),
        ("many_readers_at_once_see_sums_that_only_grow", checks::readers_at_once),
    ];
    for (name, check) in checks {
        check();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed", checks.len());
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod checks {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tidegate::controller::{Bounds, Kind};
    use tidegate::{
        Ask, ConfigError, Gate, GateSum, ManualClock, Outcome, Presence, Priority, Published, PublishedGate,
        Reason, Weight,
    };

    use super::processes::{Child, Directory};

    const CRITICAL: Priority = Priority::Critical;

    fn use_times(gate: &Gate, times: u32) {
        for _ in 0..times {
            gate.try_admit(CRITICAL).unwrap().release(Outcome::Success);
        }
    }

    fn changes(sum: &GateSum) -> Vec<(&str, u64)> {
        sum.counts.limit_changes().collect()
    }

    pub(super) fn moves_are_read() {
        let directory = Directory::new();
        let clock = Arc::new(ManualClock::new(0));
        let builder = Gate::builder("controlled", 5).clock(clock.clone()).publish_in(&directory.0);
        let gate = builder.controller(Kind::Aimd, Bounds::new(1, 100, 20).unwrap()).build().unwrap();
        let serve = |outcome| {
            for _ in 0..11 {
                let permit = gate.try_admit(CRITICAL).unwrap();
                clock.advance(100_000_000);
                permit.release(outcome);
            }
        };
        for (outcome, limit) in [(Outcome::Success, 20), (Outcome::Overload, 18), (Outcome::Overload, 16)] {
            serve(outcome);
            let Published { gates, .. } = directory.read();
            let [PublishedGate { stats, .. }] = &gates[..] else { panic!("one") };
            assert_eq!((stats.limit, gate.limit()), (limit, limit));
            assert_eq!(**stats, *gate.stats());
        }
        let changes: Vec<_> = gate.stats().limit_changes().map(|(cause, n)| (cause.to_owned(), n)).collect();
        assert_eq!(changes, [("lower".to_owned(), 2)]);
    }

    pub(super) fn counts_are_read() {
        let directory = Directory::new();
        let clock = Arc::new(ManualClock::new(0));
        let builder = Gate::builder("db \"ä\"", 5).timing(true).clock(clock.clone());
        let gate = builder.publish_in(&directory.0).build().unwrap();
        assert!(gate.is_published());
        let permit = gate.try_admit(Ask::from(CRITICAL).weight(Weight::new(3).unwrap())).unwrap();
        let _inside = gate.try_admit(Priority::CriticalPlus).unwrap();
        assert!(gate.try_admit(Priority::Sheddable).is_err());
        clock.advance(7_000_000);
        permit.release(Outcome::Overload);
        gate.set_limit(1, Some("deploy")).unwrap();
        gate.set_limit(4, None).unwrap();
        let Published { gates, retired, .. } = directory.read();
        assert!(retired.is_empty());
        let [PublishedGate { gate: name, pid, presence, closed, stats }] = &gates[..] else { panic!("one") };
        assert_eq!((&**name, *pid), ("db \"ä\"", std::process::id()));
        assert_eq!((*presence, *closed), (Presence::Here, false));
        let own = gate.stats();
        assert_eq!(**stats, *own, "the same counts");
        assert_eq!((stats.limit, stats.in_flight, stats.high_water, stats.generation), (4, 1, 4, 2));
        assert_eq!(stats.shed(Priority::Sheddable, Reason::Priority), 1);
        assert_eq!(stats.latency(CRITICAL), own.latency(CRITICAL));
        let durations = stats.durations(Outcome::Overload).unwrap();
        assert_eq!((durations.count(), durations.sum().as_millis()), (1, 7));
        let sum = directory.sum("db \"ä\"");
        assert_eq!((sum.limit, sum.in_flight, sum.processes), (Some(4), Some(1), 1));
        assert_eq!(changes(&sum), [("deploy", 1), ("manual", 1)]);
    }

    pub(super) fn directory_errors() {
        let directory = Directory::new();
        let missing = directory.0.join("missing");
        let error = Gate::builder("db", 1).publish_in(&missing).build().unwrap_err();
        assert!(matches!(error, ConfigError::Directory { .. }));
        let text = error.to_string();
        assert!(text.contains("missing") && text.contains("a directory that exists"), "{text}");
        let file = directory.0.join("file");
        fs::write(&file, "").unwrap();
        assert!(Gate::builder("db", 1).publish_in(&file).build().is_err());
        for path in [&missing, &file] {
            let error = Published::read(path).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
        // SAFETY: asks for a number. For the superuser every directory is writable.
        if unsafe { libc::geteuid() } != 0 {
            fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o555)).unwrap();
            assert!(Gate::builder("db", 1).publish_in(&directory.0).build().is_err());
            fs::set_permissions(&directory.0, fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert!(directory.files().is_empty(), "nothing is left behind");
    }

    pub(super) fn children_have_files() {
        let directory = Directory::new();
        let gate = Gate::builder("db", 20).timing(true).publish_in(&directory.0).build().unwrap();
        let held: Vec<_> = (0..3).map(|_| gate.take(CRITICAL).unwrap()).collect();
        let mut children: Vec<_> = (1..=4)
            .map(|times| {
                Child::after(|| {
                    assert!(gate.is_published());
                    assert_eq!((gate.in_flight(), gate.stats().admitted(CRITICAL)), (0, 0));
                    use_times(&gate, times);
                    gate.put(held[0], Outcome::Success); // inert
                    let _ = gate.take(CRITICAL).unwrap();
                })
            })
            .collect();
        let read = directory.read();
        let mut pids: Vec<_> = read.gates.iter().map(|gate| gate.pid).collect();
        let mut expected: Vec<_> = children.iter().map(Child::pid).chain([std::process::id()]).collect();
        pids.sort_unstable();
        expected.sort_unstable();
        assert_eq!(pids, expected);
        let sum = directory.sum("db");
        assert_eq!((sum.in_flight, sum.limit, sum.processes), (Some(3 + 4), Some(100), 5));
        assert_eq!(sum.counts.admitted(CRITICAL), 3 + (1 + 2 + 3 + 4) + 4);
        assert_eq!(sum.counts.durations(Outcome::Success).unwrap().count(), 10);
        // The parent's own state is what it was.
        assert_eq!((gate.in_flight(), gate.stats().admitted(CRITICAL), gate.stats().high_water), (3, 3, 3));
        children.iter_mut().for_each(Child::reap);
        for ticket in held {
            gate.put(ticket, Outcome::Success);
        }
        let sum = directory.sum("db");
        assert_eq!(
            (sum.in_flight, sum.limit, sum.counts.released(Outcome::Success)),
            (Some(0), Some(20), 13)
        );
        // A parent that only forks is a template: its children are the ones who serve.
        let template = directory.gate("preloaded", 7);
        let worker = Child::after(|| {});
        let sum = directory.sum("preloaded");
        assert_eq!((sum.limit, sum.processes), (Some(7), 1));
        use_times(&template, 1);
        assert_eq!(directory.sum("preloaded").limit, Some(14), "it serves, too");
        drop(worker);
    }

    pub(super) fn configuration_at_the_fork() {
        let directory = Directory::new();
        let gate = directory.gate("db", 5);
        gate.set_limit(10, Some("before")).unwrap();
        gate.set_enforce(false);
        let closed = directory.gate("closed", 5);
        closed.close();
        let child = Child::after(|| {
            assert_eq!((gate.limit(), gate.enforce(), gate.thresholds()), (10, false, [10, 10, 9, 8]));
            assert_eq!(gate.limit_history().len(), 1);
            assert_eq!(gate.stats().limit_changes().count(), 0, "the parent's");
            assert_eq!(gate.stats().generation, 3, "two changes, and the fork");
            assert!(closed.closed() && closed.try_admit(CRITICAL).is_err());
            gate.set_limit(1, Some("child")).unwrap();
            // A child of the child.
            let grandchild = Child::after(|| {
                assert_eq!((gate.limit(), gate.enforce(), closed.closed()), (1, false, true));
                gate.set_enforce(true);
                use_times(&gate, 1);
            });
            drop(grandchild);
        });
        assert_eq!((gate.limit(), gate.enforce()), (10, false));
        assert_eq!(changes(&directory.sum("db")), [("before", 1), ("child", 1)]);
        drop(child);
    }

    pub(super) fn child_without_a_file() {
        let directory = Directory::new();
        let gate = directory.gate("db", 5);
        let _held = gate.try_admit(CRITICAL).unwrap();
        let elsewhere = directory.0.with_extension("moved");
        fs::rename(&directory.0, &elsewhere).unwrap();
        let child = Child::after(|| {
            assert!(!gate.is_published());
            assert_eq!((gate.in_flight(), gate.limit()), (0, 5));
            use_times(&gate, 3);
            assert_eq!(gate.stats().admitted(CRITICAL), 3);
            fs::rename(&elsewhere, &directory.0).unwrap();
            // Its child finds the directory again.
            drop(Child::after(|| assert!(gate.is_published() && gate.limit() == 5)));
        });
        assert_eq!(gate.stats().admitted(CRITICAL), 1, "the parent's file is the parent's");
        assert_eq!(
            (directory.sum("db").counts.admitted(CRITICAL), directory.sum("db").in_flight),
            (1, Some(1))
        );
        drop(child);
    }

    /// A limit on the size of files takes the place of a disk that is full: blocks are asked for at once
    /// either way.
    pub(super) fn no_room() {
        let directory = Directory::new();
        let gate = directory.gate("db", 5);
        drop(Child::after(|| {
            use_times(&gate, 1);
            let nothing = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: plain system calls.
            unsafe {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const nothing), 0);
            }
            works_unpublished(&directory.gate("db", 5));
            drop(Child::after(|| {
                works_unpublished(&gate);
            }));
            use_times(&gate, 1);
            assert_eq!(gate.stats().admitted(CRITICAL), 2);
        }));
        let files = fs::read_dir(&directory.0).unwrap().count();
        assert_eq!(files, 3, "the parent's, the child's, and the lock");
        assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 2);
    }

    fn works_unpublished(gate: &Gate) {
        assert!(!gate.is_published());
        use_times(gate, 3);
        let _inside = gate.try_admit(CRITICAL).unwrap();
        assert_eq!((gate.stats().admitted(CRITICAL), gate.in_flight(), gate.limit()), (4, 1, 5));
    }

    /// Workers come and go, and nobody reads what they leave.
    pub(super) fn full_disk() {
        let directory = Directory::new();
        drop(Child::after(|| {
            if let Err(error) = super::processes::mount_small(&directory.0) {
                println!("SKIPPED: a full disk: this process may not mount one: {error}");
                return;
            }
            let gate = directory.gate("db", 5);
            let mut files = 1;
            loop {
                drop(Child::after(|| use_times(&gate, 1)));
                if directory.files().len() == files {
                    break; // it had no room
                }
                files += 1;
            }
            let counted = files as u64 - 1;
            let another = directory.gate("another", 5);
            assert!(another.is_published() && counted > 5);
            assert_eq!(directory.files().len(), 2, "finished ones made room");
            assert_eq!(directory.sum("db").counts.admitted(CRITICAL), counted);
            use_times(&another, 1);
            drop(another);
            // Full of what is not ours: nothing can be added up, and nothing is lost or stops.
            let blob = directory.0.join("blob");
            fs::write(&blob, vec![1; 1 << 20]).unwrap_err();
            works_unpublished(&directory.gate("db", 5));
            assert_eq!(directory.sum("db").counts.admitted(CRITICAL), counted);
            assert_eq!(directory.sum("another").counts.admitted(CRITICAL), 1);
            fs::remove_file(&blob).unwrap();
            assert!(directory.gate("db", 5).is_published());
            assert_eq!(directory.sum("db").counts.admitted(CRITICAL), counted);
        }));
    }

    /// No child finds a change half made, and none writes a count of its parent's.
    pub(super) fn forks_under_load() {
        let directory = Directory::new();
        let gate = directory.gate("db", 64);
        let stop = AtomicBool::new(false);
        let counted = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut admitted = 0;
                        for round in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                            use_times(&gate, 1);
                            admitted += 1;
                            gate.set_limit(64 + round % 64, Some("moving")).unwrap();
                            gate.set_enforce(round % 2 == 0);
                        }
                        admitted
                    })
                })
                .collect();
            {
                let _end = super::common::Raise(&stop);
                for _ in 0..100 {
                    drop(Child::after(|| {
                        let limit = gate.limit_history().last().map_or(64, |change| change.to);
                        assert_eq!((gate.limit(), gate.thresholds()[0]), (limit, limit));
                        assert_eq!((gate.in_flight(), gate.stats().admitted(CRITICAL)), (0, 0));
                        use_times(&gate, 5);
                        assert_eq!(gate.stats().admitted(CRITICAL), 5);
                    }));
                }
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        });
        assert_eq!(gate.stats().admitted(CRITICAL), counted);
        assert_eq!(directory.sum("db").counts.admitted(CRITICAL), counted + 500);
    }

    pub(super) fn killed_process() {
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        use_times(&gate, 1);
        let mut child = Child::after(|| {
            use_times(&gate, 10);
            for _ in 0..3 {
                let _ = gate.take(CRITICAL).unwrap();
            }
        });
        let before = directory.sum("db");
        assert_eq!((before.in_flight, before.limit, before.processes), (Some(3), Some(16), 2));
        child.kill(); // a zombie: its parent did not wait yet
        for _ in 0..2 {
            let after = directory.sum("db");
            assert_eq!((after.in_flight, after.limit, after.processes), (Some(0), Some(8), 1));
            assert_eq!(after.counts, before.counts);
            child.reap();
        }
        assert_eq!(directory.files().len(), 1, "the dead one's was folded");
    }

    /// A fork that then runs a command keeps the number and the moment of the fork.
    pub(super) fn another_program() {
        if !cfg!(target_os = "linux") {
            return; // only Linux tells the programs of a process apart
        }
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        use_times(&gate, 1);
        let mut command = Command::new("sleep");
        let held = gate.clone();
        // SAFETY: what it does in the fork is two swaps of a word.
        unsafe {
            command.arg("60").pre_exec(move || {
                let _ = held.take(CRITICAL).unwrap();
                Ok(())
            });
        }
        let mut running = command.spawn().unwrap();
        let sum = directory.sum("db");
        assert_eq!((sum.in_flight, sum.limit, sum.processes), (Some(0), Some(8), 1));
        assert_eq!(sum.counts.admitted(CRITICAL), 2);
        assert_eq!(directory.files().len(), 1);
        running.kill().unwrap();
        running.wait().unwrap();
    }

    pub(super) fn many_files() {
        let directory = Directory::new();
        let gates: Vec<_> = (0..600).map(|_| directory.gate("db", 8)).collect();
        for gate in &gates {
            use_times(gate, 1);
        }
        drop(gates);
        for left in [344, 88, 0, 0] {
            assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 600);
            assert_eq!(directory.files().len(), left);
            let text = fs::read_to_string(directory.0.join("retired-3")).unwrap();
            assert!(text.matches("holds ").count() <= 256, "what is gone need not be known");
        }
    }

    pub(super) fn dropped_and_closed() {
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        use_times(&gate, 2);
        drop(gate);
        for _ in 0..2 {
            let sum = directory.sum("db");
            assert_eq!((sum.limit, sum.in_flight, sum.processes), (None, None, 0));
            assert_eq!(sum.counts.admitted(CRITICAL), 2);
        }
        let (first, second) = (directory.gate("db", 8), directory.gate("db", 5));
        let inside = first.try_admit(CRITICAL).unwrap();
        assert_eq!((directory.sum("db").limit, directory.sum("db").processes), (Some(13), 1));
        first.close();
        let sum = directory.sum("db");
        assert_eq!((sum.limit, sum.in_flight), (Some(5), Some(1)), "what is inside is inside");
        second.close();
        assert_eq!((directory.sum("db").limit, directory.sum("db").in_flight), (None, Some(1)));
        drop(inside);
        assert_eq!((directory.sum("db").in_flight, directory.sum("db").counts.admitted(CRITICAL)), (None, 3));
    }

    pub(super) fn files_are_folded() {
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        for round in 1..=20 {
            let child = Child::after(|| {
                use_times(&gate, 5);
                gate.set_limit(9, Some(&format!("deploy {round}"))).unwrap();
            });
            assert_eq!(directory.files().len(), 2);
            drop(child);
            for _ in 0..2 {
                assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 5 * round);
                assert_eq!(directory.files().len(), 1);
            }
        }
        let sum = directory.sum("db");
        let changes = changes(&sum);
        assert_eq!(changes.len(), 17, "16 causes and the rest, however many processes there were");
        assert_eq!((changes[0], changes[16]), (("deploy 1", 1), ("other", 4)));
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 3, "the gate's, retired, and the lock");
    }

    pub(super) fn fold_that_was_cut() {
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        use_times(&gate, 5);
        let (file, copy) = (directory.files().remove(0), directory.0.join("copy"));
        drop(gate);
        fs::copy(&file, &copy).unwrap();
        assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 5);
        assert!(!file.exists());
        fs::rename(&copy, &file).unwrap(); // as if it had not come to removing it
        for _ in 0..3 {
            assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 5);
            assert!(!file.exists());
        }
        // One that has not come to replacing the sums leaves something unfinished, which is nothing.
        fs::write(directory.0.join("retired-3.unfinished"), "tidegate retired 3\nga").unwrap();
        drop(directory.gate("db", 8));
        assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 5);
        assert!(directory.files().is_empty());
    }

    pub(super) fn unreadable_files() {
        let directory = Directory::new();
        let gate = Gate::builder("db", 8).timing(true).publish_in(&directory.0).build().unwrap();
        use_times(&gate, 5);
        let good = fs::read(&directory.files()[0]).unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(directory.0.join(name), bytes).unwrap();
        let edited = |at: usize, value: u64| {
            let mut bytes = good.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            bytes
        };
        put("empty.tidegate", &[]);
        put("short.tidegate", &good[..100]);
        put("odd.tidegate", &good[..good.len() - 3]);
        put("cut.tidegate", &good[..good.len() - 8]);
        put("long.tidegate", &[&good[..], &[0; 8]].concat());
        put("garbage.tidegate", &vec![0xa5; good.len()]);
        put("zeros.tidegate", &vec![0; good.len()]);
        put("unfinished.tidegate", &edited(0, 0));
        put("version.tidegate", &edited(8, 99));
        put("state.tidegate", &edited(16, 1));
        put("pid.tidegate", &edited(32, u64::MAX));
        put("name.tidegate", &edited(80, 4_000));
        fs::create_dir(directory.0.join("directory.tidegate")).unwrap();
        put("notes.txt", b"none of our business");
        let read = Published::read(&directory.0).unwrap();
        assert_eq!((read.gates.len(), read.unreadable), (1, 13));
        assert_eq!(read.sums()[0].counts.admitted(CRITICAL), 5);
        // Sums that are not understood are neither read nor overwritten.
        put("retired-3", b"something else");
        drop(gate);
        for _ in 0..2 {
            let read = Published::read(&directory.0).unwrap();
            assert_eq!((read.gates.len(), read.unreadable), (1, 14));
            assert_eq!(read.gates[0].presence, Presence::Dropped);
        }
        assert_eq!(fs::read(directory.0.join("retired-3")).unwrap(), b"something else");
    }

    pub(super) fn pid_reuse() {
        if !cfg!(target_os = "linux") {
            return; // only Linux tells when a process started
        }
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        let _inside = gate.try_admit(CRITICAL).unwrap();
        let mut bytes = fs::read(&directory.files()[0]).unwrap();
        bytes[40] ^= 1; // the moment it started
        fs::write(directory.0.join("0-reused.tidegate"), &bytes).unwrap();
        bytes[40] ^= 1;
        bytes[48] ^= 1; // its namespace
        fs::write(directory.0.join("1-foreign.tidegate"), &bytes).unwrap();
        let read = directory.read();
        let presences: Vec<_> = read.gates.iter().map(|gate| gate.presence).collect();
        assert_eq!(presences, [Presence::Dead, Presence::Unknown, Presence::Here]);
        for _ in 0..2 {
            let sum = directory.sum("db");
            assert_eq!((sum.limit, sum.in_flight, sum.processes), (Some(8), Some(1), 1));
            assert_eq!(sum.counts.admitted(CRITICAL), 3);
            assert_eq!(directory.files().len(), 2, "of the dead only");
        }
    }

    /// Readers fold while processes come and go: no sum is ever smaller than one before, or larger than the
    /// truth.
    pub(super) fn readers_at_once() {
        let directory = Directory::new();
        let gate = directory.gate("db", 8);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let now = directory.sum("db").counts.admitted(CRITICAL);
                        assert!((last..=50 * 10).contains(&now), "{last}, then {now}");
                        last = now;
                    }
                });
            }
            let _end = super::common::Raise(&stop);
            for _ in 0..50 {
                drop(Child::after(|| use_times(&gate, 10)));
            }
        });
        assert_eq!(directory.sum("db").counts.admitted(CRITICAL), 50 * 10);
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod common;
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[path = "common/processes.rs"]
mod processes;
