//! Which subscripts and dereferences of a kernel's body must stand among its accesses.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::text::{Kind, LineColumn, Text, Token, close};

/// One of them.
#[derive(Debug, Clone)]
pub struct Demand {
    /// An access that answers it begins here, at the earliest …
    pub from: LineColumn,
    /// … and here, at the latest.
    pub to: LineColumn,
    /// The line of the call that has it in its arguments: the callee may be the one that reads it.
    pub call: Option<u32>,
    pub text: String,
}

/// The demands of the tokens at `body`; those that an undecided condition covers are left out.
pub fn demands(text: &Text, body: Range<usize>) -> Vec<Demand> {
    let mut scanner = Scanner::new(text, &text.tokens[body], 0);
    scanner.run();
    scanner.found
}

/// Words that a name cannot be, where an operand could end.
const KEYWORDS: [&str; 22] = [
    "return",
    "else",
    "goto",
    "break",
    "continue",
    "case",
    "default",
    "if",
    "for",
    "while",
    "do",
    "switch",
    "delete",
    "new",
    "throw",
    "using",
    "typedef",
    "template",
    "sizeof",
    "operator",
    "asm",
    "co_return",
];

/// Words of a declaration that are no type by themselves.
const QUALIFIERS: [&str; 22] = [
    "const",
    "volatile",
    "static",
    "extern",
    "constexpr",
    "register",
    "inline",
    "struct",
    "typename",
    "union",
    "enum",
    "__shared__",
    "__local",
    "local",
    "__global",
    "global",
    "__constant",
    "constant",
    "__private",
    "private",
    "__constant__",
    "restrict",
];

const TYPES: [&str; 24] = [
    "auto", "void", "bool", "char", "short", "int", "long", "float", "double", "half", "signed",
    "unsigned", "uint", "uchar", "ushort", "ulong", "size_t", "float2", "float3", "float4", "int2",
    "int4", "uint4", "double2",
];

/// What is inside their parentheses is not evaluated, or not always.
const UNEVALUATED: [&str; 8] = [
    "sizeof",
    "decltype",
    "alignof",
    "__alignof__",
    "typeof",
    "static_assert",
    "assert",
    "__attribute__",
];

/// An open bracket.
#[derive(Default)]
struct Frame {
    /// The function or macro whose arguments these are: its name and position.
    call: Option<(String, LineColumn)>,
    /// What comes before its end is not evaluated.
    dropped: bool,
    /// A comma here starts another declarator.
    declares: bool,
    /// The declarator's name is a reference.
    reference: bool,
    /// A statement starts behind it.
    control: bool,
}

