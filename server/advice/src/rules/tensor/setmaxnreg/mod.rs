//! tensor/setmaxnreg: a register count that the instruction does not take, or that ptxas ignores.

use warplens_ir::ExprKind;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::instructions::{Instruction, instructions};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "tensor/setmaxnreg",
    title: "`setmaxnreg` that ptxas rejects or ignores",
    severity: "warning",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Registers that it takes (PTX ISA, `setmaxnreg`).
const TAKEN: std::ops::RangeInclusive<i64> = 24..=256;
/// The step between them.
const STEP: i64 = 8;
/// The first architecture that has it.
const SINCE: (u32, u32) = (9, 0);

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let found = instructions(ctx, "setmaxnreg");
    let mut findings: Vec<Finding> = Vec::new();
    for instruction in found {
        let Some((headline, cause)) = wrong(ctx, instruction) else {
            continue;
        };
        let place = Place::Site(instruction.site);
        // What the whole kernel lacks is told once.
        if findings
            .iter()
            .any(|known| known.message.ends_with(&cause) || known.place == place)
        {
            continue;
        }
        findings.push(Finding {
            rule: RULE.id,
            severity: Severity::Warning,
            place,
            message: format!("{headline}\n{cause}"),
            gain: 1.0,
            related: Vec::new(),
            access: None,
            shared_array: None,
            cure: None,
        });
    }
    findings
}

/// What to do, and why.
fn wrong(ctx: &Context<'_>, instruction: Instruction<'_>) -> Option<(String, String)> {
    if ctx
        .profile
        .compute_capability
        .is_some_and(|own| own < SINCE)
    {
        return Some((
            "compile for sm_90a or later: the target has no `setmaxnreg`".to_owned(),
            format!(
                "`setmaxnreg` needs sm_90a; {} is {}",
                ctx.profile.name, ctx.profile.architecture
            ),
        ));
    }
    let count = instruction.arguments.first()?;
    let ExprKind::Int(count) = count.kind else {
        return None;
    };
    if !TAKEN.contains(&count) || count % STEP != 0 {
        let near = (count + STEP / 2).div_euclid(STEP) * STEP;
        let near = near.clamp(*TAKEN.start(), *TAKEN.end());
        return Some((
            format!("ask for {near} registers ({count} is no multiple of {STEP} from 24 to 256)"),
            format!("`setmaxnreg` takes multiples of {STEP} from 24 to 256: ptxas rejects {count}"),
        ));
    }
    // The register file is dealt out by what the kernel begins with, which ptxas must know.
    if ctx.kernel.min_blocks.is_none() && ctx.kernel.max_registers.is_none() {
        let threads = ctx.facts.launch.threads_per_block();
        return Some((
            format!("write `__launch_bounds__({threads}, 1)`: ptxas ignores `setmaxnreg` without"),
            "ptxas cannot tell with how many registers threads begin and ignores `setmaxnreg` (C7508)"
                .to_owned(),
        ));
    }
    None
}
