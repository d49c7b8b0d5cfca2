//! Functions that are executed once for all their calls.
//!
//! The body of such a function works on numbers and on arrays in the calling thread's registers. What it does
//! then depends on nothing but its arguments, and of those only on what is known of them: a constant, or that it
//! is data. So the body is executed once for each such *shape* of its arguments, in a context of its own that
//! runs as often as all the calls together, and a call adds its instructions to the flow. A body that turns out
//! to touch memory, to synchronise or to ask which thread it is in is put in place of each call instead.

use crate::why::Why;
use rustc_hash::FxHashMap;
use warplens_ir::{CalleeLine, Expr, Routine, RoutineId, Site, Stmt, Type, each_site, parts};
use warplens_machine::Mix;

use crate::context::{Budget, Executions};
use crate::execute::Executor;
use crate::facts::{CopiedLine, Node, Space};
use crate::flow::{self, Draft};
use crate::lockstep::CallPaths;
use crate::value::{Kind, Part, PartId, Place, Value};

/// Ways to one body that are told apart, at most.
const MOST_WAYS: usize = 1024;

/// What is known of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    /// The same number in every call.
    Constant(i64),
    /// An integer that depends on data, and whether a warp's lanes agree in it.
    Integer { uniform: bool },
    /// Floating point.
    Data { uniform: bool },
    /// Somewhere in an array of the thread's own.
    Array,
}

/// A body as it was executed once.
#[derive(Debug)]
struct Body {
    flow: Vec<Draft>,
    /// Operations in the source.
    operations: u32,
    /// The value, where it is the same number for all calls.
    value: Option<i64>,
}

/// All bodies, and their calls.
#[derive(Debug, Default)]
pub(crate) struct Routines {
    bodies: Vec<Body>,
    /// `None` for a body that must be put in place.
    known: FxHashMap<(RoutineId, Vec<Shape>), Option<usize>>,
    /// Body, the context of the call, and where it stands.
    calls: Vec<(usize, usize, PartId)>,
    /// Bodies being executed within one another.
    depth: u32,
    failed: bool,
}

/// How often a body runs, against once for each thread of the launch.
#[derive(Debug, Clone, Copy)]
struct Share {
    warps: f64,
    lanes: f64,
    exact: bool,
}

impl Routines {
    /// Memory is accessed, or a barrier met.
    pub(crate) fn touches_memory(&mut self) {
        self.failed |= self.depth > 0;
    }

    /// A coordinate of the thread is asked for.
    pub(crate) fn hangs_on_thread(&mut self) {
        self.failed |= self.depth > 0;
    }

    /// True where the body being executed has to be put in place after all.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// The ways from the kernel to each body.
    pub(crate) fn ways(&self) -> CallPaths {
        let mut known = FxHashMap::default();
        CallPaths {
            bodies: (0..self.bodies.len())
                .map(|body| self.ways_to(body, &mut known))
                .collect(),
        }
    }

    /// None within: too many, or some call is not known by where it stands.
    fn ways_to(
        &self,
        body: usize,
        known: &mut FxHashMap<usize, Option<Vec<u64>>>,
    ) -> Option<Vec<u64>> {
        if let Some(found) = known.get(&body) {
            return found.clone();
        }
        let mut found = Some(Vec::new());
        for (_, _, place) in self.calls.iter().filter(|(of, ..)| *of == body) {
            let outer = place.and_then(|place| match place.body {
                Some(outer) => self.ways_to(outer, known),
                None => Some(vec![0]),
            });
            found = match (found, outer, place) {
                (Some(mut ways), Some(outer), Some(place)) => {
                    ways.extend(outer.iter().map(|&way| place.behind(way)));
                    (ways.len() <= MOST_WAYS).then_some(ways)
                }
                _ => None,
            };
        }
        if let Some(ways) = &mut found {
            // A loop's test may be executed symbolically more than once.
            ways.sort_unstable();
            ways.dedup();
        }
        known.insert(body, found.clone());
        found
    }

    /// What one call of each body issues, and its longest chain.
    pub(crate) fn totals(&mut self, executions: &[Executions]) -> Vec<(Mix, f64)> {
        let flows: Vec<Vec<Draft>> = self
            .bodies
            .iter_mut()
            .map(|body| std::mem::take(&mut body.flow))
            .collect();
        let mut totals = vec![(Mix::default(), 0.0); flows.len()];
        let mut left: Vec<Option<Vec<Draft>>> = flows.into_iter().map(Some).collect();
        for body in 0..left.len() {
            total(body, &mut left, executions, &mut totals);
        }
        totals
    }
}

