//! What actions about arithmetic ask of an expression besides its type.

use warplens_hir::Semantics;
use warplens_hir::semantics::{bare, children};
use warplens_ir::{Function, Type, known_function};
use warplens_syntax::nodes::{BinaryExpression, CastExpression, UnaryExpression};
use warplens_syntax::{BinaryOperator, Field, Kind, Node, UnaryOperator};

use crate::fixes::arithmetic::call;

/// True where evaluating an expression twice is evaluating it once: no assignment, no step, no call but of functions of
/// the mathematical library.
pub(crate) fn repeatable(code: Semantics, node: Node) -> bool {
    node.descendants().iter().all(|one| match one.kind() {
        Kind::AssignmentExpression
        | Kind::UpdateExpression
        | Kind::LambdaExpression
        | Kind::CommaExpression
        | Kind::Error => false,
        Kind::CallExpression => one.field(Field::Function).is_some_and(|function| {
            let name = code.text(function);
            let known = known_function(name.trim_start_matches("std::"), code.is_opencl());
            function.kind() == Kind::PrimitiveType
                || matches!(name, "get_global_id" | "get_local_id")
                || matches!(
                    known,
                    Some(Function::Math(..) | Function::Min | Function::Max | Function::Abs)
                )
        }),
        _ => true,
    })
}

/// The number that an expression always is, where it is written as one.
pub(crate) fn value(code: Semantics, node: Node) -> Option<f64> {
    let node = bare(node);
    let written = code.text(node);
    match node.kind() {
        Kind::NumberLiteral => {
            if written.starts_with("0x") {
                return None;
            }
            written
                .trim_end_matches(['f', 'F', 'u', 'U', 'l', 'L'])
                .parse()
                .ok()
        }
        Kind::UnaryExpression => {
            let unary = UnaryExpression::cast(node)?;
            let inner = value(code, unary.argument()?)?;
            (unary.op()? == UnaryOperator::Minus).then_some(-inner)
        }
        Kind::BinaryExpression => {
            let binary = BinaryExpression::cast(node)?;
            let divides = binary.op()? == BinaryOperator::Divide;
            // Integers cut.
            let whole = code.type_of(node)?.is_int();
            (divides && !whole)
                .then_some(value(code, binary.left()?)? / value(code, binary.right()?)?)
        }
        Kind::CastExpression => {
            let cast = CastExpression::cast(node)?;
            code.named_type(cast.ty()?).filter(Type::is_float)?;
            value(code, cast.value()?)
        }
        _ => None,
    }
}

/// True where the value goes into a float through sums and products of floats and constants alone.
pub(crate) fn becomes_single(code: Semantics, node: Node) -> bool {
    let mut child = node;
    while let Some(parent) = child.parent() {
        match parent.kind() {
            Kind::ParenthesizedExpression | Kind::UnaryExpression => {}
            Kind::BinaryExpression => {
                for side in children(parent) {
                    let called = call(code, side).is_some();
                    let ty = code.type_of(side);
                    let double = ty == Some(Type::DOUBLE) && value(code, side).is_none();
                    if side != child && !called && (ty.is_none() || double) {
                        return false;
                    }
                }
            }
            Kind::InitDeclarator => {
                let ty = parent.parent().and_then(|one| one.field(Field::Type));
                return ty.is_some_and(|ty| code.named_type(ty) == Some(Type::FLOAT));
            }
            Kind::AssignmentExpression => {
                let place = parent.field(Field::Left);
                return place.is_some_and(|place| code.type_of(place) == Some(Type::FLOAT));
            }
            Kind::CastExpression => {
                let ty = parent.field(Field::Type);
                return ty.is_some_and(|ty| code.named_type(ty) == Some(Type::FLOAT));
            }
            _ => return false,
        }
        child = parent;
    }
    false
}
