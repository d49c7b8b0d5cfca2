//! From the kernel's IR to values: what a compiler's front half does on the way.
//!
//! Statements are executed in order with every variable as a value. Constants fold, equal values are one, loops of
//! few iterations are unrolled fully, functions in place of their calls cost nothing by themselves.

mod amdgpu;
mod control;
mod counting;
mod emulated;
mod expressions;
mod fold;
mod functions;
mod kept;
mod loops;
mod matrices;
mod memory;
mod parts;
mod picked;
mod place;
pub(crate) mod steady;
mod subscripts;
mod syntactic;
mod tally;
mod touched;
mod versions;
mod views;

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{Controls, Kernel, Site, Storage, Type, VarId};

pub(crate) use place::{WIDEST, common};

use crate::Options;
use crate::frequency::Frequency;
use crate::graph::{Args, B, Block, End, Graph, Inst, Op, Ty, V};

/// A part of a variable: its first byte.
pub(crate) type Key = (VarId, u32);

/// What every part of a variable holds.
pub(crate) type Env = FxHashMap<Key, V>;

/// What an expression gives: the scalars that its type is made of.
pub(crate) type Value = smallvec::SmallVec<[V; 4]>;

/// Where control may go from within a statement.
#[derive(Debug, Default)]
struct Frame {
    /// What leads behind it.
    breaks: Vec<(B, Env)>,
    /// What leads to the next iteration.
    continues: Vec<(B, Env)>,
    /// What leaves the function; only of a function's frame.
    returns: Vec<(B, Env)>,
    /// Where a function leaves its value.
    result: Option<VarId>,
    function: bool,
}

pub(crate) struct Builder<'k> {
    kernel: &'k Kernel,
    options: &'k Options,
    controls: &'k Controls,
    pub(crate) graph: Graph,
    /// Where instructions go; nowhere where no thread comes.
    at: Option<B>,
    /// The scalars of structures whose fields share bytes, by their addresses.
    layouts: RefCell<FxHashMap<usize, Rc<Scalars<'k>>>>,
    env: Env,
    known: FxHashMap<(Op, Ty, Args), V>,
    /// The subscripts among them.
    subscripts: subscripts::Subscripts,
    /// The values that stand nowhere.
    leaves: FxHashMap<(Op, Ty), V>,
    /// What was added to `known`, to take it back behind a branch.
    added: Vec<(Op, Ty, Args)>,
    /// Counts the changes of memory.
    clock: u32,
    versions: versions::Versions,
    /// The stores that came last, where they went through one address.
    stored: Option<versions::Run>,
    held: Vec<versions::Held>,
    unread: Vec<versions::Unread>,
    beside: Option<versions::Beside>,
    /// The access at hand is to something `volatile`.
    volatile: bool,
    frames: Vec<Frame>,
    /// The loop that instructions stand in.
    within: Option<u32>,
    /// Loops of the source around.
    nesting: u32,
    /// Copies of the code in the program.
    copies: u32,
    /// How often the code is executed.
    frequency: Frequency,
    /// The unroll factor of the loop whose remainder loop comes next.
    remainder: u64,
    site: Site,
    /// The call that is being put in place of a function that is kept once for all its calls.
    call: Option<Site>,
    /// Arrays and variables of a thread that lie in memory.
    pub(crate) in_memory: FxHashSet<VarId>,
    /// Those that turned out to: the kernel is built once more.
    pub(crate) demoted: FxHashSet<VarId>,
    /// Parts that were taken out of a value: of which, and from which byte.
    pieces: FxHashMap<V, (V, u32)>,
    /// Arrays of which the code chooses an element where it does not know which.
    picked: FxHashSet<VarId>,
    /// What every iteration of a loop finds as the first did: it stays the constant that it is.
    steady: steady::Steady,
    /// The same as it is found now.
    pub(crate) found_steady: steady::Found,
    depth: u32,
    /// Functions kept once that were put in place.
    applied: u32,
    /// Something was left out.
    pub(crate) cut: bool,
    /// Kernel is too big: the rest is left out.
    pub(crate) truncated: bool,
    /// Sums that do not wrap: signed ones.
    signed: FxHashSet<V>,
    /// Counters of loops, and what each is always a multiple of.
    strides: FxHashMap<V, u64>,
    /// Pointer parameters that the kernel writes through.
    written: FxHashSet<VarId>,
    assigned: FxHashMap<usize, std::rc::Rc<tally::Touched>>,
    /// What the bodies of loops assign, by where they begin, under the aliases known so far.
    bodies: FxHashMap<usize, std::rc::Rc<FxHashSet<VarId>>>,
    /// Pointers into the thread's own arrays, as they were declared: a called function's parameters.
    aliases: FxHashMap<VarId, VarId>,
}

