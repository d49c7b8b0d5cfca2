//! What the threads of a block may hand to each other across a barrier: the accesses before it and behind it, and
//! which of them meet.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::ControlFlow;

use warplens_facts::facts::Site;
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Function, Kernel, LoopKind, Part, Stmt, StmtKind, Storage, Type,
    VarId, Visitor, parts, walk,
};

use super::agreed::Agreed;
use super::coordinates::{Coordinates, MOST_STEPS, Polynomial};

/// Accesses that are followed; a kernel with more is not judged.
const MOST_TOUCHES: usize = 128;
/// Barriers that are judged: each is looked at with those gone that are not needed.
const MOST_BARRIERS: usize = 12;

/// The threads between which something crosses a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// No memory at all is touched on one side of it, whatever the launch.
    Nothing,
    /// Under this launch each thread touches only what no other one does.
    Threads,
    /// Under this launch only threads of one warp touch the same.
    Warp,
    /// Threads of several warps, or that is not known.
    Block,
}

/// What crosses a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// The barrier.
    pub site: Site,
    /// Who hands something over.
    pub reach: Reach,
    /// Memory is touched between the barrier before and this one.
    pub before: bool,
    /// Memory is touched between this one and the next, or the end.
    pub after: bool,
}

/// What crosses the kernel's barriers, the last one first. A barrier that less than the block needs is taken as gone
/// for those in front of it: all of them can go at once.
pub(crate) fn crossings(kernel: &Kernel, block: [u64; 3], warp: u32) -> Vec<Crossing> {
    let mut reader = Reader::new(kernel);
    reader.lost |= has_roles(kernel);
    let flow = reader.statements(&kernel.body);
    if reader.lost || reader.touches.len() > MOST_TOUCHES || reader.barriers.len() > MOST_BARRIERS {
        return Vec::new();
    }
    let mut gone = vec![false; reader.barriers.len()];
    let mut found = Vec::new();
    for barrier in (0..reader.barriers.len()).rev() {
        let mut sides = Sides::new(&gone);
        sides.forward(&flow, Some(0));
        sides.backward(&flow, 0);
        let (before, after) = (sides.before[barrier], sides.after[barrier]);
        let reach = if before == 0 || after == 0 {
            Reach::Nothing
        } else {
            reader.reach(before, after, block, u64::from(warp))
        };
        gone[barrier] = reach < Reach::Block;
        found.push(Crossing {
            site: reader.barriers[barrier],
            reach,
            before: before != 0,
            after: after != 0,
        });
    }
    found
}

/// Memory that other memory is known apart from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    /// The thread's own: no other one sees it.
    Own,
    /// A shared array with a size.
    Shared(VarId),
    /// Shared memory whose size is given at launch: all names for it are one.
    Dynamic,
    /// What a pointer parameter leads to, or a variable of the file.
    Global(VarId),
    /// Anything.
    Any,
}

/// A place in memory: an array, bytes from its start.
#[derive(Debug, Clone)]
struct Place<'a> {
    root: Root,
    fixed: i64,
    /// Indices and the bytes of a step of each.
    terms: Vec<(&'a Expr, i64)>,
}

impl Place<'_> {
    fn of(root: Root) -> Self {
        Place {
            root,
            fixed: 0,
            terms: Vec::new(),
        }
    }
}

/// One access.
struct Touch<'a> {
    place: Place<'a>,
    bytes: u64,
    writes: bool,
    /// Where the threads of a block go, once that was asked.
    spread: OnceCell<Option<Spread>>,
}

/// Where the threads of a block go: bytes behind what all of them have in common.
struct Spread {
    common: Polynomial,
    numbers: Vec<i64>,
    /// The first and the last thread of each place.
    holders: HashMap<i64, (u64, u64)>,
}

/// The kernel as far as barriers see it.
enum Flow {
    Touch(usize),
    Barrier(usize),
    Either(Vec<Flow>, Vec<Flow>),
    /// Test, body, step; true where the body comes first.
    Loop(Vec<Flow>, Vec<Flow>, Vec<Flow>, bool),
    /// A function in place of its call: `return` leads behind it.
    Inline(Vec<Flow>),
    Break,
    Continue,
    Return,
}

