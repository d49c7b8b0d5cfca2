//! The expressions of a program at one point, for all lanes of one warp.

use super::program::{Leaf, Needs, Op, Program, Variables};
use super::{Domain, Layout, WARP_MAX};
use crate::BinaryOp;
use crate::arena::wrap_value;

/// Values at one point: one for all lanes where they agree, else one for each.
#[derive(Debug)]
pub(crate) struct Lanes {
    warp_size: usize,
    scalars: Vec<i64>,
    /// Where the values of an expression that varies by lane lie in `vectors`.
    slots: Vec<usize>,
    vectors: Vec<[i64; WARP_MAX]>,
    /// False until what depends on no variable has been evaluated.
    begun: bool,
}

/// An operand of all lanes.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Same(i64),
    Each(&'a [i64]),
}

impl Operand<'_> {
    fn lane(self, lane: usize) -> i64 {
        match self {
            Operand::Same(value) => value,
            Operand::Each(values) => values[lane],
        }
    }
}

impl Lanes {
    pub(crate) fn new(program: &Program, warp_size: usize) -> Lanes {
        let mut slots = Vec::with_capacity(program.len());
        let mut vectors = 0;
        for &varies in &program.varies {
            slots.push(vectors);
            vectors += usize::from(varies);
        }
        Lanes {
            warp_size,
            scalars: vec![0; program.len()],
            slots,
            vectors: vec![[0; WARP_MAX]; vectors],
            begun: false,
        }
    }

    /// The lanes' values of an expression that varies by lane.
    pub(crate) fn vector(&self, at: usize) -> &[i64; WARP_MAX] {
        &self.vectors[self.slots[at]]
    }

    /// The value of one that does not.
    pub(crate) fn scalar(&self, at: usize) -> i64 {
        self.scalars[at]
    }

    /// Evaluates what `needs` need and depends on variables that `changed`. `values` are those of the
    /// variables, `warp` is the warp's number along each axis (or, of a linear layout, in the first).
    pub(crate) fn evaluate(
        &mut self,
        program: &Program,
        domain: &Domain,
        needs: Needs,
        changed: Variables,
        values: &[i64],
        warp: [i64; 3],
    ) {
        for at in 0..program.len() {
            let depends_on = program.depends_on[at];
            let due = if depends_on == 0 {
                !self.begun
            } else {
                depends_on & changed != 0 && program.needed[at] & needs != 0
            };
            if !due {
                continue;
            }
            if program.varies[at] {
                let (before, rest) = self.vectors.split_at_mut(self.slots[at]);
                let values = Values {
                    program,
                    scalars: &self.scalars,
                    slots: &self.slots,
                    vectors: before,
                    lanes: self.warp_size,
                };
                let out = &mut rest[0][..self.warp_size];
                match program.ops[at] {
                    Op::Leaf(Leaf::Thread(axis)) => domain.coordinates(axis, warp, out),
                    Op::Leaf(_) => out.fill(0),
                    _ => values.vector(at, out),
                }
            } else {
                self.scalars[at] = self.alike(program, at, values);
            }
        }
        self.begun = true;
    }

    fn alike(&self, program: &Program, at: usize, values: &[i64]) -> i64 {
        let of = |at: usize| self.scalars[at];
        match program.ops[at] {
            Op::Const(value) => value,
            Op::Leaf(leaf) => match leaf {
                Leaf::Variable(variable) => values[variable],
                Leaf::Fixed(value) => value,
                Leaf::Thread(_) | Leaf::Bounded(_) | Leaf::Unknown(_) => 0,
            },
            Op::Sum(constant, terms) => program
                .links(terms)
                .iter()
                .fold(constant, |sum, &(term, coefficient)| {
                    sum.wrapping_add(of(term).wrapping_mul(coefficient))
                }),
            Op::Product(factors) => program
                .links(factors)
                .iter()
                .fold(1, |product: i64, &(factor, _)| {
                    product.wrapping_mul(of(factor))
                }),
            Op::Binary(op, a, b) => op.apply(of(a), of(b)),
            Op::Select(condition, a, b) => of(if of(condition) != 0 { a } else { b }),
            Op::Table(index, values) => look_up(values, of(index)),
            Op::Wrap(bits, signed, a) => wrap_value(bits, signed, of(a)),
        }
    }
}

/// What has been evaluated before an expression.
struct Values<'a> {
    program: &'a Program<'a>,
    scalars: &'a [i64],
    slots: &'a [usize],
    vectors: &'a [[i64; WARP_MAX]],
    lanes: usize,
}

