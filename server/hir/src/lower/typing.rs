//! The types of expressions of whose operands only the types are known, by the rules that lowering follows.

use warplens_ir::{Expr, ExprKind, Function, MathClass, Opaque, Site, Type, known_function};
use warplens_syntax::BinaryOperator;

use super::construct::binary_op;
use super::construct::known_call;
use super::construct::operation;
use super::literals;

/// Something of a type.
fn operand(ty: Type) -> Expr {
    Expr {
        kind: ExprKind::Opaque(Opaque::Unknown, Vec::new()),
        ty,
        site: Site::default(),
    }
}

/// The type of a number as written.
pub(crate) fn number(text: &str, opencl: bool) -> Type {
    literals::number(text, opencl).1
}

/// The type of an operator on two operands.
pub(crate) fn operation_on(operator: BinaryOperator, left: Type, right: Type) -> Type {
    let operands = (operand(left), operand(right));
    operation(binary_op(operator), operands.0, operands.1, Site::default()).ty
}

/// The type of a call of a known function.
pub(crate) fn call(function: Function, name: &str, arguments: Vec<Type>) -> Type {
    let arguments = arguments.into_iter().map(operand).collect();
    known_call(function, name, arguments, Site::default()).ty
}

/// True for a function that gives a `float` whatever it is given.
pub(crate) fn gives_float(name: &str, opencl: bool) -> bool {
    let floating = matches!(
        known_function(name, opencl),
        Some(Function::Math(MathClass::Float(_) | MathClass::Special, _))
    );
    let given = Function::Math(MathClass::Special, name.into());
    floating && call(given, name, vec![Type::DOUBLE]) == Type::FLOAT
}

/// First lane and number of lanes that a vector field names.
pub(crate) fn lanes(name: &str, lanes: u8) -> Option<(u8, u8)> {
    literals::swizzle(name, lanes)
}

/// A built-in type by name, of several words too.
pub(crate) fn named(name: &str, opencl: bool) -> Option<Type> {
    Type::named(name, opencl).or_else(|| literals::sized(name))
}
