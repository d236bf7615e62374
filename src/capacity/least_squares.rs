//! Least squares with up to three coefficients that must not be negative.
//!
//! The problem is convex. So its answer is the plain least-squares answer over those columns whose
//! coefficients are not zero, and of three columns there are seven such sets: all are tried, and of those
//! whose coefficients come out positive the closest is the answer, exactly. (Lawson and Hanson, *Solving
//! Least Squares Problems*, 1974, chapter 23, search the same sets one after the other.)

/// The coefficients, none negative, with which up to three `columns` come closest to `wanted`. `None` where
/// that is none of any, or the numbers are beyond reckoning.
pub(super) fn non_negative(columns: &[Vec<f64>], wanted: &[f64]) -> Option<[f64; 3]> {
    (1_u8..1 << columns.len())
        .filter_map(|set| plain(columns, wanted, set))
        .filter(|found| found.iter().all(|coefficient| *coefficient >= 0.0))
        .map(|found| (distance(columns, wanted, &found), found))
        .filter(|(distance, _)| distance.is_finite())
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, found)| found)
}

/// Least squares over the columns whose bits are in `set`, by orthogonalisation (modified Gram-Schmidt).
/// `None` where one of them says nothing that the ones before it do not.
fn plain(columns: &[Vec<f64>], wanted: &[f64], set: u8) -> Option<[f64; 3]> {
    let chosen: Vec<usize> = (0..3).filter(|column| set & 1 << column != 0).collect();
    let mut directions: Vec<Vec<f64>> = Vec::new();
    let mut triangle = [[0.0; 3]; 3];
    let mut projections = [0.0; 3];
    let mut rest = wanted.to_vec();
    for (at, column) in chosen.iter().enumerate() {
        let mut direction = columns[*column].clone();
        let length = dot(&direction, &direction).sqrt();
        for (before, known) in directions.iter().enumerate() {
            triangle[before][at] = dot(known, &direction);
            subtract(&mut direction, known, triangle[before][at]);
        }
        let own = dot(&direction, &direction).sqrt();
        // Also where it is not a number.
        if !(own.is_finite() && own > length * 1e-10) {
            return None;
        }
        for value in &mut direction {
            *value /= own;
        }
        triangle[at][at] = own;
        projections[at] = dot(&direction, &rest);
        subtract(&mut rest, &direction, projections[at]);
        directions.push(direction);
    }
    let mut found = [0.0; 3];
    for at in (0..chosen.len()).rev() {
        let known: f64 = (at + 1..chosen.len()).map(|later| triangle[at][later] * found[chosen[later]]).sum();
        found[chosen[at]] = (projections[at] - known) / triangle[at][at];
    }
    Some(found)
}

fn distance(columns: &[Vec<f64>], wanted: &[f64], coefficients: &[f64; 3]) -> f64 {
    let mut rest = wanted.to_vec();
    for (column, coefficient) in columns.iter().zip(coefficients) {
        subtract(&mut rest, column, *coefficient);
    }
    dot(&rest, &rest)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn subtract(from: &mut [f64], what: &[f64], times: f64) {
    from.iter_mut().zip(what).for_each(|(a, b)| *a -= b * times);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_that_say_the_same_are_not_told_apart() {
        let columns = [vec![1.0, 1.0], vec![2.0, 2.0], vec![0.0, 1.0]];
        assert_eq!(plain(&columns, &[1.0, 3.0], 0b011), None);
        let [first, second, third] = non_negative(&columns, &[1.0, 3.0]).unwrap();
        assert!((first - 1.0).abs() < 1e-12 && second == 0.0 && (third - 2.0).abs() < 1e-12);
    }

    proptest! {
        /// Karush, Kuhn and Tucker: no step away from the answer that keeps to the rule comes closer.
        #[test]
        fn nothing_allowed_is_closer(
            rows in prop::collection::vec((0.1_f64..10.0, 0.1_f64..10.0, 0.1_f64..10.0, -10.0_f64..10.0), 4..9),
        ) {
            let columns: [Vec<f64>; 3] = [0, 1, 2].map(|at| rows.iter().map(|row| [row.0, row.1, row.2][at]).collect());
            let wanted: Vec<f64> = rows.iter().map(|row| row.3).collect();
            let Some(found) = non_negative(&columns, &wanted) else {
                // All zero is the answer then, and no set: every column points away.
                prop_assert!(columns.iter().all(|column| dot(column, &wanted) <= 0.0));
                return Ok(());
            };
            let mut rest = wanted.clone();
            columns.iter().zip(found).for_each(|(column, times)| subtract(&mut rest, column, times));
            for (column, coefficient) in columns.iter().zip(found) {
                let gain = dot(column, &rest);
                prop_assert!(coefficient >= 0.0);
                prop_assert!(gain < 1e-7, "more of a column comes closer: {gain}");
                prop_assert!(coefficient == 0.0 || gain > -1e-7, "less of a column comes closer: {gain}");
            }
        }
    }
}
