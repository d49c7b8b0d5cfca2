//! `cargo lab corpus DIR --edits N`: each file of other people's code opened, edited at random and closed, by the
//! language server itself.
//!
//! At the end everything shown of a file must be what a second server shows that opens the final text: at once, or after
//! a pause where the text is broken.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long a pause what is shown depends on the text alone.
const PAUSE: Duration = Duration::from_secs(5);
/// Edits between two questions.
const ASKED_EVERY: usize = 10;

/// What is typed and pasted; what is elsewhere in the file is pasted as well.
const PIECES: [&str; 17] = [
    "",
    "",
    "{",
    "}",
    "(",
    ";",
    "\n",
    "\r\n",
    "/*",
    "*/",
    "\"",
    "i",
    "#if 0\n",
    "[2 * threadIdx.x]",
    "if (threadIdx.x % 2) {",
    "__syncthreads();",
    "// é🚀\n",
];

/// What came of a folder.
#[derive(Debug, Default)]
pub struct Edited {
    /// Files that were edited.
    pub files: usize,
    /// Edits made.
    pub edits: usize,
    /// What went wrong, by file.
    pub complaints: Vec<String>,
    /// The longest that the answers after a file's last edit took, and which file's.
    pub slowest: (Duration, PathBuf),
}

/// Edits each of these files so often, with as many servers at once as there are processors.
pub fn edit(bin: &Path, files: &[PathBuf], edits: usize, seed: u64) -> Edited {
    let queue = Mutex::new(files.iter());
    let done = Mutex::new(Edited::default());
    let lock = |of: &Mutex<Edited>, with: &dyn Fn(&mut Edited)| {
        with(&mut of.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers.div_ceil(2) {
            scope.spawn(|| {
                loop {
                    let next = match queue.lock() {
                        Ok(mut queue) => queue.next(),
                        Err(_) => None,
                    };
                    let Some(path) = next else { break };
                    let came = one(bin, path, edits, Random::of(path, seed));
                    lock(&done, &|done| {
                        done.files += 1;
                        done.edits += edits;
                        match &came {
                            Ok(took) if *took > done.slowest.0 => {
                                done.slowest = (*took, path.clone());
                            }
                            Ok(_) => {}
                            Err(error) => {
                                let complaint = format!("{}: {error:#}", path.display());
                                done.complaints.push(complaint);
                            }
                        }
                    });
                }
            });
        }
    });
    done.into_inner().unwrap_or_default()
}

/// One file: how long the answers after the last edit took. Its servers have seen no other: what they know of the files
/// around it would show in the figures.
fn one(bin: &Path, path: &Path, edits: usize, mut random: Random) -> anyhow::Result<Duration> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let uri = format!("file://{}", path.display());
    let (mut edited, mut fresh) = (Server::start(bin)?, Server::start(bin)?);
    edited.open(&uri, &text)?;
    let mut undo: Option<(usize, usize, String)> = None;
    for step in 0..edits {
        let (start, end, piece) = match undo.take_if(|_| random.below(4) == 0) {
            Some(last) => last,
            None => random.edit(&text),
        };
        let range = json!({"start": position(&text, start), "end": position(&text, end)});
        undo = Some((start, start + piece.len(), text[start..end].to_owned()));
        text.replace_range(start..end, &piece);
        undo.take_if(|(start, end, _)| {
            floor(&text, *start) != *start || floor(&text, *end) != *end
        });
        edited.notify(
            "textDocument/didChange",
            &json!({"textDocument": {"uri": uri, "version": step + 2},
                   "contentChanges": [{"range": range, "text": piece}]}),
        )?;
        if step % ASKED_EVERY == ASKED_EVERY - 1 {
            let place = position(&text, floor(&text, start.min(text.len())));
            let asked = json!({"textDocument": {"uri": uri}, "position": place});
            edited.ask("textDocument/hover", &asked)?;
        }
    }
    let started = Instant::now();
    let mut found = edited.shown(&uri)?;
    let took = started.elapsed();
    fresh.open(&uri, &text)?;
    let expected = fresh.shown(&uri)?;
    let paused = Instant::now();
    while !all_same(&found, &expected) && paused.elapsed() < PAUSE {
        std::thread::sleep(Duration::from_millis(100));
        found = edited.shown(&uri)?;
    }
    for server in [&mut edited, &mut fresh] {
        server.notify(
            "textDocument/didClose",
            &json!({"textDocument": {"uri": uri}}),
        )?;
        if let Some(said) = server.complaint.take() {
            bail!("{said}");
        }
    }
    let names = ["findings", "hints", "lenses", "figures"];
    for ((name, found), expected) in names.iter().zip(&found).zip(&expected) {
        if !same(found, expected) {
            bail!("the {name} after {edits} edits are not those of the same text opened");
        }
    }
    Ok(took)
}

