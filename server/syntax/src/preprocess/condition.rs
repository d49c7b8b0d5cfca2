//! The expressions of `#if` and `#elif`, after macro expansion, and what would make them true.

use std::cell::Cell;

use crate::lexer::{self, Kind};

/// What an identifier left in a condition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// A macro that was not replaced (it takes arguments, or `defined` protects it).
    Defined,
    /// Certainly no macro.
    Absent,
    /// It is not known: counts as no macro.
    Open,
    /// Looked at as if defined to this value.
    Assumed(i64),
}

/// What a condition comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Whether the branch is taken, by the rules of C.
    pub(super) value: bool,
    /// The open names that it depends on; none where it is decided.
    pub(super) names: Vec<String>,
}

/// Deeper nesting than this is no condition.
const MAX_DEPTH: u32 = 100;

/// Evaluates an integer constant expression. The error is one line for the user.
pub(super) fn evaluate(text: &str, lookup: &dyn Fn(&str) -> Name) -> Result<Outcome, &'static str> {
    let mut reader = Reader {
        text,
        at: 0,
        kind: None,
        range: 0..0,
        lookup,
        names: Vec::new(),
        dead: 0,
        depth: 0,
    };
    reader.advance();
    let value = reader.comma()?;
    if reader.kind.is_some() {
        return Err("this condition has something left over at its end");
    }
    Ok(Outcome {
        value: value.bits != 0,
        names: reader.names,
    })
}

#[derive(Debug, Clone, Copy)]
struct Value {
    bits: i64,
    unsigned: bool,
    decided: bool,
}

impl Value {
    fn truth(truth: bool, decided: bool) -> Self {
        Self {
            bits: i64::from(truth),
            unsigned: false,
            decided,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The token in hand; `None` at the end.
    kind: Option<Kind>,
    range: std::ops::Range<usize>,
    lookup: &'a dyn Fn(&str) -> Name,
    names: Vec<String>,
    /// How many operands around this one are not evaluated: `0 && 1/0` is no error.
    dead: u32,
    depth: u32,
}

const UNREADABLE: &str = "this condition cannot be read as an integer expression";

impl Reader<'_> {
    fn advance(&mut self) {
        let bytes = self.text.as_bytes();
        let start = lexer::skip_blank(bytes, self.at);
        if start >= bytes.len() {
            self.kind = None;
            self.range = bytes.len()..bytes.len();
            return;
        }
        let (kind, end) = lexer::token(bytes, start);
        self.kind = Some(kind);
        self.range = start..end;
        self.at = end;
    }

    fn word(&self) -> &str {
        &self.text[self.range.clone()]
    }

    fn operator(&self) -> &str {
        match self.kind {
            Some(Kind::Other | Kind::Comma) => self.word(),
            // The spelled-out operators of C++.
            Some(Kind::Identifier) => match self.word() {
                "and" => "&&",
                "or" => "||",
                "not" => "!",
                "not_eq" => "!=",
                "bitand" => "&",
                "bitor" => "|",
                "xor" => "^",
                "compl" => "~",
                _ => "",
            },
            _ => "",
        }
    }

    fn comma(&mut self) -> Result<Value, &'static str> {
        let mut value = self.conditional()?;
        while self.kind == Some(Kind::Comma) {
            self.advance();
            value = self.conditional()?;
        }
        Ok(value)
    }

