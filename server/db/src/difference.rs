//! What changed between two versions of the same kernels: predictions, resources, findings.

use std::collections::BTreeMap;

use warplens_facts::facts::{Access, Space};
use warplens_syntax::{DirectiveKind, directives};

use crate::wire::{
    Changed, Diagnostic, DiffDocument, KernelChange, ProgramAccount, ProgramChange,
    ProgramStanding, Standing,
};
use crate::{FileAnalysis, PlacedKernel};

/// A change of the predicted time below this part of it is none: it is beyond what a model can tell.
const SAME: f64 = 0.005;

/// One kernel of one version, and what is said about it becoming slower.
#[derive(Debug, Clone)]
pub struct Version {
    /// The file's path from the version's root.
    pub file: String,
    /// Profile id.
    pub gpu: String,
    /// Plain name.
    pub kernel: String,
    /// Template arguments by name.
    pub template_args: BTreeMap<String, String>,
    /// Why it may be slower than before: `// warplens: slower(reason)`.
    pub justification: Option<String>,
    /// What it is predicted to take.
    pub standing: Standing,
}

/// The kernels of one file of one version.
pub fn versions(file: &str, text: &str, analysis: &FileAnalysis) -> Vec<Version> {
    let said: Vec<(usize, String)> = directives(text)
        .into_iter()
        .filter_map(|directive| match directive.kind {
            DirectiveKind::Slower(reason) => Some((directive.range.start, reason)),
            _ => None,
        })
        .collect();
    let before = |kernel: &PlacedKernel| {
        let ends = analysis.kernels.iter().map(|other| other.end);
        ends.filter(|end| *end <= kernel.start).max().unwrap_or(0)
    };
    let version = |kernel: &PlacedKernel| {
        // Above the kernel, or in it.
        let reach = before(kernel)..kernel.end;
        let justification = said.iter().find(|(at, _)| reach.contains(at));
        Version {
            file: file.to_owned(),
            gpu: kernel.analysis.profile.id.clone(),
            kernel: kernel.analysis.facts.name.clone(),
            template_args: kernel.analysis.template_args.iter().cloned().collect(),
            justification: justification.map(|(_, reason)| reason.clone()),
            standing: standing(kernel),
        }
    };
    analysis.kernels.iter().map(version).collect()
}

fn standing(kernel: &PlacedKernel) -> Standing {
    let analysis = &kernel.analysis;
    let facts = &analysis.facts;
    let estimate = analysis.estimate();
    let open = estimate.open.as_ref();
    let sum = |space: Space, each: &dyn Fn(&Access) -> Option<f64>| {
        let of_space = facts.accesses.iter();
        let mut of_space = of_space.filter(|access| access.space == space);
        // One that is not known leaves the sum unknown.
        of_space.try_fold(0.0, |sum, access| {
            Some(sum + each(access)? * access.requests?)
        })
    };
    Standing {
        line: kernel.place_line(facts.name_site.line) + 1,
        grid: analysis
            .grid_formula()
            .is_none()
            .then_some(facts.launch.grid),
        block: facts.launch.block,
        launch_known: analysis.launch_known,
        time_ms: estimate.time_ms,
        time_formula: open.and_then(|open| open.formula.clone()),
        unknowns: open.map(|open| open.unknowns.clone()).unwrap_or_default(),
        cycles: estimate.cycles,
        bottleneck: estimate.bottleneck.map(warplens_models::Bottleneck::name),
        registers_per_thread: analysis.input.resources.registers_per_thread,
        spill_bytes: analysis.input.compiled.spill_bytes,
        shared_bytes: analysis.input.resources.static_shared_bytes
            + facts.launch.dynamic_shared_bytes,
        occupancy: analysis.input.occupancy.fraction,
        global_transactions: sum(Space::Global, &|access| access.transactions_per_request),
        shared_passes: sum(Space::Shared, &|access| access.passes_per_request),
        warp_instructions: analysis
            .input
            .instructions
            .as_ref()
            .map(crate::WarpInstructions::total),
    }
}

/// Compares two versions. Kernels are the same by file, name, template arguments and GPU, or, moved to another file, by all
/// but the file where only one can be meant.
pub fn difference(
    before: Vec<Version>,
    after: Vec<Version>,
    diagnostics: Changed,
    fail_on: Option<f64>,
) -> DiffDocument {
    let mut old: Vec<Option<Version>> = before.into_iter().map(Some).collect();
    let mut new: Vec<Option<Version>> = after.into_iter().map(Some).collect();
    let mut kernels = Vec::new();
    for same_file in [true, false] {
        for slot in &mut new {
            let Some(wanted) = slot.as_ref() else {
                continue;
            };
            let alike = |other: &Version| {
                other.gpu == wanted.gpu
                    && other.kernel == wanted.kernel
                    && other.template_args == wanted.template_args
                    && (!same_file || other.file == wanted.file)
            };
            let mut found = (0..old.len()).filter(|at| old[*at].as_ref().is_some_and(alike));
            let Some(first) = found.next() else { continue };
            // Launches of one kernel stand in their order; of a kernel that moved only one may be there.
            if !same_file && found.next().is_some() {
                continue;
            }
            let pair = (old[first].take(), slot.take());
            kernels.push(change(pair.0, pair.1, fail_on));
        }
    }
    let gone = old
        .into_iter()
        .flatten()
        .map(|one| change(Some(one), None, fail_on));
    kernels.extend(gone);
    let added = new
        .into_iter()
        .flatten()
        .map(|one| change(None, Some(one), fail_on));
    kernels.extend(added);
    kernels.sort_by(|a, b| {
        (&a.file, &a.gpu, line(a), &a.kernel).cmp(&(&b.file, &b.gpu, line(b), &b.kernel))
    });
    DiffDocument {
        schema: "warplens.diff/1",
        kernels,
        programs: Vec::new(),
        diagnostics,
    }
}

