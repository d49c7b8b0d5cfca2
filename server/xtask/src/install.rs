//! `cargo xtask install`: the server on the PATH, and the integrations of the editors that are there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use xtask::{process, repository};

/// Put the server on the PATH and install the integrations of the editors found
#[derive(Debug, Args)]
pub struct Install {
    /// Not the server
    #[arg(long)]
    no_server: bool,
    /// Not the editors
    #[arg(long)]
    no_editors: bool,
}

/// Building everything from nothing, twice.
const LIMIT: Duration = Duration::from_mins(20);

/// The commands VS Code and its relatives go by.
const VSCODE: [&str; 5] = ["code", "code-insiders", "codium", "code-server", "cursor"];

impl Install {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut done = Vec::new();
        if !self.no_server {
            done.push(server()?);
        }
        if !self.no_editors {
            // What was built here is what the extension brings along.
            let server = repository::program("warplens").filter(|_| !self.no_server);
            done.push(vscode(server.as_deref())?);
            done.push(neovim()?);
        }
        println!();
        for line in done {
            println!("{line}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn must(command: &mut Command, what: &str) -> anyhow::Result<()> {
    if process::run(command, LIMIT)?.success {
        Ok(())
    } else {
        bail!("{what} failed")
    }
}

fn server() -> anyhow::Result<String> {
    let mut install = Command::new("cargo");
    install.args(["install", "--locked", "--force", "--path"]);
    install.arg(repository::root().join("server/warplens"));
    must(&mut install, "cargo install")?;
    Ok(match repository::program("warplens") {
        Some(program) => format!("server: {}", program.display()),
        None => "server: installed, but not on the PATH; add cargo's bin folder to it \
                 (~/.cargo/bin unless you moved it)"
            .to_owned(),
    })
}

fn vscode(server: Option<&Path>) -> anyhow::Result<String> {
    let editors: Vec<PathBuf> = VSCODE.into_iter().filter_map(repository::program).collect();
    if editors.is_empty() {
        return Ok(format!(
            "VS Code: not found on the PATH ({})",
            VSCODE.join(", ")
        ));
    }
    if repository::program("npm").is_none() {
        return Ok(
            "VS Code: not installed, because npm is needed to build the extension".to_owned(),
        );
    }
    let folder = repository::root().join("editors/vscode");
    let npm = |arguments: &[&str]| {
        let mut command = Command::new("npm");
        command.arg("--prefix").arg(&folder).args(arguments);
        command
    };
    must(&mut npm(&["ci", "--no-audit", "--no-fund"]), "npm ci")?;
    let mut package = npm(&["run", "package"]);
    if let Some(server) = server {
        package.arg("--").arg(server);
    }
    must(&mut package, "packaging the extension")?;
    let package = newest_package(&folder).context("packaging left no .vsix")?;
    let mut installed = Vec::new();
    for editor in editors {
        let mut install = Command::new(&editor);
        install
            .arg("--install-extension")
            .arg(&package)
            .arg("--force");
        must(
            &mut install,
            &format!("{} --install-extension", editor.display()),
        )?;
        installed.push(editor.display().to_string());
    }
    Ok(format!(
        "VS Code: extension installed in {}",
        installed.join(", ")
    ))
}

fn newest_package(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "vsix")
        })
        .max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
}

fn neovim() -> anyhow::Result<String> {
    let Some(program) = repository::program("nvim") else {
        return Ok("Neovim: not found on the PATH (nvim)".to_owned());
    };
    let said = Command::new(&program).arg("--version").output()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.lines().next().unwrap_or_default();
    if is_too_old(version) {
        return Ok(format!("Neovim: not installed: {version}, needs 0.11"));
    }
    let from = repository::root().join("editors/neovim");
    let to = neovim_packages()?.join("pack/warplens/start/warplens");
    if to.is_symlink() {
        std::fs::remove_file(&to)?;
    } else if to.is_dir() {
        std::fs::remove_dir_all(&to)?;
    }
    copy(&from, &to).with_context(|| format!("cannot copy to {}", to.display()))?;
    Ok(format!(
        "Neovim: plugin copied to {}; add vim.lsp.enable('warplens') to your init.lua",
        to.display()
    ))
}

/// True of `NVIM v0.7.2`: the plugin needs 0.11.
fn is_too_old(version: &str) -> bool {
    let number = version
        .split_whitespace()
        .find_map(|word| word.strip_prefix('v'));
    let mut parts = number.into_iter().flat_map(|number| number.split('.'));
    let mut part = || parts.next().and_then(|part| part.parse::<u32>().ok());
    matches!((part(), part()), (Some(major), Some(minor)) if (major, minor) < (0, 11))
}

/// Neovim's `site` folder in the user's data.
fn neovim_packages() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    if cfg!(windows) {
        let local = variable("LOCALAPPDATA").context("LOCALAPPDATA is not set")?;
        return Ok(local.join("nvim-data/site"));
    }
    let data = variable("XDG_DATA_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        .context("HOME is not set")?;
    Ok(data.join("nvim/site"))
}

/// Copies a folder, its tests left out.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "test" {
                copy(&entry.path(), &target)?;
            }
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_copied_without_its_tests() {
        let folder = std::env::temp_dir().join(format!("warplens-copy-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        for file in ["lsp/warplens.lua", "test/run.sh"] {
            let path = from.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file).unwrap();
        }
        copy(&from, &to).unwrap();
        assert!(to.join("lsp/warplens.lua").is_file());
        assert!(!to.join("test").exists());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_neovim_before_0_11_is_too_old() {
        for old in ["NVIM v0.7.2", "NVIM v0.10.4"] {
            assert!(is_too_old(old), "{old}");
        }
        for new in ["NVIM v0.11.4", "NVIM v0.12.0-dev-1+g1", "NVIM v1.0.0", ""] {
            assert!(!is_too_old(new), "{new}");
        }
    }
}
