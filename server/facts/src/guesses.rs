//! How many iterations are assumed of a loop whose number is not known.
//!
//! In: what is known of its condition and of what its body does to the variables in it. Out: [`GUESSED_TRIPS`], fewer where the part of
//! the condition that is known ends it before, and for a search that halves what is left the halvings until nothing is.

use std::ops::ControlFlow;

use warplens_ir::{BinaryOp as IrOp, Expr, ExprKind, Stmt, VarId, Visitor, walk};
use warplens_symbolic::{BinaryOp, Id, Interval, Node};

use crate::executor::Executor;
use crate::loops::{GUESSED_TRIPS, assigned_in};
use crate::value::{Kind, Value};

impl Executor<'_> {
    /// The guess, and no more than the condition allows.
    pub(crate) fn at_most(&mut self, condition: Id, iteration: Id) -> i64 {
        let bound = self.bound(condition, iteration);
        bound.map_or(GUESSED_TRIPS, |bound| bound.clamp(1, GUESSED_TRIPS))
    }

    /// An upper bound of the iterations from 0 on for which a condition holds.
    fn bound(&mut self, condition: Id, iteration: Id) -> Option<i64> {
        match *self.arena.node(condition) {
            Node::Binary(BinaryOp::LogicalAnd, a, b) => {
                let (a, b) = (self.bound(a, iteration), self.bound(b, iteration));
                match (a, b) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                }
            }
            Node::Binary(op @ (BinaryOp::Lt | BinaryOp::Le), left, right) => {
                // start + by * j < 0.
                let difference = self.arena.sub(left, right);
                let (start, by) = self.linear(difference, iteration)?;
                let by = self.arena.value(by).filter(|by| *by > 0)?;
                let range = self.arena.range(start);
                let least = (range.lo > Interval::ANY.lo).then_some(range.lo)?;
                // The last iteration for which it may hold.
                let farthest = -least - i64::from(op == BinaryOp::Lt);
                Some((farthest.div_euclid(by) + 1).max(0))
            }
            _ => None,
        }
    }

    /// Iterations of a search: while one variable is less than another, one of the two becomes the middle between them.
    pub(crate) fn halvings(
        &mut self,
        condition: &Expr,
        body: &[Stmt],
        entry: &[(VarId, Value)],
    ) -> Option<i64> {
        let (low, high) = compared(condition)?;
        let mut assigned = Vec::new();
        assigned_in(body, &mut assigned);
        if !assigned.contains(&low) || !assigned.contains(&high) {
            return None;
        }
        let mut middle = Middle {
            ends: [low, high],
            found: false,
        };
        let _ = walk::walk_block(&mut middle, body);
        let start = |of: VarId| {
            let (_, value) = entry.iter().find(|(id, _)| *id == of)?;
            match value.kind {
                Kind::Int(id) => Some(id),
                _ => None,
            }
        };
        let (low, high) = (start(low)?, start(high)?);
        let between = self.arena.sub(high, low);
        let most = self.arena.range(between).hi;
        // A range that is all of a type says nothing.
        let is_known = middle.found && (1..i64::from(i32::MAX)).contains(&most);
        is_known.then(|| i64::from(64 - most.leading_zeros()))
    }
}

/// The variables of `low < high` and its like, with or without a constant beside one of them.
fn compared(condition: &Expr) -> Option<(VarId, VarId)> {
    let ExprKind::Binary(op, left, right) = &condition.kind else {
        return None;
    };
    let (left, right) = match op {
        IrOp::Lt | IrOp::Le | IrOp::Ne => (left, right),
        IrOp::Gt | IrOp::Ge => (right, left),
        _ => return None,
    };
    Some((variable(left)?, variable(right)?))
}

/// `i` of `i`, `i + 1`, `i - 1`.
fn variable(of: &Expr) -> Option<VarId> {
    match &of.kind {
        ExprKind::Var(id) => Some(*id),
        ExprKind::Cast(_, inner) => variable(inner),
        ExprKind::Binary(IrOp::Add | IrOp::Sub, left, right)
            if matches!(right.kind, ExprKind::Int(_)) =>
        {
            variable(left)
        }
        _ => None,
    }
}

/// Looks for a half of what two variables make: `(low + high) / 2`, `low + (high - low) / 2`, a shift in its place.
struct Middle {
    ends: [VarId; 2],
    found: bool,
}

impl Visitor<'_> for Middle {
    fn expression(&mut self, expression: &Expr) -> ControlFlow<()> {
        if let ExprKind::Binary(op, whole, by) = &expression.kind
            && matches!(
                (op, &by.kind),
                (IrOp::Div, ExprKind::Int(2)) | (IrOp::Shr, ExprKind::Int(1))
            )
            && self.ends.iter().all(|end| whole.reads(&[*end]))
        {
            self.found = true;
            return ControlFlow::Break(());
        }
        walk::walk_expression(self, expression)
    }
}
