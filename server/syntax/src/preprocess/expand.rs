//! Macro expansion: from the name of a use to the tokens that replace it.
//!
//! Tokens are read from a stack of contexts, each what one macro expanded to; a macro whose context is on the
//! stack is not expanded again. Under the lowest context lies the buffer, from which only the arguments of a use
//! are read.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use super::macros::{BodyToken, Macro, Role, hash_name};
use super::state::{Abort, File, IN_FILE, IN_SCRATCH, MAX_REACH, Pass, Protect, Step, Token};
use super::{Problem, condition};
use crate::lexer::{self, Kind};

/// How much one use may write, in bytes.
const MAX_OUTPUT: usize = 256 << 10;
/// How many uses may be nested in one another's arguments: each takes room on the thread's stack.
const MAX_NESTING: u32 = 200;
/// How often a macro may come to too much before its uses are left alone.
const MAX_FAILURES: u8 = 3;

/// The arguments of a use: all tokens from `(` to `)`, and where in them each argument lies.
struct Arguments {
    tokens: Vec<Token>,
    ranges: Vec<Range<usize>>,
    /// The variadic one was left out altogether.
    omitted: bool,
}

/// What was written last.
struct Written {
    kind: Kind,
    /// Where it ended in the file, if it was copied from there.
    file_end: Option<usize>,
}

