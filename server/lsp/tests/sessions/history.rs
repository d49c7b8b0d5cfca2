//! What an editor shows is what the command line prints: of files opened one after the other, in two orders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{Document, Engine, Language, Overrides, Profiles, Project};

use crate::client::{Client, Setup, document};

/// Line, rule and words of each finding.
type Findings = Vec<(u64, String, String)>;

fn tests(folder: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    std::fs::canonicalize(tests.join(folder)).expect("the tests")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if Language::from_path(&path).is_some() {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// What `warplens check` says of a file, as one of many.
fn checked(engine: &Engine, path: &Path, text: &str) -> Findings {
    let language = warplens_db::language_by_content(Language::from_path(path), text);
    let document = Document::new(text, language);
    let (found, ..) = engine.check(&document, path, &Settings::default(), &Overrides::default());
    let one = |finding: warplens_db::wire::Diagnostic| {
        (u64::from(finding.line - 1), finding.rule, finding.message)
    };
    let mut found: Findings = found.into_iter().map(one).collect();
    found.sort();
    found
}

async fn shown(client: &mut Client, uri: &str) -> Findings {
    let report = client.ask("textDocument/diagnostic", document(uri)).await;
    let items = report["items"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut found: Findings = items
        .map(|item| {
            let line = item["range"]["start"]["line"].as_u64().expect("a line");
            (line, text(&item["code"]), text(&item["message"]))
        })
        .collect();
    found.sort();
    found
}

async fn is_as_checked(folder: &str, backwards: bool) {
    let root = tests(folder);
    let mut files = files(&root);
    assert!(files.len() > 5, "{files:?}");
    if backwards {
        files.reverse();
    }
    let project = Project::new(Arc::new(DiskFiles::new()), vec![root.clone()]);
    let engine = Engine::for_many_files(Profiles::builtin(), project);
    let mut client = Client::start(Setup {
        folder: Some(format!("file://{}", root.display())),
        capabilities: json!({"textDocument": {"diagnostic": {}}}),
        ..Setup::default()
    })
    .await;
    let mut open = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("text");
        let uri = format!("file://{}", path.display());
        let id = match Language::from_path(&path) {
            Some(Language::OpenCl) => "opencl",
            Some(Language::Hip) => "hip",
            _ => "cuda-cpp",
        };
        client.open(&uri, id, &text).await;
        // Half of them are asked about before the next one is opened.
        if open.len() % 2 == 0 {
            assert_eq!(
                shown(&mut client, &uri).await,
                checked(&engine, &path, &text)
            );
        }
        open.push((uri, path, text));
    }
    for (uri, path, text) in &open {
        let checked = checked(&engine, path, text);
        assert_eq!(shown(&mut client, uri).await, checked, "{}", path.display());
    }
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_corpus_is_shown_as_it_is_checked() {
    is_as_checked("corpus", false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_kernels_are_shown_as_they_are_checked() {
    is_as_checked("kernels", true).await;
}
