//! Macro definitions, and the set of those in force.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::lexer::{self, Kind};

/// The macros in force at some place. A clone shares everything with its original until one of them changes.
#[derive(Clone, Debug)]
pub struct Macros {
    root: Option<Arc<Node>>,
    fingerprint: u64,
    /// Bit by bit, which names may be defined: most identifiers of a text are ruled out by one look.
    filter: Arc<Filter>,
}

/// Answers "no" or "perhaps": by a name's looks, which is quick, and by its hash.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    hashes: [u64; 128],
    /// By first letter, which lengths there are.
    looks: [u32; 128],
}

impl Filter {
    pub(super) const EMPTY: Self = Self {
        hashes: [0; 128],
        looks: [0; 128],
    };

    pub(super) fn add(&mut self, name: &str, hash: u64) {
        let bit = hash & 8191;
        self.hashes[(bit >> 6) as usize] |= 1 << (bit & 63);
        if let Some(first) = name.bytes().next() {
            self.looks[usize::from(first & 127)] |= length_bit(name.len());
        }
    }

    /// Whether a name that begins with this byte and is as long may be in it.
    pub(super) fn may_look(&self, first: u8, length: usize) -> bool {
        self.looks[usize::from(first & 127)] & length_bit(length) != 0
    }

    pub(super) fn may_have(&self, hash: u64) -> bool {
        let bit = hash & 8191;
        self.hashes[(bit >> 6) as usize] & (1 << (bit & 63)) != 0
    }
}

fn length_bit(length: usize) -> u32 {
    1 << length.min(31)
}

