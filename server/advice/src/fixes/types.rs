//! The types of expressions, as far as the text of a function says them.

use warplens_syntax::{Field, Kind, Node, Parsed, words_in};

use crate::fixes::arithmetic::bare;
use crate::fixes::source::{children, declared_name, function_declarator, text};

/// A type of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Number {
    /// An integer.
    Whole,
    /// `float`.
    Single,
    /// `double`.
    Double,
}

/// The function definition around a node.
pub(crate) fn function(node: Node) -> Option<Node> {
    let mut at = node;
    while at.kind() != Kind::FunctionDefinition {
        at = at.parent()?;
    }
    Some(at)
}

/// The type of an expression; `None` where its text does not say.
pub(crate) fn of(parsed: &Parsed, node: Node) -> Option<Number> {
    let node = bare(node);
    match node.kind() {
        Kind::NumberLiteral => literal(text(parsed, node)),
        Kind::Identifier => declared(parsed, node, 0),
        Kind::SubscriptExpression => {
            let mut array = node;
            let mut depth = 0;
            while array.kind() == Kind::SubscriptExpression {
                array = bare(array.field(Field::Argument)?);
                depth += 1;
            }
            (array.kind() == Kind::Identifier).then(|| declared(parsed, array, depth))?
        }
        Kind::UnaryExpression => of(parsed, node.field(Field::Argument)?),
        Kind::BinaryExpression => {
            let a = of(parsed, node.field(Field::Left)?)?;
            let b = of(parsed, node.field(Field::Right)?)?;
            let operator = text(parsed, node.field(Field::Operator)?);
            matches!(operator, "+" | "-" | "*" | "/").then(|| a.max(b))
        }
        Kind::CastExpression => named(text(parsed, node.field(Field::Type)?)),
        Kind::CallExpression => {
            let name = text(parsed, node.field(Field::Function)?);
            let arguments = children(node.field(Field::Arguments)?);
            match name {
                "sqrtf" | "rsqrtf" | "sinf" | "cosf" | "expf" | "logf" | "fabsf" | "fminf"
                | "fmaxf" | "powf" | "tanf" | "exp2f" | "cbrtf" | "float" => Some(Number::Single),
                "sqrt" | "rsqrt" | "sin" | "cos" | "exp" | "log" | "fabs" | "tan" | "exp2"
                | "cbrt" => {
                    let of = of(parsed, *arguments.first()?)?;
                    Some(if of == Number::Whole {
                        Number::Double
                    } else {
                        of
                    })
                }
                _ => None,
            }
        }
        Kind::FieldExpression => {
            let place = text(parsed, node.field(Field::Argument)?);
            let coordinate = matches!(place, "threadIdx" | "blockIdx" | "blockDim" | "gridDim");
            coordinate.then_some(Number::Whole)
        }
        _ => None,
    }
}

fn literal(written: &str) -> Option<Number> {
    let lower = written.to_ascii_lowercase();
    if lower.starts_with("0x") {
        return (!lower.contains(['p', '.'])).then_some(Number::Whole);
    }
    if lower.contains(['.', 'e']) || lower.ends_with('f') {
        return Some(if lower.ends_with('f') {
            Number::Single
        } else {
            Number::Double
        });
    }
    Some(Number::Whole)
}

/// A type by its name, without its qualifiers.
pub(crate) fn named(written: &str) -> Option<Number> {
    let words: Vec<&str> = words_in(written)
        .filter(|word| {
            !matches!(
                *word,
                "const"
                    | "volatile"
                    | "restrict"
                    | "__restrict__"
                    | "__restrict"
                    | "__global"
                    | "__local"
                    | "__private"
                    | "__constant"
                    | "global"
                    | "local"
                    | "constant"
                    | "private"
                    | "__shared__"
                    | "static"
                    | "register"
                    | "extern"
            )
        })
        .collect();
    match words[..] {
        ["float"] => Some(Number::Single),
        ["double"] => Some(Number::Double),
        [
            "int" | "unsigned" | "uint" | "short" | "char" | "long" | "size_t" | "int32_t"
            | "uint32_t" | "int64_t" | "uint64_t" | "ushort" | "uchar" | "ulong",
        ] => Some(Number::Whole),
        ["unsigned", "int" | "char" | "short" | "long"]
        | ["long", "int" | "long"]
        | ["unsigned", "long", "long"] => Some(Number::Whole),
        _ => None,
    }
}

/// The declarations of a name in a function: each with the node of its type and its declarator.
pub(crate) fn declarations<'t>(
    parsed: &'t Parsed,
    around: Node<'t>,
    name: &str,
) -> Vec<(Node<'t>, Node<'t>)> {
    let mut found = Vec::new();
    for node in around.descendants() {
        if !matches!(node.kind(), Kind::Declaration | Kind::ParameterDeclaration) {
            continue;
        }
        let Some(ty) = node.field(Field::Type) else {
            continue;
        };
        for declarator in node.fields(Field::Declarator) {
            if declared_name(declarator).is_some_and(|one| text(parsed, one) == name) {
                found.push((ty, declarator));
            }
        }
    }
    found
}

