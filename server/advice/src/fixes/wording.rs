//! How titles speak.

/// A figure: whole where it is whole, else one decimal.
pub(crate) fn number(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// `32 passes`, `1 pass`.
pub(crate) fn counted(value: f64, one: &str, many: &str) -> String {
    let figure = number(value);
    let unit = if figure == "1" { one } else { many };
    format!("{figure} {unit}")
}

/// What the whole kernel gains.
pub(crate) fn gain(gain: f64) -> String {
    if gain < 1.01 {
        "kernel time unchanged (predicted)".to_owned()
    } else if gain < 1.095 {
        format!("kernel {:.0} % faster (predicted)", (gain - 1.0) * 100.0)
    } else if gain < 9.95 {
        format!("kernel {gain:.1}x faster (predicted)")
    } else {
        format!("kernel {gain:.0}x faster (predicted)")
    }
}

/// `, occupancy 100 % -> 88 %`, where it changes.
pub(crate) fn occupancy(before: f64, after: f64) -> String {
    let percent = |fraction: f64| (fraction * 100.0).round();
    if percent(before) == percent(after) {
        String::new()
    } else {
        format!(", occupancy {} % -> {} %", percent(before), percent(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_read_well() {
        assert_eq!(gain(1.004), "kernel time unchanged (predicted)");
        assert_eq!(gain(1.05), "kernel 5 % faster (predicted)");
        assert_eq!(gain(1.094), "kernel 9 % faster (predicted)");
        assert_eq!(gain(1.096), "kernel 1.1x faster (predicted)");
        assert_eq!(gain(2.94), "kernel 2.9x faster (predicted)");
        assert_eq!(gain(14.2), "kernel 14x faster (predicted)");
        assert_eq!(counted(32.0, "pass", "passes"), "32 passes");
        assert_eq!(counted(1.0, "pass", "passes"), "1 pass");
        assert_eq!(counted(8.5, "sector", "sectors"), "8.5 sectors");
        assert_eq!(occupancy(1.0, 0.875), ", occupancy 100 % -> 88 %");
        assert_eq!(occupancy(1.0, 0.999), "");
    }
}
