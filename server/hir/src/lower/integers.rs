//! Whether a kernel's text shows that a type is an integer: its values are subscripts or operands of `%`, a shift or a bitwise
//! operator, which C++ has for integers alone ([expr.sub], [expr.mul], [expr.shift], [expr.bit.and]), or a variable declared as an
//! integer begins with one of them as it is.
//!
//! In: the text of a kernel and the name of a type. Out: true where the text shows it. Values are followed through variables,
//! parameters and elements declared with that type, not through calls, casts and `auto`.

use warplens_syntax::{BinaryOperator, Field, Kind, Node, binary};

use super::forms::innermost;
use super::{Source, parts, text_of};

/// See the module.
pub(super) fn shows_integer(ty: &str, kernel: Node, source: Source) -> bool {
    let names = declared_with(ty, kernel, source);
    let is_value = |node: Node| names.contains(&text_of(node, source));
    kernel
        .descendants()
        .into_iter()
        .any(|node| match node.kind() {
            Kind::SubscriptExpression => subscripts(node)
                .into_iter()
                .any(|index| has_term(index, &is_value)),
            Kind::BinaryExpression => {
                let of_integers = matches!(
                    binary(node),
                    Some(
                        BinaryOperator::Remainder
                            | BinaryOperator::ShiftLeft
                            | BinaryOperator::ShiftRight
                            | BinaryOperator::BitAnd
                            | BinaryOperator::BitOr
                            | BinaryOperator::BitXor
                    )
                );
                of_integers
                    && [Field::Left, Field::Right]
                        .into_iter()
                        .filter_map(|side| node.field(side))
                        .any(|operand| has_term(operand, &is_value))
            }
            // `int j = offsets[row]`: an offset, a count or an index. A number that is scaled and rounded, `int bin = x[i] * 16`, is none.
            Kind::Declaration => {
                node.field(Field::Type)
                    .is_some_and(|of| is_integer_type(text_of(of, source)))
                    && node
                        .fields(Field::Declarator)
                        .filter_map(|declared| declared.field(Field::Value))
                        .any(|value| {
                            value.kind() != Kind::BinaryExpression && has_term(value, &is_value)
                        })
            }
            _ => false,
        })
}

/// `int`, `unsigned int`, `size_t`, `int64_t`.
fn is_integer_type(spelled: &str) -> bool {
    spelled.split_whitespace().all(|word| {
        matches!(
            word,
            "int" | "unsigned" | "signed" | "long" | "short" | "size_t"
        ) || word
            .trim_start_matches('u')
            .strip_prefix("int")
            .and_then(|rest| rest.strip_suffix("_t"))
            .is_some_and(|bits| bits.parse::<u8>().is_ok())
    })
}

/// Names of variables and parameters of a type, of pointers to it and of arrays of it.
fn declared_with<'t>(ty: &str, kernel: Node, source: Source<'t>) -> Vec<&'t str> {
    let mut names = Vec::new();
    for node in kernel.descendants() {
        let declares = node.kind() == Kind::Declaration || node.kind().is_parameter_declaration();
        let of_type = || {
            node.field(Field::Type)
                .is_some_and(|of| text_of(of, source) == ty)
        };
        if declares && of_type() {
            let declarators = node.fields(Field::Declarator);
            names.extend(declarators.map(|declarator| text_of(innermost(declarator), source)));
        }
    }
    names
}

fn subscripts(node: Node) -> Vec<Node> {
    match (node.field(Field::Indices), node.field(Field::Index)) {
        (Some(list), _) => parts(list),
        (None, index) => index.into_iter().collect(),
    }
}

/// True where a value, or an element of one, is a term or a factor of the expression.
fn has_term(expression: Node, is_value: &impl Fn(Node) -> bool) -> bool {
    match expression.kind() {
        Kind::Identifier => is_value(expression),
        // A comparison is an integer whatever is compared; bitwise operators are asked by themselves.
        Kind::BinaryExpression
            if !binary(expression).is_some_and(BinaryOperator::is_arithmetic) =>
        {
            false
        }
        Kind::ParenthesizedExpression | Kind::BinaryExpression => {
            let mut operands = parts(expression).into_iter();
            operands.any(|operand| has_term(operand, is_value))
        }
        Kind::SubscriptExpression => expression
            .field(Field::Argument)
            .is_some_and(|array| has_term(array, is_value)),
        _ => false,
    }
}
