//! Erlang's loss formula: what a gate sheds whose service does not slow down, whatever the service times are.
//! Pure. (A. K. Erlang, 1917; the recursion is standard, as in Kelly, "Loss networks", 1991.)

/// The share that finds all of `limit` taken, where `offered` is the arrival rate times the mean service.
#[must_use]
pub fn erlang_b(limit: u32, offered: f64) -> f64 {
    (1..=limit).map(f64::from).fold(1.0, |blocked, servers| {
        let load = offered * blocked;
        load / (servers + load)
    })
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // what is exact
mod tests {
    use super::*;

    /// Fractions, and values to twelve places, from the tables.
    #[test]
    fn as_the_tables_have_it() {
        for (limit, offered, blocked) in [
            (1, 1.0, 0.5),
            (2, 2.0, 0.4),
            (5, 3.0, 81.0 / 736.0),
            (4, 8.0, 512.0 / 891.0),
            (10, 10.0, 0.214_582_343_107),
            (10, 8.0, 0.121_661_064_253),
            (20, 12.0, 0.009_795_639_420),
            (10, 20.0, 0.537_963_168_633),
            (100, 90.0, 0.026_957_380_464),
            (135, 150.0, 0.134_901_148_066),
        ] {
            let got = erlang_b(limit, offered);
            assert!((got - blocked).abs() < 1e-12, "{limit}, {offered}: {got}");
        }
    }

    #[test]
    fn at_the_ends() {
        assert_eq!([erlang_b(0, 3.0), erlang_b(0, 0.0), erlang_b(5, 0.0)], [1.0, 1.0, 0.0]);
        // Large systems: sqrt(2 / (pi n)) at a load of n, about.
        let critical = erlang_b(100_000, 100_000.0);
        assert!((critical / (2.0 / (std::f64::consts::PI * 1e5)).sqrt() - 1.0).abs() < 0.01, "{critical}");
        assert!(erlang_b(3, 1e9) > 1.0 - 1e-8 && erlang_b(100_000, 1.0) >= 0.0);
    }
}
