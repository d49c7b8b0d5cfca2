//! `warplens replay`: a recorded editor session served once more.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use warplens_lsp::replay::{Recording, ReplayReport};
use warplens_report::figure::{counted, time};
use warplens_report::table::{Align, Cell, Table};
use warplens_report::{Paint, Style};

use crate::input;
use crate::output::{self, Colour};

/// Serve a session that `warplens lsp --record` recorded once more, and print how long each answer took
///
/// Exit status: 0 fine, 1 where a request got an error or no answer, 2 where the file is no recording.
#[derive(Debug, Args)]
pub struct Replay {
    /// The recording
    file: PathBuf,
    /// No pause between two messages is longer than this, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 250)]
    longest_pause: u64,
}

impl Replay {
    /// Runs it.
    pub fn run(self, colour: Colour) -> anyhow::Result<ExitCode> {
        let shown = self.file.display();
        let text = input::text(&self.file).with_context(|| format!("cannot read {shown}"))?;
        let recording = Recording::read(&text).map_err(|why| anyhow!("{shown}: {why}"))?;
        let replayed = recording.replay(Duration::from_millis(self.longest_pause))?;
        output::emit(&page(&replayed, output::style(colour)))?;
        let well = replayed.clean && replayed.errors.is_empty() && replayed.unanswered.is_empty();
        Ok(ExitCode::from(u8::from(!well)))
    }
}

fn page(replayed: &ReplayReport, style: Style) -> String {
    let mut table = Table::new(&[
        ("method", Align::Left),
        ("answers", Align::Right),
        ("median", Align::Right),
        ("95 %", Align::Right),
        ("slowest", Align::Right),
    ]);
    for (method, times) in &replayed.answers {
        let mut times = times.clone();
        times.sort_unstable();
        let at = |percent: usize| {
            let taken = times.get((times.len() - 1) * percent / 100);
            Cell::from(taken.map_or_else(String::new, |taken| time(taken.as_secs_f64() * 1e3)))
        };
        let count = times.len().to_string();
        table.row([
            Cell::from(method.clone()),
            Cell::from(count),
            at(50),
            at(95),
            at(100),
        ]);
    }
    let mut out = table.render(style, 0);
    for (error, count) in &replayed.errors {
        let line = format!("{}: {error}", counted(*count, "error"));
        style.push(
            &mut out,
            Paint::Error,
            &warplens_report::style::printable(&line),
        );
        out.push('\n');
    }
    for method in &replayed.unanswered {
        style.push(&mut out, Paint::Error, &format!("no response: {method}\n"));
    }
    if !replayed.clean {
        style.push(
            &mut out,
            Paint::Error,
            "the server did not shut down cleanly\n",
        );
    }
    out
}
