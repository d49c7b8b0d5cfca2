//! The types of expressions, as far as the text of a function says them.

use warplens_syntax::Fields as _;
use warplens_syntax::{Node, Parsed};

use crate::fixes::arithmetic::bare;
use crate::fixes::source::{children, declared_name, descendants, function_declarator, text};

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
    while at.kind() != "function_definition" {
        at = at.parent()?;
    }
    Some(at)
}

/// The type of an expression; `None` where its text does not say.
pub(crate) fn of(parsed: &Parsed, node: Node) -> Option<Number> {
    let node = bare(node);
    match node.kind() {
        "number_literal" => literal(text(parsed, node)),
        "identifier" => declared(parsed, node, 0),
        "subscript_expression" => {
            let mut array = node;
            let mut depth = 0;
            while array.kind() == "subscript_expression" {
                array = bare(array.field("argument")?);
                depth += 1;
            }
            (array.kind() == "identifier").then(|| declared(parsed, array, depth))?
        }
        "unary_expression" => of(parsed, node.field("argument")?),
        "binary_expression" => {
            let a = of(parsed, node.field("left")?)?;
            let b = of(parsed, node.field("right")?)?;
            let operator = text(parsed, node.field("operator")?);
            matches!(operator, "+" | "-" | "*" | "/").then(|| a.max(b))
        }
        "cast_expression" => named(text(parsed, node.field("type")?)),
        "call_expression" => {
            let name = text(parsed, node.field("function")?);
            let arguments = children(node.field("arguments")?);
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
        "field_expression" => {
            let place = text(parsed, node.field("argument")?);
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
    let words: Vec<&str> = written
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| {
            !matches!(
                *word,
                "" | "const"
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
    for node in descendants(around) {
        if !matches!(node.kind(), "declaration" | "parameter_declaration") {
            continue;
        }
        let Some(ty) = node.field("type") else {
            continue;
        };
        let mut cursor = node.walk();
        for declarator in node.children_by_field_name("declarator", &mut cursor) {
            if declared_name(declarator).is_some_and(|one| text(parsed, one) == name) {
                found.push((ty, declarator));
            }
        }
    }
    found
}

/// The number that a name holds behind so many subscripts; all declarations of the name in the function must agree.
fn declared(parsed: &Parsed, name: Node, depth: usize) -> Option<Number> {
    let around = function(name)?;
    function_declarator(around)?;
    let mut of = None;
    for (ty, declarator) in declarations(parsed, around, text(parsed, name)) {
        let mut levels = 0;
        let mut at = declarator;
        loop {
            match at.kind() {
                "array_declarator" | "pointer_declarator" => levels += 1,
                "init_declarator" | "reference_declarator" | "parenthesized_declarator" => {}
                _ => break,
            }
            at = at.field("declarator").or_else(|| at.named_child(0))?;
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
    descendants(node).iter().all(|one| match one.kind() {
        "assignment_expression"
        | "update_expression"
        | "lambda_expression"
        | "comma_expression"
        | "ERROR" => false,
        "call_expression" => one
            .field("function")
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
        "number_literal" => {
            if written.starts_with("0x") {
                return None;
            }
            written
                .trim_end_matches(['f', 'F', 'u', 'U', 'l', 'L'])
                .parse()
                .ok()
        }
        "unary_expression" => {
            let minus = text(parsed, node.field("operator")?) == "-";
            let inner = value(parsed, node.field("argument")?)?;
            minus.then_some(-inner)
        }
        "binary_expression" => {
            let a = node.field("left")?;
            let b = node.field("right")?;
            let divides = text(parsed, node.field("operator")?) == "/";
            // Integers cut.
            let whole = of(parsed, node)? == Number::Whole;
            (divides && !whole).then_some(value(parsed, a)? / value(parsed, b)?)
        }
        "cast_expression" => {
            named(text(parsed, node.field("type")?)).filter(|ty| *ty != Number::Whole)?;
            value(parsed, node.field("value")?)
        }
        _ => None,
    }
}

/// True where the value goes into a float through sums and products of floats and constants alone.
pub(crate) fn becomes_single(parsed: &Parsed, node: Node) -> bool {
    let mut child = node;
    while let Some(parent) = child.parent() {
        match parent.kind() {
            "parenthesized_expression" | "unary_expression" => {}
            "binary_expression" => {
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
            "init_declarator" => {
                let declaration = parent.parent();
                return declaration
                    .and_then(|one| one.field("type"))
                    .is_some_and(|ty| named(text(parsed, ty)) == Some(Number::Single));
            }
            "assignment_expression" => {
                return parent
                    .field("left")
                    .is_some_and(|place| of(parsed, place) == Some(Number::Single));
            }
            "cast_expression" => {
                return parent
                    .field("type")
                    .is_some_and(|ty| named(text(parsed, ty)) == Some(Number::Single));
            }
            _ => return false,
        }
        child = parent;
    }
    false
}
