//! Computes sine and cosine of one argument at once, and those of a multiple of pi without its reduction.

use warplens_hir::Semantics;
use warplens_hir::semantics::bare;
use warplens_hir::semantics::function_around;
use warplens_ir::Type;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, binary, has_word, words_in};

use crate::fixes::arithmetic::{Action, call};
use crate::fixes::types::{becomes_single, value};
use crate::fixes::{Edit, Fix, Kernel, Request};

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/sincos",
        rewrite: &rewritten,
        says: &says,
    };
    action.fixes(request)
}

fn rewritten(code: Semantics, node: Node) -> Option<Vec<Edit>> {
    match of_pi(code, node) {
        Some(text) => Some(vec![(node.byte_range(), text)]),
        None => together(code, node),
    }
}

/// A call's function without namespace and suffix, whether it has the suffix, and its argument.
fn wave<'t>(code: Semantics<'t>, node: Node<'t>) -> Option<(&'t str, bool, Node<'t>)> {
    let (name, arguments) = call(code, node)?;
    let [argument] = arguments[..] else {
        return None;
    };
    match name.strip_prefix("std::").unwrap_or(name) {
        "sin" => Some(("sin", false, argument)),
        "cos" => Some(("cos", false, argument)),
        "sinf" => Some(("sin", true, argument)),
        "cosf" => Some(("cos", true, argument)),
        _ => None,
    }
}

/// `sinf(PI * x)` as `sinpif(x)`.
fn of_pi(code: Semantics, node: Node) -> Option<String> {
    let (name, suffixed, argument) = wave(code, node)?;
    let mut factors = Vec::new();
    product(argument, &mut factors);
    let pi = factors.iter().position(|factor| is_pi(code, *factor))?;
    factors.remove(pi);
    let of_rest = code.type_of(*factors.first()?);
    // Integers would be multiplied as such.
    let floating = of_rest.as_ref().is_some_and(Type::is_float);
    if factors.iter().any(|factor| is_pi(code, *factor)) || (factors.len() > 1 && !floating) {
        return None;
    }
    let texts: Vec<&str> = factors.iter().map(|factor| code.text(*factor)).collect();
    let rest = texts.join(" * ");
    if code.is_opencl() {
        return floating.then(|| format!("{name}pi({rest})"));
    }
    if suffixed || (of_rest == Some(Type::FLOAT) && becomes_single(code, node)) {
        return Some(format!("{name}pif({rest})"));
    }
    (of_rest == Some(Type::DOUBLE)).then(|| format!("{name}pi({rest})"))
}

fn product<'t>(node: Node<'t>, factors: &mut Vec<Node<'t>>) {
    let inner = bare(node);
    if inner.kind() == Kind::BinaryExpression
        && let (Some(a), Some(b)) = (inner.field(Field::Left), inner.field(Field::Right))
        && binary(inner) == Some(BinaryOperator::Multiply)
    {
        product(a, factors);
        product(b, factors);
    } else {
        factors.push(node);
    }
}

fn is_pi(code: Semantics, node: Node) -> bool {
    let node = bare(node);
    match node.kind() {
        Kind::Identifier => matches!(
            code.text(node),
            "M_PI" | "M_PI_F" | "PI" | "PI_F" | "CUDART_PI" | "CUDART_PI_F"
        ),
        Kind::NumberLiteral => {
            value(code, node).is_some_and(|number| (number - std::f64::consts::PI).abs() < 1e-6)
        }
        _ => false,
    }
}

/// A pair as it will be computed.
struct Pair<'t> {
    sine: Node<'t>,
    cosine: Node<'t>,
    /// The statement of the first of them.
    before: Node<'t>,
    argument: &'t str,
    ty: Type,
}

/// The statement around a node that is in a list of statements.
fn statement(node: Node) -> Option<Node> {
    let mut at = node;
    loop {
        let parent = at.parent()?;
        if parent.kind() == Kind::CompoundStatement {
            return Some(at);
        }
        at = parent;
    }
}

/// The pair that a call is the first of.
fn pair<'t>(code: Semantics<'t>, first: Node<'t>) -> Option<Pair<'t>> {
    let (name, suffixed, argument) = wave(code, first)?;
    let before = statement(first)?;
    let list = before.parent()?;
    let written = code.text(argument);
    let second = list.descendants().into_iter().find(|node| {
        node.start_byte() > first.start_byte()
            && node.kind() == Kind::CallExpression
            && wave(code, *node).is_some_and(|(other, same, argument)| {
                other != name && same == suffixed && code.text(argument) == written
            })
            && statement(*node).and_then(|one| one.parent()) == Some(list)
    })?;
    let ty = if suffixed {
        Type::FLOAT
    } else {
        code.type_of(argument).filter(Type::is_float)?
    };
    let (sine, cosine) = if name == "sin" {
        (first, second)
    } else {
        (second, first)
    };
    Some(Pair {
        sine,
        cosine,
        before,
        argument: written,
        ty,
    })
}

fn together(code: Semantics, first: Node) -> Option<Vec<Edit>> {
    let Pair {
        sine,
        cosine,
        before,
        argument,
        ty,
    } = pair(code, first)?;
    let function = function_around(first)?;
    let named = |what: &str| {
        let stem: String = words_in(argument).take(3).collect::<Vec<_>>().join("_");
        // Neither a name of the function's nor that of an earlier pair.
        let earlier = code.source[function.start_byte()..first.start_byte()]
            .matches(code.text(first))
            .count();
        let plain = format!("{what}_of_{stem}");
        let own = |name: &String| earlier == 0 && !has_word(code.text(function), name);
        if own(&plain) {
            return plain;
        }
        (1..100)
            .map(|number| format!("{plain}_{}", number + earlier))
            .find(|name| !has_word(code.text(function), name))
            .unwrap_or(plain)
    };
    let (sine_name, cosine_name) = (named("sine"), named("cosine"));
    let (word, suffix) = match ty {
        Type::Float { bits: 32, .. } => ("float", "f"),
        _ => ("double", ""),
    };
    let start = before.start_byte();
    let line = code.source[..start].rfind('\n').map_or(0, |at| at + 1);
    let indent = &code.source[line..start];
    let apart = if indent.trim().is_empty() {
        format!("\n{indent}")
    } else {
        " ".to_owned()
    };
    let computed = if code.is_opencl() {
        format!(
            "{word} {cosine_name};{apart}{word} {sine_name} = sincos({argument}, &{cosine_name});{apart}"
        )
    } else {
        format!(
            "{word} {sine_name}, {cosine_name};{apart}sincos{suffix}({argument}, &{sine_name}, &{cosine_name});{apart}"
        )
    };
    Some(vec![
        (start..start, computed),
        (sine.byte_range(), sine_name),
        (cosine.byte_range(), cosine_name),
    ])
}

fn says(code: Semantics, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => "",
        _ => " and the like",
    };
    if let Some(simpler) = of_pi(code, first) {
        return Some(format!("Write `{}`{more} as `{simpler}`", code.text(first)));
    }
    let Pair { argument, ty, .. } = pair(code, first)?;
    let suffix = if ty == Type::FLOAT && !code.is_opencl() {
        "f"
    } else {
        ""
    };
    Some(format!(
        "Compute sine and cosine of `{argument}`{more} at once by sincos{suffix}"
    ))
}
