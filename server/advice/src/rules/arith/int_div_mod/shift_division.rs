//! Writes divisions of what is never negative by a power of two as shifts, remainders as masks.

use warplens_hir::Semantics;
use warplens_hir::semantics::{Declaration, ElementUse, bare, function_around, is_assigned};
use warplens_ir::Type;
use warplens_syntax::nodes::UpdateExpression;
use warplens_syntax::{
    AssignOperator, BinaryOperator, Field, Kind, Node, UpdateOperator, assigned, binary,
};

use crate::fixes::arithmetic::{Action, binds};
use crate::fixes::types::repeatable;
use crate::fixes::{Fix, Kernel, Request};

/// Names that are followed to what they hold.
const DEEPEST: u32 = 6;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/int-div-mod",
        rewrite: &|code, node| shifted(code, node).map(|text| vec![(node.byte_range(), text)]),
        says: &says,
    };
    action.fixes(request)
}

/// `i / (1 << k)` as `(i >> k)`, `i % w` with `w = 1 << k` as `(i & (w - 1))`.
fn shifted(code: Semantics, node: Node) -> Option<String> {
    if node.kind() != Kind::BinaryExpression {
        return None;
    }
    let left = node.field(Field::Left)?;
    let right = node.field(Field::Right)?;
    let exponent = exponent(code, right)?;
    if !never_negative(code, left, DEEPEST) {
        return None;
    }
    let close = |node: Node| {
        let written = code.text(node);
        if binds(node) {
            written.to_owned()
        } else {
            format!("({written})")
        }
    };
    match binary(node)? {
        BinaryOperator::Divide => Some(format!("({} >> {})", close(left), close(exponent))),
        BinaryOperator::Remainder => Some(format!("({} & ({} - 1))", close(left), close(right))),
        _ => None,
    }
}

/// The `k` of a divisor `1 << k`, or of a name that holds that and never anything else.
fn exponent<'t>(code: Semantics<'t>, divisor: Node<'t>) -> Option<Node<'t>> {
    let divisor = bare(divisor);
    let power = if divisor.kind() == Kind::Identifier {
        let held = held(code, divisor)?;
        let exponent = power(code, held)?;
        // What it was made of is still the same.
        let fixed = exponent.kind() == Kind::NumberLiteral
            || (exponent.kind() == Kind::Identifier && kept(code, exponent).is_some());
        return fixed.then_some(exponent);
    } else {
        power(code, divisor)?
    };
    repeatable(code, power).then_some(power)
}

fn power<'t>(code: Semantics, node: Node<'t>) -> Option<Node<'t>> {
    let node = bare(node);
    if node.kind() != Kind::BinaryExpression {
        return None;
    }
    let one = code.text(node.field(Field::Left)?);
    let shifts = binary(node)? == BinaryOperator::ShiftLeft;
    (shifts && matches!(one, "1" | "1u" | "1U")).then(|| node.field(Field::Right).map(bare))?
}

/// What a name of a function is declared with, where it is never given anything else.
fn held<'t>(code: Semantics<'t>, name: Node<'t>) -> Option<Node<'t>> {
    let declaration = kept(code, name)?;
    declaration.value()
}

/// The declaration of a name in its function, where nothing there may change it.
fn kept<'t>(code: Semantics<'t>, name: Node<'t>) -> Option<Declaration<'t>> {
    let declaration = local(code, name)?;
    (!code.is_changed(&declaration)).then_some(declaration)
}

/// The declaration of a name in the function around it.
fn local<'t>(code: Semantics<'t>, name: Node<'t>) -> Option<Declaration<'t>> {
    let function = function_around(name).filter(|function| !function.has_error())?;
    code.declaration(name)
        .filter(|declared| function_around(declared.name) == Some(function))
}

/// True where an integer cannot be negative, whatever the launch: coordinates and sizes, literals, unsigned numbers, and
/// what sums, products, quotients and remainders make of them. An `int` does not overflow.
fn never_negative(code: Semantics, node: Node, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    let node = bare(node);
    let field = |name| {
        node.field(name)
            .is_some_and(|inner| never_negative(code, inner, depth))
    };
    match node.kind() {
        Kind::NumberLiteral => true,
        Kind::FieldExpression => node
            .field(Field::Argument)
            .is_some_and(|of| code.is_coordinate(of)),
        Kind::CallExpression => node.field(Field::Function).is_some_and(|of| {
            matches!(
                code.text(of),
                "get_global_id"
                    | "get_local_id"
                    | "get_group_id"
                    | "get_local_size"
                    | "get_num_groups"
            )
        }),
        Kind::BinaryExpression => {
            use BinaryOperator::{Add, Divide, Multiply, Remainder, ShiftRight};
            let closed = [Add, Multiply, Divide, Remainder, ShiftRight].map(Some);
            closed.contains(&binary(node)) && field(Field::Left) && field(Field::Right)
        }
        Kind::Identifier => {
            is_unsigned(code, node)
                || held(code, node).is_some_and(|value| never_negative(code, value, depth))
                || counts_up(code, node, depth)
        }
        _ => false,
    }
}

fn is_unsigned(code: Semantics, name: Node) -> bool {
    let ty = local(code, name).and_then(|declared| code.declared_type(&declared));
    matches!(ty, Some(Type::Int { signed: false, .. }))
}

/// The counter of a `for` that begins at what is not negative and only grows.
fn counts_up(code: Semantics, name: Node, depth: u32) -> bool {
    let Some(declaration) = local(code, name) else {
        return false;
    };
    let begins = declaration
        .value()
        .is_some_and(|value| never_negative(code, value, depth));
    let grows = |used: Node| {
        let Some(parent) = used.parent() else {
            return false;
        };
        match parent.kind() {
            Kind::UpdateExpression => {
                UpdateExpression::cast(parent).and_then(UpdateExpression::op)
                    == Some(UpdateOperator::Increment)
            }
            Kind::AssignmentExpression if is_assigned(used) => {
                let adds = AssignOperator::With(BinaryOperator::Add);
                assigned(parent) == Some(adds)
                    && parent
                        .field(Field::Right)
                        .is_some_and(|value| never_negative(code, value, depth))
            }
            Kind::LambdaCaptureSpecifier => false,
            _ => code.hands(used) == ElementUse::Value,
        }
    };
    let uses = code.uses(&declaration);
    begins && uses.is_some_and(|uses| uses.into_iter().all(grows))
}

fn says(code: Semantics, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => String::new(),
        2 => " and another division".to_owned(),
        many => format!(" and {} other divisions", many - 1),
    };
    Some(format!(
        "Write `{}`{more} as `{}`",
        code.text(first),
        shifted(code, first)?,
    ))
}
