//! Everything the server sends, behind one queue that never blocks.
//!
//! A client that stops reading must not stop the server from reading: senders only append here, and
//! one task writes. Diagnostics wait in a slot for each document, so that a newer version replaces one that
//! is still waiting: a client that sleeps through a thousand edits finds one list, the newest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tower_lsp_server::ls_types::{Diagnostic, PublishDiagnosticsParams, Uri};

/// What a diagnostic takes as JSON, about.
const BYTES_EACH: usize = 512;
/// Bytes gathered before they are handed to the pipe.
const BATCH: usize = 64 * 1024;

enum Item {
    Message(Vec<u8>),
    /// The diagnostics waiting for this document.
    Diagnostics(String),
    Close,
}

type Slots = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// The diagnostics published last by document, each with its JSON: after a keystroke almost all of thousands are the same.
type Published = Arc<Mutex<HashMap<String, Vec<(Diagnostic, Box<RawValue>)>>>>;

/// Where messages to the client go; cheap to clone, usable from any thread.
#[derive(Debug, Clone)]
pub struct Outgoing {
    queue: UnboundedSender<Item>,
    waiting: Slots,
    published: Published,
}

/// The other end, for the one task that writes.
#[derive(Debug)]
pub struct OutgoingReceiver {
    queue: UnboundedReceiver<Item>,
    waiting: Slots,
}

impl std::fmt::Debug for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Item::Message(_) => "Message",
            Item::Diagnostics(_) => "Diagnostics",
            Item::Close => "Close",
        })
    }
}

#[derive(Serialize)]
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

/// [`PublishDiagnosticsParams`] with each diagnostic as JSON.
#[derive(Serialize)]
struct Params<'a> {
    uri: &'a Uri,
    diagnostics: Vec<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i32>,
}

/// A new queue.
pub fn channel() -> (Outgoing, OutgoingReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Slots::default();
    (
        Outgoing {
            queue: sender,
            waiting: waiting.clone(),
            published: Published::default(),
        },
        OutgoingReceiver {
            queue: receiver,
            waiting,
        },
    )
}

impl Outgoing {
    /// Sends a message: a request, a response or a notification.
    pub fn send(&self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            // The receiver is gone only when the session is over.
            Ok(bytes) => drop(self.queue.send(Item::Message(bytes))),
            Err(error) => tracing::error!("a message could not be written as JSON: {error}"),
        }
    }

    /// Publishes diagnostics, in place of older ones of the same document that have not left yet.
    pub fn publish(&self, params: PublishDiagnosticsParams) {
        let uri = params.uri.as_str();
        // Held until they wait: of two, the later one is published.
        let mut published = self
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last = published.remove(uri).unwrap_or_default();
        let Ok(diagnostics) = as_json(params.diagnostics, last) else {
            return;
        };
        let message = Notification {
            jsonrpc: "2.0",
            method: "textDocument/publishDiagnostics",
            params: Params {
                uri: &params.uri,
                diagnostics: diagnostics.iter().map(|(_, json)| &**json).collect(),
                version: params.version,
            },
        };
        // Of thousands of findings: the buffer does not grow step by step.
        let mut bytes = Vec::with_capacity(BYTES_EACH * (1 + diagnostics.len()));
        if serde_json::to_writer(&mut bytes, &message).is_err() {
            return;
        }
        if !diagnostics.is_empty() {
            published.insert(uri.to_owned(), diagnostics);
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.insert(uri.to_owned(), bytes).is_none() {
            drop(self.queue.send(Item::Diagnostics(uri.to_owned())));
        }
    }

    /// Ends the writing task once everything sent so far is written.
    pub fn close(&self) {
        drop(self.queue.send(Item::Close));
    }
}

/// Diagnostics with their JSON, made only for those that are not among the `last` ones at the beginning or at the end.
fn as_json(
    diagnostics: Vec<Diagnostic>,
    last: Vec<(Diagnostic, Box<RawValue>)>,
) -> serde_json::Result<Vec<(Diagnostic, Box<RawValue>)>> {
    let same = |(one, (other, _)): &(&Diagnostic, &(Diagnostic, _))| *one == other;
    let before = diagnostics.iter().zip(&last).take_while(same).count();
    let rest = diagnostics[before..].iter().rev();
    let behind = rest.zip(last[before..].iter().rev());
    let behind = behind.take_while(same).count();
    let (new_end, old_end) = (diagnostics.len() - behind, last.len() - behind);
    let mut last = last.into_iter().map(|(_, json)| json);
    let mut all = Vec::with_capacity(diagnostics.len());
    for (at, diagnostic) in diagnostics.into_iter().enumerate() {
        if at == new_end {
            // What is not the same is passed over.
            let changed = old_end - before;
            last.by_ref().take(changed).for_each(drop);
        }
        let known = (at < before || at >= new_end).then(|| last.next());
        let json = match known.flatten() {
            Some(json) => json,
            None => serde_json::value::to_raw_value(&diagnostic)?,
        };
        all.push((diagnostic, json));
    }
    Ok(all)
}

