//! Where settings come from and which one wins: built-in, then `warplens.toml`, then the editor, then what
//! was chosen in this session.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use ropey::Rope;
use serde_json::{Map, Value};
use warplens_base::read_regular;
use warplens_db::settings::{READS_OUTSIDE, RunSettings, RunSource, Settings, SettingsProblem};
use warplens_db::{LaunchValues, Overrides, Variants};
use warplens_machine::Profiles;

use crate::earlier::TimesByName;
use crate::pinned::LinesByName;

/// The compiler's path. No setting of a project: `warplens.toml` does not know it.
const COMPILER: &str = "compiler";
/// How long it may take, in seconds.
const COMPILER_TIMEOUT: &str = "compilerTimeout";
const COMPILER_BOUND: Duration = Duration::from_mins(1);

/// The project's file.
pub const FILE_NAME: &str = "warplens.toml";
/// Settings are written by hand: a larger file is none.
const LARGEST: u64 = 1 << 20;

/// Settings in force for one document.
#[derive(Debug, Clone, Default)]
pub struct Effective {
    /// All but the launches given outside the project's file.
    pub settings: Settings,
    /// Launches from the editor's settings and from this session.
    pub overrides: Overrides,
    /// The project's file, where there is one.
    pub file: Option<Arc<ConfigFile>>,
    /// Who chose the GPU: `session`, `settings` or `config`; `None` where nothing of these names one.
    pub gpu_source: Option<&'static str>,
}

/// A `warplens.toml` as read.
#[derive(Debug)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text.
    pub rope: Rope,
    /// What it says, as far as it is right.
    pub settings: Settings,
    /// What is wrong in it.
    pub problems: Vec<SettingsProblem>,
}

impl ConfigFile {
    /// Reads a file's text.
    pub fn parse(path: PathBuf, text: &str, profiles: &Profiles) -> ConfigFile {
        let (mut settings, problems) = Settings::from_toml_with(text, profiles);
        if let Some(folder) = path.parent() {
            relative_to(folder, &mut settings);
        }
        let rope = Rope::from_str(text);
        ConfigFile {
            path,
            rope,
            settings,
            problems,
        }
    }
}

/// Folders of headers that are named relatively lie in this folder.
pub fn relative_to(folder: &Path, settings: &mut Settings) {
    for include in &mut settings.include_paths {
        *include = folder.join(&*include).display().to_string();
    }
}

/// The user's compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCompiler {
    /// The program; an absolute path.
    pub path: PathBuf,
    /// Longest that one compilation may take.
    pub bound: Duration,
}

/// The editor's settings: those of `initialize`, and later ones of the settings section.
#[derive(Debug, Clone, Default)]
pub struct Editor {
    initial: Map<String, Value>,
    section: Map<String, Value>,
}

impl Editor {
    /// Takes `initializationOptions`.
    pub fn set_initial(&mut self, value: Option<&Value>) {
        self.initial = section_of(value);
    }

    /// Takes the settings section as a client sends it; it may hold only what is not by default.
    pub fn set_section(&mut self, value: Option<&Value>) {
        self.section = section_of(value);
    }

    /// Takes the client's answer to `workspace/configuration`. An object is all there is: what came with
    /// `initialize` is a copy from then, in which a value that the user took out since would live on.
    pub fn set_answer(&mut self, value: Option<&Value>) {
        if value.is_some_and(Value::is_object) {
            self.initial = Map::new();
        }
        self.set_section(value);
    }

    /// Everything the editor says.
    pub fn settings(&self) -> Map<String, Value> {
        let mut all = self.initial.clone();
        overlay(&mut all, &self.section);
        all
    }

    /// The compiler that the user names, or why it is not used. The protocol does not say who set a value; the
    /// editors' integrations take these two from the user alone, and a program that the workspace could have
    /// brought along is refused whichever setting names it.
    pub fn compiler(&self, folders: &[PathBuf]) -> Option<Result<UserCompiler, String>> {
        let settings = self.settings();
        let path = settings.get(COMPILER)?;
        let Some(path) = path.as_str().map(Path::new) else {
            return Some(Err(format!("warplens.{COMPILER}: expected a path")));
        };
        if path.is_relative() {
            return Some(Err(format!(
                "warplens.{COMPILER}: `{}` is relative and would mean a program of the workspace: give the \
                 whole path",
                path.display()
            )));
        }
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let within = |folder: &&PathBuf| {
            // In a workspace that is the whole disk everything lies.
            folder.parent().is_some()
                && (path.starts_with(folder) || real(path).starts_with(real(folder)))
        };
        if folders.iter().any(|folder| within(&folder)) {
            return Some(Err(format!(
                "warplens.{COMPILER}: `{}` is inside the workspace; programs of a workspace are never run",
                path.display()
            )));
        }
        let bound = match settings.get(COMPILER_TIMEOUT) {
            None => COMPILER_BOUND,
            Some(value) => match value
                .as_f64()
                .filter(|bound| (0.1..=3600.0).contains(bound))
            {
                Some(bound) => Duration::from_secs_f64(bound),
                None => {
                    return Some(Err(format!(
                        "warplens.{COMPILER_TIMEOUT}: expected seconds, at most 3600"
                    )));
                }
            },
        };
        Some(Ok(UserCompiler {
            path: path.to_owned(),
            bound,
        }))
    }