    fn conditional(&mut self) -> Result<Value, &'static str> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("this condition is nested too deeply");
        }
        let mark = self.names.len();
        let condition = self.binary(1)?;
        if self.operator() == "?" {
            self.advance();
            let taken = condition.bits != 0;
            let between = self.names.len();
            let first = self.maybe_dead(!taken, Self::comma)?;
            if self.operator() != ":" {
                return Err("this condition has a ? without its :");
            }
            self.advance();
            if condition.decided && !taken {
                self.names.truncate(between);
            }
            let middle = self.names.len();
            let second = self.maybe_dead(taken, Self::conditional)?;
            if condition.decided && taken {
                self.names.truncate(middle);
            }
            self.depth -= 1;
            let chosen = if taken { first } else { second };
            let same = first.decided && second.decided && first.bits == second.bits;
            let decided = same || (condition.decided && chosen.decided);
            if decided {
                self.names.truncate(mark);
            }
            return Ok(Value {
                bits: chosen.bits,
                unsigned: first.unsigned || second.unsigned,
                decided,
            });
        }
        self.depth -= 1;
        Ok(condition)
    }

    fn maybe_dead(
        &mut self,
        dead: bool,
        read: fn(&mut Self) -> Result<Value, &'static str>,
    ) -> Result<Value, &'static str> {
        self.dead += u32::from(dead);
        let value = read(self);
        self.dead -= u32::from(dead);
        value
    }

    fn binary(&mut self, least: u8) -> Result<Value, &'static str> {
        let mark = self.names.len();
        let mut left = self.unary()?;
        loop {
            let (level, operator) = precedence(self.operator());
            if level < least {
                return Ok(left);
            }
            self.advance();
            let before = self.names.len();
            if matches!(operator, "&&" | "||") {
                // The value that settles the matter alone.
                let settles = operator == "||";
                let left_true = left.bits != 0;
                self.dead += u32::from(left_true == settles);
                let right = self.binary(level + 1);
                self.dead -= u32::from(left_true == settles);
                let right = right?;
                let right_true = right.bits != 0;
                let decided = (left.decided && left_true == settles)
                    || (right.decided && right_true == settles)
                    || (left.decided && right.decided);
                if decided {
                    self.names.truncate(mark);
                } else if left.decided {
                    // What the left operand depended on is gone; what is left depends on the right one.
                    self.names.drain(mark..before);
                }
                let value = if settles {
                    left_true || right_true
                } else {
                    left_true && right_true
                };
                left = Value::truth(value, decided);
            } else {
                let right = self.binary(level + 1)?;
                left = self.apply(operator, left, right)?;
            }
        }
    }

    fn apply(&self, operator: &str, left: Value, right: Value) -> Result<Value, &'static str> {
        let decided = left.decided && right.decided;
        let unsigned = left.unsigned || right.unsigned;
        let (a, b) = (left.bits, right.bits);
        let (ua, ub) = (a as u64, b as u64);
        let order = if unsigned { ua.cmp(&ub) } else { a.cmp(&b) };
        let truth = match operator {
            "==" => Some(a == b),
            "!=" => Some(a != b),
            "<" => Some(order.is_lt()),
            "<=" => Some(order.is_le()),
            ">" => Some(order.is_gt()),
            ">=" => Some(order.is_ge()),
            _ => None,
        };
        if let Some(truth) = truth {
            return Ok(Value::truth(truth, decided));
        }
        let mut result_unsigned = unsigned;
        let bits = match operator {
            "+" => a.wrapping_add(b),
            "-" => a.wrapping_sub(b),
            "*" => a.wrapping_mul(b),
            "/" | "%" if b == 0 => {
                if self.dead == 0 && right.decided {
                    return Err("division by zero in this condition");
                }
                0
            }
            "/" if unsigned => (ua / ub) as i64,
            "%" if unsigned => (ua % ub) as i64,
            "/" => a.wrapping_div(b),
            "%" => a.wrapping_rem(b),
            "&" => a & b,
            "|" => a | b,
            "^" => a ^ b,
            "<<" | ">>" => {
                result_unsigned = left.unsigned;
                let backwards = !right.unsigned && b < 0;
                let distance = if backwards { b.unsigned_abs() } else { ub };
                let to_left = (operator == "<<") != backwards;
                shift(a, distance, to_left, left.unsigned)
            }
            _ => return Err(UNREADABLE),
        };
        Ok(Value {
            bits,
            unsigned: result_unsigned,
            decided,
        })
    }

    fn unary(&mut self) -> Result<Value, &'static str> {
        let mut operators = Vec::new();
        loop {
            match self.operator() {
                "!" => operators.push(b'!'),
                "~" => operators.push(b'~'),
                "-" => operators.push(b'-'),
                "+" => operators.push(b'+'),
                _ => break,
            }
            self.advance();
        }
        let mut value = self.primary()?;
        for operator in operators.into_iter().rev() {
            match operator {
                b'!' => value = Value::truth(value.bits == 0, value.decided),
                b'~' => value.bits = !value.bits,
                b'-' => value.bits = value.bits.wrapping_neg(),
                _ => {}
            }
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<Value, &'static str> {
        let known = |bits, unsigned| Value {
            bits,
            unsigned,
            decided: true,
        };
        match self.kind {
            Some(Kind::OpenParenthesis) => {
                self.advance();
                let value = self.comma()?;
                if self.kind != Some(Kind::CloseParenthesis) {
                    return Err("this condition has a ( without its )");
                }
                self.advance();
                Ok(value)
            }
            Some(Kind::Number) => {
                let (bits, unsigned) = integer(self.word()).ok_or(UNREADABLE)?;
                self.advance();
                Ok(known(bits, unsigned))
            }
            Some(Kind::Character) => {
                let bits = character(self.word()).ok_or(UNREADABLE)?;
                self.advance();
                Ok(known(bits, false))
            }
            Some(Kind::Identifier) => {
                if self.word() == "defined" {
                    return self.defined();
                }
                let name = self.word().to_owned();
                self.advance();
                if name == "true" || name == "false" {
                    return Ok(known(i64::from(name == "true"), false));
                }
                if self.kind == Some(Kind::OpenParenthesis) {
                    self.skip_parentheses()?;
                    // `__has_builtin` and the like: whatever is asked for, this is no compiler.
                    if is_feature_test(&name) {
                        return Ok(known(0, false));
                    }
                }
                Ok(match (self.lookup)(&name) {
                    Name::Defined | Name::Absent => known(0, false),
                    Name::Assumed(value) => known(value, false),
                    Name::Open => {
                        self.add(name);
                        Value::truth(false, false)
                    }
                })
            }
            None => Err("this condition is incomplete"),
            _ => Err(UNREADABLE),
        }
    }

    fn defined(&mut self) -> Result<Value, &'static str> {
        self.advance();
        let enclosed = self.kind == Some(Kind::OpenParenthesis);
        if enclosed {
            self.advance();
        }
        if self.kind != Some(Kind::Identifier) {
            return Err("defined needs a name");
        }
        let name = self.word().to_owned();
        self.advance();
        if enclosed {
            if self.kind != Some(Kind::CloseParenthesis) {
                return Err("this condition has a ( without its )");
            }
            self.advance();
        }
        Ok(match (self.lookup)(&name) {
            Name::Defined | Name::Assumed(_) => Value::truth(true, true),
            Name::Absent => Value::truth(false, true),
            Name::Open => {
                self.add(name);
                Value::truth(false, false)
            }
        })
    }

    fn add(&mut self, name: String) {
        self.names.push(name);
    }

    fn skip_parentheses(&mut self) -> Result<(), &'static str> {
        let mut depth = 0usize;
        loop {
            match self.kind {
                Some(Kind::OpenParenthesis) => depth += 1,
                Some(Kind::CloseParenthesis) => depth -= 1,
                None => return Err("this condition has a ( without its )"),
                _ => {}
            }
            self.advance();
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

/// Whether a name asks the compiler for something; such a name counts as defined.
pub(super) fn is_feature_test(name: &str) -> bool {
    matches!(
        name,
        "__has_attribute"
            | "__has_builtin"
            | "__has_constexpr_builtin"
            | "__has_cpp_attribute"
            | "__has_c_attribute"
            | "__has_declspec_attribute"
            | "__has_embed"
            | "__has_extension"
            | "__has_feature"
            | "__has_include"
            | "__has_include_next"
            | "__has_warning"
            | "__is_identifier"
    )
}

fn precedence(operator: &str) -> (u8, &'static str) {
    match operator {
        "*" => (10, "*"),
        "/" => (10, "/"),
        "%" => (10, "%"),
        "+" => (9, "+"),
        "-" => (9, "-"),
        "<<" => (8, "<<"),
        ">>" => (8, ">>"),
        "<" => (7, "<"),
        "<=" => (7, "<="),
        ">" => (7, ">"),
        ">=" => (7, ">="),
        "==" => (6, "=="),
        "!=" => (6, "!="),
        "&" => (5, "&"),
        "^" => (4, "^"),
        "|" => (3, "|"),
        "&&" => (2, "&&"),
        "||" => (1, "||"),
        _ => (0, ""),
    }
}

fn shift(value: i64, distance: u64, to_left: bool, unsigned: bool) -> i64 {
    if distance >= 64 {
        return if to_left || unsigned || value >= 0 {
            0
        } else {
            -1
        };
    }
    if to_left {
        value << distance
    } else if unsigned {
        ((value as u64) >> distance) as i64
    } else {
        value >> distance
    }
}

/// An integer literal and whether it is unsigned.
fn integer(text: &str) -> Option<(i64, bool)> {
    let text = text.replace('\'', "").to_ascii_lowercase();
    let digits = text.trim_end_matches(['u', 'l', 'z']);
    let suffix = &text[digits.len()..];
    if suffix.matches('u').count() > 1 || suffix.matches('l').count() > 2 {
        return None;
    }
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x', ..] => (&digits[2..], 16),
        [b'0', b'b', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for digit in digits.chars() {
        let digit = digit.to_digit(radix)?;
        value = value
            .wrapping_mul(u64::from(radix))
            .wrapping_add(u64::from(digit));
    }
    let unsigned = suffix.contains('u') || i64::try_from(value).is_err();
    Some((value as i64, unsigned))
}

/// A character constant; several characters count as a number of base 256.
fn character(text: &str) -> Option<i64> {
    let open = text.find('\'')?;
    let plain = open == 0;
    let inner = text[open + 1..].strip_suffix('\'')?;
    let mut value: i64 = 0;
    let mut count = 0;
    let mut rest = inner.chars().peekable();
    while let Some(next) = rest.next() {
        let code = if next == '\\' {
            match rest.next()? {
                'n' => 10,
                't' => 9,
                'r' => 13,
                'a' => 7,
                'b' => 8,
                'f' => 12,
                'v' => 11,
                'e' => 27,
                'x' => {
                    let mut code = 0i64;
                    while let Some(digit) = rest.peek().and_then(|next| next.to_digit(16)) {
                        code = code.wrapping_mul(16).wrapping_add(i64::from(digit));
                        rest.next();
                    }
                    code
                }
                digit @ '0'..='7' => {
                    let mut code = i64::from(digit.to_digit(8)?);
                    for _ in 0..2 {
                        if let Some(digit) = rest.peek().and_then(|next| next.to_digit(8)) {
                            code = code * 8 + i64::from(digit);
                            rest.next();
                        }
                    }
                    code
                }
                other => i64::from(u32::from(other)),
            }
        } else {
            i64::from(u32::from(next))
        };
        value = if plain {
            (value << 8) | (code & 0xff)
        } else {
            code
        };
        count += 1;
    }
    match count {
        0 => None,
        // A plain character is signed, several make an int.
        1 if plain => Some(i64::from(value as i8)),
        _ if plain => Some(i64::from(value as i32)),
        _ => Some(value),
    }
}

/// A condition whose outcome is open, or settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    Settled(bool),
    /// The text after macro expansion, and the names that it depends on.
    Open(String, Vec<String>),
}

/// The names that are looked at together, the values that are tried for each, the branches that come before, and
/// how many conditions are evaluated for one branch: beyond that, the set is not easy.
const MAX_NAMES: usize = 5;
const MAX_VALUES: usize = 10;
const MAX_EARLIER: usize = 60;
const MAX_TRIES: usize = 300;

/// Definitions under which all of `earlier` are false and `wanted` is true: as few as possible. `None` leaves a
/// name undefined. Nothing where no easy set is found, or where no evaluation is left in `budget`.
pub(super) fn assumptions(
    earlier: &[Question],
    wanted: &Question,
    lookup: &dyn Fn(&str) -> Name,
    budget: &Cell<usize>,
) -> Vec<(String, Option<String>)> {
    let granted = budget.get().min(MAX_TRIES);
    if granted == 0
        || earlier.len() > MAX_EARLIER
        || *wanted == Question::Settled(false)
        || earlier.contains(&Question::Settled(true))
    {
        return Vec::new();
    }
    let mut names: Vec<&str> = Vec::new();
    let mut values: Vec<i64> = vec![1];
    // The condition itself says best which values matter, then those next to it.
    for question in [wanted].into_iter().chain(earlier.iter().rev()) {
        let Question::Open(text, open) = question else {
            continue;
        };
        if names.len() > MAX_NAMES {
            return Vec::new();
        }
        for name in open {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        if values.len() >= MAX_VALUES {
            continue;
        }
        for literal in literals(text) {
            for value in [literal, literal.wrapping_add(1), literal.wrapping_sub(1)] {
                if value >= 0 && !values.contains(&value) && values.len() < MAX_VALUES {
                    values.push(value);
                }
            }
        }
    }
    if !values.contains(&0) {
        values.push(0);
    }
    if names.len() > MAX_NAMES {
        return Vec::new();
    }
    let left = Cell::new(granted);
    let holds = |chosen: &[Option<i64>]| {
        let with = |name: &str| match names.iter().position(|known| *known == name) {
            Some(index) => chosen[index].map_or(Name::Absent, Name::Assumed),
            None => lookup(name),
        };
        let is = |question: &Question, truth: bool| match question {
            Question::Settled(value) => *value == truth,
            Question::Open(text, _) => {
                left.set(left.get().saturating_sub(1));
                left.get() > 0
                    && evaluate(text, &with)
                        .is_ok_and(|outcome| outcome.value == truth && outcome.names.is_empty())
            }
        };
        is(wanted, true) && earlier.iter().all(|question| is(question, false))
    };
    let mut chosen = vec![None; names.len()];
    let found =
        (0..=names.len()).any(|count| choose(&mut chosen, 0, count, &values, &holds, &left));
    budget.set(budget.get() - (granted - left.get()));
    if !found {
        return Vec::new();
    }
    names
        .iter()
        .zip(chosen)
        .map(|(name, value)| ((*name).to_owned(), value.map(|value| value.to_string())))
        .collect()
}

/// Tries every way to give `count` of the names from `first` on one of the values.
fn choose(
    chosen: &mut [Option<i64>],
    first: usize,
    count: usize,
    values: &[i64],
    holds: &dyn Fn(&[Option<i64>]) -> bool,
    left: &Cell<usize>,
) -> bool {
    if count == 0 {
        return holds(chosen);
    }
    for index in first..chosen.len() {
        for &value in values {
            chosen[index] = Some(value);
            if choose(chosen, index + 1, count - 1, values, holds, left) {
                return true;
            }
        }
        chosen[index] = None;
        if left.get() == 0 {
            break;
        }
    }
    false
}

fn literals(text: &str) -> Vec<i64> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while found.len() < MAX_VALUES {
        at = lexer::skip_blank(bytes, at);
        if at >= bytes.len() {
            break;
        }
        let (kind, end) = lexer::token(bytes, at);
        if kind == Kind::Number
            && let Some((value, _)) = integer(&text[at..end])
        {
            found.push(value);
        }
        at = end;
    }
    found
}
