//! Expressions, places and calls as they are written: what they depend on, whether they are the same, what a call costs.

use std::hash::{Hash, Hasher};

use warplens_ir::functions::{self, Cost};
use warplens_ir::{Expr, ExprKind, Stmt, VarId};

use crate::thresholds::nvcc;

/// Operations of a function of the library, as LLVM counts them and as the machine does.
pub(super) fn library_cost(name: &str, small: bool) -> (u64, u64) {
    let size = &nvcc().size;
    match functions::cost(name) {
        Cost::Root => (size.root, size.root),
        _ if small => (size.approximate, size.approximate_machine),
        Cost::Reduced | Cost::Power => (size.reduced, size.reduced),
        Cost::Approximate | Cost::Function => (size.function, size.function),
    }
}

/// The variables that a place depends on.
pub(super) fn moving(place: &Expr) -> Vec<VarId> {
    let mut all = Vec::new();
    variables(place, &mut all);
    all
}

/// A hash of what is written, wherever it is; none of what may be another value the next time.
pub(super) fn shape(expression: &Expr) -> Option<u64> {
    let mut hasher = rustc_hash::FxHasher::default();
    write_shape(expression, &mut hasher)?;
    Some(hasher.finish())
}

fn write_shape(expression: &Expr, into: &mut rustc_hash::FxHasher) -> Option<()> {
    std::mem::discriminant(&expression.kind).hash(into);
    match &expression.kind {
        ExprKind::Int(value) => value.hash(into),
        ExprKind::Var(id) => id.hash(into),
        ExprKind::Builtin(builtin) => builtin.hash(into),
        ExprKind::Binary(op, a, b) => {
            op.hash(into);
            write_shape(a, into)?;
            write_shape(b, into)?;
        }
        ExprKind::Index(a, b) => {
            write_shape(a, into)?;
            write_shape(b, into)?;
        }
        ExprKind::Field(a, offset) => {
            offset.hash(into);
            write_shape(a, into)?;
        }
        ExprKind::Cast(_, a) | ExprKind::Deref(a) => write_shape(a, into)?,
        _ => return None,
    }
    Some(())
}

/// True for a constant by which a division is a product: any integer, a power of two among the others.
pub(super) fn is_easy_divisor(divisor: &Expr, float: bool) -> bool {
    let value = match &divisor.without_casts().kind {
        ExprKind::Int(value) => Some(*value as f64),
        ExprKind::Float(value) => value.as_ref().map(|value| value.value()),
        _ => return false,
    };
    !float || value.is_some_and(|value| value != 0.0 && value.abs().log2().fract() == 0.0)
}

/// The variables that an expression names; of a function in its place those of its plain statements.
pub(super) fn variables(expression: &Expr, out: &mut Vec<VarId>) {
    match &expression.kind {
        ExprKind::Var(id) => out.push(*id),
        ExprKind::Inline(statements, _) => {
            let plain = statements
                .iter()
                .filter(|one| one.blocks().next().is_none());
            plain
                .flat_map(Stmt::values)
                .for_each(|value| variables(value, out));
        }
        _ => expression
            .operands()
            .for_each(|operand| variables(operand, out)),
    }
}

pub(super) fn reads_memory(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Inline(..) | ExprKind::Apply(..) => {
            true
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => reads_memory(a),
        ExprKind::Binary(_, a, b) => reads_memory(a) || reads_memory(b),
        _ => false,
    }
}
