//! Swizzles a square shared tile: column `j` of row `i` lies at `j ^ i`, so that a column is spread over the banks and
//! the tile needs no more room.

use warplens_facts::facts::SharedArray;
use warplens_hir::Semantics;
use warplens_syntax::{Kind, Node};

use crate::fixes::proof::prove;
use crate::fixes::{Edit, Fix, Kernel, Request, in_order, touch};
use crate::rules::smem::bank_conflict::pad_shared::{
    Plan, conflicting, simple, subscript, target, total_passes,
};
use crate::wording::{counted, faster, number};

const RULE: &str = "smem/bank-conflict";

/// Tiles with shorter rows gain nothing worth the reading.
const SHORTEST: u64 = 8;

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    let mut found = Vec::new();
    for kernel in request.analysis.kernels() {
        if !touch(request.range, &(kernel.start..kernel.end)) {
            continue;
        }
        for index in 0..kernel.facts.shared_arrays.len() {
            if let Some(target) = target(request, &kernel, index) {
                found.extend(fix(request, &kernel, index, target));
            }
        }
    }
    found
}

fn fix(request: &Request<'_>, kernel: &Kernel, index: usize, target: usize) -> Option<Fix> {
    let array = &kernel.facts.shared_arrays[index];
    let [(rows, _), (columns, _)] = array.extents[..] else {
        return None;
    };
    if rows != columns || !rows.is_power_of_two() || rows < SHORTEST {
        return None;
    }
    let plan = Plan::new(request.document, kernel, array)?;
    let code = request.code();
    let mut edits = Vec::new();
    for name in &plan.uses {
        let (_, indices) = subscript(*name, 2)?;
        // A `sizeof` of the array or a row of it stays what it is.
        let [row, column] = indices[..] else { continue };
        edits.push(swizzled(code, kernel, array, row, column)?);
    }
    let edits = in_order(edits)?;
    let before = total_passes(kernel, index)?;
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let same = after.facts.accesses.len() == kernel.facts.accesses.len()
        && after.resources.static_shared_bytes == kernel.resources.static_shared_bytes;
    let of = |kernel: &Kernel| kernel.facts.accesses.get(target)?.passes_per_request;
    let (now, then) = (of(kernel)?, of(&after)?);
    let others = after
        .facts
        .accesses
        .iter()
        .any(|access| conflicting(access, index));
    if !same || then >= now || total_passes(&after, index)? >= before || others {
        return None;
    }
    Some(Fix {
        title: format!(
            "Swizzle `{}` by its row: {} → {} without more shared memory, {}",
            array.name,
            counted(now, "pass", "passes"),
            number(then),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// The column of one use, exclusive or the row; `None` where the row cannot be said twice, or an index may leave the tile.
fn swizzled(
    code: Semantics,
    kernel: &Kernel,
    array: &SharedArray,
    row: Node,
    column: Node,
) -> Option<Edit> {
    let changes = |node: &Node| {
        matches!(
            node.kind(),
            Kind::AssignmentExpression | Kind::UpdateExpression | Kind::LambdaExpression
        ) || node.kind() == Kind::CallExpression && !code.text(*node).starts_with("get_local_id")
    };
    if row.descendants().iter().any(changes) {
        return None;
    }
    // A coordinate of a block that is bigger than the tile runs into the next row on purpose.
    let extent = array.extents.first()?.0;
    let block = kernel.facts.launch.block;
    let names = [
        ["threadIdx.x", "get_local_id(0)"],
        ["threadIdx.y", "get_local_id(1)"],
        ["threadIdx.z", "get_local_id(2)"],
    ];
    for index in [row, column] {
        let written: String = code.text(index).split_whitespace().collect();
        let axis = names.iter().position(|all| all.contains(&written.as_str()));
        if axis.is_some_and(|axis| block[axis] > extent)
            || written.parse::<u64>().is_ok_and(|at| at >= extent)
        {
            return None;
        }
    }
    let operand = |node: Node| {
        let written = code.text(node);
        if simple(node)
            || matches!(
                node.kind(),
                Kind::FieldExpression | Kind::SubscriptExpression
            )
        {
            written.to_owned()
        } else {
            format!("({written})")
        }
    };
    Some((
        column.byte_range(),
        format!("{} ^ {}", operand(column), operand(row)),
    ))
}
