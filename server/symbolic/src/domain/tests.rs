//! The walk against a plain enumeration of every thread.

use super::*;
use crate::{BinaryOp, Node, SymbolKind};
use proptest::prelude::*;

/// A random expression as a program for a stack machine: shrinks well and always means something.
#[derive(Debug, Clone)]
enum Step {
    Symbol(usize),
    Const(i64),
    Add,
    Sub,
    Mul,
    Binary(usize),
    Select,
    Table(Vec<i64>),
    Wrap(u8, bool),
}

const OPS: [BinaryOp; 15] = [
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
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..8).prop_map(Step::Symbol),
        3 => prop_oneof![0i64..40, Just(64), Just(-1), Just(-3), Just(1024)].prop_map(Step::Const),
        3 => Just(Step::Add),
        1 => Just(Step::Sub),
        2 => Just(Step::Mul),
        3 => (0usize..OPS.len()).prop_map(Step::Binary),
        1 => Just(Step::Select),
        1 => prop::collection::vec(-5i64..40, 1..5).prop_map(Step::Table),
        1 => (prop_oneof![Just(8u8), Just(16), Just(32)], any::<bool>()).prop_map(|(b, s)| Step::Wrap(b, s)),
    ]
}

/// The steps as an expression, and as its value when the symbols have values.
fn build(arena: &mut Arena, symbols: &[Id], steps: &[Step]) -> Id {
    let mut stack: Vec<Id> = Vec::new();
    for step in steps {
        let mut pop = || stack.pop().unwrap_or(symbols[0]);
        let id = match step {
            Step::Symbol(which) => symbols[which % symbols.len()],
            Step::Const(value) => arena.constant(*value),
            Step::Add => {
                let (b, a) = (pop(), pop());
                arena.add(a, b)
            }
            Step::Sub => {
                let (b, a) = (pop(), pop());
                arena.sub(a, b)
            }
            Step::Mul => {
                let (b, a) = (pop(), pop());
                arena.mul(a, b)
            }
            Step::Binary(op) => {
                let (b, a) = (pop(), pop());
                arena.binary(OPS[*op], a, b)
            }
            Step::Select => {
                let (c, b, a) = (pop(), pop(), pop());
                arena.select(a, b, c)
            }
            Step::Table(values) => {
                let a = pop();
                arena.table(a, values)
            }
            Step::Wrap(bits, signed) => {
                let a = pop();
                arena.wrap(*bits, *signed, a)
            }
        };
        stack.push(id);
    }
    stack.pop().unwrap_or(symbols[0])
}

/// `i64::MAX` where some intermediate value lies far beyond any address.
fn run(values: &[i64], steps: &[Step]) -> i64 {
    let mut stack: Vec<i64> = Vec::new();
    for step in steps {
        let mut pop = || stack.pop().unwrap_or(values[0]);
        let value: i128 = match step {
            Step::Symbol(which) => i128::from(values[which % values.len()]),
            Step::Const(value) => i128::from(*value),
            Step::Add => {
                let (b, a) = (pop(), pop());
                i128::from(a) + i128::from(b)
            }
            Step::Sub => {
                let (b, a) = (pop(), pop());
                i128::from(a) - i128::from(b)
            }
            Step::Mul => {
                let (b, a) = (pop(), pop());
                i128::from(a) * i128::from(b)
            }
            Step::Binary(2) => {
                let (b, a) = (pop(), pop());
                if (0..64).contains(&b) {
                    i128::from(a) << b
                } else {
                    0
                }
            }
            Step::Binary(op) => {
                let (b, a) = (pop(), pop());
                i128::from(OPS[*op].apply(a, b))
            }
            Step::Select => {
                let (c, b, a) = (pop(), pop(), pop());
                i128::from(if a != 0 { b } else { c })
            }
            Step::Table(values) => {
                let a = pop();
                i128::from(values[a.clamp(0, values.len() as i64 - 1) as usize])
            }
            Step::Wrap(bits, signed) => {
                let a = pop();
                let modulus = 1i128 << bits;
                let mut value = i128::from(a).rem_euclid(modulus);
                if *signed && value >= modulus / 2 {
                    value -= modulus;
                }
                value
            }
        };
        // Far beyond any address the expressions promise nothing.
        if value.abs() > 1 << 40 {
            return i64::MAX;
        }
        stack.push(value as i64);
    }
    stack.pop().unwrap_or(values[0])
}

