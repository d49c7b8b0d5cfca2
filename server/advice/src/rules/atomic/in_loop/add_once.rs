//! Adds in a variable of the thread, and once to memory behind the loop.

use crate::Finding;
use warplens_facts::facts::Site;
use warplens_hir::semantics::Controlled;
use warplens_syntax::{Kind, has_word};

use crate::fixes::proof::{executions, of_findings, prove};
use crate::fixes::source::{atomic_call, indent, new_name};
use crate::fixes::{Fix, Kernel, Request, in_order};
use crate::wording::{faster, number};

const RULE: &str = "atomic/in-loop";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, finding: &Finding, site: Site) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let function = source.function;
    let access = kernel.facts.accesses.get(finding.access?)?;
    let call = atomic_call(source, site)?;
    let (condition, _) = *finding.related.first()?;
    let around = source.source_of::<Controlled>(condition)?.as_loop()?;
    // A label or a branch without braces would take only the first of the statements.
    around
        .parent()
        .filter(|parent| parent.kind() == Kind::CompoundStatement)?;
    let ty = code.written_element(function, &access.array)?;
    let rounded = match ty {
        "float" | "double" => true,
        "int"
        | "unsigned"
        | "unsigned int"
        | "uint"
        | "unsigned long long"
        | "ulong"
        | "unsigned long long int"
        | "uint32_t"
        | "uint64_t"
        | "int32_t" => false,
        _ => return None,
    };
    // A comma would be an operator in the sum.
    if has_word(call.address, "sizeof") {
        return None;
    }
    let sum = new_name(code, function, &format!("{}_sum", plain(&access.array)));
    let space = indent(code.source, around.start_byte());
    let end = around.end_byte();
    let head = around.start_byte();
    let edits = in_order(vec![
        (head..head, format!("{ty} {sum} = 0;\n{space}")),
        (call.call.byte_range(), format!("{sum} += {}", call.value)),
        (
            end..end,
            format!(
                "\n{space}if ({sum} != 0) {}({}, {sum});",
                code.text(call.callee),
                call.address
            ),
        ),
    ])?;
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    let (before, after) = (executions(kernel), executions(&proof.after()));
    if after >= before {
        return None;
    }
    let order = if rounded {
        ", rounded in another order"
    } else {
        ""
    };
    Some(Fix {
        title: format!(
            "Add to `{}` once behind the loop: atomics of a thread {} → {}, {}{order}",
            access.array,
            number(before),
            number(after),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// The letters of a name that a name may begin with.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}
