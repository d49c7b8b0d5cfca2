//! The extension of VS Code and the plugin of Neovim.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::{Out, VERSION, archive, build};
use crate::install;
use xtask::{process, repository};

/// The extension of VS Code, without a server or for one machine with it, and the plugin of Neovim as a folder
#[derive(Debug, Args)]
pub struct Editors {
    /// A program for the extension to carry, which is then for the machines that it runs on
    #[arg(long, value_name = "FILE", requires = "target")]
    program: Option<PathBuf>,
    /// What the program was built for
    #[arg(long, value_name = "TRIPLE", requires = "program")]
    target: Option<String>,
    #[command(flatten)]
    out: Out,
}

const LIMIT: Duration = Duration::from_mins(15);

impl Editors {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let out = self.out.folder()?;
        let folder = repository::root().join("editors/vscode");
        let npm = |arguments: &[&str]| -> anyhow::Result<()> {
            let mut command = Command::new("npm");
            command.arg("--prefix").arg(&folder).args(arguments);
            // It is another way to name a program to carry.
            command.env_remove("WARPLENS_BIN");
            if !process::run(&mut command, LIMIT)?.success {
                bail!("npm {} failed", arguments.join(" "));
            }
            Ok(())
        };
        npm(&["ci", "--no-audit", "--no-fund"])?;
        let package = |name: String, more: &[&str]| {
            let path = out.join(name).display().to_string();
            npm(&[&["run", "package", "--", "--out", path.as_str()][..], more].concat())
        };
        match (self.program, self.target) {
            (Some(program), Some(target)) => {
                let program = std::path::absolute(program)?.display().to_string();
                let platforms = platforms(&target);
                if platforms.is_empty() {
                    bail!("VS Code has no platform for {target}");
                }
                for platform in platforms {
                    let name = format!("warplens-{VERSION}-{platform}.vsix");
                    package(name, &[&program, "--target", platform])?;
                }
            }
            _ => {
                package(format!("warplens-{VERSION}.vsix"), &[])?;
                let plugin = neovim(&out)?;
                println!("package: {}", plugin.display());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// VS Code's names of the machines that a target's program runs on; a static one runs beside any C library.
fn platforms(target: &str) -> &'static [&'static str] {
    match target {
        "x86_64-unknown-linux-musl" => &["linux-x64", "alpine-x64"],
        "aarch64-unknown-linux-musl" => &["linux-arm64", "alpine-arm64"],
        "x86_64-unknown-linux-gnu" => &["linux-x64"],
        "aarch64-unknown-linux-gnu" => &["linux-arm64"],
        "x86_64-apple-darwin" => &["darwin-x64"],
        "aarch64-apple-darwin" => &["darwin-arm64"],
        "x86_64-pc-windows-msvc" | "x86_64-pc-windows-gnu" => &["win32-x64"],
        "aarch64-pc-windows-msvc" => &["win32-arm64"],
        _ => &[],
    }
}

/// The plugin in a folder `warplens`, to be unpacked below `pack/*/start`.
fn neovim(out: &Path) -> anyhow::Result<PathBuf> {
    let top = tempfile::tempdir()?;
    let root = repository::root();
    let folder = top.path().join("warplens");
    install::copy(&root.join("editors/neovim"), &folder)?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        std::fs::copy(root.join(licence), folder.join(licence))?;
    }
    let path = out.join(format!("warplens-{VERSION}-neovim.tar.gz"));
    archive::write(&folder, &path, build::commit_time(&root)?)?;
    Ok(path)
}
