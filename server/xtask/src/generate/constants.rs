//! The page of constants: what each was chosen on, and which data sets so test nothing of it.
//!
//! In go `constants.toml` and `sets.toml` of the accuracy tables and the thresholds of the compilers, out comes
//! docs/accuracy/constants.md.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use toml::{Table, Value};

use super::pages::row;

/// Where the constants and data sets of predicted times are described, and the thresholds of compilers.
const CONSTANTS: &str = "server/lab/src/accuracy/constants.toml";
const SETS: &str = "server/lab/src/accuracy/sets.toml";
const THRESHOLDS: [(&str, &str); 2] = [
    ("nvcc", "server/codegen/src/thresholds/nvcc.toml"),
    (
        "LLVM's AMDGPU back end",
        "server/codegen/src/thresholds/amdgcn.toml",
    ),
];

const HEAD: &str = "# Constants and what they were chosen on\n\n\
`cargo xtask generate` writes this page. [Predicted and measured times](../accuracy.md) are held against the data sets\n\
below; where a constant was chosen on one of them its score there is no test of the constant.\n\n\
## Data sets\n\n\
*calibration*: a constant of a model or a figure of a profile was taken from it, or chosen by its scores. *validation*: no\n\
constant is recorded as chosen on it, but its scores were read while rules were written. *unseen*: never scored while\n\
anything was chosen.\n\n";

/// Every constant with what it was chosen on, every data set with its tier, every threshold with its origin.
pub fn page(root: &Path) -> anyhow::Result<String> {
    let mut text = HEAD.to_owned();
    text.push_str("| set | tier | why |\n| --- | --- | --- |\n");
    for (id, set) in &group(&read(root, SETS)?, "sets")? {
        let set = set
            .as_table()
            .with_context(|| format!("{SETS}: {id} is no table"))?;
        row(
            &mut text,
            &[id.as_str(), &cell(set, "tier"), &cell(set, "why")],
        );
    }
    text.push_str(
        "\n## Constants of the predicted times\n\n\
         | constant | value | decides | chosen on | how | is in file |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for constant in constants(root)? {
        let on = match constant.chosen_on.as_slice() {
            [] => "no set".to_owned(),
            sets => sets.join(", "),
        };
        let of = &constant.table;
        let file = format!("`{}`", cell(of, "file"));
        let [name, value, what, basis] =
            ["name", "value", "what", "basis"].map(|key| cell(of, key));
        row(&mut text, &[&name, &value, &what, &on, &basis, &file]);
    }
    for (compiler, file) in THRESHOLDS {
        thresholds(&mut text, compiler, file, &read(root, file)?)?;
    }
    Ok(text)
}

/// A constant as its file has it, and the sets that it was chosen on.
struct Constant {
    table: Table,
    chosen_on: Vec<String>,
}

fn constants(root: &Path) -> anyhow::Result<Vec<Constant>> {
    let file = read(root, CONSTANTS)?;
    let all = file.get("constant").and_then(Value::as_array);
    let all = all.with_context(|| format!("{CONSTANTS}: no constants"))?;
    let constant = |value: &Value| {
        let table = value.as_table()?.clone();
        let sets = table.get("chosen_on")?.as_array()?.iter();
        let chosen_on = sets
            .map(|set| set.as_str().map(str::to_owned))
            .collect::<Option<_>>()?;
        Some(Constant { table, chosen_on })
    };
    all.iter()
        .map(|value| {
            constant(value).with_context(|| format!("{CONSTANTS}: {value} has no list `chosen_on`"))
        })
        .collect()
}

/// The thresholds of a compiler, and the origins that they name.
fn thresholds(text: &mut String, compiler: &str, file: &str, table: &Table) -> anyhow::Result<()> {
    let origins = group(table, "origins").with_context(|| file.to_owned())?;
    write!(
        text,
        "\n## What {compiler} decides\n\n`{file}`\n\n\
         | threshold | value | decides | origin |\n| --- | ---: | --- | --- |\n"
    )?;
    for (name, entries) in table.iter().filter(|(name, _)| *name != "origins") {
        for (entry, of) in entries.as_table().into_iter().flatten() {
            let Some(of) = of.as_table() else { continue };
            let key = format!("`{name}.{entry}`");
            let value = format!("{} {}", cell(of, "value"), cell(of, "unit"));
            row(
                text,
                &[&key, &value, &cell(of, "what"), &cell(of, "origin")],
            );
        }
    }
    text.push_str(
        "\n| origin | kind | compiler | data | error |\n| --- | --- | --- | --- | --- |\n",
    );
    for (name, origin) in &origins {
        let Some(origin) = origin.as_table() else {
            continue;
        };
        let [kind, compiler, data, error] =
            ["kind", "compiler", "data", "error"].map(|key| cell(origin, key));
        row(text, &[name.as_str(), &kind, &compiler, &data, &error]);
    }
    Ok(())
}

fn read(root: &Path, file: &str) -> anyhow::Result<Table> {
    let text =
        std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
    text.parse().with_context(|| format!("{file} is no TOML"))
}

fn group(table: &Table, name: &str) -> anyhow::Result<Table> {
    let group = table.get(name).and_then(Value::as_table);
    group.cloned().with_context(|| format!("no table `{name}`"))
}

/// A value as text; nothing where there is none.
fn cell(table: &Table, key: &str) -> String {
    match table.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository;

    #[test]
    fn a_constant_stands_where_its_entry_says_and_its_sets_are_for_calibration() {
        let root = repository::root();
        let sets = group(&read(&root, SETS).expect("the sets"), "sets").expect("the sets");
        let constants = constants(&root).expect("the constants");
        assert!(constants.len() > 10);
        for constant in constants {
            let [name, file, line, basis] =
                ["name", "file", "text", "basis"].map(|key| cell(&constant.table, key));
            let code = std::fs::read_to_string(root.join(&file)).expect("a file of the repository");
            assert!(
                !line.is_empty() && code.contains(&line),
                "{name}: {file} has no `{line}`"
            );
            assert!(!basis.is_empty(), "{name}");
            for set in constant.chosen_on {
                let known = sets.get(&set).and_then(Value::as_table);
                let tier = known.map(|set| cell(set, "tier"));
                assert_eq!(tier.as_deref(), Some("calibration"), "{name}: {set}");
            }
        }
    }

    #[test]
    fn the_page_is_that_of_its_data() {
        let root = repository::root();
        let path = root.join("docs/accuracy/constants.md");
        let wanted = page(&root).expect("its data");
        if std::env::var_os("WARPLENS_BLESS").is_some() {
            std::fs::write(&path, &wanted).expect("the page is writable");
        }
        let found = std::fs::read_to_string(path).expect("the page");
        assert!(
            found == wanted,
            "out of date: `cargo xtask generate` writes it"
        );
    }
}
