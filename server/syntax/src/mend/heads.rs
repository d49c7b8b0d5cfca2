//! What is half-typed at the top level, above something that is whole without it.
//!
//! A word, a bracket or half a declaration above a function is read by a parser as the beginning of that function, which then has
//! another type, another name or none. Where a line begins a declaration that is whole, what is before it belongs to it only
//! if it is of what may be before one: a template's header, specifiers, attributes.

use std::ops::Range;

use crate::lexer;

/// What a stretch of the top level ends in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A function's body.
    Function,
    /// The brace of a type, a namespace, `extern "C"`.
    Scope,
    /// A semicolon.
    Declaration,
}

/// Words that may be before a declaration, in lines of their own.
const SPECIFIERS: [&[u8]; 23] = [
    b"static",
    b"inline",
    b"extern",
    b"constexpr",
    b"consteval",
    b"constinit",
    b"const",
    b"volatile",
    b"virtual",
    b"explicit",
    b"friend",
    b"typedef",
    b"register",
    b"thread_local",
    b"__global__",
    b"__device__",
    b"__host__",
    b"__constant__",
    b"__forceinline__",
    b"__noinline__",
    b"__inline__",
    b"__kernel",
    b"kernel",
];

/// Words with an argument in parentheses that may be there, too.
const WITH_ARGUMENT: [&[u8]; 7] = [
    b"__launch_bounds__",
    b"__attribute__",
    b"__declspec",
    b"__align__",
    b"alignas",
    b"explicit",
    b"__cluster_dims__",
];

/// Words that begin a declaration, whatever is before them.
const DECLARES: [&[u8]; 15] = [
    b"struct",
    b"class",
    b"union",
    b"enum",
    b"namespace",
    b"using",
    b"typedef",
    b"template",
    b"const",
    b"constexpr",
    b"static",
    b"extern",
    b"inline",
    b"__constant__",
    b"__device__",
];

/// A piece of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a [u8]),
    Text,
    /// `(…)`.
    Arguments,
    /// `[…]`.
    Brackets,
    /// A bracket without the other one.
    Loose,
    /// `::`.
    Scope,
    Other(u8),
}

/// A token, where it begins, and whether a line begins with it: then by how much the line is indented.
struct Placed<'a> {
    token: Token<'a>,
    at: usize,
    line: Option<usize>,
}

/// The half-typed part of what ends in a declaration, a body or a brace: from its start to the line where the rest begins.
pub(super) fn half_typed(bytes: &[u8], head: Range<usize>, what: What) -> Option<Range<usize>> {
    // Almost all are of one line.
    let text = bytes.get(head.clone())?.trim_ascii();
    memchr::memchr(b'\n', text)?;
    let tokens = tokens(bytes, head.clone());
    let lines = (1..tokens.len()).filter(|at| tokens[*at].line.is_some());
    let mut lines: Vec<usize> = lines.collect();
    let is_open = |end: usize| tokens[..end].iter().any(|one| one.token == Token::Loose);
    let whole = |at: &usize| {
        is_whole(&tokens[*at..], what) && (tokens[*at].line == Some(0) || !is_open(*at))
    };
    while lines.last().is_some_and(|at| !whole(at)) {
        lines.pop();
    }
    let mut first = lines.pop()?;
    let belongs = |above: usize, first: usize| {
        let before = &tokens[above..first];
        (may_precede(before) && fits(before, &tokens[first..], what))
            || is_of_number(&tokens[above..=first])
    };
    // Lines above that may be before it are its own.
    while let Some(above) = lines.pop().or_else(|| (first > 0).then_some(0)) {
        if !belongs(above, first) {
            // A header of several lines.
            if !lines.iter().chain([&0]).any(|from| belongs(*from, first)) {
                break;
            }
            continue;
        }
        first = above;
        if above == 0 {
            return None;
        }
    }
    Some(head.start..line_start(bytes, tokens[first].at))
}

fn line_start(bytes: &[u8], at: usize) -> usize {
    memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1)
}

