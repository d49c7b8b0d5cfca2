//! The text of inline assembly as PTX: instructions with their predicates and operands.
//!
//! In goes the assembler template; out come its statements in order. Nothing here knows what an instruction does.

/// Operands inside of operands, at most: a vector in the brackets of an address.
const MOST_DEPTH: u32 = 4;

/// Operators inside of each other in a constant, at most.
const MOST_OPERATORS: u32 = 16;

/// An operand as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand<'t> {
    /// `%3`.
    Placeholder(usize),
    /// `%[name]`.
    Symbol(&'t str),
    /// `%laneid`, `%tid.x`.
    Special(&'t str),
    /// A register that the assembly declares, a label.
    Name(&'t str),
    /// An integer.
    Number(i64),
    /// `{a, b}`.
    Vector(Vec<Operand<'t>>),
    /// `[base + offset]`, `[map, {x, y}]`.
    Memory {
        base: Box<Operand<'t>>,
        offset: Box<Operand<'t>>,
        coordinates: Vec<Operand<'t>>,
    },
    /// `value|predicate`.
    Pair(Box<Operand<'t>>, Box<Operand<'t>>),
    /// `!p`.
    Not(Box<Operand<'t>>),
    /// `_`, a number of floating point, and what has no meaning.
    Blank,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Instruction<'t> {
    /// The register that decides whether it is executed; false where it must not hold.
    pub(super) predicate: Option<(bool, Operand<'t>)>,
    /// `ld.global.v4.f32`.
    pub(super) mnemonic: &'t str,
    pub(super) operands: Vec<Operand<'t>>,
    /// All of it as written.
    pub(super) text: &'t str,
}

impl<'t> Instruction<'t> {
    /// The first word.
    pub(super) fn base(&self) -> &'t str {
        self.mnemonic.split('.').next().unwrap_or("")
    }

    /// The words behind the first.
    pub(super) fn suffixes(&self) -> impl DoubleEndedIterator<Item = &'t str> + Clone {
        let mut words = self.mnemonic.split('.');
        words.next();
        words
    }

    pub(super) fn has(&self, suffix: &str) -> bool {
        self.suffixes().any(|word| word == suffix)
    }

    /// The operands without the cache policy, which is the last one where the mnemonic says that there is one.
    pub(super) fn but_policy(&self) -> &[Operand<'t>] {
        match self.operands.split_last() {
            Some((_, others)) if self.has("L2::cache_hint") => others,
            _ => &self.operands,
        }
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Statement<'t> {
    /// `.reg .pred p, q;`: the type and the names.
    Registers(&'t str, Vec<&'t str>),
    /// `L:`.
    Label(&'t str),
    /// `{`: what is declared behind it is known up to its end.
    Opened,
    /// `}`.
    Closed,
    /// What the machine executes.
    Instruction(Instruction<'t>),
    /// What is none of these.
    Malformed(&'t str),
}

/// The text of one or more string literals, one behind the other, with their escapes read.
pub(super) fn unquoted(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(['"', '/']) {
        if rest[start..].starts_with("//") {
            rest = rest[start..].split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        if rest[start..].starts_with("/*") {
            rest = rest[start..].split_once("*/").map_or("", |(_, rest)| rest);
            continue;
        }
        if rest[start..].starts_with('/') {
            rest = &rest[start + 1..];
            continue;
        }
        let raw = rest[..start].ends_with('R');
        rest = &rest[start + 1..];
        if raw && let Some((delimiter, body)) = rest.split_once('(') {
            let end = format!("){delimiter}\"");
            let (inner, behind) = body.split_once(end.as_str()).unwrap_or((body, ""));
            out.push_str(inner);
            rest = behind;
            continue;
        }
        rest = literal(rest, &mut out);
    }
    out
}

/// Reads a literal behind its quotation mark; what comes after it.
fn literal<'t>(text: &'t str, out: &mut String) -> &'t str {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return &text[at + 1..],
            '\\' => match chars.next() {
                Some((_, 'n' | 'r')) => out.push('\n'),
                Some((_, 't' | 'v' | '\n')) => out.push(' '),
                Some((_, escaped)) => out.push(escaped),
                None => {}
            },
            c => out.push(c),
        }
    }
    ""
}

/// The text without its comments.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('/') {
        out.push_str(&rest[..start]);
        let comment = &rest[start..];
        rest = if comment.starts_with("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if comment.starts_with("/*") {
            out.push(' ');
            comment.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            out.push('/');
            &comment[1..]
        };
    }
    out.push_str(rest);
    out
}

/// The statements of a text without comments.
pub(super) fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut found = Vec::new();
    for mut part in text.split(';') {
        // Braces of a scope, and labels, stand in front of an instruction.
        loop {
            part = part.trim();
            let brace = match part.chars().next() {
                Some('{') => Some(Statement::Opened),
                Some('}') => Some(Statement::Closed),
                _ => None,
            };
            if let Some(brace) = brace {
                found.push(brace);
                part = &part[1..];
                continue;
            }
            let word = part
                .find(|c: char| !is_word(c))
                .map_or(part, |end| &part[..end]);
            match part[word.len()..].trim_start().strip_prefix(':') {
                Some(rest) if !word.is_empty() && !rest.starts_with(':') => {
                    found.push(Statement::Label(word));
                    part = rest;
                }
                _ => break,
            }
        }
        if !part.is_empty() {
            found.push(statement(part));
        }
    }
    found
}

fn statement(text: &str) -> Statement<'_> {
    if let Some(declared) = text.strip_prefix(".reg") {
        let declared = declared.trim_start();
        let end = declared.find(char::is_whitespace);
        let (ty, names) = declared.split_at(end.unwrap_or(declared.len()));
        let names = names.split(',').map(str::trim);
        return Statement::Registers(ty, names.filter(|name| !name.is_empty()).collect());
    }
    let (predicate, rest) = match text.strip_prefix('@') {
        Some(guarded) => {
            let guarded = guarded.trim_start();
            let end = guarded.find(char::is_whitespace).unwrap_or(guarded.len());
            let (register, rest) = guarded.split_at(end);
            let (holds, register) = match register.strip_prefix('!') {
                Some(register) => (false, register),
                None => (true, register),
            };
            (Some((holds, operand(register, 0))), rest.trim_start())
        }
        None => (None, text),
    };
    let end = rest
        .find(|c: char| !(is_word(c) || matches!(c, '.' | ':')))
        .unwrap_or(rest.len());
    let (mnemonic, operands) = rest.split_at(end);
    let starts_well = mnemonic.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts_well {
        return Statement::Malformed(text);
    }
    match list(operands, 0) {
        Some(operands) => Statement::Instruction(Instruction {
            predicate,
            mnemonic,
            operands,
            text,
        }),
        None => Statement::Malformed(text),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%')
}

/// Operands between commas; `None` where brackets do not match.
fn list(text: &str, depth: u32) -> Option<Vec<Operand<'_>>> {
    let mut found = Vec::new();
    let (mut open, mut start) = (0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' | '(' => open += 1,
            '}' | ']' | ')' => open -= 1,
            ',' if open == 0 => {
                found.push(operand(&text[start..at], depth));
                start = at + 1;
            }
            _ => {}
        }
        if open < 0 {
            return None;
        }
    }
    if open != 0 {
        return None;
    }
    let last = text[start..].trim();
    if !(last.is_empty() && found.is_empty()) {
        found.push(operand(last, depth));
    }
    Some(found)
}

fn operand(text: &str, depth: u32) -> Operand<'_> {
    let text = text.trim();
    if depth > MOST_DEPTH {
        return Operand::Blank;
    }
    if let Some(inner) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
        return list(inner, depth + 1).map_or(Operand::Blank, Operand::Vector);
    }
    // The end says that host and device have one address for it.
    let place = text.strip_suffix(".unified").unwrap_or(text);
    if let Some(inner) = place.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        return memory(inner, depth);
    }
    if let Some(inner) = text.strip_prefix('!') {
        return Operand::Not(Box::new(operand(inner, depth + 1)));
    }
    if let Some((value, predicate)) = text.split_once('|') {
        let (value, predicate) = (operand(value, depth + 1), operand(predicate, depth + 1));
        return Operand::Pair(Box::new(value), Box::new(predicate));
    }
    if let Some(name) = text.strip_prefix("%[").and_then(|t| t.strip_suffix(']')) {
        return Operand::Symbol(name);
    }
    if let Some(name) = text.strip_prefix('%') {
        let name = name.strip_prefix('%').unwrap_or(name);
        return match name.parse() {
            Ok(number) => Operand::Placeholder(number),
            Err(_) => Operand::Special(name),
        };
    }
    if let Some(value) = expression(text, 0) {
        return Operand::Number(value);
    }
    if text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$')) && text != "_"
    {
        return Operand::Name(text);
    }
    Operand::Blank
}

fn memory(inner: &str, depth: u32) -> Operand<'_> {
    let mut parts = list(inner, depth + 1).unwrap_or_default().into_iter();
    let first = inner.split(',').next().unwrap_or("").trim();
    // `+` and a sign may both stand there.
    let (base, offset) = match first.find('+') {
        // A number, or an operand that is one: `[%4 + %5]`.
        Some(at) => match operand(&first[at + 1..], depth + 1) {
            offset @ (Operand::Number(_) | Operand::Placeholder(_) | Operand::Symbol(_)) => {
                (operand(&first[..at], depth + 1), offset)
            }
            _ => (Operand::Blank, Operand::Number(0)),
        },
        None => (parts.next().unwrap_or(Operand::Blank), Operand::Number(0)),
    };
    if first.contains('+') {
        parts.next();
    }
    Operand::Memory {
        base: Box::new(base),
        offset: Box::new(offset),
        coordinates: parts.collect(),
    }
}

/// A constant expression: `4*8+16`, `(1<<3)-1`.
fn expression(text: &str, depth: u32) -> Option<i64> {
    if depth > MOST_OPERATORS {
        return None;
    }
    if let Some(value) = integer(text) {
        return Some(value);
    }
    // The operators that bind least first; of several the last one is applied last.
    for operators in [
        &["|"][..],
        &["^"],
        &["&"],
        &["<<", ">>"],
        &["+", "-"],
        &["*", "/", "%"],
    ] {
        if let Some((left, operator, right)) = parted(text, operators) {
            let (left, right) = (expression(left, depth + 1)?, expression(right, depth + 1)?);
            let by = u32::try_from(right);
            return match operator {
                "|" => Some(left | right),
                "^" => Some(left ^ right),
                "&" => Some(left & right),
                "<<" => left.checked_shl(by.ok()?),
                ">>" => left.checked_shr(by.ok()?),
                "+" => left.checked_add(right),
                "-" => left.checked_sub(right),
                "*" => left.checked_mul(right),
                "/" => left.checked_div(right),
                _ => left.checked_rem(right),
            };
        }
    }
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    expression(inner.trim(), depth + 1)
}

/// What is on both sides of the last of some operators outside of brackets.
fn parted<'t, 'o>(text: &'t str, operators: &[&'o str]) -> Option<(&'t str, &'o str, &'t str)> {
    let (mut open, mut found) = (0i32, None);
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        let operator = operators
            .iter()
            .find(|operator| text[at..].starts_with(**operator));
        let left = text[..at].trim_end();
        // A sign follows another operator or nothing.
        let is_operand = left.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ')');
        if let (0, Some(operator), true) = (open, operator, is_operand) {
            found = Some((left, *operator, text[at + operator.len()..].trim_start()));
        }
    }
    found
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits.trim_start()),
        None => (false, text),
    };
    let digits = digits.trim_end_matches('U');
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => digits.parse::<u64>().ok()? as i64,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_stand_one_behind_the_other_with_their_escapes() {
        let code = "\"ld.global.f32 %0, [%1];\\n\\t\" // a \"comment\"\n \"st.x;\" R\"(a \" b)\"";
        assert_eq!(unquoted(code), "ld.global.f32 %0, [%1];\n st.x;a \" b");
    }

    #[test]
    fn an_instruction_has_a_predicate_a_mnemonic_and_operands() {
        let text =
            "{ .reg .pred p, q; L1: @!p cp.async.cg.shared::cta.global [%0 + 16], [%1], 16; }";
        let found = statements(text);
        assert_eq!(found[0], Statement::Opened);
        assert_eq!(found[1], Statement::Registers(".pred", vec!["p", "q"]));
        assert_eq!(found[2], Statement::Label("L1"));
        assert_eq!(found[4], Statement::Closed);
        let Statement::Instruction(copy) = &found[3] else {
            panic!("{found:?}");
        };
        assert_eq!(copy.predicate, Some((false, Operand::Name("p"))));
        assert_eq!(copy.mnemonic, "cp.async.cg.shared::cta.global");
        assert_eq!(copy.operands.len(), 3);
        let to = Operand::Memory {
            base: Box::new(Operand::Placeholder(0)),
            offset: Box::new(Operand::Number(16)),
            coordinates: Vec::new(),
        };
        assert_eq!(copy.operands[0], to);
        assert_eq!(copy.operands[2], Operand::Number(16));
    }

    #[test]
    fn constants_are_computed() {
        for (text, value) in [
            ("4*8", Some(32)),
            ("-128", Some(-128)),
            ("16 + 4*(3-1)", Some(24)),
            ("20-8-4", Some(8)),
            ("(1<<3)-1", Some(7)),
            ("0x10/2%3", Some(2)),
            ("4 - -4", Some(8)),
            ("1/0", None),
            ("4*", None),
            ("a+1", None),
        ] {
            assert_eq!(expression(text, 0), value, "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(expression(&deep, 0), None);
    }

    #[test]
    fn a_tensor_has_coordinates() {
        let found = statements("cp.async.bulk.tensor.2d [%0], [%1, {%2, %3}], [%4];");
        let Statement::Instruction(copy) = &found[0] else {
            panic!("{found:?}");
        };
        let Operand::Memory { coordinates, .. } = &copy.operands[1] else {
            panic!("{copy:?}");
        };
        let both = vec![Operand::Placeholder(2), Operand::Placeholder(3)];
        assert_eq!(coordinates, &vec![Operand::Vector(both)]);
    }

    #[test]
    fn brackets_that_do_not_match_are_malformed() {
        for text in ["mov.u32 %0, {%1;", "ld.global.f32 %0, %1];", "= 3;", "@p;"] {
            let found = statements(text);
            assert!(
                matches!(found[0], Statement::Malformed(_)),
                "{text}: {found:?}"
            );
        }
    }
}
