//! Where the pass over a text and the expansion of its macros stand.
//!
//! Both work on a [`Pass`]: `pass` copies text and obeys directives, `expand` replaces the uses of macros.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::condition::Question;
use super::macros::{Filter, Macro, Macros, Trace};
use super::quiet::Quiet;
use super::source_map::Builder;
use super::{IncludeSite, Includes, Problem, UndecidedConditional, Word, WordTable};
use crate::lexer::{self, Kind, Start};

pub(super) const BYTE_ORDER_MARK: &str = "\u{feff}";
/// How far the arguments of one use may reach in the buffer, in bytes.
pub(super) const MAX_REACH: usize = 64 << 10;
/// How many macros may be open at once.
pub(super) const MAX_OPEN: usize = 2000;
/// How many tokens one use may touch.
pub(super) const MAX_STEPS: usize = 1 << 19;

/// A text that is being read: the buffer, or one that was put in place.
pub(super) struct File<'t> {
    pub(super) text: &'t str,
    pub(super) path: &'t str,
    pub(super) at: usize,
    /// Everything before was written.
    pub(super) copied: usize,
    /// Arguments of a use end here at the latest.
    pub(super) limit: usize,
    pub(super) frames: Vec<Frame>,
    /// The line of the buffer that all of this text comes from, if it was put in place.
    pub(super) spliced: Option<Range<usize>>,
    /// Where a block comment (or byte order mark) ended last, if nothing but white space stood before it on its line.
    pub(super) clean_comment: Option<usize>,
    /// How many conditionals without an end were passed over.
    pub(super) resumed: u32,
    /// An offset and its line, counted from 1.
    pub(super) line: (usize, usize),
    /// The lines that need not be read; of the buffer only.
    pub(super) quiet: Option<Quiet<'t>>,
}

impl<'t> File<'t> {
    pub(super) fn new(text: &'t str, path: &'t str, spliced: Option<Range<usize>>) -> Self {
        Self {
            text,
            path,
            at: if text.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len()
            } else {
                0
            },
            copied: 0,
            limit: text.len(),
            frames: Vec::new(),
            spliced,
            // A byte order mark is neither a token nor in the way of a directive.
            clean_comment: text
                .starts_with(BYTE_ORDER_MARK)
                .then_some(BYTE_ORDER_MARK.len()),
            resumed: 0,
            line: (0, 1),
            quiet: None,
        }
    }

    /// The line that an offset is in, counted from 1.
    pub(super) fn line_of(&mut self, at: usize) -> usize {
        if at < self.line.0 {
            self.line = (0, 1);
        }
        self.line.1 += lexer::newlines(&self.text.as_bytes()[self.line.0..at]);
        self.line.0 = at;
        self.line.1
    }

    pub(super) fn disturbed(&mut self) {
        if let Some(quiet) = &mut self.quiet {
            quiet.disturbed();
        }
    }

    /// A range of this text as one of the buffer.
    pub(super) fn in_buffer(&self, range: Range<usize>) -> Range<usize> {
        self.spliced.clone().unwrap_or(range)
    }

    /// The place of the parenthesis that opens after `at`, if nothing but white space and comments comes before.
    pub(super) fn parenthesis_at(&self, mut at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        while at < self.limit {
            let byte = bytes[at];
            if byte == b'(' {
                return Some(at);
            } else if byte == b'\n' {
                at += 1;
                // A directive ends the search.
                if lexer::directive_on_line(bytes, at).is_some() {
                    return None;
                }
            } else if lexer::is_horizontal(byte) {
                at += 1;
            } else if let Some(end) =
                lexer::comment_end(bytes, at).or_else(|| lexer::splice(bytes, at))
            {
                at = end;
            } else {
                return None;
            }
        }
        None
    }

    /// The name of the directive whose `#` is at `hash`; empty where there is none.
    pub(super) fn directive_name(&self, hash: usize) -> &'t str {
        let bytes = self.text.as_bytes();
        let mut at = hash + 1;
        while at < bytes.len() && bytes[at] != b'\n' {
            if lexer::is_horizontal(bytes[at]) {
                at += 1;
            } else if bytes[at..].starts_with(b"/*") {
                at = lexer::comment_end(bytes, at).unwrap_or(bytes.len());
            } else if let Some(end) = lexer::splice(bytes, at) {
                at = end;
            } else {
                break;
            }
        }
        let end = lexer::identifier_end(bytes, at);
        &self.text[at..end]
    }

    /// Whether nothing but white space and comments comes before `at` on its line.
    pub(super) fn begins_line(&self, mut at: usize) -> bool {
        let bytes = self.text.as_bytes();
        while at > 0 && lexer::is_horizontal(bytes[at - 1]) {
            at -= 1;
        }
        at == 0 || bytes[at - 1] == b'\n' || self.clean_comment == Some(at)
    }
}

