//! Sums over the warp before one lane adds to memory.

use crate::Finding;
use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_hir::semantics::{Declaration, is_assigned};
use warplens_syntax::{Field, Kind, Language, Node, is_identifier, words_in};

use crate::fixes::proof::{of_findings, one_launch, prove};
use crate::fixes::source::{atomic_call, indent, new_name};
use crate::fixes::{Edit, Fix, Kernel, Request, in_order};
use crate::wording::{counted, faster, number};

const RULE: &str = "atomic/hot-address";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, finding: &Finding, site: Site) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let function = source.function;
    let index = finding.access?;
    let access = kernel.facts.accesses.get(index)?;
    let call = atomic_call(source, site)?;
    let lane = first_lane(request, kernel)?;
    let ty = code
        .written_element(function, &access.array)
        .filter(|ty| matches!(*ty, "float" | "double"))?;
    // Lanes that have left do not answer.
    let leaves =
        |node: &Node<'_>| matches!(node.kind(), Kind::ReturnStatement | Kind::GotoStatement);
    if function.descendants().iter().any(leaves) {
        return None;
    }
    let top = at_the_top(function, call.statement)?;
    let sum = new_name(code, function, "warp_sum");
    let warp = kernel.facts.warp_size;
    let other = match request.document.language() {
        Language::Hip => format!("__shfl_xor({sum}, step)"),
        Language::Cuda => format!("__shfl_xor_sync(0xffffffff, {sum}, step)"),
        Language::OpenCl => return None,
    };
    let rest = |space: &str| {
        format!(
            "\n{space}for (int step = {}; step > 0; step /= 2) {sum} += {other};\
             \n{space}if ({lane}) {}({}, {sum});",
            warp / 2,
            code.text(call.callee),
            call.address
        )
    };
    let space = indent(code.source, top.start_byte());
    let edits: Vec<Edit> = if top == call.statement {
        vec![(
            top.byte_range(),
            format!("{ty} {sum} = {};{}", call.value, rest(&space)),
        )]
    } else {
        same_outside(code, function, kernel, call.address)?;
        let (start, end) = (top.start_byte(), top.end_byte());
        in_order(vec![
            (start..start, format!("{ty} {sum} = 0;\n{space}")),
            (call.call.byte_range(), format!("{sum} = {}", call.value)),
            (end..end, rest(&space)),
        ])?
    };
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    let lanes = access.passes_per_request?;
    let after = proof.after();
    if after.count(RULE) >= kernel.count(RULE) {
        return None;
    }
    Some(Fix {
        title: format!(
            "Add up the warp before `{}`: {} on the address → {}, {}, rounded in another order",
            access.array,
            counted(lanes, "lane", "lanes"),
            number(1.0),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// The condition that one lane of each warp fulfils; `None` where warps are not whole under every launch.
fn first_lane(request: &Request<'_>, kernel: &Kernel<'_>) -> Option<String> {
    let launch = &kernel.facts.launch;
    let warp = u64::from(kernel.facts.warp_size);
    let [x, y, z] = launch.block;
    if !one_launch(request, kernel) || !launch.threads_per_block().is_multiple_of(warp) {
        return None;
    }
    if x.is_multiple_of(warp) || (y == 1 && z == 1) {
        return Some(format!("threadIdx.x % {warp} == 0"));
    }
    (z == 1).then(|| format!("(threadIdx.y * blockDim.x + threadIdx.x) % {warp} == 0"))
}

/// The statement at the top of the function that a statement is or is a branch of. `None` where something else is around
/// it: a loop may end for some lanes before others.
fn at_the_top<'t>(function: Node<'t>, statement: Node<'t>) -> Option<Node<'t>> {
    let body = function.field(Field::Body)?;
    let mut top = statement;
    let mut at = statement;
    loop {
        let parent = at.parent()?;
        match parent.kind() {
            Kind::CompoundStatement if parent == body => return Some(top),
            Kind::CompoundStatement | Kind::ElseClause => {}
            Kind::IfStatement => top = parent,
            _ => return None,
        }
        at = parent;
    }
}

/// An address that is the same behind the branch as inside: of parameters that are not changed, shared arrays and the
/// block's own numbers.
fn same_outside(
    code: Semantics,
    function: Node<'_>,
    kernel: &Kernel<'_>,
    address: &str,
) -> Option<()> {
    for word in words_in(address).filter(|word| is_identifier(word)) {
        let shared = kernel
            .facts
            .shared_arrays
            .iter()
            .any(|one| one.name == word);
        let kept = || {
            let declaration = code.declared(function, word);
            declaration.is_some_and(|one| one.is_parameter() && !is_reassigned(code, &one))
        };
        let known = matches!(word, "blockIdx" | "x" | "y" | "z") || shared || kept();
        if !known {
            return None;
        }
    }
    Some(())
}

/// True where a parameter may be given another value; its elements may.
fn is_reassigned(code: Semantics, parameter: &Declaration) -> bool {
    let uses = code.uses(parameter);
    uses.is_none_or(|uses| uses.into_iter().any(is_assigned))
}
