//! What rules about arithmetic share: what the compiled kernel executes for a part of the source, what the kernel would
//! gain if that were something else, and how findings of one cause become one.

use rustc_hash::FxHashMap;
use warplens_codegen::{Class, Code, Executions, Target, WarpsAtControl, library};
use warplens_facts::facts::{Certainty, Site};
use warplens_ir::{BinaryOp, Expr, ExprKind, Function, MathClass, Real, Stmt, Type, UnaryOp};
use warplens_models::{Change, Instructions};

use crate::evidence;
use crate::wording::{self, counted, number};
use crate::{Context, Finding, Place};

/// Fewer of the launch's warps than this come there: what a few threads do is not worth a word.
const FEW: f64 = 0.25;

/// The compiled kernel under the launch.
pub(crate) struct Executed<'a> {
    ctx: &'a Context<'a>,
    executions: Executions,
    /// True where how often code runs depends on something assumed.
    pub assumed: bool,
}

impl<'a> Executed<'a> {
    /// `None` where the kernel was not compiled to its end, or how often its parts run is not known: nothing can be said
    /// of its arithmetic then.
    pub(crate) fn new(ctx: &'a Context<'a>) -> Option<Executed<'a>> {
        if !ctx.compiled.complete || ctx.compiled.code.is_empty() {
            return None;
        }
        let launch = &ctx.facts.launch;
        let mut assumed = launch.block_source.is_assumption() || launch.grid_source.is_assumption();
        for way in ctx.facts.ways.iter().flatten() {
            assumed |= !way.exact;
        }
        let executions = ctx.compiled.executions(&|control| {
            let way = ctx.facts.ways.get(control.0 as usize)?.as_ref()?;
            Some(WarpsAtControl {
                reached: way.reached,
                taken: way.taken,
                other: way.other,
                turns: &way.turns,
            })
        });
        executions.followed.then_some(Executed {
            ctx,
            executions,
            assumed,
        })
    }

    /// What a warp executes for some sites, on average.
    pub(crate) fn at(&self, within: impl Fn(Site) -> bool) -> Part {
        let mut part = Part::default();
        for code in self
            .ctx
            .compiled
            .code
            .iter()
            .filter(|code| within(code.site))
        {
            part.add(code, self.times(code));
        }
        part
    }

    fn times(&self, code: &Code) -> f64 {
        f64::from(code.count) * self.executions.of(code.frequency)
    }

    /// The instructions in place of a call of a library function on numbers of this many bits.
    pub(crate) fn library(&self, name: &str, bits: u8) -> Option<Vec<(Class, f64)>> {
        let target = Target::of(self.ctx.profile.compute_capability);
        let counts = library(name, bits, target)?;
        Some(
            counts
                .iter()
                .map(|&(class, count)| (class, f64::from(count)))
                .collect(),
        )
    }
}

/// Instructions that a warp executes, by line and class.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    lines: Instructions,
    /// The most times that one of them is executed by a warp.
    pub times: f64,
}

impl Part {
    fn add(&mut self, code: &Code, executed: f64) {
        self.push(code.site.line, code.class, executed);
        self.times = self.times.max(executed / f64::from(code.count.max(1)));
    }

    /// This many more of a class on a line.
    pub(crate) fn push(&mut self, line: u32, class: Class, count: f64) {
        self.lines.entry(line).or_default().push((class, count));
    }

    /// The same on every line of another part.
    pub(crate) fn merge(&mut self, other: &Part) {
        for (line, classes) in &other.lines {
            self.lines.entry(*line).or_default().extend(classes);
        }
        self.times = self.times.max(other.times);
    }

    /// How many of some classes.
    pub(crate) fn count(&self, of: impl Fn(Class) -> bool) -> f64 {
        let all = self.lines.values().flatten();
        all.filter(|(class, _)| of(*class))
            .fold(0.0, |sum, (_, count)| sum + count)
    }

    /// All of them.
    pub(crate) fn total(&self) -> f64 {
        self.count(|_| true)
    }

