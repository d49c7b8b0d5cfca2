//! The program as it is given away: for one target, static on Linux, the same bytes wherever it is built.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use sha2::{Digest, Sha256};

use xtask::{process, repository};

/// Everything with link-time optimisation.
const LIMIT: Duration = Duration::from_hours(1);

/// Builds the program of a checkout with cargo's `dist` profile and says where it is.
pub fn program(root: &Path, target_folder: &Path, target: &str) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    // zig is a C compiler and linker for every Linux; elsewhere the system's own are used.
    let zig = target.ends_with("-linux-musl");
    if zig && repository::program("cargo-zigbuild").is_none() {
        bail!(
            "cargo-zigbuild is not installed (`pip install cargo-zigbuild ziglang`), which links static programs"
        );
    }
    cargo.arg(if zig { "zigbuild" } else { "build" });
    cargo.args(["--locked", "--profile", "dist", "--package", "warplens"]);
    cargo.args(["--target", target]).arg("--manifest-path");
    cargo.arg(root.join("Cargo.toml"));
    cargo.env("CARGO_TARGET_DIR", target_folder);
    cargo.env("SOURCE_DATE_EPOCH", commit_time(root)?.to_string());
    // Panics name files: those of the folder that this was built in would differ.
    let shown = [(root.to_owned(), "/warplens"), (cargo_home()?, "/cargo")];
    let flags = |option: &str, between: &str| {
        let flags = shown
            .iter()
            .map(|(path, shown)| format!("{option}={}={shown}", path.display()));
        flags.collect::<Vec<_>>().join(between)
    };
    cargo.env(
        "CARGO_ENCODED_RUSTFLAGS",
        flags("--remap-path-prefix", "\u{1f}"),
    );
    if zig {
        cargo.env("CFLAGS", flags("-ffile-prefix-map", " "));
    }
    if !process::run(&mut cargo, LIMIT)?.success {
        bail!("building for {target} failed (`rustup target add {target}` if it is not installed)");
    }
    let name = if target.contains("-windows-") {
        "warplens.exe"
    } else {
        "warplens"
    };
    Ok(target_folder.join(target).join("dist").join(name))
}

/// The target of this machine's compiler.
pub fn host() -> anyhow::Result<String> {
    let said = process::captured(Command::new("rustc").arg("-vV"), Duration::from_mins(1))?;
    said.out
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc -vV names no host")
}

/// True where programs for that target run on this machine.
pub fn runs_here(target: &str) -> bool {
    let linux = cfg!(target_os = "linux") && target.contains("-linux-");
    let same = |part: &str| target.split('-').any(|word| word == part);
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        os => os,
    };
    same(std::env::consts::ARCH) && (linux || same(os))
}

/// The time that packages bear: `SOURCE_DATE_EPOCH`, or that of the commit.
pub fn commit_time(root: &Path) -> anyhow::Result<u64> {
    let said = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(said) => said,
        Err(_) => {
            let mut git = Command::new("git");
            git.arg("-C").arg(root);
            git.args(["log", "-1", "--format=%ct"]);
            process::captured(&mut git, Duration::from_mins(1))?.out
        }
    };
    let said = said.trim();
    said.parse()
        .with_context(|| format!("{said:?} is no time in seconds since 1970"))
}

/// The SHA-256 of a file, in hexadecimal.
pub fn checksum(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

fn cargo_home() -> anyhow::Result<PathBuf> {
    if let Some(home) = std::env::var_os("CARGO_HOME") {
        return Ok(home.into());
    }
    let home = std::env::home_dir().context("no home folder")?;
    Ok(home.join(".cargo"))
}

/// Build the program twice, in different folders, and compare the bytes
#[derive(Debug, Args)]
pub struct Reproduce {
    /// For which machine [default: this one, static on Linux]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
}

impl Reproduce {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let target = match self.target {
            Some(target) => target,
            None => host()?.replace("-linux-gnu", "-linux-musl"),
        };
        let top = tempfile::tempdir()?;
        let mut sums = Vec::new();
        for name in ["one", "another/and-deeper"] {
            let folder = top.path().join(name);
            let mut clone = Command::new("git");
            clone.args(["clone", "--quiet", "--no-hardlinks"]);
            clone.arg(repository::root()).arg(&folder);
            if !process::run(&mut clone, LIMIT)?.success {
                bail!("git clone failed");
            }
            let program = program(&folder, &folder.join("target"), &target)?;
            let sum = checksum(&program)?;
            let size = std::fs::metadata(&program)?.len() as f64 / f64::from(1 << 20);
            println!("{sum}  {name} ({size:.1} MiB)");
            sums.push(sum);
        }
        if sums[0] == sums[1] {
            println!("{target}: the same bytes");
            Ok(ExitCode::SUCCESS)
        } else {
            println!("{target}: they differ");
            Ok(ExitCode::FAILURE)
        }
    }
}
