//! `warplens doctor`: whether everything is in place, as `:checkhealth` does for one editor.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use warplens_machine::DEFAULT_GPU;
use warplens_report::style::{Paint, Style, printable};
use warplens_toolchain::machine;

use crate::output::{self, Colour};
use crate::{config, detected, profiles, version};

/// How long a program may take that is asked for its version.
const BOUND: Duration = Duration::from_secs(10);
/// Compilers that can be asked for registers.
const COMPILERS: [&str; 4] = ["nvcc", "hipcc", "clang", "ptxas"];
/// Where VS Code and its relatives keep extensions, in the home folder.
const EXTENSIONS: [&str; 7] = [
    ".vscode/extensions",
    ".vscode-server/extensions",
    ".vscode-insiders/extensions",
    ".vscode-oss/extensions",
    ".cursor/extensions",
    ".windsurf/extensions",
    ".local/share/code-server/extensions",
];
/// The oldest Neovim that the plugin works with.
const NEOVIM: (u32, u32) = (0, 11);

/// Check that the server, settings, GPU, compilers and editors are in place
#[derive(Debug, Args)]
pub struct Doctor {
    /// The file or folder whose settings are looked at
    #[arg(default_value = ".")]
    path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// Something that may be meant so.
    Note,
    Wrong,
}

/// One line of the page.
struct Check {
    state: State,
    text: String,
    /// What to do about it.
    cure: Option<String>,
}

impl Check {
    fn fine(text: impl Into<String>) -> Check {
        Check {
            state: State::Fine,
            text: text.into(),
            cure: None,
        }
    }

    fn note(text: impl Into<String>, cure: impl Into<String>) -> Check {
        Check {
            state: State::Note,
            text: text.into(),
            cure: Some(cure.into()),
        }
    }

    fn wrong(text: impl Into<String>, cure: impl Into<String>) -> Check {
        Check {
            state: State::Wrong,
            text: text.into(),
            cure: Some(cure.into()),
        }
    }

    fn print(&self, style: Style) -> String {
        let (word, paint) = match self.state {
            State::Fine => ("ok    ", Paint::Good),
            State::Note => ("note  ", Paint::Information),
            State::Wrong => ("wrong ", Paint::Error),
        };
        // Names of files, and of rules and GPUs as a project spells them.
        let text = printable(&self.text);
        let mut line = format!("{}  {text}\n", style.paint(paint, word));
        if let Some(cure) = &self.cure {
            let _ = writeln!(line, "        {}", printable(cure));
        }
        line
    }
}

impl Doctor {
    /// Runs it. Exit status 1 where something is wrong.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        if !self.path.exists() {
            anyhow::bail!("{}: there is no such file or folder", self.path.display());
        }
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::home_dir();
        let sections: [(&str, Vec<Check>); 5] = [
            ("server", server(&search_path)),
            ("settings", settings(&self.path)),
            ("GPU", gpu(&self.path)),
            ("compilers", compilers(&search_path)),
            ("editors", editors(&search_path, home.as_deref())),
        ];
        let style = output::style(colour);
        let mut page = String::new();
        for (title, checks) in &sections {
            page.push_str(&style.paint(Paint::Strong, title));
            page.push('\n');
            for check in checks {
                page.push_str(&check.print(style));
            }
        }
        output::emit(&page)?;
        let mut all = sections.iter().flat_map(|(_, checks)| checks);
        let wrong = all.any(|check| check.state == State::Wrong);
        Ok(ExitCode::from(u8::from(wrong)))
    }
}

/// This program, and the one that editors start.
fn server(search_path: &OsString) -> Vec<Check> {
    let own = std::env::current_exe().ok();
    let shown = own
        .as_deref()
        .map_or_else(String::new, |own| format!(": {}", own.display()));
    let mut checks = vec![Check::fine(format!("warplens {}{shown}", version::SHORT))];
    checks.push(match machine::find("warplens", search_path) {
        None => Check::note(
            "no warplens on the PATH, where Neovim and other editors look for it",
            "`cargo install --path server/warplens` in the repository, or name the program in the editor",
        ),
        Some(found) if own.as_deref().is_some_and(|own| same(own, &found)) => {
            Check::fine(format!("on the PATH: {}", found.display()))
        }
        Some(found) => match machine::program_version(&found, BOUND) {
            Ok(version) if version == format!("warplens {}", version::SHORT) => {
                Check::fine(format!("on the PATH: {} ({version})", found.display()))
            }
            Ok(version) => Check::note(
                format!("on the PATH is another one: {} ({version})", found.display()),
                "editors start that one, unless they name another",
            ),
            Err(failure) => Check::wrong(
                format!("on the PATH: {} does not run: {failure}", found.display()),
                "install it again",
            ),
        },
    });
    checks
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(a).is_some() && real(a) == real(b)
}