/// The number that a name holds behind this many subscripts; all declarations of the name in the function must agree.
fn declared(parsed: &Parsed, name: Node, depth: usize) -> Option<Number> {
    let around = function(name)?;
    function_declarator(around)?;
    let mut of = None;
    for (ty, declarator) in declarations(parsed, around, text(parsed, name)) {
        let mut levels = 0;
        let mut at = declarator;
        loop {
            match at.kind() {
                Kind::ArrayDeclarator | Kind::PointerDeclarator => levels += 1,
                Kind::InitDeclarator
                | Kind::ReferenceDeclarator
                | Kind::ParenthesizedDeclarator => {}
                _ => break,
            }
            at = at.field(Field::Declarator).or_else(|| at.named_child(0))?;
        }
        let one = named(text(parsed, ty)).filter(|_| levels == depth)?;
        if of.is_some_and(|before| before != one) {
            return None;
        }
        of = Some(one);
    }
    of
}

/// True where evaluating an expression twice is evaluating it once: no assignment, no step, no call but of functions of
/// the mathematical library.
pub(crate) fn repeatable(parsed: &Parsed, node: Node) -> bool {
    node.descendants().iter().all(|one| match one.kind() {
        Kind::AssignmentExpression
        | Kind::UpdateExpression
        | Kind::LambdaExpression
        | Kind::CommaExpression
        | Kind::Error => false,
        Kind::CallExpression => one
            .field(Field::Function)
            .is_some_and(|function| of_mathematics(text(parsed, function))),
        _ => true,
    })
}

fn of_mathematics(name: &str) -> bool {
    matches!(
        name.trim_start_matches("std::").trim_end_matches('f'),
        "sqrt"
            | "rsqrt"
            | "sin"
            | "cos"
            | "tan"
            | "exp"
            | "exp2"
            | "exp10"
            | "log"
            | "log2"
            | "log10"
            | "abs"
            | "fabs"
            | "fmin"
            | "fmax"
            | "floor"
            | "ceil"
            | "cbrt"
            | "pow"
    ) || name == "float"
        || name == "get_global_id"
        || name == "get_local_id"
}

/// The number that an expression always is, where it is written out.
pub(crate) fn value(parsed: &Parsed, node: Node) -> Option<f64> {
    let node = bare(node);
    let written = text(parsed, node);
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
            let minus = text(parsed, node.field(Field::Operator)?) == "-";
            let inner = value(parsed, node.field(Field::Argument)?)?;
            minus.then_some(-inner)
        }
        Kind::BinaryExpression => {
            let a = node.field(Field::Left)?;
            let b = node.field(Field::Right)?;
            let divides = text(parsed, node.field(Field::Operator)?) == "/";
            // Integers cut.
            let whole = of(parsed, node)? == Number::Whole;
            (divides && !whole).then_some(value(parsed, a)? / value(parsed, b)?)
        }
        Kind::CastExpression => {
            named(text(parsed, node.field(Field::Type)?)).filter(|ty| *ty != Number::Whole)?;
            value(parsed, node.field(Field::Value)?)
        }
        _ => None,
    }
}

/// True where the value goes into a float through sums and products of floats and constants alone.
pub(crate) fn becomes_single(parsed: &Parsed, node: Node) -> bool {
    let mut child = node;
    while let Some(parent) = child.parent() {
        match parent.kind() {
            Kind::ParenthesizedExpression | Kind::UnaryExpression => {}
            Kind::BinaryExpression => {
                for side in children(parent) {
                    let double = of(parsed, side) == Some(Number::Double);
                    let constant = value(parsed, side).is_some();
                    let known = of(parsed, side).is_some()
                        || crate::fixes::arithmetic::call(parsed, side).is_some();
                    if side != child
                        && (!known
                            || (double
                                && !constant
                                && crate::fixes::arithmetic::call(parsed, side).is_none()))
                    {
                        return false;
                    }
                }
            }
            Kind::InitDeclarator => {
                let declaration = parent.parent();
                return declaration
                    .and_then(|one| one.field(Field::Type))
                    .is_some_and(|ty| named(text(parsed, ty)) == Some(Number::Single));
            }
            Kind::AssignmentExpression => {
                return parent
                    .field(Field::Left)
                    .is_some_and(|place| of(parsed, place) == Some(Number::Single));
            }
            Kind::CastExpression => {
                return parent
                    .field(Field::Type)
                    .is_some_and(|ty| named(text(parsed, ty)) == Some(Number::Single));
            }
            _ => return false,
        }
        child = parent;
    }
    false
}
