//! Registers: how much lives at the same time, in the order in which the assembler issues the instructions.

use std::cell::Cell;

use rustc_hash::FxHashMap;

use crate::graph::{B, Graph, Op, V};
use crate::select::{Code, Instruction};
use crate::{Class, Options, WARPS_REGISTERS};

/// Registers that every thread has besides: the stack's address, what the halves of pairs leave unused.
const FRAME: u32 = 5;

/// The most words that an instruction makes.
const WIDEST: u32 = 4;

/// A value of constants, parameters and coordinates that so many instructions make is sooner made anew than kept.
const CHEAP: u32 = 8;

/// Words that making values anew takes at most: what stencils and factorisations of growing size need above what they
/// must keep.
const REMAKING: u32 = 9;

/// Blocks of more instructions are not scheduled.
const LONG: usize = 8000;

/// Blocks of fewer instructions are not worth it to note what issuing each would change.
const MANY: usize = 32;

/// What an instruction makes and reads, as numbers of values that lie in registers.
struct Operands {
    made: Vec<usize>,
    read: Vec<usize>,
    extra: u32,
}

/// How a block's instructions are issued.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// What others wait for longest first, and while all wait whatever is ready, as long as no more words live.
    Latency(u32),
    /// What leaves the fewest words alive.
    Fewest,
    /// The same, and of several what the fewest of those that read it could not go on with yet: a value is made when all
    /// that it is for can follow.
    Followed,
    /// As the compiler's front end leaves them.
    AsWritten,
}

