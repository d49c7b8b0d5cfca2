//! local/large-frame: a thread's own array that is too big for registers; told by `local_dynamic_array`, which
//! looks at all such arrays.

use crate::catalogue::{RuleInfo, State};

pub(crate) const INFO: RuleInfo = RuleInfo {
    id: "local/large-frame",
    title: "a thread's own array is too big for registers and lies in memory",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("../docs/local-large-frame.md"),
};
