//! A source file as the counter sees it: tokens with their places, the macros and conditionals of the file
//! itself, and where kernels stand. Nothing is shared with the product's own reading of sources.

use std::collections::HashMap;

/// 1-based line and byte column.
pub type LineColumn = (u32, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    Number,
    Quoted,
    Mark,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub kind: Kind,
    pub text: String,
    pub place: LineColumn,
    /// Under a condition that the file alone does not decide.
    pub undecided: bool,
}

impl Token {
    pub fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != Kind::Quoted
    }

    pub fn end(&self) -> LineColumn {
        (self.place.0, self.place.1 + self.text.len() as u32)
    }
}

#[derive(Debug, Clone)]
pub struct Macro {
    /// The names of its parameters; none for a macro without parentheses.
    pub parameters: Option<Vec<String>>,
    pub body: Vec<Token>,
}

/// A file, or one program in its string literals.
#[derive(Debug, Default)]
pub struct Text {
    pub tokens: Vec<Token>,
    macros: HashMap<String, Vec<(u32, Option<Macro>)>>,
    /// It includes files of its project, so that any name may be a macro of theirs.
    pub includes: bool,
}

/// A definition: where its name may stand and what is between its braces.
#[derive(Debug)]
pub struct Kernel {
    /// First and last line of the declaration.
    pub lines: (u32, u32),
    /// Indices of the tokens between the braces.
    pub body: std::ops::Range<usize>,
}

/// The file itself and each program in a raw string literal of it.
pub fn read(source: &str) -> Vec<Text> {
    let mut host = Text::default();
    let embedded = host.scan(source, 1);
    let mut all = vec![host];
    for (line, program) in embedded {
        let mut text = Text::default();
        text.scan(&program, line);
        all.push(text);
    }
    all
}

impl Text {
    /// The macro that a name refers to on a line.
    pub fn find(&self, name: &str, line: u32) -> Option<&Macro> {
        let versions = self.macros.get(name)?;
        let version = versions.iter().rev().find(|(from, _)| *from < line)?;
        version.1.as_ref()
    }

    /// Index of the bracket that closes the one at `open`; the last token where none does.
    pub fn close(&self, open: usize) -> usize {
        close(&self.tokens, open)
    }

