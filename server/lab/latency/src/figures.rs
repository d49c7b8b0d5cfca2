//! Percentiles of times.

use std::time::Duration;

/// A percentile; zero where there are no times.
pub fn percentile(times: &[Duration], percent: usize) -> Option<Duration> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent).div_ceil(100)).copied()
}

/// In milliseconds.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_rare() {
        let times: Vec<Duration> = (1..=101).rev().map(Duration::from_millis).collect();
        let at = |percent| percentile(&times, percent).map(|time| time.as_millis());
        assert_eq!((at(50), at(99), at(100)), (Some(51), Some(100), Some(101)));
        assert_eq!(percentile(&[], 50), None);
    }
}
