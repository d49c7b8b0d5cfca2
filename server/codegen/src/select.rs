//! Machine instructions for values.
//!
//! One instruction often does what several values say: a product and a sum, a shift and a sum, three sums; signs and
//! absolute values of floating point cost nothing; constants are part of the instruction that uses them.

mod bank;
mod wide;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use warplens_ir::{Builtin, Kernel, Site, Storage, VarId};

use crate::graph::{B, End, Graph, Op, Space, Ty, Update, V};
use crate::recipes::{self, Recipe};
use crate::target::Machine;
use crate::{Class, Options};
use bank::Bank;

/// A machine instruction, or several alike.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub class: Class,
    pub count: u32,
    /// Of these the ones on a path that hardly any execution takes.
    pub rare: u32,
    /// How many of the usual size they are as work.
    pub work: f32,
    pub site: Site,
    /// What it makes.
    pub values: SmallVec<[V; 2]>,
    /// What it reads from registers.
    pub uses: SmallVec<[V; 4]>,
    /// Registers that it needs besides.
    pub extra: u32,
    /// Of a store: how many of the source it does.
    pub stores: u32,
}

impl Instruction {
    /// One that makes and reads no register.
    pub(crate) fn new(class: Class, count: u32, site: Site) -> Instruction {
        Instruction {
            class,
            count,
            rare: 0,
            work: count as f32,
            site,
            values: SmallVec::new(),
            uses: SmallVec::new(),
            extra: 0,
            stores: 1,
        }
    }
}

/// The code of each block.
#[derive(Debug)]
pub(crate) struct Code {
    pub blocks: Vec<Vec<Instruction>>,
    /// What is written and executed once: constants.
    pub once: Vec<Instruction>,
    /// What calls of a function share: it is there once. Of most it is a slow path, where hardly any call goes.
    pub aside: Vec<Instruction>,
    /// Values that other instructions do on the way.
    pub fused: Vec<bool>,
    /// Moves of constants for a phi: by block and place there, the phi. They are executed on the ways to it.
    pub moves: FxHashMap<(usize, usize), V>,
    /// Calls of what `aside` holds that are always made, by block and place there.
    pub calls: FxHashMap<(usize, usize), &'static Recipe>,
}

impl Code {
    /// Every instruction with how many copies of it the program has.
    pub fn all<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = (&'a Instruction, u32)> {
        let blocks = self.blocks.iter().zip(&graph.blocks);
        blocks
            .flat_map(|(code, block)| code.iter().map(|instruction| (instruction, block.copies)))
            .chain(self.once.iter().chain(&self.aside).map(|i| (i, 1)))
    }
}

struct Selector<'a> {
    graph: &'a Graph,
    kernel: &'a Kernel,
    options: Options,
    machine: &'static Machine,
    bank: Bank,
    uses: Vec<u32>,
    /// Of those the ones that scale it to an address.
    addressing: Vec<u32>,
    /// The ones that are the address of a load or a store, and those of an atomic operation.
    accessing: Vec<u32>,
    updating: Vec<u32>,
    /// Of those the ones that take its sign with it.
    signing: Vec<u32>,
    fused: Vec<bool>,
    code: Vec<Instruction>,
    once: Vec<Instruction>,
    aside: Vec<Instruction>,
    moves: Vec<(usize, V)>,
    calls: Vec<(usize, &'static Recipe)>,
    recipes: FxHashSet<u16>,
    /// Quotients of integers: where, of what, by what, with signs.
    quotients: FxHashSet<(B, V, V, bool)>,
    made: FxHashSet<i64>,
    wide: FxHashSet<u64>,
    /// Loads that come with another.
    brought: FxHashSet<V>,
    /// Stores that others do on the way, by those.
    written: FxHashMap<V, SmallVec<[V; 2]>>,
    /// Where arrays of shared memory begin.
    layout: FxHashMap<VarId, i64>,
    /// The parts of wide loads.
    pieces: FxHashMap<V, SmallVec<[V; 2]>>,
}

