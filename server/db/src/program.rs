//! A text taken apart: its items, what they declare, and what of it a kernel's answer depends on.
//!
//! What is here is plain data; the queries that make it are in [`crate::queries`].

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHasher};
use warplens_hir::{Item, ItemKind, Unit};
use warplens_host::{HeaderNames, LaunchSite, LaunchWords};
use warplens_ir::Assumption;
use warplens_syntax::{Directive, Expanded, Node};

use crate::lowered::Lowered;
use crate::memo::hash;
use crate::options::BuildOptions;

/// Namespaces and broken code nest this deep at most.
const DEEPEST: u32 = 64;

/// A text taken apart: what its kernels need, each with the hash of all it depends on.
pub(crate) struct Program {
    pub(crate) text: Arc<Expanded>,
    pub(crate) items: Vec<Item>,
    pub(crate) unit: Arc<Unit>,
    pub(crate) unit_key: u64,
    /// A hash of the texts before it.
    pub(crate) headers_key: u64,
    /// Only kernels in these bytes of the source count: the rest is another program's.
    pub(crate) only: Option<Range<usize>>,
    /// What the host program's build defines for it.
    pub(crate) options: Option<Arc<BuildOptions>>,
    /// The files that it is linked with.
    pub(crate) linked: Vec<PathBuf>,
    /// The same without the definitions that were assumed, where some were.
    pub(crate) unassumed: Option<Arc<Unassumed>>,
    /// Where its functions begin, see [`Program::functions`].
    pub(crate) functions: OnceLock<Arc<FxHashMap<u64, u32>>>,
    pub(crate) launch_words: OnceLock<LaunchWords>,
    /// The kernels of its headers, and the functions there that launch.
    pub(crate) header_names: Arc<HeaderNames>,
    /// See [`Program::build_key`].
    pub(crate) build_key: OnceLock<u64>,
}

/// A file without the definitions that were assumed for it.
pub(crate) struct Unassumed {
    pub(crate) program: Program,
    /// Kernels whose launches in the file are others then.
    pub(crate) launched_otherwise: BTreeSet<String>,
}

impl Program {
    /// A hash of what its launches depend on: what runs on the device matters to them by its name, unless it launches itself.
    pub(crate) fn launching(&self) -> u64 {
        self.launching_behind(self.headers_key)
    }

    /// The same behind headers of which launches depend on this.
    pub(crate) fn launching_behind(&self, headers: u64) -> u64 {
        let own = launching(&self.text, &self.items, self.launch_words());
        let lacks = (self.text.missing.is_empty(), self.text.lacks_a_library);
        hash(&[&headers, &lacks, &own])
    }

    pub(crate) fn launch_words(&self) -> &LaunchWords {
        let words = || LaunchWords::of(&self.text.text, &self.header_names);
        self.launch_words.get_or_init(words)
    }

    /// A hash of what its build defines, and which of these names stand in its own text; which stand in its headers follows from
    /// these.
    pub(crate) fn build_key(&self) -> u64 {
        *self.build_key.get_or_init(|| {
            let mut hasher = FxHasher::default();
            if let Some(options) = &self.options {
                options.hash(&mut hasher);
                let names = options
                    .names()
                    .map(|name| has_word(&self.text.source, name));
                names.for_each(|name| name.hash(&mut hasher));
            }
            hasher.finish()
        })
    }

    /// What is assumed of its kernels: of what its build defines, the names that stand in it.
    pub(crate) fn assumed_of_build(&self) -> Vec<Assumption> {
        let options = self.options.iter();
        let is_named = |name: &str| stands_in(name, &self.text);
        options
            .flat_map(|options| options.assumptions(is_named))
            .collect()
    }

    /// Where each of its functions begins now, by the hash of what it says.
    pub(crate) fn functions(&self) -> Arc<FxHashMap<u64, u32>> {
        let lines = || Arc::new(function_lines(self));
        Arc::clone(self.functions.get_or_init(lines))
    }
}

/// A hash of what launches depend on in a text, their own or those of a text behind it.
pub(crate) fn launching(text: &Expanded, items: &[Item], launches: &LaunchWords) -> u64 {
    let mut hasher = FxHasher::default();
    let by_name = |item: &&Item| {
        let of_device = match item.kind {
            ItemKind::Kernel(_) => true,
            ItemKind::Function(_) => is_only_device(&text.text[item.range.clone()]),
            ItemKind::Declaration => false,
        };
        of_device && !launches.within(&item.range)
    };
    let bodies: Vec<Range<usize>> = items
        .iter()
        .filter(by_name)
        .map(|item| item.range.clone())
        .collect();
    // What the parser cannot read leaves functions in no item, or in the midst of another.
    let is_broken = is_broken_beside(text.tree.root_node(), &bodies, 0);
    let mut end = 0;
    for item in items {
        let said = &text.text[item.range.clone()];
        if is_broken {
            between(&text.text, end..item.range.start).hash(&mut hasher);
            end = end.max(item.range.end);
        }
        match &item.kind {
            ItemKind::Kernel(name) | ItemKind::Function(name) if by_name(&item) => {
                name.hash(&mut hasher);
                // Which instance is launched follows from its parameters.
                if said.starts_with("template") {
                    head(said).hash(&mut hasher);
                }
            }
            // The source as well: ranges are kept in it.
            _ => {
                let source = &text.source[item.source.clone()];
                (said, source, item.reading).hash(&mut hasher);
            }
        }
    }
    if is_broken {
        between(&text.text, end..text.text.len()).hash(&mut hasher);
    }
    hasher.finish()
}

