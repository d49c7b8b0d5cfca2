//! How a kernel's IR subscripts an array, and what its subscripts can be.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use warplens_ir::{
    BinaryOp, Builtin, Expr, ExprKind, Kernel, LoopKind, Part, Site, Stmt, StmtKind, VarId,
    expressions, parts,
};

/// What one place of the source does with an element.
#[derive(Debug, Clone)]
pub(crate) struct Subscript {
    /// Every subscript, outermost first.
    pub indices: Vec<Expr>,
    /// The element's value is used.
    pub reads: bool,
    /// The element gets a value.
    pub writes: bool,
}

/// Every use of every array of a kernel, found in one walk.
#[derive(Debug, Default)]
pub(crate) struct ArrayUses(FxHashMap<VarId, Uses>);

#[derive(Debug, Default)]
struct Uses {
    /// The places that name the array.
    names: usize,
    /// Its address is taken.
    leaves: bool,
    subscripts: Vec<Subscript>,
}

impl ArrayUses {
    pub(crate) fn of(kernel: &Kernel) -> ArrayUses {
        let mut found = ArrayUses::default();
        // Of assignments at one place the first counts, whether it also reads.
        let mut written: FxHashMap<Site, bool> = FxHashMap::default();
        let mut look = |expression: &Expr| match &expression.kind {
            ExprKind::Assign(op, place, _) => {
                written.entry(place.site).or_insert(op.is_some());
            }
            ExprKind::Step(_, _, place) => {
                written.entry(place.site).or_insert(true);
            }
            ExprKind::AddressOf(place) => {
                if let Some((array, _)) = root(place) {
                    found.0.entry(array).or_default().leaves = true;
                }
            }
            ExprKind::Var(array) => found.0.entry(*array).or_default().names += 1,
            ExprKind::Index(..) => {
                if let Some((array, indices)) = root(expression) {
                    let both = written.get(&expression.site).copied();
                    found
                        .0
                        .entry(array)
                        .or_default()
                        .subscripts
                        .push(Subscript {
                            indices: indices.into_iter().cloned().collect(),
                            reads: both.unwrap_or(true),
                            writes: both.is_some(),
                        });
                }
            }
            _ => {}
        };
        expressions(&kernel.body, &mut look);
        for routine in &kernel.routines {
            expressions(&routine.body, &mut look);
        }
        found
    }

    /// The uses of an array with this many dimensions. `None` where there is none, or some use is no whole
    /// subscript: its address leaves, or a row of it.
    pub(crate) fn whole(&self, array: VarId, dimensions: usize) -> Option<Vec<&Subscript>> {
        let uses = self.0.get(&array)?;
        let whole = uses.subscripts.iter();
        let whole: Vec<&Subscript> = whole
            .filter(|subscript| subscript.indices.len() == dimensions)
            .collect();
        (!uses.leaves && uses.names == whole.len()).then_some(whole)
    }
}

/// The array under a chain of subscripts, and these, outermost first.
fn root(expression: &Expr) -> Option<(VarId, Vec<&Expr>)> {
    let mut indices = Vec::new();
    let mut at = expression;
    loop {
        match &at.kind {
            ExprKind::Index(base, index) => {
                indices.push(&**index);
                at = base;
            }
            ExprKind::Cast(false, inner) => at = inner,
            ExprKind::Var(id) => {
                indices.reverse();
                return Some((*id, indices));
            }
            _ => return None,
        }
    }
}

/// What is known of variables that get their value once, and of the counters of loops.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    block: [u64; 3],
    /// Variables that are declared with a value and never change.
    once: BTreeMap<VarId, Expr>,
    /// From and to, both within, of counters.
    counters: BTreeMap<VarId, (i64, i64)>,
    kernel: &'a Kernel,
}

/// Expressions deeper than this are not followed.
const DEEP: u32 = 16;

