//! The GPU profiles in force: those that come with warplens, over them the user's own, over these the workspace's.
//!
//! A user keeps files in `warplens/profiles` of the folder for settings (`$XDG_CONFIG_HOME`, or `~/.config`; on Windows
//! `%APPDATA%`), a workspace in `.warplens/profiles`. A file with the id of another GPU takes its place.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use warplens_base::{Entry, EntryKind, Files};
use warplens_machine::{ProfileError, Profiles};

/// Where a workspace keeps its profiles.
pub const OF_WORKSPACE: &str = ".warplens/profiles";

/// Where a user keeps them, in the folder for settings.
const OF_USER: &str = "warplens/profiles";

/// Files of one folder that are read; a profile is a few thousand bytes.
const MOST_FILES: usize = 256;
const LARGEST: u64 = 1 << 20;

/// The profiles in force at these places (files or folders), and what is wrong with those that were left out.
///
/// The nearest `.warplens/profiles` in the folder of a place or above it counts.
pub fn in_force(files: &dyn Files, places: &[PathBuf]) -> (Profiles, Vec<ProfileError>) {
    let mut folders: Vec<PathBuf> = of_user().into_iter().collect();
    for folder in places.iter().filter_map(|place| of_workspace(files, place)) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    read(files, &folders)
}

/// Where the user's profiles are looked for; nowhere where the environment names no folder for settings.
pub fn of_user() -> Option<PathBuf> {
    settings_folder(|name| std::env::var_os(name)).map(|folder| folder.join(OF_USER))
}

/// The built-in profiles and those of these folders; a later folder goes before an earlier one.
fn read(files: &dyn Files, folders: &[PathBuf]) -> (Profiles, Vec<ProfileError>) {
    let mut profiles = Profiles::builtin();
    let mut problems = Vec::new();
    for folder in folders {
        for file in profile_files(files, folder) {
            let name = file.path.display().to_string();
            match text(files, &file).and_then(|text| Profiles::from_toml(&name, &text)) {
                Ok(profile) => profiles.insert(profile),
                Err(problem) => problems.push(problem),
            }
        }
    }
    (profiles, problems)
}

fn settings_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if cfg!(windows) {
        return absolute("APPDATA");
    }
    absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
}

fn of_workspace(files: &dyn Files, place: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(place).ok()?;
    absolute
        .ancestors()
        .map(|folder| folder.join(OF_WORKSPACE))
        .find(|folder| is_folder(files, folder))
}

fn is_folder(files: &dyn Files, folder: &Path) -> bool {
    let entries = files.list(folder.parent().unwrap_or(Path::new("")));
    let mut entries = entries.iter();
    entries.any(|entry| entry.path == folder && entry.kind != EntryKind::File)
}

/// The folder's profile files, by name; none where there is no such folder.
fn profile_files(files: &dyn Files, folder: &Path) -> Vec<Entry> {
    let entries = files.list(folder);
    let profiles = entries.iter().filter(|entry| {
        let extension = entry.path.extension();
        extension.is_some_and(|extension| extension == "toml")
    });
    profiles.take(MOST_FILES).cloned().collect()
}

fn text(files: &dyn Files, file: &Entry) -> Result<String, ProfileError> {
    let problem = |problem: String| ProfileError {
        file: file.path.display().to_string(),
        key: None,
        span: None,
        line: 0,
        column: 0,
        problem,
    };
    if file.kind == EntryKind::Folder {
        return Err(problem("is not a file".to_owned()));
    }
    let bytes = files
        .bytes(&file.path, 0..LARGEST + 1)
        .map_err(|error| problem(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(problem(format!(
            "is larger than {} KiB, which no profile is",
            LARGEST >> 10
        )));
    }
    String::from_utf8(bytes).map_err(|_| problem("is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use warplens_base::DiskFiles;

    use super::*;

    const MINE: &str = include_str!("../../../hw-profiles/a100-sxm4-40gb.toml");

    /// A folder with these profile files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("inside")).expect("a folder");
            std::fs::write(path, text).expect("written");
        }
        folder
    }

    #[test]
    fn the_workspace_wins_over_the_user_and_both_over_what_is_built_in() {
        let sms = |count: u32| MINE.replace("value = 108", &format!("value = {count}"));
        let own = sms(7).replace("a100-sxm4-40gb", "mine");
        let user = folder(&[
            ("a.toml", &sms(100)),
            ("b.toml", &own),
            ("notes.txt", "no profile"),
        ]);
        let workspace = folder(&[("z.toml", &sms(99))]);
        let places = [user.path().to_owned(), workspace.path().to_owned()];
        let of = |folders: &[PathBuf], id: &str| {
            read(&DiskFiles::new(), folders)
                .0
                .get(id)
                .map(|found| found.sms)
        };
        assert_eq!(of(&[], "a100-sxm4-40gb"), Some(108));
        assert_eq!(of(&places[..1], "a100-sxm4-40gb"), Some(100));
        assert_eq!(of(&places, "a100-sxm4-40gb"), Some(99));
        assert_eq!((of(&places, "mine"), of(&[], "mine")), (Some(7), None));
        assert_eq!(read(&DiskFiles::new(), &places).1, []);
    }

    #[test]
    fn a_broken_file_is_told_with_its_key_and_the_others_are_read() {
        let folder = folder(&[
            ("broken.toml", &MINE.replace("value = 108", "value = 0")),
            ("good.toml", &MINE.replace("a100-sxm4-40gb", "mine")),
            ("folder.toml/inside", ""),
        ]);
        let (profiles, problems) = read(
            &DiskFiles::new(),
            &[folder.path().to_owned(), PathBuf::from("/no/such")],
        );
        assert!(profiles.get("mine").is_some());
        assert_eq!(
            profiles.get("a100-sxm4-40gb").map(|found| found.sms),
            Some(108)
        );
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("broken.toml:8:") && told[0].contains("sms: must be"),
            "{told:?}"
        );
        assert!(told[1].contains("is not a file"), "{told:?}");
    }

    #[test]
    fn the_nearest_folder_above_counts() {
        let folder = folder(&[(".warplens/profiles/mine.toml", MINE), ("a/b/k.cu", "")]);
        let found = of_workspace(&DiskFiles::new(), &folder.path().join("a/b/k.cu"));
        assert_eq!(found, Some(folder.path().join(OF_WORKSPACE)));
        let user = |names: &'static [(&str, &str)]| {
            settings_folder(move |wanted| {
                let given = names.iter().find(|(name, _)| *name == wanted);
                given.map(|(_, value)| OsString::from(value))
            })
        };
        if cfg!(not(windows)) {
            assert_eq!(
                user(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")]),
                Some("/x".into())
            );
            assert_eq!(
                user(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")]),
                Some("/h/.config".into())
            );
            assert_eq!(user(&[("HOME", "")]), None);
        }
    }
}
