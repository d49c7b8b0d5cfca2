//! The block that a kernel is written for, where no launch says it: the extents that its own sums and arrays fit.
//!
//! In: a kernel in IR. Out: along each axis of the block an extent, where the kernel gives one. What holds: an extent follows from
//! numbers in the kernel alone. `blockIdx.x * 256 + threadIdx.x` numbers elements without gaps only if 256 threads lie along x;
//! `threadIdx.y + j` with `j += 8` takes rows once only if 8 do; `tile[threadIdx.y]` of 32 rows is filled by 32.

use std::collections::BTreeMap;

use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, Kernel, Part, Stmt, StmtKind, Storage, Type, VarId,
    expressions, parts,
};

use crate::guard::definitions;

/// Definitions are followed so deep.
const DEEPEST: u32 = 24;
/// Terms of a sum.
const MOST_TERMS: usize = 32;
/// A second element of a thread is at least this many threads away: nearer ones are neighbours.
const APART: i64 = 32;
/// Threads along an axis, at least: a smaller step is that of a loop which a thread unrolls by hand.
const FEWEST: i64 = 4;
/// Threads of a block, at most.
const MOST_THREADS: u64 = 1024;
/// Threads of a warp.
const WARP: i64 = 32;

/// What a sum is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    Thread(u8),
    Block(u8),
    /// The counter of a loop with constant steps.
    Counter(u32),
    /// Any other value.
    Other(u32),
    One,
}

type Sum = BTreeMap<Term, i64>;

/// The extents that the kernel fits, along each axis that it reads.
pub(crate) fn fitting(kernel: &Kernel) -> [Option<u64>; 3] {
    let mut fit = Fit {
        kernel,
        definitions: definitions(kernel),
        steps: BTreeMap::new(),
        others: 0,
        by_sums: [None; 3],
        by_arrays: [None; 3],
    };
    parts(&kernel.body, &mut |part| {
        if let Part::Statement(statement) = part {
            fit.count(statement);
        }
    });
    expressions(&kernel.body, &mut |expression| fit.expression(expression));
    let found: [Option<i64>; 3] =
        std::array::from_fn(|axis| fit.by_sums[axis].or(fit.by_arrays[axis]));
    let found = found.map(|extent| extent.and_then(|extent| u64::try_from(extent).ok()));
    let threads: u64 = found.iter().flatten().product();
    let most = kernel.max_threads.filter(|most| *most > 0);
    if threads > most.unwrap_or(MOST_THREADS).min(MOST_THREADS) {
        return [None; 3];
    }
    found
}

struct Fit<'a> {
    kernel: &'a Kernel,
    definitions: Vec<Option<&'a Expr>>,
    /// The steps of loops' counters.
    steps: BTreeMap<VarId, i64>,
    others: u32,
    by_sums: [Option<i64>; 3],
    by_arrays: [Option<i64>; 3],
}

impl<'a> Fit<'a> {
    /// The counter of a loop, and by how much it steps; one that begins at the thread's own number shows how many there are.
    fn count(&mut self, statement: &'a Stmt) {
        let StmtKind::Loop {
            init,
            step: Some(step),
            ..
        } = &statement.kind
        else {
            return;
        };
        let (counter, by) = match &step.kind {
            ExprKind::Step(by, _, counter) => (counter, Some(*by)),
            ExprKind::Assign(Some(BinaryOp::Add), counter, by) => (counter, constant(by)),
            _ => return,
        };
        let (ExprKind::Var(id), Some(by)) = (&counter.kind, by) else {
            return;
        };
        if by <= 0 {
            return;
        }
        self.steps.insert(*id, by);
        let begins = init.iter().find_map(|statement| match &statement.kind {
            StmtKind::Declare(of, Some(value)) if of == id => Some(value),
            StmtKind::Expr(Expr {
                kind: ExprKind::Assign(None, to, value),
                ..
            }) if matches!(to.kind, ExprKind::Var(of) if of == *id) => Some(&**value),
            _ => None,
        });
        let sum = begins.and_then(|value| self.sum(value, 0));
        if let Some(sum) = sum
            && let [(Term::Thread(axis), 1)] = terms(&sum)[..]
            && by >= APART
        {
            least(&mut self.by_sums[usize::from(axis) % 3], by);
        }
    }

    fn expression(&mut self, expression: &'a Expr) {
        match &expression.kind {
            ExprKind::Binary(BinaryOp::Add, ..) => {
                if let Some(sum) = self.sum(expression, 0) {
                    self.numbered(&sum);
                }
            }
            ExprKind::Index(base, index) => {
                if let Some(sum) = self.sum(index, 0) {
                    self.numbered(&sum);
                    if let Type::Array(_, Some(extent)) = &base.ty
                        && is_shared(self.kernel, base)
                    {
                        self.filled(&sum, *extent);
                    }
                }
            }
            _ => {}
        }
    }

