//! A language server in this process, and a client that knows what it asked.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use warplens_lsp::{Options, serve};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes on their way in each direction: more than any session here sends.
const PIPE: usize = 1 << 24;
/// The document.
const URI: &str = "file:///nowhere/";

/// A session with one document.
#[derive(Debug)]
pub struct Client {
    to: DuplexStream,
    from: DuplexStream,
    server: JoinHandle<std::io::Result<i32>>,
    bytes: Vec<u8>,
    next: i64,
    answers: HashMap<i64, Value>,
    uri: String,
    version: i32,
}

impl Client {
    /// A session in which a text has been opened.
    pub async fn open(name: &str, text: &str) -> Client {
        let (to, input) = tokio::io::duplex(PIPE);
        let (output, from) = tokio::io::duplex(PIPE);
        let server = tokio::spawn(async move { serve(input, output, &Options::default()).await });
        let mut client = Client {
            to,
            from,
            server,
            bytes: Vec::new(),
            next: 1,
            answers: HashMap::new(),
            uri: format!("{URI}{name}"),
            version: 1,
        };
        let capabilities = json!({"textDocument": {"diagnostic": {}}});
        client
            .ask("initialize", json!({"capabilities": capabilities}))
            .await;
        client.notify("initialized", json!({})).await;
        let document = json!({"uri": client.uri, "languageId": "", "version": 1, "text": text});
        client
            .notify("textDocument/didOpen", json!({"textDocument": document}))
            .await;
        client
    }

    async fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let head = format!("Content-Length: {}\r\n\r\n", body.len());
        for part in [head.as_bytes(), body.as_bytes()] {
            self.to.write_all(part).await.expect("the server reads");
        }
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// Asks, and does not wait.
    pub async fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    /// The answer to a request. An error is none, but where the text changed meanwhile.
    pub async fn answer(&mut self, id: i64) -> Value {
        loop {
            if let Some(mut answer) = self.answers.remove(&id) {
                let code = answer["error"]["code"].as_i64();
                assert!(matches!(code, None | Some(-32800 | -32801)), "{answer}");
                return answer["result"].take();
            }
            let message = tokio::time::timeout(PATIENCE, self.read())
                .await
                .expect("an answer in time");
            if let Some(id) = message["id"].as_i64()
                && message.get("method").is_none()
            {
                self.answers.insert(id, message);
            }
        }
    }

    async fn read(&mut self) -> Value {
        loop {
            let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
                let length = head
                    .strip_prefix("Content-Length: ")
                    .and_then(|length| length.parse().ok());
                let length: usize = length.expect("a length");
                if self.bytes.len() >= end + 4 + length {
                    let body: Vec<u8> =
                        self.bytes.drain(..end + 4 + length).skip(end + 4).collect();
                    return serde_json::from_slice(&body).expect("JSON");
                }
            }
            assert_ne!(
                self.from.read_buf(&mut self.bytes).await.expect("a stream"),
                0,
                "the server went away"
            );
        }
    }

    /// The document, for a request's parameters.
    pub fn document(&self) -> Value {
        json!({"uri": self.uri})
    }

    /// Replaces bytes of the text as it was.
    pub async fn edit(&mut self, text: &str, edit: &super::Edit) {
        self.version += 1;
        let range = json!({"start": position(text, edit.start), "end": position(text, edit.end)});
        let changes = json!([{"range": range, "text": edit.piece}]);
        let document = json!({"uri": self.uri, "version": self.version});
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.notify("textDocument/didChange", params).await;
    }

    /// Everything that is shown of the document as it is now.
    pub async fn shown(&mut self) -> [Value; 4] {
        let document = json!({"textDocument": self.document()});
        let mut diagnostics = self.ask("textDocument/diagnostic", document.clone()).await;
        let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}});
        let hints = json!({"textDocument": self.document(), "range": all});
        let hints = self.ask("textDocument/inlayHint", hints).await;
        let lenses = self.ask("textDocument/codeLens", document).await;
        let command = json!({"command": "warplens.estimate", "arguments": [{"uri": self.uri}]});
        let estimate = self.ask("workspace/executeCommand", command).await;
        let lenses = without_earlier_times(lenses);
        [diagnostics["items"].take(), hints, lenses, estimate]
    }

    /// Ends the session.
    pub async fn finish(mut self) {
        self.ask("shutdown", Value::Null).await;
        self.notify("exit", Value::Null).await;
        let code = tokio::time::timeout(PATIENCE, self.server).await;
        assert_eq!(
            code.expect("an end in time")
                .expect("no panic")
                .expect("no record"),
            0
        );
    }
}

/// Lenses without what kernels took when the text was saved, which only a session that began with another text shows.
fn without_earlier_times(mut lenses: Value) -> Value {
    for lens in lenses.as_array_mut().into_iter().flatten() {
        let title = &mut lens["command"]["title"];
        let now = title.as_str().and_then(|title| title.split_once(" → "));
        if let Some((_, now)) = now {
            *title = now.into();
        }
    }
    lenses
}

/// A place as the protocol has it.
pub fn position(text: &str, byte: usize) -> Value {
    let before = text[..byte].replace("\r\n", "\n").replace('\r', "\n");
    let line = before.matches('\n').count();
    let last = before.rsplit('\n').next().unwrap_or_default();
    json!({"line": line, "character": last.encode_utf16().count()})
}
