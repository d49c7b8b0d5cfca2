//! Which operation waits for which: a graph recorded while the kernel is executed.
//!
//! Each expression opens a *frame*. What it reads is the frame's input, an operation that it issues itself waits
//! for all of that, and its value comes from the last one. So the executor need not say operand by operand who
//! waits for whom. Places where values meet (the sides of a branch, the entry and the exit of a loop) are
//! operations that issue nothing. The graph has no cycles: what a loop carries from one iteration to the next is
//! kept beside it, as a beginning and an end.

mod chains;

use rustc_hash::FxHashMap;
use warplens_ir::{Site, VarId};
use warplens_machine::{Mix, Profile};
use warplens_symbolic::Id;

use crate::context::Executions;
use crate::facts::{Dependence, FirstUse, Link, Op, OpClass, Space};
use crate::value::{ArrayId, OpId, Origin};

/// More operations than this are not recorded: the kernel then has no dependence facts.
const MOST_OPERATIONS: usize = 1 << 16;
/// Parts of a value that are told apart.
const MOST_PARTS: usize = 64;
/// Pairs of a load and a store that are compared at the end of a loop.
const MOST_PAIRS: usize = 1024;

#[derive(Debug, Clone, Copy)]
struct Operation {
    /// `None` where nothing issues: values meet here.
    link: Option<Link>,
    /// Instructions.
    issued: f64,
    /// The longest chain among them.
    depth: f64,
    /// Its part of `edges`.
    first: u32,
    count: u32,
    region: u32,
    access: Option<u32>,
    /// Where a loop's variable leaves it: the carried value that was repeated on the way.
    repeats: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Region {
    line: u32,
}

/// A value that one iteration hands to the next.
#[derive(Debug, Clone)]
struct Handed {
    in_loop: u32,
    /// The variable, or the array it goes through.
    name: String,
    from: OpId,
    to: OpId,
}

/// A value of which some parts were written since it came from `base`: bytes into it, and where each comes from.
#[derive(Debug, Clone)]
struct Parts {
    base: Origin,
    written: Vec<(u64, Origin)>,
}

/// A loop: which contexts say how often its body runs.
#[derive(Debug, Clone, Copy)]
struct Looped {
    site: Site,
    outer: usize,
    inner: usize,
    /// Its operations.
    first: u32,
    end: u32,
}

/// An expression or a statement being executed.
#[derive(Debug, Default)]
struct Frame {
    inputs: Vec<OpId>,
    /// The last operation that it issued itself.
    made: Origin,
    /// Loads that it issued itself.
    loads: Vec<OpId>,
    /// Inputs before this one are of a value that is stored, those behind it of the address.
    settled: usize,
    /// What forms the address of the next access.
    address: Origin,
}

/// A loop being executed.
#[derive(Debug)]
struct Open {
    site: Site,
    /// The value of each variable at the beginning of an iteration.
    entries: FxHashMap<VarId, (Origin, OpId)>,
    first: u32,
    /// Loads and stores of its body, those of inner loops left out.
    touched: Vec<(ArrayId, Id, Op, OpId)>,
}

/// The graph.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Greater than 0 while nothing is recorded.
    paused: u32,
    overflowed: bool,
    /// Set where a loop has too many loads and stores to compare them all.
    partial: bool,
    operations: Vec<Operation>,
    edges: Vec<OpId>,
    regions: Vec<Region>,
    frames: Vec<Frame>,
    open: Vec<Open>,
    loops: Vec<Looped>,
    handed: Vec<Handed>,
    /// Values that were written part by part.
    parts: FxHashMap<OpId, Parts>,
    /// Integers, by their value: computed once.
    integers: FxHashMap<Id, OpId>,
    /// The last store to an address.
    stored: FxHashMap<(ArrayId, Id), OpId>,
}

impl Graph {
    pub(crate) fn new(line: u32) -> Graph {
        Graph {
            paused: 0,
            overflowed: false,
            partial: false,
            operations: Vec::new(),
            edges: Vec::new(),
            regions: vec![Region { line }],
            frames: vec![Frame::default()],
            open: Vec::new(),
            loops: Vec::new(),
            handed: Vec::new(),
            parts: FxHashMap::default(),
            integers: FxHashMap::default(),
            stored: FxHashMap::default(),
        }
    }

    /// From here on nothing is recorded, until [`Graph::resume`].
    pub(crate) fn pause(&mut self) {
        self.paused += 1;
    }

