//! What the parts of a loop do, found without building them.

use rustc_hash::{FxHashMap, FxHashSet};
use warplens_ir::{
    BinaryOp, Effect, Expr, ExprKind, Function, LoopKind, MathClass, Stmt, StmtKind, Storage, Type,
    VarId, functions,
};

use super::Builder;
use super::matrices;
use super::parts::Parts;
use super::syntactic::{is_easy_divisor, library_cost, moving, reads_memory, shape, variables};
use super::tally::{Counts, Touched};
use super::versions::Object;
use crate::thresholds::nvcc;

/// Looks at what statements do without building them.
pub(super) struct Walk<'a, 'b, 'k> {
    pub(super) builder: &'a Builder<'k>,
    pub(super) touched: &'b mut Touched,
    /// Loops around.
    pub(super) depth: u32,
    /// Functions around.
    pub(super) functions: u32,
    /// What the loop assigns, where that is known.
    pub(super) varies: Option<&'b FxHashSet<VarId>>,
    /// The memory that the loop may change, where that is known.
    pub(super) changes: Option<&'b FxHashSet<Object>>,
    /// The places that the loop stores to, where they are known.
    pub(super) stored: Option<&'b FxHashSet<u64>>,
    /// Within an address.
    pub(super) addressing: bool,
}