/// Makes the flow of the IR, and knows what variables stand for.
struct Reader<'a> {
    kernel: &'a Kernel,
    /// Variables with one definition, and what that is.
    defined: HashMap<VarId, &'a Expr>,
    /// Variables that change.
    changed: Vec<bool>,
    touches: Vec<Touch<'a>>,
    barriers: Vec<Site>,
    /// Something whose way is not followed.
    lost: bool,
}

impl<'a> Reader<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let mut reader = Reader {
            kernel,
            defined: HashMap::new(),
            changed: kernel.vars.iter().map(|var| var.escapes).collect(),
            touches: Vec::new(),
            barriers: Vec::new(),
            lost: false,
        };
        let _ = walk::walk_block(&mut Definitions(&mut reader), &kernel.body);
        reader
    }

    fn statements(&mut self, statements: &'a [Stmt]) -> Vec<Flow> {
        let mut flow = Vec::new();
        for statement in statements {
            match &statement.kind {
                StmtKind::Declare(_, value) => {
                    if let Some(value) = value {
                        self.value(value, &mut flow);
                    }
                }
                StmtKind::Expr(value) => self.value(value, &mut flow),
                StmtKind::If(condition, then, otherwise) => {
                    self.value(condition, &mut flow);
                    let then = self.statements(then);
                    let otherwise = self.statements(otherwise);
                    flow.push(Flow::Either(then, otherwise));
                }
                StmtKind::Loop {
                    kind,
                    init,
                    condition,
                    step,
                    body,
                    ..
                } => {
                    flow.extend(self.statements(init));
                    let (mut test, mut after) = (Vec::new(), Vec::new());
                    if let Some(condition) = condition {
                        self.value(condition, &mut test);
                    }
                    let body = self.statements(body);
                    if let Some(step) = step {
                        self.value(step, &mut after);
                    }
                    flow.push(Flow::Loop(test, body, after, *kind == LoopKind::Do));
                }
                StmtKind::Block(inner) => flow.extend(self.statements(inner)),
                StmtKind::Switch(way, inner) => {
                    self.value(way, &mut flow);
                    let inner = self.statements(inner);
                    self.lost |= leaves(&inner);
                    flow.extend(inner);
                }
                StmtKind::Return(value) => {
                    if let Some(value) = value {
                        self.value(value, &mut flow);
                    }
                    flow.push(Flow::Return);
                }
                StmtKind::Break => flow.push(Flow::Break),
                StmtKind::Continue => flow.push(Flow::Continue),
                StmtKind::Barrier => {
                    flow.push(Flow::Barrier(self.barriers.len()));
                    self.barriers.push(statement.site);
                }
                StmtKind::Unknown(_) => self.anything(&mut flow),
            }
        }
        flow
    }

    fn anything(&mut self, flow: &mut Vec<Flow>) {
        self.touch(Place::of(Root::Any), 1, true, flow);
    }

    fn touch(&mut self, place: Place<'a>, bytes: u64, writes: bool, flow: &mut Vec<Flow>) {
        if place.root != Root::Own {
            flow.push(Flow::Touch(self.touches.len()));
            self.touches.push(Touch {
                place,
                bytes,
                writes,
                spread: OnceCell::new(),
            });
        }
    }

    /// What the evaluation of an expression touches.
    fn value(&mut self, expression: &'a Expr, flow: &mut Vec<Flow>) {
        match &expression.kind {
            ExprKind::Var(_) | ExprKind::Index(..) | ExprKind::Deref(_) | ExprKind::Field(..) => {
                self.place_parts(expression, flow);
                // The name of an array is an address, not a value.
                if !matches!(expression.ty, Type::Array(..)) {
                    let place = self.place(expression);
                    self.touch(place, expression.ty.size(), false, flow);
                }
            }
            ExprKind::Assign(op, target, value) => {
                self.value(value, flow);
                self.place_parts(target, flow);
                let place = self.place(target);
                if op.is_some() {
                    self.touch(place.clone(), target.ty.size(), false, flow);
                }
                self.touch(place, target.ty.size(), true, flow);
            }
            ExprKind::Step(_, _, target) => {
                self.place_parts(target, flow);
                let place = self.place(target);
                self.touch(place, target.ty.size(), true, flow);
            }
            ExprKind::AddressOf(place) => self.place_parts(place, flow),
            ExprKind::Select(condition, a, b) => {
                self.value(condition, flow);
                let (mut then, mut otherwise) = (Vec::new(), Vec::new());
                self.value(a, &mut then);
                self.value(b, &mut otherwise);
                flow.push(Flow::Either(then, otherwise));
            }
            ExprKind::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, a, b) => {
                self.value(a, flow);
                let mut then = Vec::new();
                self.value(b, &mut then);
                flow.push(Flow::Either(then, Vec::new()));
            }
            ExprKind::Inline(statements, _) => {
                let inside = self.statements(statements);
                flow.push(Flow::Inline(inside));
            }
            ExprKind::Call(function, arguments) => {
                for argument in arguments {
                    self.value(argument, flow);
                }
                self.call(function, arguments, flow);
            }
            ExprKind::Apply(..) | ExprKind::Opaque(..) => {
                expression
                    .operands()
                    .for_each(|operand| self.value(operand, flow));
                self.anything(flow);
            }
            _ => expression
                .operands()
                .for_each(|operand| self.value(operand, flow)),
        }
    }

    fn call(&mut self, function: &Function, arguments: &'a [Expr], flow: &mut Vec<Flow>) {
        let through = arguments.first().map(|pointer| {
            let bytes = match &pointer.ty {
                Type::Pointer(to, _) => to.size(),
                _ => 0,
            };
            (self.pointer(pointer, MOST_STEPS), bytes)
        });
        match (function.plain().0, through) {
            (Function::WarpExchange(..), _) => {}
            (function, _) if function.is_arithmetic() => {}
            (Function::Ignored(effect, _), _) if effect.leaves_memory() => {}
            (Function::Load, Some((place, bytes))) => self.touch(place, bytes, false, flow),
            (Function::Store, Some((place, bytes))) => self.touch(place, bytes, true, flow),
            // Atomics among them: one that publishes what other threads wrote depends on the barrier in between.
            _ => self.anything(flow),
        }
    }

    /// What has to be evaluated to find a place.
    fn place_parts(&mut self, place: &'a Expr, flow: &mut Vec<Flow>) {
        match &place.kind {
            ExprKind::Index(base, index) => {
                self.place_parts(base, flow);
                if matches!(base.ty, Type::Pointer(..)) && !matches!(base.kind, ExprKind::Var(_)) {
                    self.value(base, flow);
                }
                self.value(index, flow);
            }
            ExprKind::Deref(pointer) => self.value(pointer, flow),
            ExprKind::Field(base, _) | ExprKind::Cast(_, base) => self.place_parts(base, flow),
            ExprKind::Var(_) => {}
            _ => self.value(place, flow),
        }
    }

    fn place(&self, expression: &'a Expr) -> Place<'a> {
        match &expression.kind {
            ExprKind::Var(var) => {
                let variable = self.kernel.var(*var);
                Place::of(match variable.storage {
                    _ if variable.volatile => Root::Any,
                    Storage::Local | Storage::Param(_) | Storage::Constant => Root::Own,
                    Storage::Shared => Root::Shared(*var),
                    Storage::DynamicShared => Root::Dynamic,
                    Storage::Global => Root::Global(*var),
                })
            }
            ExprKind::Index(base, index) => {
                let mut place = if matches!(base.ty, Type::Pointer(..)) {
                    self.pointer(base, MOST_STEPS)
                } else {
                    self.place(base)
                };
                place.terms.push((index, expression.ty.size() as i64));
                place
            }
            ExprKind::Deref(pointer) => self.pointer(pointer, MOST_STEPS),
            ExprKind::Field(base, offset) => {
                let mut place = self.place(base);
                place.fixed += *offset as i64;
                place
            }
            _ => Place::of(Root::Any),
        }
    }

    /// Where a pointer leads.
    fn pointer(&self, expression: &'a Expr, steps: u32) -> Place<'a> {
        let any = Place::of(Root::Any);
        let Some(steps) = steps.checked_sub(1) else {
            return any;
        };
        match &expression.kind {
            ExprKind::Var(var) => {
                let variable = self.kernel.var(*var);
                if matches!(variable.ty, Type::Array(..)) {
                    return self.place(expression);
                }
                if self.changed[var.0 as usize] || variable.volatile {
                    return any;
                }
                match variable.storage {
                    Storage::Param(_) => Place::of(Root::Global(*var)),
                    Storage::DynamicShared => Place::of(Root::Dynamic),
                    Storage::Local => match self.defined.get(var) {
                        Some(value) => self.pointer(value, steps),
                        None => any,
                    },
                    _ => any,
                }
            }
            ExprKind::Binary(BinaryOp::Add, pointer, index) => {
                let Type::Pointer(to, _) = &expression.ty else {
                    return any;
                };
                let mut place = self.pointer(pointer, steps);
                place.terms.push((index, to.size() as i64));
                place
            }
            ExprKind::AddressOf(place) => self.place(place),
            ExprKind::Cast(_, inner) => self.pointer(inner, steps),
            ExprKind::Index(..) if matches!(expression.ty, Type::Array(..)) => {
                self.place(expression)
            }
            _ => any,
        }
    }

    /// Who meets whom: an access of the one side and one of the other, one of them a store.
    fn reach(&self, before: u128, after: u128, block: [u64; 3], warp: u64) -> Reach {
        let sides = |mask: u128| {
            let all = self.touches.iter().enumerate();
            all.filter(move |(at, _)| mask >> at & 1 == 1)
                .map(|(_, touch)| touch)
        };
        let threads = block.iter().product::<u64>();
        let mut reach = Reach::Threads;
        for first in sides(before) {
            for second in sides(after) {
                if !(first.writes || second.writes) || self.apart(first, second) {
                    continue;
                }
                let most = if threads <= warp {
                    Reach::Warp
                } else {
                    Reach::Block
                };
                let meets = self
                    .meet(first, second, block, warp)
                    .unwrap_or(Reach::Block);
                reach = reach.max(meets.min(most));
                if reach == Reach::Block {
                    return reach;
                }
            }
        }
        reach
    }

    /// True where two accesses go to memory that nothing else reaches.
    fn apart(&self, a: &Touch<'_>, b: &Touch<'_>) -> bool {
        match (a.place.root, b.place.root) {
            (Root::Any, _) | (_, Root::Any) => false,
            (Root::Global(a), Root::Global(b)) => {
                a != b && (self.kernel.var(a).restrict || self.kernel.var(b).restrict)
            }
            (a, b) => a != b,
        }
    }

    /// Which threads of a block come to the same bytes of one array; `None` where that is not known.
    fn meet<'t>(
        &self,
        a: &'t Touch<'a>,
        b: &'t Touch<'a>,
        block: [u64; 3],
        warp: u64,
    ) -> Option<Reach> {
        let size = a.bytes;
        if a.place.root != b.place.root || a.place.root == Root::Any || size == 0 || b.bytes != size
        {
            return None;
        }
        let spread = |touch: &'t Touch<'a>| {
            let made = touch.spread.get_or_init(|| self.spread(touch, block));
            made.as_ref()
        };
        let (a, b) = (spread(a)?, spread(b)?);
        if a.common != b.common {
            return None;
        }
        let mut reach = Reach::Threads;
        for (thread, place) in (0..).zip(&b.numbers) {
            let Some((first, last)) = a.holders.get(place) else {
                continue;
            };
            for other in [first, last] {
                if other / warp != thread / warp {
                    return Some(Reach::Block);
                }
                if *other != thread {
                    reach = Reach::Warp;
                }
            }
        }
        Some(reach)
    }

    fn spread(&self, touch: &Touch<'_>, block: [u64; 3]) -> Option<Spread> {
        if block.iter().product::<u64>() > 1024 {
            return None;
        }
        let mut coordinates = Coordinates::new(self.kernel, &self.defined, &self.changed, block);
        let place = coordinates.sum(touch.place.fixed, &touch.place.terms)?;
        let numbers = coordinates.numbers(&place)?;
        // Accesses of one size at multiples of it are the same or apart.
        let aligned = |number: &i64| number.rem_euclid(touch.bytes as i64) == 0;
        if !numbers.iter().all(aligned) {
            return None;
        }
        let mut holders = HashMap::new();
        for (thread, number) in (0..).zip(&numbers) {
            let held = holders.entry(*number).or_insert((thread, thread));
            held.1 = thread;
        }
        Some(Spread {
            common: Coordinates::common(&place)?,
            numbers,
            holders,
        })
    }
}

