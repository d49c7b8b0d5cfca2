//! Computes sine and cosine of one argument at once, and those of a multiple of pi without its reduction.

use warplens_syntax::{Field, Kind, Node, Parsed, has_word, words_in};

use crate::fixes::arithmetic::{Action, bare, call};
use crate::fixes::source::text;
use crate::fixes::types::{self, Number, becomes_single, value};
use crate::fixes::{Edit, Fix, Kernel, Request};

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/sincos",
        rewrite: &rewritten,
        says: &says,
    };
    action.fixes(request)
}

fn rewritten(parsed: &Parsed, node: Node) -> Option<Vec<Edit>> {
    match of_pi(parsed, node) {
        Some(text) => Some(vec![(node.byte_range(), text)]),
        None => together(parsed, node),
    }
}

/// A call's function without namespace and suffix, whether it has the suffix, and its argument.
fn wave<'t>(parsed: &'t Parsed, node: Node<'t>) -> Option<(&'t str, bool, Node<'t>)> {
    let (name, arguments) = call(parsed, node)?;
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

fn is_opencl(parsed: &Parsed) -> bool {
    parsed.text.contains("get_global_id") || parsed.text.contains("__kernel")
}

/// `sinf(PI * x)` as `sinpif(x)`.
fn of_pi(parsed: &Parsed, node: Node) -> Option<String> {
    let (name, suffixed, argument) = wave(parsed, node)?;
    let mut factors = Vec::new();
    product(parsed, argument, &mut factors);
    let pi = factors.iter().position(|factor| is_pi(parsed, *factor))?;
    factors.remove(pi);
    let of_rest = types::of(parsed, *factors.first()?);
    // Integers would be multiplied as such.
    let floating = matches!(of_rest, Some(Number::Single | Number::Double));
    if factors.iter().any(|factor| is_pi(parsed, *factor)) || (factors.len() > 1 && !floating) {
        return None;
    }
    let texts: Vec<&str> = factors.iter().map(|factor| text(parsed, *factor)).collect();
    let rest = texts.join(" * ");
    if is_opencl(parsed) {
        return floating.then(|| format!("{name}pi({rest})"));
    }
    if suffixed || (of_rest == Some(Number::Single) && becomes_single(parsed, node)) {
        return Some(format!("{name}pif({rest})"));
    }
    (of_rest == Some(Number::Double)).then(|| format!("{name}pi({rest})"))
}

fn product<'t>(parsed: &Parsed, node: Node<'t>, factors: &mut Vec<Node<'t>>) {
    let inner = bare(node);
    if inner.kind() == Kind::BinaryExpression
        && let (Some(a), Some(b), Some(operator)) = (
            inner.field(Field::Left),
            inner.field(Field::Right),
            inner.field(Field::Operator),
        )
        && text(parsed, operator) == "*"
    {
        product(parsed, a, factors);
        product(parsed, b, factors);
    } else {
        factors.push(node);
    }
}

fn is_pi(parsed: &Parsed, node: Node) -> bool {
    let node = bare(node);
    match node.kind() {
        Kind::Identifier => matches!(
            text(parsed, node),
            "M_PI" | "M_PI_F" | "PI" | "PI_F" | "CUDART_PI" | "CUDART_PI_F"
        ),
        Kind::NumberLiteral => {
            value(parsed, node).is_some_and(|number| (number - std::f64::consts::PI).abs() < 1e-6)
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
    ty: Number,
}

/// The statement around a node that stands in a list of statements.
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
fn pair<'t>(parsed: &'t Parsed, first: Node<'t>) -> Option<Pair<'t>> {
    let (name, suffixed, argument) = wave(parsed, first)?;
    let before = statement(first)?;
    let list = before.parent()?;
    let written = text(parsed, argument);
    let second = list.descendants().into_iter().find(|node| {
        node.start_byte() > first.start_byte()
            && node.kind() == Kind::CallExpression
            && wave(parsed, *node).is_some_and(|(other, same, argument)| {
                other != name && same == suffixed && text(parsed, argument) == written
            })
            && statement(*node).and_then(|one| one.parent()) == Some(list)
    })?;
    let ty = if suffixed {
        Number::Single
    } else {
        types::of(parsed, argument).filter(|ty| *ty != Number::Whole)?
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

fn together(parsed: &Parsed, first: Node) -> Option<Vec<Edit>> {
    let Pair {
        sine,
        cosine,
        before,
        argument,
        ty,
    } = pair(parsed, first)?;
    let function = types::function(first)?;
    let named = |what: &str| {
        let stem: String = words_in(argument).take(3).collect::<Vec<_>>().join("_");
        // Neither a name of the function's nor that of an earlier pair.
        let earlier = parsed.text[function.start_byte()..first.start_byte()]
            .matches(text(parsed, first))
            .count();
        let plain = format!("{what}_of_{stem}");
        let own = |name: &String| earlier == 0 && !has_word(text(parsed, function), name);
        if own(&plain) {
            return plain;
        }
        (1..100)
            .map(|number| format!("{plain}_{}", number + earlier))
            .find(|name| !has_word(text(parsed, function), name))
            .unwrap_or(plain)
    };
    let (sine_name, cosine_name) = (named("sine"), named("cosine"));
    let (word, suffix) = match ty {
        Number::Single => ("float", "f"),
        _ => ("double", ""),
    };
    let start = before.start_byte();
    let line = parsed.text[..start].rfind('\n').map_or(0, |at| at + 1);
    let indent = &parsed.text[line..start];
    let apart = if indent.trim().is_empty() {
        format!("\n{indent}")
    } else {
        " ".to_owned()
    };
    let computed = if is_opencl(parsed) {
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

fn says(parsed: &Parsed, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => "",
        _ => " and the like",
    };
    if let Some(simpler) = of_pi(parsed, first) {
        return Some(format!(
            "Write `{}`{more} as `{simpler}`",
            text(parsed, first)
        ));
    }
    let Pair { argument, ty, .. } = pair(parsed, first)?;
    let suffix = if ty == Number::Single && !is_opencl(parsed) {
        "f"
    } else {
        ""
    };
    Some(format!(
        "Compute sine and cosine of `{argument}`{more} at once by sincos{suffix}"
    ))
}
