//! Which rules are looked for: `--select`, `--ignore`, `--preview` put over the settings of a file.

use clap::Args;
use warplens_advice::{Rule, State, catalogue};
use warplens_db::settings::{RuleLevel, Settings};

use crate::suggest;

/// Rules by id or category.
#[derive(Debug, Clone, Default, Args)]
pub struct Selection {
    /// Only these rules, and errors: ids or categories, such as mem/strided or mem (repeatable, or separated by commas)
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule)]
    select: Vec<String>,
    /// Not these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule)]
    ignore: Vec<String>,
    /// Also the rules that are still tried out
    #[arg(long)]
    preview: bool,
}

fn rule(text: &str) -> Result<String, String> {
    if catalogue().iter().any(|rule| names(text, rule)) {
        return Ok(text.to_owned());
    }
    let ids = catalogue().iter().map(|rule| rule.id);
    let categories = catalogue().iter().map(Rule::category);
    Err(suggest::unknown(
        "rule",
        text,
        ids.chain(categories),
        "`warplens explain` lists them",
    ))
}

fn names(text: &str, rule: &Rule) -> bool {
    text == rule.id || text == rule.category()
}

impl Selection {
    /// What the command line says wins over the settings.
    pub fn apply(&self, settings: &mut Settings) {
        settings.preview |= self.preview;
        for rule in catalogue() {
            let named = |list: &[String]| list.iter().any(|text| names(text, rule));
            let by_id = self.select.iter().any(|text| text == rule.id);
            let selected = self.select.is_empty() || named(&self.select);
            if !selected || named(&self.ignore) {
                settings.rules.insert(rule.id.to_owned(), RuleLevel::Off);
                continue;
            }
            let level = settings.rules.get(rule.id);
            let level = level.or_else(|| settings.rules.get(rule.category()));
            let off = level == Some(&RuleLevel::Off);
            // A rule that is still tried out needs its id or --preview; a category does not enable it.
            if by_id || (!self.select.is_empty() && off && rule.state == State::Stable) {
                settings
                    .rules
                    .insert(rule.id.to_owned(), RuleLevel::Warning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(select: &[&str], ignore: &[&str]) -> Selection {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Selection {
            select: owned(select),
            ignore: owned(ignore),
            preview: false,
        }
    }

    #[test]
    fn a_category_selects_its_rules_and_an_ignored_one_is_off() {
        let mut settings = Settings::default();
        selection(&["mem"], &["mem/strided"]).apply(&mut settings);
        let off = |rule: &str| settings.rules.get(rule) == Some(&RuleLevel::Off);
        assert!(off("mem/strided") && off("smem/bank-conflict"));
        assert!(!settings.rules.contains_key("mem/uncoalesced"));
    }

    #[test]
    fn a_selected_rule_is_looked_for_though_the_settings_turn_it_off() {
        let mut settings = Settings::default();
        settings.rules.insert("mem".to_owned(), RuleLevel::Off);
        selection(&["mem/uncoalesced"], &[]).apply(&mut settings);
        assert_eq!(
            settings.rules.get("mem/uncoalesced"),
            Some(&RuleLevel::Warning)
        );
    }

    #[test]
    fn nothing_said_changes_nothing() {
        let mut settings = Settings::default();
        Selection::default().apply(&mut settings);
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn unknown_rules_are_refused_with_the_nearest() {
        assert!(rule("mem").is_ok() && rule("mem/strided").is_ok());
        assert!(rule("mem/stride").unwrap_err().contains("mem/strided"));
    }
}