fn all_same(found: &[Value], expected: &[Value]) -> bool {
    found
        .iter()
        .zip(expected)
        .all(|(one, other)| same(one, other))
}

/// Equal, but for the estimates of models that simulate: they are there once they were needed.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(one), Value::Object(other)) => {
            let keys = one.keys().chain(other.keys());
            keys.into_iter().all(|key| {
                let null = Value::Null;
                let found = one.get(key).unwrap_or(&null);
                let expected = other.get(key).unwrap_or(&null);
                let simulated = ["timing", "trace"].contains(&key.as_str());
                simulated && (found.is_null() || expected.is_null()) || same(found, expected)
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && all_same(one, other)
        }
        _ => found == expected,
    }
}

/// Choices that are the same in every run.
struct Random(u64);

impl Random {
    /// A file's own, whatever others there are.
    fn of(path: &Path, seed: u64) -> Random {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let hash = name.bytes().fold(seed | 1, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Random(hash.max(1))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count.max(1) as u64) as usize
    }

    /// Bytes to be replaced, and by what.
    fn edit(&mut self, text: &str) -> (usize, usize, String) {
        let start = floor(text, self.below(text.len() + 1));
        let most = if self.below(5) == 0 { 400 } else { 3 };
        let end = floor(text, (start + self.below(most)).min(text.len())).max(start);
        let pasted = floor(text, self.below(text.len() + 1));
        let until = floor(text, (pasted + self.below(300)).min(text.len())).max(pasted);
        let piece = match self.below(PIECES.len() + 3) {
            chosen if chosen < PIECES.len() => PIECES[chosen],
            _ => &text[pasted..until],
        };
        (start, end, piece.to_owned())
    }
}

/// Not inside a character, and not between CR and LF: no editor has a cursor there.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) || (text[..at].ends_with('\r') && text[at..].starts_with('\n'))
    {
        at -= 1;
    }
    at
}

/// A place as the protocol has it.
fn position(text: &str, byte: usize) -> Value {
    let before = text[..byte].replace("\r\n", "\n").replace('\r', "\n");
    let line = before.matches('\n').count();
    let last = before.rsplit('\n').next().unwrap_or_default();
    json!({"line": line, "character": last.encode_utf16().count()})
}

/// A language server as a child process; ended when it is dropped.
struct Server {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    next: u64,
    /// What it said of an internal error.
    complaint: Option<String>,
}

impl Server {
    fn start(bin: &Path) -> anyhow::Result<Server> {
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
        let mut server = Server {
            child,
            to,
            from,
            next: 1,
            complaint: None,
        };
        let capabilities = json!({"textDocument": {"diagnostic": {}}});
        server.ask("initialize", &json!({"capabilities": capabilities}))?;
        server.notify("initialized", &json!({}))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let body = message.to_string();
        let sent = write!(self.to, "Content-Length: {}\r\n\r\n{body}", body.len());
        sent.and_then(|()| self.to.flush())
            .context("the server is gone")
    }

    fn notify(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut message = match self.from.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    bail!("no answer to {method} after {} s", PATIENCE.as_secs())
                }
                Err(_) => bail!("the server ended before it answered {method}"),
            };
            if message.get("method").is_some() {
                let text = message["params"].to_string();
                if text.contains("internal error") {
                    self.complaint = Some(text);
                }
            } else if message["id"] == id {
                if let Some(error) = message.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(message["result"].take());
            }
        }
    }

    fn open(&mut self, uri: &str, text: &str) -> anyhow::Result<()> {
        let document = json!({"uri": uri, "languageId": "", "version": 1, "text": text});
        self.notify("textDocument/didOpen", &json!({"textDocument": document}))
    }

    /// Everything shown of a document.
    fn shown(&mut self, uri: &str) -> anyhow::Result<[Value; 4]> {
        let document = json!({"textDocument": {"uri": uri}});
        let mut report = self.ask("textDocument/diagnostic", &document)?;
        let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}});
        let hints = json!({"textDocument": {"uri": uri}, "range": all});
        let hints = self.ask("textDocument/inlayHint", &hints)?;
        let lenses = self.ask("textDocument/codeLens", &document)?;
        let command = json!({"command": "warplens.estimate", "arguments": [{"uri": uri}]});
        let figures = self.ask("workspace/executeCommand", &command)?;
        let lenses = without_earlier_times(lenses);
        Ok([report["items"].take(), hints, lenses, figures])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
