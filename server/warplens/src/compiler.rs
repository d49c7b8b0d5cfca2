//! `--compiler`: runs the user's compiler on a file, once per architecture.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warplens_db::Engine;
use warplens_db::settings::Settings;
use warplens_toolchain::{CompilerReport, compile};

use crate::output;

/// Time limit of the compiler per architecture.
pub const BOUND: Duration = Duration::from_mins(2);

/// Compiler reports by architecture. A failure prints one line, and the estimates stay.
pub fn reports(
    compiler: &Path,
    engine: &Engine,
    file: &Path,
    settings: &Settings,
    gpus: &[String],
) -> BTreeMap<String, Arc<CompilerReport>> {
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
        let request = engine.asked(file, &settings, BOUND);
        if tried.contains(&request.architecture) {
            continue;
        }
        tried.push(request.architecture.clone());
        match compile(compiler, &request, &AtomicBool::new(false)) {
            Ok(report) => {
                found.insert(request.architecture, Arc::new(report));
            }
            Err(failure) => {
                let line = format!("{failure}; figures stay estimates");
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
