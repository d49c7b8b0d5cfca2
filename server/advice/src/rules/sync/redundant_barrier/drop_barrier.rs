//! Takes out a barrier that nothing crosses, or makes it one of the warp.

use std::ops::Range;

use crate::Cure;
use warplens_facts::facts::{OpClass, Site, SourceFacts};
use warplens_hir::Semantics;
use warplens_hir::semantics::Statement;
use warplens_syntax::{Field, Kind, Language, Node};

use crate::fixes::proof::{of_findings, one_launch, prove};
use crate::fixes::{Edit, Fix, Kernel, Request};
use crate::wording::faster;

const RULE: &str = "sync/redundant-barrier";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, site| {
        let cure = finding.cure?;
        (cure == Cure::Nothing || one_launch(request, kernel))
            .then(|| fix(request, kernel, site, cure == Cure::WithinWarp))?
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, site: Site, within_warps: bool) -> Option<Fix> {
    let document = request.document;
    let code = Semantics::new(document);
    let Statement(node) = kernel.source(code)?.source_of(site)?;
    let call = node
        .named_child(0)
        .filter(|call| call.kind() == Kind::CallExpression)?;
    let name = code.text(call.field(Field::Function)?);
    let alone = node
        .parent()
        .is_some_and(|parent| parent.kind() == Kind::CompoundStatement);
    if !matches!(name, "__syncthreads" | "barrier" | "work_group_barrier")
        || !alone
        || code.in_a_macro(name)
    {
        return None;
    }
    let edit: Edit = if within_warps {
        // Neither OpenCL's barriers nor HIP on every version has one for a warp.
        if name != "__syncthreads" || document.language() != Language::Cuda {
            return None;
        }
        (call.byte_range(), "__syncwarp()".to_owned())
    } else {
        (whole_line(code.source, node), String::new())
    };
    let edits = vec![edit];
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    let after = proof.after();
    if barriers(after.facts) >= barriers(kernel.facts)
        || after.facts.accesses.len() != kernel.facts.accesses.len()
    {
        return None;
    }
    let what = if within_warps {
        "Wait for the warp alone: `__syncwarp()`"
    } else {
        "Remove the barrier, nothing crosses it"
    };
    Some(Fix {
        title: format!("{what}, {}", faster(speedup)),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// A statement, with its line where nothing else is there.
fn whole_line(text: &str, node: Node<'_>) -> Range<usize> {
    let Range { start, end } = node.byte_range();
    let head = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let tail = text[end..].find('\n').map(|at| end + at + 1);
    let blank = |range: Range<usize>| text[range].trim().is_empty();
    match tail {
        Some(tail) if blank(head..start) && blank(end..tail) => head..tail,
        _ => start..end,
    }
}

/// Executions of barriers over the launch.
fn barriers(facts: &SourceFacts) -> f64 {
    let of_barriers = facts
        .counts
        .iter()
        .filter(|count| count.class == OpClass::Barrier);
    of_barriers.filter_map(|count| count.value).sum()
}
