//! What one iteration of each loop of a kernel does, and which is the innermost loop around each access: found in one walk.

use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_facts::facts::Access;
use warplens_ir::{
    Expr, ExprKind, Function, Kernel, Site, Stmt, StmtKind, VarId, Visitor, walk_block,
    walk_expression, walk_statement,
};

/// What one iteration of a loop does.
#[derive(Default)]
pub(super) struct Turn {
    /// Variables that it gives another value.
    assigned: FxHashSet<VarId>,
    /// What it stores through; `None` for what is not a plain variable.
    pub(super) stored: FxHashSet<Option<VarId>>,
    /// It has a barrier, or something that is not understood.
    pub(super) barrier: bool,
    pub(super) unknown: bool,
}

impl Turn {
    pub(super) fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Assign(_, place, _) | ExprKind::Step(_, _, place) => self.changes(place),
            ExprKind::AddressOf(place) => self.changes(place),
            ExprKind::Call(Function::Load, _) => {}
            ExprKind::Call(function, _) if function.is_arithmetic() => {}
            ExprKind::Call(_, values) => match values.first() {
                Some(place) => {
                    self.stored.insert(place.base_variable());
                }
                None => self.unknown = true,
            },
            ExprKind::Apply(..) | ExprKind::Opaque(..) => self.unknown = true,
            _ => {}
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match &statement.kind {
            StmtKind::Declare(id, _) => {
                self.assigned.insert(*id);
            }
            StmtKind::Barrier => self.barrier = true,
            StmtKind::Unknown(_) => self.unknown = true,
            _ => {}
        }
    }

    fn changes(&mut self, place: &Expr) {
        match &place.kind {
            ExprKind::Var(id) => {
                self.assigned.insert(*id);
            }
            ExprKind::Index(..) | ExprKind::Deref(_) => {
                self.stored.insert(place.base_variable());
            }
            _ => {
                let through = place.base_variable();
                self.assigned.extend(through);
                self.stored.insert(through);
            }
        }
    }

    /// A loop within is a part of it.
    fn take(&mut self, inner: &Turn) {
        self.assigned.extend(&inner.assigned);
        self.stored.extend(&inner.stored);
        self.barrier |= inner.barrier;
        self.unknown |= inner.unknown;
    }
}

/// The loops of a kernel, outer ones before inner ones.
#[derive(Default)]
pub(super) struct Turns<'k> {
    loops: Vec<Turn>,
    /// Those around what is being visited.
    open: Vec<usize>,
    /// The innermost loop around each access, the last where it is in several, and the access.
    innermost: FxHashMap<Site, (usize, &'k Expr)>,
}

impl<'k> Turns<'k> {
    pub(super) fn of(kernel: &'k Kernel) -> Turns<'k> {
        let mut turns = Turns::default();
        let _ = walk_block(&mut turns, &kernel.body);
        turns
    }

    /// What the innermost loop around an access does, and what is accessed.
    pub(super) fn around(&self, access: &Access) -> Option<(&Turn, &'k Expr)> {
        let (turn, place) = self.innermost.get(&access.site)?;
        Some((self.loops.get(*turn)?, place))
    }

    /// The number of the innermost loop around an access.
    pub(super) fn number(&self, access: &Access) -> Option<usize> {
        self.innermost.get(&access.site).map(|(number, _)| *number)
    }

    /// True where the address is the same in each iteration of the innermost loop, and depends on no memory.
    pub(super) fn fixed(&self, access: &Access) -> bool {
        let Some((turn, place)) = self.around(access) else {
            return false;
        };
        let (ExprKind::Index(base, _) | ExprKind::Deref(base)) = &place.kind else {
            return false;
        };
        let inner = match &place.kind {
            ExprKind::Index(_, index) => Some(&**index),
            _ => None,
        };
        let assigned =
            |part: &Expr| matches!(&part.kind, ExprKind::Var(id) if turn.assigned.contains(id));
        !place.any(&mut |part| assigned(part))
            && inner.is_none_or(|index| !index.reads_or_forks())
            && base.base_variable().is_some()
    }

    fn current(&mut self) -> Option<&mut Turn> {
        self.loops.get_mut(*self.open.last()?)
    }
}

pub(super) fn is_access(expression: &Expr) -> bool {
    matches!(expression.kind, ExprKind::Index(..) | ExprKind::Deref(_))
}

impl<'k> Visitor<'k> for Turns<'k> {
    fn statement(&mut self, statement: &'k Stmt) -> ControlFlow<()> {
        if !matches!(statement.kind, StmtKind::Loop { .. }) {
            if let Some(turn) = self.current() {
                turn.statement(statement);
            }
            return walk_statement(self, statement);
        }
        let number = self.loops.len();
        self.loops.push(Turn::default());
        self.open.push(number);
        let flow = walk_statement(self, statement);
        self.open.pop();
        if let Some(outer) = self.open.last()
            && let Ok([outer, inner]) = self.loops.get_disjoint_mut([*outer, number])
        {
            outer.take(inner);
        }
        flow
    }

    fn expression(&mut self, expression: &'k Expr) -> ControlFlow<()> {
        if let Some(&innermost) = self.open.last() {
            if is_access(expression) {
                let known = self.innermost.entry(expression.site);
                let known = known.or_insert((innermost, expression));
                if known.0 < innermost {
                    *known = (innermost, expression);
                }
            }
            if let Some(turn) = self.loops.get_mut(innermost) {
                turn.expression(expression);
            }
        }
        walk_expression(self, expression)
    }
}
