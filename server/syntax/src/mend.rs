//! Half-typed functions, kept to themselves.
//!
//! A parser that meets `x =` or `for (int i = 0; i < 4)` may take all that follows for a part of it, and then the figures of
//! all functions behind it are gone. Where each function ends can be told from its brackets. A function that does not end
//! there for the parser has the line taken away that is to blame, and one whose brackets stay open is closed before the next
//! one; what is put there is as long as what was there.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use crate::{Fields as _, Language, parser};

/// What stands for a line that was taken away: no statement that anybody understands.
const LOST: &str = "@;";
/// Functions that are mended: somebody types in one of them.
const MOST: usize = 4;
/// Bytes that are parsed to find the line to blame: somebody waits. Beyond them all lines of the function are.
const BYTES: usize = 1 << 15;

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

/// A bracket that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `(` or `[`, and what closes it.
    Group(u8),
    /// `{` of a function or in one.
    Block,
    /// `{` of values.
    Values,
    /// `{` of a namespace, of `extern "C"`, of a type.
    Scope,
}

impl Open {
    fn closing(self) -> u8 {
        match self {
            Open::Group(closing) => closing,
            _ => b'}',
        }
    }
}

/// A function by its brackets.
struct Function {
    /// Behind what stands before it.
    start: usize,
    /// From the opening to behind the closing brace.
    body: Range<usize>,
}

/// The text with each function kept to itself, and its tree; `None` where no function is found that was not.
pub(crate) fn mended(text: &str, tree: &Tree, language: Language) -> Option<(String, Tree)> {
    let (mut text, functions, mut now) = {
        let scan = Scan::of(text);
        match scan.closed(text) {
            Some(closed) => {
                let now = parser::parse(&closed, language, Some((text, tree)));
                (closed, scan.functions, now)
            }
            None => (text.to_owned(), scan.functions, tree.clone()),
        }
    };
    let mut found = bodies(&now);
    let mut tried = 0;
    let mut bytes = BYTES;
    for (at, function) in functions.iter().enumerate() {
        if found.contains(&function.body) {
            continue;
        }
        tried += 1;
        if tried > MOST {
            break;
        }
        if let Some(lost) =
            line_to_blame(&text, function, functions.get(at + 1), language, &mut bytes)
        {
            let mended = without(&text, lost);
            now = parser::parse(&mended, language, Some((&text, &now)));
            text = mended;
            found = bodies(&now);
        }
    }
    (found.len() > bodies(tree).len()).then_some((text, now))
}

/// The bodies of functions at the top level, namespaces and broken code looked through.
fn bodies(tree: &Tree) -> Vec<Range<usize>> {
    fn within(node: Node, depth: u32, found: &mut Vec<Range<usize>>) {
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "function_definition" => {
                    found.extend(child.field("body").map(|body| body.byte_range()));
                }
                "template_declaration"
                | "namespace_definition"
                | "declaration_list"
                | "linkage_specification"
                | "ERROR"
                    if depth < DEEPEST =>
                {
                    within(child, depth + 1, found);
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    within(tree.root_node(), 0, &mut found);
    found
}

/// Namespaces and broken code nest this deep at most.
const DEEPEST: u32 = 64;

/// The line without which the function ends where its brackets do, before the one behind it; else all that it holds.
fn line_to_blame(
    text: &str,
    function: &Function,
    next: Option<&Function>,
    language: Language,
    bytes: &mut usize,
) -> Option<Range<usize>> {
    let end = next.map_or(function.body.end, |next| next.body.end);
    let alone = &text[function.start..end];
    let inner = |body: &Range<usize>| body.start - function.start..body.end - function.start;
    let body = inner(&function.body);
    let wanted: Vec<Range<usize>> = [Some(function), next]
        .into_iter()
        .flatten()
        .map(|function| inner(&function.body))
        .collect();
    let inside = body.start + 1..body.end - 1;
    // Closed right behind its brace: there is nothing in it.
    if inside.len() < LOST.len() {
        return None;
    }
    let broken = parser::parse(alone, language, None);
    let holds = |tree: &Tree| bodies(tree) == wanted;
    let mut lines = Vec::new();
    let mut at = inside.start;
    for line in alone[inside.clone()].split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let trimmed = line.trim();
        // One with a brace is part of how the function is built.
        if trimmed.len() >= LOST.len() && !trimmed.contains(['{', '}']) {
            let start = range.start + (line.len() - line.trim_start().len());
            lines.push(start..start + trimmed.len());
        }
    }
    // What is half-typed seldom has its semicolon: those that end with one are tried last.
    lines.sort_by_key(|line| alone[line.clone()].ends_with(';'));
    let place = |range: Range<usize>| range.start + function.start..range.end + function.start;
    let helps = |range: &Range<usize>| {
        let tried = without(alone, range.clone());
        holds(&parser::parse(&tried, language, Some((alone, &broken))))
    };
    for line in lines {
        let Some(left) = bytes.checked_sub(alone.len()) else {
            break;
        };
        *bytes = left;
        if helps(&line) {
            return Some(place(line));
        }
    }
    helps(&inside).then(|| place(inside))
}

/// The text with [`LOST`] and spaces in place of a part of it.
fn without(text: &str, lost: Range<usize>) -> String {
    let kept = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..lost.start]);
    out.push_str(LOST);
    out.extend(
        text.as_bytes()[lost.start + LOST.len()..lost.end]
            .iter()
            .map(|byte| kept(*byte)),
    );
    out.push_str(&text[lost.end..]);
    out
}

