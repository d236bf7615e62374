//! The systems whose answers are known exactly, and what each of them sheds. Pure.

use super::erlang::erlang_b;
use super::fault::OracleError;
use crate::chain::Chain;

/// The largest limit of an oracle: its chain has a state for each number inside.
pub const MAX_ORACLE_LIMIT: u32 = 1_000_000;

/// The largest rate, load or slowdown of an oracle.
pub const MAX_AMOUNT: f64 = 1e6;

/// The smallest rate or load but 0.
const MIN_AMOUNT: f64 = 1e-6;

/// A gate in front of something whose behaviour is known, where the share that it sheds is known, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Oracle {
    pub(super) limit: u32,
    pub(super) thresholds: [u32; 4],
    /// Arrivals by priority in a unit of time.
    pub(super) offered: [f64; 4],
    pub(super) speed: Speed,
    kind: Kind,
}

/// How fast work is done, in the same unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Speed {
    /// What one alone gets done.
    pub(super) lambda: f64,
    /// Slowdown by contention; none: everybody is as fast as alone.
    pub(super) sigma: f64,
    /// Slowdown by pairs.
    pub(super) kappa: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ErlangB,
    Degrading,
    Thresholds,
}

/// One as fast as the unit of time has it, however many there are.
const STEADY: Speed = Speed { lambda: 1.0, sigma: 0.0, kappa: 0.0 };

impl Oracle {
    /// A gate of `limit` in front of what does not slow down; `offered` is the arrival rate times the mean
    /// service. Exact for any service times.
    ///
    /// # Errors
    /// [`OracleError`] where a number is outside its range.
    pub fn erlang_b(limit: i64, offered: f64) -> Result<Self, OracleError> {
        let limit = checked_limit("limit", limit)?;
        let offered = [0.0, load("offered", offered)?, 0.0, 0.0];
        Ok(Self { limit, thresholds: [limit; 4], offered, speed: STEADY, kind: Kind::ErlangB })
    }

    /// A gate of `limit` in front of a database whose queries slow each other down: n at work finish
    /// `lambda` n / (1 + `sigma` (n - 1) + `kappa` n (n - 1)) a minute (Gunther's universal scalability law).
    /// `rate` and `lambda` are per minute. Exact for any sizes.
    ///
    /// # Errors
    /// [`OracleError`] where a number is outside its range.
    pub fn degrading(
        rate: f64,
        limit: i64,
        lambda: f64,
        sigma: f64,
        kappa: f64,
    ) -> Result<Self, OracleError> {
        let limit = checked_limit("limit", limit)?;
        let offered = [0.0, load("rate", rate)?, 0.0, 0.0];
        let lambda = within("lambda", MIN_AMOUNT, lambda)?;
        let (sigma, kappa) = (within("sigma", 0.0, sigma)?, within("kappa", 0.0, kappa)?);
        Ok(Self {
            limit,
            thresholds: [limit; 4],
            offered,
            speed: Speed { lambda, sigma, kappa },
            kind: Kind::Degrading,
        })
    }

    /// A gate with thresholds in whole weights, the most important priority first, in front of what does not
    /// slow down, with the load that each priority offers. Exact for exponential service.
    ///
    /// # Errors
    /// [`OracleError`] where a number is outside its range, the first threshold is not the limit, or one is
    /// above that before it.
    pub fn thresholds(limit: i64, thresholds: [i64; 4], offered: [f64; 4]) -> Result<Self, OracleError> {
        let limit = checked_limit("limit", limit)?;
        let mut checked = [0; 4];
        for (checked, threshold) in checked.iter_mut().zip(thresholds) {
            *checked = checked_limit("each of thresholds", threshold)?;
        }
        if checked[0] != limit || checked.windows(2).any(|pair| pair[1] > pair[0]) {
            let rule = format!("{limit} (the limit) first and never rising");
            let got = checked.map(|threshold| threshold.to_string()).join(",");
            return Err(OracleError { name: "thresholds", rule, got });
        }
        for offered in offered {
            load("each of offered", offered)?;
        }
        Ok(Self { limit, thresholds: checked, offered, speed: STEADY, kind: Kind::Thresholds })
    }

    /// The number inside.
    #[must_use]
    pub fn chain(&self) -> Chain {
        let come = |inside: u32| {
            let let_in = self.thresholds.iter().zip(&self.offered).filter(|&(&most, _)| inside < most);
            // From the least important on, which gives a round sum where they offer alike.
            let_in.map(|(_, offered)| offered).sum()
        };
        Chain::new(self.limit, come, |inside| self.speed.at(inside))
    }

