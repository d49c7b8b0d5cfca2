//! Whatever comes in, the session goes on.

use serde_json::{Value, json};

use crate::client::{Client, Setup, at, codes, range, strided};

const URI: &str = "file:///code/copy.cu";

async fn still_well(client: &mut Client) {
    client.open(URI, "cuda-cpp", &strided(32)).await;
    assert_eq!(codes(&client.published(URI, 1).await), ["mem/strided"]);
}

#[tokio::test]
async fn bytes_that_are_no_message_are_skipped() {
    let mut client = Client::start(Setup::default()).await;
    let junk: [&[u8]; 5] = [
        b"Content-Length: 5\r\n\r\n{...}",
        b"Content-Length: 9\r\n\r\n\"\xff\xfe\xfd\xfc\xfb\xfa\xf9\"",
        b"Content-Length: many\r\n\r\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"initialized\"}\n",
        b"\x00\x01\x02\x03\n",
    ];
    for bytes in junk {
        client.send_bytes(bytes).await;
        let response = client.response(-1).await;
        assert_eq!(response["error"]["code"], -32700, "{response}");
        assert_eq!(response["id"], Value::Null);
    }
    still_well(&mut client).await;
    client.finish().await;
}

#[tokio::test]
async fn messages_that_mean_nothing_are_refused() {
    let mut client = Client::start(Setup::default()).await;
    for message in [
        json!([]),
        json!(7),
        json!({"jsonrpc": "2.0"}),
        json!({"method": "hover"}),
    ] {
        client.send(message).await;
        let response = client.response(-1).await;
        assert_eq!(response["error"]["code"], -32600, "{response}");
    }
    let error = client
        .ask_wrongly("textDocument/telepathy", json!({}))
        .await;
    assert_eq!(error["code"], -32601, "{error}");
    let error = client
        .ask_wrongly("textDocument/hover", json!({"position": "here"}))
        .await;
    assert_eq!(error["code"], -32602, "{error}");
    // Notifications have no answers, not even wrong ones; `$/…` may be ignored.
    client
        .notify("textDocument/didChange", json!({"textDocument": 3}))
        .await;
    client
        .notify("window/workDoneProgress/cancel", json!({"token": 1}))
        .await;
    client.notify("$/setTrace", json!({"value": "loud"})).await;
    client
        .send(json!({"jsonrpc": "2.0", "id": 4711, "result": "an unsolicited response"}))
        .await;
    still_well(&mut client).await;
    client.finish().await;
}

#[tokio::test]
async fn documents_out_of_step_are_clamped_or_ignored() {
    let mut client = Client::start(Setup::default()).await;
    client
        .edit("file:///not/open.cu", 7, [0, 0, 0, 1], "x")
        .await;
    client.close("file:///not/open.cu").await;
    assert_eq!(
        client
            .ask("textDocument/hover", at("file:///not/open.cu", 0, 0))
            .await,
        Value::Null
    );
    let far = u32::MAX;
    still_well(&mut client).await;
    client
        .edit(URI, 2, [far, far, far, far], "\n// the end")
        .await;
    client.edit(URI, 3, [2, 5, 0, 0], "").await;
    client.edit(URI, 4, [0, 0, far, far], &strided(32)).await;
    // Of the wrong version, and an old one.
    client.edit(URI, -3, [0, 0, 0, 0], "\n").await;
    let ranges = json!({"textDocument": {"uri": URI}, "range": range([far, far, 0, 0])});
    client.ask("textDocument/inlayHint", ranges).await;
    client.ask("textDocument/hover", at(URI, far, far)).await;
    client.edit(URI, 5, [0, 0, 0, 0], "\n").await;
    assert_eq!(
        codes(&published_last(&mut client, 5).await),
        ["mem/strided"]
    );
    client.finish().await;
}

/// Like `Client::published`, for versions that do not only grow.
async fn published_last(client: &mut Client, version: i64) -> Vec<Value> {
    loop {
        let mut params = client.notification("textDocument/publishDiagnostics").await;
        if params["version"] == version {
            return params["diagnostics"]
                .take()
                .as_array()
                .expect("a list")
                .clone();
        }
    }
}

#[tokio::test]
async fn half_typed_kernels_are_answered_at_every_character() {
    let mut client = Client::start(Setup::default()).await;
    client.open(URI, "cuda-cpp", "").await;
    let text = strided(32);
    let mut version = 1;
    let (mut line, mut column) = (0, 0);
    for c in text.chars() {
        version += 1;
        client
            .edit(URI, version, [line, column, line, column], &c.to_string())
            .await;
        (line, column) = if c == '\n' {
            (line + 1, 0)
        } else {
            (line, column + 1)
        };
        client.published(URI, version).await;
    }
    client.edit(URI, version + 1, [0, 0, 0, 0], "\n").await;
    assert_eq!(
        codes(&client.published(URI, version + 1).await),
        ["mem/strided"]
    );
    client.finish().await;
}

/// Strings of a message that people read, and where in it they are.
fn read_by_people<'a>(message: &'a Value, key: &'a str, found: &mut Vec<&'a str>) {
    match message {
        Value::String(text) if ["message", "value", "label", "title"].contains(&key) => {
            found.push(text);
        }
        Value::Array(items) => {
            for item in items {
                read_by_people(item, key, found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                read_by_people(value, key, found);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn what_a_file_spells_acts_on_no_editor() {
    const ACTS: [char; 4] = ['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}'];
    let folder = tempfile::tempdir().expect("a folder");
    let uri = format!("file://{}/k%1B%5B31m%E2%80%AE.cu", folder.path().display());
    let text = "#include \"no\u{1b}[31m\u{202e}.h\"\n\
        __global__ void copy(float *out\u{202e}, const float *in, int n) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        asm volatile(\"none\u{1b}[31m\u{7}\u{2066} %0;\" :: \"r\"(i));\n\
        if (i < n) out\u{202e}[i * 32] = in[i * 32] + no\u{202e}(i);\n}\n";
    let mut client = Client::start(Setup {
        folder: Some(format!("file://{}", folder.path().display())),
        ..Setup::default()
    })
    .await;
    client.open(&uri, "cuda-cpp", text).await;
    let mut said = client.published(&uri, 1).await;
    assert!(!said.is_empty());
    for line in 0..6 {
        for character in [0, 16] {
            let hover = at(&uri, line, character);
            said.push(client.ask("textDocument/hover", hover).await);
        }
    }
    let whole = json!({"textDocument": {"uri": uri}, "range": range([0, 0, 6, 0]),
        "context": {"diagnostics": []}});
    for method in [
        "textDocument/inlayHint",
        "textDocument/codeAction",
        "textDocument/codeLens",
    ] {
        said.push(client.ask(method, whole.clone()).await);
    }
    let none = json!({"uri": uri, "kernel": "no\u{1b}[31m\u{202e}"});
    let none = json!({"command": "warplens.whatWouldHelp", "arguments": [none]});
    said.push(client.ask_wrongly("workspace/executeCommand", none).await);
    // The header that is missing is told with its file.
    said.push(client.notification("window/logMessage").await);
    let said = Value::Array(said);
    let mut texts = Vec::new();
    read_by_people(&said, "", &mut texts);
    let quotes = texts.iter().filter(|text| text.contains('\u{fffd}'));
    assert!(quotes.count() > 3, "{texts:?}");
    for text in texts {
        assert!(!text.contains(ACTS), "{text:?}");
    }
    client.finish().await;
}
