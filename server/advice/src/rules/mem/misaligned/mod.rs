//! mem/misaligned: lanes side by side that do not begin on a boundary of the memory's units.

use warplens_facts::facts::{Access, Pattern};
use warplens_machine::GlobalRule;

use crate::Context;
use crate::rule::{Look, Rule, State};
use crate::subjects::access::Costly;

pub(crate) const RULE: Rule = Rule {
    id: "mem/misaligned",
    title: "neighbouring threads take neighbouring words, but the first does not lie on a boundary",
    severity: "hint where a cache catches the rest of the unit, else by predicted gain",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("mem/uncoalesced"),
    actions: &[],
};

/// Contiguous lanes; what the rules of capability 1.0 and 1.1 punish is the same case with another price.
pub(crate) fn claims(costly: &Costly<'_>) -> bool {
    costly.is_row() && (costly.only_misaligned || costly.access.pattern == Pattern::Coalesced)
}

/// True where a shift of at most one unit is worth a word: it is the access's own, not that of its block or of the whole
/// kernel (which begins behind a border), and no other access to the array takes what this one leaves of its units.
pub(crate) fn matters(ctx: &Context<'_>, access: &Access) -> bool {
    let Some(own) = shift(access) else {
        return false;
    };
    let mut others = ctx.facts.accesses.iter().filter(|other| {
        other.space == access.space && (other.array != access.array || other.index != access.index)
    });
    access.exact() && others.all(|other| other.array != access.array && shift(other) != Some(own))
}

/// Bytes behind a boundary at which every warp begins; `None` where that is 0 or differs.
fn shift(access: &Access) -> Option<i64> {
    let unit = i64::from(access.transaction_bytes.max(1));
    let linear = access.linear.as_ref()?;
    let steps = linear.block.iter().chain(&linear.loops);
    let shift = linear.constant.rem_euclid(unit);
    let alike = steps.into_iter().all(|step| step % unit == 0);
    (shift != 0 && alike).then_some(shift)
}

/// True where the rest of a unit waits in a cache for the warp beside.
pub(crate) fn is_caught(ctx: &Context<'_>) -> bool {
    !matches!(
        ctx.profile.global_rule,
        GlobalRule::HalfWarpStrict | GlobalRule::HalfWarpSegments
    )
}

pub(crate) fn cause(costly: &Costly<'_>) -> String {
    let text = &costly.access.text;
    let unit = costly.access.transaction_bytes;
    if let Some(shift) = shift(costly.access) {
        format!("`{text}` begins {shift} bytes behind a boundary of {unit} bytes")
    } else {
        format!("`{text}` does not begin on a boundary of {unit} bytes")
    }
}

#[cfg(test)]
mod tests {
    use crate::Severity;
    use crate::testing::{Kernel, access};
    use warplens_facts::facts::{Certainty, LinearAddress};

    #[test]
    fn a_shifted_copy_is_a_hint_that_says_by_how_much() {
        let mut shifted = access(5);
        shifted.transactions_per_request = Some(5.0);
        shifted.linear = Some(LinearAddress {
            constant: 4,
            thread: [4, 0, 0],
            block: [1024, 0, 0],
            loops: Vec::new(),
        });
        let findings = Kernel::new().access(shifted.clone()).findings(|_| 1.2);
        assert_eq!(findings[0].rule, "mem/misaligned");
        assert_eq!(findings[0].severity, Severity::Hint);
        assert!(
            findings[0].message.contains(
                "5 sectors per request (ideal 4): `in[i]` begins 4 bytes behind a boundary of 32 bytes"
            ),
            "{}",
            findings[0].message
        );
        shifted.certainty = Certainty::Assumed;
        assert_eq!(Kernel::new().access(shifted).findings(|_| 1.2), []);
    }

    #[test]
    fn a_stencil_takes_what_its_neighbour_leaves() {
        let mut shifted = access(5);
        shifted.transactions_per_request = Some(5.0);
        shifted.linear = Some(LinearAddress {
            constant: 4,
            thread: [4, 0, 0],
            block: [1024, 0, 0],
            loops: Vec::new(),
        });
        let mut beside = access(5);
        beside.index = "blockIdx.x * 256 + threadIdx.x + 1".to_owned();
        let findings = Kernel::new()
            .access(shifted)
            .access(beside)
            .findings(|_| 1.2);
        assert_eq!(findings, []);
    }
}
