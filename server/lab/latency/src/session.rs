//! Replays a recorded session (`warplens lsp --record`) in lock step: each message waits for the response to the one before.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::client::Client;
use crate::kernels;

/// The placeholder for the repository in a recording's document URIs.
pub const REPOSITORY: &str = "file:///warplens/";

/// A document version that no session reaches.
const LAST: i64 = 1_000_000;
const OPENED: &str = "textDocument/didOpen";
/// The method of a keystroke, and the key of its times.
pub const CHANGED: &str = "textDocument/didChange";
/// The requests that an editor sends for what it shows.
pub const HINTS: &str = "textDocument/inlayHint";

/// A session on one document.
#[derive(Debug, Clone)]
pub struct Session {
    uri: String,
    /// The text as it was opened.
    pub text: String,
    language: String,
    /// The messages after `didOpen`, in order: method and parameters.
    pub said: Vec<(String, Value)>,
}

/// Latencies by method; for a change, until its diagnostics arrive.
pub type Times = BTreeMap<String, Vec<Duration>>;

impl Session {
    /// Reads a recording.
    ///
    /// # Errors
    /// It is none, or opens other than one document.
    pub fn read(recording: &str) -> anyhow::Result<Session> {
        let mut session: Option<Session> = None;
        for line in recording.lines().filter(|line| !line.trim().is_empty()) {
            let mut recorded: Value = serde_json::from_str(line).context("no recorded message")?;
            let message = &mut recorded["message"];
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            let params = message["params"].take();
            match (&mut session, method.as_str()) {
                (_, "initialize" | "initialized" | "shutdown" | "exit" | "") => {}
                (None, OPENED) => {
                    let document = &params["textDocument"];
                    let part = |name: &str| document[name].as_str().map(str::to_owned);
                    session = Some(Session {
                        uri: part("uri").context("a document without a name")?,
                        text: part("text").context("a document without a text")?,
                        language: part("languageId").unwrap_or_default(),
                        said: Vec::new(),
                    });
                }
                (Some(session), _) if params["textDocument"]["uri"] == *session.uri => {
                    session.said.push((method, params));
                }
                _ => bail!("{method}: a session is about one document"),
            }
        }
        session.context("no document is opened")
    }

