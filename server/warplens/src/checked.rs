//! Checks files and folders in parallel, each file under its own settings.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use rayon::prelude::*;
use warplens_db::settings::Settings;
use warplens_db::wire::{Diagnostic, Stats};
use warplens_db::{
    DEFAULT_GPU, Document, Engine, FileAnalysis, LOST_KERNEL, Overrides, PlacedFix, Project,
};
use warplens_machine::Profiles;

use crate::config::{self, Config};
use crate::launching::Launching;
use crate::output::{self, Progress};
use crate::selection::Selection;
use crate::values::Preprocessing;
use crate::{commands, input, position, profiles};

/// What to check, and how.
pub struct CheckRequest<'a> {
    /// Files and folders.
    pub paths: &'a [PathBuf],
    /// The target, in place of the settings'.
    pub gpu: Option<&'a str>,
    /// Macros and include folders beside the settings'.
    pub preprocessing: &'a Preprocessing,
    /// Keep each statement that was not understood: many thousands in large code bases.
    pub losses: bool,
    /// Keep the texts of files with findings.
    pub texts: bool,
    /// Which of the files are looked at; all where that is not said.
    pub wanted: Option<&'a (dyn Fn(&Path) -> bool + Sync)>,
    /// Which rules are looked for.
    pub selection: &'a Selection,
    /// Kernels, launch and arguments.
    pub launching: &'a Launching,
}

/// The results of all files.
pub struct CheckRun<T> {
    engine: Engine,
    pool: rayon::ThreadPool,
    files: Vec<PathBuf>,
    outcomes: Vec<FileOutcome<T>>,
    configs: Configs,
    left_out: Vec<Diagnostic>,
    launching: Launching,
}

/// The results of one file.
pub struct FileOutcome<T> {
    /// Its findings.
    pub diagnostics: Vec<Diagnostic>,
    /// How much of it the front end could lower.
    pub stats: Stats,
    /// What the caller keeps of its analysis.
    pub kept: Option<T>,
    text: Option<String>,
    read: bool,
}

impl<T: Sync> CheckRun<T> {
    /// The edits that answer each of these findings, in their order: of the code actions at its place those of its rule,
    /// whole and proved, that are predicted to make the kernel faster. `made` makes of each what the caller wants.
    pub fn fixes<F: Clone + Send>(
        &self,
        diagnostics: &[Diagnostic],
        made: &(dyn Fn(PlacedFix, &Document) -> F + Sync),
    ) -> Vec<Vec<F>> {
        let progress = Progress::new("proving fixes", self.files.len());
        let mut of_files: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, diagnostic) in diagnostics.iter().enumerate() {
            let file = diagnostic.file.as_str();
            of_files.entry(file).or_default().push(index);
        }
        let of_file = |path: &PathBuf| {
            let indices = of_files.get(path.display().to_string().as_str())?;
            // As for findings: a defect of ours costs this file's edits, and no others.
            let edits = || self.fixes_of(path, diagnostics, indices, made);
            let edits = catch_unwind(AssertUnwindSafe(edits)).ok();
            progress.step();
            edits
        };
        let found: Vec<(usize, Vec<F>)> = self.pool.install(|| {
            let files = self.files.par_iter();
            files.filter_map(of_file).flatten().collect()
        });
        let mut fixes = vec![Vec::new(); diagnostics.len()];
        for (index, of_one) in found {
            fixes[index] = of_one;
        }
        fixes
    }

    fn fixes_of<F>(
        &self,
        path: &Path,
        diagnostics: &[Diagnostic],
        indices: &[usize],
        made: &dyn Fn(PlacedFix, &Document) -> F,
    ) -> Vec<(usize, Vec<F>)> {
        let Ok(source) = input::read(path) else {
            return Vec::new();
        };
        let config = self.configs.of(path);
        let overrides = self.overrides();
        let of_one = |index: &usize| {
            let diagnostic = &diagnostics[*index];
            let start = position::offset(&source.text, diagnostic.line, diagnostic.column);
            let end = position::offset(&source.text, diagnostic.end_line, diagnostic.end_column);
            let mut fixes = self.engine.fixes(
                &source.document,
                path,
                &config.settings,
                &overrides,
                start..end,
            );
            fixes.retain(|fix| fix.rule == diagnostic.rule && fix.complete && fix.gain >= GAINS);
            let fixes = fixes.into_iter().map(|fix| made(fix, &source.document));
            (*index, fixes.collect())
        };
        indices.iter().map(of_one).collect()
    }

    /// Each file with what becomes of its text when all is applied that may be without a person looking, over and over
    /// until nothing is left, and the titles of what was applied. Files without a change are left out.
    pub fn fixed(&self) -> Vec<FixedFile> {
        let progress = Progress::new("applying fixes", self.files.len());
        let of_file = |path: &PathBuf| {
            let fixed = catch_unwind(AssertUnwindSafe(|| self.fixed_file(path)));
            progress.step();
            fixed.ok().flatten()
        };
        self.pool
            .install(|| self.files.par_iter().filter_map(of_file).collect())
    }

    fn fixed_file(&self, path: &Path) -> Option<FixedFile> {
        let source = input::read(path).ok()?;
        let config = self.configs.of(path);
        let mut document = source.document;
        let mut text = source.text.clone();
        let mut applied = Vec::new();
        for _ in 0..ROUNDS {
            let fixes = self.engine.safe_fixes(
                &document,
                path,
                &config.settings,
                &self.overrides(),
                &self.launching.kernel,
            );
            if fixes.is_empty() {
                break;
            }
            let mut edits: Vec<_> = fixes.iter().flat_map(|fix| &fix.edits).collect();
            edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
            for (range, new) in edits {
                text.replace_range(range.clone(), new);
            }
            applied.extend(fixes.into_iter().map(|fix| fix.title));
            document = Document::new(&text, document.language());
        }
        (text != source.text).then(|| FixedFile {
            path: path.to_owned(),
            before: source.text,
            after: text,
            applied,
        })
    }

    fn overrides(&self) -> Overrides {
        Overrides {
            argument: self.launching.values(),
            ..Overrides::default()
        }
    }
}