/// More instructions than this are not built.
const MOST_VALUES: usize = 30_000;

impl<'k> Builder<'k> {
    pub(crate) fn new(
        kernel: &'k Kernel,
        options: &'k Options,
        controls: &'k Controls,
        in_memory: FxHashSet<VarId>,
        picked: FxHashSet<VarId>,
        steady: steady::Steady,
    ) -> Builder<'k> {
        let mut builder = Builder {
            kernel,
            options,
            controls,
            graph: Graph::default(),
            layouts: RefCell::default(),
            at: None,
            env: Env::default(),
            known: FxHashMap::default(),
            subscripts: subscripts::Subscripts::default(),
            leaves: FxHashMap::default(),
            added: Vec::new(),
            clock: 1,
            versions: versions::Versions::default(),
            stored: None,
            held: Vec::new(),
            unread: Vec::new(),
            beside: None,
            volatile: false,
            frames: Vec::new(),
            within: None,
            nesting: 0,
            copies: 1,
            frequency: Frequency::ONCE,
            remainder: 0,
            site: kernel.name_site,
            call: None,
            in_memory,
            demoted: FxHashSet::default(),
            pieces: FxHashMap::default(),
            picked,
            steady,
            found_steady: steady::Found::default(),
            depth: 0,
            applied: 0,
            cut: false,
            truncated: false,
            signed: FxHashSet::default(),
            strides: FxHashMap::default(),
            written: FxHashSet::default(),
            assigned: FxHashMap::default(),
            bodies: FxHashMap::default(),
            aliases: FxHashMap::default(),
        };
        let entry = builder.block();
        builder.at = Some(entry);
        builder
    }

    pub(crate) fn run(mut self) -> Self {
        self.frames.push(Frame {
            function: true,
            ..Frame::default()
        });
        let kernel = self.kernel;
        self.written = touched::written(kernel, &self);
        for (number, var) in kernel.vars.iter().enumerate() {
            let id = VarId(number as u32);
            if let Storage::Param(_) = var.storage
                && var.ty.size() <= 128
                && self.is_values(id)
            {
                for (at, ty) in scalars(&var.ty) {
                    let v = self.leaf(Op::Param(id, at), machine(ty));
                    self.env.insert((id, at), v);
                }
            }
        }
        self.statements(&kernel.body);
        if let Some(at) = self.at {
            self.graph.blocks[at.0 as usize].end = End::Exit;
        }
        self
    }

    // ---- blocks --------------------------------------------------------------------------------

    fn block(&mut self) -> B {
        self.graph.blocks.push(Block {
            code: Vec::new(),
            end: End::Open,
            copies: self.copies,
            frequency: self.frequency,
            again: None,
            within: self.within,
            from: smallvec::SmallVec::new(),
        });
        B(self.graph.blocks.len() as u32 - 1)
    }

    /// Ends a block and notes where it leads.
    fn end(&mut self, block: B, end: End) {
        self.graph.blocks[block.0 as usize].end = end;
        for to in self.graph.to(block) {
            self.graph.blocks[to.0 as usize].from.push(block);
        }
    }

    /// Where several ways meet: what they agree on stays, the rest becomes a phi.
    fn meet(&mut self, ways: Vec<(B, Env)>) {
        match ways.len() {
            0 => {
                self.at = None;
                return;
            }
            1 => {
                let (from, env) = ways.into_iter().next().expect("one way");
                let to = self.block();
                self.end(from, End::Jump(to));
                self.at = Some(to);
                self.env = env;
                return;
            }
            _ => {}
        }
        let to = self.block();
        for (from, _) in &ways {
            self.end(*from, End::Jump(to));
        }
        self.at = Some(to);
        let mut keys: Vec<Key> = ways[0]
            .1
            .iter()
            .filter(|(key, value)| ways[1..].iter().any(|(_, env)| env.get(key) != Some(value)))
            .map(|(key, _)| *key)
            .collect();
        keys.sort_unstable();
        let mut env = ways[0].1.clone();
        for key in keys {
            let args: Option<Args> = ways.iter().map(|(_, env)| env.get(&key).copied()).collect();
            match args {
                Some(args) => {
                    let ty = self.graph.ty(args[0]);
                    let phi = self.push(Op::Phi, ty, args);
                    env.insert(key, phi);
                }
                None => {
                    env.remove(&key);
                }
            }
        }
        self.env = env;
    }

    /// Remembers what is known here; `forget` goes back to it.
    fn mark(&self) -> usize {
        self.added.len()
    }

    fn forget(&mut self, mark: usize) {
        self.subscripts.forget(mark);
        for key in self.added.drain(mark..) {
            self.known.remove(&key);
        }
    }

    // ---- instructions --------------------------------------------------------------------------

    /// Adds an instruction as it is.
    fn push(&mut self, op: Op, ty: Ty, args: Args) -> V {
        let v = V(self.graph.values.len() as u32);
        let block = self.at.unwrap_or(B(0));
        if self.graph.values.len() >= MOST_VALUES {
            self.truncated = true;
        }
        self.graph.values.push(Inst {
            op,
            ty,
            args,
            site: self.site,
            block,
        });
        if let Some(at) = self.at {
            self.graph.blocks[at.0 as usize].code.push(v);
        }
        v
    }

    /// An instruction whose equal is used again.
    fn share(&mut self, op: Op, ty: Ty, args: Args) -> V {
        let key = (op, ty, args);
        match self.known.get(&key) {
            Some(&v) => v,
            None => self.add(key),
        }
    }

    /// An instruction that is known from here on.
    fn add(&mut self, key: (Op, Ty, Args)) -> V {
        let v = match self.beside(&key) {
            Some(v) => v,
            None => self.push(key.0, key.1, key.2.clone()),
        };
        if self.at.is_some() {
            self.known.insert(key.clone(), v);
            self.added.push(key);
        }
        v
    }

    fn constant(&mut self, value: i64, ty: Ty) -> V {
        let value = if ty == Ty::I32 {
            i64::from(value as i32)
        } else {
            value
        };
        self.leaf(Op::Int(value), ty)
    }

    fn float(&mut self, value: Option<f64>, ty: Ty) -> V {
        self.leaf(Op::Float(value.unwrap_or(f64::NAN).to_bits()), ty)
    }

    /// What is in no block: constants, parameters, coordinates. It is known everywhere.
    fn leaf(&mut self, op: Op, ty: Ty) -> V {
        let key = (op, ty);
        if let Some(&v) = self.leaves.get(&key) {
            return v;
        }
        let v = V(self.graph.values.len() as u32);
        self.graph.values.push(Inst {
            op,
            ty,
            args: Args::new(),
            site: self.site,
            block: B(0),
        });
        if !op.is_operand() {
            self.graph.blocks[0].code.push(v);
        }
        self.leaves.insert(key, v);
        v
    }

    fn undefined(&mut self, ty: Ty) -> V {
        self.leaf(Op::Undefined, ty)
    }

    /// True for a variable whose parts are values.
    fn is_values(&self, id: VarId) -> bool {
        let var = self.kernel.var(id);
        match var.storage {
            Storage::Local | Storage::Param(_) => {
                !(self.in_memory.contains(&id) || var.escapes && is_big(&var.ty))
            }
            _ => false,
        }
    }
}

