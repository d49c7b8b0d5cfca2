//! Findings that matter by the kernel's part of the program's time.

use warplens_advice::Severity;

use crate::{PlacedFinding, PlacedKernel};

/// Rules about launches that are right as they are where little time is spent in them: a set-up kernel has a small grid by design.
const BY_SHARE: [&str; 1] = ["launch/small-grid"];
/// A kernel with less than this part of the time of its file's kernels is not worth another launch.
const MATTERS: f64 = 0.05;

/// Makes hints of those about kernels that take a small part of the time of all kernels of the file.
pub(crate) fn weigh(findings: &mut [PlacedFinding], kernels: &[PlacedKernel]) {
    let weighed = |finding: &PlacedFinding| {
        BY_SHARE.contains(&finding.rule) && finding.severity > Severity::Hint
    };
    if !findings.iter().any(weighed) {
        return;
    }
    // A run counts each launch; where it does not count all, once each.
    let counted = kernels.iter().all(|kernel| count(kernel).is_some());
    let time = |kernel: &PlacedKernel| {
        // What nothing launches takes no time of the program.
        if kernel.analysis.facts.launch.grid_source.is_assumption() {
            return 0.0;
        }
        let once = kernel.analysis.estimate().time_ms.unwrap_or_default();
        let times = count(kernel).filter(|_| counted).unwrap_or(1);
        once * times as f64
    };
    let all: f64 = kernels.iter().map(time).sum();
    for finding in findings.iter_mut().filter(|one| weighed(one)) {
        let of_kernel = kernels.iter().filter(|kernel| {
            Some(kernel.analysis.facts.name.as_str()) == finding.kernel.as_deref()
        });
        let own: f64 = of_kernel.map(time).sum();
        if all > 0.0 && own < MATTERS * all {
            finding.severity = Severity::Hint;
        }
    }
}

fn count(kernel: &PlacedKernel) -> Option<u64> {
    kernel.run.as_ref()?.count
}
