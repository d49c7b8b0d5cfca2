//! Two versions of a text as a unified diff, as `patch` and `git apply` take it.

use std::fmt::Write as _;

use crate::style::{Paint, Style, printable};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Pairs of lines that are compared; what differs in more is shown as one change.
const MOST: usize = 8_000_000;

/// A line of either version, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Both(usize, usize),
    Old(usize),
    New(usize),
}

/// The changes from `old` to `new` of a file; empty where there are none.
pub fn unified(file: &str, old: &str, new: &str, style: Style) -> String {
    let before: Vec<&str> = old.split_inclusive('\n').collect();
    let after: Vec<&str> = new.split_inclusive('\n').collect();
    let lines = aligned(&before, &after);
    let changed = |line: &Line| !matches!(line, Line::Both(..));
    let mut out = String::new();
    let mut at = 0;
    while let Some(first) = lines[at..].iter().position(changed).map(|ahead| at + ahead) {
        if out.is_empty() {
            let file = printable(file).replace('\\', "/");
            style.push(
                &mut out,
                Paint::Strong,
                &format!("--- a/{file}\n+++ b/{file}\n"),
            );
        }
        // A change ends where more unchanged lines follow than two changes share around them.
        let mut last = first;
        for (index, line) in lines.iter().enumerate().skip(first) {
            if changed(line) {
                last = index;
            } else if index - last > 2 * CONTEXT {
                break;
            }
        }
        let start = first.saturating_sub(CONTEXT).max(at);
        let end = (last + 1 + CONTEXT).min(lines.len());
        hunk(
            &mut out,
            &lines[..start],
            &lines[start..end],
            &before,
            &after,
            style,
        );
        at = end;
    }
    out
}

fn hunk(
    out: &mut String,
    above: &[Line],
    lines: &[Line],
    before: &[&str],
    after: &[&str],
    style: Style,
) {
    let olds = |lines: &[Line]| {
        lines
            .iter()
            .filter(|line| !matches!(line, Line::New(_)))
            .count()
    };
    let news = |lines: &[Line]| {
        lines
            .iter()
            .filter(|line| !matches!(line, Line::Old(_)))
            .count()
    };
    // An empty side begins at the line before it.
    let range =
        |skipped: usize, count: usize| format!("{},{count}", skipped + usize::from(count > 0));
    let old = range(olds(above), olds(lines));
    let new = range(news(above), news(lines));
    style.push(out, Paint::Information, &format!("@@ -{old} +{new} @@"));
    out.push('\n');
    for line in lines {
        let (mark, text, paint) = match *line {
            Line::Both(_, new) => (' ', after[new], Paint::Plain),
            Line::Old(old) => ('-', before[old], Paint::Error),
            Line::New(new) => ('+', after[new], Paint::Good),
        };
        let ended = text.strip_suffix('\n');
        style.push(out, paint, &format!("{mark}{}", ended.unwrap_or(text)));
        out.push('\n');
        if ended.is_none() {
            let _ = writeln!(out, "\\ No newline at end of file");
        }
    }
}

/// The lines of both in order, with as few changes as there are.
fn aligned(before: &[&str], after: &[&str]) -> Vec<Line> {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[same..], &after[same..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let mut lines: Vec<Line> = (0..same).map(|at| Line::Both(at, at)).collect();
    let middle = shortest(old, new).unwrap_or_else(|| {
        let gone = (0..old.len()).map(Line::Old);
        gone.chain((0..new.len()).map(Line::New)).collect()
    });
    lines.extend(middle.into_iter().map(|line| match line {
        Line::Both(old, new) => Line::Both(same + old, same + new),
        Line::Old(old) => Line::Old(same + old),
        Line::New(new) => Line::New(same + new),
    }));
    let ends = (same + old.len(), same + new.len());
    lines.extend((0..tail).map(|at| Line::Both(ends.0 + at, ends.1 + at)));
    lines
}

/// The longest common subsequence kept; `None` where the table of it is too large.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Line>> {
    let width = new.len() + 1;
    if (old.len() + 1).saturating_mul(width) > MOST {
        return None;
    }
    // `common[x * width + y]`: lines that the ends from `x` and from `y` have in common.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for x in (0..old.len()).rev() {
        for y in (0..new.len()).rev() {
            common[x * width + y] = if old[x] == new[y] {
                common[(x + 1) * width + y + 1] + 1
            } else {
                common[(x + 1) * width + y].max(common[x * width + y + 1])
            };
        }
    }
    let (mut x, mut y) = (0, 0);
    let mut lines = Vec::new();
    while x < old.len() || y < new.len() {
        if x < old.len() && y < new.len() && old[x] == new[y] {
            lines.push(Line::Both(x, y));
            (x, y) = (x + 1, y + 1);
        } else if y == new.len()
            || x < old.len() && common[(x + 1) * width + y] >= common[x * width + y + 1]
        {
            lines.push(Line::Old(x));
            x += 1;
        } else {
            lines.push(Line::New(y));
            y += 1;
        }
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_has_three_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = old.replace('5', "five");
        assert_eq!(
            unified("k.cu", old, &new, Style::PLAIN),
            "--- a/k.cu\n+++ b/k.cu\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
    }

    #[test]
    fn the_same_text_has_no_changes() {
        assert_eq!(unified("k.cu", "a\nb\n", "a\nb\n", Style::PLAIN), "");
    }

    #[test]
    fn every_alignment_gives_both_versions_back() {
        let texts = [
            "",
            "a\n",
            "a\nb\nc\n",
            "b\nc\na\n",
            "a\nx\nb\ny\nc",
            "c\nb\na\nb\n",
            "x\ny\n",
        ];
        for old in texts {
            for new in texts {
                let before: Vec<&str> = old.split_inclusive('\n').collect();
                let after: Vec<&str> = new.split_inclusive('\n').collect();
                let lines = aligned(&before, &after);
                let mut first = String::new();
                let mut second = String::new();
                for line in &lines {
                    match *line {
                        Line::Both(x, y) => {
                            first.push_str(before[x]);
                            second.push_str(after[y]);
                        }
                        Line::Old(x) => first.push_str(before[x]),
                        Line::New(y) => second.push_str(after[y]),
                    }
                }
                assert_eq!((first.as_str(), second.as_str()), (old, new), "{lines:?}");
            }
        }
    }

    #[test]
    fn lines_that_differ_everywhere_are_one_change() {
        let numbered = |word: &str| {
            let lines: Vec<String> = (0..3_000).map(|at| format!("{word} {at}")).collect();
            lines.join("\n")
        };
        let diff = unified("k.cu", &numbered("old"), &numbered("new"), Style::PLAIN);
        assert_eq!(diff.matches("@@ -").count(), 1);
        assert_eq!(diff.matches("\n+new").count(), 3_000);
    }
}
