//! Files in, results out: what the language server, the command line and every other front end use.
//!
//! The engine is synchronous and pure: text and settings in, data out. It is a face over a database of queries: editing one
//! kernel of fifty re-analyses one. It reads no files but those that a [`Project`] gives it, and runs nothing.
//!
//! # A kernel from a string
//!
//! ```
//! use warplens_db::{Document, Engine, Language, LaunchValues, ModelId, Overrides, Profiles, settings::Settings};
//!
//! let source = "__global__ void scale(float* x) {
//!     int i = blockIdx.x * blockDim.x + threadIdx.x;
//!     x[i] *= 2.0f;
//! }";
//! let engine = Engine::new(Profiles::builtin());
//! let document = Document::new(source, Language::Cuda);
//! let settings = Settings { gpu: Some("h100-sxm5".to_owned()), ..Settings::default() };
//! let launch = LaunchValues { grid: Some([4096, 1, 1]), block: Some([256, 1, 1]), ..LaunchValues::default() };
//! let overrides = Overrides { argument: launch, ..Overrides::default() };
//! let answer = engine.estimate(&document, "scale.cu".as_ref(), &settings, &overrides, &[], &[ModelId::Auto], &[])?;
//! for kernel in &answer.results {
//!     let estimate = &kernel.estimates["auto"];
//!     println!("{} on {}: {:?} ms, {:?}", kernel.kernel, kernel.gpu, estimate.time_ms, estimate.bottleneck);
//! }
//! # let estimate = &answer.results[0].estimates["auto"];
//! # assert_eq!(estimate.bottleneck, Some("memory_bandwidth"));
//! # assert!(estimate.time_ms.is_some_and(|time| time > 0.0 && time < 1.0));
//! # Ok::<(), String>(())
//! ```
//!
//! What comes back is plain data ([`wire`]), the same that `warplens estimate --format json` prints. Its figures are in the units
//! that their documentation says: times in milliseconds, cycles of the SM's clock, sizes in bytes, shares from 0 to 1.
//!
//! - [`Engine::estimate`]: everything about the kernels of a text; [`Engine::check`]: its findings.
//! - [`Overrides`]: the launch and the arguments; [`settings::Settings`]: the GPU, macros, folders of headers.
//! - [`Engine::with_project`] finds headers, compile commands and launches in other files.
//! - [`TunedKernel`]: one kernel under many configurations.
//!
//! The analysis recurses as deep as the source nests. Where that may be anybody's source, ask on a thread with a stack of
//! [`STACK`] bytes. One engine serves all threads. What these crates promise of versions is in `docs/releases.md`.

/// The program of the documentation, run with this crate's.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Documentation;

mod account;
pub mod affected;
mod assembled;
mod blocks;
mod clock;
mod compiled;
mod compiler_reports;
mod compilers;
mod contents;
mod counting;
mod database;
pub mod difference;
mod engine;
mod estimates;
mod fitting;
mod fixes;
mod flat;
mod formula;
mod graph;
mod guard;
mod help;
mod kept_run;
mod kinds;
mod launch;
mod linkage;
mod look;
mod lowered;
mod macros;
mod memo;
mod options;
mod panics;
mod parallel;
pub mod pictures;
mod program;
mod project;
mod queries;
mod readings;
mod replaced;
mod results;
mod series;
pub mod settings;
mod shares;
mod size;
mod sizes;
mod sources;
mod stores;
mod suppress;
mod surroundings;
mod sweep;
pub mod user_profiles;
pub mod wire;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use fixes::first_word;
use rustc_hash::FxHashMap;
pub use warplens_advice::{Finding, Severity};
use warplens_facts::facts::{CalleeLine, Places, Site, SourceFacts, Span};
use warplens_host::LaunchSite;
use warplens_ir::Real;
pub use warplens_machine::{Profile, Profiles};
pub use warplens_models::{ModelId, ModelInput, WarpInstructions};
pub use warplens_syntax::{Document, Language};
use warplens_toolchain::CompilerReport;
pub use warplens_tuning::Configuration;

pub use blocks::{BlockChoice, BlockChoices, FixedBlock, LaunchArgument};
pub use compilers::{KernelWithTool, PlacedReport};
pub use engine::Engine;
pub use graph::WorkFlow;
pub use help::{Help, HelpKind};
pub use kinds::{is_header, kernel_macros, language_by_content, may_hold_kernels};

pub use project::Project;
pub use sweep::{Configured, Prediction, TunedKernel};
pub use warplens_machine::DEFAULT_GPU;

