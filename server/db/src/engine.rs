//! From a document to its analysis, recomputing only what changed.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use warplens_advice::Place;
use warplens_base::Command;
use warplens_codegen::{CompiledKernel, Options, compile};
use warplens_hir::{Item, ItemKind, TemplateArguments, Unit, lower, outline};
use warplens_host::{Build, LaunchSite, LaunchWords, builds, launch_sites, may_build};
use warplens_ir::{Assumption, AssumptionKind, CalleeLine, Kernel};
use warplens_machine::{Profile, Profiles};
use warplens_syntax::{Directive, DirectiveKind, Document, Expanded, Language, directives};

use crate::clock;
use crate::compiled;
use crate::compilers::{CompilerWord, Words};
use crate::estimate::Question;
use crate::kinds::is_header;
use crate::launch::Given;
use crate::launches::{Called, Hosts, arguments_of};
use crate::options::{BuildOptions, kernel_names};
use crate::parallel;
use crate::settings::{BankBytes, Settings};
use crate::suppress;
use crate::surroundings::Surroundings;
use crate::translation::{Project, flatten};
use crate::{
    Cancel, FileAnalysis, KernelAnalysis, Overrides, PlacedFinding, PlacedKernel, Severity,
    Variants,
};

/// The target where nobody names one.
pub const DEFAULT_GPU: &str = "a100-sxm4-40gb";

/// Analyses kept, and kernels in IR, and units; the oldest half goes when there are more. Units hold whole
/// texts with their trees.
const MOST_ANALYSES: usize = 1024;
const MOST_KERNELS: usize = 512;
const MOST_UNITS: usize = 128;
/// Branches inside one kernel that are offered.
const MOST_BRANCHES: usize = 4;
/// Analyses of one file that are computed before other threads are asked to help: an edit needs one or two.
const FEW: usize = 4;
/// Times that other files are looked for in which there may be what one lacks.
const MOST_LOOKS: usize = 3;

/// Analyses documents. One engine serves every document and thread of a process.
#[derive(Debug)]
pub struct Engine {
    profiles: Profiles,
    project: Project,
    units: Kept<u64, Unit>,
    outlines: Kept<u64, Vec<Item>>,
    /// Launches of a text, each with the item that holds it; ranges count from that item's first byte.
    sites: Kept<u64, Vec<(usize, LaunchSite)>>,
    /// What host programs say of the kernels of other files.
    pub(crate) hosts: Hosts,
    /// What a text with programs in its literals builds them with.
    builds: Kept<u64, Vec<Build>>,
    /// Whether an analysis can say its counts as formulas later.
    formulas: bool,
    /// Whether the kernels of one file are shared out among threads.
    shares: bool,
    kernels: Kept<u64, Lowered>,
    /// What the machine executes, by the kernel's shape and how it is compiled.
    compiled: Kept<(u64, Options), CompiledKernel>,
    analyses: Kept<u64, KernelAnalysis>,
    /// What compilers said.
    pub(crate) words: Words,
}

/// A kernel in IR, with what the default launch needs to know of it.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) kernel: Kernel,
    /// A hash of the kernel apart from where it stands: what its analysis is kept under.
    pub(crate) fingerprint: u64,
    /// A hash of what is compiled: what the compiled kernel is kept under.
    shape: u64,
}

impl Lowered {
    pub(crate) fn new(kernel: Kernel) -> Lowered {
        Lowered {
            fingerprint: kernel.fingerprint(),
            shape: kernel.shape(),
            kernel,
        }
    }
}

/// What was computed once, by content, and how many values have room.
#[derive(Debug)]
struct Kept<K, V>(Mutex<Dated<K, V>>, AtomicUsize);

/// Values with the moment of their last use, and that clock.
type Dated<K, V> = (FxHashMap<K, (u64, Arc<V>)>, u64);

impl<K: Hash + Eq + Copy, V> Kept<K, V> {
    fn new(most: usize) -> Self {
        Kept(
            Mutex::new((FxHashMap::default(), 0)),
            AtomicUsize::new(most),
        )
    }

    /// A file has so many of these. What it has now must outlast what it had before: else each keystroke in a file larger
    /// than the room would compute again what it throws away.
    fn make_room(&self, live: usize) {
        self.1.fetch_max(2 * live + live / 2, Ordering::Relaxed);
    }

