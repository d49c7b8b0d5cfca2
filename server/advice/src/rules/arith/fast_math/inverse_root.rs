//! Writes `1 / sqrt(x)` as `rsqrt(x)`.

use warplens_hir::Semantics;
use warplens_hir::semantics::bare;
use warplens_ir::Type;
use warplens_syntax::{Field, Kind, Node};

use crate::fixes::arithmetic::{Action, call};
use crate::fixes::types::{becomes_single, value};
use crate::fixes::{Fix, Kernel, Request};

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/fast-math",
        rewrite: &|code, node| inverse(code, node).map(|text| vec![(node.byte_range(), text)]),
        says: &says,
    };
    action.fixes(request)
}

fn inverse(code: Semantics, node: Node) -> Option<String> {
    if node.kind() != Kind::BinaryExpression {
        return None;
    }
    let one = node.field(Field::Left)?;
    let (name, arguments) = call(code, node.field(Field::Right)?)?;
    let [argument] = arguments[..] else {
        return None;
    };
    let written = code.text(argument);
    if value(code, one)? != 1.0 {
        return None;
    }
    let of_one = code.type_of(one)?;
    let of_argument = code.type_of(argument);
    match name.strip_prefix("std::").unwrap_or(name) {
        // Beside a double the quotient is one: that has to end in a float.
        "sqrtf" if of_one != Type::DOUBLE || becomes_single(code, node) => {
            Some(format!("rsqrtf({written})"))
        }
        "sqrt" => {
            let of_argument = of_argument?;
            let narrow = of_argument == Type::FLOAT;
            let stays = !narrow || of_one != Type::DOUBLE || becomes_single(code, node);
            (of_argument.is_float() && stays).then(|| {
                let suffix = if narrow && !code.is_opencl() { "f" } else { "" };
                format!("rsqrt{suffix}({written})")
            })
        }
        _ => None,
    }
}

fn says(code: Semantics, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => String::new(),
        2 => " and another one".to_owned(),
        many => format!(" and {} others", many - 1),
    };
    Some(format!(
        "Write `{}`{more} as `{}` (within 2 ulp)",
        code.text(bare(first)),
        inverse(code, first)?,
    ))
}
