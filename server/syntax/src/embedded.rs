//! OpenCL C programs inside the string literals of C, C++ and CUDA host code.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::lexer;

/// An OpenCL C program written as one group of string literals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedProgram {
    /// The program: what the compiler hands to `clCreateProgramWithSource`.
    pub text: String,
    /// Where each part of `text` comes from, in order. The pieces cover `text` without gap or overlap.
    pub pieces: Vec<Piece>,
    /// Bytes of the host, from the first literal's prefix or quote to the last one's end.
    pub range: Range<usize>,
}

/// A run of bytes of an embedded program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte in [`EmbeddedProgram::text`].
    pub at: usize,
    /// First byte in the host: of the copied run, of the escape, or of the macro.
    pub source: usize,
    /// Bytes in [`EmbeddedProgram::text`].
    pub len: usize,
    /// True where the host has the same bytes; false for a decoded escape (one character) and for the
    /// space in place of a macro.
    pub verbatim: bool,
}

/// Every OpenCL C program in the literals of a host file, in order.
///
/// A group is what the compiler makes one string of: adjacent literals of every kind (`"…"`, `u8"…"`,
/// `R"(…)"`) with comments, line breaks and directives other than `#define` between them, and arguments of
/// macros that turn their argument into a string (`#define QUOTE(...) #__VA_ARGS__`). Another macro between
/// two literals leaves a space; of an `#if` inside a group the first branch is kept. A group is a program
/// when it defines a kernel: `__kernel` or `kernel`, `void`, and then `(` and `{`. Text that is put together
/// when the host runs (`+`, `<<`, an array of lines) is not.
pub fn embedded_programs(host: &str) -> Vec<EmbeddedProgram> {
    // Most host files end here.
    if !says_kernel(host.as_bytes()) {
        return Vec::new();
    }
    let mut scanner = Scanner {
        host,
        bytes: host.as_bytes(),
        at: if host.starts_with('\u{feff}') { 3 } else { 0 },
        line_start: true,
        in_directive: false,
        stringifiers: FxHashMap::default(),
        group: Group::default(),
        found: Vec::new(),
    };
    scanner.run();
    scanner.found
}

/// True where the word `kernel` or `__kernel` is somewhere, be it behind an escape: `"\\nkernel void"`.
fn says_kernel(text: &[u8]) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    memchr::memmem::find_iter(text, "kernel").any(|at| {
        let ends = text.get(at + 6).is_none_or(|next| !is_word(*next));
        let begins = match text[..at] {
            [.., b'\\', _] | [.., b'_', b'_'] => true,
            [.., before] => !is_word(before),
            [] => true,
        };
        ends && begins
    })
}

/// One part of a group. Ranges are the content, without quotes and parentheses.
enum Part {
    /// Escapes and line splices count.
    Ordinary(Range<usize>),
    /// Nothing counts.
    Raw(Range<usize>),
    /// What a macro makes a string of: line splices count.
    Stringified(Range<usize>),
    /// A macro that we do not expand, at this byte.
    Unknown(usize),
}

/// The literals read so far that belong together.
#[derive(Default)]
struct Group {
    parts: Vec<Part>,
    /// Host bytes of `parts`, without `pending`.
    range: Range<usize>,
    /// Macros after the last literal: they belong to the group only if another literal follows.
    pending: Vec<usize>,
    /// Open parentheses of the last pending macro's arguments.
    parentheses: usize,
    /// One for each `#if` opened inside the group: true in the branches that are left out.
    conditions: Vec<bool>,
    /// How many of `conditions` are true.
    left_out: usize,
}

/// A macro that makes a string of its only argument.
#[derive(Clone, Copy)]
enum Stringifier<'a> {
    /// `#define QUOTE(x) #x`
    Direct,
    /// `#define QUOTE(x) OTHER(x)`, where `OTHER` may be defined later.
    Through(&'a str),
}

/// How many macros may stand between a name and the `#` that makes the string.
const LONGEST_CHAIN: usize = 8;

