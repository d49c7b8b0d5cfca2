//! Simulates a programmer typing into a kernel: the messages that an editor sends, at a human pace. The server's recording
//! becomes a session of `tests/sessions`.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use crate::client::Client;
use crate::session::{CHANGED, HINTS, REPOSITORY};

/// The edits of one session.
type Script = fn(&mut Typist<'_>) -> anyhow::Result<()>;

/// The sessions: name, file under the repository, what is done there.
pub const SESSIONS: [(&str, &str, Script); 4] = [
    ("add-line", "tests/kernels/transpose.cu", add_line),
    ("rename", "tests/kernels/stencil.cu", rename),
    ("open-brace", "tests/kernels/reduction.cu", open_brace),
    ("paste-undo", "tests/kernels/matmul.cu", paste_undo),
];

/// Lines that the editor shows, above and below the cursor.
const SHOWN: usize = 20;
/// Keys between two requests for hints: editors send them when typing pauses.
const HINTS_AFTER: usize = 5;

/// Adds a line to a loop, with a typo, and tries several constants.
fn add_line(typist: &mut Typist<'_>) -> anyhow::Result<()> {
    typist.go_behind("if (x < n && y < n) out[x * n + y] = in[y * n + x];")?;
    typist
        .keys("\n// The row above.\nif (y > 0) out[x * n + y - 1] = 0.5f * in[(y - 1) * n + xx")?;
    typist.backspaces(1)?;
    typist.keys("];")?;
    typist.look()?;
    typist.go_behind("= 0.5f")?;
    typist.backspaces(2)?;
    typist.keys("25f")?;
    typist.look()
}

/// Renames a variable: its declaration by hand, then all uses by the editor.
fn rename(typist: &mut Typist<'_>) -> anyhow::Result<()> {
    typist.select("const int at", "at")?;
    typist.keys("center")?;
    typist.rename("at", "center")?;
    typist.look()?;
    typist.rename("center", "middle")?;
    typist.go_behind("0.2f")?;
    typist.backspaces(2)?;
    typist.keys("25f")?;
    typist.look()
}

/// Types nested blocks; the editor closes the braces.
fn open_brace(typist: &mut Typist<'_>) -> anyhow::Result<()> {
    typist.go_behind("__syncthreads();")?;
    typist.keys("\nfor (int round = 0; round < 4; ++round) {\nif (t % 64 < 32) {\n")?;
    typist.keys("sums[t + 32 * round] = ")?;
    typist.keys("1;")?;
    typist.look()
}

/// Pastes lines, undoes, redoes, and deletes some.
fn paste_undo(typist: &mut Typist<'_>) -> anyhow::Result<()> {
    typist.go_behind("#include \"harness.cuh\"")?;
    typist.paste(
        "\n\n__global__ void copy_columns(const float* in, float* out, int n) {\n  \
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  \
         for (int j = 0; j < n; ++j) {\n    \
         out[i * n + j] = in[i * n + j];\n  }\n}\n",
    )?;
    typist.look()?;
    typist.undo()?;
    typist.redo()?;
    typist.go_behind("out[i * n + j] = in[i * n + j")?;
    typist.keys(" + 1")?;
    for _ in 0..4 {
        typist.undo()?;
    }
    typist.go_behind("int j = 0; j < n; ++j) {")?;
    typist.delete_line()?;
    typist.undo()?;
    typist.look()
}

/// One change of the text, and what it replaced.
#[derive(Debug, Clone)]
struct Edit {
    at: usize,
    old: String,
    new: String,
}

/// An editor's side of a session.
#[derive(Debug)]
pub struct Typist<'a> {
    client: &'a mut Client,
    uri: String,
    text: String,
    /// A byte.
    cursor: usize,
    /// Bytes behind the cursor that the next key replaces.
    selected: usize,
    version: i64,
    done: Vec<Edit>,
    undone: Vec<Edit>,
    since_hints: usize,
    random: u64,
    /// A tenth of the usual pause between keys.
    pace: Duration,
}

