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

/// Control characters made harmless, so that a hostile file name or source line cannot drive the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
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
    fn wrapping_keeps_every_word() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary", 4), ["extraordinary"]);
    }
}