impl Pass<'_> {
    /// Replaces the use whose name is at `name`, or leaves it. The file's position moves past it.
    pub(super) fn expand_use(&mut self, file: &mut File<'_>, name: Range<usize>) {
        let hash = hash_name(&file.text.as_bytes()[name.clone()]);
        let hopeless = self
            .failures
            .get(&hash)
            .is_some_and(|&count| count >= MAX_FAILURES);
        if hopeless || !self.may_expand() {
            file.at = name.end;
            return;
        }
        self.flush(file, name.start);
        let rollback = (self.out.len(), self.map.len(), self.words.len());
        let expansion = &mut self.expansion;
        expansion.unwind(0);
        expansion.floor = 0;
        expansion.open.clear();
        expansion.held.clear();
        expansion.scratch.clear();
        expansion.spare.truncate(64);
        expansion.nesting = 0;
        expansion.steps = 0;
        expansion.start = name.start;
        expansion.first_end = name.end;
        expansion.frames = file.frames.len();
        expansion.checkpoint = None;
        expansion.condition = false;
        expansion.protect = Protect::Nothing;
        file.at = name.end;
        self.expansion.busy = true;
        self.expansion.kept = Some(rollback.0);
        let result = self.write_use(file, &name);
        self.expansion.busy = false;
        self.expansion.kept = None;
        self.work += self.expansion.steps + (file.at - name.end);
        let checkpoint = self.expansion.checkpoint.take();
        let abort = match result {
            Ok(last) => {
                self.finish_use(file, &name, rollback.0, rollback.1, last);
                return;
            }
            Err(abort) => abort,
        };
        self.expansion.unwind(0);
        self.out.truncate(rollback.0);
        self.map.truncate(rollback.1);
        self.words.truncate(rollback.2);
        let spelled = &file.text[name.clone()];
        let message = match abort {
            Abort::TooMuch => {
                *self.failures.entry(hash).or_default() += 1;
                format!("{spelled} expands to too much and is left as it is")
            }
            Abort::Unterminated => {
                format!("the arguments of {spelled} have no closing parenthesis")
            }
            Abort::Arguments => format!("{spelled} is not defined for this many arguments"),
        };
        if abort == Abort::TooMuch {
            file.at = self.expansion.first_end;
        } else {
            file.at = name.end;
            if let Some(checkpoint) = checkpoint {
                self.restore(file, checkpoint);
            }
        }
        let range = file.in_buffer(name);
        self.problem(range, message);
    }

    /// Writes what a use expands to; gives the kind of its last token.
    fn write_use(&mut self, file: &mut File<'_>, name: &Range<usize>) -> Result<Kind, Abort> {
        let mut first = self.expansion.fresh();
        first.push(Token {
            owner: IN_FILE,
            start: name.start as u32,
            end: name.end as u32,
            kind: Kind::Identifier,
            space: false,
            fixed: false,
        });
        self.expansion.push(first, None)?;
        let start = self.out.len();
        let mut written = Written {
            kind: Kind::Other,
            file_end: None,
        };
        while let Some(token) = self.next_expanded(file)? {
            self.write(file, name, &token, &mut written, start);
            if self.out.len() - start > MAX_OUTPUT {
                return Err(Abort::TooMuch);
            }
        }
        Ok(written.kind)
    }

    /// Ends a use that was written from `start` of the output on.
    fn finish_use(
        &mut self,
        file: &mut File<'_>,
        name: &Range<usize>,
        start: usize,
        first_segment: usize,
        kind: Kind,
    ) {
        let bytes = file.text.as_bytes();
        let spanned = lexer::newlines(&bytes[name.start..file.at]);
        let written = lexer::newlines(&self.out.as_bytes()[start..]);
        let end = self.out.len();
        for _ in written..spanned {
            self.out.push('\n');
        }
        if let (Some(&last), Some(&next)) = (self.out.as_bytes().last(), bytes.get(file.at))
            && lexer::glue(kind, last, next)
        {
            self.out.push(' ');
        }
        if self.out.len() > end {
            self.map.collapsed(end, name.clone());
        }
        // The stretches of this use were made before its end was known.
        self.map.close_use(first_segment, file.at);
        file.copied = file.at;
    }

    fn write(
        &mut self,
        file: &File<'_>,
        name: &Range<usize>,
        token: &Token,
        written: &mut Written,
        start: usize,
    ) {
        let place = name.start..name.end;
        if token.kind == Kind::Placemarker {
            return;
        }
        let at = self.out.len();
        if token.kind == Kind::Pragma {
            let text = self.expansion.text(file, token);
            let _ = write!(self.out, "\n#pragma {text}\n");
            self.map.collapsed(at, place);
            written.kind = Kind::Other;
            written.file_end = None;
            return;
        }
        let in_file = token.owner == IN_FILE;
        let bytes = file.text.as_bytes();
        let mut from = token.start as usize;
        match written.file_end {
            Some(end)
                if in_file
                    && end <= from
                    && bytes[end..from]
                        .iter()
                        .all(|&byte| byte == b' ' || byte == b'\t') =>
            {
                from = end;
            }
            _ => {
                let text = self.expansion.text(file, token);
                let space = match (self.out.as_bytes().last(), text.as_bytes().first()) {
                    (Some(b'\n') | None, _) => false,
                    (Some(&last), Some(&first)) => {
                        (token.space && at > start && last != b' ')
                            || lexer::glue(written.kind, last, first)
                    }
                    _ => false,
                };
                if space {
                    self.map.collapsed(at, place.clone());
                    self.out.push(' ');
                }
            }
        }
        let at = self.out.len();
        if in_file {
            self.map.verbatim(at, from);
        } else {
            self.map.collapsed(at, place);
        }
        if token.kind == Kind::Word {
            // What is between this word and the token before it, if that was copied.
            if in_file {
                let end = from.max(token.start as usize);
                self.out.push_str(&file.text[from..end]);
            }
            self.write_word(file, token);
        } else if in_file {
            self.out.push_str(&file.text[from..token.end as usize]);
        } else {
            self.out.push_str(self.expansion.text(file, token));
        }
        written.kind = token.kind;
        written.file_end = in_file.then_some(token.end as usize);
    }

    /// Writes spaces for a word, and remembers it.
    fn write_word(&mut self, file: &File<'_>, token: &Token) {
        let text = self.expansion.text(file, token);
        let (word, argument) = match text.split_once('(') {
            Some((word, rest)) => (word, rest.strip_suffix(')').unwrap_or(rest)),
            None => (text, ""),
        };
        let Some(&(name, _)) = self.options_words.get(word) else {
            return;
        };
        let start = self.out.len();
        let length = word.len();
        let argument = argument.to_owned();
        self.out.extend(std::iter::repeat_n(' ', length));
        self.words.push(super::Word {
            range: start..start + length,
            name,
            argument,
        });
    }

    /// The expansion of a piece of text on its own, on one line. `None` where it comes to too much.
    pub(super) fn expand_text(
        &mut self,
        file: &mut File<'_>,
        text: &str,
        condition: bool,
    ) -> Option<String> {
        if !self.may_expand() {
            return None;
        }
        if !self.expansion.busy {
            self.expansion.steps = 0;
            self.expansion.nesting = 0;
            self.expansion.floor = 0;
            self.expansion.held.clear();
            self.expansion.scratch.clear();
        }
        let before = self.expansion.steps;
        let bytes = text.as_bytes();
        let base = self.expansion.scratch.len();
        self.expansion.scratch.push_str(text);
        let mut tokens = self.expansion.fresh();
        let mut at = 0;
        loop {
            let start = lexer::skip_blank(bytes, at);
            if start >= bytes.len() {
                break;
            }
            let (kind, end) = lexer::token(bytes, start);
            tokens.push(Token {
                owner: IN_SCRATCH,
                start: (base + start) as u32,
                end: (base + end) as u32,
                kind,
                space: start > at && at > 0,
                fixed: false,
            });
            at = end;
        }
        let busy = std::mem::replace(&mut self.expansion.busy, true);
        let outer = std::mem::replace(&mut self.expansion.condition, condition);
        let outer_protect = std::mem::replace(&mut self.expansion.protect, Protect::Nothing);
        let expanded = self.expand_tokens(file, tokens);
        self.expansion.busy = busy;
        self.expansion.condition = outer;
        self.expansion.protect = outer_protect;
        self.work += self.expansion.steps - before;
        let expanded = expanded.ok()?;
        let spelled = self.spell(file, &expanded);
        (spelled.len() <= MAX_OUTPUT).then_some(spelled)
    }

    /// The text of tokens, on one line.
    fn spell(&self, file: &File<'_>, tokens: &[Token]) -> String {
        let mut result = String::new();
        let mut before = Kind::Other;
        for token in tokens {
            if matches!(token.kind, Kind::Placemarker | Kind::Pragma) {
                continue;
            }
            let text = self.expansion.text(file, token);
            if let (Some(&last), Some(&first)) = (result.as_bytes().last(), text.as_bytes().first())
                && (token.space || lexer::glue(before, last, first))
            {
                result.push(' ');
            }
            result.push_str(text);
            before = token.kind;
        }
        result
    }

    /// Expands tokens as if nothing followed them.
    fn expand_tokens(
        &mut self,
        file: &mut File<'_>,
        tokens: Vec<Token>,
    ) -> Result<Vec<Token>, Abort> {
        if self.expansion.nesting >= MAX_NESTING {
            return Err(Abort::TooMuch);
        }
        let below = self.expansion.contexts.len();
        let floor = std::mem::replace(&mut self.expansion.floor, below);
        self.expansion.nesting += 1;
        let mut expanded = self.expansion.fresh();
        let mut result = self.expansion.push(tokens, None);
        while result.is_ok() {
            match self.next_expanded(file) {
                Ok(Some(token)) => expanded.push(token),
                Ok(None) => break,
                Err(abort) => result = Err(abort),
            }
        }
        self.expansion.unwind(below);
        self.expansion.nesting -= 1;
        self.expansion.floor = floor;
        result.map(|()| expanded)
    }

    /// The next token that needs no further expansion; `None` where the contexts end.
    fn next_expanded(&mut self, file: &mut File<'_>) -> Result<Option<Token>, Abort> {
        loop {
            self.expansion.pop_finished();
            if self.expansion.contexts.len() <= self.expansion.floor {
                return Ok(None);
            }
            let Some(mut token) = self.read(file)? else {
                return Ok(None);
            };
            let before = self.expansion.protect;
            if before != Protect::Nothing {
                self.protect(file, &token);
                // The last token that is protected still is: the name, or the parenthesis.
                if self.expansion.protect != Protect::Nothing || before == Protect::Defined {
                    return Ok(Some(token));
                }
            }
            if token.kind != Kind::Identifier || token.fixed {
                return Ok(Some(token));
            }
            let text = self.expansion.text(file, &token);
            let hash = hash_name(text.as_bytes());
            if self.expansion.condition {
                let protect = match text {
                    "defined" => Protect::Defined,
                    "__has_include" | "__has_include_next" => Protect::Include,
                    _ => Protect::Nothing,
                };
                if protect != Protect::Nothing {
                    self.expansion.protect = protect;
                    return Ok(Some(token));
                }
            }
            let definition = self.macros.lookup(hash, text).map(Arc::clone);
            self.noted(hash);
            let Some(definition) = definition else {
                if self.extra.may_have(hash)
                    && let Some(made) = self.expand_special(file, &token)?
                {
                    return Ok(Some(made));
                }
                return Ok(Some(token));
            };
            if self.expansion.open.contains(&hash) {
                token.fixed = true;
                return Ok(Some(token));
            }
            if definition.parameters.is_some() && !self.parenthesis_follows(file) {
                return Ok(Some(token));
            }
            if !self.enter(file, &token, &definition)? {
                token.fixed = true;
                return Ok(Some(token));
            }
        }
    }

    /// Follows the tokens of a condition that are not to be expanded.
    fn protect(&mut self, file: &File<'_>, token: &Token) {
        let expansion = &mut self.expansion;
        expansion.protect = match (expansion.protect, token.kind) {
            (Protect::Defined, Kind::OpenParenthesis) => Protect::Defined,
            (Protect::Include, Kind::OpenParenthesis) => Protect::Include,
            (Protect::Include, Kind::String) => Protect::Path,
            (Protect::Include, Kind::Other) if expansion.text(file, token).starts_with('<') => {
                Protect::Path
            }
            (Protect::Path, kind) if kind != Kind::CloseParenthesis => Protect::Path,
            _ => Protect::Nothing,
        };
    }

    /// The next token as it is: from the contexts, then from the buffer.
    fn read(&mut self, file: &mut File<'_>) -> Result<Option<Token>, Abort> {
        self.expansion.spend(1)?;
        self.expansion.pop_finished();
        if self.expansion.contexts.len() > self.expansion.floor {
            return Ok(self.expansion.contexts.last_mut().and_then(|context| {
                context.at += 1;
                context.tokens.get(context.at - 1).copied()
            }));
        }
        if self.expansion.nesting > 0 {
            return Ok(None);
        }
        self.read_file(file).map(Some)
    }

    /// The next token of the buffer, among the arguments of a use.
    fn read_file(&mut self, file: &mut File<'_>) -> Result<Token, Abort> {
        let bytes = file.text.as_bytes();
        let mut space = false;
        loop {
            if file.at >= file.limit || file.at - self.expansion.start > MAX_REACH {
                return Err(Abort::Unterminated);
            }
            let byte = bytes[file.at];
            if byte == b'\n' {
                space = true;
                file.at += 1;
                if let Some(hash) = lexer::directive_on_line(bytes, file.at)
                    && let Some(pragma) = self.directive_among_arguments(file, hash)?
                {
                    return Ok(pragma);
                }
            } else if lexer::is_horizontal(byte) {
                space = true;
                file.at += 1;
            } else if let Some(end) = lexer::comment_end(bytes, file.at) {
                space = true;
                file.at = end;
            } else if let Some(end) = lexer::splice(bytes, file.at) {
                file.at = end;
            } else {
                let (kind, end) = lexer::token(bytes, file.at);
                let token = Token {
                    owner: IN_FILE,
                    start: file.at as u32,
                    end: end as u32,
                    kind,
                    space,
                    fixed: false,
                };
                file.at = end;
                return Ok(token);
            }
        }
    }

    /// Obeys a directive that is among the arguments of a use; a pragma becomes a token.
    fn directive_among_arguments(
        &mut self,
        file: &mut File<'_>,
        hash: usize,
    ) -> Result<Option<Token>, Abort> {
        let closes = matches!(
            file.directive_name(hash),
            "else" | "elif" | "elifdef" | "elifndef" | "endif"
        );
        if closes && file.frames.len() <= self.expansion.frames {
            return Err(Abort::Unterminated);
        }
        if self.expansion.checkpoint.is_none() {
            self.expansion.checkpoint = Some(self.save(file));
        }
        match self.directive(file, hash) {
            Step::Blank(end) | Step::Splice { end, .. } => {
                file.at = end;
                Ok(None)
            }
            Step::Pragma { end, .. } => {
                let line = file.text[hash + 1..end].trim_start();
                let line = line.strip_prefix("pragma").unwrap_or(line).trim();
                let token = self.make_pragma(file, line);
                file.at = end;
                Ok(Some(token))
            }
        }
    }

    /// Whether the next token is an opening parenthesis. Macros that end before it are closed.
    fn parenthesis_follows(&mut self, file: &File<'_>) -> bool {
        self.expansion.pop_finished();
        if self.expansion.contexts.len() > self.expansion.floor {
            return self.expansion.contexts.last().is_some_and(|context| {
                context
                    .tokens
                    .get(context.at)
                    .is_some_and(|token| token.kind == Kind::OpenParenthesis)
            });
        }
        self.expansion.nesting == 0 && file.parenthesis_at(file.at).is_some()
    }

    /// Opens the context of a macro. `false` if its arguments do not fit: then they are read again as they stand.
    fn enter(
        &mut self,
        file: &mut File<'_>,
        token: &Token,
        definition: &Arc<Macro>,
    ) -> Result<bool, Abort> {
        let owner = self.expansion.hold(definition);
        let mut tokens = self.expansion.fresh();
        if definition.parameters.is_some() {
            let Some(arguments) = self.arguments(file, token, definition)? else {
                return Ok(false);
            };
            if self.is_first(token) {
                self.expansion.first_end = file.at;
            }
            self.substitute(file, definition, owner, &arguments, &mut tokens)?;
            let mut used = arguments.tokens;
            used.clear();
            self.expansion.spare.push(used);
        } else {
            self.substitute(file, definition, owner, &NO_ARGUMENTS, &mut tokens)?;
        }
        if let Some(first) = tokens.first_mut() {
            first.space = token.space;
        }
        self.expansion.push(tokens, Some(definition.hash))?;
        Ok(true)
    }

    /// Whether a token is the name of the use in the buffer.
    fn is_first(&self, token: &Token) -> bool {
        token.owner == IN_FILE && token.start as usize == self.expansion.start
    }

    /// Reads the arguments of a use, from its `(` to its `)`. `None` if they do not fit: then they are read
    /// again as they stand.
    fn arguments(
        &mut self,
        file: &mut File<'_>,
        name: &Token,
        definition: &Macro,
    ) -> Result<Option<Arguments>, Abort> {
        let mut arguments = Arguments {
            tokens: self.expansion.fresh(),
            ranges: Vec::new(),
            omitted: false,
        };
        let Some(parameters) = &definition.parameters else {
            return Ok(None);
        };
        let count = parameters.names.len();
        let (mut depth, mut braces) = (0usize, 0usize);
        let mut start = 1;
        let complete = loop {
            let Some(token) = self.read(file)? else {
                break false;
            };
            arguments.tokens.push(token);
            let last = arguments.tokens.len() - 1;
            match token.kind {
                Kind::OpenParenthesis => depth += 1,
                Kind::CloseParenthesis if depth == 1 => {
                    arguments.ranges.push(start..last);
                    break true;
                }
                Kind::CloseParenthesis => depth -= 1,
                Kind::Comma
                    if depth == 1
                        && !(parameters.variadic && arguments.ranges.len() + 1 >= count) =>
                {
                    arguments.ranges.push(start..last);
                    start = last + 1;
                }
                Kind::OpenBrace => braces += 1,
                // What closes more than was opened here belongs to the code around: half-typed.
                Kind::CloseBrace
                    if braces == 0 && token.owner == IN_FILE && self.expansion.nesting == 0 =>
                {
                    return Err(Abort::Unterminated);
                }
                Kind::CloseBrace => braces = braces.saturating_sub(1),
                _ => {}
            }
        };
        let given = arguments.ranges.len();
        let empty = given == 1 && arguments.ranges[0].is_empty();
        if complete && count == 0 && empty {
            arguments.ranges.clear();
            return Ok(Some(arguments));
        }
        if complete && parameters.variadic && given + 1 == count {
            let end = arguments.tokens.len() - 1;
            arguments.ranges.push(end..end);
            arguments.omitted = true;
            return Ok(Some(arguments));
        }
        if complete && given == count {
            arguments.omitted = parameters.variadic && count == 1 && empty;
            return Ok(Some(arguments));
        }
        if complete && self.is_first(name) {
            return Err(Abort::Arguments);
        }
        self.expansion.push(arguments.tokens, None)?;
        Ok(None)
    }

    /// Puts the arguments into a body.
    fn substitute(
        &mut self,
        file: &mut File<'_>,
        definition: &Macro,
        owner: u32,
        arguments: &Arguments,
        result: &mut Vec<Token>,
    ) -> Result<(), Abort> {
        let body = definition.tokens();
        self.expansion.spend(body.len() + 1)?;
        let mut expanded: Vec<Option<Vec<Token>>> = Vec::new();
        expanded.resize_with(arguments.ranges.len(), || None);
        let variadic = definition
            .parameters
            .as_ref()
            .filter(|list| list.variadic)
            .map(|list| list.names.len() - 1);
        // The index in `result` of the token that the next one is pasted to.
        let mut paste = false;
        let mut index = 0;
        while let Some(part) = body.get(index) {
            index += 1;
            let before = result.len();
            match part.role {
                Role::Paste => {
                    paste = true;
                    continue;
                }
                Role::Optional(close) => {
                    let present = match variadic {
                        Some(last) => {
                            self.expand_argument(file, arguments, last, &mut expanded)?;
                            expanded[last].as_ref().is_some_and(|tokens| {
                                tokens.iter().any(|token| token.kind != Kind::Placemarker)
                            })
                        }
                        None => false,
                    };
                    if present {
                        continue;
                    }
                    index = close as usize + 1;
                    result.push(placemarker(part.space));
                }
                Role::OptionalEnd => continue,
                Role::Plain => result.push(Token {
                    owner,
                    start: part.start,
                    end: part.end,
                    kind: part.kind,
                    space: part.space,
                    fixed: false,
                }),
                Role::Stringified(parameter) => {
                    let range = arguments.ranges[usize::from(parameter)].clone();
                    let token = self.stringify(file, &arguments.tokens[range])?;
                    result.push(Token {
                        space: part.space,
                        ..token
                    });
                }
                Role::Parameter(parameter) => {
                    let parameter = usize::from(parameter);
                    let pasted = paste || body.get(index).is_some_and(is_paste);
                    let argument = if pasted {
                        &arguments.tokens[arguments.ranges[parameter].clone()]
                    } else {
                        self.expand_argument(file, arguments, parameter, &mut expanded)?;
                        expanded[parameter].as_deref().unwrap_or_default()
                    };
                    self.expansion.spend(argument.len())?;
                    // After a comma, a variadic argument is not pasted; left out, it takes the comma with it.
                    if paste
                        && Some(parameter) == variadic
                        && result.last().is_some_and(|last| last.kind == Kind::Comma)
                    {
                        paste = false;
                        if arguments.omitted {
                            result.pop();
                            result.push(placemarker(false));
                            continue;
                        }
                    }
                    let before = result.len();
                    result.extend_from_slice(argument);
                    match result.get_mut(before) {
                        // On the right of a paste it keeps its own, for the case that they stay apart.
                        Some(_) if paste => {}
                        Some(first) => first.space = part.space,
                        None => result.push(placemarker(part.space)),
                    }
                }
            }
            if paste && before > 0 {
                self.paste(file, result, before);
            }
            paste = false;
        }
        drop_placemarkers(result);
        Ok(())
    }

    fn expand_argument(
        &mut self,
        file: &mut File<'_>,
        arguments: &Arguments,
        index: usize,
        expanded: &mut [Option<Vec<Token>>],
    ) -> Result<(), Abort> {
        if expanded[index].is_none() {
            let mut tokens = self.expansion.fresh();
            tokens.extend_from_slice(&arguments.tokens[arguments.ranges[index].clone()]);
            expanded[index] = Some(self.expand_tokens(file, tokens)?);
        }
        Ok(())
    }

    /// Makes one token of the two that meet before `at` in `tokens`; leaves them where they make none.
    fn paste(&mut self, file: &File<'_>, tokens: &mut Vec<Token>, at: usize) {
        let (left, right) = (tokens[at - 1], tokens[at]);
        if right.kind == Kind::Placemarker {
            tokens.remove(at);
            return;
        }
        if left.kind == Kind::Placemarker {
            tokens[at].space = left.space;
            tokens.remove(at - 1);
            return;
        }
        let mut text = self.expansion.text(file, &left).to_owned();
        text.push_str(self.expansion.text(file, &right));
        // Long names that double and double again cost what they are long.
        self.expansion.steps += text.len() / 8;
        let comment = lexer::comment_end(text.as_bytes(), 0).is_some();
        let (kind, end) = lexer::token(text.as_bytes(), 0);
        if comment || end != text.len() {
            return;
        }
        let token = self.expansion.make(kind, &text);
        tokens[at - 1] = Token {
            space: left.space,
            ..token
        };
        tokens.remove(at);
    }

    fn stringify(&mut self, file: &File<'_>, tokens: &[Token]) -> Result<Token, Abort> {
        let mut text = String::from("\"");
        for (index, token) in tokens.iter().enumerate() {
            if index > 0 && token.space {
                text.push(' ');
            }
            let literal = matches!(token.kind, Kind::String | Kind::Character);
            for part in self.expansion.text(file, token).chars() {
                if literal && matches!(part, '"' | '\\') {
                    text.push('\\');
                }
                if part == '\n' {
                    text.push_str("\\n");
                } else {
                    text.push(part);
                }
            }
        }
        text.push('"');
        self.expansion.spend(text.len() / 8 + tokens.len())?;
        Ok(self.expansion.make(Kind::String, &text))
    }

    /// What is defined without a directive: `__LINE__` and the like, `_Pragma`, and the
    /// words that the grammar lacks.
    fn expand_special(
        &mut self,
        file: &mut File<'_>,
        token: &Token,
    ) -> Result<Option<Token>, Abort> {
        let text = self.expansion.text(file, token).to_owned();
        let made = match text.as_str() {
            "__LINE__" => {
                let line = file.line_of(self.expansion.start).to_string();
                self.expansion.make(Kind::Number, &line)
            }
            "__COUNTER__" => {
                let count = self.counter.to_string();
                self.counter += 1;
                self.expansion.make(Kind::Number, &count)
            }
            "__FILE__" | "__BASE_FILE__" => {
                let path = file.path.replace('\\', "\\\\").replace('"', "\\\"");
                self.expansion.make(Kind::String, &format!("\"{path}\""))
            }
            "__DATE__" => self.expansion.make(Kind::String, "\"Jan  1 1970\""),
            "__TIME__" => self.expansion.make(Kind::String, "\"00:00:00\""),
            "_Pragma" => match self.special_argument(file)? {
                Some(argument) => {
                    let argument = destringify(&argument);
                    self.make_pragma(file, &argument)
                }
                None => return Ok(None),
            },
            word => match self.options_words.get(word) {
                Some((_, false)) => Token {
                    kind: Kind::Word,
                    ..*token
                },
                Some((_, true)) if !self.expansion.condition => {
                    match self.special_argument(file)? {
                        Some(argument) => self
                            .expansion
                            .make(Kind::Word, &format!("{text}({argument})")),
                        None => return Ok(None),
                    }
                }
                _ => return Ok(None),
            },
        };
        Ok(Some(Token {
            space: token.space,
            fixed: true,
            ..made
        }))
    }

    /// The expanded text between the parentheses that follow, if they close before a semicolon or brace. Nothing
    /// is read otherwise.
    fn special_argument(&mut self, file: &mut File<'_>) -> Result<Option<String>, Abort> {
        if !self.parenthesis_follows(file) {
            return Ok(None);
        }
        let position = file.at;
        let mut tokens = self.expansion.fresh();
        let mut from_contexts = 0;
        let mut depth = 0usize;
        let complete = loop {
            let token = match self.read(file) {
                Ok(Some(token)) => token,
                Err(Abort::TooMuch) => return Err(Abort::TooMuch),
                Ok(None) | Err(_) => break false,
            };
            tokens.push(token);
            if file.at == position {
                from_contexts = tokens.len();
            }
            match token.kind {
                Kind::OpenParenthesis => depth += 1,
                Kind::CloseParenthesis => depth -= 1,
                Kind::OpenBrace | Kind::CloseBrace => break false,
                Kind::Other if self.expansion.text(file, &token) == ";" => break false,
                _ => {}
            }
            if depth == 0 {
                break true;
            }
        };
        if !complete {
            self.work += file.at - position;
            file.at = position;
            tokens.truncate(from_contexts);
            self.expansion.push(tokens, None)?;
            return Ok(None);
        }
        tokens.pop();
        tokens.remove(0);
        let expanded = self.expand_tokens(file, tokens)?;
        let argument = self.spell(file, &expanded);
        self.expansion.spend(argument.len() / 8)?;
        Ok(Some(argument))
    }

    /// A token for a pragma's line; what counts in `unroll` is expanded.
    fn make_pragma(&mut self, file: &mut File<'_>, line: &str) -> Token {
        let line = line.replace(['\n', '\r'], " ");
        let kept = super::state::pragma_head(&line);
        let text = match kept {
            Some(kept) => {
                let rest = self
                    .expand_text(file, &line[kept..], false)
                    .unwrap_or_else(|| line[kept..].to_owned());
                format!("{} {rest}", line[..kept].trim_end())
            }
            None => line,
        };
        self.expansion.make(Kind::Pragma, text.trim())
    }

    /// Whether there is work left for macros in this text.
    fn may_expand(&mut self) -> bool {
        if self.work <= self.max_work && self.out.len() <= self.max_output {
            return true;
        }
        if !self.gave_up {
            self.gave_up = true;
            self.problems.push(Problem {
                range: 0..0,
                message:
                    "the macros of this file expand to too much; the rest are left as they are"
                        .to_owned(),
            });
        }
        false
    }

    /// Whether a name is one that the preprocessor itself defines.
    pub(super) fn is_builtin(name: &str) -> bool {
        matches!(
            name,
            "__LINE__" | "__FILE__" | "__BASE_FILE__" | "__COUNTER__" | "__DATE__" | "__TIME__"
        ) || condition::is_feature_test(name)
    }
}

const NO_ARGUMENTS: Arguments = Arguments {
    tokens: Vec::new(),
    ranges: Vec::new(),
    omitted: false,
};

fn placemarker(space: bool) -> Token {
    Token {
        owner: IN_SCRATCH,
        start: 0,
        end: 0,
        kind: Kind::Placemarker,
        space,
        fixed: true,
    }
}

fn is_paste(token: &BodyToken) -> bool {
    token.role == Role::Paste
}

/// Removes them; the white space before one passes on to the token after it.
fn drop_placemarkers(tokens: &mut Vec<Token>) {
    let mut space = false;
    tokens.retain_mut(|token| {
        if token.kind == Kind::Placemarker {
            space |= token.space;
            return false;
        }
        token.space |= space;
        space = false;
        true
    });
}

/// The text of a string literal, as `_Pragma` reads it.
fn destringify(literal: &str) -> String {
    let inner = literal.trim();
    let inner = inner.strip_prefix('L').unwrap_or(inner);
    let inner = inner.strip_prefix('"').unwrap_or(inner);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    inner.replace("\\\"", "\"").replace("\\\\", "\\")
}
