//! Functions that call themselves: read once, as a loop of unknown length.
//!
//! What a deeper call does, it does with other arguments: at the place of the call the parameters take values
//! that are not known, and the body runs again.

use warplens_syntax::{Field, Kind, Node};

use super::candidate::Candidate;
use super::{Frame, Lowering, Named, Result, Source, parts, text_of};
use crate::outline::function_declarator;
use warplens_ir::{Expr, ExprKind, Opaque};
use warplens_ir::{Site, Type};

impl Lowering<'_> {
    /// The call of a function inside itself; `None` where an argument cannot be followed.
    pub(super) fn called_again(
        &mut self,
        frame: usize,
        candidate: &Candidate,
        function: Node,
        source: Source,
        arguments: &[Expr],
        site: Site,
    ) -> Option<Expr> {
        let at = self.looped.iter().rposition(|(of, _)| *of == frame)?;
        let Frame {
            scopes,
            result,
            this,
            ..
        } = self.frames.get(frame)?;
        match (this, &candidate.this) {
            (None, None) => {}
            (Some(this), Some(other)) if same(this, other) => {}
            // Another object.
            _ => return None,
        }
        let ty = match result {
            Result::Var(id) => self.vars[id.0 as usize].ty.clone(),
            Result::None => Type::Void,
            // What it gives is not a value.
            _ => return None,
        };
        let meanings = parameter_names(function, source)
            .into_iter()
            .map(|name| scopes.first().and_then(|scope| scope.get(name)).cloned())
            .collect::<Option<Vec<Named>>>()?;
        let mut statements = Vec::new();
        for (meaning, argument) in meanings.into_iter().zip(arguments) {
            match meaning {
                Named::Var(id) => {
                    let ty = self.vars[id.0 as usize].ty.clone();
                    let value = Expr {
                        kind: ExprKind::Opaque(Opaque::Unknown, vec![argument.clone()]),
                        ty,
                        site,
                    };
                    self.assign_to(id, value, site, &mut statements);
                }
                // Handed on as it came.
                Named::Alias(place) if same(&place, argument) => {}
                _ => return None,
            }
        }
        self.looped[at].1 = true;
        let value = Expr {
            kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
            ty: ty.clone(),
            site,
        };
        let again = Expr {
            kind: ExprKind::Inline(statements, None),
            ty: Type::Void,
            site,
        };
        Some(if ty == Type::Void {
            again
        } else {
            super::split::list(&ty, vec![again, value], site)
        })
    }
}

/// The names of a function's parameters; empty ones for those without a name.
fn parameter_names<'t>(function: Node<'t>, source: Source<'t>) -> Vec<&'t str> {
    let list =
        function_declarator(function).and_then(|declarator| declarator.field(Field::Parameters));
    let mut names = Vec::new();
    for param in list.into_iter().flat_map(parts) {
        if !param.kind().is_parameter_declaration() {
            continue;
        }
        let mut at = param.field(Field::Declarator);
        while let Some(node) = at
            && node.kind() != Kind::Identifier
        {
            at = node
                .field(Field::Declarator)
                .or_else(|| parts(node).into_iter().next_back());
        }
        names.push(at.map_or("", |name| text_of(name, source)));
    }
    names
}

/// Equal but for their places in the text.
fn same(a: &Expr, b: &Expr) -> bool {
    if a.ty != b.ty {
        return false;
    }
    match (&a.kind, &b.kind) {
        (ExprKind::Int(a), ExprKind::Int(b)) => a == b,
        (ExprKind::Var(a), ExprKind::Var(b)) => a == b,
        (ExprKind::Deref(a), ExprKind::Deref(b))
        | (ExprKind::AddressOf(a), ExprKind::AddressOf(b))
        | (ExprKind::Cast(_, a), ExprKind::Cast(_, b)) => same(a, b),
        (ExprKind::Field(a, x), ExprKind::Field(b, y)) => x == y && same(a, b),
        (ExprKind::Index(a, x), ExprKind::Index(b, y)) => same(a, b) && same(x, y),
        (ExprKind::List(a), ExprKind::List(b)) => a.is_empty() && b.is_empty(),
        _ => false,
    }
}
