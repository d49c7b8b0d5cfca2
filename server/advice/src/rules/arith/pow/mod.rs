//! arith/pow: a general power where a multiplication, a root or an exponential does.

pub(crate) mod simpler_power;

use warplens_codegen::Class;
use warplens_facts::facts::Site;
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Fold, Language, Type, fold_block, fold_expression, known_function,
};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, bits, constant, product};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/pow",
    title: "a general power where a multiplication, a root or an exponential does",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[simpler_power::fixes],
};

/// An exponent is a third within what single precision can tell.
const THIRD: f64 = 1e-7;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut powers = Vec::new();
    arith::expressions(ctx, &mut |expression| {
        if let Some(simpler) = simpler(expression) {
            powers.push((expression.clone(), simpler));
        }
    });
    if powers.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut after) = (Part::default(), Part::default());
    let mut sites = Vec::new();
    let mut costly: Vec<&Expr> = Vec::new();
    for (power, simpler) in &powers {
        let site = power.site;
        let part = executed.at(|at| at == site);
        let Some(others) = simpler.instructions(&executed) else {
            continue;
        };
        let becomes = part.by(&others, part.calls());
        // Computed before, for another one.
        if part.total() <= 0.0 && costly.iter().any(|other| same(other, power)) {
            sites.push((site, "computed with it".to_owned()));
            continue;
        }
        // What the compiler took away, or did itself.
        if part.is_rare() || part.total() <= becomes.total() {
            continue;
        }
        before.merge(&part);
        after.merge(&becomes);
        costly.push(power);
        sites.push((site, format!("{} does", simpler.text)));
    }
    if sites.is_empty() {
        return Vec::new();
    }
    let gain = written_simpler(ctx, &sites).unwrap_or_else(|| arith::instead(ctx, &before, &after));
    arith::cheaper_by(
        (RULE.id, gain),
        &executed,
        &sites,
        (&before, &after),
        |quote, does| format!("`{quote}` is computed as a general power, {does}"),
    )
}

/// The predicted speedup of the kernel with something simpler at these places, compiled anew; `None` where it cannot be followed.
fn written_simpler(ctx: &Context<'_>, sites: &[(Site, String)]) -> Option<f64> {
    if !ctx.may_recompile() {
        return None;
    }
    let mut kernel = ctx.kernel.clone();
    let mut write = Write {
        sites,
        opencl: kernel.language == Language::OpenCl,
    };
    fold_block(&mut write, &mut kernel.body);
    for routine in &mut kernel.routines {
        fold_block(&mut write, &mut routine.body);
    }
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// Writes powers as what does.
struct Write<'a> {
    sites: &'a [(Site, String)],
    opencl: bool,
}

impl Fold for Write<'_> {
    fn expression(&mut self, expression: &mut Expr) {
        // A float that is raised in double precision for its exponent's sake, and becomes one again, stays one.
        if let ExprKind::Cast(_, inner) = &expression.kind
            && expression.ty == Type::FLOAT
            && let Some(written) = self.written(inner, &Type::FLOAT)
        {
            *expression = written;
        } else if let Some(written) = self.written(expression, &expression.ty) {
            *expression = written;
        }
        fold_expression(self, expression);
    }
}

impl Write<'_> {
    fn written(&self, power: &Expr, ty: &Type) -> Option<Expr> {
        if !self.sites.iter().any(|(site, _)| *site == power.site) {
            return None;
        }
        let simpler = simpler(power)?;
        let (_, [base, exponent]) = arith::called(power)? else {
            return None;
        };
        let argument = if constant(base).is_some() {
            exponent
        } else {
            base
        };
        let inner = match &argument.kind {
            ExprKind::Cast(_, inner) => inner,
            _ => argument,
        };
        if power.ty != *ty && inner.ty != *ty {
            return None;
        }
        let value = |kind| Expr {
            kind,
            ty: ty.clone(),
            site: power.site,
        };
        let argument = if inner.ty == *ty {
            inner.clone()
        } else if argument.ty == *ty {
            argument.clone()
        } else {
            value(ExprKind::Cast(false, Box::new(argument.clone())))
        };
        if let Some(function) = simpler.function {
            let function = known_function(function, self.opencl)?;
            return Some(value(ExprKind::Call(function, vec![argument])));
        }
        let product = |so_far, _| {
            let both = [so_far, argument.clone()].map(Box::new);
            let [a, b] = both;
            value(ExprKind::Binary(BinaryOp::Mul, a, b))
        };
        Some((0..simpler.products).fold(argument.clone(), product))
    }
}

/// Two powers of one value.
fn same(a: &Expr, b: &Expr) -> bool {
    match (arith::called(a), arith::called(b)) {
        (Some((_, [x, p])), Some((_, [y, q]))) => {
            x.is_alike(y) && constant(p) == constant(q) && (constant(p).is_some() || p.is_alike(q))
        }
        _ => false,
    }
}

/// What takes a power's place.
struct Simpler {
    text: &'static str,
    /// Multiplications.
    products: u8,
    /// A function of the library.
    function: Option<&'static str>,
    bits: u8,
}

impl Simpler {
    fn instructions(&self, executed: &Executed<'_>) -> Option<Vec<(Class, f64)>> {
        let mut all = match self.function {
            Some(function) => executed.library(function, self.bits)?,
            None => Vec::new(),
        };
        if self.products > 0 {
            all.push((product(self.bits), f64::from(self.products)));
        }
        Some(all)
    }
}

fn simpler(expression: &Expr) -> Option<Simpler> {
    let ("pow", [base, exponent]) = arith::called(expression)? else {
        return None;
    };
    // Beside a whole or double exponent a float is raised in double precision.
    let bits = bits(&base.ty).or_else(|| bits(&expression.ty))?;
    let of = |text, products, function| Simpler {
        text,
        products,
        function,
        bits,
    };
    if constant(base).is_some() {
        let bits = arith::bits(&exponent.ty).or_else(|| arith::bits(&expression.ty))?;
        let of = |text, function| Simpler {
            text,
            products: 0,
            function: Some(function),
            bits,
        };
        return match constant(base)? {
            2.0 => Some(of("exp2", "exp2")),
            10.0 => Some(of("exp10", "exp10")),
            _ => None,
        }
        .filter(|_| constant(exponent).is_none());
    }
    match constant(exponent)? {
        2.0 => Some(of("one multiplication", 1, None)),
        3.0 => Some(of("two multiplications", 2, None)),
        0.5 => Some(of("sqrt", 0, Some("sqrt"))),
        -0.5 => Some(of("rsqrt", 0, Some("rsqrt"))),
        third if (third - 1.0 / 3.0).abs() < THIRD => Some(of("cbrt", 0, Some("cbrt"))),
        _ => None,
    }
}
