//! The program with what belongs to it, as an archive, and on Linux as a Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::parts::Parts;
use super::{Out, VERSION, archive, build, debian};
use xtask::{process, repository};

/// The program for a machine: an archive with licences, manual pages, completions and bill of materials; for Linux a Debian
/// package, too
#[derive(Debug, Args)]
pub struct Program {
    /// For which machine [default: this one, static on Linux]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Package this program instead of building one
    #[arg(long = "program", value_name = "FILE")]
    given: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
}

/// Shells, and what their completions are called in the archive.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "warplens.bash"),
    ("zsh", "_warplens"),
    ("fish", "warplens.fish"),
    ("powershell", "_warplens.ps1"),
    ("elvish", "warplens.elv"),
];

const LIMIT: Duration = Duration::from_mins(20);

impl Program {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let target = match self.target {
            Some(target) => target,
            None => build::host()?.replace("-linux-gnu", "-linux-musl"),
        };
        let program = match self.given {
            Some(program) => std::path::absolute(program)?,
            None => build::program(&repository::root(), &repository::target(), &target)?,
        };
        if !program.is_file() {
            bail!("there is no {}", program.display());
        }
        let out = self.out.folder()?;
        let time = build::commit_time(&repository::root())?;
        let top = tempfile::tempdir()?;
        let name = format!("warplens-{VERSION}-{target}");
        let folder = top.path().join(&name);
        fill(&folder, &program, &target)?;
        let mut made = vec![out.join(format!("{name}.tar.gz"))];
        archive::write(&folder, &made[0], time)?;
        if let Some(architecture) = debian::architecture(&target) {
            made.push(debian::write(&folder, architecture, &out, time)?);
        }
        for path in made {
            let size = fs::metadata(&path)?.len() as f64 / f64::from(1 << 20);
            let sum = build::checksum(&path)?;
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            fs::write(
                path.with_file_name(format!("{file}.sha256")),
                format!("{sum}  {file}\n"),
            )?;
            println!("{sum}  {} ({size:.1} MiB)", path.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Puts together what the archive holds.
fn fill(folder: &Path, program: &Path, target: &str) -> anyhow::Result<()> {
    let root = repository::root();
    for made in ["man", "completions"] {
        fs::create_dir_all(folder.join(made))?;
    }
    let name = program.file_name().context("the program has no name")?;
    let packaged = folder.join(name);
    fs::copy(program, &packaged)?;
    #[cfg(unix)]
    fs::set_permissions(
        &packaged,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        fs::copy(root.join(file), folder.join(file))?;
    }
    let parts = Parts::of(target)?;
    fs::write(folder.join("THIRD-PARTY.txt"), parts.notices()?)?;
    let bill = serde_json::to_string_pretty(&parts.bill())?;
    fs::write(folder.join("warplens.cdx.json"), bill + "\n")?;
    // Pages and completions are the same for every machine; another's are made by a program for this one.
    let ask = |arguments: &[&str]| {
        let mut command = if build::runs_here(target) {
            Command::new(program)
        } else {
            let mut cargo = Command::new("cargo");
            cargo.args(["run", "--quiet", "--locked", "--package", "warplens"]);
            cargo.arg("--manifest-path").arg(root.join("Cargo.toml"));
            cargo.arg("--");
            cargo
        };
        let told = process::captured(command.args(arguments), LIMIT)?;
        if told.success {
            Ok(told.out)
        } else {
            bail!("warplens {}: {}", arguments.join(" "), told.errors.trim())
        }
    };
    let man = folder.join("man");
    ask(&["man", &man.to_string_lossy()])?;
    for (shell, file) in COMPLETIONS {
        let script = ask(&["completions", shell])?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    Ok(())
}
