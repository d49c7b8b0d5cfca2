//! const/divergent-index: lanes of a warp read different words of constant memory.

use warplens_facts::facts::{Op, Space};
use warplens_models::Factor;

use crate::Context;
use crate::rule::{Look, Rule, State, When};
use crate::subjects::access::{Candidate, Loudness, findings, plural};
use crate::{Finding, wording::number};

pub(crate) const RULE: Rule = Rule {
    id: "const/divergent-index",
    title: "lanes of a warp read different words of constant memory, one after the other",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::At(When::Cost, check),
    actions: &[],
};

/// Averages over the launch closer to 1 than this are a stray warp, not a pattern.
const DIVERGENT: f64 = 1.25;

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let accesses = ctx.facts.accesses.iter().enumerate();
    let candidates = accesses
        .filter(|(_, access)| access.space == Space::Constant && access.op == Op::Load)
        .filter_map(|(index, access)| {
            let passes = access.passes_per_request?;
            let ideal = access.ideal_passes_per_request.unwrap_or(1.0);
            (passes > ideal * DIVERGENT).then(|| Candidate {
                rule: RULE.id,
                index,
                number: format!(
                    "{} per request{} (ideal {})",
                    plural(passes, "pass"),
                    crate::wording::on_average(passes),
                    number(ideal)
                ),
                cure: format!(
                    "keep `{}` in shared or global memory",
                    crate::wording::array_of(access)
                ),
                cause: format!(
                    "lanes of a warp read different words of the constant `{}`",
                    access.text
                ),
                loudness: Loudness::ByGain,
                gain: None,
            })
        })
        .collect();
    findings(ctx, candidates, Factor::BankConflicts)
}
