//! A gate's state in a file, for others to read: one file for each gate and process, mapped while the gate
//! lives.
//!
//! The counters of a process that is killed then stay exactly what they were, without a thread that writes
//! them out and without a cost on the way in and out: counting is the same store, to other memory.
//!
//! - [`layout`]: what a file holds, and who is alive;
//! - [`mapping`]: the writer's side: creation, and what a fork's child does;
//! - [`directory`]: the reader's side: all files of a directory;
//! - [`retired`]: what finished files held, added up, so that files do not pile up.

#![allow(unsafe_code)]

mod directory;
mod layout;
mod mapping;
mod process;
mod retired;

pub(crate) use directory::read;
pub(crate) use mapping::Mapping;
