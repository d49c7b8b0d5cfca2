//! Settings: from the editor, from `warplens.toml`, chosen in the session; wrong ones are told where they stand.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Client, Setup, codes, document, range, strided};

/// A folder with a kernel and a `warplens.toml`.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(toml: &str) -> Project {
        let project = Project {
            folder: tempfile::tempdir().expect("a folder"),
        };
        std::fs::create_dir(project.path().join("src")).expect("a folder");
        project.write(toml);
        project
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, toml: &str) {
        std::fs::write(self.path().join("warplens.toml"), toml).expect("a file");
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path().join(name).display())
    }

    fn kernel(&self) -> String {
        self.uri("src/copy.cu")
    }

    fn toml(&self) -> String {
        self.uri("warplens.toml")
    }

    async fn start(&self, setup: Setup) -> Client {
        let folder = format!("file://{}", self.path().display());
        Client::start(Setup {
            folder: Some(folder),
            ..setup
        })
        .await
    }
}

async fn lens(client: &mut Client, uri: &str) -> String {
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    lenses[0]["command"]["title"]
        .as_str()
        .expect("a lens")
        .to_owned()
}

/// The diagnostics published next for a file, whatever their version.
async fn next(client: &mut Client, uri: &str) -> Vec<Value> {
    let mut params = client.notification("textDocument/publishDiagnostics").await;
    assert_eq!(params["uri"], uri, "{params}");
    params["diagnostics"]
        .take()
        .as_array()
        .expect("a list")
        .clone()
}

#[tokio::test]
async fn the_editor_goes_before_the_file() {
    let project = Project::new("gpu = \"tesla-k40c\"\n");
    let mut client = project.start(Setup::default()).await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(1))
        .await;
    client.published(&project.kernel(), 1).await;
    assert!(lens(&mut client, &project.kernel()).await.contains("K40c"));
    client
        .notify(
            "workspace/didChangeConfiguration",
            json!({"settings": {"warplens": {"gpu": "gtx-280"}}}),
        )
        .await;
    client.published(&project.kernel(), 1).await;
    assert!(
        lens(&mut client, &project.kernel())
            .await
            .contains("GTX 280")
    );
    client.finish().await;
}

#[tokio::test]
async fn initialization_options_are_settings() {
    let options = json!({"gpu": "gtx-280"});
    let mut client = Client::start(Setup {
        options,
        ..Setup::default()
    })
    .await;
    client.open("file:///a.cu", "cuda-cpp", &strided(1)).await;
    client.published("file:///a.cu", 1).await;
    assert!(lens(&mut client, "file:///a.cu").await.contains("GTX 280"));
    client.finish().await;
}

