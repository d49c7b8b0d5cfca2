//! Asks for the loop to be unrolled whose counter subscripts a thread's own array: with every subscript known the array
//! is registers.

use warplens_facts::facts::{Site, Space};
use warplens_hir::Semantics;
use warplens_syntax::{Field, Kind, Node, has_word};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::pragma;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::{faster, occupancy};

const RULE: &str = "local/dynamic-array";

/// Loops asked to be unrolled for one array.
const MOST_LOOPS: usize = 8;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, _, site| {
        fix(request, kernel, site)
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel, site: Site) -> Option<Fix> {
    let code = request.code();
    let function = code.kernel(kernel.start..kernel.end)?;
    let array = kernel
        .facts
        .accesses
        .iter()
        .find(|access| access.space == Space::Local && access.site.span.start == site.span.start)
        .map(|access| access.array.clone())?;
    let mut loops: Vec<Node> = Vec::new();
    for node in function.descendants() {
        let root = subscripted(node);
        let Some((root, index)) = root else { continue };
        if code.text(root) != array {
            continue;
        }
        let written = code.text(index);
        let mut outer = node.parent();
        while let Some(around) = outer {
            if around.kind() == Kind::ForStatement
                && counter(code, around).is_some_and(|name| has_word(written, name))
                && !loops.contains(&around)
            {
                loops.push(around);
            }
            outer = around.parent().filter(|_| around != function);
        }
    }
    if loops.is_empty() || loops.len() > MOST_LOOPS {
        return None;
    }
    let edits: Option<Vec<Edit>> = loops
        .iter()
        .map(|one| pragma(code, *one, "unroll"))
        .collect();
    let edits = in_order(edits?)?;
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let bytes = kernel.resources.local_bytes_per_thread;
    if bytes == 0 || after.resources.local_bytes_per_thread != 0 {
        return None;
    }
    Some(Fix {
        title: format!(
            "Unroll what subscripts `{array}`: {bytes} bytes of local memory a thread → 0{}, {}",
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// The name under a chain of subscripts, and the innermost subscript's index of this node.
fn subscripted(node: Node) -> Option<(Node, Node)> {
    if node.kind() != Kind::SubscriptExpression {
        return None;
    }
    let index = node
        .field(Field::Indices)
        .or_else(|| node.field(Field::Index))?;
    let mut root = node.field(Field::Argument)?;
    while root.kind() == Kind::SubscriptExpression {
        root = root.field(Field::Argument)?;
    }
    Some((root, index))
}

/// The name of a loop's counter: what its initialiser declares.
fn counter<'t>(code: Semantics<'t>, of: Node) -> Option<&'t str> {
    let initialiser = of.field(Field::Initializer)?;
    let declarator = initialiser.field(Field::Declarator)?;
    let name = declarator.field(Field::Declarator)?;
    (name.kind() == Kind::Identifier).then(|| code.text(name))
}
