//! The lexer of C text, found in place: every function takes the bytes and a position and gives where the thing that begins
//! there ends. The preprocessor, the search for programs in string literals and the search for functions by their brackets
//! read tokens, literals, comments and spliced lines by it.
//!
//! Bytes outside ASCII count as letters of identifiers, so that every token begins and ends between characters.

use std::ops::Range;

use memchr::{memchr, memmem};

/// Words at the beginning of a line, not indented, that begin something at the top level.
const BEGINS: [&str; 9] = [
    "__global__",
    "__kernel",
    "kernel",
    "__device__",
    "__host__",
    "template",
    "extern",
    "static",
    "namespace",
];

/// What a preprocessing token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Identifier,
    Number,
    String,
    Character,
    OpenParenthesis,
    CloseParenthesis,
    OpenBrace,
    CloseBrace,
    Comma,
    /// `#`
    Hash,
    /// `##`
    Paste,
    /// Any other operator or separator, and bytes that are no token of the language.
    Other,
    /// A word that the grammar lacks, with its argument where it has one. Made by expansion only.
    Word,
    /// The text of a `#pragma` line, without the `#pragma`. Made by expansion only.
    Pragma,
    /// Nothing, where an argument was empty. Made by expansion only.
    Placemarker,
}

/// What can begin at a byte.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing that the pass over the text must look at.
    Plain,
    /// The end of a line.
    Line,
    Letter,
    Digit,
    Quote,
    Slash,
    Hash,
}

const fn start_of(byte: u8) -> Start {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80..=0xff => Start::Letter,
        b'0'..=b'9' => Start::Digit,
        b'"' | b'\'' => Start::Quote,
        b'/' => Start::Slash,
        b'#' => Start::Hash,
        b'\n' => Start::Line,
        _ => Start::Plain,
    }
}

/// By byte, what can begin there.
pub(crate) static STARTS: [Start; 256] = {
    let mut table = [Start::Plain; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = start_of(byte as u8);
        byte += 1;
    }
    table
};

static IN_IDENTIFIER: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(start_of(byte as u8), Start::Letter | Start::Digit);
        byte += 1;
    }
    table
};

pub(crate) fn is_letter(byte: u8) -> bool {
    STARTS[usize::from(byte)] == Start::Letter
}

pub(crate) fn continues_identifier(byte: u8) -> bool {
    IN_IDENTIFIER[usize::from(byte)]
}

/// How many lines end in `bytes`.
pub(crate) fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|&byte| byte == b'\n').count() - 1
}

/// Whether the line that begins at `at` begins something at the top level.
pub(crate) fn begins_top_level(bytes: &[u8], at: usize) -> bool {
    let end = identifier_end(bytes, at);
    let word = &bytes[at..end];
    if !BEGINS.iter().any(|begin| begin.as_bytes() == word) {
        return false;
    }
    // `extern __shared__ float tile[];` is as good as always inside of a kernel.
    let next = bytes[end..]
        .iter()
        .position(|byte| !is_horizontal(*byte))
        .map_or(bytes.len(), |blanks| end + blanks);
    &bytes[next..identifier_end(bytes, next)] != b"__shared__"
}

/// White space that does not end a line.
pub(crate) fn is_horizontal(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// The token at `at`, where neither white space nor a comment begins, and where it ends.
pub(crate) fn token(bytes: &[u8], at: usize) -> (Kind, usize) {
    let first = bytes[at];
    let second = bytes.get(at + 1).copied().unwrap_or(0);
    match STARTS[usize::from(first)] {
        Start::Letter => {
            let end = identifier_end(bytes, at);
            match bytes.get(end) {
                Some(b'"') if is_literal_prefix(&bytes[at..end], true) => {
                    (Kind::String, quoted_end(bytes, end))
                }
                Some(b'\'') if is_literal_prefix(&bytes[at..end], false) => {
                    (Kind::Character, quoted_end(bytes, end))
                }
                _ => (Kind::Identifier, end),
            }
        }
        Start::Digit => (Kind::Number, number_end(bytes, at)),
        Start::Quote if first == b'"' => (Kind::String, quoted_end(bytes, at)),
        Start::Quote => (Kind::Character, quoted_end(bytes, at)),
        Start::Hash if second == b'#' => (Kind::Paste, at + 2),
        Start::Hash => (Kind::Hash, at + 1),
        Start::Slash | Start::Plain | Start::Line => match first {
            b'(' => (Kind::OpenParenthesis, at + 1),
            b')' => (Kind::CloseParenthesis, at + 1),
            b'{' => (Kind::OpenBrace, at + 1),
            b'}' => (Kind::CloseBrace, at + 1),
            b',' => (Kind::Comma, at + 1),
            b'.' if second.is_ascii_digit() => (Kind::Number, number_end(bytes, at)),
            _ => (Kind::Other, operator_end(bytes, at)),
        },
    }
}

/// Longest first. The chevrons of a kernel launch count as operators.
const OPERATORS: [&[u8]; 30] = [
    b"<<<", b">>>", b"<<=", b">>=", b"...", b"->*", b"<=>", b"<<", b">>", b"<=", b">=", b"==",
    b"!=", b"&&", b"||", b"+=", b"-=", b"*=", b"/=", b"%=", b"&=", b"|=", b"^=", b"++", b"--",
    b"->", b"::", b".*", b"<:", b":>",
];

fn operator_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if !matches!(
        rest.get(1),
        Some(b'<' | b'>' | b'=' | b'.' | b'&' | b'|' | b'+' | b'-' | b':' | b'*')
    ) {
        return at + 1;
    }
    OPERATORS
        .iter()
        .find(|operator| rest.starts_with(operator))
        .map_or(at + 1, |operator| at + operator.len())
}