/// The settings file that governs the path, and the profiles beside it.
fn settings(path: &Path) -> Vec<Check> {
    let (profiles, left_out) = profiles::of(&[path.to_owned()]);
    let config = config::of(path, &profiles);
    let mut checks = Vec::new();
    let problems = config.diagnostics.iter().chain(&left_out);
    let problems: Vec<Check> = problems
        .map(|problem| {
            let (file, line, column) = (&problem.file, problem.line, problem.column);
            Check::wrong(
                format!("{file}:{line}:{column}: {}", problem.message),
                "`warplens config schema` prints what a warplens.toml may say",
            )
        })
        .collect();
    match &config.file {
        Some((file, _)) => checks.push(Check::fine(file.display().to_string())),
        None if problems.is_empty() => checks.push(Check::note(
            "no warplens.toml in this folder or above it",
            "nothing needs one; it can name the GPU and launches for everybody who works here",
        )),
        None => {}
    }
    checks.extend(problems);
    checks
}

/// The target, and what this machine has.
fn gpu(path: &Path) -> Vec<Check> {
    let (profiles, _) = profiles::of(&[path.to_owned()]);
    let config = config::of(path, &profiles);
    let mut checks = Vec::new();
    let named = config
        .settings
        .gpu
        .as_deref()
        .and_then(|gpu| profiles.named(gpu));
    let target = match named {
        Some(profile) => {
            checks.push(Check::fine(format!(
                "the target is {} ({}), named in warplens.toml",
                profile.id, profile.name
            )));
            profile.id.clone()
        }
        None => {
            checks.push(Check::note(
                format!("the target is {DEFAULT_GPU}, the default: nothing names one"),
                "`gpu = \"…\"` in warplens.toml, the editor's setting, or --gpu; `warplens gpus` lists them",
            ));
            DEFAULT_GPU.to_owned()
        }
    };
    let detected = detected::here(&profiles);
    for (tool, why) in &detected.silent {
        checks.push(Check::note(
            format!("{tool} does not list GPUs: {why}"),
            "without it the GPU is chosen by hand",
        ));
    }
    for gpu in &detected.gpus {
        let (name, tool) = (&gpu.name, gpu.tool);
        if let (None, Some(nearest)) = (&gpu.profile, &gpu.nearest) {
            checks.push(Check::note(
                format!("no profile for {name} ({tool}), the nearest is {nearest}"),
                format!(
                    "`gpu = \"{nearest}\"` in warplens.toml predicts for that; `warplens calibrate` measures yours"
                ),
            ));
            continue;
        }
        checks.push(match &gpu.profile {
            Some(profile) if *profile == target => {
                Check::fine(format!("this machine has it: {name} ({tool})"))
            }
            Some(profile) => Check::note(
                format!("this machine has another GPU: {name} ({tool}), profile {profile}"),
                format!("`gpu = \"{profile}\"` in warplens.toml predicts for it"),
            ),
            None => Check::note(
                format!("no profile for {name} ({tool})"),
                "`warplens calibrate` measures it and writes one",
            ),
        });
    }
    if detected.gpus.is_empty() && detected.silent.is_empty() {
        let why = if detected.has_tools {
            "no GPU is listed on this machine"
        } else {
            "no nvidia-smi, rocminfo or clinfo on the PATH"
        };
        checks.push(Check::fine(format!("{why}; none is needed")));
    }
    checks
}

