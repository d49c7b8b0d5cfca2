//! Integers and pointers that a thread keeps in memory of its own: in arrays, and in structures and vectors that stay whole.
//!
//! In: stores of integers into such memory, and loads. Out: what a load gives, where one store wrote just that element: at the
//! same constant subscript, or at a sum of loop counters that reaches it in one way; or where it is a byte of one. What a loop
//! writes is forgotten where the loop begins.
//!
//! A structure is a value of which pieces are known, until something asks for its address. From then on (`mirrored`) its pieces are
//! elements, as those of an array are, and every store into the variable is one into them.

use std::ops::ControlFlow;
use std::sync::Arc;

use warplens_ir::walk::{self, Visitor};
use warplens_ir::{AddressSpace, Expr, ExprKind, Function, Opaque, Stmt, Storage, Type, VarId};
use warplens_symbolic::{BinaryOp, Id, Symbol, SymbolKind};

use crate::executor::Executor;
use crate::facts::Space;
use crate::value::{ArrayId, Held, Kind, Piece, SOMEWHERE, Stored, Value, Variation, is_memory};

/// Stores into one array that are kept.
const MOST_STORES: usize = 256;

impl Executor<'_> {
    /// A store into a thread's own array.
    pub(crate) fn keep_element(&mut self, array: ArrayId, offset: Id, ty: &Type, value: &Value) {
        if !self.is_own(array) {
            return;
        }
        match &value.parts {
            Some(parts) if is_aggregate(ty) && is_whole(ty, parts) => {
                let parts = parts.clone();
                for piece in parts.iter() {
                    self.note_held(array, offset, &piece.value);
                }
            }
            _ => self.note_held(array, offset, value),
        }
        if self.is_only_looked_at() {
            self.drop_pieces_behind(array);
            return;
        }
        let size = ty.size() as i64;
        let arena = &self.arena;
        let start = arena.as_const(offset);
        let stores = self.elements.entry(array).or_default();
        // What shares a byte with it is overwritten, in part or as a whole.
        stores.retain(|stored| match (start, arena.as_const(stored.offset)) {
            (Some(start), Some(other)) => {
                other.saturating_add(stored.ty.size() as i64) <= start
                    || start.saturating_add(size) <= other
            }
            _ => false,
        });
        let keep = |executor: &mut Self, offset: Id, ty: &Type, value: &Value| {
            let stores = executor.elements.entry(array).or_default();
            if is_followed(ty) && !matches!(value.kind, Kind::Data) && stores.len() < MOST_STORES {
                stores.push(Stored {
                    offset,
                    ty: ty.clone(),
                    value: Value {
                        loads: Vec::new(),
                        ..value.clone()
                    },
                    context: executor.context,
                });
            }
        };
        keep(self, offset, ty, value);
        for piece in value.parts.iter().flat_map(|parts| parts.iter()) {
            let bytes = self.arena.constant(piece.at as i64);
            let offset = self.arena.add(offset, bytes);
            keep(self, offset, &piece.ty, &piece.value);
        }
    }

    /// Notes what a thread's own array holds, whichever element it is.
    fn note_held(&mut self, array: ArrayId, offset: Id, value: &Value) {
        let by_data = self.depends_on_data(offset);
        let held = match value.kind {
            Kind::Data => Held::Data,
            Kind::Int(id) | Kind::Pointer(_, id) if by_data || self.depends_on_data(id) => {
                Held::Data
            }
            Kind::Int(_) => Held::Integers,
            Kind::Pointer(to, _) => Held::Pointers(to),
        };
        self.note_kind(array, held);
    }

    fn note_kind(&mut self, array: ArrayId, held: Held) {
        let before = self.held.entry(array).or_insert(held);
        *before = match (*before, held) {
            (Held::Data, _) | (_, Held::Data) => Held::Data,
            (before, held) if before == held => held,
            _ => Held::Several,
        };
    }

    /// What an element of a thread's own array is of which no more is known than what the array holds: no data in memory.
    pub(crate) fn some_element(&mut self, array: ArrayId, ty: &Type) -> Option<Value> {
        let held = self.held.get(&array).filter(|_| self.is_own(array))?;
        match (ty, *held) {
            (Type::Int { .. }, Held::Integers) => {
                Some(Value::int(self.unknown(false, Variation::ANY)))
            }
            (Type::Int { .. } | Type::Pointer(..), Held::Pointers(to)) => {
                let offset = self.unknown(false, Variation::ANY);
                Some(Value::pointer(to, offset))
            }
            _ => None,
        }
    }

    /// A list in braces that becomes a value of that type.
    pub(crate) fn list(&mut self, parts: &[Expr], ty: &Type) -> Value {
        self.has_pieces = true;
        let mut given = Vec::with_capacity(parts.len());
        let mut loads = Vec::new();
        let mut variation = Variation::NONE;
        for (at, part) in parts.iter().enumerate() {
            let inner = match &part.kind {
                ExprKind::List(_) => nth(ty, at),
                _ => None,
            };
            let mut value = match (&part.kind, inner) {
                (ExprKind::List(parts), Some(inner)) if is_aggregate(&inner) => {
                    let value = self.list(parts, &inner);
                    given.push((inner, value.clone()));
                    value
                }
                _ => {
                    let value = self.eval(part);
                    given.push((part.ty.clone(), value.clone()));
                    value
                }
            };
            loads.append(&mut value.loads);
            variation = variation | self.variation(&value);
        }
        Value {
            loads,
            parts: self.laid_out(ty, &given),
            ..Value::data(variation)
        }
    }

    /// The pieces of an aggregate that is initialised by these values: those that are left out are zero.
    fn laid_out(&mut self, ty: &Type, given: &[(Type, Value)]) -> Option<Arc<[Piece]>> {
        if let [(of, value)] = given
            && of == ty
        {
            return value.parts.clone();
        }
        let mut scalars = Vec::new();
        scalars_of(ty, 0, &mut scalars)?;
        let mut pieces = Vec::with_capacity(scalars.len());
        if given.iter().all(|(ty, _)| !is_aggregate(ty)) {
            // One behind the other, whatever braces there are around them.
            let mut given = given.iter();
            for (at, ty) in scalars {
                match given.next() {
                    Some((from, value)) => self.piece(at, (from, value), &ty, &mut pieces),
                    None => self.zero(at, &ty, &mut pieces),
                }
            }
            return Some(pieces.into());
        }
        for (at, (from, value)) in given.iter().enumerate() {
            let (start, field) = place_of(ty, at)?;
            if is_aggregate(&field) {
                if *from != field {
                    return None;
                }
                let inner = value.parts.iter().flat_map(|parts| parts.iter());
                pieces.extend(inner.map(|piece| Piece {
                    at: piece.at + start,
                    ..piece.clone()
                }));
            } else {
                self.piece(start, (from, value), &field, &mut pieces);
            }
        }
        let end = given.len().checked_sub(1).and_then(|at| place_of(ty, at));
        let end = end.map_or(0, |(start, field)| start + field.size());
        for (at, ty) in scalars.iter().filter(|(at, _)| *at >= end) {
            self.zero(*at, ty, &mut pieces);
        }
        Some(pieces.into())
    }

    fn piece(&mut self, at: u64, (from, value): (&Type, &Value), ty: &Type, into: &mut Vec<Piece>) {
        let kind = match (value.kind, ty) {
            (Kind::Int(id), Type::Int { .. }) if from.is_int() => {
                Kind::Int(self.convert(from, ty, id))
            }
            (Kind::Pointer(..), Type::Pointer(..)) => value.kind,
            _ => return,
        };
        let value = Value {
            kind,
            loads: Vec::new(),
            parts: None,
            ..value.clone()
        };
        let ty = ty.clone();
        into.push(Piece { at, ty, value });
    }

    fn zero(&mut self, at: u64, ty: &Type, into: &mut Vec<Piece>) {
        if ty.is_int() {
            let value = Value::int(self.arena.constant(0));
            let ty = ty.clone();
            into.push(Piece { at, ty, value });
        }
    }

    /// What is known of the bytes of a thread's own memory that are read as a value of that type.
    pub(crate) fn pieces_at(
        &mut self,
        array: ArrayId,
        offset: Id,
        ty: &Type,
    ) -> Option<Arc<[Piece]>> {
        if self.dry > self.tracked || self.elements.get(&array).is_none_or(Vec::is_empty) {
            return None;
        }
        let mut scalars = Vec::new();
        match ty {
            // The bits of a number.
            Type::Float { .. } => {
                let (bits, signed) = (u8::try_from(ty.size() * 8).ok()?, true);
                scalars.push((0, Type::Int { bits, signed }));
            }
            _ => scalars_of(ty, 0, &mut scalars)?,
        }
        let mut pieces = Vec::new();
        for (at, ty) in scalars {
            let bytes = self.arena.constant(at as i64);
            let place = self.arena.add(offset, bytes);
            if let Some(value) = self.element(array, place, &ty) {
                pieces.push(Piece { at, ty, value });
            }
        }
        (!pieces.is_empty()).then(|| pieces.into())
    }

    /// The pieces of a variable that is no array, of its own bytes from there on.
    pub(crate) fn pieces_of(&mut self, id: VarId, at: u64, ty: &Type) -> Option<Arc<[Piece]>> {
        if at == SOMEWHERE {
            return None;
        }
        if self.mirrored.contains(&id) {
            let array = self.array_of(id);
            let offset = self.arena.constant(at as i64);
            return self.pieces_at(array, offset, ty);
        }
        let parts = self.env.get(id)?.parts.clone()?;
        if at == 0 && ty.size() == self.kernel.var(id).ty.size() {
            return Some(parts);
        }
        let within = parts.iter().filter(|piece| {
            at <= piece.at && piece.at + piece.ty.size() <= at.saturating_add(ty.size())
        });
        let within: Vec<Piece> = within
            .map(|piece| Piece {
                at: piece.at - at,
                ..piece.clone()
            })
            .collect();
        (!within.is_empty()).then(|| within.into())
    }

    /// The bits of a value called something else: `__float_as_int`, `bit_cast`.
    pub(crate) fn same_bits(&mut self, value: Value, from: &Type, to: &Type) -> Value {
        self.has_pieces = true;
        let mut pieces = Vec::new();
        self.piece(0, (from, &value), from, &mut pieces);
        let pieces = if pieces.is_empty() {
            value.parts.clone()
        } else {
            Some(pieces.into())
        };
        let pieces = pieces.filter(|_| from.size() == to.size());
        let known = pieces.as_ref();
        let known = known.and_then(|pieces| self.scalar_of(pieces, to));
        let variation = self.variation(&value);
        match known {
            Some(known) => Value {
                loads: value.loads,
                ..known
            },
            None if to.is_int() => {
                let id = self.unknown(true, variation);
                Value {
                    loads: value.loads,
                    ..Value::int(id)
                }
            }
            None => Value {
                loads: value.loads,
                parts: pieces,
                ..Value::data(variation)
            },
        }
    }

    /// A structure's field that became a variable of its own is given the scalar of that number of what was read as a whole.
    pub(crate) fn take_apart(
        &mut self,
        pieces: Option<&[Piece]>,
        whole: &Expr,
        field: &Expr,
        number: usize,
    ) {
        let (Some(pieces), ExprKind::Assign(None, target, value)) = (pieces, &field.kind) else {
            return;
        };
        let loaded =
            matches!(&value.kind, ExprKind::Opaque(Opaque::Loaded, parts) if parts.is_empty());
        let (ExprKind::Var(id), true) = (&target.kind, loaded) else {
            return;
        };
        let mut scalars = Vec::new();
        if scalars_of(&whole.ty, 0, &mut scalars).is_none() {
            return;
        }
        let known = scalars.get(number).and_then(|(at, _)| {
            let piece = pieces.iter().find(|piece| piece.at == *at)?;
            let first = Piece {
                at: 0,
                ..piece.clone()
            };
            self.scalar_of(&[first], &target.ty)
        });
        if let Some(known) = known {
            let loads = self
                .env
                .get(*id)
                .map_or_else(Vec::new, |old| old.loads.clone());
            self.env.set(*id, Some(Value { loads, ..known }));
        }
    }

    /// The pieces of one of two values, where both have the same ones: integers.
    pub(crate) fn chosen_pieces(
        &mut self,
        condition: Id,
        a: &Value,
        b: &Value,
    ) -> Option<Arc<[Piece]>> {
        let (a, b) = (a.parts.as_ref()?, b.parts.as_ref()?);
        let mut pieces = Vec::with_capacity(a.len());
        for piece in a.iter() {
            let same = |other: &&Piece| other.at == piece.at && other.ty == piece.ty;
            let other = b.iter().find(same);
            if let (Kind::Int(x), Some(Kind::Int(y))) =
                (piece.value.kind, other.map(|other| other.value.kind))
            {
                let value = Value::int(self.arena.select(condition, x, y));
                pieces.push(Piece {
                    value,
                    ..piece.clone()
                });
            }
        }
        (!pieces.is_empty()).then(|| pieces.into())
    }

    /// The scalar among pieces that begins them and is of that type.
    pub(crate) fn scalar_of(&mut self, pieces: &[Piece], ty: &Type) -> Option<Value> {
        let same = |piece: &&Piece| piece.at == 0 && piece.ty.size() == ty.size();
        let piece = pieces.iter().find(same)?;
        match (piece.value.kind, ty) {
            (Kind::Int(id), Type::Int { .. }) => {
                let id = self.convert(&piece.ty, ty, id);
                Some(Value {
                    kind: Kind::Int(id),
                    ..piece.value.clone()
                })
            }
            (Kind::Pointer(..), Type::Pointer(..)) => Some(piece.value.clone()),
            _ => None,
        }
    }

    /// From now on what is known of a variable that is no array is kept as elements: its address is asked for.
    pub(crate) fn mirror(&mut self, id: VarId, array: ArrayId) {
        let var = self.kernel.var(id);
        if self.is_only_looked_at()
            || var.storage != Storage::Local
            || is_memory(var)
            || !self.mirrored.insert(id)
        {
            return;
        }
        if let Some(value) = self.env.get(id).cloned() {
            let zero = self.arena.constant(0);
            let ty = self.kernel.var(id).ty.clone();
            self.keep_element(array, zero, &ty, &value);
        }
    }

    /// What is known of the bytes of a variable that is no array behind a store into a part of it.
    pub(crate) fn with_part(
        &mut self,
        id: VarId,
        at: u64,
        ty: &Type,
        value: &Value,
    ) -> Option<Arc<[Piece]>> {
        if at == SOMEWHERE {
            let array = self.mirrored.contains(&id).then(|| self.array_of(id));
            array.and_then(|array| self.elements.remove(&array));
            return None;
        }
        self.has_pieces = true;
        self.keep_part(id, at, ty, value);
        let before = self.env.get(id).and_then(|whole| whole.parts.clone());
        let bytes = at..at + ty.size();
        let others = before.iter().flat_map(|parts| parts.iter());
        let others = others
            .filter(|piece| piece.at + piece.ty.size() <= bytes.start || bytes.end <= piece.at);
        let mut pieces: Vec<Piece> = others.cloned().collect();
        let inner = value.parts.iter().flat_map(|parts| parts.iter());
        pieces.extend(inner.map(|piece| Piece {
            at: piece.at + at,
            ..piece.clone()
        }));
        self.piece(at, (ty, value), ty, &mut pieces);
        (!pieces.is_empty()).then(|| pieces.into())
    }

    /// A store into a variable that is no array, or into a part of one.
    pub(crate) fn keep_part(&mut self, id: VarId, at: u64, ty: &Type, value: &Value) {
        if self.mirrored.contains(&id) {
            let array = self.array_of(id);
            let offset = self.arena.constant(at as i64);
            self.keep_element(array, offset, ty, value);
        }
    }

    /// The same while what is stored is not kept: of a variable that is not mirrored its pieces are not known any more.
    fn drop_pieces_behind(&mut self, array: ArrayId) {
        let behind = self.arrays_by_var.iter();
        let behind = behind.filter(|(_, known)| **known == array);
        let behind: Vec<VarId> = behind.map(|(id, _)| *id).collect();
        for id in behind {
            self.drop_pieces(id);
        }
    }

    fn drop_pieces(&mut self, id: VarId) {
        if let Some(value) = self.env.get(id)
            && value.parts.is_some()
        {
            let value = Value {
                parts: None,
                ..value.clone()
            };
            self.env.set(id, Some(value));
        }
    }

    /// Something that is not followed may write to what these values point to.
    pub(crate) fn forget_pointees<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) {
        for value in values {
            if let Kind::Pointer(array, _) = value.kind
                && self.is_own(array)
            {
                self.elements.remove(&array);
                self.note_kind(array, Held::Data);
            }
        }
    }

    /// What a load from a thread's own array gives, where it is known.
    pub(crate) fn element(&mut self, array: ArrayId, offset: Id, ty: &Type) -> Option<Value> {
        if self.dry > self.tracked || !is_followed(ty) || !self.is_own(array) {
            return None;
        }
        let stores = self.elements.get(&array)?;
        let found = match stores.as_slice() {
            [only] => Some(only.clone()),
            several => several
                .iter()
                .find(|stored| stored.offset == offset)
                .cloned(),
        };
        let Some(found) = found.filter(|found| found.ty.size() == ty.size()) else {
            return self.within_element(array, offset, ty);
        };
        let places = self.places(&found, offset)?;
        // The store happened whenever the load does.
        let (before, now) = (&self.contexts[found.context], &self.contexts[self.context]);
        let guarded = before
            .guards
            .iter()
            .all(|(guard, _)| now.guards.iter().any(|(known, _)| known == guard));
        let within = before.counters.iter().all(|counter| {
            now.counters.contains(counter)
                || places.iter().any(|(of, _)| of == counter)
                || matches!(
                    self.arena.symbol_kind(*counter),
                    SymbolKind::Counter { extent: 1 }
                )
        });
        if !guarded || !within {
            return None;
        }
        let (Kind::Int(mut id) | Kind::Pointer(_, mut id)) = found.value.kind else {
            return None;
        };
        for (counter, at) in places {
            id = self.arena.substitute(id, counter, at);
        }
        let now = &self.contexts[self.context];
        let stale = self.arena.symbols_of(id).any(|symbol| {
            matches!(self.arena.symbol_kind(symbol), SymbolKind::Counter { .. })
                && !now.counters.contains(&symbol)
        });
        let kind = match found.value.kind {
            Kind::Pointer(array, _) => Kind::Pointer(array, id),
            _ => Kind::Int(self.convert(&found.ty, ty, id)),
        };
        (!stale).then_some(Value {
            kind,
            ..found.value
        })
    }

    /// Bytes of one integer.
    fn within_element(&mut self, array: ArrayId, offset: Id, ty: &Type) -> Option<Value> {
        let at = self.arena.as_const(offset)?;
        let stores = self.elements.get(&array)?;
        let found = stores.iter().find(|stored| {
            let start = self.arena.as_const(stored.offset);
            let size = stored.ty.size() as i64;
            size <= 4
                && start.is_some_and(|start| start <= at && at + ty.size() as i64 <= start + size)
        })?;
        let (whole, start) = (found.ty.clone(), self.arena.as_const(found.offset)?);
        let (Type::Int { bits, .. }, Type::Int { .. }, place) = (&whole, ty, found.offset) else {
            return None;
        };
        if whole.size() == ty.size() {
            return None;
        }
        let value = self.element(array, place, &whole)?;
        let Kind::Int(id) = value.kind else {
            return None;
        };
        let unsigned = Type::Int {
            bits: *bits,
            signed: false,
        };
        let id = self.convert(&whole, &unsigned, id);
        let shift = self.arena.constant(8 * (at - start));
        let id = self.arena.binary(BinaryOp::Shr, id, shift);
        let id = self.convert(&unsigned, ty, id);
        Some(Value {
            kind: Kind::Int(id),
            ..value
        })
    }

    /// What the counters in a store's subscript were when it wrote the element at `offset`.
    fn places(&mut self, stored: &Stored, offset: Id) -> Option<Vec<(Symbol, Id)>> {
        if stored.offset == offset && self.arena.as_const(offset).is_some() {
            return Some(Vec::new());
        }
        let (constant, terms) = self.arena.terms(stored.offset);
        let (at, mut wanted) = self.arena.terms(offset);
        let mut counters = Vec::with_capacity(terms.len());
        for (term, factor) in terms {
            let symbol = self.arena.as_symbol(term)?;
            let SymbolKind::Counter { extent } = self.arena.symbol_kind(symbol) else {
                return None;
            };
            counters.push((symbol, factor, extent));
        }
        counters.sort_by_key(|(_, factor, _)| std::cmp::Reverse(*factor));
        // Digits of a number: each element is reached in one way.
        let apart = |pair: &[(Symbol, i64, i64)]| pair[0].1 >= pair[1].1.saturating_mul(pair[1].2);
        let last = counters.last().map_or(0, |(_, factor, _)| *factor);
        if !counters.windows(2).all(apart) || last < stored.ty.size() as i64 {
            return None;
        }
        let mut left = at.checked_sub(constant)?;
        let mut found = Vec::with_capacity(counters.len());
        for (symbol, factor, extent) in counters {
            let mut digit = self.arena.constant(left.div_euclid(factor));
            left = left.rem_euclid(factor);
            wanted.retain(|&(term, own)| {
                let fits = own % factor == 0;
                if fits {
                    let scaled = self.arena.scale(term, own / factor);
                    digit = self.arena.add(digit, scaled);
                }
                !fits
            });
            let range = self.arena.range(digit);
            if !range.within(0, extent - 1) {
                return None;
            }
            found.push((symbol, digit));
        }
        (left == 0 && wanted.is_empty()).then_some(found)
    }

    /// The scalar that a variable of which the address was taken holds.
    pub(crate) fn mirrored_scalar(&mut self, id: VarId) -> Option<Value> {
        if !self.mirrored.contains(&id) {
            return None;
        }
        let array = self.array_of(id);
        let zero = self.arena.constant(0);
        let ty = self.kernel.var(id).ty.clone();
        self.element(array, zero, &ty)
    }

    fn is_own(&self, array: ArrayId) -> bool {
        self.arrays[array.0 as usize].space == Space::Local
    }

    /// Forgets what these statements may write.
    pub(crate) fn forget_elements(&mut self, statements: &[Stmt]) {
        if !self.has_pieces && (self.dry > 0 || self.elements.is_empty()) {
            return;
        }
        let mut written = Written::default();
        let _ = walk::walk_block(&mut written, statements);
        let mut all = written.anything;
        for id in written.through {
            if let Some(value) = self.env.get(id) {
                match value.kind {
                    Kind::Pointer(array, _) if self.dry == 0 => {
                        self.elements.remove(&array);
                    }
                    Kind::Pointer(array, _) => self.drop_pieces_behind(array),
                    _ => all = true,
                }
            }
            written.own.push(id);
        }
        for id in written.own {
            self.drop_pieces(id);
            if let Some(array) = self.arrays_by_var.get(&id)
                && self.dry == 0
            {
                self.elements.remove(array);
            }
        }
        if all && self.dry == 0 {
            self.elements.clear();
        }
    }
}

