//! Variables read and written as other types than they are declared: `reinterpret_cast<half2 *>(&v)[j]`, unions, `memcpy`.
//!
//! What a variable holds is kept by the scalars of its declaration. A read of fewer bytes is a part of one of them, a read of more
//! joins several; a write puts the parts together again. A part of what was joined is what was put there, so that nothing is paid
//! where a value only passes through.

use std::collections::BTreeMap;
use std::rc::Rc;

use warplens_ir::{Struct, Type, VarId};

use super::{Builder, Scalars, Value, machine, scalars};
use crate::graph::{Args, Op, Ty, V};

/// How a scalar lies in a variable's own layout.
pub(super) enum Cell<'t> {
    /// It is one of its scalars, or lies where none is declared.
    Same,
    /// A part of the one that begins at that byte.
    Within(u32, &'t Type),
    /// Several make it, side by side.
    Across,
}

/// The most bytes that are read or written across scalars: as many as one instruction moves, twice.
const MOST_BYTES: u64 = 32;

/// True for a structure whose fields share bytes.
pub(super) fn overlaps(structure: &Struct) -> bool {
    let mut end = 0;
    structure.fields.iter().any(|field| {
        let before = end;
        end = before.max(field.offset + field.ty.size());
        field.offset < before
    })
}

/// The scalars of a structure whose fields share bytes: the widest ones, and of the bytes that they leave the next.
pub(super) fn layout(structure: &Struct) -> Scalars<'_> {
    let mut all = Scalars::new();
    for field in &structure.fields {
        let inner = scalars(&field.ty).into_iter();
        all.extend(inner.map(|(at, ty)| (at + field.offset as u32, ty)));
    }
    all.sort_by_key(|(at, ty)| (std::cmp::Reverse(ty.size()), *at));
    let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
    all.retain(|(at, ty)| {
        let (start, end) = (u64::from(*at), u64::from(*at) + ty.size());
        // Of those apart from each other the last that begins before this one ends is the one that may reach into it.
        let before = taken.range(..end).next_back();
        let free = end <= structure.size && before.is_none_or(|(_, of)| *of <= start);
        if free {
            taken.insert(start, end);
        }
        free
    });
    all.sort_by_key(|(at, _)| *at);
    all
}

impl<'k> Builder<'k> {
    /// The scalar that holds a byte of a type: its first byte.
    fn scalar_at(&self, mut ty: &'k Type, offset: u32) -> Option<(u32, &'k Type)> {
        let mut start = 0;
        loop {
            let at = u64::from(offset - start);
            if at >= ty.size() {
                return None;
            }
            match ty {
                Type::Vector(element, _) | Type::Array(element, Some(_)) => {
                    start += (at / element.size() * element.size()) as u32;
                    ty = element;
                }
                Type::Struct(structure) if overlaps(structure) => {
                    let all = self.layout(structure);
                    let behind = all.partition_point(|(of, _)| u64::from(*of) <= at);
                    let (of, ty) = *all.get(behind.checked_sub(1)?)?;
                    let holds = at < u64::from(of) + ty.size();
                    return holds.then_some((start + of, ty));
                }
                Type::Struct(structure) => {
                    let holds = |field: &&warplens_ir::Field| {
                        (field.offset..field.offset + field.ty.size()).contains(&at)
                    };
                    let field = structure.fields.iter().find(holds)?;
                    start += field.offset as u32;
                    ty = &field.ty;
                }
                ty => return Some((start, ty)),
            }
        }
    }

