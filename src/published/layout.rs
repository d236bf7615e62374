//! What a file holds.
//!
//! ```text
//! | header | GateState | tail |
//! ```
//!
//! Everything is an atomic word, so whatever bytes stand there are valid, and what they mean is checked: a
//! file may be half written, of another version, or no file of ours. The magic number is stored last.

use std::mem::{align_of, size_of};

use crate::shown::uptime_ns;
use crate::state::{GateState, Tail};
use crate::stats::Stats;
use crate::sums::Presence;
use crate::sync::{AtomicU64, Ordering};
use crate::text::Text;
use crate::word::{View, Word};

use super::process::Identity;

/// In the file's first eight bytes: "tidegate".
const MAGIC: u64 = u64::from_ne_bytes(*b"tidegate");

/// Changes with the meaning of anything in the file.
pub(super) const LAYOUT: u64 = 3;

#[derive(Debug)]
#[repr(C)]
struct Header {
    magic: AtomicU64,
    layout: AtomicU64,
    state_bytes: AtomicU64,
    tail_cells: AtomicU64,
    pid: AtomicU64,
    started: AtomicU64,
    namespace: AtomicU64,
    stack: AtomicU64,
    /// Whether the process has forked while it had the gate.
    forked: AtomicU64,
    /// Whether the process has no such gate any more.
    dropped: AtomicU64,
    gate: Text<32>,
}

/// The part of a file whose size is the same for every gate.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Front {
    header: Header,
    pub(super) state: GateState,
}

// The tail follows without a gap.
const _: () = assert!(size_of::<Front>() % align_of::<AtomicU64>() == 0);
const _: () = assert!(Text::<32>::CAPACITY > crate::error::MAX_NAME_BYTES);

/// How long a file is.
pub(super) const fn file_bytes(timing: bool) -> usize {
    size_of::<Front>() + Tail::cells(timing) * size_of::<AtomicU64>()
}

impl Front {
    /// Fills in the header of a file of zeros. Allocates nothing, for the handlers of a fork.
    pub(super) fn begin(&self, gate: &str, timing: bool, owner: Identity) {
        let Header {
            magic,
            layout,
            state_bytes,
            tail_cells,
            pid,
            started,
            namespace,
            stack,
            forked,
            dropped,
            gate: text,
        } = &self.header;
        for (cell, value) in [
            (layout, LAYOUT),
            (state_bytes, size_of::<GateState>() as u64),
            (tail_cells, Tail::cells(timing) as u64),
            (pid, u64::from(owner.pid)),
            (started, owner.started),
            (namespace, owner.namespace),
            (stack, owner.stack),
            (forked, 0),
            (dropped, 0),
        ] {
            cell.store(value, Ordering::Relaxed);
        }
        text.store(gate);
        magic.store(MAGIC, Ordering::Release);
    }

    pub(super) fn note_forked(&self) {
        self.header.forked.store(1, Ordering::Relaxed);
    }

    /// Release: whoever sees it sees the last count.
    pub(super) fn note_dropped(&self) {
        self.header.dropped.store(1, Ordering::Release);
    }
}

/// A file that is what it says.
pub(super) struct Contents<'a> {
    front: &'a Front,
    tail: Tail<'a>,
    owner: Identity,
    pub(super) gate: Box<str>,
}

impl<'a> Contents<'a> {
    /// `None`: half written, of another version, or no file of ours.
    pub(super) fn check(front: &'a Front, tail: &'a [AtomicU64]) -> Option<Self> {
        let header = &front.header;
        let begun = header.magic.load(Ordering::Acquire) == MAGIC;
        let read = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        let same = read(&header.layout) == LAYOUT
            && read(&header.state_bytes) == size_of::<GateState>() as u64
            && read(&header.tail_cells) == tail.len() as u64
            && [Tail::cells(false), Tail::cells(true)].contains(&tail.len());
        if !begun || !same {
            return None;
        }
        let owner = Identity {
            pid: u32::try_from(read(&header.pid)).ok()?,
            started: read(&header.started),
            stack: read(&header.stack),
            namespace: read(&header.namespace),
        };
        let gate = header.gate.load()?.into_boxed_str();
        crate::config::check_name(&gate).ok()?;
        Some(Self { front, tail: Tail::new(tail), owner, gate })
    }

    pub(super) fn pid(&self) -> u32 {
        self.owner.pid
    }

    fn view(&self) -> View {
        Word::Local.view(&self.front.state)
    }

    /// Whether the gate is there, and what it counted. In this order: what is counted after it was found gone
    /// is nothing, while what was counted before might not be all of it.
    pub(super) fn read(&self) -> (Presence, Stats) {
        let presence = self.presence();
        let mut stats = Stats::read(Word::Local, &self.front.state, self.tail);
        if !self.front.state.config.shown.holds(uptime_ns()) {
            stats.forget_pressure();
        }
        let forked = self.front.header.forked.load(Ordering::Relaxed) != 0;
        if presence == Presence::Here && forked && stats.unused() {
            return (Presence::Template, stats);
        }
        (presence, stats)
    }

    fn presence(&self) -> Presence {
        if self.front.header.dropped.load(Ordering::Acquire) != 0 {
            return Presence::Dropped;
        }
        match self.owner.runs() {
            Some(true) => Presence::Here,
            Some(false) => Presence::Dead,
            None => Presence::Unknown,
        }
    }

    pub(super) fn closed(&self) -> bool {
        self.view().closed()
    }
}
