//! Overwrites with spaces the words that the grammar does not know, keeping every byte offset, and
//! remembers what stood where.

use std::ops::Range;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::Language;

/// A word that was blanked, with its argument's parentheses where it has some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Bytes in the text, the argument included.
    pub range: Range<usize>,
    /// The word, without leading or trailing underscores: `global`, `launch_bounds`.
    pub name: &'static str,
}

/// The text between the outer parentheses of a blanked word; empty where it has none.
pub fn word_argument<'t>(text: &'t str, word: &Word) -> &'t str {
    let whole = text.get(word.range.clone()).unwrap_or("");
    match (whole.find('('), whole.rfind(')')) {
        (Some(open), Some(close)) if open < close => &whole[open + 1..close],
        _ => "",
    }
}

type Words = FxHashMap<&'static str, (&'static str, bool)>;

fn words(list: &'static str) -> Words {
    list.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (word, argument) = match line.strip_suffix("()") {
                Some(word) => (word, true),
                None => (line, false),
            };
            (word, (word.trim_matches('_'), argument))
        })
        .collect()
}

static OPENCL: LazyLock<Words> =
    LazyLock::new(|| words(include_str!("../../../grammars/opencl/words.txt")));
static CUDA: LazyLock<Words> =
    LazyLock::new(|| words(include_str!("../../../grammars/cuda/words.txt")));

/// Blanks `text` in place; the words come back in order.
pub(crate) fn blank(text: &mut String, language: Language) -> Vec<Word> {
    let table: &Words = match language {
        Language::OpenCl => &OPENCL,
        Language::Cuda | Language::Hip => &CUDA,
    };
    // Most CUDA files have none of the words: one quick search saves the scan.
    if language != Language::OpenCl && !table.keys().any(|word| text.contains(word)) {
        return Vec::new();
    }
    let found = find(text.as_bytes(), table);
    let mut bytes = std::mem::take(text).into_bytes();
    for word in &found {
        for byte in &mut bytes[word.range.clone()] {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b' ';
            }
        }
    }
    // Whole characters were replaced by as many spaces as they had bytes.
    *text = String::from_utf8(bytes).unwrap_or_default();
    found
}

fn find(bytes: &[u8], table: &Words) -> Vec<Word> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 2;
                while at < bytes.len() && !(bytes[at] == b'*' && bytes.get(at + 1) == Some(&b'/')) {
                    at += 1;
                }
                at += 2;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' => {
                let start = at;
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                    at += 1;
                }
                let Some(&(name, argument)) = std::str::from_utf8(&bytes[start..at])
                    .ok()
                    .and_then(|word| table.get(word))
                else {
                    continue;
                };
                let mut end = at;
                if argument {
                    let Some(close) = closing_parenthesis(bytes, at) else {
                        continue;
                    };
                    end = close;
                }
                found.push(Word {
                    range: start..end,
                    name,
                });
                at = end;
            }
            byte if byte.is_ascii_digit() => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                    at += 1;
                }
            }
            _ => at += 1,
        }
    }
    found
}

/// One past the parenthesis that closes the one opening next (white space allowed before it). A semicolon
/// or brace ends the search: half-typed code must not blank half the file.
fn closing_parenthesis(bytes: &[u8], mut at: usize) -> Option<usize> {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    if bytes.get(at) != Some(&b'(') {
        return None;
    }
    let mut depth = 0usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b';' | b'{' | b'}' => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: Language, text: &str, blanked: &str, names: &[&str]) {
        let mut result = text.to_owned();
        let words = blank(&mut result, language);
        assert_eq!(result, blanked);
        assert_eq!(
            words.iter().map(|word| word.name).collect::<Vec<_>>(),
            names
        );
    }

    #[test]
    fn opencl_qualifiers_become_spaces_of_the_same_length() {
        check(
            Language::OpenCl,
            "__kernel void k(__global float *a) { local int x; }",
            "         void k(         float *a) {       int x; }",
            &["kernel", "global", "local"],
        );
    }

    #[test]
    fn three_argument_launch_bounds_are_blanked_and_their_argument_kept() {
        let text = "__global__ void __launch_bounds__(256, 2, 1) k() {}";
        let mut blanked = text.to_owned();
        let words = blank(&mut blanked, Language::Cuda);
        assert_eq!(blanked.len(), text.len());
        assert!(!blanked.contains("launch_bounds"));
        assert_eq!(word_argument(text, &words[0]), "256, 2, 1");
    }

    #[test]
    fn comments_strings_and_half_typed_arguments_are_left_alone() {
        let text = "// __global\nchar *s = \"__local\"; __attribute__((aligned(";
        check(Language::OpenCl, text, text, &[]);
    }
}
