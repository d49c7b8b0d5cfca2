//! A client that speaks raw JSON-RPC and insists on knowing why it was sent each message.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use warplens_lsp::{CompileFn, Options, Slow, serve};

/// Longest wait for anything; reached only by a server that hangs.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// How a session begins, and how the client behaves in it.
pub struct Setup {
    pub capabilities: Value,
    pub options: Value,
    pub folder: Option<String>,
    /// The `warplens` settings section, for a server that asks.
    pub settings: Value,
    /// Answers the server's questions.
    pub answers: bool,
    /// Time added to the server's work.
    pub slow: Slow,
    /// Who runs the user's compiler.
    pub compile: CompileFn,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            capabilities: json!({}),
            options: Value::Null,
            folder: None,
            settings: Value::Null,
            answers: true,
            slow: Slow::default(),
            compile: Options::default().compile,
        }
    }
}

pub struct Client {
    to: Option<DuplexStream>,
    from: DuplexStream,
    bytes: Vec<u8>,
    server: JoinHandle<i32>,
    next_id: i64,
    answers: bool,
    /// The `warplens` settings section as the client answers it from now on.
    pub settings: Value,
    responses: HashMap<i64, Value>,
    /// Notifications not looked at yet.
    pub notifications: VecDeque<Value>,
    /// Methods of the server's requests, in order.
    pub asked: Vec<String>,
    /// What each of them said.
    questions: Vec<Value>,
    /// The result of `initialize`.
    pub initialized: Value,
}

impl Client {
    /// A server and a client, not introduced to each other yet.
    pub fn connect(slow: Slow) -> Client {
        Client::connect_with(Options {
            slow,
            ..Options::default()
        })
    }

    pub fn connect_with(options: Options) -> Client {
        let (to, input) = tokio::io::duplex(64 * 1024);
        let (output, from) = tokio::io::duplex(64 * 1024);
        let server =
            tokio::spawn(async move { serve(input, output, &options).await.expect("no record") });
        Client {
            to: Some(to),
            from,
            bytes: Vec::new(),
            server,
            next_id: 1,
            answers: true,
            settings: Value::Null,
            responses: HashMap::new(),
            notifications: VecDeque::new(),
            asked: Vec::new(),
            questions: Vec::new(),
            initialized: Value::Null,
        }
    }

    /// A session, initialized.
    pub async fn start(setup: Setup) -> Client {
        let mut client = Client::connect_with(Options {
            slow: setup.slow,
            compile: setup.compile,
            ..Options::default()
        });
        client.answers = setup.answers;
        client.settings = setup.settings;
        let folders = setup
            .folder
            .map(|uri| json!([{"uri": uri, "name": "folder"}]));
        let initialize = client
            .ask(
                "initialize",
                json!({
                    "processId": std::process::id(),
                    "capabilities": setup.capabilities,
                    "initializationOptions": setup.options,
                    "workspaceFolders": folders,
                    "rootUri": null,
                }),
            )
            .await;
        client.initialized = initialize;
        client.notify("initialized", json!({})).await;
        client
    }

