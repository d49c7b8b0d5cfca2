//! `warplens diff`: predicted times of two versions of the kernels, side by side.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use rayon::prelude::*;
use warplens_base::DiskFiles;
use warplens_db::affected::{Edited, Reading, affected};
use warplens_db::difference::{Version, changed_findings, changed_programs, difference, versions};
use warplens_db::wire::{Diagnostic, ProgramAccount, ProgramChange};
use warplens_db::{Cancel, Engine, Project};
use warplens_report::baseline::line;
use warplens_report::diff;

use crate::checked::{self, CheckRequest, CheckRun};
use crate::launching::Launching;
use crate::output::{self, Colour};
use crate::revision::Revision;
use crate::selection::Selection;
use crate::values::Preprocessing;
use crate::{config, edited, input, profiles};

/// Programs that are compared.
const MOST_PROGRAMS: usize = 64;

/// Predicted times and findings of two versions, side by side
///
/// A version is a file, a folder, or a revision of the git repository around the current folder (only the current folder is
/// compared). Of the later version, only files whose results may have changed are analysed. Kernels without changes are
/// counted, not listed. A comment `// warplens: slower(REASON)` above a kernel or in it accepts that it is slower.
///
/// Exit status: 0 fine, 1 a kernel slower than --fail-on-regression allows, 2 bad usage or nothing could be read.
#[derive(Debug, Args)]
pub struct Diff {
    /// The earlier version: a file, a folder or a revision
    base: String,
    /// The later version: a file where the earlier one is a file, else a folder; or a revision
    #[arg(default_value = ".")]
    head: String,
    /// How to print it
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Exit with status 1 where a kernel is predicted more than this many percent slower, unless a comment accepts it
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_on_regression: Option<f64>,
    /// Target GPU, a profile id (repeatable) [default: warplens.toml's, else a100-sxm4-40gb]
    #[arg(long, value_name = "ID")]
    gpu: Vec<String>,
    #[command(flatten)]
    preprocessing: Preprocessing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Human,
    /// For a pull request
    Markdown,
    /// One JSON document, warplens.diff/1
    Json,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>();
    let number = number
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("\"{text}\" is not a percentage of 0 or more"))
}

/// One of the two versions.
struct Side {
    /// File names are shown relative to this.
    root: PathBuf,
    /// The folder of the version; `None` for a single file.
    folder: Option<PathBuf>,
    /// Files and folders to analyse.
    paths: Vec<PathBuf>,
    /// The name shown for a single file.
    alone: String,
    /// The checked-out revision, kept while it is analysed.
    revision: Option<Revision>,
}

/// One version analysed for one GPU, with the engine's caches.
struct SideRun {
    seen: SideFindings,
    checked: CheckRun<(Vec<Version>, Reading)>,
}

/// The results of one version.
#[derive(Default)]
struct SideFindings {
    kernels: Vec<Version>,
    diagnostics: Vec<Diagnostic>,
    /// The source lines of findings, by file and line.
    lines: HashMap<(String, u32), String>,
}

