//! The walk over statements and expressions: the one place that knows which parts each kind has, and when they run.
//!
//! In: a stretch of IR. Out: its parts, in the order in which they are executed. A pass that looks for something takes
//! [`parts`] or a [`Visitor`], one that changes something a [`Fold`], one that only follows control [`Stmt::blocks`]; each
//! then knows new kinds of statements by what this module says of them.

use std::ops::ControlFlow;

use crate::Site;
use crate::kernel::{Expr, ExprKind, Kernel, Stmt, StmtKind, VarId};

/// When the statements of a block run, seen from the statement that they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// Once, whenever the statement runs: `{ … }`, the branches of a switch, what comes before a loop.
    Once,
    /// Only if a condition holds: a side of an `if`.
    If,
    /// In each iteration of a loop.
    Repeatedly,
}

/// A part of a stretch of statements.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// A statement.
    Statement(&'a Stmt),
    /// An expression.
    Expression(&'a Expr),
}

impl Part<'_> {
    /// Where it lies in memory: what it is known by in this very IR.
    pub fn address(self) -> usize {
        match self {
            Part::Statement(statement) => std::ptr::from_ref(statement) as usize,
            Part::Expression(expression) => std::ptr::from_ref(expression) as usize,
        }
    }
}

/// What a statement or an expression directly consists of.
#[derive(Debug, Clone, Copy)]
enum Inner<'a> {
    Value(&'a Expr),
    Block(Runs, &'a [Stmt]),
}

/// [`Inner`], to be changed.
enum InnerMut<'a> {
    Value(&'a mut Expr),
    Block(Runs, &'a mut Vec<Stmt>),
}

/// The parts of each kind of statement and expression, in the order of execution: once for those that look, once for those
/// that change.
macro_rules! inner {
    ($name:ident, $inner:ident, $option:ident, $list:ident $(, $mutable:tt)?) => {
        impl Stmt {
            fn $name(& $($mutable)? self) -> impl Iterator<Item = $inner<'_>> {
                use $inner::{Block, Value};
                let parts = match & $($mutable)? self.kind {
                    StmtKind::Declare(_, value) | StmtKind::Return(value) => {
                        [value. $option ().map(Value), None, None, None]
                    }
                    StmtKind::Expr(value) => [Some(Value(value)), None, None, None],
                    StmtKind::If(condition, then, otherwise) => [
                        Some(Value(condition)),
                        Some(Block(Runs::If, then)),
                        Some(Block(Runs::If, otherwise)),
                        None,
                    ],
                    StmtKind::Loop { init, condition, step, body, .. } => [
                        Some(Block(Runs::Once, init)),
                        condition. $option ().map(Value),
                        step. $option ().map(Value),
                        Some(Block(Runs::Repeatedly, body)),
                    ],
                    StmtKind::Block(inner) => [Some(Block(Runs::Once, inner)), None, None, None],
                    StmtKind::Switch(way, inner) => {
                        [Some(Value(way)), Some(Block(Runs::Once, inner)), None, None]
                    }
                    StmtKind::Break | StmtKind::Continue | StmtKind::Barrier | StmtKind::Unknown(_) => {
                        [None, None, None, None]
                    }
                };
                parts.into_iter().flatten()
            }
        }

        impl Expr {
            fn $name(& $($mutable)? self) -> impl Iterator<Item = $inner<'_>> {
                use $inner::{Block, Value};
                let no_list = || (& $($mutable)? []).into_iter();
                let (parts, list) = match & $($mutable)? self.kind {
                    ExprKind::Unary(_, a)
                    | ExprKind::Cast(_, a)
                    | ExprKind::Deref(a)
                    | ExprKind::Field(a, _)
                    | ExprKind::AddressOf(a)
                    | ExprKind::Step(_, _, a) => ([Some(Value(a)), None, None], no_list()),
                    ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) | ExprKind::Assign(_, a, b) => {
                        ([Some(Value(a)), Some(Value(b)), None], no_list())
                    }
                    ExprKind::Select(a, b, c) => {
                        ([Some(Value(a)), Some(Value(b)), Some(Value(c))], no_list())
                    }
                    ExprKind::Call(_, values)
                    | ExprKind::List(values)
                    | ExprKind::Opaque(_, values)
                    | ExprKind::Apply(_, values) => ([None, None, None], values. $list ()),
                    ExprKind::Inline(statements, _) => {
                        ([Some(Block(Runs::Once, statements)), None, None], no_list())
                    }
                    ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => {
                        ([None, None, None], no_list())
                    }
                };
                parts.into_iter().flatten().chain(list.map(Value))
            }
        }
    };
}