impl Values<'_> {
    fn of(&self, at: usize) -> Operand<'_> {
        if self.program.varies[at] {
            Operand::Each(&self.vectors[self.slots[at]][..self.lanes])
        } else {
            Operand::Same(self.scalars[at])
        }
    }

    fn vector(&self, at: usize, out: &mut [i64]) {
        match self.program.ops[at] {
            Op::Const(_) | Op::Leaf(_) => {}
            Op::Sum(constant, terms) => {
                let terms = self.program.links(terms);
                let mut base = constant;
                for &(term, coefficient) in terms {
                    if let Operand::Same(value) = self.of(term) {
                        base = base.wrapping_add(value.wrapping_mul(coefficient));
                    }
                }
                out.fill(base);
                for &(term, coefficient) in terms {
                    if let Operand::Each(values) = self.of(term) {
                        for (sum, value) in out.iter_mut().zip(values) {
                            *sum = sum.wrapping_add(value.wrapping_mul(coefficient));
                        }
                    }
                }
            }
            Op::Product(factors) => {
                out.fill(1);
                for &(factor, _) in self.program.links(factors) {
                    match self.of(factor) {
                        Operand::Same(value) => {
                            for product in out.iter_mut() {
                                *product = product.wrapping_mul(value);
                            }
                        }
                        Operand::Each(values) => {
                            for (product, value) in out.iter_mut().zip(values) {
                                *product = product.wrapping_mul(*value);
                            }
                        }
                    }
                }
            }
            Op::Binary(op, a, b) => binary(op, self.of(a), self.of(b), out),
            Op::Select(condition, a, b) => {
                let (condition, a, b) = (self.of(condition), self.of(a), self.of(b));
                for (lane, value) in out.iter_mut().enumerate() {
                    *value = if condition.lane(lane) != 0 { a } else { b }.lane(lane);
                }
            }
            Op::Table(index, values) => {
                let index = self.of(index);
                for (lane, value) in out.iter_mut().enumerate() {
                    *value = look_up(values, index.lane(lane));
                }
            }
            Op::Wrap(bits, signed, a) => {
                let a = self.of(a);
                for (lane, value) in out.iter_mut().enumerate() {
                    *value = wrap_value(bits, signed, a.lane(lane));
                }
            }
        }
    }
}

/// One operator on all lanes. The operator is looked at once: each loop is one that the compiler can turn
/// into vector instructions.
fn binary(op: BinaryOp, a: Operand, b: Operand, out: &mut [i64]) {
    macro_rules! each {
        ($($op:ident),*) => {
            match op {
                BinaryOp::Div | BinaryOp::Rem => divide(op, a, b, out),
                $(BinaryOp::$op => zip(a, b, out, |a, b| BinaryOp::$op.apply(a, b)),)*
            }
        };
    }
    each!(
        Shl,
        Shr,
        And,
        Or,
        Xor,
        Min,
        Max,
        Lt,
        Le,
        Eq,
        Ne,
        LogicalAnd,
        LogicalOr,
        Population,
        LeadingZeros,
        Reverse,
        MulHigh
    );
}

/// Quotients and remainders: by a power of two without dividing, and of small numbers in 32 bits.
fn divide(op: BinaryOp, a: Operand, b: Operand, out: &mut [i64]) {
    if let Operand::Same(divisor @ 1..) = b
        && divisor & (divisor - 1) == 0
    {
        let (bits, mask) = (divisor.trailing_zeros(), divisor - 1);
        // Rounded towards zero: below zero the mask is added first.
        let quotient = move |a: i64| a.wrapping_add((a >> 63) & mask) >> bits;
        if op == BinaryOp::Div {
            zip(a, b, out, |a, _| quotient(a));
        } else {
            zip(a, b, out, |a, _| a.wrapping_sub(quotient(a) << bits));
        }
        return;
    }
    let small = |a: i64, b: i64| Some((u32::try_from(a).ok()?, u32::try_from(b).ok()?));
    zip(a, b, out, |a, b| match small(a, b) {
        Some((_, 0)) | None => op.apply(a, b),
        Some((a, b)) if op == BinaryOp::Div => i64::from(a / b),
        Some((a, b)) => i64::from(a % b),
    });
}

fn zip(a: Operand, b: Operand, out: &mut [i64], of: impl Fn(i64, i64) -> i64) {
    match (a, b) {
        (Operand::Each(a), Operand::Each(b)) => {
            for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
                *out = of(*a, *b);
            }
        }
        (Operand::Each(a), Operand::Same(b)) => {
            for (out, a) in out.iter_mut().zip(a) {
                *out = of(*a, b);
            }
        }
        (Operand::Same(a), Operand::Each(b)) => {
            for (out, b) in out.iter_mut().zip(b) {
                *out = of(a, *b);
            }
        }
        (Operand::Same(a), Operand::Same(b)) => out.fill(of(a, b)),
    }
}

fn look_up(values: &[i64], index: i64) -> i64 {
    values[index.clamp(0, values.len() as i64 - 1) as usize]
}

impl Domain {
    /// Each lane's coordinate along an axis.
    fn coordinates(&self, axis: u8, warp: [i64; 3], out: &mut [i64]) {
        let [x, y, _] = self.block;
        let (first, offset) = match self.layout {
            Layout::Regular { steps, .. } => (0, steps[axis as usize] * warp[axis as usize]),
            Layout::Linear { .. } => (warp[0] * self.warp_size as i64, 0),
        };
        for (lane, value) in out.iter_mut().enumerate() {
            let thread = first + lane as i64;
            *value = offset
                + match axis {
                    0 => thread % x,
                    1 => thread / x % y,
                    _ => thread / (x * y),
                };
        }
    }

    /// The lanes that exist in a warp.
    pub(crate) fn present(&self, warp: [i64; 3]) -> u64 {
        let lanes = self.warp_size as i64;
        let left = match self.layout {
            Layout::Regular { .. } => lanes,
            Layout::Linear { .. } => self.block.iter().product::<i64>() - warp[0] * lanes,
        };
        if left >= 64 && lanes == 64 {
            u64::MAX
        } else {
            (1u64 << left.clamp(0, lanes)) - 1
        }
    }
}
