//! What a bottleneck can do, from measurements of it. Pure.
//!
//! A [`Search`] says what to do next and takes down what was seen; its [`Recommendation`] is at hand at any time. Who
//! does it, real time or virtual, is up to the caller; a [`Watch`] tells it when to spare the target.

mod binomial;
mod bootstrap;
mod curve;
mod fault;
mod findings;
mod least_squares;
mod plan;
mod ramp;
mod recommendation;
mod search;
mod shedding;
#[cfg(feature = "sim")]
mod simulated;
mod step;
mod survival;
mod sweep;
mod usl;
mod watch;
mod words;

pub use binomial::{CONFIDENCE, lower, sample_size, upper};
pub use fault::CapacityError;
pub use plan::Plan;
pub use ramp::Bracket;
pub use recommendation::{Law, Level, Recommendation, Share};
pub use search::Search;
pub use shedding::Reserved;
#[cfg(feature = "sim")]
pub use simulated::Simulated;
pub use step::{End, Measured, Phase, Step};
pub use usl::{Point, Usl, UslError, UslFit};
pub use watch::{Alarm, Glance, Watch};
pub use words::toml;