    /// Every kernel whose braces stand in the text, in order.
    pub fn kernels(&self) -> Vec<Kernel> {
        let mut kernels = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            if let Some(kernel) = self.introduces(at).then(|| self.kernel(at)).flatten() {
                at = kernel.body.start;
                kernels.push(kernel);
            }
            at += 1;
        }
        kernels
    }

    fn introduces(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        let follows = |words: &[&str]| {
            self.tokens
                .get(at + 1)
                .is_some_and(|next| words.iter().any(|word| next.is(word)))
        };
        token.is("__global__") && self.tokens.get(at + 1).is_some_and(|next| !next.is("*"))
            || token.is("__kernel")
            || token.is("kernel") && follows(&["void", "__attribute__"])
            || token.kind == Kind::Word
                && self.find(&token.text, token.place.0).is_some_and(|found| {
                    let opens = found.body.iter().any(|token| token.is("{"));
                    !opens
                        && found
                            .body
                            .iter()
                            .any(|token| token.is("__global__") || token.is("__kernel"))
                })
    }

    /// The definition that starts here, where it is one.
    fn kernel(&self, start: usize) -> Option<Kernel> {
        let mut at = start;
        let mut parentheses = false;
        loop {
            let token = self.tokens.get(at)?;
            match token.text.as_str() {
                "(" => {
                    at = self.close(at);
                    parentheses = true;
                }
                "{" if parentheses => break,
                "{" | "}" | ";" | "=" => return None,
                _ => {}
            }
            at += 1;
        }
        let end = self.close(at);
        Some(Kernel {
            lines: (self.tokens[start].place.0, self.tokens[at].place.0),
            body: at + 1..end,
        })
    }

    /// Tokens, macros and conditionals of `source`, whose first line is `line`; the programs in it.
    fn scan(&mut self, source: &str, line: u32) -> Vec<(u32, String)> {
        self.includes = source.lines().any(|line| {
            let line: String = line.split_whitespace().collect();
            line.starts_with("#include\"")
        });
        let mut embedded = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut reader = Reader {
            bytes: source.as_bytes(),
            at: 0,
            place: (line, 1),
            fresh: true,
        };
        while let Some(item) = reader.next() {
            match item {
                Item::Directive(words, at) => self.directive(&words, at, &mut groups),
                Item::Token(mut token) => {
                    if let Some(group) = groups.last_mut() {
                        group.guard = None;
                    }
                    let state = groups
                        .iter()
                        .fold(State::Live, |sum, group| sum.max(group.state));
                    token.undecided = state == State::Undecided;
                    if state != State::Dead {
                        self.tokens.push(token);
                    }
                }
                Item::Raw(program, line) => {
                    let words = ["__kernel", "kernel void"];
                    if words.iter().any(|word| program.contains(word)) {
                        embedded.push((line, program));
                    }
                }
            }
        }
        embedded
    }

    fn directive(&mut self, words: &[Token], place: LineColumn, groups: &mut Vec<Group>) {
        let Some(name) = words.first() else { return };
        let dead = groups.iter().any(|group| group.state == State::Dead);
        let outside = groups
            .split_last()
            .is_some_and(|(_, rest)| rest.iter().any(|group| group.state == State::Dead));
        match name.text.as_str() {
            "if" | "ifdef" | "ifndef" => {
                let value = if dead {
                    Some(false)
                } else {
                    match name.text.as_str() {
                        "if" => self.condition(&words[1..], place.0),
                        "ifdef" => self.defined(words.get(1), place.0),
                        _ => self.defined(words.get(1), place.0).map(|value| !value),
                    }
                };
                let mut group = Group::of(value);
                group.guard = words
                    .get(1)
                    .filter(|_| name.is("ifndef"))
                    .map(|name| name.text.clone());
                groups.push(group);
            }
            "elif" => {
                let value = if outside {
                    Some(false)
                } else {
                    self.condition(&words[1..], place.0)
                };
                if let Some(group) = groups.last_mut() {
                    group.next(value);
                }
            }
            "else" => {
                if let Some(group) = groups.last_mut() {
                    group.next(Some(true));
                }
            }
            "endif" => {
                groups.pop();
            }
            "define" if !dead => {
                // `#ifndef X` that `#define X` follows guards against a second inclusion.
                if let (Some(group), Some(name)) = (groups.last_mut(), words.get(1))
                    && group.guard.as_deref() == Some(&name.text)
                {
                    group.state = State::Live;
                }
                self.define(&words[1..], place.0);
            }
            "undef" if !dead => {
                if let Some(name) = words.get(1) {
                    self.macros
                        .entry(name.text.clone())
                        .or_default()
                        .push((place.0, None));
                }
            }
            _ => {}
        }
    }

    fn define(&mut self, words: &[Token], line: u32) {
        let Some(name) = words.first() else { return };
        let called = words
            .get(1)
            .is_some_and(|open| open.is("(") && open.place == name.end());
        let (parameters, body) = if called {
            let end = close(words, 1);
            let names = words[2..end]
                .iter()
                .filter(|word| !word.is(","))
                .map(|word| word.text.clone())
                .collect();
            (Some(names), words[(end + 1).min(words.len())..].to_vec())
        } else {
            (None, words[1..].to_vec())
        };
        self.macros
            .entry(name.text.clone())
            .or_default()
            .push((line, Some(Macro { parameters, body })));
    }

    fn defined(&self, name: Option<&Token>, line: u32) -> Option<bool> {
        let name = &name?.text;
        let versions = self.macros.get(name).into_iter().flatten();
        if let Some((_, version)) = versions.rev().find(|(from, _)| *from < line) {
            return Some(version.is_some());
        }
        // Compilers define names with underscores; headers may define any.
        let foreign = self.includes || name.starts_with('_');
        (!foreign).then_some(false)
    }

    fn condition(&self, words: &[Token], line: u32) -> Option<bool> {
        let mut condition = Condition {
            text: self,
            words,
            at: 0,
            line,
            depth: 0,
        };
        condition.binary(0).map(|value| value != 0)
    }
}

/// Index of the bracket that closes the one at `open`; the last token where none does.
pub fn close(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" if token.kind == Kind::Mark => depth += 1,
            ")" | "]" | "}" if token.kind == Kind::Mark => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Live,
    Undecided,
    Dead,
}

/// One `#if` … `#endif`.
struct Group {
    state: State,
    /// A branch was taken; none where that is undecided.
    taken: Option<bool>,
    /// The name of an `#ifndef` that nothing but directives has followed yet.
    guard: Option<String>,
}

