//! "Did you mean": the known name closest to a mistyped one.

/// `unknown WHAT "NAME"`, with the closest known name, or where to look.
pub fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    look: &str,
) -> String {
    match closest(name, known) {
        Some(close) => format!("unknown {what} \"{name}\": did you mean \"{close}\"? ({look})"),
        None => format!("unknown {what} \"{name}\" ({look})"),
    }
}

/// The known name with the fewest edits, or one that contains what was typed; `None` where nothing is near.
pub fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = name.to_lowercase();
    known
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let edits = distance(&typed, &lower);
            let contained = typed.len() >= 3 && lower.contains(&typed);
            let near = edits <= 1 + typed.chars().count().max(lower.chars().count()) / 3;
            let rank = if contained { edits.min(2) } else { edits };
            (near || contained).then_some((rank, edits, candidate))
        })
        .min_by_key(|(rank, edits, _)| (*rank, *edits))
        .map(|(_, _, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [&str; 4] = [
        "mem/strided",
        "mem/aos",
        "smem/bank-conflict",
        "occ/limiter",
    ];

    #[test]
    fn the_nearest_is_named() {
        assert_eq!(closest("mem/stride", RULES), Some("mem/strided"));
        assert_eq!(closest("Mem/AOS", RULES), Some("mem/aos"));
        assert_eq!(closest("bank-conflict", RULES), Some("smem/bank-conflict"));
        assert_eq!(closest("banana", RULES), None);
        assert_eq!(closest("", RULES), None);
    }

    #[test]
    fn distances_are_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