/// Where the identifier that `at` is in ends.
pub(crate) fn identifier_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && IN_IDENTIFIER[usize::from(bytes[at])] {
        at += 1;
    }
    at
}

/// Where the preprocessing number at `at` ends: suffixes, exponents and digit separators included.
pub(crate) fn number_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        if matches!(byte, b'e' | b'E' | b'p' | b'P') && matches!(next, b'+' | b'-') {
            at += 2;
        } else if continues_identifier(byte) || byte == b'.' {
            at += 1;
        } else if byte == b'\'' && (next.is_ascii_alphanumeric() || next == b'_') {
            at += 2;
        } else {
            break;
        }
    }
    at
}

/// `L`, `u8` and so on; with `raw`, also those that end in `R`.
pub(crate) fn is_literal_prefix(word: &[u8], raw: bool) -> bool {
    let word = match word.strip_suffix(b"R") {
        Some(rest) if raw => rest,
        _ => word,
    };
    matches!(word, b"" | b"L" | b"u" | b"U" | b"u8")
}

/// Where the string or character literal whose quote is at `quote` ends. One without its closing quote ends
/// at its line, a raw one at the end of the text.
pub(crate) fn quoted_end(bytes: &[u8], quote: usize) -> usize {
    if bytes[quote] == b'"'
        && quote > 0
        && bytes[quote - 1] == b'R'
        && let Some(end) = raw_string_end(bytes, quote)
    {
        return end;
    }
    ordinary(bytes, quote).1
}

/// The content of the literal whose quote is at `quote`, which is no raw one, and where it ends. One without its closing
/// quote ends at its line.
pub(crate) fn ordinary(bytes: &[u8], quote: usize) -> (Range<usize>, usize) {
    let start = quote + 1;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => break,
            b'\\' => at = splice(bytes, at).unwrap_or_else(|| escape_end(bytes, at)),
            byte if byte == bytes[quote] => return (start..at, at + 1),
            _ => at += 1,
        }
    }
    (start..at, at)
}

/// Behind the character that the backslash at `at` escapes; before the end of its line.
fn escape_end(bytes: &[u8], at: usize) -> usize {
    let escaped = skip_splices(bytes, at + 1);
    match bytes.get(escaped) {
        Some(b'\n') | None => escaped,
        Some(_) => escaped + 1,
    }
}

/// The end of the raw string whose quote is at `quote`, if the `R` before belongs to it.
fn raw_string_end(bytes: &[u8], quote: usize) -> Option<usize> {
    let mut start = quote;
    while start > 0 && quote - start < 4 && continues_identifier(bytes[start - 1]) {
        start -= 1;
    }
    if !is_literal_prefix(&bytes[start..quote], true) {
        return None;
    }
    Some(raw_string(bytes, quote)?.1)
}

/// The content of the raw string whose quote is at `quote`, and where the literal ends. One that is not closed reaches to
/// the end of the text.
pub(crate) fn raw_string(bytes: &[u8], quote: usize) -> Option<(Range<usize>, usize)> {
    const LONGEST_DELIMITER: usize = 16;
    let head = bytes[quote + 1..].iter().take(LONGEST_DELIMITER + 1);
    let open = head.clone().position(|&byte| byte == b'(')?;
    let delimiter = &bytes[quote + 1..quote + 1 + open];
    let is_wrong =
        |byte: &u8| matches!(byte, b')' | b'\\' | b'"' | 0x0b) || byte.is_ascii_whitespace();
    if delimiter.iter().any(is_wrong) {
        return None;
    }
    let start = quote + open + 2;
    let closing = [b")", delimiter, b"\""].concat();
    Some(match memmem::find(&bytes[start..], &closing) {
        Some(length) => (start..start + length, start + length + closing.len()),
        None => (start..bytes.len(), bytes.len()),
    })
}

