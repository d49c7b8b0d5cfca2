//! What the wave executes, as far as registers go: what each instruction makes and reads, and what it needs besides.

use rustc_hash::FxHashMap;
use warplens_ir::{Builtin, Kernel};

use super::files::{File, Files};
use super::flow::Flow;
use super::library;
use super::moving::Moving;
use crate::graph::{B, End, Graph, Op, Space, Ty, V};
use crate::thresholds::amdgcn;

/// A virtual register: an index into [`Code::registers`].
pub(super) type Reg = u32;

/// A virtual register's file and size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Register {
    pub vector: bool,
    pub words: u32,
}

/// What an access reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub space: Space,
    /// The pointer without its constant.
    base: V,
    offset: i64,
    bytes: i64,
    /// A `restrict` parameter that the pointer comes from.
    own: Option<V>,
}

impl Reach {
    /// False where both cannot be the same bytes.
    pub(super) fn overlaps(&self, other: &Reach) -> bool {
        let apart = self.base == other.base
            && (self.offset + self.bytes <= other.offset
                || other.offset + other.bytes <= self.offset);
        let owned = self.own != other.own && (self.own.is_some() || other.own.is_some());
        self.space == other.space && !apart && !owned
    }
}

/// What an instruction waits behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Its operands only.
    Free,
    /// Writes of this memory.
    Load(Reach),
    /// Reads and writes of this memory.
    Store(Reach),
    /// All memory.
    Barrier,
    /// Everything in its block.
    Last,
}

/// An instruction.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub made: Vec<Reg>,
    pub read: Vec<Reg>,
    /// VGPRs and SGPRs that it needs besides.
    pub extra: [u32; 2],
    pub latency: u32,
    pub order: Order,
}

/// A block's instructions.
#[derive(Debug, Default)]
pub(super) struct BlockCode {
    pub steps: Vec<Step>,
    /// Made where the block begins.
    pub entered: Vec<Reg>,
    /// Read where it ends.
    pub given: Vec<Reg>,
}

/// A kernel's instructions.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub registers: Vec<Register>,
    pub blocks: Vec<BlockCode>,
}

impl Code {
    /// A load that brings lanes values of their own from memory.
    pub(super) fn is_vector_load(&self, step: &Step) -> bool {
        matches!(step.order, Order::Load(reach) if reach.space != Space::Shared)
            && step
                .made
                .iter()
                .any(|reg| self.registers[*reg as usize].vector)
    }
}

struct Maker<'a> {
    graph: &'a Graph,
    kernel: &'a Kernel,
    files: &'a Files,
    flow: &'a Flow,
    code: Code,
    of: FxHashMap<V, Reg>,
    /// An index times a size, with the block that made it.
    scaled: FxHashMap<(V, u32), (Reg, B)>,
    /// The parts of wide loads.
    pieces: FxHashMap<V, Vec<V>>,
    /// Values that are used as addresses only.
    addresses: Vec<bool>,
    /// Addresses that move with their loop.
    moving: Moving,
    /// Upper halves of scalar bases, copied before the loops.
    halves: FxHashMap<V, Reg>,
    at: B,
}

pub(super) fn make(graph: &Graph, kernel: &Kernel, files: &Files, flow: &Flow) -> Code {
    let mut maker = Maker {
        graph,
        kernel,
        files,
        flow,
        code: Code::default(),
        of: FxHashMap::default(),
        scaled: FxHashMap::default(),
        pieces: FxHashMap::default(),
        addresses: vec![true; graph.values.len()],
        moving: Moving::of(graph),
        halves: FxHashMap::default(),
        at: B(0),
    };
    maker.look();
    for _ in &graph.blocks {
        maker.code.blocks.push(BlockCode::default());
    }
    maker.parameters();
    for (number, block) in graph.blocks.iter().enumerate() {
        maker.at = B(number as u32);
        for &v in &block.code {
            if maker.moving.is_needed(v) {
                maker.value(v);
            }
        }
        if let End::Branch(condition, ..) = block.end {
            let mut read = Vec::new();
            maker.operand(condition, &mut read);
            maker.step(
                Vec::new(),
                read,
                [0, 0],
                amdgcn().latency.other,
                Order::Last,
            );
        }
    }
    maker.phis();
    maker.code
}

