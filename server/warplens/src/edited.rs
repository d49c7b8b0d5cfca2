//! What differs between two folders, of the files that an analysis may read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use warplens_base::{decode, read_regular, walk};
use warplens_db::affected::Edited;

use crate::input::LARGEST;
use crate::{config, revision};

/// With more of them nearly everything is affected, and finding out by what takes longer.
const MOST: usize = 1_000;

/// The files that differ, by their paths below `before`; `None` where settings differ or too much does: all results may.
pub fn edited(before: &Path, after: &Path) -> Option<Vec<Edited>> {
    let settings = |folder: &Path| config::find(&folder.join("any.cu")).map(|path| text(&path));
    if settings(before) != settings(after) {
        return None;
    }
    let mut names = listed(before);
    names.extend(listed(after));
    let mut edited = Vec::new();
    for name in names {
        let (old, new) = (before.join(&name), after.join(&name));
        if same(&old, &new) {
            continue;
        }
        // Settings, GPUs' profiles and commands that compile bear on many files; other JSON on none.
        let end = name.extension().unwrap_or_default();
        let commands = name.file_name().is_some_and(|name| {
            [
                "compile_commands.json",
                "GNUmakefile",
                "makefile",
                "Makefile",
            ]
            .iter()
            .any(|one| name == *one)
        });
        if end == "json" && !commands {
            continue;
        }
        if commands || end == "toml" || edited.len() == MOST {
            return None;
        }
        let texts = [&old, &new].into_iter().filter_map(|path| text(path));
        let texts = texts.collect();
        let path = std::path::absolute(old).ok()?;
        edited.push(Edited { path, texts });
    }
    Some(edited)
}

/// The text of a file, if it is one.
pub fn text(path: &Path) -> Option<String> {
    decode(read_regular(path, LARGEST).ok()?).ok()
}

fn listed(folder: &Path) -> BTreeSet<PathBuf> {
    let walk = walk(&[folder.to_owned()], false);
    let files = walk.map(ignore::DirEntry::into_path);
    let read = files.filter(|path| revision::is_read(path) && path.is_file());
    read.filter_map(|path| Some(path.strip_prefix(folder).ok()?.to_owned()))
        .collect()
}

fn same(old: &Path, new: &Path) -> bool {
    let size = |path: &Path| std::fs::metadata(path).map(|meta| meta.len()).ok();
    let (Some(before), Some(after)) = (size(old), size(new)) else {
        return false;
    };
    before == after
        && match (read_regular(old, LARGEST), read_regular(new, LARGEST)) {
            (Ok(old), Ok(new)) => old == new,
            _ => false,
        }
}
