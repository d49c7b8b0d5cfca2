//! arith/sincos: sine and cosine of one argument apart, or of a multiple of pi.

pub(crate) mod sine_and_cosine;

use warplens_facts::facts::Site;
use warplens_ir::{BinaryOp, Expr, ExprKind, Part as Source, Stmt, StmtKind, Type, VarId, parts};

use crate::rule::{Look, Rule, State, When};
use crate::subjects::arith::{self, Executed, Part, bits, constant, instead};
use crate::wording::{counted, number};
use crate::{Context, Finding};

pub(crate) const RULE: Rule = Rule {
    id: "arith/sincos",
    title: "sine and cosine of one argument apart, or of a multiple of pi",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[sine_and_cosine::fixes],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut candidates = Vec::new();
    for body in arith::bodies(ctx) {
        pairs(body, &mut candidates);
    }
    arith::expressions(ctx, &mut |expression| {
        if let Some(function) = of_pi(expression) {
            candidates.push(Candidate {
                calls: vec![expression.site],
                function,
                bits: bits(&expression.ty).unwrap_or(32),
            });
        }
    });
    if candidates.is_empty() {
        return Vec::new();
    }
    let Some(executed) = Executed::new(ctx) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for together in [true, false] {
        let (mut before, mut after) = (Part::default(), Part::default());
        let mut sites = Vec::new();
        for candidate in candidates
            .iter()
            .filter(|one| (one.calls.len() > 1) == together)
        {
            let each: Vec<Part> = candidate
                .calls
                .iter()
                .map(|call| executed.at(|site| site == *call))
                .collect();
            // What the compiler took away or shared costs nothing.
            if each
                .iter()
                .any(|part| part.total() <= 0.0 || part.is_rare())
            {
                continue;
            }
            let Some(others) = executed.library(candidate.function, candidate.bits) else {
                continue;
            };
            let becomes = each[0].by(&others, each[0].calls());
            let mut part = Part::default();
            for one in &each {
                part.merge(one);
            }
            if part.total() <= becomes.total() {
                continue;
            }
            before.merge(&part);
            after.merge(&becomes);
            let does = format!("{} does", candidate.function);
            sites.extend(candidate.calls.iter().map(|call| (*call, does.clone())));
        }
        let Some((first, does)) = sites.iter().min_by_key(|(site, _)| site.span).cloned() else {
            continue;
        };
        let cause = if together {
            format!(
                "`{}` and its counterpart of the same argument reduce it twice, {does} both at once",
                arith::quote(ctx, first)
            )
        } else {
            format!(
                "`{}` reduces a multiple of pi, {does} without",
                arith::quote(ctx, first)
            )
        };
        let says = format!(
            "use {} ({} instructions per warp, ideal {})\n\
             a warp executes {} (ideal {}): {cause}",
            does.strip_suffix(" does").unwrap_or(&does),
            number(before.total()),
            number(after.total()),
            counted(before.total(), "instruction", "instructions"),
            number(after.total()),
        );
        let gain = instead(ctx, &before, &after);
        found.extend(arith::finding(RULE.id, &executed, &sites, says, gain));
    }
    found
}

/// Calls that one function does.
struct Candidate {
    calls: Vec<Site>,
    function: &'static str,
    bits: u8,
}

/// `sin(pi * x)`: what does it. Pi is a factor of a product, and not all of it.
fn of_pi(expression: &Expr) -> Option<&'static str> {
    let (name, [argument]) = arith::called(expression)? else {
        return None;
    };
    let function = match name {
        "sin" => "sinpi",
        "cos" => "cospi",
        _ => return None,
    };
    let mut factors = 0;
    let times = factors_of_pi(argument, &mut factors);
    (times == 1 && factors > 1 && constant(argument).is_none()).then_some(function)
}

