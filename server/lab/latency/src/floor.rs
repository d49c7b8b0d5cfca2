//! The lower bound on the latency of any server that parses and publishes: the incremental parse of the same edit, and
//! the same message through a pipe.

use std::io::{BufReader, Read, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;
use tree_sitter::{InputEdit, Parser, Point, Tree};

/// A text with its tree, and a pipe.
pub struct Floor {
    parser: Parser,
    text: String,
    tree: Tree,
    to: std::io::PipeWriter,
    from: BufReader<std::io::PipeReader>,
}

impl std::fmt::Debug for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Floor").finish_non_exhaustive()
    }
}

impl Floor {
    /// With a text parsed.
    ///
    /// # Errors
    /// There is no pipe.
    pub fn new(text: &str) -> anyhow::Result<Floor> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_cuda::LANGUAGE.into())?;
        let tree = parser.parse(text, None).context("no tree")?;
        let (from, to) = std::io::pipe()?;
        Ok(Floor {
            parser,
            text: text.to_owned(),
            tree,
            to,
            from: BufReader::with_capacity(1 << 20, from),
        })
    }

    /// How long the first parse takes.
    ///
    /// # Errors
    /// There is no tree.
    pub fn first_parse(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.tree = self.parser.parse(&self.text, None).context("no tree")?;
        Ok(started.elapsed())
    }

    /// Takes a `textDocument/didChange`: how long the parse of its edits takes. Positions are those of a text in ASCII.
    ///
    /// # Errors
    /// There is no tree.
    pub fn parse(&mut self, change: &Value) -> anyhow::Result<Duration> {
        let edits = change["contentChanges"].as_array();
        let edits = edits.context("no changes")?;
        let mut took = Duration::ZERO;
        for edit in edits {
            let new = edit["text"].as_str().unwrap_or_default();
            let (start, start_byte) = self.place(&edit["range"]["start"]);
            let (old_end, old_end_byte) = self.place(&edit["range"]["end"]);
            self.text.replace_range(start_byte..old_end_byte, new);
            let rows = new.matches('\n').count();
            let last = new.rsplit('\n').next().unwrap_or_default().len();
            let column = if rows == 0 { start.column } else { 0 };
            let edit = InputEdit {
                start_byte,
                old_end_byte,
                new_end_byte: start_byte + new.len(),
                start_position: start,
                old_end_position: old_end,
                new_end_position: Point::new(start.row + rows, column + last),
            };
            let started = Instant::now();
            self.tree.edit(&edit);
            let parsed = self.parser.parse(&self.text, Some(&self.tree));
            self.tree = parsed.context("no tree")?;
            took += started.elapsed();
        }
        Ok(took)
    }

    /// How long a message takes as JSON through a pipe.
    ///
    /// # Errors
    /// The pipe breaks.
    pub fn write(&mut self, message: &Value) -> anyhow::Result<Duration> {
        let (to, from) = (&mut self.to, &mut self.from);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                // From here: the thread is ours, no server needs it.
                let started = Instant::now();
                let body = serde_json::to_vec(message)?;
                to.write_all(&(body.len() as u64).to_le_bytes())?;
                to.write_all(&body)?;
                Ok::<_, anyhow::Error>(started)
            });
            let mut length = [0; 8];
            from.read_exact(&mut length)?;
            let mut body = vec![0; u64::from_le_bytes(length) as usize];
            from.read_exact(&mut body)?;
            let read = Instant::now();
            let started = writer
                .join()
                .map_err(|_| anyhow::anyhow!("the message was not written"))??;
            Ok(read.saturating_duration_since(started))
        })
    }

    fn place(&self, position: &Value) -> (Point, usize) {
        let number = |name: &str| position[name].as_u64().unwrap_or(0) as usize;
        let (row, column) = (number("line"), number("character"));
        let lines = self.text.split_inclusive('\n').take(row);
        let start: usize = lines.map(str::len).sum();
        (
            Point::new(row, column),
            (start + column).min(self.text.len()),
        )
    }
}
