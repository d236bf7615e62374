//! How long requests take alone, from what they took among others.
//!
//! Each latency is divided by the slowdown where it was measured. Of one that came too late is only known that it took
//! longer than the timeout, so it counts as one that was lost sight of then. (Kaplan and Meier, "Nonparametric
//! estimation from incomplete observations", Journal of the American Statistical Association 53, 1958.)

/// A time, how much it counts, and whether it was seen to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) time: f64,
    pub(super) weight: f64,
    pub(super) ended: bool,
}

/// The time that a share `q` does not exceed; infinite where so many were not seen to end, `None` where nothing
/// was seen.
pub(super) fn quantile(seen: &mut [Seen], q: f64) -> Option<f64> {
    // What ends and what is lost at the same time: it ended first.
    seen.sort_unstable_by(|one, other| one.time.total_cmp(&other.time).then(other.ended.cmp(&one.ended)));
    let mut left: f64 = seen.iter().map(|each| each.weight).sum();
    if seen.is_empty() || left <= 0.0 {
        return None;
    }
    let mut survive = 1.0;
    for each in seen.iter() {
        if each.ended {
            survive *= 1.0 - (each.weight / left).min(1.0);
            if survive <= 1.0 - q + 1e-12 {
                return Some(each.time);
            }
        }
        left -= each.weight;
        if left <= 0.0 {
            break;
        }
    }
    Some(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(times: &[(f64, bool)]) -> Vec<Seen> {
        times.iter().map(|(time, ended)| Seen { time: *time, weight: 1.0, ended: *ended }).collect()
    }

    #[test]
    fn without_losses_it_is_the_order_statistic() {
        let times: Vec<(f64, bool)> = (1..=200).rev().map(|time| (f64::from(time), true)).collect();
        for (q, expected) in [(0.0, 1.0), (0.5, 100.0), (0.99, 198.0), (0.995, 199.0), (1.0, 200.0)] {
            assert_eq!(quantile(&mut seen(&times), q), Some(expected), "{q}");
        }
        assert_eq!(quantile(&mut [], 0.5), None);
    }

    /// The example of the textbooks: 6 of 10 seen to end.
    #[test]
    fn who_is_lost_counts_up_to_then() {
        let times = [
            (1.0, true),
            (2.0, false),
            (3.0, true),
            (4.0, true),
            (5.0, false),
            (6.0, true),
            (7.0, true),
            (8.0, false),
            (9.0, true),
            (10.0, false),
        ];
        // 9/10, times 7/8, 6/7, 4/5, 3/4, 1/2: .9, .7875, .675, .54, .405, .2025.
        for (q, expected) in
            [(0.1, 1.0), (0.2, 3.0), (0.3, 4.0), (0.4, 6.0), (0.5, 7.0), (0.79, 9.0), (0.8, f64::INFINITY)]
        {
            assert_eq!(quantile(&mut seen(&times), q), Some(expected), "{q}");
        }
    }

    #[test]
    fn a_weight_is_so_many() {
        let mut heavy = seen(&[(1.0, true), (2.0, true), (3.0, true)]);
        heavy[2].weight = 2.0;
        assert_eq!(quantile(&mut heavy, 0.5), Some(2.0));
        assert_eq!(quantile(&mut heavy, 0.51), Some(3.0));
    }
}
