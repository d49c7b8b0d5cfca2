//! The options that the programs of a table were compiled with, as a `compile_commands.json` that lies nowhere.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use warplens_base::{DiskFiles, Files, SourceFile, Stamp};

/// The files of the disk, and in some folders a database of commands.
pub struct WithCommands {
    disk: DiskFiles,
    databases: BTreeMap<PathBuf, Arc<SourceFile>>,
}

impl WithCommands {
    /// `options` are those of each source, by its path.
    pub fn new(options: &BTreeMap<PathBuf, Vec<String>>) -> WithCommands {
        let mut databases = BTreeMap::new();
        for (source, options) in options {
            let Some(folder) = source.parent().filter(|_| !options.is_empty()) else {
                continue;
            };
            let mut arguments = vec!["nvcc".to_owned()];
            arguments.extend(options.iter().cloned());
            arguments.extend(["-c".to_owned(), source.display().to_string()]);
            let entry = serde_json::json!([{
                "directory": folder,
                "file": source,
                "arguments": arguments,
            }]);
            let path = folder.join("compile_commands.json");
            let file = SourceFile::new(&path, entry.to_string().into());
            databases.insert(path, Arc::new(file));
        }
        WithCommands {
            disk: DiskFiles::new(),
            databases,
        }
    }
}

impl Files for WithCommands {
    fn behind(&self) -> &dyn Files {
        &self.disk
    }

    fn read(&self, path: &Path) -> Option<Arc<SourceFile>> {
        match self.databases.get(path) {
            Some(database) => Some(Arc::clone(database)),
            None => self.disk.read(path),
        }
    }

    fn exists(&self, path: &Path) -> bool {
        self.databases.contains_key(path) || self.disk.exists(path)
    }

    fn stamp(&self, path: &Path) -> Option<Stamp> {
        match self.databases.get(path) {
            Some(database) => Some(Stamp {
                modified: Some(SystemTime::UNIX_EPOCH),
                length: database.text.len() as u64,
            }),
            None => self.disk.stamp(path),
        }
    }

    fn bytes(&self, path: &Path, part: Range<u64>) -> io::Result<Vec<u8>> {
        let Some(database) = self.databases.get(path) else {
            return self.disk.bytes(path, part);
        };
        let text = database.text.as_bytes();
        let at = |place: u64| usize::try_from(place).map_or(text.len(), |at| at.min(text.len()));
        let (start, end) = (at(part.start), at(part.end));
        Ok(text[start..end.max(start)].to_vec())
    }
}

/// The options that a table says beside a language: `CUDA (-use_fast_math)`.
pub fn options(language: &str) -> Vec<String> {
    let Some((_, rest)) = language.split_once('(') else {
        return Vec::new();
    };
    let inside = rest.split(')').next().unwrap_or("");
    let options = inside.split_whitespace();
    options
        .filter(|word| word.starts_with('-'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_behind_the_language() {
        assert_eq!(options("CUDA (-use_fast_math)"), ["-use_fast_math"]);
        assert!(options("CUDA (CuPy/NVRTC)").is_empty());
        assert!(options("CUDA").is_empty());
        assert!(options("(").is_empty());
    }

    #[test]
    fn a_source_is_compiled_with_its_options() {
        let source = PathBuf::from("/nowhere/kernel.cu");
        let options = BTreeMap::from([(source.clone(), vec!["-use_fast_math".to_owned()])]);
        let files = WithCommands::new(&options);
        let command = warplens_base::CompileCommands::new().command(&source, &files);
        assert!(command.is_some_and(|command| command.command.fast_math));
    }
}
