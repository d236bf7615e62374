//! Gates from a TOML file.

mod classifier;
mod gate;

pub(crate) use classifier::classifier;
pub(crate) use gate::GateTable;
#[cfg(feature = "sim")]
pub(crate) use gate::priority;
