//! Parts of the protocol that no feature is named after: refreshing, resolving, folders, names, line ends, traces.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Setup, at, codes, document, range, strided};

const URI: &str = "file:///code/copy.cu";

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn hints(uri: &str) -> Value {
    json!({"textDocument": {"uri": uri}, "range": range([0, 0, 99, 0])})
}

fn refreshes() -> Value {
    json!({
        "workspace": {
            "inlayHint": {"refreshSupport": true},
            "codeLens": {"refreshSupport": true},
            "diagnostics": {"refreshSupport": true},
        },
        "textDocument": {"diagnostic": {}},
    })
}

async fn target(client: &mut Client, uri: &str) -> String {
    let answer = client
        .command("warplens.estimate", json!({"uri": uri}))
        .await;
    answer["results"][0]["gpu"]
        .as_str()
        .expect("a GPU")
        .to_owned()
}

/// What the server asked the client so far, once what is under way has come.
async fn asked(client: &mut Client) -> Vec<String> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Answered behind whatever was sent before.
    client.ask("textDocument/hover", at(URI, 0, 0)).await;
    let mut asked = std::mem::take(&mut client.asked);
    asked.sort();
    asked
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_is_told_to_ask_again_only_when_something_changed() {
    let all = [
        "workspace/codeLens/refresh",
        "workspace/diagnostic/refresh",
        "workspace/inlayHint/refresh",
    ];
    let mut client = Client::start(Setup {
        capabilities: refreshes(),
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.ask("textDocument/diagnostic", document(URI)).await;
    client.ask("textDocument/inlayHint", hints(URI)).await;
    let none = Vec::<String>::new();
    assert_eq!(asked(&mut client).await, none, "nothing changed");

    // An edit is the client's own: it asks by itself.
    client.edit(URI, 2, [2, 16, 2, 18], "16").await;
    client.ask("textDocument/diagnostic", document(URI)).await;
    assert_eq!(asked(&mut client).await, none, "an edit");

    client
        .command("warplens.selectGpu", json!({"gpu": "gtx-280"}))
        .await;
    client.ask("textDocument/diagnostic", document(URI)).await;
    assert_eq!(asked(&mut client).await, all, "another GPU");
    client
        .command("warplens.selectGpu", json!({"gpu": "gtx-280"}))
        .await;
    client.ask("textDocument/diagnostic", document(URI)).await;
    assert_eq!(asked(&mut client).await, none, "the same GPU again");

    let saved = json!({"changes": [{"uri": "file:///code/elsewhere.h", "type": 2}]});
    client
        .notify("workspace/didChangeWatchedFiles", saved)
        .await;
    client.ask("textDocument/diagnostic", document(URI)).await;
    assert_eq!(
        asked(&mut client).await,
        none,
        "a file that no document includes"
    );

    let settings = json!({"settings": {"warplens": {"inlayHints": {"enable": false}}}});
    client
        .notify("workspace/didChangeConfiguration", settings)
        .await;
    client.ask("textDocument/diagnostic", document(URI)).await;
    assert_eq!(asked(&mut client).await, all, "hints switched off");
    client.finish().await;
}

#[tokio::test]
async fn a_tooltip_is_made_when_it_is_asked_for() {
    let eager = Client::start(Setup::default()).await;
    let later =
        json!({"textDocument": {"inlayHint": {"resolveSupport": {"properties": ["tooltip"]}}}});
    let mut later = Client::start(Setup {
        capabilities: later,
        ..Setup::default()
    })
    .await;
    let provider = &later.initialized["capabilities"]["inlayHintProvider"];
    assert_eq!(provider["resolveProvider"], true);
    let mut tooltips = Vec::new();
    for client in [
        eager,
        std::mem::replace(&mut later, Client::start(Setup::default()).await),
    ] {
        let mut client = client;
        client.open(URI, "cuda-cpp", &strided(32)).await;
        client.published(URI, 1).await;
        let shown = client.ask("textDocument/inlayHint", hints(URI)).await;
        let mut of_client = Vec::new();
        for hint in shown.as_array().expect("hints") {
            if tooltips.is_empty() {
                assert!(
                    hint["tooltip"]["value"].is_string() && hint["data"].is_null(),
                    "{hint}"
                );
            } else {
                assert!(
                    hint["tooltip"].is_null() && hint["data"].is_object(),
                    "{hint}"
                );
            }
            // One that has it comes back as it is.
            let whole = client.ask("inlayHint/resolve", hint.clone()).await;
            assert_eq!(whole["label"], hint["label"]);
            of_client.push(whole["tooltip"].clone());
        }
        assert!(!of_client.is_empty());
        tooltips.push(of_client);
        // What is gone has nothing to tell, and nonsense is refused.
        let gone = json!({"position": {"line": 2, "character": 0}, "label": "x", "data": {"uri": "file:///gone.cu"}});
        assert_eq!(client.ask("inlayHint/resolve", gone.clone()).await, gone);
        let odd = json!({"position": {"line": 2, "character": 0}, "label": "x", "data": 5});
        assert_eq!(
            client.ask_wrongly("inlayHint/resolve", odd).await["code"],
            -32602
        );
        client.finish().await;
    }
    assert_eq!(tooltips[0], tooltips[1], "the same words sooner or later");
    later.finish().await;
}

#[tokio::test]
async fn a_client_without_markdown_gets_plain_text() {
    for (formats, kind) in [
        (json!(["plaintext"]), "plaintext"),
        (json!(["markdown", "plaintext"]), "markdown"),
    ] {
        let mut client = Client::start(Setup {
            capabilities: json!({"textDocument": {"hover": {"contentFormat": formats}}}),
            ..Setup::default()
        })
        .await;
        client.open(URI, "cuda-cpp", &strided(32)).await;
        client.published(URI, 1).await;
        // The line, and the kernel by its name.
        for (line, character, part) in [(2, 13, "32 sectors, ideal 4"), (0, 17, "copy")] {
            let hover = client
                .ask("textDocument/hover", at(URI, line, character))
                .await;
            assert_eq!(hover["contents"]["kind"], kind);
            let text = hover["contents"]["value"].as_str().expect("text");
            assert!(text.contains(part), "{text}");
            let marks = ["| ", "`", "**", "---", "## "];
            let marked = marks.iter().any(|mark| text.contains(mark));
            assert_eq!(marked, kind == "markdown", "{text}");
        }
        let shown = client.ask("textDocument/inlayHint", hints(URI)).await;
        assert_eq!(shown[0]["tooltip"]["kind"], kind);
        client.finish().await;
    }
}

#[tokio::test]
async fn each_folder_has_its_own_settings() {
    let folders = [
        TempDir::new().expect("a folder"),
        TempDir::new().expect("a folder"),
    ];
    let mut kernels = Vec::new();
    for (folder, gpu) in folders.iter().zip(["gtx-280", "h100-sxm5"]) {
        let toml = format!("gpu = \"{gpu}\"\n");
        fs::write(folder.path().join("warplens.toml"), toml).expect("written");
        kernels.push(uri(&folder.path().join("copy.cu")));
    }
    let mut client = Client::start(Setup {
        folder: Some(uri(folders[0].path())),
        ..Setup::default()
    })
    .await;
    for kernel in &kernels {
        client.open(kernel, "cuda-cpp", &strided(32)).await;
        client.published(kernel, 1).await;
    }
    assert_eq!(target(&mut client, &kernels[0]).await, "gtx-280");
    let folder = json!([{"uri": uri(folders[1].path()), "name": "second"}]);
    let change = json!({"event": {"added": folder, "removed": []}});
    client
        .notify("workspace/didChangeWorkspaceFolders", change)
        .await;
    assert_eq!(target(&mut client, &kernels[0]).await, "gtx-280");
    assert_eq!(target(&mut client, &kernels[1]).await, "h100-sxm5");
    let change = json!({"event": {"added": [], "removed": folder}});
    client
        .notify("workspace/didChangeWorkspaceFolders", change)
        .await;
    // The other folder stays as it was.
    assert_eq!(target(&mut client, &kernels[0]).await, "gtx-280");
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn what_was_chosen_for_a_file_goes_with_its_new_name() {
    let folder = TempDir::new().expect("a folder");
    let text =
        format!("#include \"width.h\"\n{}", strided(1)).replace("in[1 * i]", "in[WIDTH * i]");
    fs::write(folder.path().join("old.h"), "#define WIDTH 32\n").expect("written");
    fs::write(folder.path().join("copy.cu"), &text).expect("written");
    let (old, new) = (
        uri(&folder.path().join("copy.cu")),
        uri(&folder.path().join("moved/copy.cu")),
    );
    let mut client = Client::start(Setup {
        folder: Some(uri(folder.path())),
        ..Setup::default()
    })
    .await;
    let renames = &client.initialized["capabilities"]["workspace"]["fileOperations"]["didRename"];
    assert_eq!(renames["filters"].as_array().expect("filters").len(), 2);
    client.open(&old, "cuda-cpp", &text).await;
    client
        .command("warplens.selectGpu", json!({"uri": old, "gpu": "gtx-280"}))
        .await;
    let launch = json!({"uri": old, "kernel": "copy", "block": [64], "grid": [8]});
    client.command("warplens.setLaunch", launch).await;
    assert_eq!(target(&mut client, &old).await, "gtx-280");

    // The file and the header are renamed; the client closes and opens the file by itself.
    fs::create_dir(folder.path().join("moved")).expect("a folder");
    fs::rename(
        folder.path().join("copy.cu"),
        folder.path().join("moved/copy.cu"),
    )
    .expect("moved");
    fs::rename(
        folder.path().join("old.h"),
        folder.path().join("moved/width.h"),
    )
    .expect("moved");
    client.close(&old).await;
    client.open(&new, "cuda-cpp", &text).await;
    let files = json!({"files": [
        {"oldUri": old, "newUri": new},
        {"oldUri": uri(&folder.path().join("old.h")), "newUri": uri(&folder.path().join("moved/width.h"))},
        {"oldUri": "no URI", "newUri": ""},
    ]});
    client.notify("workspace/didRenameFiles", files).await;
    let answer = client
        .command("warplens.estimate", json!({"uri": new}))
        .await;
    let result = &answer["results"][0];
    assert_eq!(result["gpu"], "gtx-280");
    assert_eq!(result["launch"]["block"], json!([64, 1, 1]));
    let rules = answer["diagnostics"].as_array().expect("a list");
    assert!(
        rules.iter().any(|one| one["rule"] == "mem/strided"),
        "the header is found under its new name: {rules:?}"
    );

    // And a folder with all that is in it.
    let again = uri(&folder.path().join("last/copy.cu"));
    fs::rename(folder.path().join("moved"), folder.path().join("last")).expect("moved");
    client.close(&new).await;
    client.open(&again, "cuda-cpp", &text).await;
    let files = json!({"files": [
        {"oldUri": uri(&folder.path().join("moved")), "newUri": uri(&folder.path().join("last"))},
    ]});
    client.notify("workspace/didRenameFiles", files).await;
    assert_eq!(target(&mut client, &again).await, "gtx-280");
    client.notifications.clear();
    client.finish().await;
}

#[tokio::test]
async fn a_document_opened_twice_is_the_second_one() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.open(URI, "cuda-cpp", &strided(1)).await;
    let hover = client.ask("textDocument/hover", at(URI, 2, 13)).await;
    assert!(hover.to_string().contains("in[1 * i]"), "{hover}");
    // Edits are of the second text, and one close closes it.
    client.edit(URI, 2, [2, 16, 2, 17], "32").await;
    assert_eq!(codes(&client.published(URI, 2).await), ["mem/strided"]);
    client.close(URI).await;
    let params = client.notification("textDocument/publishDiagnostics").await;
    assert_eq!(params, json!({"uri": URI, "diagnostics": []}));
    assert_eq!(
        client.ask("textDocument/hover", at(URI, 2, 13)).await,
        Value::Null
    );
    client.finish().await;
}

/// Tabs are one column; LF, CR LF and CR end lines, nothing else does.
#[tokio::test]
async fn lines_end_where_the_protocol_says_and_tabs_are_one_character() {
    for end in ["\n", "\r\n", "\r"] {
        let mut client = Client::start(Setup::default()).await;
        let text = format!(
            "// form feed \u{c}, next line \u{85}, separators \u{2028} and \u{2029}{end}\
             __global__ void copy(float *out, const float *in) {{{end}\
             \tint i = blockIdx.x * blockDim.x + threadIdx.x;{end}\
             \t\tout[i] = in[32 * i];\t// 🚀{end}}}{end}"
        );
        client.open(URI, "cuda-cpp", &text).await;
        let found = client.published(URI, 1).await;
        assert_eq!(codes(&found), ["mem/strided"], "{end:?}");
        assert_eq!(found[0]["range"], range([3, 11, 3, 21]), "{end:?}");
        let shown = client.ask("textDocument/inlayHint", hints(URI)).await;
        let strided = shown.as_array().expect("hints").iter();
        let strided: Vec<_> = strided
            .filter(|hint| hint["position"]["line"] == 3)
            .collect();
        // Two tabs, the statement, a tab, `// ` and a rocket of two units.
        assert_eq!(strided[0]["position"]["character"], 28, "{end:?}");
        client.edit(URI, 2, [3, 14, 3, 19], "").await;
        let fixed = client.published(URI, 2).await;
        assert_eq!(
            fixed,
            Vec::<Value>::new(),
            "{end:?}: in[i] has nothing wrong"
        );
        client.finish().await;
    }
}

#[tokio::test]
async fn a_client_that_traces_is_told_what_is_done() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.published(URI, 1).await;
    for (value, verbose) in [("messages", false), ("verbose", true)] {
        client.notify("$/setTrace", json!({"value": value})).await;
        let version = if verbose { 3 } else { 2 };
        client.edit(URI, version, [0, 0, 0, 0], "\n").await;
        client.published(URI, version).await;
        let traced = client.notification("$/logTrace").await;
        let message = format!("analysed {URI} version {version}");
        assert_eq!(traced["message"], message);
        assert_eq!(traced["verbose"].is_string(), verbose, "{traced}");
    }
    client.notify("$/setTrace", json!({"value": "off"})).await;
    client.edit(URI, 4, [0, 0, 0, 0], "\n").await;
    client.published(URI, 4).await;
    client.finish().await;

    let mut client = Client::connect(warplens_lsp::Slow::default());
    let params = json!({"capabilities": {}, "trace": "messages"});
    client.ask("initialize", params).await;
    client.notify("initialized", json!({})).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.notification("$/logTrace").await;
    client.published(URI, 1).await;
    client.finish().await;
}
