//! The crates, as `cargo install warplens` will get them.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use xtask::{process, repository};

/// Check that every crate can be published: its files packaged, and built from them alone
///
/// A crate holds the files that it embeds and the licences, which stand elsewhere in the repository: they are put into it in a
/// copy of the checkout.
#[derive(Debug, Args)]
pub struct Crates {
    /// Do not build the packaged files
    #[arg(long, conflicts_with = "publish")]
    no_verify: bool,
    /// Publish them, with the token that cargo was given
    #[arg(long)]
    publish: bool,
}

/// All dependencies built once more.
const LIMIT: Duration = Duration::from_mins(30);

/// Folders that a crate embeds, and where they stand in it.
const EMBEDDED: [(&str, &str); 2] = [
    ("grammars/opencl", "server/grammar-opencl/grammar"),
    ("hw-profiles", "server/machine/hw-profiles"),
];

const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

impl Crates {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let top = tempfile::tempdir()?;
        stage(&repository::root(), top.path())?;
        let mut publish = Command::new("cargo");
        publish.current_dir(top.path());
        publish.env("CARGO_TARGET_DIR", repository::target().join("publish"));
        publish.args(["publish", "--workspace", "--locked", "--allow-dirty"]);
        if !self.publish {
            publish.arg("--dry-run");
        }
        if self.no_verify {
            publish.arg("--no-verify");
        }
        Ok(if process::run(&mut publish, LIMIT)?.success {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Copies the files that git knows or would take, and puts into the crates what they need.
fn stage(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let mut git = Command::new("git");
    git.arg("-C").arg(root);
    git.args(["ls-files", "-z", "--cached", "--others"]);
    git.arg("--exclude-standard");
    let told = process::captured(&mut git, Duration::from_mins(1))?;
    if !told.success {
        bail!("git ls-files: {}", told.errors.trim());
    }
    let mut crates = Vec::new();
    for name in told.out.split_terminator('\0') {
        let from = root.join(name);
        // Deleted, and not yet committed.
        if !from.exists() {
            continue;
        }
        put(&from, &copy.join(name))?;
        for (folder, inside) in EMBEDDED {
            if let Ok(rest) = Path::new(name).strip_prefix(folder) {
                put(&from, &copy.join(inside).join(rest))?;
            }
        }
        if name.starts_with("server/") && name.ends_with("/Cargo.toml") {
            crates.push(Path::new(name).with_file_name(""));
        }
    }
    for folder in crates {
        for licence in LICENCES {
            put(&root.join(licence), &copy.join(&folder).join(licence))?;
        }
    }
    Ok(())
}

fn put(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}
