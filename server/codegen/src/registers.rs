//! Registers: how much lives at the same time, in the order in which the assembler issues the instructions.

mod issue;

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::graph::{B, Graph, Op, V};
use crate::select::{Code, Instruction};
use crate::thresholds::nvcc;
use crate::{Class, Options, WARP, WARPS_REGISTERS};

use issue::Order;

/// Members that a word of a set holds.
const CHUNK: usize = u64::BITS as usize;

/// No number.
const NONE: u32 = u32::MAX;

/// What an instruction makes and reads, as numbers of values that lie in registers, and how often it reads each.
struct Operands {
    made: SmallVec<[u32; 2]>,
    read: SmallVec<[(u32, u32); 4]>,
    extra: u32,
}

/// Lists of numbers, one behind the other.
#[derive(Default)]
struct Lists {
    /// Where each ends.
    ends: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    fn of(&self, number: usize) -> &[u32] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start as usize..self.ends[number] as usize]
    }

    fn push(&mut self, list: &[u32]) {
        self.all.extend(list);
        self.ends.push(self.all.len() as u32);
    }

    /// For each number below `count` the second numbers of its pairs, in their order.
    fn of_pairs(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let mut ends = vec![0u32; count];
        for (number, _) in pairs.clone() {
            ends[number as usize] += 1;
        }
        let mut all = 0;
        for end in &mut ends {
            // Where it starts, until it is filled.
            all += std::mem::replace(end, all);
        }
        let mut lists = Lists {
            ends,
            all: vec![0; all as usize],
        };
        for (number, beside) in pairs {
            let end = &mut lists.ends[number as usize];
            lists.all[*end as usize] = beside;
            *end += 1;
        }
        lists
    }
}

/// A part of a block that is put in order by itself.
struct Piece {
    block: usize,
    code: Range<usize>,
    /// The block's first and last.
    first: bool,
    last: bool,
}

/// A block, or a piece of one, to be scheduled. Its values are numbered anew: those that it makes or reads.
struct Block<'a> {
    code: &'a [Instruction],
    orders: Vec<Operands>,
    /// The instructions that wait for each, and those that each waits for, with their number.
    behind: Lists,
    ahead: Lists,
    waits: Vec<u32>,
    /// Their order by the cycles from when each issues to the end of what waits for it, the most first: the rank of each,
    /// and which has each rank.
    rank: Vec<u32>,
    by_rank: Vec<u32>,
    /// Registers of each value, and whether it is sooner made anew than kept for long.
    words: Vec<u32>,
    cheap: Vec<bool>,
    /// Uses of each value, and the most of one instruction.
    uses: Vec<u32>,
    together: Vec<u32>,
    /// The instructions that make and read each value.
    makers: Lists,
    readers: Lists,
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
    pub spilled: Vec<Spilled>,
}

/// Words that a block writes to memory and reads again, each time that it is executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spilled {
    pub block: usize,
    pub words: u32,
}

struct Pressure<'a> {
    graph: &'a Graph,
    code: &'a Code,
    /// The number of each value that lies in registers.
    number: Vec<u32>,
    /// Which it is, and its registers.
    values: Vec<V>,
    words: Vec<u32>,
    /// Values that are sooner made anew than kept for long.
    cheap: Vec<u64>,
}