#[tokio::test]
async fn a_client_that_answers_is_asked() {
    let capabilities = json!({"workspace": {"configuration": true,
        "codeLens": {"refreshSupport": true}, "inlayHint": {"refreshSupport": true}}});
    let setup = Setup {
        capabilities,
        settings: json!({"gpu": "gtx-280"}),
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.open("file:///a.cu", "cuda-cpp", &strided(1)).await;
    client.until_asked("workspace/configuration").await;
    while !lens(&mut client, "file:///a.cu").await.contains("GTX 280") {}
    // What is shown by then is no longer true once the answer is another.
    client.asked.clear();
    client.settings = json!({"gpu": "h100-sxm5"});
    let change = json!({"settings": null});
    client
        .notify("workspace/didChangeConfiguration", change)
        .await;
    client.until_asked("workspace/configuration").await;
    client.until_asked("workspace/codeLens/refresh").await;
    client.until_asked("workspace/inlayHint/refresh").await;
    assert!(lens(&mut client, "file:///a.cu").await.contains("H100"));
    // Published before, after, or both times: the settings came whenever they came.
    client.published("file:///a.cu", 1).await;
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_value_that_is_taken_out_of_the_settings_is_gone() {
    let capabilities = json!({"workspace": {"configuration": true}});
    let setup = Setup {
        capabilities,
        // As editors do it: the settings of the moment, here and when asked.
        options: json!({"gpu": "gtx-280", "model": "wfg"}),
        settings: json!({"gpu": "gtx-280", "model": "wfg"}),
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.until_asked("workspace/configuration").await;
    client.open("file:///a.cu", "cuda-cpp", &strided(1)).await;
    client.published("file:///a.cu", 1).await;
    assert!(lens(&mut client, "file:///a.cu").await.contains("GTX 280"));
    client.settings = json!({"model": "wfg"});
    client
        .notify(
            "workspace/didChangeConfiguration",
            json!({"settings": null}),
        )
        .await;
    client.published("file:///a.cu", 1).await;
    let title = lens(&mut client, "file:///a.cu").await;
    assert!(title.contains("A100"), "{title}");
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn who_has_nothing_to_answer_keeps_what_it_said_at_the_start() {
    let capabilities = json!({"workspace": {"configuration": true}});
    let setup = Setup {
        capabilities,
        options: json!({"gpu": "gtx-280"}),
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.until_asked("workspace/configuration").await;
    client.open("file:///a.cu", "cuda-cpp", &strided(1)).await;
    client.published("file:///a.cu", 1).await;
    assert!(lens(&mut client, "file:///a.cu").await.contains("GTX 280"));
    client.finish().await;
}

#[tokio::test]
async fn a_payload_counts_also_from_a_client_that_could_be_asked() {
    let capabilities = json!({"workspace": {"configuration": true}});
    let mut client = Client::start(Setup {
        capabilities,
        ..Setup::default()
    })
    .await;
    client.until_asked("workspace/configuration").await;
    client.open("file:///a.cu", "cuda-cpp", &strided(1)).await;
    client.published("file:///a.cu", 1).await;
    let settings = json!({"settings": {"warplens": {"gpu": "gtx-280"}}});
    client
        .notify("workspace/didChangeConfiguration", settings)
        .await;
    assert!(lens(&mut client, "file:///a.cu").await.contains("GTX 280"));
    client.published("file:///a.cu", 1).await;
    client.finish().await;
}

#[tokio::test]
async fn a_saved_file_is_read_again() {
    let project = Project::new("gpu = \"tesla-k40c\"\n");
    let mut client = project.start(Setup::default()).await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(1))
        .await;
    client.published(&project.kernel(), 1).await;
    project.write("gpu = \"v100-sxm2-16gb\"\n");
    let changes = json!({"changes": [{"uri": project.toml(), "type": 2}]});
    client
        .notify("workspace/didChangeWatchedFiles", changes)
        .await;
    client.published(&project.kernel(), 1).await;
    assert!(lens(&mut client, &project.kernel()).await.contains("V100"));
    client.finish().await;
}

#[tokio::test]
async fn files_are_watched_where_the_client_lets_us() {
    let capabilities =
        json!({"workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
    let mut client = Client::start(Setup {
        capabilities,
        ..Setup::default()
    })
    .await;
    client.until_asked("client/registerCapability").await;
    client.finish().await;
}

#[tokio::test]
async fn an_unsaved_file_counts_as_it_stands_in_the_editor() {
    let project = Project::new("gpu = \"tesla-k40c\"\n");
    let mut client = project.start(Setup::default()).await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(1))
        .await;
    client.published(&project.kernel(), 1).await;
    client
        .open(&project.toml(), "toml", "gpu = \"gtx-280\"\n")
        .await;
    assert!(
        lens(&mut client, &project.kernel())
            .await
            .contains("GTX 280")
    );
    client
        .edit(&project.toml(), 2, [0, 7, 0, 14], "v100-sxm2-16gb")
        .await;
    assert!(lens(&mut client, &project.kernel()).await.contains("V100"));
    client.close(&project.toml()).await;
    assert!(
        lens(&mut client, &project.kernel()).await.contains("K40c"),
        "the disk counts again"
    );
    while let Some(message) = client.notifications.pop_front() {
        assert_eq!(
            message["params"]["diagnostics"],
            json!([]),
            "nothing was wrong"
        );
    }
    client.finish().await;
}

#[tokio::test]
async fn a_broken_file_is_told_in_the_file_and_the_rest_goes_on() {
    let project = Project::new("gpu = \"gtx-280\"\nassume = { n = \"many\" }\n");
    let mut client = project.start(Setup::default()).await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(32))
        .await;
    assert!(!client.published(&project.kernel(), 1).await.is_empty());
    let problems = next(&mut client, &project.toml()).await;
    assert_eq!(codes(&problems), ["config/invalid"]);
    assert_eq!(problems[0]["severity"], 1);
    assert_eq!(problems[0]["range"]["start"]["line"], 1, "{problems:?}");
    assert!(
        lens(&mut client, &project.kernel())
            .await
            .contains("GTX 280"),
        "what is right holds"
    );
    project.write("gpu = \"gtx-280\"\n");
    let changes = json!({"changes": [{"uri": project.toml(), "type": 2}]});
    client
        .notify("workspace/didChangeWatchedFiles", changes)
        .await;
    client.published(&project.kernel(), 1).await;
    assert!(
        next(&mut client, &project.toml()).await.is_empty(),
        "taken back when it is right"
    );
    client.finish().await;
}

#[tokio::test]
async fn an_unknown_gpu_in_the_file_is_told_there_with_the_nearest_name() {
    let project = Project::new("");
    let mut client = project.start(Setup::default()).await;
    client
        .open(
            &project.toml(),
            "toml",
            "model = \"auto\"\ngpu = \"a100-sxm4-40g\"\n",
        )
        .await;
    let problems = client.published(&project.toml(), 1).await;
    assert_eq!(codes(&problems), ["config/invalid"]);
    assert_eq!(problems[0]["range"], range([1, 6, 1, 21]));
    let message = problems[0]["message"].as_str().expect("a message");
    assert!(message.contains("a100-sxm4-40gb"), "{message}");
    client
        .open(&project.kernel(), "cuda-cpp", &strided(32))
        .await;
    assert_eq!(
        codes(&client.published(&project.kernel(), 1).await),
        ["mem/strided"]
    );
    assert!(
        lens(&mut client, &project.kernel()).await.contains("A100"),
        "the default applies"
    );
    client.edit(&project.toml(), 2, [1, 20, 1, 20], "b").await;
    loop {
        let params = client.notification("textDocument/publishDiagnostics").await;
        if params["uri"] == json!(project.toml()) {
            assert_eq!(params["diagnostics"], json!([]));
            break;
        }
    }
    client
        .ask("textDocument/codeLens", document(&project.kernel()))
        .await;
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn an_unknown_gpu_in_the_editor_is_told_once() {
    let options = json!({"gpu": "h100sxm"});
    let mut client = Client::start(Setup {
        options,
        ..Setup::default()
    })
    .await;
    client.open("file:///a.cu", "cuda-cpp", &strided(32)).await;
    client.published("file:///a.cu", 1).await;
    let told = client.notification("window/showMessage").await;
    let logged = client.notification("window/logMessage").await;
    assert_eq!(logged, told);
    let message = told["message"].as_str().expect("a message");
    assert!(
        message.contains("h100sxm") && message.contains("h100-sxm5"),
        "{message}"
    );
    client.edit("file:///a.cu", 2, [0, 0, 0, 0], "\n").await;
    assert_eq!(
        codes(&client.published("file:///a.cu", 2).await),
        ["mem/strided"]
    );
    client.finish().await;
}

#[tokio::test]
async fn a_workspace_brings_profiles_and_a_broken_one_is_told() {
    let mine = include_str!("../../../../hw-profiles/a100-sxm4-40gb.toml");
    let project = Project::new("gpu = \"ours\"\n");
    let profiles = project.path().join(".warplens/profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    let ours = mine
        .replace("a100-sxm4-40gb", "ours")
        .replace("NVIDIA A100", "Our A100");
    std::fs::write(profiles.join("ours.toml"), ours).expect("a file");
    let broken = mine.replace("value = 108", "value = 0");
    std::fs::write(profiles.join("broken.toml"), broken).expect("a file");
    let mut client = project.start(Setup::default()).await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(32))
        .await;
    client.published(&project.kernel(), 1).await;
    let told = client.notification("window/showMessage").await;
    let logged = client.notification("window/logMessage").await;
    assert_eq!(logged, told);
    let message = told["message"].as_str().expect("a message");
    assert!(
        message.contains("broken.toml:8:17: sms: must be"),
        "{message}"
    );
    let title = lens(&mut client, &project.kernel()).await;
    assert!(title.contains("Our A100"), "{title}");
    client.finish().await;
}

#[tokio::test]
async fn pulled_reports_bring_the_files_problems_along() {
    let project = Project::new("gpu = \"none\"\n");
    let capabilities = json!({"textDocument": {"diagnostic": {"relatedDocumentSupport": true}}});
    let mut client = project
        .start(Setup {
            capabilities,
            ..Setup::default()
        })
        .await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(32))
        .await;
    let report = client
        .ask("textDocument/diagnostic", document(&project.kernel()))
        .await;
    let related = &report["relatedDocuments"][project.toml()];
    assert_eq!(related["items"][0]["code"], "config/invalid", "{report:#}");
    client.open(&project.toml(), "toml", "gpu = 3\n").await;
    let report = client
        .ask("textDocument/diagnostic", document(&project.toml()))
        .await;
    assert_eq!(report["items"][0]["code"], "config/invalid", "{report:#}");
    client.finish().await;
}

#[tokio::test]
async fn hints_and_lenses_can_be_switched_off() {
    let options = json!({"inlayHints": {"enable": false}, "codeLens": {"enable": false}});
    let mut client = Client::start(Setup {
        options,
        ..Setup::default()
    })
    .await;
    client.open("file:///a.cu", "cuda-cpp", &strided(32)).await;
    client.published("file:///a.cu", 1).await;
    assert_eq!(
        client
            .ask("textDocument/codeLens", document("file:///a.cu"))
            .await,
        json!([])
    );
    let hints = json!({"textDocument": {"uri": "file:///a.cu"}, "range": range([0, 0, 9, 0])});
    assert_eq!(client.ask("textDocument/inlayHint", hints).await, json!([]));
    client.finish().await;
}

/// A model that simulates refines what is shown once it has run; until then the analytical estimate is shown.
#[tokio::test]
async fn a_model_that_simulates_refines_the_lens() {
    let project = Project::new("gpu = \"gtx-280\"\nmodel = \"timing\"\n");
    let refreshes = json!({"workspace": {"codeLens": {"refreshSupport": true}}});
    let setup = Setup {
        capabilities: refreshes,
        ..Setup::default()
    };
    let mut client = project.start(setup).await;
    client
        .open(&project.kernel(), "cuda-cpp", &strided(32))
        .await;
    client.published(&project.kernel(), 1).await;
    client.until_asked("workspace/codeLens/refresh").await;
    let title = lens(&mut client, &project.kernel()).await;
    let kernel = json!({"uri": project.kernel(), "kernel": "copy"});
    let page = client.command("warplens.breakdown", kernel).await;
    let page = page["markdown"].as_str().expect("a page");
    let row = |model: &str| {
        let mut rows = page.lines();
        let row = rows.find(|line| line.starts_with(&format!("| {model} ")));
        let time = row.and_then(|row| row.split('|').nth(2));
        time.unwrap_or_else(|| panic!("{model} in {page}")).trim()
    };
    let shown = title.split(" · ").next().expect("a time");
    assert_eq!(shown, row("timing"), "{page}");
    assert_ne!(shown, row("auto"), "{page}");
    client.finish().await;
}
