//! The state of a symbolic execution: what its statements and expressions read and write.
//!
//! In: a request. What holds: everything that is noted here is a draft; `results` measures it.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{Kernel, Reason, Storage, Type, VarId};
use warplens_machine::Profile;
use warplens_symbolic::{Arena, BinaryOp, Domain, Id, Interval, Node, Symbol, SymbolKind};

use crate::Request;
use crate::bodies::Routines;
use crate::cases::MOST_TURNS;
use crate::chance;
use crate::context::{Chances, Context, Origin as GuardOrigin};
use crate::copies::Copies;
use crate::dependence::Graph;
use crate::draft::{AccessDraft, BarrierDraft, BranchDraft, ControlDraft, From};
use crate::env::Env;
use crate::facts::{
    Assumption, CopiedLine, NotUnderstood, OpClass, Operator, SharedArray, Site, Source,
};
use crate::flow::Draft;
use crate::motion::Advance;
use crate::open::Open;
use crate::value::{Array, ArrayId, Doubt, Held, Part, PartId, Stored, address};
use crate::why::NoValue;

/// Statements of short loops that are gone through iteration by iteration for one kernel, at most.
const MOST_GONE_THROUGH: u32 = 4096;

/// Under which conditions control left a stretch of statements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exits {
    pub(crate) returned: Id,
    pub(crate) broke: Id,
    pub(crate) continued: Id,
}

