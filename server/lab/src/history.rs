//! `cargo lab history DIR…`: the same answer whatever came before.
//!
//! In: a built `warplens` and folders of sources. Each file is looked at alone by the command line, which is what every other
//! way to look at it is compared with: with others in any order, by one thread and by eight, from other working directories,
//! with its folder, in an editor alone, beside all others that are open, and after edits that were taken back. An edited text
//! is compared with the same text opened by a server that saw no other. Out: every difference.

mod editors;
mod printed;
pub(crate) mod session;
pub(crate) mod typing;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::corpus::{build, sources};
use crate::outputs::difference::{self, Difference};
use printed::Asked;
use typing::Random;
use warplens_syntax::Language;

/// Hold files against themselves: alone, in any order, with others open, after edits that were taken back
///
/// Fails where an answer about a file differs from the answer about the file alone.
#[derive(Debug, Args)]
pub struct History {
    /// The folders, each a project
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// This binary, instead of building one
    #[arg(long, value_name = "PATH")]
    bin: Option<PathBuf>,
    /// At most this many files with kernels of each folder, spread over it
    #[arg(long, value_name = "N")]
    files: Option<usize>,
    /// Edits of each file
    #[arg(long, value_name = "N", default_value_t = 50)]
    edits: usize,
    /// Another choice of orders and edits
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Seconds that one file may take; what takes longer alone is left out and counted
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
}

/// Differences shown of one file looked at in one way.
const LISTED: usize = 3;
/// Characters shown of a value.
const SHOWN: usize = 300;

impl History {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let bin = match &self.bin {
            Some(bin) => std::path::absolute(bin)?,
            None => build()?,
        };
        let mut differing = 0;
        let mut files = 0;
        for folder in &self.folders {
            if !folder.is_dir() {
                bail!("{} is not a folder", folder.display());
            }
            let started = Instant::now();
            let scratch = tempfile::tempdir()?;
            let root = std::fs::canonicalize(scratch.path())?.join("project");
            copied(&std::path::absolute(folder)?, &root)?;
            let mut look = Look {
                bin: &bin,
                limit: Duration::from_secs(self.limit),
                root,
                files: Vec::new(),
                alone: HashMap::new(),
                differing: 0,
            };
            let unended = look.alone(self.files)?;
            let mut random = Random::new(self.seed);
            eprintln!("{}: {} files alone", folder.display(), look.files.len());
            look.together(&mut random)?;
            eprintln!("{}: together", folder.display());
            look.in_editors(self.edits, self.seed)?;
            println!(
                "{}: {} files, {} findings, figures of {} kernels in {:.0} s, {} files left out that take longer than {} s: {} answers differ",
                folder.display(),
                look.files.len(),
                look.count("/findings/diagnostics"),
                look.count("/figures"),
                started.elapsed().as_secs_f64(),
                unended,
                self.limit,
                look.differing,
            );
            files += look.files.len();
            differing += look.differing;
        }
        println!("{files} files, {differing} answers that differ");
        Ok(ExitCode::from(u8::from(differing > 0)))
    }
}

/// One folder.
struct Look<'a> {
    bin: &'a Path,
    limit: Duration,
    /// A copy of it that is marked as a project: else what a file's project is depends on the working directory.
    root: PathBuf,
    files: Vec<PathBuf>,
    /// What the command line says of each file alone.
    alone: HashMap<PathBuf, Value>,
    /// Answers that differ from that.
    differing: usize,
}

