//! How a session begins and ends.

use std::time::Duration;

use serde_json::{Value, json};
use warplens_lsp::Slow;

use crate::client::{Client, Setup, at, strided};

const URI: &str = "file:///code/copy.cu";

#[tokio::test]
async fn initialize_says_what_is_served() {
    let client = Client::start(Setup::default()).await;
    let initialized = client.initialized.clone();
    assert_eq!(initialized["serverInfo"]["name"], "warplens");
    let capabilities = &initialized["capabilities"];
    assert_eq!(capabilities["textDocumentSync"]["change"], 2, "incremental");
    assert_eq!(capabilities["textDocumentSync"]["openClose"], true);
    assert_eq!(capabilities["hoverProvider"], true);
    assert!(capabilities["inlayHintProvider"].is_object());
    assert!(capabilities["codeLensProvider"].is_object());
    assert_eq!(
        capabilities["codeActionProvider"]["codeActionKinds"],
        json!(["quickfix", "refactor.rewrite", "source.fixAll.warplens"])
    );
    assert_eq!(
        capabilities["executeCommandProvider"]["commands"],
        json!([
            "warplens.selectGpu",
            "warplens.setLaunch",
            "warplens.setRun",
            "warplens.tryLaunch",
            "warplens.nextLaunch",
            "warplens.pin",
            "warplens.estimate",
            "warplens.breakdown",
            "warplens.compareGpus",
            "warplens.compareKernels",
            "warplens.kernels",
            "warplens.fixes",
            "warplens.target",
            "warplens.report",
            "warplens.program",
            "warplens.graph",
            "warplens.heat",
            "warplens.lanes",
            "warplens.whatWouldHelp"
        ])
    );
    // What clangd does on the same buffer is left to it.
    for other in [
        "completionProvider",
        "definitionProvider",
        "documentFormattingProvider",
    ] {
        assert_eq!(capabilities.get(other), None);
    }
    client.finish().await;
}

#[tokio::test]
async fn nothing_is_answered_before_initialize_or_after_shutdown() {
    let mut client = Client::connect(Slow::default());
    let error = client
        .ask_wrongly("textDocument/hover", at(URI, 0, 0))
        .await;
    assert_eq!(error["code"], -32002, "{error}");
    client.ask("initialize", json!({"capabilities": {}})).await;
    client.notify("initialized", json!({})).await;
    let error = client
        .ask_wrongly("initialize", json!({"capabilities": {}}))
        .await;
    assert_eq!(error["code"], -32600, "{error}");
    client.ask("shutdown", Value::Null).await;
    let error = client
        .ask_wrongly("textDocument/hover", at(URI, 0, 0))
        .await;
    assert_eq!(error["code"], -32600, "{error}");
    client.notify("exit", Value::Null).await;
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn messages_sent_right_behind_initialize_are_not_lost() {
    let mut client = Client::connect(Slow::default());
    let id = client
        .request("initialize", json!({"capabilities": {}}))
        .await;
    client.notify("initialized", json!({})).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.response(id).await;
    assert_eq!(client.published(URI, 1).await.len(), 1);
    client.finish().await;
}

#[tokio::test]
async fn leaving_without_shutdown_is_told_by_the_exit_code() {
    let mut client = Client::start(Setup::default()).await;
    client.notify("exit", Value::Null).await;
    assert_eq!(client.exit_code().await, 1);

    let mut client = Client::start(Setup::default()).await;
    client.hang_up();
    assert_eq!(client.exit_code().await, 1);

    let mut client = Client::start(Setup::default()).await;
    client.ask("shutdown", Value::Null).await;
    client.hang_up();
    assert_eq!(client.exit_code().await, 0);
}

#[tokio::test]
async fn the_server_ends_with_the_clients_process() {
    let mut editor = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .expect("a process");
    let mut client = Client::connect(Slow::default());
    client
        .ask(
            "initialize",
            json!({"capabilities": {}, "processId": editor.id()}),
        )
        .await;
    editor.kill().expect("its end");
    editor.wait().expect("its end");
    assert_eq!(client.exit_code().await, 1);
}

#[tokio::test]
async fn a_process_that_was_never_seen_is_not_waited_for() {
    let mut client = Client::connect(Slow::default());
    client
        .ask(
            "initialize",
            json!({"capabilities": {}, "processId": 4_194_305}),
        )
        .await;
    client.notify("initialized", json!({})).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    client.finish().await;
}