/// What is summed: warps, active lanes, and over warps the number of distinct 32-byte sectors and the bits
/// of the value itself.
fn sectors(values: impl Iterator<Item = i64>) -> f64 {
    let mut found: Vec<i64> = values.map(|value| value.div_euclid(32)).collect();
    found.sort_unstable();
    found.dedup();
    found.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]
    #[test]
    fn folding_equals_enumerating(
        address in prop::collection::vec(step(), 1..14),
        guard in prop::collection::vec(step(), 0..10),
        holds in any::<bool>(),
        block in prop_oneof![
            Just([32u64, 1, 1]), Just([64, 1, 1]), Just([16, 4, 1]), Just([8, 8, 1]), Just([32, 2, 2]),
            Just([48, 1, 1]), Just([7, 5, 1]), Just([4, 4, 4]), Just([100, 1, 1]), Just([1, 1, 1])
        ],
        grid in (1i64..9, 1i64..4),
        trips in 1i64..40,
        n in 0i64..200,
        warp in prop_oneof![Just(32u32), Just(64), Just(16)],
    ) {
        let mut arena = Arena::new();
        let domain = Domain::new(warp, block);
        let mut symbols = Vec::new();
        for axis in 0..3 {
            symbols.push(arena.symbol("t", SymbolKind::Thread(axis), domain.thread_range(axis)));
        }
        let counters: Vec<Id> = [grid.0, grid.1, trips]
            .iter()
            .map(|&extent| arena.symbol("c", SymbolKind::Counter { extent }, Interval::ANY))
            .collect();
        symbols.extend(&counters);
        symbols.push(arena.symbol("n", SymbolKind::Fixed { value: n, assumed: false }, Interval::ANY));
        let target = build(&mut arena, &symbols, &address);
        let condition = if guard.is_empty() { arena.constant(i64::from(holds)) } else { build(&mut arena, &symbols, &guard) };
        let in_scope: Vec<Symbol> = counters.iter().map(|&id| match arena.node(id) { Node::Symbol(s) => *s, _ => unreachable!() }).collect();

        let mut expected = [0.0f64; 3];
        let threads = (block[0] * block[1] * block[2]) as i64;
        let mut far = false;
        for bx in 0..grid.0 { for by in 0..grid.1 { for j in 0..trips {
            let mut first = 0;
            while first < threads {
                let mut values = Vec::new();
                for thread in first..(first + i64::from(warp)).min(threads) {
                    let (x, y) = (block[0] as i64, block[1] as i64);
                    let env = [thread % x, thread / x % y, thread / (x * y), bx, by, j, n];
                    let truth = if guard.is_empty() { i64::from(holds) } else { run(&env, &guard) };
                    let value = run(&env, &address);
                    far |= truth == i64::MAX || value == i64::MAX;
                    if (truth != 0) == holds { values.push(value); }
                }
                if !values.is_empty() {
                    expected[0] += 1.0;
                    expected[1] += values.len() as f64;
                    expected[2] += sectors(values.into_iter());
                }
                first += i64::from(warp);
            }
        }}}
        prop_assume!(!far);

        let mut found = [0.0f64; 3];
        let query = Query { counters: &in_scope, guards: &[Guard { condition, holds }], roots: &[(target, 32)], budget: 1 << 20 };
        let outcome = domain.visit(&arena, &query, &mut |case| {
            found[0] += case.weight;
            found[1] += case.weight * f64::from(case.active.count_ones());
            found[2] += case.weight * sectors((0..64).filter(|lane| case.active >> lane & 1 == 1).map(|lane| case.values[0][lane]));
        });
        prop_assert!(outcome.complete);
        prop_assert_eq!(found, expected, "{} under {}", arena.text(target), arena.text(condition));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]
    /// Sums of everything that moves evenly, with some that do not, under bounds: what real indices are.
    #[test]
    fn residues_equal_enumerating(
        coefficients in prop::array::uniform6(prop_oneof![
            Just(0i64), Just(1), Just(4), Just(16), Just(64), Just(96), Just(-4), -70i64..70
        ]),
        uneven in prop_oneof![Just(None), (0usize..6, 2i64..12, -9i64..40).prop_map(Some)],
        bound in prop_oneof![Just(None), (0usize..6, 0i64..40).prop_map(Some)],
        extents in prop::array::uniform3(1i64..24),
        block in prop_oneof![Just([32u64, 1, 1]), Just([64, 2, 1]), Just([16, 4, 2]), Just([24, 2, 1])],
        modulus in prop_oneof![Just(32i64), Just(128), Just(4), Just(48)],
    ) {
        let mut arena = Arena::new();
        let domain = Domain::new(32, block);
        let mut symbols = Vec::new();
        for axis in 0..3 {
            symbols.push(arena.symbol("t", SymbolKind::Thread(axis), domain.thread_range(axis)));
        }
        for extent in extents {
            symbols.push(arena.symbol("c", SymbolKind::Counter { extent }, Interval::ANY));
        }
        let in_scope: Vec<Symbol> = symbols[3..].iter().filter_map(|&id| arena.as_symbol(id)).collect();
        let mut address = arena.constant(3);
        for (&symbol, &coefficient) in symbols.iter().zip(&coefficients) {
            let term = arena.scale(symbol, coefficient);
            address = arena.add(address, term);
        }
        if let Some((which, by, times)) = uneven {
            let by = arena.constant(by);
            let rest = arena.binary(BinaryOp::Rem, symbols[which], by);
            let term = arena.scale(rest, times);
            address = arena.add(address, term);
        }
        let guards: Vec<Guard> = bound.iter().map(|&(which, most)| {
            let most = arena.constant(most);
            Guard { condition: arena.binary(BinaryOp::Lt, symbols[which], most), holds: true }
        }).collect();

        // How many lanes meet each residue, by brute force and by the walk; and the warps.
        let mut expected = vec![0.0; modulus as usize + 1];
        let threads = (block[0] * block[1] * block[2]) as i64;
        let (x, y) = (block[0] as i64, block[1] as i64);
        for a in 0..extents[0] { for b in 0..extents[1] { for c in 0..extents[2] {
            for first in (0..threads).step_by(32) {
                let mut some = false;
                for thread in first..(first + 32).min(threads) {
                    let env = [thread % x, thread / x % y, thread / (x * y), a, b, c];
                    if bound.is_some_and(|(which, most)| env[which] >= most) {
                        continue;
                    }
                    some = true;
                    let sum: i64 = env.iter().zip(&coefficients).map(|(v, k)| v * k).sum();
                    let more = uneven.map_or(0, |(which, by, times)| env[which] % by * times);
                    expected[(3 + sum + more).rem_euclid(modulus) as usize] += 1.0;
                }
                expected[modulus as usize] += f64::from(u8::from(some));
            }
        }}}

        let mut found = vec![0.0; modulus as usize + 1];
        let query = Query { counters: &in_scope, guards: &guards, roots: &[(address, modulus)], budget: 1 << 20 };
        let outcome = domain.visit(&arena, &query, &mut |case| {
            found[modulus as usize] += case.weight;
            for lane in (0..32).filter(|lane| case.active >> lane & 1 == 1) {
                found[case.values[0][lane].rem_euclid(modulus) as usize] += case.weight;
            }
        });
        prop_assert!(outcome.complete);
        prop_assert_eq!(found, expected, "{} modulo {}", arena.text(address), modulus);
    }
}