    fn get(&self, key: K) -> Option<Arc<V>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (map, clock) = &mut *kept;
        *clock += 1;
        map.get_mut(&key).map(|(used, value)| {
            *used = *clock;
            Arc::clone(value)
        })
    }

    fn put(&self, key: K, value: V) -> Arc<V> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (map, clock) = &mut *kept;
        *clock += 1;
        if map.len() >= self.1.load(Ordering::Relaxed) {
            let mut ages: Vec<u64> = map.values().map(|(used, _)| *used).collect();
            ages.sort_unstable();
            let limit = ages[ages.len() / 2];
            map.retain(|_, (used, _)| *used > limit);
        }
        match map.entry(key) {
            Entry::Occupied(entry) => Arc::clone(&entry.get().1),
            Entry::Vacant(entry) => Arc::clone(&entry.insert((*clock, Arc::new(value))).1),
        }
    }

    fn clear(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0 = FxHashMap::default();
    }

    fn get_or(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        self.get(key).unwrap_or_else(|| self.put(key, make()))
    }
}

fn hash(parts: &[&dyn HashInto]) -> u64 {
    let mut hasher = FxHasher::default();
    for part in parts {
        part.hash_into(&mut hasher);
    }
    hasher.finish()
}

/// Anything that hashes, as an object.
trait HashInto {
    fn hash_into(&self, hasher: &mut FxHasher);
}

impl<T: Hash + ?Sized> HashInto for T {
    fn hash_into(&self, hasher: &mut FxHasher) {
        self.hash(hasher);
    }
}

/// A text taken apart: what its kernels need, each with the hash of all it depends on.
pub(crate) struct Program {
    pub(crate) text: Arc<Expanded>,
    pub(crate) items: Vec<Item>,
    pub(crate) unit: Arc<Unit>,
    pub(crate) unit_key: u64,
    /// A hash of the texts before it.
    headers_key: u64,
    /// Only kernels in these bytes of the source count: the rest is another program's.
    pub(crate) only: Option<Range<usize>>,
    /// What the host program's build defines for it.
    pub(crate) options: Option<Arc<BuildOptions>>,
    /// The files that it is linked with.
    pub(crate) linked: Vec<PathBuf>,
    /// Where its functions begin, see [`Program::functions`].
    functions: OnceLock<Arc<FxHashMap<u64, u32>>>,
    launch_words: OnceLock<LaunchWords>,
}

impl Program {
    /// A hash of what its launches depend on: what runs on the device matters to them by its name, unless it launches itself.
    pub(crate) fn launching(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.headers_key, self.text.missing.is_empty()).hash(&mut hasher);
        let launches = self.launch_words();
        for item in &self.items {
            let text = &self.text.text[item.range.clone()];
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
        hasher.finish()
    }

    fn launch_words(&self) -> &LaunchWords {
        let words = || LaunchWords::of(&self.text.text);
        self.launch_words.get_or_init(words)
    }

    /// Where each of its functions begins now, by the hash of what it says.
    fn functions(&self) -> Arc<FxHashMap<u64, u32>> {
        let lines = || Arc::new(function_lines(self));
        Arc::clone(self.functions.get_or_init(lines))
    }
}

/// A definition of a kernel with its launches, and whether each stands in its own file.
pub(crate) struct Launched {
    sites: Vec<(LaunchSite, bool)>,
    /// In IR under the first of them, where that was looked at for what it calls.
    pub(crate) lowered: Option<Result<Option<Arc<Lowered>>, ()>>,
    /// Whether that was not kept from before.
    computed: bool,
}

/// What came of one definition of a kernel.
#[derive(Default)]
struct Made {
    kernels: Vec<PlacedKernel>,
    findings: Vec<PlacedFinding>,
    problems: Vec<String>,
    /// Analyses that were not kept from before.
    computed: usize,
}

/// A file taken apart: its own text first, then the programs in its string literals.
pub(crate) struct FileParts {
    pub(crate) programs: Vec<Program>,
    /// Launches in this file; ranges in its source.
    pub(crate) sites: Vec<LaunchSite>,
    pub(crate) directives: Vec<Directive>,
    /// Whether it is read as another file includes it.
    is_included: bool,
}

impl Engine {
    /// An engine with these profiles that reads no files but those it is given.
    pub fn new(profiles: Profiles) -> Engine {
        Engine::with_project(profiles, Project::default())
    }

    /// An engine that finds headers, compile commands and launches in a project.
    pub fn with_project(profiles: Profiles, project: Project) -> Engine {
        Engine::keeping(profiles, project, [MOST_UNITS, MOST_KERNELS, MOST_ANALYSES])
    }

    /// The same for looking at many files once each: it keeps next to nothing.
    pub fn for_many_files(profiles: Profiles, project: Project) -> Engine {
        Engine {
            formulas: false,
            // Others look at other files meanwhile.
            shares: false,
            ..Engine::keeping(profiles, project, [32, 2, 2])
        }
    }

    fn keeping(profiles: Profiles, project: Project, most: [usize; 3]) -> Engine {
        let [units, kernels, analyses] = most;
        Engine {
            profiles,
            project,
            units: Kept::new(units),
            outlines: Kept::new(2 * units),
            sites: Kept::new(kernels),
            hosts: Hosts::default(),
            builds: Kept::new(kernels),
            formulas: true,
            shares: true,
            kernels: Kept::new(kernels),
            compiled: Kept::new(kernels),
            analyses: Kept::new(analyses),
            words: Words::default(),
        }
    }

