//! What a gate does not do, and what to watch for.
//!
//! - **A process's limit is per process.** Four workers with a limit of 20 let 80 in. Divide the
//!   limit by the workers.
//! - **`std::mem::forget` on a permit keeps its weight in flight for ever.** Rust calls that safe, and no
//!   type can forbid it. [`Stats::in_flight`](crate::Stats::in_flight) shows it.
//! - **A bare exit trusts block structure.** [`Gate::exit`](crate::Gate::exit) keeps no state: one exit too
//!   many while others are inside frees one of their places. It never goes below zero, and the
//!   permit that then misses its place counts an unmatched exit. Where an exit is not the other end
//!   of a block, use a [`Permit`](crate::Permit).
//! - **The first bare entry ever, with an exit too many, while a permit is being released**: if all of that
//!   falls into the nanoseconds between the release's look at the gate and its subtraction, the count wraps and
//!   the gate stays full. A gate built with [`bare_entries`](crate::GateBuilder::bare_entries) has no such
//!   moment; Python's gates are.
//! - **Bare exits in dry run draw** whether their entry was over the limit, in proportion to what is
//!   inside. On average that is right for exponential service times only. Permits are exact.
//! - **Bare entries have no latency.** With timing on they are part of the occupancy integral, from
//!   which Little's law gives their mean, but not of the histograms. A controller is shown that mean, and how many of
//!   them were good as if they were exponential: where half of the objective is the mean, 86 of 100. Beside permits
//!   of various weights the mean is right for permits of the average weight only.
//! - **A controller in dry run** sees what enforcement would have let in, at a database that gets the rest as well.
//! - **A gate that is given its first controller or objective while it is in use** (by a file) may be off by one in
//!   what its controller believes is in flight, where somebody came or went in that very moment.
//! - **A refusal's numbers may be a moment old.** While a setter runs, the limit in a [`Shed`](crate::Shed)
//!   may be the new one beside an in-flight count from before. Admissions never mix the two.
//! - **`retry_after` is a lower bound**, from what was seen when somebody asked; after a silence of a
//!   minute the first answer is unknown.
//! - **Below a limit of 10 the default reserve of `sheddable_plus` is empty**: 0.9 of 9, rounded up, is 9.
//! - **Threads beyond the sixteenth share counters**, which costs each count a locked instruction, not
//!   exactness.
//! - **After a fork** the child's gates are empty and inherited permits inert, by `pthread_atfork`: a raw
//!   `clone` system call or `vfork` runs no handlers.
//! - **Published gates make that worse**: such a child would write its parent's file, and with it the word that
//!   admits. A forked child that then starts another program is seen as a process with the gate until it ends.
//! - **A published gate counts in a mapped file.** Cut short from outside while it is mapped, it ends the
//!   process at the next count, as any mapped file does: its directory belongs to gates alone.
//! - **Signal handlers** must not use a gate: counting is not re-entrant on one thread.
//! - **A rate is not a strict window**: a minute at 150 a minute may have the burst besides. See [`Rate`](crate::Rate).
//! - **Racing for the last of a rate** takes room for some nanoseconds: whoever comes then may be told that the gate is full,
//!   and `high_water` may include it.
//! - **2^11 changes of the rate** while one admission is stalled, with the same arrival time after them, would let it rest
//!   on the oldest; and
//! - **2^29 changes of the configuration** while one admission is stalled between its load and its swap
//!   would let it rest on the oldest.
