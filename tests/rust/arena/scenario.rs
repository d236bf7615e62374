//! What the controllers are put through.

use crate::common::Rng;
use crate::database::Law;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Sizes {
    Lognormal,
    /// 3 % are 49 times the rest.
    Bimodal,
    Exponential,
    /// 70 % are answered from memory, without the database.
    Cached,
}

impl Sizes {
    /// With mean one; none for what does not need the database.
    pub(crate) fn draw(self, rng: &mut Rng) -> Option<f64> {
        if matches!(self, Self::Cached) && rng.uniform() < 0.7 {
            return None;
        }
        Some(match self {
            Self::Lognormal | Self::Cached => {
                let variance = 1.25_f64.ln(); // coefficient of variation 0.5
                (rng.normal() * variance.sqrt() - variance / 2.0).exp()
            }
            Self::Bimodal => (if rng.uniform() < 0.03 { 49.0 } else { 1.0 }) / 2.44,
            Self::Exponential => rng.exponential(),
        })
    }
}

/// What holds from some moment on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) from: f64,
    /// Arrivals a second.
    pub(crate) arrivals: f64,
    pub(crate) law: Law,
    /// A slow dependency that every request waits for after the database, in seconds.
    pub(crate) after: f64,
    /// Nothing is answered: every request ends as an overload after so many seconds.
    pub(crate) timeout: Option<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) sizes: Sizes,
    pub(crate) stages: Vec<Stage>,
    /// In seconds, as all times here.
    pub(crate) end: f64,
    pub(crate) objective: f64,
    /// Fixed limits to compare with.
    pub(crate) sweep: &'static [u32],
}

pub(crate) const LAW: Law = Law { rate: 3.0, sigma: 0.02, kappa: 5.55e-4, workers: 1e9, cliff: usize::MAX };
/// The most it gives, at 42 inside.
const BEST: f64 = 45.4;
const SWEEP: &[u32] = &[10, 14, 20, 25, 30, 36, 42, 50, 60, 75, 100];

fn stage(from: f64, load: f64) -> Stage {
    Stage { from, arrivals: load * BEST, law: LAW, after: 0.0, timeout: None }
}

fn scenario(name: &'static str, stages: Vec<Stage>) -> Scenario {
    Scenario { name, sizes: Sizes::Lognormal, stages, end: 2_100.0, objective: 3.0, sweep: SWEEP }
}

/// Something else between 700 and 1,400 seconds.
fn between(name: &'static str, change: impl Fn(&mut Stage)) -> Scenario {
    let mut middle = stage(700.0, 2.0);
    change(&mut middle);
    scenario(name, vec![stage(0.0, 2.0), middle, stage(1_400.0, 2.0)])
}

/// Steady traffic of twice the best, on a database of another law.
fn on(name: &'static str, sweep: &'static [u32], law: Law) -> Scenario {
    Scenario { sweep, ..scenario(name, vec![Stage { law, ..stage(0.0, 2.0) }]) }
}

pub(crate) fn named(name: &str) -> Scenario {
    all().into_iter().find(|scenario| scenario.name == name).expect("a scenario of this name")
}

pub(crate) fn all() -> Vec<Scenario> {
    let tiny = Stage { arrivals: 10_000.0, law: Law { rate: 40_000.0, ..LAW }, ..stage(0.0, 1.0) };
    let slow =
        Stage { arrivals: 2.0 * BEST / 60.0, law: Law { rate: LAW.rate / 60.0, ..LAW }, ..stage(0.0, 2.0) };
    vec![
        scenario("steady-2x", vec![stage(0.0, 2.0)]),
        scenario("steady-5x", vec![stage(0.0, 5.0)]),
        scenario("mild-1.25x", vec![stage(0.0, 1.25)]),
        Scenario { sizes: Sizes::Bimodal, ..scenario("bimodal-2x", vec![stage(0.0, 2.0)]) },
        between("capacity-quarter", |stage| stage.law.rate /= 4.0),
        between("kappa-16x", |stage| stage.law.kappa *= 16.0),
        scenario("idle-burst", vec![stage(0.0, 2.0), stage(700.0, 0.0), stage(1_400.0, 2.0)]),
        between("light-half", |stage| stage.arrivals /= 4.0),
        between("slow-dependency", |stage| stage.after = 2.0),
        between("timeout-outage", |stage| stage.timeout = Some(5.0)),
        Scenario {
            end: 60.0,
            objective: 0.01,
            sizes: Sizes::Exponential,
            sweep: &[1, 2, 3, 4, 6, 10],
            ..scenario("tiny-service", vec![tiny])
        },
        Scenario { end: 8.0 * 3_600.0, objective: 180.0, ..scenario("slow-rate-prior", vec![slow]) },
        // And some in which what it rests on does not hold.
        Scenario { sizes: Sizes::Cached, ..scenario("cached", vec![stage(0.0, 6.0)]) },
        Scenario { sizes: Sizes::Exponential, ..scenario("exponential", vec![stage(0.0, 2.0)]) },
        Scenario { objective: 1e6, ..scenario("no-objective", vec![stage(0.0, 2.0)]) },
        on("cliff", SWEEP, Law { cliff: 30, ..LAW }),
        on("plateau", SWEEP, Law { workers: 20.0, sigma: 0.0, kappa: 0.0, ..LAW }),
        on("three", &[1, 2, 3, 4, 5, 6], Law { kappa: 0.1, ..LAW }),
        on("one", &[1, 2, 3], Law { sigma: 1.5, ..LAW }),
    ]
}
