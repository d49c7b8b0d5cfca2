//! Bytes of a rope to positions of the protocol and back, in the encoding negotiated with the client.
//!
//! A line ends at LF, CRLF or CR. A column past the end of its line is the line's end, a line past the last
//! one is the end of the text, and a column inside a character is the character's first byte: no client
//! can make a conversion fail.

use std::ops::Range;
use std::sync::Arc;

use ropey::{Rope, RopeSlice};
use tower_lsp_server::ls_types::{self as lsp, Position, PositionEncodingKind};

/// What a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units: characters outside the basic plane count two.
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The first of the client's list that is known; UTF-16 when it lists none, as the protocol says.
    pub fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Encoding {
        offered
            .unwrap_or_default()
            .iter()
            .find_map(|kind| match kind.as_str() {
                "utf-8" => Some(Encoding::Utf8),
                "utf-16" => Some(Encoding::Utf16),
                "utf-32" => Some(Encoding::Utf32),
                _ => None,
            })
            .unwrap_or(Encoding::Utf16)
    }

    /// The protocol's name for it.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    /// The byte a position names.
    pub fn to_byte(self, rope: &Rope, position: Position) -> usize {
        let line = position.line as usize;
        if line >= rope.len_lines() {
            return rope.len_bytes();
        }
        let text = content(rope, line);
        let column = position.character as usize;
        let inside = match self {
            Encoding::Utf8 => {
                let byte = column.min(text.len_bytes());
                text.char_to_byte(text.byte_to_char(byte))
            }
            Encoding::Utf16 => {
                text.char_to_byte(text.utf16_cu_to_char(column.min(text.len_utf16_cu())))
            }
            Encoding::Utf32 => text.char_to_byte(column.min(text.len_chars())),
        };
        rope.line_to_byte(line) + inside
    }

    /// True where a position lies between the two halves of a surrogate pair; [`Self::to_byte`] gives the character's start.
    pub fn splits(self, rope: &Rope, position: Position) -> bool {
        let line = position.line as usize;
        if self != Encoding::Utf16 || line >= rope.len_lines() {
            return false;
        }
        let text = content(rope, line);
        let column = position.character as usize;
        column < text.len_utf16_cu()
            && text.char_to_utf16_cu(text.utf16_cu_to_char(column)) != column
    }

    /// The position of a byte.
    pub fn to_position(self, rope: &Rope, byte: usize) -> Position {
        let byte = byte.min(rope.len_bytes());
        let line = rope.byte_to_line(byte);
        let text = content(rope, line);
        let inside = (byte - rope.line_to_byte(line)).min(text.len_bytes());
        Position::new(line as u32, self.column(text, inside))
    }

    /// The position after the last character of a line, its end mark excluded.
    pub fn line_end(self, rope: &Rope, line: u32) -> Position {
        let line = (line as usize).min(rope.len_lines() - 1);
        let text = content(rope, line);
        Position::new(line as u32, self.column(text, text.len_bytes()))
    }

    fn column(self, text: RopeSlice<'_>, byte: usize) -> u32 {
        let character = text.byte_to_char(byte);
        (match self {
            Encoding::Utf8 => text.char_to_byte(character),
            Encoding::Utf16 => text.char_to_utf16_cu(character),
            Encoding::Utf32 => character,
        }) as u32
    }

    /// The bytes of a range. The start never lies after the end.
    pub fn to_bytes(self, rope: &Rope, range: lsp::Range) -> Range<usize> {
        let start = self.to_byte(rope, range.start);
        let end = self.to_byte(rope, range.end);
        start.min(end)..start.max(end)
    }

    /// The range of some bytes.
    pub fn to_range(self, rope: &Rope, bytes: &Range<usize>) -> lsp::Range {
        lsp::Range::new(
            self.to_position(rope, bytes.start),
            self.to_position(rope, bytes.end.max(bytes.start)),
        )
    }
}

/// The lines of a text, found once: for the places of a whole document's findings, which are thousands.
pub struct Lines {
    text: Arc<str>,
    /// Where each line begins.
    starts: Vec<usize>,
    encoding: Encoding,
}

impl Lines {
    /// Of this text, for positions in this encoding.
    pub fn new(text: Arc<str>, encoding: Encoding) -> Lines {
        let bytes = text.as_bytes();
        let breaks = memchr::memchr2_iter(b'\n', b'\r', bytes);
        // Of CR LF only the second ends the line.
        let ends = breaks.filter(|&at| bytes[at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'));
        let starts = std::iter::once(0).chain(ends.map(|at| at + 1)).collect();
        Lines {
            text,
            starts,
            encoding,
        }
    }

    /// The same as [`Encoding::to_range`].
    pub fn to_range(&self, bytes: &Range<usize>) -> lsp::Range {
        lsp::Range::new(
            self.to_position(bytes.start),
            self.to_position(bytes.end.max(bytes.start)),
        )
    }

    fn to_position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|&start| start <= byte) - 1;
        let start = self.starts[line];
        let end = self.starts.get(line + 1).copied();
        let text = &self.text[start..end.unwrap_or(self.text.len())];
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let before = &text[..text.floor_char_boundary(byte - start)];
        let column = match self.encoding {
            _ if before.is_ascii() => before.len(),
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
            Encoding::Utf32 => before.chars().count(),
        };
        Position::new(line as u32, column as u32)
    }
}

