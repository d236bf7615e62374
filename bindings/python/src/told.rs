//! How much of what happens at a gate by itself its hooks were told: the moves of a controller, and the changes of
//! signals. The core counts them; whoever comes by next and finds a number that was not told tells it. Of several
//! threads, one tells each.
//!
//! A fork's child tells for itself, so it has numbers of its own. Its signals are looked at anew; its controller's
//! moves are counted on, and what the parent told of them is no news.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::Process;

pub(crate) struct Told {
    process: Process,
    pub(crate) moves: Counted,
    pub(crate) transitions: Counted,
    /// Those of the child that uses the gate after a fork, and so on.
    in_child: OnceLock<Box<Told>>,
}

impl Told {
    pub(crate) fn new() -> Self {
        Self {
            process: Process::current(),
            moves: Counted::default(),
            transitions: Counted::default(),
            in_child: OnceLock::new(),
        }
    }

    fn inherited(&self) -> Self {
        Self { moves: self.moves.inherited(), ..Self::new() }
    }

    /// Those of this process.
    #[inline]
    pub(crate) fn here(&self) -> &Self {
        let process = Process::current();
        let mut told = self;
        while told.process != process {
            told = told.in_child.get_or_init(|| Box::new(told.inherited()));
        }
        told
    }
}

/// How far a counter of the core's was told.
#[derive(Default)]
pub(crate) struct Counted(AtomicU64);

impl Counted {
    fn inherited(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }

    #[inline]
    pub(crate) fn is_behind(&self, now: u64) -> bool {
        self.0.load(Ordering::Relaxed) < now
    }

    /// What follows the number that is returned is the caller's to tell, and how many that is; `None` where it is
    /// somebody else's, or nothing.
    pub(crate) fn claim(&self, now: u64) -> Option<(u64, usize)> {
        let before = self.0.fetch_max(now, Ordering::Relaxed);
        (before < now).then(|| (before, usize::try_from(now - before).unwrap_or(usize::MAX)))
    }
}
