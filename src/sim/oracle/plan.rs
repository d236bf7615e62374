//! How long to simulate, for a wanted error. Pure.
//!
//! The chain says how much the share of the time varies in which a priority is refused (see [`Chain`](super::Chain)),
//! and its relaxation time how soon the start is forgotten. Arrivals are a sample of that time, which adds the
//! variance of a coin's tosses. (Srikant and Whitt, "Simulation run lengths to estimate blocking probabilities",
//! ACM TOMACS 6, 1996.) That holds for exponential service; others are scaled by how long they are felt.

use super::service::Service;
use super::system::{Oracle, refused};

/// Batches of a run, more where it is gone on with. It is at least as long as the fewer take; only a budget makes
/// them the fewest.
const BATCHES: f64 = 100.0;
const FEWER_BATCHES: f64 = 50.0;
const FEWEST_BATCHES: f64 = 10.0;
/// A batch is at least so many times as long as the past is felt.
const BATCH_TIMES: f64 = 20.0;
/// And so long is the warm-up, once there are as many inside as usual, for which it has twice the mean time.
const FILLINGS: f64 = 2.0;
const WARM_UP_TIMES: f64 = 10.0;
/// Below this share, four times the error is good enough.
const RARE: f64 = 0.005;
const RARE_FACTOR: f64 = 4.0;
/// Arrivals that the rare may cost, that are spent on what is rarer still, and that there are at least.
const RARE_ARRIVALS: f64 = 2e7;
const HOPELESS_ARRIVALS: f64 = 2e6;
const FEWEST_ARRIVALS: f64 = 200_000.0;
/// The largest part of the budget that goes into the warm-up.
const WARM_UP_SHARE: f64 = 0.2;
/// Arrivals cost twice as much with this number inside, squared: what is to be found is far apart in memory.
const CROWD: f64 = 30.0;
/// Who offers less than this share of all is helped out by visitors, who come this often.
const SELDOM: f64 = 0.1;
const VISITS: f64 = 0.25;

/// A run's length, in the oracle's unit of time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// Arrivals of each priority in a unit of time, and visitors.
    pub(super) offered: [f64; 4],
    pub(super) visits: [f64; 4],
    pub(super) expected: [f64; 4],
    /// How many sheds come together, for each priority.
    pub(super) bursts: [f64; 4],
    /// The standard errors to aim at; infinite for what is too rare.
    pub(super) targets: [f64; 4],
    pub(super) warm_up: f64,
    pub(super) batch: f64,
    pub(super) batches: usize,
    pub(super) budget: f64,
    /// Whether the budget is too small for the wanted error, or for batches that are long enough.
    pub(super) cut: bool,
}

impl Plan {
    /// For a relative error of about `aim`, within the time of `most` arrivals to a small gate.
    pub(super) fn new(oracle: &Oracle, service: Service, aim: f64, most: f64) -> Self {
        let (chain, expected) = (oracle.chain(), oracle.expected());
        let visits = visits(oracle);
        let rate: f64 = oracle.offered.iter().chain(&visits).sum();
        // Exponential service is memoryless, so that the number inside is all that the past leaves behind. Of
        // others those inside are left, too. (Where nobody is let in there is no mean stay, and `max` ignores it.)
        let stay = if service == Service::Exponential { 0.0 } else { oracle.latency() };
        let felt = chain.relaxation().max(stay) * service.persistence();
        let mut wanted = FEWEST_ARRIVALS / rate;
        let (mut bursts, mut targets) = ([1.0; 4], [f64::INFINITY; 4]);
        for level in oracle.asked() {
            let (shed, arrivals) = (expected[level], oracle.offered[level] + visits[level]);
            let in_time =
                chain.asymptotic_variance(refused(oracle.thresholds[level])) * service.persistence();
            let variance = shed * (1.0 - shed) + arrivals * in_time;
            bursts[level] = if shed > 0.0 { (variance / shed).max(1.0) } else { 1.0 };
            if shed == 0.0 {
                continue;
            }
            let target = shed * if shed >= RARE { aim } else { RARE_FACTOR * aim };
            let needed = variance / target.powi(2) / arrivals;
            if shed >= RARE || needed * rate <= RARE_ARRIVALS {
                wanted = wanted.max(needed);
                targets[level] = target;
            } else {
                wanted = wanted.max(HOPELESS_ARRIVALS / rate);
            }
        }
        let wanted = wanted.max(FEWER_BATCHES * BATCH_TIMES * felt);
        let filling = chain.filling() * service.persistence();
        let warm_up = FILLINGS * filling + WARM_UP_TIMES * felt;
        let budget = most / (1.0 + oracle.in_flight().sqrt() / CROWD) / rate;
        let cut = wanted + warm_up > budget;
        let warm_up = warm_up.min(WARM_UP_SHARE * budget);
        if warm_up < FILLINGS * filling + felt {
            // It may never have come near its usual state: then nothing seen says anything.
            bursts = [f64::INFINITY; 4];
        }
        let time = wanted.min(budget - warm_up);
        let batches = (time / (BATCH_TIMES * felt)).clamp(FEWEST_BATCHES, BATCHES).floor();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 10 to 100
        let count = batches as usize;
        let batch = time / batches;
        Self {
            offered: oracle.offered,
            visits,
            expected,
            bursts,
            targets,
            warm_up,
            batch,
            batches: count,
            budget,
            cut,
        }
    }