/// True for operations whose operands may be negated or made positive on the way.
fn takes_signs(op: Op) -> bool {
    matches!(
        op,
        Op::Add
            | Op::Sub
            | Op::Mul
            | Op::Fma
            | Op::Compare(..)
            | Op::Min(_)
            | Op::Max(_)
            | Op::Math(_)
            | Op::Div(_)
            | Op::Resize
            | Op::ToInt(_)
            | Op::Neg
            | Op::Abs
            | Op::Select
    )
}

pub(crate) fn select(graph: &Graph, kernel: &Kernel, options: Options) -> Code {
    let mut uses = vec![0u32; graph.values.len()];
    let mut addressing = uses.clone();
    let mut accessing = uses.clone();
    let mut updating = uses.clone();
    let mut signing = uses.clone();
    for block in &graph.blocks {
        for &v in &block.code {
            let inst = graph.inst(v);
            for (number, arg) in inst.args.iter().enumerate() {
                uses[arg.0 as usize] += 1;
                if number == 1 && matches!(inst.op, Op::Address(..)) {
                    addressing[arg.0 as usize] += 1;
                }
                if number == 0 && matches!(inst.op, Op::Load(..) | Op::Store(..)) {
                    accessing[arg.0 as usize] += 1;
                }
                if number == 0 && matches!(inst.op, Op::Atomic(..)) {
                    updating[arg.0 as usize] += 1;
                }
                if takes_signs(inst.op) {
                    signing[arg.0 as usize] += 1;
                }
            }
        }
        if let End::Branch(condition, ..) = block.end {
            uses[condition.0 as usize] += 1;
        }
    }
    let mut selector = Selector {
        graph,
        kernel,
        options,
        machine: options.target.machine(),
        bank: Bank::of(kernel),
        fused: vec![false; graph.values.len()],
        uses,
        addressing,
        accessing,
        updating,
        signing,
        code: Vec::new(),
        once: Vec::new(),
        aside: Vec::new(),
        moves: Vec::new(),
        calls: Vec::new(),
        recipes: FxHashSet::default(),
        quotients: quotients(graph),
        made: FxHashSet::default(),
        wide: FxHashSet::default(),
        brought: FxHashSet::default(),
        written: FxHashMap::default(),
        layout: wide::layout(kernel),
        pieces: FxHashMap::default(),
    };
    selector.fuse();
    selector.vectorise();
    selector.halves();
    let mut blocks = Vec::with_capacity(graph.blocks.len());
    let mut moves = FxHashMap::default();
    let mut calls = FxHashMap::default();
    for block in &graph.blocks {
        for &v in &block.code {
            selector.instruction(v);
        }
        let number = blocks.len();
        moves.extend(selector.moves.drain(..).map(|(at, v)| ((number, at), v)));
        calls.extend(selector.calls.drain(..).map(|(at, of)| ((number, at), of)));
        blocks.push(std::mem::take(&mut selector.code));
        selector.bank.next_block();
    }
    selector.branches(&mut blocks);
    selector.frame(&blocks);
    Code {
        blocks,
        once: selector.once,
        aside: selector.aside,
        fused: selector.fused,
        moves,
        calls,
    }
}

/// The recipe of a division or of a function of the library.
pub(crate) fn called(graph: &Graph, v: V, fast_math: bool) -> Option<u16> {
    let inst = graph.inst(v);
    match inst.op {
        Op::Math(number) => Some(number),
        Op::Div(_) | Op::Rem(_) if inst.ty.is_float() => {
            let one = graph.float(inst.args[0]) == Some(1.0);
            let name = if one { "recip" } else { "div" };
            Some(recipes::index(name, inst.ty, name, fast_math))
        }
        Op::Div(signed) | Op::Rem(signed) => {
            let by = graph.int(inst.args[1]);
            let rem = matches!(inst.op, Op::Rem(_));
            Some(recipes::division(rem, inst.ty, signed, by))
        }
        _ => None,
    }
}

