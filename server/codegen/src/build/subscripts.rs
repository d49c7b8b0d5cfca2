//! Subscripts that are computed again: an unrolled loop computes the same ones of the same variables in each copy.
//!
//! What is kept here is what evaluating them once more would find among the known values; it is forgotten with these.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use warplens_ir::{BinaryOp, Expr, ExprKind, VarId};

use super::Builder;
use crate::graph::V;

/// More variables than this are not looked up.
const MOST: usize = 4;

/// What the variables of a subscript hold, padded with the last of them.
type Held = [V; MOST];

/// Subscripts and the addresses that they lead to.
#[derive(Debug, Default)]
pub(super) struct Subscripts {
    /// The variables of each subscript, by where it is written; `None` where it is more than arithmetic with integers.
    variables: FxHashMap<usize, Option<SmallVec<[VarId; MOST]>>>,
    /// Values, by where they are written and what their variables hold.
    values: FxHashMap<(usize, Held), V>,
    /// Addresses: of what, moved by which index of how many bytes, with or without a sign.
    addresses: FxHashMap<(V, V, u32, bool), V>,
    /// How many values were known when the last of these was found.
    known: usize,
}

impl Subscripts {
    /// Values from a mark on are no longer known.
    pub(super) fn forget(&mut self, mark: usize) {
        if mark < self.known {
            self.values.clear();
            self.addresses.clear();
            self.known = 0;
        }
    }
}

impl Builder<'_> {
    /// The value of a subscript.
    pub(super) fn subscript(&mut self, index: &Expr) -> V {
        let place = std::ptr::from_ref(index) as usize;
        let Some(held) = self.held_by(index, place) else {
            return self.scalar(index);
        };
        let key = (place, held);
        if let Some(&known) = self.subscripts.values.get(&key) {
            return known;
        }
        let v = self.scalar(index);
        if self.at.is_some() && !self.truncated {
            self.subscripts.values.insert(key, v);
            self.subscripts.known = self.mark();
        }
        v
    }

    /// A pointer moved by a subscript.
    pub(super) fn subscripted(&mut self, pointer: V, at: V, size: u32, signed: bool) -> V {
        let key = (pointer, at, size, signed);
        if let Some(&known) = self.subscripts.addresses.get(&key) {
            return known;
        }
        let v = self.moved(pointer, at, size, signed);
        if self.at.is_some() && !self.truncated {
            self.subscripts.addresses.insert(key, v);
            self.subscripts.known = self.mark();
        }
        v
    }

    /// Notes a signed sum or product. Addresses of one that was without a sign before may be others now.
    pub(super) fn does_not_wrap(&mut self, v: V) {
        let newest = self.graph.values.len().checked_sub(1) == Some(v.0 as usize);
        if self.signed.insert(v) && !newest {
            self.subscripts.addresses.clear();
        }
    }

    /// What the variables of a subscript hold; `None` for what is not kept.
    fn held_by(&mut self, index: &Expr, place: usize) -> Option<Held> {
        if self.truncated || self.at.is_none() || !matches!(index.kind, ExprKind::Binary(..)) {
            return None;
        }
        if !self.subscripts.variables.contains_key(&place) {
            let mut variables = SmallVec::new();
            let plain = self.is_plain(index, &mut variables) && !variables.is_empty();
            let found = (plain && variables.len() <= MOST).then_some(variables);
            self.subscripts.variables.insert(place, found);
        }
        let variables = self.subscripts.variables.get(&place)?.as_ref()?;
        let mut held = Held::default();
        for (number, held) in held.iter_mut().enumerate() {
            let id = variables.get(number).or(variables.last())?;
            *held = *self.env.get(&(*id, 0))?;
        }
        Some(held)
    }

    /// True for arithmetic with integers that are constants or variables, which are noted.
    fn is_plain(&self, part: &Expr, variables: &mut SmallVec<[VarId; MOST]>) -> bool {
        if !part.ty.is_int() {
            return false;
        }
        match &part.kind {
            ExprKind::Int(_) => true,
            ExprKind::Var(id) => {
                if !variables.contains(id) {
                    variables.push(*id);
                }
                self.is_values(*id) && !self.kernel.var(*id).volatile
            }
            ExprKind::Cast(_, inner) => self.is_plain(inner, variables),
            ExprKind::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, ..) => false,
            ExprKind::Binary(_, a, b) => self.is_plain(a, variables) && self.is_plain(b, variables),
            _ => false,
        }
    }
}