    /// Whether the user lets includes lead out of the workspace.
    pub fn reads_outside(&self) -> bool {
        self.settings().get(READS_OUTSIDE) == Some(&Value::Bool(true))
    }

    /// What is wrong in it, in words. Keys that are not ours are the editor extension's own.
    pub fn problems(&self, profiles: &Profiles) -> Vec<String> {
        let mut said = self.settings();
        said.retain(|key, _| is_known(key));
        let (settings, mut problems) = Settings::from_json(&Value::Object(said));
        let unknown = settings.unknown_names(profiles).into_iter();
        problems.extend(unknown.map(|(key, message)| format!("warplens.{key}: {message}")));
        problems
    }
}

/// True where a settings payload says something about our settings.
pub fn is_ours(payload: &Value) -> bool {
    payload
        .get("warplens")
        .is_some_and(|section| !is_empty(section))
        || payload.as_object().is_some_and(|object| {
            let own = [COMPILER, COMPILER_TIMEOUT, READS_OUTSIDE];
            object
                .keys()
                .any(|key| is_known(key) || own.contains(&key.as_str()))
        })
}

fn is_known(key: &str) -> bool {
    let known = serde_json::to_value(Settings::default()).unwrap_or_default();
    known.get(key).is_some()
}

/// The `warplens` section, whether the payload is it or holds it. Empty values are as good as absent:
/// editors send every setting, also those the user never touched.
fn section_of(value: Option<&Value>) -> Map<String, Value> {
    let Some(Value::Object(object)) = value else {
        return Map::new();
    };
    let section = match object.get("warplens") {
        Some(Value::Object(section)) => section,
        _ => object,
    };
    section
        .iter()
        .filter(|(_, value)| !is_empty(value))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Writes `upper` over `lower`, tables key by key.
fn overlay(lower: &mut Map<String, Value>, upper: &Map<String, Value>) {
    for (key, value) in upper {
        match (lower.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => overlay(below, above),
            _ => {
                lower.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The user's choices in this session, for all documents or for single ones.
#[derive(Debug, Clone, Default)]
pub struct SessionChoices {
    /// `warplens.selectGpu` without a document.
    pub gpu: Option<String>,
    /// `warplens.selectGpu` with one.
    pub gpu_of: HashMap<String, String>,
    /// `warplens.setLaunch`: by document, by kernel.
    pub launches: HashMap<String, BTreeMap<String, LaunchValues>>,
    /// `warplens.setRun`: by the folder of the document, the arguments that programs there are run with.
    pub runs: HashMap<String, String>,
    /// `warplens.nextLaunch`: by document, by kernel, which of its launches is shown.
    pub variants: HashMap<String, BTreeMap<String, usize>>,
    /// `warplens.pin`: by document, what kernels took when they were pinned.
    pub pins: HashMap<String, Arc<TimesByName>>,
    /// The same, what their lines took.
    pub pinned_lines: HashMap<String, Arc<LinesByName>>,
}

impl SessionChoices {
    /// What was chosen for a document, or for those in a folder, holds under its new name.
    pub fn renamed(&mut self, old: &str, new: &str) {
        fn moved<T>(by_uri: &mut HashMap<String, T>, old: &str, new: &str) {
            let inside = |uri: &str| {
                let rest = uri.strip_prefix(old)?;
                (rest.is_empty() || rest.starts_with('/')).then(|| format!("{new}{rest}"))
            };
            let found: Vec<(String, String)> = by_uri
                .keys()
                .filter_map(|uri| Some((uri.clone(), inside(uri)?)))
                .collect();
            for (before, after) in found {
                if let Some(chosen) = by_uri.remove(&before) {
                    by_uri.insert(after, chosen);
                }
            }
        }
        let (old, new) = (old.trim_end_matches('/'), new.trim_end_matches('/'));
        moved(&mut self.gpu_of, old, new);
        moved(&mut self.launches, old, new);
        moved(&mut self.runs, old, new);
        moved(&mut self.variants, old, new);
        moved(&mut self.pins, old, new);
        moved(&mut self.pinned_lines, old, new);
    }
}

/// Puts the parts together for one document.
pub fn effective(
    uri: &str,
    editor: &Map<String, Value>,
    chosen: &SessionChoices,
    file: Option<Arc<ConfigFile>>,
    profiles: &Profiles,
) -> Effective {
    let project = file
        .as_ref()
        .map(|file| file.settings.clone())
        .unwrap_or_default();
    let mut editor = editor.clone();
    // The editor's launches override the project file's; results name which of the two they come from.
    let (kernels, _) = Settings::from_json(&Value::Object(
        editor.remove_entry("kernels").into_iter().collect(),
    ));
    let mut settings = project;
    if !editor.is_empty()
        && let Ok(Value::Object(mut merged)) = serde_json::to_value(&settings)
    {
        // Only valid keys: a wrong key must not cost the others, and a name that expands to
        // nothing must not hide the one in the project's file.
        editor.retain(|key, value| {
            let one = Map::from_iter([(key.clone(), value.clone())]);
            let (one, problems) = Settings::from_json(&Value::Object(one));
            let mut known = one.clone();
            known.resolve_names(profiles);
            problems.is_empty() && (known == one || !known.compare.is_empty())
        });
        overlay(&mut merged, &editor);
        settings = Settings::from_json(&Value::Object(merged)).0;
        settings.resolve_names(profiles);
    }
    let in_file = file.as_ref().and_then(|file| file.settings.gpu.clone());
    let mut gpu_source = settings.gpu.as_ref().map(|gpu| match in_file {
        Some(named) if named == *gpu && !editor.contains_key("gpu") => "config",
        _ => "settings",
    });
    if let Some(gpu) = chosen.gpu_of.get(uri).or(chosen.gpu.as_ref()) {
        settings.gpu = Some(gpu.clone());
        gpu_source = Some("session");
    }
    if let Some(arguments) = chosen.runs.get(folder_of(uri)) {
        let run = RunSettings {
            arguments: arguments.clone(),
            said_by: RunSource::Session,
            ..RunSettings::default()
        };
        settings.run.insert(0, run);
    }
    let overrides = Overrides {
        set_launch: chosen.launches.get(uri).cloned().unwrap_or_default(),
        editor: kernels
            .kernels
            .iter()
            .map(|(name, values)| (name.clone(), LaunchValues::from(values)))
            .collect(),
        variants: Variants::Chosen(chosen.variants.get(uri).cloned().unwrap_or_default()),
        ..Overrides::default()
    };
    Effective {
        settings,
        overrides,
        file,
        gpu_source,
    }
}

/// The folder of a document, by its URI.
pub fn folder_of(uri: &str) -> &str {
    uri.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// One to three extents as three.
pub fn three(given: &[u64]) -> [u64; 3] {
    let mut all = [1; 3];
    for (place, value) in all.iter_mut().zip(given) {
        *place = *value;
    }
    all
}

/// The `warplens.toml` files in use, read again when they change on disk.
#[derive(Debug, Default)]
pub struct Files {
    read: Mutex<HashMap<PathBuf, (Stamp, Arc<ConfigFile>)>>,
}

/// What tells that a file on disk is another one.
type Stamp = (Option<SystemTime>, u64);

impl Files {
    /// The file that governs a document: the nearest one upward, inside the workspace folder that holds
    /// the document. `open` are those open in the editor, whose text counts, saved or not.
    pub fn governing(
        &self,
        document: &Path,
        folders: &[PathBuf],
        open: &HashMap<PathBuf, Rope>,
        profiles: &Profiles,
    ) -> Option<Arc<ConfigFile>> {
        if document.is_relative() {
            return None;
        }
        let root = folders
            .iter()
            .filter(|folder| document.starts_with(folder))
            .max_by_key(|f| f.as_os_str().len());
        for folder in document.ancestors().skip(1) {
            let path = folder.join(FILE_NAME);
            if let Some(rope) = open.get(&path) {
                return Some(Arc::new(ConfigFile::parse(
                    path,
                    &rope.to_string(),
                    profiles,
                )));
            }
            if let Some(file) = self.on_disk(&path, profiles) {
                return Some(file);
            }
            if root.is_some_and(|root| root == folder) {
                break;
            }
        }
        None
    }

    fn on_disk(&self, path: &Path, profiles: &Profiles) -> Option<Arc<ConfigFile>> {
        let metadata = std::fs::metadata(path)
            .ok()
            .filter(std::fs::Metadata::is_file)?;
        let stamp = (metadata.modified().ok(), metadata.len());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, file)) = read.get(path)
            && *known == stamp
        {
            return Some(file.clone());
        }
        let file = match read_regular(path, LARGEST).map(String::from_utf8) {
            Ok(Ok(text)) => ConfigFile::parse(path.to_owned(), &text, profiles),
            Ok(Err(error)) => unreadable(path, format!("not UTF-8: {}", error.utf8_error())),
            Err(error) => unreadable(path, format!("cannot be read: {error}")),
        };
        let file = Arc::new(file);
        read.insert(path.to_owned(), (stamp, file.clone()));
        Some(file)
    }

    /// Forgets what was read: the client says that files changed.
    pub fn forget(&self) {
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

fn unreadable(path: &Path, message: String) -> ConfigFile {
    ConfigFile {
        path: path.to_owned(),
        rope: Rope::new(),
        settings: Settings::default(),
        problems: vec![SettingsProblem {
            range: Range { start: 0, end: 0 },
            message,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn merged(toml: &str, initial: &Value, section: &Value) -> Effective {
        let profiles = Profiles::builtin();
        let mut editor = Editor::default();
        editor.set_initial(Some(initial));
        editor.set_section(Some(section));
        let file = Arc::new(ConfigFile::parse(
            PathBuf::from("/w/warplens.toml"),
            toml,
            &profiles,
        ));
        effective(
            "file:///w/a.cu",
            &editor.settings(),
            &SessionChoices::default(),
            Some(file),
            &profiles,
        )
    }

    #[test]
    fn the_editor_wins_over_the_file_key_by_key() {
        let both = merged(
            "gpu = \"tesla-k40c\"\nassume = { n = 1, m = 2 }\n[kernels.k]\nblock = [64]\n",
            &json!({"gpu": "gtx-280"}),
            &json!({"warplens": {"assume": {"n": 7}, "kernels": {"k": {"block": [32, 4]}}}}),
        );
        assert_eq!(both.settings.gpu.as_deref(), Some("gtx-280"));
        assert_eq!(both.settings.assume["n"], 7);
        assert_eq!(both.settings.assume["m"], 2);
        assert_eq!(
            both.settings.kernels["k"].block,
            Some(vec![64]),
            "the file's own launch stays its own"
        );
        assert_eq!(both.overrides.editor["k"].block, Some([32, 4, 1]));
    }

    #[test]
    fn what_an_editor_sends_unasked_hides_nothing() {
        let both = merged(
            "gpu = \"tesla-k40c\"\ncompare = [\"gtx-280\"]\n",
            &json!(null),
            &json!({"gpu": null, "compare": [], "model": "", "rules": {}, "server": {"path": null}}),
        );
        assert_eq!(both.settings.gpu.as_deref(), Some("tesla-k40c"));
        assert_eq!(both.settings.compare, ["gtx-280"]);
    }

    #[test]
    fn one_wrong_key_costs_only_itself() {
        let both = merged("", &json!({"gpu": 7, "assume": {"n": 5}}), &json!(null));
        assert_eq!(both.settings.gpu, None);
        assert_eq!(both.settings.assume["n"], 5);
    }

    #[test]
    fn names_that_stand_for_nothing_are_told() {
        let profiles = Profiles::builtin();
        let mut editor = Editor::default();
        editor.set_initial(Some(&json!({"gpu": "gtx281", "model": "best",
            "rules": {"mem": "hint", "mem/stride": "off"}, "server": {"path": "x"}})));
        let problems = editor.problems(&profiles);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("\"gtx-280\""), "{problems:?}");
        assert!(problems[1].contains("mwp-cwp"), "{problems:?}");
        assert!(
            problems[2].contains("warplens.rules") && problems[2].contains("mem/stride"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_name_that_stands_for_nothing_hides_nothing() {
        let both = merged(
            "gpu = \"tesla-k40c\"\nmodel = \"wfg\"\ncompare = [\"gtx-280\"]\n",
            &json!(null),
            &json!({"gpu": "gtx281", "model": "best", "compare": ["none"]}),
        );
        assert_eq!(both.settings.gpu.as_deref(), Some("tesla-k40c"));
        assert_eq!(both.settings.model.as_deref(), Some("wfg"));
        assert_eq!(both.settings.compare, ["gtx-280"]);
    }

    #[test]
    fn an_answer_replaces_what_came_at_the_start_and_silence_does_not() {
        let mut editor = Editor::default();
        editor.set_initial(Some(&json!({"gpu": "gtx-280"})));
        editor.set_answer(Some(&Value::Null));
        assert_eq!(editor.settings()["gpu"], "gtx-280");
        editor.set_answer(Some(&json!({"model": "wfg"})));
        assert!(editor.settings().get("gpu").is_none());
        assert_eq!(editor.settings()["model"], "wfg");
    }
}