struct Scanner<'a> {
    text: &'a Text,
    tokens: &'a [Token],
    /// The other bracket of each bracket.
    other: Vec<Option<usize>>,
    /// The end of the statements that an `if constexpr` chooses between: which stay depends on the template's
    /// arguments.
    discardable: usize,
    /// Dimensions of the arrays, by name.
    dimensions: HashMap<String, usize>,
    /// Pointers that were initialised with the address of a variable.
    to_locals: HashSet<String>,
    frames: Vec<Frame>,
    depth: u32,
    found: Vec<Demand>,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a Text, tokens: &'a [Token], depth: u32) -> Scanner<'a> {
        let mut other = vec![None; tokens.len()];
        let mut open = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token.text.as_str() {
                "(" | "[" | "{" if token.kind == Kind::Mark => open.push(at),
                ")" | "]" | "}" if token.kind == Kind::Mark => {
                    if let Some(start) = open.pop() {
                        (other[start], other[at]) = (Some(at), Some(start));
                    }
                }
                _ => {}
            }
        }
        Scanner {
            text,
            tokens,
            other,
            discardable: 0,
            dimensions: dimensions(&text.tokens),
            to_locals: HashSet::new(),
            frames: vec![Frame::default()],
            depth,
            found: Vec::new(),
        }
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        let token = self
            .tokens
            .get(at)
            .filter(|token| token.kind == Kind::Word)?;
        (!KEYWORDS.contains(&token.text.as_str())).then_some(&token.text)
    }

    fn run(&mut self) {
        let mut starts = true;
        let mut at = 0;
        while at < self.tokens.len() {
            if starts {
                starts = false;
                if self.is(at, "typedef") || self.is(at, "using") {
                    while at < self.tokens.len() && !self.is(at, ";") {
                        at += 1;
                    }
                    starts = true;
                    continue;
                }
                if let Some(first) = self.declaration(at) {
                    self.frame().declares = true;
                    at = self.declared(first);
                    continue;
                }
            }
            let token = &self.tokens[at];
            if token.is("if") && self.is(at + 1, "constexpr") {
                self.discardable = self.discardable.max(self.chosen_between(at + 2));
            }
            match (token.kind, token.text.as_str()) {
                (Kind::Mark, "(" | "[" | "{") => {
                    if token.is("[") {
                        self.subscript(at);
                    }
                    let frame = self.open(at);
                    starts = frame.control || token.is("{");
                    self.frames.push(frame);
                }
                (Kind::Mark, ")" | "]" | "}") => {
                    let frame = if self.frames.len() > 1 {
                        self.frames.pop()
                    } else {
                        None
                    };
                    let control = frame.is_some_and(|frame| frame.control);
                    starts = control || token.is("}");
                }
                (Kind::Mark, ";") => {
                    let frame = self.frame();
                    (frame.declares, frame.reference) = (false, false);
                    starts = true;
                }
                (Kind::Mark, ",") if self.frame().declares => {
                    at = self.declared(at + 1);
                    continue;
                }
                (Kind::Mark, ":") => starts = self.labels(at),
                (Kind::Mark, "*") => self.star(at),
                (Kind::Mark, "->") => self.arrow(at),
                (Kind::Word, "else" | "do") => starts = true,
                (Kind::Word, _) => self.expand(at),
                _ => {}
            }
            at += 1;
        }
    }

    /// Behind the statements that the condition in the parentheses at `open` chooses between.
    fn chosen_between(&self, open: usize) -> usize {
        let statement = |start: usize| {
            let mut at = start;
            while at < self.tokens.len() && !self.is(at, ";") && !self.is(at, "{") {
                at = self.other[at].filter(|&close| close > at).unwrap_or(at) + 1;
            }
            self.other.get(at).copied().flatten().unwrap_or(at) + 1
        };
        let mut end = statement(self.other.get(open).copied().flatten().unwrap_or(open) + 1);
        while self.is(end, "else") {
            end = statement(end + 1);
        }
        end
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The frame of the bracket at `at`.
    fn open(&self, at: usize) -> Frame {
        let mut frame = Frame::default();
        if !self.is(at, "(") {
            return frame;
        }
        let before = at.wrapping_sub(1);
        if let Some(token) = self.tokens.get(before) {
            frame.control = ["if", "for", "while", "switch"]
                .iter()
                .any(|word| token.is(word))
                || token.is("constexpr") && self.is(at.wrapping_sub(2), "if");
            if token.kind == Kind::Word && !frame.control {
                let ignored = self
                    .text
                    .find(&token.text, token.place.0)
                    .is_some_and(|found| {
                        let used = |token: &Token| {
                            let names = found.parameters.iter().flatten();
                            token.is("__VA_ARGS__") || names.into_iter().any(|name| token.is(name))
                        };
                        found.parameters.is_some() && !found.body.iter().any(used)
                    });
                frame.dropped = ignored || UNEVALUATED.contains(&token.text.as_str());
                frame.call = Some((token.text.clone(), token.place));
            } else if token.is(">") {
                frame.call = Some((String::new(), token.place));
            }
        }
        frame
    }

    /// True for the colon behind a label or a case.
    fn labels(&self, at: usize) -> bool {
        let mut back = at;
        while back > 0 {
            back -= 1;
            let token = &self.tokens[back];
            if token.is("?") {
                return false;
            }
            if token.is("case") || token.is("default") {
                return true;
            }
            if [";", "{", "}"].iter().any(|mark| token.is(mark)) {
                return back + 2 == at;
            }
        }
        false
    }

    /// The first declarator of the declaration that starts here, where one does.
    fn declaration(&self, start: usize) -> Option<usize> {
        let mut at = start;
        let mut typed = false;
        while let Some(word) = self.word(at) {
            if ["__align__", "alignas", "__attribute__"].contains(&word) {
                at = self.other.get(at + 1).copied().flatten()? + 1;
            } else if QUALIFIERS.contains(&word) || word.starts_with("__restrict") {
                at += 1;
            } else if TYPES.contains(&word) {
                typed = true;
                at += 1;
            } else if !typed {
                typed = true;
                at = self.type_name(at)?;
            } else {
                break;
            }
        }
        if !typed {
            return None;
        }
        // A structured binding or a local type.
        if self.is(at, "[") && self.is(at.wrapping_sub(1), "auto")
            || self.is(at, "&") && self.is(at + 1, "[")
        {
            return Some(at);
        }
        let first = at;
        while ["*", "&", "&&", "const", "volatile", "restrict"]
            .iter()
            .any(|mark| self.is(at, mark))
            || self
                .word(at)
                .is_some_and(|word| word.starts_with("__restrict"))
        {
            at += 1;
        }
        if self.is(at, "(") {
            let end = self.other[at]?;
            let inner = (self.is(at + 1, "*") || self.is(at + 1, "&")) && end == at + 3;
            return (inner && (self.is(end + 1, "[") || self.is(end + 1, "("))).then_some(first);
        }
        self.word(at)?;
        let next = self.tokens.get(at + 1)?;
        ["=", ";", ",", "[", "(", "{", ":", ")"]
            .iter()
            .any(|mark| next.is(mark))
            .then_some(first)
    }

    /// Behind `a::b<c>::d`.
    fn type_name(&self, start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            self.word(at)?;
            at += 1;
            if self.is(at, "<") {
                let mut depth = 0_i32;
                loop {
                    let token = self.tokens.get(at)?;
                    match token.text.as_str() {
                        "<" => depth += 1,
                        ">" => depth -= 1,
                        ">>" => depth -= 2,
                        "(" | "[" => at = self.other[at]?,
                        ";" | "{" | "&&" | "||" | "=" => return None,
                        _ => {}
                    }
                    at += 1;
                    if depth <= 0 {
                        break;
                    }
                }
            }
            if !self.is(at, "::") {
                return Some(at);
            }
            at += 1;
        }
    }

    /// Reads one declarator, brackets and all; behind it.
    fn declared(&mut self, start: usize) -> usize {
        let mut at = start;
        self.frame().reference = false;
        let mut name = None;
        let mut dimensions = 0;
        while let Some(token) = self.tokens.get(at) {
            if token.is("&") || token.is("&&") {
                self.frame().reference = true;
            } else if token.is("[") {
                let Some(end) = self.other[at] else { break };
                dimensions += 1;
                at = end;
            } else if token.is("(") && name.is_none() {
                // `(*rows)[64]`
                dimensions = 1;
            } else if token.is(")") && self.other[at].is_some_and(|open| open >= start) {
            } else if token.kind == Kind::Word
                && name.is_none()
                && !QUALIFIERS.contains(&token.text.as_str())
                && !token.text.starts_with("__restrict")
            {
                name = Some(token.text.clone());
            } else if !(token.is("*") || token.is("const") || token.kind == Kind::Word) {
                break;
            }
            at += 1;
        }
        if let Some(name) = name {
            // `T* p = (T*)&own;`
            let value = self.behind_cast(at + 1);
            if self.is(at, "=")
                && self.is(value, "&")
                && self.word(value + 1).is_some()
                && (self.is(value + 2, ";") || self.is(value + 2, ","))
            {
                self.to_locals.insert(name.clone());
            }
            self.dimensions.insert(name, dimensions);
        }
        at
    }

    /// Behind a cast in parentheses that begins here.
    fn behind_cast(&self, at: usize) -> usize {
        match self.other.get(at).copied().flatten() {
            Some(end) if self.is(at, "(") && self.is_cast(at, end) => end + 1,
            _ => at,
        }
    }

    /// True where the address of a variable, or of a member of one, begins here: no memory is behind it.
    fn is_address_of_variable(&self, at: usize) -> bool {
        let mut at = at + 1;
        if !self.is(at - 1, "&") || self.word(at).is_none() {
            return false;
        }
        while self.is(at + 1, ".") && self.word(at + 2).is_some() {
            at += 2;
        }
        ![".", "->", "[", "("]
            .iter()
            .any(|mark| self.is(at + 1, mark))
    }

    /// Where the postfix expression begins whose last part ends just before `end`.
    fn chain_start(&self, end: usize) -> usize {
        let mut start = end;
        while let Some(before) = start.checked_sub(1) {
            let token = &self.tokens[before];
            if token.is("]") || token.is(")") {
                let Some(open) = self.other[before] else {
                    break;
                };
                start = open;
                if token.is("]") {
                    continue;
                }
                // A call's name, or a cast's type in angle brackets.
                if start > 0 && self.is(start - 1, ">") {
                    let Some(open) = self.angle(start - 1) else {
                        break;
                    };
                    start = open;
                }
                if start == 0 || self.word(start - 1).is_none() {
                    break;
                }
                start -= 1;
            } else if self.word(before).is_some() || token.kind == Kind::Quoted {
                start = before;
            } else {
                break;
            }
            if start > 0
                && [".", "->", "::"]
                    .iter()
                    .any(|mark| self.is(start - 1, mark))
            {
                start -= 1;
            } else {
                break;
            }
        }
        start
    }

    fn angle(&self, end: usize) -> Option<usize> {
        let mut depth = 0;
        for at in (0..=end).rev() {
            match self.tokens[at].text.as_str() {
                ">" => depth += 1,
                "<" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                ";" | "{" | "}" => return None,
                _ => {}
            }
        }
        None
    }

    /// Behind the postfix expression that goes on at `at`.
    fn chain_end(&self, mut at: usize) -> usize {
        loop {
            if self.is(at, "[") || self.is(at, "(") {
                match self.other[at] {
                    Some(end) => at = end + 1,
                    None => return at,
                }
            } else if (self.is(at, ".") || self.is(at, "->")) && self.word(at + 1).is_some() {
                at += 2;
            } else {
                return at;
            }
        }
    }

    /// True where the operator at `at` has no left operand.
    fn prefix(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return true;
        };
        let token = &self.tokens[before];
        match token.kind {
            Kind::Word => ["return", "case", "else", "do", "throw", "co_return"]
                .contains(&token.text.as_str()),
            Kind::Number | Kind::Quoted => false,
            Kind::Mark => match token.text.as_str() {
                "]" => false,
                ")" => self.other[before]
                    .is_some_and(|open| self.is_cast(open, before) || self.open(open).control),
                "++" | "--" => self.prefix(before),
                _ => true,
            },
        }
    }

    fn is_cast(&self, open: usize, end: usize) -> bool {
        if open > 0
            && (self.word(open - 1).is_some()
                || self.is(open - 1, "sizeof")
                || self.is(open - 1, ")")
                || self.is(open - 1, "]"))
        {
            return false;
        }
        let inner = &self.tokens[open + 1..end];
        let plain = inner.iter().all(|token| {
            token.kind == Kind::Word
                || ["*", "&", "::", "<", ">", ","]
                    .iter()
                    .any(|mark| token.is(mark))
        });
        let named = inner.iter().any(|token| {
            TYPES.contains(&token.text.as_str()) || QUALIFIERS.contains(&token.text.as_str())
        });
        plain
            && inner.first().is_some_and(|token| token.kind == Kind::Word)
            && (named || inner.last().is_some_and(|token| token.is("*")))
    }

    /// True where nothing here is asked for.
    fn dropped(&self, at: usize) -> bool {
        at < self.discardable
            || self.tokens[at].undecided
            || self.frames.iter().any(|frame| frame.dropped)
    }

    fn demand(&mut self, from: usize, to: usize, end: usize) {
        // An access in a macro's arguments may be shown at the macro's use.
        let text = self.text;
        let macro_place = self.frames.iter().find_map(|frame| {
            let (name, place) = frame.call.as_ref()?;
            text.find(name, place.0).map(|_| *place)
        });
        let first = self.tokens[self.wrapped(from, end)].place;
        let shown = self.tokens[from..end.min(self.tokens.len())]
            .iter()
            .map(|token| token.text.as_str())
            .collect();
        self.found.push(Demand {
            from: macro_place.map_or(first, |place| place.min(first)),
            to: self.tokens[to].place,
            call: self
                .frames
                .iter()
                .find_map(|frame| frame.call.as_ref())
                .map(|call| call.1.0),
            text: shown,
        });
    }

    /// Where the parentheses begin that hold nothing but the tokens from `start` to before `end`.
    fn wrapped(&self, mut start: usize, mut end: usize) -> usize {
        while start > 0
            && self.is(start - 1, "(")
            && self.other[start - 1] == Some(end)
            && self.open(start - 1).call.is_none()
        {
            start -= 1;
            end += 1;
        }
        start
    }

    /// True where the operator before `start` takes an address.
    fn addressed(&self, start: usize) -> bool {
        start > 0 && self.is(start - 1, "&") && self.prefix(start - 1)
    }

    /// The call whose arguments hold the token at `at`, directly.
    fn callee_of(&self, at: usize) -> Option<(String, LineColumn)> {
        let open = (0..at)
            .rev()
            .find(|&open| self.is(open, "(") && self.other[open].is_none_or(|close| close > at))?;
        self.open(open).call
    }

    fn subscript(&mut self, at: usize) {
        let Some(before) = at.checked_sub(1) else {
            return;
        };
        let token = &self.tokens[before];
        let operand = self.word(before).is_some() || token.is(")") || token.kind == Kind::Quoted;
        // The second bracket of `a[i][j]` belongs to the first.
        if !operand || self.dropped(at) || self.is(at + 1, "]") || self.new_before(before) {
            return;
        }
        if token.is(")") && self.is(before.wrapping_sub(1), "*") {
            return; // `(float (*)[8])`
        }
        let start = self.chain_start(at);
        let end = self.chain_end(at);
        let wrapped = self.wrapped(start, end);
        if self.addressed(wrapped) {
            let callee = self.callee_of(wrapped);
            let through = callee.as_ref().is_some_and(|(name, _)| {
                name.starts_with("atomic") || name.starts_with("atom_") || name.starts_with("__ld")
            });
            let later = (at + 1..end).rev().find(|&later| self.is(later, "->"));
            let outer =
                later.is_some_and(|later| self.other[at].is_some_and(|close| later > close));
            if through && !outer {
                self.demand(start, at, end);
                if let (Some((_, place)), Some(last)) = (callee, self.found.last_mut()) {
                    last.from = last.from.min(place);
                }
            } else if outer {
                self.demand(start, at, end);
            }
            return;
        }
        // Fewer subscripts than the array has dimensions make an address.
        let mut brackets = 0;
        let mut next = at;
        while self.is(next, "[") {
            brackets += 1;
            let Some(close) = self.other[next] else { break };
            next = close + 1;
        }
        // The elements of a fragment, which lie in registers.
        if before > 0 && self.is(before, "x") && self.is(before - 1, ".") {
            return;
        }
        if let Some(name) = self.word(before) {
            if next == end
                && self
                    .dimensions
                    .get(name)
                    .is_some_and(|&dimensions| dimensions > brackets)
            {
                return;
            }
            if start == before && self.to_locals.contains(name) {
                return;
            }
        }
        let last = self.word(end - 1).filter(|_| end > next);
        if last.is_some_and(|member| {
            self.dimensions
                .get(member)
                .is_some_and(|&dimensions| dimensions > 0)
        }) {
            return;
        }
        if self.binds(start, end) {
            return;
        }
        self.demand(start, at, end);
    }

    /// True where the whole initialiser of a reference is this.
    fn binds(&self, start: usize, end: usize) -> bool {
        let reference = self.frames.last().is_some_and(|frame| frame.reference);
        reference
            && start > 0
            && (self.is(start - 1, "=") || self.is(start - 1, "(") || self.is(start - 1, "{"))
            && [";", ",", ")", "}"].iter().any(|mark| self.is(end, mark))
    }

    fn new_before(&self, mut at: usize) -> bool {
        while at > 0 && (self.tokens[at].kind == Kind::Word || self.is(at, "::")) {
            if self.is(at, "new") {
                return true;
            }
            at -= 1;
        }
        self.is(at, "new")
    }

    fn star(&mut self, at: usize) {
        if self.dropped(at) || !self.prefix(at) {
            return;
        }
        let mut operand = at + 1;
        while self.is(operand, "*") || self.is(operand, "const") {
            operand += 1;
        }
        let Some(next) = self.tokens.get(operand) else {
            return;
        };
        if [")", ">", ",", "]", ";"].iter().any(|mark| next.is(mark)) || next.is("this") {
            return;
        }
        if at > 0 && self.is(at - 1, "&") && self.prefix(at - 1) {
            return;
        }
        if self.is_address_of_variable(self.behind_cast(operand)) {
            return;
        }
        if let Some(name) = self.word(operand) {
            let plain = self.chain_end(operand + 1) == operand + 1;
            if plain
                && (self.to_locals.contains(name)
                    || self
                        .dimensions
                        .get(name)
                        .is_some_and(|&dimensions| dimensions > 1))
            {
                return;
            }
        }
        let end = self.operand_end(at + 1);
        if self.binds(at, end) {
            return;
        }
        // `(*p).x` and `(*p)[i]` begin at the parenthesis.
        let mut from = at;
        while from > 0
            && self.is(from - 1, "(")
            && self.open(from - 1).call.is_none()
            && !self.open(from - 1).control
        {
            from -= 1;
        }
        // A reference to the whole, or the address of a part, is an address.
        if from < at
            && self.other[from].is_some_and(|close| {
                let whole = self.chain_end(close + 1);
                from > 0 && self.is(from - 1, "&") && self.prefix(from - 1)
                    || self.binds(from, whole)
            })
        {
            return;
        }
        self.demand(from, end.saturating_sub(1).max(at), end);
    }

    /// Behind the operand of a prefix operator.
    fn operand_end(&self, mut at: usize) -> usize {
        while ["*", "&", "++", "--", "-", "+", "!", "~"]
            .iter()
            .any(|mark| self.is(at, mark))
        {
            at += 1;
        }
        if self.is(at, "(") {
            let Some(end) = self.other[at] else { return at };
            if self.is_cast(at, end) {
                return self.operand_end(end + 1);
            }
            return self.chain_end(end + 1);
        }
        if self.word(at).is_some() {
            let mut next = self.type_name(at).unwrap_or(at + 1);
            // `a < b`, not a template.
            if next > at + 1 && !self.is(next, "(") && !self.is(next - 1, ">") {
                next = at + 1;
            }
            return self.chain_end(next);
        }
        at + 1
    }

    fn arrow(&mut self, at: usize) {
        if self.dropped(at) || at == 0 || self.word(at + 1).is_none() || self.is(at + 2, "(") {
            return;
        }
        let start = self.chain_start(at);
        // A lambda's result type.
        if start > 0 && self.is(start - 1, "]") || start == at {
            return;
        }
        if start + 1 == at
            && (self.is(start, "this") || self.to_locals.contains(&self.tokens[start].text))
        {
            return;
        }
        let end = self.chain_end(at);
        let later = (at + 1..end).any(|later| self.is(later, "->") || self.is(later, "["));
        let address = self.addressed(self.wrapped(start, end));
        if !later && (address || self.binds(start, end)) {
            return;
        }
        let array = self.word(at + 1).is_some_and(|name| {
            self.dimensions
                .get(name)
                .is_some_and(|&dimensions| dimensions > 0)
        });
        if array && (end == at + 2 || self.is(at + 2, "[")) {
            return; // The subscript is the access.
        }
        self.demand(start, at, end);
    }

    /// A macro whose text has demands is one, on the line of its use.
    fn expand(&mut self, at: usize) {
        let token = &self.tokens[at];
        if self.depth > 8 || self.dropped(at) {
            return;
        }
        let Some(found) = self.text.find(&token.text, token.place.0) else {
            return;
        };
        if found.parameters.is_some() && !self.is(at + 1, "(") {
            return;
        }
        let body = found.body.clone();
        // What an assembly statement reads of its operands is its own.
        if body.iter().any(|token| token.is("asm")) {
            return;
        }
        let mut inner = Scanner::new(self.text, &body, self.depth + 1);
        inner.dimensions.extend(self.dimensions.clone());
        inner.to_locals.clone_from(&self.to_locals);
        inner.run();
        if inner.found.is_empty() || at > 0 && self.is(at - 1, "&") && self.prefix(at - 1) {
            return;
        }
        let end = self
            .other
            .get(at + 1)
            .copied()
            .flatten()
            .filter(|_| self.is(at + 1, "("))
            .unwrap_or(at);
        self.demand(at, end, end + 1);
        let line = token.place.0;
        if let Some(last) = self.found.last_mut() {
            last.from = last.from.min((line, 1));
            last.to = (self.tokens[end].place.0, u32::MAX);
            last.call = Some(line);
        }
    }
}

/// Dimensions of the arrays and pointers to arrays that a whole file declares outside of kernels.
fn dimensions(tokens: &[Token]) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for at in 1..tokens.len() {
        let token = &tokens[at];
        if token.kind != Kind::Word || KEYWORDS.contains(&token.text.as_str()) {
            continue;
        }
        let before = &tokens[at - 1];
        let typed = before.kind == Kind::Word && !KEYWORDS.contains(&before.text.as_str())
            || before.is(">");
        let pointer =
            at > 2 && before.is("*") && tokens[at - 2].is("(") && tokens[at - 3].kind == Kind::Word;
        let mut next = at + 1 + usize::from(pointer);
        let mut brackets = usize::from(pointer);
        while tokens.get(next).is_some_and(|token| token.is("[")) {
            brackets += 1;
            next = close(tokens, next) + 1;
        }
        let ends = tokens
            .get(next)
            .is_some_and(|next| [";", ",", "=", ")"].iter().any(|mark| next.is(mark)));
        if (typed || pointer) && ends && brackets > usize::from(pointer) {
            found.insert(token.text.clone(), brackets);
        }
    }
    found
}
