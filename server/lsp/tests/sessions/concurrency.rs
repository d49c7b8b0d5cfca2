//! What must not wait for what: changes and cancellations for slow requests, anything for a client that does
//! not answer, reading for writing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warplens_lsp::Slow;

use crate::client::{Client, Setup, at, document, range, strided};

const URI: &str = "file:///code/copy.cu";
/// The work of one request in these tests; whatever waited for one would be late by it.
const SLOW: Duration = Duration::from_secs(20);
/// What must not wait is done by then, on any machine.
const SOON: Duration = Duration::from_secs(10);

fn cancel(id: i64) -> Value {
    json!({"id": id})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_slow_requests_hold_up_neither_changes_nor_cancellation() {
    let slow = Slow {
        question: SLOW,
        ..Slow::default()
    };
    let setup = Setup {
        slow,
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.open(URI, "cuda-cpp", &strided(2)).await;
    client.published(URI, 1).await;
    let mut waiting = Vec::new();
    for _ in 0..200 {
        waiting.push(client.request("textDocument/hover", at(URI, 2, 6)).await);
    }
    let started = Instant::now();
    client.edit(URI, 2, [2, 16, 2, 17], "32").await;
    client.published(URI, 2).await;
    assert!(
        started.elapsed() < SOON,
        "the change waited {:?}",
        started.elapsed()
    );
    for id in &waiting {
        client.notify("$/cancelRequest", cancel(*id)).await;
    }
    for id in waiting {
        let response = client.response(id).await;
        assert_eq!(response["error"]["code"], -32800, "{response}");
    }
    assert!(
        started.elapsed() < SOON,
        "cancelling took {:?}",
        started.elapsed()
    );
    client.finish().await;
}

/// The framework's own queue holds 100 messages behind the handlers that wait for the client; the 101st
/// used to stop everything for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_never_answers_is_served_all_the_same() {
    let capabilities = json!({"workspace": {
        "configuration": true,
        "didChangeConfiguration": {"dynamicRegistration": true},
        "didChangeWatchedFiles": {"dynamicRegistration": true},
        "inlayHint": {"refreshSupport": true},
        "codeLens": {"refreshSupport": true},
    }});
    let setup = Setup {
        capabilities,
        answers: false,
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.open(URI, "cuda-cpp", &strided(2)).await;
    let mut questions = Vec::new();
    for version in 2..=251_i32 {
        // Each asks the client for its settings.
        client
            .notify(
                "workspace/didChangeConfiguration",
                json!({"settings": null}),
            )
            .await;
        client.edit(URI, version, [0, 0, 0, 0], "\n").await;
        questions.push(client.request("textDocument/codeLens", document(URI)).await);
    }
    for id in questions {
        let response = client.response(id).await;
        assert!(response["result"].is_array(), "{response}");
    }
    client.published(URI, 251).await;
    assert!(
        client
            .asked
            .iter()
            .any(|asked| asked == "workspace/configuration")
    );
    client.finish().await;
}

/// A client that does not read for a while: everything it sends is taken, everything it asked for is there
/// when it reads, and of the diagnostics only what is still true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_is_still_read() {
    let mut client = Client::start(Setup::default()).await;
    // Long findings lists: far more than the pipe holds.
    let many: String = (0..40)
        .map(|k| strided(2).replace("copy", &format!("k{k}")))
        .collect();
    client.open(URI, "cuda-cpp", &many).await;
    let mut questions = Vec::new();
    for version in 2..=1001_i32 {
        client.edit(URI, version, [0, 0, 0, 0], "\n").await;
        questions.push(
            client
                .request("textDocument/hover", at(URI, 100_000, 0))
                .await,
        );
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut lists = 0;
    for id in questions {
        let response = client.response(id).await;
        assert!(response.get("error").is_none(), "{response}");
    }
    client.notifications.retain(|message| {
        lists += 1;
        message["params"]["version"] == 1001
    });
    if client.notifications.is_empty() {
        client.published(URI, 1001).await;
    } else {
        client.notifications.clear();
    }
    assert!(
        lists < 900,
        "{lists} lists were kept for a client that slept"
    );
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_request_is_answered_at_once_and_only_once() {
    let slow = Slow {
        question: SLOW,
        ..Slow::default()
    };
    let setup = Setup {
        slow,
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.open(URI, "cuda-cpp", &strided(2)).await;
    client.published(URI, 1).await;
    let started = Instant::now();
    let id = client.request("textDocument/hover", at(URI, 2, 6)).await;
    client.notify("$/cancelRequest", cancel(id)).await;
    client.notify("$/cancelRequest", cancel(id)).await;
    client.notify("$/cancelRequest", cancel(987_654)).await;
    let response = client.response(id).await;
    assert_eq!(response["error"]["code"], -32800, "{response}");
    for command in ["warplens.compareGpus", "warplens.report"] {
        let argument = json!({"uri": URI, "kernel": "copy"});
        let params = json!({"command": command, "arguments": [argument]});
        let id = client.request("workspace/executeCommand", params).await;
        client.notify("$/cancelRequest", cancel(id)).await;
        let response = client.response(id).await;
        assert_eq!(response["error"]["code"], -32800, "{response}");
    }
    assert!(started.elapsed() < SOON);
    client.finish().await;
}

/// Where an analysis takes seconds, hints do not vanish and do not wait for it: the last ones move with the
/// text, and the client is told to ask again when the right ones are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hints_move_with_the_text_while_a_long_analysis_runs() {
    let slow = Slow {
        analysis: Duration::from_secs(4),
        ..Slow::default()
    };
    let capabilities = json!({"workspace": {"inlayHint": {"refreshSupport": true}}});
    let setup = Setup {
        capabilities,
        slow,
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    client.published(URI, 1).await;
    let asked = json!({"textDocument": {"uri": URI}, "range": range([0, 0, 99, 0])});
    let before = client.ask("textDocument/inlayHint", asked.clone()).await;
    client.edit(URI, 2, [1, 0, 1, 0], "\n\n").await;
    let started = Instant::now();
    let moved = client.ask("textDocument/inlayHint", asked.clone()).await;
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "waited for the analysis"
    );
    assert!(
        client.notifications.is_empty(),
        "the analysis was not slow at all"
    );
    let mut expected = before.clone();
    for hint in expected.as_array_mut().expect("hints") {
        let line = hint["position"]["line"].as_u64().expect("a line");
        hint["position"]["line"] = json!(if line == 0 { 0 } else { line + 2 });
    }
    assert_eq!(moved, expected);
    client.published(URI, 2).await;
    client.until_asked("workspace/inlayHint/refresh").await;
    let exact = client.ask("textDocument/inlayHint", asked).await;
    assert_eq!(exact, expected, "blank lines cost nothing");
    client.finish().await;
}

/// A first analysis that takes long: there is nothing to show yet, and the client is told when there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_before_there_is_anything_is_told_to_ask_again() {
    let slow = Slow {
        analysis: Duration::from_secs(3),
        ..Slow::default()
    };
    let capabilities = json!({"workspace": {"inlayHint": {"refreshSupport": true}}});
    let setup = Setup {
        capabilities,
        slow,
        ..Setup::default()
    };
    let mut client = Client::start(setup).await;
    client.open(URI, "cuda-cpp", &strided(32)).await;
    let asked = json!({"textDocument": {"uri": URI}, "range": range([0, 0, 99, 0])});
    let nothing = client.ask("textDocument/inlayHint", asked.clone()).await;
    assert_eq!(nothing, Value::Null, "the analysis was not slow at all");
    client.until_asked("workspace/inlayHint/refresh").await;
    let hints = client.ask("textDocument/inlayHint", asked).await;
    assert!(!hints.as_array().expect("hints").is_empty());
    client.published(URI, 1).await;
    client.finish().await;
}
