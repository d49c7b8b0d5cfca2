//! Statements.

use warplens_ir::{Control, Expr, Stmt, StmtKind, Storage, Type, stop};

use super::place::Place;
use super::{Builder, Value};
use crate::frequency::{Frequency, Share};
use crate::graph::{B, End, Op, Ty};

impl Builder<'_> {
    pub(super) fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            if self.at.is_none() || self.truncated {
                return;
            }
            stop::check();
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        self.site = self.placed(statement.site);
        match &statement.kind {
            StmtKind::Declare(id, init) => self.declare(*id, init.as_ref()),
            StmtKind::Expr(expression) => {
                self.value(expression);
            }
            StmtKind::If(condition, then, otherwise) => self.branch(condition, then, otherwise),
            StmtKind::Loop {
                kind,
                init,
                condition,
                step,
                body,
                unroll,
            } => {
                self.statements(init);
                self.looping(
                    statement,
                    *kind,
                    condition.as_ref(),
                    step.as_ref(),
                    body,
                    *unroll,
                );
            }
            StmtKind::Block(inner) => self.statements(inner),
            StmtKind::Switch(_, inner) => {
                // The branches that stand for it hold their own conditions.
                self.frames.push(super::Frame::default());
                let frequency = self.frequency;
                self.statements(inner);
                self.frequency = frequency;
                let frame = self.frames.pop().expect("pushed above");
                // `continue` means the loop around it.
                if let Some(around) = self.frames.last_mut() {
                    around.continues.extend(frame.continues);
                    around.returns.extend(frame.returns);
                }
                self.join(frame.breaks);
            }
            StmtKind::Return(value) => self.give_back(value.as_ref()),
            StmtKind::Break => {
                if let Some(at) = self.at.take() {
                    let env = std::mem::take(&mut self.env);
                    if let Some(frame) = self.frames.last_mut() {
                        frame.breaks.push((at, env));
                    }
                }
            }
            StmtKind::Continue => {
                if let Some(at) = self.at.take() {
                    let env = std::mem::take(&mut self.env);
                    if let Some(frame) = self.frames.last_mut() {
                        frame.continues.push((at, env));
                    }
                }
            }
            StmtKind::Barrier => {
                self.push(Op::Barrier, Ty::None, smallvec::smallvec![]);
                self.synchronises();
            }
            StmtKind::Unknown(_) => {
                self.push(Op::Other, Ty::None, smallvec::smallvec![]);
            }
        }
    }

    /// Where ways from within meet what falls through.
    pub(super) fn join(&mut self, mut ways: Vec<(B, super::Env)>) {
        if ways.is_empty() {
            return;
        }
        if let Some(at) = self.at {
            ways.push((at, std::mem::take(&mut self.env)));
        }
        self.meet(ways);
    }

    fn declare(&mut self, id: warplens_ir::VarId, init: Option<&Expr>) {
        let kernel = self.kernel;
        let ty = &kernel.var(id).ty;
        let Some(init) = init else {
            if self.is_values(id) {
                // What it held in the iteration before is gone. It holds nothing yet: what only some ways give it is kept where
                // they meet.
                self.nothing_yet(id);
            }
            return;
        };
        let value = self.given(id, init);
        if self.is_values(id) {
            self.write(Place::Own(id, 0), ty, &value);
        } else if let Some(place) = self.own_memory(id) {
            self.write(place, ty, &value);
        }
    }

    /// What a variable or a called function's parameter begins with; an array is handed on as a pointer.
    pub(super) fn given(&mut self, id: warplens_ir::VarId, init: &Expr) -> Value {
        let kernel = self.kernel;
        let ty = &kernel.var(id).ty;
        let value = match (ty, &init.ty) {
            (Type::Pointer(..), Type::Array(..)) => self.address_of(init),
            _ => self.value(init),
        };
        let value = match (ty, &init.ty) {
            (Type::Array(..), _) => value,
            _ => self.fit(value, &init.ty, ty),
        };
        if let (Type::Pointer(..), Some(&pointer)) = (ty, value.first()) {
            let array = self.root(pointer);
            let own = array.filter(|array| self.kernel.var(*array).storage == Storage::Local);
            let before = match own {
                Some(array) => self.aliases.insert(id, array),
                None => self.aliases.remove(&id),
            };
            if before != own {
                // What loops do is found by where their pointers lead.
                self.bodies.clear();
                self.assigned.clear();
            }
        }
        value
    }

    fn own_memory(&mut self, id: warplens_ir::VarId) -> Option<Place> {
        if self.kernel.var(id).storage != Storage::Local {
            return None;
        }
        let base = self.leaf(Op::Base(id), Ty::I32);
        Some(Place::Memory(base, crate::graph::Space::Local))
    }

    fn branch(&mut self, condition: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let chosen = self.condition(condition);
        if let Some(value) = self.graph.int(chosen) {
            self.statements(if value != 0 { then } else { otherwise });
            return;
        }
        let Some(from) = self.at else { return };
        let mark = self.mark();
        let (yes, no) = (self.block(), self.block());
        let control = self.controls.of_condition(condition);
        let around = self.frequency;
        let sides = self.sides(control, yes, no);
        self.end(from, End::Branch(chosen, yes, no));
        let before = self.env.clone();
        let versions = self.versions.clone();
        let clock = self.clock;
        let held = self.held.clone();
        self.unread.clear();
        self.at = Some(yes);
        self.frequency = sides[0];
        self.statements(then);
        let mut ways = Vec::new();
        let mut left = [None; 2];
        if let Some(at) = self.at {
            ways.push((at, std::mem::take(&mut self.env)));
            left[0] = Some(self.frequency);
        }
        let one = self.known_since(mark);
        self.forget(mark);
        let after = std::mem::replace(&mut self.versions, versions.clone());
        self.held.clone_from(&held);
        self.unread.clear();
        self.at = Some(no);
        self.env = before;
        self.frequency = sides[1];
        self.statements(otherwise);
        if let Some(at) = self.at {
            ways.push((at, std::mem::take(&mut self.env)));
            left[1] = Some(self.frequency);
        }
        let other = self.known_since(mark);
        self.forget(mark);
        let both = ways.len() == 2;
        if both {
            self.same_on_both(from, clock, &one, &other);
        }
        self.versions_meet(&versions, &after);
        self.held = held;
        self.unread.clear();
        self.frequency = match left {
            [Some(a), Some(b)] if [a, b] != sides => {
                let either = Share::Either(around, a, b);
                self.graph.frequencies.add(either)
            }
            [Some(only), None] | [None, Some(only)] => only,
            _ => around,
        };
        self.meet(ways);
        if let (true, Some(behind)) = (both, self.at) {
            self.beside = Some(super::versions::Beside {
                from,
                behind,
                before: clock,
                known: one.into_iter().chain(other).collect(),
            });
        }
    }

    /// How often each side of a branch is gone to from here.
    pub(super) fn sides(&mut self, control: Option<Control>, yes: B, no: B) -> [Frequency; 2] {
        [(yes, true), (no, false)].map(|(block, taken)| {
            let side = Share::Side(self.frequency, control, taken);
            let side = self.graph.frequencies.add(side);
            self.graph.blocks[block.0 as usize].frequency = side;
            side
        })
    }

    fn give_back(&mut self, value: Option<&Expr>) {
        let value = value.map(|value| (self.value(value), &value.ty));
        let Some(at) = self.at else { return };
        let depth = self.frames.iter().rposition(|frame| frame.function);
        let Some(depth) = depth else { return };
        if depth == 0 {
            // The thread ends.
            self.end(at, End::Exit);
            self.at = None;
            return;
        }
        if let (Some((value, from)), Some(id)) = (value, self.frames[depth].result) {
            let kernel = self.kernel;
            let ty = &kernel.var(id).ty;
            let value = self.fit(value, from, ty);
            self.write(Place::Own(id, 0), ty, &value);
        }
        self.at = None;
        let env = std::mem::take(&mut self.env);
        self.frames[depth].returns.push((at, env));
    }
}
