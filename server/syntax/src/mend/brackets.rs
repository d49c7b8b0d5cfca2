//! Functions told by their brackets, whatever a parser makes of what is in them.

use std::borrow::Cow;
use std::ops::Range;

use super::heads::{self, What};
use crate::{lexer, parser};

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

/// A brace that is open.
#[derive(Clone, Copy)]
struct Brace {
    /// Its number among what is open.
    index: usize,
    /// Where what it opens begins.
    start: usize,
    /// Behind it.
    end: usize,
}

/// What of a text is half-typed at the top level.
#[derive(Default, Clone, Copy)]
struct Strict {
    /// Brackets and values that are open where something at the top level begins.
    groups: bool,
    /// Types, too.
    scopes: bool,
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
#[derive(Debug)]
pub(super) struct Function {
    /// Behind what is before it.
    pub(super) start: usize,
    /// From the opening to behind the closing brace.
    pub(super) body: Range<usize>,
    /// What its brackets lack, and at the end of which white space it is to be put.
    pub(super) missing: Option<(Range<usize>, Vec<u8>)>,
}

/// The bodies of the functions that end by themselves in an earlier text.
#[derive(Debug)]
pub(super) struct Bodies<'a> {
    pub(super) text: &'a str,
    /// In order.
    pub(super) ranges: Cow<'a, [Range<usize>]>,
}

/// The functions of a text, in their order. One whose brackets stay open ends before what begins something at the top level.
/// Bodies that are what they were in an earlier text are not gone through.
pub(super) fn functions(text: &str, earlier: Option<&Bodies>) -> Vec<Function> {
    scanned(text, earlier, Strict::default()).functions
}

/// What is half-typed between the functions of a text.
#[derive(Debug, Default)]
pub(super) struct HalfTyped {
    /// Parts in their order, without which the rest is kept apart.
    pub(super) lost: Vec<Range<usize>>,
    /// Types end before these places without a semicolon; there is white space.
    pub(super) ended: Vec<usize>,
}

/// The functions of a text, and what is half-typed between them.
pub(super) fn functions_and_half_typed(
    text: &str,
    earlier: Option<&Bodies>,
) -> (Vec<Function>, HalfTyped) {
    let lenient = scanned(text, earlier, Strict::default());
    if !lenient.loose && lenient.open.is_empty() {
        return (lenient.functions, lenient.half);
    }
    // Brackets that are closed in the end may hold what begins a line.
    let strict = Strict {
        groups: true,
        scopes: lenient
            .braces
            .iter()
            .any(|brace| lenient.open[brace.index] == Open::Scope),
    };
    let mut strict = scanned(text, earlier, strict);
    let open = std::mem::take(&mut strict.open);
    for brace in std::mem::take(&mut strict.braces) {
        if open[brace.index] == Open::Scope {
            strict.lose(brace.start..brace.end);
        }
    }
    strict.half.lost.sort_unstable_by_key(|range| range.start);
    (strict.functions, strict.half)
}

fn scanned<'a>(text: &'a str, earlier: Option<&'a Bodies<'a>>, strict: Strict) -> Scan<'a> {
    let (prefix, suffix) = earlier.map_or((0, 0), |earlier| {
        parser::common_ends(earlier.text.as_bytes(), text.as_bytes())
    });
    let mut scan = Scan {
        bytes: text.as_bytes(),
        earlier,
        prefix,
        suffix,
        strict,
        open: Vec::new(),
        braces: Vec::new(),
        outermost: None,
        comment: Comment::default(),
        start: 0,
        block: 0,
        functions: Vec::new(),
        half: HalfTyped::default(),
        typed: None,
        loose: false,
    };
    scan.run();
    scan
}

/// Bytes that say something about where functions end. The text is gone through at each keystroke.
const TELLING: [bool; 256] = {
    let mut telling = [false; 256];
    let bytes = b"(){}[];\"'/\n";
    let mut at = 0;
    while at < bytes.len() {
        telling[bytes[at] as usize] = true;
        at += 1;
    }
    telling
};

/// Bytes of values in braces that are looked for within parentheses at the top level.
const LONGEST_VALUE: usize = 200;

