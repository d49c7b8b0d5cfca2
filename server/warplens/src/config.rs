//! `warplens.toml`: found upward from a file, read, its problems reported at their place in it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use warplens_base::read_regular;
use warplens_db::settings::Settings;
use warplens_db::wire::Diagnostic;
use warplens_machine::Profiles;

use crate::position::position;

/// The file's name.
pub const NAME: &str = "warplens.toml";
/// Settings are written by hand: a larger file is none.
const LARGEST: u64 = 1 << 20;

/// Settings in force for a folder.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The settings, whatever was right of them.
    pub settings: Settings,
    /// `config/invalid` for whatever was not.
    pub diagnostics: Vec<Diagnostic>,
    /// Where they come from, and its text.
    pub file: Option<(PathBuf, String)>,
}

/// The settings of the nearest `warplens.toml` in the folder of `path` or above it.
pub fn of(path: &Path, profiles: &Profiles) -> Config {
    find(path)
        .map(|file| load(&file, profiles))
        .unwrap_or_default()
}

/// The nearest `warplens.toml`.
pub fn find(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let folder = if absolute.is_dir() {
        absolute.as_path()
    } else {
        absolute.parent()?
    };
    folder
        .ancestors()
        .map(|folder| folder.join(NAME))
        .find(|file| file.is_file())
}

/// Reads one `warplens.toml`.
pub fn load(file: &Path, profiles: &Profiles) -> Config {
    let shown = shown(file);
    let invalid = |place: [u32; 4], message: String| Diagnostic {
        rule: "config/invalid".to_owned(),
        severity: "error",
        file: shown.display().to_string(),
        line: place[0],
        column: place[1],
        end_line: place[2],
        end_column: place[3],
        message,
        gain: 1.0,
        ..Diagnostic::default()
    };
    let text = match read_regular(file, LARGEST).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            let diagnostics = vec![invalid([1, 1, 1, 2], "is not UTF-8; ignored".to_owned())];
            return Config {
                diagnostics,
                ..Config::default()
            };
        }
        Err(error) => {
            let diagnostics = vec![invalid([1, 1, 1, 2], format!("cannot be read: {error}"))];
            return Config {
                diagnostics,
                ..Config::default()
            };
        }
    };
    let (mut settings, problems) = Settings::from_toml_with(&text, profiles);
    if let Some(folder) = file.parent() {
        for include in &mut settings.include_paths {
            *include = folder.join(&*include).display().to_string();
        }
    }
    let diagnostics = problems
        .into_iter()
        .map(|problem| invalid(place(&text, &problem.range), one_line(&problem.message)))
        .collect();
    Config {
        settings,
        diagnostics,
        file: Some((shown, text)),
    }
}

/// `file` as seen from the current folder, where it is in it.
pub fn shown(file: &Path) -> PathBuf {
    std::env::current_dir()
        .ok()
        .and_then(|here| file.strip_prefix(here).ok().map(Path::to_owned))
        .unwrap_or_else(|| file.to_owned())
}

/// 1-based line and byte column of both ends.
fn place(text: &str, range: &Range<usize>) -> [u32; 4] {
    let (line, column) = position(text, range.start);
    let (end_line, end_column) = position(text, range.end.max(range.start));
    [line, column, end_line, end_column]
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_one_based() {
        assert_eq!(place("a = 1\ngpu = 2\n", &(12..13)), [2, 7, 2, 8]);
        assert_eq!(place("", &(0..5)), [1, 1, 1, 1]);
    }
}