    /// The scalars of a structure whose fields share bytes, kept: each access to one of thousands of elements asks.
    fn layout(&self, structure: &'k Struct) -> Rc<Scalars<'k>> {
        let key = std::ptr::from_ref(structure).addr();
        let mut kept = self.layouts.borrow_mut();
        let made = || Rc::new(layout(structure));
        Rc::clone(kept.entry(key).or_insert_with(made))
    }

    pub(super) fn cell(&self, id: VarId, offset: u32, ty: &Type) -> Cell<'k> {
        let kernel = self.kernel;
        let whole = &kernel.var(id).ty;
        let size = ty.size();
        if whole == ty || size == 0 {
            return Cell::Same;
        }
        match self.scalar_at(whole, offset) {
            Some((start, cell)) if start == offset && cell.size() == size => Cell::Same,
            Some((start, cell))
                if u64::from(offset) + size <= u64::from(start) + cell.size()
                    && u64::from(offset - start).is_multiple_of(size)
                    && cell.size().is_multiple_of(size) =>
            {
                Cell::Within(start, cell)
            }
            Some((start, cell)) if start == offset && cell.size() < size && size <= MOST_BYTES => {
                Cell::Across
            }
            _ => Cell::Same,
        }
    }

    /// The scalars of a variable's own layout in a range of bytes.
    pub(super) fn cells(&self, id: VarId, offset: u32, size: u32) -> Vec<(u32, &'k Type)> {
        let kernel = self.kernel;
        let whole = &kernel.var(id).ty;
        let mut found = Vec::new();
        let mut at = offset;
        while at < offset + size {
            match self.scalar_at(whole, at) {
                Some((start, cell)) => {
                    found.push((start, cell));
                    at = start + (cell.size() as u32).max(1);
                }
                // Padding.
                None => at += 1,
            }
        }
        found
    }

    /// A part of a value of that many bytes.
    pub(super) fn piece(&mut self, whole: V, bytes: u32, at: u32, ty: &Type) -> V {
        let (want, made) = (ty.size() as u32, machine(ty));
        if want == 0 || want >= bytes {
            return self.as_bits(whole, made);
        }
        let inst = self.graph.inst(whole);
        let (op, args) = (inst.op, inst.args.clone());
        match op {
            Op::Undefined => return self.undefined(made),
            Op::Int(value) if !made.is_float() => {
                let value = value >> (8 * at).min(63);
                let shift = 64 - 8 * want.min(8);
                let signed = matches!(ty, Type::Int { signed: true, .. });
                let value = if signed {
                    value << shift >> shift
                } else {
                    ((value as u64) << shift >> shift) as i64
                };
                return self.constant(value, made);
            }
            // The same bits under another name.
            Op::Bits => return self.piece(args[0], bytes, at, ty),
            Op::Join => {
                let each = (bytes / args.len() as u32).max(1);
                let of = (at / each) as usize..((at + want) / each) as usize;
                if want <= each
                    && let Some(&part) = args.get(of.start)
                {
                    return self.piece(part, each, at % each, ty);
                }
                if let Some(parts) = args.get(of).filter(|parts| !parts.is_empty()) {
                    let parts = Value::from_slice(parts);
                    return self.joined(&parts, made);
                }
            }
            _ => {}
        }
        let number = (at / want) as u8;
        // A register of a pair and half of a register are operands; bytes are moved out.
        let part = if want >= 4 || want == 2 && made == Ty::F16 {
            self.share(Op::Part(number), made, Args::from_slice(&[whole]))
        } else {
            let from = self.graph.ty(whole);
            let word = if bytes > 4 {
                self.piece(whole, bytes, at & !3, &Type::UINT)
            } else if from == Ty::I32 {
                whole
            } else {
                self.as_bits(whole, Ty::I32)
            };
            let by = self.constant(i64::from(8 * (at % 4)), Ty::I32);
            let moved = self.binary(Op::Shr(false), Ty::I32, word, by);
            let signed = matches!(ty, Type::Int { signed: true, .. });
            let narrow = self.unary(Op::Narrow(8 * want as u8, signed), Ty::I32, moved);
            self.as_bits(narrow, made)
        };
        self.pieces.insert(part, (whole, at));
        part
    }