/// Where the comment at `at` ends (before the newline, for a line comment), if one begins there.
pub(crate) fn comment_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes[at] != b'/' {
        return None;
    }
    match bytes.get(at + 1) {
        Some(b'/') => {
            let mut from = at + 2;
            loop {
                let rest = &bytes[from..];
                let Some(newline) = memchr(b'\n', rest) else {
                    return Some(bytes.len());
                };
                if rest[..newline].trim_ascii_end().last() != Some(&b'\\') {
                    return Some(from + newline);
                }
                from += newline + 1;
            }
        }
        Some(b'*') => {
            let from = at + 2;
            Some(memmem::find(&bytes[from..], b"*/").map_or(bytes.len(), |star| from + star + 2))
        }
        _ => None,
    }
}

/// Where the next line begins, if the backslash at `at` continues its line there.
pub(crate) fn splice(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'\\') {
        return None;
    }
    let mut end = at + 1;
    while bytes.get(end).copied().is_some_and(is_horizontal) {
        end += 1;
    }
    (bytes.get(end) == Some(&b'\n')).then_some(end + 1)
}

/// Behind the backslashes at `at` that continue their lines.
pub(crate) fn skip_splices(bytes: &[u8], mut at: usize) -> usize {
    while let Some(end) = splice(bytes, at) {
        at = end;
    }
    at
}

/// The first byte at or after `at` that is neither white space, comment nor continued line; newlines are
/// skipped as well.
pub(crate) fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = bytes.get(at) {
        if byte == b'\n' || is_horizontal(byte) {
            at += 1;
        } else if let Some(end) = comment_end(bytes, at).or_else(|| splice(bytes, at)) {
            at = end;
        } else {
            break;
        }
    }
    at
}

/// The place of the `#` if a directive begins on the line that starts at `at`.
pub(crate) fn directive_on_line(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'#' => return Some(at),
            &byte if is_horizontal(byte) => at += 1,
            b'/' if bytes.get(at + 1) == Some(&b'*') => at = comment_end(bytes, at)?,
            _ => return None,
        }
    }
}

/// The place of the `#` of the first directive at or after `at`, which begins or ends a line.
pub(crate) fn next_directive(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut clean = true;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\n' => {
                clean = true;
                at += 1;
            }
            b'#' if clean => return Some(at),
            b'"' | b'\'' => {
                clean = false;
                // An apostrophe after a digit separates digits; in prose it ends at its line, as in C.
                at = quoted_end(bytes, at);
            }
            b'0'..=b'9' => {
                clean = false;
                at = number_end(bytes, at);
            }
            b'/' => match comment_end(bytes, at) {
                Some(end) => at = end,
                None => {
                    clean = false;
                    at += 1;
                }
            },
            b'\\' => at = splice(bytes, at).unwrap_or(at + 1),
            byte => {
                if continues_identifier(byte) {
                    clean = false;
                    at = identifier_end(bytes, at);
                } else {
                    clean &= is_horizontal(byte);
                    at += 1;
                }
            }
        }
    }
    None
}

/// Whether two tokens put side by side would read as another token. Errs on the side of a space.
pub(crate) fn glue(kind: Kind, last: u8, first: u8) -> bool {
    let word = continues_identifier(first) || matches!(first, b'"' | b'\'');
    match last {
        b'"' | b'\'' => continues_identifier(first),
        _ if continues_identifier(last) => {
            word || (kind == Kind::Number
                && (first == b'.'
                    || (matches!(first, b'+' | b'-') && matches!(last, b'e' | b'E' | b'p' | b'P'))))
        }
        b'.' => {
            first.is_ascii_digit()
                || matches!(first, b'.' | b'*')
                || (kind == Kind::Number && (word || matches!(first, b'+' | b'-')))
        }
        b'/' => matches!(first, b'/' | b'*' | b'='),
        b'-' => matches!(first, b'-' | b'>' | b'='),
        b'<' => matches!(first, b'<' | b'=' | b':' | b'%'),
        b'>' => matches!(first, b'>' | b'=' | b'*'),
        b'+' | b'&' | b'|' | b':' | b'#' => first == last || matches!(first, b'=' | b'>'),
        b'=' => matches!(first, b'=' | b'>'),
        b'*' | b'%' | b'^' | b'!' => first == b'=',
        b'\\' => first == b'\n',
        _ => false,
    }
}
