//! Writes `1 / sqrt(x)` as `rsqrt(x)`.

use warplens_syntax::{Field, Kind, Node, Parsed};

use crate::fixes::arithmetic::{Action, bare, call};
use crate::fixes::source::text;
use crate::fixes::types::{self, Number, becomes_single, value};
use crate::fixes::{Fix, Kernel, Request};

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/fast-math",
        rewrite: &|parsed, node| inverse(parsed, node).map(|text| vec![(node.byte_range(), text)]),
        says: &says,
    };
    action.fixes(request)
}

fn inverse(parsed: &Parsed, node: Node) -> Option<String> {
    if node.kind() != Kind::BinaryExpression {
        return None;
    }
    let one = node.field(Field::Left)?;
    let (name, arguments) = call(parsed, node.field(Field::Right)?)?;
    let [argument] = arguments[..] else {
        return None;
    };
    let written = text(parsed, argument);
    if value(parsed, one)? != 1.0 {
        return None;
    }
    let of_one = types::of(parsed, one)?;
    let of_argument = types::of(parsed, argument);
    match name.strip_prefix("std::").unwrap_or(name) {
        // Beside a double the quotient is one: that has to end in a float.
        "sqrtf" if of_one != Number::Double || becomes_single(parsed, node) => {
            Some(format!("rsqrtf({written})"))
        }
        "sqrt" => {
            let opencl = parsed.text.contains("get_global_id") || parsed.text.contains("__kernel");
            let narrow = of_argument? == Number::Single;
            let stays = !narrow || of_one != Number::Double || becomes_single(parsed, node);
            (of_argument? != Number::Whole && stays).then(|| {
                let suffix = if narrow && !opencl { "f" } else { "" };
                format!("rsqrt{suffix}({written})")
            })
        }
        _ => None,
    }
}

fn says(parsed: &Parsed, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => String::new(),
        2 => " and another one".to_owned(),
        many => format!(" and {} others", many - 1),
    };
    Some(format!(
        "Write `{}`{more} as `{}` (within 2 ulp)",
        text(parsed, bare(first)),
        inverse(parsed, first)?,
    ))
}
