//! mem/uncoalesced: more transactions than the bytes need, for no more specific reason.

use warplens_facts::facts::Pattern;

use crate::access::Costly;
use crate::catalogue::{RuleInfo, State};

pub(crate) const INFO: RuleInfo = RuleInfo {
    id: "mem/uncoalesced",
    title: "a warp's global access moves more transactions than its bytes need",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("../docs/mem-uncoalesced.md"),
};

/// Whatever the more specific rules have left.
pub(crate) fn claims(_: &Costly<'_>) -> bool {
    true
}

pub(crate) fn cause(costly: &Costly<'_>) -> String {
    let text = &costly.access.text;
    let contiguous = costly.distance().is_some_and(|d| d <= costly.element());
    if costly.rows > 2 && contiguous {
        return format!(
            "the block is {} threads wide, so a warp takes {} short rows of `{text}`",
            costly.block_width, costly.rows
        );
    }
    match costly.access.pattern {
        Pattern::Broadcast => {
            format!("all lanes read one word of `{text}`, which this GPU serves lane by lane")
        }
        _ => format!("the lanes of a warp scatter over `{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Kernel, access};
    use warplens_facts::facts::Pattern;

    #[test]
    fn scattered_lanes_are_uncoalesced() {
        let mut scattered = access(5);
        scattered.pattern = Pattern::Scattered;
        scattered.stride = None;
        scattered.transactions_per_request = Some(8.0);
        let findings = Kernel::new().access(scattered).findings(|_| 1.4);
        assert_eq!(findings[0].rule, "mem/uncoalesced");
        assert!(
            findings[0].message.starts_with(
                "8 sectors per request, 4 would do: the lanes of a warp scatter over `in[i]`"
            ),
            "{}",
            findings[0].message
        );
    }

    #[test]
    fn a_narrow_block_is_named_as_the_cause() {
        let mut rows = access(5);
        rows.pattern = Pattern::Scattered;
        rows.transactions_per_request = Some(8.0);
        let findings = Kernel::new()
            .block([4, 64, 1])
            .access(rows)
            .findings(|_| 1.4);
        assert_eq!(findings[0].rule, "mem/uncoalesced");
        assert!(
            findings[0]
                .message
                .contains("the block is 4 threads wide, so a warp takes 8 short rows"),
            "{}",
            findings[0].message
        );
    }
}
