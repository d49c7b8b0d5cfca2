//! Writes a power with a constant exponent as what it is: a product, a root, an exponential.

use warplens_syntax::{Field, Kind, Node, Parsed};

use crate::fixes::arithmetic::{Action, bare, binds, call};
use crate::fixes::source::text;
use crate::fixes::types::{self, Number, becomes_single, repeatable, value};
use crate::fixes::{Edit, Fix, Kernel, Request};

/// A longer base is not written several times.
const LONGEST: usize = 48;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/pow",
        rewrite: &rewritten,
        says: &says,
    };
    action.fixes(request)
}

fn rewritten(parsed: &Parsed, node: Node) -> Option<Vec<Edit>> {
    simpler(parsed, node).map(|text| vec![(node.byte_range(), text)])
}

fn simpler(parsed: &Parsed, node: Node) -> Option<String> {
    let (name, arguments) = call(parsed, node)?;
    let [base, exponent] = arguments[..] else {
        return None;
    };
    let opencl = parsed.text.contains("__kernel") || parsed.text.contains("get_global_id");
    let name = name.strip_prefix("std::").unwrap_or(name);
    let single_name = name == "powf";
    if !single_name && !matches!(name, "pow" | "powr" | "pown") {
        return None;
    }
    // `pow` works in the type of its arguments, in double beside an integer. What is computed instead has the type of
    // the call, or of its base where the result becomes a float anyway.
    let of_base = types::of(parsed, base);
    let of_exponent = types::of(parsed, exponent);
    let whole = if single_name {
        Number::Single
    } else if opencl {
        of_base.max(of_exponent).filter(|ty| *ty != Number::Whole)?
    } else {
        match (of_base?, of_exponent?) {
            (Number::Single, Number::Single) => Number::Single,
            _ => Number::Double,
        }
    };
    let number = value(parsed, exponent);
    let ty = if whole == Number::Double
        && of_base == Some(Number::Single)
        && number.is_some()
        && becomes_single(parsed, node)
    {
        Number::Single
    } else {
        whole
    };
    let suffix = if ty == Number::Single && !opencl {
        "f"
    } else {
        ""
    };
    let written = text(parsed, bare(base));
    // An argument of another type is converted as the call converts it.
    let same = of_base == Some(ty) || (single_name && of_base.is_none());
    let cast = match ty {
        _ if same => "",
        Number::Single => "(float)",
        _ => "(double)",
    };
    let factor = if binds(bare(base)) {
        format!("{cast}{written}")
    } else {
        format!("{cast}({written})")
    };
    if let Some(number) = number {
        let product = |count: usize| {
            // A base of unknown type may be an integer.
            if single_name && of_base.is_none()
                || !repeatable(parsed, base)
                || written.len() > LONGEST
            {
                return None;
            }
            let all = vec![factor.clone(); count].join(" * ");
            Some(if stands_alone(node) {
                all
            } else {
                format!("({all})")
            })
        };
        let third = (number - 1.0 / 3.0).abs() < 1e-7;
        let argument = if cast.is_empty() {
            written.to_owned()
        } else {
            factor.clone()
        };
        let of = |function: &str| Some(format!("{function}{suffix}({argument})"));
        return match number {
            2.0 => product(2),
            3.0 => product(3),
            0.5 => of("sqrt"),
            -0.5 => of("rsqrt"),
            _ if third => of("cbrt"),
            _ => None,
        };
    }
    // A constant base: its exponent is the argument.
    let argument = text(parsed, bare(exponent));
    let argument = match (of_exponent, ty) {
        (Some(of), ty) if of == ty => argument.to_owned(),
        (None, _) if single_name => argument.to_owned(),
        (_, Number::Single) => format!("(float)({argument})"),
        _ => format!("(double)({argument})"),
    };
    match value(parsed, base)? {
        2.0 => Some(format!("exp2{suffix}({argument})")),
        10.0 => Some(format!("exp10{suffix}({argument})")),
        _ => None,
    }
}

/// True where nothing around a call binds its operands closer than a product of its own.
fn stands_alone(node: Node) -> bool {
    let Some(parent) = node.parent() else {
        return false;
    };
    match parent.kind() {
        Kind::ArgumentList
        | Kind::ParenthesizedExpression
        | Kind::InitDeclarator
        | Kind::ReturnStatement
        | Kind::ExpressionStatement => true,
        Kind::AssignmentExpression => parent.field(Field::Right) == Some(node),
        Kind::BinaryExpression => {
            let operator = parent
                .children()
                .find(|child| !child.is_named())
                .map(|child| child.kind());
            matches!(operator, Some(Kind::Plus | Kind::Minus))
        }
        _ => false,
    }
}

fn says(parsed: &Parsed, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let becomes = simpler(parsed, first)?;
    let edge = if becomes.starts_with("cbrt") {
        " (a value for negative numbers too)"
    } else {
        " (last places may differ)"
    };
    let more = match nodes.len() {
        1 => String::new(),
        2 => " and another power".to_owned(),
        many => format!(" and {} other powers", many - 1),
    };
    Some(format!(
        "Write `{}`{more} as `{becomes}`{edge}",
        text(parsed, first),
    ))
}