    /// The share of each priority that is shed; of one that offers nothing, what a visitor would meet.
    #[must_use]
    pub fn expected(&self) -> [f64; 4] {
        if self.kind == Kind::ErlangB {
            return [erlang_b(self.limit, self.offered[1]); 4];
        }
        let chain = self.chain();
        self.thresholds.map(|most| chain.mean(refused(most)))
    }

    /// Whether the answer is one share, or one for each priority.
    #[must_use]
    pub fn by_priority(&self) -> bool {
        self.kind == Kind::Thresholds
    }

    /// The priorities whose shares are the answer.
    pub(super) fn asked(&self) -> impl Iterator<Item = usize> + use<> {
        if self.by_priority() { 0..4 } else { 1..2 }
    }

    pub(super) fn slows_down(&self) -> bool {
        self.kind == Kind::Degrading
    }

    /// The mean time that one alone takes.
    pub(super) fn alone(&self) -> f64 {
        1.0 / self.speed.lambda
    }

    /// The mean number inside.
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        self.chain().mean(f64::from)
    }

    /// The mean time inside of whoever is let in (Little's law), in the unit of time of the rates; NaN where
    /// nobody is.
    #[must_use]
    pub fn latency(&self) -> f64 {
        let shed = self.expected();
        let admitted: f64 = self.offered.iter().zip(shed).map(|(offered, shed)| offered * (1.0 - shed)).sum();
        self.in_flight() / admitted
    }
}

impl Speed {
    /// What `inside` get done together in a unit of time.
    fn at(self, inside: u32) -> f64 {
        let n = f64::from(inside);
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }
}

/// 1 where somebody with the threshold `most` is turned away, else 0.
pub(super) fn refused(most: u32) -> impl Fn(u32) -> f64 {
    move |inside| f64::from(u8::from(inside >= most))
}

fn checked_limit(name: &'static str, limit: i64) -> Result<u32, OracleError> {
    u32::try_from(limit).ok().filter(|&limit| limit <= MAX_ORACLE_LIMIT).ok_or_else(|| OracleError {
        name,
        rule: format!("a whole number from 0 to {MAX_ORACLE_LIMIT}"),
        got: limit.to_string(),
    })
}

fn load(name: &'static str, load: f64) -> Result<f64, OracleError> {
    if load == 0.0 {
        return Ok(0.0);
    }
    within(name, MIN_AMOUNT, load)
        .map_err(|fault| OracleError { rule: format!("0 or {}", fault.rule), ..fault })
}

