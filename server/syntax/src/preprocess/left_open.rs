//! Comments and raw strings that are half-typed: they would take all that follows with them.
//!
//! One without an end reaches to the end of its line, with the lines that begin with a star behind it. So does a comment in which
//! another one begins, where it would take away what is at the top level: what ends it is the end of that other one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr3, memmem};

use crate::lexer;

/// Raw strings that are looked at: an open one is searched for its end.
const MOST_RAW: usize = 16;

/// The parts of lines that comments and raw strings take which are left open.
pub(super) fn left_open(text: &str) -> Vec<Range<usize>> {
    if may_be_open(text.as_bytes()) {
        open(text.as_bytes())
    } else {
        Vec::new()
    }
}

/// The text with spaces in place of these parts.
pub(super) fn without<'t>(text: &'t str, parts: &[Range<usize>]) -> Cow<'t, str> {
    if parts.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for part in parts {
        out.push_str(&text[copied..part.start]);
        out.extend(std::iter::repeat_n(' ', part.len()));
        copied = part.end;
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether the ends of comments are not where their beginnings let them be, or a raw string is not closed: the text is asked at
/// each keystroke.
fn may_be_open(bytes: &[u8]) -> bool {
    let mut opens = memmem::find_iter(bytes, b"/*").peekable();
    let mut end = 0;
    for close in memmem::find_iter(bytes, b"*/") {
        let mut within = 0;
        while opens.next_if(|open| *open < close).is_some_and(|open| {
            within += usize::from(open >= end);
            true
        }) {}
        if within > 1 {
            return true;
        }
        end = close + 2;
    }
    opens.next().is_some() || memmem::find(bytes, b"R\"").is_some()
}

/// What is left open, in order.
fn open(bytes: &[u8]) -> Vec<Range<usize>> {
    let closes: Vec<usize> = memmem::find_iter(bytes, b"*/").collect();
    let mut found = Vec::new();
    let mut raw_strings = 0;
    let mut at = 0;
    while let Some(next) = memchr3(b'/', b'"', b'\'', &bytes[at..]) {
        at += next;
        if bytes[at] != b'/' {
            let in_number = bytes[at] == b'\'' && at > 0 && bytes[at - 1].is_ascii_hexdigit();
            let end = if in_number {
                at + 1
            } else {
                lexer::quoted_end(bytes, at)
            };
            let raw =
                end == bytes.len() && at > 0 && bytes[at - 1] == b'R' && raw_strings < MOST_RAW;
            raw_strings += usize::from(raw);
            at = if raw
                && lexer::raw_string(bytes, at).is_some_and(|(content, _)| content.end == end)
            {
                let part = at - 1..line_end(bytes, at);
                found.push(part.clone());
                part.end
            } else {
                end.max(at + 1)
            };
            continue;
        }
        if bytes.get(at + 1) != Some(&b'*') {
            at = lexer::comment_end(bytes, at).unwrap_or(at + 1);
            continue;
        }
        let close = closes.partition_point(|close| *close < at + 2);
        let close = closes.get(close).copied();
        if close.is_some_and(|close| !is_within(bytes, at + 2..close)) {
            at = close.map_or(bytes.len(), |close| close + 2);
            continue;
        }
        let end = end_of_open(bytes, at);
        while at < end {
            let line = at..line_end(bytes, at).min(end);
            at = line.end + 1;
            found.push(line);
        }
        at = end;
    }
    found.retain(|part| !part.is_empty());
    found
}

/// Whether a comment begins in these bytes of another one, in a line behind one that begins or ends something at the top level. The
/// star of a path (`src/*.c`) begins none.
fn is_within(bytes: &[u8], comment: Range<usize>) -> bool {
    let mut from = comment.start;
    let mut takes = false;
    for at in memmem::find_iter(&bytes[comment.clone()], b"/*") {
        let at = comment.start + at;
        while let Some(newline) = memchr(b'\n', &bytes[from..at]) {
            from += newline + 1;
            takes |= bytes[from] == b'}' || lexer::begins_top_level(bytes, from);
        }
        let before = bytes[at - 1];
        if before.is_ascii_whitespace() || b";,(){}".contains(&before) {
            return takes;
        }
    }
    false
}

/// Where a comment that is left open ends: at the end of a line.
fn end_of_open(bytes: &[u8], at: usize) -> usize {
    let mut end = line_end(bytes, at);
    while end < bytes.len() {
        let line = &bytes[end + 1..line_end(bytes, end + 1)];
        if !line.trim_ascii_start().starts_with(b"*") {
            break;
        }
        end += 1 + line.len();
    }
    end
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(text: &str) -> Cow<'_, str> {
        without(text, &left_open(text))
    }

    const KERNEL: &str = "__global__ void k(float *a) {\n  a[0] = 1; /* one */\n}\n";

    #[track_caller]
    fn check(before: &str, behind: &str, expected: &str) {
        let text = format!("{before}{KERNEL}{behind}");
        let closed = closed(&text);
        assert_eq!(closed.len(), text.len());
        let lines = |text: &str| -> Vec<String> {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect()
        };
        let expected = format!("{expected}{KERNEL}{behind}");
        assert_eq!(lines(&closed), lines(&expected), "{text}");
    }

    #[test]
    fn what_is_left_open_ends_with_its_line() {
        check("int a; /* b\n\n", "// end\n", "int a;\n\n");
        check("/*\n * One.\n *\nint a;\n", "", "\n\n\nint a;\n");
        check("/* a\n}\n", "/* b */\n", "\n}\n");
        check(
            "/* a\nvoid f() {\n}\n\n  /* b */\n",
            "",
            "\nvoid f() {\n}\n\n  /* b */\n",
        );
        check("/* a\nint b;\n", "", "\nint b;\n");
        check("const char *s = R\"(a\n", "", "const char *s =\n");
    }

    #[test]
    fn what_ends_is_left_alone() {
        for text in [
            "/* a /* b */ int c;\n",
            "/*\n * dir/*.c\n * other/*.c\n */\n",
            "/* One.\n}\nsee src/*.c\n */\n",
            "/*\n/* Boxes.\n/*******/\n",
            "const char *s = \"/*\"; int n = 1'000; // /*\n",
            "const char *s = R\"(\n/*\n)\";\n",
            "/* one **/ /*/ two */ int c = 2 */* three */ 4;\n",
        ] {
            check(text, "", text);
            check(text, "// /* end\n", text);
        }
    }

    #[test]
    fn many_that_are_left_open_take_no_longer() {
        for piece in [
            "/*",
            "/*\n",
            "  /*\n x\n",
            "/*\n}\n",
            "R\"(\n",
            "/*\n__global__\n",
        ] {
            for end in ["", "*/"] {
                let text = piece.repeat(200_000) + end;
                let started = std::time::Instant::now();
                assert_eq!(closed(&text).len(), text.len());
                assert!(started.elapsed().as_secs() < 2, "{piece}");
            }
        }
    }
}
