//! What would help a kernel: edits, findings and causes of waiting in one list, the largest gain first.

use std::ops::Range;
use std::path::Path;

use warplens_advice::{VISIBLE_GAIN, times};
use warplens_facts::facts::{Space, Uniformity};
use warplens_ir::Site;
use warplens_models::Factor;
use warplens_syntax::Document;

use crate::results::position;
use crate::settings::Settings;
use crate::{
    Cancel, Engine, FileAnalysis, Overrides, PlacedFinding, PlacedFix, PlacedKernel, wire,
};

/// A finding or an edit that gains this part of what a cause costs, by logarithm, is that cause told.
const TOLD: f64 = 0.85;

/// Something that would help.
#[derive(Debug, Clone, PartialEq)]
pub struct Help {
    /// What it is.
    pub kind: HelpKind,
    /// The predicted speedup of the kernel.
    pub gain: f64,
    /// Absolute bytes: where it is, or where most of it is.
    pub range: Option<Range<usize>>,
}

/// What would help.
#[derive(Debug, Clone, PartialEq)]
pub enum HelpKind {
    /// An edit that is proved.
    Edit(PlacedFix),
    /// A finding that no edit cures.
    Finding(PlacedFinding),
    /// What the kernel waits for, and no finding says.
    Cause(Factor),
}

impl HelpKind {
    /// The name in the JSON.
    pub fn name(&self) -> &'static str {
        match self {
            HelpKind::Edit(_) => "edit",
            HelpKind::Finding(_) => "finding",
            HelpKind::Cause(_) => "cause",
        }
    }
}

impl Help {
    /// An edit.
    pub fn edit(fix: PlacedFix) -> Help {
        Help {
            gain: fix.gain,
            range: fix.edits.first().map(|(bytes, _)| bytes.clone()),
            kind: HelpKind::Edit(fix),
        }
    }

    /// One line: what to do, or what the kernel waits for, with what it gains.
    pub fn title(&self, document: &Document) -> String {
        match &self.kind {
            HelpKind::Edit(fix) => fix.title.clone(),
            HelpKind::Finding(finding) => finding.message.clone(),
            HelpKind::Cause(factor) => {
                let most = self.line(document);
                let most =
                    most.map_or_else(String::new, |line| format!(", most of it in line {line}"));
                format!("{}: without {}{most}", times(self.gain), words(*factor))
            }
        }
    }

    /// The line of its place, from 1.
    fn line(&self, document: &Document) -> Option<u32> {
        let range = self.range.as_ref()?;
        Some(position(document, range.start).0)
    }

    fn to_wire(&self, document: &Document) -> wire::Help {
        let (rule, factor) = match &self.kind {
            HelpKind::Edit(fix) => (Some(fix.rule), None),
            HelpKind::Finding(finding) => (Some(finding.rule), None),
            HelpKind::Cause(factor) => (None, Some(factor.name())),
        };
        wire::Help {
            kind: self.kind.name(),
            title: self.title(document),
            gain: self.gain,
            line: self.line(document),
            rule: rule.map(str::to_owned),
            factor,
        }
    }
}

impl Engine {
    /// What would help a kernel under the launch that is shown, the largest gain first; of equal ones edits first, then
    /// findings. A finding that an edit cures is that edit, and a cause that a finding or an edit says is not told again.
    pub fn what_would_help(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        analysis: &FileAnalysis,
        kernel: &PlacedKernel,
    ) -> Vec<Help> {
        let offered = |bytes| self.fixes(document, path, settings, overrides, bytes);
        let (fixes, findings) = cures(&offered, analysis, kernel);
        let mut all: Vec<Help> = fixes.into_iter().map(Help::edit).collect();
        all.extend(findings.into_iter().map(|finding| Help {
            kind: HelpKind::Finding(finding.clone()),
            gain: finding.gain,
            range: Some(finding.range.clone()),
        }));
        let what_if = kernel.analysis.what_if().iter();
        let causes: Vec<Help> = what_if
            .filter(|(_, _, gain)| gain.is_finite() && *gain >= VISIBLE_GAIN)
            .filter(|(factor, _, gain)| !all.iter().any(|told| says(told, *factor, *gain)))
            .map(|&(factor, _, gain)| Help {
                kind: HelpKind::Cause(factor),
                gain,
                range: most_of(kernel, factor).map(|site| kernel.place(site.span)),
            })
            .collect();
        all.extend(causes);
        all.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        all
    }

    /// Puts what would help each kernel into a document that was estimated of the same source: for the first GPU, under each
    /// kernel's costliest launch.
    pub fn add_help(
        &self,
        document: &Document,
        path: &Path,
        settings: &Settings,
        overrides: &Overrides,
        estimated: &mut wire::EstimateDocument,
    ) {
        let Some(gpu) = estimated.results.first().map(|result| result.gpu.clone()) else {
            return;
        };
        let settings = Settings {
            gpu: Some(gpu.clone()),
            ..settings.clone()
        };
        let never = Cancel::default();
        let Some(analysis) = self.analyze(document, path, &settings, overrides, &never) else {
            return;
        };
        for result in estimated.results.iter_mut().filter(|one| one.gpu == gpu) {
            let shown = analysis.kernels.iter().find(|placed| {
                placed.analysis.facts.name == result.kernel
                    && placed.variant == result.variant.at
                    && position(document, placed.place(placed.analysis.name_site.span).start).0
                        == result.line
            });
            result.what_would_help = shown.map(|placed| {
                let help =
                    self.what_would_help(document, path, &settings, overrides, &analysis, placed);
                help.iter().map(|one| one.to_wire(document)).collect()
            });
        }
    }
}