fn tokens(bytes: &[u8], head: Range<usize>) -> Vec<Placed<'_>> {
    let mut found: Vec<Placed> = Vec::new();
    let mut at = head.start;
    let mut begins = line_start(bytes, at) == at;
    while at < head.end {
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            begins |= byte == b'\n';
            at += 1;
            continue;
        }
        if let Some(end) = lexer::comment_end(bytes, at) {
            at = end.max(at + 1);
            continue;
        }
        // A directive that is still there is no part of a declaration, nor is `private:`.
        if byte == b'#' && begins {
            at = memchr::memchr(b'\n', &bytes[at..head.end]).map_or(head.end, |end| at + end);
            continue;
        }
        if byte == b':' && bytes.get(at + 1) != Some(&b':') && is_access(&found) {
            found.pop();
            begins = true;
            at += 1;
            continue;
        }
        let (token, end) = match byte {
            b'"' | b'\'' => (Token::Text, lexer::quoted_end(bytes, at)),
            b'(' | b'[' => match group_end(bytes, at, head.end) {
                Some(end) if byte == b'(' => (Token::Arguments, end),
                Some(end) => (Token::Brackets, end),
                None => (Token::Loose, at + 1),
            },
            b')' | b']' | b'{' | b'}' => (Token::Loose, at + 1),
            b':' if bytes.get(at + 1) == Some(&b':') => (Token::Scope, at + 2),
            _ if lexer::continues_identifier(byte) => {
                let rest = bytes[at..head.end].iter();
                let length = rest.take_while(|byte| lexer::continues_identifier(**byte));
                let end = at + length.count();
                (Token::Word(&bytes[at..end]), end)
            }
            other => (Token::Other(other), at + 1),
        };
        let line = begins.then(|| at - line_start(bytes, at).max(head.start));
        found.push(Placed { token, at, line });
        begins = false;
        at = end;
    }
    found
}

/// Whether all there is says who may use what follows.
fn is_access(tokens: &[Placed]) -> bool {
    let [one] = tokens else {
        return false;
    };
    matches!(
        one.token,
        Token::Word(b"private" | b"public" | b"protected")
    )
}

