//! How near predictions come to what was measured: ranks, regret and errors, without knowing what the numbers mean.

/// The rank correlation of two lists by Spearman: Pearson's correlation of the ranks, where equal values share the mean of
/// theirs. `None` where the lists are no pairs, fewer than three, or one of them is constant or holds no number.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || a.len() < 3 || a.iter().chain(b).any(|value| value.is_nan()) {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() + 1) as f64 / 2.0;
    let (mut both, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(&b) {
        let (x, y) = (x - mean, y - mean);
        both += x * y;
        of_a += x * x;
        of_b += y * y;
    }
    (of_a > 0.0 && of_b > 0.0).then(|| both / (of_a * of_b).sqrt())
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&x, &y| values[x].total_cmp(&values[y]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let same = order[first..]
            .iter()
            .take_while(|&&at| values[at] == values[order[first]])
            .count()
            .max(1);
        for &at in &order[first..first + same] {
            ranks[at] = (2 * first + same + 1) as f64 / 2.0;
        }
        first += same;
    }
    ranks
}

/// What it costs to take the configuration predicted best: its measured time over the least measured. Of several with the
/// same prediction the slowest counts, so that the order of the rows cannot help.
pub fn regret(predicted: &[f64], measured: &[f64]) -> Option<f64> {
    let least = |values: &[f64]| values.iter().copied().min_by(f64::total_cmp);
    let (chosen, best) = (least(predicted)?, least(measured)?);
    let taken = predicted
        .iter()
        .zip(measured)
        .filter(|(predicted, _)| **predicted == chosen)
        .map(|(_, measured)| *measured)
        .max_by(f64::total_cmp)?;
    (best > 0.0).then(|| taken / best)
}

/// `|log(predicted / measured)|` of each pair after one fitted scale: the one that makes the sum of these errors least, by
/// which half of the predictions are too high.
pub fn scaled(pairs: &[(f64, f64)]) -> Vec<f64> {
    let logs: Vec<f64> = pairs.iter().map(log).collect();
    let Some(middle) = quantile(&logs, 0.5) else {
        return Vec::new();
    };
    logs.iter().map(|log| (log - middle).abs()).collect()
}

/// `|log(predicted / measured)|` of each pair.
pub fn raw(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|pair| log(pair).abs()).collect()
}

fn log((predicted, measured): &(f64, f64)) -> f64 {
    (predicted / measured).ln()
}

/// The value below which a share of the values lies, between two values in proportion. `None` of nothing.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    let (below, above) = (sorted[below], sorted[above]);
    // The difference of two infinities is no number.
    let between = if below == above {
        0.0
    } else {
        (above - below) * at.fract()
    };
    Some(below + between)
}

/// The median and the 90th percentile of errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// How many there are.
    pub count: usize,
    /// Half of them are smaller.
    pub median: f64,
    /// Nine of ten are smaller.
    pub p90: f64,
}

impl Errors {
    /// `None` of nothing.
    pub fn of(errors: &[f64]) -> Option<Errors> {
        Some(Errors {
            count: errors.len(),
            median: quantile(errors, 0.5)?,
            p90: quantile(errors, 0.9)?,
        })
    }
}

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The geometric mean of values above zero; `None` of nothing.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    mean(&logs).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: Option<f64>, b: f64) {
        let a = a.unwrap();
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn ranks_that_are_equal_share_their_mean() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(ranks(&[5.0, 5.0, 5.0]), [2.0, 2.0, 2.0]);
    }

    #[test]
    fn rank_correlation_by_hand() {
        near(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 4000.0]), 1.0);
        near(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        // 1 - 6 Σd² / n(n² - 1) with d = 0, 1, -1, 1, -1.
        near(
            spearman(&[1.0, 2.0, 3.0, 4.0, 5.0], &[1.0, 3.0, 2.0, 5.0, 4.0]),
            0.8,
        );
        // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / √(4.5 · 5).
        near(
            spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]),
            4.5 / 22.5_f64.sqrt(),
        );
    }

    #[test]
    fn without_an_order_there_is_no_correlation() {
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[], &[]), None);
        assert_eq!(spearman(&[1.0, 2.0, 3.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn regret_is_what_the_choice_costs() {
        near(regret(&[3.0, 1.0, 2.0], &[10.0, 15.0, 20.0]), 1.5);
        // Two are predicted best: the slower counts.
        near(regret(&[1.0, 1.0, 2.0], &[10.0, 15.0, 5.0]), 3.0);
        assert_eq!(regret(&[], &[]), None);
    }

    #[test]
    fn one_scale_takes_a_common_factor_away() {
        let pairs = [(2.0, 1.0), (4.0, 2.0), (6.0, 3.0)];
        assert!(scaled(&pairs).iter().all(|error| *error < 1e-12));
        near(quantile(&raw(&pairs), 0.5), 2.0_f64.ln());
        // One that is off by another factor keeps its error.
        let pairs = [(2.0, 1.0), (2.0, 1.0), (8.0, 1.0)];
        near(quantile(&scaled(&pairs), 1.0), 4.0_f64.ln());
        assert!(scaled(&[]).is_empty());
    }

    #[test]
    fn quantiles_lie_between_values() {
        near(quantile(&[4.0, 1.0, 2.0, 3.0], 0.5), 2.5);
        near(quantile(&[1.0], 0.9), 1.0);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, f64::INFINITY], 1.0), Some(f64::INFINITY));
        near(geometric_mean(&[1.0, 4.0]), 2.0);
    }
}
