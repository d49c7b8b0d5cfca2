//! internal/lost-kernel: a kernel whose analysis failed inside warplens; reported by what analyses the kernels of a file.

use crate::rule::{Look, Rule, State};

pub(crate) const RULE: Rule = Rule {
    id: "internal/lost-kernel",
    title: "a kernel whose analysis failed inside warplens",
    severity: "error",
    state: State::Stable,
    explain: include_str!("page.md"),
    look: Look::Elsewhere,
    actions: &[],
};