/// A conditional that is open.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its `#if` line.
    pub(super) opened: Range<usize>,
    /// One of its branches was taken.
    pub(super) taken: bool,
    /// One of its conditions is certainly true: those after it do not matter.
    pub(super) settled: bool,
    pub(super) has_else: bool,
    /// The name that an `#ifndef` tests; such a name that is then defined made it a guard, or a default.
    pub(super) guard: Option<Box<str>>,
    pub(super) is_guard: bool,
    pub(super) branches: Vec<Choice>,
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) question: Question,
    pub(super) content: Range<usize>,
    pub(super) taken: bool,
}

/// What a directive comes to.
pub(super) enum Step {
    /// It is overwritten up to here, with the inactive text after it.
    Blank(usize),
    /// It is kept. Macros count from `expand_from` on, if at all.
    Pragma {
        expand_from: Option<usize>,
        end: usize,
    },
    /// A text is put in its place.
    Splice {
        end: usize,
        text: Arc<str>,
        path: Arc<Path>,
    },
}

/// What to go back to when the arguments of a use turn out not to end.
pub(super) struct Checkpoint {
    pub(super) macros: Macros,
    /// Those open before stay open: a use ends where a directive would close one of them.
    pub(super) frames: usize,
    pub(super) undecided: usize,
    pub(super) problems: usize,
    pub(super) sites: usize,
}

pub(super) struct Pass<'o> {
    pub(super) out: String,
    pub(super) map: Builder,
    pub(super) words: Vec<Word>,
    pub(super) undecided: Vec<UndecidedConditional>,
    pub(super) problems: Vec<Problem>,
    pub(super) sites: Vec<IncludeSite>,
    pub(super) macros: Macros,
    /// Which macros were looked up and changed, where that is to be known.
    pub(super) trace: Option<RefCell<Trace>>,
    /// Names that mean something without being macros.
    pub(super) extra: Filter,
    pub(super) options_words: &'o WordTable,
    pub(super) known_absent: &'o dyn Fn(&str) -> bool,
    pub(super) includes: &'o mut dyn Includes,
    pub(super) expansion: Expansion,
    /// By a macro's hash, how often it came to too much.
    pub(super) failures: FxHashMap<u64, u8>,
    pub(super) counter: u64,
    /// Tokens touched in expansions so far.
    pub(super) work: usize,
    pub(super) max_work: usize,
    pub(super) max_output: usize,
    pub(super) gave_up: bool,
    pub(super) splices: usize,
    pub(super) tries: std::cell::Cell<usize>,
    pub(super) braces: Braces,
}

/// Who holds a token's text: the file, the scratch text, or a macro's body.
pub(super) const IN_FILE: u32 = 0;
pub(super) const IN_SCRATCH: u32 = 1;
pub(super) const IN_MACROS: u32 = 2;

#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) owner: u32,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) kind: Kind,
    /// White space is before it.
    pub(super) space: bool,
    /// Never to be expanded again.
    pub(super) fixed: bool,
}