impl OutgoingReceiver {
    /// Writes until [`Outgoing::close`], or until the client's end of the pipe is gone.
    pub async fn write_to(mut self, mut output: impl AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut batch = Vec::new();
        while let Some(item) = self.queue.recv().await {
            let mut open = self.append(item, &mut batch);
            while open && batch.len() < BATCH {
                let Ok(item) = self.queue.try_recv() else {
                    break;
                };
                open = self.append(item, &mut batch);
            }
            output.write_all(&batch).await?;
            output.flush().await?;
            batch.clear();
            batch.shrink_to(BATCH);
            if !open {
                break;
            }
        }
        output.shutdown().await
    }

    /// Appends a frame; false at the end.
    fn append(&self, item: Item, batch: &mut Vec<u8>) -> bool {
        let body = match item {
            Item::Message(body) => Some(body),
            Item::Diagnostics(uri) => self
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&uri),
            Item::Close => return false,
        };
        if let Some(body) = body {
            batch.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
            batch.extend_from_slice(&body);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::str::FromStr;
    use tower_lsp_server::ls_types::Uri;

    fn diagnostics(uri: &str, version: i32) -> PublishDiagnosticsParams {
        PublishDiagnosticsParams::new(Uri::from_str(uri).expect("a URI"), vec![], Some(version))
    }

    async fn bodies(written: OutgoingReceiver) -> Vec<String> {
        let (near, mut far) = tokio::io::duplex(1 << 20);
        written.write_to(near).await.expect("written");
        let mut all = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut far, &mut all)
            .await
            .expect("text");
        let mut bodies = Vec::new();
        let mut rest = all.as_str();
        while let Some((header, after)) = rest.split_once("\r\n\r\n") {
            let length: usize = header
                .strip_prefix("Content-Length: ")
                .expect("a header")
                .parse()
                .expect("a number");
            bodies.push(after[..length].to_owned());
            rest = &after[length..];
        }
        bodies
    }

    #[tokio::test]
    async fn of_diagnostics_that_wait_only_the_newest_leave() {
        let (outgoing, written) = channel();
        for version in 1..=1000 {
            outgoing.publish(diagnostics("file:///a.cu", version));
        }
        outgoing.publish(diagnostics("file:///b.cu", 7));
        outgoing.send(&"last");
        outgoing.close();
        let bodies = bodies(written).await;
        assert_eq!(bodies.len(), 3, "{bodies:?}");
        assert!(
            bodies[0].contains("a.cu") && bodies[0].contains("1000"),
            "{}",
            bodies[0]
        );
        assert!(
            bodies[1].contains("b.cu") && bodies[1].contains('7'),
            "{}",
            bodies[1]
        );
        assert_eq!(bodies[2], "\"last\"");
    }

    #[test]
    fn diagnostics_are_written_as_they_are_whatever_was_known() {
        let one = |at: &u32| {
            let at = tower_lsp_server::ls_types::Position::new(*at, 0);
            let range = tower_lsp_server::ls_types::Range::new(at, at);
            Diagnostic::new_simple(range, "a \"finding\"".to_owned())
        };
        let lists: [&[u32]; 8] = [
            &[],
            &[1],
            &[1, 2, 3],
            &[1, 9, 3],
            &[1, 3],
            &[1, 1, 1],
            &[1, 1],
            &[0, 1, 1, 4],
        ];
        for (before, after) in lists
            .iter()
            .flat_map(|one| lists.iter().map(move |other| (one, other)))
        {
            let known = as_json(before.iter().map(one).collect(), Vec::new());
            let made = as_json(after.iter().map(one).collect(), known.expect("JSON"));
            let expected: Vec<Diagnostic> = after.iter().map(one).collect();
            let made = made.expect("JSON");
            assert!(made.iter().map(|(one, _)| one).eq(&expected));
            for (diagnostic, json) in made {
                let whole = serde_json::to_string(&diagnostic).expect("JSON");
                assert_eq!(json.get(), whole, "{before:?} {after:?}");
            }
        }
    }

    #[tokio::test]
    async fn diagnostics_that_left_make_room_for_the_next() {
        let (outgoing, written) = channel();
        let (near, mut far) = tokio::io::duplex(1 << 20);
        let writer = tokio::spawn(written.write_to(near));
        let mut seen = String::new();
        for version in [1, 2] {
            outgoing.publish(diagnostics("file:///a.cu", version));
            while !seen.contains(&format!("\"version\":{version}")) {
                let mut chunk = vec![0; 4096];
                let read = tokio::io::AsyncReadExt::read(&mut far, &mut chunk)
                    .await
                    .expect("read");
                seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        }
        outgoing.close();
        writer.await.expect("no panic").expect("written");
    }
}
