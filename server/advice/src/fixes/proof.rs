//! What a code action has to show before it is offered: the edited copy, analysed again.

use crate::{Finding, Place};
use warplens_facts::facts::{OpClass, Site, Source};

use crate::fixes::{Analysis, Edit, Fix, Kernel, Request, edited, touch};

/// A kernel that is predicted slower by more than this is.
const SLOWER: f64 = 1.0005;

/// What can be done about each finding of a rule that the request's range touches. Findings of several launches of one kernel
/// may ask for the same edits: those are offered once.
pub(crate) fn of_findings(
    request: &Request<'_>,
    rule: &str,
    fix: impl Fn(&Request<'_>, &Kernel<'_>, &Finding, Site) -> Option<Fix>,
) -> Vec<Fix> {
    let mut found: Vec<Fix> = Vec::new();
    for kernel in request.analysis.kernels() {
        if !touch(request.range, &(kernel.start..kernel.end)) {
            continue;
        }
        for (finding, site) in asked(request, &kernel, rule) {
            let fix = fix(request, &kernel, finding, site);
            found.extend(fix.filter(|fix| found.iter().all(|known| known.edits != fix.edits)));
        }
    }
    found
}

/// What can be done about each kernel of which the request's range touches findings of a rule, in the kernel or at its launch.
pub(crate) fn of_kernels(
    request: &Request<'_>,
    rule: &str,
    fix: impl Fn(&Request<'_>, &Kernel<'_>) -> Option<Fix>,
) -> Vec<Fix> {
    let mut found: Vec<Fix> = Vec::new();
    for kernel in request.analysis.kernels() {
        if !asked(request, &kernel, rule).is_empty() {
            let fix = fix(request, &kernel);
            found.extend(fix.filter(|fix| found.iter().all(|known| known.edits != fix.edits)));
        }
    }
    found
}

/// The findings of a rule in a kernel that the request's range touches, with the sites they are about: its name for one about the kernel or
/// its launch. A finding in a called function is not among them: its site is the call's.
pub(crate) fn asked<'a>(
    request: &Request<'_>,
    kernel: &Kernel<'a>,
    rule: &str,
) -> Vec<(&'a Finding, Site)> {
    let of_rule = kernel
        .findings
        .iter()
        .filter(|finding| finding.rule == rule);
    let placed = of_rule.filter_map(|finding| {
        let name = kernel.facts.name_site;
        let (site, launch) = match finding.place {
            Place::Site(site) if site.callee != 0 => return None,
            Place::Host(_) | Place::HostLoop(_) => return None,
            Place::Site(site) => (site, None),
            Place::Kernel => (name, None),
            Place::Launch => (name, kernel.launched_at),
        };
        let place = launch.cloned().unwrap_or_else(|| kernel.place(site));
        touch(request.range, &place).then_some((finding, site))
    });
    placed.collect()
}

/// The analysis of a copy with some edits made.
pub(crate) struct Proof {
    analysis: Box<dyn Analysis>,
    kernel: usize,
}

/// Makes the edits on a copy and analyses it. `None` where the kernel is no longer found, is understood less well or
/// cannot be launched. That the buffer's tree has no new errors is not asked: the grammar takes a `#pragma` between a loop and
/// its body for one, and the compiler does not.
pub(crate) fn prove(request: &Request<'_>, kernel: &Kernel<'_>, edits: &[Edit]) -> Option<Proof> {
    let copy = edited(request.document, edits);
    let name = &kernel.facts.name;
    let analysis = (request.reanalyze)(&copy, std::slice::from_ref(name))?;
    // Kernels of one name (specialisations, launch variants) stand in the same order as before.
    let alike = |one: &Kernel<'_>| one.facts.name == *name;
    let before = request.analysis.kernels();
    let which = before
        .iter()
        .filter(|one| alike(one))
        .position(|one| std::ptr::eq(one.facts, kernel.facts))?;
    let kernels = analysis.kernels();
    let (at, after) = kernels
        .iter()
        .enumerate()
        .filter(|(_, one)| alike(one))
        .nth(which)?;
    let understood = after.facts.not_understood.len() <= kernel.facts.not_understood.len();
    if !after.launchable || !understood {
        return None;
    }
    drop(kernels);
    Some(Proof {
        analysis,
        kernel: at,
    })
}

/// True where a text with many actions' edits made is understood as well as before, no kernel of it is predicted slower, and
/// fewer findings of these rules are left. Kernels are compared in their order.
pub fn proved(request: &Request<'_>, edits: &[Edit], rules: &[&str]) -> bool {
    let before = request.analysis.kernels();
    let mut names: Vec<String> = before.iter().map(|one| one.facts.name.clone()).collect();
    names.dedup();
    let copy = edited(request.document, edits);
    let Some(analysis) = (request.reanalyze)(&copy, &names) else {
        return false;
    };
    let after = analysis.kernels();
    let findings = |kernels: &[Kernel<'_>]| {
        let all = kernels.iter().flat_map(|one| one.findings);
        all.filter(|finding| rules.contains(&finding.rule)).count()
    };
    let no_worse = before.iter().zip(&after).all(|(old, new)| {
        let understood = new.facts.not_understood.len() <= old.facts.not_understood.len();
        let slower = match (old.cost(), new.cost()) {
            (Some(old), Some(new)) => new > old * SLOWER,
            (Some(_), None) => true,
            (None, _) => false,
        };
        old.facts.name == new.facts.name
            && understood
            && !slower
            && (new.launchable || !old.launchable)
    });
    before.len() == after.len() && no_worse && findings(&after) < findings(&before)
}

impl Proof {
    /// The kernel as edited.
    pub(crate) fn after(&self) -> Kernel<'_> {
        self.analysis.kernels().swap_remove(self.kernel)
    }

    /// Predicted speedup over the kernel before, at least 1; `None` where there is no prediction or it is slower.
    pub(crate) fn speedup(&self, before: &Kernel<'_>) -> Option<f64> {
        let (before, after) = (before.cost()?, self.after().cost()?);
        (after <= before * SLOWER).then_some((before / after).max(1.0))
    }
}

/// True where the source says the block, and no second launch of the kernel in the file may say another: what holds for
/// this block alone may be made use of.
pub(crate) fn one_launch(request: &Request<'_>, kernel: &Kernel<'_>) -> bool {
    let said = matches!(
        kernel.facts.launch.block_source,
        Source::Directive | Source::Attribute | Source::LaunchSite | Source::Run
    );
    said && request.code().launches_written(&kernel.facts.name) <= 1
}

/// Atomics of an average thread.
pub(crate) fn executions(kernel: &Kernel<'_>) -> f64 {
    let launch = &kernel.facts.launch;
    let threads = (launch.blocks() * launch.threads_per_block()) as f64;
    let of_atomics = kernel.facts.counts.iter();
    let all: f64 = of_atomics
        .filter(|count| count.class == OpClass::Atomic)
        .filter_map(|count| count.value)
        .sum();
    all / threads.max(1.0)
}