/// Stack of a thread that analyses anybody's source, in bytes: real code nests deeply, and a stack is only reserved, not used.
pub const STACK: usize = 64 << 20;

/// The rule under which a kernel is reported whose analysis failed inside warplens.
pub const LOST_KERNEL: &str = "internal/lost-kernel";

/// Values given from outside the file for this session or this command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Command-line values, for every kernel.
    pub argument: LaunchValues,
    /// `warplens.setLaunch` values by kernel name.
    pub set_launch: BTreeMap<String, LaunchValues>,
    /// Values of the editor's settings by kernel name.
    pub editor: BTreeMap<String, LaunchValues>,
    /// `--registers`.
    pub registers: Option<u32>,
    /// What a compiler said of the file, by the architecture (`sm_80`) that it was asked for.
    pub said: BTreeMap<String, Arc<CompilerReport>>,
    /// `--warps-per-sm`.
    pub warps_per_sm: Option<u32>,
    /// `--without`.
    pub without: Vec<warplens_models::Factor>,
    /// `--data NAME=FILE`: what array parameters point to, raw and little-endian.
    pub contents: BTreeMap<String, Arc<[u8]>>,
    /// Bytes of the memory that pointer parameters point to, by their names, where the caller knows them.
    pub array_bytes: BTreeMap<String, u64>,
    /// `-T NAME=VALUE`.
    pub template_args: BTreeMap<String, String>,
    /// Which launches of a kernel are looked at.
    pub variants: Variants,
    /// Where all are: by kernel name the number of the launch that one which the user sets takes what it leaves open from, the
    /// costliest where none is given.
    pub set_on: BTreeMap<String, usize>,
    /// Estimates also where a compiler spoke: to compare with a text that none has seen.
    pub estimated_only: bool,
    /// No findings but about launches that cannot happen.
    pub unadvised: bool,
    /// Launches are those of the program with this main file, however it is run.
    pub program: Option<PathBuf>,
}

/// Which launches of a kernel that is launched in several ways are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variants {
    /// One: by kernel name the number of the launch, the first where none is given.
    Chosen(BTreeMap<String, usize>),
    /// Each of them.
    All,
}

impl Default for Variants {
    fn default() -> Self {
        Variants::Chosen(BTreeMap::new())
    }
}

/// A launch, or parts of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaunchValues {
    /// Blocks.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block.
    pub block: Option<[u64; 3]>,
    /// OpenCL's global size in work-items, from which the grid follows.
    pub global: Option<[u64; 3]>,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared_bytes: Option<u64>,
    /// Whole numbers for scalar parameters, by the parameter's name.
    pub args: BTreeMap<String, i64>,
    /// The same of numbers with a fraction.
    pub reals: BTreeMap<String, Real>,
}

impl LaunchValues {
    /// Gives a scalar parameter a value.
    pub fn give(&mut self, name: &str, value: settings::Scalar) {
        match value {
            settings::Scalar::Whole(whole) => {
                self.args.insert(name.to_owned(), whole);
            }
            settings::Scalar::Real(real) => {
                self.reals.insert(name.to_owned(), Real::from(real));
            }
        }
    }

    /// The value of a parameter of floating point.
    fn real(&self, name: &str) -> Option<f64> {
        let whole = || self.args.get(name).map(|whole| *whole as f64);
        self.reals.get(name).map(|real| real.value()).or_else(whole)
    }
}

/// Set from any thread to stop work whose result is no longer wanted.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Stops it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once stopped.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// What is set once stopped.
    pub(crate) fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}

/// One kernel analysed. Its sites are numbers: [`PlacedKernel`] knows where they stand.
#[derive(Debug)]
pub struct KernelAnalysis {
    /// The source as written.
    pub facts: Arc<SourceFacts>,
    /// What models and rules read: the facts and the compiled kernel, joined.
    pub input: Arc<ModelInput>,
    /// The GPU.
    pub profile: Arc<Profile>,
    /// `estimated`, `compiler` or `user`.
    pub registers_source: &'static str,
    /// What the analytical models say, made when first asked for.
    pub(crate) estimates: Arc<estimates::Estimates>,
    /// What follows from the estimate that is shown first, made when first asked for.
    pub(crate) shown: estimates::Shown,
    /// The model shown first.
    pub model: ModelId,
    /// Findings.
    pub findings: Arc<Vec<Finding>>,
    /// The kernel's name.
    pub name_site: Site,
    /// Where it waits for the launch ahead of it in its stream.
    pub(crate) waits_for_predecessor: Option<Site>,
    /// True where the source, a directive or an attribute gave the block.
    pub launch_known: bool,
    /// Template parameters bound.
    pub template_args: Vec<(String, String)>,
    /// What [`KernelAnalysis::expressions`] makes, and from what.
    pub(crate) counting: counting::Counting,
    /// Sizes that nothing gives, and what depends on them.
    pub(crate) sizes: sizes::Sizes,
    /// Array parameters, and the bytes of their elements.
    pub(crate) arrays: Vec<(String, u64)>,
    /// Parameters that are no arrays, and members of those that are structures.
    pub scalars: Vec<String>,
    /// What a compiler report on this kernel is kept under.
    pub(crate) fingerprint: u64,
}

