//! Loops of a few iterations over a thread's own memory, gone through one after the other: `for (d = 0; d < 3; ++d) at += index[d] *
//! stride[d]`.
//!
//! In: a loop that has been executed as any other, and what was known before it. Out: what its variables and the thread's own memory
//! hold behind it, where every iteration does the same as the program would: no condition depends on anything. Nothing is recorded:
//! what the loop does is already.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{LoopKind, Stmt, StmtKind, VarId};
use warplens_symbolic::Id;

use crate::executor::{Executor, Exits};
use crate::value::{ArrayId, Kind, Piece, Stored, Value};

/// Iterations of such a loop, at most.
const MOST_ROUNDS: i64 = 16;

/// What was known of the thread's own memory.
pub(crate) struct OwnMemory {
    elements: FxHashMap<ArrayId, Vec<Stored>>,
    mirrored: FxHashSet<VarId>,
    /// The structures of which pieces are known.
    whole: Vec<(VarId, Value)>,
}

impl Executor<'_> {
    /// True where what is executed is only looked at, and the thread's own memory is not what it will be.
    pub(crate) fn is_only_looked_at(&self) -> bool {
        self.dry > self.tracked || self.counting_only
    }

    /// The thread's own memory before a loop that may be gone through.
    pub(crate) fn own_memory(&self) -> Option<OwnMemory> {
        let known = self.has_pieces || !self.elements.is_empty();
        if !known || self.dry > 0 || self.counting_only || self.statements_left == 0 {
            return None;
        }
        let all = (0..self.kernel.vars.len() as u32).map(VarId);
        let whole = all.filter_map(|id| {
            let value = self.env.get(id)?;
            value.parts.is_some().then(|| (id, value.clone()))
        });
        Some(OwnMemory {
            whole: whole.collect(),
            elements: self.elements.clone(),
            mirrored: self.mirrored.clone(),
        })
    }

    /// What is behind a loop that ran so often, its variables as they were before it.
    pub(crate) fn go_through(
        &mut self,
        statement: &Stmt,
        trips: Id,
        entry: &[(VarId, Value)],
        before: OwnMemory,
    ) {
        let few = self.arena.as_const(trips);
        if few.is_none_or(|trips| !(1..=MOST_ROUNDS).contains(&trips)) {
            return;
        }
        let operations = self.static_operations;
        // What the loop assigns as a whole, and structures of which it writes a part.
        let written = |(id, value): &(VarId, Value)| {
            !entry.iter().any(|(of, _)| of == id)
                && self.env.get(*id).is_some_and(|now| !now.is_like(value))
        };
        let others: Vec<(VarId, Value)> = before.whole.into_iter().filter(written).collect();
        let entry: Vec<&(VarId, Value)> = entry.iter().chain(&others).collect();
        let behind: Vec<Option<Value>> = entry
            .iter()
            .map(|(id, _)| self.env.get(*id).cloned())
            .collect();
        let earlier = OwnMemory {
            elements: std::mem::replace(&mut self.elements, before.elements),
            mirrored: std::mem::replace(&mut self.mirrored, before.mirrored),
            whole: Vec::new(),
        };
        for (id, value) in &entry {
            self.env.set(*id, Some(value.clone()));
        }
        self.begin_look();
        self.tracked = self.dry;
        self.goes_through = true;
        self.abandoned = false;
        self.all_rounds(statement);
        let done = !self.abandoned;
        self.goes_through = false;
        self.tracked = 0;
        self.end_look();
        self.static_operations = operations;
        if !done {
            self.elements.clone_from(&earlier.elements);
            self.mirrored = earlier.mirrored;
        }
        for (&(id, _), behind) in entry.into_iter().zip(behind) {
            let now = self.env.get(id).cloned().filter(|_| done);
            let value = match (now, behind) {
                (Some(now), Some(behind)) => Some(self.known_of(now, behind)),
                (_, behind) => behind,
            };
            self.env.set(id, value);
        }
        if done {
            let mut elements = std::mem::take(&mut self.elements);
            for stored in elements.values_mut() {
                stored.retain(|stored| self.is_followed_to_its_end(&stored.value));
            }
            // A store of all iterations at once says more to those who read in a loop.
            for (array, stored) in earlier.elements {
                let at_once = |stored: &Stored| {
                    self.arena.as_const(stored.offset).is_none()
                        && self.is_followed_to_its_end(&stored.value)
                };
                if stored.iter().any(at_once) {
                    elements.insert(array, stored);
                }
            }
            self.elements = elements;
        }
    }

    /// A value behind the rounds where it is known, else as it is behind the loop.
    fn known_of(&self, now: Value, behind: Value) -> Value {
        let parts = now.parts.map(|parts| {
            let known = parts.iter();
            let known = known.filter(|piece| self.is_followed_to_its_end(&piece.value));
            known.cloned().collect::<Vec<Piece>>().into()
        });
        let known = match now.kind {
            Kind::Int(id) | Kind::Pointer(_, id) => !self.arena.has_opaque(id),
            Kind::Data => false,
        };
        Value {
            kind: if known { now.kind } else { behind.kind },
            parts,
            ..behind
        }
    }

    fn is_followed_to_its_end(&self, value: &Value) -> bool {
        match value.kind {
            Kind::Int(id) | Kind::Pointer(_, id) => !self.arena.has_opaque(id),
            Kind::Data => false,
        }
    }

    /// A statement among rounds that is executed otherwise than alone.
    pub(crate) fn in_rounds(&mut self, statement: &Stmt) -> Option<Exits> {
        if !self.goes_through || self.dry != self.tracked {
            return None;
        }
        self.statements_left = self.statements_left.saturating_sub(1);
        self.abandoned |= self.statements_left == 0;
        let exits = self.no_exits();
        if self.abandoned {
            return Some(exits);
        }
        match &statement.kind {
            StmtKind::Loop { init, .. } => {
                for before in init {
                    self.block_of_one(before);
                }
                self.all_rounds(statement);
                Some(exits)
            }
            StmtKind::If(condition, then, otherwise) => {
                let value = self.eval(condition);
                let id = self.as_int(&value);
                let truth = self.arena.truth(id);
                match self.arena.as_const(truth) {
                    Some(0) => Some(self.block_of(otherwise)),
                    Some(_) => Some(self.block_of(then)),
                    None => {
                        self.abandoned = true;
                        Some(exits)
                    }
                }
            }
            StmtKind::Switch(..) | StmtKind::Break | StmtKind::Continue => {
                self.abandoned = true;
                Some(exits)
            }
            _ => None,
        }
    }

    fn all_rounds(&mut self, statement: &Stmt) {
        let StmtKind::Loop {
            kind,
            condition,
            step,
            body,
            ..
        } = &statement.kind
        else {
            return;
        };
        for round in 0..=MOST_ROUNDS {
            let tested = *kind != LoopKind::Do || round > 0;
            if tested && let Some(condition) = condition {
                let value = self.eval(condition);
                let id = self.as_int(&value);
                let truth = self.arena.truth(id);
                match self.arena.as_const(truth) {
                    Some(0) => return,
                    Some(_) => {}
                    None => break,
                }
            }
            let exits = self.block_of(body);
            let left = [exits.returned, exits.broke, exits.continued];
            let leaves = left
                .iter()
                .any(|left| self.arena.as_const(*left) != Some(0));
            if self.abandoned || leaves {
                break;
            }
            if let Some(step) = step {
                self.eval(step);
            }
        }
        self.abandoned = true;
    }
}
