//! Takes a padding away that cures nothing.

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::{Edit, Fix, Kernel, Request};
use crate::rules::smem::bank_conflict::pad_shared::{Plan, total_passes};
use crate::wording::{faster, occupancy};
use warplens_hir::semantics::children;
use warplens_syntax::{BinaryOperator, Field, Kind, binary};

const RULE: &str = "smem/over-pad";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, _| {
        fix(request, kernel, finding.shared_array?)
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel, index: usize) -> Option<Fix> {
    let array = kernel.facts.shared_arrays.get(index)?;
    let plan = Plan::new(request.document, kernel, array)?;
    // A `sizeof` says the size that others were told.
    if !plan.sizeofs.is_empty() {
        return None;
    }
    let last = *plan.sizes.last()?;
    let (padded, _) = *array.extents.last()?;
    let plain = padded / 16 * 16;
    let mut size = last;
    while size.kind() == Kind::ParenthesizedExpression {
        size = *children(size).first()?;
    }
    let code = request.code();
    let number = |written: &str| written.parse::<u64>().ok();
    let short = if number(code.text(size)) == Some(padded) {
        plain.to_string()
    } else if size.kind() == Kind::BinaryExpression {
        let (left, right) = (
            code.text(size.field(Field::Left)?),
            code.text(size.field(Field::Right)?),
        );
        if binary(size) != Some(BinaryOperator::Add) || number(right) != Some(padded - plain) {
            return None;
        }
        left.to_owned()
    } else {
        return None;
    };
    let edits: Vec<Edit> = vec![(last.byte_range(), short.clone())];
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let smaller = after.facts.shared_arrays.get(index)?;
    // Sums over the same requests, up to the order of addition.
    let passes = total_passes(&after, index)? <= total_passes(kernel, index)? * (1.0 + 1e-9);
    if !passes || smaller.extents.last()?.0 != plain || smaller.bytes >= array.bytes {
        return None;
    }
    Some(Fix {
        title: format!(
            "Remove the padding of `{}`: {} bytes of shared memory less{}, {}",
            array.name,
            array.bytes - smaller.bytes,
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}
