//! Standard output and error: colour, width, closed pipes, panics.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::Context;

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

/// The file of `--output`, open once something was written.
static REDIRECTED: OnceLock<(PathBuf, Mutex<Option<File>>)> = OnceLock::new();

/// What would go to standard output goes to this file.
pub fn redirect(file: PathBuf) {
    let _ = REDIRECTED.set((file, Mutex::new(None)));
}

/// The file of `--output`.
pub fn redirected() -> Option<&'static Path> {
    REDIRECTED.get().map(|(file, _)| file.as_path())
}

/// What is written next takes the place of what was written to the file before.
pub fn anew() {
    if let Some((_, open)) = REDIRECTED.get() {
        *open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }
}

/// Standard output, or the file in its place.
#[derive(Debug)]
pub struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some((file, open)) = REDIRECTED.get() else {
            return io::stdout().lock().write(bytes);
        };
        let mut open = open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match &mut *open {
            Some(open) => open.write(bytes),
            none => none.insert(File::create(file)?).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // A file has no buffer of ours.
        match REDIRECTED.get() {
            Some(_) => Ok(()),
            None => io::stdout().lock().flush(),
        }
    }
}

/// How to dress what goes to standard output.
pub fn style(colour: Colour) -> Style {
    let terminal = redirected().is_none() && io::stdout().is_terminal();
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
    match Out.write_all(text.as_bytes()).and_then(|()| Out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).with_context(|| match redirected() {
                Some(file) => format!("cannot write {}", file.display()),
                None => "cannot write to standard output".to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Writes a document as indented JSON.
pub fn emit_json(document: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = warplens_report::style::json(document)?;
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

/// A command that takes longer than this says on standard error what it does, where that is a terminal.
const QUIET: Duration = Duration::from_millis(700);
/// How often the line is written anew.
const AGAIN: Duration = Duration::from_millis(200);

/// What a command is doing, on standard error, only on a terminal and only once it takes a while: finished files, or the
/// seconds that it has taken.
#[derive(Debug)]
pub struct Progress {
    state: Arc<State>,
    writer: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    what: String,
    total: usize,
    done: AtomicUsize,
    over: AtomicBool,
    started: Instant,
}

impl State {
    fn line(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        let done = self.done.load(Ordering::Relaxed);
        match self.total {
            0 | 1 => format!("{}: {seconds} s", self.what),
            total => format!("{}: {done} of {total} files, {seconds} s", self.what),
        }
    }
}

impl Progress {
    /// Nothing done yet of `total` files; 0 where nothing is counted.
    pub fn new(what: &str, total: usize) -> Progress {
        let state = Arc::new(State {
            what: what.to_owned(),
            total,
            done: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            started: Instant::now(),
        });
        let shared = Arc::clone(&state);
        let writer = io::stderr()
            .is_terminal()
            .then(|| std::thread::spawn(move || shared.write()));
        Progress { state, writer }
    }

    /// One more is done.
    pub fn step(&self) {
        self.state.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes the line away again.
    pub fn finish(self) {}
}

impl State {
    fn write(&self) {
        let mut shown = false;
        loop {
            std::thread::park_timeout(if shown { AGAIN } else { QUIET });
            if self.over.load(Ordering::Relaxed) {
                break;
            }
            if self.started.elapsed() >= QUIET {
                shown = true;
                let _ = write!(io::stderr(), "\r\x1b[K{}", self.line());
            }
        }
        if shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Relaxed);
        if let Some(writer) = self.writer.take() {
            writer.thread().unpark();
            let _ = writer.join();
        }
    }
}