pub(crate) struct Executor<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) profile: &'a Profile,
    pub(crate) request: &'a Request<'a>,
    pub(crate) arguments: &'a [(String, i64, bool)],
    pub(crate) reals: &'a [(String, u64)],
    pub(crate) arena: Arena,
    pub(crate) domain: Domain,
    pub(crate) thread: [Id; 3],
    pub(crate) block: [Id; 3],
    pub(crate) block_dim: [Id; 3],
    pub(crate) grid_dim: [Id; 3],
    pub(crate) env: Env,
    pub(crate) arrays: Vec<Array>,
    pub(crate) arrays_by_var: FxHashMap<VarId, ArrayId>,
    /// Integers in the thread's own arrays.
    pub(crate) elements: FxHashMap<ArrayId, Vec<Stored>>,
    /// The variables that are no arrays and of which the pieces are elements.
    pub(crate) mirrored: FxHashSet<VarId>,
    /// Some value has pieces.
    pub(crate) has_pieces: bool,
    /// Looks at this depth see the thread's own memory as it will be.
    pub(crate) tracked: u32,
    /// A loop is gone through iteration by iteration.
    pub(crate) goes_through: bool,
    /// Such a loop cannot be gone through.
    pub(crate) abandoned: bool,
    /// Statements that may still be gone through so.
    pub(crate) statements_left: u32,
    /// What the thread's own arrays hold as a whole.
    pub(crate) held: FxHashMap<ArrayId, Held>,
    /// Copies past the registers on their way.
    pub(crate) copies: Copies,
    /// Products of matrices that warps issue and wait for later.
    pub(crate) products: Copies,
    /// Where arrays begin, of those whose address as a number matters.
    pub(crate) bases: FxHashMap<ArrayId, Id>,
    /// Expressions evaluated so far.
    pub(crate) steps: u32,
    pub(crate) contexts: Vec<Context>,
    pub(crate) context: usize,
    /// Greater than 0 while a loop's body is only looked at: nothing is recorded.
    pub(crate) dry: u32,
    /// The most iterations of each loop around, a guess where they are not known.
    pub(crate) turns: Vec<i64>,
    /// What holds where variables of the loops around move on.
    pub(crate) advances: Vec<Advance>,
    /// How many values loops were found to hand on, see `loops`.
    pub(crate) handed: usize,
    pub(crate) flow: Vec<Draft>,
    pub(crate) dependence: Graph,
    pub(crate) routines: Routines,
    /// Why unknown values are unknown, where there is more to say.
    pub(crate) reasons: FxHashMap<Symbol, NoValue>,
    /// Unknown values that move evenly along a sum of coordinates.
    pub(crate) evenly: FxHashMap<Symbol, Id>,
    /// What a counter gave back that threads add to, and how many threads add to it.
    pub(crate) tickets: FxHashMap<Symbol, f64>,
    /// When the value at hand has none.
    pub(crate) doubted: Option<Doubt>,
    /// The expression whose value the statement at hand does not use.
    pub(crate) discarded: Option<Site>,
    pub(crate) accesses: Vec<AccessDraft>,
    pub(crate) branches: Vec<BranchDraft>,
    /// Where control parted.
    pub(crate) ways: Vec<ControlDraft>,
    pub(crate) barriers: Vec<BarrierDraft>,
    pub(crate) counts: FxHashMap<(usize, OpClass), f64>,
    /// Those that are no accesses and no branches, by context, line and kind.
    pub(crate) operators: FxHashMap<(usize, u32, Operator), f64>,
    pub(crate) static_operations: u32,
    /// Values already computed, by the loop they were computed in.
    pub(crate) computed: FxHashSet<(Option<Symbol>, Id)>,
    pub(crate) addressed: FxHashSet<(Option<Symbol>, ArrayId, Id)>,
    pub(crate) indexed_local: FxHashSet<ArrayId>,
    /// Loads that the next access waits for.
    pub(crate) pending: Vec<usize>,
    pub(crate) placeholders: FxHashMap<u32, Id>,
    /// The symbols of integer parameters.
    pub(crate) parameters: FxHashMap<VarId, Id>,
    pub(crate) loop_counters: FxHashMap<(Part, i64), Id>,
    pub(crate) lost: Vec<NotUnderstood>,
    pub(crate) shared: Vec<(VarId, SharedArray)>,
    pub(crate) guesses: Vec<Assumption>,
    /// True while something is evaluated that is counted and no part of the models' work.
    pub(crate) counting_only: bool,
    /// Set where parameters have no values.
    pub(crate) open: Option<Open>,
    /// The calls around what is executed.
    pub(crate) way: Part,
    /// In a copy of a routine's body: what its parts are copies of.
    pub(crate) originals: Option<FxHashMap<usize, usize>>,
    /// The lines of copies of called functions: they count on behind the kernel's.
    pub(crate) copied_lines: Vec<CopiedLine>,
    /// Those by the line that was copied and that of the call.
    pub(crate) copies_known: FxHashMap<(u32, u32), u32>,
    /// True where data decides by which `return` some lane leaves the function that is executed.
    pub(crate) returns_by_data: bool,
    /// What the innermost loop assigns; nothing in a function that a `return` ends.
    pub(crate) moving: Vec<VarId>,
    /// Where the value of the innermost switch is, and its branch.
    pub(crate) switch: Option<(Site, usize)>,
    /// Branches that given contents of memory decided: nothing is assumed of them.
    pub(crate) decided: FxHashSet<usize>,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(request: &'a Request<'a>) -> Executor<'a> {
        let launch = request.launch;
        let mut arena = Arena::new();
        let domain = Domain::new(request.profile.warp_size, launch.block);
        let names = ["x", "y", "z"];
        let axes: [u8; 3] = [0, 1, 2];
        let warp = i64::from(request.profile.warp_size.max(1));
        arena.set_warps(warp, launch.block.map(|extent| extent.min(1 << 20) as i64));
        // Blocks before threads: a sum is written in the order its symbols were made.
        let block = axes.map(|axis| {
            let extent = launch.grid[axis as usize].min(i64::MAX as u64) as i64;
            let name = format!("blockIdx.{}", names[axis as usize]);
            let range = if launch.grid_source.is_assumption() {
                Interval::new(0, MOST_TURNS)
            } else {
                Interval::ANY
            };
            arena.symbol(&name, SymbolKind::Counter { extent }, range)
        });
        let thread = axes.map(|axis| {
            let name = format!("threadIdx.{}", names[axis as usize]);
            arena.symbol(&name, SymbolKind::Thread(axis), domain.thread_range(axis))
        });
        let fixed = |arena: &mut Arena, name: &str, value: u64, source: Source, range| {
            let kind = SymbolKind::Fixed {
                value: value as i64,
                assumed: source.is_assumption(),
            };
            arena.symbol(name, kind, range)
        };
        let block_dim = axes.map(|axis| {
            let name = format!("blockDim.{}", names[axis as usize]);
            fixed(
                &mut arena,
                &name,
                launch.block[axis as usize],
                launch.block_source,
                // Where the block is assumed, all figures are: nothing is gained by other values.
                Interval::ANY,
            )
        });
        let grid_dim = axes.map(|axis| {
            let name = format!("gridDim.{}", names[axis as usize]);
            fixed(
                &mut arena,
                &name,
                launch.grid[axis as usize],
                launch.grid_source,
                if launch.grid_source.is_assumption() {
                    Interval::new(1, MOST_TURNS)
                } else {
                    Interval::ANY
                },
            )
        });
        let counters = block.iter().filter_map(|&id| arena.as_symbol(id)).collect();
        let top = Context {
            parent: None,
            counters,
            guards: Vec::new(),
            chances: Chances::CERTAIN,
            warp_factor: 1.0,
            lane_factor: 1.0,
            why: None,
            by_data: false,
            loop_depth: 0,
            innermost: None,
            routine: None,
            loose: Vec::new(),
        };
        Executor {
            kernel: request.kernel,
            profile: request.profile,
            request,
            arguments: request.arguments,
            reals: request.reals,
            arena,
            domain,
            thread,
            block,
            block_dim,
            grid_dim,
            env: Env::new(request.kernel.vars.len()),
            arrays: Vec::new(),
            arrays_by_var: FxHashMap::default(),
            elements: FxHashMap::default(),
            mirrored: FxHashSet::default(),
            has_pieces: false,
            tracked: 0,
            goes_through: false,
            abandoned: false,
            statements_left: MOST_GONE_THROUGH,
            held: FxHashMap::default(),
            copies: Copies::default(),
            products: Copies::default(),
            bases: FxHashMap::default(),
            steps: 0,
            contexts: vec![top],
            context: 0,
            dry: 0,
            turns: Vec::new(),
            advances: Vec::new(),
            handed: 0,
            flow: Vec::new(),
            dependence: Graph::new(request.kernel.name_site.line),
            routines: Routines::default(),
            reasons: FxHashMap::default(),
            evenly: FxHashMap::default(),
            tickets: FxHashMap::default(),
            doubted: None,
            discarded: None,
            accesses: Vec::new(),
            branches: Vec::new(),
            ways: Vec::new(),
            barriers: Vec::new(),
            counts: FxHashMap::default(),
            operators: FxHashMap::default(),
            static_operations: 0,
            computed: FxHashSet::default(),
            addressed: FxHashSet::default(),
            indexed_local: FxHashSet::default(),
            pending: Vec::new(),
            placeholders: FxHashMap::default(),
            parameters: FxHashMap::default(),
            loop_counters: FxHashMap::default(),
            lost: request.kernel.not_understood.clone(),
            shared: Vec::new(),
            guesses: Vec::new(),
            counting_only: false,
            open: None,
            returns_by_data: false,
            moving: Vec::new(),
            switch: None,
            way: Part::whole(None),
            originals: None,
            copied_lines: Vec::new(),
            copies_known: FxHashMap::default(),
            decided: FxHashSet::default(),
        }
    }

    /// Where in the kernel a part of it is.
    pub(crate) fn origin<T>(&self, part: &T) -> PartId {
        let at = address(part);
        let original = match &self.originals {
            Some(originals) => *originals.get(&at)?,
            None => at,
        };
        Some(self.way.within(original))
    }

    /// True where something was not understood: what it does is not counted.
    pub(crate) fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(crate) fn lose(&mut self, site: Site, reason: Reason) {
        if self.dry == 0 {
            self.lost.push(NotUnderstood { site, reason });
        }
    }

    /// How probable a condition is where data decides it, and who says so; `value` is what it evaluates to.
    pub(crate) fn probability(&self, condition: &warplens_ir::Expr, value: Id) -> (f64, From) {
        let line = condition.site.line;
        let mut given = self.request.probabilities.iter();
        if let Some((_, probability)) = given.find(|(at, _)| *at == line) {
            return (*probability, From::Directive);
        }
        let argument = |id: VarId| {
            let name = &self.kernel.var(id).name;
            let mut given = self.request.arguments.iter();
            let found = given.find(|(of, _, assumed)| of == name && !assumed)?;
            Some(found.1)
        };
        match (chance::of(condition, &argument), self.first_come(value)) {
            ((_, From::Default), Some(probability)) => (probability, From::Ticket),
            (said, _) => said,
        }
    }

    /// The probability that a thread has drawn just one number of those that a counter gives out, or any other one.
    fn first_come(&self, condition: Id) -> Option<f64> {
        let Node::Binary(op, a, b) = *self.arena.node(condition) else {
            return None;
        };
        let (constant, terms) = self.arena.terms(a);
        let drawn = |id: Id| self.tickets.get(&self.arena.as_symbol(id)?).copied();
        let threads = match terms.as_slice() {
            [(id, 1)] if constant == 0 || self.arena.as_const(b).is_some() => drawn(*id),
            _ => None,
        };
        let one = threads.or_else(|| drawn(b))?.recip();
        match op {
            BinaryOp::Eq => Some(one),
            BinaryOp::Ne => Some(1.0 - one),
            _ => None,
        }
    }

    pub(crate) fn shared_index(&self, id: VarId) -> Option<usize> {
        self.shared.iter().position(|(var, _)| *var == id)
    }

    pub(crate) fn shared_arrays(&self) -> Vec<(VarId, SharedArray)> {
        let mut found = Vec::new();
        for (index, var) in self.kernel.vars.iter().enumerate() {
            let dynamic = match var.storage {
                Storage::Shared => false,
                Storage::DynamicShared => true,
                _ => continue,
            };
            let mut extents = Vec::new();
            let mut element = &var.ty;
            while let Type::Array(inner, extent) = element {
                let site = var
                    .extent_sites
                    .get(extents.len())
                    .copied()
                    .unwrap_or(var.site);
                extents.push((extent.unwrap_or(0), site));
                element = inner;
            }
            if let Type::Pointer(inner, _) = element {
                element = inner;
            }
            found.push((
                VarId(index as u32),
                SharedArray {
                    name: var.name.clone(),
                    site: var.site,
                    extents,
                    element_bytes: element.size() as u32,
                    bytes: if dynamic { 0 } else { var.ty.size() },
                    dynamic,
                },
            ));
        }
        found
    }

    // ---- contexts ------------------------------------------------------------------------------

    pub(crate) fn push_context(&mut self, context: Context) -> usize {
        self.contexts.push(Context {
            parent: Some(self.context),
            ..context
        });
        self.contexts.len() - 1
    }

    /// Goes where the condition holds (or does not).
    pub(crate) fn enter(&mut self, condition: Id, holds: bool, branch: usize, early_exit: bool) {
        if self.dry > 0 {
            return;
        }
        let mut context = self.contexts[self.context].clone();
        let probability = self
            .branches
            .get(branch)
            .map_or(chance::UNKNOWN, |branch| branch.probability);
        context.narrow(
            &self.arena,
            condition,
            holds,
            GuardOrigin { branch, early_exit },
            probability,
        );
        self.context = self.push_context(context);
    }

    pub(crate) fn new_branch(&mut self, draft: BranchDraft) -> usize {
        if self.dry > 0 {
            return usize::MAX;
        }
        self.branches.push(draft);
        self.branches.len() - 1
    }

    pub(crate) fn set_operations(&mut self, branch: usize, taken: u32, other: u32) {
        if let Some(draft) = self.branches.get_mut(branch) {
            draft.taken_operations = taken;
            draft.other_operations = other;
        }
    }

    pub(crate) fn no_exits(&mut self) -> Exits {
        let never = self.arena.constant(0);
        Exits {
            returned: never,
            broke: never,
            continued: never,
        }
    }

    pub(crate) fn or(&mut self, a: Id, b: Id) -> Id {
        self.arena.binary(BinaryOp::LogicalOr, a, b)
    }

    pub(crate) fn join(&mut self, a: Exits, b: Exits) -> Exits {
        Exits {
            returned: self.or(a.returned, b.returned),
            broke: self.or(a.broke, b.broke),
            continued: self.or(a.continued, b.continued),
        }
    }

    pub(crate) fn under(&mut self, condition: Id, exits: Exits) -> Exits {
        let and = |arena: &mut Arena, x: Id| arena.binary(BinaryOp::LogicalAnd, condition, x);
        Exits {
            returned: and(&mut self.arena, exits.returned),
            broke: and(&mut self.arena, exits.broke),
            continued: and(&mut self.arena, exits.continued),
        }
    }

    pub(crate) fn leaving(&mut self, exits: Exits) -> Id {
        let some = self.or(exits.returned, exits.broke);
        self.or(some, exits.continued)
    }
}