struct Scan<'a> {
    bytes: &'a [u8],
    earlier: Option<&'a Bodies<'a>>,
    /// This many bytes at the beginning and at the end are those of the earlier text.
    prefix: usize,
    suffix: usize,
    strict: Strict,
    open: Vec<Open>,
    braces: Vec<Brace>,
    /// Where the outermost block does.
    outermost: Option<usize>,
    comment: Comment,
    /// Behind the last thing at the top level.
    start: usize,
    /// Where the outermost block that is open begins.
    block: usize,
    functions: Vec<Function>,
    /// What is half-typed at the top level.
    half: HalfTyped,
    /// Behind the last type.
    typed: Option<usize>,
    /// A bracket lacks the other one.
    loose: bool,
}

/// The last comment.
#[derive(Default)]
struct Comment {
    end: usize,
    /// What is told of the place where it begins.
    before: Before,
}

/// What is before a place.
#[derive(Default, Clone)]
struct Before {
    /// The last byte that is neither white space nor part of a comment.
    last: u8,
    /// The longest white space since then: where something can be put.
    free: Range<usize>,
}

impl Scan<'_> {
    fn run(&mut self) {
        let mut at = 0;
        while let Some(next) = self.next(at) {
            at = next;
            match self.bytes[at] {
                b'\n' => {
                    at += 1;
                    self.line_begins(at);
                }
                b'/' => match lexer::comment_end(self.bytes, at) {
                    Some(end) => at = self.skip_comment(at, end),
                    None => at += 1,
                },
                b'"' => at = lexer::quoted_end(self.bytes, at),
                // In a number it parts digits.
                b'\'' if self.word_before(at).first().is_some_and(u8::is_ascii_digit) => at += 1,
                b'\'' => at = lexer::quoted_end(self.bytes, at),
                b'(' => self.push(Open::Group(b')'), &mut at),
                b'[' => self.push(Open::Group(b']'), &mut at),
                b'{' => {
                    let kind = self.brace(at);
                    if kind == Open::Block && !self.inside() {
                        if let Some(end) = self.known_end(at) {
                            self.function_ends(at..end);
                            at = end;
                            continue;
                        }
                        self.block = at;
                    }
                    if kind == Open::Scope {
                        self.told(at, What::Scope);
                    }
                    self.push(kind, &mut at);
                    if kind == Open::Scope {
                        self.start = at;
                    }
                }
                b';' => {
                    at += 1;
                    if !self.inside() {
                        self.told(at - 1, What::Declaration);
                        self.start = at;
                    }
                }
                b'}' => {
                    at += 1;
                    self.close(at);
                }
                closing => {
                    if self
                        .open
                        .last()
                        .is_some_and(|open| open.closing() == closing)
                    {
                        self.open.pop();
                    } else {
                        self.loose |= !self.inside();
                    }
                    at += 1;
                }
            }
        }
    }

    /// Where the body that begins here ended in the earlier text, if it is the same.
    fn known_end(&self, at: usize) -> Option<usize> {
        let earlier = self.earlier?;
        let body = |start: usize| {
            let found = earlier
                .ranges
                .binary_search_by_key(&start, |body| body.start);
            found.ok().map(|found| &earlier.ranges[found])
        };
        let behind = self.bytes.len() - at;
        if behind <= self.suffix {
            let body = body(earlier.text.len() - behind)?;
            return Some(at + body.len());
        }
        let body = body(at)?;
        (body.end <= self.prefix).then_some(body.end)
    }

    fn next(&self, at: usize) -> Option<usize> {
        let rest = self.bytes.get(at..)?;
        let next = rest.iter().position(|byte| TELLING[usize::from(*byte)])?;
        Some(at + next)
    }

    fn before(&self, at: usize) -> Before {
        let spaces = self.bytes[self.comment.end..at].iter().rev();
        let spaces = spaces.take_while(|byte| byte.is_ascii_whitespace()).count();
        let space = at - spaces..at;
        if space.start > self.comment.end {
            return Before {
                last: self.bytes[space.start - 1],
                free: space,
            };
        }
        let mut before = self.comment.before.clone();
        if space.len() >= before.free.len() {
            before.free = space;
        }
        before
    }

    /// Behind a comment, and behind the line break that ends one of a line: it belongs to it.
    fn skip_comment(&mut self, start: usize, end: usize) -> usize {
        let is_line = self.bytes[start + 1] == b'/';
        let end = if is_line { end + 1 } else { end }.min(self.bytes.len());
        let before = self.before(start);
        self.comment = Comment { end, before };
        // That line break begins a line as others do.
        if is_line {
            self.line_begins(end);
        }
        end
    }

    fn push(&mut self, open: Open, at: &mut usize) {
        if open == Open::Block && self.outermost.is_none() {
            self.outermost = Some(self.open.len());
        }
        if !matches!(open, Open::Group(_)) {
            self.braces.push(Brace {
                index: self.open.len(),
                start: self.start,
                end: *at + 1,
            });
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
        let word = self.word_before(before.len());
        match self.before(at).last {
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
            // `__launch_bounds__(size(Layout{}))`
            _ if matches!(self.open.last(), Some(Open::Group(_))) && self.closes_in_line(at) => {
                Open::Values
            }
            _ => Open::Scope,
        }
    }

    /// True where the brace that opens here closes soon, before its line ends.
    fn closes_in_line(&self, at: usize) -> bool {
        let near = self.bytes[at..].iter().take(LONGEST_VALUE);
        let line = near.take_while(|byte| **byte != b'\n');
        let mut open = 0_usize;
        for byte in line {
            match byte {
                b'{' => open += 1,
                b'}' if open == 1 => return true,
                b'}' => open -= 1,
                _ => {}
            }
        }
        false
    }

    /// At a closing brace, which ends at `end`: with what it opened with, all groups in that are closed.
    fn close(&mut self, end: usize) {
        let Some(opening) = self.braces.pop() else {
            self.loose = true;
            return;
        };
        let closed = opening.index;
        let kind = self.open[closed];
        self.loose |= !self.inside() && closed + 1 < self.open.len();
        self.open.truncate(closed);
        self.outermost = self.outermost.filter(|outermost| *outermost < closed);
        if !self.inside() {
            if kind == Open::Block {
                self.function_ends(self.block..end);
            } else if kind != Open::Values {
                let is_type = names_a_type(&self.bytes[opening.start..opening.end]);
                self.typed = is_type.then_some(end);
                self.start = end;
            }
        }
    }

    fn function_ends(&mut self, body: Range<usize>) {
        let end = body.end;
        self.told(body.start, What::Function);
        self.functions.push(Function {
            start: self.start,
            body,
            missing: None,
        });
        self.start = end;
    }

    /// Something at the top level is told by what is at `end`: what is half-typed before it is lost.
    fn told(&mut self, end: usize, what: What) {
        if self.typed == Some(self.start)
            && self.bytes[self.start].is_ascii_whitespace()
            && heads::begins_anew(self.bytes, self.start..end, what)
        {
            self.half.ended.push(self.start);
        } else if let Some(lost) = heads::half_typed(self.bytes, self.start..end, what) {
            self.start = lost.end;
            self.half.lost.push(lost);
        }
    }

    /// This part is half-typed, with all that is in it.
    fn lose(&mut self, part: Range<usize>) {
        let inside = |range: &Range<usize>| part.start <= range.start && range.end <= part.end;
        self.functions
            .retain(|one| !inside(&(one.start..one.body.end)));
        self.half.lost.retain(|one| !inside(one));
        self.half.ended.retain(|at| !part.contains(at));
        self.half.lost.push(part);
    }

    /// At the beginning of a line outside of blocks: if something at the top level begins there, what is open is half-typed.
    fn top_level_begins(&mut self, at: usize) {
        let groups = self.open.iter().rev();
        let groups = groups.take_while(|open| **open != Open::Scope).count();
        let mut kept = self.open.len() - groups;
        let mut start = self.start;
        if self.strict.scopes
            && let Some(scope) = self.braces.iter().rfind(|brace| brace.index + 1 == kept)
            && is_type(&self.bytes[scope.start..scope.end])
        {
            kept -= 1;
            start = scope.start;
        }
        if kept == self.open.len() {
            return;
        }
        // Values may begin before what is open now.
        let outer = self.braces.iter().find(|brace| brace.index >= kept);
        start = outer.map_or(start, |brace| brace.start.min(start));
        self.open.truncate(kept);
        self.braces.retain(|brace| brace.index < kept);
        self.lose(start..at);
        self.start = at;
    }

    /// At the beginning of a line: if something at the top level begins there, functions end before it.
    fn line_begins(&mut self, at: usize) {
        if self.open.is_empty() || !self.inside() && !self.strict.groups {
            return;
        }
        if lexer::begins_top_level(self.bytes, at) {
            let Some(outermost) = self.outermost else {
                self.top_level_begins(at);
                return;
            };
            self.loose = true;
            let mut what: Vec<u8> = Vec::new();
            for open in self.open.drain(outermost..).rev() {
                if open == Open::Block && what.last().is_none_or(|last| *last != b'}') {
                    what.push(b';');
                }
                what.push(open.closing());
            }
            self.outermost = None;
            self.braces.retain(|brace| brace.index < outermost);
            if heads::is_value(self.bytes, self.start..self.block) {
                self.lose(self.start..at);
                self.start = at;
                self.top_level_begins(at);
                return;
            }
            self.told(self.block, What::Function);
            let free = self.before(at).free;
            let end = free.end;
            self.functions.push(Function {
                start: self.start,
                body: self.block..end,
                missing: Some((free, what)),
            });
            self.start = end;
            if self.strict.groups {
                self.top_level_begins(at);
            }
        }
    }

    /// The word that ends at a place.
    fn word_before(&self, at: usize) -> &[u8] {
        let length = self.bytes[..at].iter().rev();
        let length = length
            .take_while(|byte| lexer::continues_identifier(**byte))
            .count();
        &self.bytes[at - length..at]
    }
}