/// A lexer of host code that looks at every byte a bounded number of times.
struct Scanner<'a> {
    host: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// True where only white space and comments precede in the line.
    line_start: bool,
    /// True in the body of a `#define`.
    in_directive: bool,
    stringifiers: FxHashMap<&'a str, Stringifier<'a>>,
    group: Group,
    found: Vec<EmbeddedProgram>,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        loop {
            self.skip();
            let Some(&byte) = self.bytes.get(self.at) else {
                break;
            };
            if byte == b'\n' {
                self.at += 1;
                self.line_start = true;
                if self.in_directive {
                    self.in_directive = false;
                    self.close();
                }
                continue;
            }
            let after = self.after_blank(self.at);
            if after > self.at {
                self.at = after;
                continue;
            }
            let line_start = std::mem::replace(&mut self.line_start, false);
            match byte {
                b'#' if line_start && !self.in_directive => self.directive(),
                b'#' if self.in_directive => self.parameter(),
                b'"' => self.literal(self.at, self.at, false),
                b'\'' => {
                    self.at = lexer::ordinary(self.bytes, self.at).1;
                    self.other();
                }
                b'0'..=b'9' => {
                    self.at = lexer::number_end(self.bytes, self.at);
                    self.other();
                }
                _ if lexer::continues_identifier(byte) => self.word(),
                _ => {
                    self.at += 1;
                    self.punctuation(byte);
                }
            }
        }
        self.close();
    }

    /// Passes over what means nothing as long as no literal was read: most of every file, so that this is the scanner's
    /// speed. Stops before any byte that may begin something, and before a word that a quote follows.
    fn skip(&mut self) {
        let group = &self.group;
        let open = !group.parts.is_empty() || !group.pending.is_empty() || group.parentheses > 0;
        if open || !self.stringifiers.is_empty() || self.in_directive {
            return;
        }
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.line_start = true;
                    self.at += 1;
                }
                b' ' | b'\t' => self.at += 1,
                b'0'..=b'9' | b'"' | b'\'' | b'#' | b'/' | b'\\' => return,
                _ if lexer::continues_identifier(byte) => {
                    let end = lexer::identifier_end(self.bytes, self.at);
                    if self.bytes.get(end) == Some(&b'"') {
                        return;
                    }
                    self.line_start = false;
                    self.at = end;
                }
                0x0b | 0x0c | b'\r' => self.at += 1,
                _ => {
                    self.line_start = false;
                    self.at += 1;
                }
            }
        }
    }

    /// An identifier, with the literal or the arguments that it introduces.
    fn word(&mut self) {
        let start = self.at;
        let end = lexer::identifier_end(self.bytes, start);
        let word = &self.host[start..end];
        if self.bytes.get(end) == Some(&b'"') && lexer::is_literal_prefix(word.as_bytes(), true) {
            self.literal(start, end, word.ends_with('R'));
            return;
        }
        self.at = end;
        if self.stringifies(word) {
            let open = self.after_blanks(end);
            if self.bytes.get(open) == Some(&b'(') {
                let (content, after) = self.argument(open);
                self.at = after;
                self.part(start..after, Part::Stringified(content));
                return;
            }
        }
        if self.group.parentheses == 0 && !self.group.parts.is_empty() {
            self.group.pending.push(start);
        }
    }

    /// A literal whose prefix starts at `start` and whose quote is at `quote`.
    fn literal(&mut self, start: usize, quote: usize, raw: bool) {
        let raw = if raw {
            lexer::raw_string(self.bytes, quote)
        } else {
            None
        };
        let (part, after) = match raw {
            Some((content, after)) => (Part::Raw(content), after),
            None => {
                let (content, after) = lexer::ordinary(self.bytes, quote);
                (Part::Ordinary(content), after)
            }
        };
        self.at = after;
        self.part(start..after, part);
    }

    /// `#name` in the body of a macro: the text will be the argument, its name is in its place.
    fn parameter(&mut self) {
        let start = self.at;
        let name = self.after_spaces(start + 1);
        let end = lexer::identifier_end(self.bytes, name);
        if end == name {
            // `##`, or nothing that we know.
            self.at = start + 1 + usize::from(self.bytes.get(start + 1) == Some(&b'#'));
            self.other();
            return;
        }
        self.at = end;
        self.part(start..end, Part::Stringified(name..end));
    }

    fn punctuation(&mut self, byte: u8) {
        let open = self.group.parentheses;
        match byte {
            b'(' if open > 0 || !self.group.pending.is_empty() => self.group.parentheses += 1,
            b')' if open > 0 => self.group.parentheses -= 1,
            b';' | b'{' | b'}' => self.close(),
            _ => self.other(),
        }
    }

    /// A token that may stand among a macro's arguments and nowhere else between two literals.
    fn other(&mut self) {
        if self.group.parentheses == 0 {
            self.close();
        }
    }

    fn part(&mut self, whole: Range<usize>, part: Part) {
        if self.group.parentheses > 0 {
            // An argument, not a neighbour.
            self.close();
        }
        let group = &mut self.group;
        if group.left_out > 0 {
            group.pending.clear();
            return;
        }
        if group.parts.is_empty() {
            group.range = whole;
        } else {
            group.range.end = whole.end;
        }
        group
            .parts
            .extend(group.pending.drain(..).map(Part::Unknown));
        group.parts.push(part);
    }

    /// Ends the group and keeps it if it is a program.
    fn close(&mut self) {
        if self.group.parts.is_empty() {
            return;
        }
        let group = std::mem::take(&mut self.group);
        if !self.host[group.range.clone()].contains("kernel") {
            return;
        }
        let program = Decoder::new(self.host).decode(group);
        if defines_kernel(&program.text) {
            self.found.push(program);
        }
    }

    /// The line that starts with the `#` at `self.at`; of a `#define` only the head, so that the literals of
    /// its body are read like all others.
    fn directive(&mut self) {
        let name = self.after_spaces(self.at + 1);
        self.at = lexer::identifier_end(self.bytes, name);
        match &self.host[name..self.at] {
            "define" => {
                self.close();
                self.in_directive = true;
                self.definition();
                return;
            }
            "if" | "ifdef" | "ifndef" if !self.group.parts.is_empty() => {
                self.group.conditions.push(false);
            }
            "else" | "elif" | "elifdef" | "elifndef" => match self.group.conditions.last_mut() {
                Some(left_out) => {
                    self.group.left_out += usize::from(!*left_out);
                    *left_out = true;
                }
                None => self.close(),
            },
            "endif" => {
                let left_out = self.group.conditions.pop().unwrap_or(false);
                self.group.left_out -= usize::from(left_out);
            }
            _ => {}
        }
        self.at = self.end_of_directive(self.at);
    }

    /// The name and the parameters of a macro. Remembers it if it makes a string of its argument.
    fn definition(&mut self) {
        let start = self.after_spaces(self.at);
        let name_end = lexer::identifier_end(self.bytes, start);
        self.at = name_end;
        let Some((parameter, body)) = self.only_parameter(name_end) else {
            return;
        };
        self.at = body;
        if let Some(stringifier) = self.stringifier(parameter, body) {
            self.stringifiers
                .insert(&self.host[start..name_end], stringifier);
        }
    }

    /// The parameter of a macro that has one, `...` included, and the first byte after the parentheses.
    fn only_parameter(&self, open: usize) -> Option<(&'a str, usize)> {
        let start = self.after_spaces(self.after_text("(", open)?);
        let end = lexer::identifier_end(self.bytes, start);
        let mut at = self.after_spaces(end);
        let mut name = &self.host[start..end];
        if let Some(after) = self.after_text("...", at) {
            at = self.after_spaces(after);
            if name.is_empty() {
                name = "__VA_ARGS__";
            }
        }
        let after = self.after_text(")", at)?;
        (!name.is_empty()).then_some((name, after))
    }

    /// What a macro's body makes of its parameter, if it is nothing but a string of it.
    fn stringifier(&self, parameter: &str, body: usize) -> Option<Stringifier<'a>> {
        let body = self.after_spaces(body);
        let (stringifier, end) = if let Some(after) = self.after_text("#", body) {
            let start = self.after_spaces(after);
            let end = lexer::identifier_end(self.bytes, start);
            (&self.host[start..end] == parameter).then_some((Stringifier::Direct, end))?
        } else {
            let end = lexer::identifier_end(self.bytes, body);
            let (passed, after) = self.only_parameter(self.after_spaces(end))?;
            let other = Stringifier::Through(&self.host[body..end]);
            (passed == parameter).then_some((other, after))?
        };
        let rest = self.after_spaces(end);
        matches!(self.bytes.get(rest), None | Some(b'\n')).then_some(stringifier)
    }

    fn stringifies(&self, name: &str) -> bool {
        let mut name = name;
        for _ in 0..LONGEST_CHAIN {
            match self.stringifiers.get(name) {
                Some(Stringifier::Direct) => return true,
                Some(Stringifier::Through(other)) => name = other,
                None => return false,
            }
        }
        false
    }

    /// The text between the parenthesis at `open` and its partner, trimmed, and the byte after that. Without
    /// a partner it is all the rest, as the compiler would read it.
    fn argument(&self, open: usize) -> (Range<usize>, usize) {
        let mut at = open + 1;
        let mut depth = 1;
        let mut end = self.bytes.len();
        let mut after = end;
        while let Some(&byte) = self.bytes.get(at) {
            let blank = self.after_blank(at);
            if blank > at {
                at = blank;
                continue;
            }
            match byte {
                b'"' | b'\'' => {
                    at = lexer::ordinary(self.bytes, at).1;
                    continue;
                }
                b'\n' if self.in_directive => depth = 0,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                end = at;
                after = at + usize::from(byte == b')');
                break;
            }
            at += 1;
        }
        let content = &self.host[open + 1..end];
        let start = open + 1 + (content.len() - content.trim_start().len());
        (start..start + content.trim().len(), after)
    }

    fn end_of_directive(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at) {
            let blank = self.after_blank(at);
            if blank > at {
                at = blank;
                continue;
            }
            match byte {
                b'\n' => break,
                b'"' | b'\'' => at = lexer::ordinary(self.bytes, at).1,
                _ => at += 1,
            }
        }
        at
    }

    /// After the white space, the comment or the splice at `at`, if one is there. Line breaks stay.
    fn after_blank(&self, at: usize) -> usize {
        match self.bytes.get(at) {
            Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c) => at + 1,
            Some(b'\\') => lexer::skip_splices(self.bytes, at),
            Some(b'/') => lexer::comment_end(self.bytes, at).unwrap_or(at),
            _ => at,
        }
    }

    /// After all white space, comments and splices. Line breaks stay.
    fn after_spaces(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            let after = self.after_blank(at);
            if after == at {
                return at;
            }
            at = after;
        }
    }

    /// After all white space, comments and splices; line breaks stay only where they end a directive.
    fn after_blanks(&self, from: usize) -> usize {
        let mut at = self.after_spaces(from);
        while !self.in_directive && self.bytes.get(at) == Some(&b'\n') {
            at = self.after_spaces(at + 1);
        }
        at
    }

    fn after_text(&self, text: &str, at: usize) -> Option<usize> {
        let rest = self.bytes.get(at..)?;
        rest.starts_with(text.as_bytes()).then_some(at + text.len())
    }
}