pub(super) fn hash_name(name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

impl Default for Macros {
    fn default() -> Self {
        Self {
            root: None,
            fingerprint: 0,
            filter: Arc::new(Filter::EMPTY),
        }
    }
}

impl Macros {
    /// Defines a macro, as a compiler's `-D` does. `name` may carry parameters: `F(x, y)`, `F(a, ...)`. What is
    /// no name is ignored.
    pub fn define(&mut self, name: &str, body: &str) {
        if let Some(parsed) = Macro::parse(&format!("{} {body}", name.trim())) {
            self.insert(parsed);
        }
    }

    /// Forgets a macro.
    pub fn undefine(&mut self, name: &str) {
        let hash = hash_name(name.as_bytes());
        if self.lookup(hash, name).is_some()
            && let Some(root) = &mut self.root
            && let Some(old) = Arc::make_mut(root).remove(0, hash, name)
        {
            self.fingerprint = self.fingerprint.wrapping_sub(old.content);
        }
    }

    /// Whether a macro of this name is in force.
    pub fn is_defined(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A hash of all definitions, whatever the order they were made in.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<Macro>> {
        self.lookup(hash_name(name.as_bytes()), name)
    }

    pub(super) fn filter(&self) -> &Filter {
        &self.filter
    }

    pub(super) fn lookup(&self, hash: u64, name: &str) -> Option<&Arc<Macro>> {
        if !self.filter.may_have(hash) {
            return None;
        }
        let mut node = self.root.as_ref()?;
        let mut shift = 0;
        loop {
            match &**node {
                Node::Branch { present, children } => {
                    let bit = 1 << ((hash >> shift) & 31);
                    if present & bit == 0 {
                        return None;
                    }
                    node = &children[(present & (bit - 1)).count_ones() as usize];
                    shift += 5;
                }
                Node::Leaf { hash: at, entries } => {
                    return entries
                        .iter()
                        .find(|entry| *at == hash && *entry.name == *name);
                }
            }
        }
    }

    /// Whether a text that was read under these macros, as `trace` says, reads the same under `other`.
    pub fn reads_alike(&self, other: &Macros, trace: &Trace) -> bool {
        self.fingerprint == other.fingerprint
            || !differ(self.root.as_ref(), other.root.as_ref(), &mut |hash| {
                trace.looked_up.contains(&hash)
            })
    }

    /// The macros after a text that changed what `trace` says and that left `end`, where it began with these.
    #[must_use]
    pub fn after(&self, trace: &Trace, end: &Macros) -> Macros {
        let mut after = self.clone();
        for (&hash, name) in &trace.changed {
            match end.lookup(hash, name) {
                Some(definition) => {
                    let known = after.lookup(hash, name);
                    if known.is_none_or(|known| known.content != definition.content) {
                        after.insert_shared(Arc::clone(definition));
                    }
                }
                None => after.undefine(name),
            }
        }
        after
    }

    pub(super) fn insert(&mut self, definition: Macro) {
        self.insert_shared(Arc::new(definition));
    }

    fn insert_shared(&mut self, definition: Arc<Macro>) {
        Arc::make_mut(&mut self.filter).add(&definition.name, definition.hash);
        self.fingerprint = self.fingerprint.wrapping_add(definition.content);
        let old = match &mut self.root {
            Some(root) => Arc::make_mut(root).insert(0, definition),
            None => {
                self.root = Some(Arc::new(Node::leaf(definition)));
                None
            }
        };
        if let Some(old) = old {
            self.fingerprint = self.fingerprint.wrapping_sub(old.content);
        }
    }
}

/// What a text has to do with the macros it was read under: those that could change how it reads, and those
/// that it defines or undefines itself.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Names by their hash that were looked up, found or not, before the text changed them.
    looked_up: FxHashSet<u64>,
    /// Names that the text defined or undefined, by their hash.
    changed: FxHashMap<u64, Box<str>>,
}

impl Trace {
    /// A name was looked up.
    pub fn look_up(&mut self, name: &str) {
        self.look_up_hash(hash_name(name.as_bytes()));
    }

    pub(super) fn look_up_hash(&mut self, hash: u64) {
        if !self.changed.contains_key(&hash) {
            self.looked_up.insert(hash);
        }
    }

    /// A name was defined or undefined.
    pub fn change(&mut self, name: &str) {
        self.changed
            .entry(hash_name(name.as_bytes()))
            .or_insert_with(|| name.into());
    }

    /// The same text was read before, and what came of that decided how it was read now.
    pub fn read_before(&mut self, first: &Trace) {
        self.looked_up.extend(&first.looked_up);
    }

    /// Another text was read in between.
    pub(super) fn follow(&mut self, inner: &Trace) {
        for &hash in &inner.looked_up {
            self.look_up_hash(hash);
        }
        for (&hash, name) in &inner.changed {
            self.changed.entry(hash).or_insert_with(|| name.clone());
        }
    }

    /// The text was read from `start` to `end`. What changed and was put back depends on what it was before.
    pub fn finish(&mut self, start: &Macros, end: &Macros) {
        let same = |hash: u64, name: &str| match (start.lookup(hash, name), end.lookup(hash, name))
        {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let kept = &mut self.looked_up;
        self.changed.retain(|&hash, name| {
            let same = same(hash, name);
            if same {
                kept.insert(hash);
            }
            !same
        });
        self.changed.shrink_to_fit();
        self.looked_up.shrink_to_fit();
    }
}

/// True once `matters` says so of the hash of a name that two trees define differently.
fn differ(
    a: Option<&Arc<Node>>,
    b: Option<&Arc<Node>>,
    matters: &mut dyn FnMut(u64) -> bool,
) -> bool {
    match (a, b) {
        (None, None) => return false,
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => return false,
        (Some(a), Some(b)) => {
            if let (Node::Branch { .. }, Node::Branch { .. }) = (&**a, &**b) {
                return (0..32).any(|bit| differ(a.child(bit), b.child(bit), matters));
            }
        }
        _ => {}
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    if let Some(node) = a {
        node.entries(&mut left);
    }
    if let Some(node) = b {
        node.entries(&mut right);
    }
    let lacks = |of: &[&Arc<Macro>], entry: &Macro| {
        !of.iter()
            .any(|other| other.hash == entry.hash && other.content == entry.content)
    };
    left.iter()
        .any(|entry| lacks(&right, entry) && matters(entry.hash))
        || right
            .iter()
            .any(|entry| lacks(&left, entry) && matters(entry.hash))
}

/// A tree over the bits of the names' hashes, five at a time.
#[derive(Clone, Debug)]
enum Node {
    Branch {
        /// Which of the 32 children there are.
        present: u32,
        children: Vec<Arc<Node>>,
    },
    /// Several entries only where whole hashes are equal.
    Leaf { hash: u64, entries: Vec<Arc<Macro>> },
}

impl Node {
    fn child(&self, bit: u32) -> Option<&Arc<Node>> {
        match self {
            Self::Branch { present, children } if present & (1 << bit) != 0 => {
                children.get((present & ((1 << bit) - 1)).count_ones() as usize)
            }
            _ => None,
        }
    }

    fn entries<'n>(&'n self, out: &mut Vec<&'n Arc<Macro>>) {
        match self {
            Self::Branch { children, .. } => {
                for child in children {
                    child.entries(out);
                }
            }
            Self::Leaf { entries, .. } => out.extend(entries),
        }
    }

    fn leaf(entry: Arc<Macro>) -> Self {
        Self::Leaf {
            hash: entry.hash,
            entries: vec![entry],
        }
    }

    /// Gives the entry that was replaced.
    fn insert(&mut self, shift: u32, entry: Arc<Macro>) -> Option<Arc<Macro>> {
        match self {
            Self::Branch { present, children } => {
                let bit = 1 << ((entry.hash >> shift) & 31);
                let index = (*present & (bit - 1)).count_ones() as usize;
                if *present & bit == 0 {
                    *present |= bit;
                    children.insert(index, Arc::new(Self::leaf(entry)));
                    return None;
                }
                Arc::make_mut(&mut children[index]).insert(shift + 5, entry)
            }
            Self::Leaf { hash, entries } if *hash == entry.hash => {
                match entries.iter_mut().find(|old| old.name == entry.name) {
                    Some(old) => Some(std::mem::replace(old, entry)),
                    None => {
                        entries.push(entry);
                        None
                    }
                }
            }
            Self::Leaf { hash, .. } => {
                let bit = 1 << ((*hash >> shift) & 31);
                let old = std::mem::replace(
                    self,
                    Self::Branch {
                        present: bit,
                        children: Vec::new(),
                    },
                );
                if let Self::Branch { children, .. } = self {
                    children.push(Arc::new(old));
                }
                self.insert(shift, entry)
            }
        }
    }

    /// Gives the entry that was removed. A leaf may stay behind without entries.
    fn remove(&mut self, shift: u32, hash: u64, name: &str) -> Option<Arc<Macro>> {
        match self {
            Self::Branch { present, children } => {
                let bit = 1 << ((hash >> shift) & 31);
                if *present & bit == 0 {
                    return None;
                }
                let index = (*present & (bit - 1)).count_ones() as usize;
                Arc::make_mut(&mut children[index]).remove(shift + 5, hash, name)
            }
            Self::Leaf { entries, .. } => {
                let index = entries.iter().position(|entry| *entry.name == *name)?;
                Some(entries.swap_remove(index))
            }
        }
    }
}

/// One definition.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Box<str>,
    pub(super) hash: u64,
    /// A hash of the name, the parameters and the body.
    content: u64,
    /// `None` for a macro that is used without parentheses.
    pub(super) parameters: Option<Parameters>,
    pub(super) body: Box<str>,
    /// Made at the first use.
    tokens: OnceLock<Vec<BodyToken>>,
}

#[derive(Debug, Default)]
pub(super) struct Parameters {
    pub(super) names: Vec<Box<str>>,
    /// The last one takes the rest, commas included.
    pub(super) variadic: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BodyToken {
    pub(super) kind: Kind,
    pub(super) role: Role,
    /// White space is before it.
    pub(super) space: bool,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// What a token of a body does in an expansion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Plain,
    /// The parameter of this number.
    Parameter(u16),
    /// The `#` before that parameter and the parameter.
    Stringified(u16),
    Paste,
    /// `__VA_OPT__(`; the index of the token that closes it.
    Optional(u32),
    OptionalEnd,
}

impl Macro {
    /// Reads what is after `#define` on a line without comments and continuations.
    pub(super) fn parse(definition: &str) -> Option<Self> {
        let bytes = definition.as_bytes();
        let start = lexer::skip_blank(bytes, 0);
        if !bytes.get(start).copied().is_some_and(lexer::is_letter) {
            return None;
        }
        let mut at = lexer::identifier_end(bytes, start);
        let name = &definition[start..at];
        if name == "defined" {
            return None;
        }
        let mut parameters = None;
        if bytes.get(at) == Some(&b'(') {
            let (list, end) = parameter_list(definition, at + 1)?;
            parameters = Some(list);
            at = end;
        }
        let body = definition[at..].trim();
        let mut hasher = FxHasher::default();
        name.hash(&mut hasher);
        if let Some(list) = &parameters {
            list.names.hash(&mut hasher);
            hasher.write_u8(1 + u8::from(list.variadic));
        }
        body.hash(&mut hasher);
        Some(Self {
            name: name.into(),
            hash: hash_name(name.as_bytes()),
            content: mix(hasher.finish()),
            parameters,
            body: body.into(),
            tokens: OnceLock::new(),
        })
    }

    pub(super) fn tokens(&self) -> &[BodyToken] {
        self.tokens.get_or_init(|| self.read_body())
    }

    fn read_body(&self) -> Vec<BodyToken> {
        let bytes = self.body.as_bytes();
        let mut tokens: Vec<BodyToken> = Vec::new();
        let mut at = 0;
        loop {
            let start = lexer::skip_blank(bytes, at);
            if start >= bytes.len() {
                break;
            }
            let (kind, end) = lexer::token(bytes, start);
            tokens.push(BodyToken {
                kind,
                role: self.role(kind, &self.body[start..end]),
                space: start > at && !tokens.is_empty(),
                start: start as u32,
                end: end as u32,
            });
            at = end;
        }
        if self.parameters.is_some() {
            join_stringified(&mut tokens);
        }
        if self.parameters.as_ref().is_some_and(|list| list.variadic) {
            mark_optional(&mut tokens, &self.body);
        }
        // A paste needs something on both sides.
        if let Some(token) = tokens.first_mut()
            && token.role == Role::Paste
        {
            token.role = Role::Plain;
        }
        if let Some(token) = tokens.last_mut()
            && token.role == Role::Paste
        {
            token.role = Role::Plain;
        }
        tokens
    }

    fn role(&self, kind: Kind, text: &str) -> Role {
        match kind {
            Kind::Paste => Role::Paste,
            Kind::Identifier => self
                .parameters
                .as_ref()
                .and_then(|list| list.names.iter().position(|name| **name == *text))
                .map_or(Role::Plain, |index| Role::Parameter(index as u16)),
            _ => Role::Plain,
        }
    }
}

/// Spreads a hash over all bits, so that sums of hashes are as good as the hashes.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ (hash >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (hash >> 31)
}

/// The parameters after an opening parenthesis, and where their closing one ends.
fn parameter_list(text: &str, mut at: usize) -> Option<(Parameters, usize)> {
    let bytes = text.as_bytes();
    let mut list = Parameters::default();
    loop {
        at = lexer::skip_blank(bytes, at);
        match *bytes.get(at)? {
            b')' if list.names.is_empty() => return Some((list, at + 1)),
            b'.' if bytes[at..].starts_with(b"...") => {
                list.names.push("__VA_ARGS__".into());
                list.variadic = true;
                at += 3;
            }
            byte if lexer::is_letter(byte) => {
                let end = lexer::identifier_end(bytes, at);
                list.names.push(text[at..end].into());
                at = lexer::skip_blank(bytes, end);
                if bytes[at..].starts_with(b"...") {
                    list.variadic = true;
                    at += 3;
                }
            }
            _ => return None,
        }
        if list.names.len() > usize::from(u16::MAX) {
            return None;
        }
        at = lexer::skip_blank(bytes, at);
        match *bytes.get(at)? {
            b')' => return Some((list, at + 1)),
            b',' if !list.variadic => at += 1,
            _ => return None,
        }
    }
}

/// Puts each `#` and the parameter after it into one.
fn join_stringified(tokens: &mut Vec<BodyToken>) {
    let mut kept = 0;
    let mut at = 0;
    while at < tokens.len() {
        let mut token = tokens[at];
        if token.kind == Kind::Hash
            && let Some(next) = tokens.get(at + 1)
            && let Role::Parameter(index) = next.role
        {
            token.role = Role::Stringified(index);
            token.end = next.end;
            at += 1;
        }
        tokens[kept] = token;
        kept += 1;
        at += 1;
    }
    tokens.truncate(kept);
}

/// Finds each `__VA_OPT__(` and what closes it.
fn mark_optional(tokens: &mut Vec<BodyToken>, body: &str) {
    let mut at = 0;
    while at + 1 < tokens.len() {
        let token = tokens[at];
        let is_optional = token.kind == Kind::Identifier
            && &body[token.start as usize..token.end as usize] == "__VA_OPT__"
            && tokens[at + 1].kind == Kind::OpenParenthesis;
        if is_optional {
            let mut depth = 0usize;
            let close = (at + 1..tokens.len()).find(|&index| {
                match tokens[index].kind {
                    Kind::OpenParenthesis => depth += 1,
                    Kind::CloseParenthesis => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            let Some(close) = close else {
                return;
            };
            tokens[close].role = Role::OptionalEnd;
            tokens[at].role = Role::Optional(close as u32 - 1);
            tokens.remove(at + 1);
        }
        at += 1;
    }
}