    // ----- out -----

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        let to = self.to.as_mut().expect("the pipe is open");
        let sent = tokio::time::timeout(PATIENCE, to.write_all(bytes)).await;
        sent.expect("the server reads").expect("the pipe is open");
    }

    pub async fn send(&mut self, message: Value) {
        let body = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .await;
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// Sends a request and returns its id at once.
    pub async fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a request and waits for its result.
    #[track_caller]
    pub fn ask<'c>(
        &'c mut self,
        method: &'c str,
        params: Value,
    ) -> impl Future<Output = Value> + 'c {
        let caller = std::panic::Location::caller();
        async move {
            let id = self.request(method, params).await;
            let mut response = self.response(id).await;
            assert!(
                response.get("error").is_none(),
                "{caller}: {method}: {response}"
            );
            response["result"].take()
        }
    }

    /// Sends a request that must fail and returns the error.
    pub async fn ask_wrongly(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let mut response = self.response(id).await;
        assert!(
            response.get("error").is_some(),
            "{method} should fail: {response}"
        );
        response["error"].take()
    }

    pub async fn command(&mut self, name: &str, argument: Value) -> Value {
        self.ask(
            "workspace/executeCommand",
            json!({"command": name, "arguments": [argument]}),
        )
        .await
    }

    pub async fn open(&mut self, uri: &str, language: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}))
            .await;
    }

    /// Replaces a range, `[line, character, line, character]`.
    pub async fn edit(&mut self, uri: &str, version: i32, range: [u32; 4], text: &str) {
        let changes = json!([{"range": self::range(range), "text": text}]);
        self.change(uri, version, changes).await;
    }

    pub async fn change(&mut self, uri: &str, version: i32, changes: Value) {
        let params =
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes});
        self.notify("textDocument/didChange", params).await;
    }

    pub async fn close(&mut self, uri: &str) {
        self.notify(
            "textDocument/didClose",
            json!({"textDocument": {"uri": uri}}),
        )
        .await;
    }

    // ----- in -----

    async fn read_frame(&mut self) -> Option<Value> {
        loop {
            let ends = self
                .bytes
                .windows(4)
                .position(|window| window == b"\r\n\r\n");
            if let Some(end) = ends {
                let header = std::str::from_utf8(&self.bytes[..end]).expect("a header");
                let length = header.strip_prefix("Content-Length: ").expect("its length");
                let length: usize = length.parse().expect("a number");
                if self.bytes.len() >= end + 4 + length {
                    let body: Vec<u8> =
                        self.bytes.drain(..end + 4 + length).skip(end + 4).collect();
                    return Some(serde_json::from_slice(&body).expect("JSON"));
                }
            }
            if self.from.read_buf(&mut self.bytes).await.expect("the pipe") == 0 {
                return None;
            }
        }
    }

    /// Takes one message in; false when there are no more.
    async fn receive(&mut self) -> bool {
        let message = tokio::time::timeout(PATIENCE, self.read_frame()).await;
        let Some(message) = message.expect("the server hangs") else {
            return false;
        };
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match (message.get("method"), message.get("id")) {
            (Some(method), Some(id)) => {
                let method = method.as_str().expect("a name").to_owned();
                let result = match method.as_str() {
                    "workspace/configuration" => json!([self.settings]),
                    _ => Value::Null,
                };
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                self.asked.push(method);
                self.questions.push(message["params"].clone());
                if self.answers && self.to.is_some() {
                    self.send(answer).await;
                }
            }
            (Some(_), None) => self.notifications.push_back(message),
            (None, _) => {
                let id = message["id"].as_i64().unwrap_or(-1);
                let before = self.responses.insert(id, message);
                assert!(id == -1 || before.is_none(), "answered twice: {before:?}");
            }
        }
        true
    }

    /// The response to a request.
    pub async fn response(&mut self, id: i64) -> Value {
        loop {
            if let Some(response) = self.responses.remove(&id) {
                return response;
            }
            assert!(
                self.receive().await,
                "the server went away with request {id} unanswered"
            );
        }
    }

    /// The next notification of a method; others stay.
    pub async fn notification(&mut self, method: &str) -> Value {
        loop {
            let at = self
                .notifications
                .iter()
                .position(|message| message["method"] == method);
            if let Some(at) = at {
                return self.notifications.remove(at).expect("found")["params"].take();
            }
            assert!(self.receive().await, "the server went away before {method}");
        }
    }

    /// The diagnostics published for a version of a document; older versions are passed over, as the
    /// protocol lets servers skip them.
    pub async fn published(&mut self, uri: &str, version: i32) -> Vec<Value> {
        loop {
            let mut params = self.notification("textDocument/publishDiagnostics").await;
            assert_eq!(params["uri"], uri, "{params}");
            let found = params["version"].as_i64().expect("a version");
            assert!(
                found <= i64::from(version),
                "newer than anything sent: {params}"
            );
            if found == i64::from(version) {
                let list = params["diagnostics"].take();
                return list.as_array().expect("a list").clone();
            }
        }
    }

    /// Waits until a question of this kind has come from the server.
    pub async fn until_asked(&mut self, method: &str) {
        while !self.asked.iter().any(|asked| asked == method) {
            assert!(self.receive().await, "the server went away before {method}");
        }
    }

    /// The same, and what it said.
    pub async fn question(&mut self, method: &str) -> Value {
        self.until_asked(method).await;
        let at = self.asked.iter().position(|asked| asked == method);
        self.questions[at.expect("asked")].clone()
    }

    // ----- the end -----

    /// Closes the client's end of the pipe.
    pub fn hang_up(&mut self) {
        self.to = None;
    }

    /// Waits for the server to end and returns its exit code.
    pub async fn exit_code(mut self) -> i32 {
        while self.receive().await {}
        let code = tokio::time::timeout(PATIENCE, self.server).await;
        code.expect("the server ends").expect("without a panic")
    }

    /// A polite end. Every message of the server must have been looked at.
    pub async fn finish(mut self) {
        let shutdown = self.ask("shutdown", Value::Null).await;
        assert_eq!(shutdown, Value::Null);
        assert!(
            self.notifications.is_empty(),
            "not looked at: {:#?}",
            self.notifications
        );
        assert!(
            self.responses.is_empty(),
            "not looked at: {:#?}",
            self.responses
        );
        self.notify("exit", Value::Null).await;
        assert_eq!(self.exit_code().await, 0);
    }
}

/// `[line, character, line, character]` as the protocol has it.
pub fn range([a, b, c, d]: [u32; 4]) -> Value {
    json!({"start": {"line": a, "character": b}, "end": {"line": c, "character": d}})
}

pub fn at(uri: &str, line: u32, character: u32) -> Value {
    json!({"textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
}

pub fn document(uri: &str) -> Value {
    json!({"textDocument": {"uri": uri}})
}

/// The rules of some diagnostics, in order.
pub fn codes(diagnostics: &[Value]) -> Vec<&str> {
    diagnostics
        .iter()
        .map(|one| one["code"].as_str().expect("a rule"))
        .collect()
}

/// A kernel that reads with a stride.
pub fn strided(stride: u32) -> String {
    format!(
        "__global__ void copy(float *out, const float *in) {{\n    \
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
         out[i] = in[{stride} * i];\n}}\n"
    )
}
