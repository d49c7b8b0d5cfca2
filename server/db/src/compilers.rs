//! Compiler reports on kernels, and which kernels still are what was compiled.
//!
//! The engine runs no compiler: what one reported is handed in here. A report is kept with the fingerprint of the kernel that
//! it is about, so that an edit elsewhere leaves it in force, and one in the kernel makes it the last report on
//! another text.

mod lines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use warplens_codegen::Class;
use warplens_ir::Places;
use warplens_syntax::Document;
use warplens_toolchain::{CompilerReport, KernelReport};

use crate::settings::Settings;
use crate::{Cancel, Engine, Overrides, PlacedKernel, Variants};

use lines::Lines;

/// Files whose reports are kept.
const MOST_FILES: usize = 256;

/// What a compiler reports of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KernelWithTool {
    /// The compiler, as it is shown: `nvcc 13.0`.
    pub tool: String,
    /// Registers, spills and instructions.
    pub kernel: KernelReport,
}

/// A kernel's report, joined with the kernel's text of the moment.
#[derive(Debug, Clone)]
pub struct PlacedReport {
    /// The report.
    pub report: Arc<KernelWithTool>,
    /// Whether the kernel is still what was compiled.
    pub current: bool,
    /// Instructions of the kernel's lines.
    lines: Arc<Lines>,
}

impl PlacedReport {
    /// The report with its lines where they are in the kernel's text as it is now.
    pub(crate) fn placed(self, document: &Document, first: u32, places: &Places) -> PlacedReport {
        if self.current {
            return self;
        }
        let lines = Arc::new(self.lines.within(lines::texts(document, first, places)));
        PlacedReport { lines, ..self }
    }
}

/// A report, and the kernel that it is about.
#[derive(Debug)]
struct KeptReport {
    kernel: String,
    template_args: Vec<(String, String)>,
    architecture: String,
    fingerprint: u64,
    report: Arc<KernelWithTool>,
    lines: Arc<Lines>,
}

/// All reports, by file.
#[derive(Debug, Default)]
pub(crate) struct CompilerReports(Mutex<FxHashMap<PathBuf, Vec<KeptReport>>>);

impl CompilerReports {
    /// What was said of a kernel for GPUs of this architecture.
    pub(crate) fn of(
        &self,
        path: &Path,
        architecture: &str,
        kernel: &str,
        template_args: &[(String, String)],
        fingerprint: u64,
    ) -> Option<PlacedReport> {
        let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let about = reports.get(path)?.iter().filter(|kept| {
            kept.kernel == kernel
                && kept.architecture == architecture
                && kept.template_args == template_args
        });
        // The text itself counts before another one of the same name: an overload, a branch of a conditional.
        let kept = about.min_by_key(|kept| kept.fingerprint != fingerprint)?;
        Some(PlacedReport {
            report: Arc::clone(&kept.report),
            current: kept.fingerprint == fingerprint,
            lines: Arc::clone(&kept.lines),
        })
    }

    fn put(&self, path: &Path, architecture: &str, kept: Vec<KeptReport>) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() >= MOST_FILES && !reports.contains_key(path) {
            reports.clear();
        }
        let of_file = reports.entry(path.to_path_buf()).or_default();
        of_file.retain(|old| old.architecture != architecture);
        of_file.extend(kept);
    }
}

impl Engine {
    /// Takes a compiler report on the kernels of a text that it compiled for the target. Gives how many of its kernels
    /// are kernels of the text; `None` when cancelled.
    pub fn take_report(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        report: CompilerReport,
        cancel: &Cancel,
    ) -> Option<usize> {
        let all = Overrides {
            variants: Variants::All,
            ..overrides.clone()
        };
        let file = self.analyze(document, path, settings, &all, cancel)?;
        let tool = report.tool;
        let with_tool = |kernel: KernelReport| KernelWithTool {
            tool: tool.clone(),
            kernel,
        };
        let reports: Vec<Arc<KernelWithTool>> = report
            .kernels
            .into_iter()
            .map(|kernel| Arc::new(with_tool(kernel)))
            .collect();
        let mut kept: Vec<KeptReport> = Vec::new();
        let mut used = vec![false; reports.len()];
        for placed in &file.kernels {
            let analysis = &placed.analysis;
            let Some(at) = report_of(&reports, &analysis.facts.name, &analysis.template_args)
            else {
                continue;
            };
            used[at] = true;
            if kept.iter().any(|one| {
                one.fingerprint == analysis.fingerprint && one.kernel == analysis.facts.name
            }) {
                continue;
            }
            kept.push(KeptReport {
                kernel: analysis.facts.name.clone(),
                template_args: analysis.template_args.clone(),
                architecture: file.profile.architecture.clone(),
                fingerprint: analysis.fingerprint,
                report: Arc::clone(&reports[at]),
                lines: Arc::new(numbered(&reports[at], placed, document, path)),
            });
        }
        self.reports.put(path, &file.profile.architecture, kept);
        Some(used.into_iter().filter(|used| *used).count())
    }
}

