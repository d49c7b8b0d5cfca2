//! `warplens check`: findings for files and folders.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use warplens_engine::settings::{Settings, unknown_gpu};
use warplens_engine::wire::{CheckDocument, Diagnostic, Stats};
use warplens_engine::{Engine, FileAnalysis, Overrides, Severity};
use warplens_hardware::Profiles;
use warplens_report::{Paint, check as page, github, sarif};

use crate::config::{self, Config};
use crate::input;
use crate::output::{self, Colour, Progress};
use crate::profiles;
use crate::values::Preprocessing;

/// Findings for files and folders
///
/// Folders are walked, .gitignore is honoured; .cu, .cuh, .cl and .hip files are read, and C and C++ files
/// with kernels in them. A file named explicitly is read whatever its extension. Settings come from the nearest warplens.toml.
///
/// Exit status: 0 fine, 1 findings at or above --fail-on, 2 bad usage or nothing could be read.
#[derive(Debug, Args)]
pub struct Check {
    /// Files and folders
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Exit with status 1 where a finding is at least this severe
    #[arg(long, value_enum, default_value_t = Level::Error, value_name = "SEVERITY")]
    fail_on: Level,
    /// Print findings at least this severe, where they are printed for people; the others are counted
    #[arg(long, value_enum, default_value_t = Level::Information, value_name = "SEVERITY")]
    show: Level,
    /// Target GPU, a profile id (`warplens gpus` lists them)
    #[arg(long, value_name = "ID")]
    gpu: Option<String>,
    /// Add how well the files were understood
    #[arg(long)]
    stats: bool,
    /// Add each statement that was not understood, with its place
    #[arg(long, requires = "stats")]
    losses: bool,
    #[command(flatten)]
    preprocessing: Preprocessing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// One JSON document, warplens.check/1
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitHub workflow annotations
    Github,
}

/// From the quietest to the loudest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Level {
    Hint,
    Information,
    Warning,
    Error,
}

impl Level {
    fn reached_by(self, severity: &str) -> bool {
        let level = match self {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
            Level::Information => Severity::Information,
            Level::Hint => Severity::Hint,
        };
        [
            Severity::Hint,
            Severity::Information,
            Severity::Warning,
            Severity::Error,
        ]
        .into_iter()
        .any(|known| known.name() == severity && known >= level)
    }
}

/// What came of one file.
struct Outcome {
    diagnostics: Vec<Diagnostic>,
    stats: Stats,
    /// The text, kept where findings are shown in it.
    text: Option<String>,
    analysis: Option<FileAnalysis>,
    read: bool,
    /// Kernels that no launch was seen of.
    unlaunched: Vec<String>,
}

impl Check {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let started = Instant::now();
        let (profiles, left_out) = profiles::of(&self.paths);
        if let Some(gpu) = &self.gpu
            && profiles.get(gpu).is_none()
        {
            bail!(unknown_gpu(gpu, &profiles));
        }
        let files = input::files(&self.paths);
        let configs = self.configs(&files, &profiles);
        let engine = Engine::for_many_files(profiles, input::project(&self.paths));
        let progress = Progress::new(files.len());
        let pool = rayon::ThreadPoolBuilder::new()
            .stack_size(super::STACK)
            .build()?;
        let file = |path: &PathBuf| self.file(&engine, path, &configs.of(path).settings);
        let outcomes: Vec<Outcome> = pool.install(|| {
            let mut outcomes: Vec<Outcome> = files
                .par_iter()
                .map(|path| {
                    let outcome = file(path);
                    progress.step();
                    outcome
                })
                .collect();
            // Now it is known who includes whom and who launches what: files whose kernels are launched from
            // another one, and headers, are looked at again with that.
            outcomes
                .par_iter_mut()
                .zip(&files)
                .filter(|(outcome, path)| {
                    outcome.read
                        && outcome.stats.kernels > 0
                        && engine.knows_more(path, &outcome.unlaunched)
                })
                .for_each(|(outcome, path)| *outcome = file(path));
            outcomes
        });
        progress.finish();

        let mut diagnostics: Vec<Diagnostic> = left_out;
        diagnostics.extend(configs.diagnostics());
        let mut stats = Stats::default();
        for outcome in &outcomes {
            diagnostics.extend(outcome.diagnostics.iter().cloned());
            add(&mut stats, &outcome.stats);
        }
        // People are told of them kernel by kernel.
        if !self.losses || self.format == Format::Human {
            stats.losses.clear();
        }
        stats.seconds = started.elapsed().as_secs_f64();
        self.print(colour, &files, &outcomes, &configs, &diagnostics, &stats)?;