/// True where a barrier is under a condition that the threads of a block do not agree on: those of one branch then meet those of
/// another at barriers of their own, by how many came before.
fn has_roles(kernel: &Kernel) -> bool {
    let mut agreed = None;
    let mut found = false;
    parts(&kernel.body, &mut |part| {
        let Part::Statement(statement) = part else {
            return;
        };
        let (condition, inner) = match &statement.kind {
            StmtKind::If(condition, then, otherwise) => (condition, [then, otherwise]),
            StmtKind::Loop {
                condition: Some(condition),
                body,
                ..
            } => (condition, [body, body]),
            StmtKind::Switch(condition, inner) => (condition, [inner, inner]),
            _ => return,
        };
        if !found && inner.iter().any(|inner| has_barrier(inner)) {
            let agreed = agreed.get_or_insert_with(|| Agreed::of(kernel));
            found = !agreed.on(condition);
        }
    });
    found
}

fn has_barrier(statements: &[Stmt]) -> bool {
    let mut found = false;
    parts(statements, &mut |part| {
        found |= matches!(part, Part::Statement(one) if matches!(one.kind, StmtKind::Barrier));
    });
    found
}

/// True where control leaves a stretch by `break` or `continue`.
fn leaves(flow: &[Flow]) -> bool {
    flow.iter().any(|part| match part {
        Flow::Break | Flow::Continue => true,
        Flow::Either(then, otherwise) => leaves(then) || leaves(otherwise),
        _ => false,
    })
}

