//! launch/missing-instruction: inline PTX that the target's architecture does not have.

use warplens_ir::Language;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::instructions::{Instruction, instructions};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "launch/missing-instruction",
    title: "inline PTX that needs a later architecture than the target's",
    severity: "information",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Always, check),
    actions: &[],
};

/// What mnemonics begin with, a further part that they have, and the architecture that has them first (PTX ISA, "Target ISA
/// Notes" of each). The first line that fits an instruction holds.
const SINCE: [(&str, &str, (u32, u32), &str); 41] = [
    ("tcgen05", "", (10, 0), "sm_100a"),
    ("wgmma", "", (9, 0), "sm_90a"),
    ("setmaxnreg", "", (9, 0), "sm_90a"),
    ("griddepcontrol", "", (9, 0), "sm_90"),
    ("elect", "", (9, 0), "sm_90"),
    ("stmatrix", "", (9, 0), "sm_90"),
    ("cp.async.bulk", "", (9, 0), "sm_90"),
    ("cp.reduce.async.bulk", "", (9, 0), "sm_90"),
    ("mbarrier", "try_wait", (9, 0), "sm_90"),
    ("mbarrier", "", (8, 0), "sm_80"),
    ("cp.async", "", (8, 0), "sm_80"),
    ("mma", "block_scale", (12, 0), "sm_120a"),
    ("mma", "kind::f8f6f4", (12, 0), "sm_120a"),
    ("mma", "e4m3", (8, 9), "sm_89"),
    ("mma", "e5m2", (8, 9), "sm_89"),
    ("mma", "m16n8k16", (8, 0), "sm_80"),
    ("mma", "bf16", (8, 0), "sm_80"),
    ("mma", "tf32", (8, 0), "sm_80"),
    ("fma", "f32x2", (10, 0), "sm_100"),
    ("add", "f32x2", (10, 0), "sm_100"),
    ("sub", "f32x2", (10, 0), "sm_100"),
    ("mul", "f32x2", (10, 0), "sm_100"),
    ("add", "bf16x2", (9, 0), "sm_90"),
    ("sub", "bf16x2", (9, 0), "sm_90"),
    ("mul", "bf16x2", (9, 0), "sm_90"),
    ("ex2", "bf16x2", (9, 0), "sm_90"),
    ("fma", "bf16x2", (8, 0), "sm_80"),
    ("cvt", "e2m1x2", (10, 0), "sm_100a"),
    ("cvt", "e4m3x2", (8, 9), "sm_89"),
    ("cvt", "e5m2x2", (8, 9), "sm_89"),
    ("redux", "f32", (10, 0), "sm_100a"),
    ("redux", "", (8, 0), "sm_80"),
    ("createpolicy", "", (8, 0), "sm_80"),
    ("mapa", "", (9, 0), "sm_90"),
    ("st", "async", (9, 0), "sm_90"),
    ("red", "async", (9, 0), "sm_90"),
    ("clusterlaunchcontrol", "", (10, 0), "sm_100"),
    ("discard", "", (8, 0), "sm_80"),
    ("applypriority", "", (8, 0), "sm_80"),
    ("movmatrix", "", (7, 5), "sm_75"),
    ("ldmatrix", "", (7, 5), "sm_75"),
];

/// `wgmma` is one generation's.
const ONE_GENERATION: (&str, u32) = ("wgmma", 9);

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let Some(own) = ctx.profile.compute_capability else {
        return Vec::new();
    };
    if ctx.kernel.language != Language::Cuda {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for instruction in instructions(ctx, "") {
        let Some((name, architecture)) = missing(instruction, own) else {
            continue;
        };
        // Of each the first.
        if told.contains(&name) {
            continue;
        }
        told.push(name);
        findings.push(Finding {
            rule: RULE.id,
            severity: Severity::Information,
            place: Place::Site(instruction.site),
            message: format!(
                "`{name}` needs {architecture}: the target is {}\n\
                 `{}` needs {architecture}; {} is {}, for which this does not compile",
                ctx.profile.architecture,
                instruction.mnemonic,
                ctx.profile.name,
                ctx.profile.architecture
            ),
            gain: 1.0,
            related: Vec::new(),
            access: None,
            shared_array: None,
            cure: None,
        });
    }
    findings
}

/// The beginning of an instruction's mnemonic, and the architecture that it needs, where the target lacks it.
fn missing(instruction: Instruction<'_>, own: (u32, u32)) -> Option<(&'static str, &'static str)> {
    let begins = |name: &str| {
        let rest = instruction.mnemonic.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let fits = |(name, part, ..): &&(&str, &str, (u32, u32), &str)| {
        begins(name) && (part.is_empty() || instruction.has(part))
    };
    let &(name, _, since, architecture) = SINCE.iter().find(fits)?;
    let gone = name == ONE_GENERATION.0 && own.0 != ONE_GENERATION.1;
    (own < since || gone).then_some((name, architecture))
}
