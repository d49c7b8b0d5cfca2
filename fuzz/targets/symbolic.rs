//! Random expressions: what the arena makes of them has the value of what was written, and the walk over a launch
//! sums what an enumeration of its threads sums.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use warplens_symbolic::{Arena, BinaryOp, Domain, Guard, Id, Interval, Query, Symbol, SymbolKind};

/// A program for a stack machine: every list of steps means something.
#[derive(Debug, Arbitrary)]
enum Step {
    Symbol(u8),
    Small(i8),
    Const(i32),
    Add,
    Subtract,
    Multiply,
    Negate,
    Scale(i8),
    Binary(u8),
    Truth,
    Not,
    Select,
    Table(Vec<i8>),
    Wrap(u8, bool),
    /// The value this many places down once more.
    Again(u8),
}

#[derive(Debug, Arbitrary)]
struct Input {
    address: Vec<Step>,
    guard: Vec<Step>,
    holds: bool,
    block: [u8; 3],
    extents: [u8; 3],
    fixed: i16,
    warp: bool,
}

const OPERATORS: [BinaryOp; 19] = [
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Min,
    BinaryOp::Max,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::LogicalAnd,
    BinaryOp::LogicalOr,
    BinaryOp::Population,
    BinaryOp::LeadingZeros,
    BinaryOp::Reverse,
    BinaryOp::MulHigh,
];

/// Operations that an expression may have.
const LONGEST: usize = 24;
/// Beyond any address: expressions promise nothing about values this far away.
const FAR: i128 = 1 << 40;
/// The movement of an address that changes nothing: a segment of memory.
const SEGMENT: i64 = 32;

fn widths(bits: u8) -> u8 {
    [8, 16, 32, 1][usize::from(bits % 4)]
}

fn build(arena: &mut Arena, symbols: &[Id], steps: &[Step]) -> Id {
    let mut stack: Vec<Id> = Vec::new();
    for step in steps {
        let again = |stack: &Vec<Id>, down: u8| {
            let at = stack.len().checked_sub(1 + usize::from(down));
            at.map_or(symbols[0], |at| stack[at])
        };
        let top = match step {
            Step::Again(down) => again(&stack, *down),
            Step::Symbol(which) => symbols[usize::from(*which) % symbols.len()],
            Step::Small(value) => arena.constant(i64::from(*value)),
            Step::Const(value) => arena.constant(i64::from(*value)),
            Step::Table(values) if values.is_empty() => continue,
            _ => {
                let mut pop = || stack.pop().unwrap_or(symbols[0]);
                let b = pop();
                match step {
                    Step::Add => {
                        let a = pop();
                        arena.add(a, b)
                    }
                    Step::Subtract => {
                        let a = pop();
                        arena.sub(a, b)
                    }
                    Step::Multiply => {
                        let a = pop();
                        arena.mul(a, b)
                    }
                    Step::Binary(which) => {
                        let a = pop();
                        arena.binary(OPERATORS[usize::from(*which) % OPERATORS.len()], a, b)
                    }
                    Step::Select => {
                        let (a, condition) = (pop(), pop());
                        arena.select(condition, a, b)
                    }
                    Step::Negate => arena.neg(b),
                    Step::Scale(by) => arena.scale(b, i64::from(*by)),
                    Step::Truth => arena.truth(b),
                    Step::Not => arena.not(b),
                    Step::Table(values) => {
                        let values: Vec<i64> =
                            values.iter().map(|value| i64::from(*value)).collect();
                        arena.table(b, &values)
                    }
                    Step::Wrap(bits, signed) => arena.wrap(widths(*bits), *signed, b),
                    _ => b,
                }
            }
        };
        stack.push(top);
    }
    stack.pop().unwrap_or(symbols[0])
}