    /// Lets go of everything that was computed: nobody looks at a file any more.
    pub fn forget(&self) {
        self.hosts.clear();
        self.project.forget();
        self.units.clear();
        self.outlines.clear();
        self.sites.clear();
        self.builds.clear();
        self.kernels.clear();
        self.compiled.clear();
        self.analyses.clear();
    }

    /// The project.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// The profiles.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The target that the settings name, or the one that the file is compiled for, or the default; with a
    /// word about what is wrong.
    pub(crate) fn target(&self, settings: &Settings, path: &Path) -> (Arc<Profile>, Vec<String>) {
        let default = || {
            self.project
                .target(path, &self.profiles)
                .or_else(|| self.profiles.get(DEFAULT_GPU))
                .or_else(|| self.profiles.iter().next())
                .expect("profiles are built in")
        };
        let (profile, mut problems) = match &settings.gpu {
            None => (default(), Vec::new()),
            Some(id) => match self.profiles.get(id) {
                Some(profile) => (profile, Vec::new()),
                None => (
                    default(),
                    vec![crate::settings::unknown_gpu(id, &self.profiles)],
                ),
            },
        };
        let other_mode = (settings.shared_bank_bytes == Some(BankBytes::Eight))
            .then(|| profile.with_eight_byte_banks());
        let profile = other_mode.flatten().map_or(profile, Arc::new);
        let (other_clock, problem) = clock::clocked(&profile, settings);
        problems.extend(problem);
        let profile = other_clock.map_or(profile, Arc::new);
        (profile, problems)
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    fn parts(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        neighbours: bool,
        linked: &[PathBuf],
        options: Option<&Arc<BuildOptions>>,
    ) -> FileParts {
        let translation = self
            .project
            .translate(document, path, settings, profile, neighbours, linked);
        let mut main = self.program(&translation.text, &translation.headers);
        main.options = options.cloned();
        main.linked = translation.linked;
        let sites = self.launches_in(&main);
        let (embedded, built) = self.embedded(&main, document, path, settings, profile);
        let mut programs = vec![main];
        for embedded in &embedded {
            let mut program = self.program(embedded, &flatten(&embedded.includes));
            program.options.clone_from(&built);
            programs.push(program);
        }
        for (branch, other) in &translation.text.alternatives {
            let mut program = self.program(other, &flatten(&other.includes));
            program.only = Some(branch.clone());
            program.options = options.cloned();
            programs.push(program);
        }
        FileParts {
            programs,
            sites,
            directives: directives(&translation.text.source),
            is_included: translation.is_included,
        }
    }

    /// The programs in a text's string literals, read with the options that the text builds them with.
    fn embedded(
        &self,
        main: &Program,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
    ) -> (Vec<Arc<Expanded>>, Option<Arc<BuildOptions>>) {
        let embedded = main.text.embedded.clone();
        if embedded.is_empty() || !may_build(&main.text.text) {
            return (embedded, None);
        }
        let key = hash(&[&main.unit_key, &main.text.hash]);
        let builds = self
            .builds
            .get_or(key, || builds(&main.text, &main.items, &main.unit));
        let kernels: Vec<String> = embedded
            .iter()
            .flat_map(|program| kernel_names(&program.text))
            .collect();
        let Some(options) = BuildOptions::of(&builds, &kernels, path, &main.text.source, settings)
        else {
            return (embedded, None);
        };
        // A copy: what is defined for the programs means nothing to the text around them.
        let copy = document.clone();
        let translation =
            self.project
                .translate(&copy, path, &options.applied(settings), profile, false, &[]);
        (translation.text.embedded.clone(), Some(Arc::new(options)))
    }

    pub(crate) fn program(&self, text: &Arc<Expanded>, headers: &[Arc<Expanded>]) -> Program {
        self.program_with(text, headers, None)
    }

    /// The same with another source file whose host functions it may call.
    pub(crate) fn program_with(
        &self,
        text: &Arc<Expanded>,
        headers: &[Arc<Expanded>],
        linked: Option<&Arc<Expanded>>,
    ) -> Program {
        let language = text.language;
        let mut key = hash(&[&language]);
        let mut earlier: Option<Arc<Unit>> = None;
        for header in headers {
            key = hash(&[&key, &header.hash]);
            let unit = self.units.get_or(key, || {
                let items = self.items(header);
                if language == Language::OpenCl || is_header(&header.path) {
                    return Unit::new(header, &items, earlier.clone(), true);
                }
                // A source file that is included or linked: its host functions are no kernel's affair.
                let device: Vec<Item> = items
                    .iter()
                    .filter(|item| {
                        !matches!(item.kind, ItemKind::Function(_))
                            || is_device(&header.text[item.range.clone()])
                    })
                    .cloned()
                    .collect();
                Unit::new(header, &device, earlier.clone(), true)
            });
            if !unit.is_bare() {
                earlier = Some(unit);
            }
        }
        if let Some(linked) = linked {
            key = hash(&[&key, &linked.hash, &"linked"]);
            let unit = self.units.get_or(key, || {
                Unit::new(linked, &self.items(linked), earlier.clone(), true)
            });
            earlier = Some(unit);
        }
        let items = outline(text);
        let spelled = |item: &Item| &text.text[item.range.clone()];
        // Host functions do not matter to a kernel, only their launches do.
        let declares = |item: &Item| match item.kind {
            ItemKind::Kernel(_) => false,
            ItemKind::Declaration => true,
            ItemKind::Function(_) => language == Language::OpenCl || is_device(spelled(item)),
        };
        let declarations: Vec<Item> = items
            .iter()
            .filter(|item| declares(item))
            .cloned()
            .collect();
        let mut hasher = FxHasher::default();
        (key, language).hash(&mut hasher);
        for item in &declarations {
            (spelled(item), item.reading).hash(&mut hasher);
        }
        let unit_key = hasher.finish();
        let unit = self
            .units
            .get_or(unit_key, || Unit::new(text, &declarations, earlier, false));
        Program {
            text: Arc::clone(text),
            items,
            unit,
            unit_key,
            headers_key: key,
            only: None,
            options: None,
            linked: Vec::new(),
            functions: OnceLock::new(),
            launch_words: OnceLock::new(),
        }
    }

    /// The items of a header: the same whatever stands before it.
    pub(crate) fn items(&self, header: &Arc<Expanded>) -> Arc<Vec<Item>> {
        self.outlines.get_or(header.hash, || outline(header))
    }

    /// The launches in a text; ranges in its source.
    pub(crate) fn launches_in(&self, program: &Program) -> Vec<LaunchSite> {
        let text = &program.text.text;
        if !program.launch_words().within(&(0..text.len())) {
            return Vec::new();
        }
        // Kept relative to the item that holds them, so that they survive edits elsewhere.
        let found = self.sites.get_or(program.launching(), || {
            launch_sites(&program.text, &program.items, &program.unit)
                .into_iter()
                .map(|mut site| {
                    let (item, start) = program
                        .items
                        .iter()
                        .enumerate()
                        .map(|(at, item)| (at, item.source.start))
                        .filter(|(_, start)| *start <= site.range.start)
                        .max_by_key(|(_, start)| *start)
                        .unwrap_or((0, 0));
                    site.range = site.range.start - start..site.range.end - start;
                    (item, site)
                })
                .collect()
        });
        found
            .iter()
            .cloned()
            .map(|(item, mut site)| {
                let start = program.items.get(item).map_or(0, |item| item.source.start);
                site.range = site.range.start + start..site.range.end + start;
                site
            })
            .collect()
    }

    /// The folders in which what a file lacks is looked for.
    pub(crate) fn around(&self, path: &Path) -> Vec<PathBuf> {
        self.project.around(path)
    }

    /// Analyses every kernel of a parsed document; `None` when cancelled.
    pub fn analyze(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        cancel: &Cancel,
    ) -> Option<FileAnalysis> {
        self.analyze_some(document, path, settings, overrides, cancel, &|_| true)
    }

    /// The same for the kernels whose names are wanted.
    pub(crate) fn analyze_some(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        cancel: &Cancel,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<FileAnalysis> {
        let mut file =
            self.analyze_as(document, path, settings, overrides, cancel, wanted, false)?;
        // OpenCL that lacks what its host puts in front: the neighbours may have it. A file that includes others
        // says itself what it needs.
        let alone = || !includes_others(document.source());
        let lacks = |file: &FileAnalysis| (losses(file), left_to_the_build(file));
        if document.language() == Language::OpenCl && lacks(&file) > (0, 0) && alone() {
            let second =
                self.analyze_as(document, path, settings, overrides, cancel, wanted, true)?;
            if places(&second) >= places(&file) && lacks(&second) < lacks(&file) {
                file = second;
            }
        }
        Some(file)
    }

    /// A file taken apart, with the files that define what its kernels call and it does not: these may lack something in turn.
    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    fn linked_parts(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        around: &Settings,
        overrides: &Overrides,
        profile: &Profile,
        neighbours: bool,
        options: Option<&Arc<BuildOptions>>,
        cancel: &Cancel,
    ) -> Option<(FileParts, Vec<Launched>)> {
        let mut linked: Vec<PathBuf> = Vec::new();
        let mut names: BTreeSet<String> = BTreeSet::new();
        let opencl = document.language() == Language::OpenCl;
        for look in 0.. {
            let parts = self.parts(
                document, path, settings, profile, neighbours, &linked, options,
            );
            let by_callers = self.launches_by_callers(path, &parts, around, profile);
            let kernels: Vec<(&Program, &Item)> = kernels_of(&parts)
                .map(|(program, item, _)| (program, item))
                .collect();
            self.kernels.make_room(kernels.len());
            let launched = |(program, item): &(&Program, &Item)| {
                let name = match &item.kind {
                    ItemKind::Kernel(name) if !cancel.is_cancelled() => name,
                    _ => return None,
                };
                let kernel = called(program, item, name);
                let sites =
                    self.launches_of(kernel, &parts.sites, &by_callers, path, around, profile);
                let unknown = LaunchSite::unknown(name);
                let site = sites.first().map_or(&unknown, |(site, _)| site);
                let (lowered, computed) = if opencl {
                    (None, false)
                } else {
                    let (lowered, computed) = self.lowered(program, item, site, overrides);
                    (Some(lowered), computed)
                };
                Some(Launched {
                    sites,
                    lowered,
                    computed,
                })
            };
            // What is known already takes no time; where several are new most will be.
            let mut all: Vec<Launched> = Vec::with_capacity(kernels.len());
            let mut computed = 0;
            for kernel in &kernels {
                if self.shares && computed >= FEW {
                    break;
                }
                let one = launched(kernel)?;
                computed += usize::from(one.computed);
                all.push(one);
            }
            for one in parallel::in_order(&kernels[all.len()..], launched) {
                all.push(one?);
            }
            let launched = all;
            if opencl || parts.is_included || look == MOST_LOOKS || path.as_os_str().is_empty() {
                return Some((parts, launched));
            }
            let known = names.len();
            for one in &launched {
                if let Some(Ok(Some(lowered))) = &one.lowered {
                    names.extend(lowered.kernel.undefined.iter().cloned());
                }
            }
            if names.len() == known {
                return Some((parts, launched));
            }
            let wanted: Vec<String> = names.iter().cloned().collect();
            let found = self.project.defining(path, &wanted);
            if found == linked {
                return Some((parts, launched));
            }
            linked = found;
        }
        None
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    fn analyze_as(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        cancel: &Cancel,
        wanted: &dyn Fn(&str) -> bool,
        neighbours: bool,
    ) -> Option<FileAnalysis> {
        let (profile, mut problems) = self.target(settings, path);
        let options = self
            .build_options(document, path, settings, &profile)
            .map(Arc::new);
        // What is defined for the kernels means nothing to the programs around them.
        let around = settings;
        let built = options.as_ref().map(|options| options.applied(settings));
        let settings = built.as_ref().unwrap_or(settings);
        let (parts, launched) = self.linked_parts(
            document,
            path,
            settings,
            around,
            overrides,
            &profile,
            neighbours,
            options.as_ref(),
            cancel,
        )?;
        let ignored = parts
            .directives
            .iter()
            .any(|d| d.kind == DirectiveKind::IgnoreFile);
        let command = self.project.command(path);
        let mut found = 0;
        let mut items = Vec::new();
        for ((program, item, between), launched) in kernels_of(&parts).zip(&launched) {
            let ItemKind::Kernel(name) = &item.kind else {
                continue;
            };
            found += 1;
            if !ignored && wanted(name) {
                items.push((program, item, name, between, launched));
            }
        }
        self.kernels.make_room(items.len());
        self.compiled.make_room(items.len());
        self.analyses.make_room(items.len());
        // One definition of a kernel, under each of its launches that is looked at; `None` when cancelled.
        let make = |one: &(&Program, &Item, &String, Range<usize>, &Launched)| {
            if cancel.is_cancelled() {
                return None;
            }
            let (program, item, name, between, launched) = one;
            let (program, item, name) = (*program, *item, name.as_str());
            let mut made = Made::default();
            let mut branches: Vec<Vec<(String, String)>> = Vec::new();
            let mut variants = launched.sites.clone();
            let blocks: Vec<_> = variants.iter().map(|(site, _)| site.block).collect();
            if variants.is_empty() {
                variants.push((LaunchSite::unknown(name), false));
            }
            let mut names: Vec<String> = variants.iter().map(|(site, _)| describe(site)).collect();
            // Branches inside the kernel that nothing decided: the kernel with each of them taken.
            let launches = variants.len();
            for assume in undecided_within(&program.text, &item.source) {
                names.push(format!("with {}", spelled(&assume)));
                variants.push(variants[0].clone());
                branches.push(assume);
            }
            let chosen = match &overrides.variants {
                Variants::All => 0..variants.len(),
                Variants::Chosen(by_name) => {
                    let at = by_name.get(name).copied().unwrap_or(0) % variants.len();
                    at..at + 1
                }
            };
            for at in chosen {
                let (site, here) = &variants[at];
                let other = at.checked_sub(launches).and_then(|branch| {
                    let assume = branches.get(branch)?;
                    let (mut other, item) = self.with_branch(
                        document,
                        path,
                        settings,
                        &profile,
                        assume,
                        &parts.programs[0].linked,
                        item,
                    )?;
                    other.options.clone_from(&program.options);
                    Some((other, item))
                });
                let (program, item) = match &other {
                    Some((program, item)) => (program, item),
                    None => (program, item),
                };
                let known = launched.lowered.clone().filter(|_| at == 0);
                let lower = || self.lowered(program, item, site, overrides).0;
                let lowered = match known.unwrap_or_else(lower) {
                    Ok(Some(lowered)) => lowered,
                    Ok(None) => continue,
                    Err(()) => {
                        made.problems.push(lost(name));
                        continue;
                    }
                };
                let mut given = Given::of(
                    &lowered.kernel,
                    item,
                    between.clone(),
                    &parts.directives,
                    Some((site, *here)),
                    settings,
                    overrides,
                );
                given.block_varies = variants[..launches]
                    .iter()
                    .any(|(other, _)| other.range == site.range && other.block != site.block);
                let said = self.words.of(
                    path,
                    &profile.architecture,
                    &lowered.kernel.name,
                    &lowered.kernel.template_args,
                    lowered.fingerprint,
                );
                let said = said
                    .filter(|_| !overrides.estimated_only)
                    .map(|said| said.placed(document, item.line, &lowered.kernel.places));
                let word = said.as_ref().filter(|said| said.current);
                let word = word.map(|said| &*said.word);
                let command = command.as_deref();
                let analysis = self.analysis(
                    &lowered, &given, &profile, command, settings, overrides, word,
                );
                let Some((analysis, computed)) = analysis else {
                    made.problems.push(lost(name));
                    continue;
                };
                made.computed += usize::from(computed);
                let placed = PlacedKernel {
                    start: item.source.start,
                    line: item.line,
                    column: item.column,
                    end: item.source.end,
                    analysis,
                    language: program.text.language,
                    variant: at,
                    variants: names.clone(),
                    blocks: blocks.clone(),
                    compiler: said,
                    launched_at: given.place.clone(),
                    places: Arc::clone(&lowered.kernel.places),
                    functions: program.functions(),
                };
                for finding in &placed.analysis.findings {
                    made.findings.push(place(finding, &placed, &given));
                }
                made.kernels.push(placed);
            }
            Some(made)
        };
        // What is known already takes no time. Where several have to be computed most will: a file just opened, another GPU.
        let mut made = Vec::with_capacity(items.len());
        let mut computed = 0;
        for one in &items {
            if self.shares && computed >= FEW {
                break;
            }
            let one = make(one)?;
            computed += one.computed;
            made.push(one);
        }
        let rest = &items[made.len()..];
        for one in parallel::in_order(rest, make) {
            made.push(one?);
        }
        let mut kernels: Vec<PlacedKernel> = Vec::new();
        let mut findings = Vec::new();
        for one in made {
            kernels.extend(one.kernels);
            findings.extend(one.findings);
            problems.extend(one.problems);
        }
        suppress::apply(
            &mut findings,
            &parts.directives,
            &parts.programs[0].text.source,
            settings,
            ignored,
        );
        findings.sort_by_key(|finding| (finding.range.start, finding.range.end));
        findings.dedup();
        let text = &parts.programs[0].text;
        Some(FileAnalysis {
            kernels,
            findings,
            profile,
            problems,
            found,
            reads: text.reads.clone(),
            missing_includes: text.missing.clone(),
            surroundings: Surroundings::of(path, &parts, &launched),
        })
    }

    /// The file read with some definitions in addition, and the same kernel there.
    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    fn with_branch(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        profile: &Profile,
        assume: &[(String, String)],
        linked: &[PathBuf],
        kernel: &Item,
    ) -> Option<(Program, Item)> {
        let mut settings = settings.clone();
        settings.defines.extend(assume.iter().cloned());
        // A copy, so that the buffer's own expansion stays what the next keystroke starts from.
        let copy = document.clone();
        let translation = self
            .project
            .translate(&copy, path, &settings, profile, false, linked);
        let mut program = self.program(&translation.text, &translation.headers);
        program.linked = translation.linked;
        let item = program
            .items
            .iter()
            .find(|item| item.kind == kernel.kind && item.source.start == kernel.source.start)?
            .clone();
        Some((program, item))
    }

    /// A kernel in IR, and whether it had to be made; `Err` where lowering it failed.
    fn lowered(
        &self,
        program: &Program,
        item: &Item,
        site: &LaunchSite,
        overrides: &Overrides,
    ) -> (Result<Option<Arc<Lowered>>, ()>, bool) {
        let template = TemplateArguments {
            given: overrides
                .template_args
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            explicit: site.template_args.clone(),
            argument_types: site.argument_types.clone(),
        };
        let text = &program.text.text[item.range.clone()];
        let source = &program.text.source[item.source.clone()];
        let template_key = if text.starts_with("template") {
            template.spelled()
        } else {
            String::new()
        };
        let options = program
            .options
            .as_ref()
            .map(|options| options.fingerprint());
        let key = hash(&[
            &program.unit_key,
            &text,
            &item.reading,
            &source,
            &template_key,
            &options,
            &program.linked,
        ]);
        if let Some(lowered) = self.kernels.get(key) {
            return (Ok(Some(lowered)), false);
        }
        let made = catch_unwind(AssertUnwindSafe(|| {
            lower(&program.text, item, &program.unit, &template)
        }));
        let lowered = match made {
            Ok(Some(mut kernel)) => {
                for file in &program.linked {
                    let read = |callee: &CalleeLine| callee.path.as_deref() == Some(file.as_path());
                    if kernel.places.callees().iter().any(read) {
                        let name = file.file_name().unwrap_or_default().to_string_lossy();
                        kernel.assumed.push(Assumption {
                            name: name.into_owned(),
                            value: "linked with this file".to_owned(),
                            kind: AssumptionKind::Linked,
                        });
                    }
                }
                if let Some(options) = &program.options {
                    kernel
                        .assumed
                        .extend(options.assumptions(|name| stands_in(name, &program.text)));
                }
                Ok(Some(self.kernels.put(key, Lowered::new(kernel))))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(()),
        };
        (lowered, true)
    }

    /// A kernel's analysis, and whether it had to be computed; `None` where it failed.
    #[allow(clippy::too_many_arguments, reason = "all of it is the question")]
    fn analysis(
        &self,
        lowered: &Arc<Lowered>,
        given: &Given,
        profile: &Arc<Profile>,
        command: Option<&Command>,
        settings: &Settings,
        overrides: &Overrides,
        word: Option<&CompilerWord>,
    ) -> Option<(Arc<KernelAnalysis>, bool)> {
        let options = compiled::options(&lowered.kernel, command, profile);
        let on_trial = suppress::on_trial(settings);
        let analysis_key = hash(&[
            &on_trial,
            &lowered.fingerprint,
            given,
            &profile.id,
            &profile.bank_rule,
            &profile.sm_clock_mhz.to_bits(),
            &profile.limited_to_w.map(f64::to_bits),
            &OverrideKey(overrides),
            &settings.model,
            &options,
            &word,
        ]);
        if let Some(analysis) = self.analyses.get(analysis_key) {
            return Some((analysis, false));
        }
        let made = catch_unwind(AssertUnwindSafe(|| {
            let make = || compile(&lowered.kernel, &options);
            let compiled = self.compiled.get_or((lowered.shape, options), make);
            let again = |changed: &Kernel, options: &Options| {
                let make = || compile(changed, options);
                self.compiled.get_or((changed.shape(), *options), make)
            };
            let question = Question {
                lowered,
                predicted: &compiled,
                options: &options,
                given,
                profile,
                settings,
                overrides,
                word,
                formulas: self.formulas,
                compile: &again,
            };
            question.answer()
        }));
        made.ok()
            .map(|analysis| (self.analyses.put(analysis_key, analysis), true))
    }
}

/// The kernels of a file in the order of its programs, each with the bytes between it and the item before.
fn kernels_of(parts: &FileParts) -> impl Iterator<Item = (&Program, &Item, Range<usize>)> {
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

/// A kernel as far as it decides who can launch it.
fn called<'a>(program: &Program, item: &Item, name: &'a str) -> Called<'a> {
    Called {
        name,
        language: program.text.language,
        arguments: arguments_of(&program.text.text[item.range.clone()], name),
    }
}

/// What of the overrides changes a kernel beside its launch.
struct OverrideKey<'a>(&'a Overrides);

impl Hash for OverrideKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.registers.hash(state);
        for (architecture, said) in &self.0.said {
            architecture.hash(state);
            for kernel in &said.kernels {
                kernel.hash(state);
            }
        }
        self.0.unadvised.hash(state);
        self.0.contents.hash(state);
        self.0.warps_per_sm.hash(state);
        self.0.without.hash(state);
    }
}