struct Scan<'a> {
    bytes: &'a [u8],
    open: Vec<Open>,
    /// Where the braces stand among what is open.
    braces: Vec<usize>,
    /// Where the outermost block does.
    outermost: Option<usize>,
    /// The last byte that is neither white space nor part of a comment.
    last: u8,
    /// The white space right before the byte looked at.
    space: Range<usize>,
    /// The longest white space since the last byte that is none: where something can be put.
    free: Range<usize>,
    /// Behind the last thing at the top level.
    start: usize,
    /// Where the outermost block that is open begins.
    block: usize,
    functions: Vec<Function>,
    /// What is put at the end of which white space.
    missing: Vec<(Range<usize>, Vec<u8>)>,
}

impl Scan<'_> {
    fn of(text: &str) -> Scan<'_> {
        let mut scan = Scan {
            bytes: text.as_bytes(),
            open: Vec::new(),
            braces: Vec::new(),
            outermost: None,
            last: 0,
            space: 0..0,
            free: 0..0,
            start: 0,
            block: 0,
            functions: Vec::new(),
            missing: Vec::new(),
        };
        scan.run();
        scan
    }

    /// The text with its functions closed; `None` where all are.
    fn closed(&self, text: &str) -> Option<String> {
        if self.missing.is_empty() {
            return None;
        }
        let mut bytes = text.as_bytes().to_vec();
        for (place, what) in &self.missing {
            // Braces first, if there is not place for all.
            let what = &what[what.len().saturating_sub(place.len())..];
            bytes[place.end - what.len()..place.end].copy_from_slice(what);
        }
        String::from_utf8(bytes).ok()
    }

    fn run(&mut self) {
        let mut at = 0;
        let mut line = 0;
        while let Some(&byte) = self.bytes.get(at) {
            let begin = at;
            match byte {
                byte if byte.is_ascii_whitespace() => {
                    at += 1;
                    if byte == b'\n' {
                        line = at;
                    }
                    self.space.end = at;
                    if self.space.len() >= self.free.len() {
                        self.free = self.space.clone();
                    }
                    continue;
                }
                b'/' if self.bytes[at..].starts_with(b"//") => {
                    at = self.find(at, b"\n");
                    // The line break that ends the comment stays.
                    at = (at + 1).min(self.bytes.len());
                    line = at;
                    self.space = at..at;
                    continue;
                }
                b'/' if self.bytes[at..].starts_with(b"/*") => {
                    at = self.find(at + 2, b"*/") + 2;
                    at = at.min(self.bytes.len());
                    self.space = at..at;
                    continue;
                }
                b'"' => at = self.string(at),
                b'\'' if !self.last.is_ascii_digit() => at = self.string(at),
                b'(' => self.push(Open::Group(b')'), &mut at),
                b'[' => self.push(Open::Group(b']'), &mut at),
                b'{' => {
                    let kind = self.brace(begin);
                    if kind == Open::Block && !self.inside() {
                        self.block = at;
                    }
                    self.push(kind, &mut at);
                    if kind == Open::Scope {
                        self.start = at;
                    }
                }
                b';' => {
                    at += 1;
                    if !self.inside() {
                        self.start = at;
                    }
                }
                b')' | b']' => {
                    if self.open.last().is_some_and(|open| open.closing() == byte) {
                        self.open.pop();
                    }
                    at += 1;
                }
                b'}' => {
                    at += 1;
                    self.close(at);
                }
                byte if is_word(byte) => {
                    at = self.word_end(at);
                    if begin == line {
                        self.line_begins(begin..at);
                    }
                }
                _ => at += 1,
            }
            self.last = self.bytes[at.min(self.bytes.len()) - 1];
            self.space = at..at;
            self.free = at..at;
        }
    }

    fn push(&mut self, open: Open, at: &mut usize) {
        if open == Open::Block && self.outermost.is_none() {
            self.outermost = Some(self.open.len());
        }
        if !matches!(open, Open::Group(_)) {
            self.braces.push(self.open.len());
        }
        self.open.push(open);
        *at += 1;
    }

    fn inside(&self) -> bool {
        self.outermost.is_some()
    }

    /// What a brace opens.
    fn brace(&self, at: usize) -> Open {
        let inside = self.inside();
        let before = self.bytes[..at].trim_ascii_end();
        let word = before.iter().rev().take_while(|byte| is_word(**byte));
        let word = &before[before.len() - word.count()..];
        match self.last {
            b')' => Open::Block,
            // `const`, `noexcept` and blanked words stand behind a function's parentheses, too.
            _ if matches!(
                word,
                b"else" | b"do" | b"try" | b"const" | b"noexcept" | b"mutable"
            ) =>
            {
                Open::Block
            }
            b'{' | b'}' | b';' | b':' if inside => Open::Block,
            _ if inside => Open::Values,
            b'=' | b',' | b'(' => Open::Values,
            _ => Open::Scope,
        }
    }

    /// At a closing brace, which ends at `end`: with what it opened with, all groups in that are closed.
    fn close(&mut self, end: usize) {
        let Some(closed) = self.braces.pop() else {
            return;
        };
        let kind = self.open[closed];
        self.open.truncate(closed);
        self.outermost = self.outermost.filter(|outermost| *outermost < closed);
        if !self.inside() {
            if kind == Open::Block {
                self.functions.push(Function {
                    start: self.start,
                    body: self.block..end,
                });
            }
            if kind != Open::Values {
                self.start = end;
            }
        }
    }

    /// At a word that begins a line: if it begins something at the top level, functions end before it.
    fn line_begins(&mut self, word: Range<usize>) {
        let Some(outermost) = self.outermost else {
            return;
        };
        let begins = BEGINS
            .iter()
            .any(|begin| begin.as_bytes() == &self.bytes[word.clone()]);
        if begins {
            let mut what: Vec<u8> = Vec::new();
            for open in self.open.drain(outermost..).rev() {
                if open == Open::Block && what.last().is_none_or(|last| *last != b'}') {
                    what.push(b';');
                }
                what.push(open.closing());
            }
            self.outermost = None;
            while self.braces.last().is_some_and(|brace| *brace >= outermost) {
                self.braces.pop();
            }
            let end = self.free.end;
            self.functions.push(Function {
                start: self.start,
                body: self.block..end,
            });
            self.start = end;
            self.missing.push((self.free.clone(), what));
        }
    }

    /// The end of a string or character literal; that of its line where it is not closed.
    fn string(&self, start: usize) -> usize {
        let quote = self.bytes[start];
        let mut at = start + 1;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'\n' => return at,
                byte if byte == quote => return at + 1,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }

    fn find(&self, from: usize, what: &[u8]) -> usize {
        let from = from.min(self.bytes.len());
        memchr::memmem::find(&self.bytes[from..], what).map_or(self.bytes.len(), |at| from + at)
    }

    fn word_end(&self, start: usize) -> usize {
        let length = self.bytes[start..]
            .iter()
            .take_while(|byte| is_word(**byte));
        start + length.count()
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: &str = "// The next.\n__global__ void k(float *a) {\n  a[0] = 1;\n}\n";

    fn mended_text(text: &str) -> Option<String> {
        let tree = parser::parse(text, Language::Cuda, None);
        mended(text, &tree, Language::Cuda).map(|(text, _)| text)
    }

    /// The function, and one behind it, are found; `expected` is what became of it.
    #[track_caller]
    fn check(function: &str, expected: &str) {
        let text = format!("{function}{NEXT}");
        let tree = parser::parse(&text, Language::Cuda, None);
        assert!(bodies(&tree).len() < 2, "the parser keeps it apart itself");
        let (mended, tree) = mended(&text, &tree, Language::Cuda).expect("mended");
        assert_eq!(bodies(&tree).len(), 2, "{mended}");
        assert_eq!(mended, format!("{expected}{NEXT}"));
    }

    #[test]
    fn a_line_that_takes_the_rest_with_it_is_taken_away() {
        check(
            "void f(int x) {\n  int y = x;\n  out[x + y - 1] =\n}\n",
            "void f(int x) {\n  int y = x;\n  @;              \n}\n",
        );
        check(
            "void f(int *p) {\n  for (int i = 0; i < 4)\n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n  }\n}\n",
            "void f(int *p) {\n  @;                    \n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n  }\n}\n",
        );
    }

    #[test]
    fn a_function_without_an_end_ends_before_the_next() {
        check(
            "void f(int *p) {\n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n\n\n\n",
            "void f(int *p) {\n  for (int j = 0; j < 4; ++j) {\n    p[j] = 0;\n;}}",
        );
    }

    #[test]
    fn functions_are_told_by_their_brackets() {
        let bodies = |text: &str| -> Vec<String> {
            let scan = Scan::of(text);
            assert!(scan.missing.is_empty(), "{text}");
            scan.functions
                .iter()
                .map(|one| text[one.start..one.body.end].trim().to_owned())
                .collect()
        };
        assert_eq!(
            bodies(
                "struct S { int a; };\nint t[2] = {\n {1}, {3}\n};\nvoid f() { g({1, 2}); int a[] = {1}; }\n"
            ),
            ["void f() { g({1, 2}); int a[] = {1}; }"]
        );
        assert_eq!(
            bodies(
                "extern \"C\" {\n__global__ void k() { do { x(); } while (1); char c = '}'; /* { */ // {\n}\n}\n"
            ),
            ["__global__ void k() { do { x(); } while (1); char c = '}'; /* { */ // {\n}"]
        );
        assert_eq!(
            bodies(
                "enum E {\n A,\n B\n};\nnamespace {\nstatic int f() const { auto l = [=] { return 1'000; }; }\n}\n"
            ),
            ["static int f() const { auto l = [=] { return 1'000; }; }"]
        );
        assert_eq!(
            bodies("void f() {\n  g(a, \n}\nint b;\n"),
            ["void f() {\n  g(a, \n}"]
        );
    }

    #[test]
    fn brackets_without_end_take_no_longer_than_others() {
        for piece in ["{", "(", "(}", "{;", "f(){", "f(){\n"] {
            let text = piece.repeat(300_000);
            let started = std::time::Instant::now();
            Scan::of(&text);
            assert!(started.elapsed().as_secs() < 2, "{piece}");
        }
        let text = format!("{}{}", "(".repeat(300_000), "}".repeat(300_000));
        let started = std::time::Instant::now();
        Scan::of(&text);
        assert!(started.elapsed().as_secs() < 2);
    }

    #[test]
    fn junk_is_survived() {
        for text in [
            "",
            "}",
            "{",
            "f() {\"",
            "f() {'",
            "/*",
            "//",
            "f(){x/*",
            "f(){x}",
            "é(){é}",
            "\\",
            "f(){\"\\",
            "f(){",
            "void f() {//",
            "void f() {//x\nx =",
        ] {
            for before in ["", "void f() {\n", "int x = {(\n"] {
                let text = format!("{before}{text}\n{NEXT}");
                if let Some(mended) = mended_text(&text) {
                    assert_eq!(mended.len(), text.len());
                }
            }
        }
    }
}
