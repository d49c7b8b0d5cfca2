//! Which block sizes a kernel does the same work with.
//!
//! In: a kernel in IR. Out: the axes along which it reads nothing of the launch but the thread's coordinate in the whole grid,
//! `blockIdx.x * blockDim.x + threadIdx.x`, and the threads of the whole grid; else why not. What holds: along such an axis a launch
//! with another block and as many threads computes the same, thread by thread.

use std::ops::ControlFlow;

use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, Kernel, Site, Stmt, StmtKind, Storage, VarId, Visitor,
    walk_expression, walk_statement,
};

use crate::guard::definitions;

/// Definitions are followed so deep.
const DEEPEST: u32 = 24;
/// Lanes of every warp: a remainder by a power of two up to it is the same in every block of whole warps.
const FEWEST_LANES: i64 = 32;

/// How a kernel reads the coordinates of its launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coordinates {
    /// Along these axes by the coordinates in the grid alone; `whole_warps`: only blocks of whole warps along x are alike, because
    /// it numbers lanes.
    Flat { axes: [bool; 3], whole_warps: bool },
    /// A coordinate or an extent of the block by itself; where.
    OfBlock(Site),
    /// The threads of a block share memory.
    Shared,
    /// Something was not understood, or is defined nowhere: it may read anything.
    Unknown,
}

/// How the kernel reads them.
pub(crate) fn coordinates(kernel: &Kernel) -> Coordinates {
    if !kernel.not_understood.is_empty() || !kernel.undefined.is_empty() {
        return Coordinates::Unknown;
    }
    let shares = |storage| matches!(storage, Storage::Shared | Storage::DynamicShared);
    if kernel.vars.iter().any(|var| shares(var.storage)) {
        return Coordinates::Shared;
    }
    let mut reads = Reads {
        definitions: definitions(kernel),
        flat: [false; 3],
        own: [None; 3],
        lanes: None,
    };
    let bodies = std::iter::once(&kernel.body);
    for body in bodies.chain(kernel.routines.iter().map(|routine| &routine.body)) {
        let _ = body
            .iter()
            .try_for_each(|statement| reads.statement(statement));
    }
    let axes: [bool; 3] = std::array::from_fn(|axis| reads.flat[axis] && reads.own[axis].is_none());
    let whole_warps = reads.lanes.is_some();
    let numbers_lanes_of_rows = whole_warps && kernel.axes != [true, false, false];
    if axes == [false; 3] || numbers_lanes_of_rows {
        let own = reads.own.iter().flatten().chain(&reads.lanes);
        return own
            .min_by_key(|site| (site.span.start, site.callee))
            .map_or(Coordinates::Unknown, |site| Coordinates::OfBlock(*site));
    }
    Coordinates::Flat { axes, whole_warps }
}

struct Reads<'k> {
    definitions: Vec<Option<&'k Expr>>,
    flat: [bool; 3],
    /// Where a coordinate or an extent of the block is read by itself.
    own: [Option<Site>; 3],
    /// Where the lane of a warp is.
    lanes: Option<Site>,
}

/// A coordinate, an extent, or the product of two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Factor {
    Thread(u8),
    Block(u8),
    Extent(u8),
    Blocks(u8),
    /// The coordinate of the block's first thread in the grid.
    First(u8),
    /// The threads of the grid.
    All(u8),
}

