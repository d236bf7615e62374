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

/// Up to which share nothing needs to be in order, where nothing was lost sight of there.
const LOWER_SHARE: f64 = 0.9;

/// The time that a share `q` does not exceed; infinite where so many were not seen to end, `None` where nothing
/// was seen.
pub(super) fn quantile(seen: &mut [Seen], q: f64) -> Option<f64> {
    let total: f64 = seen.iter().map(|each| each.weight).sum();
    if seen.is_empty() || total <= 0.0 {
        return None;
    }
    let (mut left, mut survive) = (total, 1.0);
    for each in upper_in_order(seen, q, &mut left, &mut survive) {
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

/// All of them in order; or, where the quantile is surely above a lower part that was all seen to end, the rest, with
/// what the lower part makes of `left` and `survive`. So a bootstrap need not sort all of it each time.
fn upper_in_order<'s>(seen: &'s mut [Seen], q: f64, left: &mut f64, survive: &mut f64) -> &'s [Seen] {
    // What ends and what is lost at the same time: it ended first.
    let order = |one: &Seen, other: &Seen| one.time.total_cmp(&other.time).then(other.ended.cmp(&one.ended));
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let cut = (LOWER_SHARE * seen.len() as f64) as usize;
    let (lower, ..) = seen.select_nth_unstable_by(cut, order);
    let weight: f64 = lower.iter().map(|each| each.weight).sum();
    let from = if lower.iter().all(|each| each.ended) && 1.0 - weight / *left > 1.0 - q + 1e-9 {
        *survive = 1.0 - weight / *left;
        *left -= weight;
        cut
    } else {
        0
    };
    seen[from..].sort_unstable_by(order);
    &seen[from..]
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
    fn what_is_not_sorted_makes_no_difference() {
        let whole = |seen: &[Seen], q: f64| {
            // As the definition has it.
            let mut times: Vec<f64> = seen.iter().map(|each| each.time).collect();
            times.sort_by(f64::total_cmp);
            let mut survive = 1.0;
            for time in times {
                let weight = |of: &dyn Fn(&Seen) -> bool| {
                    seen.iter().filter(|each| of(each)).map(|each| each.weight).sum::<f64>()
                };
                let ends = weight(&|each| each.time.to_bits() == time.to_bits() && each.ended);
                if ends > 0.0 {
                    survive *= 1.0 - ends / weight(&|each| each.time >= time);
                }
                if survive <= 1.0 - q + 1e-9 {
                    return time;
                }
            }
            f64::INFINITY
        };
        for lost_from in [0, 150, 185, 195, 1000] {
            // Times without order, all different, those from some on lost every third time.
            let some: Vec<Seen> = (0..200_u32)
                .map(|at| (f64::from((at * 73 + 11) % 200), at))
                .map(|(time, at)| Seen {
                    time,
                    weight: 1.0 + f64::from(at % 4),
                    ended: time < f64::from(lost_from) || at % 3 > 0,
                })
                .collect();
            for q in [0.1, 0.5, 0.85, 0.9, 0.92, 0.97, 0.995, 1.0] {
                let expected = whole(&some, q);
                assert_eq!(quantile(&mut some.clone(), q), Some(expected), "{q}, lost from {lost_from}");
            }
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