fn factors_of_pi(value: &Expr, factors: &mut u32) -> u32 {
    const NEAR: f64 = 1e-6;
    match &value.kind {
        ExprKind::Binary(BinaryOp::Mul, a, b) if value.ty.is_float() => {
            factors_of_pi(a, factors) + factors_of_pi(b, factors)
        }
        ExprKind::Cast(false, inner) if inner.ty.is_float() => factors_of_pi(inner, factors),
        _ => {
            *factors += 1;
            let near = |number: f64| (number - std::f64::consts::PI).abs() < NEAR;
            u32::from(matches!(value.kind, ExprKind::Float(_)) && constant(value).is_some_and(near))
        }
    }
}

/// Sines and cosines of one argument in one list of statements, nothing changing it in between.
fn pairs(statements: &[Stmt], found: &mut Vec<Candidate>) {
    let mut open: Vec<&Expr> = Vec::new();
    for statement in statements {
        if statement.blocks().next().is_some() {
            open.clear();
            for (_, inner) in statement.blocks() {
                pairs(inner, found);
            }
            continue;
        }
        for value in statement.values() {
            straight(value, &mut open, found);
        }
        let changed = changed(statement);
        open.retain(|call| {
            let reads = |id: &VarId| call.reads(&[*id]);
            !(changed.variables.iter().any(reads) || changed.memory && call.reads_or_forks())
        });
    }
}

/// The calls that one expression certainly makes, with those open before.
fn straight<'a>(value: &'a Expr, open: &mut Vec<&'a Expr>, found: &mut Vec<Candidate>) {
    match &value.kind {
        // What may not be evaluated, or has statements of its own.
        ExprKind::Select(..)
        | ExprKind::Inline(..)
        | ExprKind::Apply(..)
        | ExprKind::Binary(BinaryOp::LogicalAnd | BinaryOp::LogicalOr, ..) => return,
        ExprKind::Binary(_, a, b) | ExprKind::Assign(_, a, b) | ExprKind::Index(a, b) => {
            straight(a, open, found);
            straight(b, open, found);
        }
        ExprKind::Unary(_, a)
        | ExprKind::Cast(_, a)
        | ExprKind::Deref(a)
        | ExprKind::Field(a, _)
        | ExprKind::AddressOf(a) => straight(a, open, found),
        ExprKind::Call(_, all) | ExprKind::List(all) => {
            for one in all {
                straight(one, open, found);
            }
        }
        _ => {}
    }
    let Some((name @ ("sin" | "cos"), [argument])) = arith::called(value) else {
        return;
    };
    let counterpart = open.iter().position(|other| {
        let Some((of, [same])) = arith::called(other) else {
            return false;
        };
        of != name && other.ty == value.ty && same.is_alike(argument)
    });
    match counterpart {
        Some(at) => {
            let other = open.remove(at);
            let Some(bits) = bits(&value.ty).filter(|bits| *bits >= 32) else {
                return;
            };
            found.push(Candidate {
                calls: vec![other.site, value.site],
                function: "sincos",
                bits,
            });
        }
        // Its counterpart may come.
        None => open.push(value),
    }
}

/// What a statement changes.
struct Changed {
    variables: Vec<VarId>,
    memory: bool,
}

fn changed(statement: &Stmt) -> Changed {
    let mut changed = Changed {
        variables: Vec::new(),
        memory: false,
    };
    parts(std::slice::from_ref(statement), &mut |part| {
        let Source::Expression(expression) = part else {
            return;
        };
        match &expression.kind {
            ExprKind::Assign(_, place, _) | ExprKind::Step(_, _, place) => match root(place) {
                Some(id) if !matches!(place.ty, Type::Pointer(..)) => changed.variables.push(id),
                _ => changed.memory = true,
            },
            ExprKind::Call(..) | ExprKind::Apply(..) | ExprKind::Opaque(..)
                if arith::called(expression).is_none() =>
            {
                changed.memory = true;
            }
            _ => {}
        }
    });
    if let StmtKind::Declare(var, _) = &statement.kind {
        changed.variables.push(*var);
    }
    if statement.may_change_memory() {
        changed.memory = true;
    }
    changed
}

/// The variable that a place is, or is part of; `None` for memory.
fn root(place: &Expr) -> Option<VarId> {
    match &place.kind {
        ExprKind::Var(id) => Some(*id),
        ExprKind::Field(inner, _) => root(inner),
        _ => None,
    }
}