/// Makes the text of a group.
struct Decoder<'a> {
    host: &'a str,
    text: String,
    pieces: Vec<Piece>,
}

impl<'a> Decoder<'a> {
    fn new(host: &'a str) -> Self {
        Self {
            host,
            text: String::new(),
            pieces: Vec::new(),
        }
    }

    fn decode(mut self, group: Group) -> EmbeddedProgram {
        for part in group.parts {
            match part {
                Part::Ordinary(range) => self.unspliced(range, true),
                Part::Stringified(range) => self.unspliced(range, false),
                Part::Raw(range) => self.copy(range),
                Part::Unknown(at) => self.insert(' ', at),
            }
        }
        EmbeddedProgram {
            text: self.text,
            pieces: self.pieces,
            range: group.range,
        }
    }

    /// Copies without the line splices, and with decoded escapes where `escapes` says so.
    fn unspliced(&mut self, range: Range<usize>, escapes: bool) {
        let bytes = &self.host.as_bytes()[..range.end];
        let mut copied = range.start;
        let mut at = range.start;
        while at < range.end {
            let after = lexer::skip_splices(bytes, at);
            if after > at {
                self.copy(copied..at);
                at = after;
                copied = at;
            } else if escapes && bytes[at] == b'\\' {
                self.copy(copied..at);
                let (character, after) = escape(&self.host[..range.end], at);
                self.insert(character, at);
                at = after;
                copied = at;
            } else {
                at += 1;
            }
        }
        self.copy(copied..range.end);
    }

