//! Gates from a TOML file.

mod gate;

pub(crate) use gate::GateTable;
