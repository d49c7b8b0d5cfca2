//! Makes a fence's scope that of who reads.

use crate::{Cure, Finding};
use warplens_facts::facts::Site;
use warplens_hir::Semantics;
use warplens_syntax::has_word;
use warplens_syntax::nodes::CallExpression;

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::{Fix, Kernel, Request};
use crate::wording::faster;

const RULE: &str = "sync/wide-fence";

/// Words of memory that the host or another GPU may look at while a kernel runs.
const SEEN_ELSEWHERE: [&str; 13] = [
    "HostAlloc",
    "MallocHost",
    "HostMalloc",
    "HostRegister",
    "HostGetDevicePointer",
    "Managed",
    "__managed__",
    "Peer",
    "Ipc",
    "nvshmem",
    "nccl",
    "MemMap",
    "multicast",
];

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, fix)
}

fn fix(request: &Request<'_>, kernel: &Kernel<'_>, finding: &Finding, site: Site) -> Option<Fix> {
    let code = request.code();
    let call: CallExpression = kernel.source(code)?.source_of(site)?;
    let callee = call.function()?;
    let name = code.text(callee);
    if !matches!(name, "__threadfence" | "__threadfence_system") || code.in_a_macro(name) {
        return None;
    }
    let (narrow, who) = if finding.cure == Some(Cure::WithinBlock) {
        ("__threadfence_block", "the block")
    } else if own_memory(code, kernel) {
        ("__threadfence", "this GPU")
    } else {
        return None;
    };
    let edits = vec![(callee.byte_range(), narrow.to_owned())];
    let proof = prove(request, kernel, &edits)?;
    let speedup = proof.speedup(kernel)?;
    Some(Fix {
        title: format!("Fence for {who} alone: `{narrow}()`, {}", faster(speedup)),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// True where the file launches the kernel, allocates device memory, and shows no memory that anyone else may look at.
fn own_memory(code: Semantics, kernel: &Kernel<'_>) -> bool {
    let text = code.source;
    code.launches_written(&kernel.facts.name) > 0
        && (has_word(text, "cudaMalloc") || has_word(text, "hipMalloc"))
        && !SEEN_ELSEWHERE.iter().any(|word| text.contains(word))
}
