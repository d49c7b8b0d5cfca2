//! `cargo lab accuracy`: predictions held against times and counters that were measured on real GPUs.

mod commands;
mod description;
mod own;
mod page;
mod plot;
mod predict;
mod row;
pub mod score;
mod set;
mod speedups;
mod table;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;
use clap::Args;
use warplens_machine::Profiles;
use warplens_models::ModelId;

use predict::Subject;
use row::Row;
use set::Set;
use xtask::repository;

/// Hold predicted times and counters against measured ones: docs/accuracy.md
///
/// Reads each table of the folder (NAME.csv or its sample NAME.sample.csv with NAME.meta.json beside it, or a folder that
/// `cargo lab measure` wrote), predicts every row from the kernel's source, and scores the ranks, the choice of the best configuration, the times and the counters. Needs
/// no GPU. Nothing of the tables or the sources is written but the scores and the plots.
#[derive(Debug, Args)]
pub struct Accuracy {
    /// The folder of tables
    #[arg(value_name = "DIR")]
    tables: PathBuf,
    /// The folder in which the sources begin that the tables name
    #[arg(long, value_name = "DIR")]
    sources: PathBuf,
    /// Only these tables (repeatable)
    #[arg(long = "set", value_name = "ID")]
    sets: Vec<String>,
    /// At most this many rows of each table, spread evenly over the measured times
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// The model
    #[arg(long, default_value = "auto", value_parser = model)]
    model: ModelId,
    /// Also the scores of `auto` without each of its mechanisms
    #[arg(long)]
    ablation: bool,
    /// Write nothing; fail where a target is missed
    #[arg(long)]
    check: bool,
    /// A line of JSON for each row, beside the scores: what was measured and what is predicted
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,
    /// The page; its plots go into the folder of its name beside it. Without it docs/accuracy.md, where whole tables are scored
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A model by its name.
fn model(name: &str) -> Result<ModelId, String> {
    let names = ModelId::ALL.map(ModelId::name).join(", ");
    ModelId::named(name).ok_or_else(|| format!("one of {names}"))
}

impl Accuracy {
    /// Runs it. Exit status 1 where a target is missed and that was asked for.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let begun = Instant::now();
        let profiles = Profiles::builtin();
        let tables = table::of_folder(&self.tables)?;
        for wanted in &self.sets {
            if !tables.iter().any(|(id, _)| id == wanted) {
                let known: Vec<&str> = tables.iter().map(|(id, _)| id.as_str()).collect();
                bail!(
                    "no table is called {wanted}; there are {}",
                    known.join(", ")
                );
            }
        }
        let mut details = self.details.as_deref().map(Details::new).transpose()?;
        let mut sets = Vec::new();
        for (id, path) in &tables {
            if !self.sets.is_empty() && !self.sets.contains(id) {
                continue;
            }
            let Some(set) = self.set(id, path, &profiles, details.as_mut())? else {
                continue;
            };
            print!("{}", page::lines(&set));
            sets.push(set);
        }
        if sets.is_empty() {
            bail!("no table to score in {}", self.tables.display());
        }
        let summary = set::Summary::of(&sets);
        let run = page::Run {
            model: self.model.name(),
            command: self.command(),
        };
        println!("\n{}", page::tables(&sets, &summary));
        println!("{:.0} s", begun.elapsed().as_secs_f64());
        if self.check {
            let missed = page::missed(&sets, &summary);
            for target in &missed {
                println!("missed: {target}");
            }
            return Ok(if missed.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        // A part of the tables is a look, not the page.
        let whole = self.sets.is_empty() && self.rows.is_none() && self.model == ModelId::Auto;
        let page = match &self.out {
            Some(out) => out.clone(),
            None if whole => repository::root().join("docs/accuracy.md"),
            None => return Ok(ExitCode::SUCCESS),
        };
        page::write(&page, &run, &sets, &summary)?;
        println!("wrote {}", page.display());
        Ok(ExitCode::SUCCESS)
    }

    /// Scores one table; `None` where no row of it can be read, or its sources are not there.
    fn set(
        &self,
        id: &str,
        path: &Path,
        profiles: &Profiles,
        details: Option<&mut Details>,
    ) -> anyhow::Result<Option<Set>> {
        let begun = Instant::now();
        let table = table::read(id, path)?;
        for problem in &table.problems {
            println!("{id}: {problem}");
        }
        let rows = thinned(&table.rows, self.rows);
        if rows.is_empty() {
            println!("{id}: no row");
            return Ok(None);
        }
        let model = self.model;
        let subject = Subject::new(&table, &self.sources, profiles, model, self.ablation);
        let subject = match subject {
            Ok(subject) => subject,
            Err(error) => {
                println!("{id}: left out: {error:#}");
                return Ok(None);
            }
        };
        let predicted = subject.predict(&rows)?;
        if let Some(details) = details {
            details.add(id, &rows, &predicted)?;
        }
        let mut set = Set::new(id, &rows, &predicted, profiles);
        set.origin = table.origin;
        set.seconds = begun.elapsed().as_secs_f64();
        Ok(Some(set))
    }

    /// The command without this machine's folders.
    fn command(&self) -> String {
        let mut words = vec!["cargo lab accuracy TABLES --sources SOURCES".to_owned()];
        words.extend(self.sets.iter().map(|id| format!("--set {id}")));
        words.extend(self.rows.map(|rows| format!("--rows {rows}")));
        if self.model != ModelId::Auto {
            words.push(format!("--model {}", self.model.name()));
        }
        if self.ablation {
            words.push("--ablation".to_owned());
        }
        words.join(" ")
    }
}

/// This many rows, spread evenly over the measured times with the fastest and the slowest among them; of those without a time as
/// large a part.
fn thinned(rows: &[Row], most: Option<usize>) -> Vec<&Row> {
    let most = most.unwrap_or(rows.len());
    if rows.len() <= most {
        return rows.iter().collect();
    }
    let (mut timed, failed): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.measured_ms.is_some());
    timed.sort_by(|a, b| {
        let key = |row: &Row| row.measured_ms.unwrap_or(0.0);
        key(a).total_cmp(&key(b))
    });
    let evenly = |rows: &[&'_ Row], count: usize| -> Vec<usize> {
        let last = rows.len().saturating_sub(1);
        let steps = count.saturating_sub(1).max(1);
        let mut chosen: Vec<usize> = (0..count).map(|step| step * last / steps).collect();
        chosen.dedup();
        chosen
    };
    let failures = (failed.len() * most).div_ceil(rows.len()).min(failed.len());
    let timings = most.saturating_sub(failures).min(timed.len());
    let mut chosen: Vec<&Row> = evenly(&timed, timings)
        .into_iter()
        .map(|at| timed[at])
        .chain(evenly(&failed, failures).into_iter().map(|at| failed[at]))
        .collect();
    chosen.sort_by_key(|row| row.line);
    chosen
}

/// What was measured and predicted of each row, for who looks for what is wrong.
struct Details(std::io::BufWriter<std::fs::File>);

impl Details {
    fn new(path: &Path) -> anyhow::Result<Details> {
        Ok(Details(std::io::BufWriter::new(std::fs::File::create(
            path,
        )?)))
    }