/// A file as it is and as it becomes.
#[derive(Debug)]
pub struct FixedFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub before: String,
    /// The text with all edits made.
    pub after: String,
    /// The titles of the edits.
    pub applied: Vec<String>,
}

/// Times that a file is looked at again for what its edits uncover.
const ROUNDS: usize = 8;

/// The least gain that an action's title states as one.
const GAINS: f64 = 1.01;

/// Looks at every file; `keep` takes what it needs of a file's text and analysis, which is large.
pub fn check<T: Send>(
    asked: &CheckRequest<'_>,
    project: Project,
    keep: &(dyn Fn(&Path, &str, FileAnalysis) -> Option<T> + Sync),
) -> anyhow::Result<CheckRun<T>> {
    let (profiles, left_out) = profiles::of(asked.paths);
    let gpu = asked
        .gpu
        .map(|gpu| profiles::id(gpu, &profiles))
        .transpose()?;
    let mut files = input::files(asked.paths);
    let configs = Configs::of_files(&files, &profiles, gpu.as_deref(), asked);
    for settings in configs.settings() {
        let id = settings.gpu.as_deref().unwrap_or(DEFAULT_GPU);
        if let Some(profile) = profiles.get(id) {
            let refused = asked.launching.refuse_block(&profile);
            refused.map_err(|line| anyhow!(line))?;
        }
    }
    let engine = Engine::for_many_files(profiles, project);
    if let Some(wanted) = asked.wanted {
        files.retain(|file| wanted(file));
    }
    let progress = Progress::new("checking", files.len());
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(commands::STACK)
        .build()?;
    let file = |path: &PathBuf| one(&engine, path, &configs.of(path).settings, asked, keep);
    let look = |path: &PathBuf| {
        let outcome = file(path);
        progress.step();
        outcome
    };
    let outcomes = pool.install(|| files.par_iter().map(look).collect());
    progress.finish();
    Ok(CheckRun {
        engine,
        pool,
        files,
        outcomes,
        configs,
        left_out,
        launching: asked.launching.clone(),
    })
}

fn one<T>(
    engine: &Engine,
    path: &Path,
    settings: &Settings,
    asked: &CheckRequest<'_>,
    keep: &dyn Fn(&Path, &str, FileAnalysis) -> Option<T>,
) -> FileOutcome<T> {
    let source = match input::read(path) {
        Ok(source) => source,
        Err(unreadable) => {
            return FileOutcome {
                diagnostics: vec![unreadable.diagnostic(path)],
                stats: Stats {
                    files: 1,
                    unreadable_files: 1,
                    ..Stats::default()
                },
                kept: None,
                text: None,
                read: false,
            };
        }
    };
    // A defect of ours in one file must not cost the answers about the others.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let overrides = Overrides {
            argument: asked.launching.values(),
            ..Overrides::default()
        };
        engine.check(&source.document, path, settings, &overrides)
    }));
    let (mut diagnostics, mut stats, analysis) =
        answer.unwrap_or_else(|_| (vec![lost(path)], lost_stats(), None));
    diagnostics.retain(|finding| {
        let kernel = finding.kernel.as_deref();
        // A file of which nothing is known may have any kernel.
        let of_file = asked.launching.kernel.is_empty() || finding.rule == LOST_KERNEL;
        kernel.map_or(of_file, |name| asked.launching.wants(name))
    });
    stats.files = 1;
    if !asked.losses {
        stats.losses = Vec::new();
    }
    let kept = analysis.and_then(|analysis| keep(path, &source.text, analysis));
    let text = (asked.texts && !diagnostics.is_empty()).then_some(source.text);
    FileOutcome {
        diagnostics,
        stats,
        kept,
        text,
        read: true,
    }
}

impl<T> CheckRun<T> {
    /// The files with what came of each.
    pub fn files(&self) -> impl Iterator<Item = (&PathBuf, &FileOutcome<T>)> {
        self.files.iter().zip(&self.outcomes)
    }

