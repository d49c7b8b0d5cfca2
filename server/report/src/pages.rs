//! Pages of Markdown, such as a rule's, for a terminal: headings, lists and code without their marks, paragraphs wrapped.

use crate::style::{Paint, Style, printable, wrap};

/// Widest line of running text, where the terminal has more room.
const PAGE: usize = 100;
/// Columns before a line of code.
const CODE: &str = "    ";

/// The page for where `style` goes; a pipe gets the Markdown as it is.
pub fn shown(markdown: &str, style: Style) -> String {
    if style == Style::PLAIN {
        return markdown.to_owned();
    }
    let width = style.width.unwrap_or(PAGE).clamp(40, PAGE);
    let mut out = String::new();
    let mut paragraph = Paragraph::default();
    let mut code = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            paragraph.end(&mut out, width, style);
            code = !code;
        } else if code {
            style.push(&mut out, Paint::Quiet, &printable(&format!("{CODE}{line}")));
            out.push('\n');
        } else if line.trim().is_empty() {
            paragraph.end(&mut out, width, style);
            out.push('\n');
        } else if let Some(heading) = line.strip_prefix('#') {
            paragraph.end(&mut out, width, style);
            let heading = heading.trim_start_matches('#').trim();
            style.push(&mut out, Paint::Strong, &plain(heading));
            out.push('\n');
        } else if line.starts_with('|') {
            paragraph.end(&mut out, width, style);
            out.push_str(&plain(line));
            out.push('\n');
        } else {
            let (indent, rest) = marker(line);
            if !rest.is_empty() && indent.ends_with("- ") {
                paragraph.end(&mut out, width, style);
                paragraph.first = indent;
            }
            paragraph.words.push_str(rest.trim());
            paragraph.words.push(' ');
        }
    }
    paragraph.end(&mut out, width, style);
    let out = out.trim_matches('\n');
    format!("{out}\n")
}

/// The mark of a list item and the rest of its line.
fn marker(line: &str) -> (String, &str) {
    let trimmed = line.trim_start();
    let indent = " ".repeat(line.len() - trimmed.len());
    match trimmed.strip_prefix("- ").or(trimmed.strip_prefix("* ")) {
        Some(rest) => (format!("{indent}- "), rest),
        None => (String::new(), trimmed),
    }
}

/// Text that belongs together until an empty line.
#[derive(Debug, Default)]
struct Paragraph {
    first: String,
    words: String,
}

impl Paragraph {
    fn end(&mut self, out: &mut String, width: usize, style: Style) {
        let hanging = " ".repeat(self.first.chars().count());
        let lines = wrap(&self.words, width.saturating_sub(hanging.len()));
        // A span of code or strong text may go on in the next line.
        let mut within = Within::default();
        for (at, line) in lines.iter().enumerate() {
            out.push_str(if at == 0 { &self.first } else { &hanging });
            within.push(out, line, style);
            out.push('\n');
        }
        *self = Paragraph::default();
    }
}

/// Which spans are open.
#[derive(Debug, Default)]
struct Within {
    code: bool,
    strong: bool,
}

impl Within {
    fn push(&mut self, out: &mut String, line: &str, style: Style) {
        for (at, piece) in line.split('`').enumerate() {
            if at > 0 {
                self.code = !self.code;
            }
            if self.code {
                style.push(out, Paint::Information, &printable(piece));
                continue;
            }
            for (at, text) in piece.split("**").enumerate() {
                if at > 0 {
                    self.strong = !self.strong;
                }
                let paint = if self.strong {
                    Paint::Strong
                } else {
                    Paint::Plain
                };
                style.push(out, paint, &printable(&linked(text)));
            }
        }
    }
}

/// `[text](address)` as its text.
fn linked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after
            .split_once("](")
            .and_then(|(name, after)| Some((name, after.split_once(')')?)));
        out.push_str(before);
        match link {
            Some((name, (_, after))) => {
                out.push_str(name);
                rest = after;
            }
            None => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    Within::default().push(&mut out, text, Style::PLAIN);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# mem/strided\n\nLanes of a warp read `in[i * 32]`, **32 sectors** in place of 4, and the \
                        rest of each sector is [wasted](https://example.org).\n\n- one\n  more\n- two\n\n```cuda\nx = a[i];\n```\n";

    #[test]
    fn a_terminal_gets_no_marks_and_wrapped_words() {
        let style = Style {
            colour: false,
            width: Some(60),
        };
        assert_eq!(
            shown(PAGE, style),
            "mem/strided\n\nLanes of a warp read in[i * 32], 32 sectors in place\nof 4, and the rest of each \
             sector is\nwasted.\n\n- one more\n- two\n\n    x = a[i];\n"
        );
    }

    #[test]
    fn a_pipe_gets_the_markdown() {
        assert_eq!(shown(PAGE, Style::PLAIN), PAGE);
    }

    #[test]
    fn colour_marks_code_and_headings() {
        let style = Style {
            colour: true,
            width: Some(80),
        };
        let text = shown(PAGE, style);
        assert!(text.starts_with("\x1b[1mmem/strided"), "{text:?}");
        assert!(text.contains("\x1b[1;36min[i"), "{text:?}");
    }

    #[test]
    fn any_text_is_taken() {
        let style = Style {
            colour: true,
            width: Some(1),
        };
        for odd in [
            "",
            "`",
            "**",
            "[",
            "[a](",
            "```",
            "- ",
            "#",
            "|",
            "\u{1b}[2J",
        ] {
            assert!(!shown(odd, style).contains("\x1b[2J"), "{odd:?}");
        }
    }
}
