//! A simulator in virtual time that drives the real [`Gate`](crate::Gate): what is simulated of it is the code that
//! ships.
//!
//! A [`Scenario`] says who comes ([`Arrivals`]), which gate they meet, what serves them ([`Service`],
//! [`Dependency`]) and what they do then ([`Clients`]). [`Scenario::run`] makes a [`Report`] of it. Scenarios are
//! built in code, or read from TOML by [`Scenario::from_toml`]; `examples/scenarios` has some, with what to look
//! for in each.
//!
//! ```
//! use tidegate::sim::Scenario;
//!
//! let scenario = Scenario::from_toml("collapse.toml", r#"
//!     title = "The article's collapse"
//!     duration = "30min"
//!     [arrivals]
//!     rate = "80/min"
//!     [service]
//!     kind = "shared"
//!     lambda = "3/min"
//!     sigma = 0.02
//!     kappa = 0.000555
//!     sizes = { kind = "lognormal", cv = 0.5 }
//!     [clients]
//!     timeout = "3min"
//! "#)?;
//! let report = scenario.run(1)?;
//! assert!(report.series[29].tally.error_rate() == Some(1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The model
//!
//! - **Arrivals are open**: nobody waits for somebody else's answer before asking. They come as a Poisson process
//!   with rates by stage, or at the moments of a trace, thinned at random.
//! - **A request** has a class (priority, weight) and a size, drawn when it comes, whether or not it gets in. It
//!   asks the gate. Shed, it is gone; let in, it holds its permit until its work ends.
//! - **The service** works on all that were let in, or on the first `servers` of them. Each gets on at
//!   `lambda / (1 + sigma (n - 1) + kappa n (n - 1))`, where `n` are in service: the universal scalability law.
//! - **The dependency**, if there is one, comes after: it holds the permit, and not the service.
//! - **Clients** wait for a while. What they do not wait for any more goes on, holding its permit, or is
//!   cancelled. They may come again with the same request.
//! - **Outcomes** told to the gate: success for an answer in time, overload for one that nobody waited for any
//!   more, ignore for cancelled work.
//! - **Counted at its moment**: a good answer when it comes, a late one at the client's timeout.
//!
//! # How it works
//!
//! The next event happens, until the time is up; time is whole nanoseconds, and the gate's clock is set before each
//! event. All in service attain work at one rate, so one number says how much, and a heap of finish marks gives
//! the next to be done in O(log n), whatever becomes of the rate. A few hundred bytes at most are kept for each
//! request inside, and nothing of those that have left, but for the report's series.
//!
//! One seed feeds separate streams for arrivals, mix, sizes and retries, so that scenarios which differ in their
//! gate alone meet the same users with the same work at the same moments. The same seed gives the same report on
//! the same platform, always. Across platforms it holds as far as their mathematical functions (`exp`, `ln`,
//! `pow`) agree to the last bit, which for lognormal and Pareto sizes and for the tails of exponential ones is
//! not promised.
//!
//! # Its limits
//!
//! - Admission itself takes no time, and neither do sheds, timeouts and cancellations.
//! - All clients are equally patient, and their retries follow one rule. Nobody heeds the gate's `retry_after`.
//! - A retry asks for the same work as before; what the first attempt has done is lost.
//! - Whatever happens between nanoseconds happens at the next: services of less than some microseconds are
//!   rounded visibly.
//! - One gate, one service: no chains of them, and one process, so nothing of threads or contention in the gate.
//! - Quantiles of latencies are within 1.6 %, up to 71 minutes; means and maxima are exact.
//! - A run is refused where more than 10^9 events are to be expected, and ends with an error where more than four
//!   million requests are inside.

mod agenda;
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
mod signals;
mod sizes;
mod source;
mod streams;
mod tally;
mod written;

pub use arrivals::{Arrivals, Class, Schedule, Stage, Trace};
pub use clients::{Clients, OnTimeout, Retries};
pub use report::{GateReport, InFlight, Latencies, LimitStep, Point, PriorityReport, PriorityTally, Report};
pub use rules::ScenarioError;
pub use scenario::Scenario;
pub use service::{Change, Dependency, DependencyChange, Service};
pub use signals::Push;
pub use sizes::Sizes;
pub use tally::{Latency, Tally};
