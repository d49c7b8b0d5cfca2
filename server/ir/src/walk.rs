//! Every expression of a stretch of statements.

use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId};

/// Visits every expression, outer ones before inner ones; of a routine's call the arguments.
pub(crate) fn expressions(statements: &[Stmt], visit: &mut dyn FnMut(&Expr)) {
    for statement in statements {
        match &statement.kind {
            StmtKind::Declare(_, value) | StmtKind::Return(value) => {
                if let Some(value) = value {
                    inside(value, visit);
                }
            }
            StmtKind::Expr(value) => inside(value, visit),
            StmtKind::If(condition, then, otherwise) => {
                inside(condition, visit);
                expressions(then, visit);
                expressions(otherwise, visit);
            }
            StmtKind::Loop {
                init,
                condition,
                step,
                body,
                ..
            } => {
                expressions(init, visit);
                condition
                    .iter()
                    .chain(step.iter())
                    .for_each(|value| inside(value, visit));
                expressions(body, visit);
            }
            StmtKind::Block(inner) => expressions(inner, visit),
            StmtKind::Switch(way, inner) => {
                inside(way, visit);
                expressions(inner, visit);
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Barrier | StmtKind::Unknown(_) => {}
        }
    }
}

impl Expr {
    /// True where it reads one of these variables.
    pub fn reads(&self, variables: &[VarId]) -> bool {
        reads_any(self, variables)
    }

    /// True where its evaluation may read memory or go several ways.
    pub fn reads_or_forks(&self) -> bool {
        let mut found = false;
        inside(self, &mut |part| {
            found |= matches!(
                part.kind,
                ExprKind::Index(..)
                    | ExprKind::Deref(_)
                    | ExprKind::Select(..)
                    | ExprKind::Inline(..)
                    | ExprKind::Apply(..)
            );
        });
        found
    }
}

/// True where an expression reads one of these variables.
pub(crate) fn reads_any(expression: &Expr, variables: &[VarId]) -> bool {
    let mut found = false;
    inside(expression, &mut |part| {
        found |= matches!(part.kind, ExprKind::Var(id) if variables.contains(&id));
    });
    found
}

fn inside(expression: &Expr, visit: &mut dyn FnMut(&Expr)) {
    visit(expression);
    match &expression.kind {
        ExprKind::Unary(_, a)
        | ExprKind::Cast(_, a)
        | ExprKind::Deref(a)
        | ExprKind::Field(a, _)
        | ExprKind::AddressOf(a)
        | ExprKind::Step(_, _, a) => inside(a, visit),
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) | ExprKind::Assign(_, a, b) => {
            inside(a, visit);
            inside(b, visit);
        }
        ExprKind::Select(a, b, c) => {
            inside(a, visit);
            inside(b, visit);
            inside(c, visit);
        }
        ExprKind::Call(_, parts)
        | ExprKind::List(parts)
        | ExprKind::Opaque(_, parts)
        | ExprKind::Apply(_, parts) => {
            for part in parts {
                inside(part, visit);
            }
        }
        ExprKind::Inline(statements, _) => expressions(statements, visit),
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => {}
    }
}
