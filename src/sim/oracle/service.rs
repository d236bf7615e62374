//! The service times that an oracle is tried with: as different as their means are alike. Pure.

use std::str::FromStr;

use super::fault::OracleError;

/// How service times vary about their mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Service {
    /// As memoryless as the theory of the thresholds asks for.
    #[default]
    Exponential,
    /// All the same.
    Deterministic,
    /// A long tail: the logarithm has a standard deviation of 1, so that the coefficient of variation is 1.31.
    Lognormal,
    /// Many short ones and a few long ones, with a coefficient of variation of 2 and balanced means.
    Hyperexponential,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Exponential, Self::Deterministic, Self::Lognormal, Self::Hyperexponential];

    /// The name that the command line and scenarios have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Deterministic => "deterministic",
            Self::Lognormal => "lognormal",
            Self::Hyperexponential => "hyperexponential",
        }
    }

    /// The coefficient of variation.
    #[must_use]
    pub fn variation(self) -> f64 {
        match self {
            Self::Exponential => 1.0,
            Self::Deterministic => 0.0,
            Self::Lognormal => 1.0_f64.exp_m1().sqrt(),
            Self::Hyperexponential => 2.0,
        }
    }

    /// How much longer what happened is felt than with exponential times, at least 1. Residual times have the
    /// mean (1 + cv^2) / 2, and what is inside is as correlated as they are long.
    pub(super) fn persistence(self) -> f64 {
        f64::midpoint(1.0, self.variation().powi(2)).max(1.0)
    }
}

impl FromStr for Service {
    type Err = OracleError;

    fn from_str(name: &str) -> Result<Self, OracleError> {
        Self::ALL.into_iter().find(|service| service.name() == name).ok_or_else(|| OracleError {
            name: "service",
            rule: format!("one of {}", Self::ALL.map(Self::name).join(", ")),
            got: format!("{name:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for service in Service::ALL {
            assert_eq!(service.name().parse(), Ok(service));
        }
        assert_eq!(
            "pareto".parse::<Service>().unwrap_err().to_string(),
            "service must be one of exponential, deterministic, lognormal, hyperexponential, got \"pareto\""
        );
    }
}
