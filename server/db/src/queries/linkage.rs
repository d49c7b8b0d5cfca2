//! Query family: what the texts of a program call and define.
//!
//! In: texts. Out: the names that they call and do not define, which the program is linked with. What holds: what is typed leaves them
//! unless it names another function; a text is looked through once.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use warplens_syntax::Expanded;

use crate::contents::Contents;
use crate::linkage::Linkage;
use crate::memo::hash;

impl Contents {
    /// The names before parentheses in these texts that are defined in none of them.
    pub(crate) fn lacking<'t>(
        &self,
        texts: impl Iterator<Item = &'t Arc<Expanded>>,
    ) -> Arc<Vec<String>> {
        let all: Vec<Arc<Linkage>> = texts.map(|text| self.linkage(text)).collect();
        let hashes: Vec<u64> = all.iter().map(|one| one.hash).collect();
        self.lacking.get_or(hash(&[&hashes]), || {
            let defined: FxHashSet<&str> = (all.iter())
                .flat_map(|one| one.defined.iter().map(String::as_str))
                .collect();
            let called = all.iter().flat_map(|one| &one.called);
            let lacking = called.filter(|name| !defined.contains(name.as_str()));
            lacking
                .cloned()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        })
    }

    fn linkage(&self, text: &Arc<Expanded>) -> Arc<Linkage> {
        let made = || Linkage::of(&text.text, &self.items(text));
        self.linkages.get_or(text.own_hash, made)
    }
}
