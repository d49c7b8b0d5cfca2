//! Statements where a value is expected: GNU's `({ … })`.

use std::sync::Arc;

use warplens_syntax::{Kind, Node};

use super::construct::after;
use super::shapes::may_return;
use super::shapes::{continues, leaves_early};
use super::{Lowering, Source, parts};
use warplens_ir::Reason;
use warplens_ir::{AddressSpace, Site, Type};
use warplens_ir::{Expr, ExprKind};

impl Lowering<'_> {
    /// `({ statements; value; })`: its value is that of the last expression statement.
    pub(super) fn statement_expression(&mut self, node: Node, source: Source, site: Site) -> Expr {
        // A jump out of it is not followed.
        let labels = std::mem::take(&mut self.labels);
        let (mut statements, value) = self.scoped(|lowering| {
            let nodes = parts(node);
            let last = nodes
                .last()
                .filter(|last| last.kind() == Kind::ExpressionStatement)
                .and_then(|last| parts(*last).into_iter().next());
            let before = if last.is_some() {
                &nodes[..nodes.len() - 1]
            } else {
                &nodes
            };
            let mut statements = Vec::new();
            lowering.statements(before, source, &mut statements);
            let value = last.map(|last| lowering.expr(last, source));
            (statements, value)
        });
        self.labels = labels;
        if leaves_early(&statements) || continues(&statements) || may_return(&statements) {
            return self.opaque(site, Reason::Expression, Vec::new());
        }
        let Some(value) = value else {
            return Expr {
                kind: ExprKind::Inline(statements, None),
                ty: Type::Void,
                site,
            };
        };
        if value.ty == Type::Void || matches!(value.ty, Type::Callable(_) | Type::Library(_)) {
            return after(statements, value);
        }
        let result = self.temporary("value", decayed(&value.ty), site);
        self.assign_to(result, value, site, &mut statements);
        Expr {
            ty: self.var(result, site).ty,
            kind: ExprKind::Inline(statements, Some(result)),
            site,
        }
    }
}

/// A type as a value of it has it: an array as a value is a pointer.
pub(super) fn decayed(ty: &Type) -> Type {
    match ty {
        Type::Array(element, _) => Type::Pointer(Arc::clone(element), AddressSpace::Global),
        ty => ty.clone(),
    }
}
