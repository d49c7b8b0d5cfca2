//! The language server: protocol, documents, scheduling. The only crate with protocol types.
//!
//! How a message travels: [`transport`] reads it and polls its handler once before it reads the next, so
//! that whatever a handler does before its first `await` is done in order. Notifications change the
//! [`session`]'s state and return; requests take a snapshot and wait for the [`pool`], where all computing
//! happens. What is sent goes through [`outgoing`], which never blocks.

mod commands;
mod compiler;
mod compiling;
mod configuration;
mod convert;
mod directive;
mod documents;
mod earlier;
mod frames;
mod halves;
mod log;
mod long_work;
mod notifications;
mod outgoing;
mod parent;
mod peer;
mod pinned;
mod pool;
mod position;
mod progress;
mod redact;
mod render;
pub mod replay;
mod requests;
mod server;
mod session;
mod shown;
mod trace;
mod transport;
mod trial;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tower_lsp_server::LspService;
use warplens_toolchain::{CompileRequest, CompilerReport, Failure};

use redact::Redaction;
use server::Server;
use session::Session;

/// How long the last messages may take to leave when the session is over.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Write the log here instead of to standard error.
    pub log: Option<PathBuf>,
    /// Write each message of the client here, a line each: `{"ms": …, "message": …}`.
    pub record: Option<PathBuf>,
    /// Remove the contents and names of the user's files from the recording.
    pub redact: bool,
    /// Makes work slow, so that tests can see what it holds up.
    #[doc(hidden)]
    pub slow: Slow,
    /// Who runs the user's compiler.
    #[doc(hidden)]
    pub compile: CompileFn,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            log: None,
            record: None,
            redact: false,
            slow: Slow::default(),
            compile: warplens_toolchain::compile,
        }
    }
}

/// A function with the contract of [`warplens_toolchain::compile`]; tests pass another one.
#[doc(hidden)]
pub type CompileFn = fn(&Path, &CompileRequest, &AtomicBool) -> Result<CompilerReport, Failure>;

/// Time added to work.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Slow {
    /// To each request's.
    pub question: Duration,
    /// To each analysis of an open document.
    pub analysis: Duration,
}

/// Serves one client over standard input and output. Returns the process's exit code: 0 after `shutdown`,
/// 1 when the client went away without one, 2 when a file of `options` cannot be written.
pub fn main_stdio(options: &Options) -> i32 {
    if let Err(error) = log::start(options.log.as_deref()) {
        let path = options
            .log
            .as_deref()
            .unwrap_or_else(|| "standard error".as_ref());
        return complain(&format!("{}: cannot log there: {error}", path.display()));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return complain(&format!("cannot start: {error}")),
    };
    let code = match runtime.block_on(serve(tokio::io::stdin(), tokio::io::stdout(), options)) {
        Ok(code) => code,
        Err(error) => {
            let path = options.record.as_deref().unwrap_or_else(|| "".as_ref());
            complain(&format!("{}: cannot record there: {error}", path.display()))
        }
    };
    // A read of standard input cannot be interrupted; the process ends without it.
    runtime.shutdown_background();
    code
}

fn complain(message: &str) -> i32 {
    // Standard error may be closed.
    let message = warplens_report::style::printable(message);
    drop(writeln!(std::io::stderr(), "warplens lsp: {message}"));
    2
}

/// Serves one client over a pair of streams, until it exits, the stream ends or the client's process is
/// gone. Returns the exit code; the error is about [`Options::record`].
pub async fn serve<I, O>(input: I, output: O, options: &Options) -> std::io::Result<i32>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
{
    let mut record = match &options.record {
        Some(path) => Some(File::create(path)?),
        None => None,
    };
    let (outgoing, written) = outgoing::channel();
    let mut writer = tokio::spawn(written.write_to(output));
    let mut session = None;
    let (service, socket) = LspService::build(|client| {
        let new = Session::new(client, outgoing.clone(), options);
        session = Some(new.clone());
        Server(new)
    })
    // The framework does not know these two.
    .custom_method("$/setTrace", Server::set_trace)
    .custom_method(
        "window/workDoneProgress/cancel",
        Server::work_done_progress_cancel,
    )
    .finish();
    let Some(session) = session else { return Ok(1) };
    let started = Instant::now();
    let mut redaction = options.redact.then(Redaction::default);
    let seen = |body: &[u8]| {
        if let Some(file) = &mut record {
            let elapsed = started.elapsed().as_secs_f64() * 1e3;
            let message = match &mut redaction {
                Some(redaction) => redaction.message(body).to_string(),
                None => one_line(body),
            };
            let line = format!("{{\"ms\":{elapsed:.3},\"message\":{message}}}\n");
            if let Err(error) = file.write_all(line.as_bytes()) {
                tracing::warn!("the session can no longer be recorded: {error}");
            }
        }
    };
    tokio::select! {
        () = transport::serve(input, &outgoing, service, socket, seen) => {}
        () = parent::gone(session.parent.subscribe()) => {
            tracing::warn!("the client's process is gone");
        }
        // The client closed the pipe.
        _ = &mut writer => {}
    }
    session.compiler.stop();
    outgoing.close();
    if !writer.is_finished() && tokio::time::timeout(LAST_WORDS, writer).await.is_err() {
        tracing::warn!("the client did not read its last messages");
    }
    session.compiler.wait();
    Ok(i32::from(!session.shut_down.load(Ordering::Acquire)))
}

/// A message as one line: JSON has line breaks only between tokens.
fn one_line(body: &[u8]) -> String {
    String::from_utf8_lossy(body).replace(['\r', '\n'], " ")
}
