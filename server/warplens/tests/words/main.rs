//! The glossary of CONTRIBUTING.md is kept: its banned phrases do not come back where they are gone.
//!
//! In: the phrases in code marks of the section *Words*, and the text of every source and page below [`CLEAN`]. Out: a line
//! for each phrase found. Folders move into [`CLEAN`] as they are cleaned.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files without banned phrases, from the repository's root. This list only grows.
const CLEAN: [&str; 30] = [
    "CONTRIBUTING.md",
    "README.md",
    "docs",
    "editors",
    "hw-profiles/README.md",
    "server/advice",
    "server/base",
    "server/calibrate",
    "server/codegen",
    "server/db",
    "server/facts",
    "server/hir",
    "server/host",
    "server/ir",
    "server/lab",
    "server/lsp",
    "server/machine",
    "server/models",
    "server/python",
    "server/report",
    "server/symbolic",
    "server/syntax",
    "server/toolchain",
    "server/tuning",
    "server/warplens/benches",
    "server/warplens/src",
    "server/warplens/tests/clean",
    "server/warplens/tests/cli",
    "server/warplens/tests/session_stdio",
    "server/xtask",
];

/// Parts of those that are not clean yet, most of them generated from other crates.
const NOT_YET: [&str; 7] = [
    "docs/accuracy",
    "docs/accuracy.md",
    "docs/configuration-reference.md",
    "docs/gpus",
    "docs/gpus.md",
    "docs/schemas",
    "docs/speed.md",
];

/// Extensions of files that people read.
const READ: [&str; 14] = [
    "c", "cl", "cu", "cuh", "el", "h", "lua", "md", "mjs", "py", "rs", "sh", "ts", "txt",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The section of the glossary: it names the phrases itself.
fn section(text: &str) -> &str {
    let start = text.find("\n## Words\n").expect("a section `Words`");
    let rest = &text[start + 1..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}

/// The banned phrases, each as its words in lower case.
fn banned(section: &str) -> Vec<Vec<String>> {
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let below = section.rsplit("|\n\n").next().unwrap_or_default();
    let below = below.split("A type is named").next().unwrap_or_default();
    let marked = |text: &str| {
        let parts: Vec<String> = text.split('`').map(str::to_lowercase).collect();
        parts.into_iter().skip(1).step_by(2).collect::<Vec<_>>()
    };
    cells
        .chain([below])
        .flat_map(marked)
        .map(|phrase| words(&phrase).map(|(_, word)| word).collect())
        .collect()
}

/// The words of a text in lower case, each with its line from 1. Comment marks and line breaks separate words.
fn words(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines = text.lines().enumerate();
    lines.flat_map(|(at, line)| {
        line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\''))
            .filter(|word| !word.is_empty())
            .map(move |word| (at + 1, word.to_lowercase()))
    })
}

/// Where a text uses a banned phrase: the line and the phrase.
fn uses(text: &str, banned: &[Vec<String>]) -> Vec<(usize, String)> {
    let words: Vec<(usize, String)> = words(text).collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        for phrase in banned {
            let here = words[at..].iter().map(|(_, word)| word);
            if here.take(phrase.len()).eq(phrase) {
                found.push((words[at].0, phrase.join(" ")));
            }
        }
    }
    found
}

/// The files below a path, without what is not clean yet and what is not ours.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    let root = root();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let skipped = NOT_YET.iter().any(|part| path == root.join(part));
    if skipped || name.starts_with('.') || name == "node_modules" || name == "target" {
        return;
    }
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a folder");
        let mut entries: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for entry in entries {
            files(&entry, found);
        }
    } else if path
        .extension()
        .is_some_and(|extension| READ.iter().any(|read| extension == *read))
    {
        found.push(path.to_owned());
    }
}

#[test]
fn banned_phrases_do_not_come_back_where_they_are_gone() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the glossary");
    let glossary = section(&contributing);
    let banned = banned(glossary);
    let mut found = Vec::new();
    for clean in CLEAN {
        let mut paths = Vec::new();
        files(&root().join(clean), &mut paths);
        assert!(!paths.is_empty(), "{clean}: no file to read");
        for path in paths {
            let text = fs::read_to_string(&path).expect("UTF-8");
            // Blank lines in its place keep the numbers of lines.
            let text = text.replace(glossary, &"\n".repeat(glossary.matches('\n').count()));
            let name = path.strip_prefix(root()).unwrap_or(&path).display();
            let lines = uses(&text, &banned);
            found.extend(
                lines
                    .iter()
                    .map(|(line, phrase)| format!("{name}:{line}: `{phrase}`")),
            );
        }
    }
    assert!(
        found.is_empty(),
        "the glossary of CONTRIBUTING.md has other words for\n{}",
        found.join("\n")
    );
}

#[test]
fn the_glossary_bans_what_its_last_column_marks_and_comments_do_not_hide_it() {
    let contributing = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the glossary");
    let banned = banned(section(&contributing));
    let found = |text| {
        uses(text, &banned)
            .into_iter()
            .map(|(_, phrase)| phrase)
            .collect::<Vec<_>>()
    };
    assert_eq!(found("/// A loop that goes\n/// round."), ["goes round"]);
    assert_eq!(
        found("What Nobody said, the latter."),
        ["nobody", "the latter"]
    );
    assert_eq!(found("a compiler's word"), ["compiler's word"]);
    assert_eq!(found("so_many, unheard, `__launch_bounds__`"), [""; 0]);
    let marked = section(&contributing).matches("do not write").count();
    assert_eq!(marked, 1, "one table");
    assert!(banned.len() >= 15, "{banned:?}");
}
