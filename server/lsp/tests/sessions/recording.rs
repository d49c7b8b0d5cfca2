//! What a recording says of a session, and what it does not.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use warplens_lsp::Options;
use warplens_lsp::replay::Recording;

use crate::client::{Client, at, document, range};

/// Every name, comment and string of it is secret.
const SECRET: &str = "// Beamforming for the walrus project.\n\
    #include \"walrus/antenna.h\"\n\
    #define CHANNELS 48\n\
    __global__ void steer_beam(float *steered, const float *samples, int antennas) {\n\
    \x20 int channel = blockIdx.x * blockDim.x + threadIdx.x;\n\
    \x20 if (channel < antennas) steered[channel] = samples[channel * CHANNELS]; /* tusk */\n\
    \x20 printf(\"walrus says %d\", channel);\n\
    }\n";

/// Words that the session above, and not the protocol, brings along.
fn secrets() -> BTreeSet<&'static str> {
    let public = [
        "include",
        "define",
        "void",
        "float",
        "const",
        "blockIdx",
        "blockDim",
        "threadIdx",
        "__global__",
    ];
    SECRET
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.len() > 3 && !public.contains(word))
        .chain(["elephant", "alice", "moonshot", "beam.cu", "WALRUS"])
        .collect()
}

async fn session(options: Options) {
    let uri = "file:///home/alice/moonshot/beam.cu";
    let mut client = Client::connect_with(options);
    let settings = json!({"defines": {"WALRUS": "1"}, "includePaths": ["/home/alice/moonshot"],
        "kernels": {"steer_beam": {"block": [64], "args": {"antennas": 4096}}}});
    let folder = json!([{"uri": "file:///home/alice/moonshot", "name": "moonshot"}]);
    let initialize = json!({"capabilities": {}, "rootPath": "/home/alice/moonshot",
        "workspaceFolders": folder, "initializationOptions": settings});
    client.ask("initialize", initialize).await;
    client.notify("initialized", json!({})).await;
    client.open(uri, "cuda-cpp", SECRET).await;
    // Typed letter by letter, pasted whole, and taken out.
    for (version, letter) in (2..).zip("elephant".chars()) {
        let column = version as u32 + 1;
        let place = [0, column, 0, column];
        client.edit(uri, version, place, &letter.to_string()).await;
    }
    client
        .edit(uri, 10, [1, 0, 1, 0], "// elephant walrus\nint elephant;\n")
        .await;
    client.edit(uri, 11, [1, 0, 3, 0], "").await;
    client.ask("textDocument/hover", at(uri, 5, 30)).await;
    let launch =
        json!({"uri": uri, "kernel": "steer_beam", "grid": [8], "args": {"antennas": 2048}});
    client.command("warplens.setLaunch", launch).await;
    let diagnostic = json!({"range": range([5, 0, 5, 9]), "message": "the elephant strides"});
    let actions = json!({"textDocument": {"uri": uri}, "range": range([5, 0, 5, 40]),
        "context": {"diagnostics": [diagnostic]}});
    client.ask("textDocument/codeAction", actions).await;
    client.ask("textDocument/codeLens", document(uri)).await;
    client.ask("shutdown", Value::Null).await;
    client.notify("exit", Value::Null).await;
    assert_eq!(client.exit_code().await, 0);
}

/// The recording of that session.
async fn recorded(redact: bool) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("session.jsonl");
    session(Options {
        record: Some(file.clone()),
        redact,
        ..Options::default()
    })
    .await;
    std::fs::read_to_string(file).expect("a recording")
}

#[tokio::test]
async fn a_redacted_recording_has_no_word_of_the_source_and_the_shape_of_the_session() {
    let (plain, redacted) = (recorded(false).await, recorded(true).await);
    for word in secrets() {
        assert!(!redacted.contains(word), "`{word}` in:\n{redacted}");
    }
    assert!(plain.contains("walrus") && plain.contains("elephan"));
    // Message by message the same but for what is said in them.
    let read = |text: &str| -> Vec<Value> {
        let lines = text.lines().map(serde_json::from_str::<Value>);
        lines
            .map(|line| line.expect("JSON")["message"].take())
            .collect()
    };
    let (plain, redacted) = (read(&plain), read(&redacted));
    assert_eq!(plain.len(), redacted.len());
    for (plain, redacted) in plain.iter().zip(&redacted) {
        assert_eq!(plain["method"], redacted["method"]);
        assert_eq!(plain["id"], redacted["id"]);
        for place in [
            "/params/range",
            "/params/position",
            "/params/contentChanges/0/range",
        ] {
            assert_eq!(plain.pointer(place), redacted.pointer(place));
        }
        for text in ["/params/textDocument/text", "/params/contentChanges/0/text"] {
            let lengths = |message: &Value| -> Option<Vec<usize>> {
                let text = message.pointer(text)?.as_str()?;
                Some(text.split('\n').map(str::len).collect())
            };
            assert_eq!(lengths(plain), lengths(redacted));
        }
    }
}

#[tokio::test]
async fn a_redacted_recording_is_replayed_without_an_error() {
    let recording = recorded(true).await;
    let replayed = tokio::task::spawn_blocking(move || {
        let recording = Recording::read(&recording).expect("a recording");
        recording
            .replay(Duration::from_millis(50))
            .expect("a runtime")
    });
    let replayed = replayed.await.expect("an end");
    assert!(replayed.errors.is_empty(), "{replayed:?}");
    assert!(
        replayed.unanswered.is_empty() && replayed.clean,
        "{replayed:?}"
    );
    assert_eq!(replayed.answers["textDocument/hover"].len(), 1);
}
