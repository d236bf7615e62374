//! The signals by name, as configuration files and other languages call them.

use std::str::FromStr;
use std::time::Duration;

use super::{Cpu, Memory, Resource, Signal, Source, Stalls};
use crate::detector::Rule;

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Cpu`].
    Cpu,
    /// [`Memory`].
    Memory,
    /// [`Stalls`] for want of a CPU.
    PsiCpu,
    /// [`Stalls`] for want of memory.
    PsiMemory,
    /// [`Stalls`] for want of disks.
    PsiIo,
    /// The gate's own latency against its objective.
    Latency,
    /// The share of the gate's own answers that were overload.
    Errors,
    /// [`Signal::pushed`].
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

    /// The name, as in configuration files.
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

    /// The rule of who sets none.
    #[must_use]
    pub fn rule(self) -> Rule {
        match self {
            Self::Errors => Rule::new(0.10, 0.05, 0.5).unwrap_or_default(),
            _ => Rule::default(),
        }
    }

    /// Whether it looks at this machine rather than at the gate or at what is pushed in.
    #[must_use]
    pub fn is_of_the_machine(self) -> bool {
        matches!(self, Self::Cpu | Self::Memory | Self::PsiCpu | Self::PsiMemory | Self::PsiIo)
    }

    /// A signal of this kind, called `name`.
    #[must_use]
    pub fn signal(self, name: impl Into<Box<str>>) -> Signal {
        match self {
            Self::Cpu => Signal::new(name, Cpu::new),
            Self::Memory => Signal::new(name, Memory::new),
            Self::PsiCpu => Signal::new(name, || Stalls::new(Resource::Cpu)),
            Self::PsiMemory => Signal::new(name, || Stalls::new(Resource::Memory)),
            Self::PsiIo => Signal::new(name, || Stalls::new(Resource::Io)),
            // Until the gate has them: unknown.
            Self::Latency | Self::Errors => Signal::function(name, Duration::from_secs(1), || None),
            Self::Pushed => Signal::pushed(name),
        }
    }

    /// For how long a reading is good; `None` where whoever pushes it says so.
    #[must_use]
    pub fn good_for(self) -> Option<Duration> {
        match self {
            Self::Cpu => Some(Cpu::new().good_for()),
            Self::Memory => Some(Memory::new().good_for()),
            Self::PsiCpu | Self::PsiMemory | Self::PsiIo => Some(Stalls::new(Resource::Cpu).good_for()),
            Self::Latency | Self::Errors => Some(Duration::from_secs(1)),
            Self::Pushed => None,
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("signal must be one of cpu, memory, psi-cpu, psi-memory, psi-io, latency, errors, pushed, got {name:?}"))
    }
}

#[cfg(all(test, not(tidegate_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_one_kind() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.signal("x").name(), "x");
        }
        for name in ["", "CPU", "psi_cpu", "psi", "push"] {
            assert!(name.parse::<Kind>().is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_pushed_is_as_good_as_it_says() {
        assert_eq!(Kind::Pushed.good_for(), None);
        assert_eq!(Kind::Cpu.good_for(), Some(Duration::from_millis(250)));
        assert_eq!(Kind::PsiIo.good_for(), Some(Duration::from_secs(1)));
    }
}
