//! Throughput by concurrency, and what follows from it: the smallest limit that is as good as the best.
//!
//! It is the law's where the law is near all that was measured, else it runs straight from point to point: a
//! database with two processors has a corner that no law of contention has. Nothing is read off beyond what was
//! measured.

use super::usl::{Point, Usl};

/// A limit is as good as the best if it reaches this much of its throughput.
const GOOD_ENOUGH: f64 = 0.95;
/// The law is near a point within this share of it, and so many standard deviations.
const NEAR: f64 = 0.05;
const DEVIATIONS: f64 = 3.0;

/// A count over some time, at some concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) concurrency: f64,
    pub(super) completions: f64,
    pub(super) seconds: f64,
    /// The standard deviation of `completions`, as a share.
    pub(super) spread: f64,
}

impl Counted {
    pub(super) fn throughput(&self) -> f64 {
        self.completions / self.seconds
    }
}

/// Throughput by concurrency.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Curve {
    Law(Usl),
    /// By concurrency, rising.
    Points(Vec<(f64, f64)>),
}

impl Curve {
    /// The law, where there is one near all of them.
    pub(super) fn of(counted: &[Counted]) -> Option<Self> {
        match law(counted) {
            Some(law) if near(&law, counted) => Some(Self::Law(law)),
            _ => Self::straight(counted),
        }
    }

    /// As [`of`](Self::of), of the same kind as another.
    pub(super) fn like(&self, counted: &[Counted]) -> Option<Self> {
        match self {
            Self::Law(_) => law(counted).map(Self::Law),
            Self::Points(_) => Self::straight(counted),
        }
    }

    fn straight(counted: &[Counted]) -> Option<Self> {
        let mut points: Vec<(f64, f64)> =
            counted.iter().map(|each| (each.concurrency, each.throughput())).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points.dedup_by(|one, other| one.0.to_bits() == other.0.to_bits());
        (points.len() >= 2).then_some(Self::Points(points))
    }

    pub(super) fn law(&self) -> Option<Usl> {
        match self {
            Self::Law(law) => Some(*law),
            Self::Points(_) => None,
        }
    }

    pub(super) fn throughput(&self, concurrency: f64) -> f64 {
        match self {
            Self::Law(law) => law.throughput(concurrency),
            Self::Points(points) => between(points, concurrency),
        }
    }

    /// How many times as long as alone one takes among `concurrency`, by Little's law.
    pub(super) fn slowdown(&self, concurrency: f64) -> f64 {
        match self {
            Self::Law(law) => law.slowdown(concurrency),
            Self::Points(_) => {
                let alone = self.throughput(1.0);
                (concurrency * alone / self.throughput(concurrency)).max(1.0)
            }
        }
    }

    /// The highest throughput up to the limit `most`, and where it is.
    pub(super) fn best(&self, most: u32) -> (u32, f64) {
        let at = |limit: u32| (limit, self.throughput(f64::from(limit)));
        (1..=most).map(at).fold((1, 0.0), |best, each| if each.1 > best.1 { each } else { best })
    }

    /// The smallest limit that is as good as the best of those up to `most`.
    pub(super) fn good_enough(&self, most: u32) -> u32 {
        let wanted = GOOD_ENOUGH * self.best(most).1;
        (1..=most).find(|limit| self.throughput(f64::from(*limit)) >= wanted).unwrap_or(most)
    }

    /// The largest limit up to `most` at which whatever takes `alone` on its own still takes at most `timeout`;
    /// 0 where none is.
    pub(super) fn in_time(&self, alone: f64, timeout: f64, most: u32) -> u32 {
        let late = (1..=most).find(|limit| alone * self.slowdown(f64::from(*limit)) > timeout);
        late.map_or(most, |late| late - 1)
    }
}

