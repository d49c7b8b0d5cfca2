//! `--watch`: again whenever a file changes.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use crate::{config, input, output};

/// Between two looks at the files.
const LOOK: Duration = Duration::from_millis(300);

/// The files with what tells that one changed.
type Seen = Vec<(PathBuf, Option<(SystemTime, u64)>)>;

/// Runs `once` now and whenever one of the files or their settings changes; never ends by itself.
pub(super) fn whenever_changed(
    paths: &[PathBuf],
    once: impl Fn() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    loop {
        let seen = seen(paths);
        if std::io::stdout().is_terminal() && output::redirected().is_none() {
            // The screen is that of this run alone.
            let _ = write!(std::io::stdout(), "\x1b[H\x1b[2J\x1b[3J");
        }
        output::anew();
        if let Err(error) = once() {
            output::complain(&format!("{error:#}"));
        }
        output::complain("watching for changes; Ctrl-C ends it");
        while self::seen(paths) == seen {
            std::thread::sleep(LOOK);
        }
    }
}

fn seen(paths: &[PathBuf]) -> Seen {
    let files = input::files(paths);
    let mut settings: Vec<PathBuf> = paths.iter().filter_map(|path| config::find(path)).collect();
    settings.dedup();
    let state = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some((meta.modified().ok()?, meta.len()))
    };
    let all = files.into_iter().chain(settings);
    all.map(|path| {
        let state = state(&path);
        (path, state)
    })
    .collect()
}
