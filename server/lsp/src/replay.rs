//! A recorded session served once more, and how long each answer took.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, WriteHalf};
use tokio::sync::mpsc;

use crate::frames::{self, Frame};
use crate::{Options, serve};

/// How long the last answers may take.
const LAST_ANSWERS: Duration = Duration::from_secs(30);
/// Bytes on their way in each direction.
const PIPE: usize = 1 << 20;
/// What a change of a document is waited for with.
const SHOWN: &str = "textDocument/publishDiagnostics";
const CHANGED: &str = "textDocument/didChange";

/// A session as `warplens lsp --record` writes it.
#[derive(Debug)]
pub struct Recording {
    messages: Vec<RecordedMessage>,
}

#[derive(Debug, Deserialize)]
struct RecordedMessage {
    ms: f64,
    message: Value,
}

/// How a session went.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// By method, how long each answer took; for `textDocument/didChange` until the diagnostics of that version or a later one
    /// came, where the client has them pushed.
    pub answers: BTreeMap<String, Vec<Duration>>,
    /// Answers that were errors, by what they say; a cancelled request is none.
    pub errors: BTreeMap<String, u64>,
    /// Requests that got no answer.
    pub unanswered: Vec<String>,
    /// True where the server ended with status 0.
    pub clean: bool,
}

/// Why a file is no recording: one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRecording(String);

impl fmt::Display for NoRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoRecording {}

impl Recording {
    /// Reads one. A last line that was cut off is left out: a session may have been killed.
    ///
    /// # Errors
    /// Which line is none, or that there is none at all.
    pub fn read(text: &str) -> Result<Recording, NoRecording> {
        let mut messages: Vec<RecordedMessage> = Vec::new();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        for (at, line) in lines.iter().enumerate() {
            match serde_json::from_str(line) {
                Ok(message) => messages.push(message),
                Err(_) if at > 0 && at + 1 == lines.len() => {}
                Err(error) => {
                    return Err(NoRecording(format!(
                        "line {} is not a recorded message: {error}",
                        at + 1
                    )));
                }
            }
        }
        if messages.is_empty() {
            return Err(NoRecording("holds no recorded messages".to_owned()));
        }
        Ok(Recording { messages })
    }

    /// Serves it within this process, at the pace of the recording with no pause longer than `longest`.
    ///
    /// # Errors
    /// The runtime cannot be started, or its pipes break.
    pub fn replay(self, longest: Duration) -> std::io::Result<ReplayReport> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let replayed = runtime.block_on(replay(self.messages, longest));
        runtime.shutdown_background();
        replayed
    }
}

/// What is on its way.
#[derive(Default)]
struct Open {
    /// Requests by id: method, when.
    requests: HashMap<String, (String, Instant)>,
    /// Changes by document: version, when, oldest first.
    changes: HashMap<String, Vec<(i64, Instant)>>,
    replayed: ReplayReport,
}

async fn replay(
    messages: Vec<RecordedMessage>,
    longest: Duration,
) -> std::io::Result<ReplayReport> {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (input, output) = tokio::io::split(theirs);
    let options = Options::default();
    let server = tokio::spawn(async move { serve(input, output, &options).await });
    let (answers, mut asking) = tokio::io::split(ours);
    let open = Arc::new(Mutex::new(Open::default()));
    // What the client answered to the server's own requests.
    let given: HashMap<String, Value> = messages
        .iter()
        .filter(|recorded| recorded.message.get("method").is_none())
        .filter_map(|recorded| {
            let result = recorded.message.get("result")?.clone();
            Some((recorded.message.get("id")?.to_string(), result))
        })
        .collect();
    let (reply, mut replies) = mpsc::unbounded_channel();
    let receiver_open = Arc::clone(&open);
    let listener = tokio::spawn(async move {
        let mut answers = BufReader::new(answers);
        while let Some(frame) = frames::read(&mut answers).await {
            let Frame::Body(body) = frame else { continue };
            let Ok(message) = serde_json::from_slice::<Value>(&body) else {
                continue;
            };
            let now = Instant::now();
            let mut open = receiver_open.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(id) = open.receive(&message, now) {
                let result = given.get(&id.to_string()).cloned().unwrap_or(Value::Null);
                // The receiver may be gone.
                drop(reply.send(json!({"jsonrpc": "2.0", "id": id, "result": result})));
            }
        }
    });
    let mut before = messages.first().map_or(0.0, |first| first.ms);
    let mut ended = false;
    for recorded in messages {
        let pause = Duration::from_secs_f64(((recorded.ms - before) / 1e3).clamp(0.0, 3600.0));
        before = recorded.ms;
        tokio::time::sleep(pause.min(longest)).await;
        while let Ok(answer) = replies.try_recv() {
            send(&mut asking, &answer).await?;
        }
        let mut message = recorded.message;
        match message.get("method").and_then(Value::as_str) {
            None => continue,
            // The client's process is not there any more: the server would end with it.
            Some("initialize") => message["params"]["processId"] = Value::Null,
            Some("shutdown") => settle(&open, &mut replies, &mut asking).await?,
            Some("exit") => ended = true,
            Some(_) => {}
        }
        open.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .say(&message, Instant::now());
        send(&mut asking, &message).await?;
    }
    settle(&open, &mut replies, &mut asking).await?;
    if !ended {
        send(
            &mut asking,
            &json!({"jsonrpc": "2.0", "id": "warplens-replay", "method": "shutdown"}),
        )
        .await?;
        send(&mut asking, &json!({"jsonrpc": "2.0", "method": "exit"})).await?;
    }
    let code = tokio::time::timeout(LAST_ANSWERS, server).await;
    drop(asking);
    listener.abort();
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    let mut replayed = std::mem::take(&mut open.replayed);
    replayed.unanswered = open
        .requests
        .values()
        .map(|(method, _)| method.clone())
        .collect();
    replayed.unanswered.sort_unstable();
    replayed.clean = matches!(code, Ok(Ok(Ok(0))));
    Ok(replayed)
}

