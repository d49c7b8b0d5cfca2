//! `warplens check`: findings for files and folders.

mod fixing;
mod kernels;
mod watching;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use warplens_db::wire::{CheckDocument, Diagnostic, Stats};
use warplens_db::{FileAnalysis, Severity};
use warplens_report::baseline::Baseline;
use warplens_report::figure::counted;
use warplens_report::{Paint, check as page, github, gitlab, repeats, sarif};

use crate::checked::{self, CheckRequest, CheckRun};
use crate::input::{self, StandardInput};
use crate::launching::{Launching, Names};
use crate::output::{self, Colour};
use crate::selection::Selection;
use crate::values::{self, Preprocessing};

/// Findings for files and folders
///
/// Folders are walked, .gitignore is honoured; .cu, .cuh, .cl and .hip files are read, and C and C++ files
/// with kernels in them. A file named explicitly is read whatever its extension. Settings come from the nearest warplens.toml.
///
/// Exit status: 0 fine, 1 findings at or above --fail-on, 2 bad usage, nothing could be read, or warplens failed in a
/// kernel (internal/lost-kernel).
#[derive(Debug, Args)]
pub struct Check {
    /// Files and folders; "-" is standard input
    #[arg(default_value = ".", value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    standard_input: StandardInput,
    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Exit with status 1 where a finding is at least this severe
    #[arg(long, value_enum, default_value_t = Level::Error, value_name = "SEVERITY")]
    fail_on: Level,
    /// Print findings at least this severe in the human format; the others are only counted
    #[arg(long, value_enum, default_value_t = Level::Information, value_name = "SEVERITY")]
    show: Level,
    /// Target GPU, a profile id (`warplens gpus` lists them)
    #[arg(long, value_name = "ID")]
    gpu: Option<String>,
    /// Findings in this file are neither printed nor counted for --fail-on
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the findings to this file, for --baseline
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    write_baseline: Option<PathBuf>,
    /// Apply every edit that is proved to make a kernel faster, then check what is left; of standard input the edited
    /// text is printed
    #[arg(long, conflicts_with_all = ["baseline", "write_baseline"])]
    fix: bool,
    /// Print what --fix would change as a diff, and exit with status 1 where it would; nothing is written
    #[arg(long, conflicts_with_all = ["fix", "baseline", "write_baseline"])]
    diff: bool,
    /// Check again whenever a file changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["diff", "write_baseline"])]
    watch: bool,
    /// Print only the N findings that gain most, and of the kernels theirs
    #[arg(long, value_name = "N", value_parser = values::count)]
    top: Option<usize>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    launching: Launching,
    /// Leave fixes out of JSON and SARIF; proving them takes time. --stats leaves them out, too
    #[arg(long)]
    no_fixes: bool,
    /// Add how much of the files the front end could analyse
    #[arg(long)]
    stats: bool,
    /// Add each statement that could not be analysed, with its location
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
    /// GitLab code quality report
    Gitlab,
}

/// From least to most severe.
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

/// What is kept of a file.
#[derive(Debug)]
struct Kept {
    names: Names,
    analysis: Option<FileAnalysis>,
}

impl Check {
    /// Runs it.
    pub fn run(mut self, colour: Colour) -> anyhow::Result<ExitCode> {
        self.standard_input.read(&mut self.paths)?;
        if self.watch {
            return watching::whenever_changed(&self.paths, || self.once(colour));
        }
        self.once(colour)
    }

