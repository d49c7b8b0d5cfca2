//! Findings in the editor: pushed or pulled, of the right version, taken back when the document goes.

use serde_json::{Value, json};

use crate::client::{Client, Setup, codes, document, strided};

const URI: &str = "file:///code/copy.cu";

#[tokio::test]
async fn a_finding_says_all_that_the_contract_promises() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    let found = client.published(URI, 1).await;
    assert_eq!(codes(&found), ["mem/strided"]);
    let finding = &found[0];
    assert_eq!(finding["source"], "warplens");
    let href = finding["codeDescription"]["href"].as_str().expect("a page");
    assert!(
        href.starts_with("https://") && href.contains("strided"),
        "{href}"
    );
    assert_eq!(
        finding["range"]["start"],
        json!({"line": 2, "character": 13})
    );
    let message = finding["message"].as_str().expect("a message");
    assert!(
        message.contains("x: take elements of `in`") && message.contains("32 sectors"),
        "the gain comes first, then what to do, then the figure: {message}"
    );
    client.finish().await;
}

#[tokio::test]
async fn the_newest_version_is_published_also_when_nothing_changed() {
    let mut client = Client::start(Setup::default()).await;
    assert_eq!(
        client.initialized["capabilities"].get("diagnosticProvider"),
        None
    );
    client.open(URI, "cuda-cpp", &strided(1)).await;
    assert_eq!(client.published(URI, 1).await, Vec::<Value>::new());
    client.edit(URI, 2, [0, 0, 0, 0], "// a comment\n").await;
    assert_eq!(client.published(URI, 2).await, Vec::<Value>::new());
    // No change at all is still a version.
    client.change(URI, 3, json!([])).await;
    assert_eq!(client.published(URI, 3).await, Vec::<Value>::new());
    // Several in one message, the last replacing the whole text.
    let changes = json!([
        {"range": crate::client::range([0, 0, 0, 0]), "text": "x"},
        {"text": strided(32)},
    ]);
    client.change(URI, 4, changes).await;
    assert_eq!(codes(&client.published(URI, 4).await), ["mem/strided"]);
    client.finish().await;
}

#[tokio::test]
async fn closing_takes_diagnostics_back_and_reopening_brings_them() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    assert_eq!(client.published(URI, 1).await.len(), 1);
    // Even when the close overtakes an analysis.
    client.edit(URI, 2, [0, 0, 0, 0], "\n").await;
    client.close(URI).await;
    loop {
        let params = client.notification("textDocument/publishDiagnostics").await;
        if params.get("version").is_none_or(Value::is_null) {
            assert_eq!(params, json!({"uri": URI, "diagnostics": []}));
            break;
        }
    }
    client.open(URI, "cuda-cpp", &strided(32)).await;
    assert_eq!(client.published(URI, 1).await.len(), 1);
    client.finish().await;
}

#[tokio::test]
async fn a_client_that_pulls_is_never_pushed_to() {
    let capabilities = json!({"textDocument": {"diagnostic": {"relatedDocumentSupport": true}}});
    let mut client = Client::start(Setup {
        capabilities,
        ..Setup::default()
    })
    .await;
    assert!(client.initialized["capabilities"]["diagnosticProvider"].is_object());
    client.open(URI, "cuda-cpp", &strided(32)).await;
    let report = client.ask("textDocument/diagnostic", document(URI)).await;
    assert_eq!(report["kind"], "full");
    assert_eq!(
        codes(report["items"].as_array().expect("items")),
        ["mem/strided"]
    );

    let mut again = document(URI);
    again["previousResultId"] = report["resultId"].clone();
    let unchanged = client.ask("textDocument/diagnostic", again.clone()).await;
    assert_eq!(
        unchanged,
        json!({"kind": "unchanged", "resultId": report["resultId"]})
    );

    client.edit(URI, 2, [2, 16, 2, 23], "i];").await;
    let fixed = client.ask("textDocument/diagnostic", again).await;
    assert_eq!(fixed["kind"], "full");
    assert_eq!(fixed["items"], json!([]));
    client.close(URI).await;
    // `finish` finds any notification that came all the same.
    client.finish().await;
}

#[tokio::test]
async fn documents_without_a_file_are_served_and_others_are_left_alone() {
    let mut client = Client::start(Setup::default()).await;
    client
        .open("untitled:Untitled-1", "cuda-cpp", &strided(32))
        .await;
    assert_eq!(client.published("untitled:Untitled-1", 1).await.len(), 1);
    client.open("file:///code/a.cuh", "cpp", &strided(32)).await;
    assert_eq!(
        client.published("file:///code/a.cuh", 1).await.len(),
        1,
        "by its extension"
    );
    client.open("file:///code/k.cpp", "cpp", &strided(32)).await;
    assert_eq!(
        client.published("file:///code/k.cpp", 1).await.len(),
        1,
        "by its kernel"
    );
    client
        .open("file:///code/a.cpp", "cpp", "int main() { return 0; }\n")
        .await;
    client.open("file:///code/a.py", "python", "print()").await;
    let hints = json!({"textDocument": {"uri": "file:///code/a.cpp"},
        "range": crate::client::range([0, 0, 9, 0])});
    assert_eq!(
        client.ask("textDocument/inlayHint", hints).await,
        Value::Null
    );
    client.finish().await;
}

#[tokio::test]
async fn a_kernel_that_is_typed_into_a_file_of_cpp_is_found_and_forgotten_with_it() {
    let uri = "file:///code/late.cpp";
    let main = "int main() { return 0; }\n";
    let mut client = Client::start(Setup::default()).await;
    client.open(uri, "cpp", main).await;
    client.edit(uri, 2, [0, 0, 0, 0], "// Nothing yet.\n").await;
    client
        .edit(
            uri,
            3,
            [1, 0, 1, 0],
            &strided(32).replace("__global__", "__globa"),
        )
        .await;
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    assert_eq!(lenses, Value::Null, "no kernel's word occurs in it");
    client.edit(uri, 4, [1, 7, 1, 7], "l__").await;
    assert_eq!(codes(&client.published(uri, 4).await), ["mem/strided"]);
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    assert_ne!(lenses, Value::Null);
    client.edit(uri, 5, [1, 0, 1, 2], "").await;
    assert_eq!(client.published(uri, 5).await.len(), 0);
    let lenses = client.ask("textDocument/codeLens", document(uri)).await;
    assert_eq!(lenses, Value::Null);
    client.edit(uri, 6, [1, 0, 1, 0], "__").await;
    assert_eq!(codes(&client.published(uri, 6).await), ["mem/strided"]);
    client.finish().await;
}
