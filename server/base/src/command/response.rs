//! Response files: `@FILE` everywhere, `--options-file FILE` for nvcc.

use std::path::{Path, PathBuf};

use super::Command;
use super::driver::Driver;
use super::words::{split_list, split_posix, split_windows};
use crate::files::Files;
use crate::paths::absolute;

/// Bounds that no build comes near and that a file of nothing but `@other` meets.
const MAX_WORDS: usize = 1_000_000;
const MAX_FILES: usize = 1_000;
const MAX_BYTES: usize = 32 << 20;
const MAX_DEPTH: usize = 32;

/// The words with each response file in its place. Names count from the command's directory, also within a
/// response file. What was read and what was not is noted in `command`.
pub(super) fn expand(
    words: &[String],
    driver: Driver,
    files: &dyn Files,
    command: &mut Command,
) -> Vec<String> {
    let mut expansion = Expansion {
        driver,
        files,
        command,
        open: Vec::new(),
        out: Vec::new(),
        asked: 0,
        bytes: 0,
    };
    expansion.words(words);
    expansion.out
}

struct Expansion<'a> {
    driver: Driver,
    files: &'a dyn Files,
    command: &'a mut Command,
    /// The response files that the current words stand in, outermost first.
    open: Vec<PathBuf>,
    out: Vec<String>,
    asked: usize,
    bytes: usize,
}

impl Expansion<'_> {
    fn words(&mut self, words: &[String]) {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if self.out.len() >= MAX_WORDS {
                return;
            }
            if let Some(name) = word.strip_prefix('@').filter(|name| !name.is_empty()) {
                self.file(name);
                continue;
            }
            let listed = match (self.driver, word.split_once('=')) {
                (Driver::Nvcc, None) if is_options_file(word) => words.next().map(String::as_str),
                (Driver::Nvcc, Some((name, list))) if is_options_file(name) => Some(list),
                _ => {
                    self.out.push(word.clone());
                    continue;
                }
            };
            for name in listed.map(split_list).unwrap_or_default() {
                self.file(&name);
            }
        }
    }

    fn file(&mut self, name: &str) {
        let path = absolute(&self.command.directory, Path::new(name));
        self.asked += 1;
        if self.asked > MAX_FILES {
            return;
        }
        let allowed =
            self.bytes < MAX_BYTES && self.open.len() < MAX_DEPTH && !self.open.contains(&path);
        let Some(file) = allowed.then(|| self.files.read(&path)).flatten() else {
            note(&mut self.command.unread_response_files, path);
            return;
        };
        self.bytes += file.text.len();
        let words = match self.driver {
            Driver::Cl => split_windows(&file.text),
            _ => split_posix(&file.text),
        };
        note(&mut self.command.response_files, path.clone());
        self.open.push(path);
        self.words(&words);
        self.open.pop();
    }
}

fn is_options_file(name: &str) -> bool {
    matches!(
        name,
        "-optf" | "--optf" | "--options-file" | "-options-file"
    )
}

fn note(list: &mut Vec<PathBuf>, path: PathBuf) {
    if !list.contains(&path) {
        list.push(path);
    }
}