pub(super) struct Context {
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    /// The hash of the macro that is not to be expanded meanwhile.
    pub(super) of: Option<u64>,
}

/// Why a use is left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abort {
    TooMuch,
    /// The arguments do not end.
    Unterminated,
    /// Too few or too many of them.
    Arguments,
}

/// The state of one use.
pub(super) struct Expansion {
    pub(super) contexts: Vec<Context>,
    /// Contexts below this one are out of reach.
    pub(super) floor: usize,
    pub(super) open: FxHashSet<u64>,
    pub(super) held: Vec<Arc<Macro>>,
    pub(super) scratch: String,
    pub(super) spare: Vec<Vec<Token>>,
    /// How many lists of tokens are expanded on their own, one within the other; with none, the buffer follows.
    pub(super) nesting: u32,
    /// A use is being replaced: what its tokens refer to must stay.
    pub(super) busy: bool,
    /// While a use is written: how much of the output stays whatever comes of it.
    pub(super) kept: Option<usize>,
    pub(super) steps: usize,
    /// Where the use's name begins, and where its own arguments end.
    pub(super) start: usize,
    pub(super) first_end: usize,
    /// How many conditionals were open where the use began.
    pub(super) frames: usize,
    /// What to go back to, once a directive stood among the arguments.
    pub(super) checkpoint: Option<Checkpoint>,
    /// Reading a condition.
    pub(super) condition: bool,
    pub(super) protect: Protect,
}

/// What the next tokens of a condition are protected by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protect {
    Nothing,
    /// `defined`: up to the name.
    Defined,
    /// `__has_include`: up to the parenthesis that closes it, unless a macro names the file.
    Include,
    Path,
}

impl Expansion {
    pub(super) fn new() -> Self {
        Self {
            contexts: Vec::new(),
            floor: 0,
            open: FxHashSet::default(),
            held: Vec::new(),
            scratch: String::new(),
            spare: Vec::new(),
            nesting: 0,
            busy: false,
            kept: None,
            steps: 0,
            start: 0,
            first_end: 0,
            frames: 0,
            checkpoint: None,
            condition: false,
            protect: Protect::Nothing,
        }
    }

    pub(super) fn kept(&self) -> Option<usize> {
        self.kept
    }

    pub(super) fn pop(&mut self) {
        if let Some(mut context) = self.contexts.pop() {
            if let Some(hash) = context.of {
                self.open.remove(&hash);
            }
            context.tokens.clear();
            self.spare.push(context.tokens);
        }
    }

    pub(super) fn unwind(&mut self, to: usize) {
        while self.contexts.len() > to {
            self.pop();
        }
    }

    pub(super) fn pop_finished(&mut self) {
        while self.contexts.len() > self.floor
            && self
                .contexts
                .last()
                .is_some_and(|context| context.at >= context.tokens.len())
        {
            self.pop();
        }
    }

    pub(super) fn push(&mut self, tokens: Vec<Token>, of: Option<u64>) -> Result<(), Abort> {
        if self.contexts.len() >= MAX_OPEN {
            return Err(Abort::TooMuch);
        }
        if let Some(hash) = of {
            self.open.insert(hash);
        }
        self.contexts.push(Context { tokens, at: 0, of });
        Ok(())
    }

    pub(super) fn hold(&mut self, definition: &Arc<Macro>) -> u32 {
        if !self
            .held
            .last()
            .is_some_and(|last| Arc::ptr_eq(last, definition))
        {
            self.held.push(Arc::clone(definition));
        }
        IN_MACROS + self.held.len() as u32 - 1
    }

    pub(super) fn fresh(&mut self) -> Vec<Token> {
        self.spare.pop().unwrap_or_default()
    }

