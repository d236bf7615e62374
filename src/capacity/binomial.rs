//! How large a share may be of which a sample was counted: exact bounds.
//!
//! With x of n counted, the largest share that is not to be ruled out is the one that gives so few as x with the
//! probability that is left to error. (Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika
//! 26, 1934.) One-sided, since a proof asks for one side.

/// How sure a bound is, unless something else is said.
pub const CONFIDENCE: f64 = 0.95;

/// The most that is counted: sums over counts stay sums of some hundredths of a second.
const MOST: u64 = 1_000_000_000;

/// The largest share that `events` of `of` leave possible; 1 where nothing was counted.
#[must_use]
pub fn upper(events: u64, of: u64, confidence: f64) -> f64 {
    if events >= of {
        return 1.0;
    }
    // The chance of at most so many falls with the share.
    bisect(|share| at_most(events, of, share) > 1.0 - confidence).1
}

/// The smallest share that `events` of `of` leave possible; 0 where nothing was counted.
#[must_use]
pub fn lower(events: u64, of: u64, confidence: f64) -> f64 {
    if events == 0 { 0.0 } else { 1.0 - upper(of.saturating_sub(events), of, confidence) }
}

/// How many have to be counted, of whom `failures` may fail, for a bound below `share`. `None` where it would be
/// more than 10^9.
#[must_use]
pub fn sample_size(failures: u64, share: f64, confidence: f64) -> Option<u64> {
    let enough = |of: u64| at_most(failures, of, share) <= 1.0 - confidence;
    let (mut few, mut many) = (failures, failures + 1);
    while !enough(many) {
        (few, many) = (many, many.saturating_mul(2));
        if few > MOST {
            return None;
        }
    }
    while many - few > 1 {
        let middle = few.midpoint(many);
        if enough(middle) { many = middle } else { few = middle }
    }
    Some(many)
}

/// The chance of at most `events` of `of`, each with the probability `share`.
#[allow(clippy::cast_precision_loss)] // counts far below 2^52
fn at_most(events: u64, of: u64, share: f64) -> f64 {
    if share <= 0.0 || events >= of {
        return 1.0;
    }
    if share >= 1.0 {
        return 0.0;
    }
    // Summed from the side with the fewer terms.
    if events > of / 2 {
        return 1.0 - at_most(of - events - 1, of, 1.0 - share);
    }
    let odds = share.ln() - (-share).ln_1p();
    let mut term = of as f64 * (-share).ln_1p();
    let mut sum = term.exp();
    for event in 0..events {
        term += odds + ((of - event) as f64).ln() - ((event + 1) as f64).ln();
        sum += term.exp();
    }
    sum.min(1.0)
}

/// Where `holds` ends between 0, where it holds, and 1: the last share and the first one.
fn bisect(holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_of_less_than_one_in_a_hundred() {
        let sizes = [0, 1, 2, 3].map(|failures| sample_size(failures, 0.01, CONFIDENCE).unwrap());
        assert_eq!(sizes, [299, 473, 628, 773]);
        for (failures, of) in (0..).zip(sizes) {
            assert!(upper(failures, of, CONFIDENCE) < 0.01 && upper(failures, of - 1, CONFIDENCE) > 0.01);
        }
        assert_eq!(sample_size(0, 1e-12, CONFIDENCE), None);
    }

    #[test]
    fn in_closed_form_at_the_ends() {
        // None of n: 1 - share to the n is the error. All of n: the same from the other side.
        for of in [1_u32, 10, 1000] {
            let none = 1.0 - 0.05_f64.powf(1.0 / f64::from(of));
            assert!((upper(0, of.into(), 0.95) - none).abs() < 1e-12);
            assert!((lower(of.into(), of.into(), 0.95) - (1.0 - none)).abs() < 1e-12);
        }
        let bounds = [upper(0, 0, 0.95), lower(0, 0, 0.95), upper(7, 7, 0.95), lower(0, 7, 0.95)];
        assert_eq!(bounds.map(f64::to_bits), [1.0, 0.0, 1.0, 0.0_f64].map(f64::to_bits));
    }

    /// Found by halving the exact sum of the distribution, in decimals of 60 digits.
    #[test]
    fn as_exact_sums_have_it() {
        for (events, of, low, high) in [
            (1, 10, 0.005_116_196_891_823_701, 0.394_163_302_436_504_77),
            (5, 10, 0.222_441_101_008_129_08, 0.777_558_898_991_870_9),
            (60, 100, 0.512_975_820_253_894_3, 0.682_473_984_763_500_5),
            (900, 1000, 0.883_008_467_903_632_1, 0.915_215_232_331_530_7),
        ] {
            assert!((lower(events, of, 0.95) - low).abs() < 1e-9, "{events} of {of}");
            assert!((upper(events, of, 0.95) - high).abs() < 1e-9, "{events} of {of}");
        }
    }
}