/// Its value; none where a value on the way is far away.
fn run(values: &[i64], steps: &[Step]) -> Option<i64> {
    let mut stack: Vec<i64> = Vec::new();
    for step in steps {
        let top: i128 = match step {
            Step::Again(down) => {
                let at = stack.len().checked_sub(1 + usize::from(*down));
                at.map_or(values[0], |at| stack[at]).into()
            }
            Step::Symbol(which) => values[usize::from(*which) % values.len()].into(),
            Step::Small(value) => (*value).into(),
            Step::Const(value) => (*value).into(),
            Step::Table(values) if values.is_empty() => continue,
            _ => {
                let mut pop = || stack.pop().unwrap_or(values[0]);
                let b = pop();
                match step {
                    Step::Add => i128::from(pop()) + i128::from(b),
                    Step::Subtract => i128::from(pop()) - i128::from(b),
                    Step::Multiply => i128::from(pop()) * i128::from(b),
                    Step::Binary(which) => {
                        let a = pop();
                        match OPERATORS[usize::from(*which) % OPERATORS.len()] {
                            BinaryOp::Shl if (0..64).contains(&b) => i128::from(a) << b,
                            operator => operator.apply(a, b).into(),
                        }
                    }
                    Step::Select => {
                        let (a, condition) = (pop(), pop());
                        if condition != 0 { a.into() } else { b.into() }
                    }
                    Step::Negate => -i128::from(b),
                    Step::Scale(by) => i128::from(b) * i128::from(*by),
                    Step::Truth => i128::from(b != 0),
                    Step::Not => i128::from(b == 0),
                    Step::Table(values) => {
                        let last = values.len() as i64 - 1;
                        i128::from(values[b.clamp(0, last) as usize])
                    }
                    Step::Wrap(bits, signed) => {
                        let modulus = 1i128 << widths(*bits);
                        let value = i128::from(b).rem_euclid(modulus);
                        if *signed && value >= modulus / 2 {
                            value - modulus
                        } else {
                            value
                        }
                    }
                    _ => b.into(),
                }
            }
        };
        if top.abs() > FAR {
            return None;
        }
        stack.push(top as i64);
    }
    Some(stack.pop().unwrap_or(values[0]))
}

fn segments(values: impl Iterator<Item = i64>) -> f64 {
    let mut found: Vec<i64> = values.map(|value| value.div_euclid(SEGMENT)).collect();
    found.sort_unstable();
    found.dedup();
    found.len() as f64
}

fuzz_target!(|input: Input| {
    let Input { address, guard, .. } = &input;
    if address.len() > LONGEST || guard.len() > LONGEST {
        return;
    }
    let block = [input.block[0] % 64, input.block[1] % 8, input.block[2] % 4]
        .map(|extent| u64::from(extent) + 1);
    let extents = [
        input.extents[0] % 6,
        input.extents[1] % 3,
        input.extents[2] % 24,
    ]
    .map(|extent| i64::from(extent) + 1);
    let warp: u32 = if input.warp { 32 } else { 64 };
    let mut arena = Arena::new();
    let domain = Domain::new(warp, block);
    let mut symbols: Vec<Id> = Vec::new();
    for axis in 0..3 {
        symbols.push(arena.symbol("t", SymbolKind::Thread(axis), domain.thread_range(axis)));
    }
    for extent in extents {
        symbols.push(arena.symbol("c", SymbolKind::Counter { extent }, Interval::ANY));
    }
    let kind = SymbolKind::Fixed {
        value: input.fixed.into(),
        assumed: false,
    };
    symbols.push(arena.symbol("n", kind, Interval::ANY));
    let target = build(&mut arena, &symbols, address);
    let condition = build(&mut arena, &symbols, guard);
    let counters: Vec<Symbol> = symbols[3..6]
        .iter()
        .filter_map(|id| arena.as_symbol(*id))
        .collect();
    let (low, high) = (arena.range(target).lo, arena.range(target).hi);

    // Warps, lanes, and segments of each warp.
    let mut expected = [0.0f64; 3];
    let [x, y, z] = block.map(|extent| extent as i64);
    let threads = x * y * z;
    for a in 0..extents[0] {
        for b in 0..extents[1] {
            for c in 0..extents[2] {
                for first in (0..threads).step_by(warp as usize) {
                    let mut values = Vec::new();
                    for thread in first..(first + i64::from(warp)).min(threads) {
                        let env = [
                            thread % x,
                            thread / x % y,
                            thread / (x * y),
                            a,
                            b,
                            c,
                            input.fixed.into(),
                        ];
                        let (Some(truth), Some(value)) = (run(&env, guard), run(&env, address))
                        else {
                            return;
                        };
                        assert!(
                            low <= value && value <= high,
                            "{value} outside {low}..{high}: {}",
                            arena.text(target)
                        );
                        if (truth != 0) == input.holds {
                            values.push(value);
                        }
                    }
                    if !values.is_empty() {
                        expected[0] += 1.0;
                        expected[1] += values.len() as f64;
                        expected[2] += segments(values.into_iter());
                    }
                }
            }
        }
    }
    let mut found = [0.0f64; 3];
    let query = Query {
        counters: &counters,
        guards: &[Guard {
            condition,
            holds: input.holds,
        }],
        roots: &[(target, SEGMENT)],
        budget: 1 << 20,
    };
    let outcome = domain.visit(&arena, &query, &mut |case| {
        let lanes = (0..64).filter(|lane| case.active >> lane & 1 == 1);
        found[0] += case.weight;
        found[1] += case.weight * f64::from(case.active.count_ones());
        found[2] += case.weight * segments(lanes.map(|lane| case.values[0][lane]));
    });
    assert!(outcome.complete);
    assert_eq!(
        found,
        expected,
        "{} under {}",
        arena.text(target),
        arena.text(condition)
    );
});
