//! The controllers by name, and one of them.

use super::{Aimd, Bounds, Controller, Decision, Fixed, Goodput, Gradient2, Vegas, Window};

/// A controller's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Fixed`].
    Fixed,
    /// [`Aimd`].
    Aimd,
    /// [`Gradient2`].
    Gradient2,
    /// [`Vegas`].
    Vegas,
    /// [`Goodput`].
    Goodput,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Fixed, Self::Aimd, Self::Gradient2, Self::Vegas, Self::Goodput];

    /// The name, as in configuration files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Aimd => "aimd",
            Self::Gradient2 => "gradient2",
            Self::Vegas => "vegas",
            Self::Goodput => "goodput",
        }
    }

    /// The controller of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Starts one at the bounds' prior.
    #[must_use]
    pub fn start(self, bounds: Bounds) -> AnyController {
        match self {
            Self::Fixed => AnyController::Fixed(Fixed::new(bounds)),
            Self::Aimd => AnyController::Aimd(Aimd::new(bounds)),
            Self::Gradient2 => AnyController::Gradient2(Gradient2::new(bounds)),
            Self::Vegas => AnyController::Vegas(Vegas::new(bounds)),
            Self::Goodput => AnyController::Goodput(Goodput::new(bounds)),
        }
    }
}

/// One of the controllers, to be kept where the type must not say which.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // one a gate
pub enum AnyController {
    /// Holds.
    Fixed(Fixed),
    /// Bounces off drops.
    Aimd(Aimd),
    /// Follows latency against its long average.
    Gradient2(Gradient2),
    /// Follows latency against the shortest.
    Vegas(Vegas),
    /// Climbs to where most good answers come out.
    Goodput(Goodput),
}

impl Controller for AnyController {
    fn begin(&self) -> Decision {
        match self {
            Self::Fixed(controller) => controller.begin(),
            Self::Aimd(controller) => controller.begin(),
            Self::Gradient2(controller) => controller.begin(),
            Self::Vegas(controller) => controller.begin(),
            Self::Goodput(controller) => controller.begin(),
        }
    }

    fn look(&mut self, window: &Window) -> Decision {
        match self {
            Self::Fixed(controller) => controller.look(window),
            Self::Aimd(controller) => controller.look(window),
            Self::Gradient2(controller) => controller.look(window),
            Self::Vegas(controller) => controller.look(window),
            Self::Goodput(controller) => controller.look(window),
        }
    }
}