/// Sums one body up, those that it calls before it.
fn total(
    body: usize,
    left: &mut [Option<Vec<Draft>>],
    executions: &[Executions],
    totals: &mut [(Mix, f64)],
) {
    let Some(flow) = left[body].take() else {
        return;
    };
    let mut called = Vec::new();
    callees(&flow, &mut called);
    for callee in called {
        total(callee, left, executions, totals);
    }
    let nodes = flow::finish(flow, executions, totals);
    let mut sum = (Mix::default(), 0.0);
    add_up(&nodes, 1.0, &mut sum);
    totals[body] = sum;
}

fn callees(flow: &[Draft], out: &mut Vec<usize>) {
    for draft in flow {
        match draft {
            Draft::Call { body, .. } => out.push(*body),
            Draft::Loop { body, .. } => callees(body, out),
            Draft::Branch {
                then, otherwise, ..
            } => {
                callees(then, out);
                callees(otherwise, out);
            }
            Draft::Compute { .. } | Draft::Access { .. } | Draft::Barrier { .. } => {}
        }
    }
}

fn add_up(nodes: &[Node], times: f64, sum: &mut (Mix, f64)) {
    for node in nodes {
        match node {
            Node::Compute { mix, chain, .. } => {
                sum.0.add(mix, times);
                sum.1 += chain * times;
            }
            Node::Loop { trips, body, .. } => add_up(body, times * trips, sum),
            Node::Branch {
                taken,
                other,
                then,
                otherwise,
                ..
            } => {
                add_up(then, times * taken, sum);
                add_up(otherwise, times * other, sum);
            }
            Node::Access { .. } | Node::Barrier { .. } => {}
        }
    }
}

