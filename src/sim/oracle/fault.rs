//! What can be wrong with an oracle's numbers.

/// A number outside its range, or thresholds that break their rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} must be {rule}, got {got}")]
#[non_exhaustive]
pub struct OracleError {
    /// Which one, as the command line has it.
    pub name: &'static str,
    /// What it must be.
    pub rule: String,
    /// What it is.
    pub got: String,
}
