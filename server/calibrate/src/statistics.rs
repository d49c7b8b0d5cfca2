//! What several measurements of one thing say: the middle one, and how far they lie apart.

/// Samples further from the median than this multiple of the median deviation are outliers.
const OUTLIER: f64 = 3.5;

/// The median absolute deviation of normal noise times this is its standard deviation.
const NORMAL: f64 = 1.4826;

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 {
        upper
    } else {
        f64::midpoint(sorted[middle - 1], upper)
    })
}

/// The standard deviation as the median absolute deviation tells it, which single outliers do not move.
pub fn deviation(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let distances: Vec<f64> = values.iter().map(|x| (x - middle).abs()).collect();
    median(&distances).unwrap_or(0.0) * NORMAL
}

/// The median of what is left without outliers.
pub fn steady(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    // Clocks tick: figures that nearly all agree have no deviation, and none is an outlier by a rounding.
    let most = (OUTLIER * deviation(values)).max(middle.abs() * 1e-3);
    let kept: Vec<f64> = values
        .iter()
        .copied()
        .filter(|x| (x - middle).abs() <= most)
        .collect();
    median(&kept)
}

/// What is reached at most: the median of those within a twentieth of the largest, so that the luckiest of many
/// configurations that all saturate does not decide.
pub fn plateau(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().filter(|x| x.is_finite()).collect();
    let largest = values.iter().copied().max_by(f64::total_cmp)?;
    let near: Vec<f64> = values
        .into_iter()
        .filter(|x| *x >= 0.95 * largest)
        .collect();
    median(&near)
}

/// How far apart they lie: the deviation over the median.
pub fn spread(values: &[f64]) -> f64 {
    match median(values) {
        Some(middle) if middle != 0.0 => deviation(values) / middle.abs(),
        _ => 0.0,
    }
}

/// The line through points with the least squares of relative errors: where it begins and its slope. `None` with fewer
/// than two places.
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let usable = points.iter().filter(|(x, y)| x.is_finite() && *y > 0.0);
    let (mut w, mut wx, mut wy, mut wxx, mut wxy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(x, y) in usable {
        let weight = 1.0 / (y * y);
        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    let determinant = w * wxx - wx * wx;
    if !(determinant.is_finite() && determinant > 1e-12 * w * wxx) {
        return None;
    }
    let slope = (w * wxy - wx * wy) / determinant;
    let begin = (wy - slope * wx) / w;
    (slope.is_finite() && begin.is_finite()).then_some((begin, slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_are_left_out_and_the_spread_tells_them() {
        let quiet = [10.0, 10.1, 9.9, 10.0, 55.0];
        assert_eq!(steady(&quiet), Some(10.0));
        assert!(spread(&quiet) < 0.02);
        let busy = [10.0, 14.0, 8.0, 17.0, 11.0];
        assert!(spread(&busy) > 0.2);
        assert_eq!(steady(&[]), None);
        assert_eq!(steady(&[f64::NAN]), None);
        assert_eq!(spread(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn a_plateau_is_the_middle_of_what_saturates() {
        assert_eq!(plateau([10.0, 50.0, 98.0, 99.0, 103.0]), Some(99.0));
        assert_eq!(plateau([f64::INFINITY, 5.0]), Some(5.0));
        assert_eq!(plateau([]), None);
    }

    #[test]
    fn a_line_is_found_again() {
        let points: Vec<(f64, f64)> = (0..6)
            .map(|i| f64::from(1 << i))
            .map(|x| (x, 22.0 + 2.0 * x))
            .collect();
        let (begin, slope) = line(&points).unwrap();
        assert!((begin - 22.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(line(&[]), None);
    }
}