/// Notes where variables get a value, also in functions in place of their calls.
struct Definitions<'r, 'a>(&'r mut Reader<'a>);

impl<'a> Visitor<'a> for Definitions<'_, 'a> {
    fn statement(&mut self, statement: &'a Stmt) -> ControlFlow<()> {
        walk::walk_statement(self, statement)?;
        if let StmtKind::Declare(var, value) = &statement.kind {
            let before = value
                .as_ref()
                .map(|value| self.0.defined.insert(*var, value));
            self.0.changed[var.0 as usize] |= !matches!(before, Some(None));
        }
        ControlFlow::Continue(())
    }

    fn expression(&mut self, expression: &'a Expr) -> ControlFlow<()> {
        if let ExprKind::Assign(_, target, _) | ExprKind::Step(_, _, target) = &expression.kind {
            let mut at = &**target;
            while let ExprKind::Field(base, _) | ExprKind::Cast(_, base) = &at.kind {
                at = base;
            }
            if let ExprKind::Var(var) = at.kind {
                self.0.changed[var.0 as usize] = true;
            }
        }
        walk::walk_expression(self, expression)
    }
}

/// The accesses on each side of each barrier up to the next one, as sets; `None` is where control does not come.
struct Sides<'a> {
    gone: &'a [bool],
    before: Vec<u128>,
    after: Vec<u128>,
    /// Where `break`, `continue` and `return` lead: what arrives there (forward), or what follows there (backward).
    broken: Option<u128>,
    continued: Option<u128>,
    returned: Option<u128>,
}

