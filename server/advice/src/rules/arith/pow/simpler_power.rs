//! Writes a power with a constant exponent as what it is: a product, a root, an exponential.

use warplens_hir::Semantics;
use warplens_hir::semantics::bare;
use warplens_ir::Type;
use warplens_syntax::{BinaryOperator, Field, Kind, Node, binary};

use crate::fixes::arithmetic::{Action, binds, call};
use crate::fixes::types::{becomes_single, repeatable, value};
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

fn rewritten(code: Semantics, node: Node) -> Option<Vec<Edit>> {
    simpler(code, node).map(|text| vec![(node.byte_range(), text)])
}

fn simpler(code: Semantics, node: Node) -> Option<String> {
    let (name, arguments) = call(code, node)?;
    let [base, exponent] = arguments[..] else {
        return None;
    };
    let opencl = code.is_opencl();
    let name = name.strip_prefix("std::").unwrap_or(name);
    let single_name = name == "powf";
    if !single_name && !matches!(name, "pow" | "powr" | "pown") {
        return None;
    }
    // `pow` works in the type of its arguments, in double beside an integer. What is computed instead has the type of
    // the call, or of its base where the result becomes a float anyway.
    let of_base = code.type_of(base);
    let of_exponent = code.type_of(exponent);
    let whole = if single_name {
        Type::FLOAT
    } else if opencl {
        let either = [&of_base, &of_exponent].map(|ty| ty.as_ref().filter(|ty| ty.is_float()));
        let wider = either.into_iter().flatten().max_by_key(|ty| ty.size());
        wider.cloned()?
    } else {
        match (of_base.as_ref()?, of_exponent.as_ref()?) {
            (&Type::FLOAT, &Type::FLOAT) => Type::FLOAT,
            _ => Type::DOUBLE,
        }
    };
    let number = value(code, exponent);
    let ty = if whole == Type::DOUBLE
        && of_base == Some(Type::FLOAT)
        && number.is_some()
        && becomes_single(code, node)
    {
        Type::FLOAT
    } else {
        whole
    };
    let suffix = if ty == Type::FLOAT && !opencl {
        "f"
    } else {
        ""
    };
    let written = code.text(bare(base));
    // An argument of another type is converted as the call converts it.
    let same = of_base.as_ref() == Some(&ty) || (single_name && of_base.is_none());
    let cast = match &ty {
        _ if same => "",
        Type::Float { bits: 32, .. } => "(float)",
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
                || !repeatable(code, base)
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
    let argument = code.text(bare(exponent));
    let argument = match (of_exponent, ty) {
        (Some(of), ty) if of == ty => argument.to_owned(),
        (None, _) if single_name => argument.to_owned(),
        (_, Type::Float { bits: 32, .. }) => format!("(float)({argument})"),
        _ => format!("(double)({argument})"),
    };
    match value(code, base)? {
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
            let sum = [BinaryOperator::Add, BinaryOperator::Subtract].map(Some);
            sum.contains(&binary(parent))
        }
        _ => false,
    }
}

fn says(code: Semantics, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let becomes = simpler(code, first)?;
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
        code.text(first),
    ))
}