fn line(change: &KernelChange) -> u32 {
    let standing = change.after.as_ref().or(change.before.as_ref());
    standing.map_or(0, |standing| standing.line)
}

fn change(before: Option<Version>, after: Option<Version>, fail_on: Option<f64>) -> KernelChange {
    let cycles = |version: &Option<Version>| version.as_ref().and_then(|one| one.standing.time_ms);
    let slowdown = match (cycles(&before), cycles(&after)) {
        (Some(before), Some(after)) if before > 0.0 => Some(after / before),
        _ => None,
    };
    // What could be predicted and cannot any more cannot be launched, or is understood less.
    let lost = before.is_some()
        && after.is_some()
        && cycles(&before).is_some()
        && cycles(&after).is_none();
    let beyond = |percent: f64| {
        lost || slowdown.is_some_and(|slowdown| slowdown > 1.0 + (percent / 100.0).max(SAME))
    };
    let justification = after.as_ref().and_then(|after| after.justification.clone());
    let regression = justification.is_none() && fail_on.is_some_and(beyond);
    let named = after.as_ref().or(before.as_ref());
    let (file, kernel, template_args, gpu) = match named {
        Some(one) => (
            one.file.clone(),
            one.kernel.clone(),
            one.template_args.clone(),
            one.gpu.clone(),
        ),
        None => Default::default(),
    };
    let moved = before.as_ref().filter(|before| before.file != file);
    KernelChange {
        moved_from: moved.map(|before| before.file.clone()),
        file,
        kernel,
        template_args,
        gpu,
        slowdown,
        regression,
        justification,
        before: before.map(|one| one.standing),
        after: after.map(|one| one.standing),
    }
}

/// The programs of two versions whose accounts are not the same, matched by their files.
pub fn changed_programs(
    before: Vec<ProgramAccount>,
    after: Vec<ProgramAccount>,
) -> Vec<ProgramChange> {
    let mut pairs: BTreeMap<String, [Option<ProgramAccount>; 2]> = BTreeMap::new();
    for (at, accounts) in [before, after].into_iter().enumerate() {
        for account in accounts {
            let pair = pairs.entry(account.file.clone()).or_default();
            pair[at] = Some(account);
        }
    }
    let changes = pairs.into_iter().filter_map(|(file, [before, after])| {
        let gpu = after.as_ref().or(before.as_ref())?.gpu.clone();
        let [before, after] = [before, after].map(|one| one.as_ref().map(ProgramStanding::from));
        let time = |one: &Option<ProgramStanding>| one.as_ref()?.gpu_ms;
        let slowdown = match (time(&before), time(&after)) {
            (Some(before), Some(after)) if before > 0.0 => Some(after / before),
            _ => None,
        };
        (before != after).then_some(ProgramChange {
            file,
            gpu,
            slowdown,
            before,
            after,
        })
    });
    changes.collect()
}

impl KernelChange {
    /// True where its predicted time grew by more than a model can tell.
    pub fn is_slower(&self) -> bool {
        self.slowdown.is_some_and(|slowdown| slowdown > 1.0 + SAME)
    }

    /// True where its predicted time fell by more than a model can tell.
    pub fn is_faster(&self) -> bool {
        self.slowdown.is_some_and(|slowdown| slowdown < 1.0 - SAME)
    }

    /// True where nothing that is predicted of it changed by more than a model can tell.
    pub fn is_same(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else {
            return false;
        };
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= SAME * a.abs().max(b.abs()),
            (a, b) => a.is_none() && b.is_none(),
        };
        near(before.time_ms, after.time_ms)
            && near(before.global_transactions, after.global_transactions)
            && near(before.shared_passes, after.shared_passes)
            && before.registers_per_thread == after.registers_per_thread
            && before.spill_bytes == after.spill_bytes
            && before.shared_bytes == after.shared_bytes
            && near(Some(before.occupancy), Some(after.occupancy))
            && (before.grid, before.block) == (after.grid, after.block)
    }
}

/// Findings of two versions: which came, which went. A finding is the same by what `key` makes of it.
pub fn changed_findings(
    before: Vec<Diagnostic>,
    after: Vec<Diagnostic>,
    key: &dyn Fn(bool, &Diagnostic) -> (String, String, String),
) -> Changed {
    let mut known: BTreeMap<(String, String, String), Vec<Diagnostic>> = BTreeMap::new();
    for diagnostic in before {
        known
            .entry(key(false, &diagnostic))
            .or_default()
            .push(diagnostic);
    }
    let mut added = Vec::new();
    for diagnostic in after {
        match known.get_mut(&key(true, &diagnostic)) {
            Some(alike) if !alike.is_empty() => drop(alike.remove(0)),
            _ => added.push(diagnostic),
        }
    }
    Changed {
        added,
        removed: known.into_values().flatten().collect(),
    }
}
