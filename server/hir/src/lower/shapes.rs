//! What an expression or a statement of the IR is by its shape alone.

use super::constants::constant;
use warplens_ir::{Expr, ExprKind, Stmt, StmtKind, Unknown, any_in_iteration, any_statement};

/// True for an expression that names a place.
pub(super) fn is_place(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) => true,
        ExprKind::Field(base, _) => is_place(base),
        _ => false,
    }
}

/// True for an expression that costs little and changes nothing: it may be read again.
pub(super) fn is_pure(expression: &Expr) -> bool {
    fn weigh(expression: &Expr, budget: &mut u32) -> bool {
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        match &expression.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => true,
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => {
                weigh(a, budget)
            }
            ExprKind::Binary(_, a, b) => weigh(a, budget) && weigh(b, budget),
            ExprKind::AddressOf(a) => match &a.kind {
                ExprKind::Index(base, index) => weigh(base, budget) && weigh(index, budget),
                _ => weigh(a, budget),
            },
            _ => false,
        }
    }
    weigh(expression, &mut 24)
}

/// True where every argument is a number.
pub(super) fn all_numbers(arguments: &[Expr]) -> bool {
    arguments
        .iter()
        .all(|argument| argument.ty.is_int() && constant(argument).is_some())
}

/// True where control does not go on behind the statement: it jumps.
pub(super) fn is_jump(statement: &Stmt) -> bool {
    matches!(&statement.kind, StmtKind::Unknown(Unknown::Jump(_)))
}

/// True where control does not run on past the statements.
pub(super) fn ends_here(statements: &[Stmt]) -> bool {
    statements.last().is_some_and(|last| match &last.kind {
        StmtKind::Break | StmtKind::Return(_) | StmtKind::Continue => true,
        StmtKind::Unknown(_) => is_jump(last),
        _ => last.ends_with(ends_here),
    })
}

/// True where no iteration of a loop with this body is followed by another: each ends in a `return`, or in the one `break` at
/// the end.
pub(super) fn never_repeats(body: &[Stmt]) -> bool {
    let before = match body.split_last() {
        Some((last, before)) if last.kind == StmtKind::Break => before,
        _ => body,
    };
    ends_here(body)
        && !leaves_early(before)
        && !continues(before)
        && !any_statement(body, &mut is_jump)
}

/// A `break` that would leave a loop around the statements.
pub(super) fn leaves_early(statements: &[Stmt]) -> bool {
    any_in_iteration(statements, &mut |one| one.kind == StmtKind::Break)
}

pub(super) fn continues(statements: &[Stmt]) -> bool {
    any_in_iteration(statements, &mut |one| one.kind == StmtKind::Continue)
}

/// True where a statement may end the function around them.
pub(super) fn may_return(statements: &[Stmt]) -> bool {
    any_statement(statements, &mut |one| {
        matches!(one.kind, StmtKind::Return(_))
    })
}

/// True where a condition calls a function that changes one of the variables that were there before it, of which there were that many:
/// `while (tiles.next(row, column))`.
pub(super) fn moves_on(condition: &Expr, before: usize) -> bool {
    let (mut calls, mut changes) = (false, false);
    condition.expressions(&mut |expression| match &expression.kind {
        ExprKind::Inline(..) => calls = true,
        ExprKind::Assign(_, target, _) | ExprKind::Step(_, _, target) => {
            let mut place = target;
            while let ExprKind::Index(inner, _)
            | ExprKind::Field(inner, _)
            | ExprKind::Cast(_, inner)
            | ExprKind::Deref(inner) = &place.kind
            {
                place = inner;
            }
            changes |= matches!(place.kind, ExprKind::Var(id) if (id.0 as usize) < before);
        }
        _ => {}
    });
    calls && changes
}
