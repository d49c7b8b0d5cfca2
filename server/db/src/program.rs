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
use warplens_syntax::{Directive, Expanded};

use crate::lowered::Lowered;
use crate::options::BuildOptions;

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
        let mut hasher = FxHasher::default();
        let lacks = (self.text.missing.is_empty(), self.text.lacks_a_library);
        (self.headers_key, lacks).hash(&mut hasher);
        let launches = self.launch_words();
        // What the parser cannot read leaves functions in no item, or in the midst of another.
        let is_broken = self.text.tree.root_node().has_error();
        let mut end = 0;
        for item in &self.items {
            let text = &self.text.text[item.range.clone()];
            if is_broken {
                between(&self.text.text, end..item.range.start).hash(&mut hasher);
                end = end.max(item.range.end);
            }
            match &item.kind {
                ItemKind::Kernel(name) if !launches.within(&item.range) => name.hash(&mut hasher),
                ItemKind::Function(name)
                    if is_only_device(text) && !launches.within(&item.range) =>
                {
                    name.hash(&mut hasher);
                }
                // The source as well: ranges are kept in it.
                _ => {
                    let source = &self.text.source[item.source.clone()];
                    (text, source, item.reading).hash(&mut hasher);
                }
            }
        }
        if is_broken {
            between(&self.text.text, end..self.text.text.len()).hash(&mut hasher);
        }
        hasher.finish()
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
    /// In IR under the first of them, where that was looked at for what it calls.
    pub(crate) lowered: Option<Result<Option<Arc<Lowered>>, ()>>,
    /// What was read for those near its file.
    pub(crate) near: Option<Arc<NearLaunches>>,
}

/// The text between two items, without the white space around it.
fn between(text: &str, range: Range<usize>) -> &str {
    text.get(range).unwrap_or_default().trim()
}

pub(crate) fn is_device(text: &str) -> bool {
    let head = &text[..text.find('{').unwrap_or(text.len())];
    head.contains("__device__") || is_for_both(head)
}

/// A function that may be worked out while compiling, on either side.
fn is_for_both(head: &str) -> bool {
    head.contains("constexpr") || head.contains("consteval")
}

/// A function that the host cannot call.
fn is_only_device(text: &str) -> bool {
    let head = &text[..text.find('{').unwrap_or(text.len())];
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
