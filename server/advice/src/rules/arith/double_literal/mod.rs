//! arith/double-literal: a constant without `f` makes float arithmetic double.

pub(crate) mod suffix_literal;

use warplens_codegen::Class;
use warplens_facts::facts::Site;
use warplens_ir::{
    BinaryOp, Expr, ExprKind, Fold, Function, Language, Part as Source, StmtKind, Type, fold_block,
    fold_expression, parts,
};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, holds, instead, is_double, single};
use crate::wording;
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/double-literal",
    title: "a constant without `f` makes single-precision arithmetic double",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[suffix_literal::fixes],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    // What a constant of OpenCL is depends on the options of its build.
    if ctx.kernel.language == Language::OpenCl {
        return Vec::new();
    }
    let trees = trees(ctx);
    if trees.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let (mut before, mut after) = (Part::default(), Part::default());
    let mut literals = Vec::new();
    let mut counted: Vec<Site> = Vec::new();
    for tree in &trees {
        let within = |site| tree.regions.iter().any(|region| holds(ctx, *region, site));
        let part = executed.at(within);
        if part.is_rare() || part.count(makes_double) <= 0.0 {
            continue;
        }
        // One tree in another: its instructions count once.
        let part = executed
            .at(|site| within(site) && !counted.iter().any(|region| holds(ctx, *region, site)));
        before.merge(&part);
        after.merge(&part.map(single));
        counted.extend(&tree.regions);
        literals.extend(
            tree.literals
                .iter()
                .map(|site| (*site, "double as well".to_owned())),
        );
    }
    let doubles = before.count(is_double);
    let conversions = before.count(|class| class == Class::F2f);
    let mut found = Vec::new();
    if let Some(first) = literals
        .iter()
        .map(|(site, _)| *site)
        .min_by_key(|site| site.span)
    {
        let gain = in_single(ctx, &counted).unwrap_or_else(|| instead(ctx, &before, &after));
        let literal = arith::quote(ctx, first);
        let advice = if literal.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            format!("write `{literal}f`")
        } else {
            // A macro, a constant.
            format!("give `{literal}` a value of type float")
        };
        let costs = if doubles < 0.5 {
            let conversions = wording::counted(conversions, "conversion", "conversions");
            format!("{conversions} to and from double precision per warp")
        } else {
            let instructions = wording::counted(doubles, "instruction", "instructions");
            format!("{instructions} in double precision per warp")
        };
        let says = format!(
            "{advice} ({costs})\n\
             a warp executes {} in double precision and {}: `{}` is a double, and so is what it is combined with",
            wording::counted(doubles, "instruction", "instructions"),
            wording::counted(conversions, "conversion", "conversions"),
            literal,
        );
        found.extend(arith::finding(RULE.id, &executed, &literals, says, gain));
    }
    found
}

/// The predicted speedup of the same arithmetic in single precision; `None` where the changed kernel cannot be followed.
fn in_single(ctx: &Context<'_>, regions: &[Site]) -> Option<f64> {
    let mut kernel = ctx.kernel.clone();
    let mut single = Single { regions };
    fold_block(&mut single, &mut kernel.body);
    for routine in &mut kernel.routines {
        fold_block(&mut single, &mut routine.body);
    }
    let again = ctx.recompile(&kernel)?;
    Some(crate::believed(again.gain))
}

/// Makes values single that are double for the sake of their constants.
struct Single<'a> {
    /// What holds them.
    regions: &'a [Site],
}

impl Fold for Single<'_> {
    fn expression(&mut self, expression: &mut Expr) {
        if self.regions.contains(&expression.site) {
            narrow(expression);
        }
        fold_expression(self, expression);
    }
}

/// Makes a value of [`Seen::follow`] single, all of it.
fn narrow(value: &mut Expr) {
    if value.ty != Type::DOUBLE {
        return;
    }
    match &mut value.kind {
        ExprKind::Cast(_, inner) if inner.ty == Type::FLOAT => {
            *value = (**inner).clone();
            return;
        }
        ExprKind::Unary(_, a) | ExprKind::Cast(_, a) => narrow(a),
        ExprKind::Binary(_, a, b) => {
            narrow(a);
            narrow(b);
        }
        ExprKind::Select(_, a, b) => {
            narrow(a);
            narrow(b);
        }
        ExprKind::Call(_, arguments) => arguments.iter_mut().for_each(narrow),
        _ => {}
    }
    value.ty = Type::FLOAT;
}

