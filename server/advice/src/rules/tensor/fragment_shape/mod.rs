//! tensor/fragment-shape: a matrix instruction whose rate is well below that of the next larger shape.

use warplens_ir::Type;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::instructions::{Instruction, instructions};
use crate::wording::percent;
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "tensor/fragment-shape",
    title: "a matrix instruction whose shape reaches a part of the rate only",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

/// Rates above this share of the full one are not told.
const FULL: f64 = 0.85;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut found = instructions(ctx, "wgmma.mma_async");
    found.extend(instructions(ctx, "mma.sync"));
    for instruction in found {
        let Some((headline, cause)) = slow(ctx, instruction) else {
            continue;
        };
        let place = Place::Site(instruction.site);
        // One shape is told once.
        let message = format!("{headline}\n{cause}");
        if findings.iter().any(|known| known.message == message) {
            continue;
        }
        findings.push(Finding {
            rule: RULE.id,
            severity: Severity::Information,
            place,
            message,
            gain: 1.0,
            related: Vec::new(),
            access: None,
            shared_array: None,
            cure: None,
        });
    }
    findings
}

fn slow(ctx: &Context<'_>, instruction: Instruction<'_>) -> Option<(String, String)> {
    let capability = ctx.profile.compute_capability?;
    let [m, n, k] = instruction.sides()?;
    if instruction.mnemonic.starts_with("wgmma") {
        // The factors of 128 bytes a cycle: 64 rows of 32 bytes, n of them.
        let matrix = f64::from(n) / 2.0;
        let shared = factors_in_shared(instruction) * 16.0 + f64::from(n) / 4.0;
        let share = matrix / matrix.max(shared);
        return (share < FULL).then(|| {
            (
                format!("use a larger n (n = {n} reaches {} of the rate)", percent(share)),
                format!(
                    "m{m}n{n}k{k} reads shared memory for {shared:.0} cycles and multiplies for {matrix:.0}: \
                     n = 64 and more is not bound by shared memory"
                ),
            )
        });
    }
    let half = instruction.has("f16") || instruction.has("bf16");
    let (share, larger) = match (m, n, k) {
        (16, 8, 8) if half && capability.0 == 9 => (0.75, "m16n8k16"),
        (8, 8, 16) if instruction.has("s8") || instruction.has("u8") => {
            if capability < (8, 0) {
                return None;
            }
            (0.5, "m16n8k32")
        }
        _ => return None,
    };
    Some((
        format!(
            "use {larger} (m{m}n{n}k{k} reaches {} of its rate)",
            percent(share)
        ),
        format!(
            "m{m}n{n}k{k} reaches {} of the rate of {larger} on {}",
            percent(share),
            ctx.profile.architecture
        ),
    ))
}

/// Left factors that are read from shared memory: 0 where it lies in registers, which four operands name.
fn factors_in_shared(instruction: Instruction<'_>) -> f64 {
    let wide = |ty: &Type| matches!(ty, Type::Int { bits: 64, .. });
    let descriptors = instruction.arguments.iter().filter(|one| wide(&one.ty));
    if descriptors.count() >= 2 { 1.0 } else { 0.0 }
}