/// A line without its end mark.
fn content(rope: &Rope, line: usize) -> RopeSlice<'_> {
    let text = rope.line(line);
    let mut end = text.len_chars();
    if end > 0 && text.char(end - 1) == '\n' {
        end -= 1;
    }
    if end > 0 && text.char(end - 1) == '\r' {
        end -= 1;
    }
    text.slice(..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    #[test]
    fn the_clients_order_decides() {
        let kinds = |names: &[&'static str]| {
            names
                .iter()
                .copied()
                .map(PositionEncodingKind::new)
                .collect::<Vec<_>>()
        };
        let check = |names: &[&'static str], expected| {
            assert_eq!(
                Encoding::negotiate(Some(&kinds(names))),
                expected,
                "{names:?}"
            );
        };
        check(&["utf-8", "utf-16"], Encoding::Utf8);
        check(&["utf-16", "utf-8"], Encoding::Utf16);
        check(&["utf-7", "utf-32", "utf-8"], Encoding::Utf32);
        check(&["utf-7"], Encoding::Utf16);
        check(&[], Encoding::Utf16);
        assert_eq!(Encoding::negotiate(None), Encoding::Utf16);
    }

    #[test]
    fn columns_count_what_was_negotiated() {
        // 'é' is 2 bytes, 1 unit, 1 character; '🚀' is 4, 2, 1.
        let rope = Rope::from_str("é🚀x\r\ny");
        let x = "é🚀".len();
        assert_eq!(Encoding::Utf8.to_position(&rope, x), Position::new(0, 6));
        assert_eq!(Encoding::Utf16.to_position(&rope, x), Position::new(0, 3));
        assert_eq!(Encoding::Utf32.to_position(&rope, x), Position::new(0, 2));
        for encoding in ALL {
            assert_eq!(encoding.to_position(&rope, x + 3), Position::new(1, 0));
        }
    }

    #[test]
    fn impossible_positions_are_clamped() {
        let rope = Rope::from_str("a🚀\r\nb");
        for encoding in ALL {
            assert_eq!(
                encoding.to_byte(&rope, Position::new(0, 99)),
                5,
                "the line's end"
            );
            assert_eq!(
                encoding.to_byte(&rope, Position::new(9, 0)),
                8,
                "the text's end"
            );
            assert_eq!(encoding.line_end(&rope, 99).line, 1);
        }
        assert_eq!(
            Encoding::Utf16.to_byte(&rope, Position::new(0, 2)),
            1,
            "inside a pair"
        );
        assert_eq!(
            Encoding::Utf8.to_byte(&rope, Position::new(0, 3)),
            1,
            "inside a character"
        );
        let backwards = lsp::Range::new(Position::new(1, 1), Position::new(0, 0));
        assert_eq!(Encoding::Utf8.to_bytes(&rope, backwards), 0..8);
        let empty = Rope::from_str("");
        assert_eq!(Encoding::Utf16.to_byte(&empty, Position::new(3, 3)), 0);
        assert_eq!(Encoding::Utf16.to_position(&empty, 7), Position::new(0, 0));
    }

    proptest! {
        #[test]
        fn lines_found_once_say_the_same(text in "[a\\n\\ré🚀 ]{0,40}") {
            let rope = Rope::from_str(&text);
            for encoding in ALL {
                let lines = Lines::new(rope.to_string().into(), encoding);
                for byte in 0..=text.len() + 2 {
                    let place = byte..byte;
                    prop_assert_eq!(lines.to_range(&place), encoding.to_range(&rope, &place));
                }
            }
        }
    }

    #[test]
    fn only_the_protocols_line_ends_end_a_line() {
        let rope = Rope::from_str("a\u{2028}b\u{b}c\u{c}d\u{85}e\rf");
        assert_eq!(rope.len_lines(), 2);
    }

    /// The definition, by walking over characters: what the fast way must agree with.
    fn walk(text: &str, encoding: Encoding, byte: usize) -> Position {
        let (mut line, mut column) = (0, 0);
        for (at, c) in text.char_indices().take_while(|(at, _)| *at < byte) {
            match c {
                '\r' if text[at + 1..].starts_with('\n') => {}
                '\n' | '\r' => {
                    line += 1;
                    column = 0;
                }
                c => {
                    column += match encoding {
                        Encoding::Utf8 => c.len_utf8(),
                        Encoding::Utf16 => c.len_utf16(),
                        Encoding::Utf32 => 1,
                    }
                }
            }
        }
        Position::new(line, column as u32)
    }

    proptest! {
        #[test]
        fn positions_go_there_and_back(text in "([a-c é√🚀𝛼]|\r\n|\n|\r){0,60}") {
            let rope = Rope::from_str(&text);
            for encoding in ALL {
                for (byte, _) in text.char_indices().chain([(text.len(), ' ')]) {
                    let position = encoding.to_position(&rope, byte);
                    prop_assert_eq!(position, walk(&text, encoding, byte), "byte {}", byte);
                    let between = text[..byte].ends_with('\r') && text[byte..].starts_with('\n');
                    let expected = if between { byte - 1 } else { byte };
                    prop_assert_eq!(encoding.to_byte(&rope, position), expected);
                }
            }
        }

        #[test]
        fn any_position_is_a_character_boundary(
            text in "([a-c é√🚀𝛼]|\r\n|\n|\r){0,40}", line in 0u32..50, column in 0u32..50,
        ) {
            let rope = Rope::from_str(&text);
            for encoding in ALL {
                prop_assert!(text.is_char_boundary(encoding.to_byte(&rope, Position::new(line, column))));
            }
        }
    }
}
