//! Counts against plain enumeration of every thread and iteration.

use proptest::prelude::*;

use crate::polynomial::Ratio;
use crate::{Arena, BinaryOp, Domain, Guard, Id, Interval, Node, Symbol, SymbolKind};

/// Values that parameters take, in text and in trials.
const LEAST: i64 = -6;
const MOST: i64 = 14;

/// A launch of a few blocks of a few threads with two parameters.
struct Setting {
    arena: Arena,
    domain: Domain,
    block: [u64; 3],
    thread: [Id; 2],
    block_index: Id,
    parameters: [Id; 2],
    counters: Vec<Symbol>,
    endless: Vec<Symbol>,
    guards: Vec<Guard>,
}

impl Setting {
    fn new(block: [u64; 3], grid: i64) -> Setting {
        let mut arena = Arena::new();
        let domain = Domain::new(4, block);
        let block_index = arena.symbol("b", SymbolKind::Counter { extent: grid }, Interval::ANY);
        let thread = [0u8, 1]
            .map(|axis| arena.symbol("t", SymbolKind::Thread(axis), domain.thread_range(axis)));
        let parameters = ["n", "m"]
            .map(|name| arena.symbol(name, SymbolKind::Parameter, Interval::new(LEAST, MOST)));
        let counters = vec![arena.as_symbol(block_index).expect("a symbol")];
        Setting {
            arena,
            domain,
            block,
            thread,
            block_index,
            parameters,
            counters,
            endless: Vec::new(),
            guards: Vec::new(),
        }
    }

    fn guard(&mut self, condition: Id, holds: bool) {
        self.guards.push(Guard { condition, holds });
    }

    /// The counter of a loop with this trip count.
    fn looping(&mut self, trips: Id) -> Id {
        let extent = self.arena.range(trips).hi.max(0);
        let counter = self
            .arena
            .symbol("i", SymbolKind::Counter { extent }, Interval::ANY);
        self.counters
            .push(self.arena.as_symbol(counter).expect("a symbol"));
        if self.arena.as_const(trips).is_none() {
            let within = self.arena.binary(BinaryOp::Lt, counter, trips);
            self.guard(within, true);
            self.endless.extend(self.counters.last());
        }
        counter
    }

    fn linear(&mut self, constant: i64, parts: &[(Id, i64)]) -> Id {
        let mut sum = self.arena.constant(constant);
        for &(id, coefficient) in parts {
            let part = self.arena.scale(id, coefficient);
            sum = self.arena.add(sum, part);
        }
        sum
    }

    fn text(&self) -> Option<String> {
        self.domain
            .count(&self.arena, &self.counters, &self.endless, &self.guards)?
            .text(&|name| {
                let symbol = self.arena.symbol_named(name).expect("a parameter");
                self.arena.symbol_name(symbol).to_owned()
            })
    }

    /// The closed form at some parameters.
    fn counted(&self, n: i64, m: i64) -> Option<i128> {
        let count = self
            .domain
            .count(&self.arena, &self.counters, &self.endless, &self.guards)?;
        let value = count.evaluate(&|name| {
            let symbol = self.arena.symbol_named(name)?;
            Some(i128::from(if self.arena.symbol_name(symbol) == "n" {
                n
            } else {
                m
            }))
        });
        Some(value.and_then(Ratio::as_whole).expect("a whole number"))
    }

    fn enumerated(&self, n: i64, m: i64) -> i128 {
        let mut values = vec![0i64; 64];
        let [n_id, m_id] = self
            .parameters
            .map(|id| self.arena.as_symbol(id).expect("a symbol").0);
        (values[n_id as usize], values[m_id as usize]) = (n, m);
        let mut total = 0;
        for y in 0..self.block[1] as i64 {
            for x in 0..self.block[0] as i64 {
                for (axis, value) in [(0, x), (1, y)] {
                    let symbol = self.arena.as_symbol(self.thread[axis]).expect("a symbol");
                    values[symbol.0 as usize] = value;
                }
                total += self.iterations(0, &mut values);
            }
        }
        total
    }

    fn iterations(&self, at: usize, values: &mut Vec<i64>) -> i128 {
        let Some(counter) = self.counters.get(at) else {
            let all = self
                .guards
                .iter()
                .all(|guard| (self.value(guard.condition, values) != 0) == guard.holds);
            return i128::from(all);
        };
        let SymbolKind::Counter { extent } = self.arena.symbol_kind(*counter) else {
            panic!("a counter");
        };
        (0..extent)
            .map(|value| {
                values[counter.0 as usize] = value;
                self.iterations(at + 1, values)
            })
            .sum()
    }

