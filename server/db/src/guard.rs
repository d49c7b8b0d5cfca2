//! How many blocks a kernel's guards ask for: `if (i < n)`, `if (x >= w || y >= h) return;`.
//!
//! In: a kernel in IR and its block. Out: along each axis the blocks as a [`Size`], where a guard compares a coordinate that grows with
//! the block's with what depends on parameters alone. What holds: with that many blocks each value below the bound has a thread, and
//! the last block has one. A variable counts only where it is assigned once.

use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, Kernel, Part, Stmt, StmtKind, Storage, Type, VarId,
    expressions, parts,
};

use crate::size::Size;

/// Definitions are followed so deep.
const DEEPEST: u32 = 24;

/// Which of the blocks' coordinates and extents a kernel reads.
pub(crate) fn block_axes(kernel: &Kernel) -> [bool; 3] {
    let mut axes = [false; 3];
    expressions(&kernel.body, &mut |expr| {
        if let ExprKind::Builtin(
            Builtin::BlockIdx(axis) | Builtin::GlobalIdx(axis) | Builtin::GridDim(axis),
        ) = expr.kind
        {
            axes[usize::from(axis) % 3] = true;
        }
    });
    axes
}

/// What the kernel's guards and loops ask of the grid.
pub(crate) struct Asked {
    /// Blocks along each axis; nothing where no guard asks for any.
    pub blocks: [Option<Size>; 3],
    /// Elements over which the whole grid strides.
    pub strided: Option<Size>,
}

/// What the kernel asks of its grid under this block.
pub(crate) fn asked(kernel: &Kernel, block: [u64; 3]) -> Asked {
    let mut guards = Guards {
        kernel,
        block: block.map(|extent| i64::try_from(extent).unwrap_or(i64::MAX)),
        definitions: definitions(kernel),
        found: [None, None, None],
        strided: None,
    };
    guards.statements(&kernel.body);
    Asked {
        blocks: guards.found,
        strided: guards.strided,
    }
}

/// What each variable is that is assigned once, where it is declared.
pub(crate) fn definitions(kernel: &Kernel) -> Vec<Option<&Expr>> {
    let mut defined = vec![None; kernel.vars.len()];
    let mut assigned = vec![0_u32; kernel.vars.len()];
    parts(&kernel.body, &mut |part| match part {
        Part::Statement(Stmt {
            kind: StmtKind::Declare(id, Some(value)),
            ..
        }) => {
            defined[id.0 as usize] = Some(value);
            assigned[id.0 as usize] += 1;
        }
        Part::Expression(Expr {
            kind: ExprKind::Assign(op, to, value),
            ..
        }) => {
            if let ExprKind::Var(id) = to.kind {
                assigned[id.0 as usize] += 1;
                defined[id.0 as usize] = op.is_none().then_some(&**value);
            }
        }
        Part::Expression(Expr {
            kind: ExprKind::Step(_, _, of) | ExprKind::AddressOf(of),
            ..
        }) => {
            if let ExprKind::Var(id) = of.kind {
                assigned[id.0 as usize] += 2;
            }
        }
        _ => {}
    });
    let once = assigned.iter().zip(defined).enumerate();
    once.map(|(index, (times, value))| {
        let var = &kernel.vars[index];
        value.filter(|_| *times == 1 && !var.escapes && !matches!(var.storage, Storage::Param(_)))
    })
    .collect()
}

/// The coordinate of a thread in the launch as a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Linear {
    block: [i64; 3],
    thread: [i64; 3],
    constant: i64,
}

impl Linear {
    fn combine(self, other: Linear, by: i64) -> Option<Linear> {
        let mut sum = self;
        let each = sum.block.iter_mut().chain(&mut sum.thread);
        for (to, from) in each.zip(other.block.iter().chain(&other.thread)) {
            *to = to.checked_add(from.checked_mul(by)?)?;
        }
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(by)?)?;
        Some(sum)
    }

    fn number(self) -> Option<i64> {
        (self.block == [0; 3] && self.thread == [0; 3]).then_some(self.constant)
    }

    /// Divided, where what is lost does not change how it grows with the blocks.
    fn quotient(self, by: i64) -> Option<Linear> {
        (by > 0 && self.block.iter().all(|factor| factor % by == 0)).then(|| Linear {
            block: self.block.map(|factor| factor / by),
            thread: self.thread.map(|factor| factor / by),
            constant: self.constant / by,
        })
    }
}

