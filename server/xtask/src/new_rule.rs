//! `cargo xtask new-rule`: the files of a rule that is to be written, and its places in the catalogue.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use clap::Args;

use xtask::repository;

/// Begin a rule: its file, its page, its fixtures, and its entries in the catalogue
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
        let rule = Rule::named(&self.id)?;
        let root = repository::root();
        for file in rule.begin(&root)? {
            let shown = file.strip_prefix(&root).unwrap_or(&file);
            println!("wrote {}", shown.display());
        }
        // Long names break lines.
        let formatted = Command::new("cargo")
            .args(["fmt", "--package", "warplens-advice"])
            .current_dir(&root)
            .status();
        if !formatted.is_ok_and(|status| status.success()) {
            println!("`cargo fmt` did not run: do it before you commit");
        }
        let Rule { category, name, .. } = &rule;
        println!(
            "\nNow write the rule, its page and its fixtures, then\n    \
             FIXTURE={category}/{name} cargo test -p warplens-db --test rules\n    \
             cargo xtask generate"
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// The names of a rule.
struct Rule {
    id: String,
    category: String,
    name: String,
    /// Its module in the crate.
    module: String,
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
        // One word: module names are taken apart at their first underscore.
        if !word(category) || category.starts_with(|c: char| c.is_ascii_digit()) {
            bail!("`{category}` is no category: one word of small letters and digits");
        }
        if !name.split('-').all(word) {
            bail!(
                "`{name}` is no name of a rule: words of small letters and digits with hyphens between them"
            );
        }
        Ok(Rule {
            id: id.to_owned(),
            category: category.to_owned(),
            name: name.to_owned(),
            module: format!("{category}_{}", name.replace('-', "_")),
        })
    }

    /// Writes everything; nothing where a part is there already.
    fn begin(&self, root: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let crate_ = root.join("server/advice");
        let fixtures = root.join(format!(
            "tests/fixtures/rules/{}/{}",
            self.category, self.name
        ));
        let new = [
            (crate_.join(format!("src/{}.rs", self.module)), self.code()),
            (
                crate_.join(format!("docs/{}-{}.md", self.category, self.name)),
                self.page(),
            ),
            (fixtures.join("finding.cu"), self.finding()),
            (fixtures.join("clean.cu"), clean()),
        ];
        if let Some((file, _)) = new.iter().find(|(file, _)| file.exists()) {
            bail!("{} is there already", file.display());
        }
        let mut changed = Vec::new();
        for (file, change) in [
            (
                "src/lib.rs",
                Rule::in_lib as fn(&Rule, &str) -> Option<String>,
            ),
            ("src/catalogue.rs", Rule::in_catalogue),
        ] {
            let path = crate_.join(file);
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let text = change(self, &text)
                .with_context(|| format!("{} does not look as expected", path.display()))?;
            changed.push((path, text));
        }
        let all: Vec<(PathBuf, String)> = new.into_iter().chain(changed).collect();
        for (path, text) in &all {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(all.into_iter().map(|(path, _)| path).collect())
    }

    /// The crate with the module, and the rule among those on trial, both in order.
    fn in_lib(&self, text: &str) -> Option<String> {
        let of_module = |line: &str| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
        let text = inserted(
            text,
            "\nmod ",
            "\n\n",
            &format!("mod {};\n", self.module),
            &|line| of_module(line).is_some_and(|other| other > self.module),
        )?;
        // An entry that is too long for its line begins with a line of its own.
        let begins = |line: &str, next: Option<&str>| {
            let inside = match line.trim() {
                "(" => next?.trim(),
                inside => inside.strip_prefix('(')?,
            };
            inside
                .split_once("::INFO")
                .map(|(other, _)| other.to_owned())
        };
        let start = text.find("const ON_TRIAL")?;
        let end = start + text[start..].find("\n];")? + 1;
        let lines: Vec<&str> = text[start..end].lines().collect();
        let before = lines.iter().enumerate().position(|(at, line)| {
            let next = lines.get(at + 1).copied();
            begins(line, next).is_some_and(|other| other > self.module)
        });
        let taken: usize = lines[..before.unwrap_or(lines.len())]
            .iter()
            .map(|line| line.len() + 1)
            .sum();
        let mut text = text.clone();
        let entry = format!("    ({0}::INFO, {0}::check),\n", self.module);
        text.insert_str(start + taken, &entry);
        Some(text)
    }

    /// The catalogue with the rule, by its id.
    fn in_catalogue(&self, text: &str) -> Option<String> {
        let id = |line: &str| {
            let entry = line.trim().strip_suffix(',')?;
            let module = entry
                .strip_prefix("crate::")
                .and_then(|rest| rest.strip_suffix("::INFO"))
                .unwrap_or(entry)
                .to_lowercase();
            let (category, name) = module.split_once('_')?;
            Some(format!("{category}/{}", name.replace('_', "-")))
        };
        let entry = format!("    crate::{}::INFO,\n", self.module);
        inserted(text, "\nstatic CATALOGUE", "\n];", &entry, &|line| {
            id(line).is_some_and(|other| other > self.id)
        })
    }

    fn code(&self) -> String {
        let Rule {
            id, category, name, ..
        } = self;
        format!(
            "//! {id}: what it finds, in one line.

use crate::catalogue::{{RuleInfo, State}};
use crate::{{Context, Finding}};

pub(crate) const INFO: RuleInfo = RuleInfo {{
    id: \"{id}\",
    title: \"what it finds, in one line\",
    severity: \"by predicted gain: hint, information or warning\",
    state: State::Preview,
    explain: include_str!(\"../docs/{category}-{name}.md\"),
}};

/// Facts in, findings out: `facts` is what is counted, `trial` says what a change of them would gain.
pub(crate) fn check(_ctx: &Context<'_>) -> Vec<Finding> {{
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

/// A text with a line more in a list that begins at a mark: before the first line that comes behind it, else at the end.
fn inserted(
    text: &str,
    begins: &str,
    ends: &str,
    line: &str,
    behind: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let start = text.find(begins)?;
    let end = start + text[start..].find(ends)? + 1;
    let mut at = start;
    for known in text[start..end].split_inclusive('\n') {
        if behind(known.trim_end()) {
            break;
        }
        at += known.len();
    }
    let mut text = text.to_owned();
    text.insert_str(at, line);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of what a rule is registered in.
    fn copy() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("server/advice/src");
        fs::create_dir_all(&sources).unwrap();
        for file in ["lib.rs", "catalogue.rs"] {
            let from = repository::root().join("server/advice/src").join(file);
            fs::copy(from, sources.join(file)).unwrap();
        }
        folder
    }

    fn read(root: &Path, file: &str) -> String {
        fs::read_to_string(root.join(file)).unwrap()
    }

    /// Lines of a text that begin and end so, without either.
    fn between<'a>(text: &'a str, begins: &str, ends: &str) -> Vec<&'a str> {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix(begins)?.strip_suffix(ends))
            .collect()
    }

    #[test]
    fn a_rule_stands_where_the_order_wants_it() {
        for id in ["aaa/first", "mem/new-thing", "loop/unroll-more", "zzz/last"] {
            let folder = copy();
            let root = folder.path();
            let rule = Rule::named(id).unwrap();
            assert_eq!(rule.begin(root).unwrap().len(), 6);

            let lib = read(root, "server/advice/src/lib.rs");
            let head = lib.split("use std::fmt;").next().unwrap();
            let head = head.split("#[cfg(test)]").next().unwrap();
            let modules = between(head, "mod ", ";");
            assert!(
                modules.is_sorted() && modules.contains(&rule.module.as_str()),
                "{modules:?}"
            );

            let trial = lib.split("const ON_TRIAL").nth(1).unwrap();
            let trial = trial.split("];").next().unwrap();
            let names: Vec<&str> = trial
                .split("::INFO")
                .filter_map(|before| {
                    before
                        .rsplit(|c: char| !(c.is_alphanumeric() || c == '_'))
                        .next()
                })
                .filter(|name| !name.is_empty())
                .collect();
            assert!(
                names.is_sorted() && names.contains(&rule.module.as_str()),
                "{names:?}"
            );

            let catalogue = read(root, "server/advice/src/catalogue.rs");
            let known = between(&catalogue, "crate::", "::INFO,");
            assert!(
                known.is_sorted() && known.contains(&rule.module.as_str()),
                "{known:?}"
            );
        }
    }

    #[test]
    fn a_rule_between_those_that_have_no_module_stands_by_its_id() {
        let folder = copy();
        Rule::named("config/later")
            .unwrap()
            .begin(folder.path())
            .unwrap();
        let catalogue = read(folder.path(), "server/advice/src/catalogue.rs");
        let list =
            "    CONFIG_INVALID,\n    crate::config_later::INFO,\n    CONFIG_UNUSED_SUPPRESSION,\n";
        assert!(catalogue.contains(list));
    }

    #[test]
    fn what_is_written_is_rust_as_it_is_formatted_here_and_a_page_with_its_headings() {
        let folder = copy();
        let root = folder.path();
        Rule::named("mem/new-thing").unwrap().begin(root).unwrap();
        let style = repository::root().join("rustfmt.toml");
        fs::copy(style, root.join("rustfmt.toml")).unwrap();
        let formatted = Command::new("rustfmt")
            .args(["--edition", "2024", "--check"])
            .arg(root.join("server/advice/src/mem_new_thing.rs"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&formatted.stdout);
        assert!(formatted.status.success(), "{said}");
        let page = read(root, "server/advice/docs/mem-new-thing.md");
        assert!(page.starts_with("# mem/new-thing\n"));
        assert_eq!(page.matches("\n## ").count(), 7);
        assert_eq!(page.matches("```").count(), 4);
        let finding = read(root, "tests/fixtures/rules/mem/new-thing/finding.cu");
        let lines: Vec<&str> = finding.lines().collect();
        let marks = lines
            .iter()
            .position(|line| line.contains("^^^^^ mem/new-thing"))
            .unwrap();
        assert_eq!(lines[marks].find('^'), lines[marks - 1].find("in[i]"));
    }

    #[test]
    fn a_rule_that_is_there_and_an_id_that_is_none_change_nothing() {
        let folder = copy();
        let root = folder.path();
        let file = root.join("server/advice/src/mem_strided.rs");
        fs::write(&file, "").unwrap();
        let before = read(root, "server/advice/src/lib.rs");
        let error = Rule::named("mem/strided").unwrap().begin(root).unwrap_err();
        assert!(error.to_string().contains("is there already"), "{error}");
        assert_eq!(read(root, "server/advice/src/lib.rs"), before);
        for wrong in [
            "mem", "mem/", "/x", "Mem/x", "mem/X", "mem/a--b", "mem/../x", "a-b/c", "1/x",
            "mem/x y",
        ] {
            assert!(Rule::named(wrong).is_err(), "{wrong}");
        }
    }
}