fn within(name: &'static str, least: f64, amount: f64) -> Result<f64, OracleError> {
    if (least..=MAX_AMOUNT).contains(&amount) {
        return Ok(amount);
    }
    let rule = format!("a number from {least:e} to {MAX_AMOUNT:e}").replace("0e0", "0");
    Err(OracleError { name, rule, got: amount.to_string() })
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // what is exact
mod tests {
    use super::*;

    fn rows(name: &str) -> Vec<serde_json::Value> {
        let text = include_str!("../../../tests/oracles/oracles.json");
        let table: serde_json::Value = serde_json::from_str(text).unwrap();
        let rows = table[name].as_array().unwrap().clone();
        assert!(rows.len() >= 3, "{name} has rows");
        rows
    }

    fn assert_near(row: &serde_json::Value, what: &str, got: f64, expected: &serde_json::Value) {
        let expected = expected.as_f64().unwrap();
        assert!((got / expected - 1.0).abs() < 1e-10, "{row}: {what} is {got}");
    }

    #[test]
    fn erlang_rows_by_the_recursion_and_by_the_chain() {
        for row in rows("erlang_b") {
            let limit = row["limit"].as_i64().unwrap();
            let oracle = Oracle::erlang_b(limit, row["offered"].as_f64().unwrap()).unwrap();
            assert_near(&row, "the recursion", oracle.expected()[1], &row["shed"]);
            assert_near(&row, "the chain", oracle.chain().mean(refused(oracle.limit)), &row["shed"]);
        }
    }

    #[test]
    fn degrading_rows() {
        for row in rows("degrading") {
            let number = |key: &str| row[key].as_f64().unwrap();
            let (rate, limit) = (number("rate_per_min"), row["limit"].as_i64().unwrap());
            let oracle =
                Oracle::degrading(rate, limit, number("lam_per_min"), number("sigma"), number("kappa"))
                    .unwrap();
            assert_near(&row, "shed", oracle.expected()[1], &row["shed"]);
            assert_near(&row, "in flight", oracle.in_flight(), &row["in_flight"]);
            assert_near(&row, "latency", oracle.latency(), &row["latency"]);
        }
    }

    #[test]
    fn threshold_rows() {
        for row in rows("thresholds") {
            let thresholds = std::array::from_fn(|level| row["thresholds"][level].as_i64().unwrap());
            let offered = std::array::from_fn(|level| row["offered"][level].as_f64().unwrap());
            let oracle = Oracle::thresholds(row["limit"].as_i64().unwrap(), thresholds, offered).unwrap();
            for (level, got) in oracle.expected().into_iter().enumerate() {
                assert_near(&row, "shed", got, &row["shed"][level]);
            }
            assert_near(&row, "in flight", oracle.in_flight(), &row["in_flight"]);
        }
    }

    /// The table of the research, to five places.
    #[test]
    fn the_degrading_table() {
        for (rate, limit, shed) in [(50.0, 30, 0.16826), (80.0, 25, 0.49121), (80.0, 42, 0.43319)] {
            let got = Oracle::degrading(rate, limit, 3.0, 0.02, 5.55e-4).unwrap().expected()[1];
            assert!((got - shed).abs() < 5e-6, "{rate}, {limit}: {got}");
        }
    }

    #[test]
    fn what_does_not_slow_down_is_erlang_in_all_three() {
        for (limit, offered) in [(0, 2.0), (1, 0.0), (7, 5.0)] {
            let exact = erlang_b(u32::try_from(limit).unwrap(), offered);
            let degrading = Oracle::degrading(3.0 * offered, limit, 3.0, 0.0, 0.0).unwrap().expected()[1];
            let thresholds = Oracle::thresholds(limit, [limit; 4], [offered / 4.0; 4]).unwrap().expected();
            assert!((degrading - exact).abs() < 1e-12, "{degrading} for {exact}");
            assert!(thresholds.iter().all(|shed| (shed - exact).abs() < 1e-12), "{thresholds:?} for {exact}");
        }
    }

    #[test]
    fn a_threshold_of_0_turns_everybody_away() {
        let oracle = Oracle::thresholds(5, [5, 5, 0, 0], [0.0, 0.0, 2.0, 2.0]).unwrap();
        assert_eq!(oracle.expected(), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(oracle.chain().probabilities(), [1.0]);
    }

    #[test]
    fn what_breaks_a_rule_is_named_with_it() {
        let refused = |result: Result<Oracle, OracleError>| result.unwrap_err().to_string();
        assert_eq!(
            refused(Oracle::erlang_b(-1, 1.0)),
            "limit must be a whole number from 0 to 1000000, got -1"
        );
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
            let rule = format!("must be a number from 0 to 1e6, got {bad}");
            let load = format!("must be 0 or a number from 1e-6 to 1e6, got {bad}");
            assert_eq!(refused(Oracle::erlang_b(1, bad)), format!("offered {load}"));
            assert_eq!(refused(Oracle::degrading(1.0, 1, 1.0, bad, 0.0)), format!("sigma {rule}"));
            assert_eq!(refused(Oracle::degrading(1.0, 1, 1.0, 0.0, bad)), format!("kappa {rule}"));
            assert_eq!(refused(Oracle::degrading(bad, 1, 1.0, 0.0, 0.0)), format!("rate {load}"));
            let last = Oracle::thresholds(1, [1; 4], [0.0, 0.0, 0.0, bad]);
            assert_eq!(refused(last), format!("each of offered {load}"));
        }
        assert_eq!(
            refused(Oracle::degrading(1.0, 1, 0.0, 0.0, 0.0)),
            "lambda must be a number from 1e-6 to 1e6, got 0"
        );
        for (thresholds, got) in
            [([9, 9, 9, 8], "9,9,9,8"), ([10, 10, 8, 9], "10,10,8,9"), ([11; 4], "11,11,11,11")]
        {
            assert_eq!(
                refused(Oracle::thresholds(10, thresholds, [1.0; 4])),
                format!("thresholds must be 10 (the limit) first and never rising, got {got}")
            );
        }
    }
}
