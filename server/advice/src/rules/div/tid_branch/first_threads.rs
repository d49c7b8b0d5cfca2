//! A condition that every `m`-th thread of the block meets: the first threads could do the same.
//!
//! `if (t % m == 0)` with `t` of the thread, and `if (t * m < blockDim.x)` with `t * m` in place of `t`, do the same for the same values of
//! `t`; threads of the second kind are neighbours, so that whole warps have nothing to do, and no remainder is computed.

use rustc_hash::FxHashSet;
use warplens_facts::facts::Branch;
use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, Fold, Kernel, Part, Stmt, StmtKind, Storage, Type, UnaryOp,
    VarId, fold_block, fold_expression, fold_statement, parts,
};

use crate::Context;

/// The predicted speedup where the first threads of the block do it; `None` where the condition is another one, or that cannot be
/// followed.
pub(super) fn gain(ctx: &Context<'_>, branch: &Branch) -> Option<f64> {
    let [_, y, z] = ctx.facts.launch.block;
    if branch.other_operations > 0 || y * z != 1 || !ctx.may_recompile() {
        return None;
    }
    let varying = Varying::of(ctx.kernel);
    let mut found = None;
    parts(&ctx.kernel.body, &mut |part| {
        if let Part::Statement(statement) = part
            && let StmtKind::If(condition, taken, other) = &statement.kind
            && [statement.site, condition.site].contains(&branch.site)
            && other.is_empty()
        {
            found = varying.every(condition, taken);
        }
    });
    let every = found?;
    let mut kernel = ctx.kernel.clone();
    let mut write = FirstThreads {
        branch,
        every: &every,
        written: false,
    };
    fold_block(&mut write, &mut kernel.body);
    if !write.written {
        return None;
    }
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// What each `step`-th thread does.
struct Every {
    /// The thread's coordinate, or the variable that holds it.
    thread: Expr,
    /// All variables that hold it.
    threads: Vec<VarId>,
    step: Expr,
}

/// What threads have values of their own of.
struct Varying {
    /// Variables that hold the thread's coordinate along x, and nothing else.
    threads: Vec<VarId>,
    /// All others.
    others: FxHashSet<VarId>,
}

impl Varying {
    fn of(kernel: &Kernel) -> Varying {
        let mut assigned: Vec<(VarId, Option<&Expr>)> = Vec::new();
        parts(&kernel.body, &mut |part| match part {
            Part::Statement(statement) => {
                if let StmtKind::Declare(var, value) = &statement.kind {
                    assigned.extend(value.as_ref().map(|value| (*var, Some(value))));
                }
            }
            Part::Expression(expression) => match &expression.kind {
                ExprKind::Assign(None, place, value) => {
                    assigned.extend(root(place).map(|var| (var, Some(&**value))));
                }
                // What it was before counts as well.
                ExprKind::Assign(Some(_), place, value) => {
                    assigned.extend(root(place).map(|var| (var, Some(&**value))));
                    assigned.extend(root(place).map(|var| (var, Some(&**place))));
                }
                ExprKind::Step(_, _, place) => {
                    assigned.extend(root(place).map(|var| (var, Some(&**place))));
                }
                ExprKind::AddressOf(place) => assigned.extend(root(place).map(|var| (var, None))),
                _ => {}
            },
        });
        // What memory holds is read from there: its own address is the same in all threads.
        assigned.retain(|(var, _)| kernel.var(*var).storage == Storage::Local);
        let times = |var: VarId| assigned.iter().filter(|(one, _)| *one == var).count();
        let threads = assigned
            .iter()
            .filter(|(var, value)| value.is_some_and(is_thread) && times(*var) == 1)
            .map(|(var, _)| *var)
            .collect();
        let mut all = Varying {
            threads,
            others: FxHashSet::default(),
        };
        loop {
            let known = all.others.len();
            for (var, value) in &assigned {
                let varies = value.is_none_or(|value| all.varies(value) || all.has_thread(value));
                if varies && !all.threads.contains(var) {
                    all.others.insert(*var);
                }
            }
            if all.others.len() == known {
                return all;
            }
        }
    }

    /// What a condition asks of the thread's coordinate, where what it guards has no other number of the thread's own.
    fn every(&self, condition: &Expr, taken: &[Stmt]) -> Option<Every> {
        let mut conjuncts = Vec::new();
        conjunction(condition, &mut conjuncts);
        let every = conjuncts.iter().find_map(|one| self.multiples(one))?;
        let mut own = Vec::new();
        let mut plain = !conjuncts.iter().any(|one| self.varies(one));
        parts(taken, &mut |part| match part {
            Part::Statement(statement) => {
                if let StmtKind::Declare(var, _) = statement.kind {
                    own.push(var);
                }
                plain &= !matches!(
                    statement.kind,
                    StmtKind::Barrier | StmtKind::Unknown(_) | StmtKind::Return(_)
                );
            }
            Part::Expression(expression) => match expression.kind {
                ExprKind::Var(var) => plain &= own.contains(&var) || !self.others.contains(&var),
                ExprKind::Builtin(builtin) => {
                    plain &= !matches!(builtin, Builtin::GlobalIdx(_));
                }
                ExprKind::Apply(..) | ExprKind::Opaque(..) => plain = false,
                _ => {}
            },
        });
        plain.then_some(every)
    }

    /// `t % m == 0`, `!(t % m)`, `(t & (m - 1)) == 0`.
    fn multiples(&self, condition: &Expr) -> Option<Every> {
        let remainder = match &plain(condition).kind {
            ExprKind::Unary(UnaryOp::Not, inner) => plain(inner),
            ExprKind::Binary(BinaryOp::Eq, a, b) if is_int(b, 0) => plain(a),
            ExprKind::Binary(BinaryOp::Eq, a, b) if is_int(a, 0) => plain(b),
            _ => return None,
        };
        let ExprKind::Binary(op @ (BinaryOp::Rem | BinaryOp::And), thread, by) = &remainder.kind
        else {
            return None;
        };
        let thread = plain(thread);
        let is_own = match thread.kind {
            ExprKind::Var(var) => self.threads.contains(&var),
            _ => is_thread(thread),
        };
        let by = plain(by);
        let step = match (op, &by.kind) {
            (BinaryOp::Rem, _) => by.clone(),
            (_, ExprKind::Binary(BinaryOp::Sub, step, one)) if is_int(one, 1) => (**step).clone(),
            (_, ExprKind::Int(mask)) if (mask + 1).count_ones() == 1 => Expr {
                kind: ExprKind::Int(mask + 1),
                ..by.clone()
            },
            _ => return None,
        };
        (is_own && !self.varies(&step) && !self.has_thread(&step)).then(|| Every {
            thread: thread.clone(),
            threads: self.threads.clone(),
            step,
        })
    }

    /// Whether a value is another one in other threads, beside by the coordinate itself.
    fn varies(&self, value: &Expr) -> bool {
        let mut varies = false;
        within(value, &mut |part| {
            varies |= match part.kind {
                ExprKind::Var(var) => self.others.contains(&var),
                ExprKind::Builtin(Builtin::ThreadIdx(axis)) => axis != 0,
                ExprKind::Builtin(Builtin::GlobalIdx(_)) => true,
                ExprKind::Index(..)
                | ExprKind::Deref(_)
                | ExprKind::Call(..)
                | ExprKind::Inline(..)
                | ExprKind::Apply(..)
                | ExprKind::Opaque(..) => true,
                _ => false,
            };
        });
        varies
    }

    fn has_thread(&self, value: &Expr) -> bool {
        let mut has = false;
        within(value, &mut |part| {
            has |= match part.kind {
                ExprKind::Var(var) => self.threads.contains(&var),
                _ => is_thread(part),
            };
        });
        has && !is_thread(plain(value))
    }
}

/// Visits an expression and its parts.
fn within<'a>(value: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(value);
    match &value.kind {
        ExprKind::Unary(_, a)
        | ExprKind::Cast(_, a)
        | ExprKind::Deref(a)
        | ExprKind::Field(a, _)
        | ExprKind::AddressOf(a)
        | ExprKind::Step(_, _, a) => within(a, visit),
        ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) | ExprKind::Index(a, b) => {
            within(a, visit);
            within(b, visit);
        }
        ExprKind::Select(a, b, c) => {
            for part in [a, b, c] {
                within(part, visit);
            }
        }
        ExprKind::List(all) => all.iter().for_each(|one| within(one, visit)),
        _ => {}
    }
}