impl Diff {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let old = self.side(&self.base, &self.head)?;
        let new = self.side(&self.head, &self.base)?;
        if old.folder.is_some() != new.folder.is_some() {
            let (file, folder) = match old.folder {
                Some(_) => (&self.head, &self.base),
                None => (&self.base, &self.head),
            };
            bail!(
                "`{file}` is a file and `{folder}` a folder: name two files, two folders, or a revision and a file \
                 (`warplens diff HEAD {file}`)"
            );
        }
        let edited = match (&old.folder, &new.folder) {
            (Some(old), Some(new)) => edited::edited(old, new),
            _ => None,
        };
        let (mut before, mut after) = (SideFindings::default(), SideFindings::default());
        let gpus: Vec<Option<&str>> = if self.gpu.is_empty() {
            vec![None]
        } else {
            self.gpu.iter().map(|gpu| Some(gpu.as_str())).collect()
        };
        for (at, gpu) in gpus.into_iter().enumerate() {
            // Findings are those on the first GPU: most depend on no GPU.
            let findings = at == 0;
            let earlier = self.look(&old, gpu, findings, None)?;
            let later = match &edited {
                Some(edited) => self.look_again(&old, &new, gpu, findings, &earlier, edited)?,
                None => self.look(&new, gpu, findings, None)?.seen,
            };
            before.add(earlier.seen);
            after.add(later);
        }
        let sides = [old, new];
        let (old, new) = (before.lines, after.lines);
        let changed = changed_findings(before.diagnostics, after.diagnostics, &|later, finding| {
            let lines = if later { &new } else { &old };
            let line = lines.get(&(finding.file.clone(), finding.line));
            let line = line.cloned().unwrap_or_default();
            (finding.file.clone(), finding.rule.clone(), line)
        });
        let mut document = difference(
            before.kernels,
            after.kernels,
            changed,
            self.fail_on_regression,
        );
        document.programs = self.programs(&sides[0], &sides[1], edited.as_deref())?;
        match self.format {
            Format::Json => output::emit_json(&document)?,
            Format::Markdown => output::emit(&diff::markdown(&document))?,
            Format::Human => output::emit(&diff::page(&document, output::style(colour)))?,
        }
        let failed = document.kernels.iter().any(|change| change.regression);
        Ok(ExitCode::from(u8::from(failed)))
    }

    /// The programs whose account changed.
    fn programs(
        &self,
        old: &Side,
        new: &Side,
        edited: Option<&[Edited]>,
    ) -> anyhow::Result<Vec<ProgramChange>> {
        let (Some(old_folder), Some(_)) = (&old.folder, &new.folder) else {
            return Ok(Vec::new());
        };
        let root = std::path::absolute(old_folder)?;
        // A program is made of files in its folder, and of some above and below it.
        let near = |main: &str| {
            let main = root.join(main);
            let folder = main.parent().unwrap_or(&root).to_owned();
            edited.is_none_or(|edited| {
                let folders = edited.iter().filter_map(|one| one.path.parent());
                folders
                    .into_iter()
                    .any(|of| of.starts_with(&folder) || folder.starts_with(of))
            })
        };
        Ok(changed_programs(
            self.accounts(old, &near)?,
            self.accounts(new, &near)?,
        ))
    }

    fn accounts(
        &self,
        side: &Side,
        wanted: &dyn Fn(&str) -> bool,
    ) -> anyhow::Result<Vec<ProgramAccount>> {
        let (profiles, _) = profiles::of(&side.paths);
        let mut config = config::of(&side.root, &profiles);
        if let Some(gpu) = self.gpu.first() {
            config.settings.gpu = Some(profiles::id(gpu, &profiles)?);
        }
        self.preprocessing.apply(&mut config.settings);
        let engine = Engine::with_project(profiles, side.project(&self.preprocessing));
        let mut mains = side.folder.as_deref().map_or(Vec::new(), input::hosts);
        mains.retain(|main| wanted(&side.name(main)) && engine.is_program(main));
        if mains.len() > MOST_PROGRAMS {
            let more = mains.len() - MOST_PROGRAMS;
            output::complain(&format!(
                "{more} programs more than {MOST_PROGRAMS} are not compared"
            ));
            mains.truncate(MOST_PROGRAMS);
        }
        let name = |path: &Path| side.name(path);
        let account = |main: &PathBuf| {
            let account = engine.account(main, &config.settings, &name, &Cancel::default());
            account.filter(|account| !account.kernels.is_empty())
        };
        // The analysis recurses as deep as the source nests.
        let pool = rayon::ThreadPoolBuilder::new()
            .stack_size(super::STACK)
            .build()?;
        Ok(pool.install(|| mains.par_iter().filter_map(account).collect()))
    }

    fn side(&self, name: &str, other: &str) -> anyhow::Result<Side> {
        let mut side = Side::named(name, other)?;
        let head = Path::new(&self.head).file_name();
        side.alone = head.unwrap_or_default().display().to_string();
        Ok(side)
    }

    fn look(
        &self,
        side: &Side,
        gpu: Option<&str>,
        findings: bool,
        wanted: Option<&(dyn Fn(&Path) -> bool + Sync)>,
    ) -> anyhow::Result<SideRun> {
        let again = wanted.is_some();
        let request = CheckRequest {
            paths: &side.paths,
            gpu,
            preprocessing: &self.preprocessing,
            losses: false,
            texts: findings,
            wanted,
            selection: &Selection::default(),
            launching: &Launching::default(),
        };
        let checked = checked::check(
            &request,
            side.project(&self.preprocessing),
            &|path, text, analysis| {
                // Its name is known further down.
                let versions = versions("", text, &analysis);
                Some((versions, Reading::of(path, &analysis)))
            },
        )?;
        let mut seen = SideFindings::default();
        // Of what is looked at again there may be nothing.
        if !again {
            checked.any_read()?;
        }
        for (path, outcome) in checked.files() {
            let file = side.name(path);
            for version in outcome.kept.iter().flat_map(|(versions, _)| versions) {
                let file = file.clone();
                seen.kernels.push(Version {
                    file,
                    ..version.clone()
                });
            }
        }
        if findings {
            let texts = checked.texts();
            // Settings that are the same say the same.
            let found = if again {
                checked.of_files()
            } else {
                checked.diagnostics()
            };
            for mut finding in found {
                let line = line(&finding, &|file| texts.get(file).copied());
                finding.file = side.name(Path::new(&finding.file));
                seen.lines
                    .insert((finding.file.clone(), finding.line), line);
                seen.diagnostics.push(finding);
            }
        }
        Ok(SideRun { seen, checked })
    }

    /// What came of the later version, of which only that is looked at whose results may be others.
    fn look_again(
        &self,
        old: &Side,
        new: &Side,
        gpu: Option<&str>,
        findings: bool,
        earlier: &SideRun,
        edited: &[Edited],
    ) -> anyhow::Result<SideFindings> {
        let checked = &earlier.checked;
        let kept = checked.files().map(|(_, outcome)| outcome.kept.as_ref());
        let readings: Vec<Reading> = kept.flatten().map(|(_, reading)| reading.clone()).collect();
        let old_root = std::path::absolute(&old.root)?;
        let affected = affected(
            checked.engine(),
            &old_root,
            &readings,
            edited,
            &edited::text,
        );
        let same = readings.iter().map(|reading| &reading.path);
        let same = same.filter(|path| !affected.contains(*path));
        let same: HashSet<String> = same.map(|path| old.name(path)).collect();
        let wanted = |path: &Path| !same.contains(&new.name(path));
        let mut seen = self.look(new, gpu, findings, Some(&wanted))?.seen;
        let of_files: HashSet<String> = checked.files().map(|(path, _)| old.name(path)).collect();
        let stays = |file: &String| same.contains(file) || !of_files.contains(file);
        let was = &earlier.seen;
        let kernels = was.kernels.iter();
        seen.kernels
            .extend(kernels.filter(|kernel| stays(&kernel.file)).cloned());
        let findings = was.diagnostics.iter();
        seen.diagnostics
            .extend(findings.filter(|finding| stays(&finding.file)).cloned());
        let lines = was.lines.iter().filter(|((file, _), _)| stays(file));
        seen.lines
            .extend(lines.map(|(place, line)| (place.clone(), line.clone())));
        Ok(seen)
    }
}

