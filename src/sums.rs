//! Gates of the same name, added up: over the gates of a process, or over the processes that publish theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::gate::Gate;
use crate::published;
use crate::stats::{Counts, Stats};

/// All that the gates of a name have counted, and what is inside of those that are there.
#[derive(Clone, Debug, Default)]
pub struct GateSum {
    /// The gates' name.
    pub gate: Box<str>,
    /// How many processes have such a gate that is open, or has something inside.
    pub processes: usize,
    /// The sum of the limits of the gates that are open; `None` where none is.
    pub limit: Option<u64>,
    /// The weight in flight, in gates that are open or have something inside; `None` where none is.
    pub in_flight: Option<u64>,
    /// The highest pressure level of the gates that are open and have signals; `None` where none has.
    pub pressure: Option<f64>,
    /// How many of these are overloaded.
    pub overloaded: Option<u64>,
    /// What was counted.
    pub counts: Counts,
}

impl GateSum {
    /// The sums of some gates of this process, by name.
    #[must_use]
    pub fn of<'a>(gates: impl IntoIterator<Item = &'a Gate>) -> Vec<Self> {
        let mut sums = Sums::default();
        for gate in gates {
            let stats = gate.stats();
            sums.add_counts(gate.name(), &stats.counts);
            sums.add_readings(gate.name(), std::process::id(), gate.closed(), &stats);
        }
        sums.into_vec()
    }
}

/// Whether a gate that was published is there, so that its limit and what is in flight count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Here,
    /// Its process forked, and nobody ever asked it for a permit: the parent of a preloading server, whose
    /// children have gates of their own.
    Template,
    /// Its process runs, and has dropped it.
    Dropped,
    /// Its process ended, or became another program.
    Dead,
    /// Its process belongs to another PID namespace, so whether it runs cannot be told from here.
    Unknown,
}

/// What one gate of one process has published.
#[derive(Clone, Debug)]
pub struct PublishedGate {
    /// The gate's name.
    pub gate: Box<str>,
    /// Its process.
    pub pid: u32,
    /// Whether it is there.
    pub presence: Presence,
    /// Whether it was closed.
    pub closed: bool,
    /// The reading. Of a gate that is not there the counts are final, and the rest is what it was in the end.
    pub stats: Stats,
}

/// All that is published in a directory.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// A gate for each file, oldest first.
    pub gates: Vec<PublishedGate>,
    /// What gates have counted whose files were finished and are gone.
    pub retired: Vec<(Box<str>, Counts)>,
    /// Files that were not understood: half written, of another version, or damaged.
    pub unreadable: usize,
}

impl Published {
    /// Reads a directory that gates were [published in](crate::GateBuilder::publish_in). Finished files,
    /// whose process ended or dropped the gate, are counted into one file and removed: so this needs the
    /// right to write there. It takes milliseconds, and at most one reader does it at a time.
    ///
    /// # Errors
    /// The directory cannot be read, or is locked for longer than a second; anywhere but on Linux and macOS.
    pub fn read(directory: impl AsRef<Path>) -> io::Result<Self> {
        published::read(directory.as_ref())
    }

    /// The sums over all processes, by name.
    #[must_use]
    pub fn sums(&self) -> Vec<GateSum> {
        let mut sums = Sums::default();
        for (gate, counts) in &self.retired {
            sums.add_counts(gate, counts);
        }
        for PublishedGate { gate, pid, presence, closed, stats } in &self.gates {
            sums.add_counts(gate, &stats.counts);
            if *presence == Presence::Here {
                sums.add_readings(gate, *pid, *closed, stats);
            }
        }
        sums.into_vec()
    }
}

#[derive(Default)]
struct Sums(BTreeMap<Box<str>, (GateSum, BTreeSet<u32>)>);

impl Sums {
    fn of(&mut self, gate: &str) -> &mut (GateSum, BTreeSet<u32>) {
        self.0.entry(gate.into()).or_default()
    }

    fn add_counts(&mut self, gate: &str, counts: &Counts) {
        self.of(gate).0.counts.add(counts);
    }

    /// Those of a gate that is there: a closed one admits nothing, so it has no limit, and is gone once it is
    /// empty.
    fn add_readings(&mut self, gate: &str, pid: u32, closed: bool, stats: &Stats) {
        let (sum, pids) = self.of(gate);
        if !closed {
            *sum.limit.get_or_insert(0) += u64::from(stats.limit);
            if let Some(level) = stats.pressure {
                let highest = sum.pressure.get_or_insert(0.0);
                *highest = highest.max(level);
                *sum.overloaded.get_or_insert(0) += u64::from(stats.overloaded);
            }
        }
        if !closed || stats.in_flight > 0 {
            *sum.in_flight.get_or_insert(0) += u64::from(stats.in_flight);
            pids.insert(pid);
        }
    }

    fn into_vec(self) -> Vec<GateSum> {
        let finish = |(gate, (sum, pids)): (_, (GateSum, BTreeSet<u32>))| {
            let processes = pids.len();
            GateSum { gate, processes, ..sum }
        };
        self.0.into_iter().map(finish).collect()
    }
}
