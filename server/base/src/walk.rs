//! The files of folders without those that are ignored.
//!
//! `.gitignore`, `.ignore` and `.git/info/exclude` mean what they mean to git, and are read like all files of a folder that
//! anybody may have written: as regular files ([`read_regular`]), up to a length and a number of patterns.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, Match, WalkBuilder};
use rustc_hash::FxHashMap;

use crate::regular::read_regular;

/// A larger file of patterns is not read: 256 KiB.
const MOST_BYTES: u64 = 256 << 10;
/// The patterns that one walk takes; each is compiled.
const MOST_PATTERNS: usize = 10_000;
/// A longer pattern is none.
const LONGEST_PATTERN: usize = 1_024;

/// What lies in and below these folders, folders before what is in them; hidden names and what is ignored are left out, and
/// links are not followed. `.gitignore` counts where `by_git` says so.
pub fn walk(folders: &[PathBuf], by_git: bool) -> impl Iterator<Item = DirEntry> + use<> {
    let mut walk = folders.split_first().map(|(first, others)| {
        let mut builder = WalkBuilder::new(first);
        for folder in others {
            builder.add(folder);
        }
        builder
            .require_git(false)
            .follow_links(false)
            .parents(false)
            .ignore(false)
            .git_ignore(false)
            .git_exclude(false);
        let rules = Rules::new(by_git);
        // Who names a folder wants it.
        builder.filter_entry(move |entry| entry.depth() == 0 || !rules.exclude(entry));
        builder.build()
    });
    std::iter::from_fn(move || walk.as_mut()?.next()).flatten()
}

/// The patterns met in one walk.
struct Rules {
    by_git: bool,
    met: Mutex<Met>,
}

#[derive(Default)]
struct Met {
    levels: FxHashMap<PathBuf, Arc<Level>>,
    patterns: usize,
}

/// The patterns of one folder, over those of the folder around it.
#[derive(Default)]
struct Level {
    around: Option<Arc<Level>>,
    ignore: Option<Gitignore>,
    git: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// A repository: what its own folders around it say of git is about others.
    is_repository: bool,
}

impl Rules {
    fn new(by_git: bool) -> Rules {
        Rules {
            by_git,
            met: Mutex::default(),
        }
    }

    fn exclude(&self, entry: &DirEntry) -> bool {
        let Ok(path) = std::path::absolute(entry.path()) else {
            return false;
        };
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let Some(level) = path.parent().map(|folder| self.level(folder)) else {
            return false;
        };
        level.exclude(&path, is_folder)
    }

    fn level(&self, folder: &Path) -> Arc<Level> {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |met: &Met, folder: &Path| met.levels.get(folder).map(Arc::clone);
        let mut missing = Vec::new();
        let mut around = None;
        for folder in folder.ancestors() {
            around = known(&met, folder);
            if around.is_some() {
                break;
            }
            missing.push(folder);
        }
        for folder in missing.into_iter().rev() {
            let level = Arc::new(self.read(folder, around, &mut met.patterns));
            met.levels.insert(folder.to_owned(), Arc::clone(&level));
            around = Some(level);
        }
        around.unwrap_or_default()
    }

    fn read(&self, folder: &Path, around: Option<Arc<Level>>, taken: &mut usize) -> Level {
        let mut level = Level {
            around,
            ignore: patterns(folder, ".ignore", taken),
            exclude: patterns(folder, ".git/info/exclude", taken),
            is_repository: folder.join(".git").exists(),
            git: None,
        };
        if self.by_git {
            level.git = patterns(folder, ".gitignore", taken);
        }
        level
    }
}

impl Level {
    /// Whether a path is ignored: the nearest folder decides that says something, `.ignore` before git.
    fn exclude(&self, path: &Path, is_folder: bool) -> bool {
        let around = || std::iter::successors(Some(self), |level| level.around.as_deref());
        let own = around().filter_map(|level| level.ignore.as_ref());
        let mut repository = around();
        let mut outside = false;
        let by_git = std::iter::from_fn(|| {
            let level = repository.next().filter(|_| !outside)?;
            outside = level.is_repository;
            Some([level.git.as_ref(), level.exclude.as_ref()])
        });
        let by_git = by_git.flatten().flatten();
        for patterns in own.chain(by_git) {
            match patterns.matched(path, is_folder) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// The patterns of a file, as far as a walk takes more.
fn patterns(folder: &Path, name: &str, taken: &mut usize) -> Option<Gitignore> {
    let path = folder.join(name);
    let bytes = read_regular(&path, MOST_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.trim().is_empty() || line.starts_with('#') || line.len() > LONGEST_PATTERN {
            continue;
        }
        if *taken == MOST_PATTERNS {
            break;
        }
        *taken += 1;
        // Of a pattern that is none the others stay.
        builder.add_line(Some(path.clone()), line).ok();
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// What a walk of the library finds, which reads ignore files without a bound. Hidden names are left out, also where a pattern
    /// brings them back.
    fn by_library(root: &Path) -> Vec<PathBuf> {
        let mut builder = WalkBuilder::new(root);
        builder.require_git(false).git_global(false);
        let found = builder.build().flatten().map(DirEntry::into_path);
        let mut found: Vec<PathBuf> = found
            .filter(|path| {
                let mut parts = path.strip_prefix(root).unwrap_or(path).iter();
                !parts.any(|part| part.to_string_lossy().starts_with('.'))
            })
            .collect();
        found.sort();
        found
    }

    fn by_us(root: &Path) -> Vec<PathBuf> {
        let entries = walk(&[root.to_owned()], true);
        let mut found: Vec<PathBuf> = entries.map(DirEntry::into_path).collect();
        found.sort();
        found
    }

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn ignore_files_mean_what_they_mean_to_git(
            files in proptest::collection::vec("[ab]/?[ab]?/?[ab]{1,2}\\.(cu|h)", 1..12),
            rules in proptest::collection::vec(
                ("(|a/|b/|a/b/)(\\.gitignore|\\.ignore)", "(!?/?(\\*\\*/)?[ab*?]{1,2}(\\.cu|\\.h)?/?\n){1,3}"),
                0..4,
            ),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let root = folder.path();
            for file in &files {
                write(root, &file.replace("//", "/"), "");
            }
            for (file, text) in &rules {
                write(root, file, text);
            }
            prop_assert_eq!(by_us(root), by_library(root), "{:?}", rules);
        }
    }

    #[test]
    fn a_repository_inside_of_another_has_its_own_patterns() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        write(root, ".gitignore", "*.cu\n");
        write(root, "inner/k.cu", "");
        assert!(!by_us(root).contains(&root.join("inner/k.cu")));
        fs::create_dir(root.join("inner/.git")).expect("made");
        assert!(by_us(root).contains(&root.join("inner/k.cu")));
    }

    #[test]
    fn patterns_past_the_bounds_are_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        write(root, "k.cu", "");
        let long = "x".repeat(MOST_BYTES as usize);
        write(root, ".gitignore", &format!("k.cu\n{long}"));
        assert!(
            by_us(root).contains(&root.join("k.cu")),
            "a file that is too large says nothing"
        );
        let many = "no\n".repeat(MOST_PATTERNS);
        write(root, ".gitignore", &format!("{many}k.cu\n"));
        assert!(by_us(root).contains(&root.join("k.cu")));
        write(root, ".gitignore", "k.cu\n");
        assert!(!by_us(root).contains(&root.join("k.cu")));
    }
}
