//! Which kernels the table below the findings has.

use std::collections::HashSet;

use warplens_db::FileAnalysis;
use warplens_db::wire::Diagnostic;
use warplens_report::check::KernelTable;

/// A table, and of how many kernels it has how many.
#[derive(Debug)]
pub struct Tabled {
    pub table: KernelTable,
    pub shown: u64,
    pub all: u64,
}

/// The kernels of these files that are wanted. With `top`, those of the findings that are printed, and up to `top` in all those that
/// take longest: who asks for three findings has no use for hundreds of rows below them.
pub fn table(
    files: &[(String, &FileAnalysis)],
    wanted: &dyn Fn(&str) -> bool,
    printed: &[Diagnostic],
    top: Option<usize>,
) -> Tabled {
    let mut kernels: Vec<(f64, &str, &str)> = Vec::new();
    for (file, analysis) in files {
        for kernel in &analysis.kernels {
            let name = kernel.analysis.facts.name.as_str();
            if wanted(name) {
                let time = kernel.analysis.estimate().time_ms.unwrap_or_default();
                kernels.push((time, file, name));
            }
        }
    }
    let mut kept: HashSet<(&str, &str)> = HashSet::new();
    if let Some(top) = top {
        let of_findings = printed.iter();
        kept.extend(
            of_findings.filter_map(|one| Some((one.file.as_str(), one.kernel.as_deref()?))),
        );
        kernels.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, file, name) in &kernels {
            if kept.len() < top {
                kept.insert((file, name));
            }
        }
    } else {
        kept.extend(kernels.iter().map(|(_, file, name)| (*file, *name)));
    }
    let mut table = KernelTable::default();
    for (file, analysis) in files {
        table.add(file, analysis, &|name| {
            wanted(name) && kept.contains(&(file.as_str(), name))
        });
    }
    let shown = kernels.iter();
    let shown = shown.filter(|(_, file, name)| kept.contains(&(*file, *name)));
    Tabled {
        table,
        shown: shown.count() as u64,
        all: kernels.len() as u64,
    }
}