/// Whether a brace, with what is before it, opens a type, which a semicolon ends.
fn names_a_type(head: &[u8]) -> bool {
    let mut words = head.split(|byte| !lexer::continues_identifier(*byte));
    words.any(|word| matches!(word, b"struct" | b"class" | b"union" | b"enum"))
}

/// Whether a brace, with what is before it, opens a type or nothing that is known; no namespace and no `extern "C"`.
fn is_type(head: &[u8]) -> bool {
    let words = head.split(|byte| !lexer::continues_identifier(*byte));
    !words
        .into_iter()
        .any(|word| matches!(word, b"namespace" | b"extern"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_by_their_brackets() {
        let bodies = |text: &str| -> Vec<String> {
            let functions = functions(text, None);
            assert!(functions.iter().all(|one| one.missing.is_none()), "{text}");
            functions
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
                "template <class L>\n__global__ static\n__launch_bounds__(decltype(size(L{}))::value)\nvoid\nk(L l)\n{ x(); }\n"
            ),
            [
                "template <class L>\n__global__ static\n__launch_bounds__(decltype(size(L{}))::value)\nvoid\nk(L l)\n{ x(); }"
            ]
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
            bodies("void f() {\n  g(R\"X(\n__kernel { )\" )X\");\n}\nvoid g() {}\n"),
            [
                "void f() {\n  g(R\"X(\n__kernel { )\" )X\");\n}",
                "void g() {}"
            ]
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
            functions(&text, None);
            assert!(started.elapsed().as_secs() < 2, "{piece}");
        }
        let text = format!("{}{}", "(".repeat(300_000), "}".repeat(300_000));
        let started = std::time::Instant::now();
        functions(&text, None);
        assert!(started.elapsed().as_secs() < 2);
    }

    #[test]
    fn bodies_that_are_known_change_nothing() {
        const PIECES: [&str; 16] = [
            "void f(int a) {",
            "\n}\n",
            "}",
            "{",
            "(",
            ")",
            ";",
            " // {\n",
            "/* } */",
            "\"}\"",
            "'{'",
            "\n__global__ void k() {\n  x();\n}\n",
            "namespace n {\n",
            "R\"(}\n)\"",
            " x = 1;",
            "\nstatic int g() const { return 1'000; }\n",
        ];
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for _ in 0..300 {
            let mut text: String = (0..30).map(|_| PIECES[random(PIECES.len())]).collect();
            for _ in 0..10 {
                let whole = functions(&text, None);
                let sound = whole.into_iter().filter(|one| one.missing.is_none());
                let earlier = text.clone();
                let earlier = Bodies {
                    text: &earlier,
                    ranges: sound.map(|one| one.body).collect(),
                };
                let start = random(text.len());
                let end = text.len().min(start + random(4));
                text.replace_range(start..end, PIECES[random(PIECES.len())]);
                let all = |functions: Vec<Function>| format!("{functions:?}");
                assert_eq!(
                    all(functions(&text, Some(&earlier))),
                    all(functions(&text, None)),
                    "{:?} then {text:?}",
                    earlier.text
                );
            }
        }
    }
}