    fn copy(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.pieces.push(Piece {
            at: self.text.len(),
            source: range.start,
            len: range.len(),
            verbatim: true,
        });
        self.text.push_str(&self.host[range]);
    }

    fn insert(&mut self, character: char, source: usize) {
        self.pieces.push(Piece {
            at: self.text.len(),
            source,
            len: character.len_utf8(),
            verbatim: false,
        });
        self.text.push(character);
    }
}

/// The character that the escape at `at` means, and the byte after the escape.
fn escape(host: &str, at: usize) -> (char, usize) {
    let start = lexer::skip_splices(host.as_bytes(), at + 1);
    let Some(kind) = host[start..].chars().next() else {
        return ('\\', host.len());
    };
    let after = start + kind.len_utf8();
    match kind {
        'n' => ('\n', after),
        't' => ('\t', after),
        'r' => ('\r', after),
        'a' => ('\x07', after),
        'b' => ('\x08', after),
        'f' => ('\x0c', after),
        'v' => ('\x0b', after),
        'e' => ('\x1b', after),
        'x' => number(host, after, 16, usize::MAX),
        'u' => number(host, after, 16, 4),
        'U' => number(host, after, 16, 8),
        '0'..='7' => number(host, start, 8, 3),
        // \\, \", \', \? and what no compiler knows, which they take as the character.
        other => (other, after),
    }
}

/// The character whose code is at `at`, and the byte after it.
fn number(host: &str, at: usize, base: u32, most: usize) -> (char, usize) {
    let mut code = 0u32;
    let mut end = at;
    for digit in host[at..]
        .chars()
        .take(most)
        .map_while(|c| c.to_digit(base))
    {
        code = code.saturating_mul(base).saturating_add(digit);
        end += 1;
    }
    (
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
        end,
    )
}

