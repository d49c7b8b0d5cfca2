//! Differences that are explained, from a file of TOML:
//!
//! ```toml
//! [[allow]]
//! path = "estimate.*.estimates.*.what"  # the command, then the place without indices
//! old = "*relies on*"                    # if not any value
//! new = "*depends on*"
//! reason = "the wording of the guide"
//! ```
//!
//! `*` is any characters, none as well. A value is matched as its JSON text; `nothing` where there is none.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};

use super::difference::Difference;

/// The entries of one file.
#[derive(Debug, Default)]
pub struct Allowed(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    path: String,
    old: String,
    new: String,
    reason: String,
}

impl Allowed {
    /// Reads a file.
    pub fn read(file: &Path) -> anyhow::Result<Allowed> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        Allowed::parse(&text).with_context(|| format!("in {}", file.display()))
    }

    fn parse(text: &str) -> anyhow::Result<Allowed> {
        let table: toml::Table = text.parse()?;
        let mut entries = Vec::new();
        for (key, value) in &table {
            let tables = value.as_array().filter(|_| key == "allow");
            let tables = tables.with_context(|| format!("`{key}` is not `[[allow]]`"))?;
            for entry in tables {
                let entry = entry.as_table().context("an entry is not a table")?;
                entries.push(Entry::of(entry)?);
            }
        }
        Ok(Allowed(entries))
    }

    /// Why there is this difference; none where no entry says so.
    pub fn explain(&self, path: &str, difference: &Difference) -> Option<&str> {
        let (old, new) = difference.values();
        let mut entries = self.0.iter();
        let entry = entries.find(|entry| {
            matches(&entry.path, path) && matches(&entry.old, &old) && matches(&entry.new, &new)
        })?;
        Some(&entry.reason)
    }

    /// How often each reason explains one of these, those that explain none among them.
    pub fn reasons<'a>(
        &self,
        found: impl Iterator<Item = (String, &'a Difference)>,
    ) -> BTreeMap<&str, usize> {
        let mut reasons: BTreeMap<&str, usize> = self
            .0
            .iter()
            .map(|entry| (entry.reason.as_str(), 0))
            .collect();
        for (path, difference) in found {
            if let Some(reason) = self.explain(&path, difference) {
                *reasons.entry(reason).or_insert(0) += 1;
            }
        }
        reasons
    }
}

impl Entry {
    fn of(table: &toml::Table) -> anyhow::Result<Entry> {
        for key in table.keys() {
            if !["path", "old", "new", "reason"].contains(&key.as_str()) {
                bail!("there is no key `{key}`");
            }
        }
        let text = |key: &str| Some(table.get(key)?.as_str()?.to_owned());
        let any = || "*".to_owned();
        let reason = text("reason").filter(|reason| !reason.trim().is_empty());
        Ok(Entry {
            path: text("path").context("an entry without a `path`")?,
            old: text("old").unwrap_or_else(any),
            new: text("new").unwrap_or_else(any),
            reason: reason.context("an entry without a `reason`")?,
        })
    }
}

/// True where `text` is what `pattern` says, `*` standing for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(matches("a*c", "abc") && matches("a*c", "ac") && matches("*", ""));
        assert!(matches("a*b*c", "a.b.b.c") && !matches("a*b", "a.b.c"));
        assert!(!matches("ab*ba", "aba") && !matches("a", "ab"));
    }

    #[test]
    fn an_entry_explains_what_its_patterns_match() {
        let allowed = Allowed::parse(
            "[[allow]]\npath = \"check.*.message\"\nold = \"*relies on*\"\nreason = \"wording\"\n",
        )
        .unwrap();
        let of = |old: &str| Difference {
            path: ".diagnostics[].message".to_owned(),
            place: ".diagnostics[0].message".to_owned(),
            old: Some(json!(old)),
            new: Some(json!("it depends on data")),
        };
        let path = "check.diagnostics[].message";
        assert_eq!(
            allowed.explain(path, &of("it relies on data")),
            Some("wording")
        );
        assert_eq!(allowed.explain(path, &of("other")), None);
        assert_eq!(
            allowed.explain("check.stats", &of("it relies on data")),
            None
        );
        let reasons = allowed.reasons(std::iter::empty());
        assert_eq!(reasons.into_iter().collect::<Vec<_>>(), [("wording", 0)]);
    }

    #[test]
    fn an_entry_needs_a_reason_and_known_keys() {
        assert!(Allowed::parse("[[allow]]\npath = \"*\"\n").is_err());
        assert!(Allowed::parse("[[allow]]\npath = \"*\"\nreason = \" \"\n").is_err());
        assert!(Allowed::parse("[[allow]]\npath = \"*\"\nreason = \"r\"\nolds = \"\"\n").is_err());
        assert!(Allowed::parse("[[allowed]]\npath = \"*\"\nreason = \"r\"\n").is_err());
    }
}
