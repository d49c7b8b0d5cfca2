//! Colour on a terminal, none elsewhere.

use std::fmt::Write as _;

/// How text is dressed for where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub colour: bool,
    /// Columns of the terminal; `None` where lines may be as long as they like (a pipe, a file).
    pub width: Option<usize>,
}

/// A meaning, not a colour: what a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Ordinary text.
    Plain,
    /// Headings and names.
    Strong,
    /// Secondary text.
    Quiet,
    /// Something that cannot work.
    Error,
    /// Something certain and costly.
    Warning,
    /// Worth knowing.
    Information,
    /// May be worth a look.
    Hint,
    /// As good as it gets.
    Good,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Strong => "1",
            Paint::Quiet => "2",
            Paint::Error => "1;31",
            Paint::Warning => "1;33",
            Paint::Information => "1;36",
            Paint::Hint => "1;34",
            Paint::Good => "32",
        }
    }

    /// Its HTML class; empty for plain text.
    pub fn class(self) -> &'static str {
        match self {
            Paint::Plain => "",
            Paint::Strong => "strong",
            Paint::Quiet => "quiet",
            Paint::Error => "error",
            Paint::Warning => "warning",
            Paint::Information => "information",
            Paint::Hint => "hint",
            Paint::Good => "good",
        }
    }

    /// The paint of a severity by its name in the JSON.
    pub fn of_severity(severity: &str) -> Paint {
        match severity {
            "error" => Paint::Error,
            "warning" => Paint::Warning,
            "information" => Paint::Information,
            _ => Paint::Hint,
        }
    }
}

impl Style {
    /// No colour, any width.
    pub const PLAIN: Style = Style {
        colour: false,
        width: None,
    };

    /// `text` as `paint`.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 12);
        self.push(&mut out, paint, text);
        out
    }

    /// Appends `text` as `paint`.
    pub fn push(self, out: &mut String, paint: Paint, text: &str) {
        let code = paint.code();
        if self.colour && !code.is_empty() && !text.is_empty() {
            let _ = write!(out, "\x1b[{code}m{text}\x1b[0m");
        } else {
            out.push_str(text);
        }
    }
}

/// `text` cut to `width` columns, the cut shown by `…`.
pub fn truncate(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Characters that act instead of being shown made harmless, so that a hostile file name or source line neither drives the
/// terminal nor begins a line of its own nor shows text in another order than it has.
pub fn printable(text: &str) -> String {
    // Most of what is shown: one copy.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    let shown = |c: char| {
        if is_shown(c) {
            c
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    text.chars().map(shown).collect()
}

/// [`printable`], in which lines stay lines.
pub fn printable_lines(text: &str) -> String {
    let shown = |c: char| {
        if is_shown(c) || c == '\n' {
            c
        } else {
            char::REPLACEMENT_CHARACTER
        }
    };
    text.chars().map(shown).collect()
}

/// A document as indented JSON, in which characters that act are escapes: as data they are what they were, and a terminal that
/// shows the document does not act.
///
/// # Errors
///
/// It cannot be written as JSON.
pub fn json(document: &impl serde::Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(document)?;
    if text.is_ascii() {
        return Ok(text);
    }
    // Only strings have characters beyond ASCII, and those that act are all of the basic plane.
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown(c) || c == '\n' {
            escaped.push(c);
        } else {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        }
    }
    Ok(escaped)
}

/// False for control characters, and for those that turn the direction of a text or break its line.
fn is_shown(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !c.is_control() && !turns
}

/// `text` broken at spaces into lines of at most `width` columns (a longer word gets a line of its own).
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_holds_what_acts_as_escapes() {
        let name = "k\u{1b}[31m\u{7}\u{202e}\u{9b}\u{7f}ü\n.cu";
        let text = json(&[name]).expect("JSON");
        assert!(text.chars().all(|c| is_shown(c) || c == '\n'), "{text}");
        let back: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, [name]);
        assert!(text.contains('ü'), "{text}");
    }

    #[test]
    fn colour_only_where_asked() {
        let coloured = Style {
            colour: true,
            width: None,
        };
        assert_eq!(Style::PLAIN.paint(Paint::Error, "x"), "x");
        assert_eq!(coloured.paint(Paint::Error, "x"), "\x1b[1;31mx\x1b[0m");
        assert_eq!(coloured.paint(Paint::Plain, "x"), "x");
    }

    #[test]
    fn a_cut_shows() {
        assert_eq!(truncate("tile[threadIdx.x]", 8), "tile[th…");
        assert_eq!(truncate("größe", 5), "größe");
    }

    #[test]
    fn escape_sequences_of_others_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb"), "a\u{fffd}[2Jb");
    }

    #[test]
    fn names_begin_no_line_and_turn_no_text() {
        let name = "a\nb\u{202e}c\u{2066}\u{2028}\u{7}.cu";
        assert_eq!(
            printable(name),
            "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}.cu"
        );
        assert_eq!(printable_lines("a\nb\u{202e}"), "a\nb\u{fffd}");
        assert_eq!(printable("größe µs → 1 → 名前"), "größe µs → 1 → 名前");
    }

    #[test]
    fn wrapping_keeps_every_word() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary", 4), ["extraordinary"]);
    }
}
