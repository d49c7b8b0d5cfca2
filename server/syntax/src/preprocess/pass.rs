//! The pass over the text: copies what no macro touches, obeys the directives.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use super::condition::{self, Name, Question};
use super::macros::{Filter, Macro, hash_name};
use super::quiet::Quiet;
use super::source_map::Builder;
use super::state::{
    Braces, Checkpoint, Choice, Expansion, File, Frame, MAX_REACH, Pass, SPECIAL, Step, pragma_head,
};
use super::{
    Branch, IncludeLine, IncludeResult, IncludeSite, Includes, Options, Preprocessed, Problem,
    SourceMap, UndecidedConditional, Word,
};
use crate::lexer::{self, STARTS, Start};

/// Texts put in place within one another beyond this are left out.
const MAX_SPLICES: usize = 40;
/// More than this is of no use to anybody.
const MAX_PROBLEMS: usize = 200;
/// How often conditions are evaluated to find out what would make branches of this text taken.
const MAX_TRIES: usize = 20_000;
/// How many conditionals without an end are passed over, each after a search to the end of the text.
const MAX_RESUMED: u32 = 8;
/// How many conditionals around a definition may be made guards by it.
const MAX_GUARDS: usize = 64;
/// How many directives of a conditional, and bytes, are looked at for the `#error` at its end.
const MAX_LOOKED_AT: usize = 32;
const MAX_LOOKED_THROUGH: usize = 4096;

pub(super) fn run(source: &str, options: Options<'_>, includes: &mut dyn Includes) -> Preprocessed {
    if u32::try_from(source.len()).is_err() {
        return Preprocessed {
            text: source.to_owned(),
            map: SourceMap::identity(source.len()),
            problems: vec![Problem {
                range: 0..0,
                message: "this file is too large to be preprocessed".to_owned(),
            }],
            macros: options.macros,
            ..Preprocessed::default()
        };
    }
    let mut extra = Filter::EMPTY;
    for word in options.words.keys().chain(&SPECIAL) {
        extra.add(word, hash_name(word.as_bytes()));
    }
    let mut pass = Pass {
        out: String::with_capacity(source.len() + 64),
        map: Builder::default(),
        words: Vec::new(),
        undecided: Vec::new(),
        problems: Vec::new(),
        sites: Vec::new(),
        macros: options.macros,
        extra,
        options_words: options.words,
        known_absent: options.known_absent,
        includes,
        trace: options.traced.then(RefCell::default),
        expansion: Expansion::new(),
        failures: FxHashMap::default(),
        counter: 0,
        work: 0,
        max_work: (4 << 20) + 8 * source.len(),
        max_output: (16 << 20).max(8 * source.len()),
        gave_up: false,
        splices: 0,
        tries: std::cell::Cell::new(MAX_TRIES),
        braces: Braces::default(),
    };
    let mut file = File::new(source, options.file, None);
    // A trace wants every name.
    file.quiet = (!options.traced).then(|| Quiet::new(source, options.earlier));
    pass.text(&mut file);
    Preprocessed {
        map: pass.map.finish(pass.out.len(), source.len()),
        text: pass.out,
        words: pass.words,
        undecided: pass.undecided,
        problems: pass.problems,
        macros: pass.macros,
        include_sites: pass.sites,
        trace: pass.trace.map(RefCell::into_inner).unwrap_or_default(),
        quiet: file.quiet.map(Quiet::found).unwrap_or_default(),
    }
}

