//! What memory may have changed: each change gives the places that it may reach a new version, and loads of one
//! version from one place are one load.

use std::ops::Range;

use smallvec::smallvec;
use warplens_ir::{AddressSpace, Expr, Storage, Type, VarId};

use super::place::Place;
use super::{Args, Builder, Value};
use crate::graph::{B, Op, Space, Ty, V};

/// Memory that is told apart from other memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// Reached through that variable alone: an array of the thread's own, behind a `__restrict__` parameter.
    Alone(VarId),
    /// An array in shared memory.
    Shared(VarId),
    /// A variable of the device at file scope.
    Device(VarId),
    /// Wherever else in device memory.
    Global,
    /// Whatever other threads may see.
    Everything,
}

impl Object {
    /// True where two accesses may reach the same bytes.
    pub(super) fn meets(self, other: Object) -> bool {
        use Object::{Alone, Device, Everything, Global, Shared};
        match (self, other) {
            (Alone(a), Alone(b)) | (Shared(a), Shared(b)) | (Device(a), Device(b)) => a == b,
            (Alone(_), _) | (_, Alone(_)) => false,
            (Everything, _) | (_, Everything) => true,
            (Shared(_), _) | (_, Shared(_)) => false,
            (Global, _) | (_, Global) => true,
        }
    }
}

/// When each object changed last.
#[derive(Debug, Clone, Default)]
pub(super) struct Versions(Vec<(Object, u32)>);

/// The version of what the kernel has not changed.
const FIRST: u32 = 1;

impl Versions {
    /// The version of what an access sees.
    pub(super) fn of(&self, object: Object) -> u32 {
        let changes = self.0.iter().filter(|(changed, _)| changed.meets(object));
        changes.map(|(_, at)| *at).max().unwrap_or(FIRST)
    }

    fn set(&mut self, object: Object, at: u32) {
        match self.0.iter_mut().find(|(changed, _)| *changed == object) {
            Some((_, last)) => *last = at,
            None => self.0.push((object, at)),
        }
    }
}

/// A load whose value is known, or a store that the next one to its place undoes.
#[derive(Debug, Clone)]
pub(super) struct Held {
    object: Object,
    key: (Op, Ty, Args),
}

/// A store that nothing has read.
#[derive(Debug, Clone)]
pub(super) struct Unread {
    object: Object,
    op: Op,
    base: V,
    store: V,
    block: B,
}

/// Stores through one address, nothing else having changed their object since the first: what lies beside them is as it was.
#[derive(Debug, Clone)]
pub(super) struct Run {
    object: Object,
    base: V,
    /// The version before the first, and behind the last.
    before: u32,
    last: u32,
    /// Bytes from the address that were written.
    written: Vec<Range<i64>>,
}

/// A value and what it is.
pub(super) type Known = ((Op, Ty, Args), V);

/// What the ways of a branch computed.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) from: B,
    /// Where the ways meet.
    pub(super) behind: B,
    /// The last version before.
    pub(super) before: u32,
    pub(super) known: Vec<Known>,
}

/// More loads and stores than this are not kept in mind.
const MOST_HELD: usize = 128;

