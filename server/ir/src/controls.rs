//! The places of a kernel where control parts, numbered: what the analysis finds of one is found again by all that
//! compiles the same kernel, in a copy of a function's body too.

use rustc_hash::FxHashMap;

use crate::kernel::{BinaryOp, Expr, ExprKind, Kernel, Stmt, StmtKind};
use crate::walk::{Part, parts};

/// A place where control parts: a loop, an `if`, `?:`, or `&&` and `||` with their first operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Control(pub u32);

/// All of a kernel. They are known by where the IR lies in memory, so they hold for this very IR.
#[derive(Debug, Clone, Default)]
pub struct Controls {
    numbers: FxHashMap<usize, u32>,
}

impl Controls {
    /// Those of a kernel and of its routines, in the order of the IR.
    pub fn of(kernel: &Kernel) -> Controls {
        let mut controls = Controls::default();
        let bodies = kernel.routines.iter().map(|routine| &routine.body);
        for body in std::iter::once(&kernel.body).chain(bodies) {
            parts(body, &mut |part| match part {
                Part::Statement(statement) => match &statement.kind {
                    StmtKind::Loop { .. } => controls.add(std::ptr::from_ref(statement) as usize),
                    StmtKind::If(condition, ..) => {
                        controls.add(std::ptr::from_ref(condition) as usize);
                    }
                    _ => {}
                },
                Part::Expression(expression) => match &expression.kind {
                    ExprKind::Select(first, ..)
                    | ExprKind::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, first, _) => {
                        controls.add(std::ptr::from_ref(&**first) as usize);
                    }
                    _ => {}
                },
            });
        }
        controls
    }

    fn add(&mut self, address: usize) {
        let next = self.numbers.len() as u32;
        self.numbers.entry(address).or_insert(next);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The loop of a statement.
    pub fn of_loop(&self, statement: &Stmt) -> Option<Control> {
        self.at(std::ptr::from_ref(statement) as usize)
    }

    /// What a condition decides, or the first operand of `&&` and `||`.
    pub fn of_condition(&self, condition: &Expr) -> Option<Control> {
        self.at(std::ptr::from_ref(condition) as usize)
    }

    /// By the address of the statement or the condition.
    pub fn at(&self, address: usize) -> Option<Control> {
        self.numbers.get(&address).copied().map(Control)
    }
}