/// The registers of a kernel, of which a thread gets at least `fewest` where it needs that many.
pub(crate) fn allocate(graph: &Graph, code: &Code, options: Options, fewest: u32) -> Allocation {
    let frame = nvcc().registers.frame;
    let most = options.max_registers.max(fewest);
    let mut pressure = Pressure {
        graph,
        code,
        number: vec![NONE; graph.values.len()],
        values: Vec::new(),
        words: Vec::new(),
        cheap: Vec::new(),
    };
    let pieces = pieces(code);
    let blocks = pressure.blocks(&pieces);
    let mut least = None;
    // Fewer registers let more warps reside: the smallest step is taken at which nothing spills. Where the occupancy is
    // given, all registers that it leaves are used.
    let fewer = steps(options.warps).filter(|step| !options.occupancy_given && *step < most);
    for step in fewer.chain([most]) {
        let room = step.saturating_sub(frame);
        if least.is_none_or(|least| least <= room) {
            let words = blocks.iter().try_fold(0, |most, block| {
                let words = block.issue(Order::Latency(room));
                (words <= room).then(|| most.max(words))
            });
            if let Some(words) = words {
                return Allocation::of(words + frame);
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
        spilled: spilled(&pieces, &blocks, most.saturating_sub(frame)),
    }
}

/// What finds no room: what one piece of a block leaves for the next, and what lives within one besides. A word that waits
/// for more than one piece is taken for several.
fn spilled(pieces: &[Piece], blocks: &[Block], room: u32) -> Vec<Spilled> {
    let mut found: Vec<Spilled> = Vec::new();
    let mut handed_on = 0;
    for (piece, block) in pieces.iter().zip(blocks) {
        let handed = if piece.first { 0 } else { handed_on };
        handed_on = if piece.last {
            0
        } else {
            block.left().saturating_sub(room)
        };
        let within = block.fewest().saturating_sub(room);
        let words = handed_on + within.saturating_sub(handed.max(handed_on));
        match found.last_mut() {
            Some(last) if last.block == piece.block => last.words += words,
            _ => found.push(Spilled {
                block: piece.block,
                words,
            }),
        }
    }
    found.retain(|spilled| spilled.words > 0);
    found
}

/// The blocks, in pieces that are put in order by themselves; at least one of each.
fn pieces(code: &Code) -> Vec<Piece> {
    let window = nvcc().registers.window;
    let mut found = Vec::with_capacity(code.blocks.len());
    for (block, instructions) in code.blocks.iter().enumerate() {
        let (mut start, mut count) = (0, 0);
        for (at, instruction) in instructions.iter().enumerate() {
            if count >= window {
                found.push(Piece {
                    block,
                    code: start..at,
                    first: start == 0,
                    last: false,
                });
                (start, count) = (at, 0);
            }
            count += instruction.count;
            if instruction.class == Class::Bra {
                // A function's slow path: what the machine has is blocks of its own from here on.
                count = 0;
            }
        }
        found.push(Piece {
            block,
            code: start..instructions.len(),
            first: start == 0,
            last: true,
        });
    }
    found
}

/// Registers of a thread with which an SM holds another number of warps, from the most warps on.
fn steps(warps: u32) -> impl Iterator<Item = u32> {
    let unit = nvcc().registers.unit;
    let mut steps: Vec<u32> = (2..=warps)
        .rev()
        .map(move |warps| WARPS_REGISTERS / WARP / warps / unit * unit)
        .collect();
    steps.dedup();
    steps.into_iter()
}

impl Allocation {
    /// Of all blocks.
    pub fn words_spilled(&self) -> u64 {
        self.spilled
            .iter()
            .map(|spilled| u64::from(spilled.words))
            .sum()
    }

    /// Of the block that spills most.
    pub fn most_spilled(&self) -> u64 {
        let words = self.spilled.iter().map(|spilled| u64::from(spilled.words));
        words.max().unwrap_or(0)
    }

    fn of(registers: u32) -> Allocation {
        Allocation {
            registers,
            spilled: Vec::new(),
        }
    }
}

impl<'a> Pressure<'a> {
    fn number(&mut self, v: V) -> u32 {
        let number = &mut self.number[v.0 as usize];
        if *number == NONE {
            *number = self.values.len() as u32;
            self.values.push(v);
            self.words.push(self.graph.ty(v).words());
        }
        *number
    }

    fn operands(&mut self, instruction: &Instruction) -> Operands {
        let mut read: SmallVec<[(u32, u32); 4]> = SmallVec::new();
        let made = instruction.values.iter().map(|v| self.number(*v)).collect();
        for &v in &instruction.uses {
            let number = self.number(v);
            match read.iter_mut().find(|(other, _)| *other == number) {
                Some((_, times)) => *times += 1,
                None => read.push((number, 1)),
            }
        }
        Operands {
            made,
            read,
            extra: instruction.extra,
        }
    }

    /// The pieces, to be scheduled.
    fn blocks(&mut self, pieces: &[Piece]) -> Vec<Block<'a>> {
        let (graph, code) = (self.graph, self.code);
        let mut orders: Vec<Vec<Operands>> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let each = code.blocks[piece.block][piece.code.clone()].iter();
            let order = each.map(|instruction| self.operands(instruction));
            orders.push(order.collect());
        }
        let numbers = |wanted: fn(&Piece) -> bool| -> Vec<usize> {
            let numbered = pieces.iter().enumerate();
            let wanted = numbered.filter(|(_, piece)| wanted(piece));
            wanted.map(|(number, _)| number).collect()
        };
        let (first, last) = (numbers(|piece| piece.first), numbers(|piece| piece.last));
        // Phis: made at the block's start, read at the end of those before it.
        let mut made: Vec<Vec<u32>> = vec![Vec::new(); pieces.len()];
        let mut given: Vec<Vec<u32>> = vec![Vec::new(); pieces.len()];
        for (block, own) in graph.blocks.iter().enumerate() {
            for &v in own.code.iter().filter(|v| graph.op(**v) == Op::Phi) {
                if graph.ty(v).words() == 0 {
                    continue;
                }
                made[first[block]].push(self.number(v));
                for (arg, from) in graph.inst(v).args.iter().zip(&own.from) {
                    let mut roots = Vec::new();
                    operands(graph, code, *arg, &mut roots);
                    for root in roots {
                        let number = self.number(root);
                        given[last[from.0 as usize]].push(number);
                    }
                }
            }
        }
        let behind = |number: usize| -> SmallVec<[usize; 2]> {
            let piece = &pieces[number];
            if !piece.last {
                return smallvec![number + 1];
            }
            let to = graph.to(B(piece.block as u32)).into_iter();
            to.map(|to| first[to.0 as usize]).collect()
        };
        let crossing = Crossing::of(&orders, &made, &given, self.words.len());
        let (live_in, live_out) = crossing.live(&orders, &made, &given, behind);
        let recompute = nvcc().registers.recompute;
        self.cheap = vec![0u64; self.words.len().div_ceil(CHUNK)];
        for (number, value) in self.values.iter().enumerate() {
            if cost(graph, *value, recompute).is_some() {
                put(&mut self.cheap, number as u32);
            }
        }
        let mut local = vec![NONE; self.words.len()];
        let mut found = Vec::with_capacity(pieces.len());
        for (number, (orders, leaves)) in orders.into_iter().zip(live_out).enumerate() {
            let mut entered = live_in[number].clone();
            for &v in &made[number] {
                crossing.put(&mut entered, v);
            }
            let piece = &pieces[number];
            let code = &code.blocks[piece.block][piece.code.clone()];
            let edges = Edges {
                crossing: &crossing,
                entered: &entered,
                leaves: &leaves,
            };
            found.push(self.block(code, orders, &edges, &mut local));
        }
        found
    }

    /// A block's own numbers; `local` has room for all values and is left as it was.
    fn block(
        &self,
        code: &'a [Instruction],
        mut orders: Vec<Operands>,
        edges: &Edges<'_>,
        local: &mut [u32],
    ) -> Block<'a> {
        let mut values: Vec<u32> = Vec::new();
        for v in orders.iter_mut().flat_map(|o| {
            let read = o.read.iter_mut().map(|(v, _)| v);
            o.made.iter_mut().chain(read)
        }) {
            let number = &mut local[*v as usize];
            if *number == NONE {
                *number = values.len() as u32;
                values.push(*v);
            }
            *v = *number;
        }
        let entered = members(edges.entered).map(|at| edges.crossing.values[at]);
        let untouched = entered.filter(|v| local[*v as usize] == NONE);
        let through = untouched.fold((0, 0), |(all, kept), v| {
            let words = self.words[v as usize];
            let cheap = is(&self.cheap, v);
            (all + words, kept + if cheap { 0 } else { words })
        });
        for &v in &values {
            local[v as usize] = NONE;
        }
        let count = code.len();
        let ahead = dependences(code, &orders, values.len());
        let each = (0..count as u32).flat_map(|number| {
            let others = ahead.of(number as usize).iter();
            others.map(move |other| (*other, number))
        });
        let behind = Lists::of_pairs(count, each);
        let waits = (0..count).map(|number| ahead.of(number).len() as u32);
        let mut height = vec![0u32; count];
        for number in (0..count).rev() {
            let others = behind.of(number).iter();
            let rest = others.map(|other| height[*other as usize]).max();
            height[number] = rest.unwrap_or(0) + latency(&code[number]);
        }
        let mut by_rank: Vec<u32> = (0..count as u32).collect();
        by_rank.sort_by_key(|number| Reverse(height[*number as usize]));
        let mut rank = vec![0u32; count];
        for (at, number) in by_rank.iter().enumerate() {
            rank[*number as usize] = at as u32;
        }
        let mut uses = vec![0u32; values.len()];
        let mut together = vec![0u32; values.len()];
        for &(v, times) in orders.iter().flat_map(|operands| &operands.read) {
            uses[v as usize] += times;
            together[v as usize] = together[v as usize].max(times);
        }
        let numbered = (0u32..).zip(&orders);
        let made = numbered.clone().flat_map(|(number, operands)| {
            let made = operands.made.iter();
            made.map(move |v| (*v, number))
        });
        let makers = Lists::of_pairs(values.len(), made);
        let read = numbered.flat_map(|(number, operands)| {
            let read = operands.read.iter();
            read.map(move |(v, _)| (*v, number))
        });
        let readers = Lists::of_pairs(values.len(), read);
        let words: Vec<u32> = values.iter().map(|v| self.words[*v as usize]).collect();
        let cheap: Vec<bool> = values.iter().map(|v| is(&self.cheap, *v)).collect();
        let remade = (0..values.len()).filter(|v| uses[*v] > 0 && cheap[*v]);
        Block {
            remade: remade.map(|v| words[v]).sum(),
            entered: edges.among(edges.entered, &values),
            leaves: edges.among(edges.leaves, &values),
            waits: waits.collect(),
            code,
            orders,
            behind,
            ahead,
            rank,
            by_rank,
            words,
            cheap,
            uses,
            together,
            makers,
            readers,
            through,
        }
    }
}