#[test]
fn a_million_blocks_cost_a_handful_of_cases() {
    let mut arena = Arena::new();
    let domain = Domain::new(32, [256, 1, 1]);
    let thread = arena.symbol("threadIdx.x", SymbolKind::Thread(0), domain.thread_range(0));
    let block = arena.symbol(
        "blockIdx.x",
        SymbolKind::Counter { extent: 1 << 20 },
        Interval::ANY,
    );
    let n = arena.symbol(
        "n",
        SymbolKind::Fixed {
            value: (1 << 28) - 77,
            assumed: false,
        },
        Interval::ANY,
    );
    let base = arena.scale(block, 256);
    let index = arena.add(base, thread);
    let address = arena.scale(index, 4);
    let condition = arena.binary(BinaryOp::Lt, index, n);
    let (mut cases, mut lanes) = (0, 0.0);
    let Node::Symbol(counter) = *arena.node(block) else {
        panic!()
    };
    let query = Query {
        counters: &[counter],
        guards: &[Guard {
            condition,
            holds: true,
        }],
        roots: &[(address, 32)],
        budget: 1000,
    };
    let outcome = domain.visit(&arena, &query, &mut |case| {
        cases += 1;
        lanes += case.weight * f64::from(case.active.count_ones());
    });
    assert!(outcome.complete);
    assert!(cases < 60, "{cases} cases");
    assert_eq!(lanes, f64::from((1 << 28) - 77));
}

