//! `--compiler`: what the user's compiler says of a file, asked once for each architecture.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warplens_db::Engine;
use warplens_db::settings::Settings;
use warplens_toolchain::{Said, ask};

use crate::output;

/// Longest that a compiler may take for one architecture.
pub const BOUND: Duration = Duration::from_mins(2);

/// Its answers by architecture. What it cannot answer is said in one line, and the estimates stay.
pub fn asked_of(
    compiler: &Path,
    engine: &Engine,
    file: &Path,
    settings: &Settings,
    gpus: &[String],
) -> BTreeMap<String, Arc<Said>> {
    let mut found = BTreeMap::new();
    let mut tried = Vec::new();
    let mut complaints: Vec<String> = Vec::new();
    let mut settings = settings.clone();
    let mut targets: Vec<Option<String>> = gpus.iter().cloned().map(Some).collect();
    if targets.is_empty() {
        targets.push(settings.gpu.clone());
    }
    for gpu in targets {
        settings.gpu = gpu;
        let asked = engine.asked(file, &settings, BOUND);
        if tried.contains(&asked.architecture) {
            continue;
        }
        tried.push(asked.architecture.clone());
        match ask(compiler, &asked, &AtomicBool::new(false)) {
            Ok(said) => {
                found.insert(asked.architecture, Arc::new(said));
            }
            Err(failure) => {
                let line = format!("{failure}; estimates stay");
                if !complaints.contains(&line) {
                    complaints.push(line);
                }
            }
        }
    }
    for complaint in complaints {
        output::complain(&complaint);
    }
    found
}
