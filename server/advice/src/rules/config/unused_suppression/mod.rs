//! config/unused-suppression: an allow directive that silences nothing; reported by what applies `allow` directives.

use crate::rule::{Look, Rule, State};

pub(crate) const RULE: Rule = Rule {
    id: "config/unused-suppression",
    title: "an allow directive that silences nothing",
    severity: "hint",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::Elsewhere,
    actions: &[],
};
