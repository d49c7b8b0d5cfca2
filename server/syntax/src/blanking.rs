//! Words that tree-sitter-cuda does not know: overwritten with spaces before it reads a text.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use crate::Language;
use crate::lexer;
use crate::names::is_word_part;
use crate::preprocess::WordTable;

fn table(list: &'static str) -> WordTable {
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

static OPENCL: LazyLock<WordTable> = LazyLock::new(|| table(include_str!("../words/opencl.txt")));
static CUDA: LazyLock<WordTable> = LazyLock::new(|| table(include_str!("../words/cuda.txt")));
static NONE: LazyLock<WordTable> = LazyLock::new(WordTable::default);

/// What the dots of `case 1 ... 9` are written as: an operator whose result no label can be.
pub const RANGE_OF_LABELS: &str = "<=>";

/// The words that the grammar of a preprocessed text lacks.
pub fn words(language: Language) -> &'static WordTable {
    match language {
        // Our own grammar knows them.
        Language::OpenCl => &NONE,
        Language::Cuda | Language::Hip => &CUDA,
    }
}

/// Blanks the execution spaces between a lambda's captures and its parameters, `[=] __device__ (int i)`, which
/// the grammar knows on functions only.
pub(crate) fn blank_lambda_spaces(text: &mut String, language: Language) {
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = ["__host__", "__device__"]
        .iter()
        .flat_map(|word| memmem::find_iter(bytes, word).map(|at| at..at + word.len()))
        .collect();
    found.sort_unstable_by_key(|range| range.start);
    // Behind a bracket, or behind another of them that is.
    let mut end_of_last = None;
    found.retain(|range| {
        let before = text[..range.start].trim_end();
        let behind = before.ends_with(']') || end_of_last == Some(before.len());
        if behind {
            end_of_last = Some(range.end);
        }
        behind
    });
    for range in found {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
}

/// Blanks the specifiers in front of `friend`, `__device__ inline friend T f(…)`, and of a conversion operator, `__host__ __device__
/// operator bool()`: the grammar takes these words for a type there.
pub(crate) fn blank_specifiers_of_friends(text: &mut String, language: Language) {
    const WORDS: [&str; 2] = ["friend", "operator"];
    const SPECIFIERS: [&str; 6] = [
        "__device__",
        "__host__",
        "__forceinline__",
        "inline",
        "static",
        "constexpr",
    ];
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    let places = WORDS
        .iter()
        .flat_map(|word| memmem::find_iter(bytes, word).map(|at| (at, at + word.len())));
    for (at, end) in places {
        if !bytes.get(end).is_some_and(u8::is_ascii_whitespace) {
            continue;
        }
        let mut before = text[..at].trim_end();
        if before.len() == at {
            continue;
        }
        while let Some(rest) = SPECIFIERS.iter().find_map(|word| {
            let rest = before.strip_suffix(word)?;
            (!rest.ends_with(is_word_part)).then_some(rest)
        }) {
            found.push(rest.len()..before.len());
            before = rest.trim_end();
        }
    }
    for range in found {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
}

/// A launch's brackets that a formatter took apart, `k<< <grid, block>> >(…)`, as the grammar knows them: `k<<< grid, block>>> (…)`.
pub(crate) fn join_launch_brackets(text: &mut String, language: Language) {
    /// How far the brackets of a launch may be from each other.
    const REACH: usize = 4096;
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for open in memmem::find_iter(bytes, b"<< <") {
        let reach = &bytes[open + 4..bytes.len().min(open + 4 + REACH)];
        let end = memchr::memchr2(b';', b'{', reach).unwrap_or(reach.len());
        if let Some(close) = memmem::rfind(&reach[..end], b">> >") {
            found.extend([(open, "<<< "), (open + 4 + close, ">>> ")]);
        }
    }
    for (at, brackets) in found {
        text.replace_range(at..at + 4, brackets);
    }
}

/// Blanks the `typename` of an object that is made to be used at once, `typename T::Load(memory).Load(p, v)`, which the
/// grammar reads as the beginning of a declaration, and that of one in an expression, `return typename T::type{}`.
pub(crate) fn blank_typename_of_objects(text: &mut String, language: Language) {
    const WORD: &str = "typename";
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let made_at_once = |at: &usize| {
        let end = *at + WORD.len();
        let before = at.checked_sub(1).map(|before| bytes[before]);
        if before.is_some_and(lexer::continues_identifier)
            || !bytes.get(end).is_some_and(u8::is_ascii_whitespace)
        {
            return false;
        }
        let rest = text[end..].trim_start();
        let open = end_of_type(rest);
        let made = &rest[open..];
        let before = text[..*at].trim_end();
        let in_expression = before.ends_with(['=', '(', ',', '?', '+', '-', '/'])
            || before.ends_with("return") && !before.ends_with("_return");
        let points = |inner: &str| inner.trim_start().starts_with(['*', '&']);
        match made.as_bytes().first() {
            Some(b'{') => open > 0 && in_expression,
            Some(b'(') if open > 0 => {
                let open = text.len() - made.len();
                in_expression && !points(&made[1..])
                    || closing_parenthesis(bytes, open)
                        .is_some_and(|close| text[close..].trim_start().starts_with('.'))
            }
            _ => false,
        }
    };
    let found: Vec<usize> = memmem::find_iter(bytes, WORD)
        .filter(made_at_once)
        .collect();
    for at in found {
        text.replace_range(at..at + WORD.len(), &" ".repeat(WORD.len()));
    }
}

/// Where a qualified name ends that a text begins with, its template arguments included.
fn end_of_type(text: &str) -> usize {
    let mut depth = 0u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            ';' | '{' | '}' if depth > 0 => return 0,
            _ if depth > 0 => {}
            '_' | ':' => {}
            letter if letter.is_alphanumeric() => {}
            _ => return at,
        }
    }
    text.len()
}