/// The quotients of integers of each block.
fn quotients(graph: &Graph) -> FxHashSet<(B, V, V, bool)> {
    let values = graph.blocks.iter().flat_map(|block| &block.code);
    values
        .filter_map(|&v| {
            let inst = graph.inst(v);
            match inst.op {
                Op::Div(signed) if !inst.ty.is_float() => {
                    Some((inst.block, inst.args[0], inst.args[1], signed))
                }
                _ => None,
            }
        })
        .collect()
}

/// True for what a phi takes that lies in no register.
pub(crate) fn needs_move(graph: &Graph, v: V) -> bool {
    graph.op(v).is_operand() && graph.op(v) != Op::Undefined
}

/// True for a product of 64 bits of two factors of 32, of one sign.
fn is_widening(graph: &Graph, product: V) -> bool {
    let inst = graph.inst(product);
    let of = |signed: bool| {
        let narrow = |v: &V| match graph.op(*v) {
            Op::Extend(of) => of == signed && graph.ty(graph.inst(*v).args[0]) == Ty::I32,
            Op::Int(value) if signed => i32::try_from(value).is_ok(),
            Op::Int(value) => u32::try_from(value).is_ok(),
            _ => false,
        };
        inst.args.iter().all(narrow)
    };
    inst.ty == Ty::I64 && inst.args.len() == 2 && (of(false) || of(true))
}

