//! Loops whose iterations other threads could execute.

use warplens_facts::facts::{Link, LoopCarried, Node, Op, Space};

use warplens_ir::{BinaryOp, ExprKind, Part, StmtKind, parts};

use crate::Context;

/// True for a loop of known length, of as many iterations as this or more, that do not need each other's results: counters, and
/// sums that are added up at the end, are all that it carries.
pub(crate) fn is_divisible(ctx: &Context<'_>, node: &Node, least: f64) -> bool {
    matches!(
        node,
        Node::Loop { trips, known: true, line, .. } if *trips >= least && !carries(ctx, *line)
    ) && ctx.facts.dependence.complete
}

/// True where an iteration of the loop at a line needs what the one before has found.
fn carries(ctx: &Context<'_>, line: u32) -> bool {
    // A sum that is stored on the way is a scan: each iteration needs those before it.
    let stores = ctx.facts.accesses.iter().any(|access| {
        access.op == Op::Store && access.space == Space::Global && access.loop_depth > 0
    });
    let mut of_loop = ctx.facts.dependence.carried.iter();
    of_loop.any(|carried| {
        carried.site.line == line && (!countable(ctx, carried) || stores && sums(carried))
    })
}

fn sums(carried: &LoopCarried) -> bool {
    let mut links = carried.chain.links();
    links.any(|(link, _)| matches!(link, Link::Add | Link::Fma))
}

/// True for what iterations elsewhere can begin by themselves: counters, and sums that are added up at the end.
fn countable(ctx: &Context<'_>, carried: &LoopCarried) -> bool {
    let (mut adds, mut fused) = (0.0, 0.0);
    for (link, count) in carried.chain.links() {
        match link {
            Link::Integer => {}
            Link::Add => adds += count,
            Link::Fma => fused += count,
            _ => return false,
        }
    }
    // What is multiplied and added may as well be a power.
    adds + fused <= 1.0 && (fused <= 0.0 || is_sum(ctx, carried))
}

/// True where the loop does nothing with the variable but add to it.
fn is_sum(ctx: &Context<'_>, carried: &LoopCarried) -> bool {
    let mut found = false;
    parts(&ctx.kernel.body, &mut |part| {
        if let Part::Statement(statement) = part
            && let StmtKind::Loop {
                condition: Some(condition),
                body,
                ..
            } = &statement.kind
            && [statement.site.line, condition.site.line].contains(&carried.site.line)
        {
            let (mut named, mut added) = (0, 0);
            warplens_ir::expressions(body, &mut |expression| match &expression.kind {
                ExprKind::Var(id) if ctx.kernel.var(*id).name == carried.through => named += 1,
                ExprKind::Assign(Some(BinaryOp::Add | BinaryOp::Sub), place, _) => {
                    let is = |id| ctx.kernel.var(id).name == carried.through;
                    added += usize::from(matches!(place.kind, ExprKind::Var(id) if is(id)));
                }
                _ => {}
            });
            found |= added == 1 && named == 1;
        }
    });
    found
}
