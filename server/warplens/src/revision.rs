//! A revision of a git repository, written to a folder of its own: only what an analysis reads, and nothing of it is run.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

/// Larger files are not written: no analysis reads them.
const LARGEST: u64 = 50 << 20;
/// Ends of the names of files that an analysis may read.
const READ: [&str; 22] = [
    "c", "cc", "cl", "clh", "cpp", "cu", "cuh", "cxx", "h", "hh", "hip", "hpp", "hxx", "inc",
    "inl", "ipp", "json", "ocl", "opencl", "tcc", "toml", "txx",
];

/// A revision's files.
#[derive(Debug)]
pub struct Revision {
    folder: TempDir,
    /// The current folder within the repository.
    prefix: PathBuf,
}

impl Revision {
    /// The files of `name`, a revision of the repository that the current folder lies in.
    pub fn named(name: &str) -> anyhow::Result<Revision> {
        let commit = format!("{name}^{{commit}}");
        let commit = line(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &commit,
        ])
        .with_context(|| format!("`{name}` is neither a file or folder here nor a revision"))?;
        let prefix = line(&["rev-parse", "--show-prefix"])?;
        let folder = tempfile::Builder::new().prefix("warplens-").tempdir()?;
        write(&blobs(&commit)?, folder.path())?;
        Ok(Revision {
            folder,
            prefix: PathBuf::from(prefix),
        })
    }

    /// The repository's folder in that revision.
    pub fn top(&self) -> &Path {
        self.folder.path()
    }

    /// What the current folder was in that revision.
    pub fn here(&self) -> PathBuf {
        self.folder.path().join(&self.prefix)
    }
}

/// True for a file that an analysis may read.
pub fn is_read(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| READ.contains(&extension.to_lowercase().as_str()))
}

/// git, which reads its objects and runs no program of the repository's: no hooks, no monitor, no fetching of what is missing.
fn git(arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args([
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
            "--no-pager",
        ])
        .args(arguments)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn line(arguments: &[&str]) -> anyhow::Result<String> {
    let output = git(arguments).output().context("cannot run git")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git: {}", errors.trim());
    let text = String::from_utf8(output.stdout).context("git printed invalid UTF-8")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The files of a commit: object id and path.
fn blobs(commit: &str) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let output = git(&["ls-tree", "-r", "-z", "-l", "--full-tree", commit]).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git: {}", errors.trim());
    let mut found = Vec::new();
    for entry in output.stdout.split(|byte| *byte == 0) {
        // `100644 blob ID SIZE\tPATH`; a link or a submodule is no file.
        let Ok(entry) = std::str::from_utf8(entry) else {
            continue;
        };
        let Some((about, path)) = entry.split_once('\t') else {
            continue;
        };
        let about: Vec<&str> = about.split_whitespace().collect();
        let [mode, "blob", id, size] = about[..] else {
            continue;
        };
        let path = Path::new(path);
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        let small = size.parse::<u64>().is_ok_and(|size| size <= LARGEST);
        if mode.starts_with("100") && is_read(path) && plain && small {
            found.push((id.to_owned(), path.to_owned()));
        }
    }
    Ok(found)
}

/// Writes objects to a folder.
fn write(blobs: &[(String, PathBuf)], folder: &Path) -> anyhow::Result<()> {
    let mut child = git(&["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .spawn()?;
    let (Some(mut requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        bail!("cannot write to git");
    };
    let mut answers = BufReader::new(answers);
    for (id, path) in blobs {
        writeln!(requests, "{id}")?;
        requests.flush()?;
        let mut head = String::new();
        answers.read_line(&mut head)?;
        let size = head
            .split_whitespace()
            .nth(2)
            .and_then(|size| size.parse::<u64>().ok());
        let Some(size) = size else {
            bail!("git has no object {id} ({})", path.display());
        };
        let mut bytes = Vec::new();
        answers.by_ref().take(size).read_to_end(&mut bytes)?;
        let mut newline = [0];
        answers.read_exact(&mut newline)?;
        let to = folder.join(path);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))?;
    }
    drop(requests);
    child.wait()?;
    Ok(())
}
