//! Constant arrays whose elements are known: at a subscript that is a number each is one, as compilers make it.

use std::sync::Arc;

use warplens_ir::{Expr, ExprKind, Real, Type, VarId};
use warplens_syntax::{Kind, Node};

use super::constants::{constant, real, rounded};
use super::{Lowering, Source, parts};
use crate::unit::Constant;

/// Longer arrays are read where they are accessed.
const LONGEST: u64 = 4096;

impl Lowering<'_> {
    /// The elements of an array with such an initialiser, the innermost dimension last; nothing where one is not known.
    pub(super) fn table(
        &mut self,
        ty: &Type,
        list: Node,
        source: Source,
    ) -> Option<Arc<[Constant]>> {
        let count = scalars(ty).filter(|count| *count <= LONGEST)?;
        let designated = |node: &Node| node.kind() == Kind::InitializerPair;
        if list.kind() != Kind::InitializerList || parts(list).iter().any(designated) {
            return None;
        }
        let all = self.unevaluated(|lowering| lowering.initializers(list, source));
        let mut table = Vec::new();
        fill(ty, &all, &mut table)?;
        (table.len() as u64 == count).then(|| table.into())
    }

    /// A device variable whose elements are known.
    pub(super) fn keep_table(&mut self, id: VarId, table: Arc<[Constant]>) {
        self.tables.insert(id, table);
    }

    /// The number that an element of such an array is.
    pub(super) fn element_of_table(&self, place: &Expr) -> Option<Expr> {
        if !place.ty.is_int() && !place.ty.is_float() {
            return None;
        }
        let (id, at) = position(place)?;
        let kind = match self.tables.get(&id)?.get(at)? {
            Constant::Int(value, _) => ExprKind::Int(*value),
            Constant::Data(value, _) => ExprKind::Float(*value),
        };
        Some(Expr {
            kind,
            ty: place.ty.clone(),
            site: place.site,
        })
    }
}

/// The scalars of an array of numbers.
fn scalars(ty: &Type) -> Option<u64> {
    match ty {
        Type::Array(inner, extent) => scalars(inner)?.checked_mul((*extent)?),
        Type::Int { .. } | Type::Float { .. } => Some(1),
        _ => None,
    }
}

/// Appends what these initialise; those that they leave out are zero.
fn fill(ty: &Type, given: &[Expr], table: &mut Vec<Constant>) -> Option<()> {
    let Type::Array(inner, _) = ty else {
        return None;
    };
    let end = table.len() + usize::try_from(scalars(ty)?).ok()?;
    for value in given {
        match (&value.kind, &**inner) {
            (ExprKind::List(own), Type::Array(..)) => fill(inner, own, table)?,
            // `{{1}, {2}}` of numbers, and rows without brackets of their own.
            _ => table.push(number(value, innermost(inner))?),
        }
    }
    if table.len() > end {
        return None;
    }
    let zero = match innermost(inner) {
        ty @ Type::Float { .. } => Constant::Data(Some(Real::from(0.0)), ty.clone()),
        ty => Constant::Int(0, ty.clone()),
    };
    table.resize(end, zero);
    Some(())
}

fn innermost(ty: &Type) -> &Type {
    match ty {
        Type::Array(inner, _) => innermost(inner),
        ty => ty,
    }
}

fn number(value: &Expr, ty: &Type) -> Option<Constant> {
    match ty {
        Type::Int { bits, signed } => {
            let value = constant(value)?;
            let value = warplens_ir::wrapped(value, *bits, *signed);
            Some(Constant::Int(value, ty.clone()))
        }
        _ => {
            let value = rounded(real(value)?, ty);
            Some(Constant::Data(Some(Real::from(value)), ty.clone()))
        }
    }
}

/// The variable and which of its scalars, where all subscripts are numbers within their dimensions.
fn position(place: &Expr) -> Option<(VarId, usize)> {
    match &place.kind {
        ExprKind::Var(id) => Some((*id, 0)),
        ExprKind::Index(base, index) => {
            let Type::Array(inner, extent) = &base.ty else {
                return None;
            };
            let index = u64::try_from(constant(index)?).ok()?;
            if index >= (*extent)? {
                return None;
            }
            let (id, before) = position(base)?;
            let by = usize::try_from(index.checked_mul(scalars(inner)?)?).ok()?;
            Some((id, before + by))
        }
        _ => None,
    }
}
