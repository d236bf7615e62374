//! The kinds of signals that have a name, as files and other languages write them.

use std::fmt;
use std::str::FromStr;

use crate::detector::Rule;
use crate::error::ConfigError;

/// What a signal measures, where that needs no more than a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Cpu`](super::Cpu).
    Cpu,
    /// [`Memory`](super::Memory).
    Memory,
    /// [`Stalls`](super::Stalls) for a CPU.
    PsiCpu,
    /// For memory.
    PsiMemory,
    /// For disks.
    PsiIo,
    /// How long the gate's own permits are held, as a share of its objective: 1 where they take that long on average.
    Latency,
    /// The share of the gate's own permits that end with [`Outcome::Overload`](crate::Outcome::Overload).
    Errors,
    /// What is [pushed](crate::Gate::signal) in.
    Pushed,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Cpu,
        Self::Memory,
        Self::PsiCpu,
        Self::PsiMemory,
        Self::PsiIo,
        Self::Latency,
        Self::Errors,
        Self::Pushed,
    ];

    /// The name used in every language, in metrics and in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::PsiCpu => "psi-cpu",
            Self::PsiMemory => "psi-memory",
            Self::PsiIo => "psi-io",
            Self::Latency => "latency",
            Self::Errors => "errors",
            Self::Pushed => "pushed",
        }
    }

    /// The rule of who sets none: [`Rule::default`], but for errors, of which ten in a hundred are many: enter at
    /// 0.1, leave at 0.05, full at 0.5.
    #[must_use]
    pub fn rule(self) -> Rule {
        match self {
            Self::Errors => Rule::ERRORS,
            _ => Rule::default(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Self, ConfigError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| ConfigError::SignalKind { got: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Signal;

    #[test]
    fn every_kind_has_a_name_and_makes_a_signal() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            let signal = Signal::of(kind);
            assert_eq!((signal.kind(), signal.name()), (Some(kind), kind.name()));
            assert!(signal == Signal::of(kind) && signal == signal.renewed());
            for other in Kind::ALL.into_iter().filter(|other| *other != kind) {
                assert!(signal != Signal::named(other, kind.name()));
            }
        }
        let refused = "disk".parse::<Kind>().unwrap_err().to_string();
        assert!(refused.contains("psi-io") && refused.ends_with("got \"disk\""), "{refused}");
    }
}
