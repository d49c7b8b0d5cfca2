//! Query family: kernels that need another GPU than the target.
//!
//! In: the analysis of a file. Out: the same, where a kernel that the target cannot run is that of the nearest GPU that can, with
//! what is found there. What holds: a GPU that the user names stays the target, unless one that it is to be compared with can run
//! the kernel; where none is named, a kernel for a later architecture is judged on it. Its analysis names the GPU that it is of.

use std::sync::Arc;

use warplens_advice::Severity;
use warplens_machine::{Profile, Vendor};

use crate::queries::variants::FileQuestion;
use crate::settings::Settings;
use crate::{Engine, FileAnalysis, PlacedKernel};

/// Rules whose findings say that the target cannot run a kernel.
const CANNOT: [&str; 2] = ["launch/impossible", "launch/missing-instruction"];
/// Architectures that are tried.
const MOST_TRIED: usize = 4;

impl Engine {
    /// Analyses on another GPU the kernels that the target cannot run.
    pub(crate) fn on_nearest(
        &self,
        asked: &FileQuestion<'_>,
        wanted: &dyn Fn(&str) -> bool,
        file: &mut FileAnalysis,
    ) {
        let target = Arc::clone(&file.profile);
        let mut lacking: Vec<String> = file
            .kernels
            .iter()
            .filter_map(|kernel| name_of_lacking(asked, kernel))
            .collect();
        lacking.sort_unstable();
        lacking.dedup();
        if lacking.is_empty() {
            return;
        }
        for other in self.nearest(asked.settings, &target) {
            let settings = Settings {
                gpu: Some(other.id.clone()),
                ..asked.settings.clone()
            };
            let question = FileQuestion {
                settings: &settings,
                ..*asked
            };
            let wanted = |name: &str| wanted(name) && lacking.iter().any(|one| one == name);
            let Some(there) = self.analyze_as(&question, &wanted, false) else {
                return;
            };
            let runs = |name: &String| {
                let of_name = there.kernels.iter().filter(|one| is_named(one, name));
                let lacks: Vec<bool> = of_name
                    .map(|one| name_of_lacking(asked, one).is_some())
                    .collect();
                !lacks.is_empty() && !lacks.contains(&true)
            };
            let (able, rest): (Vec<String>, Vec<String>) = lacking.iter().cloned().partition(runs);
            take(file, there, &able, &other);
            lacking = rest;
            if lacking.is_empty() {
                return;
            }
        }
    }

    /// GPUs of the target's maker that may run what it cannot, the nearest first: those that it is to be compared with, or
    /// where the user names no GPU one of each later architecture.
    fn nearest(&self, settings: &Settings, target: &Profile) -> Vec<Arc<Profile>> {
        if settings.gpu.is_some() {
            let named = settings.compare.iter();
            let named = named.filter_map(|id| self.profiles().get(id));
            return named
                .filter(|other| other.vendor == target.vendor && other.id != target.id)
                .take(MOST_TRIED)
                .collect();
        }
        if target.vendor != Vendor::Nvidia {
            return Vec::new();
        }
        let mut later: Vec<Arc<Profile>> = self
            .profiles()
            .iter()
            .filter(|other| other.vendor == target.vendor && is_roomier(other, target))
            .collect();
        later.sort_by_key(|other| {
            let size = other.sms.abs_diff(target.sms);
            (other.compute_capability, size, other.id.clone())
        });
        later.dedup_by(|a, b| a.architecture == b.architecture);
        later.truncate(MOST_TRIED);
        later
    }
}

/// True for a later architecture whose blocks can have as much shared memory.
fn is_roomier(other: &Profile, target: &Profile) -> bool {
    other.compute_capability > target.compute_capability
        && other.shared_per_block_max() >= target.shared_per_block_max()
}

/// The kernel's name where the target cannot run it, though another may.
fn name_of_lacking(asked: &FileQuestion<'_>, kernel: &PlacedKernel) -> Option<String> {
    let facts = &kernel.analysis.facts;
    // Its body is for another architecture.
    let text = asked.document.source().get(kernel.start..kernel.end);
    let is_empty = facts.accesses.is_empty()
        && facts.operations.is_empty()
        && text.is_some_and(|text| text.contains("__CUDA_ARCH__"));
    let cannot = kernel.analysis.findings.iter().any(|finding| {
        // What no GPU can do is an error, what may be the compiler's estimate a hint.
        CANNOT.contains(&finding.rule) && finding.severity == Severity::Information
    });
    (cannot || is_empty).then(|| facts.name.clone())
}

fn is_named(kernel: &PlacedKernel, name: &str) -> bool {
    kernel.analysis.facts.name == name
}

/// Puts these kernels as they are on another GPU, with what is found of them there, in place of what they are on the target.
fn take(file: &mut FileAnalysis, there: FileAnalysis, able: &[String], other: &Profile) {
    if able.is_empty() {
        return;
    }
    let target = file.profile.name.clone();
    let about = |kernel: &Option<String>| {
        kernel
            .as_ref()
            .is_some_and(|kernel| able.iter().any(|one| one == kernel))
    };
    let judged = format!(
        "judged on {} ({}), the nearest GPU that runs this kernel: {target} does not",
        other.name, other.architecture
    );
    file.findings.retain_mut(|finding| {
        if !about(&finding.kernel) {
            return true;
        }
        let says_so = CANNOT.contains(&finding.rule);
        if says_so {
            finding.severity = finding.severity.min(Severity::Hint);
            finding.details.push(judged.clone());
        }
        says_so
    });
    let mut elsewhere = there.kernels;
    for kernel in &mut file.kernels {
        if !able.contains(&kernel.analysis.facts.name) {
            continue;
        }
        let place = |other: &PlacedKernel| (other.start, other.variant);
        // Another of its launches may be the costliest there.
        let same = elsewhere
            .iter()
            .position(|other| place(other) == place(kernel));
        let same = same.or_else(|| {
            elsewhere
                .iter()
                .position(|other| other.start == kernel.start)
        });
        if let Some(same) = same {
            *kernel = elsewhere.swap_remove(same);
        }
    }
    let found = there.findings.into_iter();
    file.findings.extend(
        found
            .filter(|finding| about(&finding.kernel))
            .map(|mut finding| {
                finding.details.push(judged.clone());
                finding
            }),
    );
    file.findings
        .sort_by_key(|finding| (finding.range.start, finding.range.end));
    file.findings.dedup();
}
