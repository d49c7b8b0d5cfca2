//! Writes divisions of what is never negative by a power of two as shifts, remainders as masks.

use warplens_syntax::Fields as _;
use warplens_syntax::{Node, Parsed};

use crate::fixes::arithmetic::{Action, bare, binds};
use crate::fixes::source::{children, descendants, text};
use crate::fixes::types::{self, declarations, repeatable};
use crate::fixes::{Fix, Kernel, Request};

/// Names that are followed to what they hold.
const DEEPEST: u32 = 6;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/int-div-mod",
        rewrite: &|parsed, node| shifted(parsed, node).map(|text| vec![(node.byte_range(), text)]),
        says: &says,
    };
    action.fixes(request)
}

/// `i / (1 << k)` as `(i >> k)`, `i % w` with `w = 1 << k` as `(i & (w - 1))`.
fn shifted(parsed: &Parsed, node: Node) -> Option<String> {
    if node.kind() != "binary_expression" {
        return None;
    }
    let left = node.field("left")?;
    let right = node.field("right")?;
    let exponent = exponent(parsed, right)?;
    if !never_negative(parsed, left, DEEPEST) {
        return None;
    }
    let close = |node: Node| {
        let written = text(parsed, node);
        if binds(node) {
            written.to_owned()
        } else {
            format!("({written})")
        }
    };
    match text(parsed, node.field("operator")?) {
        "/" => Some(format!("({} >> {})", close(left), close(exponent))),
        "%" => Some(format!("({} & ({} - 1))", close(left), close(right))),
        _ => None,
    }
}

/// The `k` of a divisor `1 << k`, or of a name that holds that and never anything else.
fn exponent<'t>(parsed: &'t Parsed, divisor: Node<'t>) -> Option<Node<'t>> {
    let divisor = bare(divisor);
    let power = if divisor.kind() == "identifier" {
        let held = held(parsed, divisor)?;
        let exponent = power(parsed, held)?;
        // What it was made of is still the same.
        let fixed = exponent.kind() == "number_literal"
            || (exponent.kind() == "identifier" && unchanged(parsed, exponent));
        return fixed.then_some(exponent);
    } else {
        power(parsed, divisor)?
    };
    repeatable(parsed, power).then_some(power)
}

fn power<'t>(parsed: &Parsed, node: Node<'t>) -> Option<Node<'t>> {
    let node = bare(node);
    if node.kind() != "binary_expression" {
        return None;
    }
    let one = text(parsed, node.field("left")?);
    let shifts = text(parsed, node.field("operator")?) == "<<";
    (shifts && matches!(one, "1" | "1u" | "1U")).then(|| node.field("right").map(bare))?
}

/// What a name of a function is declared with, where it is declared once and never assigned.
fn held<'t>(parsed: &'t Parsed, name: Node<'t>) -> Option<Node<'t>> {
    let function = types::function(name)?;
    let all = declarations(parsed, function, text(parsed, name));
    let [(_, declarator)] = all[..] else {
        return None;
    };
    (declarator.kind() == "init_declarator" && unchanged(parsed, name))
        .then(|| declarator.field("value"))?
}

/// True where a name is declared once in its function and nothing there may change it.
fn unchanged(parsed: &Parsed, name: Node) -> bool {
    let Some(function) = types::function(name) else {
        return false;
    };
    let word = text(parsed, name);
    let names = |node: Option<Node>| node.is_some_and(|node| text(parsed, bare(node)) == word);
    declarations(parsed, function, word).len() == 1
        && !descendants(function).iter().any(|node| match node.kind() {
            "assignment_expression" => names(node.field("left")),
            "update_expression" => names(node.field("argument")),
            "pointer_expression" => names(node.field("argument")),
            "reference_declarator" | "lambda_expression" | "ERROR" => true,
            _ => false,
        })
}

/// True where an integer cannot be negative, whatever the launch: coordinates and sizes, literals, unsigned numbers, and
/// what sums, products, quotients and remainders make of them. An `int` does not overflow.
fn never_negative(parsed: &Parsed, node: Node, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    let node = bare(node);
    let field = |name| {
        node.field(name)
            .is_some_and(|inner| never_negative(parsed, inner, depth))
    };
    match node.kind() {
        "number_literal" => true,
        "field_expression" => node.field("argument").is_some_and(|of| {
            matches!(
                text(parsed, of),
                "threadIdx" | "blockIdx" | "blockDim" | "gridDim"
            )
        }),
        "call_expression" => node.field("function").is_some_and(|of| {
            matches!(
                text(parsed, of),
                "get_global_id"
                    | "get_local_id"
                    | "get_group_id"
                    | "get_local_size"
                    | "get_num_groups"
            )
        }),
        "binary_expression" => {
            let operator = node.field("operator");
            let closed = operator
                .is_some_and(|one| matches!(text(parsed, one), "+" | "*" | "/" | "%" | ">>"));
            closed && field("left") && field("right")
        }
        "identifier" => {
            is_unsigned(parsed, node)
                || held(parsed, node).is_some_and(|value| never_negative(parsed, value, depth))
                || counts_up(parsed, node, depth)
        }
        _ => false,
    }
}

fn is_unsigned(parsed: &Parsed, name: Node) -> bool {
    let Some(function) = types::function(name) else {
        return false;
    };
    let all = declarations(parsed, function, text(parsed, name));
    let [(ty, declarator)] = all[..] else {
        return false;
    };
    let written = text(parsed, ty);
    !matches!(declarator.kind(), "pointer_declarator" | "array_declarator")
        && (written.starts_with("unsigned") || matches!(written, "uint" | "size_t" | "uint32_t"))
}

/// The counter of a `for` that begins at what is not negative and only grows.
fn counts_up(parsed: &Parsed, name: Node, depth: u32) -> bool {
    let word = text(parsed, name);
    let Some(function) = types::function(name) else {
        return false;
    };
    let all = declarations(parsed, function, word);
    let [(_, declarator)] = all[..] else {
        return false;
    };
    let begins = declarator.kind() == "init_declarator"
        && declarator
            .field("value")
            .is_some_and(|value| never_negative(parsed, value, depth));
    let grows = descendants(function).iter().all(|node| {
        let at = |field| {
            node.field(field)
                .is_some_and(|inner| text(parsed, bare(inner)) == word)
        };
        match node.kind() {
            "update_expression" if at("argument") => text(parsed, *node).contains("++"),
            "assignment_expression" if at("left") => {
                let operator = node.field("operator");
                let adds = operator.is_some_and(|one| text(parsed, one) == "+=");
                adds && node
                    .field("right")
                    .is_some_and(|value| never_negative(parsed, value, depth))
            }
            "pointer_expression" => !at("argument"),
            "reference_declarator" | "lambda_expression" | "ERROR" => false,
            _ => true,
        }
    });
    begins && grows && !children(function).is_empty()
}

fn says(parsed: &Parsed, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => String::new(),
        2 => " and another division".to_owned(),
        many => format!(" and {} other divisions", many - 1),
    };
    Some(format!(
        "Write `{}`{more} as `{}`",
        text(parsed, first),
        shifted(parsed, first)?,
    ))
}
