//! What CONTRIBUTING.md promises of additions: one of each is really added, in a copy of the repository, and used.
//!
//! A rule, a model, a device function and a GPU are begun by the tasks and the data that CONTRIBUTING.md names, the rule and the
//! model get a body, and the program built from the copy finds, predicts, counts and lists with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::{new_model, new_rule};
use xtask::repository;

/// Adds one of each in a copy below the build folder and asks the program that is built of it. Returns how many work.
pub fn try_all() -> anyhow::Result<u64> {
    let copy = Copy::new(&repository::root(), &repository::target().join("additions"))?;
    copy.rule()?;
    copy.model()?;
    copy.function()?;
    copy.gpu()?;
    let kernel = copy.root.join("added.cu");
    fs::write(&kernel, KERNEL)?;
    // A new rule is on trial.
    fs::write(copy.root.join("warplens.toml"), "preview = true\n")?;
    let kernel = kernel.to_string_lossy();
    copy.shows(
        &["check", &kernel, "--show", "hint"],
        "hint[mem/added] an access that the rule finds",
    )?;
    copy.shows(&["explain", "mem/added"], "# mem/added")?;
    copy.shows(
        &["estimate", &kernel, "--model", "added", "--format", "json"],
        "\"cycles\": 4242.0",
    )?;
    copy.shows(&["gpus", "added-gpu"], "An added GPU")?;
    copy.shows(
        &["check", &kernel, "--stats"],
        "clean                         1  100 %",
    )?;
    Ok(5)
}

const KERNEL: &str = "// warplens: block=(256) grid=(4096)
__global__ void added(const unsigned* __restrict__ in, int* __restrict__ out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = added_popcount(in[i]);
}
";

/// A copy of what git tracks or would add.
struct Copy {
    root: PathBuf,
}

impl Copy {
    fn new(from: &Path, to: &Path) -> anyhow::Result<Copy> {
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(from)
            .output()
            .context("cannot run git")?;
        ensure!(listed.status.success(), "git ls-files failed");
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        for file in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let (source, copy) = (from.join(file), to.join(file));
            // Tests of editors and recorded data are not built.
            if !source.is_file() || file.starts_with("tests/") {
                continue;
            }
            fs::create_dir_all(copy.parent().unwrap_or(to))?;
            fs::copy(&source, &copy).with_context(|| format!("cannot copy {file}"))?;
        }
        Ok(Copy {
            root: to.to_owned(),
        })
    }

    /// Replaces the one place of a text.
    fn edit(&self, file: &str, old: &str, new: &str) -> anyhow::Result<()> {
        let path = self.root.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        ensure!(
            text.matches(old).count() == 1,
            "{file} has no single `{old}`"
        );
        fs::write(&path, text.replace(old, new))?;
        Ok(())
    }

    fn rule(&self) -> anyhow::Result<()> {
        new_rule::begin("mem/added", &self.root)?;
        self.edit(
            "server/advice/src/rules/mem/added/mod.rs",
            "fn check(_ctx: &Context<'_>) -> Vec<Finding> {
    Vec::new()
}",
            "fn check(ctx: &Context<'_>) -> Vec<Finding> {
    let first = ctx.facts.accesses.first().map(|access| Finding {
        rule: RULE.id,
        severity: crate::Severity::Hint,
        place: crate::Place::Site(access.site),
        message: \"an access that the rule finds\".to_owned(),
        gain: 1.0,
        related: Vec::new(),
        access: None,
        shared_array: None,
        cure: None,
    });
    first.into_iter().collect()
}",
        )
    }

    fn model(&self) -> anyhow::Result<()> {
        new_model::begin("added", &self.root)?;
        self.edit(
            "server/models/src/added.rs",
            "why: Some(\"added is not written yet\".to_owned()),",
            "cycles: Some(4242.0),",
        )
    }

    fn function(&self) -> anyhow::Result<()> {
        self.edit(
            "server/ir/functions.toml",
            "names = \"__popc ",
            "names = \"added_popcount __popc ",
        )
    }

    fn gpu(&self) -> anyhow::Result<()> {
        let profile = fs::read_to_string(self.root.join("hw-profiles/a100-sxm4-40gb.toml"))?;
        let line = |key: &str| {
            let mut lines = profile.lines();
            lines
                .find(|line| line.starts_with(key))
                .context("a key of the profile")
        };
        let added = profile
            .replace(line("id = ")?, "id = \"added-gpu\"")
            .replace(line("name = ")?, "name = \"An added GPU\"");
        fs::write(self.root.join("hw-profiles/added-gpu.toml"), added)?;
        Ok(())
    }

    fn shows(&self, arguments: &[&str], expected: &str) -> anyhow::Result<()> {
        let shown = self.warplens(arguments)?;
        if !shown.contains(expected) {
            bail!(
                "`warplens {}` does not say `{expected}`:\n{shown}",
                arguments.join(" ")
            );
        }
        Ok(())
    }

    /// What the copy's program prints; findings are no failure of it.
    fn warplens(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("cargo")
            .args(["run", "--quiet", "--locked", "--package", "warplens", "--"])
            .args(arguments)
            .current_dir(&self.root)
            .env("CARGO_TARGET_DIR", repository::target())
            .output()
            .context("cannot run cargo")?;
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !shown.is_empty(),
            "`warplens {}`:\n{complaint}",
            arguments.join(" ")
        );
        Ok(shown)
    }
}