fn join(a: Option<u128>, b: Option<u128>) -> Option<u128> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a | b),
        (a, b) => a.or(b),
    }
}

impl<'a> Sides<'a> {
    fn new(gone: &'a [bool]) -> Self {
        Sides {
            gone,
            before: vec![0; gone.len()],
            after: vec![0; gone.len()],
            broken: None,
            continued: None,
            returned: None,
        }
    }

    /// From the accesses since the last barrier in front of a stretch to those behind it.
    fn forward(&mut self, flow: &[Flow], mut state: Option<u128>) -> Option<u128> {
        for part in flow {
            state = match part {
                Flow::Touch(at) => state.map(|touched| touched | 1 << at),
                Flow::Barrier(barrier) => {
                    self.before[*barrier] |= state.unwrap_or(0);
                    if self.gone[*barrier] {
                        state
                    } else {
                        state.map(|_| 0)
                    }
                }
                Flow::Either(then, otherwise) => {
                    let then = self.forward(then, state);
                    join(then, self.forward(otherwise, state))
                }
                Flow::Loop(test, body, step, body_first) => {
                    let outer = (self.broken.take(), self.continued.take());
                    let mut entry = state;
                    let mut behind = None;
                    // What an iteration leaves may pass the next one; a third brings nothing new.
                    for _ in 0..3 {
                        let tested = if *body_first {
                            entry
                        } else {
                            self.forward(test, entry)
                        };
                        if !body_first {
                            behind = join(behind, tested);
                        }
                        let ended = self.forward(body, tested);
                        let mut ended = join(ended, self.continued.take());
                        if *body_first {
                            ended = self.forward(test, ended);
                            behind = join(behind, ended);
                        }
                        entry = join(entry, self.forward(step, ended));
                    }
                    behind = join(behind, self.broken.take());
                    (self.broken, self.continued) = outer;
                    behind
                }
                Flow::Inline(inside) => {
                    let outer = (
                        self.broken.take(),
                        self.continued.take(),
                        self.returned.take(),
                    );
                    let end = self.forward(inside, state);
                    let end = join(end, self.returned.take());
                    (self.broken, self.continued, self.returned) = outer;
                    end
                }
                Flow::Break => {
                    self.broken = join(self.broken, state);
                    None
                }
                Flow::Continue => {
                    self.continued = join(self.continued, state);
                    None
                }
                Flow::Return => {
                    self.returned = join(self.returned, state);
                    None
                }
            };
        }
        state
    }

