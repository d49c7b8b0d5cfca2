//! Loops that only wait: for a barrier in memory, asked again and again.

use std::ops::ControlFlow;

use warplens_ir::{Expr, ExprKind, Function, MathClass, Stmt, StmtKind, Type, Visitor, walk};

/// True for a loop that asks a barrier in memory again and again, and does nothing else.
pub(crate) fn only_waits(condition: Option<&Expr>, body: &[Stmt]) -> bool {
    let mut looked = Waits::default();
    let _ = walk::walk_block(&mut looked, body);
    if let Some(condition) = condition {
        let _ = looked.expression(condition);
    }
    looked.asks && !looked.works && looked.reads == 0
}

/// Looks for questions to a barrier, and for anything that is work.
#[derive(Default)]
struct Waits {
    asks: bool,
    works: bool,
    /// Places behind pointers whose values are taken.
    reads: i64,
}

impl Visitor<'_> for Waits {
    fn statement(&mut self, statement: &Stmt) -> ControlFlow<()> {
        self.works |= matches!(statement.kind, StmtKind::Loop { .. } | StmtKind::Barrier);
        walk::walk_statement(self, statement)
    }

    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        match &expression.kind {
            ExprKind::Call(function, _) => match function.plain().0 {
                Function::Ignored(_, name) => self.asks |= asks_a_barrier(name),
                Function::Load
                | Function::Store
                | Function::Atomic(..)
                | Function::Tile { .. }
                | Function::Rows { .. }
                | Function::Bulk { .. }
                | Function::BulkBox { .. }
                | Function::CopyPastRegisters
                | Function::Math(MathClass::Tensor, _) => self.works = true,
                _ => {}
            },
            ExprKind::Deref(_) | ExprKind::Index(..) => self.reads += 1,
            // An address is no value.
            ExprKind::AddressOf(place) => self.reads -= places_in(place),
            _ => {}
        }
        walk::walk_expression(self, expression)
    }
}

/// Places whose parts a place is: they are not read for its address.
fn places_in(place: &Expr) -> i64 {
    match &place.kind {
        ExprKind::Deref(_) => 1,
        // An array within an array is a place of its own, a pointer is read.
        ExprKind::Index(base, _) if matches!(base.ty, Type::Array(..)) => 1 + places_in(base),
        ExprKind::Index(..) => 1,
        ExprKind::Field(base, _) => places_in(base),
        _ => 0,
    }
}

/// `mbarrier.try_wait`, in its spellings.
fn asks_a_barrier(name: &str) -> bool {
    name.starts_with("mbarrier") && (name.contains("try_wait") || name.contains("test_wait"))
}
