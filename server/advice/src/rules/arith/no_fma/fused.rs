//! Fuses a product and a sum that intrinsics keep apart.

use warplens_hir::Semantics;
use warplens_syntax::Node;

use crate::fixes::arithmetic::{Action, call};
use crate::fixes::{Fix, Kernel, Request};

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/no-fma",
        rewrite: &|code, node| fused(code, node).map(|text| vec![(node.byte_range(), text)]),
        says: &says,
    };
    action.fixes(request)
}

/// `__fadd_rn(__fmul_rn(a, b), c)` as `__fmaf_rn(a, b, c)`.
fn fused(code: Semantics, node: Node) -> Option<String> {
    let (sum, terms) = call(code, node)?;
    let [a, b] = terms[..] else {
        return None;
    };
    let (product, function) = match sum {
        "__fadd_rn" => ("__fmul_rn", "__fmaf_rn"),
        "__dadd_rn" => ("__dmul_rn", "__fma_rn"),
        _ => return None,
    };
    [(a, b), (b, a)].into_iter().find_map(|(first, other)| {
        let (name, factors) = call(code, first)?;
        let [x, y] = factors[..] else {
            return None;
        };
        (name == product).then(|| {
            let written = [x, y, other].map(|node| code.text(node));
            format!("{function}({})", written.join(", "))
        })
    })
}

fn says(code: Semantics, nodes: &[Node], _: &Kernel, _: &Kernel) -> Option<String> {
    let first = *nodes.first()?;
    let more = match nodes.len() {
        1 => "",
        _ => " and the like",
    };
    Some(format!(
        "Write `{}`{more} as `{}` (rounds once, not twice)",
        code.text(first),
        fused(code, first)?,
    ))
}