impl<'k> Reads<'k> {
    fn factor(&self, expr: &Expr, depth: u32) -> Option<Factor> {
        let depth = depth.checked_sub(1)?;
        match &expr.kind {
            ExprKind::Cast(_, inner) if inner.ty.is_int() && expr.ty.is_int() => {
                self.factor(inner, depth)
            }
            ExprKind::Builtin(builtin) => match builtin {
                Builtin::ThreadIdx(axis) => Some(Factor::Thread(axis % 3)),
                Builtin::BlockIdx(axis) => Some(Factor::Block(axis % 3)),
                Builtin::BlockDim(axis) => Some(Factor::Extent(axis % 3)),
                Builtin::GridDim(axis) => Some(Factor::Blocks(axis % 3)),
                Builtin::GlobalIdx(_) | Builtin::WarpSize | Builtin::ClusterDim(_) => None,
            },
            ExprKind::Var(id) => self.factor(self.definition(*id)?, depth),
            ExprKind::Inline(_, Some(result)) => self.factor(self.definition(*result)?, depth),
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                match (self.factor(a, depth)?, self.factor(b, depth)?) {
                    (Factor::Block(a), Factor::Extent(b))
                    | (Factor::Extent(b), Factor::Block(a))
                        if a == b =>
                    {
                        Some(Factor::First(a))
                    }
                    (Factor::Blocks(a), Factor::Extent(b))
                    | (Factor::Extent(b), Factor::Blocks(a))
                        if a == b =>
                    {
                        Some(Factor::All(a))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn definition(&self, id: VarId) -> Option<&'k Expr> {
        *self.definitions.get(id.0 as usize)?
    }

    /// The terms of a sum, through its parentheses.
    fn terms<'e>(expr: &'e Expr, terms: &mut Vec<&'e Expr>) {
        match &expr.kind {
            ExprKind::Cast(_, inner) if inner.ty.is_int() && expr.ty.is_int() => {
                Self::terms(inner, terms);
            }
            ExprKind::Binary(BinaryOp::Add, a, b) => {
                Self::terms(a, terms);
                Self::terms(b, terms);
            }
            _ => terms.push(expr),
        }
    }

    fn read(&mut self, factor: Factor, site: Site) {
        let (Factor::Thread(axis)
        | Factor::Block(axis)
        | Factor::Extent(axis)
        | Factor::Blocks(axis)
        | Factor::First(axis)) = factor
        else {
            return;
        };
        self.own[usize::from(axis)].get_or_insert(site);
    }

    /// `threadIdx.x % 32`, `threadIdx.x & 31`.
    fn is_lane(&self, expr: &Expr) -> bool {
        let ExprKind::Binary(op, of, by) = &expr.kind else {
            return false;
        };
        let by = match (op, &by.without_casts().kind) {
            (BinaryOp::Rem, ExprKind::Builtin(Builtin::WarpSize)) => FEWEST_LANES,
            (BinaryOp::Rem, ExprKind::Int(by)) => *by,
            (BinaryOp::And, ExprKind::Int(mask)) => mask.saturating_add(1),
            _ => return false,
        };
        (1..=FEWEST_LANES).contains(&by)
            && by.count_ones() == 1
            && self.factor(of, DEEPEST) == Some(Factor::Thread(0))
    }
}

impl<'k> Visitor<'k> for Reads<'k> {
    fn statement(&mut self, statement: &'k Stmt) -> ControlFlow<()> {
        // Another name for a coordinate: what is read of it is seen where the name is used.
        if let StmtKind::Declare(id, Some(value)) = &statement.kind
            && self
                .definition(*id)
                .is_some_and(|known| std::ptr::eq(known, value))
            && self.factor(value, DEEPEST).is_some()
        {
            return ControlFlow::Continue(());
        }
        walk_statement(self, statement)
    }

    fn expression(&mut self, expression: &'k Expr) -> ControlFlow<()> {
        match &expression.kind {
            ExprKind::Builtin(Builtin::GlobalIdx(axis)) => {
                self.flat[usize::from(*axis) % 3] = true;
            }
            ExprKind::Var(_) | ExprKind::Builtin(_) => {
                if let Some(factor) = self.factor(expression, DEEPEST) {
                    self.read(factor, expression.site);
                }
            }
            // The one value of a name: what is read of it is seen where the name is used.
            ExprKind::Assign(None, to, value) => {
                let names = match to.kind {
                    ExprKind::Var(id) => self
                        .definition(id)
                        .is_some_and(|known| std::ptr::eq(known, &raw const **value)),
                    _ => false,
                };
                if !(names && self.factor(value, DEEPEST).is_some()) {
                    return walk_expression(self, expression);
                }
            }
            ExprKind::Binary(BinaryOp::Add, ..) => {
                let mut terms = Vec::new();
                Self::terms(expression, &mut terms);
                let mut rest: Vec<(&Expr, Option<Factor>)> = terms
                    .into_iter()
                    .map(|term| (term, self.factor(term, DEEPEST)))
                    .collect();
                for axis in 0..3_u8 {
                    let at = |wanted| rest.iter().position(|(_, factor)| *factor == Some(wanted));
                    if let (Some(first), Some(thread)) =
                        (at(Factor::First(axis)), at(Factor::Thread(axis)))
                    {
                        self.flat[usize::from(axis)] = true;
                        rest.remove(first.max(thread));
                        rest.remove(first.min(thread));
                    }
                }
                return rest
                    .into_iter()
                    .try_for_each(|(term, _)| self.expression(term));
            }
            ExprKind::Binary(BinaryOp::Mul, ..) if self.factor(expression, DEEPEST).is_some() => {
                if let Some(factor) = self.factor(expression, DEEPEST) {
                    self.read(factor, expression.site);
                }
            }
            ExprKind::Binary(BinaryOp::Rem | BinaryOp::And, ..) if self.is_lane(expression) => {
                self.lanes.get_or_insert(expression.site);
            }
            _ => return walk_expression(self, expression),
        }
        ControlFlow::Continue(())
    }
}
