//! Values that all threads of a block agree on: what they do not depend on is a thread's place in its block.

use warplens_ir::{Builtin, Expr, ExprKind, Kernel, Opaque, Stmt, StmtKind, VarId};

/// Passes over the kernel until nothing changes; a kernel that needs more agrees on nothing.
const MOST_PASSES: usize = 16;

/// Which variables differ between the threads of a block.
pub(crate) struct Agreed {
    differs: Vec<bool>,
    changed: bool,
    /// Of each loop around: some threads leave it, or one of its iterations, before others.
    left_early: Vec<bool>,
}

impl Agreed {
    /// What the kernel's threads agree on.
    pub(crate) fn of(kernel: &Kernel) -> Agreed {
        let differs = kernel.vars.iter().map(|var| var.escapes || var.volatile);
        let mut agreed = Agreed {
            differs: differs.collect(),
            changed: true,
            left_early: Vec::new(),
        };
        for _ in 0..MOST_PASSES {
            if !agreed.changed {
                return agreed;
            }
            agreed.changed = false;
            agreed.statements(&kernel.body, false);
        }
        agreed.differs.fill(true);
        agreed
    }

    /// True where all threads of a block that come to an expression together have the same value.
    pub(crate) fn on(&self, expression: &Expr) -> bool {
        match &expression.kind {
            ExprKind::Builtin(builtin) => {
                !matches!(builtin, Builtin::ThreadIdx(_) | Builtin::GlobalIdx(_))
            }
            ExprKind::Var(var) => !self.differs[var.0 as usize],
            ExprKind::Inline(_, value) => value.is_none_or(|var| !self.differs[var.0 as usize]),
            ExprKind::Apply(..) | ExprKind::Opaque(Opaque::Unknown | Opaque::Loaded, _) => false,
            ExprKind::Call(function, _) if !function.is_arithmetic() => false,
            _ => expression.operands().all(|operand| self.on(operand)),
        }
    }

    fn statements(&mut self, statements: &[Stmt], diverged: bool) {
        for statement in statements {
            let diverged = diverged || self.left_early.iter().any(|left| *left);
            match &statement.kind {
                StmtKind::Declare(var, Some(value)) => {
                    self.value(value, diverged);
                    self.assigned(*var, diverged || !self.on(value));
                }
                StmtKind::Expr(value) | StmtKind::Return(Some(value)) => {
                    self.value(value, diverged);
                }
                StmtKind::If(condition, then, otherwise) => {
                    self.value(condition, diverged);
                    let diverged = diverged || !self.on(condition);
                    self.statements(then, diverged);
                    self.statements(otherwise, diverged);
                }
                StmtKind::Loop {
                    init,
                    condition,
                    step,
                    body,
                    ..
                } => {
                    self.statements(init, diverged);
                    let ends = condition.as_ref();
                    let diverged = diverged || ends.is_some_and(|condition| !self.on(condition));
                    self.left_early.push(false);
                    self.statements(body, diverged);
                    // Twice: what leaves at the end of the body decides about its beginning.
                    self.statements(body, diverged);
                    let diverged = diverged || self.left_early.pop() == Some(true);
                    for part in ends.into_iter().chain(step) {
                        self.value(part, diverged);
                    }
                }
                StmtKind::Block(inner) => self.statements(inner, diverged),
                StmtKind::Switch(way, inner) => {
                    self.value(way, diverged);
                    let diverged = diverged || !self.on(way);
                    self.statements(inner, diverged);
                }
                StmtKind::Break | StmtKind::Continue | StmtKind::Return(None) => {
                    if diverged && let Some(left) = self.left_early.last_mut() {
                        *left = true;
                    }
                }
                _ => {}
            }
        }
    }

    /// What the evaluation of an expression assigns.
    fn value(&mut self, expression: &Expr, diverged: bool) {
        match &expression.kind {
            ExprKind::Assign(_, target, value) => {
                self.value(value, diverged);
                self.target(target, diverged || !self.on(value));
            }
            ExprKind::Step(_, _, target) => self.target(target, diverged),
            ExprKind::Inline(statements, _) => self.statements(statements, diverged),
            _ => {
                for operand in expression.operands() {
                    self.value(operand, diverged);
                }
            }
        }
    }

    fn target(&mut self, target: &Expr, differs: bool) {
        match &target.kind {
            ExprKind::Var(var) => self.assigned(*var, differs),
            ExprKind::Index(base, index) => {
                self.value(index, differs);
                self.target(base, differs || !self.on(index));
            }
            ExprKind::Field(base, _) | ExprKind::Cast(_, base) => self.target(base, differs),
            _ => self.value(target, differs),
        }
    }

    fn assigned(&mut self, var: VarId, differs: bool) {
        let known = &mut self.differs[var.0 as usize];
        self.changed |= differs && !*known;
        *known |= differs;
    }
}