/// Whether OpenCL C text defines a kernel.
fn defines_kernel(text: &str) -> bool {
    /// How much of a definition the text has had.
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Nothing,
        Kernel,
        Void,
        Parenthesis,
    }
    // Metal has `kernel void` as well, and never lacks this header.
    if text.contains("metal_stdlib") {
        return false;
    }
    let bytes = text.as_bytes();
    let mut seen = Seen::Nothing;
    // `kernel` is an English word too: after it only attributes may come before `void`.
    let mut prose = false;
    let mut after_void = false;
    let mut parentheses = 0usize;
    let mut line_start = true;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let Some(comment) = lexer::comment_end(bytes, at) {
            at = comment;
            continue;
        }
        if byte.is_ascii_whitespace() {
            line_start |= byte == b'\n';
            at += 1;
            continue;
        }
        if byte == b'#' && line_start && seen == Seen::Kernel {
            // The attributes are often chosen by an `#if`.
            at += text[at..].find('\n').unwrap_or(text.len() - at);
            continue;
        }
        line_start = false;
        if lexer::continues_identifier(byte) {
            let end = lexer::identifier_end(bytes, at);
            let word = &text[at..end];
            if matches!(seen, Seen::Nothing | Seen::Kernel) && parentheses == 0 {
                seen = match word {
                    "__kernel" if after_void => Seen::Void,
                    "__kernel" | "kernel" => {
                        prose = word == "kernel";
                        Seen::Kernel
                    }
                    "void" if seen == Seen::Kernel => Seen::Void,
                    _ if seen == Seen::Kernel && (!prose || word == "__attribute__") => {
                        Seen::Kernel
                    }
                    _ => Seen::Nothing,
                };
            }
            after_void = word == "void";
            at = end;
            continue;
        }
        after_void = false;
        at += 1;
        match (seen, byte) {
            (Seen::Parenthesis, b'{') => return true,
            (Seen::Void, b'(') => seen = Seen::Parenthesis,
            (Seen::Kernel | Seen::Void, b';' | b'{' | b'}') => {
                seen = Seen::Nothing;
                parentheses = 0;
            }
            (Seen::Kernel, b'(') => parentheses += 1,
            (Seen::Kernel, b')') if parentheses > 0 => parentheses -= 1,
            (Seen::Kernel, _) if parentheses == 0 => seen = Seen::Nothing,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_file_that_never_says_kernel_is_not_scanned() {
        for said in [
            "kernel",
            "\"__kernel void\"",
            "\"a\\nkernel void\"",
            "(kernel\n",
        ] {
            assert!(says_kernel(said.as_bytes()), "{said}");
        }
        for other in ["", "kernels", "my_kernel(", "kernel_3", "Kernel"] {
            assert!(!says_kernel(other.as_bytes()), "{other}");
        }
    }

    /// What a compiler would say of a case's strings.
    #[derive(PartialEq)]
    enum Compiler {
        /// The same bytes.
        Agrees,
        /// The same but for white space, which `#` rewrites.
        AgreesButForSpaces,
        /// Something else or nothing: half-typed, or with macros that we do not expand.
        Differs,
    }
    use Compiler::{Agrees, AgreesButForSpaces, Differs};

    /// Each defines a string `s`; then the programs that we read in it.
    const IDIOMS: &[(&str, &str, &[&str], Compiler)] = &[
        (
            "adjacent literals, comments and blank lines between them",
            "const char *s = \"// first\\n\" /* why */ // and \"more\"\n\
             \n  \"__kernel void f(\" \"int n) {}\\n\";",
            &["// first\n__kernel void f(int n) {}\n"],
            Agrees,
        ),
        (
            "escapes",
            r#"const char *s = "kernel void f() {}\t\"\\\x41\101\60\?\a\e\'\u00e91\U0001F600" "1\0601";"#,
            &["kernel void f() {}\t\"\\AA0?\x07\x1b'\u{e9}1\u{1f600}101"],
            Agrees,
        ),
        (
            "one literal with spliced lines",
            "const char *s = \"\\\n__kernel void f() {\\n\\\n  int a;\\\n\\n}\\\\\nn\";",
            &["__kernel void f() {\n  int a;\n}\n"],
            Agrees,
        ),
        (
            "Windows line ends",
            "const char *s = \"__kernel void f() \\\r\n{\"\r\n\"}\";\r\n",
            &["__kernel void f() {}"],
            Agrees,
        ),
        (
            "raw literals in two parts, nothing decoded",
            "const char *s = R\"(\n__kernel void f() { printf(\"\\n\"); /* \" */ }\n)\"\n\
             // split for one compiler\nR\"cl(// )\" and \\\nmore\n)cl\";",
            &["\n__kernel void f() { printf(\"\\n\"); /* \" */ }\n// )\" and \\\nmore\n"],
            Agrees,
        ),
        (
            "prefixes, raw after ordinary",
            "const char *s = u8\"__kernel void f() {\" u8R\"(})\";",
            &["__kernel void f() {}"],
            Agrees,
        ),
        (
            "a stringified argument with commas, a literal and a character",
            "#define QUOTE(...) #__VA_ARGS__\nconst char *s = QUOTE(\n\
             __kernel void f(int a, int b) {\n  int c, d = ')'; printf(\"(%d\\n\", c);\n}\n);",
            &["__kernel void f(int a, int b) {\n  int c, d = ')'; printf(\"(%d\\n\", c);\n}"],
            AgreesButForSpaces,
        ),
        (
            "a parameter, an extension line before it, spliced lines in it",
            "#define STRINGIFY( src ) # src // text\n\
             const char *s = \"#pragma once\\n\" STRINGIFY (__kernel void f() \\\n{});",
            &["#pragma once\n__kernel void f() {}"],
            AgreesButForSpaces,
        ),
        (
            "through another macro that is defined later, GNU variadic",
            "#define OUTER(args...) INNER(args)\n#define INNER(args...) #args\n\
             const char *s = OUTER(kernel void f(int a, int b) {});",
            &["kernel void f(int a, int b) {}"],
            AgreesButForSpaces,
        ),
        (
            "the body of a macro, spliced",
            "#define SOURCE \"__kernel void f() {\" \\\n  \"}\"\nconst char *s = SOURCE;\n",
            &["__kernel void f() {}"],
            Agrees,
        ),
        (
            "the body of a macro ends with its line",
            "f(\n#define SOURCE \"__kernel void f() {}\"\n\"of the host\");",
            &["__kernel void f() {}"],
            Differs,
        ),
        (
            "an `#if` inside: its first branch",
            "const char *s = \"__kernel void f() {\"\n#if 1\n\"a;\"\n#ifdef NEVER_DEFINED\n\
             #else\n#endif\n#elif 1\n\"b;\"\n#else\n\"c;\"\n#endif\n\"}\";",
            &["__kernel void f() {a;}"],
            Agrees,
        ),
        (
            "an `#if` around the start: each branch is a program",
            "const char *s =\n#if 1\n\"__kernel void f() {}\"\n#else\n\
             \"__kernel void g() {}\"\n#endif\n;",
            &["__kernel void f() {}", "__kernel void g() {}"],
            Differs,
        ),
        (
            "macros between pieces",
            "const char *s = \"#define N \" BLOCK \"\\n__kernel \" ATTRIBUTE(16, (1)) \"void f() {}\" END;",
            &["#define N  \n__kernel  void f() {}"],
            Differs,
        ),
        (
            "the name of a kernel as a macro's parameter",
            "#define KERNEL(name) \"__kernel void \" #name \"(int n) {}\"\n",
            &["__kernel void name(int n) {}"],
            Differs,
        ),
        (
            "several programs in one file",
            "const char *a[] = {\"__kernel void f() {}\", \"kernel void g() {}\"}; int n = 1'000; f(L\"__kernel void h() {}\");",
            &[
                "__kernel void f() {}",
                "kernel void g() {}",
                "__kernel void h() {}",
            ],
            Differs,
        ),
        (
            "an argument is no neighbour",
            "extern \"C\" void build(const char *s = \"__kernel void f() {}\");",
            &["__kernel void f() {}"],
            Differs,
        ),
        (
            "a quote that is not typed yet ends with its line",
            "const char *s = \"__kernel void f() {}\nint c = '\n\
             int x; f(\"__kernel void g() {}\");",
            &["__kernel void f() {}", "__kernel void g() {}"],
            Differs,
        ),
        (
            "a raw literal that is not closed yet reaches to the end",
            "auto s = R\"x(__kernel void f() {})y\" ;",
            &["__kernel void f() {})y\" ;"],
            Differs,
        ),
        (
            "a file that is one raw literal, to be included",
            "\u{feff}R\"(\n\
             __kernel __attribute__((reqd_work_group_size(W, 1, 1)))\nvoid f() {}\n)\"\n",
            &["\n__kernel __attribute__((reqd_work_group_size(W, 1, 1)))\nvoid f() {}\n"],
            Differs,
        ),
        (
            "attributes chosen by an `#if`; `void` first",
            "f(R\"(\n#if A\n__kernel\n#else\n\
             __kernel __attribute__((vec_type_hint(float4))) ATTRIBUTE\n#endif\n\
             void f() {})\", R\"(void __kernel g() {})\");",
            &[
                "\n#if A\n__kernel\n#else\n\
                 __kernel __attribute__((vec_type_hint(float4))) ATTRIBUTE\n#endif\nvoid f() {}",
                "void __kernel g() {}",
            ],
            Differs,
        ),
    ];

    #[test]
    fn every_idiom_gives_its_programs() {
        for (what, host, want, _) in IDIOMS {
            let texts: Vec<String> = consistent(host)
                .into_iter()
                .map(|found| found.text)
                .collect();
            assert_eq!(texts, *want, "{what}");
        }
    }

    #[test]
    fn a_compiler_makes_the_same_strings() {
        use std::fmt::Write;

        let cases: Vec<_> = IDIOMS.iter().filter(|case| case.3 != Differs).collect();
        let mut program = String::new();
        for (at, (_, host, ..)) in cases.iter().enumerate() {
            writeln!(program, "namespace case_{at} {{\n{host}\n}}").unwrap();
        }
        program += "#include <cstdio>\nint main() {\n";
        for at in 0..cases.len() {
            writeln!(
                program,
                "std::fwrite(case_{at}::s, 1, __builtin_strlen(case_{at}::s) + 1, stdout);"
            )
            .unwrap();
        }
        program += "}\n";
        let Some(output) = compiled_and_run(&program) else {
            eprintln!("no g++: the strings were not compared with a compiler's");
            return;
        };
        let texts: Vec<&str> = output.split_terminator('\0').collect();
        assert_eq!(texts.len(), cases.len());
        let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
        for ((what, _, want, compiler), text) in cases.iter().zip(texts) {
            if *compiler == Agrees {
                assert_eq!(want.concat(), text, "{what}");
            } else {
                assert_eq!(
                    without_spaces(&want.concat()),
                    without_spaces(text),
                    "{what}"
                );
            }
        }
    }

    /// What a C++ program prints, or nothing where there is no compiler.
    fn compiled_and_run(program: &str) -> Option<String> {
        use std::io::Write;
        use std::process::{Command, Stdio};

        let binary = std::env::temp_dir().join(format!("embedded-strings-{}", std::process::id()));
        let mut compiler = Command::new("g++")
            .args(["-std=gnu++17", "-w", "-x", "c++", "-", "-o"])
            .arg(&binary)
            .stdin(Stdio::piped())
            .spawn()
            .ok()?;
        compiler.stdin.take()?.write_all(program.as_bytes()).ok()?;
        assert!(compiler.wait().ok()?.success(), "{program}");
        let output = Command::new(&binary).output();
        std::fs::remove_file(&binary).ok();
        String::from_utf8(output.ok()?.stdout).ok()
    }

    #[test]
    fn what_defines_no_kernel_is_no_program() {
        for host in [
            "",
            "kernel",
            "__kernel void f() {}",
            "// \"__kernel void f() {}\"\n/* \"__kernel void f() {}\" */",
            "#error \"__kernel void f() {}\"\n#include \"__kernel void f() {}\"\n\
             #pragma x \"__kernel void f() {}\"",
            "f(\"__kernel void f(int n);\", \"__kernel void\", \"the kernel\", \"void f() {}\");",
            "f(\"// __kernel void f() {}\\n\", \"my__kernel void f() {}\", \"__kernel int f() {}\");",
            "log(\"a kernel may return void (it does) {%d}\"); nvrtc(\"__global__ void kernel(int n) {}\");",
            "metal(\"#include <metal_stdlib>\\nkernel void f(device float *x [[buffer(0)]]) {}\");",
            "kernel(\"__kernel void f(\", \") {}\"); g(\"__kernel void f(\" + n + \"){}\");",
            "'\"'; \"__kernel void f(\"; '\"'; \"){}\"",
            // An operator of the preprocessor, other parameters, more than the string: no string of the argument.
            "#define A(x) #y\n#define B(x) x##x\n#define C(x) #x; g(x)\n#define D #x\n\
             A(__kernel void f() {}) B(__kernel void f() {}) C(__kernel void f() {}) D(__kernel void f() {})",
            "#define A(x) B(x)\n#define B(x) A(x)\nA(__kernel void f() {})",
            "#define A(x) B(y)\n#define B(x) #x\nA(__kernel void f() {})",
        ] {
            assert_eq!(consistent(host), [], "{host}");
        }
    }

    #[test]
    fn an_escape_points_to_where_it_stands() {
        let host = "x = u8\"a\\x41\\n\" M\n  \"__kernel void f() {}\";";
        let found = consistent(host);
        assert_eq!(found[0].range, 4..host.len() - 1);
        let piece = |at, source, len, verbatim| Piece {
            at,
            source,
            len,
            verbatim,
        };
        let second = host.find("__kernel").unwrap();
        assert_eq!(
            found[0].pieces,
            [
                piece(0, 7, 1, true),
                piece(1, 8, 1, false),
                piece(2, 12, 1, false),
                piece(3, 16, 1, false),
                piece(4, second, 20, true),
            ]
        );
    }

    /// Long, deep and repeated: none of these may take more than linear time or any stack.
    #[test]
    fn long_junk_ends() {
        const TIMES: usize = 100_000;
        let start = "#define S(x) #x\n\"kernel\" ";
        for unit in [
            "(",
            ")",
            "\"",
            "\"a\"",
            "\"a\" M(",
            "S(",
            "S(S ",
            "S /**/",
            "/*",
            "//\\\n",
            "\\\n",
            "\\ ",
            "\\",
            "'",
            "R\"(",
            "R\"x(\" ",
            "#",
            "#if\n",
            "#define S(",
            "#define S(x) S(x)\n",
            "\n#if 1\n\"kernel\"",
            "\"__kernel (",
            "kernel ",
            "\"__kernel void (\"",
            "u8",
            "1'",
            "é",
        ] {
            consistent(&format!("{start}{}", unit.repeat(TIMES)));
        }
    }

    /// The programs of a host file, after the promises of [`EmbeddedProgram`] are checked.
    fn consistent(host: &str) -> Vec<EmbeddedProgram> {
        let found = embedded_programs(host);
        let mut host_end = 0;
        for program in &found {
            assert!(program.range.start >= host_end, "programs overlap");
            host_end = program.range.end;
            assert!(host_end <= host.len());
            let mut at = 0;
            let mut source = program.range.start;
            for piece in &program.pieces {
                assert_eq!(piece.at, at, "a gap or an overlap in the text");
                assert!(piece.source >= source, "pieces go backwards");
                at += piece.len;
                source = piece.source + if piece.verbatim { piece.len } else { 1 };
                let text = &program.text[piece.at..at];
                if piece.verbatim {
                    assert_eq!(text, &host[piece.source..source]);
                } else {
                    assert_eq!(text.chars().count(), 1);
                    assert!(host.is_char_boundary(piece.source));
                }
            }
            assert_eq!(at, program.text.len());
            assert!(source <= host_end);
            assert!(defines_kernel(&program.text));
        }
        found
    }

    /// A way to write one character in a literal, or something between two.
    fn written(character: char, how: u8) -> String {
        let plain = !matches!(character, '"' | '\\' | '\n' | '\r');
        let code = character as u32;
        match how % 8 {
            0 if code < 0x80 => format!("\\{code:03o}"),
            1 if code < 0x80 => format!("\\x{code:x}\" \""),
            2 => format!("\\U{code:08x}"),
            3 => format!("\"\nR\"d({character})d\" // next\n\""),
            4 if plain => format!("\\\n{character}"),
            5 if plain => format!("\" /* \" */ u8\"{character}"),
            _ if plain => character.to_string(),
            _ => match character {
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                other => format!("\\{other}"),
            },
        }
    }

    fn tokens() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "\"",
            "\\",
            "\n",
            "\r\n",
            "'",
            "(",
            ")",
            "{",
            "}",
            ";",
            ",",
            "#",
            "##",
            "/*",
            "*/",
            "//",
            " ",
            "R",
            "u8",
            "L",
            "R\"(",
            ")\"",
            "R\"ab(",
            ")ab\"",
            "__kernel ",
            "kernel ",
            "void ",
            "f(",
            "define ",
            "#define ",
            "#if\n",
            "#else\n",
            "#endif\n",
            "Q",
            "Q(",
            "x",
            "Q(x) #x\n",
            "...",
            "__VA_ARGS__",
            "\\x4",
            "\\u00e9",
            "\\1",
            "é",
            "😀",
            "\"__kernel void f() {",
            "\"}\"",
            "__attribute__((",
            "+",
            "1'0",
            "\0",
            "\u{feff}",
        ]);
        prop::collection::vec(token, 0..60).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_text_keeps_the_promises(host in tokens(), junk in any::<Vec<u8>>()) {
            consistent(&host);
            consistent(&format!("kernel{}{host}", String::from_utf8_lossy(&junk)));
            consistent(&format!("#define Q(x) #x\n\"__kernel void f() {{\" {host}"));
        }

        #[test]
        fn however_it_is_written_the_text_comes_back(
            body in prop::collection::vec((any::<char>(), any::<u8>()), 0..40),
        ) {
            let mut host = "const char *s = \"kernel void f() {\" \"".to_owned();
            let mut text = "kernel void f() {".to_owned();
            for (character, how) in body {
                host += &written(character, how);
                text.push(character);
            }
            host += "\";";
            let found = consistent(&host);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(&found[0].text, &text);
        }
    }
}