impl Maker<'_> {
    /// Finds what is used as an address only, and the parts of wide loads.
    fn look(&mut self) {
        let graph = self.graph;
        for block in &graph.blocks {
            for &v in &block.code {
                let inst = graph.inst(v);
                if let Op::Piece(_) = inst.op {
                    self.pieces.entry(inst.args[0]).or_default().push(v);
                }
                for (number, arg) in inst.args.iter().enumerate() {
                    let addresses = match inst.op {
                        Op::Load(..) | Op::Store(..) | Op::Atomic(..) => number == 0,
                        Op::Address(..) | Op::Offset(_) => true,
                        _ => false,
                    };
                    self.addresses[arg.0 as usize] &= addresses;
                }
            }
            if let End::Branch(condition, ..) = block.end {
                self.addresses[condition.0 as usize] = false;
            }
        }
    }

    /// Kernel arguments are loaded where all that use them come behind.
    fn parameters(&mut self) {
        let graph = self.graph;
        let mut used: FxHashMap<V, B> = FxHashMap::default();
        let mut order = Vec::new();
        let mut note = |v: V, at: B| {
            let is = matches!(
                graph.op(v),
                Op::Param(..) | Op::Builtin(Builtin::BlockDim(_) | Builtin::GridDim(_))
            );
            if is && self.flow.is_reached(at) {
                used.entry(v)
                    .and_modify(|found| *found = self.flow.common(*found, at))
                    .or_insert_with(|| {
                        order.push(v);
                        at
                    });
            }
        };
        for (number, block) in graph.blocks.iter().enumerate() {
            for v in &block.code {
                for arg in &graph.inst(*v).args {
                    note(*arg, B(number as u32));
                }
            }
            if let End::Branch(condition, ..) = block.end {
                note(condition, B(number as u32));
            }
        }
        for v in order {
            let mut at = used[&v];
            while let Some(around) = graph.block(at).within {
                at = graph.loops[around as usize].before;
            }
            self.at = at;
            let made = vec![self.register(v)];
            self.step(
                made,
                Vec::new(),
                [0, 0],
                amdgcn().latency.scalar_load,
                Order::Free,
            );
        }
    }

    fn fresh(&mut self, vector: bool, words: u32) -> Reg {
        self.code.registers.push(Register { vector, words });
        self.code.registers.len() as u32 - 1
    }

    fn register(&mut self, v: V) -> Reg {
        if let Some(&found) = self.of.get(&v) {
            return found;
        }
        let vector = self.files.is_vector(v);
        let (vector, words) = match self.graph.ty(v) {
            // A mask of the wave's 64 lanes.
            Ty::Pred if vector => (false, 2),
            Ty::Pred => (false, 0),
            ty => (vector, ty.words()),
        };
        let made = self.fresh(vector, words);
        self.of.insert(v, made);
        made
    }

    fn step(
        &mut self,
        made: Vec<Reg>,
        read: Vec<Reg>,
        extra: [u32; 2],
        latency: u32,
        order: Order,
    ) {
        self.code.blocks[self.at.0 as usize].steps.push(Step {
            made,
            read,
            extra,
            latency,
            order,
        });
    }

    /// True for what is its operand under another name.
    fn is_name(&self, v: V) -> bool {
        let inst = self.graph.inst(v);
        match inst.op {
            Op::Truncate | Op::Bits | Op::Part(_) => true,
            Op::Join => inst.ty.words() == 2 && inst.args.len() == 2,
            Op::Neg | Op::Abs => inst.ty.is_float(),
            // Sign bits are made with the address.
            Op::Extend(_) => self.addresses[v.0 as usize],
            Op::Offset(bytes) => self.addresses[v.0 as usize] && self.is_near(v, bytes),
            Op::Address(..) => self.is_plain_lds(v),
            _ => false,
        }
    }

    fn is_near(&self, v: V, bytes: i64) -> bool {
        match self.graph.ty(v) {
            Ty::I64 => is_near_global(bytes),
            _ => (0..=amdgcn().memory.lds_offset).contains(&bytes),
        }
    }

    /// An element of an array that lies at a constant address of the LDS: the address is the index's, scaled.
    fn is_plain_lds(&self, v: V) -> bool {
        let inst = self.graph.inst(v);
        inst.ty == Ty::I32
            && matches!(self.graph.op(inst.args[0]), Op::Base(_))
            && self.addresses[v.0 as usize]
    }

    /// The registers of an operand.
    fn operand(&mut self, v: V, out: &mut Vec<Reg>) {
        let inst = self.graph.inst(v);
        match inst.op {
            Op::Int(_) | Op::Float(_) | Op::Undefined | Op::Base(_) => {}
            Op::Builtin(Builtin::WarpSize) => {}
            Op::Address(size, _) if self.is_plain_lds(v) => {
                let reg = self.scale(inst.args[1], size);
                out.extend(reg);
            }
            Op::Piece(_) if !self.of.contains_key(&v) => {
                for arg in &inst.args {
                    self.operand(*arg, out);
                }
            }
            _ if self.is_name(v) => self.operand(inst.args[0], out),
            _ => {
                let reg = self.register(v);
                if !out.contains(&reg) {
                    out.push(reg);
                }
            }
        }
    }

    fn operands(&mut self, v: V) -> Vec<Reg> {
        let mut read = Vec::new();
        for &arg in &self.graph.inst(v).args {
            self.operand(arg, &mut read);
        }
        read
    }

    /// An index times the size of what it counts; none where it is a constant.
    fn scale(&mut self, index: V, size: u32) -> Option<Reg> {
        let inst = self.graph.inst(index);
        if inst.op.is_operand() && !matches!(inst.op, Op::Param(..) | Op::Builtin(_)) {
            return None;
        }
        let wide = self.graph.ty(index) == Ty::I64;
        if let Some(&(reg, block)) = self.scaled.get(&(index, size))
            && self.flow.is_over(block, self.at)
        {
            return Some(reg);
        }
        let vector = self.files.is_vector(index);
        if size == 1 && !wide {
            let mut read = Vec::new();
            self.operand(index, &mut read);
            return read.first().copied();
        }
        let mut read = Vec::new();
        self.operand(index, &mut read);
        let made = self.fresh(vector, if wide { 2 } else { 1 });
        self.step(
            vec![made],
            read,
            [0, 0],
            amdgcn().latency.other,
            Order::Free,
        );
        self.scaled.insert((index, size), (made, self.at));
        Some(made)
    }

    /// VGPRs for what an instruction of the vector unit reads besides the one scalar that it can.
    fn copies(&self, read: &[Reg]) -> u32 {
        let scalars = read
            .iter()
            .map(|reg| self.code.registers[*reg as usize])
            .filter(|register| !register.vector)
            .map(|register| register.words)
            .skip(1)
            .sum::<u32>();
        scalars.min(2)
    }

    fn value(&mut self, v: V) {
        let inst = self.graph.inst(v);
        let vector = self.files.is_vector(v);
        match inst.op {
            Op::Builtin(Builtin::ThreadIdx(_) | Builtin::GlobalIdx(_) | Builtin::BlockIdx(_)) => {
                let reg = self.register(v);
                self.code.blocks[0].entered.push(reg);
            }
            Op::Int(_) | Op::Float(_) | Op::Undefined | Op::Param(..) | Op::Base(_) => {}
            Op::Builtin(_) | Op::Phi => {}
            Op::Piece(_) => {}
            _ if self.is_name(v) => {}
            Op::Load(space, bytes, offset, _) => self.load(v, space, bytes, offset),
            Op::Store(space, bytes, offset) => {
                let reach = self.reach(inst.args[0], space, offset, bytes);
                let (mut read, mut extra) = self.pointer(inst.args[0], space, offset);
                for &arg in &inst.args[1..] {
                    let from = read.len();
                    self.operand(arg, &mut read);
                    // What lies in SGPRs or in the instruction must be in VGPRs to be stored.
                    if self.files.of_value(self.graph, arg) != File::Vector
                        && !read[from..]
                            .iter()
                            .any(|reg| self.code.registers[*reg as usize].vector)
                    {
                        extra += self.graph.ty(arg).words().max(1);
                    }
                }
                self.step(
                    Vec::new(),
                    read,
                    [extra, 0],
                    amdgcn().latency.other,
                    Order::Store(reach),
                );
            }
            Op::Atomic(space, _) => {
                let reach = self.reach(inst.args[0], space, 0, 8);
                let (mut read, mut extra) = self.pointer(inst.args[0], space, 0);
                for &arg in &inst.args[1..] {
                    self.operand(arg, &mut read);
                    if self.files.of_value(self.graph, arg) != File::Vector {
                        extra += self.graph.ty(arg).words().max(1);
                    }
                }
                let made = self.made(v);
                let wait = if space == Space::Shared {
                    amdgcn().latency.lds
                } else {
                    amdgcn().latency.global
                };
                self.step(made, read, [extra, 0], wait, Order::Store(reach));
            }
            Op::Address(size, _) => self.address(v, size),
            Op::Barrier | Op::Fence => {
                self.step(
                    Vec::new(),
                    Vec::new(),
                    [0, 0],
                    amdgcn().latency.other,
                    Order::Barrier,
                );
            }
            Op::Div(_) | Op::Rem(_) | Op::Math(_) => {
                let read = self.operands(v);
                let extra = library::words(self.graph, v, vector);
                let made = self.made(v);
                self.step(made, read, extra, amdgcn().latency.library, Order::Free);
            }
            _ => {
                let read = self.operands(v);
                let copies = if vector { self.copies(&read) } else { 0 };
                let made = self.made(v);
                let wait = if inst.ty == Ty::F64 {
                    amdgcn().latency.double
                } else {
                    amdgcn().latency.other
                };
                let order = match inst.op {
                    Op::System | Op::Fixed(..) => Order::Barrier,
                    _ => Order::Free,
                };
                self.step(made, read, [copies, 0], wait, order);
            }
        }
    }

    fn made(&mut self, v: V) -> Vec<Reg> {
        if self.graph.ty(v) == Ty::None {
            return Vec::new();
        }
        vec![self.register(v)]
    }

    fn load(&mut self, v: V, space: Space, bytes: u8, offset: i64) {
        let pointer = self.graph.inst(v).args[0];
        let scalar = self.files.is_scalar_load(self.graph, v);
        let (read, extra) = if scalar {
            let mut read = Vec::new();
            self.operand(pointer, &mut read);
            (read, 0)
        } else {
            self.pointer(pointer, space, offset)
        };
        let made = match self.pieces.get(&v) {
            Some(pieces) => {
                let pieces = pieces.clone();
                pieces.iter().map(|piece| self.piece(*piece, v)).collect()
            }
            None if bytes > 8 => {
                let made = self.fresh(!scalar, u32::from(bytes) / 4);
                self.of.insert(v, made);
                vec![made]
            }
            None => vec![self.register(v)],
        };
        let wait = match space {
            _ if scalar => amdgcn().latency.scalar_load,
            Space::Shared => amdgcn().latency.lds,
            _ => amdgcn().latency.global,
        };
        let reach = self.reach(pointer, space, offset, bytes);
        self.step(made, read, [extra, 0], wait, Order::Load(reach));
    }

    fn reach(&self, pointer: V, space: Space, offset: i64, bytes: u8) -> Reach {
        let mut root = pointer;
        while let Op::Offset(_) | Op::Address(..) = self.graph.op(root) {
            root = self.graph.inst(root).args[0];
        }
        let own = match self.graph.op(root) {
            Op::Param(id, _) if self.kernel.var(id).restrict => Some(root),
            Op::Base(_) => Some(root),
            _ => None,
        };
        Reach {
            space,
            base: pointer,
            offset,
            bytes: i64::from(bytes),
            own,
        }
    }

    fn piece(&mut self, piece: V, of: V) -> Reg {
        let vector = self.files.is_vector(of);
        let words = self.graph.ty(piece).words();
        *self.of.entry(piece).or_insert_with(|| {
            self.code.registers.push(Register { vector, words });
            self.code.registers.len() as u32 - 1
        })
    }

    /// What an access reads for its address, and the VGPRs that it needs for it besides.
    fn pointer(&mut self, pointer: V, space: Space, offset: i64) -> (Vec<Reg>, u32) {
        let mut read = Vec::new();
        self.operand(pointer, &mut read);
        let vector = read
            .iter()
            .any(|reg| self.code.registers[*reg as usize].vector);
        let far = match space {
            Space::Global | Space::Constant => !is_near_global(offset),
            _ => false,
        };
        // A scalar base goes with an offset in a VGPR, which is zero here.
        let extra = match (vector, far) {
            (true, true) => 2,
            (true, false) => 0,
            (false, _) => 1,
        };
        (read, extra)
    }

    fn address(&mut self, v: V, size: u32) {
        let inst = self.graph.inst(v);
        if let Some(around) = self.moving.within(v) {
            self.moved(v, around);
            return;
        }
        let vector = self.files.is_vector(v);
        let mut read = Vec::new();
        let index = self.scale(inst.args[1], size);
        read.extend(index);
        let base = inst.args[0];
        self.operand(base, &mut read);
        // The upper half of a scalar base comes into a VGPR to be added.
        if vector && inst.ty == Ty::I64 && !self.files.is_vector(base) {
            let half = self.half(base);
            read.push(half);
        }
        let made = self.made(v);
        self.step(made, read, [0, 0], amdgcn().latency.other, Order::Free);
    }

    /// The upper half of a scalar base in a VGPR: before the loops, or where it is used.
    fn half(&mut self, base: V) -> Reg {
        if let Some(&half) = self.halves.get(&base) {
            return half;
        }
        let at = self.at;
        let mut outside = at;
        while let Some(around) = self.graph.block(outside).within {
            let around = &self.graph.loops[around as usize];
            if self.graph.is_in(base, around) {
                break;
            }
            outside = around.before;
        }
        self.at = outside;
        let mut read = Vec::new();
        self.operand(base, &mut read);
        let half = self.fresh(true, 1);
        self.step(
            vec![half],
            read,
            [0, 0],
            amdgcn().latency.other,
            Order::Free,
        );
        self.at = at;
        if outside != at {
            self.halves.insert(base, half);
        }
        half
    }

    /// An address that a loop moves on: it is made before, and lives to the loop's end.
    fn moved(&mut self, v: V, around: u32) {
        let at = self.at;
        let around = &self.graph.loops[around as usize];
        self.at = around.before;
        let mut read = Vec::new();
        for leaf in self.moving.leaves(self.graph, v) {
            self.operand(leaf, &mut read);
        }
        let made = self.made(v);
        self.step(
            made.clone(),
            read,
            [0, 0],
            amdgcn().latency.other,
            Order::Free,
        );
        for &block in &self.graph.block(around.header).from {
            if block != around.before {
                self.code.blocks[block.0 as usize]
                    .given
                    .extend(made.iter().copied());
            }
        }
        self.at = at;
    }

    fn phis(&mut self) {
        let graph = self.graph;
        for (number, block) in graph.blocks.iter().enumerate() {
            for &v in block.code.iter().filter(|v| graph.op(**v) == Op::Phi) {
                if graph.ty(v) == Ty::None || !self.moving.is_needed(v) {
                    continue;
                }
                let reg = self.register(v);
                self.code.blocks[number].entered.push(reg);
                for (arg, from) in graph.inst(v).args.iter().zip(&block.from) {
                    self.at = *from;
                    let mut read = Vec::new();
                    self.operand(*arg, &mut read);
                    self.code.blocks[from.0 as usize].given.extend(read);
                }
            }
        }
    }
}

/// True for a constant that an access of device memory adds to its address by itself.
fn is_near_global(bytes: i64) -> bool {
    let most = amdgcn().memory.global_offset;
    (-most - 1..=most).contains(&bytes)
}