impl Selector<'_> {
    /// Marks the values that the one instruction which uses them does on the way.
    fn fuse(&mut self) {
        let graph = self.graph;
        for block in &graph.blocks {
            for &v in &block.code {
                let inst = graph.inst(v);
                let single = |arg: V, uses: &[u32]| uses[arg.0 as usize] == 1;
                match (inst.op, inst.ty) {
                    (Op::Add | Op::Sub, Ty::I32) => {
                        let mut room = 1;
                        for &arg in &inst.args {
                            let inner = graph.inst(arg);
                            let fits = match inner.op {
                                // IMAD, LEA.
                                Op::Mul => inst.op == Op::Add,
                                Op::Shl => graph.int(inner.args[1]).is_some() && inst.op == Op::Add,
                                // IADD3.
                                Op::Add | Op::Sub => {
                                    inner.ty == Ty::I32
                                        && !inner.args.iter().any(|a| self.fused[a.0 as usize])
                                }
                                Op::Neg => true,
                                _ => false,
                            };
                            if fits
                                && room > 0
                                && single(arg, &self.uses)
                                && !self.fused[arg.0 as usize]
                            {
                                self.fused[arg.0 as usize] = true;
                                room -= 1;
                            }
                        }
                    }
                    (Op::And | Op::Or | Op::Xor, Ty::I32) => {
                        let mut room = 1;
                        for &arg in &inst.args {
                            let inner = graph.inst(arg);
                            let fits = matches!(inner.op, Op::And | Op::Or | Op::Xor)
                                && !inner.args.iter().any(|a| self.fused[a.0 as usize])
                                || inner.op == Op::Not;
                            if fits && room > 0 && single(arg, &self.uses) {
                                self.fused[arg.0 as usize] = true;
                                if inner.op != Op::Not {
                                    room -= 1;
                                }
                            }
                        }
                    }
                    (Op::Address(4 | 8 | 16, _), Ty::I32) if self.scales(v) => {
                        self.fused[v.0 as usize] = true;
                    }
                    (Op::Address(_, true), Ty::I64) => {
                        let index = inst.args[1];
                        if graph.op(index) == Op::Extend(true) {
                            let all = self.uses[index.0 as usize];
                            if all == self.addressing[index.0 as usize] {
                                self.fused[index.0 as usize] = true;
                            }
                        }
                    }
                    // IMAD.WIDE.
                    (Op::Mul, Ty::I64) if is_widening(graph, v) => {
                        for &arg in &inst.args {
                            if single(arg, &self.uses) {
                                self.fused[arg.0 as usize] = true;
                            }
                        }
                    }
                    // The upper of the two registers.
                    (Op::Shr(_), Ty::I64) if graph.int(inst.args[1]) == Some(32) => {
                        self.fused[v.0 as usize] = true;
                    }
                    _ => {}
                }
                // Signs of floating point, and what only names a place.
                if let Op::Piece(_) = inst.op {
                    self.pieces.entry(inst.args[0]).or_default().push(v);
                }
                match inst.op {
                    Op::Neg | Op::Abs if inst.ty.is_float() => {
                        let all = self.uses[v.0 as usize];
                        self.fused[v.0 as usize] = all == self.signing[v.0 as usize];
                    }
                    // An atomic operation takes a constant beside its address, as loads and stores do.
                    Op::Offset(_) if self.uses[v.0 as usize] == self.updating[v.0 as usize] => {
                        self.fused[v.0 as usize] = true;
                    }
                    Op::Load(..) if self.is_fixed_constant(v) => {
                        self.fused[v.0 as usize] = true;
                    }
                    Op::Truncate | Op::Piece(_) | Op::Part(_) | Op::Bits => {
                        self.fused[v.0 as usize] = true;
                    }
                    // Registers side by side are a pair, halves that one instruction made are in one register.
                    Op::Join
                        if inst.ty.words() == 2 && inst.args.len() == 2
                            || graph.is_pair(&inst.args) =>
                    {
                        self.fused[v.0 as usize] = true;
                    }
                    Op::Base(_) => self.fused[v.0 as usize] = true,
                    Op::And | Op::Or | Op::Not | Op::Xor if inst.ty == Ty::Pred => {
                        self.fused[v.0 as usize] = true;
                    }
                    _ => {}
                }
            }
        }
    }

    /// True for an address of shared memory that its accesses make themselves, of a subscript and a constant.
    fn scales(&self, v: V) -> bool {
        let graph = self.graph;
        let mut base = graph.inst(v).args[0];
        while let Op::Offset(_) = graph.op(base) {
            base = graph.inst(base).args[0];
        }
        self.machine.scales_subscripts
            && matches!(graph.op(base), Op::Base(_))
            && self.uses[v.0 as usize] == self.accessing[v.0 as usize]
    }

    /// The registers behind operands: fused values stand for their own operands.
    fn registers(&self, v: V, out: &mut SmallVec<[V; 4]>) {
        let inst = self.graph.inst(v);
        for &arg in &inst.args {
            self.operand(arg, out);
        }
    }

    fn operand(&self, v: V, out: &mut SmallVec<[V; 4]>) {
        let inst = self.graph.inst(v);
        if inst.op.is_operand() {
            return;
        }
        if let Op::Piece(_) = inst.op {
            // A part of a wide register.
            out.push(v);
            return;
        }
        if self.fused[v.0 as usize] && inst.op != Op::Phi {
            self.registers(v, out);
        } else {
            out.push(v);
        }
    }

    /// What an instruction leaves in registers: the parts of a wide load, or its value.
    fn parts(&self, v: V) -> SmallVec<[V; 2]> {
        match self.pieces.get(&v) {
            Some(pieces) => pieces.clone(),
            None if self.graph.ty(v) == Ty::None => SmallVec::new(),
            None => SmallVec::from_slice(&[v]),
        }
    }

    fn emit(&mut self, v: V, class: Class, count: u32) {
        let mut uses = SmallVec::new();
        self.registers(v, &mut uses);
        self.load_operands(v, &mut uses);
        let site = self.graph.inst(v).site;
        self.code.push(Instruction {
            values: self.parts(v),
            uses,
            ..Instruction::new(class, count, site)
        });
    }

    /// More of the same value.
    fn also(&mut self, v: V, class: Class, count: u32) {
        let site = self.graph.inst(v).site;
        self.code.push(Instruction::new(class, count, site));
    }

    /// The recipe of a division or of a function of the library.
    fn called(&self, v: V) -> Option<u16> {
        called(self.graph, v, self.options.fast_math)
    }

    /// True for a call with a slow path: the code around it is not one stretch.
    fn branches_off(&self, v: V) -> bool {
        self.called(v).is_some_and(|number| {
            let recipe = recipes::recipe(self.options.target, number);
            let mut all = recipe.in_place.iter().chain(&recipe.once);
            all.any(|(class, _)| *class == Class::Bra)
        })
    }

    fn recipe(&mut self, v: V, number: u16) {
        let recipe: &Recipe = recipes::recipe(self.options.target, number);
        let site = self.graph.inst(v).site;
        if recipe.in_place.is_empty() {
            self.emit(v, Class::Other, 1);
        } else {
            let mut uses = SmallVec::new();
            self.registers(v, &mut uses);
            self.load_operands(v, &mut uses);
            for (&(class, count), (_, executed)) in recipe.in_place.iter().zip(&recipe.executed) {
                self.also(v, class, count);
                if let Some(last) = self.code.last_mut() {
                    last.rare = count - executed;
                }
            }
            // Its value is there at its end.
            let last = self.code.last_mut().expect("the recipe's last");
            last.values = SmallVec::from_slice(&[v]);
            last.uses = uses;
            last.extra = recipe.registers.saturating_sub(2);
            if recipe.is_called() {
                self.calls.push((self.code.len() - 1, recipe));
            }
        }
        if self.recipes.insert(number) {
            // What branches is no constant.
            let shared = recipe.once.iter().any(|(class, _)| *class == Class::Bra);
            let once = if shared {
                &mut self.aside
            } else {
                &mut self.once
            };
            for &(class, count) in &recipe.once {
                once.push(Instruction::new(class, count, site));
            }
        }
    }

    /// A constant that needs a register, once.
    fn constant(&mut self, v: V, key: i64, count: u32) {
        if self.made.insert(key) {
            let site = self.graph.inst(v).site;
            self.once.push(Instruction::new(Class::Mov, count, site));
        }
    }

    fn instruction(&mut self, v: V) {
        let graph = self.graph;
        let inst = graph.inst(v);
        if inst.op.is_operand() || self.fused[v.0 as usize] || self.brought.contains(&v) {
            return;
        }
        let wide = inst.ty == Ty::I64;
        let words = inst.ty.words().max(1);
        match inst.op {
            Op::Builtin(Builtin::ThreadIdx(_) | Builtin::BlockIdx(_)) => {
                self.emit(v, Class::Other, 1);
            }
            Op::Fma => {
                if inst.ty == Ty::F64 {
                    self.wide_constants(v);
                }
                let class = match inst.ty {
                    Ty::F64 => Class::Dfma,
                    Ty::F16 => Class::Hfma2,
                    _ => Class::Ffma,
                };
                self.emit(v, class, 1);
            }
            Op::Add | Op::Sub | Op::Mul if inst.ty.is_float() => {
                let class = match (inst.op, inst.ty) {
                    (Op::Mul, Ty::F64) => Class::Dmul,
                    (_, Ty::F64) => Class::Dadd,
                    (_, Ty::F16) => Class::Hfma2,
                    (Op::Mul, _) => Class::Fmul,
                    _ => Class::Fadd,
                };
                if inst.ty == Ty::F64 {
                    self.wide_constants(v);
                }
                self.emit(v, class, 1);
            }
            Op::Add | Op::Sub => {
                let multiplies = inst
                    .args
                    .iter()
                    .any(|arg| self.fused[arg.0 as usize] && graph.op(*arg) == Op::Mul);
                let shifts = inst
                    .args
                    .iter()
                    .any(|arg| self.fused[arg.0 as usize] && graph.op(*arg) == Op::Shl);
                let class = if multiplies {
                    Class::Imad
                } else if shifts {
                    Class::Lea
                } else {
                    Class::Iadd3
                };
                self.emit(v, class, words);
            }
            // Its own instruction where no operation takes the sign.
            Op::Neg | Op::Abs if inst.ty == Ty::F32 => self.emit(v, Class::Fadd, 1),
            Op::Neg | Op::Abs if inst.ty == Ty::F64 => self.emit(v, Class::Dadd, 1),
            Op::Neg | Op::Abs if inst.ty == Ty::F16 => self.emit(v, Class::Hfma2, 1),
            Op::Neg => self.emit(v, Class::Iadd3, words),
            Op::Mul if is_widening(graph, v) => self.emit(v, Class::Imad, 1),
            Op::Mul => self.emit(v, Class::Imad, if wide { 4 } else { 1 }),
            Op::MulHigh => self.emit(v, Class::Imad, 1),
            // The remainder of what is divided beside it: a product less.
            Op::Rem(signed)
                if self
                    .quotients
                    .contains(&(inst.block, inst.args[0], inst.args[1], signed)) =>
            {
                self.emit(v, Class::Imad, if wide { 4 } else { 1 });
            }
            Op::Div(_) | Op::Rem(_) | Op::Math(_) => {
                let number = self.called(v).expect("one has a recipe");
                self.recipe(v, number);
            }
            Op::Shl | Op::Shr(_) => self.emit(v, Class::Shf, words),
            Op::And | Op::Or | Op::Xor | Op::Not => self.emit(v, Class::Lop3, words),
            Op::Min(_) | Op::Max(_) => match inst.ty {
                Ty::F64 => {
                    let least = matches!(inst.op, Op::Min(_));
                    let name = if least { "fmin" } else { "fmax" };
                    self.recipe(v, recipes::index(name, inst.ty, name, false));
                }
                Ty::I64 => {
                    self.emit(v, Class::Sel, 2);
                    self.also(v, Class::Isetp, 2);
                }
                Ty::F16 => self.emit(v, Class::Hfma2, 1),
                _ => self.emit(v, Class::Other, 1),
            },
            Op::Abs => self.emit(v, Class::Other, words),
            Op::Popc => self.emit(v, Class::Other, 1),
            Op::FindBit => {
                self.emit(v, Class::Other, 1);
                self.also(v, Class::Iadd3, 1);
            }
            Op::Reverse => self.emit(v, Class::Other, 1),
            Op::Compare(..) => {
                let of = graph.ty(inst.args[0]);
                match of {
                    Ty::F32 => self.emit(v, Class::Fsetp, 1),
                    Ty::F64 => self.emit(v, Class::Other, 1),
                    Ty::F16 => self.emit(v, Class::Hfma2, 1),
                    Ty::I64 => self.emit(v, Class::Isetp, 2),
                    _ => self.emit(v, Class::Isetp, 1),
                }
            }
            Op::Select => self.emit(v, Class::Sel, words),
            Op::Extend(true) => self.emit(v, Class::Shf, 1),
            Op::Extend(false) => self.emit(v, Class::Mov, 1),
            Op::Narrow(..) => {
                // A load brings the width that it loads.
                self.emit(v, Class::Lop3, 1);
            }
            Op::FromInt(_) => self.emit(v, Class::I2f, 1),
            Op::ToInt(_) => self.emit(v, Class::F2i, 1),
            Op::Resize => self.emit(v, Class::F2f, 1),
            Op::Offset(_) => self.emit(v, Class::Iadd3, words),
            Op::Address(size, _) => {
                let index = graph.ty(inst.args[1]);
                if inst.ty == Ty::I32 {
                    self.emit(v, Class::Lea, 1);
                } else if index == Ty::I64 && !self.fused[inst.args[1].0 as usize] {
                    self.emit(v, Class::Lea, 2);
                } else {
                    self.emit(v, Class::Imad, 1);
                    // Where the pointer is an operand from the constant bank, the size cannot be one.
                    if graph.op(inst.args[0]).is_operand() && !self.machine.loads_parameters {
                        self.constant(v, i64::from(size), 1);
                    }
                }
            }
            Op::Load(space, ..) => {
                let class = match space {
                    Space::Shared => Class::Lds,
                    Space::Local => Class::Ldl,
                    Space::Constant => Class::Ldc,
                    Space::Global => Class::Ldg,
                };
                // Parts of a vector at a fixed place are operands.
                let operand = space == Space::Constant
                    && matches!(graph.op(inst.args[0]), Op::Base(_))
                    && !self.machine.loads_parameters;
                self.emit(v, class, u32::from(!operand));
            }
            Op::Store(space, ..) => {
                let class = match space {
                    Space::Shared => Class::Sts,
                    Space::Local => Class::Stl,
                    _ => Class::Stg,
                };
                let others = self.written.remove(&v).unwrap_or_default();
                for &store in others.iter().chain(&[v]) {
                    self.stored_constants(store);
                }
                let stores = others.len() as u32 + 1;
                let mut uses = SmallVec::<[V; 4]>::new();
                for store in others {
                    self.registers(store, &mut uses);
                    self.load_operands(store, &mut uses);
                }
                self.emit(v, class, 1);
                let last = self.code.last_mut().expect("the store");
                last.stores = stores;
                uses.retain(|of| !last.uses.contains(of));
                last.uses.extend(uses);
            }
            Op::Atomic(space, update) => {
                self.stored_constants(v);
                let used = self.uses[v.0 as usize] > 0;
                if space == Space::Shared && update == Update::FloatAdd {
                    // Compare and swap until no other thread came between.
                    self.also(v, Class::Lds, 1);
                    self.also(v, Class::Fadd, 1);
                    self.also(v, Class::Isetp, 1);
                    self.also(v, Class::Bra, 1);
                    self.also(v, Class::Other, 2);
                    self.emit(v, Class::Atom, 1);
                } else if used || space == Space::Shared || update == Update::Swap {
                    self.emit(v, Class::Atom, 1);
                } else {
                    self.emit(v, Class::Red, 1);
                }
            }
            Op::Shuffle => self.emit(v, Class::Shfl, words),
            Op::Vote => self.emit(v, Class::Vote, 1),
            Op::Barrier => self.emit(v, Class::Bar, 1),
            Op::Texture => self.emit(v, Class::Tex, 1),
            Op::Fixed(class, count) => self.emit(v, class, u32::from(count)),
            Op::Product(count, work) => {
                self.emit(v, Class::Hmma, u32::from(count));
                if let Some(product) = self.code.last_mut() {
                    product.work = work as f32 / 64.0;
                }
            }
            Op::System => {
                // Its arguments go through local memory.
                let given = inst.args.len() as u32;
                self.also(v, Class::Mov, 8);
                self.also(v, Class::Stl, given.div_ceil(2));
                self.emit(v, Class::Other, 4);
            }
            // Bytes and halves are put into one register, two at a time.
            Op::Join => self.emit(v, Class::Other, (inst.args.len() as u32).saturating_sub(1)),
            Op::Fence | Op::Other => self.emit(v, Class::Other, 1),
            Op::Phi => {
                let constants = inst
                    .args
                    .iter()
                    .filter(|arg| needs_move(graph, **arg))
                    .count();
                if constants > 0 {
                    self.moves.push((self.code.len(), v));
                    self.also(v, Class::Mov, constants as u32);
                }
            }
            Op::Int(_)
            | Op::Float(_)
            | Op::Undefined
            | Op::Param(..)
            | Op::Builtin(_)
            | Op::Base(_)
            | Op::Piece(_)
            | Op::Part(_)
            | Op::Truncate
            | Op::Bits => {}
        }
    }

    /// Constants that are written to memory need registers; 0 has one.
    fn stored_constants(&mut self, v: V) {
        let graph = self.graph;
        let inst = graph.inst(v);
        for &arg in inst.args.iter().skip(1) {
            let bits = match graph.op(arg) {
                // Counting in shared memory is an operation of its own.
                Op::Int(1) if inst.op == Op::Atomic(Space::Shared, Update::Reduction) => 0,
                Op::Int(value) => value,
                Op::Float(bits) => bits as i64,
                _ => 0,
            };
            if bits != 0 {
                self.constant(v, bits, graph.ty(arg).words());
            }
        }
    }

    /// Constants of 64 bits whose lower half is not 0 need registers.
    fn wide_constants(&mut self, v: V) {
        for &arg in &self.graph.inst(v).args {
            if let Op::Float(bits) = self.graph.op(arg)
                && bits & 0xffff_ffff != 0
                && self.wide.insert(bits)
            {
                let site = self.graph.inst(v).site;
                self.once.push(Instruction::new(Class::Mov, 2, site));
            }
        }
    }

    /// Branches.
    fn branches(&mut self, blocks: &mut [Vec<Instruction>]) {
        let graph = self.graph;
        let size = |blocks: &[Vec<Instruction>], b: B| -> u32 {
            blocks[b.0 as usize].iter().map(|i| i.count).sum()
        };
        let headers: FxHashSet<B> = graph.loops.iter().map(|l| l.header).collect();
        for number in (0..blocks.len()).rev() {
            let block = graph.block(B(number as u32));
            let End::Branch(condition, yes, no) = block.end else {
                continue;
            };
            let site = graph.inst(condition).site;
            let mut needs = SmallVec::new();
            self.operand(condition, &mut needs);
            let add = |blocks: &mut [Vec<Instruction>], class: Class, count: u32| {
                blocks[number].push(Instruction {
                    uses: needs.clone(),
                    ..Instruction::new(class, count, site)
                });
            };
            // Where others meet at the end as well, each ends by itself.
            let header = headers.contains(&B(number as u32));
            let ends = |mut b: B| {
                while let End::Jump(to) = graph.block(b).end
                    && !header
                    && to > b
                    && size(blocks, b) == 0
                {
                    b = to;
                }
                graph.block(b).end == End::Exit
                    && size(blocks, b) == 0
                    && (!header || graph.block(b).from.len() == 1)
            };
            if ends(yes) || ends(no) {
                // The thread ends under a predicate.
                add(blocks, Class::Other, 1);
                continue;
            }
            let (a, b) = (size(blocks, yes), size(blocks, no));
            if header {
                add(blocks, Class::Bra, 1);
            } else {
                let both = a > 0 && b > 0;
                add(blocks, Class::Bra, 1 + u32::from(both));
                add(blocks, Class::Other, 2);
            }
        }
    }

    /// What every kernel has around its code.
    fn frame(&mut self, blocks: &[Vec<Instruction>]) {
        let site = self.kernel.name_site;
        let global = blocks
            .iter()
            .flatten()
            .any(|i| matches!(i.class, Class::Ldg | Class::Stg | Class::Atom | Class::Red));
        let mut add = |class: Class, count: u32| {
            self.once.push(Instruction::new(class, count, site));
        };
        // The stack's address, the end.
        add(
            if self.machine.loads_parameters {
                Class::Ldc
            } else {
                Class::Mov
            },
            1,
        );
        add(Class::Other, 1);
        if global && self.machine.descriptor {
            add(Class::Ldc, 1);
        }
        let arrays: FxHashSet<VarId> = self
            .graph
            .values
            .iter()
            .filter_map(|inst| match inst.op {
                Op::Base(id) => Some(id),
                _ => None,
            })
            .filter(|id| {
                let storage = self.kernel.var(*id).storage;
                matches!(storage, Storage::Shared | Storage::DynamicShared)
            })
            .collect();
        for number in 0..arrays.len() {
            let costs = if number == 0 {
                self.machine.window
            } else {
                self.machine.further_array
            };
            for &(class, count) in costs {
                self.once.push(Instruction::new(class, count, site));
            }
        }
    }
}
