//! Numbers and the names of bottlenecks as people read them.

/// Sizes that are named; the others are counted.
const MOST_NEEDED: usize = 3;

/// `1 234 567` as `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count: whole numbers whole, others with at most two places, `0.031` with two significant ones.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    if value == value.trunc() && value.abs() < 1e15 {
        let sign = if value < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(value.abs() as u64));
    }
    let places = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 1.0 {
        2
    } else {
        (1 - value.abs().log10().floor() as i32).clamp(2, 9) as usize
    };
    let text = format!("{value:.places$}");
    let text = if places > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    match text.parse::<i64>() {
        Ok(whole) if whole >= 1000 => grouped(whole as u64),
        _ => text.to_owned(),
    }
}

/// A count that may be unknown.
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "?".to_owned(), number)
}

/// A share of 1 as percent: `41 %`, `0.3 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 9.95 {
        format!("{percent:.0} %")
    } else if percent >= 0.05 {
        format!("{percent:.1} %")
    } else {
        "<0.1 %".to_owned()
    }
}

/// A time; where it depends on sizes that nothing gives, how: `12.3 ps × n`, else which it needs. `None` where nothing
/// is predicted.
pub fn predicted(
    milliseconds: Option<f64>,
    formula: Option<&str>,
    unknowns: &[String],
) -> Option<String> {
    let needs = || (!unknowns.is_empty()).then(|| needs(unknowns));
    let formula = || formula.map(str::to_owned);
    milliseconds.map(time).or_else(formula).or_else(needs)
}

/// ``needs `n` ``, ``needs `n`, `m` and 2 more``.
pub fn needs(unknowns: &[String]) -> String {
    let (named, more) = unknowns.split_at(unknowns.len().min(MOST_NEEDED));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("needs `{}`{more}", named.join("`, `"))
}

/// Milliseconds in the unit that fits: `1.24 s`, `3.41 ms`, `12.6 µs`; nothing takes no time at all: `<0.01 µs`.
pub fn time(milliseconds: f64) -> String {
    if !milliseconds.is_finite() {
        return "?".to_owned();
    }
    if milliseconds < 5e-6 {
        return "<0.01 µs".to_owned();
    }
    let (value, unit) = if milliseconds >= 1000.0 {
        (milliseconds / 1000.0, "s")
    } else if milliseconds >= 1.0 {
        (milliseconds, "ms")
    } else {
        (milliseconds * 1000.0, "µs")
    };
    let places = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.places$} {unit}")
}

/// Bytes in the unit that fits: `512 B`, `4.1 KiB`.
pub fn bytes(value: u64) -> String {
    if value < 10 * 1024 {
        return format!("{} B", grouped(value));
    }
    let kib = value as f64 / 1024.0;
    if kib < 10.0 * 1024.0 {
        format!("{} KiB", number((kib * 10.0).round() / 10.0))
    } else {
        format!("{} MiB", number((kib / 102.4).round() / 10.0))
    }
}

/// A speedup: `2.9x`.
pub fn speedup(factor: f64) -> String {
    if factor >= 100.0 {
        format!("{factor:.0}x")
    } else {
        format!("{factor:.2}x")
    }
}

/// Three extents without trailing ones: `(32,8)`, `(256)`.
pub fn extents(value: [u64; 3]) -> String {
    match value {
        [x, 1, 1] => format!("({x})"),
        [x, y, 1] => format!("({x},{y})"),
        [x, y, z] => format!("({x},{y},{z})"),
    }
}

/// `1 kernel`, `3 kernels`.
pub fn counted(count: u64, singular: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {singular}{plural}", grouped(count))
}

/// `2 statements not understood`; `None` where all were.
pub fn losses(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{} not understood", counted(count as u64, "statement")))
}

/// A bottleneck's name in words.
pub fn words(name: &str) -> String {
    if name == "shared" {
        "shared memory".to_owned()
    } else {
        name.replace('_', " ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_true() {
        assert_eq!(number(32.0), "32");
        assert_eq!(number(16.5), "16.5");
        assert_eq!(number(1_048_576.0), "1,048,576");
        assert_eq!(number(0.0313), "0.031");
        assert_eq!(number(1234.6), "1,235");
        assert_eq!(number(f64::NAN), "?");
        assert_eq!(maybe(None), "?");
    }

    #[test]
    fn units_fit() {
        assert_eq!(time(0.0126), "12.6 µs");
        assert_eq!(time(0.0), "<0.01 µs");
        assert_eq!(time(3.411), "3.41 ms");
        assert_eq!(time(1240.0), "1.24 s");
        assert_eq!(bytes(4096), "4,096 B");
        assert_eq!(bytes(49152), "48 KiB");
        assert_eq!(bytes(40 * 1024 * 1024), "40 MiB");
        assert_eq!(percent(0.41), "41 %");
        assert_eq!(percent(0.0312), "3.1 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(extents([32, 8, 1]), "(32,8)");
        assert_eq!(extents([1, 1, 1]), "(1)");
        assert_eq!(extents([1, 1, 4]), "(1,1,4)");
        assert_eq!(counted(1, "kernel"), "1 kernel");
        assert_eq!(counted(3, "kernel"), "3 kernels");
    }
}