    /// All that come in a unit of time.
    pub(super) fn rate(&self) -> f64 {
        self.offered.iter().chain(&self.visits).sum()
    }
}

/// Who is asked about and comes too seldom to tell is joined by visitors who leave at once: they change nothing,
/// and Poisson arrivals see time averages, whoever they are (Wolff, 1982).
fn visits(oracle: &Oracle) -> [f64; 4] {
    let total: f64 = oracle.offered.iter().sum();
    let mut visits = [0.0; 4];
    for level in oracle.asked() {
        if oracle.offered[level] <= SELDOM * total {
            visits[level] = if total > 0.0 { VISITS * total } else { 1.0 / oracle.alone() };
        }
    }
    visits
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // what is exact
mod tests {
    use super::*;

    fn plan(oracle: &Oracle, service: Service, most: f64) -> Plan {
        Plan::new(oracle, service, 0.015, most)
    }

    #[test]
    fn longer_for_rarer_and_for_more_persistent() {
        let time = |plan: &Plan| plan.batch * f64::from(u32::try_from(plan.batches).unwrap());
        let (often, rarely) = (Oracle::erlang_b(10, 10.0).unwrap(), Oracle::erlang_b(20, 12.0).unwrap());
        let often_time = time(&plan(&often, Service::Exponential, 1e9));
        let rarely_time = time(&plan(&rarely, Service::Exponential, 1e9));
        let persistent_time = time(&plan(&rarely, Service::Hyperexponential, 1e9));
        assert!(rarely_time > 3.0 * often_time && persistent_time > 1.5 * rarely_time);
        for oracle in [often, rarely] {
            for service in Service::ALL {
                let plan = plan(&oracle, service, 1e9);
                let felt = oracle.chain().relaxation() * service.persistence();
                assert!(!plan.cut && (50..=100).contains(&plan.batches), "{plan:?}");
                assert!(plan.batch >= 20.0 * felt && plan.warm_up >= 10.0 * felt, "{plan:?}");
            }
        }
    }

    #[test]
    fn a_gate_that_fills_slowly_is_waited_for() {
        // Always full, and forgets soon once it is; but filling takes longer than that.
        let oracle = Oracle::degrading(113.2, 60, 3.0, 0.1, 0.005).unwrap();
        assert!(oracle.chain().filling() > 10.0 * oracle.chain().relaxation());
        let plan = plan(&oracle, Service::Exponential, 1e9);
        assert!(!plan.cut && plan.bursts[1].is_finite() && plan.warm_up > oracle.chain().filling());
    }

    #[test]
    fn what_would_take_for_ever_is_cut() {
        // Two basins: 40 a minute are answered by few at a time or by hardly any of many.
        let oracle = Oracle::degrading(40.0, 300, 3.0, 0.02, 5.55e-4).unwrap();
        let plan = plan(&oracle, Service::Exponential, 1e6);
        let time = plan.warm_up + plan.batch * f64::from(u32::try_from(plan.batches).unwrap());
        assert!(plan.cut && time.is_finite(), "{plan:?}");
        assert!(time * plan.rate() < 1e6 && (time / plan.budget - 1.0).abs() < 1e-9, "{plan:?}");
        assert!(plan.batches >= 10);
    }

    #[test]
    fn who_never_comes_is_visited() {
        let oracle = Oracle::thresholds(5, [5, 4, 3, 2], [0.0, 2.0, 2.0, 0.01]).unwrap();
        let plan = plan(&oracle, Service::Exponential, 1e9);
        assert_eq!(plan.visits.map(|visits| visits > 0.0), [true, false, false, true]);
        let nobody = Oracle::erlang_b(5, 0.0).unwrap();
        assert_eq!(Plan::new(&nobody, Service::Exponential, 0.015, 1e9).visits, [0.0, 1.0, 0.0, 0.0]);
    }
}
