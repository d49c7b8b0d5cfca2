//! Operations and iterations as functions of the kernel's integer parameters.
//!
//! The kernel is executed once more with its parameters left open: what a context's guards let through is
//! then a closed form ([`warplens_symbolic::Domain::count`]) in their place, summed over all threads and
//! blocks of the launch and over all iterations, after the mechanism of J. D. Stevens and A. Klöckner, "A
//! mechanism for balancing accuracy and scope in cross-machine black-box GPU performance modeling", 2020,
//! section 4. It is computed when it is shown, not at each keystroke.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use warplens_ir::{Expr, ExprKind, Type, VarId};
use warplens_symbolic::{Guard, Id, Interval, Name, Polynomial, Ratio, Symbol, SymbolKind};

use crate::Request;
use crate::context::Context;
use crate::executor::Executor;
use crate::facts::{BranchKind, Op, OpClass, Operator, Site};
use crate::open::Open;
use crate::value::DEFAULT_ARGUMENT;

/// The largest value that a 64-bit parameter is thought of with: sums of such stay in reach.
const LARGEST_PARAMETER: i64 = 1 << 48;

/// Contexts counted for one kernel, at most.
const MOST_CONTEXTS: usize = 256;

/// A number as a function of the parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// As a person would write it: `2*n*m`. Parameters stand for values of the sign that the argument has,
    /// and no unsigned value wraps.
    pub text: String,
    /// Its value for this launch's arguments.
    pub value: f64,
    /// True where not even the arithmetic of this launch had to be taken as free of wrapping.
    pub proved: bool,
    count: Polynomial,
    names: Arc<BTreeMap<Name, String>>,
}

impl Expression {
    /// True where no parameter changes it.
    pub fn is_constant(&self) -> bool {
        self.count.as_constant().is_some()
    }

    /// Both together, of one kernel; `None` where that is too long to be read.
    pub fn plus(&self, other: &Expression) -> Option<Expression> {
        let count = self.count.add(&other.count)?;
        Some(Expression {
            text: count.text(&|name| spelled(&self.names, name))?,
            value: self.value + other.value,
            proved: self.proved && other.proved,
            count,
            names: Arc::clone(&self.names),
        })
    }
}

/// How often the threads of the launch execute one access of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessCount {
    /// Where it is.
    pub site: Site,
    /// What it does.
    pub op: Op,
    /// Bytes a thread moves.
    pub bytes: u32,
    /// Threads, summed over executions; `None` without a closed form.
    pub threads: Option<Expression>,
}

/// What has a closed form; anything else is left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expressions {
    /// Operations over the launch.
    pub classes: Vec<(OpClass, Expression)>,
    /// Loops by the place of their branch: how often the body runs over the launch.
    pub loops: Vec<(Site, Expression)>,
    /// Arithmetic and barriers by kind.
    pub operators: Vec<(Operator, Expression)>,
    /// Every access in source order.
    pub accesses: Vec<AccessCount>,
}

impl Expressions {
    /// Operations of a class.
    pub fn of(&self, class: OpClass) -> Option<&Expression> {
        let found = self.classes.iter().find(|(own, _)| *own == class);
        found.map(|(_, expression)| expression)
    }

    /// How often the body of the loop at a place runs, all threads together.
    pub fn of_loop(&self, site: Site) -> Option<&Expression> {
        let found = self.loops.iter().find(|(own, _)| *own == site);
        found.map(|(_, expression)| expression)
    }
}

/// Counts of the kernel as functions of its integer parameters, under the launch asked about.
pub fn count_expressions(request: &Request) -> Expressions {
    let mut executor = Executor::new(request);
    executor.open = Some(Open::default());
    executor.execute();
    executor.expressions()
}