/// The scalars of an aggregate by their offset; nothing where there are too many.
fn scalars_of(ty: &Type, at: u64, into: &mut Vec<(u64, Type)>) -> Option<()> {
    match ty {
        Type::Array(inner, Some(_)) | Type::Vector(inner, _) => {
            let size = inner.size().max(1);
            let count = match ty {
                Type::Vector(_, lanes) => u64::from(*lanes),
                _ => ty.size() / size,
            };
            if count > MOST_STORES as u64 {
                return None;
            }
            (0..count).try_for_each(|which| scalars_of(inner, at + which * size, into))
        }
        Type::Struct(structure) if !structure.unread => {
            let mut fields = structure.fields.iter();
            fields.try_for_each(|field| scalars_of(&field.ty, at + field.offset, into))
        }
        Type::Int { .. } | Type::Float { .. } | Type::Pointer(..) => {
            into.push((at, ty.clone()));
            (into.len() <= MOST_STORES).then_some(())
        }
        _ => None,
    }
}

/// What a list initialises with its part of that number: where it begins, and its type.
fn place_of(ty: &Type, number: usize) -> Option<(u64, Type)> {
    match ty {
        Type::Array(inner, _) | Type::Vector(inner, _) => {
            Some((number as u64 * inner.size(), (**inner).clone()))
        }
        Type::Struct(structure) => {
            let field = structure.fields.get(number)?;
            // Of a union the first alone.
            let overlaps = number > 0 && field.offset == 0;
            (!overlaps).then(|| (field.offset, field.ty.clone()))
        }
        _ => None,
    }
}

