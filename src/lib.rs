//! A load shedder: an admission gate in front of a bottleneck, usually a database.
//!
//! A [`Gate`] counts what is inside and turns the rest away at once, the least important first.
//!
//! ```
//! use tidegate::{Gate, Outcome, Priority};
//!
//! let gate = Gate::new("db", 20)?;
//! match gate.try_admit(Priority::Sheddable) {
//!     Ok(permit) => {
//!         // query the database, then say what it came to (or just drop the permit)
//!         permit.release(Outcome::Success);
//!     }
//!     Err(shed) => println!("503: {shed}, retry after {:?}", gate.retry_after(shed.priority)),
//! }
//! # Ok::<(), tidegate::ConfigError>(())
//! ```
//!
//! # What it promises
//!
//! - The weight in flight never exceeds the limit, not once, not by one, also while the limit moves.
//! - A permit is given back exactly once, by whatever path its work ends.
//! - Admission is lock-free and never waits: one compare-and-swap, and one subtraction to release.
//! - The less important is turned away first: each [`Priority`] has a threshold on the same count.
//!
//! Dry run ([`GateBuilder::enforce`]) counts what would have been shed and sheds nothing. See
//! [`limitations`] for what a gate does not do.

// What only published gates and forks use.
#![cfg_attr(any(tidegate_loom, not(any(target_os = "linux", target_os = "macos"))), allow(dead_code))]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("tidegate needs 64-bit atomics: its admission word holds count, state and generation");

mod admission;
mod ask;
#[cfg(feature = "capacity")]
pub mod capacity;
mod causes;
mod classifier;
mod clock;
mod config;
mod control;
mod controlled;
pub mod controller;
pub mod detector;
#[cfg(feature = "file")]
mod document;
mod drain;
mod durations;
mod error;
#[cfg(feature = "file")]
mod file;
mod fork;
mod gate;
mod histogram;
pub mod limitations;
mod measured;
mod memory;
pub mod monitor;
mod outcome;
mod permit;
pub mod pressure;
mod priority;
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(tidegate_loom)))]
mod published;
#[cfg(not(all(any(target_os = "linux", target_os = "macos"), not(tidegate_loom))))]
#[path = "published/elsewhere.rs"]
mod published;
mod rate;
mod rated;
#[cfg(any(feature = "file", tidegate_loom))]
mod reconfigure;
mod registry;
mod replaceable;
mod retry;
mod shard;
mod shed;
mod shown;
pub mod signal;
#[cfg(feature = "sim")]
pub mod sim;
mod state;
mod stats;
mod sums;
mod sync;
mod text;
mod thread;
#[cfg(not(tidegate_loom))]
mod thread_number;
#[cfg(feature = "file")]
mod units;
mod watched;
mod word;

pub use ask::{Ask, Weight};
pub use classifier::{Classifier, Explanation, Match, Rule};
pub use clock::{Clock, ManualClock, MonotonicClock};
pub use config::GateBuilder;
pub use control::{LimitChange, limit_from};
pub use controlled::ControllerReport;
#[cfg(feature = "file")]
pub use document::{FileError, Problem};
pub use drain::DrainId;
pub use durations::Durations;
pub use error::{ConfigError, MAX_LIMIT, MAX_NAME_BYTES, MAX_RATE_COUNT};
#[cfg(feature = "file")]
pub use file::{Change, Difference, Gates, toml_text};
pub use fork::Process;
pub use gate::Gate;
pub use histogram::Histogram;
pub use measured::Reading;
pub use outcome::Outcome;
pub use permit::{OwnedPermit, Permit, Ticket};
pub use priority::{PPM_ONE, Priority, Threshold, Thresholds};
pub use rate::{Per, Rate};
pub use shed::{Reason, RetryAfter, Shed};
pub use stats::{Counts, Stats};
pub use sums::{GateSum, Presence, Published, PublishedGate};
#[cfg(not(tidegate_loom))]
pub use thread::{OWN_INDICES, own_index};
