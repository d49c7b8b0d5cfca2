//! Places: variables that are values, and memory.

use smallvec::{SmallVec, smallvec};
use warplens_ir::{AddressSpace, Expr, ExprKind, Storage, Type, VarId};

use super::place::Place;
use super::views::Cell;
use super::{Args, Builder, Value, is_scalar, machine, scalars};
use crate::graph::{Op, Space, Ty, V};

impl Builder<'_> {
    pub(super) fn place(&mut self, expression: &Expr) -> Place {
        match &expression.kind {
            ExprKind::Var(id) => self.variable(*id),
            ExprKind::Index(base, index) if matches!(base.ty, Type::Vector(..)) => {
                let size = expression.ty.size().max(1) as u32;
                let at = self.scalar(index);
                match (self.place(base), self.graph.int(at)) {
                    (Place::Own(id, offset), Some(lane)) => {
                        Place::Own(id, offset.wrapping_add((lane as u32).wrapping_mul(size)))
                    }
                    (Place::Own(id, offset), None) => self.one_of(id, offset, &base.ty, at, size),
                    (Place::Picked(pick), Some(lane)) => Place::Picked(pick.at(lane, size)),
                    (Place::Picked(pick), None) => self.demote(pick.id),
                    (Place::Memory(pointer, space), _) => {
                        self.align(pointer, &base.ty);
                        Place::Memory(self.moved(pointer, at, size, true), space)
                    }
                    (Place::Lost, _) => Place::Lost,
                }
            }
            ExprKind::Index(base, index) => {
                let from = match &base.ty {
                    Type::Array(..) => self.place(base),
                    _ => self.pointed_at(base),
                };
                let size = expression.ty.size().max(1) as u32;
                let at = self.subscript(index);
                let signed = matches!(
                    index.ty,
                    Type::Int { signed: true, .. } | Type::Int { bits: 64, .. }
                ) || matches!(index.ty, Type::Int { bits, .. } if bits < 32);
                match from {
                    Place::Own(id, offset) => match self.graph.int(at) {
                        Some(index) => {
                            Place::Own(id, offset.wrapping_add((index as u32).wrapping_mul(size)))
                        }
                        None => self.one_of(id, offset, &base.ty, at, size),
                    },
                    Place::Picked(pick) => match self.graph.int(at) {
                        Some(index) => Place::Picked(pick.at(index, size)),
                        None => self.demote(pick.id),
                    },
                    Place::Memory(pointer, space) => {
                        Place::Memory(self.subscripted(pointer, at, size, signed), space)
                    }
                    Place::Lost => Place::Lost,
                }
            }
            ExprKind::Deref(pointer) => self.pointed_at(pointer),
            ExprKind::Field(base, offset) => match self.place(base) {
                Place::Own(id, at) => Place::Own(id, at + *offset as u32),
                Place::Picked(pick) => Place::Picked(pick.at(*offset as i64, 1)),
                Place::Memory(pointer, space) => {
                    self.align(pointer, &base.ty);
                    Place::Memory(self.offset(pointer, *offset as i64), space)
                }
                Place::Lost => Place::Lost,
            },
            ExprKind::Cast(_, inner) => self.place(inner),
            ExprKind::List(parts) if parts.len() == 1 => self.place(&parts[0]),
            // What must be executed before the place is there.
            ExprKind::List(parts)
                if let [first, place] = &parts[..]
                    && matches!(first.kind, ExprKind::Inline(_, None)) =>
            {
                self.value(first);
                self.place(place)
            }
            ExprKind::Inline(..) if matches!(expression.ty, Type::Pointer(..)) => {
                self.pointed_at(expression)
            }
            _ => {
                self.value(expression);
                Place::Lost
            }
        }
    }

    /// Remembers that a vector lies there.
    fn align(&mut self, pointer: V, ty: &Type) {
        let bytes = ty.align().min(16) as u32;
        let (base, offset) = self.base(pointer);
        if bytes > 4 && offset % i64::from(bytes) == 0 {
            self.graph.aligned.insert(base, bytes);
        }
    }

    fn variable(&mut self, id: VarId) -> Place {
        if self.is_values(id) {
            return Place::Own(id, 0);
        }
        let var = self.kernel.var(id);
        let (space, ty) = match var.storage {
            Storage::Shared | Storage::DynamicShared => (Space::Shared, Ty::I32),
            Storage::Constant => (Space::Constant, Ty::I64),
            Storage::Global => (Space::Global, Ty::I64),
            // The launch puts arguments into constant memory, which takes a subscript.
            Storage::Param(_) if crate::is_only_read(self.kernel, id) => (Space::Constant, Ty::I64),
            Storage::Local | Storage::Param(_) => (Space::Local, Ty::I32),
        };
        // A pointer parameter into shared memory is the array itself.
        Place::Memory(self.leaf(Op::Base(id), ty), space)
    }

    /// An array that is subscripted with what the compiler does not know lies in memory.
    pub(super) fn demote(&mut self, id: VarId) -> Place {
        self.demoted.insert(id);
        Place::Lost
    }

    pub(super) fn pointed_at(&mut self, pointer: &Expr) -> Place {
        if let ExprKind::AddressOf(inner) = &pointer.kind {
            return self.place(inner);
        }
        if let (ExprKind::Cast(_, inner), Type::Pointer(..)) = (&pointer.kind, &pointer.ty)
            && matches!(inner.ty, Type::Pointer(..) | Type::Array(..))
        {
            return self.pointed_at(inner);
        }
        if matches!(pointer.ty, Type::Array(..)) {
            return self.place(pointer);
        }
        let value = self.scalar(pointer);
        // A pointer to an own variable.
        if let Op::Base(id) = self.graph.op(value)
            && self.is_values(id)
        {
            return Place::Own(id, 0);
        }
        if let Op::Offset(bytes) = self.graph.op(value)
            && let Op::Base(id) = self.graph.op(self.graph.inst(value).args[0])
            && self.is_values(id)
        {
            return Place::Own(id, bytes as u32);
        }
        let space = self.space(value, &pointer.ty);
        if let Space::Local = space
            && let Some(id) = self.root(value)
            && self.is_values(id)
        {
            return self.demote(id);
        }
        Place::Memory(value, space)
    }

    /// The array that a pointer goes into, where that is plain.
    pub(super) fn root(&self, mut v: V) -> Option<VarId> {
        loop {
            let inst = self.graph.inst(v);
            match inst.op {
                Op::Base(id) | Op::Param(id, _) => return Some(id),
                Op::Offset(_) | Op::Address(..) => v = inst.args[0],
                Op::Extend(_) => v = inst.args[0],
                Op::Phi => {
                    let first = *inst.args.first()?;
                    if first >= v {
                        return None;
                    }
                    v = first;
                }
                Op::Select => v = inst.args[1],
                _ => return None,
            }
        }
    }

    fn space(&self, v: V, ty: &Type) -> Space {
        if let Some(id) = self.root(v) {
            return match self.kernel.var(id).storage {
                Storage::Shared | Storage::DynamicShared => Space::Shared,
                Storage::Constant => Space::Constant,
                Storage::Local => Space::Local,
                Storage::Global => Space::Global,
                Storage::Param(_) => match ty {
                    Type::Pointer(_, AddressSpace::Shared) => Space::Shared,
                    Type::Pointer(_, AddressSpace::Constant) => Space::Constant,
                    _ => Space::Global,
                },
            };
        }
        match ty {
            Type::Pointer(_, AddressSpace::Shared) => Space::Shared,
            Type::Pointer(_, AddressSpace::Constant) => Space::Constant,
            Type::Pointer(_, AddressSpace::Private) => Space::Local,
            _ => Space::Global,
        }
    }

    /// True where nothing that the kernel writes can lie behind the pointer.
    fn is_read_only(&self, pointer: V) -> bool {
        let Some(id) = self.root(pointer) else {
            return false;
        };
        let var = self.kernel.var(id);
        var.storage == Storage::Constant || var.restrict && !self.written.contains(&id)
    }

    pub(super) fn read(&mut self, place: Place, ty: &Type) -> Value {
        match place {
            Place::Own(id, offset) if is_scalar(ty) => smallvec![self.part(id, offset, ty)],
            Place::Own(id, offset) => scalars(ty)
                .into_iter()
                .map(|(at, part)| self.part(id, offset + at, part))
                .collect(),
            Place::Picked(pick) => self.read_one_of(pick, ty),
            Place::Memory(pointer, space) => {
                if matches!(ty, Type::Array(..)) {
                    return smallvec![pointer];
                }
                self.load(pointer, space, ty)
            }
            Place::Lost => scalars(ty)
                .into_iter()
                .map(|(_, part)| {
                    let part = machine(part);
                    self.push(Op::Undefined, part, smallvec![])
                })
                .collect(),
        }
    }

    /// A scalar of a variable.
    pub(super) fn part(&mut self, id: VarId, offset: u32, ty: &Type) -> V {
        match self.cell(id, offset, ty) {
            Cell::Same => self.held_part(id, offset, ty),
            Cell::Within(start, cell) => {
                let whole = self.held_part(id, start, cell);
                self.piece(whole, cell.size() as u32, offset - start, ty)
            }
            Cell::Across => {
                let cells = self.cells(id, offset, ty.size() as u32);
                let parts = cells.iter().map(|(at, cell)| self.held_part(id, *at, cell));
                let parts: Value = parts.collect();
                self.across(&cells, &parts, ty)
            }
        }
    }

    /// A scalar of the variable's own layout.
    fn held_part(&mut self, id: VarId, offset: u32, ty: &Type) -> V {
        if let Some(&v) = self.env.get(&(id, offset)) {
            // Read as another type than it was written.
            let want = machine(ty);
            // An address of shared memory is a word.
            if matches!(ty, Type::Pointer(..)) && self.root(v).is_some() {
                return v;
            }
            if self.graph.ty(v) != want && want != Ty::None && self.graph.ty(v) != Ty::Pred {
                if self.graph.ty(v).words() == want.words() {
                    return self.unary(Op::Bits, want, v);
                }
            } else {
                return v;
            }
        }
        let var = self.kernel.var(id);
        let ty = machine(ty);
        if let Storage::Param(_) = var.storage {
            let v = self.leaf(Op::Param(id, offset), ty);
            return v;
        }
        self.undefined(ty)
    }

    /// Puts a scalar into a variable: as one of its own layout, a part of one, or several.
    pub(super) fn put(&mut self, id: VarId, offset: u32, ty: &Type, v: V) {
        match self.cell(id, offset, ty) {
            Cell::Same => {
                self.env.insert((id, offset), v);
            }
            Cell::Within(start, cell) => {
                let (whole, size) = (cell.size() as u32, ty.size() as u32);
                let held = self.held_part(id, start, cell);
                let mut parts = Value::new();
                for at in (0..whole).step_by(size as usize) {
                    parts.push(if start + at == offset {
                        v
                    } else {
                        self.piece(held, whole, at, ty)
                    });
                }
                let joined = self.joined(&parts, machine(cell));
                self.env.insert((id, start), joined);
            }
            Cell::Across => {
                let size = ty.size() as u32;
                for (at, cell) in self.cells(id, offset, size) {
                    let part = self.piece(v, size, at.saturating_sub(offset), cell);
                    self.env.insert((id, at), part);
                }
            }
        }
    }

    pub(super) fn write(&mut self, place: Place, ty: &Type, value: &Value) {
        match place {
            Place::Own(id, offset) if is_scalar(ty) => {
                if let Some(&v) = value.first() {
                    self.put(id, offset, ty, v);
                }
            }
            Place::Own(id, offset) => {
                for ((at, part), v) in scalars(ty).into_iter().zip(value) {
                    self.put(id, offset + at, part, *v);
                }
            }
            Place::Picked(pick) => self.write_one_of(pick, ty, value),
            Place::Memory(pointer, space) => self.store(pointer, space, ty, value),
            Place::Lost => {}
        }
    }

    pub(super) fn load(&mut self, pointer: V, space: Space, ty: &Type) -> Value {
        let object = self.object(pointer, space);
        let unchanged = space == Space::Constant || self.is_read_only(pointer);
        let (base, offset) = self.base(pointer);
        let mut out = Value::new();
        for (start, bytes, parts) in pieces(ty) {
            let first = offset + i64::from(start);
            let version = if unchanged {
                0
            } else {
                self.version_at(object, base, first..first + i64::from(bytes))
            };
            let op = Op::Load(space, bytes, offset + i64::from(start), version);
            let wide = parts.len() > 1;
            let made = if wide { Ty::I32 } else { parts[0] };
            let args: Args = smallvec![base];
            let key = (op, made, args);
            let loaded = if self.volatile {
                self.push(op, made, key.2)
            } else if let Some(&known) = self.known.get(&key) {
                known
            } else {
                self.hold(object, &key);
                self.add(key)
            };
            if !wide {
                out.push(loaded);
                continue;
            }
            for (number, &piece) in parts.iter().enumerate() {
                out.push(self.share(Op::Piece(number as u8), piece, smallvec![loaded]));
            }
        }
        out
    }

    pub(super) fn store(&mut self, pointer: V, space: Space, ty: &Type, value: &Value) {
        let object = self.object(pointer, space);
        let (base, offset) = self.base(pointer);
        let mut values = value.iter();
        for (start, bytes, parts) in pieces(ty) {
            let mut args = Args::new();
            args.push(base);
            for _ in &parts {
                let Some(&v) = values.next() else { break };
                args.push(v);
            }
            let op = Op::Store(space, bytes, offset + i64::from(start));
            let single = (args.len() == 2 && parts.len() == 1).then(|| args[1]);
            let store = self.push(op, Ty::None, args);
            if self.volatile {
                self.changes(object);
                continue;
            }
            self.stores(object, op, base, store);
            self.graph.seen_from.insert(store, self.versions.of(object));
            // What was written is known until memory changes again.
            if let Some(v) = single
                && space != Space::Local
                && bytes >= 4
                && self.at.is_some()
            {
                let version = self.versions.of(object);
                let op = Op::Load(space, bytes, offset + i64::from(start), version);
                let key = (op, self.graph.ty(v), smallvec![base]);
                if self.known.insert(key.clone(), v).is_none() {
                    self.added.push(key.clone());
                }
                self.hold_stored(object, &key);
            }
        }
    }

    /// A pointer's base and its constant.
    pub(super) fn base(&self, pointer: V) -> (V, i64) {
        match self.graph.op(pointer) {
            Op::Offset(bytes) => (self.graph.inst(pointer).args[0], bytes),
            _ => (pointer, 0),
        }
    }
}

/// An access: its first byte, its bytes, and the registers of each of its scalars.
type Piece = (u32, u8, SmallVec<[Ty; 4]>);

/// The accesses of a type.
fn pieces(ty: &Type) -> SmallVec<[Piece; 2]> {
    if is_scalar(ty) {
        let bytes = ty.size().clamp(1, 16) as u8;
        return smallvec![(0, bytes, smallvec![machine(ty)])];
    }
    let all = scalars(ty);
    let (size, align) = (ty.size() as u32, ty.align().clamp(1, 16) as u32);
    if let [(start, only)] = all[..] {
        let bytes = only.size().clamp(1, 16) as u8;
        return smallvec![(start, bytes, smallvec![machine(only)])];
    }
    let mut out = SmallVec::new();
    let mut next = 0;
    while next < all.len() {
        let start = all[next].0;
        let mut bytes = align;
        while bytes > 1 && (!start.is_multiple_of(bytes) || start + bytes > size) {
            bytes /= 2;
        }
        bytes = bytes.max(all[next].1.size() as u32);
        let mut parts = SmallVec::new();
        while next < all.len() && all[next].0 < start + bytes {
            parts.push(machine(all[next].1));
            next += 1;
        }
        out.push((start, bytes as u8, parts));
    }
    out
}
