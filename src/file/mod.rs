//! Gates and rules from one TOML file.
//!
//! [`Gates`] is what users hold. A file is read whole, with everything wrong in it noted (`content`), before
//! anything of it is made true; what a reload then made true is a list of [`Change`]s.

mod change;
mod classifier;
mod content;
mod controller;
mod follow;
pub(crate) mod forks;
mod gate;
mod gates;
mod read;
mod sentence;
mod signals;
mod words;

pub use change::{Change, Difference};
pub(crate) use classifier::classifier;
pub(crate) use gate::GateTable;
#[cfg(feature = "sim")]
pub(crate) use gate::priority;
pub use gates::Gates;
pub use read::toml_text;
