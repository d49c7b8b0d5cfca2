//! The catalogue: every rule's id, one line about it, and its page.

/// How far a rule is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On unless it is turned off.
    Stable,
    /// Off unless it is asked for by its id, or all such rules are: its precision is not good enough yet, or not measured.
    Preview,
}

impl State {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            State::Stable => "stable",
            State::Preview => "preview",
        }
    }
}

/// What is known about a rule without running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleInfo {
    /// `category/name`, what diagnostics carry as their code.
    pub id: &'static str,
    /// One line.
    pub title: &'static str,
    /// How loud its findings are, in words.
    pub severity: &'static str,
    /// Whether it is heard without being asked for.
    pub state: State,
    /// The page, Markdown: what it detects, why it costs, how it is computed, an example, when it is wrong,
    /// how sure it is, references.
    pub explain: &'static str,
}

impl RuleInfo {
    /// The part of the id before the slash.
    pub fn category(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }
}

/// Emitted by what reads the settings, not by a rule.
const CONFIG_INVALID: RuleInfo = RuleInfo {
    id: "config/invalid",
    title: "a setting or a hardware profile that cannot be followed",
    severity: "error",
    state: State::Stable,
    explain: include_str!("../docs/config-invalid.md"),
};

/// Emitted by what applies `allow` directives.
const CONFIG_UNUSED_SUPPRESSION: RuleInfo = RuleInfo {
    id: "config/unused-suppression",
    title: "an allow directive that silences nothing",
    severity: "hint",
    state: State::Stable,
    explain: include_str!("../docs/config-unused-suppression.md"),
};

/// Emitted by what reads files.
const INPUT_UNREADABLE: RuleInfo = RuleInfo {
    id: "input/unreadable",
    title: "a file that cannot be read",
    severity: "error",
    state: State::Stable,
    explain: include_str!("../docs/input-unreadable.md"),
};

/// Sorted by id.
static CATALOGUE: &[RuleInfo] = &[
    crate::arith_double_literal::INFO,
    crate::arith_fast_math::INFO,
    crate::arith_fp64_slow_gpu::INFO,
    crate::arith_half_scalar::INFO,
    crate::arith_int_div_mod::INFO,
    crate::arith_narrow_int::INFO,
    crate::arith_no_fma::INFO,
    crate::arith_pow::INFO,
    crate::arith_sincos::INFO,
    crate::arith_slow_trig_range::INFO,
    crate::atomic_hot_address::INFO,
    crate::atomic_in_loop::INFO,
    crate::call_not_inlined::INFO,
    CONFIG_INVALID,
    CONFIG_UNUSED_SUPPRESSION,
    crate::const_divergent_index::INFO,
    crate::div_early_exit_before_barrier::INFO,
    crate::div_loop_trip::INFO,
    crate::div_tid_branch::INFO,
    crate::host_pageable_or_managed::INFO,
    crate::ilp_dependent_chain::INFO,
    INPUT_UNREADABLE,
    crate::launch_impossible::INFO,
    crate::launch_not_warp_multiple::INFO,
    crate::launch_one_fat_block::INFO,
    crate::launch_small_grid::INFO,
    crate::launch_tail::INFO,
    crate::launch_tiny_block::INFO,
    crate::local_dynamic_array::INFO,
    crate::local_large_frame::INFO,
    crate::loop_uniform_branch::INFO,
    crate::loop_unroll::INFO,
    crate::loop_unsigned_counter::INFO,
    crate::mem_aos::INFO,
    crate::mem_async_copy::INFO,
    crate::mem_column_walk::INFO,
    crate::mem_gather::INFO,
    crate::mem_l2_working_set::INFO,
    crate::mem_loop_invariant_load::INFO,
    crate::mem_misaligned::INFO,
    crate::mem_narrow_access::INFO,
    crate::mem_no_restrict::INFO,
    crate::mem_redundant_global::INFO,
    crate::mem_strided::INFO,
    crate::mem_uncoalesced::INFO,
    crate::mem_warp_same_address::INFO,
    crate::occ_bounds_spill::INFO,
    crate::occ_limiter::INFO,
    crate::occ_no_launch_bounds::INFO,
    crate::reg_pressure::INFO,
    crate::reg_spill::INFO,
    crate::smem_bank_conflict::INFO,
    crate::smem_over_budget::INFO,
    crate::smem_over_pad::INFO,
    crate::smem_unused_tile::INFO,
    crate::sync_redundant_barrier::INFO,
    crate::sync_wide_fence::INFO,
];

/// Every rule, sorted by id.
pub fn catalogue() -> &'static [RuleInfo] {
    CATALOGUE
}

/// The rule of that id.
pub fn find(id: &str) -> Option<&'static RuleInfo> {
    CATALOGUE.iter().find(|rule| rule.id == id)
}

/// The file name of a rule's page.
fn page(id: &str) -> String {
    format!("{}.md", id.replace('/', "-"))
}

/// Where a rule's page stands on the web: a diagnostic's `codeDescription.href`.
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
        assert_eq!(find("mem/no-such-rule"), None);
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
            return; // The crate stands alone, as published.
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
