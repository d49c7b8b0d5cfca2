//! Numbers, characters and lanes as they are written.

use warplens_ir::Type;
use warplens_ir::{ExprKind, Opaque};

/// A number as written.
pub(super) fn number(text: &str, opencl: bool) -> (ExprKind, Type) {
    let clean: String = text.chars().filter(|&c| c != '\'').collect();
    let lower = clean.to_ascii_lowercase();
    let hex = lower.starts_with("0x");
    let float = if hex {
        lower.contains('p') || lower.contains('.')
    } else {
        lower.contains(['.', 'e']) || (lower.ends_with('f') && !lower.starts_with("0b"))
    };
    if float {
        let ty = if lower.ends_with('f') && (!hex || lower.contains('p')) {
            Type::FLOAT
        } else if lower.ends_with('h') {
            Type::HALF
        } else {
            Type::DOUBLE
        };
        let digits = lower.trim_end_matches(['f', 'l', 'h']);
        let value = digits.parse::<f64>().ok().filter(|_| !hex);
        return (ExprKind::Float(value.map(Into::into)), ty);
    }
    let digits = lower.trim_end_matches(['u', 'l', 'z']);
    let suffix = &lower[digits.len()..];
    let sign_less = digits.trim_start_matches('-');
    let value = if let Some(digits) = sign_less.strip_prefix("0x") {
        u64::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = sign_less.strip_prefix("0b") {
        u64::from_str_radix(digits, 2).ok()
    } else if sign_less.len() > 1 && sign_less.starts_with('0') {
        u64::from_str_radix(&sign_less[1..], 8).ok()
    } else {
        sign_less.parse().ok()
    };
    let Some(value) = value else {
        return (ExprKind::Opaque(Opaque::Unknown, Vec::new()), Type::INT);
    };
    let long = suffix.contains("ll") || (opencl && suffix.contains('l')) || suffix.contains('l');
    let unsigned = suffix.contains('u');
    let bits =
        if long || value > u64::from(u32::MAX) || (!unsigned && !hex && value > i32::MAX as u64) {
            64
        } else {
            32
        };
    let unsigned = unsigned || (hex && bits == 32 && value > i32::MAX as u64);
    let value = value as i64;
    let value = if digits.starts_with('-') {
        -value
    } else {
        value
    };
    (
        ExprKind::Int(warplens_ir::wrapped(value, bits, !unsigned)),
        Type::Int {
            bits,
            signed: !unsigned,
        },
    )
}

/// First lane and number of lanes that a vector field names.
pub(super) fn swizzle(name: &str, lanes: u8) -> Option<(u8, u8)> {
    let lane = |c: char| match c {
        'x' | 'r' => Some(0),
        'y' | 'g' => Some(1),
        'z' | 'b' => Some(2),
        'w' | 'a' => Some(3),
        _ => None,
    };
    match name {
        "lo" => return Some((0, lanes / 2)),
        "hi" => return Some((lanes / 2, lanes / 2)),
        _ => {}
    }
    if let Some(digits) = name.strip_prefix(['s', 'S'])
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_ascii_hexdigit())
    {
        let first = digits.chars().next()?.to_digit(16)? as u8;
        return (first < lanes).then_some((first, digits.len() as u8));
    }
    let mut first = None;
    for c in name.chars() {
        let at = lane(c).filter(|&at| at < lanes)?;
        first = Some(first.map_or(at, |first: u8| first.min(at)));
    }
    Some((first?, name.len() as u8))
}

/// `unsigned long long` and its like.
pub(super) fn sized(name: &str) -> Option<Type> {
    let mut words: Vec<&str> = name.split_whitespace().collect();
    words.retain(|word| !matches!(*word, "const" | "volatile" | "static" | "register"));
    let has = |word: &str| words.contains(&word);
    if words.is_empty()
        || !words.iter().all(|word| {
            matches!(
                *word,
                "unsigned" | "signed" | "long" | "short" | "int" | "char" | "double"
            )
        })
    {
        return None;
    }
    if has("double") {
        return Some(Type::DOUBLE);
    }
    let bits = if has("char") {
        8
    } else if has("short") {
        16
    } else if has("long") {
        64
    } else {
        32
    };
    Some(Type::Int {
        bits,
        signed: !has("unsigned"),
    })
}

/// A character literal's value.
pub(super) fn character(text: &str) -> i64 {
    let inner = text
        .trim_start_matches(['u', 'U', 'L', '8'])
        .trim_matches('\'');
    let mut chars = inner.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), Some(escaped)) => match escaped {
            'n' => 10,
            't' => 9,
            'r' => 13,
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'v' => 11,
            'x' => i64::from_str_radix(&inner[2..], 16).unwrap_or(0),
            digit if digit.is_digit(8) => i64::from_str_radix(&inner[1..], 8).unwrap_or(0),
            other => other as i64,
        },
        (Some(plain), _) => plain as i64,
        _ => 0,
    }
}