/// What is left of double arithmetic: nvcc computes in single precision what comes out the same.
fn makes_double(class: Class) -> bool {
    is_double(class) || class == Class::F2f
}

/// Arithmetic that is double for the sake of its constants alone.
struct Tree {
    /// The constants.
    literals: Vec<Site>,
    /// What holds it and the conversion of its result.
    regions: Vec<Site>,
}

/// What is double for the sake of constants alone.
pub(crate) fn regions(ctx: &Context<'_>) -> Vec<Site> {
    if ctx.kernel.language == Language::OpenCl {
        return Vec::new();
    }
    trees(ctx)
        .into_iter()
        .flat_map(|tree| tree.regions)
        .collect()
}

fn trees(ctx: &Context<'_>) -> Vec<Tree> {
    let mut found = Vec::new();
    let mut look = |part: Source| match part {
        Source::Statement(statement) => {
            if let StmtKind::Declare(var, Some(value)) = &statement.kind
                && is_narrow(&ctx.kernel.var(*var).ty)
            {
                found.extend(tree(&[value], false, statement.site));
            }
        }
        Source::Expression(expression) => found.extend(rooted(expression)),
    };
    arith::bodies(ctx).for_each(|body| parts(body, &mut look));
    found
}

/// The tree that an expression is around of: where double becomes something else again.
fn rooted(expression: &Expr) -> Option<Tree> {
    let site = expression.site;
    match &expression.kind {
        ExprKind::Assign(op, place, value) if is_narrow(&place.ty) => {
            tree(&[value], op.is_some() && place.ty == Type::FLOAT, site)
        }
        ExprKind::Cast(_, value) if expression.ty != Type::DOUBLE => tree(&[value], false, site),
        ExprKind::Binary(
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne,
            a,
            b,
        ) => tree(&[a, b], false, site),
        // A constant argument of a function for float is converted when the kernel is compiled.
        ExprKind::Call(Function::Math(..), arguments) if expression.ty == Type::FLOAT => arguments
            .iter()
            .find_map(|argument| tree(&[argument], false, argument.site)),
        ExprKind::Call(Function::Atomic(..), arguments) if expression.ty == Type::FLOAT => {
            tree(&[arguments.get(1)?], false, site)
        }
        _ => None,
    }
}

fn is_narrow(ty: &Type) -> bool {
    matches!(ty, Type::Float { bits: 16 | 32, .. } | Type::Int { .. })
}

/// `promoted` where a float is combined with the value outside of it.
fn tree(values: &[&Expr], promoted: bool, region: Site) -> Option<Tree> {
    if values.iter().all(|value| value.ty != Type::DOUBLE) {
        return None;
    }
    let mut seen = Seen {
        literals: Vec::new(),
        promoted,
    };
    for value in values {
        seen.follow(value)?;
    }
    let regions = values
        .iter()
        .map(|value| value.site)
        .chain([region])
        .collect();
    (seen.promoted && !seen.literals.is_empty()).then_some(Tree {
        literals: seen.literals,
        regions,
    })
}

struct Seen {
    literals: Vec<Site>,
    promoted: bool,
}

impl Seen {
    /// `None` where the value is double for another reason.
    fn follow(&mut self, value: &Expr) -> Option<()> {
        if value.ty == Type::FLOAT {
            self.promoted = true;
            return Some(());
        }
        if value.ty != Type::DOUBLE {
            return is_narrow(&value.ty).then_some(());
        }
        match &value.kind {
            ExprKind::Float(Some(_)) => self.literals.push(value.site),
            ExprKind::Unary(_, a) | ExprKind::Cast(false, a) => self.follow(a)?,
            ExprKind::Binary(_, a, b) | ExprKind::Select(_, a, b) => {
                self.follow(a)?;
                self.follow(b)?;
            }
            ExprKind::Call(Function::Math(_, name), arguments) => {
                // The overload for float is taken where all arguments are; an integer makes it double again, and what
                // a constant exponent costs is another rule's.
                let whole = arguments.iter().any(|argument| argument.ty.is_int());
                if name.starts_with("__") || whole || &**name == "pow" {
                    return None;
                }
                for argument in arguments {
                    self.follow(argument)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}
