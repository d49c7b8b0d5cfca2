//! mem/gather: where a warp goes in memory depends on data.

use warplens_facts::facts::{Access, Pattern, Space};

use crate::rule::{Look, Rule, State, When};
use crate::{Context, Finding, Place, Severity};

pub(crate) const RULE: Rule = Rule {
    id: "mem/gather",
    title: "an index that was loaded: what the access costs depends on data",
    severity: "hint",
    state: State::Preview,
    explain: include_str!("page.md"),
    look: Look::At(When::Trial, check),
    actions: &[],
};

pub(crate) fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let mut gathers = ctx
        .facts
        .accesses
        .iter()
        .enumerate()
        .filter(|(_, access)| is_gather(access));
    let Some((index, first)) = gathers.next() else {
        return Vec::new();
    };
    let mut related: Vec<_> = gathers
        .map(|(_, access)| (access.site, format!("so is that of `{}`", access.text)))
        .filter(|(site, _)| *site != first.site)
        .collect();
    related.dedup_by_key(|(site, _)| *site);
    vec![Finding {
        rule: RULE.id,
        severity: Severity::Hint,
        place: Place::Site(first.site),
        message: format!(
            "cost not known: `{}` is a gather (up to {} transactions per request)\n\
             cost not known, up to {} transactions per request: the index of `{}` was loaded, where a warp goes depends \
             on data",
            crate::wording::short(named(first)),
            ctx.facts.warp_size,
            ctx.facts.warp_size,
            first.text
        ),
        gain: 1.0,
        related,
        access: Some(index),
        shared_array: None,
        cure: None,
    }]
}

/// What is accessed: the array, and the access as written where it may be one of several.
fn named(access: &Access) -> &str {
    if access.array.is_empty() {
        &access.text
    } else {
        &access.array
    }
}

/// An address of data; rows that begin where data says have lanes side by side all the same.
fn is_gather(access: &Access) -> bool {
    let element = i64::from(access.bytes_per_lane);
    access.space == Space::Global
        && access.pattern == Pattern::DataDependent
        && access
            .stride
            .as_ref()
            .is_none_or(|stride| stride.bytes != element)
        && access.transactions_per_request.is_none()
}