/// A block to be scheduled.
struct Block<'a> {
    code: &'a [Instruction],
    orders: Vec<Operands>,
    /// The instructions that wait for each.
    behind: Vec<Vec<usize>>,
    /// What lives at its start.
    entered: Vec<u64>,
    /// What lives at its end.
    leaves: Vec<u64>,
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
                let words = pressure.issue(block, Order::Latency(room));
                (words <= room).then(|| most.max(words))
            });
            if let Some(words) = words {
                return Allocation::of(words + FRAME);
            }
        }
        let least =
            *least.get_or_insert_with(|| pressure.most(&blocks, |block| pressure.fewest(block)));
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

    /// The most of a figure of the blocks.
    fn most(&self, blocks: &[Block<'_>], of: impl Fn(&Block<'_>) -> u32) -> u32 {
        blocks.iter().map(of).max().unwrap_or(0)
    }

    /// The fewest words that an order of a block's instructions is found for.
    fn fewest(&self, block: &Block<'_>) -> u32 {
        let orders = [Order::Fewest, Order::Followed, Order::AsWritten];
        let words = orders.map(|order| self.issue(block, order));
        words.into_iter().min().unwrap_or(0) + block.remade.min(REMAKING)
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
        let mut found = Vec::with_capacity(blocks);
        for (block, (orders, leaves)) in orders.into_iter().zip(live_out).enumerate() {
            let mut entered = live_in[block].clone();
            for &v in &made[block] {
                entered[v / 64] |= 1 << (v % 64);
            }
            let code = &code.blocks[block];
            let mut read: Vec<usize> = orders.iter().flat_map(|o| &o.read).copied().collect();
            read.sort_unstable();
            read.dedup();
            let remade = read
                .into_iter()
                .filter(|v| self.cheap[v / 64] >> (v % 64) & 1 == 1)
                .map(|v| self.words[v])
                .sum::<u32>();
            found.push(Block {
                behind: dependences(code, &orders),
                code,
                orders,
                entered,
                leaves,
                remade,
            });
        }
        found
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

    /// Issues a block's instructions: what others wait for longest comes first, and while all wait whatever is
    /// ready; where registers get short, what frees some. Gives the most words that live at a time; where these do not
    /// fit, so many as were found not to.
    fn issue(&self, block: &Block<'_>, order: Order) -> u32 {
        let Block {
            code,
            orders,
            behind,
            entered,
            leaves,
            ..
        } = block;
        let count = code.len();
        let is = |bits: &[u64], v: usize| bits[v / 64] >> (v % 64) & 1 == 1;
        // While there are registers enough, nothing is made twice.
        let thrifty = !matches!(order, Order::Latency(_));
        let words = |v: usize| {
            if thrifty && is(&self.cheap, v) {
                0
            } else {
                self.words[v]
            }
        };
        let mut waits = vec![0usize; count];
        for others in behind {
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
        let mut uses = vec![0u32; self.words.len()];
        for order in orders {
            for &v in &order.read {
                uses[v] += 1;
            }
        }
        let mut live = entered.clone();
        let mut now_live: u32 = members(&live).map(words).sum();
        let mut most = now_live;
        let mut since = vec![0u32; count];
        // When each was made, from 1.
        let mut made_at = vec![0u32; self.words.len()];
        let mut made = 0;
        let mut open: Vec<usize> = (0..count).filter(|number| waits[*number] == 0).collect();
        let mut now = 0u32;
        // How each would change what lives, until something is issued that has a value in common with it. A few are
        // sooner looked at each time.
        let kept = order != Order::AsWritten && (MANY..=LONG).contains(&count);
        let known: Vec<Cell<Option<i64>>> = vec![Cell::new(None); if kept { count } else { 0 }];
        let of_value = if kept {
            having(orders, self.words.len())
        } else {
            Vec::new()
        };
        // How many of those that wait for each wait for others as well.
        let mut ahead: Vec<Vec<usize>> = Vec::new();
        let mut stuck = vec![0u32; count];
        let mut issued = vec![false; count];
        if order == Order::Followed && count <= LONG {
            ahead = vec![Vec::new(); count];
            for (number, others) in behind.iter().enumerate() {
                for &other in others {
                    ahead[other].push(number);
                    stuck[number] += u32::from(waits[other] > 1);
                }
            }
        }
        while !open.is_empty() {
            if matches!(order, Order::Latency(room) if most > room) {
                return most;
            }
            let growth = |number: usize, live: &[u64], uses: &[u32]| -> i64 {
                let known = known.get(number);
                if let Some(change) = known.and_then(Cell::get) {
                    return change;
                }
                let operands = &orders[number];
                let mut change = 0i64;
                for &v in &operands.made {
                    if !is(live, v) {
                        change += i64::from(words(v));
                    }
                }
                for (at, &v) in operands.read.iter().enumerate() {
                    if operands.read[..at].contains(&v) {
                        continue;
                    }
                    let mine = operands.read.iter().filter(|other| **other == v).count() as u32;
                    if uses[v] == mine && !is(leaves, v) {
                        change -= i64::from(words(v));
                    }
                }
                if let Some(known) = known {
                    known.set(Some(change));
                }
                change
            };
            let fewest = || {
                // Of several what goes on with the newest: what was begun is finished first.
                let newest = |number: usize| {
                    let read = orders[number].read.iter();
                    read.map(|v| made_at[*v]).max()
                };
                let least = open.iter().enumerate().min_by_key(|(_, number)| {
                    (
                        growth(**number, &live, &uses),
                        stuck[**number],
                        std::cmp::Reverse(newest(**number)),
                        **number,
                    )
                });
                least.map(|(at, _)| at)
            };
            let chosen = match order {
                // Very long blocks are taken as they stand.
                _ if count > LONG => (0..open.len()).min_by_key(|at| open[*at]),
                Order::AsWritten => (0..open.len()).min_by_key(|at| open[*at]),
                Order::Fewest | Order::Followed => fewest(),
                Order::Latency(room) => {
                    let fits = |number: usize| {
                        now_live + WIDEST <= room
                            || i64::from(now_live) + growth(number, &live, &uses) <= i64::from(room)
                    };
                    if open.iter().any(|number| fits(*number)) {
                        let ready = open
                            .iter()
                            .enumerate()
                            .filter(|(_, number)| since[**number] <= now && fits(**number));
                        let first = ready.max_by_key(|(_, number)| {
                            (height[**number], std::cmp::Reverse(**number))
                        });
                        first.map(|(at, _)| at)
                    } else {
                        fewest()
                    }
                }
            };
            let Some(at) = chosen else {
                let later = open.iter().map(|number| since[*number]);
                now = later.filter(|since| *since > now).min().unwrap_or(now + 1);
                continue;
            };
            let number = open.swap_remove(at);
            issued[number] = true;
            let operands = &orders[number];
            most = most.max(now_live + operands.extra);
            for v in operands.read.iter().chain(&operands.made) {
                for &other in of_value.get(*v).into_iter().flatten() {
                    known[other].set(None);
                }
            }
            for &v in &operands.read {
                uses[v] -= 1;
                if uses[v] == 0 && !is(leaves, v) && is(&live, v) {
                    live[v / 64] &= !(1 << (v % 64));
                    now_live -= words(v);
                }
            }
            for &v in &operands.made {
                made += 1;
                made_at[v] = made;
                if !is(&live, v) {
                    live[v / 64] |= 1 << (v % 64);
                    now_live += words(v);
                }
            }
            most = most.max(now_live);
            // What nobody reads is gone at once.
            for &v in &operands.made {
                if !is(leaves, v) && uses[v] == 0 {
                    live[v / 64] &= !(1 << (v % 64));
                    now_live -= words(v);
                }
            }
            now = now.max(since[number]) + code[number].count.max(1);
            for &other in &behind[number] {
                waits[other] -= 1;
                if waits[other] == 1
                    && let Some(ahead) = ahead.get(other)
                    && let Some(last) = ahead.iter().find(|number| !issued[**number])
                {
                    stuck[*last] -= 1;
                }
                since[other] = since[other].max(now + latency(&code[number]));
                if waits[other] == 0 {
                    open.push(other);
                }
            }
        }
        most
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

/// The instructions that make or read each value.
fn having(orders: &[Operands], values: usize) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); values];
    for (number, operands) in orders.iter().enumerate() {
        for v in operands.made.iter().chain(&operands.read) {
            found[*v].push(number);
        }
    }
    found
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