inner!(inner, Inner, as_ref, iter);
inner!(inner_mut, InnerMut, as_mut, iter_mut, mut);

impl Stmt {
    /// The statements within, not those of functions in place of their calls.
    pub fn blocks(&self) -> impl Iterator<Item = (Runs, &[Stmt])> {
        self.inner().filter_map(|inner| match inner {
            Inner::Block(runs, statements) => Some((runs, statements)),
            Inner::Value(_) => None,
        })
    }

    /// [`Stmt::blocks`], to be changed.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = (Runs, &mut Vec<Stmt>)> {
        self.inner_mut().filter_map(|inner| match inner {
            InnerMut::Block(runs, statements) => Some((runs, statements)),
            InnerMut::Value(_) => None,
        })
    }

    /// The expressions that it evaluates itself.
    pub fn values(&self) -> impl Iterator<Item = &Expr> {
        self.inner().filter_map(|inner| match inner {
            Inner::Value(value) => Some(value),
            Inner::Block(..) => None,
        })
    }

    /// True where control leaves it at the ends of its blocks only, and this holds of each.
    pub fn ends_with(&self, mut holds: impl FnMut(&[Stmt]) -> bool) -> bool {
        let mut blocks = self.blocks().peekable();
        blocks.peek().is_some()
            && blocks.all(|(runs, inner)| runs != Runs::Repeatedly && holds(inner))
    }

    /// True where nothing is known of memory behind it: what other threads wrote is visible, or it is not understood.
    pub fn may_change_memory(&self) -> bool {
        matches!(self.kind, StmtKind::Barrier | StmtKind::Unknown(_))
    }
}

/// True where a statement is such a one, or one within; functions in place of their calls are not looked at.
pub fn any_statement(statements: &[Stmt], is: &mut dyn FnMut(&Stmt) -> bool) -> bool {
    statements.iter().any(|statement| {
        is(statement)
            || statement
                .blocks()
                .any(|(_, inner)| any_statement(inner, is))
    })
}

/// [`any_statement`] but for the iterations of loops within: those statements whose `break` and `continue` mean the loop
/// around.
pub fn any_in_iteration(statements: &[Stmt], is: &mut dyn FnMut(&Stmt) -> bool) -> bool {
    statements.iter().any(|statement| {
        is(statement)
            || statement
                .blocks()
                .any(|(runs, inner)| runs != Runs::Repeatedly && any_in_iteration(inner, is))
    })
}

/// Looks at IR. Each method is asked about a part and goes on into it by the function of its name here, before or after what
/// it does itself, or not at all; `Break` ends the walk.
pub trait Visitor<'a> {
    /// A block, or the statements that the walk began with.
    fn block(&mut self, _: Runs, statements: &'a [Stmt]) -> ControlFlow<()> {
        walk_block(self, statements)
    }

    /// A statement.
    fn statement(&mut self, statement: &'a Stmt) -> ControlFlow<()> {
        walk_statement(self, statement)
    }

    /// An expression.
    fn expression(&mut self, expression: &'a Expr) -> ControlFlow<()> {
        walk_expression(self, expression)
    }
}

/// Visits the statements of a block.
pub fn walk_block<'a, V: Visitor<'a> + ?Sized>(
    visitor: &mut V,
    statements: &'a [Stmt],
) -> ControlFlow<()> {
    statements
        .iter()
        .try_for_each(|statement| visitor.statement(statement))
}

/// Visits the parts of a statement.
pub fn walk_statement<'a, V: Visitor<'a> + ?Sized>(
    visitor: &mut V,
    statement: &'a Stmt,
) -> ControlFlow<()> {
    statement
        .inner()
        .try_for_each(|inner| visit(visitor, inner))
}

