//! The functions that a text calls and defines, by name.

use std::collections::BTreeSet;

use warplens_hir::{Item, ItemKind};

use crate::memo::hash;

/// See the module.
#[derive(Debug)]
pub(crate) struct Linkage {
    pub(crate) called: BTreeSet<String>,
    pub(crate) defined: BTreeSet<String>,
    /// Of both.
    pub(crate) hash: u64,
}

impl Linkage {
    pub(crate) fn of(text: &str, items: &[Item]) -> Linkage {
        let called: BTreeSet<String> = called_in(text).map(str::to_owned).collect();
        let defined = items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(name) | ItemKind::Kernel(name) => Some(name.clone()),
            ItemKind::Declaration => None,
        });
        let defined: BTreeSet<String> = defined.collect();
        let hash = hash(&[&called, &defined]);
        Linkage {
            called,
            defined,
            hash,
        }
    }
}

/// The names before parentheses.
fn called_in(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices('(').filter_map(move |(at, _)| {
        let before = text[..at].trim_end();
        let name = &before[before.trim_end_matches(word).len()..];
        let begins = name.starts_with(|c: char| !c.is_ascii_digit());
        (begins && !name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_leaves_the_linkage_unless_it_names_another_function() {
        let of = |text: &str| Linkage::of(text, &[]);
        let before = of("void run() { scale(1); add (2); }");
        assert!(before.called.iter().eq(["add", "run", "scale"]));
        let typed = of("void run() { int n = 3; scale(n); add(n * 2); }");
        assert_eq!(before.hash, typed.hash);
        assert_ne!(
            before.hash,
            of("void run() { scale(1); add(2); shift(1); }").hash
        );
    }
}
