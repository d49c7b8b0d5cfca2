//! Halves of surrogate pairs in JSON.
//!
//! Editors hold text in UTF-16 and send what an edit left of a pair as it is. No text has such a character, so that the whole
//! message would be lost, and with it an edit: from then on every position would be wrong. U+FFFD is as long in UTF-16.

/// The length of `\\uXXXX`.
const ESCAPE: usize = 6;

/// A message with U+FFFD for each half without the other; nothing where it has none.
pub fn replaced(body: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while at < body.len() {
        let Some(unit) = escaped(body, at) else {
            // An escaped backslash begins no escape.
            at += if body[at] == b'\\' { 2 } else { 1 };
            continue;
        };
        let low = escaped(body, at + ESCAPE).filter(|unit| (0xdc00..0xe000).contains(unit));
        match unit {
            0xd800..0xdc00 if low.is_some() => at += ESCAPE,
            0xd800..0xe000 => {
                let out = out.get_or_insert_with(|| body.to_vec());
                out[at..at + ESCAPE].copy_from_slice(b"\\ufffd");
            }
            _ => {}
        }
        at += ESCAPE;
    }
    out
}

/// The UTF-16 code unit that an escape at that byte represents.
fn escaped(body: &[u8], at: usize) -> Option<u16> {
    let digits = body.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_replaced_and_a_pair_is_not() {
        let replaced =
            |text: &str| replaced(text.as_bytes()).map(|out| String::from_utf8(out).expect("text"));
        assert_eq!(replaced(r#""a \ud83d""#).as_deref(), Some(r#""a \ufffd""#));
        assert_eq!(replaced(r#""\uDE00 b""#).as_deref(), Some(r#""\ufffd b""#));
        assert_eq!(
            replaced(r#""\ud83d\ud83d\ude00""#).as_deref(),
            Some(r#""\ufffd\ud83d\ude00""#)
        );
        assert_eq!(replaced(r#""\ud83d\ude00""#), None);
        assert_eq!(replaced(r#""\\ud83d \u0041""#), None);
        assert_eq!(replaced(r#""\ud83"#), None);
        assert_eq!(replaced("\\"), None);
    }
}