impl Walk<'_, '_, '_> {
    /// What a part does where only these vary.
    fn inside(&mut self, varies: &FxHashSet<VarId>, look: impl FnOnce(&mut Walk)) -> Touched {
        let mut touched = Touched::default();
        let mut walk = Walk {
            builder: self.builder,
            touched: &mut touched,
            depth: self.depth + 1,
            functions: self.functions,
            varies: Some(varies),
            changes: self.changes,
            stored: self.stored,
            addressing: false,
        };
        look(&mut walk);
        touched
    }

    pub(super) fn all(&mut self, parts: Parts) {
        self.statements(parts.body);
        for part in parts.condition.into_iter().chain(parts.step) {
            self.expression(part);
        }
    }

    /// An index, and which array it goes into.
    fn subscript(&mut self, base: &Expr, index: &Expr) {
        if !self.is_fixed(index) {
            self.touched.subscripted.extend(base.base_variable());
        }
        self.index(index);
    }

    /// What it computes is part of an address.
    fn index(&mut self, index: &Expr) {
        let outer = std::mem::replace(&mut self.addressing, true);
        self.expression(index);
        self.addressing = outer;
    }

    /// Adds operations that are not part of an address.
    fn works(&mut self, operations: u64) {
        if !self.addressing {
            self.touched.work += operations;
        }
    }

    /// True for an element of an array of the thread's own with numbers as subscripts: LLVM has a register in its place before it
    /// looks at loops.
    fn is_register(&self, place: &Expr) -> bool {
        match &place.kind {
            ExprKind::Index(base, index) => {
                matches!(index.kind, ExprKind::Int(_))
                    && match &base.kind {
                        ExprKind::Var(id) => {
                            let var = self.builder.kernel.var(*id);
                            var.storage == Storage::Local && matches!(var.ty, Type::Array(..))
                        }
                        _ => self.is_register(base),
                    }
            }
            _ => false,
        }
    }

    /// A load, but for one of what the loop leaves alone.
    fn load(&mut self, place: &Expr) {
        let moves = match &place.kind {
            ExprKind::Index(base, index) => self.address(base, index) > 0,
            _ => true,
        };
        // What the iteration before stored there.
        if !moves
            && shape(place).is_some_and(|shape| self.stored.is_some_and(|all| all.contains(&shape)))
        {
            self.touched.weight += 1;
            return;
        }
        if moves {
            self.moves(place);
        }
        if let Some(changes) = self.changes
            && !changes.contains(&Object::Everything)
            && !self.builder.is_changed(place, changes)
        {
            if let ExprKind::Index(base, index) = &place.kind
                && self.is_fixed(base)
                && self.is_fixed(index)
            {
                // Loaded before the loop.
                return;
            }
            // Loaded before in the iteration.
            if let Some(shape) = shape(place)
                && !self.touched.loaded.insert(shape)
            {
                return;
            }
        }
        self.touched.weight += 1;
        // What is in registers in the end is no load to the assembler.
        if self.is_own(place) {
            return;
        }
        self.touched.loads += 1;
        let near = matches!(self.builder.object_of(place), Object::Shared(_));
        self.touched.fetches += u64::from(!near);
        self.touched.work += 1;
    }

    /// True for a place in an array of the thread's own, itself or by a pointer into it.
    fn is_own(&self, place: &Expr) -> bool {
        place
            .base_variable()
            .is_some_and(|id| self.touched.own.contains(&id) || self.builder.is_own_array(id))
    }

    /// What an address costs: nothing where the loop does not change it.
    fn address(&self, base: &Expr, index: &Expr) -> u64 {
        u64::from(!(self.is_fixed(base) && self.is_fixed(index)))
    }

    /// A place that is another one in each iteration.
    fn moves(&mut self, place: &Expr) {
        let all = moving(place);
        if let ExprKind::Index(_, index) = &place.kind
            && self.is_multiple(index)
        {
            let by_lane = |id: &VarId| {
                let stays = self.varies.is_some_and(|varies| !varies.contains(id));
                let held = self.builder.env.get(&(*id, 0));
                stays && held.is_some_and(|v| self.builder.depends_on_thread(*v, 0))
            };
            self.touched.strided |= all.iter().any(by_lane);
        } else {
            self.touched.stepped = true;
        }
        self.touched.moved.insert(all);
    }

    /// True for a sum with a product of what varies and a power of two.
    fn is_multiple(&self, part: &Expr) -> bool {
        let part = part.without_casts();
        match &part.kind {
            ExprKind::Binary(BinaryOp::Mul, a, b) => {
                let number = |side: &Expr| {
                    let number = self.builder.plain_number(side);
                    self.is_fixed(side) && number.is_some_and(|by| by.count_ones() == 1)
                };
                !self.is_fixed(part) && (number(a) || number(b))
            }
            ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                self.is_multiple(a) || self.is_multiple(b)
            }
            _ => false,
        }
    }

    /// True for a place that stays, or whose subscript holds a product of what varies.
    fn is_scaled(&self, place: &Expr) -> bool {
        fn product(walk: &Walk, part: &Expr) -> bool {
            match &part.without_casts().kind {
                ExprKind::Binary(BinaryOp::Mul | BinaryOp::Shl, ..) => !walk.is_fixed(part),
                ExprKind::Binary(_, a, b) => product(walk, a) || product(walk, b),
                _ => false,
            }
        }
        match &place.kind {
            ExprKind::Index(base, index) if self.address(base, index) == 0 => true,
            ExprKind::Index(base, index) => self.is_scaled(base) || product(self, index),
            ExprKind::Field(base, _) | ExprKind::Cast(_, base) => self.is_scaled(base),
            ExprKind::Deref(pointer) => product(self, pointer),
            _ => false,
        }
    }

    /// True for what is computed before the loop.
    fn is_fixed(&self, expression: &Expr) -> bool {
        let Some(varies) = self.varies else {
            return false;
        };
        if reads_memory(expression) {
            return false;
        }
        let mut reads = Vec::new();
        variables(expression, &mut reads);
        !reads.iter().any(|id| varies.contains(id))
    }

    pub(super) fn statements(&mut self, statements: &[Stmt]) {
        for statement in statements {
            match &statement.kind {
                StmtKind::Declare(id, value) => {
                    self.touched.assigned.insert(*id);
                    if let Some(value) = value {
                        self.expression(value);
                        self.own_array(*id, value);
                    }
                }
                StmtKind::Expr(value) => self.expression(value),
                StmtKind::If(condition, then, otherwise) => {
                    self.touched.weight += 1;
                    self.works(1);
                    self.expression(condition);
                    let before = self.touched.loads + self.touched.stores;
                    self.statements(then);
                    self.statements(otherwise);
                    if self.touched.loads + self.touched.stores > before {
                        // Two branches and what they choose.
                        self.touched.forks = true;
                        self.touched.weight += nvcc().size.branch;
                    }
                }
                StmtKind::Loop {
                    init,
                    condition,
                    step,
                    body,
                    ..
                } => {
                    let parts = Parts {
                        kind: LoopKind::For,
                        control: None,
                        condition: condition.as_ref(),
                        step: step.as_ref(),
                        body,
                    };
                    // A loop within counts once per iteration: fully unrolled, its induction variable is a constant.
                    let trips = self.constant_trips(init, parts);
                    let outer = self.varies;
                    if let (Some(varies), true) = (outer, trips.is_some()) {
                        let mut without = varies.clone();
                        let mut counters = Touched::default();
                        let mut walk = Walk {
                            builder: self.builder,
                            touched: &mut counters,
                            depth: 0,
                            functions: 0,
                            varies: None,
                            changes: None,
                            stored: None,
                            addressing: false,
                        };
                        walk.statements(init);
                        without.retain(|id| !counters.assigned.contains(id));
                        let inner = self.inside(&without, |walk| walk.all(parts));
                        let turns = trips.unwrap_or(1);
                        self.touched.add(inner, turns);
                    } else {
                        self.statements(init);
                        let mut inner = Touched::default();
                        std::mem::swap(&mut inner, self.touched);
                        self.depth += 1;
                        self.all(parts);
                        self.depth -= 1;
                        std::mem::swap(&mut inner, self.touched);
                        let unknown = trips.is_none() && step.is_some();
                        if unknown && !inner.exits && !inner.loops {
                            // It is unrolled and has a remainder loop, each with its tests.
                            if self.builder.is_counted(parts, &inner) || !inner.together {
                                let size = &nvcc().size;
                                inner.weight = (inner.weight)
                                    .saturating_mul(size.unknown_loop_copies)
                                    .saturating_add(size.unknown_loop_tests);
                            }
                            self.touched.add(inner, 1);
                        } else {
                            self.touched.add(inner, trips.unwrap_or(2).max(1));
                        }
                    }
                    if trips.is_none() {
                        self.touched.loops = true;
                    } else {
                        self.touched.fully_unrolled = true;
                    }
                }
                StmtKind::Block(inner) => self.statements(inner),
                StmtKind::Switch(_, inner) => {
                    self.depth += 1;
                    self.statements(inner);
                    self.depth -= 1;
                }
                StmtKind::Return(value) => {
                    if self.functions == 0 {
                        self.touched.exits = true;
                    }
                    if let Some(value) = value {
                        self.expression(value);
                    }
                }
                StmtKind::Break => self.touched.exits |= self.depth == 0,
                StmtKind::Continue => self.touched.continues |= self.depth == 0,
                StmtKind::Barrier => {
                    self.touched.changes.insert(Object::Everything);
                    self.touched.together = true;
                    self.touched.weight += 1;
                    self.works(1);
                }
                StmtKind::Unknown(_) => self.touched.weight += 1,
            }
        }
    }

    /// Trips of an inner loop that starts and ends with constants.
    fn constant_trips(&self, init: &[Stmt], parts: Parts) -> Option<u64> {
        let (condition, step) = (parts.condition?, parts.step?);
        let mut numbers = FxHashMap::default();
        // What the loop around moves has no number.
        let mut inside = self.varies.cloned().unwrap_or_default();
        for statement in init {
            match &statement.kind {
                StmtKind::Declare(id, Some(value)) => {
                    numbers.insert(*id, self.builder.fold(value, &numbers, &inside)?);
                    inside.remove(id);
                }
                StmtKind::Expr(Expr {
                    kind: ExprKind::Assign(None, target, value),
                    ..
                }) => {
                    let ExprKind::Var(id) = target.kind else {
                        return None;
                    };
                    numbers.insert(id, self.builder.fold(value, &numbers, &inside)?);
                    inside.remove(&id);
                }
                _ => return None,
            }
        }
        let mut trips = 0;
        while trips < 4096 {
            if self.builder.fold(condition, &numbers, &inside)? == 0 {
                return Some(trips);
            }
            self.builder.apply(step, &mut numbers, &inside)?;
            trips += 1;
        }
        None
    }

    /// A pointer that is declared here into an array of the thread: what is written through it is not looked for.
    fn own_array(&mut self, id: VarId, value: &Expr) {
        let kernel = self.builder.kernel;
        if !matches!(kernel.var(id).ty, Type::Pointer(..)) {
            return;
        }
        let Some(root) = value.base_variable() else {
            return;
        };
        if self.touched.own.contains(&root) || self.builder.is_own_array(root) {
            self.touched.own.insert(id);
        }
        let var = kernel.var(root);
        if var.storage == Storage::Local && matches!(var.ty, Type::Array(..) | Type::Struct(_)) {
            self.touched.assigned.insert(root);
        }
        self.touched
            .assigned
            .extend(self.builder.aliases.get(&root).copied());
    }

    fn assign(&mut self, target: &Expr) {
        let through = target.base_variable();
        let aliased = through.and_then(|pointer| self.builder.aliases.get(&pointer));
        self.touched.assigned.extend(aliased.copied());
        self.touched.through.extend(through);
        match &target.kind {
            ExprKind::Var(id) => {
                self.touched.assigned.insert(*id);
                let storage = self.builder.kernel.var(*id).storage;
                if !matches!(storage, Storage::Local | Storage::Param(_)) {
                    let object = self.builder.object_of(target);
                    self.touched.changes.insert(object);
                }
            }
            ExprKind::Field(base, _) | ExprKind::Cast(_, base) => self.assign(base),
            ExprKind::Index(base, index) => {
                self.subscript(base, index);
                if matches!(base.ty, warplens_ir::Type::Pointer(..)) {
                    let object = self.builder.object_of(base);
                    self.touched.changes.insert(object);
                    self.expression(base);
                } else {
                    self.assign(base);
                }
            }
            ExprKind::List(parts) => parts.iter().for_each(|part| self.assign(part)),
            _ => {
                let object = self.builder.object_of(target);
                self.touched.changes.insert(object);
                self.expression(target);
            }
        }
    }

    pub(super) fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Unary(_, a) | ExprKind::Cast(_, a) | ExprKind::Field(a, _) => {
                self.expression(a);
            }
            ExprKind::AddressOf(a) => {
                // Who has its address may write it.
                self.assign(a);
            }
            ExprKind::Deref(a) => {
                self.load(expression);
                self.expression(a);
            }
            ExprKind::Step(_, _, a) => {
                self.touched.weight += 1;
                self.assign(a);
            }
            ExprKind::Binary(op, a, b) => {
                if self.is_fixed(expression) {
                    return;
                }
                let float = !expression.ty.is_int() || !a.ty.is_int();
                let divides = matches!(op, BinaryOp::Div | BinaryOp::Rem);
                let by_shift = || {
                    let number = self.builder.plain_number(b);
                    number.is_some_and(|by| by.count_ones() == 1)
                };
                self.touched.divides |= divides && !float && self.addressing && !by_shift();
                if divides && !is_easy_divisor(b, float) {
                    self.touched.calls |= float;
                    let size = &nvcc().size;
                    let (operations, machine) = if float {
                        (size.divide_float, size.divide_float_machine)
                    } else {
                        (size.divide_integer, size.divide_integer_machine)
                    };
                    self.touched.weight += operations;
                    self.works(machine);
                } else {
                    // A product with a counter is widened.
                    self.touched.weight += 1 + u64::from(*op == BinaryOp::Mul && !float);
                    self.works(1);
                    self.touched.flops += u64::from(float);
                }
                self.expression(a);
                self.expression(b);
            }
            ExprKind::Index(a, b) => {
                self.touched.weight += self.address(a, b);
                if !matches!(expression.ty, Type::Array(..)) {
                    self.load(expression);
                }
                self.index(a);
                self.subscript(a, b);
            }
            ExprKind::Assign(op, target, value) => {
                // What one instruction gives several registers.
                let given = matches!(value.kind, ExprKind::Field(..)) && self.is_register(target);
                let memory = !given && !matches!(target.kind, ExprKind::Var(_));
                self.touched.weight += u64::from(op.is_some());
                self.works(u64::from(op.is_some()));
                self.touched.flops += u64::from(op.is_some() && target.ty.is_float());
                if memory {
                    self.touched.weight += 2;
                    self.touched.stores += 1;
                    self.touched.work += 1;
                    if !matches!(self.builder.object_of(target), Object::Shared(_)) {
                        self.touched.far_stores += 1;
                        self.touched.scaled |= self.is_scaled(target);
                    }
                    let moves = match &target.kind {
                        ExprKind::Index(a, b) => self.address(a, b),
                        _ => 0,
                    };
                    self.touched.weight += moves;
                    if moves > 0 {
                        self.moves(target);
                    }
                    self.touched.stored.extend(shape(target));
                    match op {
                        // What the iteration before stored.
                        Some(_) if moves == 0 => self.touched.weight += 2,
                        Some(_) => self.load(target),
                        None => {}
                    }
                }
                self.assign(target);
                self.expression(value);
            }
            ExprKind::Select(a, b, c) => {
                self.touched.weight += 1;
                self.works(1);
                self.expression(a);
                let before = self.touched.loads;
                self.expression(b);
                self.expression(c);
                self.touched.forks |= self.touched.loads > before;
            }
            ExprKind::Call(function, parts) => {
                let (function, _) = function.plain();
                for fragment in matrices::given_to(function, parts) {
                    self.assign(fragment);
                }
                match function {
                    Function::Rows { store: false, .. } => {}
                    Function::Bulk { .. } | Function::BulkBox { .. } => {
                        self.touched.changes.insert(Object::Everything);
                    }
                    Function::Atomic(..)
                    | Function::Store
                    | Function::Tile { .. }
                    | Function::Rows { .. } => {
                        self.touched.far_stores += 1;
                        self.touched
                            .through
                            .extend(parts.first().and_then(Expr::base_variable));
                        let object = parts.first().map(|place| self.builder.object_of(place));
                        self.touched.changes.extend(object);
                    }
                    Function::Ignored(Effect::Fence | Effect::Print, _) => {
                        self.touched.changes.insert(Object::Everything);
                    }
                    Function::WarpExchange(..) => self.touched.together = true,
                    // The assembler leaves it alone.
                    Function::Texture { .. } | Function::Math(MathClass::Tensor, _) => {
                        self.touched.calls = true;
                    }
                    _ => {}
                }
                let (cost, machine) = match function {
                    Function::Math(warplens_ir::MathClass::Special, name) => {
                        let double = matches!(expression.ty, Type::Float { bits: 64, .. });
                        let small = functions::is_approximate(name);
                        self.touched.calls |= double || !small;
                        library_cost(name, small && !double)
                    }
                    _ => (1, 1),
                };
                self.touched.weight += cost;
                self.works(machine);
                let product = matches!(function, Function::Math(MathClass::Tensor, _));
                for part in parts {
                    if !(product && self.is_register(part)) {
                        self.expression(part);
                    }
                }
            }
            ExprKind::List(parts) | ExprKind::Opaque(_, parts) => {
                for part in parts {
                    self.expression(part);
                }
            }
            ExprKind::Apply(routine, parts) => {
                for part in parts {
                    self.expression(part);
                }
                let id = *routine;
                let routine = self.builder.kernel.routine(id);
                self.touched.assigned.extend(routine.params.iter().copied());
                self.touched.assigned.extend(routine.result);
                for (param, argument) in routine.params.iter().zip(parts) {
                    self.own_array(*param, argument);
                }
                self.functions += 1;
                let depth = std::mem::replace(&mut self.depth, 1);
                // A second call does the same.
                let known = self.touched.called.get(&id).copied();
                if let Some(known) = known {
                    for (count, more) in self.touched.counts().into_iter().zip(known) {
                        *count = count.saturating_add(more);
                    }
                } else if self.functions < 12 {
                    self.touched.called.insert(id, Counts::default());
                    let before = self.touched.counts().map(|count| *count);
                    self.statements(&routine.body);
                    let after = self.touched.counts().map(|count| *count);
                    let each = std::array::from_fn(|at| after[at] - before[at]);
                    self.touched.called.insert(id, each);
                }
                self.depth = depth;
                self.functions -= 1;
            }
            ExprKind::Inline(statements, result) => {
                self.touched.assigned.extend(*result);
                self.functions += 1;
                let depth = std::mem::replace(&mut self.depth, 1);
                self.statements(statements);
                self.depth = depth;
                self.functions -= 1;
            }
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => {}
        }
    }
}

/// Pointer parameters that some statement writes through, as far as that is plain.
pub(super) fn written(kernel: &warplens_ir::Kernel, builder: &Builder) -> FxHashSet<VarId> {
    let mut touched = Touched::default();
    let mut walk = Walk {
        builder,
        touched: &mut touched,
        depth: 0,
        functions: 0,
        varies: None,
        changes: None,
        stored: None,
        addressing: false,
    };
    walk.statements(&kernel.body);
    touched.through
}
