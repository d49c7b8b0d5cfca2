//! host/fixed-grid: a kernel strides over its grid, which does not fill the GPU's SMs evenly.
//!
//! Such a kernel takes any grid, so the host is free to launch what the GPU holds at a time. Grids of fewer blocks than SMs are
//! launch/small-grid's.

use warplens_ir::{Builtin, ExprKind, Kernel, Part, Stmt, StmtKind, VarId, parts};

use crate::rule::{Look, Rule, State, When};
use crate::rules::launch::tail;
use crate::subjects::launch;
use crate::wording;
use crate::{Context, Finding, Place, Removal, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "host/fixed-grid",
    title: "a kernel that strides over its grid gets a number of blocks that does not fit the GPU's SMs",
    severity: "information",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

fn check(ctx: &Context<'_>) -> Vec<Finding> {
    finding(ctx).into_iter().collect()
}

fn finding(ctx: &Context<'_>) -> Option<Finding> {
    let shape = &ctx.facts.launch;
    let [blocks, 1, 1] = shape.grid else {
        return None;
    };
    let sms = u64::from(ctx.profile.sms);
    let limits = &ctx.occupancy.limits;
    // What an SM holds of a grid that is large enough.
    let memory = [limits.registers, limits.shared].into_iter().flatten();
    let resident = memory.fold(limits.warps.min(limits.blocks), u32::min);
    let resident = u64::from(resident);
    let full = resident * sms;
    let fits = full == 0 || blocks < sms || blocks.is_multiple_of(full);
    if fits || !launch::grid_given(ctx) || launch::brief(ctx) || !strides_over_grid(ctx.kernel) {
        return None;
    }
    // What is said of the launch is said once.
    if !tail::check(ctx).is_empty() {
        return None;
    }
    // The work stays, so the time per thread is not what counts.
    let removal = Removal::Launch {
        grid: [full, 1, 1],
        block: shape.block,
    };
    let gain = ctx.gain(removal) * blocks as f64 / full as f64;
    if gain < wording::VISIBLE {
        return None;
    }
    let waves = blocks as f64 / full as f64;
    Some(Finding {
        rule: RULE.id,
        severity: Severity::Information,
        place: Place::Launch,
        message: wording::sentence([
            Some(format!(
                "size the grid by the SMs: {full} blocks ({blocks} are {waves:.2} waves)"
            )),
            Some(format!(
                "the kernel strides over its grid, and {} holds {full} blocks at a time, {resident} on each of {sms} SMs",
                ctx.profile.name
            )),
            Some(
                "ask for `multiProcessorCount` and `cudaOccupancyMaxActiveBlocksPerMultiprocessor`"
                    .to_owned(),
            ),
            Some(wording::gain(gain)),
        ]),
        gain,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    })
}

/// True where a loop moves by a multiple of the number of threads in the grid.
fn strides_over_grid(kernel: &Kernel) -> bool {
    let mut of_grid: Vec<VarId> = Vec::new();
    let mut strides = false;
    parts(&kernel.body, &mut |part| {
        let Part::Statement(statement) = part else {
            return;
        };
        match &statement.kind {
            StmtKind::Declare(id, Some(value)) if reads_grid(value, &of_grid) => of_grid.push(*id),
            StmtKind::Loop { step, body, .. } => {
                let in_body = body.iter().any(|one: &Stmt| match &one.kind {
                    StmtKind::Expr(step) => moves(step, &of_grid),
                    _ => false,
                });
                strides |= in_body || step.as_ref().is_some_and(|step| moves(step, &of_grid));
            }
            _ => {}
        }
    });
    strides
}

/// `i += stride`, `i = i + stride`.
fn moves(step: &warplens_ir::Expr, of_grid: &[VarId]) -> bool {
    match &step.kind {
        ExprKind::Assign(_, _, by) => reads_grid(by, of_grid),
        _ => false,
    }
}

fn reads_grid(value: &warplens_ir::Expr, of_grid: &[VarId]) -> bool {
    let mut reads = false;
    value.expressions(&mut |part| {
        reads |= match &part.kind {
            ExprKind::Builtin(Builtin::GridDim(_)) => true,
            ExprKind::Var(id) => of_grid.contains(id),
            _ => false,
        };
    });
    reads
}