    /// What registers hold, as another type.
    pub(super) fn same_bits(&mut self, value: &Value, from: &Type, to: &Type) -> Value {
        let cells = scalars(from);
        if cells.len() != value.len() {
            return self.nothing(to);
        }
        let parts = scalars(to);
        let parts = parts.iter().map(|(at, part)| {
            let end = at + part.size() as u32;
            let mut around = cells.iter().zip(value);
            let around =
                around.find(|((start, cell), _)| start <= at && end <= start + cell.size() as u32);
            if let Some(((start, cell), whole)) = around {
                return self.piece(*whole, cell.size() as u32, at - start, part);
            }
            let within = |(start, _): &(u32, &Type)| (*at..end).contains(start);
            let beside = cells.iter().zip(value).filter(|(cell, _)| within(cell));
            let (beside, values): (Vec<_>, Value) = beside.map(|(cell, v)| (*cell, *v)).unzip();
            self.across(&beside, &values, part)
        });
        parts.collect()
    }

    /// Neighbouring scalars of a variable as one value: the widest parts that all of them are made of.
    pub(super) fn across(&mut self, cells: &[(u32, &Type)], values: &Value, ty: &Type) -> V {
        let least = cells.iter().map(|(_, cell)| cell.size() as u32).min();
        let least = least.filter(|least| least.is_power_of_two() && *least <= 8);
        let start = cells.first().map_or(0, |(at, _)| *at);
        let mut end = start;
        let mut parts = Value::new();
        for ((at, cell), value) in cells.iter().zip(values) {
            let size = cell.size() as u32;
            let fits = least.is_some_and(|least| size.is_multiple_of(least));
            if *at != end || !fits {
                return self.undefined(machine(ty));
            }
            end = at + size;
            let least = least.unwrap_or(size);
            if size == least {
                parts.push(*value);
                continue;
            }
            let piece = Type::Int {
                bits: (8 * least) as u8,
                signed: false,
            };
            for of in (0..size).step_by(least as usize) {
                parts.push(self.piece(*value, size, of, &piece));
            }
        }
        if u64::from(end - start) != ty.size() {
            return self.undefined(machine(ty));
        }
        self.joined(&parts, machine(ty))
    }

    /// Neighbouring parts of one size as one value.
    pub(super) fn joined(&mut self, parts: &Value, made: Ty) -> V {
        let Some(&first) = parts.first() else {
            return self.undefined(made);
        };
        if parts.len() == 1 {
            return self.as_bits(first, made);
        }
        if parts.iter().all(|v| self.graph.op(*v) == Op::Undefined) {
            return self.undefined(made);
        }
        let bytes = made.words().max(1) * 4 / parts.len() as u32;
        // Parts that were one value are it again.
        if let Some(&(whole, 0)) = self.pieces.get(&first)
            && self.graph.ty(whole).words() == made.words()
            && (1u32..)
                .zip(&parts[1..])
                .all(|(number, v)| self.pieces.get(v) == Some(&(whole, number * bytes)))
        {
            return self.as_bits(whole, made);
        }
        self.share(Op::Join, made, Args::from_slice(parts))
    }

    /// The register that a number is the lower or the upper half of.
    fn half(&self, v: V) -> Option<(V, u8)> {
        let inst = self.graph.inst(v);
        let whole = (inst.op == Op::Narrow(16, false)).then(|| inst.args[0])?;
        let shifted = self.graph.inst(whole);
        match shifted.op {
            Op::Shr(_) if self.graph.int(shifted.args[1]) == Some(16) => Some((shifted.args[0], 1)),
            _ => Some((whole, 0)),
        }
    }

    fn as_bits(&mut self, v: V, made: Ty) -> V {
        if self.graph.ty(v) == made || made == Ty::None || self.graph.ty(v) == Ty::Pred {
            return v;
        }
        if let Op::Bits = self.graph.op(v) {
            return self.as_bits(self.graph.inst(v).args[0], made);
        }
        if let (Ty::F16, Some((whole, number))) = (made, self.half(v)) {
            return self.share(Op::Part(number), made, Args::from_slice(&[whole]));
        }
        self.unary(Op::Bits, made, v)
    }
}
