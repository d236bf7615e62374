//! The capacity test: what it does next, what it recommends, and both against targets whose truth is known.

// Counts in tests are small.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

mod ideal;
mod plan;
mod recommendation;
mod search;
mod simulated;
mod watch;