    pub(crate) fn resume(&mut self) {
        self.paused -= 1;
    }

    fn push(
        &mut self,
        link: Option<Link>,
        issued: f64,
        depth: f64,
        after: impl IntoIterator<Item = OpId>,
    ) -> Origin {
        if self.paused > 0 || self.overflowed {
            return None;
        }
        if self.operations.len() >= MOST_OPERATIONS {
            self.overflowed = true;
            return None;
        }
        let first = self.edges.len();
        for op in after {
            if !self.edges[first..].contains(&op) {
                self.edges.push(op);
            }
        }
        self.operations.push(Operation {
            link,
            issued,
            depth,
            first: first as u32,
            count: (self.edges.len() - first) as u32,
            region: self.regions.len() as u32 - 1,
            access: None,
            repeats: None,
        });
        Some(OpId(self.operations.len() as u32 - 1))
    }

    /// Where values of several origins meet.
    pub(crate) fn meet(&mut self, origins: impl IntoIterator<Item = Origin>) -> Origin {
        let mut some: Vec<OpId> = origins.into_iter().flatten().collect();
        some.sort_unstable();
        some.dedup();
        match some[..] {
            [] => None,
            [one] => Some(one),
            _ => self.push(None, 0.0, 0.0, some),
        }
    }

    /// Where a part of a value comes from, by its bytes into it.
    pub(crate) fn part(&self, whole: Origin, at: u64) -> Origin {
        let Some(parts) = whole.and_then(|whole| self.parts.get(&whole)) else {
            return whole;
        };
        let written = parts.written.iter().find(|(of, _)| *of == at);
        written.map_or(parts.base, |(_, origin)| *origin)
    }

    /// Where a value comes from after one of its parts was written.
    pub(crate) fn with_part(&mut self, whole: Origin, at: u64, part: Origin) -> Origin {
        let mut parts = match whole.and_then(|whole| self.parts.get(&whole)) {
            Some(parts) if parts.written.len() < MOST_PARTS => parts.clone(),
            _ => Parts {
                base: whole,
                written: Vec::new(),
            },
        };
        parts.written.retain(|(of, _)| *of != at);
        parts.written.push((at, part));
        let written = parts.written.iter().filter_map(|(_, origin)| *origin);
        let after: Vec<OpId> = parts.base.into_iter().chain(written).collect();
        let origin = self.push(None, 0.0, 0.0, after);
        if let Some(whole) = origin {
            self.parts.insert(whole, parts);
        }
        origin
    }

    // ---- frames --------------------------------------------------------------------------------