/// A kernel's analysis and where the kernel is now.
#[derive(Debug, Clone)]
pub struct PlacedKernel {
    /// First byte of the kernel in the file.
    pub start: usize,
    /// 0-based line of that byte.
    pub line: u32,
    /// 0-based byte column of that byte.
    pub column: u32,
    /// One past the kernel's last byte.
    pub end: usize,
    /// The analysis.
    pub analysis: Arc<KernelAnalysis>,
    /// The kernel's language: a program in a string literal has another one than its file.
    pub language: Language,
    /// Which of the launches it was analysed under, in the order of the text.
    pub variant: usize,
    /// The order in which its launches are told, the costliest first: numbers among those of the text. The one alone that the user
    /// set in place of them.
    pub order: Vec<usize>,
    /// What the user set of its launch.
    pub set: Option<LaunchValues>,
    /// The launches in the order of the text, each in a few words.
    pub variants: Vec<String>,
    /// The blocks of the launches that were seen; `None` where one is not known.
    pub blocks: Vec<Option<[u64; 3]>>,
    /// What a compiler said of it last, for the GPU's architecture.
    pub compiler: Option<PlacedReport>,
    /// Bytes of the launch or the directive that it was analysed under, where that is in this file.
    pub launched_at: Option<Range<usize>>,
    /// The run of the program that makes the launch.
    pub run: Option<RunLaunch>,
    /// The launch may begin before the one ahead of it in its stream has ended.
    begins_early: bool,
    /// The launch as the program's text says it; `None` where none was found.
    pub(crate) site: Option<Arc<LaunchSite>>,
    /// Where the sites of the analysis stand in the kernel's text now.
    places: Arc<Places>,
    /// Where the file's functions begin, by the hash of their text.
    functions: Arc<FxHashMap<u64, u32>>,
}

/// A launch in a file's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchAt {
    /// The kernel's plain name.
    pub kernel: String,
    /// Its number among the kernel's launches, from 0.
    pub variant: usize,
    /// Bytes from the kernel's name to `>>>`, or those of the call that launches.
    pub range: Range<usize>,
}

/// How a launch begins that need not wait for the one ahead of it (CUDA C++ Programming Guide, "Programmatic Dependent Launch").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyStart {
    /// The line of the kernel, from 1, where it waits; `None` where it nowhere does.
    pub waits_at: Option<u32>,
}

/// A launch as a run of the program makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLaunch {
    /// How the program was started, and where that is said: `./main 100, Makefile:7`.
    pub said: Arc<str>,
    /// How often it makes the launch; `None` where that is not known.
    pub count: Option<u64>,
    /// Integer arguments by position, as far as they are known.
    pub arguments: Vec<Option<i64>>,
    /// Bytes of the memory that an argument points to, by position.
    pub extents: Vec<Option<u64>>,
}

impl PlacedKernel {
    /// The number under which the launch is told, from 1.
    pub fn number(&self) -> usize {
        let before = self.order.iter().take_while(|at| **at != self.variant);
        before.count() + 1
    }

    /// The launch in a few words.
    pub fn launch_text(&self) -> &str {
        self.variants
            .get(self.variant)
            .map_or("", |text| text.as_str())
    }

    /// Whether the launch may begin before the one ahead of it in its stream has ended, and where it then waits.
    pub fn early_start(&self) -> Option<EarlyStart> {
        self.begins_early.then(|| EarlyStart {
            waits_at: self.waits_at(),
        })
    }

    /// The line, from 1, where the kernel waits for the launch ahead of it.
    pub(crate) fn waits_at(&self) -> Option<u32> {
        let site = self.analysis.waits_for_predecessor?;
        Some(self.place_line(site.line) + 1)
    }

