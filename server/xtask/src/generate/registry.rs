//! The registry of rules, derived from their folders.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where the rules' folders are, below the repository's root.
pub const RULES: &str = "server/advice/src/rules";

/// Words of Rust that a category or a rule may be called all the same: a module of that name is written raw.
const WORDS: &str = " abstract as async await become box break const continue do dyn else enum extern false final fn for gen if \
    impl in let loop macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe \
    unsized use virtual where while yield ";

/// `rules/mod.rs` as the folders beside it want it: `<category>/<rule>/mod.rs` is the rule `category/rule`.
///
/// Modules are declared in it, not by a macro, so that `cargo fmt` finds them.
pub fn of_rules(root: &Path) -> anyhow::Result<String> {
    let mut rules = Vec::new();
    let mut categories: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for category in folders(&root.join(RULES))? {
        for rule in folders(&category)? {
            if rule.join("mod.rs").is_file() {
                let (category, rule) = (name(&category), name(&rule));
                categories
                    .entry(category.clone())
                    .or_default()
                    .push(rule.clone());
                rules.push((
                    format!("{category}/{}", rule.replace('_', "-")),
                    category,
                    rule,
                ));
            }
        }
    }
    rules.sort();
    let mut text = String::from(
        "//! The registry of rules. `cargo xtask generate` writes it from the folders beside it.\n\nuse crate::rule::Rule;\n\n",
    );
    for (category, rules) in &categories {
        let _ = writeln!(text, "pub(crate) mod {} {{", module(category));
        for rule in rules {
            let _ = writeln!(text, "    pub(crate) mod {};", module(rule));
        }
        text.push_str("}\n");
    }
    text.push_str("\n/// Every rule, sorted by id.\npub(crate) static RULES: &[Rule] = &[\n");
    for (_, category, rule) in &rules {
        let _ = writeln!(text, "    {}::{}::RULE,", module(category), module(rule));
    }
    text.push_str("];\n");
    Ok(text)
}

/// A name as Rust takes it.
fn module(name: &str) -> String {
    if WORDS.contains(&format!(" {name} ")) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

/// The folders in a folder, by name.
fn folders(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn name(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_rule_is_a_line_of_the_registry() {
        let folder = tempfile::tempdir().unwrap();
        for rule in ["mem/bank_two", "mem/aos", "loop/unroll"] {
            let path = folder.path().join(RULES).join(rule);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("mod.rs"), "").unwrap();
        }
        fs::create_dir_all(folder.path().join(RULES).join("mem/aos/fixtures")).unwrap();
        fs::create_dir_all(folder.path().join(RULES).join("mem/empty")).unwrap();
        let text = of_rules(folder.path()).unwrap();
        let list = "pub(crate) static RULES: &[Rule] = &[\n    r#loop::unroll::RULE,\n    mem::aos::RULE,\n    \
            mem::bank_two::RULE,\n];\n";
        assert!(text.ends_with(list), "{text}");
        let modules =
            "pub(crate) mod mem {\n    pub(crate) mod aos;\n    pub(crate) mod bank_two;\n}\n";
        assert!(text.contains(modules), "{text}");
    }

    #[test]
    fn the_registry_is_that_of_the_folders() {
        let root = xtask::repository::root();
        let registry = fs::read_to_string(root.join(RULES).join("mod.rs")).unwrap();
        assert_eq!(registry, of_rules(&root).unwrap());
    }
}
