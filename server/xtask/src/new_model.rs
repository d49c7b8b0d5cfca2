//! `cargo xtask new-model`: the module of a model that is to be written, its page, and its line in the registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use xtask::repository;

/// Begin a model: its module, its page, and its line in the registry
///
/// What it writes compiles, and answers that it does not apply. Options, settings, the schema, the editors and the lists of the
/// documentation follow with `cargo xtask generate`. CONTRIBUTING.md goes through it.
#[derive(Debug, Args)]
pub struct NewModel {
    /// Its name, such as mwp-cwp
    #[arg(value_name = "NAME")]
    name: String,
}

/// Where models are, below the repository's root.
const MODELS: &str = "server/models/src";

impl NewModel {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let root = repository::root();
        for file in begin(&self.name, &root)? {
            println!("wrote {file}");
        }
        println!(
            "\nNow write the model, its tests and its page, then\n    \
             cargo test -p warplens-models\n    cargo xtask generate"
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes what a model of this name begins with, below a repository's root; nothing where there is one. Returns what it wrote.
pub fn begin(name: &str, root: &Path) -> anyhow::Result<Vec<String>> {
    let word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    if !name.split('-').all(word) {
        bail!(
            "`{name}` is no name of a model: words of small letters and digits, a letter first, with hyphens between them"
        );
    }
    let module = name.replace('-', "_");
    let models = root.join(MODELS);
    let read = |path: &PathBuf| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (library, registry) = (models.join("lib.rs"), models.join("registry.rs"));
    let declared = with_module(&read(&library)?, &module)
        .with_context(|| format!("{MODELS}/lib.rs has a module {module}"))?;
    let registered = with_line(&read(&registry)?, &module)
        .with_context(|| format!("{MODELS}/registry.rs has no list of models"))?;
    let files = [
        (format!("{MODELS}/{module}.rs"), code(name)),
        (format!("docs/models/{name}.md"), page(name)),
        (format!("{MODELS}/lib.rs"), declared),
        (format!("{MODELS}/registry.rs"), registered),
    ];
    let mut written = Vec::new();
    for (file, text) in files {
        let path = root.join(&file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(file);
    }
    Ok(written)
}

/// The library with one more module, in the order of the names; `None` where it has that one.
fn with_module(library: &str, module: &str) -> Option<String> {
    let mut at = None;
    for (index, line) in library.lines().enumerate() {
        let declared = line.strip_prefix("pub mod ").or(line.strip_prefix("mod "));
        let Some(declared) = declared.and_then(|rest| rest.strip_suffix(';')) else {
            continue;
        };
        if declared == module {
            return None;
        }
        if at.is_none() || declared < module {
            at = Some(index + usize::from(declared < module));
        }
    }
    let mut lines: Vec<&str> = library.lines().collect();
    let line = format!("mod {module};");
    lines.insert(at?, &line);
    Some(lines.join("\n") + "\n")
}

/// The registry with one more line, the last of its list.
fn with_line(registry: &str, module: &str) -> Option<String> {
    let list = registry.find("\nmodels! {\n")?;
    let end = list + registry[list..].find("\n}\n")? + 1;
    let variant: String = module
        .split('_')
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect();
    let (before, after) = registry.split_at(end);
    let import = "\nuse crate::{";
    let names = before.find(import)? + import.len();
    let names_end = names + before[names..].find('}')?;
    let mut modules: Vec<&str> = before[names..names_end].split(", ").collect();
    modules.push(module);
    modules.sort_unstable();
    Some(format!(
        "{}{}{}    {variant} = {module},\n{after}",
        &before[..names],
        modules.join(", "),
        &before[names_end..]
    ))
}

fn code(name: &str) -> String {
    format!(
        "//! {name}: whose model it is, where it was published, and what it predicts.

use crate::Estimate;
use crate::entry::{{Answers, ModelEntry}};
use crate::work::Work;

/// Its line of the registry.
pub(crate) const MODEL: ModelEntry = ModelEntry {{
    name: \"{name}\",
    summary: \"What it is and whom it is after, in a few words\",
    answers: Answers::Equations,
    estimate: estimate_work,
    cycles: |work| estimate_work(work).cycles,
}};

/// The kernel under its launch in, cycles and their parts out; what is computed on the way is `detail`, under its published names.
fn estimate_work(_work: &Work) -> Estimate {{
    Estimate {{
        why: Some(\"{name} is not written yet\".to_owned()),
        ..Estimate::default()
    }}
}}
"
    )
}

fn page(name: &str) -> String {
    format!(
        "# {name}

Whose model it is and what it predicts.

## Inputs

To be written.

## Equations

To be written: by their numbers, and where ours differ.

## When it misleads

To be written.
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join(MODELS)).unwrap();
        fs::create_dir_all(root.join("docs/models")).unwrap();
        fs::write(
            root.join(MODELS).join("lib.rs"),
            "//! Models.\n\npub mod auto;\nmod registry;\npub mod wfg;\n\nuse x;\n",
        )
        .unwrap();
        fs::write(
            root.join(MODELS).join("registry.rs"),
            "//! The registry.\n\nuse crate::{auto, wfg};\n\nmodels! {\n    Auto = auto,\n    Wfg = wfg,\n}\n\nimpl X {\n}\n",
        )
        .unwrap();
        folder
    }

    #[test]
    fn a_model_is_a_module_a_page_and_a_line_of_the_registry() {
        let folder = place();
        let root = folder.path();
        begin("roof-line", root).unwrap();
        let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
        assert_eq!(
            read("server/models/src/lib.rs"),
            "//! Models.\n\npub mod auto;\nmod registry;\nmod roof_line;\npub mod wfg;\n\nuse x;\n"
        );
        assert_eq!(
            read("server/models/src/registry.rs"),
            "//! The registry.\n\nuse crate::{auto, roof_line, wfg};\n\nmodels! {\n    Auto = auto,\n    Wfg = wfg,\n    RoofLine = roof_line,\n}\n\nimpl X {\n}\n"
        );
        assert!(read("docs/models/roof-line.md").starts_with("# roof-line\n"));
        assert!(read("server/models/src/roof_line.rs").contains("name: \"roof-line\""));
    }

    #[test]
    fn a_model_that_is_there_and_a_name_that_is_none_change_nothing() {
        let folder = place();
        let root = folder.path();
        let error = begin("wfg", root).unwrap_err();
        assert!(error.to_string().contains("has a module wfg"), "{error}");
        for wrong in ["", "Wfg", "a--b", "a_b", "1a", "../x", "a b"] {
            assert!(begin(wrong, root).is_err(), "{wrong}");
        }
        assert!(!root.join("docs/models/wfg.md").exists());
    }
}