impl Look<'_> {
    /// The reference; how many files had no answer in time.
    fn alone(&mut self, most: Option<usize>) -> anyhow::Result<usize> {
        let found = sources(&self.root)?;
        let all: Vec<PathBuf> = found
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| is_served(path))
            .collect();
        let most = most.unwrap_or(all.len()).min(all.len());
        let chosen: Vec<&PathBuf> = (0..most).map(|n| &all[n * all.len() / most]).collect();
        let of_one = |path: &PathBuf| -> anyhow::Result<Option<(PathBuf, Value)>> {
            let paths = std::slice::from_ref(path);
            let ask = Asked {
                folder: &self.root,
                threads: 1,
            };
            let Some(mut findings) = self.checked(paths, &ask, self.limit)? else {
                return Ok(None);
            };
            let Some(mut figures) = self.estimated(paths, &ask, self.limit)? else {
                return Ok(None);
            };
            let said = json!({
                "findings": findings.remove(path),
                "figures": figures.remove(path),
            });
            Ok(Some((path.clone(), said)))
        };
        let said: Vec<_> = chosen
            .par_iter()
            .copied()
            .map(of_one)
            .collect::<anyhow::Result<_>>()?;
        let unended = said.iter().filter(|said| said.is_none()).count();
        self.alone = said.into_iter().flatten().collect();
        self.files = self.alone.keys().cloned().collect();
        self.files.sort();
        Ok(unended)
    }

    /// How many things the reference says, of all files together.
    fn count(&self, part: &str) -> usize {
        let parts = self.alone.values().filter_map(|said| said.pointer(part));
        parts.filter_map(Value::as_array).map(Vec::len).sum()
    }

    /// Many files in one call.
    fn together(&mut self, random: &mut Random) -> anyhow::Result<()> {
        let patience = self.limit * self.files.len().max(10) as u32;
        let top = PathBuf::from("/");
        let root = self.root.clone();
        let inside = self.files.first().and_then(|file| file.parent());
        let inside = inside.unwrap_or(&root).to_owned();
        for (threads, folder) in [(1, root.clone()), (2, top), (8, inside)] {
            let how = format!("with others, {threads} threads, from {}", folder.display());
            let ask = Asked {
                folder: &folder,
                threads,
            };
            let files = random.shuffled(&self.files);
            let findings = self.checked(&files, &ask, patience)?;
            self.hold(&how, "findings", findings);
            let figures = self.estimated(&files, &ask, patience)?;
            self.hold(&how, "figures", figures);
        }
        let ask = Asked {
            folder: &root,
            threads: 8,
        };
        let findings = self.checked(std::slice::from_ref(&root), &ask, patience * 10)?;
        self.hold("with its whole folder", "findings", findings);
        Ok(())
    }

    /// Compares answers about all files with those about each alone.
    fn hold(&mut self, how: &str, part: &str, said: Option<BTreeMap<PathBuf, Value>>) {
        let Some(said) = said else {
            self.differing += 1;
            println!("{how}: no {part}, though each file alone has them");
            return;
        };
        for path in self.files.clone() {
            let expected = &self.alone[&path][part];
            let said = said.get(&path).unwrap_or(&Value::Null);
            let differences = difference::between(expected, said);
            self.tell(&path, how, part, &differences);
        }
    }

    fn tell(&mut self, path: &Path, how: &str, part: &str, differences: &[Difference]) {
        if differences.is_empty() {
            return;
        }
        self.differing += 1;
        let name = path.strip_prefix(&self.root).unwrap_or(path);
        println!("{}, {how}: {} {part}", name.display(), differences.len());
        for difference in differences.iter().take(LISTED) {
            let (before, after) = difference.values();
            let shown = |text: String| text.chars().take(SHOWN).collect::<String>();
            println!(
                "  {}\n    alone: {}\n    now:   {}",
                difference.place,
                shown(before),
                shown(after)
            );
        }
    }
}

/// True for a file that an editor's server looks into: C and C++ only where the word of a kernel occurs in it.
fn is_served(path: &Path) -> bool {
    const HEADERS: [&str; 8] = ["h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "tcc"];
    let extension = path.extension().and_then(std::ffi::OsStr::to_str);
    Language::from_path(path).is_some()
        || extension.is_some_and(|extension| HEADERS.contains(&extension))
        || std::fs::read(path)
            .is_ok_and(|bytes| warplens_db::may_hold_kernels(&String::from_utf8_lossy(&bytes)))
}

/// Larger files are no sources.
const LARGEST: u64 = 2 << 20;

/// Copies what is text in a folder, and marks the copy as a project.
fn copied(folder: &Path, copy: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(copy.join(".git"))?;
    for entry in warplens_base::walk(&[folder.to_owned()], true) {
        let path = entry.path();
        let small = path.metadata().is_ok_and(|file| file.len() <= LARGEST);
        if !small || !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let to = copy.join(path.strip_prefix(folder)?);
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::copy(path, &to).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    Ok(())
}