#[test]
fn loops_that_move_evenly_are_not_multiplied_out() {
    // Three loops of 40 rounds, each moving by another number of words: 64,000 rounds, 32 residues.
    let mut arena = Arena::new();
    let domain = Domain::new(32, [32, 1, 1]);
    let mut address = arena.symbol("t", SymbolKind::Thread(0), domain.thread_range(0));
    let mut counters = Vec::new();
    for by in [3, 5, 7] {
        let extent = 40;
        let counter = arena.symbol("i", SymbolKind::Counter { extent }, Interval::ANY);
        counters.extend(arena.as_symbol(counter));
        let way = arena.scale(counter, by);
        address = arena.add(address, way);
    }
    let query = Query {
        counters: &counters,
        guards: &[],
        roots: &[(arena.scale(address, 4), 128)],
        budget: 100,
    };
    let mut rounds = 0.0;
    let outcome = domain.visit(&arena, &query, &mut |case| rounds += case.weight);
    assert!(outcome.complete, "{outcome:?}");
    assert_eq!(rounds, 64_000.0);
}

#[test]
fn the_inside_of_a_volume_is_a_few_boxes() {
    // 512³ threads of which those four and more from each face take part.
    let mut arena = Arena::new();
    let domain = Domain::new(32, [16, 16, 1]);
    let mut counters = Vec::new();
    let mut guards = Vec::new();
    let mut address = arena.constant(0);
    for (axis, extent) in [(0u8, 32), (1, 32), (2, 512)] {
        let thread = arena.symbol("t", SymbolKind::Thread(axis), domain.thread_range(axis));
        let block = arena.symbol("b", SymbolKind::Counter { extent }, Interval::ANY);
        counters.extend(arena.as_symbol(block));
        let first = arena.scale(block, 512 / extent);
        let at = arena.add(first, thread);
        let (least, most) = (arena.constant(4), arena.constant(508));
        for condition in [
            arena.binary(BinaryOp::Le, least, at),
            arena.binary(BinaryOp::Lt, at, most),
        ] {
            let holds = true;
            guards.push(Guard { condition, holds });
        }
        let row = arena.scale(at, 4 * 512i64.pow(u32::from(axis)));
        address = arena.add(address, row);
    }
    let query = Query {
        counters: &counters,
        guards: &guards,
        roots: &[(address, 32)],
        budget: 1000,
    };
    let mut lanes = 0.0;
    let outcome = domain.visit(&arena, &query, &mut |case| {
        lanes += case.weight * f64::from(case.active.count_ones());
    });
    assert!(outcome.complete && outcome.looked_at < 500, "{outcome:?}");
    assert_eq!(lanes, 504f64.powi(3));
}

