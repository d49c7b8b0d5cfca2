//! One request of an access in characters, for editors without pictures: each piece of device memory, or each bank, with
//! the lanes that go there.

use std::fmt::Write as _;

use warplens_db::pictures::{LanePicture, Touched};

use super::lanes::{caption, what};

/// Columns of a page.
const WIDTH: usize = 80;
/// Columns of a full bar.
const BAR: usize = 12;
/// Pieces that are listed, at most.
const MOST: usize = 64;

/// The lanes of some accesses as a page of Markdown with pictures in columns of text; `place` names them, `pictures` may be
/// none.
pub fn lanes_text(place: &str, pictures: &[LanePicture]) -> String {
    let mut out = format!("# {place}\n\n");
    if pictures.is_empty() {
        out.push_str("No memory access with known addresses.\n");
    }
    for picture in pictures {
        let line = picture.line + 1;
        let _ = writeln!(
            out,
            "## `{}`\n\nLine {line}, {}.\n",
            picture.access.text,
            what(picture)
        );
        match &picture.touched {
            Touched::Units { bytes, units } => to_units(&mut out, picture, *bytes, units),
            Touched::Banks { words, first } => to_banks(&mut out, words, first),
            Touched::Words(_) => {}
        }
        fold(&mut out, &caption(picture));
        out.push('\n');
    }
    out
}

fn to_units(out: &mut String, picture: &LanePicture, bytes: u32, units: &[(i64, u32)]) {
    let _ = writeln!(out, "    {:>12}  {:BAR$}  lanes", "from byte", "requested");
    let unit = i64::from(bytes.max(1));
    for (start, requested) in units.iter().take(MOST) {
        let lanes =
            picture.lanes.iter().enumerate().filter(|(_, at)| {
                at.is_some_and(|at| at.div_euclid(unit) == start.div_euclid(unit))
            });
        let lanes = ranges(lanes.map(|(lane, _)| lane));
        let bar = bar(f64::from(*requested) / f64::from(bytes.max(1)));
        row(out, &format!("    {start:>12}  {bar}  {lanes}"));
    }
    if let Some(more) = units.len().checked_sub(MOST).filter(|more| *more > 0) {
        let _ = writeln!(out, "    {:>12}", format!("{more} more"));
    }
    out.push('\n');
}

fn to_banks(out: &mut String, words: &[u32], first: &[Option<u32>]) {
    let _ = writeln!(out, "    {:>12}  {:BAR$}  lanes", "bank", "words");
    let most = f64::from(words.iter().copied().max().unwrap_or(0).max(4));
    let mut bank = 0;
    while bank < words.len() {
        let count = words[bank];
        // Idle banks share one row.
        let idle = words[bank..]
            .iter()
            .take_while(|words| **words == 0)
            .count();
        if idle > 0 {
            let _ = writeln!(out, "    {:>12}  none", ranges(bank..bank + idle));
            bank += idle;
            continue;
        }
        let lanes = first
            .iter()
            .enumerate()
            .filter(|(_, at)| **at == Some(bank as u32));
        let lanes = ranges(lanes.map(|(lane, _)| lane));
        let bar = bar(f64::from(count) / most);
        row(
            out,
            &format!("    {bank:>12}  {bar}  {count:>2} for {lanes}"),
        );
        bank += 1;
    }
    out.push('\n');
}

/// A bar of eighths of a column, something of it wherever there is something.
fn bar(part: f64) -> String {
    let eighths = (part.clamp(0.0, 1.0) * (BAR * 8) as f64).ceil() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(['▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8 - 1]);
    }
    let columns = eighths.div_ceil(8);
    bar + &" ".repeat(BAR - columns)
}

/// `0-7, 12, 30`
fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A row, cut off where the page ends.
fn row(out: &mut String, text: &str) {
    let text = text.trim_end();
    if text.chars().count() <= WIDTH {
        out.push_str(text);
    } else {
        out.extend(text.chars().take(WIDTH - 1));
        out.push('…');
    }
    out.push('\n');
}

/// Words in lines that fit the page.
fn fold(out: &mut String, text: &str) {
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_next_to_each_other_are_a_range() {
        assert_eq!(ranges([0, 1, 2, 5, 7, 8].into_iter()), "0-2, 5, 7-8");
        assert_eq!(ranges(std::iter::empty()), "");
    }

    #[test]
    fn bars_are_as_long_as_what_they_show() {
        assert_eq!(bar(1.0), "█".repeat(BAR));
        assert_eq!(bar(0.0), " ".repeat(BAR));
        assert_eq!(bar(0.125).trim_end(), "█▌");
        for eighth in 0..=8 {
            let drawn = bar(f64::from(eighth) / 8.0);
            assert_eq!(drawn.chars().count(), BAR, "{drawn:?}");
        }
    }

    #[test]
    fn nothing_is_wider_than_the_page() {
        let mut out = String::new();
        row(&mut out, &"12, ".repeat(40));
        fold(&mut out, &"word ".repeat(40));
        assert!(
            out.lines().all(|line| line.chars().count() <= WIDTH),
            "{out}"
        );
        assert!(out.starts_with("12, 12,") && out.contains('…'), "{out}");
        assert_eq!(out.matches("word").count(), 40);
    }
}
