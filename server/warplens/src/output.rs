//! Standard output and error: colour, width, closed pipes, panics.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use warplens_report::Style;

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How to dress what goes to standard output.
pub fn style(colour: Colour) -> Style {
    let terminal = io::stdout().is_terminal();
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let colour = match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => terminal && !set("NO_COLOR") && !dumb,
    };
    // `COLUMNS` is exported by those who want a width in a pipe, too.
    let from_environment = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let width = from_environment.or_else(|| {
        let size = terminal.then(terminal_size::terminal_size).flatten();
        size.map(|(width, _)| usize::from(width.0))
    });
    Style { colour, width }
}

/// Writes to standard output. A reader that has gone away (`| head`) is not an error.
pub fn emit(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes a document as indented JSON.
pub fn emit_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    emit(&text)
}

/// One line on standard error.
pub fn complain(message: &str) {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = warplens_report::style::printable(&line);
    let _ = writeln!(io::stderr(), "warplens: {line}");
}

/// A panic is a defect of ours: one line that says so, never a backtrace over the user's screen.
pub fn one_line_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |place| {
            format!(" at {}:{}", place.file(), place.line())
        });
        let cause = panic.payload_as_str().unwrap_or("no message");
        complain(&format!(
            "internal error{place}: {cause}; please report it with the file that caused it"
        ));
    }));
}

/// A count of finished files on standard error, only on a terminal and only once it takes a while.
#[derive(Debug)]
pub struct Progress {
    total: usize,
    done: std::sync::atomic::AtomicUsize,
    started: std::time::Instant,
    shown: std::sync::Mutex<Option<std::time::Instant>>,
    terminal: bool,
}

impl Progress {
    /// Nothing done yet of `total` files.
    pub fn new(total: usize) -> Progress {
        Progress {
            total,
            done: std::sync::atomic::AtomicUsize::new(0),
            started: std::time::Instant::now(),
            shown: std::sync::Mutex::new(None),
            terminal: io::stderr().is_terminal(),
        }
    }

    /// One more is done.
    pub fn step(&self) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if !self.terminal || self.started.elapsed().as_millis() < 700 {
            return;
        }
        let Ok(mut shown) = self.shown.try_lock() else {
            return;
        };
        if shown.is_none_or(|at| at.elapsed().as_millis() >= 100) {
            *shown = Some(std::time::Instant::now());
            let _ = write!(
                io::stderr(),
                "\r\x1b[Kchecked {done} of {} files",
                self.total
            );
        }
    }

    /// Takes the line away again.
    pub fn finish(&self) {
        if self.shown.lock().is_ok_and(|shown| shown.is_some()) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