    /// What elements that are numbered like this say of the block.
    fn numbered(&mut self, sum: &Sum) {
        for axis in 0..3_u8 {
            let Some(thread) = sum.get(&Term::Thread(axis)).copied().filter(|by| *by > 0) else {
                continue;
            };
            let place = usize::from(axis);
            // Threads of a block, one behind the other, then the next block's.
            let block = sum.get(&Term::Block(axis)).copied().unwrap_or(0);
            let of_block = (block > thread && block % thread == 0).then_some(block / thread);
            if let Some(extent) = of_block {
                least(&mut self.by_sums[place], extent);
            }
            let fits = |extent: i64| of_block.is_none_or(|whole| whole % extent == 0);
            for (term, by) in sum {
                let step = match term {
                    Term::Counter(id) => self.steps.get(&VarId(*id)).map(|step| by * step),
                    // The second element of each thread.
                    Term::One if of_block.is_some() => Some(*by).filter(|by| by / thread >= APART),
                    _ => None,
                };
                if let Some(step) = step
                    && step % thread == 0
                    && step / thread >= FEWEST
                    && fits(step / thread)
                {
                    least(&mut self.by_sums[place], step / thread);
                }
            }
        }
    }

    /// A dimension of an array in shared memory: its threads along an axis are as many as it holds.
    fn filled(&mut self, sum: &Sum, extent: u64) {
        let Ok(extent) = i64::try_from(extent) else {
            return;
        };
        for axis in 0..3_u8 {
            let alone = sum
                .keys()
                .all(|term| matches!(term, Term::Thread(_) | Term::One));
            if sum.get(&Term::Thread(axis)) != Some(&1) || !alone || extent < FEWEST {
                continue;
            }
            // Columns that pad rows, and the neighbours of a stencil, have no threads of their own.
            let whole = if extent >= WARP {
                extent / WARP * WARP
            } else {
                1 << extent.ilog2()
            };
            least(&mut self.by_arrays[usize::from(axis)], whole);
        }
    }

    /// An integer as a sum of terms with constant factors.
    fn sum(&mut self, expression: &'a Expr, depth: u32) -> Option<Sum> {
        if depth > DEEPEST {
            return None;
        }
        let mut sum = Sum::new();
        match &expression.kind {
            ExprKind::Int(value) => {
                sum.insert(Term::One, *value);
            }
            ExprKind::Builtin(Builtin::ThreadIdx(axis)) => {
                sum.insert(Term::Thread(*axis % 3), 1);
            }
            ExprKind::Builtin(Builtin::BlockIdx(axis)) => {
                sum.insert(Term::Block(*axis % 3), 1);
            }
            ExprKind::Cast(_, inner) => return self.sum(inner, depth + 1),
            ExprKind::Var(id) => match self.definitions[id.0 as usize] {
                Some(value) => return self.sum(value, depth + 1),
                None if self.steps.contains_key(id) => {
                    sum.insert(Term::Counter(id.0), 1);
                }
                None => {
                    sum.insert(Term::Other(id.0), 1);
                }
            },
            ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                sum = self.sum(a, depth + 1)?;
                let sign = if *op == BinaryOp::Add { 1 } else { -1 };
                for (term, by) in self.sum(b, depth + 1)? {
                    let own = sum.entry(term).or_default();
                    *own = own.checked_add(by.checked_mul(sign)?)?;
                }
                sum.retain(|_, by| *by != 0);
            }
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                let (of, by) = match (constant(a), constant(b)) {
                    (Some(by), _) => (b, by),
                    (_, Some(by)) => (a, by),
                    _ => return Some(self.other()),
                };
                for (term, factor) in self.sum(of, depth + 1)? {
                    sum.insert(term, factor.checked_mul(by)?);
                }
            }
            ExprKind::Binary(BinaryOp::Shl, a, by) => {
                let by = constant(by).filter(|by| (0..32).contains(by))?;
                for (term, factor) in self.sum(a, depth + 1)? {
                    sum.insert(term, factor.checked_mul(1 << by)?);
                }
            }
            _ => return Some(self.other()),
        }
        (sum.len() <= MOST_TERMS).then_some(sum)
    }

    /// A value that is no sum.
    fn other(&mut self) -> Sum {
        self.others += 1;
        // Behind the variables.
        Sum::from([(Term::Other(u32::MAX - self.others), 1)])
    }
}

fn terms(sum: &Sum) -> Vec<(Term, i64)> {
    sum.iter().map(|(term, by)| (*term, *by)).collect()
}

/// Several numbers may fit: with the least no element is taken twice.
fn least(extent: &mut Option<i64>, new: i64) {
    *extent = Some(extent.map_or(new, |known| known.min(new)));
}

fn constant(expression: &Expr) -> Option<i64> {
    match expression.without_casts().kind {
        ExprKind::Int(value) => Some(value),
        _ => None,
    }
}

/// Whether an element is one of an array in shared memory.
fn is_shared(kernel: &Kernel, base: &Expr) -> bool {
    match &base.kind {
        ExprKind::Var(id) => kernel.var(*id).storage == Storage::Shared,
        ExprKind::Index(inner, _) | ExprKind::Cast(_, inner) => is_shared(kernel, inner),
        _ => false,
    }
}
