//! Gates from a TOML file.

mod gate;

pub(crate) use gate::GateTable;
#[cfg(feature = "sim")]
pub(crate) use gate::priority;
