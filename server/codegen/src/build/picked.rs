//! Arrays that stay values although their subscripts are not known: the code compares the subscript with each element's.

use warplens_ir::{BinaryOp, Type, VarId};

use super::place::{Pick, Place, WIDEST, common};
use super::{Builder, Value, machine, scalars};
use crate::graph::{Op, Ty, V};

impl Builder<'_> {
    /// An element of what is `offset` bytes into a variable: chosen, or the variable lies in memory.
    pub(super) fn one_of(
        &mut self,
        id: VarId,
        offset: u32,
        of: &Type,
        index: V,
        size: u32,
    ) -> Place {
        let count = match of {
            Type::Array(_, Some(count)) => *count as u32,
            Type::Vector(_, lanes) => u32::from(*lanes),
            _ => 0,
        };
        if count == 0 || !self.picked.contains(&id) {
            return self.demote(id);
        }
        let index = match self.graph.ty(index) {
            Ty::I64 => self.unary(Op::Truncate, Ty::I32, index),
            _ => index,
        };
        let (index, behind, every) = self.spaced(index, size);
        let first = behind.rem_euclid(i64::from(every)) as u32;
        Place::Picked(Pick {
            id,
            offset,
            index,
            behind,
            size,
            first,
            every,
            count,
        })
    }

    /// A subscript as a value, a number more, and what the value is always a multiple of: the counter of an unrolled loop passes
    /// over what lies between.
    fn spaced(&self, index: V, size: u32) -> (V, i64, u32) {
        let (mut v, mut constant) = (index, 0_i64);
        loop {
            if let Some(&every) = self.strides.get(&v) {
                let every = common(every, WIDEST / u64::from(size.clamp(1, WIDEST as u32)));
                return match u32::try_from(every) {
                    Ok(every @ 1..) => (v, constant, every),
                    _ => (index, 0, 1),
                };
            }
            let inst = self.graph.inst(v);
            let (Op::Add, &[a, b]) = (inst.op, inst.args.as_slice()) else {
                return (index, 0, 1);
            };
            let (rest, number) = match (self.graph.int(a), self.graph.int(b)) {
                (Some(number), _) => (b, number),
                (_, Some(number)) => (a, number),
                _ => return (index, 0, 1),
            };
            (v, constant) = (rest, constant.wrapping_add(number));
        }
    }

    /// Every element of an array that is declared exists, whatever it holds.
    pub(super) fn nothing_yet(&mut self, id: VarId) {
        for (at, ty) in scalars(&self.kernel.var(id).ty) {
            let v = self.undefined(machine(ty));
            self.env.insert((id, at), v);
        }
    }

    pub(super) fn read_one_of(&mut self, pick: Pick, ty: &Type) -> Value {
        let parts = scalars(ty);
        let first = pick.elements().next().unwrap_or(0);
        let mut chosen: Value = (parts.iter())
            .map(|(at, part)| self.part(pick.id, pick.of(first) + at, part))
            .collect();
        for element in pick.elements().skip(1) {
            let is = self.is_element(&pick, element);
            for ((at, part), chosen) in parts.iter().zip(&mut chosen) {
                let held = self.part(pick.id, pick.of(element) + at, part);
                *chosen = self.select(is, held, *chosen);
            }
        }
        chosen
    }

    pub(super) fn write_one_of(&mut self, pick: Pick, ty: &Type, value: &Value) {
        for element in pick.elements() {
            let is = self.is_element(&pick, element);
            for ((at, part), v) in scalars(ty).iter().zip(value) {
                let key = pick.of(element) + at;
                let held = self.part(pick.id, key, part);
                let after = self.select(is, *v, held);
                self.put(pick.id, key, part, after);
            }
        }
    }

    fn is_element(&mut self, pick: &Pick, element: u32) -> V {
        let number = i64::from(element).wrapping_sub(pick.behind);
        let number = self.constant(number, self.graph.ty(pick.index));
        self.compare(BinaryOp::Eq, true, pick.index, number)
    }
}
