//! Asks for a loop to be unrolled that the compiler keeps.

use crate::Cure;
use warplens_facts::facts::Site;
use warplens_hir::semantics::Controlled;

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::pragma;
use crate::fixes::{Fix, Kernel, Request};
use crate::wording::{faster, occupancy};

const RULE: &str = "loop/unroll";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, site| {
        let Some(Cure::Unroll(times)) = finding.cure else {
            return None;
        };
        fix(request, kernel, site, times)
    })
}

fn fix(request: &Request<'_>, kernel: &Kernel, site: Site, times: Option<u64>) -> Option<Fix> {
    let code = request.code();
    let source = kernel.source(code)?;
    let of = source.source_of::<Controlled>(site)?.as_loop()?;
    let says = match times {
        Some(times) => format!("unroll {times}"),
        None => "unroll".to_owned(),
    };
    let edits = vec![pragma(code, of, &says)?];
    let proof = prove(request, kernel, &edits)?;
    let after = proof.after();
    let speedup = proof.speedup(kernel)?;
    let (before, now) = (kernel.instructions?, after.instructions?);
    if now >= before || speedup < 1.01 {
        return None;
    }
    let how = match times {
        None => "Unroll the loop".to_owned(),
        Some(times) => format!("Unroll the loop {times} times"),
    };
    Some(Fix {
        title: format!(
            "{how}: {before:.0} instructions per warp → {now:.0}{}, {}",
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}
