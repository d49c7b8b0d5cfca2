//! Bytes of a text and the 1-based lines and columns that a terminal shows.

/// 1-based line and byte column of a byte of `text`; of its end for any byte behind it.
pub fn position(text: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, column as u32 + 1)
}

/// The byte offset of a 1-based line and byte column; the end of the text for any position beyond it.
pub fn offset(text: &str, line: u32, column: u32) -> usize {
    let before = (line as usize).saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    (start + (column as usize).saturating_sub(1)).min(text.len())
}
