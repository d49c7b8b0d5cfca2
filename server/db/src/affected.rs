//! Which files' results may differ between two versions of a folder. Those of all others are what they were.
//!
//! What a file's results depend on: its text, the headers it reads, who includes and who launches it, and what lies beside it.
//! Where that cannot be told without an analysis, a file counts as affected.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashSet;

use crate::queries::near;
use crate::{Engine, FileAnalysis};

/// What looks like a definition and is none, or is one in every program.
const EVERYWHERE: [&str; 6] = ["catch", "for", "if", "main", "switch", "while"];

/// A file of the earlier version, and what its results depend on.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Absolute.
    pub path: PathBuf,
    /// Headers that it depends on.
    reads: Vec<PathBuf>,
    /// File names of headers that were not found.
    missing: Vec<String>,
    kernels: Vec<String>,
}

impl Reading {
    /// What an analysis read.
    pub fn of(path: &Path, analysis: &FileAnalysis) -> Reading {
        let kernels = analysis.kernels.iter();
        Reading {
            path: absolute(path),
            reads: analysis.reads.iter().map(|read| absolute(read)).collect(),
            missing: analysis
                .missing_includes
                .iter()
                .map(|spelled| last(spelled).to_owned())
                .collect(),
            kernels: kernels
                .map(|kernel| kernel.analysis.facts.name.clone())
                .collect(),
        }
    }
}

/// A file that differs, is new or is gone.
#[derive(Debug)]
pub struct Edited {
    /// Its absolute path in the earlier version, whether or not it is there.
    pub path: PathBuf,
    /// What it said in both versions, as far as it was there.
    pub texts: Vec<String>,
}

/// The files of the earlier version whose results may be others now: those of `edited`, which are all that differ below the
/// version's absolute `folder`, and what depends on them. `read` gives a text of that version.
pub fn affected(
    earlier: &Engine,
    folder: &Path,
    readings: &[Reading],
    edited: &[Edited],
    read: &dyn Fn(&Path) -> Option<String>,
) -> FxHashSet<PathBuf> {
    let readings: Vec<Read<'_>> = readings.iter().map(|one| Read::of(one, read)).collect();
    let mut found: FxHashSet<PathBuf> = edited.iter().map(|one| one.path.clone()).collect();
    let mut waiting: Vec<Spread<'_>> = Vec::new();
    for one in edited {
        waiting.push(Spread::of_edited(one, &readings));
    }
    // What differs elsewhere is not known.
    let reads_elsewhere = |one: &&Read<'_>| {
        let mut reads = one.reading.reads.iter();
        reads.any(|read| !read.starts_with(folder))
    };
    for one in readings.iter().filter(reads_elsewhere) {
        if found.insert(one.reading.path.clone()) {
            waiting.push(Spread::of_same(one));
        }
    }
    while let Some(spread) = waiting.pop() {
        for one in &readings {
            let path = &one.reading.path;
            if !found.contains(path) && spread.reaches(one, earlier) {
                found.insert(path.clone());
                waiting.push(Spread::of_same(one));
            }
        }
    }
    found
}

/// A file of the earlier version with its text.
struct Read<'a> {
    reading: &'a Reading,
    text: Option<String>,
    offers: FxHashSet<String>,
}

impl<'a> Read<'a> {
    fn of(reading: &'a Reading, read: &dyn Fn(&Path) -> Option<String>) -> Read<'a> {
        let text = read(&reading.path);
        Read {
            offers: text.as_deref().map(offers).unwrap_or_default(),
            reading,
            text,
        }
    }
}

/// What a file that is affected affects in turn.
struct Spread<'a> {
    path: &'a Path,
    texts: Vec<&'a str>,
    words: FxHashSet<&'a str>,
    /// Headers that it reads are seen with its eyes.
    reads: &'a [PathBuf],
    /// Names that it offers to the files beside it; of one whose text is the same they are the same.
    offers: FxHashSet<String>,
    is_edited: bool,
}

impl<'a> Spread<'a> {
    fn of_edited(edited: &'a Edited, readings: &[Read<'a>]) -> Spread<'a> {
        let read = readings.iter().find(|one| one.reading.path == edited.path);
        let texts: Vec<&str> = edited.texts.iter().map(String::as_str).collect();
        Spread {
            path: &edited.path,
            words: texts.iter().flat_map(|text| words(text)).collect(),
            reads: read.map_or(&[], |one| &one.reading.reads),
            offers: texts.iter().flat_map(|text| offers(text)).collect(),
            texts,
            is_edited: true,
        }
    }

    fn of_same(read: &'a Read<'a>) -> Spread<'a> {
        let texts: Vec<&str> = read.text.as_deref().into_iter().collect();
        Spread {
            path: &read.reading.path,
            words: texts.iter().flat_map(|text| words(text)).collect(),
            reads: &read.reading.reads,
            offers: FxHashSet::default(),
            texts,
            is_edited: false,
        }
    }

    fn reaches(&self, one: &Read<'_>, earlier: &Engine) -> bool {
        let Read { reading, .. } = one;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let included = reading.reads.iter().any(|read| read == self.path)
            || self.is_edited && reading.missing.iter().any(|missing| *missing == name);
        let includes =
            self.reads.contains(&reading.path) || self.is_edited && self.names_file(&reading.path);
        let mut kernels = reading.kernels.iter();
        let launches = kernels.any(|kernel| self.words.contains(kernel.as_str()));
        // A function that launches, with what it is called.
        let mut offered = one.offers.iter();
        let calls = self.is_edited && offered.any(|name| self.words.contains(name.as_str()));
        included || includes || launches || calls || self.offers_to(one, earlier)
    }

    fn names_file(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.texts.iter().any(|text| text.contains(&*name))
    }

    /// True where the file is looked at for names that the other lacks, and has one that it may lack.
    fn offers_to(&self, one: &Read<'_>, earlier: &Engine) -> bool {
        let Some(text) = one.text.as_deref() else {
            return true;
        };
        if !words(text).any(|word| self.offers.contains(word) && !one.offers.contains(word)) {
            return false;
        }
        let folder = self.path.parent();
        // A folder that is new was none of those below yet.
        let folders = [folder, folder.and_then(Path::parent)];
        let around = earlier.around(&one.reading.path);
        around
            .iter()
            .any(|near| folders.contains(&Some(near.as_path())))
    }
}

/// What a text defines that other files may use.
fn offers(text: &str) -> FxHashSet<String> {
    let mut names = near::offers(text);
    names.retain(|name| !EVERYWHERE.contains(&name.as_str()));
    names
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

fn last(spelled: &str) -> &str {
    let spelled = spelled.trim_matches(['<', '>', '"']);
    spelled.rsplit('/').next().unwrap_or(spelled)
}

fn absolute(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    warplens_base::normalise(&path)
}