impl Builder<'_> {
    /// The memory that an address leads into.
    pub(super) fn object(&self, pointer: V, space: Space) -> Object {
        let Some(id) = self.root(pointer) else {
            return if space == Space::Shared {
                Object::Everything
            } else {
                Object::Global
            };
        };
        let var = self.kernel.var(id);
        match var.storage {
            Storage::Shared | Storage::DynamicShared => Object::Shared(id),
            Storage::Local => Object::Alone(id),
            Storage::Global | Storage::Constant => Object::Device(id),
            Storage::Param(_) if var.restrict => Object::Alone(id),
            Storage::Param(_) => match var.ty {
                Type::Pointer(_, AddressSpace::Shared) => Object::Shared(id),
                _ => Object::Global,
            },
        }
    }

    /// The memory that a place of the source lies in, as far as it is known before it is computed.
    pub(super) fn object_of(&self, place: &Expr) -> Object {
        let Some(id) = place.base_variable() else {
            return Object::Everything;
        };
        let var = self.kernel.var(id);
        let pointer = matches!(var.ty, Type::Pointer(..));
        if let (Storage::Local | Storage::Param(_), true) = (var.storage, pointer) {
            let Some(&held) = self.env.get(&(id, 0)) else {
                return Object::Everything;
            };
            let space = match var.ty {
                Type::Pointer(_, AddressSpace::Shared) => Space::Shared,
                _ => Space::Global,
            };
            return self.object(held, space);
        }
        match var.storage {
            Storage::Shared | Storage::DynamicShared => Object::Shared(id),
            Storage::Global | Storage::Constant => Object::Device(id),
            Storage::Local => Object::Alone(id),
            // A structure with pointers.
            Storage::Param(_) => Object::Global,
        }
    }

    /// Memory that may hold something else from here on.
    pub(super) fn changes(&mut self, object: Object) {
        self.clock += 1;
        self.versions.set(object, self.clock);
        self.held.retain(|held| !held.object.meets(object));
    }

    /// The version of what a load sees.
    pub(super) fn version_at(&self, object: Object, base: V, bytes: Range<i64>) -> u32 {
        let version = self.versions.of(object);
        let run = self.stored.as_ref().filter(|run| {
            let is_last = run.object == object && run.last == version;
            let mut written = run.written.iter();
            is_last && written.all(|other| self.is_beside((base, &bytes), (run.base, other)))
        });
        run.map_or(version, |run| run.before)
    }

    /// True where bytes from one address are not those from another, which are the same address or both aligned: `d[i].x` and
    /// `e[i].y` of vectors.
    fn is_beside(&self, one: (V, &Range<i64>), other: (V, &Range<i64>)) -> bool {
        let apart = |a: &Range<i64>, b: &Range<i64>| a.end <= b.start || b.end <= a.start;
        if one.0 == other.0 {
            return apart(one.1, other.1);
        }
        let aligned = |base: V| self.graph.aligned.get(&base).copied();
        let Some(cell) = aligned(one.0).zip(aligned(other.0)).map(|(a, b)| a.min(b)) else {
            return false;
        };
        let within = |bytes: &Range<i64>| {
            let start = bytes.start.rem_euclid(i64::from(cell));
            start..start + (bytes.end - bytes.start)
        };
        let (one, other) = (within(one.1), within(other.1));
        let inside = |bytes: &Range<i64>| bytes.end <= i64::from(cell);
        inside(&one) && inside(&other) && apart(&one, &other)
    }

    /// Notes a store behind which the object has its present version; it had `before`.
    fn goes_on(&mut self, object: Object, base: V, bytes: Range<i64>, before: u32) {
        let last = self.versions.of(object);
        match &mut self.stored {
            Some(run)
                if run.object == object
                    && run.base == base
                    && run.last == before
                    && run.written.len() < MOST_HELD =>
            {
                run.last = last;
                run.written.push(bytes);
            }
            run => {
                *run = Some(Run {
                    object,
                    base,
                    before,
                    last,
                    written: vec![bytes],
                });
            }
        }
    }

    /// Other threads may have changed memory, and see what was stored.
    pub(super) fn synchronises(&mut self) {
        self.changes(Object::Everything);
        self.unread.clear();
    }

    /// Behind a branch each object has changed that either way changed.
    pub(super) fn versions_meet(&mut self, before: &Versions, one: &Versions) {
        let other = std::mem::replace(&mut self.versions, before.clone());
        for (object, at) in one.0.iter().chain(&other.0) {
            let last = before.0.iter().find(|(changed, _)| changed == object);
            if last.is_none_or(|(_, last)| last != at) {
                self.clock += 1;
                self.versions.set(*object, self.clock);
            }
        }
    }

    /// A load that is known from here on.
    pub(super) fn hold(&mut self, object: Object, key: &(Op, Ty, Args)) {
        self.hold_stored(object, key);
        self.unread.retain(|store| !store.object.meets(object));
    }

    /// A value that was stored: it is known as if it had been loaded.
    pub(super) fn hold_stored(&mut self, object: Object, key: &(Op, Ty, Args)) {
        if self.held.len() < MOST_HELD {
            let key = key.clone();
            self.held.push(Held { object, key });
        }
    }

    /// A store changes an object at one place: what was loaded beside it is still known, and what was stored there
    /// before need not have been.
    pub(super) fn stores(&mut self, object: Object, op: Op, base: V, store: V) {
        let Op::Store(_, bytes, offset) = op else {
            return;
        };
        let beside = |other: &Held| match other.key.0 {
            Op::Load(_, wide, at, _) => {
                other.key.2.as_slice() == [base]
                    && (at + i64::from(wide) <= offset || offset + i64::from(bytes) <= at)
            }
            _ => false,
        };
        let meeting = self.held.iter().filter(|held| held.object.meets(object));
        let kept: Vec<Held> = meeting
            .filter(|held| beside(held) && self.is_current(held))
            .cloned()
            .collect();
        let before = self.versions.of(object);
        self.changes(object);
        self.goes_on(object, base, offset..offset + i64::from(bytes), before);
        for held in kept {
            let Some(&v) = self.known.get(&held.key) else {
                continue;
            };
            let Op::Load(space, bytes, offset, _) = held.key.0 else {
                continue;
            };
            let version = self.versions.of(held.object);
            let op = Op::Load(space, bytes, offset, version);
            let key = (op, held.key.1, held.key.2);
            if self.known.insert(key.clone(), v).is_none() {
                self.added.push(key.clone());
            }
            self.held.push(Held {
                object: held.object,
                key,
            });
        }
        let Some(block) = self.at else { return };
        let same = |other: &Unread| {
            other.object == object && other.op == op && other.base == base && other.block == block
        };
        if let Some(at) = self.unread.iter().position(same) {
            let undone = self.unread.swap_remove(at);
            self.graph.blocks[block.0 as usize]
                .code
                .retain(|v| *v != undone.store);
        }
        if self.unread.len() < MOST_HELD {
            self.unread.push(Unread {
                object,
                op,
                base,
                store,
                block,
            });
        }
    }

    fn is_current(&self, held: &Held) -> bool {
        let version = self.versions.of(held.object);
        matches!(held.key.0, Op::Load(.., of) if of == version)
    }

    /// Reads a place of the source, once more each time where it is `volatile`.
    pub(super) fn read_as(&mut self, source: &Expr, place: Place, ty: &Type) -> Value {
        self.volatile = source
            .base_variable()
            .is_some_and(|id| self.kernel.var(id).volatile);
        let value = self.read(place, ty);
        self.volatile = false;
        value
    }

    /// Writes a place of the source, whatever follows where it is `volatile`.
    pub(super) fn write_as(&mut self, source: &Expr, place: Place, value: &Value) {
        self.volatile = source
            .base_variable()
            .is_some_and(|id| self.kernel.var(id).volatile);
        self.write(place, &source.ty, value);
        self.volatile = false;
    }

    /// What became known since a mark, to be moved up.
    pub(super) fn known_since(&self, mark: usize) -> Vec<Known> {
        let since = self.added[mark..].iter().take(MOST_HELD);
        since
            .filter_map(|key| Some((key.clone(), *self.known.get(key)?)))
            .collect()
    }

    /// What both ways of a branch compute alike is computed before it.
    pub(super) fn same_on_both(&mut self, from: B, before: u32, one: &[Known], other: &[Known]) {
        let mut moved: Vec<(V, V)> = Vec::new();
        for (key, v) in other {
            let mut key = key.clone();
            for arg in &mut key.2 {
                if let Some((_, kept)) = moved.iter().find(|(gone, _)| gone == arg) {
                    *arg = *kept;
                }
            }
            let Some((_, twin)) = one.iter().find(|(of, _)| *of == key) else {
                continue;
            };
            if self.may_rise(*twin, &key, from, before) {
                self.raise(*twin, from);
                let gone = &mut self.graph.values[v.0 as usize];
                gone.op = Op::Phi;
                gone.args = smallvec![*twin];
                moved.push((*v, *twin));
            }
        }
    }

    /// What a way of the branch before has computed is there behind both where it is needed again: it moves up.
    pub(super) fn beside(&mut self, key: &(Op, Ty, Args)) -> Option<V> {
        let beside = self.beside.as_ref()?;
        if self.at != Some(beside.behind) {
            self.beside = None;
            return None;
        }
        let (from, before) = (beside.from, beside.before);
        let (_, v) = beside.known.iter().find(|(of, _)| of == key)?;
        let v = *v;
        if !self.may_rise(v, key, from, before) {
            return None;
        }
        self.raise(v, from);
        Some(v)
    }

    /// True for a value that can be computed before the branch at the end of `from`, where memory had that version.
    fn may_rise(&self, v: V, key: &(Op, Ty, Args), from: B, before: u32) -> bool {
        let same = match key.0 {
            Op::Load(_, _, _, version) => version <= before,
            op => op.is_pure() && matches!(key.1, Ty::I32 | Ty::I64),
        };
        let args = &self.graph.inst(v).args;
        same && args
            .iter()
            .all(|arg| self.graph.op(*arg).is_operand() || self.graph.inst(*arg).block <= from)
    }

    /// Moves a value to the end of an earlier block.
    fn raise(&mut self, v: V, to: B) {
        let block = std::mem::replace(&mut self.graph.values[v.0 as usize].block, to);
        if block != to {
            self.graph.blocks[block.0 as usize]
                .code
                .retain(|other| *other != v);
            self.graph.blocks[to.0 as usize].code.push(v);
        }
    }
}
