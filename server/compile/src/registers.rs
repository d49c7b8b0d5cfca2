//! Registers: how much lives at the same time, in the order in which the assembler issues the instructions.

use rustc_hash::FxHashMap;

use crate::Class;
use crate::graph::{B, Graph, Op, V};
use crate::select::{Code, Instruction};

/// As long as so many words live, waiting is avoided; beyond, the order that needs the fewest is taken. A thread of
/// 32 registers leaves an SM its most warps.
const RELAXED: u32 = 26;

/// Blocks of more instructions are not scheduled.
const LONG: usize = 3000;

/// What a block's instructions make and read, as numbers of values that lie in registers.
struct Order {
    made: Vec<usize>,
    read: Vec<usize>,
    extra: u32,
}

struct Pressure<'a> {
    graph: &'a Graph,
    code: &'a Code,
    number: FxHashMap<V, usize>,
    /// Registers of each value.
    words: Vec<u32>,
}

/// Words that live at the same time, at most.
pub(crate) fn pressure(graph: &Graph, code: &Code) -> u32 {
    let mut pressure = Pressure {
        graph,
        code,
        number: FxHashMap::default(),
        words: Vec::new(),
    };
    pressure.most()
}

impl Pressure<'_> {
    fn number(&mut self, v: V) -> usize {
        let words = &mut self.words;
        let graph = self.graph;
        *self.number.entry(v).or_insert_with(|| {
            words.push(graph.ty(v).words());
            words.len() - 1
        })
    }

    fn most(&mut self) -> u32 {
        let (graph, code) = (self.graph, self.code);
        let blocks = graph.blocks.len();
        let mut orders: Vec<Vec<Order>> = Vec::with_capacity(blocks);
        for instructions in &code.blocks {
            let order = instructions
                .iter()
                .map(|instruction| Order {
                    made: instruction.values.iter().map(|v| self.number(*v)).collect(),
                    read: instruction.uses.iter().map(|v| self.number(*v)).collect(),
                    extra: instruction.extra,
                })
                .collect();
            orders.push(order);
        }
        // Phis: made at the block's start, read at the end of those before it.
        let mut made: Vec<Vec<usize>> = vec![Vec::new(); blocks];
        let mut given: Vec<Vec<usize>> = vec![Vec::new(); blocks];
        for (block, stands) in graph.blocks.iter().enumerate() {
            for &v in stands.code.iter().filter(|v| graph.op(**v) == Op::Phi) {
                if graph.ty(v).words() == 0 {
                    continue;
                }
                made[block].push(self.number(v));
                for (arg, from) in graph.inst(v).args.iter().zip(&stands.from) {
                    let mut roots = Vec::new();
                    operands(graph, code, *arg, &mut roots);
                    for root in roots {
                        let number = self.number(root);
                        given[from.0 as usize].push(number);
                    }
                }
            }
        }
        let (live_in, live_out) = self.live(&orders, &made, &given);
        let mut most = 0;
        for block in 0..blocks {
            let mut entered = live_in[block].clone();
            for &v in &made[block] {
                entered[v / 64] |= 1 << (v % 64);
            }
            most = most.max(self.issue(
                &code.blocks[block],
                &orders[block],
                entered,
                &live_out[block],
            ));
        }
        most
    }

    /// What lives at each block's start and end.
    fn live(
        &self,
        orders: &[Vec<Order>],
        made: &[Vec<usize>],
        given: &[Vec<usize>],
    ) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let blocks = orders.len();
        let chunks = self.words.len().div_ceil(64);
        let mut live_in: Vec<Vec<u64>> = vec![vec![0; chunks]; blocks];
        let mut live_out = live_in.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..blocks).rev() {
                let mut live = vec![0u64; chunks];
                for to in self.graph.to(B(block as u32)) {
                    for (mine, theirs) in live.iter_mut().zip(&live_in[to.0 as usize]) {
                        *mine |= theirs;
                    }
                }
                for &v in &given[block] {
                    live[v / 64] |= 1 << (v % 64);
                }
                live_out[block].clone_from(&live);
                for order in orders[block].iter().rev() {
                    for v in &order.made {
                        live[v / 64] &= !(1 << (v % 64));
                    }
                    for v in &order.read {
                        live[v / 64] |= 1 << (v % 64);
                    }
                }
                for v in &made[block] {
                    live[v / 64] &= !(1 << (v % 64));
                }
                if live != live_in[block] {
                    live_in[block] = live;
                    changed = true;
                }
            }
        }
        (live_in, live_out)
    }

    /// Issues a block's instructions: what others wait for longest comes first, and while all wait whatever is
    /// ready; where registers get short, what frees some. Gives the most words that live at a time.
    fn issue(
        &self,
        code: &[Instruction],
        orders: &[Order],
        entered: Vec<u64>,
        leaves: &[u64],
    ) -> u32 {
        let count = code.len();
        let behind = dependences(code, orders);
        let mut waits = vec![0usize; count];
        for others in &behind {
            for &other in others {
                waits[other] += 1;
            }
        }
        let mut height = vec![0u32; count];
        for number in (0..count).rev() {
            let rest = behind[number].iter().map(|other| height[*other]).max();
            height[number] = rest.unwrap_or(0) + latency(&code[number]);
        }
        // Uses that are still to come in the block.
        let mut uses: FxHashMap<usize, u32> = FxHashMap::default();
        for order in orders {
            for &v in &order.read {
                *uses.entry(v).or_default() += 1;
            }
        }
        let mut live = entered;
        let mut now_live = sum(&live, &self.words);
        let mut most = now_live;
        let mut since = vec![0u32; count];
        let mut open: Vec<usize> = (0..count).filter(|number| waits[*number] == 0).collect();
        let mut now = 0u32;
        let is = |bits: &[u64], v: usize| bits[v / 64] >> (v % 64) & 1 == 1;
        while !open.is_empty() {
            let growth = |number: usize, live: &[u64], uses: &FxHashMap<usize, u32>| -> i64 {
                let order = &orders[number];
                let mut change = 0i64;
                for &v in &order.made {
                    if !is(live, v) {
                        change += i64::from(self.words[v]);
                    }
                }
                for (at, &v) in order.read.iter().enumerate() {
                    if order.read[..at].contains(&v) {
                        continue;
                    }
                    let mine = order.read.iter().filter(|other| **other == v).count() as u32;
                    if uses.get(&v) == Some(&mine) && !is(leaves, v) {
                        change -= i64::from(self.words[v]);
                    }
                }
                change
            };
            // Very long blocks are taken as they stand.
            let chosen = if count > LONG {
                (0..open.len()).min_by_key(|at| open[*at])
            } else if now_live < RELAXED {
                open.iter()
                    .enumerate()
                    .filter(|(_, number)| since[**number] <= now)
                    .max_by_key(|(_, number)| (height[**number], std::cmp::Reverse(**number)))
                    .map(|(at, _)| at)
            } else {
                open.iter()
                    .enumerate()
                    .min_by_key(|(_, number)| (growth(**number, &live, &uses), **number))
                    .map(|(at, _)| at)
            };
            let Some(at) = chosen else {
                now = open
                    .iter()
                    .map(|number| since[*number])
                    .min()
                    .unwrap_or(now);
                continue;
            };
            let number = open.swap_remove(at);
            let order = &orders[number];
            most = most.max(now_live + order.extra);
            for &v in &order.read {
                let left = uses.get_mut(&v).expect("counted above");
                *left -= 1;
                if *left == 0 && !is(leaves, v) && is(&live, v) {
                    live[v / 64] &= !(1 << (v % 64));
                    now_live -= self.words[v];
                }
            }
            for &v in &order.made {
                if !is(&live, v) {
                    live[v / 64] |= 1 << (v % 64);
                    now_live += self.words[v];
                }
            }
            most = most.max(now_live);
            // What nobody reads is gone at once.
            for &v in &order.made {
                if !is(leaves, v) && uses.get(&v).copied().unwrap_or(0) == 0 {
                    live[v / 64] &= !(1 << (v % 64));
                    now_live -= self.words[v];
                }
            }
            now = now.max(since[number]) + code[number].count.max(1);
            for &other in &behind[number] {
                waits[other] -= 1;
                since[other] = since[other].max(now + latency(&code[number]));
                if waits[other] == 0 {
                    open.push(other);
                }
            }
        }
        most
    }
}