/// More counters than an expression can tell apart: those beyond still multiply.
#[test]
fn counters_beyond_the_bits_are_counted() {
    let mut arena = Arena::new();
    let domain = Domain::new(32, [32, 1, 1]);
    let counters: Vec<Symbol> = (0..200)
        .map(|_| {
            let made = arena.symbol("i", SymbolKind::Counter { extent: 3 }, Interval::ANY);
            arena.as_symbol(made).expect("a symbol")
        })
        .collect();
    for pair in [[0, 1], [0, 199], [198, 199]] {
        let counters = pair.map(|at| counters[at]);
        let mut lanes = 0.0;
        let query = Query {
            counters: &counters,
            guards: &[],
            roots: &[],
            budget: 64,
        };
        let outcome = domain.visit(&arena, &query, &mut |case| {
            lanes += case.weight * f64::from(case.active.count_ones());
        });
        assert!(outcome.complete);
        assert_eq!(lanes, 9.0 * 32.0);
    }
}

#[test]
fn counters_beyond_the_bits_are_still_the_same_for_all_lanes() {
    let mut arena = Arena::new();
    let mut last = arena.symbol("thread", SymbolKind::Thread(0), Interval::new(0, 31));
    assert!(arena.varies_by_lane(last));
    for _ in 0..200 {
        last = arena.symbol("i", SymbolKind::Counter { extent: 8 }, Interval::ANY);
    }
    assert_eq!(arena.opaque(last), Some(false));
    assert!(!arena.varies_by_lane(last));
    let lane = arena.symbol("lane", SymbolKind::Thread(1), Interval::new(0, 7));
    assert!(arena.varies_by_lane(lane));
}

#[test]
fn an_index_that_was_split_and_put_together_is_the_index() {
    let mut arena = Arena::new();
    let x = arena.symbol("x", SymbolKind::Thread(0), Interval::new(0, 1 << 20));
    let rows = arena.symbol("T", SymbolKind::Parameter, Interval::ANY);
    let width = arena.symbol("C", SymbolKind::Parameter, Interval::ANY);
    let thousand = arena.constant(1000);
    let (six, twelve, three) = (arena.constant(6), arena.constant(12), arena.constant(3));
    // (x / T) T C + (x % T) C, with T a parameter and a number.
    for by in [rows, thousand] {
        let quotient = arena.binary(BinaryOp::Div, x, by);
        let rest = arena.binary(BinaryOp::Rem, x, by);
        let step = arena.mul(by, width);
        let (whole, part) = (arena.mul(quotient, step), arena.mul(rest, width));
        let (index, expected) = (arena.add(whole, part), arena.mul(x, width));
        assert_eq!(index, expected);
        let other = arena.mul(quotient, width);
        let apart = arena.add(other, part);
        assert_ne!(apart, expected, "another step is another index");
    }
    // Three coordinates: 12 (x / 12) + 3 (x / 3 % 4) + x % 3, of which the first is so from 12 on.
    let first = arena.binary(BinaryOp::Div, x, twelve);
    let (four, third) = (arena.constant(4), arena.binary(BinaryOp::Div, x, three));
    let second = arena.binary(BinaryOp::Rem, third, four);
    let last = arena.binary(BinaryOp::Rem, x, three);
    let (first, second) = (arena.scale(first, 12), arena.scale(second, 3));
    let index = arena.add(first, last);
    assert_eq!(arena.add(index, second), x);
    // Of a sum.
    let sum = arena.add(x, six);
    let (quotient, rest) = (
        arena.binary(BinaryOp::Div, sum, rows),
        arena.binary(BinaryOp::Rem, sum, rows),
    );
    let whole = arena.mul(quotient, rows);
    assert_eq!(arena.add(rest, whole), sum);
}
