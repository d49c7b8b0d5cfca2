//! `cargo xtask new-rule`: the folder of a rule that is to be written, and its line in the registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use xtask::repository;

use crate::generate::registry;

/// Begin a rule: its folder with what it finds, its page and its fixtures, and its line in the registry
///
/// What it writes compiles, and a fixture expects a finding that the rule does not make yet: the tests fail until it does.
/// CONTRIBUTING.md goes through it.
#[derive(Debug, Args)]
pub struct NewRule {
    /// Its id, such as mem/strided
    #[arg(value_name = "CATEGORY/NAME")]
    id: String,
}

impl NewRule {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let root = repository::root();
        for file in begin(&self.id, &root)? {
            let shown = file.strip_prefix(&root).unwrap_or(&file);
            println!("wrote {}", shown.display());
        }
        println!(
            "\nNow write the rule, its page and its fixtures, then\n    \
             FIXTURE={} cargo test -p warplens-db --test rules fixtures\n    \
             cargo xtask generate",
            self.id
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes what a rule of this id begins with, below a repository's root; nothing where there is one. Returns what it wrote.
pub fn begin(id: &str, root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    Rule::named(id)?.begin(root)
}

/// A rule that is to be.
struct Rule {
    id: String,
}

impl Rule {
    fn named(id: &str) -> anyhow::Result<Rule> {
        let Some((category, name)) = id.split_once('/') else {
            bail!("`{id}` is no rule's id: CATEGORY/NAME, such as mem/strided");
        };
        let word = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if !word(category) || category.starts_with(|c: char| c.is_ascii_digit()) {
            bail!("`{category}` is no category: one word of small letters and digits");
        }
        if !name.split('-').all(word) || name.starts_with(|c: char| c.is_ascii_digit()) {
            bail!(
                "`{name}` is no name of a rule: words of small letters and digits, a letter first, with hyphens between them"
            );
        }
        Ok(Rule { id: id.to_owned() })
    }

    /// Writes its folder and the registry with it; nothing where the folder is there already.
    fn begin(&self, root: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let rules = root.join(registry::RULES);
        let folder = rules.join(self.id.replace('-', "_"));
        if folder.exists() {
            bail!("{} is there already", folder.display());
        }
        let mut written = Vec::new();
        for (file, text) in [
            ("mod.rs", self.code()),
            ("page.md", self.page()),
            ("fixtures/finding.cu", self.finding()),
            ("fixtures/clean.cu", clean()),
        ] {
            let path = folder.join(file);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            written.push(path);
        }
        let registry = rules.join("mod.rs");
        fs::write(&registry, registry::of_rules(root)?)
            .with_context(|| format!("cannot write {}", registry.display()))?;
        written.push(registry);
        Ok(written)
    }

    fn code(&self) -> String {
        let id = &self.id;
        format!(
            "//! {id}: what it finds, in one line.
//!
//! Why it costs, and how it is told apart from what looks alike.

use crate::rule::{{Look, Rule, State, When}};
use crate::{{Context, Finding}};

pub(crate) const RULE: Rule = Rule {{
    id: \"{id}\",
    title: \"what it finds, in one line\",
    severity: \"by predicted gain: hint, information or warning\",
    state: State::Preview,
    explain: include_str!(\"page.md\"),
    look: Look::At(When::Trial, check),
    actions: &[],
}};

/// Facts in, findings out: `facts` is what is counted, `trial` says what a change of them would gain.
fn check(_ctx: &Context<'_>) -> Vec<Finding> {{
    Vec::new()
}}
"
        )
    }

    fn page(&self) -> String {
        format!(
            "# {}

What it finds, in one line.

## What it detects

{UNWRITTEN}

## Why it costs

{UNWRITTEN}

## How it is computed

{UNWRITTEN}

## Example

Bad: {UNWRITTEN}

```cuda
{BAD}```

Good: {UNWRITTEN}

```cuda
{GOOD}```

## When it is wrong

{UNWRITTEN}

## How sure

{UNWRITTEN}

## References

{UNWRITTEN}
",
            self.id
        )
    }

    fn finding(&self) -> String {
        let id = &self.id;
        let marked = BAD.replace(
            "out[i] = in[i];\n",
            &format!("out[i] = in[i];\n//           ^^^^^ {id}: what its message says\n"),
        );
        format!("// @gpu: a100-sxm4-40gb\n{marked}")
    }
}

fn clean() -> String {
    format!("// @gpu: a100-sxm4-40gb\n{GOOD}")
}

/// What a test of the catalogue looks for: a page that is not written yet.
const UNWRITTEN: &str = "To be written.";

const BAD: &str = "// warplens: block=(256) grid=(4096)
__global__ void bad(const float* __restrict__ in, float* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}
";

const GOOD: &str = "// warplens: block=(256) grid=(4096)
__global__ void good(const float* __restrict__ in, float* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2.0f * in[i];
}
";

#[cfg(test)]
mod tests {
    use super::*;

    /// A place with one rule.
    fn place() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let strided = folder.path().join(registry::RULES).join("mem/strided");
        fs::create_dir_all(&strided).unwrap();
        fs::write(strided.join("mod.rs"), "").unwrap();
        folder
    }

    fn read(root: &Path, file: &str) -> String {
        fs::read_to_string(root.join(registry::RULES).join(file)).unwrap()
    }

    #[test]
    fn a_rule_is_one_folder_and_a_line_of_the_registry() {
        let folder = place();
        let root = folder.path();
        let written = Rule::named("mem/new-thing").unwrap().begin(root).unwrap();
        let rules = root.join(registry::RULES);
        let names: Vec<_> = written
            .iter()
            .map(|path| path.strip_prefix(&rules).unwrap().to_string_lossy())
            .collect();
        assert_eq!(
            names,
            [
                "mem/new_thing/mod.rs",
                "mem/new_thing/page.md",
                "mem/new_thing/fixtures/finding.cu",
                "mem/new_thing/fixtures/clean.cu",
                "mod.rs"
            ]
        );
        let registry = read(root, "mod.rs");
        assert!(
            registry.contains("    mem::new_thing::RULE,\n    mem::strided::RULE,\n"),
            "{registry}"
        );
    }

    #[test]
    fn what_is_written_is_rust_as_it_is_formatted_here_and_a_page_with_its_headings() {
        let folder = place();
        let root = folder.path();
        Rule::named("mem/new-thing").unwrap().begin(root).unwrap();
        let style = repository::root().join("rustfmt.toml");
        fs::copy(style, root.join("rustfmt.toml")).unwrap();
        let formatted = std::process::Command::new("rustfmt")
            .args(["--edition", "2024", "--check"])
            .arg(root.join(registry::RULES).join("mem/new_thing/mod.rs"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&formatted.stdout);
        assert!(formatted.status.success(), "{said}");
        let page = read(root, "mem/new_thing/page.md");
        assert!(page.starts_with("# mem/new-thing\n"));
        assert_eq!(page.matches("\n## ").count(), 7);
        assert_eq!(page.matches("```").count(), 4);
        let finding = read(root, "mem/new_thing/fixtures/finding.cu");
        let lines: Vec<&str> = finding.lines().collect();
        let marks = lines
            .iter()
            .position(|line| line.contains("^^^^^ mem/new-thing"))
            .unwrap();
        assert_eq!(lines[marks].find('^'), lines[marks - 1].find("in[i]"));
    }

    #[test]
    fn a_rule_that_is_there_and_an_id_that_is_none_change_nothing() {
        let folder = place();
        let root = folder.path();
        let error = Rule::named("mem/strided").unwrap().begin(root).unwrap_err();
        assert!(error.to_string().contains("is there already"), "{error}");
        assert!(!root.join(registry::RULES).join("mod.rs").exists());
        for wrong in [
            "mem", "mem/", "/x", "Mem/x", "mem/X", "mem/a--b", "mem/../x", "a-b/c", "1/x",
            "mem/x y", "mem/1x",
        ] {
            assert!(Rule::named(wrong).is_err(), "{wrong}");
        }
    }
}