    /// Reads every recording of a folder, by name.
    ///
    /// # Errors
    /// The folder or one of its files cannot be read.
    pub fn read_all(folder: &Path) -> anyhow::Result<Vec<(String, Session)>> {
        let mut sessions = Vec::new();
        let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let recording = std::fs::read_to_string(&path)?;
                let session =
                    Session::read(&recording).with_context(|| path.display().to_string())?;
                sessions.push((name.into_owned(), session));
            }
        }
        sessions.sort_by(|(a, _), (b, _)| a.cmp(b));
        if sessions.is_empty() {
            bail!("{}: no recordings", folder.display());
        }
        Ok(sessions)
    }

    /// The session on a file of `lines` lines: its recorded text between generated kernels.
    #[must_use]
    pub fn within(&self, lines: usize) -> Session {
        let own = self.text.lines().count();
        let others = lines.saturating_sub(own) / kernels::LINES;
        let before = others / 2;
        let text = format!(
            "{}{}{}",
            kernels::text(0, before),
            self.text,
            kernels::text(before, others - before)
        );
        let mut moved = self.clone();
        moved.text = text;
        for (_, params) in &mut moved.said {
            move_lines(params, (before * kernels::LINES) as u64);
        }
        moved
    }

    /// The session on a document of another name and language.
    #[must_use]
    pub fn named(&self, uri: &str, language: &str) -> Session {
        let mut named = self.clone();
        uri.clone_into(&mut named.uri);
        language.clone_into(&mut named.language);
        for (_, params) in &mut named.said {
            params["textDocument"]["uri"] = uri.into();
        }
        named
    }

    /// The session where the recording's `file:///warplens/` is this folder, so that headers are found.
    #[must_use]
    pub fn inside(&self, repository: &Path) -> Session {
        let file = self.uri.strip_prefix(REPOSITORY).unwrap_or(&self.uri);
        let path = repository.join(file);
        self.named(&format!("file://{}", path.display()), &self.language)
    }

    /// The document's name.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// Keystrokes in it.
    pub fn keystrokes(&self) -> usize {
        let changes = self.said.iter().filter(|(method, _)| method == CHANGED);
        changes.count()
    }

    /// Opens the document and waits until its diagnostics are there.
    ///
    /// # Errors
    /// The server is gone.
    pub fn open(&self, client: &mut Client) -> anyhow::Result<Duration> {
        let document = serde_json::json!({"textDocument": {
            "uri": self.uri, "languageId": self.language, "version": 1, "text": self.text}});
        Ok(client.shown(OPENED, &document, &self.uri, 1)?.took)
    }

    /// The diagnostics that the server publishes for the text as it was opened.
    ///
    /// # Errors
    /// The server is gone.
    pub fn diagnostics(&self, client: &mut Client) -> anyhow::Result<Value> {
        self.close(client)?;
        let document = serde_json::json!({"textDocument": {
            "uri": self.uri, "languageId": self.language, "version": LAST, "text": self.text}});
        Ok(client.shown(OPENED, &document, &self.uri, LAST)?.message)
    }

    /// Closes the document.
    ///
    /// # Errors
    /// The server is gone.
    pub fn close(&self, client: &mut Client) -> anyhow::Result<()> {
        let document = serde_json::json!({"textDocument": {"uri": self.uri}});
        client.notify("textDocument/didClose", &document)
    }

    /// Replays the messages in lock step; calls `pause` after each keystroke.
    ///
    /// # Errors
    /// The server is gone, or answers with an error.
    pub fn replay(
        &self,
        client: &mut Client,
        times: &mut Times,
        mut pause: impl FnMut(),
    ) -> anyhow::Result<()> {
        for (method, params) in &self.said {
            let response = if method == CHANGED {
                let version = params["textDocument"]["version"].as_i64().unwrap_or(0);
                let response = client.shown(method, params, &self.uri, version)?;
                pause();
                response
            } else {
                client.request(method, params)?
            };
            times.entry(method.clone()).or_default().push(response.took);
        }
        Ok(())
    }
}

/// Moves every position down.
fn move_lines(value: &mut Value, by: u64) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_u64() {
                    Some(line) if name == "line" => *member = (line + by).into(),
                    _ => move_lines(member, by),
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|one| move_lines(one, by)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDING: &str = r#"{"ms":0.1,"message":{"method":"initialize","id":1,"params":{}}}
{"ms":1,"message":{"method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///warplens/a.cu","languageId":"cuda-cpp","version":1,"text":"one\ntwo\n"}}}}
{"ms":2,"message":{"method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///warplens/a.cu","version":2},"contentChanges":[{"range":{"start":{"line":1,"character":3},"end":{"line":1,"character":3}},"text":"s"}]}}}
"#;

    #[test]
    fn in_a_longer_file_the_same_line_is_typed_into() {
        let session = Session::read(RECORDING).unwrap().within(1000);
        assert_eq!(
            session.text.lines().count(),
            982,
            "49 kernels and two lines"
        );
        let change = &session.said[0].1["contentChanges"][0]["range"];
        let line = change["start"]["line"].as_u64().unwrap() as usize;
        assert_eq!(session.text.lines().nth(line), Some("two"));
        assert_eq!(change["end"]["line"], line);
        assert_eq!(session.keystrokes(), 1);
    }

    #[test]
    fn a_recording_is_moved_into_the_checkout() {
        let session = Session::read(RECORDING).unwrap();
        let session = session.inside(Path::new("/checkout"));
        assert_eq!(session.uri(), "file:///checkout/a.cu");
        assert_eq!(session.said[0].1["textDocument"]["uri"], session.uri());
    }

    #[test]
    fn what_is_no_session_is_refused() {
        assert!(Session::read("").is_err());
        assert!(Session::read("{").is_err());
    }
}