fn lost(name: &str) -> String {
    format!("the analysis of `{name}` failed; please report it with the kernel's source")
}

fn is_device(text: &str) -> bool {
    let head = &text[..text.find('{').unwrap_or(text.len())];
    head.contains("__device__") || head.contains("constexpr")
}

/// A function that the host cannot call.
fn is_only_device(text: &str) -> bool {
    let head = &text[..text.find('{').unwrap_or(text.len())];
    let host = head.contains("__host__") || head.contains("constexpr");
    head.contains("__device__") && !host
}

/// Branches in these bytes of the source that nothing decided and that are left out: what takes each.
fn undecided_within(text: &Expanded, kernel: &Range<usize>) -> Vec<Vec<(String, String)>> {
    text.undecided
        .iter()
        .flat_map(|conditional| &conditional.branches)
        .filter(|branch| !branch.taken && kernel.contains(&branch.range.start))
        .filter_map(|branch| {
            let assume: Option<Vec<(String, String)>> = branch
                .assume
                .iter()
                .map(|(name, value)| Some((name.clone(), value.clone()?)))
                .collect();
            assume.filter(|assume| !assume.is_empty())
        })
        .take(MOST_BRANCHES)
        .collect()
}

/// `A, B=3`.
fn spelled(assume: &[(String, String)]) -> String {
    let all: Vec<String> = assume
        .iter()
        .map(|(name, value)| match value.as_str() {
            "" | "1" => name.clone(),
            value => format!("{name}={value}"),
        })
        .collect();
    all.join(", ")
}