impl Executor<'_> {
    /// A call of a routine.
    pub(crate) fn apply(&mut self, id: RoutineId, arguments: &[Expr], call: &Expr) -> Value {
        let line = call.site.line;
        let kernel = self.kernel;
        let routine = kernel.routine(id);
        let mut values = Vec::with_capacity(arguments.len());
        for (param, argument) in routine.params.iter().zip(arguments) {
            let to = &kernel.var(*param).ty;
            let value = match (to, &argument.ty) {
                (Type::Pointer(..), Type::Array(..)) => self.start_of(argument),
                _ => self.eval(argument),
            };
            values.push(self.converted(value, &argument.ty, to, line));
        }
        // Closed forms follow each call to where it stands.
        let shapes: Option<Vec<Shape>> = match self.open {
            Some(_) => None,
            None => values.iter().map(|value| self.shape(value)).collect(),
        };
        let body = shapes.and_then(|shapes| self.body_for(id, routine, shapes, call.site));
        if self.routines.failed {
            return Value::data(false);
        }
        let Some(body) = body else {
            return self.in_place(routine, values, call);
        };
        let mut uniform = true;
        let mut uses = Vec::new();
        for value in &mut values {
            uniform &= match value.kind {
                Kind::Int(id) => !self.arena.varies_by_lane(id),
                Kind::Pointer(..) => false,
                Kind::Data => value.uniform,
            };
            uses.append(&mut value.loads);
        }
        uses.sort_unstable();
        uses.dedup();
        self.static_operations += self.routines.bodies[body].operations;
        if self.dry == 0 {
            let place = self.origin(call);
            self.routines.calls.push((body, self.context, place));
            self.flow.push(Draft::Call { body, uses, line });
            let operations = self.routines.bodies[body].operations;
            self.dependence.call(f64::from(operations));
        }
        if !call.ty.is_int() {
            return Value::data(uniform);
        }
        let id = match self.routines.bodies[body].value {
            Some(value) => self.arena.constant(value),
            None => self.unknown(true, uniform),
        };
        Value::int(id)
    }

    /// The address of an array, also of one inside a structure that is the thread's own.
    fn start_of(&mut self, array: &Expr) -> Value {
        match self.place(array) {
            Place::Part(of, at) => {
                let array = self.array_of(of);
                let start = self.arena.constant(at as i64);
                Value::pointer(array, start)
            }
            place => self.read(&place, array),
        }
    }

    fn shape(&self, value: &Value) -> Option<Shape> {
        match value.kind {
            Kind::Int(id) => match (self.arena.as_const(id), self.arena.opaque(id)) {
                (Some(value), _) => Some(Shape::Constant(value)),
                (None, Some(true)) if !self.arena.has_placeholder(id) => Some(Shape::Integer {
                    uniform: !self.arena.varies_by_lane(id),
                }),
                _ => None,
            },
            Kind::Pointer(array, offset) => (self.arrays[array.0 as usize].space == Space::Local
                && self.arena.as_const(offset).is_some())
            .then_some(Shape::Array),
            Kind::Data => Some(Shape::Data {
                uniform: value.uniform,
            }),
        }
    }

    /// The body for such arguments, executed now where it was not yet.
    fn body_for(
        &mut self,
        id: RoutineId,
        routine: &Routine,
        shapes: Vec<Shape>,
        call: Site,
    ) -> Option<usize> {
        let key = (id, shapes);
        if let Some(known) = self.routines.known.get(&key) {
            return *known;
        }
        let body = self.routines.bodies.len();
        self.routines.bodies.push(Body {
            flow: Vec::new(),
            operations: 0,
            value: None,
        });
        let accesses = self.accesses.len();
        let branches = self.branches.len();
        let contexts = self.contexts.len();
        let lost = self.lost.len();
        let guesses = self.guesses.len();
        let calls = self.routines.calls.len();
        let (dry, context) = (std::mem::take(&mut self.dry), self.context);
        let way = std::mem::replace(&mut self.way, Part::whole(Some(body)));
        // Its places are those of the first call.
        let (copy, copied) = self.copied(routine, call);
        let originals = self.originals.replace(copied);
        let flow = std::mem::take(&mut self.flow);
        let pending = std::mem::take(&mut self.pending);
        let operations = self.static_operations;
        self.dependence.pause();

        let mut base = self.contexts[0].clone();
        base.routine = Some(body);
        self.context = self.push_context(base);
        self.contexts[self.context].parent = None;
        self.routines.depth += 1;
        for (param, shape) in routine.params.iter().zip(&key.1) {
            let value = match *shape {
                Shape::Constant(value) => Value::int(self.arena.constant(value)),
                Shape::Integer { uniform } => Value::int(self.unknown(true, uniform)),
                Shape::Data { uniform } => Value::data(uniform),
                Shape::Array => {
                    let name = self.kernel.var(*param).name.clone();
                    let array = self.array(&name, Space::Local);
                    let start = self.arena.constant(0);
                    Value::pointer(array, start)
                }
            };
            self.env.set(*param, Some(value));
        }
        let ty = routine
            .result
            .map_or(Type::Void, |result| self.kernel.var(result).ty.clone());
        let value = self.inline(&copy, routine.result, &ty);
        self.routines.depth -= 1;
        self.dependence.resume();

        let own = std::mem::replace(&mut self.flow, flow);
        self.pending = pending;
        self.dry = dry;
        self.context = context;
        self.way = way;
        self.originals = originals;
        let spent = self.static_operations - operations;
        self.static_operations = operations;
        if !self.routines.failed {
            let value = match value.kind {
                Kind::Int(id) => self.arena.as_const(id),
                _ => None,
            };
            self.routines.bodies[body] = Body {
                flow: own,
                operations: spent,
                value,
            };
            self.routines.known.insert(key, Some(body));
            return Some(body);
        }
        // As if nothing had happened. What it called is executed again where it is needed.
        self.accesses.truncate(accesses);
        self.branches.truncate(branches);
        self.contexts.truncate(contexts);
        self.ways.retain(|way| way.outer < contexts);
        if self.steps != u32::MAX {
            self.lost.truncate(lost);
        }
        self.guesses.truncate(guesses);
        self.counts.retain(|(of, _), _| *of < contexts);
        self.operators.retain(|(of, ..), _| *of < contexts);
        self.routines.calls.truncate(calls);
        self.routines.bodies.truncate(body);
        self.routines
            .known
            .retain(|_, known| known.is_none_or(|known| known < body));
        self.routines.known.insert(key, None);
        // What calls it inside another body cannot be kept once either.
        self.routines.failed = self.routines.depth > 0;
        None
    }

    /// A routine's body as one call leads to it, and what its parts are copies of.
    fn copied(&mut self, routine: &Routine, call: Site) -> (Vec<Stmt>, FxHashMap<usize, usize>) {
        let mut body = routine.body.clone();
        let mut copy = Copy {
            call,
            first: self.kernel.places.callees().len() as u32,
            lines: &mut self.copied_lines,
            callers: self.kernel.places.callees(),
            known: &mut self.copies_known,
            originals: FxHashMap::default(),
        };
        copy.statements(&mut body, &routine.body);
        let originals = copy.originals;
        (body, originals)
    }

    /// The body in place of this call.
    fn in_place(&mut self, routine: &Routine, values: Vec<Value>, call: &Expr) -> Value {
        for (param, value) in routine.params.iter().zip(values) {
            self.env.set(*param, Some(value));
        }
        let place = self.origin(call);
        let (body, copied) = self.copied(routine, call.site);
        // A call that is not known by where it stands leads to nothing that is.
        let copied = match place {
            Some(_) => copied,
            None => FxHashMap::default(),
        };
        let way = self.way;
        self.way = place.unwrap_or(way);
        let originals = self.originals.replace(copied);
        let value = self.inline(&body, routine.result, &call.ty);
        self.way = way;
        self.originals = originals;
        value
    }

    /// How often each context runs.
    pub(crate) fn executions(&mut self, budget: &Budget) -> Vec<Executions> {
        let mut executions: Vec<Executions> = self
            .contexts
            .iter()
            .map(|context| context.executions(&self.arena, &self.domain, budget))
            .collect();
        if self.routines.bodies.is_empty() {
            return executions;
        }
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); self.routines.bodies.len()];
        for &(body, context, _) in &self.routines.calls {
            callers[body].push(context);
        }
        let mut shares = vec![None; callers.len()];
        for body in 0..callers.len() {
            self.share(body, &callers, &executions, &mut shares);
        }
        for (context, executions) in self.contexts.iter_mut().zip(&mut executions) {
            if let Some(share) = context.routine.and_then(|body| shares[body]) {
                executions.warps *= share.warps;
                executions.lanes *= share.lanes;
                executions.exact &= share.exact;
                context.warp_factor *= share.warps;
                context.lane_factor *= share.lanes;
                if !share.exact {
                    context.why.get_or_insert(Why::SomeCall);
                }
            }
        }
        executions
    }

    fn share(
        &self,
        body: usize,
        callers: &[Vec<usize>],
        executions: &[Executions],
        shares: &mut [Option<Share>],
    ) -> Share {
        if let Some(known) = shares[body] {
            return known;
        }
        let whole = executions[0];
        let mut sum = Share {
            warps: 0.0,
            lanes: 0.0,
            exact: whole.exact,
        };
        for &context in &callers[body] {
            let (of, runs) = (&self.contexts[context], executions[context]);
            let outer = match of.routine {
                Some(outer) => self.share(outer, callers, executions, shares),
                None => Share {
                    warps: 1.0,
                    lanes: 1.0,
                    exact: true,
                },
            };
            if whole.warps > 0.0 {
                sum.warps += outer.warps * runs.warps / whole.warps;
                sum.lanes += outer.lanes * runs.lanes / whole.lanes;
            }
            sum.exact &= outer.exact
                && runs.exact
                && of.loose.is_empty()
                && !of.hangs_on_assumption(&self.arena);
        }
        shares[body] = Some(sum);
        sum
    }
}

