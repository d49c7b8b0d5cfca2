//! Writes divisions of what is never negative by a power of two as shifts, remainders as masks.

use warplens_syntax::{Field, Kind, Node, Parsed};

use crate::fixes::arithmetic::{Action, bare, binds};
use crate::fixes::source::{children, text};
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
    if node.kind() != Kind::BinaryExpression {
        return None;
    }
    let left = node.field(Field::Left)?;
    let right = node.field(Field::Right)?;
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
    match text(parsed, node.field(Field::Operator)?) {
        "/" => Some(format!("({} >> {})", close(left), close(exponent))),
        "%" => Some(format!("({} & ({} - 1))", close(left), close(right))),
        _ => None,
    }
}

/// The `k` of a divisor `1 << k`, or of a name that holds that and never anything else.
fn exponent<'t>(parsed: &'t Parsed, divisor: Node<'t>) -> Option<Node<'t>> {
    let divisor = bare(divisor);
    let power = if divisor.kind() == Kind::Identifier {
        let held = held(parsed, divisor)?;
        let exponent = power(parsed, held)?;
        // What it was made of is still the same.
        let fixed = exponent.kind() == Kind::NumberLiteral
            || (exponent.kind() == Kind::Identifier && unchanged(parsed, exponent));
        return fixed.then_some(exponent);
    } else {
        power(parsed, divisor)?
    };
    repeatable(parsed, power).then_some(power)
}

fn power<'t>(parsed: &Parsed, node: Node<'t>) -> Option<Node<'t>> {
    let node = bare(node);
    if node.kind() != Kind::BinaryExpression {
        return None;
    }
    let one = text(parsed, node.field(Field::Left)?);
    let shifts = text(parsed, node.field(Field::Operator)?) == "<<";
    (shifts && matches!(one, "1" | "1u" | "1U")).then(|| node.field(Field::Right).map(bare))?
}

/// What a name of a function is declared with, where it is declared once and never assigned.
fn held<'t>(parsed: &'t Parsed, name: Node<'t>) -> Option<Node<'t>> {
    let function = types::function(name)?;
    let all = declarations(parsed, function, text(parsed, name));
    let [(_, declarator)] = all[..] else {
        return None;
    };
    (declarator.kind() == Kind::InitDeclarator && unchanged(parsed, name))
        .then(|| declarator.field(Field::Value))?
}

/// True where a name is declared once in its function and nothing there may change it.
fn unchanged(parsed: &Parsed, name: Node) -> bool {
    let Some(function) = types::function(name) else {
        return false;
    };
    let word = text(parsed, name);
    let names = |node: Option<Node>| node.is_some_and(|node| text(parsed, bare(node)) == word);
    declarations(parsed, function, word).len() == 1
        && !function.descendants().iter().any(|node| match node.kind() {
            Kind::AssignmentExpression => names(node.field(Field::Left)),
            Kind::UpdateExpression => names(node.field(Field::Argument)),
            Kind::PointerExpression => names(node.field(Field::Argument)),
            Kind::ReferenceDeclarator | Kind::LambdaExpression | Kind::Error => true,
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
        Kind::NumberLiteral => true,
        Kind::FieldExpression => node.field(Field::Argument).is_some_and(|of| {
            matches!(
                text(parsed, of),
                "threadIdx" | "blockIdx" | "blockDim" | "gridDim"
            )
        }),
        Kind::CallExpression => node.field(Field::Function).is_some_and(|of| {
            matches!(
                text(parsed, of),
                "get_global_id"
                    | "get_local_id"
                    | "get_group_id"
                    | "get_local_size"
                    | "get_num_groups"
            )
        }),
        Kind::BinaryExpression => {
            let operator = node.field(Field::Operator);
            let closed = operator
                .is_some_and(|one| matches!(text(parsed, one), "+" | "*" | "/" | "%" | ">>"));
            closed && field(Field::Left) && field(Field::Right)
        }
        Kind::Identifier => {
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
    !matches!(
        declarator.kind(),
        Kind::PointerDeclarator | Kind::ArrayDeclarator
    ) && (written.starts_with("unsigned") || matches!(written, "uint" | "size_t" | "uint32_t"))
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
    let begins = declarator.kind() == Kind::InitDeclarator
        && declarator
            .field(Field::Value)
            .is_some_and(|value| never_negative(parsed, value, depth));
    let grows = function.descendants().iter().all(|node| {
        let at = |field| {
            node.field(field)
                .is_some_and(|inner| text(parsed, bare(inner)) == word)
        };
        match node.kind() {
            Kind::UpdateExpression if at(Field::Argument) => text(parsed, *node).contains("++"),
            Kind::AssignmentExpression if at(Field::Left) => {
                let operator = node.field(Field::Operator);
                let adds = operator.is_some_and(|one| text(parsed, one) == "+=");
                adds && node
                    .field(Field::Right)
                    .is_some_and(|value| never_negative(parsed, value, depth))
            }
            Kind::PointerExpression => !at(Field::Argument),
            Kind::ReferenceDeclarator | Kind::LambdaExpression | Kind::Error => false,
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