impl PlacedKernel {
    /// Instructions by class and absolute 0-based line, as a compiler made them: of this text, or, where its report is
    /// [not current](PlacedReport::current), of the lines before and behind what was edited since.
    pub fn compiled_lines(&self) -> BTreeMap<u32, &BTreeMap<Class, u64>> {
        let lines = self.compiler.iter().flat_map(|report| &report.lines.counts);
        lines
            .map(|(number, counts)| (self.place_line(*number), counts))
            .collect()
    }
}

/// The report about a kernel; `None` where several could be.
fn report_of(
    reports: &[Arc<KernelWithTool>],
    kernel: &str,
    template_args: &[(String, String)],
) -> Option<usize> {
    let about: Vec<usize> = (0..reports.len())
        .filter(|at| reports[*at].kernel.name == kernel)
        .collect();
    if let [only] = about[..] {
        return Some(only);
    }
    // Instances of a template: the one with the arguments in force.
    let fits = |report: &KernelWithTool| {
        let stated = &report.kernel.template_arguments;
        stated.len() == template_args.len()
            && stated
                .iter()
                .zip(template_args)
                .all(|(stated, (_, wanted))| {
                    stated.is_empty() || without_space(stated) == without_space(wanted)
                })
    };
    let mut fitting = about.into_iter().filter(|at| fits(&reports[*at]));
    let fit = fitting.next()?;
    fitting.next().is_none().then_some(fit)
}

fn without_space(argument: &str) -> String {
    argument.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The instructions of the kernel's own lines, by the numbers of the lines: they hold when the kernel moves.
fn numbered(
    report: &KernelWithTool,
    placed: &PlacedKernel,
    document: &Document,
    path: &Path,
) -> Lines {
    let mut by_line: FxHashMap<u32, BTreeMap<Class, u64>> = FxHashMap::default();
    for (file, line, counts) in &report.kernel.lines {
        // Compilers spell a path as they were given it, or as the system does: the name is what they share.
        if Path::new(&**file).file_name() == path.file_name() {
            let here = by_line.entry(*line).or_default();
            for (class, count) in counts {
                *here.entry(*class).or_default() += count;
            }
        }
    }
    let mut found = Vec::new();
    for number in 0..placed.places.lines().len() as u32 {
        if let Some(counts) = by_line.remove(&(placed.place_line(number) + 1)) {
            found.push((number, counts));
        }
    }
    Lines {
        counts: found,
        texts: lines::texts(document, placed.line, &placed.places),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_told_apart_by_their_template_arguments() {
        let report = |name: &str, arguments: &[&str]| {
            Arc::new(KernelWithTool {
                tool: String::new(),
                kernel: KernelReport {
                    name: name.to_owned(),
                    template_arguments: arguments.iter().map(|one| (*one).to_owned()).collect(),
                    ..KernelReport::default()
                },
            })
        };
        let reports = [
            report("scale", &["float", "4"]),
            report("scale", &["", "8"]),
            report("copy", &[]),
        ];
        let args = |values: &[&str]| -> Vec<(String, String)> {
            let named = values
                .iter()
                .map(|value| ("T".to_owned(), (*value).to_owned()));
            named.collect()
        };
        assert_eq!(
            report_of(&reports, "scale", &args(&["float", "4"])),
            Some(0)
        );
        assert_eq!(
            report_of(&reports, "scale", &args(&["pair<int, int>", "8"])),
            Some(1)
        );
        // Not said of this one: another instance's figures would be wrong.
        assert_eq!(report_of(&reports, "scale", &args(&["double", "4"])), None);
        assert_eq!(report_of(&reports, "copy", &[]), Some(2));
        assert_eq!(report_of(&reports, "cop", &[]), None);
    }
}