/// The actions that are offered for a kernel, and its visible findings that none of them answers, the one that gains most
/// first. `offered`: the actions for a range of bytes.
fn cures<'a>(
    offered: &dyn Fn(Range<usize>) -> Vec<PlacedFix>,
    analysis: &'a FileAnalysis,
    placed: &PlacedKernel,
) -> (Vec<PlacedFix>, Vec<&'a PlacedFinding>) {
    let mut fixes = offered(placed.start..placed.end);
    fixes.retain(|fix| fix.gain >= VISIBLE_GAIN);
    let name = placed.analysis.facts.name.as_str();
    let found: Vec<_> = analysis
        .findings
        .iter()
        .filter(|one| one.kernel.as_deref() == Some(name))
        .collect();
    let mut left: Vec<&PlacedFinding> = Vec::new();
    for one in found.iter().filter(|one| one.gain >= VISIBLE_GAIN) {
        let inside = (placed.start..=placed.end).contains(&one.range.start);
        let answered = fixes.iter().any(|fix| fix.rule == one.rule);
        let alone = found.iter().filter(|other| other.rule == one.rule).count() == 1;
        if answered && alone {
            continue;
        }
        // What was found at a launch is outside of the kernel, and one action need not be for all findings of its rule.
        if answered || !inside {
            let mut here = offered(one.range.clone());
            here.retain(|fix| fix.rule == one.rule);
            if !here.is_empty() {
                here.retain(|fix| fixes.iter().all(|known| known.edits != fix.edits));
                fixes.extend(here);
                continue;
            }
        }
        if left.iter().all(|known| !known.is_cause_of(one)) {
            left.push(one);
        }
    }
    (fixes, left)
}

/// What a factor is, in words.
fn words(factor: Factor) -> &'static str {
    match factor {
        Factor::BankConflicts => "bank conflicts",
        Factor::Uncoalesced => "uncoalesced accesses",
        Factor::Divergence => "divergence",
        Factor::Latency => "the latency of memory",
        Factor::Synchronisation => "waits at barriers",
        Factor::Occupancy => "limits of occupancy",
    }
}

/// Whether an entry says what a factor costs.
fn says(told: &Help, factor: Factor, gain: f64) -> bool {
    let rule = match &told.kind {
        HelpKind::Edit(fix) => fix.rule,
        HelpKind::Finding(finding) => finding.rule,
        HelpKind::Cause(_) => return false,
    };
    let about: &[&str] = match factor {
        Factor::BankConflicts => &["smem/bank-conflict"],
        Factor::Uncoalesced => &["mem/", "atomic/"],
        Factor::Divergence => &["div/"],
        Factor::Latency => &[
            "launch/", "occ/", "ilp/", "loop/", "mem/", "atomic/", "async/",
        ],
        Factor::Synchronisation => &["sync/", "launch/one-fat-block"],
        Factor::Occupancy => &["occ/", "launch/", "reg/", "smem/over"],
    };
    about.iter().any(|start| rule.starts_with(start)) && told.gain.ln() >= TOLD * gain.ln()
}

/// Where most of what a factor costs is; `None` where that is no place.
fn most_of(kernel: &PlacedKernel, factor: Factor) -> Option<Site> {
    let facts = &kernel.analysis.facts;
    let most = |sites: &mut dyn Iterator<Item = (Site, f64)>| {
        let most = sites.max_by(|a, b| a.1.total_cmp(&b.1));
        most.map(|(site, _)| site)
    };
    let accesses = facts.accesses.iter();
    match factor {
        Factor::Uncoalesced => most(&mut accesses.filter_map(|access| {
            let lanes = f64::from(facts.warp_size);
            let global = access.space == Space::Global;
            // What is not known may be a unit for each lane.
            let each = access.transactions_per_request.unwrap_or(lanes);
            let ideal = access.ideal_transactions_per_request.unwrap_or(1.0);
            (global && each > ideal)
                .then(|| (access.site, (each - ideal) * access.requests.unwrap_or(1.0)))
        })),
        Factor::BankConflicts => most(&mut accesses.filter_map(|access| {
            let (each, ideal) = (access.passes_per_request?, access.ideal_passes_per_request?);
            (access.space == Space::Shared && each > ideal)
                .then(|| (access.site, (each - ideal) * access.requests.unwrap_or(1.0)))
        })),
        Factor::Divergence => most(&mut facts.branches.iter().filter_map(|branch| {
            let splits = match branch.uniformity {
                Uniformity::Divergent => branch.divergent_warp_fraction.unwrap_or(1.0),
                Uniformity::DataDependent => 1.0,
                _ => return None,
            };
            let operations = f64::from(branch.taken_operations + branch.other_operations);
            Some((
                branch.site,
                splits * branch.evaluations.unwrap_or(1.0) * operations,
            ))
        })),
        Factor::Latency => most(&mut accesses.filter_map(|access| {
            let waits = access.space == Space::Global && access.requests != Some(0.0);
            waits.then(|| (access.site, access.requests.unwrap_or(1.0)))
        })),
        Factor::Synchronisation | Factor::Occupancy => None,
    }
}