/// Visits the parts of an expression; of a routine's call the arguments.
pub fn walk_expression<'a, V: Visitor<'a> + ?Sized>(
    visitor: &mut V,
    expression: &'a Expr,
) -> ControlFlow<()> {
    // Half of all expressions are leaves: for them nothing is built.
    if let ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) =
        expression.kind
    {
        return ControlFlow::Continue(());
    }
    expression
        .inner()
        .try_for_each(|inner| visit(visitor, inner))
}

fn visit<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, inner: Inner<'a>) -> ControlFlow<()> {
    match inner {
        Inner::Value(value) => visitor.expression(value),
        Inner::Block(runs, statements) => visitor.block(runs, statements),
    }
}

/// Changes IR in place: a [`Visitor`] that may write.
pub trait Fold {
    /// A block within.
    fn block(&mut self, _: Runs, statements: &mut Vec<Stmt>) {
        fold_block(self, statements);
    }

    /// A statement.
    fn statement(&mut self, statement: &mut Stmt) {
        fold_statement(self, statement);
    }

    /// An expression.
    fn expression(&mut self, expression: &mut Expr) {
        fold_expression(self, expression);
    }
}

/// Changes the statements of a block.
pub fn fold_block<F: Fold + ?Sized>(fold: &mut F, statements: &mut [Stmt]) {
    for statement in statements {
        fold.statement(statement);
    }
}

/// Changes the parts of a statement.
pub fn fold_statement<F: Fold + ?Sized>(fold: &mut F, statement: &mut Stmt) {
    statement.inner_mut().for_each(|inner| change(fold, inner));
}

/// Changes the parts of an expression; of a routine's call the arguments.
pub fn fold_expression<F: Fold + ?Sized>(fold: &mut F, expression: &mut Expr) {
    expression.inner_mut().for_each(|inner| change(fold, inner));
}

fn change<F: Fold + ?Sized>(fold: &mut F, inner: InnerMut) {
    match inner {
        InnerMut::Value(value) => fold.expression(value),
        InnerMut::Block(runs, statements) => fold.block(runs, statements),
    }
}

/// Visits every expression, outer ones before inner ones; of a routine's call the arguments.
pub fn expressions<'a>(statements: &'a [Stmt], visit: &mut dyn FnMut(&'a Expr)) {
    parts(statements, &mut |part| {
        if let Part::Expression(expression) = part {
            visit(expression);
        }
    });
}

/// Visits every expression of a kernel, also those of its routines, with where it is in the kernel's own body: what a routine has is
/// at its first call.
pub fn executed<'a>(kernel: &'a Kernel, visit: &mut dyn FnMut(&'a Expr, Site)) {
    let mut seen = vec![false; kernel.routines.len()];
    let mut calls = Vec::new();
    expressions(&kernel.body, &mut |expression| {
        visit(expression, expression.site);
        if let ExprKind::Apply(id, _) = &expression.kind {
            calls.push((id.0 as usize, expression.site));
        }
    });
    // In the order of the text: later calls are at the front.
    calls.reverse();
    while let Some((id, at)) = calls.pop() {
        if std::mem::replace(&mut seen[id], true) {
            continue;
        }
        expressions(&kernel.routines[id].body, &mut |expression| {
            visit(expression, at);
            if let ExprKind::Apply(id, _) = &expression.kind {
                calls.push((id.0 as usize, at));
            }
        });
    }
}

/// Visits every statement and expression, outer ones before inner ones; of a routine's call the arguments.
pub fn parts<'a>(statements: &'a [Stmt], visit: &mut dyn FnMut(Part<'a>)) {
    let _ = walk_block(&mut Each(visit), statements);
}

/// Hands each part to a function.
struct Each<'v, 'a>(&'v mut dyn FnMut(Part<'a>));

impl<'a> Visitor<'a> for Each<'_, 'a> {
    fn statement(&mut self, statement: &'a Stmt) -> ControlFlow<()> {
        (self.0)(Part::Statement(statement));
        walk_statement(self, statement)
    }

    fn expression(&mut self, expression: &'a Expr) -> ControlFlow<()> {
        (self.0)(Part::Expression(expression));
        walk_expression(self, expression)
    }
}

/// Visits the site of every statement and expression, in the order of [`parts`], to change it.
pub fn each_site(statements: &mut [Stmt], visit: &mut dyn FnMut(&mut Site)) {
    fold_block(&mut EachSite(visit), statements);
}

