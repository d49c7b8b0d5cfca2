//! Work over a second: shown, cancelled there, ended however it ends.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warplens_lsp::Slow;

use crate::client::{Client, Setup, at, strided};

const URI: &str = "file:///code/copy.cu";
/// Longer than the server waits before it shows work.
const LONG: Duration = Duration::from_millis(1800);
const ENDLESS: Duration = Duration::from_secs(40);
/// Done by then: whatever waits for endless work is late by it.
const SOON: Duration = Duration::from_secs(20);

async fn start(shows: bool, question: Duration) -> Client {
    let mut client = Client::start(Setup {
        capabilities: json!({"window": {"workDoneProgress": shows}}),
        slow: Slow {
            question,
            ..Slow::default()
        },
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.published(URI, 1).await;
    client
}

fn compare() -> Value {
    json!({"command": "warplens.breakdown", "arguments": [{"uri": URI, "kernel": "copy"}]})
}

async fn progress(client: &mut Client) -> Value {
    client.notification("$/progress").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_work_is_shown_by_the_servers_own_token() {
    let mut client = start(true, LONG).await;
    let id = client.request("workspace/executeCommand", compare()).await;
    let token = client.question("window/workDoneProgress/create").await["token"].clone();
    assert!(token.is_string(), "{token}");
    let begin = progress(&mut client).await;
    assert_eq!(begin["token"], token);
    assert_eq!(begin["value"]["kind"], "begin");
    assert_eq!(begin["value"]["cancellable"], true);
    assert_eq!(begin["value"]["title"], "warplens: running every model");
    let end = progress(&mut client).await;
    assert_eq!(end, json!({"token": token, "value": {"kind": "end"}}));
    let response = client.response(id).await;
    assert!(response["result"]["markdown"].is_string(), "{response}");
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_the_client_is_used_as_it_is() {
    let mut client = start(false, LONG).await;
    let mut params = compare();
    params["workDoneToken"] = json!(7);
    let id = client.request("workspace/executeCommand", params).await;
    assert_eq!(progress(&mut client).await["token"], 7);
    assert_eq!(progress(&mut client).await["value"]["kind"], "end");
    client.response(id).await;
    assert_eq!(client.asked, Vec::<String>::new());
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_what_is_shown_answers_the_request_at_once() {
    let mut client = start(true, ENDLESS).await;
    let started = Instant::now();
    let id = client.request("workspace/executeCommand", compare()).await;
    let begin = progress(&mut client).await;
    let token = json!({"token": begin["token"]});
    let method = "window/workDoneProgress/cancel";
    client.notify(method, token.clone()).await;
    // Twice, and an unknown one.
    client.notify(method, token).await;
    client.notify(method, json!({"token": "unknown"})).await;
    let response = client.response(id).await;
    assert_eq!(response["error"]["code"], -32800, "{response}");
    assert_eq!(progress(&mut client).await["value"]["kind"], "end");
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_cancelled_ends_what_is_shown() {
    let mut client = start(true, ENDLESS).await;
    let params = json!({"textDocument": {"uri": URI}, "range": crate::client::range([2, 13, 2, 13]),
        "context": {"diagnostics": []}});
    let id = client.request("textDocument/codeAction", params).await;
    assert_eq!(progress(&mut client).await["value"]["kind"], "begin");
    client.notify("$/cancelRequest", json!({"id": id})).await;
    assert_eq!(progress(&mut client).await["value"]["kind"], "end");
    let response = client.response(id).await;
    assert_eq!(response["error"]["code"], -32800, "{response}");
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_shown_of_short_work_or_to_clients_that_cannot() {
    let mut client = start(true, Duration::ZERO).await;
    let mut params = compare();
    params["workDoneToken"] = json!("mine");
    client.ask("workspace/executeCommand", params).await;
    client.ask("textDocument/hover", at(URI, 2, 6)).await;
    assert_eq!(client.asked, Vec::<String>::new());
    client.finish().await;

    let mut client = start(false, LONG).await;
    client.ask("workspace/executeCommand", compare()).await;
    assert_eq!(client.asked, Vec::<String>::new());
    // `finish` finds any notification that came all the same.
    client.finish().await;
}

/// A client that takes no token: the work is done all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_answer_gets_its_result() {
    let mut client = Client::start(Setup {
        capabilities: json!({"window": {"workDoneProgress": true}}),
        slow: Slow {
            question: LONG,
            ..Slow::default()
        },
        answers: false,
        ..Setup::default()
    })
    .await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.published(URI, 1).await;
    let answer = client.ask("workspace/executeCommand", compare()).await;
    assert!(answer["markdown"].is_string(), "{answer}");
    client.finish().await;
}