impl Pass<'_> {
    /// Writes the whole of a text.
    fn text(&mut self, file: &mut File<'_>) {
        self.scan(file, file.text.len());
        self.flush(file, file.text.len());
        while let Some(frame) = file.frames.pop() {
            let range = file.in_buffer(frame.opened.clone());
            self.problem(range, "this conditional has no #endif".to_owned());
            self.close(file, frame, file.text.len());
        }
    }

    /// Goes through the text up to `limit`, or a little further where a use reaches beyond it.
    fn scan(&mut self, file: &mut File<'_>, limit: usize) {
        let bytes = file.text.as_bytes();
        let mut at = file.at;
        while at < limit {
            match STARTS[usize::from(bytes[at])] {
                Start::Plain => at += 1,
                Start::Line => {
                    at += 1;
                    if let Some(quiet) = &mut file.quiet {
                        at = quiet.line(at, limit, self.macros.fingerprint());
                    }
                }
                Start::Letter => {
                    let start = at;
                    at = lexer::identifier_end(bytes, at);
                    if let Some(hash) = self.may_mean(&bytes[start..at]) {
                        at = self.name(file, start..at, hash);
                        file.disturbed();
                    }
                }
                Start::Digit => at = lexer::number_end(bytes, at),
                Start::Quote => at = lexer::quoted_end(bytes, at),
                Start::Slash => {
                    if let Some(end) = lexer::comment_end(bytes, at) {
                        if bytes[at + 1] == b'*' && file.begins_line(at) {
                            file.clean_comment = Some(end);
                        }
                        at = end;
                    } else {
                        at += 1;
                    }
                }
                Start::Hash => {
                    if file.begins_line(at) {
                        at = self.obey(file, at);
                        file.disturbed();
                    } else {
                        at += 1;
                    }
                }
            }
        }
        file.at = at;
    }

    /// The hash of a name that may mean something.
    fn may_mean(&self, name: &[u8]) -> Option<u64> {
        let known = self.macros.filter();
        // Almost every name of a text ends here.
        if self.trace.is_none()
            && !known.may_look(name[0], name.len())
            && !self.extra.may_look(name[0], name.len())
        {
            return None;
        }
        let hash = hash_name(name);
        self.noted(hash);
        (known.may_have(hash) || self.extra.may_have(hash)).then_some(hash)
    }

    /// A name is looked up.
    pub(super) fn noted(&self, hash: u64) {
        if let Some(trace) = &self.trace {
            trace.borrow_mut().look_up_hash(hash);
        }
    }

    /// Deals with a name that may mean something; gives where to go on.
    fn name(&mut self, file: &mut File<'_>, range: Range<usize>, hash: u64) -> usize {
        let bytes = file.text.as_bytes();
        if let Some(quote @ (b'"' | b'\'')) = bytes.get(range.end)
            && lexer::is_literal_prefix(&bytes[range.clone()], *quote == b'"')
        {
            return range.end;
        }
        let name = &file.text[range.clone()];
        if let Some(definition) = self.macros.lookup(hash, name) {
            if definition.parameters.is_some() && file.parenthesis_at(range.end).is_none() {
                return range.end;
            }
        } else if let Some(&(short, takes_argument)) = self.options_words.get(name) {
            return self.blank_word(file, range, short, takes_argument);
        } else if !SPECIAL.contains(&name)
            || (name == "_Pragma" && file.parenthesis_at(range.end).is_none())
        {
            return range.end;
        }
        self.expand_use(file, range);
        file.at
    }

    /// Overwrites a word with spaces, with its argument if it takes one: then not without.
    fn blank_word(
        &mut self,
        file: &mut File<'_>,
        range: Range<usize>,
        name: &'static str,
        takes_argument: bool,
    ) -> usize {
        let mut end = range.end;
        let mut argument = String::new();
        if takes_argument {
            let Some(open) = file
                .parenthesis_at(range.end)
                .filter(|_| self.work <= self.max_work)
            else {
                return range.end;
            };
            let reach = &file.text.as_bytes()[..file.text.len().min(open + MAX_REACH)];
            let close = match closing_parenthesis(reach, open) {
                Ok(close) => close,
                Err(reached) => {
                    self.work += reached - open;
                    return range.end;
                }
            };
            end = close;
            let text = &file.text[open + 1..close - 1];
            argument = self.expanded(file, text).into_owned();
        }
        self.flush(file, range.start);
        self.map.verbatim(self.out.len(), range.start);
        let start = self.out.len();
        push_blank(&mut self.out, &file.text.as_bytes()[range.start..end]);
        self.words.push(Word {
            range: start..self.out.len(),
            name,
            argument,
        });
        file.copied = end;
        end
    }

    /// A piece of text with its macros expanded.
    fn expanded<'t>(&mut self, file: &mut File<'_>, text: &'t str) -> Cow<'t, str> {
        if !self.has_names(text) {
            return Cow::Borrowed(text.trim());
        }
        match self.expand_text(file, text, false) {
            Some(expanded) => Cow::Owned(expanded),
            None => Cow::Borrowed(text.trim()),
        }
    }

    /// Whether a piece of text has a name that may mean something.
    fn has_names(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if lexer::is_letter(bytes[at]) {
                let end = lexer::identifier_end(bytes, at);
                if self.may_mean(&bytes[at..end]).is_some() {
                    return true;
                }
                at = end;
            } else {
                at += 1;
            }
        }
        false
    }

    /// Writes what was read and not yet written.
    pub(super) fn flush(&mut self, file: &mut File<'_>, to: usize) {
        if file.copied < to {
            self.map.verbatim(self.out.len(), file.copied);
            self.out.push_str(&file.text[file.copied..to]);
            file.copied = to;
        }
    }

    /// Writes spaces for what was read and not yet written.
    fn blank(&mut self, file: &mut File<'_>, to: usize) {
        let start = self.out.len();
        if file.copied < to {
            self.map.verbatim(start, file.copied);
            push_blank(&mut self.out, &file.text.as_bytes()[file.copied..to]);
            file.copied = to;
            if file.spliced.is_none() {
                self.map.blanks.push(start..self.out.len());
            }
        }
    }

    /// Obeys the directive whose `#` is at `hash`, outside a use; gives where to go on.
    fn obey(&mut self, file: &mut File<'_>, hash: usize) -> usize {
        self.flush(file, hash);
        match self.directive(file, hash) {
            Step::Blank(end) => {
                self.blank(file, end);
                end
            }
            Step::Pragma {
                expand_from: Some(from),
                end,
            } => {
                file.at = from;
                let limit = std::mem::replace(&mut file.limit, end);
                self.scan(file, end);
                file.limit = limit;
                file.at
            }
            Step::Pragma { end, .. } => end,
            Step::Splice { end, text, path } => {
                self.splice(file, hash..end, &text, &path);
                end
            }
        }
    }

    /// Puts a text in the place of a line.
    fn splice(&mut self, file: &mut File<'_>, line: Range<usize>, text: &str, path: &Path) {
        let start = self.out.len();
        let buffer_line = file.in_buffer(line.clone());
        let muted = std::mem::replace(&mut self.map.muted, true);
        let spelled = path.to_string_lossy();
        let mut inner = File::new(text, &spelled, Some(buffer_line.clone()));
        self.splices += 1;
        self.includes.enter(path);
        self.text(&mut inner);
        self.includes.leave();
        self.splices -= 1;
        for _ in 0..lexer::newlines(&file.text.as_bytes()[line.clone()]) {
            self.out.push('\n');
        }
        self.map.muted = muted;
        if self.out.len() > start {
            self.map.collapsed(start, buffer_line);
        }
        file.copied = line.end;
    }

    pub(super) fn problem(&mut self, range: Range<usize>, message: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { range, message });
        }
    }

    pub(super) fn save(&self, file: &File<'_>) -> Checkpoint {
        Checkpoint {
            macros: self.macros.clone(),
            frames: file.frames.len(),
            undecided: self.undecided.len(),
            problems: self.problems.len(),
            sites: self.sites.len(),
        }
    }

    pub(super) fn restore(&mut self, file: &mut File<'_>, checkpoint: Checkpoint) {
        self.macros = checkpoint.macros;
        file.frames.truncate(checkpoint.frames);
        self.undecided.truncate(checkpoint.undecided);
        self.problems.truncate(checkpoint.problems);
        self.sites.truncate(checkpoint.sites);
    }

    /// True for the execution and memory spaces of CUDA and HIP, which a header for hosts without them takes away and the
    /// compiler's own headers spell as attributes.
    fn is_kept(&self, name: &str) -> bool {
        matches!(
            name,
            "__global__"
                | "__device__"
                | "__host__"
                | "__shared__"
                | "__constant__"
                | "__managed__"
        ) && (self.macros.is_defined("__CUDACC__") || self.macros.is_defined("__HIPCC__"))
    }

    /// Obeys a directive without writing anything.
    pub(super) fn directive(&mut self, file: &mut File<'_>, hash: usize) -> Step {
        let (line, end) = logical_line(file.text, hash + 1);
        let line = line.trim_start();
        let name_end = lexer::identifier_end(line.as_bytes(), 0);
        let (name, rest) = line.split_at(name_end);
        let rest = rest.trim();
        match name {
            "define" => {
                if let Some(definition) = Macro::parse(rest)
                    && !self.is_kept(&definition.name)
                {
                    for frame in file.frames.iter_mut().rev().take(MAX_GUARDS) {
                        frame.is_guard |= frame.guard.as_deref() == Some(&definition.name);
                    }
                    self.failures.remove(&definition.hash);
                    if let Some(trace) = &mut self.trace {
                        trace.get_mut().change(&definition.name);
                    }
                    self.macros.insert(definition);
                }
            }
            "undef" => {
                let end = lexer::identifier_end(rest.as_bytes(), 0);
                if let Some(trace) = &mut self.trace {
                    trace.get_mut().change(&rest[..end]);
                }
                self.macros.undefine(&rest[..end]);
            }
            "include" | "include_next" | "import" => {
                return self.include(file, hash..end, rest, name == "include_next");
            }
            "pragma" => return pragma(file.text, hash, end),
            "if" | "ifdef" | "ifndef" => {
                let question = self.question(file, hash..end, name, rest);
                let guard = match name {
                    "ifndef" => first_word(rest),
                    "if" => negated_name(rest),
                    _ => None,
                };
                let taken = self.is_taken(file, &question, end);
                file.frames.push(Frame {
                    opened: hash..end,
                    taken,
                    settled: question == Question::Settled(true),
                    has_else: false,
                    guard: guard.map(Into::into),
                    is_guard: false,
                    branches: vec![Choice {
                        question,
                        content: after_line(file.text, end)..file.text.len(),
                        taken,
                    }],
                });
                if !taken {
                    return Step::Blank(self.skip_inactive(file, end));
                }
            }
            // Reached only from the active branch.
            "else" | "elif" | "elifdef" | "elifndef" => {
                if !self.branch(file, hash..end, name, rest) {
                    return Step::Blank(end);
                }
                return Step::Blank(self.skip_inactive(file, end));
            }
            "endif" => match file.frames.pop() {
                Some(frame) => self.close(file, frame, hash),
                None => self.stray(file, hash..end, name),
            },
            _ => {}
        }
        Step::Blank(end)
    }

    fn stray(&mut self, file: &File<'_>, line: Range<usize>, name: &str) {
        let range = file.in_buffer(line);
        self.problem(range, format!("#{name} without #if"));
    }

    /// The end of the inactive text after `at`: of the directive that ends it, or of the text.
    fn skip_inactive(&mut self, file: &mut File<'_>, mut at: usize) -> usize {
        let mut depth = 0usize;
        let mut begin = at;
        while let Some(hash) = lexer::next_directive(file.text.as_bytes(), at) {
            let name = file.directive_name(hash);
            match name {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" if depth > 0 => depth -= 1,
                "else" | "elif" | "elifdef" | "elifndef" | "endif" if depth == 0 => {
                    let (line, end) = logical_line(file.text, hash + 1);
                    if name == "endif" {
                        if let Some(frame) = file.frames.pop() {
                            self.close(file, frame, hash);
                        }
                        return end;
                    }
                    let rest = line.trim_start()[name.len()..].trim();
                    self.branch(file, hash..end, name, rest);
                    let entered = file.frames.last().is_none_or(|frame| {
                        frame.branches.last().is_some_and(|choice| choice.taken)
                    });
                    if entered {
                        return end;
                    }
                    begin = end;
                    at = end;
                    continue;
                }
                _ => {}
            }
            let (_, end) = logical_line(file.text, hash + 1);
            at = end;
        }
        // Without its `#endif`, which is yet to be typed, the branch does not take the rest of the file away.
        match file.frames.last_mut() {
            Some(frame) if !frame.taken && file.resumed < MAX_RESUMED => {
                file.resumed += 1;
                frame.taken = true;
                if let Some(last) = frame.branches.last_mut() {
                    last.taken = true;
                }
                begin
            }
            _ => file.text.len(),
        }
    }

    /// Begins the next branch of the innermost conditional. `false` if it has no more.
    fn branch(&mut self, file: &mut File<'_>, line: Range<usize>, name: &str, rest: &str) -> bool {
        let Some(frame) = file.frames.last_mut() else {
            self.stray(file, line, name);
            return false;
        };
        if frame.has_else {
            let range = file.in_buffer(line);
            self.problem(range, format!("#{name} after #else"));
            return false;
        }
        frame.has_else = name == "else";
        let settled = frame.settled;
        let taken = frame.taken;
        if let Some(last) = frame.branches.last_mut() {
            last.content.end = line.start.max(last.content.start);
        }
        let question = if name == "else" {
            Question::Settled(true)
        } else if settled {
            // Never looked at.
            Question::Settled(false)
        } else {
            self.question(file, line.clone(), name.trim_start_matches("el"), rest)
        };
        let take = !taken && self.is_taken(file, &question, line.end);
        let content = after_line(file.text, line.end)..file.text.len();
        if let Some(frame) = file.frames.last_mut() {
            frame.taken |= take;
            frame.settled |= question == Question::Settled(true);
            frame.branches.push(Choice {
                question,
                content,
                taken: take,
            });
        }
        true
    }

    /// Whether a branch that begins at `at` is taken, if none before it is: by the rules of C, or because nothing else is left. Where
    /// what was not defined would end in `#error`, the build defines something.
    fn is_taken(&mut self, file: &mut File<'_>, question: &Question, at: usize) -> bool {
        self.answer(question)
            || matches!(question, Question::Open(..)) && self.only_an_error_follows(file, at)
    }

    /// True where no later branch of the conditional is taken but the last, which is an `#error`. Not where that is far away.
    fn only_an_error_follows(&mut self, file: &mut File<'_>, begin: usize) -> bool {
        let problems = self.problems.len();
        let (mut at, mut depth) = (begin, 0usize);
        let mut follows = false;
        for _ in 0..MAX_LOOKED_AT {
            let bytes = file.text.as_bytes();
            let near = &bytes[..bytes.len().min(begin + MAX_LOOKED_THROUGH)];
            let Some(hash) = lexer::next_directive(near, at) else {
                break;
            };
            let (line, end) = logical_line(file.text, hash + 1);
            let name = file.directive_name(hash);
            match name {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" if depth == 0 => break,
                "endif" => depth -= 1,
                "else" if depth == 0 => {
                    let body = file.text[end..].trim_start();
                    let directive = body.strip_prefix('#').map(str::trim_start);
                    follows = directive.is_some_and(|name| name.starts_with("error"));
                    break;
                }
                "elif" | "elifdef" | "elifndef" if depth == 0 => {
                    let rest = line.trim_start()[name.len()..].trim();
                    let name = name.trim_start_matches("el");
                    let question = self.question(file, hash..end, name, rest);
                    if self.answer(&question) {
                        break;
                    }
                }
                _ => {}
            }
            at = end;
        }
        self.problems.truncate(problems);
        follows
    }

    /// Whether a branch is taken by the rules of C, if none before it is.
    fn answer(&self, question: &Question) -> bool {
        match question {
            Question::Settled(value) => *value,
            Question::Open(text, _) => condition::evaluate(text, &|name| self.lookup(name))
                .is_ok_and(|outcome| outcome.value),
        }
    }

    fn lookup(&self, name: &str) -> Name {
        self.noted(hash_name(name.as_bytes()));
        if self.macros.is_defined(name) || Self::is_builtin(name) {
            Name::Defined
        } else if (self.known_absent)(name) {
            Name::Absent
        } else {
            Name::Open
        }
    }

    /// The condition of an `if`, `ifdef` or `ifndef`.
    fn question(
        &mut self,
        file: &mut File<'_>,
        line: Range<usize>,
        name: &str,
        rest: &str,
    ) -> Question {
        if name != "if" {
            let Some(word) = first_word(rest) else {
                let range = file.in_buffer(line);
                self.problem(range, "this condition needs a name".to_owned());
                return Question::Settled(false);
            };
            let negated = name == "ifndef";
            return match self.lookup(word) {
                Name::Open => {
                    let not = if negated { "!" } else { "" };
                    Question::Open(format!("{not}defined({word})"), vec![word.to_owned()])
                }
                found => Question::Settled((found == Name::Defined) != negated),
            };
        }
        let text = if self.has_names(rest) {
            self.expand_text(file, rest, true).map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(rest))
        };
        let result = match text {
            Some(text) => {
                let text = self.answer_has_include(text);
                condition::evaluate(&text, &|name| self.lookup(name)).map(|outcome| (text, outcome))
            }
            None => Err("the macros of this condition expand to too much"),
        };
        match result {
            Ok((text, outcome)) if !outcome.names.is_empty() => {
                let mut names = outcome.names;
                let mut seen = FxHashSet::default();
                names.retain(|name| seen.insert(name.clone()));
                Question::Open(text.into_owned(), names)
            }
            Ok((_, outcome)) => Question::Settled(outcome.value),
            Err(message) => {
                let range = file.in_buffer(line);
                self.problem(range, message.to_owned());
                Question::Settled(false)
            }
        }
    }

    /// Puts the answers in the place of `__has_include(...)`.
    fn answer_has_include<'t>(&mut self, text: Cow<'t, str>) -> Cow<'t, str> {
        if !text.contains("__has_include") {
            return text;
        }
        let bytes = text.as_bytes();
        let mut answered = String::new();
        let (mut at, mut copied) = (0, 0);
        while at < bytes.len() {
            if !lexer::is_letter(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            at = lexer::identifier_end(bytes, at);
            let word = &text[start..at];
            let open = lexer::skip_blank(bytes, at);
            if !matches!(word, "__has_include" | "__has_include_next")
                || bytes.get(open) != Some(&b'(')
            {
                continue;
            }
            let rest = text[open + 1..].trim_start();
            let (spelled, system) = match rest.as_bytes().first() {
                Some(b'<') => (rest[1..].split_once('>'), true),
                Some(b'"') => (rest[1..].split_once('"'), false),
                _ => (None, false),
            };
            let Some((spelled, after)) = spelled else {
                continue;
            };
            let Some(close) = after.trim_start().strip_prefix(')') else {
                continue;
            };
            answered.push_str(&text[copied..start]);
            let there = self.includes.has_include(spelled.trim(), system);
            answered.push_str(if there { " 1 " } else { " 0 " });
            at = text.len() - close.len();
            copied = at;
        }
        // What is not understood reads as an unknown function of the compiler: false.
        answered.push_str(&text[copied..]);
        Cow::Owned(answered)
    }

    /// Ends a conditional; keeps it if it could not be decided.
    fn close(&mut self, file: &File<'_>, mut frame: Frame, end: usize) {
        if let Some(last) = frame.branches.last_mut() {
            last.content.end = end.max(last.content.start);
        }
        let mut names: Vec<String> = Vec::new();
        let mut seen = FxHashSet::default();
        for choice in &frame.branches {
            if let Question::Open(_, open) = &choice.question {
                names.extend(open.iter().filter(|name| seen.insert(*name)).cloned());
            }
        }
        if names.is_empty() || frame.is_guard {
            return;
        }
        let questions: Vec<Question> = frame
            .branches
            .iter()
            .map(|choice| choice.question.clone())
            .collect();
        let lookup = |name: &str| self.lookup(name);
        let branches = frame
            .branches
            .iter()
            .enumerate()
            .map(|(index, choice)| Branch {
                range: file.in_buffer(choice.content.clone()),
                taken: choice.taken,
                assume: condition::assumptions(
                    &questions[..index],
                    &questions[index],
                    &lookup,
                    &self.tries,
                ),
            })
            .collect();
        self.undecided
            .push(UndecidedConditional { names, branches });
    }

    fn include(&mut self, file: &mut File<'_>, line: Range<usize>, rest: &str, next: bool) -> Step {
        let end = line.end;
        let written = if rest.starts_with(['"', '<']) {
            // Read again from the text: `//` in a path begins no comment.
            let raw = &file.text[line.start..];
            let raw = raw.find(['"', '<']).map_or(raw, |at| &raw[at..]);
            Cow::Borrowed(raw.lines().next().unwrap_or(raw))
        } else {
            Cow::Owned(self.expanded(file, rest).into_owned())
        };
        let (inner, system) = match written.as_bytes().first() {
            Some(b'<') => (written[1..].split_once('>'), true),
            Some(b'"') => (written[1..].split_once('"'), false),
            _ => (None, false),
        };
        // `#include NAME(folder/file.h)` with a macro that only the build defines: it makes a string of it.
        let computed = || {
            let (_, rest) = written.rsplit_once('(')?;
            let path = rest.split_once(')')?.0.trim();
            let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
            (path.contains('.') && path.chars().all(plain)).then_some((path, ""))
        };
        let Some((spelled, _)) = inner.or_else(computed) else {
            return Step::Blank(end);
        };
        let inside_braces = self.inside_braces();
        let at = file.in_buffer(line.clone()).start;
        let included = self.includes.include(
            &IncludeLine {
                spelled,
                system,
                next,
                at,
            },
            &self.macros,
            inside_braces,
        );
        self.sites.push(IncludeSite {
            source: at,
            output: self.out.len(),
            spelled: spelled.to_owned(),
            system,
        });
        match included {
            IncludeResult::Nothing => Step::Blank(end),
            IncludeResult::Header { macros, trace } => {
                if let Some(own) = &mut self.trace {
                    own.get_mut().follow(&trace);
                }
                self.macros = macros;
                Step::Blank(end)
            }
            IncludeResult::Text { text, path } => {
                if self.splices >= MAX_SPLICES
                    || u32::try_from(text.len()).is_err()
                    || self.out.len() + text.len() > self.max_output
                {
                    return Step::Blank(end);
                }
                Step::Splice { end, text, path }
            }
        }
    }

    /// Whether what is written next is inside braces that count.
    fn inside_braces(&mut self) -> bool {
        let Some(kept) = self.expansion.kept() else {
            self.braces.read(&self.out);
            return self.braces.counted > 0;
        };
        // What a use has written so far may be taken back.
        self.braces.read(&self.out[..kept]);
        let mut braces = self.braces.clone();
        braces.read(&self.out);
        braces.counted > 0
    }
}

