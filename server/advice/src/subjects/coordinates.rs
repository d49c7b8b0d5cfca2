//! Indices as polynomials: in the coordinates of the threads of a block, and in what is one number for all of them.
//!
//! In: index expressions of the IR, what defines their variables, the extents of the block. Out: polynomials in [`Symbol`]s,
//! and the numbers that those in coordinates alone are in each thread. What holds: a quotient, a remainder or a bit pattern of
//! coordinates is a symbol of its own, whose value in each thread is known.

use std::collections::HashMap;

use warplens_ir::{BinaryOp, Builtin, Expr, ExprKind, Kernel, Storage, UnaryOp, VarId};
use warplens_symbolic::{Indeterminate, Ratio};

/// Definitions followed from a variable to its value.
pub(super) const MOST_STEPS: u32 = 8;

/// What an index is a polynomial in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// A coordinate of the thread in its block.
    Thread(u8),
    /// What [`Coordinates::computed`] holds under this number.
    Computed(usize),
    /// A coordinate of the block in the grid.
    Block(u8),
    /// An integer parameter.
    Parameter(VarId),
}

impl Symbol {
    /// True for what is one number for all threads of a block.
    fn is_common(self) -> bool {
        matches!(self, Symbol::Block(_) | Symbol::Parameter(_))
    }
}

impl Indeterminate for Symbol {}

/// A polynomial in [`Symbol`]s.
pub(super) type Polynomial = warplens_symbolic::Polynomial<Symbol>;

/// Reads the indices of one block.
pub(super) struct Coordinates<'a, 'k> {
    pub(super) kernel: &'k Kernel,
    /// Variables with one definition, and that definition.
    pub(super) defined: &'a HashMap<VarId, &'k Expr>,
    /// Variables that change.
    pub(super) changed: &'a [bool],
    /// Extents of the block.
    block: [u64; 3],
    /// Values of [`Symbol::Computed`] by thread.
    computed: Vec<Vec<i64>>,
}

impl<'a, 'k> Coordinates<'a, 'k> {
    pub(super) fn new(
        kernel: &'k Kernel,
        defined: &'a HashMap<VarId, &'k Expr>,
        changed: &'a [bool],
        block: [u64; 3],
    ) -> Self {
        Coordinates {
            kernel,
            defined,
            changed,
            block,
            computed: Vec::new(),
        }
    }

    /// A sum of indices, each times its scale, and a number.
    pub(super) fn sum(&mut self, fixed: i64, terms: &[(&Expr, i64)]) -> Option<Polynomial> {
        let mut sum = Polynomial::constant(fixed.into());
        for (index, scale) in terms {
            let index = self.polynomial(index, MOST_STEPS)?;
            sum = sum.plus(&index, Ratio::whole((*scale).into()))?;
        }
        Some(sum)
    }

    fn polynomial(&mut self, expression: &Expr, steps: u32) -> Option<Polynomial> {
        match &expression.kind {
            ExprKind::Int(value) => Some(Polynomial::constant((*value).into())),
            // A number narrower than 32 bits may lose its upper bits.
            ExprKind::Cast(_, inner) if inner.ty.is_int() && expression.ty.is_int() => {
                (expression.ty.size() >= 4).then(|| self.polynomial(inner, steps))?
            }
            ExprKind::Builtin(builtin) => self.builtin(*builtin),
            ExprKind::Var(var) => {
                if self.changed[var.0 as usize] {
                    return None;
                }
                match self.kernel.var(*var).storage {
                    Storage::Param(_) => Some(Polynomial::atom(Symbol::Parameter(*var))),
                    Storage::Local => {
                        self.polynomial(self.defined.get(var)?, steps.checked_sub(1)?)
                    }
                    _ => None,
                }
            }
            ExprKind::Unary(UnaryOp::Neg, inner) => self.polynomial(inner, steps)?.neg(),
            ExprKind::Binary(op, a, b) => {
                let a = self.polynomial(a, steps)?;
                let b = self.polynomial(b, steps)?;
                match op {
                    BinaryOp::Add => a.add(&b),
                    BinaryOp::Sub => a.sub(&b),
                    BinaryOp::Mul if has_common(&a) && has_common(&b) => None,
                    BinaryOp::Mul => a.mul(&b),
                    _ => self.compute(*op, &a, &b),
                }
            }
            _ => None,
        }
    }