fn sum(live: &[u64], words: &[u32]) -> u32 {
    let mut total = 0;
    for (chunk, bits) in live.iter().enumerate() {
        let mut bits = *bits;
        while bits != 0 {
            total += words[chunk * 64 + bits.trailing_zeros() as usize];
            bits &= bits - 1;
        }
    }
    total
}

/// The registers that a phi reads for a value.
fn operands(graph: &Graph, code: &Code, v: V, out: &mut Vec<V>) {
    let inst = graph.inst(v);
    if inst.op.is_operand() || inst.ty.words() == 0 {
        return;
    }
    if code.fused[v.0 as usize] && !matches!(inst.op, Op::Phi | Op::Piece(_)) {
        for arg in &inst.args {
            operands(graph, code, *arg, out);
        }
    } else {
        out.push(v);
    }
}

/// Which instructions must follow which: values, the order of memory, barriers.
fn dependences(code: &[Instruction], orders: &[Order]) -> Vec<Vec<usize>> {
    let count = code.len();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut made: FxHashMap<usize, usize> = FxHashMap::default();
    let mut barrier: Option<usize> = None;
    // The last store, and the loads since, by class of memory.
    let mut stores: FxHashMap<Class, usize> = FxHashMap::default();
    let mut loads: FxHashMap<Class, Vec<usize>> = FxHashMap::default();
    for (number, (instruction, order)) in code.iter().zip(orders).enumerate() {
        let mut on: Vec<usize> = order
            .read
            .iter()
            .filter_map(|v| made.get(v).copied())
            .collect();
        match instruction.class {
            Class::Bar => {
                on.extend(stores.values().copied());
                on.extend(loads.values().flatten().copied());
                on.extend(barrier);
                stores.clear();
                loads.clear();
                barrier = Some(number);
            }
            Class::Ldg | Class::Lds | Class::Ldl => {
                on.extend(barrier);
                on.extend(stores.get(&instruction.class).copied());
                loads.entry(instruction.class).or_default().push(number);
            }
            Class::Stg | Class::Sts | Class::Stl | Class::Atom | Class::Red => {
                let of = match instruction.class {
                    Class::Sts => Class::Lds,
                    Class::Stl => Class::Ldl,
                    _ => Class::Ldg,
                };
                on.extend(barrier);
                on.extend(stores.insert(of, number));
                on.extend(loads.remove(&of).unwrap_or_default());
            }
            // What ends the block stands at its end.
            Class::Bra => on.extend(0..number),
            _ => {}
        }
        on.sort_unstable();
        on.dedup();
        for other in on {
            behind[other].push(number);
        }
        for v in &order.made {
            made.insert(*v, number);
        }
    }
    behind
}

/// Cycles until a value is there, as the scheduler sees it.
fn latency(instruction: &Instruction) -> u32 {
    match instruction.class {
        Class::Ldg | Class::Ldl | Class::Atom | Class::Tex => 200,
        Class::Lds | Class::Ldc | Class::Shfl => 25,
        Class::Mufu | Class::I2f | Class::F2i | Class::F2f => 18,
        Class::Dfma | Class::Dadd | Class::Dmul => 8,
        _ => 4,
    }
}