/// Writes a space for each byte that ends no line.
fn push_blank(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().map(|&byte| match byte {
        b'\n' => '\n',
        b'\r' => '\r',
        _ => ' ',
    }));
}

/// One past the parenthesis that closes the one at `open`. A semicolon or brace ends the search, so that
/// half-typed code does not blank half the file; the error is how far it went.
fn closing_parenthesis(bytes: &[u8], open: usize) -> Result<usize, usize> {
    let mut depth = 0usize;
    let mut at = open;
    while at < bytes.len() {
        match bytes[at] {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            b';' | b'{' | b'}' => return Err(at),
            b'"' | b'\'' => {
                at = lexer::quoted_end(bytes, at);
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
    Err(bytes.len())
}

/// The text from `at` to the end of its line: without comments, continued lines joined. And where it ends.
fn logical_line(text: &str, start: usize) -> (Cow<'_, str>, usize) {
    let bytes = text.as_bytes();
    let mut joined = String::new();
    let (mut at, mut copied) = (start, start);
    // The quote of the literal that `at` is in. Comments do not begin in it, but lines are continued.
    let mut quote = None;
    while at < bytes.len() {
        match bytes[at] {
            b'\n' => break,
            b'\\' => match lexer::splice(bytes, at) {
                Some(end) => {
                    joined.push_str(&text[copied..at]);
                    at = end;
                    copied = end;
                }
                None if quote.is_some() && bytes.get(at + 1).is_some_and(u8::is_ascii) => at += 2,
                None => at += 1,
            },
            byte if quote.is_some() => {
                if quote == Some(byte) {
                    quote = None;
                }
                at += 1;
            }
            byte @ (b'"' | b'\'') => {
                quote = Some(byte);
                at += 1;
            }
            b'0'..=b'9' => at = lexer::number_end(bytes, at),
            b'/' => match lexer::comment_end(bytes, at) {
                Some(end) => {
                    joined.push_str(&text[copied..at]);
                    joined.push(' ');
                    at = end;
                    copied = end;
                }
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    if copied == start {
        return (Cow::Borrowed(&text[start..at]), at);
    }
    joined.push_str(&text[copied..at]);
    (Cow::Owned(joined), at)
}

/// One past the newline at `end`.
fn after_line(text: &str, end: usize) -> usize {
    (end + 1).min(text.len())
}

fn first_word(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let end = lexer::identifier_end(bytes, 0);
    (end > 0 && lexer::is_letter(bytes[0])).then(|| &text[..end])
}

/// The name of a condition that is `!defined(NAME)` and nothing else.
fn negated_name(condition: &str) -> Option<&str> {
    let rest = condition.strip_prefix('!')?.trim_start();
    let rest = rest.strip_prefix("defined")?.trim();
    let name = match rest.strip_prefix('(') {
        Some(inner) => inner.strip_suffix(')')?.trim(),
        None => rest,
    };
    first_word(name).filter(|word| word.len() == name.len())
}

/// What a pragma's line comes to: it is kept, and in those that give a number macros count.
fn pragma(text: &str, hash: usize, end: usize) -> Step {
    let line = &text[hash + 1..end];
    let expand_from = line.find("pragma").and_then(|at| {
        let after = at + "pragma".len();
        Some(hash + 1 + after + pragma_head(&line[after..])?)
    });
    Step::Pragma { expand_from, end }
}