    /// Absolute bytes of a span.
    pub fn place(&self, span: Span) -> Range<usize> {
        let bytes = self.places.bytes(span);
        self.start + bytes.start..self.start + bytes.end
    }

    /// Absolute 0-based line of a site's line.
    pub fn place_line(&self, line: u32) -> u32 {
        self.line + self.places.line(line)
    }

    /// A line of a called function and the call that leads there, by its number.
    fn callee_line(&self, number: u32) -> Option<(&CalleeLine, u32)> {
        let callees = self.places.callees();
        let at = number.checked_sub(1)? as usize;
        if let Some(line) = callees.get(at) {
            return Some((line, line.caller));
        }
        let copy = self.analysis.facts.copied_lines.get(at - callees.len())?;
        Some((callees.get(copy.of.checked_sub(1)? as usize)?, copy.caller))
    }

    /// What the site in a called function says, the beginning of it; `None` for a site in the kernel's own text.
    pub(crate) fn callee_text(&self, site: Site) -> Option<&str> {
        self.callee_line(site.callee).map(|(line, _)| &*line.text)
    }

    /// Where a site in a called function is: the header (`None` for this file), 0-based line and column;
    /// and the calls that lead there, outermost first. `None` for a site in the kernel's own text.
    pub fn callee(&self, site: Site) -> Option<CalleePlace> {
        let (at, mut caller) = self.callee_line(site.callee)?;
        let line = |at: &CalleeLine| match at.path {
            Some(_) => at.line,
            None => at.line + self.functions.get(&at.function).unwrap_or(&at.base_line),
        };
        let mut place = CalleePlace {
            path: at.path.clone(),
            line: line(at),
            column: at.column,
            text: at.text.to_string(),
            via: Vec::new(),
        };
        while let Some((call, next)) = self.callee_line(caller) {
            place.via.push((call.path.clone(), line(call)));
            caller = next;
        }
        place.via.push((None, self.place_line(site.line)));
        place.via.reverse();
        Some(place)
    }
}

/// A place in a function that a kernel calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalleePlace {
    /// The header; `None` for the kernel's own file.
    pub path: Option<Arc<Path>>,
    /// 0-based line.
    pub line: u32,
    /// 0-based byte column.
    pub column: u32,
    /// What is there, the beginning of it.
    pub text: String,
    /// The calls that lead there, outermost first: header and 0-based line.
    pub via: Vec<(Option<Arc<Path>>, u32)>,
}

/// A finding at its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedFinding {
    /// Rule id.
    pub rule: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Absolute bytes.
    pub range: Range<usize>,
    /// One line of at most 100 letters: what it gains, what to do, the figure that says so.
    pub message: String,
    /// Further lines: the cause in full, what it depends on.
    pub details: Vec<String>,
    /// Predicted whole-kernel speedup of removing the cause.
    pub gain: f64,
    /// Further places: bytes and a line of text.
    pub related: Vec<(Range<usize>, String)>,
    /// Where the cause is when `range` is only the call that leads there.
    pub callee: Option<CalleePlace>,
    /// The kernel's plain name; `None` for a finding about the file.
    pub kernel: Option<String>,
}

/// Everything about one file at one moment.
#[derive(Debug, Clone)]
pub struct FileAnalysis {
    /// Kernels in source order.
    pub kernels: Vec<PlacedKernel>,
    /// All findings, suppressions applied, in source order.
    pub findings: Vec<PlacedFinding>,
    /// The target.
    pub profile: Arc<Profile>,
    /// Something about the settings that could not be followed (an unknown GPU), in words.
    pub problems: Vec<String>,
    /// Kernels that the file defines, analysed or not.
    pub found: usize,
    /// Headers that it depends on.
    pub reads: Vec<PathBuf>,
    /// Headers that were not found, as spelled.
    pub missing_includes: Vec<String>,
    /// What of other files can change all this.
    pub(crate) surroundings: surroundings::Surroundings,
}

/// What a code action does.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedFix {
    /// Title with the predicted difference.
    pub title: String,
    /// The rule it answers.
    pub rule: &'static str,
    /// Absolute byte ranges and their new text, in order, not overlapping.
    pub edits: Vec<(Range<usize>, String)>,
    /// Best of its kind.
    pub preferred: bool,
    /// False where something remains to be done by hand, as the title says: nothing to apply unseen.
    pub complete: bool,
    /// Predicted speedup of the kernel; 1 is none.
    pub gain: f64,
}
