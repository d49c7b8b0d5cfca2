//! A language server in a process of its own, asked as an editor asks.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Ended when it is dropped.
#[derive(Debug)]
pub struct Session {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    /// Longest wait for one answer.
    pub limit: Duration,
    /// What it said of an internal error.
    pub complaint: Option<String>,
}

impl Session {
    /// Starts one for a folder.
    pub fn start(bin: &Path, folder: &Path, limit: Duration) -> anyhow::Result<Session> {
        let mut child = Command::new(bin)
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", bin.display()))?;
        let to = child.stdin.take().context("no input")?;
        let mut output = BufReader::new(child.stdout.take().context("no output")?);
        let (sender, from) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut session = Session {
            child,
            to,
            from,
            next: 1,
            limit,
            complaint: None,
        };
        let folder = json!([{"uri": uri(folder), "name": "folder"}]);
        session.ask(
            "initialize",
            &json!({
                "capabilities": {"textDocument": {"diagnostic": {}}},
                "workspaceFolders": folder,
            }),
        )?;
        session.notify("initialized", &json!({}))?;
        Ok(session)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let body = message.to_string();
        let sent = write!(self.to, "Content-Length: {}\r\n\r\n{body}", body.len());
        sent.and_then(|()| self.to.flush())
            .context("the server is gone")
    }

    pub fn notify(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let mut results = self.ask_together(&[(method, params.clone())])?;
        Ok(results.pop().unwrap_or_default())
    }

    /// Sends all requests before it waits for the first response.
    pub fn ask_together(&mut self, requests: &[(&str, Value)]) -> anyhow::Result<Vec<Value>> {
        let first = self.next;
        for (method, params) in requests {
            let id = self.next;
            self.next += 1;
            self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        }
        let mut results = vec![None; requests.len()];
        while let Some(waited) = results.iter().position(Option::is_none) {
            let method = requests[waited].0;
            let mut message = match self.from.recv_timeout(self.limit) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("no answer to {method} after {} s", self.limit.as_secs())
                }
                Err(_) => bail!("the server ended before it answered {method}"),
            };
            if message.get("method").is_some() {
                let text = message["params"].to_string();
                if text.contains("internal error") {
                    self.complaint = Some(text);
                }
                continue;
            }
            let number = message["id"].as_u64().and_then(|id| id.checked_sub(first));
            let place = number.and_then(|number| results.get_mut(number as usize));
            // One that was given up is answered all the same.
            let Some(place) = place else { continue };
            if let Some(error) = message.get("error") {
                bail!("{method}: {error}");
            }
            *place = Some(message["result"].take());
        }
        Ok(results.into_iter().flatten().collect())
    }

    pub fn open(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        let document = json!({"uri": uri(path), "languageId": "", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}))
    }

    pub fn change(&mut self, path: &Path, version: usize, change: &Value) -> anyhow::Result<()> {
        let document = json!({"uri": uri(path), "version": version});
        self.notify(
            "textDocument/didChange",
            &json!({"textDocument": document, "contentChanges": [change]}),
        )
    }

    /// Everything shown of each of these documents, asked about together.
    pub fn shown(&mut self, paths: &[&Path]) -> anyhow::Result<Vec<Value>> {
        let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}});
        let document = |path: &&Path| json!({"textDocument": {"uri": uri(path)}});
        let of_each = |method: &'static str, params: &dyn Fn(&&Path) -> Value| {
            let requests: Vec<_> = paths.iter().map(|path| (method, params(path))).collect();
            requests
        };
        // Findings and figures are those of the text as it is. Hints and lenses would be the last that are known where that
        // takes long: they are asked for when it is done.
        let findings = self.ask_together(&of_each("textDocument/diagnostic", &document))?;
        let figures = self.ask_together(&of_each(
            "workspace/executeCommand",
            &|path| json!({"command": "warplens.estimate", "arguments": [{"uri": uri(path)}]}),
        ))?;
        let hints = self.ask_together(&of_each(
            "textDocument/inlayHint",
            &|path| json!({"textDocument": {"uri": uri(path)}, "range": whole}),
        ))?;
        let lenses = self.ask_together(&of_each("textDocument/codeLens", &document))?;
        let lenses: Vec<Value> = lenses.into_iter().map(without_earlier_times).collect();
        let of_one = |at: usize| {
            json!({
                "findings": findings[at]["items"],
                "figures": figures[at],
                "hints": hints[at],
                "lenses": lenses[at],
            })
        };
        Ok((0..paths.len()).map(of_one).collect())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Lenses without what kernels took when the text was saved, which only a session that began with another text shows, and without
/// what is shown behind the occupancy, or of a formula whatever the sizes are, only where that leaves room.
fn without_earlier_times(mut lenses: Value) -> Value {
    for lens in lenses.as_array_mut().into_iter().flatten() {
        let title = &mut lens["command"]["title"];
        let Some(shown) = title.as_str() else {
            continue;
        };
        let now = shown.split_once(" → ").map_or(shown, |(_, now)| now);
        let end = now.split_once("occupancy ").and_then(|(before, rest)| {
            Some(before.len() + "occupancy ".len() + rest.find('%')? + 1)
        });
        // Without an occupancy the GPU is last.
        let end = end.or_else(|| now.rfind(" · "));
        let now = &now[..end.unwrap_or(now.len())];
        let (time, rest) = now.split_once(" · ").unwrap_or((now, ""));
        let slopes = time.split(" + ").filter(|part| part.contains('×'));
        let slopes: Vec<&str> = slopes.collect();
        let time = if slopes.is_empty() {
            time.to_owned()
        } else {
            slopes.join(" + ")
        };
        *title = format!("{time} · {rest}").into();
    }
    lenses
}

/// The next message; none at the end of the stream.
fn read(from: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some(digits) = line.strip_prefix("Content-Length: ") {
            length = digits.parse::<usize>().ok();
        }
    }
    let mut body = vec![0; length?];
    from.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