/// A body on its way to the place of a call: its sites get the call's place and keep the function's lines, which the call
/// now leads to.
struct Copy<'a> {
    call: Site,
    /// Lines of the kernel's called functions; those of copies count on behind them.
    first: u32,
    lines: &'a mut Vec<CopiedLine>,
    /// The kernel's.
    callers: &'a [CalleeLine],
    known: &'a mut FxHashMap<(u32, u32), u32>,
    /// What the copy's parts are copies of, by their addresses.
    originals: FxHashMap<usize, usize>,
}

impl Copy<'_> {
    /// The parts of both are met in the same order.
    fn statements(&mut self, copies: &mut [Stmt], of: &[Stmt]) {
        let mut originals = Vec::new();
        parts(of, &mut |part| originals.push(part.address()));
        each_site(copies, &mut |site| self.site(site));
        let mut originals = originals.into_iter();
        parts(copies, &mut |part| {
            let original = originals.next();
            self.originals
                .extend(original.map(|of| (part.address(), of)));
        });
    }

    fn site(&mut self, site: &mut Site) {
        let callee = match site.callee {
            0 => self.call.callee,
            line => self.line(line),
        };
        *site = Site {
            callee,
            ..self.call
        };
    }

    /// The line as this call leads to it.
    fn line(&mut self, line: u32) -> u32 {
        // The kernel's own calls are where every chain of a body begins.
        if self.call.callee == 0 {
            return line;
        }
        if let Some(&known) = self.known.get(&(line, self.call.callee)) {
            return known;
        }
        let copied = line
            .checked_sub(self.first + 1)
            .and_then(|at| self.lines.get(at as usize))
            .copied();
        let original = copied.map_or(line, |line| line.of);
        let caller = match copied {
            Some(copied) => copied.caller,
            None => match self.callers.get((line - 1) as usize) {
                Some(callee) => callee.caller,
                None => return line,
            },
        };
        let caller = match caller {
            0 => self.call.callee,
            caller => self.line(caller),
        };
        let copy = CopiedLine {
            of: original,
            caller,
        };
        self.lines.push(copy);
        let new = self.first + self.lines.len() as u32;
        self.known.insert((line, self.call.callee), new);
        new
    }
}
