//! div/early-exit-before-barrier: threads of one block that do not meet.

use warplens_facts::facts::{Branch, Certainty};
use warplens_ir::Language;

use crate::evidence;
use crate::rule::{Look, Rule, State, When};
use crate::wording;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "div/early-exit-before-barrier",
    title: "some threads of a block never reach a barrier that others wait at",
    severity: "error; warning where the launch rounds up to whole blocks; information where the barrier waits only for threads that have not returned; hint where it depends on values that are not known",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Always, check),
    actions: &[],
};

/// NVIDIA's first compute capability whose barriers wait for the threads of a block that have not returned; before, for whole warps
/// of it (CUDA C++ Programming Guide, compute capability 7.x, independent thread scheduling).
const WAITS_FOR_THREADS: (u32, u32) = (7, 0);

/// True where threads that have returned are not waited for: what comes of them is defined.
fn is_defined(ctx: &Context<'_>, early_exit: bool) -> bool {
    let capability = ctx.profile.compute_capability;
    early_exit && ctx.kernel.language != Language::OpenCl && capability >= Some(WAITS_FOR_THREADS)
}

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    ctx.facts
        .branches
        .iter()
        .filter_map(|branch| finding(ctx, branch))
        .collect()
}

fn finding(ctx: &Context<'_>, branch: &Branch) -> Option<Finding> {
    let hazard = branch.barrier_hazard.as_ref()?;
    let sure = hazard.certainty != Certainty::Unknown;
    let text = &branch.text;
    let when = if hazard.when.is_empty() {
        String::new()
    } else {
        format!(" {}", hazard.when)
    };
    let verb = if sure { "part" } else { "may part" };
    let what = if hazard.early_exit {
        "some return before a barrier that the others wait at"
    } else {
        "only some reach the barrier inside"
    };
    // Assumptions that stand in the condition already (`when`) need no repeating.
    let reservation = match hazard.certainty {
        Certainty::Assumed => wording::assumes(ctx.facts, &[text, &hazard.when]),
        Certainty::Exact | Certainty::Unknown => None,
    };
    let defined = is_defined(ctx, hazard.early_exit);
    let most = if defined {
        Severity::Information
    } else {
        Severity::Error
    };
    let severity = match hazard.certainty {
        Certainty::Exact => Severity::Error,
        Certainty::Assumed if evidence::is_supposed(ctx, branch) => Severity::Error,
        Certainty::Assumed | Certainty::Unknown if evidence::is_rounded_up(ctx, branch) => {
            Severity::Warning
        }
        // Nothing says that the bound has a value at which threads of a block part.
        Certainty::Assumed | Certainty::Unknown => Severity::Hint,
    };
    let result = if defined {
        "here the barrier waits only for threads that have not returned; before compute capability 7.0 the result is undefined"
    } else {
        "the result is undefined"
    };
    Some(Finding {
        rule: RULE.id,
        severity: severity.min(most),
        place: Place::Site(branch.site),
        message: wording::sentence([
            Some(format!(
                "let all threads of the block reach the barrier (they {verb} on `{}`)",
                wording::short(text)
            )),
            Some(format!(
                "threads of one block {verb} on `{text}`{when}: {what}"
            )),
            Some(result.to_owned()),
            reservation,
        ]),
        gain: 1.0,
        related: vec![(hazard.barrier, "the barrier".to_owned())],
        access: None,
        shared_array: None,
        cure: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kernel, branch, profile};
    use warplens_facts::facts::BarrierHazard;

    fn hazard(certainty: Certainty) -> Kernel {
        let mut exit = branch(5);
        exit.text = "i >= n".to_owned();
        exit.guard = true;
        exit.barrier_hazard = Some(BarrierHazard {
            barrier: branch(9).site,
            early_exit: true,
            certainty,
            when: "when n is not a multiple of 256".to_owned(),
        });
        let mut kernel = Kernel::new().assume("n", "1000").branch(exit);
        kernel.profile = profile("tesla-p100");
        kernel
    }

    #[test]
    fn a_proved_exit_is_an_error_that_points_at_the_barrier() {
        let findings = hazard(Certainty::Exact).findings(|_| 2.0);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].severity, Severity::Error);
        assert_eq!(
            findings[0].message,
            "let all threads of the block reach the barrier (they part on `i >= n`)\n\
             threads of one block part on `i >= n` when n is not a multiple of 256: some return before \
             a barrier that the others wait at\n\
             the result is undefined"
        );
        assert_eq!(
            findings[0].related,
            [(branch(9).site, "the barrier".to_owned())]
        );
        assert_eq!(findings[0].gain, 1.0);
    }

    #[test]
    fn where_a_barrier_waits_for_threads_that_are_left_an_exit_is_no_error() {
        let mut kernel = hazard(Certainty::Exact);
        kernel.profile = profile("v100-sxm2-16gb");
        let findings = kernel.findings(|_| 2.0);
        assert_eq!(findings[0].severity, Severity::Information);
        assert!(
            findings[0].message.ends_with(
                "here the barrier waits only for threads that have not returned; before compute capability 7.0 the \
                 result is undefined"
            ),
            "{}",
            findings[0].message
        );
        // A barrier that only some come to is one anywhere.
        let hazard = kernel.facts.branches[0].barrier_hazard.as_mut();
        hazard.unwrap().early_exit = false;
        assert_eq!(kernel.findings(|_| 2.0)[0].severity, Severity::Error);
    }

    #[test]
    fn an_assumed_exit_names_its_assumption() {
        let mut kernel = hazard(Certainty::Assumed);
        assert_eq!(kernel.findings(|_| 2.0)[0].severity, Severity::Hint);
        kernel.facts.assumptions[0].source = "config".to_owned();
        let findings = kernel.findings(|_| 2.0);
        assert_eq!(findings[0].severity, Severity::Error);
        assert!(
            findings[0].message.ends_with("assumes n = 1000"),
            "{}",
            findings[0].message
        );
    }

    #[test]
    fn a_possible_exit_is_a_warning_where_the_launch_rounds_up() {
        let mut kernel = hazard(Certainty::Unknown);
        assert_eq!(kernel.findings(|_| 2.0)[0].severity, Severity::Hint);
        kernel.rounded_up = vec!["n".to_owned()];
        let findings = kernel.findings(|_| 2.0);
        assert_eq!(findings[0].severity, Severity::Warning);
        assert!(
            findings[0].message.contains("may part"),
            "{}",
            findings[0].message
        );
    }

    #[test]
    fn a_branch_without_a_barrier_is_none() {
        assert!(check_rules(&Kernel::new().branch(branch(5))).is_empty());
    }

    fn check_rules(kernel: &Kernel) -> Vec<Finding> {
        kernel
            .findings(|_| 1.4)
            .into_iter()
            .filter(|f| f.rule == RULE.id)
            .collect()
    }
}