fn losses(analysis: &FileAnalysis) -> usize {
    let lost = analysis
        .kernels
        .iter()
        .map(|kernel| kernel.analysis.facts.not_understood.len());
    lost.sum()
}

/// Kernels of the text, each once: branches of a conditional may begin one in several ways.
fn places(analysis: &FileAnalysis) -> usize {
    let ends: FxHashSet<usize> = analysis.kernels.iter().map(|kernel| kernel.end).collect();
    ends.len()
}

/// True where a line of the text includes another file.
fn includes_others(text: &str) -> bool {
    text.lines().any(|line| {
        line.trim_start()
            .strip_prefix('#')
            .is_some_and(|rest| rest.trim_start().starts_with("include"))
    })
}

/// True where a text or a header of it has the name as a word.
fn stands_in(name: &str, text: &Expanded) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = text.source.match_indices(name);
    found.any(|(at, _)| {
        !text.source[..at].ends_with(word) && !text.source[at + name.len()..].starts_with(word)
    }) || text.includes.iter().any(|header| stands_in(name, header))
}

/// Names that only the build can define.
fn left_to_the_build(analysis: &FileAnalysis) -> usize {
    let kernels = analysis.kernels.iter();
    kernels
        .flat_map(|kernel| &kernel.analysis.facts.assumptions)
        .filter(|assumption| assumption.source.starts_with("-D "))
        .count()
}