    fn add(
        &mut self,
        id: &str,
        rows: &[&Row],
        predicted: &[predict::Predicted],
    ) -> anyhow::Result<()> {
        use std::io::Write as _;
        for (row, predicted) in rows.iter().zip(predicted) {
            let counted: serde_json::Map<String, serde_json::Value> = predicted
                .counted
                .iter()
                .map(|(counter, value)| {
                    let both = serde_json::json!([value, counter.measured(row)]);
                    (counter.name().to_owned(), both)
                })
                .collect();
            let line = serde_json::json!({
                "set": id,
                "line": row.line,
                "kernel": row.kernel,
                "gpu": row.gpu,
                "defines": row.configuration.defines,
                "grid": row.configuration.grid.map(|grid| grid.0),
                "block": row.configuration.block.map(|block| block.0),
                "measured_ms": row.measured_ms,
                "predicted_ms": predicted.ms,
                "measured_cycles": row.measured_cycles,
                "predicted_cycles": predicted.cycles,
                "why_not": predicted.why_not,
                "invalid": predicted.invalid,
                "predicted_and_measured": counted,
                "detail": predicted.detail,
            });
            writeln!(self.0, "{line}")?;
        }
        self.0.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_rows_are_spread_over_the_times() {
        let heads = "kernel,gpu,source,defines,grid_x,block_x,measured_ms,valid\n";
        let timed = [5, 3, 9, 1, 7, 2, 8, 4, 6].map(|ms| format!("f,G,f.cu,,1,32,{ms},1\n"));
        let text = [heads, &timed.concat(), "f,G,f.cu,,1,32,,0\n"].concat();
        let table = table::parse("t", &text, &serde_json::Value::Null).unwrap();
        let times = |most: Option<usize>| {
            let rows = thinned(&table.rows, most);
            rows.iter().map(|row| row.measured_ms).collect::<Vec<_>>()
        };
        assert_eq!(times(None).len(), 10);
        assert_eq!(times(Some(4)), [Some(5.0), Some(9.0), Some(1.0), None]);
        assert_eq!(times(Some(1)).len(), 1);
        assert!(times(Some(0)).is_empty());
    }
}