/// The variable that a place is in.
fn root(place: &Expr) -> Option<VarId> {
    match &place.kind {
        ExprKind::Var(var) => Some(*var),
        ExprKind::Field(of, _) | ExprKind::Cast(_, of) => root(of),
        // An array of the thread's own.
        ExprKind::Index(of, _) => root(of),
        _ => None,
    }
}

/// Without conversions.
fn plain(value: &Expr) -> &Expr {
    match &value.kind {
        ExprKind::Cast(_, inner) if inner.ty.is_int() || inner.ty == Type::BOOL => plain(inner),
        _ => value,
    }
}

fn is_int(value: &Expr, wanted: i64) -> bool {
    matches!(plain(value).kind, ExprKind::Int(number) if number == wanted)
}

fn is_thread(value: &Expr) -> bool {
    matches!(plain(value).kind, ExprKind::Builtin(Builtin::ThreadIdx(0)))
}

fn conjunction<'a>(condition: &'a Expr, all: &mut Vec<&'a Expr>) {
    match &plain(condition).kind {
        ExprKind::Binary(BinaryOp::LogicalAnd, a, b) => {
            conjunction(a, all);
            conjunction(b, all);
        }
        _ => all.push(condition),
    }
}

/// Writes the branch for the first threads of the block.
struct FirstThreads<'a> {
    branch: &'a Branch,
    every: &'a Every,
    written: bool,
}