/// Blanks a macro of a header that was not read which is alone before a loop, `CUTLASS_PRAGMA_UNROLL for (…)`: what it can
/// be is a directive for that loop.
pub(crate) fn blank_hints_of_loops(text: &mut String, language: Language) {
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for at in memmem::find_iter(bytes, "UNROLL") {
        let start = bytes[..at]
            .iter()
            .rposition(|byte| !lexer::continues_identifier(*byte))
            .map_or(0, |before| before + 1);
        let end = lexer::identifier_end(bytes, at);
        let upper = bytes[start..end]
            .iter()
            .all(|byte| !byte.is_ascii_lowercase());
        let before = text[..start].trim_end().as_bytes().last().copied();
        let after = text[end..].trim_start();
        let statement = matches!(before, Some(b';' | b'{' | b'}' | b')')) || before.is_none();
        let of_loop = ["for", "while", "do"].iter().any(|word| {
            let rest = after.strip_prefix(word);
            rest.is_some_and(|rest| !rest.bytes().next().is_some_and(lexer::continues_identifier))
        });
        if upper && statement && of_loop {
            found.push(start..end);
        }
    }
    for range in found {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
}

/// Blanks `__restrict__` on references, `float3 &__restrict__ v`, which the grammar knows on pointers only, and a directive between
/// `else` and its loop.
pub(crate) fn blank_what_is_between(text: &mut String, language: Language) {
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in memmem::find_iter(bytes, "__restrict") {
        let end = lexer::identifier_end(bytes, at);
        let before = bytes[..at].iter().rfind(|byte| !byte.is_ascii_whitespace());
        if before == Some(&b'&') && matches!(&text[at..end], "__restrict" | "__restrict__") {
            found.push(at..end);
        }
    }
    for at in memmem::find_iter(bytes, "#pragma") {
        let before = text[..at].trim_end();
        let word = before.strip_suffix("else");
        if word.is_some_and(|rest| !rest.bytes().last().is_some_and(lexer::continues_identifier)) {
            let end =
                memchr::memchr2(b'\n', b'\r', &bytes[at..]).map_or(text.len(), |end| at + end);
            found.push(at..end);
        }
    }
    for range in found {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
}

/// Writes the range of a label, `case 1 ... 9`, as an operator that no label has: `case 1 <=> 9`. The grammar knows no ranges.
pub(crate) fn mark_ranges_of_labels(text: &mut String, language: Language) {
    /// How long the beginning of a range may be.
    const REACH: usize = 256;
    const RANGE: &str = "...";
    if language == Language::OpenCl {
        return;
    }
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for at in memmem::find_iter(bytes, RANGE) {
        let before = &bytes[at.saturating_sub(REACH)..at];
        let Some(case) = memmem::rfind(before, b"case") else {
            continue;
        };
        let (head, value) = (&before[..case], &before[case + "case".len()..]);
        let is_word = !head
            .last()
            .copied()
            .is_some_and(lexer::continues_identifier)
            && !value
                .first()
                .copied()
                .is_some_and(lexer::continues_identifier);
        if is_word && !value.iter().any(|byte| b";{}?".contains(byte)) {
            found.push(at);
        }
    }
    for at in found {
        text.replace_range(at..at + RANGE.len(), RANGE_OF_LABELS);
    }
}

/// Blanks `text`, the buffer's own, in place.
pub(crate) fn blank(text: &mut String, language: Language) {
    blank_lambda_spaces(text, language);
    blank_specifiers_of_friends(text, language);
    join_launch_brackets(text, language);
    blank_typename_of_objects(text, language);
    blank_hints_of_loops(text, language);
    blank_what_is_between(text, language);
    mark_ranges_of_labels(text, language);
    let table: &WordTable = match language {
        Language::OpenCl => &OPENCL,
        Language::Cuda | Language::Hip => &CUDA,
    };
    // Most CUDA files have none of the words: one quick search saves the scan.
    if language != Language::OpenCl && !table.keys().any(|word| text.contains(word)) {
        return;
    }
    let found = find(text.as_bytes(), table);
    let mut bytes = std::mem::take(text).into_bytes();
    for range in found {
        for byte in &mut bytes[range] {
            if *byte != b'\n' && *byte != b'\r' {
                *byte = b' ';
            }
        }
    }
    // Whole characters were replaced by as many spaces as they had bytes.
    *text = String::from_utf8(bytes).unwrap_or_default();
}

fn find(bytes: &[u8], table: &WordTable) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if let Some(end) = lexer::comment_end(bytes, at) {
            at = end;
            continue;
        }
        match bytes[at] {
            b'"' | b'\'' => at = lexer::quoted_end(bytes, at),
            byte if lexer::is_letter(byte) => {
                let start = at;
                at = lexer::identifier_end(bytes, at);
                let Some(&(_, argument)) = std::str::from_utf8(&bytes[start..at])
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
                found.push(start..end);
                at = end;
            }
            byte if byte.is_ascii_digit() => at = lexer::number_end(bytes, at),
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

    #[test]
    fn brackets_of_a_launch_that_were_taken_apart_are_joined() {
        for (text, expected) in [
            (
                "k<2> << <g, dim3(a >> 1)>> >(p); a << <b;",
                "k<2> <<< g, dim3(a >> 1)>>> (p); a << <b;",
            ),
            ("vector<vector<A<int>> > x;", "vector<vector<A<int>> > x;"),
        ] {
            let mut joined = text.to_owned();
            join_launch_brackets(&mut joined, Language::Cuda);
            assert_eq!(joined, expected);
        }
    }

    #[test]
    fn an_object_that_is_used_at_once_and_a_hint_before_a_loop_are_blanked() {
        for (text, expected) in [
            (
                "{ typename T::Load(s[0]).Load(p, v); typename T::X (f)(int); }",
                "{          T::Load(s[0]).Load(p, v); typename T::X (f)(int); }",
            ),
            (
                "x = typename T::type{}; y = f(3, typename T<a, 2>::type(0)); int typename_ = 1; return typename A::b{};",
                "x =          T::type{}; y = f(3,          T<a, 2>::type(0)); int typename_ = 1; return          A::b{};",
            ),
            (
                "void f(typename T::x (&r)[4]); template <class A, typename T::x b> struct C { typename T::x c{}; };",
                "void f(typename T::x (&r)[4]); template <class A, typename T::x b> struct C { typename T::x c{}; };",
            ),
            (
                "{ MY_UNROLL\nfor (;;) {} NO_UNROLL for_each(x); UNROLLED = 1; }",
                "{          \nfor (;;) {} NO_UNROLL for_each(x); UNROLLED = 1; }",
            ),
            (
                "__host__ __device__ operator bool() const { } T operator+(T b); int operator ()(int a);",
                "                    operator bool() const { } T operator+(T b); int operator ()(int a);",
            ),
            (
                "f(float3 &__restrict__ a) { if (x) y; else\n#pragma unroll\nfor (;;) {} }",
                "f(float3 &             a) { if (x) y; else\n              \nfor (;;) {} }",
            ),
        ] {
            let mut blanked = text.to_owned();
            blank(&mut blanked, Language::Cuda);
            assert_eq!(blanked, expected);
        }
    }

    #[test]
    fn words_become_spaces_of_the_same_length() {
        for (language, text, expected) in [
            (
                Language::OpenCl,
                "__kernel void k(__global float *a) { local int x; }",
                "         void k(         float *a) {       int x; }",
            ),
            (
                Language::Cuda,
                "__global__ void __launch_bounds__(256, 2, 1) k() {}",
                "__global__ void                              k() {}",
            ),
            (
                Language::Cuda,
                "f([=] __host__ __device__(int i) {}); __device__ int a[2]; __device__ int b;",
                "f([=]                    (int i) {}); __device__ int a[2]; __device__ int b;",
            ),
            // Comments, strings and half-typed arguments are left alone.
            (
                Language::OpenCl,
                "// __global\nchar *s = \"__local\"; __attribute__((aligned(",
                "// __global\nchar *s = \"__local\"; __attribute__((aligned(",
            ),
        ] {
            let mut blanked = text.to_owned();
            blank(&mut blanked, language);
            assert_eq!(blanked, expected);
        }
    }
}
