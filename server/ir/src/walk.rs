//! Every expression and every site of a stretch of statements.

use crate::Site;
use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId};

/// A part of a stretch of statements.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// A statement.
    Statement(&'a Stmt),
    /// An expression.
    Expression(&'a Expr),
}

/// Visits every expression, outer ones before inner ones; of a routine's call the arguments.
pub fn expressions(statements: &[Stmt], visit: &mut dyn FnMut(&Expr)) {
    parts(statements, &mut |part| {
        if let Part::Expression(expression) = part {
            visit(expression);
        }
    });
}

/// Visits every statement and expression, outer ones before inner ones; of a routine's call the arguments.
pub fn parts(statements: &[Stmt], visit: &mut dyn FnMut(Part)) {
    for statement in statements {
        visit(Part::Statement(statement));
        match &statement.kind {
            StmtKind::Declare(_, value) | StmtKind::Return(value) => {
                if let Some(value) = value {
                    inside(value, visit);
                }
            }
            StmtKind::Expr(value) => inside(value, visit),
            StmtKind::If(condition, then, otherwise) => {
                inside(condition, visit);
                parts(then, visit);
                parts(otherwise, visit);
            }
            StmtKind::Loop {
                init,
                condition,
                step,
                body,
                ..
            } => {
                parts(init, visit);
                condition
                    .iter()
                    .chain(step.iter())
                    .for_each(|value| inside(value, visit));
                parts(body, visit);
            }
            StmtKind::Block(inner) => parts(inner, visit),
            StmtKind::Switch(way, inner) => {
                inside(way, visit);
                parts(inner, visit);
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Barrier | StmtKind::Unknown(_) => {}
        }
    }
}

/// Visits the site of every statement and expression, to change it.
pub fn each_site(statements: &mut [Stmt], visit: &mut dyn FnMut(&mut Site)) {
    for statement in statements {
        visit(&mut statement.site);
        match &mut statement.kind {
            StmtKind::Declare(_, value) | StmtKind::Return(value) => {
                if let Some(value) = value {
                    sites_inside(value, visit);
                }
            }
            StmtKind::Expr(value) => sites_inside(value, visit),
            StmtKind::If(condition, then, otherwise) => {
                sites_inside(condition, visit);
                each_site(then, visit);
                each_site(otherwise, visit);
            }
            StmtKind::Loop {
                init,
                condition,
                step,
                body,
                ..
            } => {
                each_site(init, visit);
                for value in condition.iter_mut().chain(step) {
                    sites_inside(value, visit);
                }
                each_site(body, visit);
            }
            StmtKind::Block(inner) => each_site(inner, visit),
            StmtKind::Switch(way, inner) => {
                sites_inside(way, visit);
                each_site(inner, visit);
            }
            StmtKind::Break | StmtKind::Continue | StmtKind::Barrier | StmtKind::Unknown(_) => {}
        }
    }
}

fn sites_inside(expression: &mut Expr, visit: &mut dyn FnMut(&mut Site)) {
    visit(&mut expression.site);
    match &mut expression.kind {
        ExprKind::Unary(_, a)
        | ExprKind::Cast(_, a)
        | ExprKind::Deref(a)
        | ExprKind::Field(a, _)
        | ExprKind::AddressOf(a)
        | ExprKind::Step(_, _, a) => sites_inside(a, visit),
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) | ExprKind::Assign(_, a, b) => {
            sites_inside(a, visit);
            sites_inside(b, visit);
        }
        ExprKind::Select(a, b, c) => {
            sites_inside(a, visit);
            sites_inside(b, visit);
            sites_inside(c, visit);
        }
        ExprKind::Call(_, parts)
        | ExprKind::List(parts)
        | ExprKind::Opaque(_, parts)
        | ExprKind::Apply(_, parts) => {
            for part in parts {
                sites_inside(part, visit);
            }
        }
        ExprKind::Inline(statements, _) => each_site(statements, visit),
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => {}
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
            let Part::Expression(part) = part else {
                return;
            };
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
pub fn reads_any(expression: &Expr, variables: &[VarId]) -> bool {
    let mut found = false;
    inside(expression, &mut |part| {
        found |= matches!(part, Part::Expression(Expr { kind: ExprKind::Var(id), .. }) if variables.contains(id));
    });
    found
}

fn inside(expression: &Expr, visit: &mut dyn FnMut(Part)) {
    visit(Part::Expression(expression));
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
        ExprKind::Call(_, values)
        | ExprKind::List(values)
        | ExprKind::Opaque(_, values)
        | ExprKind::Apply(_, values) => {
            for value in values {
                inside(value, visit);
            }
        }
        ExprKind::Inline(statements, _) => parts(statements, visit),
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => {}
    }
}
