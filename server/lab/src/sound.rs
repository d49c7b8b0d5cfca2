//! `cargo lab sound`: predictions that cannot be true, over folders of sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use clap::Args;
use rayon::prelude::*;
use warplens_base::DiskFiles;
use warplens_db::settings::Settings;
use warplens_db::{
    Cancel, Document, Engine, Language, Overrides, Profiles, Project, STACK, Variants,
    language_by_content,
};

use crate::corpus;

/// Look for kernels whose compiled code lacks work that the source does, and for figures that no GPU can have
///
/// Prints each defect with its kernel; fails where there is one. Kernels that were understood in part are counted apart: what
/// was not read is not there to be compiled.
#[derive(Debug, Args)]
pub struct Sound {
    /// The folders
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
}

/// What was found of a folder.
#[derive(Debug, Default)]
struct Found {
    kernels: usize,
    /// Of kernels that were understood.
    defects: Vec<String>,
    /// Of kernels that were understood in part.
    of_partial: Vec<String>,
    /// Kernels in which something reads what nothing writes, by file.
    unwritten: BTreeMap<PathBuf, Vec<String>>,
}

impl Sound {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut wrong = 0;
        for folder in &self.folders {
            let found = look(&std::path::absolute(folder)?)?;
            println!(
                "{}: {} kernels, {} defects, {} more in kernels understood in part",
                folder.display(),
                found.kernels,
                found.defects.len(),
                found.of_partial.len()
            );
            for defect in &found.defects {
                println!("  {defect}");
            }
            for defect in &found.of_partial {
                println!("  (in part) {defect}");
            }
            for (file, kernels) in &found.unwritten {
                println!(
                    "  reads what nothing writes: {}: {}",
                    file.display(),
                    kernels.join(" ")
                );
            }
            wrong += found.defects.len();
        }
        Ok(ExitCode::from(u8::from(wrong > 0)))
    }
}

fn look(folder: &Path) -> anyhow::Result<Found> {
    let sources = corpus::sources(folder)?;
    let project = Project::new(Arc::new(DiskFiles::new()), vec![folder.to_path_buf()]);
    let engine = Engine::with_project(Profiles::builtin(), project);
    let found = Mutex::new(Found::default());
    let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK).build()?;
    pool.install(|| {
        sources
            .par_iter()
            .try_for_each(|(path, _)| file(&engine, path, &found))
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.defects.sort();
    found.of_partial.sort();
    Ok(found)
}

fn file(engine: &Engine, path: &Path, found: &Mutex<Found>) -> anyhow::Result<()> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let document = Document::new(&text, language_by_content(Language::from_path(path), &text));
    let overrides = Overrides {
        variants: Variants::All,
        unadvised: true,
        ..Overrides::default()
    };
    let settings = Settings::default();
    let Some(analysis) = engine.analyze(&document, path, &settings, &overrides, &Cancel::default())
    else {
        return Ok(());
    };
    for kernel in &analysis.kernels {
        let facts = &kernel.analysis.facts;
        let input = &kernel.analysis.input;
        let cycles = kernel.analysis.estimate().cycles;
        let defects = input.defects(cycles);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.kernels += 1;
        let partial = !facts.not_understood.is_empty();
        for defect in defects {
            let said = format!(
                "{}:{} {}: {defect}",
                path.display(),
                kernel.line + 1,
                facts.name
            );
            if partial {
                found.of_partial.push(said);
            } else {
                found.defects.push(said);
            }
        }
        if !partial && !input.compiled.unwritten.is_empty() {
            let lines: Vec<String> = (input.compiled.unwritten.iter().take(4))
                .map(|site| match kernel.callee(*site) {
                    Some(callee) => format!("~{}", callee.line + 1),
                    None => (kernel.place_line(site.line) + 1).to_string(),
                })
                .collect();
            let said = format!("{}:{}", facts.name, lines.join(","));
            found
                .unwritten
                .entry(path.to_path_buf())
                .or_default()
                .push(said);
        }
    }
    Ok(())
}