impl Typist<'_> {
    /// Opens a text as a file of the repository and does what the script says.
    ///
    /// # Errors
    /// The server is gone, or the text has not what the script looks for.
    pub fn perform(
        client: &mut Client,
        file: &str,
        text: &str,
        script: Script,
        pace: Duration,
    ) -> anyhow::Result<()> {
        let uri = format!("{REPOSITORY}{file}");
        let document = json!({"textDocument": {
            "uri": uri, "languageId": "cuda-cpp", "version": 1, "text": text}});
        client.shown("textDocument/didOpen", &document, &uri, 1)?;
        let mut typist = Typist {
            client,
            uri,
            text: text.to_owned(),
            cursor: 0,
            selected: 0,
            version: 1,
            done: Vec::new(),
            undone: Vec::new(),
            since_hints: 0,
            random: 1,
            pace,
        };
        script(&mut typist)
    }

    /// Puts the cursor behind the first place that says this.
    fn go_behind(&mut self, words: &str) -> anyhow::Result<()> {
        self.select(words, "")
    }

    /// Finds `context` and selects `name` at its end.
    fn select(&mut self, context: &str, name: &str) -> anyhow::Result<()> {
        let at = self.text.find(context);
        let at = at.with_context(|| format!("{}: nothing says `{context}`", self.uri))?;
        self.cursor = at + context.len() - name.len();
        self.selected = name.len();
        Ok(())
    }

    /// Keys, as an editor takes them: a line begins where the last one did, a brace is closed as it is opened.
    fn keys(&mut self, keys: &str) -> anyhow::Result<()> {
        for key in keys.chars() {
            let before = &self.text[..self.cursor];
            let line = before.rsplit('\n').next().unwrap_or_default();
            let indent = &line[..line.len() - line.trim_start().len()];
            let (text, behind) = match key {
                '\n' if before.ends_with('{') => {
                    (format!("\n{indent}  \n{indent}"), indent.len() + 1)
                }
                '\n' => (format!("\n{indent}"), 0),
                '{' => ("{}".to_owned(), 1),
                '(' | '[' if self.text[self.cursor..].starts_with('\n') => {
                    let closing = if key == '(' { ')' } else { ']' };
                    (format!("{key}{closing}"), 1)
                }
                ')' | ']' if self.text[self.cursor..].starts_with(key) => {
                    // Typed over: the editor had closed it.
                    self.cursor += 1;
                    continue;
                }
                _ => (key.to_string(), 0),
            };
            self.replace(self.cursor, self.selected, &text)?;
            self.selected = 0;
            self.cursor -= behind;
        }
        Ok(())
    }

    fn backspaces(&mut self, keys: usize) -> anyhow::Result<()> {
        for _ in 0..keys {
            self.replace(self.cursor - 1, 1, "")?;
        }
        Ok(())
    }

    fn paste(&mut self, text: &str) -> anyhow::Result<()> {
        self.replace(self.cursor, 0, text)
    }

    fn delete_line(&mut self) -> anyhow::Result<()> {
        let start = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        let length = self.text[start..].find('\n').map_or(0, |at| at + 1);
        self.replace(start, length, "")
    }

    fn undo(&mut self) -> anyhow::Result<()> {
        let edit = self.done.pop().context("nothing to undo")?;
        self.undone.push(edit.clone());
        self.change(&[(edit.at, edit.new.len(), edit.old)])
    }

    fn redo(&mut self) -> anyhow::Result<()> {
        let edit = self.undone.pop().context("nothing to redo")?;
        self.done.push(edit.clone());
        self.change(&[(edit.at, edit.old.len(), edit.new)])
    }

    /// Renames every use of a variable in one change.
    fn rename(&mut self, name: &str, new: &str) -> anyhow::Result<()> {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let places: Vec<usize> = self
            .text
            .match_indices(name)
            .map(|(at, _)| at)
            .filter(|at| {
                !self.text[..*at].ends_with(part) && !self.text[at + name.len()..].starts_with(part)
            })
            .collect();
        // From the last to the first, so that earlier offsets stay valid.
        let edits = places.iter().rev();
        let edits: Vec<_> = edits.map(|at| (*at, name.len(), new.to_owned())).collect();
        self.change(&edits)
    }

    fn replace(&mut self, at: usize, length: usize, new: &str) -> anyhow::Result<()> {
        self.undone.clear();
        self.done.push(Edit {
            at,
            old: self.text[at..at + length].to_owned(),
            new: new.to_owned(),
        });
        self.change(&[(at, length, new.to_owned())])
    }

    /// One `didChange`.
    fn change(&mut self, edits: &[(usize, usize, String)]) -> anyhow::Result<()> {
        let mut changes = Vec::new();
        for (at, length, new) in edits {
            changes.push(json!({
                "range": {"start": self.position(*at), "end": self.position(at + length)},
                "text": new,
            }));
            self.text.replace_range(*at..at + length, new);
            self.cursor = at + new.len();
        }
        self.version += 1;
        let params = json!({
            "textDocument": {"uri": self.uri, "version": self.version},
            "contentChanges": changes,
        });
        let uri = self.uri.clone();
        self.client.shown(CHANGED, &params, &uri, self.version)?;
        self.since_hints += 1;
        if self.since_hints >= HINTS_AFTER {
            self.hints()?;
        }
        self.rest(1);
        Ok(())
    }

    /// Typing pauses and the mouse hovers over the code.
    fn look(&mut self) -> anyhow::Result<()> {
        self.rest(5);
        self.hints()?;
        let document = json!({"uri": self.uri});
        let lenses = json!({"textDocument": document});
        self.client.request("textDocument/codeLens", &lenses)?;
        let hover = json!({"textDocument": document, "position": self.position(self.cursor)});
        self.client.request("textDocument/hover", &hover)?;
        Ok(())
    }

    fn hints(&mut self) -> anyhow::Result<()> {
        self.since_hints = 0;
        let line = self.text[..self.cursor].matches('\n').count();
        let params = json!({
            "textDocument": {"uri": self.uri},
            "range": {
                "start": {"line": line.saturating_sub(SHOWN), "character": 0},
                "end": {"line": line + SHOWN, "character": 0},
            },
        });
        self.client.request(HINTS, &params)?;
        Ok(())
    }

    /// Waits for a slightly varying time.
    fn rest(&mut self, keys: u32) {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let tenths = 6 + (self.random >> 33) % 12;
        std::thread::sleep(self.pace * keys * tenths as u32);
    }

    fn position(&self, at: usize) -> Value {
        let before = &self.text[..at];
        let column = before.rsplit('\n').next().unwrap_or_default();
        json!({"line": before.matches('\n').count(), "character": column.encode_utf16().count()})
    }
}