    fn value(&self, id: Id, values: &[i64]) -> i64 {
        match self.arena.node(id) {
            Node::Const(value) => *value,
            Node::Symbol(symbol) => values[symbol.0 as usize],
            Node::Sum(constant, terms) => {
                terms.iter().fold(*constant, |sum, &(term, coefficient)| {
                    sum + coefficient * self.value(term, values)
                })
            }
            Node::Product(factors) => factors
                .iter()
                .map(|&factor| self.value(factor, values))
                .product(),
            Node::Binary(op, a, b) => op.apply(self.value(*a, values), self.value(*b, values)),
            Node::Select(c, a, b) => {
                let side = if self.value(*c, values) == 0 { b } else { a };
                self.value(*side, values)
            }
            Node::Table(index, list) => {
                let at = self.value(*index, values).clamp(0, list.len() as i64 - 1);
                list[at as usize]
            }
            Node::Wrap(..) => panic!("not made here"),
        }
    }

    #[track_caller]
    fn agrees(&self) {
        for (n, m) in [
            (0, 0),
            (1, 5),
            (MOST, 3),
            (LEAST, 7),
            (7, LEAST),
            (13, MOST),
            (2, 1),
        ] {
            if let Some(counted) = self.counted(n, m) {
                assert_eq!(
                    counted,
                    self.enumerated(n, m),
                    "n {n} m {m}: {:?}",
                    self.text()
                );
            }
        }
    }
}

#[test]
fn a_bounds_guard_is_a_minimum() {
    let mut set = Setting::new([8, 1, 1], 4);
    let i = set.linear(0, &[(set.block_index, 8), (set.thread[0], 1)]);
    let inside = set.arena.binary(BinaryOp::Lt, i, set.parameters[0]);
    set.guard(inside, true);
    set.agrees();
    assert_eq!(
        set.text().as_deref(),
        Some("max(n, 0)"),
        "n is at most 14 here"
    );
    let mut set = Setting::new([2, 2, 1], 3);
    let i = set.linear(0, &[(set.block_index, 2), (set.thread[0], 1)]);
    let inside = set.arena.binary(BinaryOp::Lt, i, set.parameters[0]);
    set.guard(inside, true);
    set.looping(set.parameters[1]);
    set.agrees();
    assert_eq!(set.text().as_deref(), Some("2*max(m, 0)*max(min(n, 6), 0)"));
}

#[test]
fn triangles_strides_and_remainders() {
    // for (i < n) for (j < i)
    let mut set = Setting::new([2, 1, 1], 1);
    let i = set.looping(set.parameters[0]);
    set.looping(i);
    set.agrees();
    assert_eq!(set.text().as_deref(), Some("n*(n >= 0)*(n - 1)"));

    // for (j = i; j < n; j += grid): all threads together run over each element once.
    let mut set = Setting::new([4, 1, 1], 2);
    let left = set.linear(
        7,
        &[
            (set.parameters[0], 1),
            (set.block_index, -4),
            (set.thread[0], -1),
        ],
    );
    let zero = set.arena.constant(0);
    let eight = set.arena.constant(8);
    let left = set.arena.binary(BinaryOp::Max, left, zero);
    let trips = set.arena.binary(BinaryOp::Div, left, eight);
    set.looping(trips);
    set.agrees();
    assert_eq!(set.text().as_deref(), Some("max(n, 0)"));

    // if (i < n && i % 2 == 0)
    let mut set = Setting::new([4, 1, 1], 2);
    let i = set.linear(0, &[(set.block_index, 4), (set.thread[0], 1)]);
    let two = set.arena.constant(2);
    let odd = set.arena.binary(BinaryOp::Rem, i, two);
    let inside = set.arena.binary(BinaryOp::Lt, i, set.parameters[0]);
    set.guard(inside, true);
    set.guard(odd, false);
    set.agrees();
    assert_eq!(set.text().as_deref(), Some("max(min(ceil(n/2), 4), 0)"));
}

#[test]
fn a_strided_triangle_has_a_closed_form() {
    // if (i < n) for (j = i + 1; j < n; j += 4)
    let mut set = Setting::new([4, 1, 1], 2);
    let i = set.linear(0, &[(set.block_index, 4), (set.thread[0], 1)]);
    let inside = set.arena.binary(BinaryOp::Lt, i, set.parameters[0]);
    set.guard(inside, true);
    let left = set.linear(2, &[(set.parameters[0], 1), (i, -1)]);
    let (zero, four) = (set.arena.constant(0), set.arena.constant(4));
    let left = set.arena.binary(BinaryOp::Max, left, zero);
    let trips = set.arena.binary(BinaryOp::Div, left, four);
    set.looping(trips);
    set.agrees();
    assert!(set.counted(9, 0).is_some());
}

#[test]
fn a_tiled_loop_runs_over_each_element_once() {
    // for (j = 0; j < n; j += 4) for (l = j; l < min(j + 4, n); l++)
    let mut set = Setting::new([2, 1, 1], 1);
    let (zero, four) = (set.arena.constant(0), set.arena.constant(4));
    let tiles = set.linear(3, &[(set.parameters[0], 1)]);
    let tiles = set.arena.binary(BinaryOp::Max, tiles, zero);
    let tiles = set.arena.binary(BinaryOp::Div, tiles, four);
    let tile = set.looping(tiles);
    let end = set.linear(4, &[(tile, 4)]);
    let end = set.arena.binary(BinaryOp::Min, end, set.parameters[0]);
    let trips = set.linear(0, &[(end, 1), (tile, -4)]);
    let trips = set.arena.binary(BinaryOp::Max, trips, zero);
    set.looping(trips);
    set.agrees();
    assert_eq!(set.text().as_deref(), Some("2*max(n, 0)"));
}

