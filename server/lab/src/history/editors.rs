//! What editors show of files: one that opens a file alone, and some in which all are open and each is edited.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::Look;
use super::session::Session;
use super::typing::{Random, Typed};
use crate::outputs::difference::{self, Difference};

/// Limits that a server may take where the command line took one: it computes more, and others run beside it.
const PATIENCE: u32 = 5;
/// Edits between two questions.
const ASKED_EVERY: usize = 10;

/// What was found of one file.
struct Told {
    path: PathBuf,
    how: String,
    differences: Vec<Difference>,
}

impl Look<'_> {
    /// Editors: one that opens a file alone, and some in which all are open.
    pub fn in_editors(&mut self, edits: usize, seed: u64) -> anyhow::Result<()> {
        let opened = |path: &PathBuf| -> anyhow::Result<(PathBuf, Value)> {
            let text = text(path)?;
            let said = self.opened(path, &text)?;
            Ok((path.clone(), said))
        };
        let opened: HashMap<PathBuf, Value> = self
            .files
            .par_iter()
            .map(opened)
            .collect::<anyhow::Result<_>>()?;
        for path in self.files.clone() {
            let differences = across(&self.alone[&path], &opened[&path]);
            self.tell(&path, "opened in an editor", "answers", &differences);
        }
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut random = Random::new(seed + 1);
        let order = random.shuffled(&self.files);
        let share = order.len().div_ceil(workers).max(1);
        let told: Vec<Vec<Told>> = order
            .par_chunks(share)
            .map(|share| self.beside_others(share, &opened, edits, seed))
            .collect::<anyhow::Result<_>>()?;
        for told in told.into_iter().flatten() {
            self.tell(&told.path, &told.how, "answers", &told.differences);
        }
        Ok(())
    }

    /// What is shown of a file by a server that sees no other.
    fn opened(&self, path: &Path, text: &str) -> anyhow::Result<Value> {
        let mut session = Session::start(self.bin, &self.root, self.limit * PATIENCE)?;
        session.open(path, text)?;
        Ok(session
            .shown(&[path])
            .unwrap_or_else(|error| failed(&error))
            .remove(0))
    }

    /// A server in which all files are open: all asked about at once, then each of a share edited.
    fn beside_others(
        &self,
        share: &[PathBuf],
        opened: &HashMap<PathBuf, Value>,
        edits: usize,
        seed: u64,
    ) -> anyhow::Result<Vec<Told>> {
        let mut told = Vec::new();
        let mut tell = |path: &Path, how: String, expected: &Value, said: &Value| {
            let differences = difference::between(expected, said);
            told.push(Told {
                path: path.to_owned(),
                how,
                differences,
            });
        };
        let patience = self.limit * PATIENCE * self.files.len().max(1) as u32;
        let mut session = Session::start(self.bin, &self.root, patience)?;
        for path in &self.files {
            session.open(path, &text(path)?)?;
        }
        let paths: Vec<&Path> = share.iter().map(PathBuf::as_path).collect();
        for (path, said) in share.iter().zip(session.shown(&paths)?) {
            tell(path, "beside all others".to_owned(), &opened[path], &said);
        }
        session.limit = self.limit * PATIENCE;
        for path in share {
            let mut typed = Typed::new(text(path)?, Random::of(path, seed));
            let mut version = 1;
            for number in 0..edits {
                let change = typed.edit();
                version += 1;
                session.change(path, version, &change)?;
                if number % ASKED_EVERY == ASKED_EVERY - 1 {
                    let _ = session.shown(&[path]);
                }
            }
            let said = session
                .shown(&[path])
                .unwrap_or_else(|error| failed(&error));
            let expected = self.opened(path, &typed.text)?;
            tell(path, format!("after {edits} edits"), &expected, &said[0]);
            while let Some(change) = typed.undo() {
                version += 1;
                session.change(path, version, &change)?;
            }
            let said = session
                .shown(&[path])
                .unwrap_or_else(|error| failed(&error));
            let how = format!("after {edits} edits that were taken back");
            tell(path, how, &opened[path], &said[0]);
        }
        if let Some(complaint) = session.complaint.take() {
            bail!("{complaint}");
        }
        Ok(told)
    }
}

/// The differences between what the command line says of a file and what an editor shows of it: both have the findings with
/// their lines, and the models that an editor asks have the same figures.
fn across(alone: &Value, opened: &Value) -> Vec<Difference> {
    let printed = alone["findings"]["diagnostics"].as_array();
    let printed = printed.into_iter().flatten().map(|finding| {
        json!({
            "line": finding["line"],
            "rule": finding["rule"],
            "message": finding["message"],
        })
    });
    let shown = opened["findings"].as_array();
    let shown = shown.into_iter().flatten().map(|finding| {
        let line = finding["range"]["start"]["line"].as_u64();
        json!({
            "line": line.map(|line| line + 1),
            "rule": finding["code"],
            "message": finding["message"],
        })
    });
    let sorted = |findings: Vec<Value>| {
        let mut findings = findings;
        findings.sort_by_key(ToString::to_string);
        Value::Array(findings)
    };
    let mut differences = difference::between(&sorted(printed.collect()), &sorted(shown.collect()));
    let mut printed = alone["figures"].clone();
    let shown = &opened["figures"]["results"];
    for (at, printed) in printed.as_array_mut().into_iter().flatten().enumerate() {
        let shown = &shown[at]["estimates"];
        if let Some(estimates) = printed["estimates"].as_object_mut() {
            estimates.retain(|model, _| shown.get(model).is_some());
        }
    }
    differences.extend(difference::between(&printed, shown));
    differences
}

/// What is compared where a server gave no answer.
fn failed(error: &anyhow::Error) -> Vec<Value> {
    vec![json!({"error": format!("{error:#}")})]
}

fn text(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
