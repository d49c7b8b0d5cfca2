//! The comment above a kernel that states its launch and its arguments: `// warplens: block=256 n=1024`.

use std::ops::Range;

use ropey::Rope;
use warplens_syntax::{DirectiveKind, directives};

/// Comments above a kernel, up to which one that states values is looked for.
const MOST_LINES: usize = 16;

/// The edit that states these values above the kernel that begins on a line (from 0): in the comment that states some there
/// already, in the place of those of the same names, or in one of its own. `None` where a line of its own would break the text
/// around: inside of a macro or of a string literal.
pub fn stating(
    rope: &Rope,
    line: usize,
    values: &[(String, String)],
) -> Option<(Range<usize>, String)> {
    let text = rope.get_line(line)?.to_string();
    for above in (line.saturating_sub(MOST_LINES)..line).rev() {
        let said = rope.line(above).to_string();
        if !said.trim_start().starts_with("//") && !said.trim_start().starts_with("/*") {
            break;
        }
        let mut found = directives(&said).into_iter();
        if let Some(directive) = found.find(|one| one.alone)
            && let DirectiveKind::Values(known) = directive.kind
            && known.iter().all(|(name, _)| name != "probability")
        {
            let start = rope.line_to_byte(above);
            let range = start + directive.range.start..start + directive.range.end;
            return Some((range, format!("warplens: {}", merged(known, values))));
        }
    }
    let before = line
        .checked_sub(1)
        .map(|above| rope.line(above).to_string());
    if before.is_some_and(|before| before.trim_end().ends_with('\\'))
        || text.trim_end().ends_with('\\')
        || text.trim_start().starts_with('"')
    {
        return None;
    }
    let indent: String = text
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect();
    let end_mark = if text.ends_with("\r\n") { "\r\n" } else { "\n" };
    let start = rope.line_to_byte(line);
    let comment = comment(values);
    Some((start..start, format!("{indent}{comment}{end_mark}")))
}

/// The comment alone.
pub fn comment(values: &[(String, String)]) -> String {
    format!("// warplens: {}", merged(Vec::new(), values))
}

/// The values that were stated, those of the same names replaced, the others behind them.
fn merged(mut known: Vec<(String, String)>, values: &[(String, String)]) -> String {
    // A size has two names each.
    let same = |a: &str, b: &str| {
        a == b
            || matches!((a, b), ("local", "block") | ("block", "local"))
            || matches!((a, b), ("global", "grid") | ("grid", "global"))
    };
    for (name, value) in values {
        match known.iter_mut().find(|(of, _)| same(of, name)) {
            Some(slot) => *slot = (name.clone(), value.clone()),
            None => known.push((name.clone(), value.clone())),
        }
    }
    let texts = known.iter().map(|(name, value)| format!("{name}={value}"));
    texts.collect::<Vec<_>>().join(" ")
}

/// `(16,16)`, `256`: extents as a directive has them.
pub fn extents(extents: [u64; 3]) -> String {
    match extents {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("({x},{y})"),
        [x, y, z] => format!("({x},{y},{z})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, line: usize, values: &[(&str, &str)], expected: Option<&str>) {
        let values: Vec<(String, String)> = values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let edited = stating(&Rope::from_str(text), line, &values).map(|(range, new)| {
            let mut text = text.to_owned();
            text.replace_range(range, &new);
            text
        });
        assert_eq!(edited.as_deref(), expected);
    }

    #[test]
    fn values_stand_in_the_comment_that_is_there_or_in_one_of_their_own() {
        let new = [("block", "256"), ("n", "7")];
        check(
            "int a;\nk();\n",
            1,
            &new,
            Some("int a;\n// warplens: block=256 n=7\nk();\n"),
        );
        check(
            "  k();\r\n",
            0,
            &new,
            Some("  // warplens: block=256 n=7\r\n  k();\r\n"),
        );
        check(
            "// warplens: n=5 grid=(4,4)\n// What it does.\nk();\n",
            2,
            &new,
            Some("// warplens: n=7 grid=(4,4) block=256\n// What it does.\nk();\n"),
        );
        check(
            "/* warplens: local=64 */\nk();\n",
            1,
            &new,
            Some("/* warplens: block=256 n=7 */\nk();\n"),
        );
        // What is said of findings and conditions is left alone.
        check(
            "// warplens: allow(mem)\nk();\n",
            1,
            &[("n", "7")],
            Some("// warplens: allow(mem)\n// warplens: n=7\nk();\n"),
        );
    }

    #[test]
    fn a_macro_and_a_string_are_left_as_they_are() {
        check("#define K \\\nk();\n", 1, &[("n", "7")], None);
        check("#define K k(); \\\n", 0, &[("n", "7")], None);
        check("\"kernel void k();\"\n", 0, &[("n", "7")], None);
        check("", 0, &[("n", "7")], Some("// warplens: n=7\n"));
        check("", 3, &[("n", "7")], None);
    }
}
