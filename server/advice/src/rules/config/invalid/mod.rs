//! config/invalid: a setting or a hardware profile that cannot be followed; reported by what reads the settings.

use crate::rule::{Look, Rule, State};

pub(crate) const RULE: Rule = Rule {
    id: "config/invalid",
    title: "a setting or a hardware profile that cannot be followed",
    severity: "error",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::Elsewhere,
    actions: &[],
};