    /// Every finding: of profiles and settings, then of the files in their order.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = self.left_out.clone();
        all.extend(self.configs.diagnostics());
        all.extend(self.of_files());
        for finding in &mut all {
            finding.help = warplens_advice::href(&finding.rule);
        }
        all
    }

    /// What it was found out with.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// True where an analysis failed inside warplens: what is reported is not all that there is.
    pub fn lost(&self) -> bool {
        let of_files = self.outcomes.iter();
        of_files
            .flat_map(|outcome| &outcome.diagnostics)
            .any(|finding| finding.rule == LOST_KERNEL)
    }

    /// Every finding of the files themselves.
    pub fn of_files(&self) -> Vec<Diagnostic> {
        let of_files = self.outcomes.iter();
        of_files
            .flat_map(|outcome| outcome.diagnostics.iter().cloned())
            .collect()
    }

    /// How well all files were understood.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for outcome in &self.outcomes {
            add(&mut sum, &outcome.stats);
        }
        sum
    }

    /// The texts of files with findings, settings among them, by the names that findings call them.
    pub fn texts(&self) -> HashMap<String, &str> {
        let sources = self.files().filter_map(|(path, outcome)| {
            let text = outcome.text.as_deref()?;
            Some((path.display().to_string(), text))
        });
        let settings = self.configs.files.values().filter_map(|config| {
            let (path, text) = config.file.as_ref()?;
            Some((path.display().to_string(), text.as_str()))
        });
        sources.chain(settings).collect()
    }

    /// An error where not one file could be read; one line where there was none to read.
    pub fn any_read(&self) -> anyhow::Result<()> {
        if self.files.is_empty() {
            output::complain("found no .cu, .cuh, .cl or .hip files");
        } else if self.outcomes.iter().all(|outcome| !outcome.read) {
            match self.outcomes.as_slice() {
                [one] => bail!(
                    "{}: {}",
                    self.files[0].display(),
                    one.diagnostics[0].message
                ),
                many => bail!("none of the {} files could be read", many.len()),
            }
        }
        Ok(())
    }
}

fn lost(path: &Path) -> Diagnostic {
    Diagnostic {
        rule: LOST_KERNEL.to_owned(),
        severity: "error",
        file: path.display().to_string(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 2,
        message:
            "warplens failed in this file, which was not analysed; please report it with the file"
                .to_owned(),
        gain: 1.0,
        ..Diagnostic::default()
    }
}

fn lost_stats() -> Stats {
    Stats {
        reasons: [("internal error".to_owned(), 1)].into(),
        ..Stats::default()
    }
}

fn add(sum: &mut Stats, one: &Stats) {
    sum.files += one.files;
    sum.unreadable_files += one.unreadable_files;
    sum.kernels += one.kernels;
    sum.clean += one.clean;
    sum.partial += one.partial;
    sum.failed += one.failed;
    sum.launch_known += one.launch_known;
    sum.accesses += one.accesses;
    sum.accesses_exact += one.accesses_exact;
    sum.branches += one.branches;
    sum.branches_exact += one.branches_exact;
    sum.losses.extend(one.losses.iter().cloned());
    for (header, files) in &one.missing_includes {
        *sum.missing_includes.entry(header.clone()).or_default() += files;
    }
    for (reason, count) in &one.reasons {
        *sum.reasons.entry(reason.clone()).or_default() += count;
    }
}

/// The settings of each folder; a `warplens.toml` is read once however many folders it covers.
#[derive(Default)]
struct Configs {
    folders: HashMap<PathBuf, Arc<Config>>,
    files: HashMap<Option<PathBuf>, Arc<Config>>,
}

impl Configs {
    fn of_files(
        files: &[PathBuf],
        profiles: &Profiles,
        gpu: Option<&str>,
        asked: &CheckRequest<'_>,
    ) -> Configs {
        let mut configs = Configs::default();
        for file in files {
            let folder = folder(file);
            if configs.folders.contains_key(&folder) {
                continue;
            }
            let found = config::find(file);
            let loaded = configs.files.entry(found.clone()).or_insert_with(|| {
                let mut config = found
                    .map(|file| config::load(&file, profiles))
                    .unwrap_or_default();
                if let Some(gpu) = gpu {
                    config.settings.gpu = Some(gpu.to_owned());
                }
                asked.preprocessing.apply(&mut config.settings);
                asked.selection.apply(&mut config.settings);
                Arc::new(config)
            });
            configs.folders.insert(folder, Arc::clone(loaded));
        }
        configs
    }

    /// The settings of all files, those of files without a `warplens.toml` among them.
    fn settings(&self) -> impl Iterator<Item = &Settings> {
        self.files.values().map(|config| &config.settings)
    }

    fn of(&self, file: &Path) -> Arc<Config> {
        self.folders.get(&folder(file)).cloned().unwrap_or_default()
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by_key(|(path, _)| (*path).clone());
        files
            .into_iter()
            .flat_map(|(_, config)| config.diagnostics.clone())
            .collect()
    }
}

fn folder(file: &Path) -> PathBuf {
    file.parent().map(Path::to_owned).unwrap_or_default()
}
