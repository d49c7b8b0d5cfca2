//! `cargo xtask generate`: files that are derived from the code.

mod constants;
mod pages;
pub mod registry;

use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use clap::Args;

use xtask::repository;

/// Write what is derived from the code: the registry of rules, schemas, pages about rules, GPUs and settings, the book's lists, the README's excerpt
#[derive(Debug, Args)]
pub struct Generate {
    /// Only say which are out of date
    #[arg(long)]
    check: bool,
    /// The workspace's tests have passed: what these hold is not looked at again
    #[arg(long, requires = "check")]
    tested: bool,
}

/// The schemas under docs/schemas and what prints them.
const SCHEMAS: [&str; 9] = [
    "baseline",
    "check",
    "config",
    "diff",
    "estimate",
    "gpus",
    "measurements",
    "program",
    "sweep",
];

impl Generate {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let root = repository::root();
        let mut wrong = Vec::new();
        // First, for all else is printed by what is built with it.
        let registry = format!("{}/mod.rs", registry::RULES);
        if !self.holds(&registry, |_| registry::of_rules(&root))? {
            wrong.push(registry);
        }
        for name in SCHEMAS {
            let text = schema(name)?;
            let path = root.join(format!("docs/schemas/{name}.schema.json"));
            let shown = path
                .strip_prefix(&root)
                .unwrap_or(&path)
                .display()
                .to_string();
            if std::fs::read(&path).is_ok_and(|found| found == text) {
                continue;
            }
            if self.check {
                wrong.push(shown);
                continue;
            }
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&path, text).with_context(|| format!("cannot write {shown}"))?;
            println!("wrote {shown}");
        }
        let pages = if self.tested { &[][..] } else { &PAGES[..] };
        for (test, page) in pages {
            if !written_by_test(test, !self.check)? {
                wrong.push((*page).to_owned());
            }
        }
        for (page, make) in TEXTS {
            if !self.holds(page, make)? {
                wrong.push(page.to_owned());
            }
        }
        if wrong.is_empty() {
            println!("generated files are up to date");
            return Ok(ExitCode::SUCCESS);
        }
        println!(
            "out of date: {}; `cargo xtask generate` writes them",
            wrong.join(", ")
        );
        Ok(ExitCode::FAILURE)
    }

    /// True where a file is what is made of it, if need be by writing it.
    fn holds(
        &self,
        file: &str,
        make: impl Fn(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<bool> {
        let path = repository::root().join(file);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let text = make(&found)?;
        if text == found {
            return Ok(true);
        }
        if self.check {
            return Ok(false);
        }
        std::fs::write(&path, text).with_context(|| format!("cannot write {file}"))?;
        println!("wrote {file}");
        Ok(true)
    }
}

/// What makes a page of what it was.
type Make = fn(&str) -> anyhow::Result<String>;

/// Pages, and what makes each: the summary lists those that stand before it.
const TEXTS: [(&str, Make); 5] = [
    ("README.md", with_excerpt),
    ("docs/configuration-reference.md", |_| {
        pages::settings(&schema("config")?)
    }),
    ("docs/accuracy/constants.md", |_| {
        constants::page(&repository::root())
    }),
    ("editors/vscode/package.json", |found| {
        pages::model_setting(found, &schema("config")?)
    }),
    ("docs/SUMMARY.md", |found| {
        pages::summary(found, &repository::root().join("docs"))
    }),
];

fn schema(name: &str) -> anyhow::Result<Vec<u8>> {
    warplens(&["config", "schema", name])
}

/// What `warplens` prints, a hundred columns wide.
fn warplens(arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(repository::tested_program("warplens", "cli")?)
        .args(arguments)
        .current_dir(repository::root())
        .env("COLUMNS", "100")
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot run warplens")?;
    if !output.status.success() {
        bail!("`warplens {}` failed", arguments.join(" "));
    }
    Ok(output.stdout)
}

/// What is around the excerpt in the README.
const EXCERPT: (&str, &str) = ("<!-- excerpt -->\n", "<!-- end of excerpt -->\n");

/// The README with a real terminal excerpt: what one sees of a kernel in the repository.
fn with_excerpt(readme: &str) -> anyhow::Result<String> {
    let (before, rest) = readme
        .split_once(EXCERPT.0)
        .context("README.md has no excerpt")?;
    let (_, after) = rest
        .split_once(EXCERPT.1)
        .context("README.md's excerpt has no end")?;
    let command = ["check", "tests/kernels/transpose.cu"];
    let shown = String::from_utf8(warplens(&command)?)?;
    let (start, end) = EXCERPT;
    Ok(format!(
        "{before}{start}```console\n$ warplens {}\n{}\n```\n{end}{after}",
        command.join(" "),
        shown.trim_end()
    ))
}

/// Pages and lists that tests hold against the code and write, and the arguments of `cargo test` that run these.
const PAGES: [(&[&str], &str); 5] = [
    (
        &["warplens-syntax", "--test", "node_types"],
        "server/syntax/src/tree/generated.rs",
    ),
    (
        &["warplens-machine", "--test", "gpus", "published"],
        "docs/gpus.md, docs/gpus",
    ),
    (&["warplens-advice", "--lib", "docs_rules"], "docs/rules"),
    (
        &["warplens-models", "--lib", "docs_models"],
        "docs/models/README.md",
    ),
    (
        &["warplens-db", "--test", "rules", "labels::the_page"],
        "docs/accuracy/rules.md",
    ),
];

/// True where the pages of a test are right.
fn written_by_test(arguments: &[&str], write: bool) -> anyhow::Result<bool> {
    let mut command = Command::new("cargo");
    command
        .args(["test", "--quiet", "--package"])
        .args(arguments)
        .current_dir(repository::root())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    if write {
        command.env("BLESS", "1").env("WARPLENS_BLESS", "1");
    }
    Ok(command.status().context("cannot run cargo")?.success())
}