    /// From the accesses up to the next barrier behind a stretch to those in front of it.
    fn backward(&mut self, flow: &[Flow], mut state: u128) -> u128 {
        for part in flow.iter().rev() {
            state = match part {
                Flow::Touch(at) => state | 1 << at,
                Flow::Barrier(barrier) => {
                    self.after[*barrier] |= state;
                    if self.gone[*barrier] { state } else { 0 }
                }
                Flow::Either(then, otherwise) => {
                    self.backward(then, state) | self.backward(otherwise, state)
                }
                Flow::Loop(test, body, step, body_first) => {
                    let outer = (self.broken, self.continued);
                    self.broken = Some(state);
                    let mut entry = 0;
                    for _ in 0..3 {
                        let next = self.backward(step, entry);
                        entry = if *body_first {
                            let tested = self.backward(test, state | next);
                            self.continued = Some(tested);
                            self.backward(body, tested)
                        } else {
                            self.continued = Some(next);
                            let inside = self.backward(body, next);
                            self.backward(test, state | inside)
                        };
                    }
                    (self.broken, self.continued) = outer;
                    entry
                }
                Flow::Inline(inside) => {
                    let outer = self.returned.replace(state);
                    let before = self.backward(inside, state);
                    self.returned = outer;
                    before
                }
                Flow::Break => self.broken.unwrap_or(0),
                Flow::Continue => self.continued.unwrap_or(0),
                Flow::Return => self.returned.unwrap_or(0),
            };
        }
        state
    }
}