struct EachSite<'v>(&'v mut dyn FnMut(&mut Site));

impl Fold for EachSite<'_> {
    fn statement(&mut self, statement: &mut Stmt) {
        (self.0)(&mut statement.site);
        fold_statement(self, statement);
    }

    fn expression(&mut self, expression: &mut Expr) {
        (self.0)(&mut expression.site);
        fold_expression(self, expression);
    }
}

impl Expr {
    /// What is converted, of an expression in casts or in braces of its own.
    pub fn without_casts(&self) -> &Expr {
        match &self.kind {
            ExprKind::Cast(_, inner) => inner.without_casts(),
            ExprKind::List(parts) if parts.len() == 1 => parts[0].without_casts(),
            _ => self,
        }
    }

    /// True for the same value computed the same way, wherever the two are written.
    pub fn is_alike(&self, other: &Expr) -> bool {
        self.ty == other.ty
            && match (&self.kind, &other.kind) {
                (ExprKind::Unary(p, x), ExprKind::Unary(q, y)) => p == q && x.is_alike(y),
                (ExprKind::Cast(_, x), ExprKind::Cast(_, y))
                | (ExprKind::Deref(x), ExprKind::Deref(y)) => x.is_alike(y),
                (ExprKind::Field(x, p), ExprKind::Field(y, q)) => p == q && x.is_alike(y),
                (ExprKind::Binary(p, x, s), ExprKind::Binary(q, y, t)) => {
                    p == q && x.is_alike(y) && s.is_alike(t)
                }
                (ExprKind::Index(x, s), ExprKind::Index(y, t)) => x.is_alike(y) && s.is_alike(t),
                (
                    ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Builtin(_),
                    _,
                ) => self.kind == other.kind,
                _ => false,
            }
    }

    /// True for an expression that names a place, or a part of what another one gives.
    pub fn is_place(&self) -> bool {
        matches!(
            self.kind,
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..)
        )
    }

    /// The variable that a place is reached through: `p` of `p[i].x` and of `*(p + i)`.
    pub fn base_variable(&self) -> Option<VarId> {
        match &self.kind {
            ExprKind::Var(id) => Some(*id),
            ExprKind::Index(base, _)
            | ExprKind::Deref(base)
            | ExprKind::Field(base, _)
            | ExprKind::Cast(_, base)
            | ExprKind::AddressOf(base)
            | ExprKind::Binary(_, base, _) => base.base_variable(),
            ExprKind::List(parts) if parts.len() == 1 => parts[0].base_variable(),
            _ => None,
        }
    }

    /// Its operands and arguments; not what the statements of a function in its place evaluate.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        self.inner().filter_map(|inner| match inner {
            Inner::Value(value) => Some(value),
            Inner::Block(..) => None,
        })
    }

    /// Visits the expression and all in it, outer parts before inner ones.
    pub fn parts<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        let _ = Each(visit).expression(self);
    }

    /// Visits the expression and every one in it, outer ones before inner ones.
    pub fn expressions<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        self.parts(&mut |part| {
            if let Part::Expression(expression) = part {
                visit(expression);
            }
        });
    }

    /// True where it, or one in it, is such an expression.
    pub fn any(&self, is: &mut dyn FnMut(&Expr) -> bool) -> bool {
        struct Any<'v>(&'v mut dyn FnMut(&Expr) -> bool);
        impl<'a> Visitor<'a> for Any<'_> {
            fn expression(&mut self, expression: &'a Expr) -> ControlFlow<()> {
                if (self.0)(expression) {
                    return ControlFlow::Break(());
                }
                walk_expression(self, expression)
            }
        }
        Any(is).expression(self).is_break()
    }

    /// True where it reads one of these variables.
    pub fn reads(&self, variables: &[VarId]) -> bool {
        self.any(&mut |part| matches!(&part.kind, ExprKind::Var(id) if variables.contains(id)))
    }

    /// True where its evaluation may read memory or go several ways.
    pub fn reads_or_forks(&self) -> bool {
        self.any(&mut |part| {
            matches!(
                part.kind,
                ExprKind::Index(..)
                    | ExprKind::Deref(_)
                    | ExprKind::Select(..)
                    | ExprKind::Inline(..)
                    | ExprKind::Apply(..)
            )
        })
    }
}
