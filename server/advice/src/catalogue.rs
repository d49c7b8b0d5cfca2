//! The catalogue: every rule by its id, and where its page is.

use crate::rule::Rule;
use crate::rules::RULES;

/// Every rule, sorted by id.
pub fn catalogue() -> &'static [Rule] {
    RULES
}

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// The file name of a rule's page.
fn page(id: &str) -> String {
    format!("{}.md", id.replace('/', "-"))
}

/// Where a rule's page is on the web: a diagnostic's `codeDescription.href`.
pub fn href(id: &str) -> String {
    format!(
        "https://github.com/warplens/warplens/blob/main/docs/rules/{}",
        page(id)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    const HEADINGS: [&str; 7] = [
        "## What it detects",
        "## Why it costs",
        "## How it is computed",
        "## Example",
        "## When it is wrong",
        "## How sure",
        "## References",
    ];

    #[test]
    fn ids_are_sorted_unique_and_found() {
        for pair in catalogue().windows(2) {
            assert!(
                pair[0].id < pair[1].id,
                "{} before {}",
                pair[0].id,
                pair[1].id
            );
        }
        for rule in catalogue() {
            assert_eq!(find(rule.id).map(|r| r.id), Some(rule.id));
            assert_eq!(rule.id.split('/').count(), 2, "{}", rule.id);
            assert!(!rule.title.contains('\n'), "{}", rule.id);
        }
        assert!(find("mem/no-such-rule").is_none());
    }

    #[test]
    fn every_page_has_its_title_and_all_headings_in_order() {
        for rule in catalogue() {
            assert!(
                rule.explain.starts_with(&format!("# {}\n", rule.id)),
                "{}",
                rule.id
            );
            let found: Vec<_> = rule
                .explain
                .lines()
                .filter(|l| l.starts_with("## "))
                .collect();
            assert_eq!(found, HEADINGS, "{}", rule.id);
            // What `cargo xtask new-rule` begins with.
            assert!(!rule.explain.contains("To be written."), "{}", rule.id);
            for (at, heading) in HEADINGS.iter().enumerate() {
                let from = rule.explain.find(heading).expect("just seen") + heading.len();
                let to = HEADINGS
                    .get(at + 1)
                    .and_then(|next| rule.explain.find(next))
                    .unwrap_or(rule.explain.len());
                assert!(
                    !rule.explain[from..to].trim().is_empty(),
                    "{}: {heading} is empty",
                    rule.id
                );
            }
            let example = rule.explain.split("## Example").nth(1).unwrap_or_default();
            assert!(
                example.matches("```").count() >= 4,
                "{}: a bad and a good example",
                rule.id
            );
        }
    }

    #[test]
    fn links_between_pages_lead_somewhere() {
        for rule in catalogue() {
            for link in rule.explain.split("](").skip(1) {
                let target = link.split(')').next().unwrap_or_default();
                if !target.starts_with("http") {
                    assert!(
                        catalogue().iter().any(|other| page(other.id) == target),
                        "{}: {target}",
                        rule.id
                    );
                }
            }
        }
    }

    #[test]
    fn links_open_the_page_of_the_rule() {
        assert_eq!(
            href("mem/column-walk"),
            "https://github.com/warplens/warplens/blob/main/docs/rules/mem-column-walk.md"
        );
    }

    /// `docs/rules` holds copies for readers on the web. `BLESS=1 cargo test -p warplens-advice` writes them.
    #[test]
    fn docs_rules_is_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules");
        if !folder.parent().is_some_and(Path::is_dir) {
            return; // The crate is alone, as published.
        }
        let mut index = String::from(
            "# Rules\n\nWhat warplens reports. `warplens explain RULE` prints the same pages.\n\n\
             | rule | about | severity |\n| --- | --- | --- |\n",
        );
        for rule in catalogue() {
            let row = format!(
                "| [{}]({}) | {} | {} |\n",
                rule.id,
                page(rule.id),
                rule.title,
                rule.severity
            );
            index.push_str(&row);
        }
        let mut expected: Vec<(String, &str)> = catalogue()
            .iter()
            .map(|rule| (page(rule.id), rule.explain))
            .collect();
        expected.push(("README.md".to_owned(), &index));

        let bless = std::env::var_os("BLESS").is_some();
        if bless {
            fs::create_dir_all(&folder).expect("docs/rules can be made");
        }
        for (name, text) in &expected {
            let path = folder.join(name);
            if bless {
                fs::write(&path, text).expect("docs/rules can be written");
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                found == *text,
                "docs/rules/{name} is out of date: run BLESS=1 cargo test -p warplens-advice"
            );
        }
        for entry in fs::read_dir(&folder).expect("docs/rules is there") {
            let name = entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned();
            assert!(
                expected.iter().any(|(known, _)| *known == name),
                "docs/rules/{name} belongs to no rule"
            );
        }
    }
}
