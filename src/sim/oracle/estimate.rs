//! A share and how uncertain it is, from batches of a run. Pure.
//!
//! Successive arrivals meet much the same gate, so their number says little about the error; batches that are
//! much longer than what happened is felt are as good as independent. (Batch means; for a ratio of two counts as
//! in Law and Kelton, "Simulation Modeling and Analysis", on ratio estimators.)

/// What came and what was turned away in one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) arrivals: u64,
    pub(super) shed: u64,
}

/// A share, its standard error, and the arrivals that it is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) share: f64,
    pub(super) error: f64,
    pub(super) arrivals: u64,
}

/// The share shed in the batches together. Sheds come in bursts of about `burst`; whoever has seen few or none
/// of them can be wrong by one, so the error is not less.
#[allow(clippy::cast_precision_loss)] // counts far below 2^53
pub(super) fn estimate(batches: &[Batch], burst: f64) -> Estimate {
    let arrivals: u64 = batches.iter().map(|batch| batch.arrivals).sum();
    let shed: u64 = batches.iter().map(|batch| batch.shed).sum();
    let (all, count) = (arrivals.max(1) as f64, batches.len() as f64);
    let share = shed as f64 / all;
    let squares: f64 =
        batches.iter().map(|batch| (batch.shed as f64 - share * batch.arrivals as f64).powi(2)).sum();
    let spread = if count > 1.0 { (squares * count / (count - 1.0)).sqrt() } else { f64::INFINITY };
    // No share is farther off than this.
    let most = share.max(1.0 - share);
    Estimate { share, error: (spread.max(burst.max(1.0)) / all).min(most), arrivals }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(arrivals: u64, shed: u64) -> Batch {
        Batch { arrivals, shed }
    }

    #[test]
    fn the_share_is_of_all_and_the_error_that_of_a_ratio() {
        let found = estimate(&[batch(100, 10), batch(300, 50), batch(200, 30)], 1.0);
        assert_eq!((found.share, found.arrivals), (0.15, 600));
        // Off by -5, 5, 0: sqrt(50 * 3 / 2) / 600.
        assert!((found.error - 75.0_f64.sqrt() / 600.0).abs() < 1e-15, "{found:?}");
    }

    #[test]
    fn nothing_seen_is_not_nothing() {
        let found = estimate(&[batch(500, 0); 4], 1.0);
        assert_eq!((found.share, found.error), (0.0, 1.0 / 2_000.0));
        assert_eq!(estimate(&[batch(500, 0); 4], 20.0).error.to_bits(), 0.01_f64.to_bits());
        assert_eq!(estimate(&[batch(500, 0); 4], f64::INFINITY).error.to_bits(), 1.0_f64.to_bits());
        assert_eq!(estimate(&[batch(500, 500); 4], 1.0).error.to_bits(), (1.0 / 2_000.0_f64).to_bits());
    }

    #[test]
    fn one_batch_says_nothing_of_its_error() {
        assert_eq!(estimate(&[batch(10, 4)], 1.0).error.to_bits(), 0.6_f64.to_bits());
        assert_eq!(estimate(&[], 1.0), Estimate { share: 0.0, error: 1.0, arrivals: 0 });
    }
}