    fn once(&self, colour: Colour) -> anyhow::Result<ExitCode> {
        if self.diff || self.fix {
            let checked = self.checked::<()>(&|_, _, _| None)?;
            checked.any_read()?;
            let fixed = fixing::Fixed::of(&checked);
            if self.diff {
                return fixed.show(output::style(colour));
            }
            if fixed.write()? {
                return Ok(ExitCode::SUCCESS);
            }
        }
        let started = Instant::now();
        let human = self.format == Format::Human;
        let named = self.launching.names_something();
        let checked = self.checked(&|_, _, analysis| {
            // Only the table of kernels needs the analysis.
            (human || named).then(|| Kept {
                names: Names::of(&analysis, &self.launching),
                analysis: human.then_some(analysis),
            })
        })?;
        checked.any_read()?;
        if named {
            let mut names = Names::default();
            for (_, outcome) in checked.files() {
                if let Some(kept) = &outcome.kept {
                    names.add(kept.names.clone());
                }
            }
            let refused = names.refuse(&self.launching, &[], "the files have");
            refused.map_err(|line| anyhow!(line))?;
        }
        let mut diagnostics = checked.diagnostics();
        if let Some(file) = &self.write_baseline {
            return self.write(file, &checked, &diagnostics);
        }
        let known = match &self.baseline {
            Some(file) => self.known(file, &checked, &mut diagnostics)?,
            None => BaselineMatches::default(),
        };
        // Errors first, then what gains most; tests behind what they test.
        diagnostics.sort_by(|a, b| {
            let error = |finding: &Diagnostic| finding.severity != Severity::Error.name();
            let test = |finding: &Diagnostic| repeats::is_test(&finding.file);
            error(a)
                .cmp(&error(b))
                .then(test(a).cmp(&test(b)))
                .then(b.gain.total_cmp(&a.gain))
        });
        let mut stats = checked.stats();
        // The human format lists them by kernel.
        if !self.losses || self.format == Format::Human {
            stats.losses.clear();
        }
        stats.seconds = started.elapsed().as_secs_f64();
        // What a machine annotates, it annotates at each place.
        if matches!(self.format, Format::Human | Format::Json) {
            let texts = checked.texts();
            repeats::mark(&mut diagnostics, &|file| texts.get(file).copied());
        }
        self.print(colour, &checked, &diagnostics, &stats, &known)?;
        if checked.lost() {
            return Ok(ExitCode::from(2));
        }
        let failed = diagnostics
            .iter()
            .any(|finding| self.fail_on.reached_by(finding.severity));
        Ok(ExitCode::from(u8::from(failed)))
    }

    fn checked<T: Send>(
        &self,
        keep: &(dyn Fn(&Path, &str, FileAnalysis) -> Option<T> + Sync),
    ) -> anyhow::Result<CheckRun<T>> {
        let human = self.format == Format::Human;
        checked::check(
            &CheckRequest {
                paths: &self.paths,
                gpu: self.gpu.as_deref(),
                preprocessing: &self.preprocessing,
                losses: self.losses || (self.stats && human),
                texts: human
                    || matches!(self.format, Format::Json | Format::Sarif | Format::Gitlab)
                    || self.baseline.is_some()
                    || self.write_baseline.is_some(),
                wanted: None,
                selection: &self.selection,
                launching: &self.launching,
            },
            self.preprocessing.project(&self.paths),
            keep,
        )
    }

    fn write(
        &self,
        file: &Path,
        checked: &CheckRun<Kept>,
        diagnostics: &[Diagnostic],
    ) -> anyhow::Result<ExitCode> {
        let texts = checked.texts();
        let name = |diagnostic: &Diagnostic| relative(&diagnostic.file, file);
        let baseline = Baseline::of(diagnostics, &name, &|file| texts.get(file).copied());
        let text = baseline.text();
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        let kept = counted(baseline.len(), "finding");
        output::complain(&format!("{kept} written to {}", file.display()));
        Ok(ExitCode::SUCCESS)
    }

