//! What the command line prints about files, by file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use xtask::process::captured;

use super::Look;

/// How a call is made.
pub struct Asked<'a> {
    /// From which folder.
    pub folder: &'a Path,
    pub threads: usize,
}

impl Look<'_> {
    /// `check` of these; none where it did not end in time.
    pub fn checked(
        &self,
        paths: &[PathBuf],
        ask: &Asked<'_>,
        limit: Duration,
    ) -> anyhow::Result<Option<BTreeMap<PathBuf, Value>>> {
        let words = ["check", "--format", "json", "--stats", "--losses"];
        let Some(mut document) = self.document(&words, paths, ask, limit)? else {
            return Ok(None);
        };
        let mut of_files = BTreeMap::new();
        let mut put = |part: &str, mut values: Value| {
            for value in values.as_array_mut().into_iter().flatten() {
                // What another file repeats is said of many files only.
                if let Some(value) = value.as_object_mut() {
                    value.remove("same_as");
                }
                let path = PathBuf::from(value["file"].as_str().unwrap_or_default());
                let said: &mut Value = of_files.entry(path).or_insert_with(|| json!({}));
                match said[part].as_array_mut() {
                    Some(said) => said.push(value.take()),
                    None => said[part] = json!([value.take()]),
                }
            }
        };
        put("diagnostics", document["diagnostics"].take());
        put("losses", document["stats"]["losses"].take());
        Ok(Some(of_files))
    }

    /// `estimate` of these with all models; none where it did not end in time.
    pub fn estimated(
        &self,
        paths: &[PathBuf],
        ask: &Asked<'_>,
        limit: Duration,
    ) -> anyhow::Result<Option<BTreeMap<PathBuf, Value>>> {
        let words = ["estimate", "--format", "json", "--model", "all"];
        let Some(mut document) = self.document(&words, paths, ask, limit)? else {
            return Ok(None);
        };
        let none = paths.iter().map(|path| (path.clone(), json!([])));
        let mut of_files: BTreeMap<PathBuf, Value> = none.collect();
        for result in document["results"].as_array_mut().into_iter().flatten() {
            let path = PathBuf::from(result["file"].as_str().unwrap_or_default());
            let said = of_files.entry(path).or_insert_with(|| json!([]));
            if let Some(said) = said.as_array_mut() {
                said.push(result.take());
            }
        }
        Ok(Some(of_files))
    }

    /// What one call prints, with the files' names from the top.
    fn document(
        &self,
        words: &[&str],
        paths: &[PathBuf],
        ask: &Asked<'_>,
        limit: Duration,
    ) -> anyhow::Result<Option<Value>> {
        let mut command = Command::new(self.bin);
        command
            .args(words)
            .current_dir(ask.folder)
            .env("RAYON_NUM_THREADS", ask.threads.to_string());
        for path in paths {
            let inside = path.strip_prefix(ask.folder);
            let inside = inside.ok().filter(|inside| *inside != Path::new(""));
            command.arg(inside.unwrap_or(path));
        }
        let said = captured(&mut command, limit)?;
        if said.out.is_empty() && said.errors.starts_with("ended after ") {
            return Ok(None);
        }
        let document: Result<Value, _> = serde_json::from_str(&said.out);
        // A file without kernels that can be estimated is refused, by itself.
        let mut document = document.unwrap_or_else(|_| json!({"refused": said.errors}));
        name_from(ask.folder, &mut document);
        Ok(Some(document))
    }
}

/// Puts the folder in front of the names of files.
fn name_from(folder: &Path, value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match (key.as_str(), &mut *value) {
                    ("file", Value::String(file)) => {
                        *file = folder.join(&*file).display().to_string();
                    }
                    _ => name_from(folder, value),
                }
            }
        }
        Value::Array(array) => {
            for value in array {
                name_from(folder, value);
            }
        }
        _ => {}
    }
}
