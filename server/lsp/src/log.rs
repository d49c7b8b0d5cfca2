//! The server's own log: to standard error or a file, never to standard output, and never in the way.
//!
//! Editors may stop reading a server's standard error; then lines are lost, not the session.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use warplens_report::style::printable;

/// Lines that wait for the writer at most.
const WAITING: usize = 4096;

/// Starts logging. `WARPLENS_LOG` has the filter, `level` or `target=level,…` (`warn` by default, `debug` for a file).
pub fn start(file: Option<&Path>) -> io::Result<()> {
    let (sink, default): (Box<dyn Write + Send>, _) = match file {
        Some(path) => (Box::new(File::create(path)?), "warplens_lsp=debug,warn"),
        None => (Box::new(io::stderr()), "warn"),
    };
    let filter = filter(std::env::var("WARPLENS_LOG").ok().as_deref(), default);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(Lines::to(sink)?);
    let subscriber = tracing_subscriber::registry().with(filter).with(lines);
    // A second call (tests, an embedding program) keeps the first one's log.
    drop(tracing::subscriber::set_global_default(subscriber));
    Ok(())
}

/// What was said, or the default where nothing was said or what cannot be read. Targets and levels only: a filter by the fields
/// of spans, which is not needed, depends on an engine for regular expressions.
fn filter(said: Option<&str>, default: &str) -> Targets {
    said.and_then(|said| said.parse().ok())
        .unwrap_or_else(|| default.parse().unwrap_or_default())
}

/// Sends lines to a thread that writes them.
#[derive(Clone)]
struct Lines(SyncSender<Vec<u8>>);

impl Lines {
    fn to(mut sink: Box<dyn Write + Send>) -> io::Result<Lines> {
        let (sender, receiver) = sync_channel::<Vec<u8>>(WAITING);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                while let Ok(line) = receiver.recv() {
                    if sink.write_all(&line).and_then(|()| sink.flush()).is_err() {
                        break;
                    }
                }
            })?;
        Ok(Lines(sender))
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // What a file, a path or a client wrote into it neither drives the terminal nor begins a line.
        let text = String::from_utf8_lossy(line);
        let mut shown = printable(text.trim_end_matches('\n'));
        shown.push('\n');
        // Full or closed: the line is lost.
        drop(self.0.try_send(shown.into_bytes()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Lines;

    fn make_writer(&self) -> Lines {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn what_is_quoted_in_a_line_acts_on_no_terminal() {
        let (sender, receiver) = sync_channel(1);
        let line = "read \u{1b}[31mk\n\u{202e}.cu\u{7}\n";
        let mut lines = Lines(sender);
        assert_eq!(lines.write(line.as_bytes()).ok(), Some(line.len()));
        let written = String::from_utf8(receiver.recv().expect("a line")).expect("text");
        let quoted = "\u{fffd}[31mk\u{fffd}\u{fffd}.cu\u{fffd}";
        assert_eq!(written, format!("read {quoted}\n"));
    }

    #[test]
    fn a_filter_has_targets_and_levels_and_nonsense_is_the_default() {
        let debug = filter(Some("warplens_lsp=debug,warn"), "error");
        assert!(debug.would_enable("warplens_lsp::pool", &Level::DEBUG));
        assert!(!debug.would_enable("tokio", &Level::INFO));
        assert!(debug.would_enable("tokio", &Level::WARN));
        for said in [None, Some("warplens_lsp=loudly")] {
            let quiet = filter(said, "warn");
            assert!(quiet.would_enable("warplens_lsp", &Level::WARN));
            assert!(!quiet.would_enable("warplens_lsp", &Level::INFO));
        }
    }
}
