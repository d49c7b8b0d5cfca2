//! A whole program's account: its kernels by launches × time, its copies, what to look at first.
//!
//! In: a file with `main`, settings. Out: [`ProgramAccount`]. What holds: a number is given where all that it is made of is known;
//! else it is a sum whose unknown parts are named, and shares are absent.

mod advice;
mod formula;
mod kernels;
mod transfers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_host::{HostEvent, HostEventKind, LaunchSite};
use warplens_machine::Profile;
use warplens_syntax::{Document, Language};

use crate::database::file;
use crate::kinds::{absolute, language_by_content};
use crate::queries::hosts::ReadAs;
use crate::queries::runs::{ProgramRun, is_program, program_run, programs_near, start_alone};
use crate::settings::Settings;
use crate::wire::{HostCall, ProgramAccount, Totals, Unknown};
use crate::{Cancel, Engine, FileAnalysis, Overrides, Variants};

use formula::{Sum, all_times, milliseconds, size, times, unknown};

/// The figure of a profile that says how fast the link to the host is.
const LINK: &str = "host_link_gb_s";

/// A kernel's file, analysed under the launches of the program.
struct Analysed {
    path: PathBuf,
    document: Document,
    analysis: FileAnalysis,
}

/// What an account is made of.
struct Making<'a> {
    run: &'a ProgramRun,
    profile: &'a Profile,
    files: &'a [Analysed],
    /// How files are called.
    name: &'a dyn Fn(&Path) -> String,
}

impl Engine {
    /// Whether a file may define `main`.
    pub fn is_program(&self, path: &Path) -> bool {
        let path = absolute(path);
        self.project()
            .look()
            .ask(|db| *is_program(db, file(db, &path)))
    }

    /// The files with a `main` that may launch the kernels of a file.
    pub fn programs_near(&self, path: &Path) -> Vec<PathBuf> {
        let path = absolute(path);
        self.project().look().ask(|db| programs_near(db, &path))
    }

    /// The launches that the program with this main file makes, in its order, and whether it makes more than were
    /// followed; `None` where there is no `main`.
    pub fn launches(&self, main: &Path, settings: &Settings) -> Option<(Vec<LaunchSite>, bool)> {
        let main = absolute(main);
        let (profile, _) = self.target(settings, &main);
        let how = ReadAs::of(settings, &profile);
        let (_, run) = self.run_of(&main, settings, &how)?;
        Some((run.sites.clone(), run.is_cut))
    }

    /// A program's run and how it is started.
    fn run_of(
        &self,
        main: &Path,
        settings: &Settings,
        how: &ReadAs,
    ) -> Option<(Arc<str>, Arc<ProgramRun>)> {
        self.project().look().ask(|db| {
            let start = Arc::new(start_alone(db, main, how, &settings.run)?);
            let run = program_run(db, file(db, main), how.clone(), Arc::clone(&start))?;
            Some((start.said(), run))
        })
    }

    /// The account of the program with this main file; `None` where there is no `main`, or when cancelled. `name`: how files are called.
    pub fn account(
        &self,
        main: &Path,
        settings: &Settings,
        name: &dyn Fn(&Path) -> String,
        cancel: &Cancel,
    ) -> Option<ProgramAccount> {
        let main = absolute(main);
        let (profile, _) = self.target(settings, &main);
        let how = ReadAs::of(settings, &profile);
        let (said, run) = self.run_of(&main, settings, &how)?;
        let files = self.kernel_files(&main, &run, settings, cancel)?;
        let making = Making {
            run: &run,
            profile: &profile,
            files: &files,
            name,
        };
        Some(making.account(&main, &said))
    }

    /// The files of the program's kernels, analysed.
    fn kernel_files(
        &self,
        main: &Path,
        run: &ProgramRun,
        settings: &Settings,
        cancel: &Cancel,
    ) -> Option<Vec<Analysed>> {
        let launched: Vec<&str> = run.sites.iter().map(|site| site.kernel.as_str()).collect();
        let mut paths: Vec<PathBuf> = Vec::new();
        for (path, kernel) in &run.kernels {
            let wanted = launched.contains(&kernel.as_str());
            if wanted && !paths.iter().any(|known| **known == **path) {
                paths.push(path.to_path_buf());
            }
        }
        let defined = |kernel: &&&str| run.kernels.iter().any(|(_, known)| known == **kernel);
        let missing = launched.iter().filter(|kernel| !defined(kernel));
        let missing: BTreeSet<String> = missing.map(|kernel| (*kernel).to_owned()).collect();
        if !missing.is_empty() {
            paths.extend(self.modules_of(main, &missing, &paths));
            paths.extend(self.opencl_of(main, &paths));
        }
        let overrides = Overrides {
            program: Some(main.to_owned()),
            variants: Variants::All,
            ..Overrides::default()
        };
        let mut files = Vec::new();
        for path in paths {
            let Some(document) = self.document(&path) else {
                continue;
            };
            let wanted = |name: &str| launched.contains(&name);
            let analysis =
                self.analyze_some(&document, &path, settings, &overrides, cancel, &wanted)?;
            files.push(Analysed {
                path,
                document,
                analysis,
            });
        }
        Some(files)
    }

    /// The sources near a program of the modules that it loads: they define kernels that it names and does not define.
    fn modules_of(
        &self,
        main: &Path,
        missing: &BTreeSet<String>,
        known: &[PathBuf],
    ) -> Vec<PathBuf> {
        let names: Vec<String> = missing.iter().cloned().collect();
        let mut found = self.project().look().defining(main, &names);
        found.retain(|path| !known.contains(path) && !self.is_program(path));
        found
    }