#[derive(Debug, Clone)]
enum Part {
    Linear(i64, [i64; 6]),
    Divided(Box<Part>, i64),
    Remainder(Box<Part>, i64),
    Least(Box<Part>, Box<Part>),
    Most(Box<Part>, Box<Part>),
}

#[derive(Debug, Clone)]
enum Test {
    Compare(usize, Part, Part),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
}

fn part() -> impl Strategy<Value = Part> {
    let coefficient = prop_oneof![12 => Just(0i64), 4 => Just(1), 2 => Just(-1), 1 => Just(2), 1 => Just(-3), 1 => Just(4)];
    let linear = (-4i64..8, prop::array::uniform6(coefficient))
        .prop_map(|(c, parts)| Part::Linear(c, parts));
    linear.prop_recursive(2, 4, 2, |inner| {
        let number = prop_oneof![Just(2i64), Just(3), Just(4)];
        prop_oneof![
            (inner.clone(), number.clone()).prop_map(|(p, by)| Part::Divided(Box::new(p), by)),
            (inner.clone(), number).prop_map(|(p, by)| Part::Remainder(Box::new(p), by)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Part::Least(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Part::Most(Box::new(a), Box::new(b))),
        ]
    })
}

fn test() -> impl Strategy<Value = Test> {
    let compare = (0usize..4, part(), part()).prop_map(|(op, a, b)| Test::Compare(op, a, b));
    compare.prop_recursive(1, 2, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Test::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Test::Or(Box::new(a), Box::new(b))),
        ]
    })
}

/// `scope`: the block, the threads, the parameters, the loops so far.
fn build(set: &mut Setting, part: &Part, scope: &[Id]) -> Id {
    match part {
        Part::Linear(constant, coefficients) => {
            let parts: Vec<(Id, i64)> = scope
                .iter()
                .copied()
                .zip(coefficients.iter().copied())
                .collect();
            set.linear(*constant, &parts)
        }
        Part::Divided(inner, by) | Part::Remainder(inner, by) => {
            // As code does where it may: of what is not negative.
            let inner = build(set, inner, scope);
            let zero = set.arena.constant(0);
            let inner = set.arena.binary(BinaryOp::Max, inner, zero);
            let by = set.arena.constant(*by);
            let op = if matches!(part, Part::Divided(..)) {
                BinaryOp::Div
            } else {
                BinaryOp::Rem
            };
            set.arena.binary(op, inner, by)
        }
        Part::Least(a, b) | Part::Most(a, b) => {
            let (a, b) = (build(set, a, scope), build(set, b, scope));
            let op = if matches!(part, Part::Least(..)) {
                BinaryOp::Min
            } else {
                BinaryOp::Max
            };
            set.arena.binary(op, a, b)
        }
    }
}

fn condition(set: &mut Setting, test: &Test, scope: &[Id]) -> Id {
    match test {
        Test::Compare(op, a, b) => {
            let (a, b) = (build(set, a, scope), build(set, b, scope));
            let op = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne][*op];
            set.arena.binary(op, a, b)
        }
        Test::And(a, b) | Test::Or(a, b) => {
            let (a, b) = (condition(set, a, scope), condition(set, b, scope));
            let op = if matches!(test, Test::And(..)) {
                BinaryOp::LogicalAnd
            } else {
                BinaryOp::LogicalOr
            };
            set.arena.binary(op, a, b)
        }
    }
}

fn trial(block: [u64; 3], grid: i64, trips: &[Part], tests: &[(Test, bool)]) {
    let mut set = Setting::new(block, grid);
    let mut scope = vec![
        set.block_index,
        set.thread[0],
        set.thread[1],
        set.parameters[0],
        set.parameters[1],
    ];
    for trips in trips {
        let trips = build(&mut set, trips, &scope);
        if set.arena.range(trips).hi > 60 {
            return;
        }
        let counter = set.looping(trips);
        // The innermost loop is last, where the coefficients are.
        scope.truncate(5);
        scope.push(counter);
    }
    for (test, holds) in tests {
        let condition = condition(&mut set, test, &scope);
        set.guard(condition, *holds);
    }
    set.agrees();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn any_count_agrees_with_enumeration(
        block in prop_oneof![Just([4u64, 1, 1]), Just([3, 2, 1]), Just([2, 2, 1])],
        grid in 1i64..4,
        trips in prop::collection::vec(part(), 0..3),
        tests in prop::collection::vec((test(), any::<bool>()), 0..3),
    ) {
        trial(block, grid, &trips, &tests);
    }
}
