//! mem/loop-invariant-load: a loop loads in each iteration what never changes in it.

use crate::catalogue::{RuleInfo, State};

pub(crate) const INFO: RuleInfo = RuleInfo {
    id: "mem/loop-invariant-load",
    title: "a loop loads the same word in each iteration, for the compiler cannot know that nothing changes it",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("../docs/mem-loop-invariant-load.md"),
};
