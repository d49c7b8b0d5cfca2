//! Names by which a service knows a finding again after its line has moved.

use std::collections::BTreeMap;

use warplens_db::wire::Diagnostic;

use crate::baseline::{Texts, line};

/// One for each finding, in their order: of its file, its rule and its line's text, and how many equal ones come before it.
pub fn fingerprints(diagnostics: &[Diagnostic], texts: &Texts<'_>) -> Vec<String> {
    let mut alike: BTreeMap<(&str, &str, String), u64> = BTreeMap::new();
    diagnostics
        .iter()
        .map(|diagnostic| {
            let line = line(diagnostic, texts);
            let key = (diagnostic.file.as_str(), diagnostic.rule.as_str(), line);
            let print = hash(&key);
            let before = alike.entry(key).or_default();
            let name = format!("{print:016x}:{before}");
            *before += 1;
            name
        })
        .collect()
}

/// FNV-1a, which is the same on every machine and in every version.
fn hash((file, rule, line): &(&str, &str, String)) -> u64 {
    let bytes = [*file, *rule, line.as_str()]
        .into_iter()
        .flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