impl Group {
    fn of(value: Option<bool>) -> Group {
        let mut group = Group {
            state: State::Dead,
            taken: Some(false),
            guard: None,
        };
        group.next(value);
        group
    }

    fn next(&mut self, value: Option<bool>) {
        (self.state, self.taken) = match (self.taken, value) {
            (Some(true), _) => (State::Dead, Some(true)),
            (taken, Some(false)) => (State::Dead, taken),
            (Some(false), Some(true)) => (State::Live, Some(true)),
            (None, Some(true)) => (State::Undecided, Some(true)),
            (_, None) => (State::Undecided, None),
        };
    }
}

/// `#if`'s expression; every value is none where it depends on what the file does not say.
struct Condition<'a> {
    text: &'a Text,
    words: &'a [Token],
    at: usize,
    line: u32,
    depth: u32,
}

impl Condition<'_> {
    fn eat(&mut self, text: &str) -> bool {
        let found = self.words.get(self.at).is_some_and(|word| word.is(text));
        self.at += usize::from(found);
        found
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        const LEVELS: [&[&str]; 6] = [
            &["||"],
            &["&&"],
            &["==", "!="],
            &["<=", ">=", "<", ">"],
            &["+", "-"],
            &["*", "/", "%"],
        ];
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1);
        while let Some(operator) = operators.iter().find(|operator| self.eat(operator)) {
            let right = self.binary(level + 1);
            left = match (*operator, left, right) {
                ("||", Some(x), _) | ("||", _, Some(x)) if x != 0 => Some(1),
                ("&&", Some(0), _) | ("&&", _, Some(0)) => Some(0),
                (_, None, _) | (_, _, None) => None,
                ("||", Some(x), Some(y)) => Some(i64::from(x != 0 || y != 0)),
                ("&&", Some(x), Some(y)) => Some(i64::from(x != 0 && y != 0)),
                ("==", Some(x), Some(y)) => Some(i64::from(x == y)),
                ("!=", Some(x), Some(y)) => Some(i64::from(x != y)),
                ("<", Some(x), Some(y)) => Some(i64::from(x < y)),
                (">", Some(x), Some(y)) => Some(i64::from(x > y)),
                ("<=", Some(x), Some(y)) => Some(i64::from(x <= y)),
                (">=", Some(x), Some(y)) => Some(i64::from(x >= y)),
                ("+", Some(x), Some(y)) => x.checked_add(y),
                ("-", Some(x), Some(y)) => x.checked_sub(y),
                ("*", Some(x), Some(y)) => x.checked_mul(y),
                ("/", Some(x), Some(y)) => x.checked_div(y),
                (_, Some(x), Some(y)) => x.checked_rem(y),
            };
        }
        left
    }

    fn unary(&mut self) -> Option<i64> {
        if self.eat("!") {
            return self.unary().map(|value| i64::from(value == 0));
        }
        if self.eat("-") {
            return self.unary().map(|value| -value);
        }
        if self.eat("(") {
            let value = self.binary(0);
            self.eat(")");
            return value;
        }
        if self.eat("defined") {
            let open = self.eat("(");
            let value = self.text.defined(self.words.get(self.at), self.line);
            self.at += 1;
            if open {
                self.eat(")");
            }
            return value.map(i64::from);
        }
        let word = self.words.get(self.at)?;
        self.at += 1;
        if word.kind == Kind::Number {
            return number(&word.text);
        }
        self.depth += 1;
        if word.kind != Kind::Word || self.depth > 20 {
            return None;
        }
        match self.text.find(&word.text, self.line) {
            Some(found) if found.parameters.is_none() && !found.body.is_empty() => {
                let mut inner = Condition {
                    words: &found.body,
                    at: 0,
                    text: self.text,
                    line: self.line,
                    depth: self.depth,
                };
                inner.binary(0)
            }
            None if self.text.defined(Some(word), self.line) == Some(false) => {
                // A call of what is not a macro is not ours to decide.
                (!self.words.get(self.at).is_some_and(|next| next.is("("))).then_some(0)
            }
            _ => None,
        }
    }
}

fn number(text: &str) -> Option<i64> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

enum Item {
    Token(Token),
    /// The tokens after `#` and its position.
    Directive(Vec<Token>, LineColumn),
    /// What is in a raw string literal, and its first line.
    Raw(String, u32),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    place: LineColumn,
    /// Nothing but white space since the line began.
    fresh: bool,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn step(&mut self) {
        if self.peek(0) == b'\n' {
            self.place = (self.place.0 + 1, 1);
        } else {
            self.place.1 += 1;
        }
        self.at += 1;
    }

    fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// White space, comments and continued lines; with `stay`, no further than this line.
    fn skip(&mut self, stay: bool) {
        while !self.done() {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) if stay => return,
                (b'\n', _) => {
                    self.step();
                    self.fresh = true;
                }
                (b'\\', b'\n') => {
                    self.step();
                    self.step();
                }
                (b'\\', b'\r') if self.peek(2) == b'\n' => (0..3).for_each(|_| self.step()),
                (b'/', b'/') => {
                    while !self.done() && self.peek(0) != b'\n' {
                        if self.peek(0) == b'\\' && self.peek(1) == b'\n' {
                            self.step();
                        }
                        self.step();
                    }
                }
                (b'/', b'*') => {
                    self.step();
                    self.step();
                    while !self.done() && (self.peek(0), self.peek(1)) != (b'*', b'/') {
                        self.step();
                    }
                    self.step();
                    self.step();
                }
                (byte, _) if byte.is_ascii_whitespace() => self.step(),
                _ => return,
            }
        }
    }

    fn next(&mut self) -> Option<Item> {
        self.skip(false);
        if self.done() {
            return None;
        }
        let place = self.place;
        if self.fresh && self.peek(0) == b'#' {
            self.step();
            let mut words = Vec::new();
            loop {
                self.skip(true);
                if self.done() || self.peek(0) == b'\n' {
                    return Some(Item::Directive(words, place));
                }
                if let Item::Token(token) = self.token() {
                    words.push(token);
                }
            }
        }
        self.fresh = false;
        Some(self.token())
    }

    fn token(&mut self) -> Item {
        const MARKS: [&str; 22] = [
            "<<=", ">>=", "...", "->", "++", "--", "<<", "<=", ">=", "==", "!=", "&&", "||", "+=",
            "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::",
        ];
        let start = self.at;
        let place = self.place;
        let first = self.peek(0);
        let word =
            |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
        let kind = if first.is_ascii_digit() || first == b'.' && self.peek(1).is_ascii_digit() {
            while word(self.peek(0))
                || self.peek(0) == b'.'
                || self.peek(0) == b'\'' && word(self.peek(1))
                || matches!(self.peek(0), b'+' | b'-')
                    && matches!(self.bytes[self.at - 1], b'e' | b'E' | b'p' | b'P')
                    && !self.bytes[start..self.at].starts_with(b"0x")
            {
                self.step();
            }
            Kind::Number
        } else if word(first) {
            while word(self.peek(0)) {
                self.step();
            }
            let prefix = &self.bytes[start..self.at];
            if self.peek(0) == b'"' && prefix.ends_with(b"R") && prefix.len() <= 3 {
                return self.raw();
            }
            Kind::Word
        } else if first == b'"' || first == b'\'' {
            self.step();
            while !self.done() && self.peek(0) != first && self.peek(0) != b'\n' {
                if self.peek(0) == b'\\' {
                    self.step();
                }
                self.step();
            }
            self.step();
            Kind::Quoted
        } else {
            let rest = &self.bytes[self.at..];
            let length = MARKS
                .iter()
                .find(|mark| rest.starts_with(mark.as_bytes()))
                .map_or(1, |mark| mark.len());
            (0..length).for_each(|_| self.step());
            Kind::Mark
        };
        let end = self.at.min(self.bytes.len());
        let text = String::from_utf8_lossy(&self.bytes[start..end]).into_owned();
        Item::Token(Token {
            kind,
            text,
            place,
            undecided: false,
        })
    }

    fn raw(&mut self) -> Item {
        self.step();
        let open = self.at;
        while !self.done() && self.peek(0) != b'(' {
            self.step();
        }
        let mut stop = vec![b')'];
        stop.extend(&self.bytes[open..self.at]);
        stop.push(b'"');
        self.step();
        let (start, line) = (self.at, self.place.0);
        while !self.done() && !self.bytes[self.at..].starts_with(&stop) {
            self.step();
        }
        let text = String::from_utf8_lossy(
            &self.bytes[start.min(self.bytes.len())..self.at.min(self.bytes.len())],
        )
        .into_owned();
        (0..stop.len()).for_each(|_| self.step());
        Item::Raw(text, line)
    }
}
