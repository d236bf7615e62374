//! What the gate gets done at each limit: which limits are tried, and when enough is known. Pure.
//!
//! The gate is the instrument: it is offered more than the target can do and lets in so many at a time, so that the
//! target is never overloaded by more than that, and the whole curve is seen, also beyond its peak.

use super::step::Measured;

/// One limit, as measured.
pub(super) type Cell = (u32, Measured);

/// Beyond the peak is seen where less than this share of the best gets done.
const FALLEN: f64 = 0.85;
/// No more is to be gained where so many limits in a row ...
const FLAT_CELLS: usize = 2;
/// ... bring less than this many times the best before them ...
const FLAT: f64 = 1.02;
/// ... and are so many times the first that came near the best.
const FLAT_REACH: u32 = 4;
const NEAR_BEST: f64 = 0.95;
/// Behind a gate that is less full than this, a higher limit changes nothing.
const FULL: f64 = 0.7;
/// As many as the law has parameters, and one that can contradict it.
pub(super) const FEWEST: usize = 4;

pub(super) fn goodput(seen: &Measured) -> f64 {
    #[allow(clippy::cast_precision_loss)] // counts far below 2^52
    let good = seen.good as f64;
    good / seen.seconds
}

/// The limit after `limit`: 1, 2, 4, 8, then two to each doubling.
fn after(limit: u32) -> u32 {
    if limit < 8 {
        return limit * 2;
    }
    if limit.is_power_of_two() { limit / 2 * 3 } else { limit / 3 * 4 }
}

/// The next limit; `None` where the sweep is over. `cells` are in order.
pub(super) fn next_limit(cells: &[Cell], most: u32) -> Option<u32> {
    let Some((limit, seen)) = cells.last() else {
        return Some(1);
    };
    if *limit >= most || over(cells) {
        return None;
    }
    let enough = cells.len() >= FEWEST;
    (!enough || seen.in_flight > FULL * f64::from(*limit)).then(|| after(*limit).min(most))
}

fn over(cells: &[Cell]) -> bool {
    let goodputs: Vec<f64> = cells.iter().map(|(_, seen)| goodput(seen)).collect();
    let best = goodputs.iter().copied().fold(0.0, f64::max);
    let last = goodputs.last().copied().unwrap_or_default();
    if cells.len() < FEWEST {
        // Nobody would be helped by more of them.
        return last < best / 2.0;
    }
    if last < FALLEN * best {
        return true;
    }
    let (before, recent) = goodputs.split_at(cells.len() - FLAT_CELLS);
    let best_before = before.iter().copied().fold(0.0, f64::max);
    let near = cells.iter().zip(&goodputs).find(|(_, goodput)| **goodput >= NEAR_BEST * best);
    let far = near.is_some_and(|((near, _), _)| cells[cells.len() - 1].0 >= FLAT_REACH * near);
    far && recent.iter().all(|goodput| *goodput < FLAT * best_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Usl;

    /// The limits that are tried of a target with this throughput.
    fn limits(throughput: impl Fn(f64) -> f64, most: u32) -> Vec<u32> {
        let mut cells: Vec<Cell> = Vec::new();
        while let Some(limit) = next_limit(&cells, most) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let good = (1e6 * throughput(f64::from(limit))) as u64;
            let seen = Measured { seconds: 1e6, good, in_flight: f64::from(limit), ..Measured::default() };
            cells.push((limit, seen));
        }
        cells.into_iter().map(|(limit, _)| limit).collect()
    }

    #[test]
    fn it_ends_beyond_the_peak() {
        let article = Usl::new(3.0, 0.02, 5.55e-4);
        assert_eq!(limits(|n| article.throughput(n), 512), [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96]);
        assert_eq!(limits(|n| article.throughput(n), 40).last(), Some(&40));
        assert_eq!(limits(|n| article.throughput(n), 1), [1]);
    }

    #[test]
    fn it_ends_where_no_more_is_to_be_gained() {
        assert_eq!(limits(|n| n.min(4.0), 512), [1, 2, 4, 8, 12, 16]);
        assert_eq!(limits(|n| n, 512).last(), Some(&512));
        // One at a time, and every further one in the way: four say it all the same.
        assert_eq!(limits(|n| 10.0 / n.powf(0.4), 512), [1, 2, 4, 8]);
        assert_eq!(limits(|n| 10.0 / n.powf(1.5), 512), [1, 2]);
    }

    #[test]
    fn a_gate_that_does_not_fill_is_high_enough() {
        let seen = |limit: u32| Measured {
            seconds: 1.0,
            good: 1000 * u64::from(limit),
            in_flight: 0.8 * f64::from(limit),
            ..Measured::default()
        };
        let mut cells: Vec<Cell> = [1, 2, 4, 8].map(|limit| (limit, seen(limit))).into();
        assert_eq!(next_limit(&cells, 512), Some(12));
        cells.push((12, Measured { in_flight: 8.0, ..seen(9) }));
        assert_eq!(next_limit(&cells, 512), None);
    }
}
