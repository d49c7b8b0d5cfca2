//! Asks for the shared memory of a launch in the line before it.

use std::ops::Range;

use warplens_hir::Semantics;
use warplens_syntax::nodes::CallExpression;
use warplens_syntax::{Field, Kind, Node};

use super::RULE;
use crate::fixes::proof::{asked, prove};
use crate::fixes::source::indent;
use crate::fixes::{Fix, Kernel, Request};

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let mut found: Vec<Fix> = Vec::new();
    for kernel in request.analysis.kernels() {
        if !asked(request, &kernel, RULE.id).is_empty()
            && let Some(fix) = fix(request, &kernel)
            && !found.iter().any(|other| other.edits == fix.edits)
        {
            found.push(fix);
        }
    }
    found
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>) -> Option<Fix> {
    let document = request.document;
    let code = Semantics::new(document);
    let (statement, call) = launch(code, kernel.launched_at?)?;
    let function = code.text(call.field(Field::Function)?);
    let launch = CallExpression::cast(call)?.launch()?;
    let bytes = code.text(launch.extents().nth(2)?);
    let start = statement.start_byte();
    let indent = indent(code.source, start);
    let ask = format!(
        "cudaFuncSetAttribute({function}, cudaFuncAttributeMaxDynamicSharedMemorySize, {bytes});\n{indent}"
    );
    let edits = vec![(start..start, ask)];
    let proof = prove(request, kernel, &edits)?;
    if proof.after().count(RULE.id) > 0 {
        return None;
    }
    Some(Fix {
        title: format!("Ask for the shared memory of `{function}` before the launch"),
        rule: RULE.id,
        edits,
        gain: 1.0,
        complete: true,
    })
}

/// The launch at these bytes, and the statement that it is, among others in braces.
fn launch<'t>(code: Semantics<'t>, place: &Range<usize>) -> Option<(Node<'t>, Node<'t>)> {
    let mut call = (code.root).descendant_for_byte_range(place.start, place.end)?;
    while call.kind() != Kind::CallExpression || call.start_byte() != place.start {
        call = call.parent()?;
    }
    let statement = call.parent()?;
    let alone = statement.kind() == Kind::ExpressionStatement
        && statement.parent()?.kind() == Kind::CompoundStatement;
    alone.then_some((statement, call))
}