    /// Files that may hold kernels which the program names and does not define: OpenCL's, in its literals and beside it.
    fn opencl_of(&self, main: &Path, known: &[PathBuf]) -> Vec<PathBuf> {
        let look = self.project().look();
        let beside = main
            .parent()
            .map_or(Vec::new(), |folder| look.opencl_below(folder));
        let all = std::iter::once(main.to_owned()).chain(beside);
        all.filter(|path| !known.contains(path)).collect()
    }

    fn document(&self, path: &Path) -> Option<Document> {
        let source = self.project().look().files.read(path)?;
        let text: &str = &source.text;
        let language = language_by_content(Language::from_path(path), text);
        Some(Document::new(text, language))
    }
}

/// What a call does, and with how many bytes.
type Called = (&'static str, Option<u64>);

impl Making<'_> {
    fn account(&self, main: &Path, said: &str) -> ProgramAccount {
        let launches = self.launches();
        let kernels = self.kernels(&launches);
        let transfers = self.transfers();
        let totals = self.totals(&launches);
        let look_first = self.look_first(&launches, &totals, &kernels);
        ProgramAccount {
            file: (self.name)(main),
            run: said.to_owned(),
            gpu: self.profile.id.clone(),
            look_first,
            kernels,
            transfers,
            waits: self.calls(&|kind| match kind {
                HostEventKind::Synchronise(wait) => Some((wait.name(), None)),
                _ => None,
            }),
            memory: self.calls(&|kind| match kind {
                HostEventKind::Allocate(_, size) => Some(("allocate", size.bytes)),
                HostEventKind::Fill(size) => Some(("fill", size.bytes)),
                HostEventKind::Free => Some(("free", None)),
                _ => None,
            }),
            totals,
            unknowns: self.unknowns(),
            notes: self.notes(),
        }
    }

    fn calls(&self, wanted: &dyn Fn(&HostEventKind) -> Option<Called>) -> Vec<HostCall> {
        let call = |event: &HostEvent| {
            let (kind, bytes) = wanted(&event.kind)?;
            Some(HostCall {
                call: event.call.clone(),
                kind,
                file: (self.name)(&event.place.file),
                line: event.place.line + 1,
                bytes,
                times: times(&event.often),
            })
        };
        self.run.events.iter().filter_map(call).collect()
    }

    /// What decides how often something is done, each once.
    fn unknowns(&self) -> Vec<Unknown> {
        let mut found: Vec<Unknown> = Vec::new();
        for open in self.run.events.iter().flat_map(|event| &event.often.open) {
            for (decides, certain) in open.deciding.iter().zip(open.before.iter()) {
                let one = unknown(decides, *certain, self.name);
                match found.iter_mut().find(|known| known.symbol == one.symbol) {
                    Some(known) => known.at_least = known.at_least.max(*certain),
                    None => found.push(one),
                }
            }
        }
        found
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.run.is_cut {
            notes.push(
                "the host program does more than was followed: what it does later is left out"
                    .to_owned(),
            );
        }
        notes
    }

    fn totals(&self, launches: &[kernels::Launched<'_>]) -> Totals {
        let mut sum = Sum::default();
        let (mut low, mut high) = (Some(0.0), Some(0.0));
        for launch in launches {
            sum.add(&launch.time());
            let interval = launch.interval_ms();
            let number = launch.often.number().map(|number| number as f64);
            let part = |end: usize| Some(interval?[end] * number?);
            low = low.and_then(|sum: f64| Some(sum + part(0)?));
            high = high.and_then(|sum: f64| Some(sum + part(1)?));
        }
        let mut count = all_times(launches.iter().map(|launch| launch.often));
        if self.run.is_cut {
            sum.is_lost = true;
            count.number = None;
            count.formula = None;
        }
        let gpu_ms = sum.number().filter(|_| !launches.is_empty());
        let assumed = launches
            .iter()
            .any(|launch| launch.certainty() == "assumed");
        let overhead = self.profile.launch_overhead_us / 1000.0;
        let moved = self.moved();
        let all = |bytes: &Sum| bytes.number().filter(|_| !self.run.is_cut);
        let by = |bytes: &Sum| bytes.text(&size).filter(|_| !self.run.is_cut);
        Totals {
            gpu_ms,
            gpu_interval_ms: low
                .zip(high)
                .filter(|_| gpu_ms.is_some())
                .map(|(a, b)| [a, b]),
            gpu_at_least_ms: sum.least,
            gpu_formula: sum.text(&milliseconds),
            certainty: match (gpu_ms, assumed) {
                (None, _) => "open",
                (Some(_), true) => "assumed",
                (Some(_), false) => "estimated",
            },
            rests_on_assumptions: assumed,
            launch_overhead_ms: count.number.map(|number| number as f64 * overhead),
            launches: count,
            to_device_bytes: all(&moved.to_device).map(|bytes| bytes as u64),
            to_device_formula: by(&moved.to_device),
            to_host_bytes: all(&moved.to_host).map(|bytes| bytes as u64),
            to_host_formula: by(&moved.to_host),
            transfers_at_least_ms: moved.time_ms.filter(|_| !self.run.is_cut),
            known_transfers_at_least_ms: moved.known_ms,
            host_link_gb_s: self.profile.host_link_gb_s,
            host_link_source: self
                .profile
                .figures()
                .get(LINK)
                .map(|figure| figure.source.clone()),
        }
    }
}
