//! A client that sends one message at a time, waits for each response and measures how long it took.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// A server's process, and the pipes to it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
}

/// A message of the server and its latency.
#[derive(Debug)]
pub struct Response {
    /// The message.
    pub message: Value,
    /// From sending the request until the response had arrived, before parsing.
    pub took: Duration,
}

impl Client {
    /// Starts a server and sends `initialize`.
    ///
    /// # Errors
    /// The program cannot be started, or does not answer.
    pub fn start(command: &mut Command) -> anyhow::Result<Client> {
        Client::initialized(command, &json!({"processId": null, "capabilities": {}}))
    }

    /// The same with a workspace of one folder, by its URI.
    ///
    /// # Errors
    /// The program cannot be started, or does not answer.
    pub fn start_in(command: &mut Command, folder: &str) -> anyhow::Result<Client> {
        let folders = json!([{"uri": folder, "name": "folder"}]);
        Client::initialized(
            command,
            &json!({"processId": null, "capabilities": {}, "workspaceFolders": folders}),
        )
    }

    fn initialized(command: &mut Command, params: &Value) -> anyhow::Result<Client> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {name}"))?;
        let to = child.stdin.take();
        let from = BufReader::with_capacity(1 << 20, child.stdout.take().context("a pipe")?);
        let mut client = Client {
            child,
            to,
            from,
            next: 1_000_000,
        };
        client.request("initialize", params)?;
        client.notify("initialized", &json!({}))?;
        Ok(client)
    }

    /// The server's process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The server is gone.
    pub fn notify(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        self.send(&said(method, params))
    }

    /// Sends a request and waits for the response.
    ///
    /// # Errors
    /// The server is gone, or answers with an error.
    pub fn request(&mut self, method: &str, params: &Value) -> anyhow::Result<Response> {
        let id = self.next;
        self.next += 1;
        let mut message = said(method, params);
        message["id"] = json!(id);
        let started = Instant::now();
        self.send(&message)?;
        let response = self.wait(started, |message| {
            message["id"] == id && message.get("method").is_none()
        })?;
        if let Some(error) = response.message.get("error") {
            bail!("{method}: {error}");
        }
        Ok(response)
    }

    /// Sends a notification about a document and waits for the diagnostics of that version.
    ///
    /// # Errors
    /// The server is gone.
    pub fn shown(
        &mut self,
        method: &str,
        params: &Value,
        uri: &str,
        version: i64,
    ) -> anyhow::Result<Response> {
        let message = said(method, params);
        let started = Instant::now();
        self.send(&message)?;
        self.diagnostics(started, uri, version)
    }

    /// Waits for the diagnostics of a document at a version, or a newer one.
    fn diagnostics(&mut self, since: Instant, uri: &str, version: i64) -> anyhow::Result<Response> {
        self.wait(since, |message| {
            let shown = &message["params"];
            message["method"] == "textDocument/publishDiagnostics"
                && shown["uri"] == uri
                && (version == 0 || shown["version"].as_i64().is_some_and(|of| of >= version))
        })
    }

    /// Waits for diagnostics of a document that change for another reason than its own edit.
    ///
    /// # Errors
    /// The server is gone.
    pub fn shown_again(&mut self, since: Instant, uri: &str) -> anyhow::Result<Response> {
        self.diagnostics(since, uri, 0)
    }

    fn wait(
        &mut self,
        since: Instant,
        wanted: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Response> {
        loop {
            let body = self.receive()?;
            let took = since.elapsed();
            let message: Value = serde_json::from_slice(&body)?;
            if wanted(&message) {
                return Ok(Response { message, took });
            }
            // Requests of the server get an empty response.
            if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": null}))?;
            }
        }
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let body = message.to_string();
        let to = self.to.as_mut().context("the session is over")?;
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        to.write_all(frame.as_bytes())?;
        Ok(to.flush()?)
    }

    fn receive(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut length = None;
        loop {
            let mut line = String::new();
            if self.from.read_line(&mut line)? == 0 {
                bail!("the server ended");
            }
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("Content-Length: ") {
                length = Some(number.parse()?);
            }
        }
        let mut body = vec![0; length.context("a message without a length")?];
        self.from.read_exact(&mut body)?;
        Ok(body)
    }

    /// Resident memory in MiB, where the system reports it.
    pub fn memory(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        Some(kib / 1024.0)
    }

    /// CPU time of the threads that the process has, where the system reports it.
    pub fn computed(&self) -> Option<Duration> {
        let mut sum = Duration::ZERO;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process())).ok()? {
            let path = thread.ok()?.path().join("schedstat");
            // A thread may end meanwhile.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let nanoseconds = text
                .split_whitespace()
                .next()
                .and_then(|of| of.parse().ok());
            sum += Duration::from_nanos(nanoseconds.unwrap_or(0));
        }
        Some(sum)
    }

    /// CPU time of the process in clock ticks, where the system reports it.
    pub fn ticks(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process())).ok()?;
        // The name in parentheses may hold any character: the state and the numbers follow the last `)`.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let at = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(at(11)? + at(12)?)
    }

    /// Shuts the server down and waits for its exit.
    ///
    /// # Errors
    /// The server had already exited.
    pub fn end(mut self) -> anyhow::Result<ExitStatus> {
        self.request("shutdown", &Value::Null)?;
        self.notify("exit", &Value::Null)?;
        self.to = None;
        Ok(self.child.wait()?)
    }
}

/// A message; what has no parameters must not have any.
fn said(method: &str, params: &Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if !params.is_null() {
        message["params"] = params.clone();
    }
    message
}

impl Drop for Client {
    fn drop(&mut self) {
        // Killing a process that has exited is harmless.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
