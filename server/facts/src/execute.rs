//! Statements of the kernel, executed symbolically.

use crate::why::NoValue;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{AssumptionKind, Kernel, Stmt, StmtKind, Storage, Type, VarId, any_statement};
use warplens_machine::{Mix, Pipe, Profile};
use warplens_symbolic::{Arena, BinaryOp, Domain, Guard, Id, Interval, Symbol, SymbolKind};

use crate::access::{AccessDraft, Measure as MeasureAccess, any};
use crate::branch::{BarrierDraft, BranchDraft, From, Measure as MeasureBranch};
use crate::cases::{Cases, MOST_TURNS};
use crate::chance;
use crate::context::{Budget, Context, Executions, Origin as GuardOrigin};
use crate::counts::Open;
use crate::dependence::{Graph, Origin, latency_on};
use crate::env::{Changes, Env};
use crate::facts::{
    Arithmetic, Assumed, Assumption, BranchKind, CopiedLine, Count, NotUnderstood, OpClass,
    Operation, Operator, SharedArray, Site, Source, SourceFacts,
};
use crate::flow::{self, Draft, compute};
use crate::lockstep;
use crate::routine::Routines;
use crate::undefined::Doubt;
use crate::value::{Array, ArrayId, Kind, Part, PartId, Value, address};
use crate::ways::WayDraft;
use crate::{Request, facts};

/// The value of an integer parameter that nobody gave.
pub const DEFAULT_ARGUMENT: i64 = 1024;

