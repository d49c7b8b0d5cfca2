//! Elements of short arrays of pointers: where it is not known which, one or the other of the pointers that are there.

use super::Lowering;
use super::constants::constant;
use super::construct::operation;
use super::shapes::is_pure;
use warplens_ir::{BinaryOp, Expr, ExprKind, Site, Type};

impl Lowering<'_> {
    /// The element of a split array of pointers that an index chooses: one of them.
    pub(super) fn chosen_pointer(&self, array: &Expr, index: &Expr, site: Site) -> Option<Expr> {
        let ExprKind::Var(id) = array.kind else {
            return None;
        };
        let leaves = self.split.get(&id)?.scalars();
        if !matches!(self.vars[id.0 as usize].ty, Type::Array(..))
            || constant(index).is_some()
            || !is_pure(index)
        {
            return None;
        }
        let (&(_, last), others) = leaves.split_last()?;
        let chosen = others.iter().enumerate().rev();
        Some(
            chosen.fold(self.var(last, site), |other, (at, &(_, leaf))| {
                let at = Expr {
                    kind: ExprKind::Int(at as i64),
                    ty: Type::INT,
                    site,
                };
                let test = operation(BinaryOp::Eq, index.clone(), at, site);
                let leaf = self.var(leaf, site);
                Expr {
                    ty: leaf.ty.clone(),
                    kind: ExprKind::Select(Box::new(test), Box::new(leaf), Box::new(other)),
                    site,
                }
            }),
        )
    }
}
