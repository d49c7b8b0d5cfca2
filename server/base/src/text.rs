//! The text in a file's bytes.

/// Why bytes are not source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotText {
    /// A byte order mark says UTF-16.
    Utf16,
    /// A program, a picture, an archive.
    Binary,
}

/// A NUL or many control characters at the beginning say that a file is no text.
const PROBE_BYTES: usize = 8 << 10;

/// The text of a file as a compiler reads it, which takes any bytes in comments and literals: each byte that is
/// not UTF-8 (sources of the nineties are Latin-1) becomes one `?`, so that every other byte keeps its column.
pub fn decode(bytes: Vec<u8>) -> Result<String, NotText> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(NotText::Utf16);
    }
    let probe = &bytes[..bytes.len().min(PROBE_BYTES)];
    if probe.contains(&0) {
        return Err(NotText::Binary);
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    let control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let probe = &bytes[..bytes.len().min(PROBE_BYTES)];
    if probe.iter().filter(control).count() * 100 > probe.len() {
        return Err(NotText::Binary);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_itself_and_latin_1_keeps_every_column() {
        assert_eq!(decode("int é = 1;".into()), Ok("int é = 1;".to_owned()));
        let latin = b"// caf\xe9 \xa9\nint x; // \xe9\xe9\n";
        let text = decode(latin.to_vec()).unwrap();
        assert_eq!(text, "// caf? ?\nint x; // ??\n");
        assert_eq!(text.len(), latin.len());
        assert_eq!(decode(Vec::new()), Ok(String::new()));
    }

    #[test]
    fn what_is_no_text_is_told_apart() {
        assert_eq!(decode(b"\xff\xfe_\0_\0".to_vec()), Err(NotText::Utf16));
        assert_eq!(
            decode(b"\x7fELF\x02\x01\x01\0\0".to_vec()),
            Err(NotText::Binary)
        );
        let noise: Vec<u8> = (0..4000u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8 | 1)
            .collect();
        assert_eq!(decode(noise), Err(NotText::Binary));
    }
}