/// True where the parser could not read something that is in none of these pieces of a text, which are in order: a function that is
/// half-typed leaves what is beside it as it is.
fn is_broken_beside(node: Node<'_>, pieces: &[Range<usize>], depth: u32) -> bool {
    if !node.has_error() {
        return false;
    }
    let before = pieces.partition_point(|piece| piece.start <= node.start_byte());
    let around = before.checked_sub(1).and_then(|at| pieces.get(at));
    if around.is_some_and(|around| node.end_byte() <= around.end) {
        return false;
    }
    node.is_error()
        || node.is_missing()
        || depth == DEEPEST
        || node
            .children()
            .any(|child| is_broken_beside(child, pieces, depth + 1))
}

/// A file taken apart: its own text first, then the programs in its string literals.
pub(crate) struct FileParts {
    pub(crate) programs: Vec<Program>,
    /// Launches in this file; ranges in its source.
    pub(crate) sites: Vec<LaunchSite>,
    pub(crate) directives: Vec<Directive>,
    /// Files that were read for who includes it, what it is linked with, how it is built and who calls its functions.
    pub(crate) read_around: BTreeSet<PathBuf>,
    /// Whether it is read as another file includes it.
    pub(crate) is_included: bool,
}

/// The kernels of a file in the order of its programs, each with the bytes between it and the item before.
pub(crate) fn kernels_of(
    parts: &FileParts,
) -> impl Iterator<Item = (&Program, &Item, Range<usize>)> {
    parts.programs.iter().flat_map(|program| {
        let mut previous_end = 0;
        program.items.iter().filter_map(move |item| {
            let between = previous_end.min(item.source.start)..item.source.start;
            previous_end = previous_end.max(item.source.end);
            let counts = program
                .only
                .as_ref()
                .is_none_or(|only| only.contains(&item.source.start));
            let kernel = matches!(item.kind, ItemKind::Kernel(_));
            (kernel && counts).then_some((program, item, between))
        })
    })
}

/// A definition of a kernel with its launches, and whether each is in its own file.
pub(crate) struct Launched {
    pub(crate) sites: Vec<(LaunchSite, bool)>,
    /// In IR under the first of them with most threads, where that was looked at for what it calls.
    pub(crate) lowered: Option<Result<Option<Arc<Lowered>>, ()>>,
    /// What was read for those near its file.
    pub(crate) near: Option<Arc<NearLaunches>>,
}

/// The text between two items, without the white space around it.
fn between(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default().trim()
}

/// A function without its body.
fn head(text: &str) -> &str {
    text.split('{').next().unwrap_or(text)
}

pub(crate) fn is_device(text: &str) -> bool {
    let head = head(text);
    head.contains("__device__") || is_for_both(head)
}

/// A function that may be worked out while compiling, on either side.
fn is_for_both(head: &str) -> bool {
    head.contains("constexpr") || head.contains("consteval")
}

/// A function that the host cannot call.
fn is_only_device(text: &str) -> bool {
    let head = head(text);
    let host = head.contains("__host__") || is_for_both(head);
    head.contains("__device__") && !host
}

/// True where a text or a header of it has the name as a word.
fn stands_in(name: &str, text: &Expanded) -> bool {
    has_word(&text.source, name) || text.includes.iter().any(|header| stands_in(name, header))
}

fn has_word(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = text.match_indices(name);
    found.any(|(at, _)| !text[..at].ends_with(word) && !text[at + name.len()..].starts_with(word))
}

/// Where each item of a text begins now, by the hash of what it says.
fn function_lines(program: &Program) -> FxHashMap<u64, u32> {
    program
        .items
        .iter()
        .map(|item| {
            let hash = warplens_hir::text_hash(&program.text.text[item.range.clone()]);
            (hash, item.line)
        })
        .collect()
}

/// The launches of a kernel in the files near it.
#[derive(Debug)]
pub(crate) struct NearLaunches {
    pub(crate) sites: Arc<[LaunchSite]>,
    /// Whether the programs that include the kernel's file say the block: the launches of that file are among theirs.
    pub(crate) by_includers: bool,
    /// The files that were read for them.
    pub(crate) read: BTreeSet<PathBuf>,
}

/// The name of a kernel; an item of another kind has none here.
pub(crate) fn kernel_name(item: &Item) -> &str {
    match &item.kind {
        ItemKind::Kernel(name) => name,
        ItemKind::Function(_) | ItemKind::Declaration => "",
    }
}
