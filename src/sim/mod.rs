//! A simulator that drives the real [`Gate`](crate::Gate), in virtual time.

mod arrivals;
mod clients;
mod door;
mod engine;
pub mod oracle;
mod pool;
mod read;
mod recorder;
mod report;
mod requests;
mod rules;
mod scenario;
mod service;
mod sizes;
mod streams;
mod tally;
mod written;

pub use arrivals::{Arrivals, Class, Schedule, Stage, Trace};
pub use clients::{Clients, OnTimeout, Retries};
pub use report::{GateReport, InFlight, Latencies, LimitStep, Point, PriorityReport, PriorityTally, Report};
pub use rules::ScenarioError;
pub use scenario::Scenario;
pub use service::{Change, Dependency, DependencyChange, Service};
pub use sizes::Sizes;
pub use tally::{Latency, Tally};
