//! local/large-frame: a thread's own array that is too big for registers; found by `local/dynamic-array`, which
//! looks at all such arrays.

use crate::rule::{Look, Rule, State};

pub(crate) const RULE: Rule = Rule {
    id: "local/large-frame",
    title: "a thread's own array is too big for registers and lies in memory",
    severity: "by predicted gain: hint, information or warning",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::With("local/dynamic-array"),
    actions: &[],
};
