//! The C ABI: what `include/tidegate.h` declares, over the core's [`Gate`](tidegate_core::Gate).
//!
//! A room for each topic. `slots` is the one place with an algorithm of its own: it turns the core's tickets
//! into the numbers that C programs hold, and a number that was given back once is never valid again.

#![allow(non_camel_case_types)] // the names are C's
#![allow(unreachable_pub)] // `pub` is what the header has; nobody links this crate as Rust
#![allow(clippy::missing_safety_doc)] // what a caller in C promises is a chapter of the header: ownership

// In the order of the header.
mod status;

mod arguments;
mod config;
mod gate;
mod permit;

mod stats;

mod control;

mod controller;
mod gates;
mod moves;
mod pressure;
mod rate;
mod signal;

mod deferred;
mod entry;
mod slots;
#[cfg(feature = "test-hooks")]
mod test_hooks;
mod text;
mod versioned;