impl Executor<'_> {
    /// Makes a symbol without a value of a parameter, where parameters are left open.
    pub(crate) fn open_parameter(&mut self, id: VarId) -> Option<Id> {
        if let Some(&known) = self.open.as_ref()?.parameters.get(&id) {
            return Some(known);
        }
        let var = self.kernel.var(id);
        let value = self
            .arguments
            .iter()
            .find(|(name, ..)| *name == var.name)
            .map_or(DEFAULT_ARGUMENT, |(_, value, _)| *value);
        let all = match var.ty {
            Type::Int { bits, signed } if bits < 64 => Interval::of_type(bits, signed),
            _ => Interval::new(-LARGEST_PARAMETER, LARGEST_PARAMETER),
        };
        let range = match value {
            1.. => Interval::new(1, all.hi),
            0 => Interval::new(0, all.hi),
            _ => Interval::new(all.lo, -1),
        };
        let made = self.arena.symbol(
            &var.name,
            SymbolKind::Parameter,
            range.union(Interval::point(value)),
        );
        let symbol = self.arena.as_symbol(made)?;
        let stands_for_it = self.arena.constant(value);
        let open = self.open.as_mut()?;
        open.symbols.push((symbol, stands_for_it));
        open.values.insert(symbol.number(), value);
        open.parameters.insert(id, made);
        Some(made)
    }

    /// Notes what is known of a loop's length: nothing where its trip count depends on an open parameter.
    pub(crate) fn open_counter(&mut self, counter: Symbol, trips: Id) {
        if let Some(open) = &mut self.open
            && self.arena.value(trips).is_none()
        {
            open.guarded.push(counter);
        }
        if !self.depends_on_open(trips) {
            return;
        }
        let trips = self.as_given(trips);
        let extent = self.arena.range(trips).hi.max(0);
        let kind = SymbolKind::Counter { extent };
        let shorter = self.arena.symbol("iteration", kind, Interval::ANY);
        if let Some(open) = &mut self.open {
            open.symbols.push((counter, shorter));
        }
    }

    /// True where an expression has no bound but the parameters' types: wrapping of 32 and 64 bits is then
    /// what the programmer excludes by the arguments.
    pub(crate) fn never_wraps_open(&mut self, bits: u8, signed: bool, id: Id) -> bool {
        if bits < 32 || !self.depends_on_open(id) {
            return false;
        }
        let fits = Interval::of_type(bits, signed);
        let given = self.as_given(id);
        if !self.arena.range(given).within(fits.lo, fits.hi) {
            self.note_wrapping();
        }
        true
    }

    /// Notes that some arithmetic may wrap for the launch's arguments and was taken not to.
    pub(crate) fn note_wrapping(&mut self) {
        if let Some(open) = &mut self.open {
            open.unwrapped = true;
        }
    }

    /// The expression under this launch's arguments.
    pub(crate) fn as_given(&mut self, id: Id) -> Id {
        let symbols = self.open.as_ref().map(|open| open.symbols.clone());
        let mut given = id;
        // Counters were made after what their loops' lengths depend on.
        for (symbol, stands_for_it) in symbols.into_iter().flatten().rev() {
            given = self.arena.substitute(given, symbol, stands_for_it);
        }
        given
    }

    /// True where an expression depends on a parameter that is left open.
    pub(crate) fn depends_on_open(&self, id: Id) -> bool {
        self.open.as_ref().is_some_and(|open| {
            open.symbols
                .iter()
                .any(|&(symbol, _)| self.arena.depends_on(id, symbol))
        })
    }

    /// The test that ends a loop is evaluated once more than the body. It is counted; the models take it as
    /// part of the iterations. To be called with the variables as the loop leaves them.
    pub(crate) fn count_last_test(&mut self, condition: &Expr) {
        if self.dry > 0 {
            return;
        }
        *self
            .counts
            .entry((self.context, OpClass::Branch))
            .or_insert(0.0) += 1.0;
        if !is_arithmetic(condition) {
            return;
        }
        let context = self.context;
        let pending = std::mem::take(&mut self.pending);
        let operations = self.static_operations;
        self.counting_only = true;
        self.eval(condition);
        self.counting_only = false;
        self.static_operations = operations;
        self.pending = pending;
        self.context = context;
    }

    fn expressions(self) -> Expressions {
        let Some(open) = &self.open else {
            return Expressions::default();
        };
        if self.has_losses() {
            return Expressions::default();
        }
        let mut counter = Counter {
            executor: &self,
            open,
            known: FxHashMap::default(),
            names: Arc::new(
                open.values
                    .keys()
                    .filter_map(|&name| {
                        let symbol = self.arena.symbol_named(name)?;
                        Some((name, self.arena.symbol_name(symbol).to_owned()))
                    })
                    .collect(),
            ),
        };
        let mut found = Expressions::default();
        for class in OpClass::ALL {
            let counts = self.counts.iter();
            let own = counts.filter(|((_, of), _)| *of == class);
            let contexts = own.map(|(&(context, _), &operations)| (context, operations));
            if let Some(expression) = counter.total(contexts) {
                found.classes.push((class, expression));
            }
        }
        let mut operators: BTreeMap<Operator, Vec<(usize, f64)>> = BTreeMap::new();
        for (&(context, _, operator), &operations) in &self.operators {
            let contexts = operators.entry(operator).or_default();
            contexts.push((context, operations));
        }
        for (operator, contexts) in operators {
            if let Some(expression) = counter.total(contexts.into_iter()) {
                found.operators.push((operator, expression));
            }
        }
        for draft in &self.accesses {
            let lanes = counter.lanes(draft.context);
            found.accesses.push(AccessCount {
                site: draft.site,
                op: draft.op,
                bytes: draft.bytes,
                threads: lanes.and_then(|lanes| counter.expression(&lanes)),
            });
        }
        for draft in &self.branches {
            if draft.kind == BranchKind::Loop
                && let Some(inner) = draft.inner
                && let Some(lanes) = counter.lanes(inner)
                && let Some(expression) = counter.expression(&lanes)
            {
                found.loops.push((draft.site, expression));
            }
        }
        found
    }
}