/// Compilers that could say how many registers a kernel takes.
fn compilers(search_path: &OsString) -> Vec<Check> {
    let mut checks = Vec::new();
    for name in COMPILERS {
        let Some(path) = machine::find(name, search_path) else {
            continue;
        };
        let shown = path.display();
        checks.push(match machine::compiler_version(&path, BOUND) {
            Ok(version) => Check::fine(format!("{version}: {shown}")),
            Err(failure) => Check::note(
                format!("{shown}: {failure}"),
                "its registers and instructions cannot be asked for",
            ),
        });
    }
    if checks.is_empty() {
        checks.push(Check::note(
            format!(
                "none of {} on the PATH: registers are estimated",
                COMPILERS.join(", ")
            ),
            "nothing needs one; `compiler` in the editor's settings has one asked",
        ));
    }
    checks
}

/// The integrations that are installed.
fn editors(search_path: &OsString, home: Option<&Path>) -> Vec<Check> {
    let mut checks = Vec::new();
    for folder in EXTENSIONS
        .iter()
        .filter_map(|folder| Some(home?.join(folder)))
    {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with("warplens.warplens-"))
            .collect();
        names.sort_unstable();
        if let Some(newest) = names.last() {
            let version = newest.trim_start_matches("warplens.warplens-");
            checks.push(Check::fine(format!(
                "VS Code: extension {version} in {}",
                folder.display()
            )));
        }
    }
    if let Some(program) = machine::find("nvim", search_path) {
        checks.push(neovim(&program, home));
    }
    if checks.is_empty() {
        checks.push(Check::note(
            "no integration found for VS Code or Neovim",
            "docs/editors says how to set up these and others",
        ));
    }
    checks
}

fn neovim(program: &Path, home: Option<&Path>) -> Check {
    let shown = program.display();
    let said = match machine::program_version(program, BOUND) {
        Ok(said) => said,
        Err(failure) => {
            return Check::wrong(
                format!("Neovim: {shown} does not run: {failure}"),
                "install it again",
            );
        }
    };
    match number(&said) {
        Some(version) if version < NEOVIM => {
            return Check::wrong(
                format!("Neovim: {said} at {shown}: the plugin needs 0.11"),
                "install a newer Neovim, or follow docs/editors/others.md",
            );
        }
        None => {
            return Check::note(
                format!("Neovim: {shown} says {said}"),
                "the plugin needs 0.11",
            );
        }
        Some(_) => {}
    }
    match home.and_then(plugin) {
        Some(folder) => Check::fine(format!("Neovim: {said}, plugin in {}", folder.display())),
        None => Check::note(
            format!("Neovim: {said}, no plugin found"),
            "docs/editors/neovim.md says how to install it; `:checkhealth warplens` says more",
        ),
    }
}

/// `NVIM v0.11.4` as 0 and 11.
fn number(said: &str) -> Option<(u32, u32)> {
    let version = said
        .split_whitespace()
        .find_map(|word| word.strip_prefix('v'))?;
    let mut parts = version.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Some((major, minor)),
        _ => None,
    }
}

/// The plugin's folder where packages and plugin managers put it.
fn plugin(home: &Path) -> Option<PathBuf> {
    let of = |variable: &str, otherwise: &str| {
        std::env::var_os(variable).map_or_else(|| home.join(otherwise), PathBuf::from)
    };
    let data = of("XDG_DATA_HOME", ".local/share").join("nvim");
    let config = of("XDG_CONFIG_HOME", ".config").join("nvim");
    let below = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    let mut places = vec![config.clone()];
    places.extend(below(data.join("lazy")));
    places.extend(below(data.join("plugged")));
    for pack in [data.join("site/pack"), config.join("pack")] {
        for package in below(pack) {
            places.extend(below(package.join("start")));
            places.extend(below(package.join("opt")));
        }
    }
    places.sort_unstable();
    let is_plugin = |folder: &PathBuf| folder.join("lua/warplens/init.lua").is_file();
    places
        .into_iter()
        .flat_map(|place| [place.join("editors/neovim"), place])
        .find(is_plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_neovim_are_read() {
        assert_eq!(number("NVIM v0.7.2"), Some((0, 7)));
        assert_eq!(number("NVIM v0.12.0-dev-1+g1"), Some((0, 12)));
        assert_eq!(number("vim"), None);
        assert!((0, 7) < NEOVIM && (1, 0) > NEOVIM);
    }
}