/// Values that may live where one piece ends and another begins, by numbers of their own: most live within one, and a set for
/// each piece of all values would be as large as the square of the kernel.
struct Crossing {
    /// The number of each value, and the value of each number.
    number: Vec<u32>,
    values: Vec<u32>,
}

/// What lives at a piece's start and end.
struct Edges<'a> {
    crossing: &'a Crossing,
    entered: &'a [u64],
    leaves: &'a [u64],
}

impl Edges<'_> {
    fn among(&self, set: &[u64], values: &[u32]) -> Vec<bool> {
        let among = values.iter().map(|v| self.crossing.is(set, *v));
        among.collect()
    }
}

impl Crossing {
    /// Those that a piece reads and does not make before, those given to phis, and these.
    fn of(orders: &[Vec<Operands>], made: &[Vec<u32>], given: &[Vec<u32>], count: usize) -> Self {
        let mut crossing = Crossing {
            number: vec![NONE; count],
            values: Vec::new(),
        };
        // The last piece that made each value.
        let mut maker = vec![NONE; count];
        for (piece, orders) in orders.iter().enumerate() {
            let piece_number = piece as u32;
            for &v in made[piece].iter().chain(&given[piece]) {
                crossing.add(v);
            }
            for &v in &made[piece] {
                maker[v as usize] = piece_number;
            }
            for order in orders {
                for &(v, _) in &order.read {
                    if maker[v as usize] != piece_number {
                        crossing.add(v);
                    }
                }
                for &v in &order.made {
                    maker[v as usize] = piece_number;
                }
            }
        }
        crossing
    }