/// Behind the bracket that closes the one at `at`.
fn group_end(bytes: &[u8], at: usize, limit: usize) -> Option<usize> {
    let mut open = 0_usize;
    let mut at = at;
    while at < limit {
        match bytes[at] {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => {
                open -= 1;
                if open == 0 {
                    return Some(at + 1);
                }
            }
            b'"' | b'\'' => {
                at = lexer::quoted_end(bytes, at).max(at + 1);
                continue;
            }
            b'/' => {
                if let Some(end) = lexer::comment_end(bytes, at) {
                    at = end;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether these are a declaration by themselves.
fn is_whole(tokens: &[Placed], what: What) -> bool {
    let Some(Token::Word(first)) = tokens.first().map(|one| one.token) else {
        return false;
    };
    match what {
        What::Function => is_function(tokens),
        What::Scope => {
            matches!(
                first,
                b"struct" | b"class" | b"union" | b"enum" | b"namespace" | b"template" | b"typedef"
            ) || first == b"extern" && tokens.get(1).is_some_and(|one| one.token == Token::Text)
        }
        What::Declaration => {
            DECLARES.contains(&first) && (first == b"using" || declares_a_name(tokens))
        }
    }
}

/// A type and a name, or more: `const int n`, not `const n`.
fn declares_a_name(tokens: &[Placed]) -> bool {
    let until = |one: &&Placed| !matches!(one.token, Token::Other(b'=') | Token::Loose);
    let words = tokens.iter().take_while(until);
    let names = words.filter(|one| match one.token {
        Token::Word(word) => !SPECIFIERS.contains(&word),
        _ => false,
    });
    names.count() > 1
}

/// A type, a name and parameters.
fn is_function(tokens: &[Placed]) -> bool {
    let takes =
        |at: usize| matches!(tokens[at].token, Token::Word(word) if !WITH_ARGUMENT.contains(&word));
    let Some(parameters) =
        (1..tokens.len()).find(|at| tokens[*at].token == Token::Arguments && takes(at - 1))
    else {
        return false;
    };
    let mut name = parameters - 1;
    while name >= 2 && tokens[name - 1].token == Token::Scope {
        name -= 2;
        // Its class has arguments.
        if tokens[name].token == Token::Other(b'>') {
            let Some(open) = angle(&tokens[..=name]) else {
                return false;
            };
            name = open.saturating_sub(1);
        }
    }
    let before = &tokens[..name];
    let count = |byte: u8| {
        let same = before.iter().filter(|one| one.token == Token::Other(byte));
        same.count()
    };
    let odd = |one: &Placed| {
        matches!(one.token, Token::Loose | Token::Text)
            || matches!(one.token, Token::Other(byte) if !b"<>*&,.=-+".contains(&byte))
    };
    // A value is no type: `int x = y * f(…)`.
    let assigns = count(b'=') > 0 && count(b'<') == 0;
    if count(b'<') != count(b'>') || assigns {
        return false;
    }
    let linkage = before
        .first()
        .is_some_and(|one| one.token == Token::Word(b"extern"));
    if before
        .iter()
        .any(|one| odd(one) && !(linkage && one.token == Token::Text))
    {
        return false;
    }
    before.iter().any(|one| match one.token {
        Token::Word(word) => {
            !SPECIFIERS.contains(&word)
                && !WITH_ARGUMENT.contains(&word)
                && !matches!(word, b"typename" | b"template" | b"operator")
        }
        _ => false,
    })
}

/// Where the angle bracket opens that the last of these closes.
fn angle(tokens: &[Placed]) -> Option<usize> {
    let mut open = 0_usize;
    for (at, one) in tokens.iter().enumerate().rev() {
        match one.token {
            Token::Other(b'>') => open += 1,
            Token::Other(b'<') => {
                open -= 1;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether specifiers may be those of what follows them.
fn fits(before: &[Placed], rest: &[Placed], what: What) -> bool {
    let has = |tokens: &[Placed], word: &[u8]| {
        let mut head = tokens
            .iter()
            .take_while(|one| one.token != Token::Arguments);
        head.any(|one| one.token == Token::Word(word))
    };
    let is_function = what == What::Function;
    let linkage = rest[0].token == Token::Word(b"extern")
        && rest.get(1).is_some_and(|one| one.token == Token::Text);
    let crosses = |one: &[u8], other: &[u8]| has(before, one) && has(rest, other);
    !(linkage
        || is_function && has(before, b"typedef")
        || crosses(b"__global__", b"__device__")
        || crosses(b"__device__", b"__global__"))
}

/// Whether a line begins with this, and it is a declaration by itself: what it follows has ended.
pub(super) fn begins_anew(bytes: &[u8], head: Range<usize>, what: What) -> bool {
    let tokens = tokens(bytes, head);
    tokens.first().is_some_and(|one| one.line.is_some()) && is_whole(&tokens, what)
}

/// Whether the last of these goes on with the type that those before it begin: `unsigned`, `long`.
fn is_of_number(tokens: &[Placed]) -> bool {
    let [before @ .., last] = tokens else {
        return false;
    };
    let sized = |one: &Placed| {
        matches!(
            one.token,
            Token::Word(b"unsigned" | b"signed" | b"long" | b"short")
        )
    };
    let number = matches!(last.token, Token::Word(b"int" | b"char" | b"double"));
    before.iter().all(sized) && (number || sized(last))
}

/// Whether these may be before a declaration, as a part of it: template headers, specifiers, attributes.
fn may_precede(tokens: &[Placed]) -> bool {
    let mut at = 0;
    while let Some(one) = tokens.get(at) {
        let next = tokens.get(at + 1).map(|next| next.token);
        at += match one.token {
            Token::Word(b"template") => {
                if next != Some(Token::Other(b'<')) {
                    return false;
                }
                let mut open = 0_usize;
                let end = tokens[at..].iter().position(|one| {
                    match one.token {
                        Token::Other(b'<') => open += 1,
                        Token::Other(b'>') => open = open.saturating_sub(1),
                        _ => return false,
                    }
                    open == 0
                });
                match end {
                    Some(end) => end + 1,
                    None => return false,
                }
            }
            // It goes on as it likes.
            Token::Word(b"requires") => return at > 0 && next.is_some(),
            Token::Word(word)
                if WITH_ARGUMENT.contains(&word) && next == Some(Token::Arguments) =>
            {
                2
            }
            Token::Word(b"extern") if next == Some(Token::Text) => 2,
            Token::Word(word) if SPECIFIERS.contains(&word) => 1,
            Token::Brackets => 1,
            _ => return false,
        };
    }
    true
}

/// Whether the head of what a brace opens gives a value: `auto f = [](int x)`.
pub(super) fn is_value(bytes: &[u8], head: Range<usize>) -> bool {
    let tokens = tokens(bytes, head);
    let mut open = 0_usize;
    tokens.iter().any(|one| {
        match one.token {
            Token::Other(b'<') => open += 1,
            Token::Other(b'>') => open = open.saturating_sub(1),
            _ => {}
        }
        open == 0
            && one.token == Token::Other(b'=')
            && !tokens
                .iter()
                .any(|one| one.token == Token::Word(b"operator"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, what: What, expected: &str) {
        let found = half_typed(head.as_bytes(), 0..head.len(), what);
        let found = found.map_or("", |range| head[range].trim());
        assert_eq!(found, expected, "{head}");
    }

    #[test]
    fn what_is_half_typed_above_a_function_is_told() {
        for half in [
            "template",
            "template <",
            "template <typename T, in",
            "int x =",
            "int x = f(1,",
            "const float PI = 3.14f",
            "double",
            "static const char *s = \"a",
            "foo bar\nbaz",
            "}",
            "class A : public B",
            "int t[",
            "std::vector<int",
            "using namespace",
            "void f(int",
            "extern \"C\"\nfloat",
        ] {
            for whole in [
                "__global__ void k(float *a) ",
                "int main() ",
                "template <typename T, int N = 3>\n__global__ void __launch_bounds__(N) k(T *a)\n",
                "static std::vector<float> A<int>::f(int x) const ",
                "extern \"C\" __global__ void k(float *a)\n",
                "static inline\n__device__ __forceinline__ int2 f(int x)\n",
            ] {
                check(&format!("{half}\n\n{whole}"), What::Function, half);
            }
        }
        for (half, whole) in [
            ("typedef", "__global__ void k(float *a) "),
            ("static", "extern \"C\" __global__ void k(float *a) "),
            ("__global__", "static __device__ float f(float x) "),
            ("__device__", "__global__ void k(float *a) "),
        ] {
            check(&format!("{half}\n\n{whole}"), What::Function, half);
        }
        check("foo\nconst int n = ", What::Declaration, "foo");
        check("int x =\nstruct S", What::Scope, "int x =");
        check("int x =\nusing T = int", What::Declaration, "int x =");
    }

    #[test]
    fn what_may_be_above_a_function_is_its_own() {
        for whole in [
            "template <typename T>\n__global__ void k(T *a) ",
            "template <typename T,\n          int N>\n__global__ void k(T *a) ",
            "template <>\ntemplate <class T>\nvoid A<int>::f(T *a) ",
            "template <class T>\n  requires C<T>\n__global__ void k(T *a) ",
            "extern \"C\"\n__global__ void k(float *a) ",
            "[[nodiscard]] static\nint f(int x) ",
            "__attribute__((noinline))\nint f(int x) ",
            "const\nint f(int x) ",
            "int\nmain(int argc,\n     char **argv)\n",
            "float\n__device__ f(float x)\n",
            "unsigned\nlong\nf(int x) ",
            "typename A<T>::type\nA<T>::f(int x) ",
            "std::map<int,\n         std::string> f(int x) ",
            "bool\noperator==(const S &a, const S &b) ",
            "S::S(int x)\n    : a(x),\n      b(x)\n",
            "auto f(int x)\n    -> std::vector<int> ",
            "#pragma once\n\n#pragma unroll\nvoid f(float *a) ",
            "\n private:\n  int f(int x) const ",
            "// A comment.\n/* And\n another. */\n__global__ void k(float *a) ",
        ] {
            check(whole, What::Function, "");
        }
        for whole in [
            "int a,\n    b = f(1),\n    c",
            "const\nint n = 3",
            "typedef\nstruct A A",
            "template <class T>\nusing V = std::vector<T>",
            "int x =\n    f(1)",
        ] {
            check(whole, What::Declaration, "");
        }
        check("typedef\nstruct A", What::Scope, "");
        check("template <class T>\nstruct A\n    : B<T>", What::Scope, "");
    }

    #[test]
    fn values_are_told_from_functions() {
        let value = |head: &str| is_value(head.as_bytes(), 0..head.len());
        assert!(value("auto f = [](int x) "));
        assert!(!value("template <class T = int> void f(T x) "));
        assert!(!value("S &operator=(const S &x) "));
    }
}
