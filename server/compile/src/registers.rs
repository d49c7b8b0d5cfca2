//! Registers: how much lives at the same time, in the order in which the assembler issues the instructions.

mod issue;

use rustc_hash::FxHashMap;

use crate::graph::{B, Graph, Op, V};
use crate::select::{Code, Instruction};
use crate::{Class, Options, WARPS_REGISTERS};

use issue::Order;

/// Registers that every thread has besides: the stack's address, what the halves of pairs leave unused.
const FRAME: u32 = 5;

/// The most words that an instruction makes.
const WIDEST: u32 = 4;

/// A value of constants, parameters and coordinates that so many instructions make is sooner made anew than kept.
const CHEAP: u32 = 8;

/// Words that making values anew takes at most: what stencils and factorisations of growing size need above what they
/// must keep.
const REMAKING: u32 = 9;

/// What an instruction makes and reads, as numbers of values that lie in registers.
struct Operands {
    made: Vec<usize>,
    read: Vec<usize>,
    extra: u32,
}

/// A block to be scheduled. Its values are numbered anew: those that it makes or reads.
struct Block<'a> {
    code: &'a [Instruction],
    orders: Vec<Operands>,
    /// The instructions that wait for each, and those that each waits for, with their number.
    behind: Vec<Vec<usize>>,
    ahead: Vec<Vec<usize>>,
    waits: Vec<u32>,
    /// Cycles from when each issues to the end of what waits for it.
    height: Vec<u32>,
    /// Registers of each value, and whether it is sooner made anew than kept for long.
    words: Vec<u32>,
    cheap: Vec<bool>,
    /// Uses of each value, and the most of one instruction.
    uses: Vec<u32>,
    together: Vec<u32>,
    /// The instructions that make and read each value.
    makers: Vec<Vec<usize>>,
    readers: Vec<Vec<usize>>,
    /// What lives at its start, and at its end.
    entered: Vec<bool>,
    leaves: Vec<bool>,
    /// Words that live through it untouched: all, and those that are not sooner made anew.
    through: (u32, u32),
    /// Words of what it reads that could be made anew for each use.
    remade: u32,
}

/// What a kernel's values got.
#[derive(Default)]
pub(crate) struct Allocation {
    /// Registers of a thread.
    pub registers: u32,
    /// Words that did not find one.
    pub spilled: u32,
}

struct Pressure<'a> {
    graph: &'a Graph,
    code: &'a Code,
    number: FxHashMap<V, usize>,
    /// Registers of each value.
    words: Vec<u32>,
    /// Values that are sooner made anew than kept for long.
    cheap: Vec<u64>,
}

/// The registers of a kernel, of which a thread gets at least `fewest` where it needs that many.
pub(crate) fn allocate(graph: &Graph, code: &Code, options: Options, fewest: u32) -> Allocation {
    let most = options.max_registers.max(fewest);
    let mut pressure = Pressure {
        graph,
        code,
        number: FxHashMap::default(),
        words: Vec::new(),
        cheap: Vec::new(),
    };
    let blocks = pressure.blocks();
    let mut least = None;
    // Fewer registers let in more warps: as few are taken as nothing is lost by. Where it is said how many warps
    // there are to be, all that this leaves are used.
    let fewer = steps(options.warps).filter(|step| !options.occupancy_given && *step < most);
    for step in fewer.chain([most]) {
        let room = step.saturating_sub(FRAME);
        if least.is_none_or(|least| least <= room) {
            let words = blocks.iter().try_fold(0, |most, block| {
                let words = block.issue(Order::Latency(room));
                (words <= room).then(|| most.max(words))
            });
            if let Some(words) = words {
                return Allocation::of(words + FRAME);
            }
        }
        let least =
            *least.get_or_insert_with(|| blocks.iter().map(Block::fewest).max().unwrap_or(0));
        if least <= room {
            return Allocation::of(step);
        }
    }
    Allocation {
        registers: most,
        spilled: least
            .unwrap_or(0)
            .saturating_sub(most.saturating_sub(FRAME)),
    }
}

/// Registers of a thread with which an SM holds another number of warps, from the most warps on.
fn steps(warps: u32) -> impl Iterator<Item = u32> {
    // Of a lane; the unit in which they are handed out.
    const OF_PART: u32 = WARPS_REGISTERS / 32;
    const UNIT: u32 = 8;
    let mut steps: Vec<u32> = (2..=warps)
        .rev()
        .map(|warps| OF_PART / warps / UNIT * UNIT)
        .collect();
    steps.dedup();
    steps.into_iter()
}

impl Allocation {
    fn of(registers: u32) -> Allocation {
        Allocation {
            registers,
            spilled: 0,
        }
    }
}

impl<'a> Pressure<'a> {
    fn number(&mut self, v: V) -> usize {
        let words = &mut self.words;
        let graph = self.graph;
        *self.number.entry(v).or_insert_with(|| {
            words.push(graph.ty(v).words());
            words.len() - 1
        })
    }