    fn add(&mut self, v: u32) {
        let number = &mut self.number[v as usize];
        if *number == NONE {
            *number = self.values.len() as u32;
            self.values.push(v);
        }
    }

    fn put(&self, set: &mut [u64], v: u32) {
        let number = self.number[v as usize];
        if number != NONE {
            put(set, number);
        }
    }

    fn is(&self, set: &[u64], v: u32) -> bool {
        let number = self.number[v as usize];
        number != NONE && is(set, number)
    }

    /// What lives at each piece's start and end; `behind` says which come behind one.
    fn live(
        &self,
        orders: &[Vec<Operands>],
        made: &[Vec<u32>],
        given: &[Vec<u32>],
        behind: impl Fn(usize) -> SmallVec<[usize; 2]>,
    ) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
        let blocks = orders.len();
        let chunks = self.values.len().div_ceil(CHUNK);
        // What each block reads before it makes it, and what it makes.
        let mut reads: Vec<Vec<u64>> = vec![vec![0; chunks]; blocks];
        let mut makes = reads.clone();
        for (block, orders) in orders.iter().enumerate() {
            let (reads, makes) = (&mut reads[block], &mut makes[block]);
            made[block].iter().for_each(|v| self.put(makes, *v));
            for order in orders {
                for &(v, _) in order.read.iter().filter(|(v, _)| !self.is(makes, *v)) {
                    self.put(reads, v);
                }
                order.made.iter().for_each(|v| self.put(makes, *v));
            }
        }
        let mut live_in: Vec<Vec<u64>> = vec![vec![0; chunks]; blocks];
        let mut live_out = live_in.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..blocks).rev() {
                let live = &mut live_out[block];
                live.fill(0);
                for to in behind(block) {
                    for (mine, theirs) in live.iter_mut().zip(&live_in[to]) {
                        *mine |= theirs;
                    }
                }
                given[block].iter().for_each(|v| self.put(live, *v));
                let parts = live.iter().zip(&reads[block]).zip(&makes[block]);
                for (((live, reads), makes), entered) in parts.zip(&mut live_in[block]) {
                    let now = reads | live & !makes;
                    changed |= *entered != now;
                    *entered = now;
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
        words.into_iter().min().unwrap_or(0) + self.remade.min(nvcc().registers.recompute_words)
    }

    /// Words that live at its end and are not sooner made anew.
    fn left(&self) -> u32 {
        let left = (0..self.words.len()).filter(|v| self.leaves[*v] && !self.cheap[*v]);
        self.through.1 + left.map(|v| self.words[v]).sum::<u32>()
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
        Op::Base(_) | Op::Truncate | Op::Extend(_) | Op::Bits | Op::Part(_) => 0,
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

fn is(set: &[u64], v: u32) -> bool {
    set[v as usize / CHUNK] >> (v as usize % CHUNK) & 1 == 1
}

fn put(set: &mut [u64], v: u32) {
    set[v as usize / CHUNK] |= 1 << (v as usize % CHUNK);
}

/// The numbers in a set.
fn members(set: &[u64]) -> impl Iterator<Item = usize> {
    set.iter().enumerate().flat_map(|(chunk, bits)| {
        let mut bits = *bits;
        std::iter::from_fn(move || {
            let at = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(chunk * CHUNK + at)
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

/// Which instructions must go before which: values, the order of memory, barriers.
fn dependences(code: &[Instruction], orders: &[Operands], values: usize) -> Lists {
    let mut ahead = Lists::default();
    let mut made = vec![NONE; values];
    let mut barrier: Option<u32> = None;
    // The last store, and the loads since, by class of memory.
    let mut stores: FxHashMap<Class, u32> = FxHashMap::default();
    let mut loads: FxHashMap<Class, Vec<u32>> = FxHashMap::default();
    // The last branch: it waits for all before it, so that the next waits for it and what is between.
    let mut branch = 0;
    let mut on: Vec<u32> = Vec::new();
    for (number, (instruction, order)) in code.iter().zip(orders).enumerate() {
        let number = number as u32;
        on.clear();
        let makers = order.read.iter().map(|(v, _)| made[*v as usize]);
        on.extend(makers.filter(|maker| *maker != NONE));
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
            // What ends the block is at its end.
            Class::Bra => on.extend(std::mem::replace(&mut branch, number)..number),
            _ => {}
        }
        on.sort_unstable();
        on.dedup();
        ahead.push(&on);
        for &v in &order.made {
            made[v as usize] = number;
        }
    }
    ahead
}

/// Cycles until a value is there, as the scheduler sees it.
fn latency(instruction: &Instruction) -> u32 {
    let latency = &nvcc().latency;
    match instruction.class {
        Class::Ldg | Class::Ldl | Class::Atom | Class::Tex => latency.memory,
        Class::Lds | Class::Ldc | Class::Shfl => latency.shared,
        Class::Mufu | Class::I2f | Class::F2i | Class::F2f => latency.special,
        Class::Dfma | Class::Dadd | Class::Dmul => latency.double,
        _ => latency.other,
    }
}
