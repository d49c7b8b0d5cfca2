//! Adds `f` to constants that make float arithmetic double.

use warplens_facts::facts::OpClass;
use warplens_hir::Semantics;
use warplens_syntax::{Kind, Node};

use crate::fixes::arithmetic::Action;
use crate::fixes::{Edit, Fix, Kernel, Request};
use crate::wording::counted;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let action = Action {
        rule: "arith/double-literal",
        rewrite: &suffixed,
        says: &says,
    };
    action.fixes(request)
}

/// `0.5` becomes `0.5f`, `1e-3` becomes `1e-3f`.
fn suffixed(code: Semantics, node: Node) -> Option<Vec<Edit>> {
    let written = code.text(node);
    let decimal = written
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let double = written.contains(['.', 'e', 'E']);
    // What is no float at all stays a double.
    let fits = written
        .parse::<f64>()
        .is_ok_and(|value| value == 0.0 || (1e-37..1e38).contains(&value.abs()));
    if node.kind() != Kind::NumberLiteral || !decimal || !double || !fits {
        return None;
    }
    let end = node.end_byte();
    Some(vec![(end..end, "f".to_owned())])
}

fn says(code: Semantics, nodes: &[Node], before: &Kernel, after: &Kernel) -> Option<String> {
    let doubles = |kernel: &Kernel| {
        let of = kernel.facts.counts.iter();
        of.filter(|count| count.class == OpClass::Fp64)
            .filter_map(|count| count.value)
            .sum::<f64>()
    };
    let threads = (before.facts.launch.blocks() * before.facts.launch.threads_per_block()) as f64;
    // Sums of nothing may be -0.
    let (old, new) = (
        doubles(before) / threads,
        (doubles(after) / threads).max(0.0),
    );
    if new > old {
        return None;
    }
    let what = match nodes {
        [one] => format!("`{}`", code.text(*one)),
        many => format!("{} constants", many.len()),
    };
    let difference = if new < old {
        let operations = counted(
            old,
            "double operation per thread",
            "double operations per thread",
        );
        format!(": {operations} → {}", crate::wording::number(new))
    } else {
        ": no conversion to double".to_owned()
    };
    Some(format!("Add `f` to {what}{difference}"))
}