/// A launch in a few words, to tell variants apart.
fn describe(site: &LaunchSite) -> String {
    let extents = |extents: Option<[u64; 3]>| match extents {
        Some([x, 1, 1]) => x.to_string(),
        Some([x, y, 1]) => format!("{x}x{y}"),
        Some([x, y, z]) => format!("{x}x{y}x{z}"),
        None => "?".to_owned(),
    };
    let mut text = format!("<<<{}, {}>>>", extents(site.grid), extents(site.block));
    if !site.template_args.is_empty() {
        let arguments: Vec<String> = site
            .template_args
            .iter()
            .map(|bound| {
                bound
                    .as_ref()
                    .map_or_else(|| "?".to_owned(), warplens_ir::Bound::spelled)
            })
            .collect();
        text = format!("<{}>{text}", arguments.join(", "));
    }
    text
}

/// Where each function of a text begins now, by the hash of what it says.
fn function_lines(program: &Program) -> FxHashMap<u64, u32> {
    program
        .items
        .iter()
        .filter(|item| matches!(item.kind, ItemKind::Function(_) | ItemKind::Declaration))
        .map(|item| {
            let hash = warplens_hir::text_hash(&program.text.text[item.range.clone()]);
            (hash, item.line)
        })
        .collect()
}

fn place(
    finding: &warplens_advice::Finding,
    kernel: &PlacedKernel,
    given: &Given,
) -> PlacedFinding {
    let name = kernel.place(kernel.analysis.name_site.span);
    let range = match finding.place {
        Place::Site(site) => kernel.place(site.span),
        Place::Kernel => name,
        Place::Launch => given.place.clone().unwrap_or(name),
        Place::Host(at) => given
            .memory
            .get(at)
            .map_or(name, |memory| memory.range.clone()),
    };
    PlacedFinding {
        rule: finding.rule,
        severity: finding.severity,
        range,
        message: finding.message.clone(),
        gain: finding.gain,
        related: finding
            .related
            .iter()
            .map(|(site, text)| (kernel.place(site.span), text.clone()))
            .collect(),
        callee: match finding.place {
            Place::Site(site) => kernel.callee(site),
            Place::Kernel | Place::Launch | Place::Host(_) => None,
        },
    }
}

/// Severity by its name in settings.
pub(crate) fn cap(severity: Severity, most: Severity) -> Severity {
    if severity == Severity::Error {
        severity
    } else {
        severity.min(most)
    }
}
