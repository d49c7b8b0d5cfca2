//! No prediction of a kernel of ours says what cannot be: nothing vanishes, nothing is absurd.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{
    Cancel, Document, Engine, Language, Overrides, Project, Variants, language_by_content,
};
use warplens_machine::Profiles;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path
            .extension()
            .is_some_and(|kind| ["cu", "cl", "hip"].iter().any(|of| kind == *of))
        {
            found.push(path);
        }
    }
}

#[test]
fn nothing_vanishes_and_nothing_is_absurd() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut files = Vec::new();
    for folder in ["kernels", "corpus"] {
        sources(&root.join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() > 40, "{} files", files.len());
    let project = Project::new(Arc::new(DiskFiles::new()), vec![root]);
    let engine = Engine::with_project(Profiles::builtin(), project);
    let overrides = Overrides {
        variants: Variants::All,
        ..Overrides::default()
    };
    let mut defects = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a source");
        let document = Document::new(
            &text,
            language_by_content(Language::from_path(&path), &text),
        );
        let file = engine
            .analyze(
                &document,
                &path,
                &Settings::default(),
                &overrides,
                &Cancel::default(),
            )
            .expect("not cancelled");
        for kernel in &file.kernels {
            let cycles = kernel.analysis.estimate().cycles;
            for defect in kernel.analysis.input.defects(cycles) {
                let name = &kernel.analysis.facts.name;
                defects.push(format!("{}: {name}: {defect}", path.display()));
            }
        }
    }
    assert!(defects.is_empty(), "{}", defects.join("\n"));
}