    fn blocks(&mut self) -> Vec<Block<'a>> {
        let (graph, code) = (self.graph, self.code);
        let blocks = graph.blocks.len();
        let mut orders: Vec<Vec<Operands>> = Vec::with_capacity(blocks);
        for instructions in &code.blocks {
            let order = instructions
                .iter()
                .map(|instruction| Operands {
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
        self.cheap = vec![0u64; self.words.len().div_ceil(64)];
        for (value, number) in &self.number {
            if cost(graph, *value, CHEAP).is_some() {
                self.cheap[number / 64] |= 1 << (number % 64);
            }
        }
        let mut local = vec![usize::MAX; self.words.len()];
        let mut found = Vec::with_capacity(blocks);
        for (block, (orders, leaves)) in orders.into_iter().zip(live_out).enumerate() {
            let mut entered = live_in[block].clone();
            for &v in &made[block] {
                entered[v / 64] |= 1 << (v % 64);
            }
            found.push(self.block(&code.blocks[block], orders, &entered, &leaves, &mut local));
        }
        found
    }

    /// A block's own numbers; `local` has room for all values and is left as it was.
    fn block(
        &self,
        code: &'a [Instruction],
        mut orders: Vec<Operands>,
        entered: &[u64],
        leaves: &[u64],
        local: &mut [usize],
    ) -> Block<'a> {
        let is = |bits: &[u64], v: usize| bits[v / 64] >> (v % 64) & 1 == 1;
        let behind = dependences(code, &orders);
        let mut values: Vec<usize> = Vec::new();
        for v in orders
            .iter_mut()
            .flat_map(|o| o.made.iter_mut().chain(&mut o.read))
        {
            if local[*v] == usize::MAX {
                local[*v] = values.len();
                values.push(*v);
            }
            *v = local[*v];
        }
        let untouched = members(entered).filter(|v| local[*v] == usize::MAX);
        let through = untouched.fold((0, 0), |(all, kept), v| {
            let words = self.words[v];
            let cheap = is(&self.cheap, v);
            (all + words, kept + if cheap { 0 } else { words })
        });
        for &v in &values {
            local[v] = usize::MAX;
        }
        let count = code.len();
        let mut waits = vec![0; count];
        let mut ahead = vec![Vec::new(); count];
        for (number, others) in behind.iter().enumerate() {
            for &other in others {
                waits[other] += 1;
                ahead[other].push(number);
            }
        }
        let mut height = vec![0u32; count];
        for number in (0..count).rev() {
            let rest = behind[number].iter().map(|other| height[*other]).max();
            height[number] = rest.unwrap_or(0) + latency(&code[number]);
        }
        let mut uses = vec![0u32; values.len()];
        let mut together = vec![0u32; values.len()];
        let mut makers = vec![Vec::new(); values.len()];
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); values.len()];
        for (number, operands) in orders.iter().enumerate() {
            for &v in &operands.made {
                makers[v].push(number);
            }
            for (at, &v) in operands.read.iter().enumerate() {
                uses[v] += 1;
                if !operands.read[..at].contains(&v) {
                    let mine = operands.read.iter().filter(|other| **other == v).count() as u32;
                    together[v] = together[v].max(mine);
                    readers[v].push(number);
                }
            }
        }
        let words: Vec<u32> = values.iter().map(|v| self.words[*v]).collect();
        let cheap: Vec<bool> = values.iter().map(|v| is(&self.cheap, *v)).collect();
        let remade = (0..values.len()).filter(|v| uses[*v] > 0 && cheap[*v]);
        Block {
            remade: remade.map(|v| words[v]).sum(),
            entered: values.iter().map(|v| is(entered, *v)).collect(),
            leaves: values.iter().map(|v| is(leaves, *v)).collect(),
            code,
            orders,
            behind,
            ahead,
            waits,
            height,
            words,
            cheap,
            uses,
            together,
            makers,
            readers,
            through,
        }
    }

    /// What lives at each block's start and end.
    fn live(
        &self,
        orders: &[Vec<Operands>],
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
}

impl Block<'_> {
    /// The fewest words that an order of the instructions is found for.
    fn fewest(&self) -> u32 {
        let orders = [Order::Fewest, Order::Followed, Order::AsWritten];
        let words = orders.map(|order| self.issue(order));
        words.into_iter().min().unwrap_or(0) + self.remade.min(REMAKING)
    }
}

/// Instructions that make an integer of constants, parameters and coordinates alone; `None` where there is more to
/// it, or more than `most`.
fn cost(graph: &Graph, v: V, most: u32) -> Option<u32> {
    let inst = graph.inst(v);
    if inst.op.is_operand() {
        return Some(0);
    }
    let mut all = match inst.op {
        Op::Base(_) | Op::Truncate | Op::Extend(_) | Op::Bits => 0,
        Op::Builtin(_)
        | Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Shl
        | Op::Shr(_)
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Neg
        | Op::Not
        | Op::Offset(_)
        | Op::Address(..)
            if !inst.ty.is_float() =>
        {
            1
        }
        _ => return None,
    };
    for &arg in &inst.args {
        all += cost(graph, arg, most.checked_sub(all)?)?;
    }
    (all <= most).then_some(all)
}

/// The numbers in a set.
fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(chunk, bits)| {
        let mut bits = *bits;
        std::iter::from_fn(move || {
            let at = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(chunk * 64 + at)
        })
    })
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
fn dependences(code: &[Instruction], orders: &[Operands]) -> Vec<Vec<usize>> {
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