/// A kernel that takes more evaluations than this is cut off, and says so.
const MOST_STEPS: u32 = 400_000;

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
    pub(crate) arena: Arena,
    pub(crate) domain: Domain,
    pub(crate) thread: [Id; 3],
    pub(crate) block: [Id; 3],
    pub(crate) block_dim: [Id; 3],
    pub(crate) grid_dim: [Id; 3],
    pub(crate) env: Env,
    pub(crate) arrays: Vec<Array>,
    pub(crate) arrays_by_var: FxHashMap<VarId, ArrayId>,
    /// Expressions evaluated so far.
    pub(crate) steps: u32,
    pub(crate) contexts: Vec<Context>,
    pub(crate) context: usize,
    /// Greater than 0 while a loop's body is only looked at: nothing is recorded.
    pub(crate) dry: u32,
    pub(crate) flow: Vec<Draft>,
    pub(crate) dependence: Graph,
    pub(crate) routines: Routines,
    /// Why unknown values are unknown, where there is more to say.
    pub(crate) reasons: FxHashMap<Symbol, NoValue>,
    /// When the value at hand has none.
    pub(crate) doubted: Option<Doubt>,
    pub(crate) accesses: Vec<AccessDraft>,
    pub(crate) branches: Vec<BranchDraft>,
    /// Where control parted.
    pub(crate) ways: Vec<WayDraft>,
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
    shared: Vec<(VarId, SharedArray)>,
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
    returns_by_data: bool,
    /// Where the value of the innermost switch stands, and its branch.
    switch: Option<(Site, usize)>,
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
        // Blocks before threads: a sum is written in the order its symbols were made.
        let block = axes.map(|axis| {
            let extent = launch.grid[axis as usize].min(i64::MAX as u64) as i64;
            let name = format!("blockIdx.{}", names[axis as usize]);
            let range = if launch.grid_source.is_assumption() {
                Interval::new(0, MOST_TURNS)
            } else {
                any()
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
                any(),
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
                    any()
                },
            )
        });
        let counters = block.iter().filter_map(|&id| arena.as_symbol(id)).collect();
        let top = Context {
            parent: None,
            counters,
            guards: Vec::new(),
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
            arena,
            domain,
            thread,
            block,
            block_dim,
            grid_dim,
            env: Env::new(request.kernel.vars.len()),
            arrays: Vec::new(),
            arrays_by_var: FxHashMap::default(),
            steps: 0,
            contexts: vec![top],
            context: 0,
            dry: 0,
            flow: Vec::new(),
            dependence: Graph::new(request.kernel.name_site.line),
            routines: Routines::default(),
            reasons: FxHashMap::default(),
            doubted: None,
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
            switch: None,
            way: Part::whole(None),
            originals: None,
            copied_lines: Vec::new(),
            copies_known: FxHashMap::default(),
            decided: FxHashSet::default(),
        }
    }

    pub(crate) fn run(mut self) -> SourceFacts {
        self.execute();
        self.facts()
    }

    /// Where in the kernel a part of it stands.
    pub(crate) fn origin<T>(&self, part: &T) -> PartId {
        let at = address(part);
        let original = match &self.originals {
            Some(originals) => *originals.get(&at)?,
            None => at,
        };
        Some(self.way.within(original))
    }

    /// Runs the kernel's body.
    pub(crate) fn execute(&mut self) {
        self.shared = self.shared_arrays();
        let kernel = self.kernel;
        self.block_of(&kernel.body);
    }

    /// True where something was not understood: what it does is not counted.
    pub(crate) fn has_losses(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(crate) fn lose(&mut self, site: Site, reason: &str) {
        if self.dry == 0 {
            self.lost.push(NotUnderstood {
                site,
                reason: reason.to_owned(),
            });
        }
    }

    /// How probable a condition is where data decides it, and who says so.
    pub(crate) fn probability(&self, condition: &warplens_ir::Expr) -> (f64, From) {
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
        chance::of(condition, &argument)
    }

    pub(crate) fn shared_index(&self, id: VarId) -> Option<usize> {
        self.shared.iter().position(|(var, _)| *var == id)
    }

    fn shared_arrays(&self) -> Vec<(VarId, SharedArray)> {
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
        let lanes = self.domain.warp_size() as f64;
        context.narrow(
            &self.arena,
            condition,
            holds,
            GuardOrigin { branch, early_exit },
            probability,
            lanes,
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

    fn join(&mut self, a: Exits, b: Exits) -> Exits {
        Exits {
            returned: self.or(a.returned, b.returned),
            broke: self.or(a.broke, b.broke),
            continued: self.or(a.continued, b.continued),
        }
    }

    fn under(&mut self, condition: Id, exits: Exits) -> Exits {
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

    // ---- statements ----------------------------------------------------------------------------

    /// Statements one behind the other; the context is afterwards what it was before.
    pub(crate) fn block_of(&mut self, statements: &[Stmt]) -> Exits {
        let outer = self.context;
        let mut all = self.no_exits();
        let mut live_env = None;
        for statement in statements {
            let exits = self.statement(statement);
            let left = self.leaving(exits);
            // Who went on to the next iteration, or left the loop, does not come to a later `return`.
            let elsewhere = self.or(all.broke, all.continued);
            let returned = if self.arena.as_const(elsewhere) == Some(0) {
                exits.returned
            } else {
                let here = self.arena.not(elsewhere);
                self.arena
                    .binary(BinaryOp::LogicalAnd, here, exits.returned)
            };
            all = self.join(all, Exits { returned, ..exits });
            match self.arena.as_const(left) {
                Some(0) => {}
                // The rest is never reached: it stands in the source, but changes nothing.
                Some(_) => {
                    if live_env.is_none() {
                        live_env = Some(self.env.mark());
                    }
                    if self.dry == 0 {
                        let mut context = self.contexts[self.context].clone();
                        let guard = Guard {
                            condition: left,
                            holds: false,
                        };
                        let origin = GuardOrigin {
                            branch: usize::MAX,
                            early_exit: true,
                        };
                        context.guards.push((guard, origin));
                        self.context = self.push_context(context);
                    }
                }
                None => {
                    let branch = self.branches.len().saturating_sub(1);
                    let branch = self.exit_branch(statement, branch);
                    if self.dry == 0 && branch < self.branches.len() {
                        self.enter(left, false, branch, true);
                    }
                }
            }
        }
        if let Some(mark) = live_env {
            self.env.take_back(&mark);
        }
        self.context = outer;
        all
    }

    /// The branch through which a statement was left: the one whose condition stands where it does.
    fn exit_branch(&self, statement: &Stmt, last: usize) -> usize {
        self.branches
            .iter()
            .rposition(|branch| branch.site == statement.site)
            .unwrap_or(last)
    }

    fn statement(&mut self, statement: &Stmt) -> Exits {
        self.dependence.enter();
        self.doubted = None;
        let exits = self.perform(statement);
        self.dependence.end();
        exits
    }

    fn perform(&mut self, statement: &Stmt) -> Exits {
        let mut exits = self.no_exits();
        if self.routines.failed() {
            return exits;
        }
        if self.steps > MOST_STEPS {
            if self.steps != u32::MAX {
                self.steps = u32::MAX;
                self.lost.push(NotUnderstood {
                    site: statement.site,
                    reason: "expands to too much".to_owned(),
                });
            }
            return exits;
        }
        let line = statement.site.line;
        match &statement.kind {
            StmtKind::Declare(id, init) => {
                let value = init.as_ref().map(|init| {
                    let mut value = self.eval(init);
                    let ty = &self.kernel.var(*id).ty;
                    value = self.converted(value, &init.ty, ty, line);
                    value.origin = self.dependence.result(None);
                    value
                });
                let memory = matches!(
                    self.kernel.var(*id).storage,
                    Storage::Shared | Storage::DynamicShared
                ) || matches!(self.kernel.var(*id).ty, Type::Array(..));
                if !memory {
                    self.env.set(*id, value);
                }
            }
            StmtKind::Expr(expression) => {
                self.eval(expression);
            }
            StmtKind::If(condition, then, otherwise) => {
                exits = self.branch(condition, then, otherwise);
            }
            StmtKind::Loop { .. } => exits = self.looping(statement),
            StmtKind::Block(inner) => exits = self.block_of(inner),
            StmtKind::Switch(way, inner) => exits = self.switch(way, inner),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.eval(value);
                }
                exits.returned = self.arena.constant(1);
            }
            StmtKind::Break => exits.broke = self.arena.constant(1),
            StmtKind::Continue => exits.continued = self.arena.constant(1),
            StmtKind::Barrier => {
                self.routines.touches_memory();
                if self.dry == 0 {
                    *self
                        .counts
                        .entry((self.context, OpClass::Barrier))
                        .or_insert(0.0) += 1.0;
                    *self
                        .operators
                        .entry((self.context, line, Operator::Barrier))
                        .or_insert(0.0) += 1.0;
                    self.barriers.push(BarrierDraft {
                        site: statement.site,
                        context: self.context,
                    });
                    self.flow.push(Draft::Barrier { line });
                    self.dependence.region(line);
                }
            }
            StmtKind::Unknown(_) => {}
        }
        exits
    }

    /// What an initialisation makes of a value.
    pub(crate) fn converted(&mut self, value: Value, from: &Type, to: &Type, line: u32) -> Value {
        let mut value = value;
        let float_to_int = from.is_float() && to.is_int();
        if (from.is_int() && to.is_float())
            || float_to_int
            || (from.is_float() && to.is_float() && from != to)
        {
            let issued = Mix::from([(Pipe::Conversion, 1.0)]);
            self.operation(
                Arithmetic::Conversion,
                1.0,
                &issued,
                line,
                &mut [&mut value],
            );
        }
        match (to, value.kind) {
            (Type::Int { .. }, Kind::Int(id)) => {
                let wrapped = self.convert(from, to, id);
                Value {
                    kind: Kind::Int(wrapped),
                    ..value
                }
            }
            (Type::Int { .. }, Kind::Data) => {
                let id = self.unknown(true, value.uniform);
                Value {
                    kind: Kind::Int(id),
                    ..value
                }
            }
            (Type::Int { .. }, Kind::Pointer(_, id)) => Value {
                kind: Kind::Int(id),
                ..value
            },
            (Type::Pointer(..) | Type::Unknown(_), _) => value,
            (_, Kind::Int(id)) => {
                let uniform = !self.arena.varies_by_lane(id);
                Value {
                    kind: Kind::Data,
                    uniform,
                    loads: value.loads,
                    origin: None,
                    doubt: None,
                }
            }
            _ => value,
        }
    }

    fn branch(
        &mut self,
        condition: &warplens_ir::Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
    ) -> Exits {
        let line = condition.site.line;
        let of_switch = self.switch.filter(|(site, _)| *site == condition.site);
        self.dry += u32::from(of_switch.is_some());
        let mut value = self.eval(condition);
        self.dry -= u32::from(of_switch.is_some());
        let id = self.as_int(&value);
        let truth = self.arena.truth(id);
        let outer = self.context;
        let (probability, probability_from) = self.probability(condition);
        let branch = match of_switch {
            Some((_, branch)) => branch,
            None => self.new_branch(BranchDraft {
                site: condition.site,
                text: self.quote(condition.site),
                kind: BranchKind::If,
                condition: Some(truth),
                context: outer,
                inner: None,
                taken_operations: 0,
                other_operations: 0,
                probability,
                probability_from,
                why: None,
                origin: self.origin(condition),
            }),
        };
        if self.dry == 0 && of_switch.is_none() {
            *self.counts.entry((outer, OpClass::Branch)).or_insert(0.0) += 1.0;
            let issued = Mix::from([(Pipe::Branch, 1.0)]);
            let needs = std::mem::take(&mut value.loads);
            compute(&mut self.flow, line, &issued, &needs, 1.0);
            self.dependence.issue(OpClass::Branch, &issued);
        }
        let decided = value.origin;
        self.dependence.region(line);
        let mark = self.env.mark();
        let start = self.static_operations;

        let saved = std::mem::take(&mut self.flow);
        self.enter(truth, true, branch, false);
        let taken = self.context;
        let then_exits = self.block_of(then);
        let then_changes = self.env.take_back(&mark);
        let mark = self.env.mark();
        let then_flow = std::mem::take(&mut self.flow);
        let taken_operations = self.static_operations - start;
        self.context = outer;

        self.enter(truth, false, branch, false);
        self.dependence.region(line);
        let other = self.context;
        self.parted(condition, branch, (outer, taken, Some(other)));
        let other_exits = self.block_of(otherwise);
        let other_flow = std::mem::replace(&mut self.flow, saved);
        self.context = outer;
        if of_switch.is_none() {
            self.set_operations(
                branch,
                taken_operations,
                self.static_operations - start - taken_operations,
            );
        }
        if self.dry == 0 {
            self.flow.push(Draft::Branch {
                outer,
                taken,
                other,
                then: then_flow,
                otherwise: other_flow,
                line,
            });
        }
        let other_changes = self.env.take_back(&mark);
        let then_left = self.leaving(then_exits);
        let other_left = self.leaving(other_exits);
        self.dependence.region(line);
        self.merge(
            (truth, decided),
            then_changes,
            other_changes,
            self.arena.as_const(then_left) == Some(1),
            self.arena.as_const(other_left) == Some(1),
        );
        let not = self.arena.not(truth);
        let returns = [then_exits.returned, other_exits.returned];
        self.returns_by_data |= self.hangs_on_data(truth)
            && returns
                .iter()
                .any(|&left| self.arena.as_const(left) != Some(0));
        let a = self.under(truth, then_exits);
        let b = self.under(not, other_exits);
        self.join(a, b)
    }

    /// A switch: the branches that stand for it are no branches of the source.
    fn switch(&mut self, way: &warplens_ir::Expr, branches: &[Stmt]) -> Exits {
        let (site, line) = (way.site, way.site.line);
        self.dry += 1;
        let value = self.eval(way);
        self.dry -= 1;
        let id = self.as_int(&value);
        let (probability, probability_from) = self.probability(way);
        let branch = self.new_branch(BranchDraft {
            site,
            text: self.quote(site),
            kind: BranchKind::Switch,
            condition: Some(id),
            context: self.context,
            inner: None,
            taken_operations: 0,
            other_operations: 0,
            probability,
            probability_from,
            why: None,
            origin: self.origin(way),
        });
        if self.dry == 0 {
            *self
                .counts
                .entry((self.context, OpClass::Branch))
                .or_insert(0.0) += 1.0;
            let issued = Mix::from([(Pipe::Int, 1.0), (Pipe::Branch, 1.0)]);
            compute(&mut self.flow, line, &issued, &[], 1.0);
        }
        let start = self.static_operations;
        let around = self.switch.replace((site, branch));
        let exits = self.block_of(branches);
        self.switch = around;
        self.set_operations(branch, self.static_operations - start, 0);
        exits
    }

    /// Joins the variables of two sides; a side that was left does not count.
    fn merge(
        &mut self,
        (condition, decided): (Id, Origin),
        then_changes: Changes,
        other_changes: Changes,
        then_left: bool,
        other_left: bool,
    ) {
        if then_left {
            self.env.make(other_changes);
            return;
        }
        if other_left {
            self.env.make(then_changes);
            return;
        }
        let mut changed: Vec<VarId> = then_changes
            .keys()
            .chain(other_changes.keys())
            .copied()
            .collect();
        changed.sort_unstable();
        changed.dedup();
        for id in changed {
            let before = self.env.get(id);
            let taken = then_changes
                .get(&id)
                .map_or(before, Option::as_ref)
                .cloned();
            let other = other_changes
                .get(&id)
                .map_or(before, Option::as_ref)
                .cloned();
            let (Some(a), Some(b)) = (&taken, &other) else {
                // Known on one side only: read there for the first time, or undefined on the other.
                self.env.set(id, other.or(taken));
                continue;
            };
            let origin = if a.origin == b.origin {
                a.origin
            } else {
                self.dependence.meet([a.origin, b.origin, decided])
            };
            if a.is_like(b) {
                let same = Value {
                    origin,
                    ..a.clone()
                };
                self.env.set(id, Some(same));
                continue;
            }
            let mut loads = a.loads.clone();
            loads.extend(&b.loads);
            loads.sort_unstable();
            loads.dedup();
            let (a, b) = (a.clone(), b.clone());
            let kind = match (a.kind, b.kind) {
                (Kind::Int(x), Kind::Int(y)) => Kind::Int(self.arena.select(condition, x, y)),
                (Kind::Pointer(p, x), Kind::Pointer(q, y)) if p == q => {
                    Kind::Pointer(p, self.arena.select(condition, x, y))
                }
                _ => Kind::Data,
            };
            let uniform = a.uniform && b.uniform && !self.arena.varies_by_lane(condition);
            let merged = Value {
                kind,
                loads,
                uniform,
                origin,
                doubt: None,
            };
            self.env.set(id, Some(merged));
        }
    }

    /// A device function's statements; `return` ends it.
    pub(crate) fn inline(
        &mut self,
        statements: &[Stmt],
        result: Option<VarId>,
        ty: &Type,
    ) -> Value {
        let outer = std::mem::take(&mut self.returns_by_data);
        self.block_of(statements);
        let data = std::mem::replace(&mut self.returns_by_data, outer);
        let result = match result {
            // Which of several returns a lane took is not followed.
            Some(result) if !returns_once(statements) => {
                let unknown = if ty.is_int() {
                    let id = self.unknown(data, false);
                    Value::int(id)
                } else {
                    Value::data(false)
                };
                self.env.set(result, Some(unknown));
                Some(result)
            }
            result => result,
        };
        match result {
            Some(result) => self.env.get(result).cloned().unwrap_or_else(|| {
                if ty.is_int() {
                    let id = self.unknown(false, false);
                    Value::int(id)
                } else {
                    Value::data(false)
                }
            }),
            None => Value::data(true),
        }
    }

    // ---- results -------------------------------------------------------------------------------

    fn facts(mut self) -> SourceFacts {
        let budget = Budget::new();
        let mut executions = self.executions(&budget);
        let launch = self.request.launch;
        let block_assumed = launch.block_source.is_assumption();
        let grid_assumed = launch.grid_source.is_assumption();
        let taken: Vec<&str> = self
            .kernel
            .assumed
            .iter()
            .filter(|assumption| assumption.is_taken())
            .map(|assumption| assumption.name.as_str())
            .collect();
        let symbols = |ids: [Id; 3], arena: &Arena| {
            ids.map(|id| arena.as_symbol(id).expect("made as symbols"))
        };
        let threads = symbols(self.thread, &self.arena);
        let blocks = symbols(self.block, &self.arena);

        let mut cache: FxHashMap<(Id, usize, u32, facts::Op, facts::Space), facts::Access> =
            FxHashMap::default();
        let mut accesses = Vec::with_capacity(self.accesses.len());
        let covers = self.request.covers.to_vec();
        let mut cases = Cases::new(grid_assumed.then_some(blocks), covers);
        let mut measure = MeasureAccess {
            arena: &mut self.arena,
            domain: &self.domain,
            budget: &budget,
            cases: &mut cases,
            profile: self.profile,
            threads,
            blocks,
            block_dim: self.block_dim,
            grid_dim: self.grid_dim,
            block_assumed,
            grid_assumed,
            taken: &taken,
            reasons: &self.reasons,
        };
        for draft in &self.accesses {
            let key = (
                draft.address,
                draft.context,
                draft.bytes,
                draft.op,
                draft.space,
            );
            let known = cache
                .get(&key)
                .filter(|known| draft.array == known.array && draft.doubt.is_none())
                .cloned();
            let access = match known {
                Some(known) => facts::Access {
                    site: draft.site,
                    text: draft.text.clone(),
                    field: draft.field.clone(),
                    alias: draft.alias,
                    ..known
                },
                None => {
                    let context = &self.contexts[draft.context];
                    let access = measure.access(draft, context, executions[draft.context]);
                    cache.insert(key, access.clone());
                    access
                }
            };
            accesses.push(access);
        }
        touched_fields(&mut accesses);

        let mut measure = MeasureBranch {
            arena: &mut self.arena,
            domain: &self.domain,
            budget: &budget,
            cases: &mut cases,
            contexts: &self.contexts,
            executions: &executions,
            blocks,
            block: self.block,
            threads_per_block: launch.threads_per_block(),
            block_assumed: block_assumed || !taken.is_empty(),
            grid_assumed,
            reasons: &self.reasons,
        };
        let mut branches: Vec<facts::Branch> = self
            .branches
            .iter()
            .map(|draft| measure.branch(draft))
            .collect();
        measure.hazards(&self.barriers, &mut branches);
        let assumed = block_assumed || grid_assumed || !taken.is_empty();
        let ran = self.run_on_contents(assumed, &mut accesses, &mut branches, &mut executions);
        if !ran && !assumed {
            self.count_what_is_open(&mut accesses, &mut branches);
        }

        let mut constraints: Vec<String> = accesses
            .iter()
            .flat_map(|access| &access.constraints)
            .chain(branches.iter().flat_map(|branch| &branch.constraints))
            .cloned()
            .collect();
        constraints.sort_unstable();
        constraints.dedup();
        let counts = self.sum_counts(&executions, assumed);
        let operations = self.sum_operations(&executions);
        let mut assumptions = self.assumptions();
        assumptions.append(&mut self.guesses);
        let static_shared_bytes = self.static_shared_bytes();
        let bodies = self.routines.totals(&executions);
        let flow = flow::finish(std::mem::take(&mut self.flow), &executions, &bodies);
        let ways = self.finished_ways(&executions, &branches, assumed);
        let latency = |link| latency_on(self.profile, link);
        let (dependence, first_uses) =
            self.dependence
                .finish(accesses.len(), &executions, &latency);
        for (access, first_use) in accesses.iter_mut().zip(first_uses) {
            access.first_use = first_use;
        }
        SourceFacts {
            name: self.kernel.name.clone(),
            name_site: self.kernel.name_site,
            copied_lines: self.copied_lines.into(),
            launch,
            warp_size: self.profile.warp_size,
            accesses,
            branches,
            counts,
            operations,
            flow,
            ways,
            dependence,
            shared_arrays: self.shared.into_iter().map(|(_, array)| array).collect(),
            static_shared_bytes,
            max_threads_per_block: self.kernel.max_threads,
            assumptions,
            constraints,
            not_understood: self.lost,
        }
    }

    /// Runs the launch on numbers where the symbolic execution left something open that depends on no data.
    fn count_what_is_open(&self, accesses: &mut [facts::Access], branches: &mut [facts::Branch]) {
        // What a thread's own array holds passes for data.
        let own_arrays = !self.indexed_local.is_empty();
        let by_data = |id: Id| self.arena.opaque(id) == Some(true) && !own_arrays;
        // Lanes of which data decides whether they are there: a run does not know them either.
        let unsure = |context: usize| self.contexts[context].by_data && !own_arrays;
        // Where C gives no value, one run says nothing.
        let is_open = |access: &facts::Access, draft: &AccessDraft| {
            let no_value = draft.doubt.is_some() && access.certainty == facts::Certainty::Unknown;
            !access.exact() && draft.space != facts::Space::Local && !no_value
        };
        let open_access = accesses.iter().zip(&self.accesses).any(|(access, draft)| {
            is_open(access, draft) && !by_data(draft.address) && !unsure(draft.context)
        });
        let open_branch = branches.iter().zip(&self.branches).any(|(branch, draft)| {
            branch.certainty != facts::Certainty::Exact
                && !draft.condition.is_some_and(by_data)
                && !unsure(draft.context)
        });
        if self.has_losses() || !(open_access || open_branch) {
            return;
        }
        let Some(record) = lockstep::run(&lockstep::LaunchInput {
            kernel: self.kernel,
            profile: self.profile,
            launch: &self.request.launch,
            arguments: self.arguments,
            contents: &[],
        }) else {
            return;
        };
        let ways = self.routines.ways();
        for (access, draft) in accesses.iter_mut().zip(&self.accesses) {
            if is_open(access, draft)
                && let Some(requests) = record.access(draft, &ways)
            {
                crate::access::counted(access, &requests.sums);
            }
        }
        for (branch, draft) in branches.iter_mut().zip(&self.branches) {
            if branch.certainty != facts::Certainty::Exact
                && let Some(found) = record.branch(draft, &ways)
            {
                crate::branch::counted(branch, found);
            }
        }
    }

    fn sum_counts(&self, executions: &[Executions], launch_assumed: bool) -> Vec<Count> {
        let mut counts = Vec::new();
        for class in OpClass::ALL {
            let sure = !launch_assumed && !self.has_losses();
            let (mut value, mut exact, mut some) = (0.0, sure, false);
            let mut complete = !self.has_losses();
            for (&(context, of), &operations) in &self.counts {
                if of != class {
                    continue;
                }
                some = true;
                value += operations * executions[context].lanes;
                complete &= executions[context].exact;
                exact &= executions[context].exact
                    && !self.contexts[context].hangs_on_assumption(&self.arena);
            }
            if some {
                counts.push(Count {
                    class,
                    value: Some(value),
                    exact,
                    complete,
                });
            }
        }
        counts
    }

    fn sum_operations(&self, executions: &[Executions]) -> Vec<Operation> {
        let mut sums: BTreeMap<(u32, Operator), (f64, f64)> = BTreeMap::new();
        // In a fixed order, so that sums are the same every time.
        let mut counted: Vec<_> = self.operators.iter().collect();
        counted.sort_unstable_by_key(|(key, _)| **key);
        for (&(context, line, operator), &operations) in counted {
            let (threads, warps) = sums.entry((line, operator)).or_default();
            *threads += operations * executions[context].lanes;
            *warps += operations * executions[context].warps;
        }
        sums.into_iter()
            .map(|((line, operator), (threads, warps))| Operation {
                operator,
                line,
                threads,
                warps,
            })
            .collect()
    }

    fn assumptions(&self) -> Vec<Assumption> {
        let launch = self.request.launch;
        let list = |extents: [u64; 3]| format!("{},{},{}", extents[0], extents[1], extents[2]);
        let mut found = Vec::new();
        let mut add = |symbol: Assumed, value: String, source: &str| {
            found.push(Assumption {
                symbol,
                value,
                source: source.to_owned(),
            });
        };
        for (symbol, extents, source) in [
            (Assumed::Block, launch.block, launch.block_source),
            (Assumed::Grid, launch.grid, launch.grid_source),
        ] {
            if source.is_assumption() {
                let from = if source == Source::Config {
                    "config"
                } else {
                    "default"
                };
                add(symbol, list(extents), from);
            }
        }
        for assumption in &self.kernel.assumed {
            // For what the build defines: the option that settles it.
            let source = match &assumption.kind {
                AssumptionKind::Build { .. } => format!("-D {}=…", assumption.name),
                AssumptionKind::Options {
                    place,
                    one_of_several: false,
                } => format!("build options, {place}"),
                AssumptionKind::Options { place, .. } => {
                    format!("build options, {place}, the first of several builds")
                }
                AssumptionKind::Template
                | AssumptionKind::Target
                | AssumptionKind::Unread
                | AssumptionKind::Linked
                | AssumptionKind::Conditional { .. } => "default".into(),
            };
            let name = Assumed::Named(assumption.name.clone());
            add(name, assumption.value.clone(), &source);
        }
        let mut aligned = false;
        for var in self.kernel.vars.iter().take(self.kernel.params as usize) {
            match var.ty {
                Type::Int { .. } => {
                    let given = self.arguments.iter().find(|(name, ..)| *name == var.name);
                    let (value, assumed) =
                        given.map_or((DEFAULT_ARGUMENT, true), |(_, v, assumed)| (*v, *assumed));
                    let covered = self
                        .request
                        .covers
                        .iter()
                        .any(|one| one.parameter == var.name);
                    if assumed {
                        let source = match given {
                            Some(_) if covered => "launch-site",
                            Some(_) => "config",
                            None => "default",
                        };
                        let name = Assumed::Named(var.name.clone());
                        add(name, value.to_string(), source);
                    }
                }
                Type::Pointer(..) => aligned = true,
                _ => {}
            }
        }
        if aligned || !self.shared.is_empty() {
            add(
                Assumed::Alignment,
                "pointers and shared arrays 256-byte aligned".to_owned(),
                "default",
            );
        }
        let mut stated: Vec<From> = Vec::new();
        let undecided = self.branches.iter().enumerate();
        for (_, branch) in undecided.filter(|(at, _)| !self.decided.contains(at)) {
            let data = branch.kind != BranchKind::Loop
                && branch
                    .condition
                    .is_some_and(|id| self.arena.opaque(id) == Some(true));
            let from = branch.probability_from;
            // One line for all that have the default, one for each expectation.
            let again = from == From::Default && stated.contains(&from);
            if !data || from == From::Directive || again {
                continue;
            }
            stated.push(from);
            let probability = branch.probability.to_string();
            let condition = (from != From::Default).then(|| branch.text.clone());
            let source = match from {
                From::Expectation => "__builtin_expect",
                _ => "default",
            };
            add(Assumed::Probability(condition), probability, source);
        }
        found
    }

    fn static_shared_bytes(&self) -> u64 {
        self.shared
            .iter()
            .filter(|(_, array)| !array.dynamic)
            .map(|(_, array)| array.bytes)
            .sum()
    }
}

/// True where nothing leaves a function but its end: no `return`, or one as its last statement.
fn returns_once(statements: &[Stmt]) -> bool {
    let mut count = 0;
    any_statement(statements, &mut |statement| {
        count += usize::from(matches!(statement.kind, StmtKind::Return(_)));
        false
    });
    match count {
        0 => true,
        1 => matches!(
            statements.last().map(|last| &last.kind),
            Some(StmtKind::Return(_))
        ),
        _ => false,
    }
}

/// For each array of structures the bytes of the structure that the kernel touches.
fn touched_fields(accesses: &mut [facts::Access]) {
    let mut touched: FxHashMap<(String, String), Vec<(String, u32)>> = FxHashMap::default();
    for access in accesses.iter() {
        if let Some(field) = &access.field {
            let fields = touched
                .entry((access.array.clone(), field.structure.clone()))
                .or_default();
            if !fields.iter().any(|(name, _)| *name == field.field) {
                fields.push((field.field.clone(), access.bytes_per_lane));
            }
        }
    }
    for access in accesses.iter_mut() {
        if let Some(field) = &mut access.field
            && let Some(fields) = touched.get(&(access.array.clone(), field.structure.clone()))
        {
            field.touched = fields.iter().map(|(_, bytes)| bytes).sum();
        }
    }
}
