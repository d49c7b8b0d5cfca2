//! input/unreadable: a file that cannot be read; reported by what reads files.

use crate::rule::{Look, Rule, State};

pub(crate) const RULE: Rule = Rule {
    id: "input/unreadable",
    title: "a file that cannot be read",
    severity: "error",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::Elsewhere,
    actions: &[],
};
