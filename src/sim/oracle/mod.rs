//! The simulator against exact queueing theory: what a gate sheds in systems that can be calculated.
//!
//! A gate that never waits is an Erlang loss system; one with thresholds is a birth-death chain; one in front of
//! a database that slows down under load is a chain, too ([`Oracle`]). The same systems can be simulated, by the
//! engine and the real gate.

mod driver;
mod erlang;
mod estimate;
mod fault;
mod plan;
mod run;
mod service;
mod system;

pub use crate::chain::Chain;
pub use erlang::erlang_b;
pub use fault::OracleError;
pub use run::{Comparison, Effort, Entry, Shares};
pub use service::Service;
pub use system::{MAX_AMOUNT, MAX_ORACLE_LIMIT, Oracle};
