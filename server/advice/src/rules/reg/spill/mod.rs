//! reg/spill: values that found no register and go through local memory.

use crate::rule::{Look, Rule, State, When};
use crate::rules::occ::bounds_spill;
use crate::subjects::spills::{bytes, trust};
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "reg/spill",
    title: "registers do not suffice: values go through local memory",
    severity: "information where a compiler says so, hint where it is predicted",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Always, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let bytes = bytes(ctx)?;
    if bounds_spill::finding(ctx).is_some() {
        return None;
    }
    let registers = ctx.compiled.registers;
    let (severity, predicted) = trust(ctx);
    let bound = if registers + 1 >= ctx.profile.max_registers_per_thread.min(255) {
        format!("a thread has no more than {registers} registers")
    } else if let Some(threads) = ctx.kernel.max_threads {
        format!("`__launch_bounds__({threads})` leaves {registers} registers per thread")
    } else if let Some(most) = ctx.kernel.max_registers {
        format!("`__maxnreg__({most})` leaves {registers} registers per thread")
    } else {
        format!("{registers} registers per thread are what it was given")
    };
    Some(Finding {
        rule: RULE.id,
        severity,
        place: Place::Kernel,
        message: format!(
            "{bytes} bytes per thread spill to local memory{predicted}\n\
             {bytes} bytes of a thread's values spilled to local memory{predicted}: {bound}"
        ),
        gain: 1.0,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

#[cfg(test)]
mod tests {
    use crate::Severity;
    use crate::testing::Kernel;

    #[test]
    fn spills_are_told_with_their_source() {
        let mut kernel = Kernel::new();
        kernel.compiled.spill_bytes = 64;
        kernel.compiled.registers = 255;
        kernel.compiled.complete = true;
        let findings = kernel.findings(|_| 1.0);
        assert_eq!(
            (findings[0].severity, findings[0].message.as_str()),
            (
                Severity::Hint,
                "64 bytes per thread spill to local memory (predicted)\n\
             64 bytes of a thread's values spilled to local memory (predicted): a thread has no more than \
                 255 registers"
            )
        );
        kernel.registers_known = true;
        let findings = kernel.findings(|_| 1.0);
        assert_eq!(findings[0].severity, Severity::Information);
        kernel.compiled.spill_bytes = 8;
        assert_eq!(kernel.findings(|_| 1.0), []);
    }
}