fn is_big(ty: &Type) -> bool {
    matches!(ty, Type::Array(..))
}

/// The register that a type's scalar needs.
pub(crate) fn machine(ty: &Type) -> Ty {
    match ty {
        Type::Void => Ty::None,
        Type::Int { bits: 64, .. } | Type::Pointer(..) | Type::Array(..) => Ty::I64,
        Type::Float { bits: 64, .. } => Ty::F64,
        Type::Float { bits: 16, .. } => Ty::F16,
        Type::Float { .. } => Ty::F32,
        _ => Ty::I32,
    }
}

/// True for a type that is one scalar.
pub(crate) fn is_scalar(ty: &Type) -> bool {
    !matches!(
        ty,
        Type::Void | Type::Vector(..) | Type::Struct(_) | Type::Array(..) | Type::Callable(_)
    )
}

/// Scalars with their offsets.
pub(crate) type Scalars<'t> = smallvec::SmallVec<[(u32, &'t Type); 4]>;

/// The scalars of a type with their offsets; none where it is too big to be followed.
pub(crate) fn scalars(ty: &Type) -> Scalars<'_> {
    fn add<'t>(ty: &'t Type, at: u32, out: &mut Scalars<'t>) {
        if out.len() > 512 {
            return;
        }
        match ty {
            Type::Struct(structure) if views::overlaps(structure) => {
                out.extend(
                    views::layout(structure)
                        .into_iter()
                        .map(|(of, ty)| (at + of, ty)),
                );
            }
            Type::Vector(element, lanes) => {
                for lane in 0..u32::from(*lanes) {
                    add(element, at + lane * element.size() as u32, out);
                }
            }
            Type::Struct(structure) => {
                for field in &structure.fields {
                    add(&field.ty, at + field.offset as u32, out);
                }
            }
            Type::Array(element, Some(extent)) => {
                let size = element.size().max(1) as u32;
                for index in 0..(*extent).min(512) as u32 {
                    add(element, at + index * size, out);
                }
            }
            Type::Void | Type::Callable(_) => {}
            _ => out.push((at, ty)),
        }
    }
    let mut out = Scalars::new();
    add(ty, 0, &mut out);
    out
}