    /// How often a function or division is executed whose instructions these are: each has one that it executes once.
    pub(crate) fn calls(&self) -> f64 {
        let mut classes: FxHashMap<Class, f64> = FxHashMap::default();
        for (class, count) in self.lines.values().flatten() {
            *classes.entry(*class).or_default() += count;
        }
        classes.into_values().fold(f64::INFINITY, f64::min)
    }

    /// Other instructions on its line, this many times.
    pub(crate) fn by(&self, others: &[(Class, f64)], times: f64) -> Part {
        let mut part = Part {
            times: self.times,
            ..Part::default()
        };
        if let Some(line) = self.lines.keys().min() {
            for (class, count) in others {
                part.push(*line, *class, count * times);
            }
        }
        part
    }

    /// What it is with each instruction replaced; `None` takes it away.
    pub(crate) fn map(&self, becomes: impl Fn(Class) -> Option<Class>) -> Part {
        let lines = self.lines.iter().map(|(line, classes)| {
            let kept = classes
                .iter()
                .filter_map(|(class, count)| Some((becomes(*class)?, *count)));
            (*line, kept.collect())
        });
        Part {
            lines: lines.collect(),
            times: self.times,
        }
    }

    /// True where hardly a warp of the launch comes there.
    pub(crate) fn is_rare(&self) -> bool {
        self.times < FEW
    }
}

/// Predicted speedup of the kernel with the instructions of one part replaced by those of another; none where a rule has tried
/// too many, which one that asks for a few functions of a kernel does not.
pub(crate) fn instead(ctx: &Context<'_>, before: &Part, after: &Part) -> f64 {
    ctx.trial(&[Change::Instead {
        before: before.lines.clone(),
        after: after.lines.clone(),
    }])
    .unwrap_or(1.0)
}

/// Double precision as single precision: the arithmetic stays, conversions between the two go.
pub(crate) fn single(class: Class) -> Option<Class> {
    match class {
        Class::Dfma => Some(Class::Ffma),
        Class::Dadd => Some(Class::Fadd),
        Class::Dmul => Some(Class::Fmul),
        Class::F2f => None,
        class => Some(class),
    }
}

/// True for arithmetic in 64 bits.
pub(crate) fn is_double(class: Class) -> bool {
    matches!(class, Class::Dfma | Class::Dadd | Class::Dmul)
}

/// Whether one site holds another. What a called function does is at its call, and there what is on one line of
/// it is taken for one.
pub(crate) fn holds(ctx: &Context<'_>, outer: Site, inner: Site) -> bool {
    let within = outer.span.start <= inner.span.start && inner.span.end <= outer.span.end;
    if !within || outer.callee == inner.callee || outer.callee == 0 {
        return within;
    }
    let places = &ctx.kernel.places;
    match (places.callee(outer), places.callee(inner)) {
        (Some(outer), Some(inner)) => {
            (outer.function, outer.line, outer.caller) == (inner.function, inner.line, inner.caller)
                && outer.path == inner.path
        }
        _ => false,
    }
}

