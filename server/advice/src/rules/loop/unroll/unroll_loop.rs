//! Asks for a loop to be unrolled that the compiler keeps.

use std::ops::Range;

use crate::Cure;
use warplens_syntax::{Field, Kind, Node};

use crate::fixes::proof::{of_findings, prove};
use crate::fixes::source::pragma;
use crate::fixes::{Fix, Kernel, Request};
use crate::wording::{faster, occupancy};

const RULE: &str = "loop/unroll";

pub(crate) fn fixes(request: &Request<'_>) -> Vec<Fix> {
    of_findings(request, RULE, |_, kernel, finding, place| {
        let Some(Cure::Unroll(times)) = finding.cure else {
            return None;
        };
        fix(request, kernel, place, times)
    })
}

fn fix(
    request: &Request<'_>,
    kernel: &Kernel,
    place: &Range<usize>,
    times: Option<u64>,
) -> Option<Fix> {
    let code = request.code();
    let function = code.kernel(kernel.start..kernel.end)?;
    let of = loop_of(function, place)?;
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
            "{how}: {before:.0} instructions per warp -> {now:.0}{}, {}",
            occupancy(kernel.occupancy, after.occupancy),
            faster(speedup)
        ),
        rule: RULE,
        edits,
        gain: speedup,
        complete: true,
    })
}

/// The loop whose condition is there.
fn loop_of<'t>(function: Node<'t>, place: &Range<usize>) -> Option<Node<'t>> {
    let mut at = function.descendant_for_byte_range(place.start, place.end)?;
    loop {
        let is_loop = matches!(
            at.kind(),
            Kind::ForStatement | Kind::WhileStatement | Kind::DoStatement
        );
        let condition = at.field(Field::Condition).filter(|_| is_loop);
        if let Some(condition) = condition {
            let holds = condition.start_byte() <= place.start && place.end <= condition.end_byte();
            return holds.then_some(at);
        }
        at = at.parent().filter(|_| at != function)?;
    }
}