struct Guards<'a> {
    kernel: &'a Kernel,
    block: [i64; 3],
    definitions: Vec<Option<&'a Expr>>,
    found: [Option<Size>; 3],
    strided: Option<Size>,
}

impl Guards<'_> {
    fn statements(&mut self, statements: &[Stmt]) {
        for (at, statement) in statements.iter().enumerate() {
            let last = at + 1 == statements.len();
            match &statement.kind {
                StmtKind::If(condition, then, otherwise) if otherwise.is_empty() => {
                    if leaves(then) {
                        self.condition(condition, false, true);
                    } else {
                        self.condition(condition, true, last);
                        self.statements(then);
                    }
                }
                StmtKind::If(condition, then, otherwise) => {
                    self.condition(condition, true, false);
                    self.statements(then);
                    self.statements(otherwise);
                }
                StmtKind::Block(inner) => self.statements(inner),
                StmtKind::Loop {
                    init,
                    condition,
                    step,
                    body,
                    ..
                } => {
                    self.stride(init, condition.as_ref(), step.as_ref(), body);
                    self.statements(body);
                }
                _ => {}
            }
        }
    }

    /// `for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)`
    fn stride(
        &mut self,
        init: &[Stmt],
        condition: Option<&Expr>,
        step: Option<&Expr>,
        body: &[Stmt],
    ) {
        let Some(Expr {
            kind: ExprKind::Binary(BinaryOp::Lt, counter, bound),
            ..
        }) = condition.map(Expr::without_casts)
        else {
            return;
        };
        let ExprKind::Var(counter) = counter.without_casts().kind else {
            return;
        };
        let started = init.iter().find_map(|statement| match &statement.kind {
            StmtKind::Declare(id, Some(value)) if *id == counter => Some(value),
            StmtKind::Expr(Expr {
                kind: ExprKind::Assign(None, to, value),
                ..
            }) if to.kind == ExprKind::Var(counter) => Some(&**value),
            _ => None,
        });
        // A `while` counts a variable that was declared before it.
        let started = started.or_else(|| self.declared(counter));
        let from = started.and_then(|value| self.linear(value, DEEPEST));
        let strides = from.is_some_and(|from| from.block != [0; 3])
            && (step.is_some_and(|step| self.reads_grid(step, DEEPEST))
                || body.iter().any(|statement| match &statement.kind {
                    StmtKind::Expr(step) => self.reads_grid(step, DEEPEST),
                    _ => false,
                }));
        if strides && self.strided.is_none() {
            self.strided = self.size(bound, DEEPEST);
        }
    }

    /// What a variable begins with, however often it is assigned later.
    fn declared(&self, id: VarId) -> Option<&Expr> {
        let mut found = None;
        parts(&self.kernel.body, &mut |part| {
            if let Part::Statement(Stmt {
                kind: StmtKind::Declare(of, Some(value)),
                ..
            }) = part
                && *of == id
            {
                found = Some(value);
            }
        });
        found
    }

    fn reads_grid(&self, expr: &Expr, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let mut reads = false;
        expr.expressions(&mut |part| match part.kind {
            ExprKind::Builtin(Builtin::GridDim(_)) => reads = true,
            ExprKind::Var(id) if !reads => {
                reads |= self
                    .definition(id)
                    .is_some_and(|of| self.reads_grid(of, depth));
            }
            _ => {}
        });
        reads
    }

    /// `holds`: those work for which it holds; else those for which it does not. `whole`: nothing else works.
    fn condition(&mut self, condition: &Expr, holds: bool, whole: bool) {
        match &condition.kind {
            ExprKind::Cast(_, inner) => self.condition(inner, holds, whole),
            ExprKind::Unary(warplens_ir::UnaryOp::Not, inner) => {
                self.condition(inner, !holds, whole);
            }
            ExprKind::Binary(op, a, b) => match (op, holds) {
                (BinaryOp::LogicalAnd, true) | (BinaryOp::LogicalOr, false) => {
                    self.condition(a, holds, whole);
                    self.condition(b, holds, whole);
                }
                (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => self.bound(a, b, 0, whole),
                (BinaryOp::Le, true) | (BinaryOp::Gt, false) => self.bound(a, b, 1, whole),
                (BinaryOp::Gt, true) | (BinaryOp::Le, false) => self.bound(b, a, 0, whole),
                (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => self.bound(b, a, 1, whole),
                // `if (i == n) return;` is how some write it.
                _ => {}
            },
            _ => {}
        }
    }

    /// Those work whose coordinate lies below the bound and `more`.
    fn bound(&mut self, coordinate: &Expr, bound: &Expr, more: i64, whole: bool) {
        let Some((coordinate, begins)) = self.ranged(coordinate, DEEPEST) else {
            return;
        };
        let grows = coordinate.block.map(|factor| factor != 0);
        let axis = match grows {
            [true, false, false] => 0,
            [false, true, false] => 1,
            [false, false, true] => 2,
            _ => return,
        };
        let step = coordinate.block[axis];
        if step <= 0 || self.found[axis].is_some() {
            return;
        }
        let Some(bound) = self.size(bound, DEEPEST) else {
            return;
        };
        let bound = match begins {
            Some(begins) => Size::Difference(Box::new(bound), Box::new(begins)),
            None => bound,
        };
        let Some(more) = self
            .least(coordinate)
            .and_then(|least| more.checked_sub(least))
        else {
            return;
        };
        let bound = match more {
            0 => bound,
            1.. => sum(bound, more),
            less => difference(bound, less.saturating_neg()),
        };
        if let Size::Number(number) = bound {
            // Few that do something for all are no grid.
            if whole && number > step {
                let blocks = number / step + i64::from(number % step != 0);
                self.found[axis] = Some(Size::Number(blocks));
            }
            return;
        }
        self.found[axis] = Some(match step {
            1 => bound,
            _ => Size::Ceiling(Box::new(bound), step),
        });
    }

    /// The least coordinate of a thread of the first block; the blocks grow from there.
    fn least(&self, coordinate: Linear) -> Option<i64> {
        let mut each = coordinate.thread.iter().zip(self.block);
        each.try_fold(coordinate.constant, |least, (factor, extent)| {
            let last = extent.checked_sub(1)?;
            least.checked_add(factor.min(&0).checked_mul(last)?)
        })
    }

    fn definition(&self, id: VarId) -> Option<&Expr> {
        *self.definitions.get(id.0 as usize)?
    }

    /// A coordinate and the size that its range begins with: `first + blockIdx.x * blockDim.x + threadIdx.x`.
    fn ranged(&self, expr: &Expr, depth: u32) -> Option<(Linear, Option<Size>)> {
        if let Some(linear) = self.linear(expr, depth) {
            return Some((linear, None));
        }
        let depth = depth.checked_sub(1)?;
        match &expr.kind {
            ExprKind::Cast(_, inner) if matches!(expr.ty, Type::Int { .. }) => {
                self.ranged(inner, depth)
            }
            ExprKind::Var(id) => self.ranged(self.definition(*id)?, depth),
            ExprKind::Inline(_, Some(result)) => self.ranged(self.definition(*result)?, depth),
            ExprKind::Binary(BinaryOp::Add, a, b) => {
                [(a, b), (b, a)]
                    .into_iter()
                    .find_map(|(coordinate, first)| {
                        let first = self.size(first, depth)?;
                        let (linear, begins) = self.ranged(coordinate, depth)?;
                        let begins = match begins {
                            Some(begins) => Size::Sum(Box::new(begins), Box::new(first)),
                            None => first,
                        };
                        Some((linear, Some(begins)))
                    })
            }
            _ => None,
        }
    }

    fn linear(&self, expr: &Expr, depth: u32) -> Option<Linear> {
        let depth = depth.checked_sub(1)?;
        let constant = |constant| {
            Some(Linear {
                constant,
                ..Linear::default()
            })
        };
        match &expr.kind {
            ExprKind::Int(value) => constant(*value),
            ExprKind::Cast(_, inner) if matches!(expr.ty, Type::Int { .. }) => {
                self.linear(inner, depth)
            }
            ExprKind::Var(id) => self.linear(self.definition(*id)?, depth),
            ExprKind::Builtin(builtin) => {
                let mut found = Linear::default();
                match builtin {
                    Builtin::ThreadIdx(axis) => found.thread[usize::from(*axis) % 3] = 1,
                    Builtin::BlockIdx(axis) => found.block[usize::from(*axis) % 3] = 1,
                    Builtin::GlobalIdx(axis) => {
                        let axis = usize::from(*axis) % 3;
                        found.thread[axis] = 1;
                        found.block[axis] = self.block[axis];
                    }
                    Builtin::BlockDim(axis) => found.constant = self.block[usize::from(*axis) % 3],
                    Builtin::GridDim(_) | Builtin::WarpSize | Builtin::ClusterDim(_) => {
                        return None;
                    }
                }
                Some(found)
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.linear(a, depth)?, self.linear(b, depth)?);
                match op {
                    BinaryOp::Add => a.combine(b, 1),
                    BinaryOp::Sub => a.combine(b, -1),
                    BinaryOp::Mul => match (a.number(), b.number()) {
                        (_, Some(by)) => Linear::default().combine(a, by),
                        (Some(by), _) => Linear::default().combine(b, by),
                        _ => None,
                    },
                    BinaryOp::Shl => {
                        let by = 1_i64.checked_shl(u32::try_from(b.number()?).ok()?)?;
                        Linear::default().combine(a, by)
                    }
                    BinaryOp::Div => a.quotient(b.number()?),
                    BinaryOp::Shr => {
                        a.quotient(1_i64.checked_shl(u32::try_from(b.number()?).ok()?)?)
                    }
                    _ => None,
                }
            }
            ExprKind::Inline(_, Some(result)) => self.linear(self.definition(*result)?, depth),
            _ => None,
        }
    }

    fn size(&self, expr: &Expr, depth: u32) -> Option<Size> {
        let depth = depth.checked_sub(1)?;
        match &expr.kind {
            ExprKind::Int(value) => Some(Size::Number(*value)),
            ExprKind::Cast(_, inner) if matches!(expr.ty, Type::Int { .. }) => {
                self.size(inner, depth)
            }
            ExprKind::Builtin(Builtin::BlockDim(axis)) => {
                Some(Size::Number(self.block[usize::from(*axis) % 3]))
            }
            ExprKind::Var(id) => {
                let var = self.kernel.vars.get(id.0 as usize)?;
                let integer = matches!(var.ty, Type::Int { .. });
                match self.definition(*id) {
                    Some(value) => self.size(value, depth),
                    None => (integer && self.is_constant_parameter(*id))
                        .then(|| Size::Parameter(var.name.clone())),
                }
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.size(a, depth)?, self.size(b, depth)?);
                let numbers = match (&a, &b) {
                    (Size::Number(a), Size::Number(b)) => Some((*a, *b)),
                    _ => None,
                };
                let (a, b) = (Box::new(a), Box::new(b));
                let size = match op {
                    BinaryOp::Add => Size::Sum(a, b),
                    BinaryOp::Sub => Size::Difference(a, b),
                    BinaryOp::Mul => Size::Product(a, b),
                    BinaryOp::Div => Size::Quotient(a, b),
                    BinaryOp::Shr => match *b {
                        Size::Number(by @ 0..=30) => {
                            Size::Quotient(a, Box::new(Size::Number(1 << by)))
                        }
                        _ => return None,
                    },
                    _ => return None,
                };
                if numbers.is_some() {
                    return size.value(&|_| None).map(Size::Number);
                }
                Some(size)
            }
            _ => None,
        }
    }

    fn is_constant_parameter(&self, id: VarId) -> bool {
        let Some(var) = self.kernel.vars.get(id.0 as usize) else {
            return false;
        };
        if !matches!(var.storage, Storage::Param(_)) || var.escapes {
            return false;
        }
        let mut constant = true;
        expressions(&self.kernel.body, &mut |expr| {
            if let ExprKind::Assign(_, to, _) | ExprKind::Step(_, _, to) = &expr.kind {
                constant &= to.kind != ExprKind::Var(id);
            }
        });
        constant
    }
}

fn sum(of: Size, more: i64) -> Size {
    match of {
        Size::Number(number) => Size::Number(number.saturating_add(more)),
        // `i <= n - 1`
        Size::Difference(a, b) if *b == Size::Number(more) => *a,
        of => Size::Sum(Box::new(of), Box::new(Size::Number(more))),
    }
}

fn difference(of: Size, less: i64) -> Size {
    match of {
        Size::Number(number) => Size::Number(number.saturating_sub(less)),
        Size::Sum(a, b) if *b == Size::Number(less) => *a,
        of => Size::Difference(Box::new(of), Box::new(Size::Number(less))),
    }
}

/// True where the statements do nothing but end the thread.
fn leaves(statements: &[Stmt]) -> bool {
    match statements {
        [
            Stmt {
                kind: StmtKind::Return(None),
                ..
            },
        ] => true,
        [
            Stmt {
                kind: StmtKind::Block(inner),
                ..
            },
        ] => leaves(inner),
        _ => false,
    }
}