/// Waits until every request has its answer.
async fn settle(
    open: &Mutex<Open>,
    replies: &mut mpsc::UnboundedReceiver<Value>,
    asking: &mut WriteHalf<DuplexStream>,
) -> std::io::Result<()> {
    let until = Instant::now() + LAST_ANSWERS;
    loop {
        while let Ok(answer) = replies.try_recv() {
            send(asking, &answer).await?;
        }
        let waiting = {
            let open = open.lock().unwrap_or_else(PoisonError::into_inner);
            !open.requests.is_empty()
        };
        if !waiting || Instant::now() > until {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn send(to: &mut WriteHalf<DuplexStream>, message: &Value) -> std::io::Result<()> {
    let body = message.to_string();
    let head = format!("Content-Length: {}\r\n\r\n", body.len());
    to.write_all(head.as_bytes()).await?;
    to.write_all(body.as_bytes()).await?;
    to.flush().await
}

impl Open {
    /// Remembers what is sent.
    fn say(&mut self, message: &Value, now: Instant) {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return;
        };
        if let Some(id) = message.get("id") {
            self.requests
                .insert(id.to_string(), (method.to_owned(), now));
        } else if method == CHANGED {
            let document = &message["params"]["textDocument"];
            if let (Some(uri), Some(version)) =
                (document["uri"].as_str(), document["version"].as_i64())
            {
                let changes = self.changes.entry(uri.to_owned()).or_default();
                changes.push((version, now));
            }
        }
    }

    /// Takes what came; the id of a request of the server's own.
    fn receive(&mut self, message: &Value, now: Instant) -> Option<Value> {
        let id = message.get("id");
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(_), Some(id)) => return Some(id.clone()),
            (Some(SHOWN), None) => {
                let shown = &message["params"];
                let version = shown["version"].as_i64().unwrap_or(i64::MAX);
                let changes = shown["uri"]
                    .as_str()
                    .and_then(|uri| self.changes.get_mut(uri));
                for (of, sent) in changes.into_iter().flatten() {
                    if *of <= version {
                        let times = self.replayed.answers.entry(CHANGED.to_owned()).or_default();
                        times.push(now - *sent);
                        *of = i64::MAX;
                    }
                }
                for changes in self.changes.values_mut() {
                    changes.retain(|(of, _)| *of != i64::MAX);
                }
            }
            (None, Some(id)) => {
                let (method, sent) = self.requests.remove(&id.to_string())?;
                match message.get("error") {
                    // The client took it back, or the text has changed meanwhile.
                    Some(error) if matches!(error["code"].as_i64(), Some(-32800 | -32801)) => {}
                    Some(error) => {
                        let says = error["message"].as_str().unwrap_or("?");
                        let count = self.replayed.errors.entry(format!("{method}: {says}"));
                        *count.or_default() += 1;
                    }
                    None => {
                        let times = self.replayed.answers.entry(method).or_default();
                        times.push(now - sent);
                    }
                }
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_refused_and_a_cut_one_is_not() {
        for wrong in ["", "{}", "not json\n{\"ms\":1,\"message\":{}}"] {
            assert!(Recording::read(wrong).is_err(), "{wrong}");
        }
        let cut = "{\"ms\":0.1,\"message\":{\"method\":\"exit\"}}\n{\"ms\":0.2,\"mess";
        assert_eq!(Recording::read(cut).map(|one| one.messages.len()), Ok(1));
    }

    #[test]
    fn a_recorded_session_is_answered_to_its_end() {
        let uri = "file:///replay/k.cu";
        let text = "__global__ void k(float *a) { a[threadIdx.x * 2] = 1.0f; }\n";
        let messages = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                   "params": {"processId": 999_999_999, "capabilities": {}}}),
            json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}),
            json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument":
                   {"uri": uri, "languageId": "cuda", "version": 1, "text": text}}}),
            json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
                   "textDocument": {"uri": uri, "version": 2},
                   "contentChanges": [{"text": text.replace('2', "4")}]}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "textDocument/hover", "params": {
                   "textDocument": {"uri": uri}, "position": {"line": 0, "character": 32}}}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "no/such", "params": {}}),
        ];
        let lines = messages
            .iter()
            .enumerate()
            .map(|(at, message)| json!({"ms": at as f64 * 5000.0, "message": message}).to_string());
        let text: Vec<String> = lines.collect();
        let recording = Recording::read(&text.join("\n")).unwrap();
        let replayed = recording.replay(Duration::from_millis(100)).unwrap();
        for method in ["initialize", "textDocument/hover", CHANGED] {
            assert_eq!(
                replayed.answers.get(method).map(Vec::len),
                Some(1),
                "{replayed:?}"
            );
        }
        assert_eq!(replayed.errors.values().sum::<u64>(), 1, "{replayed:?}");
        assert!(
            replayed.unanswered.is_empty() && replayed.clean,
            "{replayed:?}"
        );
    }
}