impl<'a> Values<'a> {
    pub(crate) fn new(kernel: &'a Kernel, block: [u64; 3]) -> Values<'a> {
        let mut changes: BTreeMap<VarId, u32> = BTreeMap::new();
        let mut once = BTreeMap::new();
        let mut loops = Vec::new();
        parts(&kernel.body, &mut |part| match part {
            Part::Expression(expression) => {
                if let ExprKind::Assign(_, place, _) | ExprKind::Step(_, _, place) =
                    &expression.kind
                    && let ExprKind::Var(id) = place.kind
                {
                    *changes.entry(id).or_default() += 1;
                }
            }
            Part::Statement(statement) => match &statement.kind {
                StmtKind::Declare(id, Some(value)) => {
                    once.insert(*id, value.clone());
                }
                StmtKind::Loop {
                    kind: LoopKind::For,
                    init,
                    condition: Some(condition),
                    step: Some(step),
                    ..
                } => {
                    if let [
                        Stmt {
                            kind: StmtKind::Declare(id, Some(from)),
                            ..
                        },
                    ] = &init[..]
                    {
                        loops.push((*id, from.clone(), condition.clone(), step.clone()));
                    }
                }
                _ => {}
            },
        });
        once.retain(|id, _| !changes.contains_key(id) && !kernel.var(*id).escapes);
        let mut values = Values {
            block,
            once,
            counters: BTreeMap::new(),
            kernel,
        };
        for (id, from, condition, step) in loops {
            // The step is its only change, and it counts upwards.
            if changes.get(&id) == Some(&1)
                && !values.kernel.var(id).escapes
                && let Some(range) = values.counted(id, &from, &condition, &step)
            {
                values.counters.insert(id, range);
            }
        }
        values
    }

    fn counted(&self, id: VarId, from: &Expr, until: &Expr, step: &Expr) -> Option<(i64, i64)> {
        let is =
            |expression: &Expr| matches!(plain(expression).kind, ExprKind::Var(of) if of == id);
        let up = match &step.kind {
            ExprKind::Step(by, _, place) => *by > 0 && is(place),
            ExprKind::Assign(Some(BinaryOp::Add), place, by) => {
                is(place) && self.range(by, DEEP)?.0 > 0
            }
            _ => false,
        };
        let ExprKind::Binary(op, left, right) = &plain(until).kind else {
            return None;
        };
        let most = self.range(right, DEEP)?.1;
        let most = match op {
            BinaryOp::Lt => most.checked_sub(1)?,
            BinaryOp::Le => most,
            _ => return None,
        };
        (up && is(left)).then_some((self.range(from, DEEP)?.0, most))
    }

    /// The least and the most that an integer expression can be; `None` where that is not seen.
    pub(crate) fn of(&self, expression: &Expr) -> Option<(i64, i64)> {
        self.range(expression, DEEP)
    }

    fn range(&self, expression: &Expr, deep: u32) -> Option<(i64, i64)> {
        let deep = deep.checked_sub(1)?;
        match &plain(expression).kind {
            ExprKind::Int(value) => Some((*value, *value)),
            ExprKind::Builtin(Builtin::ThreadIdx(axis)) => {
                let extent = i64::try_from(self.block[usize::from(*axis)]).ok()?;
                Some((0, extent - 1))
            }
            ExprKind::Builtin(Builtin::BlockDim(axis)) => {
                let extent = i64::try_from(self.block[usize::from(*axis)]).ok()?;
                Some((extent, extent))
            }
            ExprKind::Var(id) => match self.counters.get(id) {
                Some(range) => Some(*range),
                None => self.range(self.once.get(id)?, deep),
            },
            ExprKind::Binary(op, a, b) => {
                let (b_least, b_most) = self.range(b, deep)?;
                if *op == BinaryOp::And && b_least == b_most && b_least >= 0 {
                    return Some((0, b_most));
                }
                let (least, most) = self.range(a, deep)?;
                match op {
                    BinaryOp::Add => Some((least.checked_add(b_least)?, most.checked_add(b_most)?)),
                    BinaryOp::Sub => Some((least.checked_sub(b_most)?, most.checked_sub(b_least)?)),
                    BinaryOp::Mul if least >= 0 && b_least >= 0 => {
                        Some((least.checked_mul(b_least)?, most.checked_mul(b_most)?))
                    }
                    BinaryOp::Div if least >= 0 && b_least > 0 => {
                        Some((least / b_most, most / b_least))
                    }
                    BinaryOp::Rem if least >= 0 && b_least > 0 => Some((0, most.min(b_most - 1))),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The thread coordinate that an expression is, through variables that never change.
    pub(crate) fn coordinate(&self, expression: &Expr) -> Option<u8> {
        let mut at = plain(expression);
        for _ in 0..DEEP {
            match &at.kind {
                ExprKind::Builtin(Builtin::ThreadIdx(axis)) => return Some(*axis),
                ExprKind::Var(id) => at = plain(self.once.get(id)?),
                _ => return None,
            }
        }
        None
    }
}

/// An expression without conversions around it.
fn plain(expression: &Expr) -> &Expr {
    let mut at = expression;
    while let ExprKind::Cast(_, inner) = &at.kind {
        at = inner;
    }
    at
}