/// The number that an expression always is.
pub(crate) fn constant(value: &Expr) -> Option<f64> {
    match &value.kind {
        ExprKind::Int(value) => Some(*value as f64),
        ExprKind::Float(value) => value.map(Real::value),
        ExprKind::Cast(_, inner) => constant(inner).filter(|number| {
            // A cast to an integer cuts.
            !value.ty.is_int() || number.fract() == 0.0
        }),
        ExprKind::Unary(UnaryOp::Neg, inner) => Some(-constant(inner)?),
        ExprKind::Binary(op, a, b) => {
            let (a, b) = (constant(a)?, constant(b)?);
            match op {
                BinaryOp::Mul => Some(a * b),
                // That of integers cuts.
                BinaryOp::Div if !value.ty.is_int() && b != 0.0 => Some(a / b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What a kernel does, and the device functions that are kept once for all their calls.
pub(crate) fn bodies<'a>(ctx: &Context<'a>) -> impl Iterator<Item = &'a [Stmt]> {
    let routines = ctx.kernel.routines.iter();
    std::iter::once(ctx.kernel.body.as_slice()).chain(routines.map(|one| one.body.as_slice()))
}

/// Visits every expression of them.
pub(crate) fn expressions(ctx: &Context<'_>, visit: &mut dyn FnMut(&Expr)) {
    for body in bodies(ctx) {
        warplens_ir::expressions(body, visit);
    }
}

/// A function of the mathematical library that is called, by its plain name: `pow` for `powf` and `std::pow`.
pub(crate) fn called(expression: &Expr) -> Option<(&str, &[Expr])> {
    let ExprKind::Call(Function::Math(MathClass::Special, name), arguments) = &expression.kind
    else {
        return None;
    };
    let plain = match &**name {
        "powf" | "powr" | "pown" => "pow",
        "sqrtf" => "sqrt",
        "sinf" => "sin",
        "cosf" => "cos",
        name => name,
    };
    Some((plain, arguments))
}

/// Bits of a floating-point number.
pub(crate) fn bits(ty: &Type) -> Option<u8> {
    match ty {
        Type::Float { bits, .. } => Some(*bits),
        _ => None,
    }
}

/// A multiplication of numbers of this many bits.
pub(crate) fn product(bits: u8) -> Class {
    match bits {
        64 => Class::Dmul,
        16 => Class::Hfma2,
        _ => Class::Fmul,
    }
}

/// The text at a site, cut where it is long.
pub(crate) fn quote(ctx: &Context<'_>, site: Site) -> String {
    const LONG: usize = 60;
    let text = ctx.kernel.places.quote(site);
    if text.chars().count() <= LONG {
        return text;
    }
    text.chars().take(LONG - 1).chain(['…']).collect()
}

/// The finding of places whose instructions others could take the place of; `says` what the first of them is, as quoted, and
/// what else is said of it.
pub(crate) fn cheaper(
    rule: &'static str,
    executed: &Executed<'_>,
    sites: &[(Site, String)],
    (before, after): (&Part, &Part),
    says: impl Fn(&str, &str) -> String,
) -> Vec<Finding> {
    if sites.is_empty() {
        return Vec::new();
    }
    let gain = instead(executed.ctx, before, after);
    cheaper_by((rule, gain), executed, sites, (before, after), says)
}

/// The same with what is gained.
pub(crate) fn cheaper_by(
    (rule, gain): (&'static str, f64),
    executed: &Executed<'_>,
    sites: &[(Site, String)],
    (before, after): (&Part, &Part),
    says: impl Fn(&str, &str) -> String,
) -> Vec<Finding> {
    let Some((first, does)) = sites.iter().min_by_key(|(site, _)| site.span) else {
        return Vec::new();
    };
    let says = format!(
        "use {} ({} instructions per warp, ideal {})\n\
         a warp executes {} (ideal {}): {}",
        does.split(" does").next().unwrap_or(does),
        number(before.total()),
        number(after.total()),
        counted(before.total(), "instruction", "instructions"),
        number(after.total()),
        says(&quote(executed.ctx, *first), does),
    );
    finding(rule, executed, sites, says, gain)
        .into_iter()
        .collect()
}

/// One finding of places that share a cause: it is at the first, the others are related.
pub(crate) fn finding(
    rule: &'static str,
    executed: &Executed<'_>,
    sites: &[(Site, String)],
    says: String,
    gain: f64,
) -> Option<Finding> {
    let mut sites = sites.to_vec();
    sites.sort_by_key(|(site, _)| (site.span, site.callee));
    sites.dedup_by_key(|(site, _)| *site);
    let mut sites = sites.into_iter();
    let (first, _) = sites.next()?;
    let (certainty, reservation) = if executed.assumed {
        let said = wording::assumes(executed.ctx.facts, &[]);
        (Certainty::Assumed, said)
    } else {
        (Certainty::Exact, None)
    };
    Some(Finding {
        rule,
        severity: wording::severity(gain, certainty, !evidence::only_sizes(executed.ctx.facts)),
        place: Place::Site(first),
        message: wording::sentence([Some(says), Some(wording::gain(gain)), reservation]),
        gain,
        related: sites.collect(),
        access: None,
        shared_array: None,
        cure: None,
    })
}