    pub(super) fn text<'t>(&'t self, file: &'t File<'_>, token: &Token) -> &'t str {
        let whole: &str = match token.owner {
            IN_FILE => file.text,
            IN_SCRATCH => &self.scratch,
            owner => &self.held[(owner - IN_MACROS) as usize].body,
        };
        &whole[token.start as usize..token.end as usize]
    }

    /// A token with a text of its own.
    pub(super) fn make(&mut self, kind: Kind, text: &str) -> Token {
        let start = self.scratch.len() as u32;
        self.scratch.push_str(text);
        Token {
            owner: IN_SCRATCH,
            start,
            end: self.scratch.len() as u32,
            kind,
            space: false,
            fixed: false,
        }
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Abort> {
        self.steps += steps;
        if self.steps > MAX_STEPS {
            return Err(Abort::TooMuch);
        }
        Ok(())
    }
}

/// The names that [`Pass::expand_special`] knows besides the words.
pub(super) const SPECIAL: [&str; 7] = [
    "__LINE__",
    "__FILE__",
    "__BASE_FILE__",
    "__COUNTER__",
    "__DATE__",
    "__TIME__",
    "_Pragma",
];

/// How much of a pragma comes before the part in which macros are expanded; `None` where they are not.
pub(super) fn pragma_head(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut at = 0;
    let mut word = || {
        let start = lexer::skip_blank(bytes, at);
        at = lexer::identifier_end(bytes, start);
        (&line[start..at], at)
    };
    match word() {
        ("unroll" | "nounroll", end) => Some(end),
        ("GCC", _) => Some(word())
            .filter(|(name, _)| *name == "unroll")
            .map(|(_, end)| end),
        ("clang", _) => Some(word())
            .filter(|(name, _)| *name == "loop")
            .map(|(_, end)| end),
        _ => None,
    }
}

/// Which braces are open in what was written: read only as far as it is asked for.
#[derive(Debug, Default, Clone)]
pub(super) struct Braces {
    pub(super) at: usize,
    /// Behind the last statement or brace.
    pub(super) since: usize,
    /// Of each open brace, whether it counts: those of namespaces and linkage blocks do not.
    pub(super) open: Vec<bool>,
    pub(super) counted: usize,
}

impl Braces {
    pub(super) fn read(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = self.at;
        while at < bytes.len() {
            match lexer::STARTS[usize::from(bytes[at])] {
                Start::Plain => {
                    match bytes[at] {
                        b'{' => {
                            let counts = !opens_scope(&text[self.since..at]);
                            self.open.push(counts);
                            self.counted += usize::from(counts);
                            self.since = at + 1;
                        }
                        b'}' => {
                            if self.open.pop() == Some(true) {
                                self.counted -= 1;
                            }
                            self.since = at + 1;
                        }
                        b';' | b'=' => self.since = at + 1,
                        _ => {}
                    }
                    at += 1;
                }
                Start::Line => at += 1,
                Start::Slash => at = lexer::comment_end(bytes, at).unwrap_or(at + 1),
                _ => at = lexer::token(bytes, at).1,
            }
        }
        self.at = bytes.len();
    }
}

/// Whether what is before a brace, behind the last statement, makes it that of a namespace or a linkage block.
pub(super) fn opens_scope(head: &str) -> bool {
    #[derive(PartialEq)]
    enum Head {
        Other,
        Namespace,
        Extern,
        Linkage,
    }
    let bytes = head.as_bytes();
    let mut seen = Head::Other;
    let mut at = lexer::skip_blank(bytes, 0);
    while at < bytes.len() {
        let (kind, end) = lexer::token(bytes, at);
        let word = &head[at..end];
        seen = match kind {
            lexer::Kind::Identifier if word == "namespace" => Head::Namespace,
            lexer::Kind::Identifier if word == "extern" => Head::Extern,
            lexer::Kind::String if seen == Head::Extern => Head::Linkage,
            // Its name, and what it lies in.
            _ if seen == Head::Namespace => Head::Namespace,
            _ => Head::Other,
        };
        at = lexer::skip_blank(bytes, end);
    }
    matches!(seen, Head::Namespace | Head::Linkage)
}
