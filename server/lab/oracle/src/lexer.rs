//! The lexer: text to tokens with positions; removes comments and continuations, executes directives, expands macros.

use std::collections::HashMap;
use std::rc::Rc;

use crate::Error;

/// The most tokens that macro expansion may produce.
const MOST_WORDS: usize = 4_000_000;
/// Macros within macros, at most.
const DEEPEST: usize = 64;

/// The position of a token, both from 1; tokens of a macro have the position of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Byte in the line.
    pub column: u32,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    Name(Rc<str>),
    /// As written, with its suffix.
    Number(Rc<str>),
    Text,
    Char(u64),
    Sign(&'static str),
    End,
}

/// A token and its position.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) place: Position,
}

/// Longest first, so that the first that fits is the one.
const SIGNS: [&str; 49] = [
    "<<<", ">>>", "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&",
    "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::", "##", "+", "-", "*", "/", "%", "&",
    "|", "^", "~", "!", "<", ">", "=", "?", ":", ";", ",", ".", "(", ")", "[", "]", "{",
];

#[derive(Debug, Clone)]
struct Macro {
    /// `None`: takes none, not even an empty list.
    parameters: Option<Vec<Rc<str>>>,
    body: Vec<Token>,
}

/// The tokens of a text, with macros expanded.
///
/// # Errors
/// A directive or a letter that is not read.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Error> {
    let mut reader = Reader::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    let (mut line, mut start) = (1u32, 0usize);
    while at < bytes.len() {
        // One logical line: comments and strings may go on over several.
        let mut tokens = Vec::new();
        let mut directive = false;
        while let Some(&byte) = bytes.get(at) {
            let place = Position {
                line,
                column: (at - start) as u32 + 1,
            };
            match byte {
                b'\n' => {
                    at += 1;
                    line += 1;
                    start = at;
                    break;
                }
                b'\\' if matches!(bytes.get(at + 1), Some(b'\n')) => {
                    at += 2;
                    line += 1;
                    start = at;
                }
                b'\\' if bytes[at + 1..].starts_with(b"\r\n") => {
                    at += 3;
                    line += 1;
                    start = at;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => at += 1,
                b'/' if bytes.get(at + 1) == Some(&b'/') => {
                    while at < bytes.len() && bytes[at] != b'\n' {
                        at += 1;
                    }
                }
                b'/' if bytes.get(at + 1) == Some(&b'*') => {
                    at += 2;
                    while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                        if bytes[at] == b'\n' {
                            line += 1;
                            start = at + 1;
                        }
                        at += 1;
                    }
                    at = (at + 2).min(bytes.len());
                }
                b'#' if tokens.is_empty() && !directive => {
                    directive = true;
                    at += 1;
                }
                b'"' => {
                    at = quoted(bytes, at, b'"');
                    tokens.push(Token {
                        kind: TokenKind::Text,
                        place,
                    });
                }
                b'\'' => {
                    let end = quoted(bytes, at, b'\'');
                    let inner = bytes.get(at + 1..end.saturating_sub(1)).unwrap_or(b"");
                    let value = match inner {
                        [b'\\', b'n'] => 10,
                        [b'\\', b't'] => 9,
                        [b'\\', b'0'] => 0,
                        [b'\\', other] | [other] => u64::from(*other),
                        _ => 0,
                    };
                    tokens.push(Token {
                        kind: TokenKind::Char(value),
                        place,
                    });
                    at = end;
                }
                b'0'..=b'9' => at = number(text, at, place, &mut tokens),
                b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                    at = number(text, at, place, &mut tokens);
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => {
                    let from = at;
                    while at < bytes.len()
                        && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | b'$'))
                    {
                        at += 1;
                    }
                    tokens.push(Token {
                        kind: TokenKind::Name(text[from..at].into()),
                        place,
                    });
                }
                b'}' => {
                    at += 1;
                    tokens.push(Token {
                        kind: TokenKind::Sign("}"),
                        place,
                    });
                }
                b'#' => {
                    at += 1;
                    tokens.push(Token {
                        kind: TokenKind::Sign("##"),
                        place,
                    });
                }
                _ => {
                    let Some(sign) = SIGNS.iter().find(|s| bytes[at..].starts_with(s.as_bytes()))
                    else {
                        return Err(Error::new(place, "a letter that no kernel has"));
                    };
                    at += sign.len();
                    tokens.push(Token {
                        kind: TokenKind::Sign(sign),
                        place,
                    });
                }
            }
        }
        if directive {
            reader.directive(&tokens)?;
        } else if reader.active() {
            reader.pending.extend(tokens);
        }
    }
    reader.flush()?;
    let place = Position {
        line,
        column: (at - start) as u32 + 1,
    };
    reader.out.push(Token {
        kind: TokenKind::End,
        place,
    });
    Ok(reader.out)
}

