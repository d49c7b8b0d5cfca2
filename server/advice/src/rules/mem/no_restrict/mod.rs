//! mem/no-restrict: the compiler loads and stores again because pointer parameters may lead to the same memory.

use crate::catalogue::{RuleInfo, State};

pub(crate) const INFO: RuleInfo = RuleInfo {
    id: "mem/no-restrict",
    title: "pointer parameters may overlap as far as the compiler knows: it loads again what a store may have changed",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("../docs/mem-no-restrict.md"),
};