/// Counters, and conditions with the truth they must have.
type Conditions = (Vec<Symbol>, Vec<(Id, bool)>);

/// Counts by context, each once.
struct Counter<'a> {
    executor: &'a Executor<'a>,
    open: &'a Open,
    known: FxHashMap<Conditions, Option<Polynomial>>,
    names: Arc<BTreeMap<Name, String>>,
}

impl Counter<'_> {
    /// The sum of the operations of each context; `None` where there are none.
    fn total(&mut self, contexts: impl Iterator<Item = (usize, f64)>) -> Option<Expression> {
        let mut total = Polynomial::zero();
        let mut some = false;
        for (context, operations) in contexts {
            some |= operations > 0.0;
            let whole = operations.fract() == 0.0 && operations < 1e15;
            let operations = whole.then_some(operations as i128)?;
            let lanes = self.lanes(context)?;
            total = total.add(&lanes.scale(Ratio::whole(operations))?)?;
        }
        some.then(|| self.expression(&total)).flatten()
    }

    /// Threads that come by, over the launch.
    fn lanes(&mut self, context: usize) -> Option<Polynomial> {
        let Context {
            counters,
            guards,
            why,
            ..
        } = self.executor.contexts.get(context)?;
        if why.is_some() || self.known.len() > MOST_CONTEXTS {
            return None;
        }
        let guards: Vec<Guard> = guards.iter().map(|(guard, _)| *guard).collect();
        let key: Conditions = (
            counters.clone(),
            guards
                .iter()
                .map(|guard| (guard.condition, guard.holds))
                .collect(),
        );
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let executor = self.executor;
        let count = executor
            .domain
            .count(&executor.arena, counters, &self.open.guarded, &guards);
        self.known.insert(key, count.clone());
        count
    }

    fn expression(&self, count: &Polynomial) -> Option<Expression> {
        let value = count.evaluate(&|name| self.open.values.get(&name).copied().map(i128::from))?;
        let value = value.as_whole().filter(|value| *value >= 0)?;
        Some(Expression {
            text: count.text(&|name| spelled(&self.names, name))?,
            value: value as f64,
            proved: !self.open.unwrapped,
            count: count.clone(),
            names: Arc::clone(&self.names),
        })
    }
}

fn spelled(names: &BTreeMap<Name, String>, name: Name) -> String {
    names.get(&name).cloned().unwrap_or_else(|| "?".to_owned())
}

/// Numbers, variables and operators: nothing that has an effect.
fn is_arithmetic(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) | ExprKind::Builtin(_) => true,
        ExprKind::Unary(_, inner) | ExprKind::Cast(_, inner) => is_arithmetic(inner),
        ExprKind::Binary(_, a, b) => is_arithmetic(a) && is_arithmetic(b),
        ExprKind::List(parts) => parts.iter().all(is_arithmetic),
        _ => false,
    }
}