    fn builtin(&self, builtin: Builtin) -> Option<Polynomial> {
        let extent = |axis: u8| self.block.get(usize::from(axis)).copied();
        // Along an axis of one thread the coordinate is 0.
        let thread = |axis: u8| match extent(axis)? {
            0 | 1 => Some(Polynomial::zero()),
            _ => Some(Polynomial::atom(Symbol::Thread(axis))),
        };
        match builtin {
            Builtin::ThreadIdx(axis) => thread(axis),
            Builtin::BlockDim(axis) => Some(Polynomial::constant(extent(axis)?.into())),
            Builtin::BlockIdx(axis) => Some(Polynomial::atom(Symbol::Block(axis))),
            Builtin::GlobalIdx(axis) => {
                let extent = Ratio::whole(extent(axis)?.into());
                thread(axis)?.plus(&Polynomial::atom(Symbol::Block(axis)), extent)
            }
            Builtin::GridDim(_) | Builtin::WarpSize | Builtin::ClusterDim(_) => None,
        }
    }

    /// What an operator makes of numbers: a number, or a symbol where threads have different ones.
    fn compute(&mut self, op: BinaryOp, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        if has_common(a) || has_common(b) {
            return None;
        }
        let (a, b) = (self.numbers(a)?, self.numbers(b)?);
        let values: Option<Vec<i64>> = a.iter().zip(&b).map(|(a, b)| apply(op, *a, *b)).collect();
        let values = values?;
        let first = *values.first()?;
        if values.iter().all(|value| *value == first) {
            return Some(Polynomial::constant(first.into()));
        }
        self.computed.push(values);
        let number = self.computed.len() - 1;
        Some(Polynomial::atom(Symbol::Computed(number)))
    }

    /// The value of a polynomial in each thread; terms of what is common to all threads count nothing.
    pub(super) fn numbers(&self, polynomial: &Polynomial) -> Option<Vec<i64>> {
        let mut products = polynomial.products()?;
        products.retain(|(factors, _)| !factors.iter().any(|factor| factor.is_common()));
        let [x, y, z] = self.block;
        let threads = 0..x * y * z;
        let value = |thread: u64| {
            let at = [thread % x, thread / x % y, thread / x / y];
            let mut sum = 0_i64;
            for (factors, count) in &products {
                let mut product = *count;
                for factor in factors {
                    product = product.checked_mul(match factor {
                        Symbol::Thread(axis) => at[usize::from(*axis)] as i64,
                        Symbol::Computed(number) => self.computed[*number][thread as usize],
                        Symbol::Block(_) | Symbol::Parameter(_) => return None,
                    })?;
                }
                sum = sum.checked_add(product)?;
            }
            Some(sum)
        };
        threads.map(value).collect()
    }

    /// The terms of a polynomial that are one number for all threads of a block; `None` where a term is both such a number
    /// and a thread's own.
    pub(super) fn common(polynomial: &Polynomial) -> Option<Polynomial> {
        let is_common = |symbol: &Symbol| symbol.is_common();
        let mut common = Vec::new();
        for (monomial, count) in polynomial.terms() {
            let mut symbols = monomial.iter().map(|(symbol, _)| symbol);
            if monomial.is_empty() || !symbols.clone().any(is_common) {
                continue;
            }
            if !symbols.all(is_common) {
                return None;
            }
            common.push((monomial.clone(), count));
        }
        Polynomial::sum(common)
    }
}

/// True where a polynomial has something that is one number for all threads of a block.
fn has_common(polynomial: &Polynomial) -> bool {
    let mut symbols = polynomial.terms().flat_map(|(monomial, _)| monomial);
    symbols.any(|(symbol, _)| symbol.is_common())
}

/// Operators on numbers of which neither is negative.
fn apply(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    if a < 0 || b < 0 {
        return None;
    }
    match op {
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::And => Some(a & b),
        BinaryOp::Or => Some(a | b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::Shr => (b < 31).then(|| a >> b),
        BinaryOp::Shl => (b < 31).then(|| a.checked_mul(1 << b))?,
        _ => None,
    }
}