impl SideFindings {
    fn add(&mut self, other: SideFindings) {
        self.kernels.extend(other.kernels);
        self.diagnostics.extend(other.diagnostics);
        self.lines.extend(other.lines);
    }
}

impl Side {
    /// `other` is the other version's name: of a revision only what corresponds to it is looked at.
    fn named(name: &str, other: &str) -> anyhow::Result<Side> {
        let path = PathBuf::from(name);
        if path.exists() {
            return Ok(Side {
                root: path.clone(),
                folder: path.is_dir().then(|| path.clone()),
                paths: vec![path],
                alone: String::new(),
                revision: None,
            });
        }
        let revision = Revision::named(name)?;
        let other = Path::new(other);
        let inside = other.is_relative() && other.exists();
        let part = if inside { other } else { Path::new("") };
        let here = revision.here().join(part);
        if !here.exists() {
            bail!("`{name}` has no {}", part.display());
        }
        Ok(Side {
            root: here.clone(),
            folder: here.is_dir().then(|| here.clone()),
            paths: vec![here],
            alone: String::new(),
            revision: Some(revision),
        })
    }

    /// What surrounds it.
    fn project(&self, preprocessing: &Preprocessing) -> Project {
        match &self.revision {
            Some(revision) => {
                let top = vec![revision.top().to_owned()];
                let project = Project::new(std::sync::Arc::new(DiskFiles::new()), top);
                preprocessing.confine(&project, &[]);
                project
            }
            None => preprocessing.project(&self.paths),
        }
    }

    /// A file as both versions call it; two files are compared whatever their names.
    fn name(&self, file: &Path) -> String {
        // `walk` takes a leading `./` away.
        let absolute = std::path::absolute(&self.root);
        let root = match &absolute {
            Ok(absolute) if file.is_absolute() => absolute,
            _ => self.root.strip_prefix("./").unwrap_or(&self.root),
        };
        let root = if root == Path::new(".") {
            Path::new("")
        } else {
            root
        };
        let inside = file.strip_prefix(root).unwrap_or(file);
        if inside.as_os_str().is_empty() {
            return self.alone.clone();
        }
        inside.display().to_string().replace('\\', "/")
    }
}