fn quoted(bytes: &[u8], mut at: usize, mark: u8) -> usize {
    at += 1;
    while at < bytes.len() && bytes[at] != mark && bytes[at] != b'\n' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn number(text: &str, mut at: usize, place: Position, tokens: &mut Vec<Token>) -> usize {
    let bytes = text.as_bytes();
    let from = at;
    let hex = bytes[at] == b'0' && matches!(bytes.get(at + 1), Some(b'x' | b'X'));
    while at < bytes.len() {
        let byte = bytes[at];
        let exponent = matches!(bytes[at.saturating_sub(1)], b'e' | b'E') && !hex && at > from;
        if byte.is_ascii_alphanumeric()
            || byte == b'.'
            || (byte == b'\'' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
            || (exponent && matches!(byte, b'+' | b'-'))
        {
            at += 1;
        } else {
            break;
        }
    }
    tokens.push(Token {
        kind: TokenKind::Number(text[from..at].into()),
        place,
    });
    at
}

#[derive(Default)]
struct Reader {
    macros: HashMap<Rc<str>, Macro>,
    /// For each `#if` that is open: read now; some part of it was read already.
    conditions: Vec<(bool, bool)>,
    pending: Vec<Token>,
    out: Vec<Token>,
}

impl Reader {
    fn active(&self) -> bool {
        self.conditions.iter().all(|&(now, _)| now)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let pending = std::mem::take(&mut self.pending);
        let mut out = std::mem::take(&mut self.out);
        self.expand(&pending, None, &mut Vec::new(), &mut out)?;
        self.out = out;
        Ok(())
    }

    fn directive(&mut self, tokens: &[Token]) -> Result<(), Error> {
        let Some((head, rest)) = tokens.split_first() else {
            return Ok(());
        };
        let TokenKind::Name(name) = &head.kind else {
            return Ok(());
        };
        match &**name {
            "ifdef" | "ifndef" | "if" => {
                let holds = self.active() && self.holds(name, rest, head.place)?;
                self.conditions.push((holds, holds));
            }
            "elif" => {
                if let Some((_, done)) = self.conditions.pop() {
                    let holds = !done && self.active() && self.holds("if", rest, head.place)?;
                    self.conditions.push((holds, done || holds));
                }
            }
            "else" => {
                if let Some((_, done)) = self.conditions.pop() {
                    self.conditions.push((!done, true));
                }
            }
            "endif" => {
                self.conditions.pop();
            }
            "define" if self.active() => {
                self.flush()?;
                self.define(rest);
            }
            "undef" if self.active() => {
                self.flush()?;
                if let Some(TokenKind::Name(name)) = rest.first().map(|token| &token.kind) {
                    self.macros.remove(name);
                }
            }
            // Headers hold nothing that a kernel here needs; hints change nothing.
            _ => {}
        }
        Ok(())
    }

    fn holds(&self, kind: &str, rest: &[Token], place: Position) -> Result<bool, Error> {
        let defined = |token: Option<&Token>| match token.map(|token| &token.kind) {
            Some(TokenKind::Name(name)) => self.macros.contains_key(name),
            _ => false,
        };
        match (kind, rest) {
            ("ifdef", _) => Ok(defined(rest.first())),
            ("ifndef", _) => Ok(!defined(rest.first())),
            (_, [Token { kind: TokenKind::Number(text), .. }]) => Ok(&**text != "0"),
            (_, [Token { kind: TokenKind::Name(name), .. }, more @ ..]) if &**name == "defined" => {
                Ok(defined(more.iter().find(|token| matches!(token.kind, TokenKind::Name(_)))))
            }
            (_, [Token { kind: TokenKind::Sign("!"), .. }, more @ ..]) => {
                Ok(!self.holds("if", more, place)?)
            }
            (_, [Token { kind: TokenKind::Name(name), .. }]) => {
                Ok(self.macros.get(name).is_some_and(|found| {
                    !matches!(found.body.first().map(|token| &token.kind), Some(TokenKind::Number(text)) if &**text == "0")
                }))
            }
            _ => Err(Error::new(place, "a condition of the preprocessor that is not read")),
        }
    }

    fn define(&mut self, rest: &[Token]) {
        let Some((
            Token {
                kind: TokenKind::Name(name),
                place,
            },
            rest,
        )) = rest.split_first()
        else {
            return;
        };
        let touches = |token: &Token| {
            token.place.line == place.line && token.place.column == place.column + name.len() as u32
        };
        let (parameters, body) = match rest.split_first() {
            Some((open, more)) if open.kind == TokenKind::Sign("(") && touches(open) => {
                let close = more
                    .iter()
                    .position(|token| token.kind == TokenKind::Sign(")"))
                    .unwrap_or(more.len());
                let names = more[..close]
                    .iter()
                    .filter_map(|token| match &token.kind {
                        TokenKind::Name(name) => Some(name.clone()),
                        _ => None,
                    })
                    .collect();
                (Some(names), more.get(close + 1..).unwrap_or(&[]))
            }
            _ => (None, rest),
        };
        self.macros.insert(
            name.clone(),
            Macro {
                parameters,
                body: body.to_vec(),
            },
        );
    }

    fn expand(
        &self,
        tokens: &[Token],
        place: Option<Position>,
        within: &mut Vec<Rc<str>>,
        out: &mut Vec<Token>,
    ) -> Result<(), Error> {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            let here = place.unwrap_or(token.place);
            if out.len() > MOST_WORDS || within.len() > DEEPEST {
                return Err(Error::new(here, "macros make too much of this"));
            }
            if let TokenKind::Name(name) = &token.kind
                && !within.contains(name)
                && let Some(found) = self.macros.get(name)
            {
                let called = tokens
                    .get(at)
                    .is_some_and(|next| next.kind == TokenKind::Sign("("));
                match &found.parameters {
                    None => {
                        within.push(name.clone());
                        self.expand(&found.body, Some(here), within, out)?;
                        within.pop();
                        continue;
                    }
                    Some(parameters) if called => {
                        let (arguments, end) = arguments(tokens, at);
                        at = end;
                        let mut expanded = Vec::with_capacity(arguments.len());
                        for argument in arguments {
                            let mut own = Vec::new();
                            self.expand(argument, place, within, &mut own)?;
                            expanded.push(own);
                        }
                        let mut body = Vec::new();
                        for token in &found.body {
                            match &token.kind {
                                TokenKind::Name(name) => {
                                    match parameters.iter().position(|p| p == name) {
                                        Some(which) => body.extend(
                                            expanded.get(which).into_iter().flatten().cloned(),
                                        ),
                                        None => body.push(Token {
                                            place: here,
                                            ..token.clone()
                                        }),
                                    }
                                }
                                _ => body.push(Token {
                                    place: here,
                                    ..token.clone()
                                }),
                            }
                        }
                        within.push(name.clone());
                        self.expand(&body, None, within, out)?;
                        within.pop();
                        continue;
                    }
                    Some(_) => {}
                }
            }
            out.push(Token {
                place: here,
                ..token.clone()
            });
        }
        Ok(())
    }
}

/// The arguments of a macro call whose `(` is at `open`, and the index after it.
fn arguments(tokens: &[Token], open: usize) -> (Vec<&[Token]>, usize) {
    let mut found = Vec::new();
    let (mut depth, mut from) = (0usize, open + 1);
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::Sign("(" | "[" | "{") => depth += 1,
            TokenKind::Sign(")" | "]" | "}") => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    found.push(&tokens[from..at]);
                    return (found, at + 1);
                }
            }
            TokenKind::Sign(",") if depth == 1 => {
                found.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    (found, tokens.len())
}