    /// Takes away what the baseline knows.
    fn known(
        &self,
        file: &Path,
        checked: &CheckRun<Kept>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> anyhow::Result<BaselineMatches> {
        let text = input::text(file).with_context(|| format!("cannot read {}", file.display()))?;
        let baseline = Baseline::read(&text)
            .map_err(|why| anyhow!("{} is not a baseline: {why}", file.display()))?;
        let texts = checked.texts();
        let name = |diagnostic: &Diagnostic| relative(&diagnostic.file, file);
        let before = diagnostics.len();
        let gone = baseline.subtract(diagnostics, &name, &|file| texts.get(file).copied());
        Ok(BaselineMatches {
            left_out: (before - diagnostics.len()) as u64,
            gone,
        })
    }

    fn print(
        &self,
        colour: Colour,
        checked: &CheckRun<Kept>,
        diagnostics: &[Diagnostic],
        stats: &Stats,
        known: &BaselineMatches,
    ) -> anyhow::Result<()> {
        let texts = checked.texts();
        let all = diagnostics;
        // What fails the run is always shown.
        let show = self.show.min(self.fail_on);
        let human = self.format == Format::Human;
        let shown = |finding: &&Diagnostic| !human || show.reached_by(finding.severity);
        let diagnostics: Vec<Diagnostic> = all.iter().filter(shown).cloned().collect();
        let loud = diagnostics.len();
        let most = self.top.unwrap_or(loud).min(loud);
        let diagnostics = &diagnostics[..most];
        match self.format {
            Format::Json => {
                let mut diagnostics = diagnostics.to_vec();
                if !self.no_fixes && !self.stats {
                    let fixes = checked.fixes(&diagnostics, &|fix, document| fix.to_wire(document));
                    for (finding, fixes) in diagnostics.iter_mut().zip(fixes) {
                        finding.fixes = Some(fixes);
                    }
                }
                output::emit_json(&CheckDocument {
                    schema: "warplens.check/1",
                    diagnostics,
                    stats: self.stats.then(|| stats.clone()),
                })
            }
            Format::Sarif => {
                let rules: Vec<sarif::Rule<'_>> = warplens_advice::catalogue()
                    .iter()
                    .map(|rule| sarif::Rule {
                        id: rule.id,
                        title: rule.title,
                        text: rule.explain,
                        uri: warplens_advice::href(rule.id),
                    })
                    .collect();
                let fixes = if self.no_fixes {
                    Vec::new()
                } else {
                    checked.fixes(diagnostics, &|fix, _| fix)
                };
                output::emit_json(&sarif::log(
                    diagnostics,
                    &fixes,
                    &rules,
                    env!("CARGO_PKG_VERSION"),
                    &|file| texts.get(file).copied(),
                ))
            }
            Format::Github => output::emit(&github::annotations(diagnostics)),
            Format::Gitlab => {
                let text = |file: &str| texts.get(file).copied();
                output::emit_json(&gitlab::code_quality(diagnostics, &text))
            }
            Format::Human => {
                let style = output::style(colour);
                let mut out = String::new();
                // What fails the run is always shown.
                let show = self.show.min(self.fail_on);
                let shown = |diagnostic: &&Diagnostic| show.reached_by(diagnostic.severity);
                let ranked = repeats::ranked(diagnostics);
                for (diagnostic, also) in ranked.iter().filter(|(one, _)| shown(one)) {
                    let text = texts.get(&diagnostic.file).copied();
                    out.push_str(&page::finding(diagnostic, also, text, style));
                    out.push('\n');
                }
                let files = checked.files().filter_map(|(path, outcome)| {
                    let analysis = outcome.kept.as_ref()?.analysis.as_ref()?;
                    Some((path.display().to_string(), analysis))
                });
                let files: Vec<(String, &FileAnalysis)> = files.collect();
                let wanted = |name: &str| self.launching.wants(name);
                let kernels = kernels::table(&files, &wanted, diagnostics, self.top);
                if !kernels.table.is_empty() {
                    out.push_str(&kernels.table.render(style));
                    out.push('\n');
                }
                if self.stats {
                    let parts = checked.files().map(|(path, outcome)| {
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
                out.push_str(&page::summary(all, stats.files, stats.kernels, style));
                if let Some(summary) = known.summary() {
                    style.push(&mut out, Paint::Quiet, &summary);
                }
                if most < loud || kernels.shown < kernels.all {
                    let findings = counted(loud as u64, "finding");
                    let (shown, all) = (kernels.shown, counted(kernels.all, "kernel"));
                    let text = format!("--top prints {most} of {findings}, {shown} of {all}\n");
                    style.push(&mut out, Paint::Quiet, &text);
                }
                if loud < all.len() {
                    style.push(
                        &mut out,
                        Paint::Quiet,
                        "`--show hint` also prints the hints\n",
                    );
                }
                output::emit(&out)
            }
        }
    }
}

/// What a baseline hides of a run.
#[derive(Debug, Default)]
struct BaselineMatches {
    /// Findings that it lists.
    left_out: u64,
    /// Findings that it lists and the run no longer finds.
    gone: u64,
}

impl BaselineMatches {
    fn summary(&self) -> Option<String> {
        let gone = match self.gone {
            0 => String::new(),
            gone => format!(
                "; {} of it no longer found (`--write-baseline` drops them)",
                counted(gone, "finding")
            ),
        };
        (self.left_out + self.gone > 0).then(|| {
            let known = counted(self.left_out, "finding");
            format!("{known} of the baseline hidden{gone}\n")
        })
    }
}

/// A file as a baseline calls it: from the baseline's folder, so that it does not matter where the command is run.
fn relative(file: &str, baseline: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = absolute(Path::new(file));
    let baseline = absolute(baseline);
    let folder = baseline.parent().unwrap_or(&baseline);
    let inside = file.strip_prefix(folder).unwrap_or(&file);
    inside.display().to_string().replace('\\', "/")
}