/// The law closest to them.
pub(super) fn law(counted: &[Counted]) -> Option<Usl> {
    let point = |each: &Counted| {
        let point = Point::counted(each.concurrency, each.completions, each.seconds);
        // The relative variance of a throughput is that of N / X, too.
        let time = each.concurrency / each.throughput();
        point.weighted(1.0 / (each.spread * time).powi(2))
    };
    let points: Vec<Point> = counted.iter().map(point).collect();
    Usl::fit(&points).ok().map(|fit| fit.usl)
}

fn near(law: &Usl, counted: &[Counted]) -> bool {
    counted.iter().all(|each| {
        let off = (law.throughput(each.concurrency) / each.throughput() - 1.0).abs();
        off <= NEAR + DEVIATIONS * each.spread
    })
}

/// Straight from point to point, through nothing at 0, and level beyond the last.
fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.partition_point(|(concurrency, _)| *concurrency < at);
    let (from, to) = match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some(from), Some(to)) => (from, *to),
        (None, Some(to)) => ((0.0, 0.0), *to),
        (last, None) => return last.map_or(0.0, |(_, throughput)| throughput),
    };
    from.1 + (to.1 - from.1) * (at - from.0) / (to.0 - from.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(throughput: impl Fn(f64) -> f64) -> Vec<Counted> {
        let at = |concurrency: f64| Counted {
            concurrency,
            completions: 1e6 * throughput(concurrency),
            seconds: 1e6,
            spread: 0.001,
        };
        [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0].map(at).into()
    }

    #[test]
    fn the_articles_limits() {
        let article = Usl::new(3.0 / 60.0, 0.02, 5.55e-4);
        let curve = Curve::of(&counted(|n| article.throughput(n))).unwrap();
        assert!(curve.law().is_some());
        assert_eq!((curve.good_enough(64), curve.best(64).0), (29, 42));
        // Nothing is read off beyond what was measured.
        assert_eq!(curve.best(30).0, 30);
        assert!((curve.slowdown(42.0) - article.slowdown(42.0)).abs() < 1e-9);
        // slow(45) = 2.979, slow(46) = 3.049.
        assert_eq!(curve.in_time(60.0, 180.0, 64), 45);
        assert_eq!(curve.in_time(180.1, 180.0, 64), 0);
        assert_eq!(curve.in_time(1.0, 180.0, 64), 64);
    }

    #[test]
    fn a_corner_is_read_from_the_points() {
        let curve = Curve::of(&counted(|n| 10.0 * n.min(4.0))).unwrap();
        assert_eq!((curve.law(), curve.good_enough(64), curve.best(64)), (None, 4, (4, 40.0)));
        for (at, throughput) in [(0.5, 5.0), (1.0, 10.0), (3.0, 30.0), (6.0, 40.0), (100.0, 40.0)] {
            assert!((curve.throughput(at) - throughput).abs() < 1e-9);
        }
        assert!((curve.slowdown(8.0) - 2.0).abs() < 1e-9 && (curve.slowdown(2.0) - 1.0).abs() < 1e-9);
        assert_eq!(curve.like(&counted(|n| n)).unwrap().law(), None);
    }

    #[test]
    fn what_is_not_well_known_counts_little() {
        let article = Usl::new(3.0 / 60.0, 0.02, 5.55e-4);
        let mut some = counted(|n| article.throughput(n));
        some[8].completions *= 1.25;
        assert_ne!(law(&some).map(|law| law.best_concurrency().unwrap().round()), Some(42.0));
        some[8].spread = 0.3;
        assert_eq!(law(&some).map(|law| law.best_concurrency().unwrap().round()), Some(42.0));
    }

    #[test]
    fn noise_is_no_corner() {
        let article = Usl::new(3.0, 0.02, 5.55e-4);
        let mut noisy = counted(|n| article.throughput(n));
        for (at, each) in noisy.iter_mut().enumerate() {
            each.completions *= if at % 2 == 0 { 1.1 } else { 0.91 };
            each.spread = 0.05;
        }
        assert!(Curve::of(&noisy).unwrap().law().is_some());
        for each in &mut noisy {
            each.spread = 0.01;
        }
        assert_eq!(Curve::of(&noisy).unwrap().law(), None);
    }
}
