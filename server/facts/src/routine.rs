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

use crate::bodies::{Body, Shape};
use crate::context::{Budget, Executions};
use crate::executor::Executor;
use crate::facts::{CopiedLine, Space};
use crate::flow::Draft;
use crate::value::{Kind, Part, Place, Value, Variation};

/// How often a body runs, against once for each thread of the launch.
#[derive(Debug, Clone, Copy)]
struct Share {
    warps: f64,
    lanes: f64,
    exact: bool,
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
        // Closed forms follow each call to its place.
        let shapes: Option<Vec<Shape>> = match self.open {
            Some(_) => None,
            None => values.iter().map(|value| self.shape(value)).collect(),
        };
        let body = shapes.and_then(|shapes| self.body_for(id, routine, shapes, call.site));
        if self.routines.failed {
            return Value::data(Variation::ANY);
        }
        let Some(body) = body else {
            return self.in_place(routine, values, call);
        };
        let mut variation = Variation::NONE;
        let mut uses = Vec::new();
        for value in &mut values {
            variation = variation
                | match value.kind {
                    Kind::Int(id) => self.variation_of(id),
                    Kind::Pointer(..) => Variation::ANY,
                    Kind::Data => value.variation,
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
            return Value::data(variation);
        }
        let id = match self.routines.bodies[body].value {
            Some(value) => self.arena.constant(value),
            None => self.unknown(true, variation),
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
                    uniform: !self.arena.varies_in_warp(id),
                }),
                _ => None,
            },
            Kind::Pointer(array, offset) => (self.arrays[array.0 as usize].space == Space::Local
                && self.arena.as_const(offset).is_some())
            .then_some(Shape::Array),
            Kind::Data => Some(Shape::Data {
                uniform: value.variation.uniform,
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
        let barriers = self.barriers.len();
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
                Shape::Integer { uniform } => {
                    Value::int(self.unknown(true, Variation::unknown(uniform)))
                }
                Shape::Data { uniform } => Value::data(Variation::unknown(uniform)),
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
        self.barriers.truncate(barriers);
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
        // A call whose place is not known leads to nothing whose place is.
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
            .iter_mut()
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
                && !of.depends_on_assumption(&self.arena);
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
