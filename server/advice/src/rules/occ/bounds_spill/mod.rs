//! occ/bounds-spill: launch bounds that ask for more blocks than the registers suffice for.

use warplens_ir::Language;
use warplens_machine::registers_for_blocks;

use crate::rule::{Look, Rule, State, When};
use crate::subjects::spills;
use crate::{Context, Finding, Place};

pub(crate) const RULE: Rule = Rule {
    id: "occ/bounds-spill",
    title: "the blocks that `__launch_bounds__` asks for leave too few registers: the compiler spills",
    severity: "information where a compiler says so, hint where it is predicted",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Always, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

/// The finding; `reg/spill` leaves these to it.
pub(crate) fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let kernel = ctx.kernel;
    let (threads, blocks) = (kernel.max_threads?, kernel.min_blocks?);
    // HIP's second number counts warps.
    if blocks < 2 || kernel.language != Language::Cuda {
        return None;
    }
    let bytes = spills::bytes(ctx)?;
    let blocks = u32::try_from(blocks).ok()?;
    let now = registers_for_blocks(ctx.profile, threads, blocks)?;
    // The promise of blocks is what is tight, not the block itself: fewer would leave more.
    let (fewer, then) = (1..blocks)
        .rev()
        .filter_map(|fewer| Some((fewer, registers_for_blocks(ctx.profile, threads, fewer)?)))
        .find(|(_, then)| *then > now)?;
    let (severity, predicted) = spills::trust(ctx);
    let fewer = if fewer == 1 {
        "1 block".to_owned()
    } else {
        format!("{fewer} blocks")
    };
    Some(Finding {
        rule: RULE.id,
        severity,
        place: Place::Kernel,
        message: format!(
            "ask for {fewer} per SM in `__launch_bounds__`: {bytes} bytes per thread spill{predicted}\n\
             {bytes} bytes of a thread's values spilled{predicted}: `__launch_bounds__({threads}, {blocks})` leaves {now} \
             registers per thread, {fewer} per SM would leave {then}"
        ),
        gain: 1.0,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}