        if files.is_empty() {
            output::complain("no .cu, .cuh, .cl or .hip files there");
        } else if outcomes.iter().all(|outcome| !outcome.read) {
            match outcomes.as_slice() {
                [one] => bail!("{}: {}", files[0].display(), one.diagnostics[0].message),
                many => bail!("none of the {} files could be read", many.len()),
            }
        }
        let failed = diagnostics
            .iter()
            .any(|finding| self.fail_on.reached_by(finding.severity));
        Ok(ExitCode::from(u8::from(failed)))
    }

    fn configs(&self, files: &[PathBuf], profiles: &Profiles) -> Configs {
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
                if self.gpu.is_some() {
                    config.settings.gpu.clone_from(&self.gpu);
                }
                self.preprocessing.apply(&mut config.settings);
                Arc::new(config)
            });
            configs.folders.insert(folder, Arc::clone(loaded));
        }
        configs
    }

    fn file(&self, engine: &Engine, path: &Path, settings: &Settings) -> Outcome {
        let source = match input::read(path) {
            Ok(source) => source,
            Err(unreadable) => {
                return Outcome {
                    diagnostics: vec![unreadable.diagnostic(path)],
                    stats: Stats {
                        files: 1,
                        unreadable_files: 1,
                        ..Stats::default()
                    },
                    text: None,
                    analysis: None,
                    read: false,
                    unlaunched: Vec::new(),
                };
            }
        };
        // A defect of ours in one file must not cost the answers about the others.
        let answer = catch_unwind(AssertUnwindSafe(|| {
            engine.check(&source.document, path, settings, &Overrides::default())
        }));
        let (diagnostics, mut stats, analysis) =
            answer.unwrap_or_else(|_| (vec![lost(path)], lost_stats(), None));
        stats.files = 1;
        // Many thousands in large code bases: kept only where they are printed.
        let printed = self.losses || (self.stats && self.format == Format::Human);
        if !printed {
            stats.losses = Vec::new();
        }
        let keep = matches!(self.format, Format::Human | Format::Sarif);
        let text = (keep && !diagnostics.is_empty()).then_some(source.text);
        let unlaunched = analysis
            .iter()
            .flat_map(|analysis| &analysis.kernels)
            .filter(|kernel| !kernel.analysis.launch_known)
            .map(|kernel| kernel.analysis.facts.name.clone())
            .collect();
        Outcome {
            diagnostics,
            stats,
            text,
            // Only the table of kernels needs it: it is large.
            analysis: analysis.filter(|_| self.format == Format::Human),
            read: true,
            unlaunched,
        }
    }

    fn print(
        &self,
        colour: Colour,
        files: &[PathBuf],
        outcomes: &[Outcome],
        configs: &Configs,
        diagnostics: &[Diagnostic],
        stats: &Stats,
    ) -> anyhow::Result<()> {
        let mut texts: HashMap<String, &str> = HashMap::new();
        for (path, outcome) in files.iter().zip(outcomes) {
            if let Some(text) = &outcome.text {
                texts.insert(path.display().to_string(), text);
            }
        }
        for (path, text) in configs
            .files
            .values()
            .filter_map(|config| config.file.as_ref())
        {
            texts.insert(path.display().to_string(), text);
        }
        match self.format {
            Format::Json => output::emit_json(&CheckDocument {
                schema: "warplens.check/1",
                diagnostics: diagnostics.to_vec(),
                stats: self.stats.then(|| stats.clone()),
            }),
            Format::Sarif => {
                let rules: Vec<sarif::Rule<'_>> = warplens_rules::catalogue()
                    .iter()
                    .map(|rule| sarif::Rule {
                        id: rule.id,
                        title: rule.title,
                        text: rule.explain,
                    })
                    .collect();
                output::emit_json(&sarif::log(
                    diagnostics,
                    &rules,
                    env!("CARGO_PKG_VERSION"),
                    &|file| texts.get(file).copied(),
                ))
            }
            Format::Github => output::emit(&github::annotations(diagnostics)),
            Format::Human => {
                let style = output::style(colour);
                let mut out = String::new();
                // What fails the run is always shown.
                let show = self.show.min(self.fail_on);
                let shown = |diagnostic: &&Diagnostic| show.reached_by(diagnostic.severity);
                for diagnostic in diagnostics.iter().filter(shown) {
                    let text = texts.get(&diagnostic.file).copied();
                    out.push_str(&page::finding(diagnostic, text, style));
                    out.push('\n');
                }
                let mut table = page::KernelTable::default();
                for (path, outcome) in files.iter().zip(outcomes) {
                    if let Some(analysis) = &outcome.analysis {
                        table.add(&path.display().to_string(), analysis);
                    }
                }
                if !table.is_empty() {
                    out.push_str(&table.render(style));
                    out.push('\n');
                }
                if self.stats {
                    let parts = files.iter().zip(outcomes).map(|(path, outcome)| {
                        let file = path.display().to_string();
                        page::partial(&file, &outcome.stats.losses, self.losses, style)
                    });
                    let partial: String = parts.collect();
                    if !partial.is_empty() {
                        out.push_str(&partial);
                        out.push('\n');
                    }
                    out.push_str(&page::stats(stats, style));
                    out.push('\n');
                }
                out.push_str(&page::summary(
                    diagnostics,
                    stats.files,
                    stats.kernels,
                    style,
                ));
                if !diagnostics.iter().all(|diagnostic| shown(&diagnostic)) {
                    style.push(
                        &mut out,
                        Paint::Quiet,
                        "`--show hint` prints the hints too\n",
                    );
                }
                output::emit(&out)
            }
        }
    }
}

fn lost(path: &Path) -> Diagnostic {
    Diagnostic {
        rule: "internal/error".to_owned(),
        severity: "warning",
        file: path.display().to_string(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 2,
        message: "an internal error lost this file's results; please report it with the file"
            .to_owned(),
        gain: 1.0,
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
