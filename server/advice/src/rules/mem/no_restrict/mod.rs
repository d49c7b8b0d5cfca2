//! mem/no-restrict: the compiler loads and stores again because pointer parameters may lead to the same memory.

mod distinct;
pub(crate) mod restrict;

use crate::rule::{Look, Rule, State};

pub(crate) const RULE: Rule = Rule {
    id: "mem/no-restrict",
    title: "pointer parameters may overlap as far as the compiler knows: it loads again what a store may have changed",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("mem/loop-invariant-load"),
    actions: &[restrict::fixes],
};