impl Fold for FirstThreads<'_> {
    fn statement(&mut self, statement: &mut Stmt) {
        let site = statement.site;
        if let StmtKind::If(condition, taken, _) = &mut statement.kind
            && [site, condition.site].contains(&self.branch.site)
        {
            self.written |= self.compare(condition);
            let mut multiple = Multiple(self.every);
            multiple.beside_comparison(condition);
            fold_block(&mut multiple, taken);
            return;
        }
        fold_statement(self, statement);
    }
}

impl FirstThreads<'_> {
    /// Puts the comparison in place of the remainder's; true where it is found.
    fn compare(&self, condition: &mut Expr) -> bool {
        let inner = match &mut condition.kind {
            ExprKind::Binary(BinaryOp::LogicalAnd, a, b) => {
                return self.compare(a) || self.compare(b);
            }
            ExprKind::Cast(_, inner) => return self.compare(inner),
            kind => kind,
        };
        let has_remainder = match inner {
            ExprKind::Unary(UnaryOp::Not, a) => is_remainder(a),
            ExprKind::Binary(BinaryOp::Eq, a, b) => is_remainder(a) || is_remainder(b),
            _ => false,
        };
        if !has_remainder {
            return false;
        }
        let bound = Expr {
            kind: ExprKind::Builtin(Builtin::BlockDim(0)),
            ..self.every.thread.clone()
        };
        let multiple = self.every.times(self.every.thread.clone());
        condition.kind = ExprKind::Binary(BinaryOp::Lt, Box::new(multiple), Box::new(bound));
        true
    }
}

fn is_remainder(value: &Expr) -> bool {
    matches!(
        plain(value).kind,
        ExprKind::Binary(BinaryOp::Rem | BinaryOp::And, ..)
    )
}

impl Every {
    fn is_thread(&self, value: &Expr) -> bool {
        match value.kind {
            ExprKind::Var(var) => self.threads.contains(&var),
            ExprKind::Builtin(builtin) => builtin == Builtin::ThreadIdx(0),
            _ => false,
        }
    }

    fn times(&self, thread: Expr) -> Expr {
        let (ty, site) = (thread.ty.clone(), thread.site);
        let mut step = self.step.clone();
        if step.ty != ty {
            let kind = ExprKind::Cast(false, Box::new(step));
            step = Expr {
                kind,
                ty: ty.clone(),
                site,
            };
        }
        let kind = ExprKind::Binary(BinaryOp::Mul, Box::new(thread), Box::new(step));
        Expr { kind, ty, site }
    }
}

/// Writes the multiple in place of the thread's coordinate.
struct Multiple<'a>(&'a Every);

impl Multiple<'_> {
    /// In all of a condition but the comparison that was written.
    fn beside_comparison(&mut self, condition: &mut Expr) {
        match &mut condition.kind {
            ExprKind::Binary(BinaryOp::LogicalAnd, a, b) => {
                self.beside_comparison(a);
                self.beside_comparison(b);
            }
            ExprKind::Cast(_, inner) => self.beside_comparison(inner),
            ExprKind::Binary(BinaryOp::Lt, a, _) if matches!(&a.kind, ExprKind::Binary(BinaryOp::Mul, thread, _) if self.0.is_thread(thread)) =>
                {}
            _ => self.expression(condition),
        }
    }
}

impl Fold for Multiple<'_> {
    fn expression(&mut self, expression: &mut Expr) {
        if self.0.is_thread(expression) {
            *expression = self.0.times(expression.clone());
            return;
        }
        fold_expression(self, expression);
    }
}
