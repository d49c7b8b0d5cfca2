//! What would help a kernel: edits, findings and causes of waiting in one list, the largest gain first.

use std::ops::Range;

use warplens_advice::VISIBLE_GAIN;
use warplens_facts::facts::{Space, Uniformity};
use warplens_ir::Site;
use warplens_models::Factor;

use crate::{PlacedFinding, PlacedFix, PlacedKernel};

/// A finding or an edit that gains this part of what a cause costs, by logarithm, is that cause told.
const TOLD: f64 = 0.85;

/// Something that would help.
#[derive(Debug, Clone, PartialEq)]
pub struct Help<'a> {
    /// What it is.
    pub kind: HelpKind<'a>,
    /// The predicted speedup of the kernel.
    pub gain: f64,
    /// Absolute bytes: where it is, or where most of it is.
    pub range: Option<Range<usize>>,
}

impl Help<'_> {
    /// An edit.
    pub fn edit(fix: &PlacedFix) -> Help<'_> {
        Help {
            kind: HelpKind::Edit(fix),
            gain: fix.gain,
            range: fix.edits.first().map(|(bytes, _)| bytes.clone()),
        }
    }
}

/// What would help.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HelpKind<'a> {
    /// An edit that is proved.
    Edit(&'a PlacedFix),
    /// A finding that no edit cures.
    Finding(&'a PlacedFinding),
    /// What the kernel waits for, and no finding says.
    Cause(Factor),
}

impl HelpKind<'_> {
    /// The name in the JSON.
    pub fn name(&self) -> &'static str {
        match self {
            HelpKind::Edit(_) => "edit",
            HelpKind::Finding(_) => "finding",
            HelpKind::Cause(_) => "cause",
        }
    }
}

/// What would help a kernel, the largest gain first; of equal ones edits first, then findings. A cause that a finding or an edit says
/// is not told again.
pub fn what_would_help<'a>(
    kernel: &PlacedKernel,
    findings: impl IntoIterator<Item = &'a PlacedFinding>,
    fixes: impl IntoIterator<Item = &'a PlacedFix>,
) -> Vec<Help<'a>> {
    let mut all: Vec<Help> = fixes.into_iter().map(Help::edit).collect();
    let visible = findings.into_iter().filter(|one| one.gain >= VISIBLE_GAIN);
    all.extend(visible.map(|finding| Help {
        kind: HelpKind::Finding(finding),
        gain: finding.gain,
        range: Some(finding.range.clone()),
    }));
    let causes: Vec<Help> = kernel
        .analysis
        .what_if()
        .iter()
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

/// Whether an entry says what a factor costs.
fn says(told: &Help, factor: Factor, gain: f64) -> bool {
    let rule = match told.kind {
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
