//! What a text says by its words alone: what it defines, includes, and which words it has.

use std::hash::{Hash, Hasher};
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use warplens_syntax::Language;

use crate::kinds::is_header;

pub(super) fn is_source(path: &Path) -> bool {
    may_be_host(path) || may_define(path) || Language::from_path(path).is_some()
}

pub(super) fn may_define(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    is_header(path) || matches!(extension, Some("cu" | "hip" | "c" | "cc" | "cpp" | "cxx"))
}

pub(super) fn may_be_host(path: &Path) -> bool {
    match Language::from_path(path) {
        Some(language) => language != Language::OpenCl,
        None => path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| {
                matches!(
                    extension.to_ascii_lowercase().as_str(),
                    "c" | "cc" | "cpp" | "cxx" | "c++" | "h" | "hh" | "hpp" | "hxx" | "inl"
                )
            }),
    }
}

pub(super) fn words_of(text: &str) -> Vec<u32> {
    let mut words: Vec<u32> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .map(word_hash)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

pub(super) fn word_hash(word: &str) -> u32 {
    let mut hasher = FxHasher::default();
    word.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

/// What a text defines that the files beside it may use.
pub(crate) fn offers(text: &str) -> FxHashSet<String> {
    let mut names = defined(text);
    names.extend(constants_of(text).into_keys());
    names
}

/// What a text includes, but for the system's headers.
pub(super) fn included(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            let rest = line.trim_start().strip_prefix('#')?.trim_start();
            let rest = rest.strip_prefix("include")?.trim_start();
            let spelled = match rest.strip_prefix('<') {
                Some(rest) => rest.split_once('>')?.0,
                None => rest.strip_prefix('"')?.split_once('"')?.0,
            };
            (!warplens_base::is_system_header(spelled)).then(|| spelled.to_owned())
        })
        .collect()
}

/// Constants that lines of their own define outside of everything: `const int WIDTH = 32;`.
pub(super) fn constants_of(text: &str) -> FxHashMap<String, String> {
    let mut found = FxHashMap::default();
    for line in text.lines() {
        let line = line.strip_prefix("static ").unwrap_or(line);
        let rest = line.strip_prefix("constexpr ");
        let Some(rest) = rest.or_else(|| line.strip_prefix("const ")) else {
            continue;
        };
        if let Some((declared, value)) = rest.split_once('=')
            && let Some((value, _)) = value.split_once(';')
            && let Some(name) = declared.split_whitespace().last()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            found.insert(name.to_owned(), value.trim().to_owned());
        }
    }
    found
}

/// Names in front of parentheses that a brace follows: functions, and words like `if` that are never asked for.
pub(super) fn defined(text: &str) -> FxHashSet<String> {
    let bytes = text.as_bytes();
    let mut found = FxHashSet::default();
    // Where each parenthesis that is open was opened, with the name before it.
    let mut open: Vec<Option<(usize, usize)>> = Vec::new();
    let mut closed: Option<(usize, usize)> = None;
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = text[at + 2..]
                    .find("*/")
                    .map_or(bytes.len(), |end| at + end + 4);
                continue;
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'(' => {
                let end = text[..at].trim_end().len();
                let start = bytes[..end]
                    .iter()
                    .rposition(|&byte| !word(byte))
                    .map_or(0, |p| p + 1);
                open.push((start < end).then_some((start, end)));
                closed = None;
            }
            b')' => closed = open.pop().flatten(),
            b'{' => {
                if let Some((start, end)) = closed.take()
                    && open.is_empty()
                {
                    found.insert(text[start..end].to_owned());
                }
            }
            b'}' | b';' => {
                closed = None;
                open.clear();
            }
            byte if byte.is_ascii_whitespace() || word(byte) => {}
            _ if open.is_empty() => closed = None,
            _ => {}
        }
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_calls_and_declarations() {
        let text = "int declared(int x);\n\
                    // int commented(int x) { }\n\
                    __device__ float one(const float (*p)[3], int n = f(2)) { return called(n); }\n\
                    char *s = \"quoted() {\";\n\
                    void Class::member() const\n{ other(1); }\n";
        let mut found: Vec<String> = defined(text).into_iter().collect();
        found.sort();
        assert_eq!(found, ["member", "one"]);
        assert_eq!(defined("((((((((((").len() + defined("a(b{c)d}e)").len(), 0);
    }

    #[test]
    fn constants_of_a_file_are_found() {
        let text = "const int WIDTH = 32; // lanes\nstatic constexpr unsigned ROWS = WIDTH / 4;\n  const int inside = 1;\n\
                    const int table[2] = {1, 2};\nextern const int elsewhere;\n";
        let mut found: Vec<_> = constants_of(text).into_iter().collect();
        found.sort();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(found, [pair("ROWS", "WIDTH / 4"), pair("WIDTH", "32")]);
    }

    #[test]
    fn lines_that_include_are_found() {
        let text = "#include <math.h>\n  # include \"../a/b.cuh\" // \"c\"\n//#include \"d.h\"\n";
        assert_eq!(included(text), ["../a/b.cuh"]);
    }
}