fn nth(ty: &Type, number: usize) -> Option<Type> {
    place_of(ty, number).map(|(_, ty)| ty)
}

/// True where all scalars of an aggregate are known.
fn is_whole(ty: &Type, pieces: &[Piece]) -> bool {
    let mut scalars = Vec::new();
    scalars_of(ty, 0, &mut scalars).is_some() && scalars.len() == pieces.len()
}

pub(crate) fn is_aggregate(ty: &Type) -> bool {
    matches!(ty, Type::Array(..) | Type::Vector(..) | Type::Struct(_))
}

/// True for what is followed as an element: an integer, an address.
fn is_followed(ty: &Type) -> bool {
    matches!(ty, Type::Int { .. } | Type::Pointer(..))
}

/// Variables whose elements are written, or what they point to.
#[derive(Default)]
struct Written {
    own: Vec<VarId>,
    through: Vec<VarId>,
    /// A function that is kept once may write anything.
    anything: bool,
}

impl Written {
    /// What a place that is written may be an element of.
    fn place(&mut self, target: &Expr) {
        let pointer = match &target.kind {
            ExprKind::Deref(pointer) => Some(&**pointer),
            ExprKind::Index(base, _) if matches!(base.ty, Type::Pointer(..)) => Some(&**base),
            _ => None,
        };
        match pointer {
            Some(pointer) => self.pointer(pointer),
            None => self.own.extend(target.base_variable()),
        }
    }

    fn pointer(&mut self, pointer: &Expr) {
        let elsewhere = matches!(
            pointer.ty,
            Type::Pointer(_, AddressSpace::Shared | AddressSpace::Constant)
        );
        if !elsewhere {
            self.through.extend(pointer.base_variable());
        }
    }
}

impl Visitor<'_> for Written {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        match &expression.kind {
            ExprKind::Assign(_, target, _)
            | ExprKind::Step(_, _, target)
            | ExprKind::AddressOf(target) => self.place(target),
            ExprKind::Call(function, arguments) => {
                let reads = matches!(
                    function.plain().0,
                    Function::Load
                        | Function::Math(..)
                        | Function::Rows { store: false, .. }
                        | Function::WarpExchange(..)
                );
                let pointers = arguments
                    .iter()
                    .filter(|argument| matches!(argument.ty, Type::Pointer(..) | Type::Array(..)));
                if !reads {
                    pointers.for_each(|pointer| self.pointer(pointer));
                }
            }
            ExprKind::Apply(..) => self.anything = true,
            _ => {}
        }
        walk::walk_expression(self, expression)
    }
}