    pub(crate) fn enter(&mut self) {
        self.frames.push(Frame::default());
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// A value that the expression at hand reads.
    pub(crate) fn input(&mut self, origin: Origin) {
        if let Some(op) = origin {
            self.frame().inputs.push(op);
        }
    }

    /// Where the value of the expression at hand comes from so far; `own`: where that is known otherwise.
    pub(crate) fn result(&mut self, own: Origin) -> Origin {
        if own.is_some() {
            return own;
        }
        let frame = self.frame();
        if let Some(made) = frame.made {
            return Some(made);
        }
        let loads = if frame.loads.is_empty() {
            frame.inputs.clone()
        } else {
            frame.loads.clone()
        };
        self.meet(loads.into_iter().map(Some))
    }

    /// Ends an expression; its value is what the one around it reads.
    pub(crate) fn leave(&mut self, own: Origin) -> Origin {
        let origin = self.result(own);
        self.frames.pop();
        self.input(origin);
        origin
    }

    /// Ends a statement.
    pub(crate) fn end(&mut self) {
        self.frames.pop();
    }

    // ---- operations ----------------------------------------------------------------------------

    fn waits(&mut self) -> Vec<OpId> {
        let frame = self.frame();
        let own = frame.made.into_iter().chain(frame.loads.iter().copied());
        frame.inputs.iter().copied().chain(own).collect()
    }

    /// Instructions of the expression at hand, one behind the other.
    pub(crate) fn issue(&mut self, class: OpClass, mix: &Mix) {
        let total = mix.total();
        if total == 0.0 || self.paused > 0 {
            return;
        }
        let link = match class {
            OpClass::Fp16 | OpClass::Fp32 | OpClass::Fp64 => Link::Add,
            OpClass::Sfu => Link::Special,
            OpClass::Conversion => Link::Conversion,
            OpClass::Tensor => Link::Tensor,
            _ => Link::Integer,
        };
        let waits = self.waits();
        let made = self.push(Some(link), total, total, waits);
        self.frame().made = made;
    }

    /// Says more of the operation issued last: what it is, and its instructions in a row.
    pub(crate) fn is(&mut self, link: Link, depth: f64) {
        if self.paused == 0
            && let Some(made) = self.frame().made
        {
            let operation = &mut self.operations[made.0 as usize];
            operation.link = Some(link);
            operation.depth = depth.min(operation.issued);
        }
    }

    /// An addition that is one instruction with the product before it; `rest` is its other operand.
    pub(crate) fn fuse(&mut self, product: Origin, rest: Origin) {
        let Some(product) = product else {
            return;
        };
        let multiply = self.operations[product.0 as usize];
        if multiply.link != Some(Link::Multiply) {
            return;
        }
        let mut after = self.after(product.0).to_vec();
        after.extend(rest);
        let fused = self.push(Some(Link::Fma), multiply.issued, multiply.depth, after);
        if fused.is_some() {
            let gone = &mut self.operations[product.0 as usize];
            (gone.link, gone.issued, gone.depth) = (None, 0.0, 0.0);
        }
        let frame = self.frame();
        frame.made = fused;
        frame.inputs.retain(|input| *input != product);
    }

    /// A call of a body that is executed once for all its calls: this many operations in a row.
    pub(crate) fn call(&mut self, operations: f64) {
        let waits = self.waits();
        let made = self.push(Some(Link::Call), operations, operations, waits);
        self.frame().made = made;
    }

    /// An integer that the expression at hand computed.
    pub(crate) fn computed(&mut self, id: Id) {
        if self.paused == 0
            && let Some(made) = self.frame().made
        {
            self.integers.insert(id, made);
        }
    }

    /// An integer that was computed before.
    pub(crate) fn known(&self, id: Id) -> Origin {
        self.integers.get(&id).copied()
    }

    /// The value to be stored is complete: what is read from here on makes the address.
    pub(crate) fn settle(&mut self) {
        let frame = self.frame();
        frame.settled = frame.inputs.len();
    }

    /// An instruction that forms the address of the next access.
    pub(crate) fn address(&mut self) {
        let frame = self.frame();
        let waits = frame.inputs[frame.settled..].to_vec();
        let made = self.push(Some(Link::Integer), 1.0, 1.0, waits);
        self.frame().address = made;
    }

    /// A memory instruction of the expression at hand; one that is a register issues nothing.
    pub(crate) fn access(
        &mut self,
        array: ArrayId,
        address: Id,
        op: Op,
        space: Space,
        access: usize,
        issues: bool,
    ) {
        if self.paused > 0 {
            return;
        }
        let frame = self.frame();
        let mut after: Vec<OpId> = frame.inputs.clone();
        after.extend(frame.made);
        after.extend(frame.address.take());
        if op != Op::Load {
            after.extend(frame.loads.iter().copied());
        }
        if op != Op::Store {
            after.extend(self.stored.get(&(array, address)));
        }
        let link = issues.then_some(match (op, space) {
            (Op::Atomic, _) => Link::Atomic,
            (Op::Store, _) => Link::Store,
            (Op::Load, Space::Shared) => Link::SharedLoad,
            (Op::Load, Space::Constant) => Link::ConstantLoad,
            (Op::Load, Space::Local) => Link::LocalLoad,
            (Op::Load, Space::Global | Space::Texture) => Link::GlobalLoad,
        });
        let size = f64::from(u8::from(issues));
        let Some(made) = self.push(link, size, size, after) else {
            return;
        };
        if issues {
            self.operations[made.0 as usize].access = Some(access as u32);
        }
        if op != Op::Store {
            self.frame().loads.push(made);
        }
        if op != Op::Load {
            self.stored.insert((array, address), made);
        }
        if let Some(open) = self.open.last_mut() {
            open.touched.push((array, address, op, made));
        }
    }

    // ---- control -------------------------------------------------------------------------------

    /// A barrier, or a side of a branch: what follows is a stretch of its own.
    pub(crate) fn region(&mut self, line: u32) {
        if self.paused == 0 {
            self.regions.push(Region { line });
        }
    }

    pub(crate) fn enter_loop(&mut self, site: Site) {
        if self.paused > 0 {
            return;
        }
        self.region(site.line);
        self.open.push(Open {
            site,
            entries: FxHashMap::default(),
            first: self.operations.len() as u32,
            touched: Vec::new(),
        });
    }

    /// A variable at the beginning of an iteration.
    pub(crate) fn entry(&mut self, var: VarId, before: Origin) -> Origin {
        let entry = self.push(None, 0.0, 0.0, before)?;
        if let Some(open) = self.open.last_mut() {
            open.entries.insert(var, (before, entry));
        }
        Some(entry)
    }

    /// The end of a loop's body: each variable that moves with its name and its value there. Afterwards each comes
    /// from what is returned. `next` gives an address in the next iteration.
    pub(crate) fn leave_loop(
        &mut self,
        (outer, inner): (usize, usize),
        values: &[(VarId, String, Origin)],
        next: &mut dyn FnMut(Id) -> Id,
        array: &dyn Fn(ArrayId) -> String,
    ) -> FxHashMap<VarId, Origin> {
        let mut after = FxHashMap::default();
        if self.paused > 0 {
            return after;
        }
        let Some(open) = self.open.pop() else {
            return after;
        };
        let index = self.loops.len() as u32;
        let end = self.operations.len() as u32;
        self.loops.push(Looped {
            site: open.site,
            outer,
            inner,
            first: open.first,
            end,
        });
        self.region(open.site.line);
        for (var, name, value) in values {
            let Some(&(before, from)) = open.entries.get(var) else {
                continue;
            };
            let carried = value.filter(|to| *to != from);
            let repeats = carried.map(|to| {
                self.handed.push(Handed {
                    in_loop: index,
                    name: name.clone(),
                    from,
                    to,
                });
                self.handed.len() as u32 - 1
            });
            let exit = self.push(None, 0.0, 0.0, before.into_iter().chain(*value));
            if let Some(exit) = exit {
                self.operations[exit.0 as usize].repeats = repeats;
            }
            after.insert(*var, exit);
        }
        self.through_memory(index, &open.touched, next, array);
        after
    }

    /// Loads that read what a store of the iteration before wrote.
    fn through_memory(
        &mut self,
        in_loop: u32,
        touched: &[(ArrayId, Id, Op, OpId)],
        next: &mut dyn FnMut(Id) -> Id,
        array: &dyn Fn(ArrayId) -> String,
    ) {
        let loads: Vec<_> = touched
            .iter()
            .filter(|(_, _, op, _)| *op != Op::Store)
            .collect();
        let stores: Vec<_> = touched
            .iter()
            .filter(|(_, _, op, _)| *op != Op::Load)
            .collect();
        if loads.len() * stores.len() > MOST_PAIRS {
            self.partial = true;
            return;
        }
        for (of, address, _, load) in loads {
            if stores.iter().all(|(to, ..)| to != of) {
                continue;
            }
            let next = next(*address);
            for (_, _, _, store) in stores
                .iter()
                .filter(|(to, written, ..)| to == of && *written == next)
            {
                self.handed.push(Handed {
                    in_loop,
                    name: array(*of),
                    from: *load,
                    to: *store,
                });
            }
        }
    }

    fn after(&self, op: u32) -> &[OpId] {
        let operation = &self.operations[op as usize];
        &self.edges[operation.first as usize..][..operation.count as usize]
    }

    /// What is known when all has been executed: the facts, and for each access its first use.
    pub(crate) fn finish(
        self,
        accesses: usize,
        executions: &[Executions],
        latency: &dyn Fn(Link) -> f64,
    ) -> (Dependence, Vec<Option<FirstUse>>) {
        if self.overflowed {
            return (Dependence::default(), vec![None; accesses]);
        }
        chains::facts(&self, accesses, executions, latency)
    }
}

/// Cycles from the issue of one operation to that of one that waits for it.
pub(crate) fn latency_on(profile: &Profile, link: Link) -> f64 {
    match link {
        Link::Add
        | Link::Multiply
        | Link::Fma
        | Link::Divide
        | Link::Integer
        | Link::Conversion
        | Link::Tensor
        | Link::Call => profile.arithmetic_latency,
        Link::Special => profile.sfu_latency,
        Link::SharedLoad => profile.shared_latency,
        Link::ConstantLoad => profile.l1_latency.unwrap_or(profile.shared_latency),
        Link::GlobalLoad | Link::LocalLoad | Link::Atomic => profile.dram_latency,
        Link::Store => 0.0,
    }
}
