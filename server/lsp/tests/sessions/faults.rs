//! Clients that ask too much: a flood, a thousand open files, a header that every keystroke changes.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Setup, at, codes, document, range, strided};

const URI: &str = "file:///code/copy.cu";
/// A time limit that suffices on any machine.
const SOON: Duration = Duration::from_secs(40);

/// Five thousand messages, sent faster than anything can be answered and none read before the last has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_floods_gets_every_answer_and_the_last_text() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", &strided(2)).await;
    let mut asked = Vec::new();
    for version in 2..1002_i32 {
        let stride = if version == 1001 { 32 } else { version % 9 };
        let whole = json!([{"text": strided(stride as u32)}]);
        client.change(URI, version, whole).await;
        let hints = json!({"textDocument": {"uri": URI}, "range": range([0, 0, 9, 0])});
        asked.push(client.request("textDocument/inlayHint", hints).await);
        asked.push(client.request("textDocument/hover", at(URI, 2, 6)).await);
        // Taken back at once, as editors do with what the next keystroke makes old.
        let id = client.request("textDocument/codeLens", document(URI)).await;
        client.notify("$/cancelRequest", json!({"id": id})).await;
        asked.push(id);
    }
    for id in asked {
        let response = client.response(id).await;
        let code = response["error"]["code"].as_i64();
        assert!(matches!(code, None | Some(-32800 | -32801)), "{response}");
    }
    client
        .notifications
        .retain(|message| message["params"]["version"] == 1001);
    let found = client.published(URI, 1001).await;
    assert_eq!(codes(&found), ["mem/strided"]);
    client.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_a_thousand_open_files_is_served_like_a_single_one() {
    let mut client = Client::start(Setup::default()).await;
    let uri = |number: usize| format!("file:///code/copy{number}.cu");
    for number in 0..1000 {
        let text = strided(number as u32 % 32 + 2).replace("copy", &format!("copy{number}"));
        client.open(&uri(number), "cuda-cpp", &text).await;
    }
    let mut published = 0;
    while published < 1000 {
        let shown = client.notification("textDocument/publishDiagnostics").await;
        let found = shown["diagnostics"].as_array().expect("a list");
        assert_eq!(codes(found), ["mem/strided"]);
        published += 1;
    }
    let started = Instant::now();
    client
        .edit(&uri(500), 2, [2, 13, 2, 15], "in[i * 1]; // ")
        .await;
    let hover = client.ask("textDocument/hover", at(&uri(500), 2, 6)).await;
    assert!(!hover.is_null());
    client.published(&uri(500), 2).await;
    // A single file takes a millisecond; a slow machine a hundred times that.
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    for number in 0..1000 {
        client.close(&uri(number)).await;
    }
    for _ in 0..1000 {
        let shown = client.notification("textDocument/publishDiagnostics").await;
        assert_eq!(shown["diagnostics"], json!([]));
    }
    client.finish().await;
}

/// Labels of a file's hints.
async fn hints(client: &mut Client, uri: &str) -> Value {
    let asked = json!({"textDocument": {"uri": uri}, "range": range([0, 0, 99, 0])});
    client.ask("textDocument/inlayHint", asked).await
}

/// Twenty files depend on a header whose every keystroke changes what they cost; half of the keystrokes break it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_changed_by_every_keystroke_ends_where_its_last_text_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = format!("file://{}", folder.path().display());
    let kernel = |number: usize| {
        let text = strided(1).replace("1 * i", &format!("STRIDE * i + {number}"));
        format!("#include \"stride.h\"\n{text}")
    };
    let header = "#pragma once\n#define STRIDE 1\n";
    std::fs::write(folder.path().join("stride.h"), header).expect("a file");
    let mut client = Client::start(Setup {
        folder: Some(root.clone()),
        ..Setup::default()
    })
    .await;
    let files: Vec<String> = (0..20)
        .map(|number| format!("{root}/copy{number}.cu"))
        .collect();
    for (number, file) in files.iter().enumerate() {
        client.open(file, "cuda-cpp", &kernel(number)).await;
    }
    let header_uri = format!("{root}/stride.h");
    client.open(&header_uri, "cuda-cpp", header).await;
    let started = Instant::now();
    for version in 2..202_i32 {
        let value = match version % 4 {
            0 => "(",
            1 => "32",
            2 => "3 /*",
            _ => "2",
        };
        let mut text = "#pragma once\n".to_owned();
        let _ = writeln!(
            text,
            "#define STRIDE {}",
            if version == 201 { "32" } else { value }
        );
        client
            .change(&header_uri, version, json!([{"text": text}]))
            .await;
    }
    // What is shown for the last text comes when it is there; a fresh session says what that is.
    let last = "#pragma once\n#define STRIDE 32\n";
    std::fs::write(folder.path().join("stride.h"), last).expect("a file");
    let mut fresh = Client::start(Setup {
        folder: Some(root.clone()),
        ..Setup::default()
    })
    .await;
    for (number, file) in files.iter().enumerate() {
        fresh.open(file, "cuda-cpp", &kernel(number)).await;
        fresh.published(file, 1).await;
        let expected = hints(&mut fresh, file).await;
        assert!(expected.to_string().contains("32 sectors"), "{expected}");
        while hints(&mut client, file).await != expected {
            assert!(
                started.elapsed() < SOON,
                "{file} still shows another header"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    fresh.finish().await;
    // Which of the texts between were shown is of no interest.
    client.ask("shutdown", Value::Null).await;
    client.notify("exit", Value::Null).await;
    assert_eq!(client.exit_code().await, 0);
}
