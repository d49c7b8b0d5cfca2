//! Tables of measured times: comma-separated rows with a description beside them, as JSON.
//!
//! A row is one launch of one kernel on one GPU. What a row lacks or holds that is none of the form is said with its
//! line, and the row left out; the others are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use warplens_tuning::{Configuration, Extents};

use super::commands::options;
use super::description::described;
use super::own;
use super::row::{Row, Table};

/// Columns without which a row says nothing.
const NEEDED: [&str; 6] = ["kernel", "gpu", "source", "defines", "measured_ms", "valid"];

/// The tables of a folder, by their names; of one that is there whole and as a sample, the sample. A folder in it that holds
/// what `cargo lab measure` wrote is one too.
pub fn of_folder(folder: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut tables: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let own = path.join("kernels.json");
        if own.is_file() {
            tables.insert(name.to_owned(), own);
            continue;
        }
        let Some(stem) = name.strip_suffix(".csv") else {
            continue;
        };
        match stem.strip_suffix(".sample") {
            Some(id) => tables.insert(id.to_owned(), path.clone()),
            None if !tables.contains_key(stem) => tables.insert(stem.to_owned(), path.clone()),
            None => None,
        };
    }
    // Tables of something else may lie beside.
    let ours = |path: &Path| {
        if is_own(path) {
            return true;
        }
        let heads = csv::Reader::from_path(path).and_then(|mut reader| reader.headers().cloned());
        heads.is_ok_and(|heads| {
            NEEDED
                .iter()
                .all(|need| heads.iter().any(|head| head == *need))
        })
    };
    Ok(tables.into_iter().filter(|(_, path)| ours(path)).collect())
}

/// Reads a table and the description beside it.
pub fn read(id: &str, path: &Path) -> anyhow::Result<Table> {
    if is_own(path) {
        return own::read(id, path);
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let beside = path.with_file_name(format!("{id}.meta.json"));
    let meta = match std::fs::read_to_string(&beside) {
        Ok(meta) => serde_json::from_str(&meta).with_context(|| beside.display().to_string())?,
        Err(_) => Value::Null,
    };
    parse(id, &text, &meta).with_context(|| path.display().to_string())
}

/// True for what `cargo lab measure` wrote.
fn is_own(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
}

/// Reads a table's text; `meta` describes it (`null` where nothing does).
pub fn parse(id: &str, text: &str, meta: &Value) -> anyhow::Result<Table> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let heads = reader.headers()?.clone();
    for need in NEEDED {
        if !heads.iter().any(|head| head == need) {
            bail!("no column `{need}`");
        }
    }
    let mut passed: BTreeMap<String, i64> = BTreeMap::new();
    let mut array_bytes: BTreeMap<String, u64> = BTreeMap::new();
    for argument in meta["args"].as_array().into_iter().flatten() {
        let Some(name) = argument["name"].as_str() else {
            continue;
        };
        if let Some(value) = argument["value"].as_i64() {
            passed.insert(name.to_owned(), value);
        }
        if let (Some(elements), Some(ty)) =
            (argument["elements"].as_u64(), argument["type"].as_str())
            && let Some(bytes) = element_bytes(ty)
        {
            array_bytes.insert(name.to_owned(), elements.saturating_mul(bytes));
        }
    }
    for (name, argument) in described().set(id).into_iter().flat_map(|set| &set.passed) {
        passed.insert(name.clone(), argument.value);
    }
    let mut table = Table {
        id: id.to_owned(),
        rows: Vec::new(),
        origin: meta["origin"].as_str().unwrap_or_default().to_owned(),
        problems: Vec::new(),
    };
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                table.problems.push(error.to_string());
                continue;
            }
        };
        let line = record.position().map_or(0, csv::Position::line);
        let cells = Cells {
            heads: &heads,
            record: &record,
        };
        match row(&cells, line, &passed) {
            Ok(row) => table.rows.push(Row {
                array_bytes: array_bytes.clone(),
                ..row
            }),
            Err(why) => table.problems.push(format!("line {line}: {why}")),
        }
    }
    Ok(table)
}

/// One row's cells by the names of their columns.
struct Cells<'a> {
    heads: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

impl<'a> Cells<'a> {
    /// Empty where there is none.
    fn text(&self, name: &str) -> &'a str {
        let at = self.heads.iter().position(|head| head == name);
        at.and_then(|at| self.record.get(at)).unwrap_or("").trim()
    }

    /// A number above zero; `None` where the cell is empty.
    fn number(&self, name: &str) -> Result<Option<f64>, String> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse::<f64>().ok();
        match number.filter(|number| number.is_finite() && *number > 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name} is `{text}`, not a number above 0")),
        }
    }

    /// Three whole numbers; `None` where all cells are empty.
    fn extents(&self, name: &str) -> Result<Option<Extents>, String> {
        let mut extents = [1; 3];
        let mut any = false;
        for (extent, axis) in extents.iter_mut().zip(["x", "y", "z"]) {
            let column = format!("{name}_{axis}");
            let text = self.text(&column);
            if text.is_empty() {
                continue;
            }
            any = true;
            let number = text.parse::<u32>();
            *extent = number
                .map(u64::from)
                .map_err(|_| format!("{column} is `{text}`, not a whole number below 2^32"))?;
        }
        Ok(any.then_some(Extents(extents)))
    }
}

fn row(cells: &Cells, line: u64, passed: &BTreeMap<String, i64>) -> Result<Row, String> {
    if cells.record.len() != cells.heads.len() {
        return Err(format!(
            "{} cells, not {}",
            cells.record.len(),
            cells.heads.len()
        ));
    }
    let extra: Value = match cells.text("extra") {
        "" => Value::Null,
        text => serde_json::from_str(text).map_err(|error| format!("extra: {error}"))?,
    };
    let name = cells.text("kernel");
    let (kernel, types) = match name.split_once('<') {
        Some((kernel, rest)) => (kernel, rest.trim_end_matches('>')),
        None => (name, ""),
    };
    if kernel.is_empty() || cells.text("source").is_empty() {
        return Err("no kernel or no source".to_owned());
    }
    let mut configuration = configuration(cells.text("defines"))?;
    // Template arguments stand with the macros or among the rest.
    if let Some(template) = extra["template"].as_str() {
        for binding in template.split(',') {
            let (name, value) = binding
                .split_once('=')
                .ok_or_else(|| format!("`{binding}` among the template arguments"))?;
            let binding = (name.trim().to_owned(), value.trim().to_owned());
            configuration.template.extend([binding]);
        }
    }
    configuration.args.clone_from(passed);
    configuration.args.extend(problem(cells.text("problem")));
    let valid = match cells.text("valid") {
        "1" => true,
        "0" => false,
        other => return Err(format!("valid is `{other}`, neither 0 nor 1")),
    };
    configuration.grid = cells.extents("grid")?;
    configuration.block = cells
        .extents("block")?
        .or_else(|| block_of(&configuration.defines));
    if valid && (configuration.grid.is_none() || configuration.block.is_none()) {
        return Err("no grid or no block".to_owned());
    }
    if !configuration.defines.is_empty() {
        configuration.as_kernel_tuner_builds();
    }
    let mut counters = BTreeMap::new();
    if let Value::Object(extra) = &extra {
        let numbers = extra
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
        counters.extend(numbers);
    }
    if let Some(registers) = cells.number("regs")? {
        counters.insert("regs".to_owned(), registers);
    }
    // Means hold the first run and the clock's drift.
    let measured_ms = match (cells.number("median_ms")?, cells.number("min_ms")?) {
        (Some(median), _) => Some(median),
        (None, Some(least)) => Some(least),
        (None, None) => cells.number("measured_ms")?,
    };
    if valid && measured_ms.is_none() {
        return Err("valid, but without a time".to_owned());
    }
    let measured_ms = measured_ms.filter(|_| valid);
    let clock = cells.number("sm_clock_mhz")?;
    let cycles = counters.get("elapsed_cycles_est").copied();
    let of_clock = || Some(measured_ms? * clock? * 1e3);
    Ok(Row {
        line,
        kernel: kernel.to_owned(),
        types: types
            .split(',')
            .map(|one| one.trim().to_owned())
            .filter(|one| !one.is_empty())
            .collect(),
        gpu: cells.text("gpu").to_owned(),
        source: cells.text("source").to_owned(),
        options: options(cells.text("lang")),
        array_bytes: BTreeMap::new(),
        blocks_per_sm: counters
            .get("blocks_per_sm_forced")
            .map(|blocks| *blocks as u32),
        with_launch: true,
        measured_cycles: cycles.filter(|_| valid).or_else(of_clock),
        measured_ms,
        configuration,
        counters,
    })
}

/// Bytes of what a pointer of that type points to: `float4*`. None of a type that the source defines.
fn element_bytes(ty: &str) -> Option<u64> {
    let name = ty.strip_suffix('*')?.trim();
    let name = name.strip_prefix("const ").unwrap_or(name).trim();
    let name = name.strip_prefix("unsigned ").unwrap_or(name);
    let lanes = match name.chars().last() {
        Some(digit @ '2'..='4') => u64::from(digit) - u64::from('0'),
        _ => 1,
    };
    let bytes = match name.trim_end_matches(['2', '3', '4']) {
        "char" | "uchar" => 1,
        "short" | "ushort" | "half" => 2,
        "int" | "uint" | "float" => 4,
        "long" | "long long" | "double" | "ulong" => 8,
        _ => return None,
    };
    Some(lanes * bytes)
}

/// `-DNAME=VALUE …`, or `template: NAME=VALUE …`.
fn configuration(text: &str) -> Result<Configuration, String> {
    let mut configuration = Configuration::default();
    let mut templates = false;
    for word in text.split_whitespace() {
        if word == "template:" {
            templates = true;
            continue;
        }
        let binding = if templates {
            Some(word)
        } else {
            word.strip_prefix("-D")
        };
        let binding = binding.ok_or_else(|| format!("`{word}` among the defines"))?;
        let (name, value) = binding.split_once('=').unwrap_or((binding, "1"));
        let to = if templates {
            &mut configuration.template
        } else {
            &mut configuration.defines
        };
        to.insert(name.to_owned(), value.to_owned());
    }
    Ok(configuration)
}

/// The block that the macros of a configuration name: what did not compile has no launch.
fn block_of(defines: &BTreeMap<String, String>) -> Option<Extents> {
    let named = |axis: &str| {
        let mut names = defines.iter();
        let name = format!("block_size_{axis}");
        let (_, value) = names.find(|(known, _)| known.eq_ignore_ascii_case(&name))?;
        value.parse::<u64>().ok()
    };
    let [x, y, z] = ["x", "y", "z"].map(named);
    Some(Extents([x?, y.unwrap_or(1), z.unwrap_or(1)]))
}

/// Whole numbers that a problem names: `M=N=K=4096 alpha=0.5` are M, N and K.
fn problem(text: &str) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        let mut names: Vec<&str> = word.split('=').collect();
        let Some(Ok(value)) = names.pop().map(str::parse::<i64>) else {
            continue;
        };
        found.extend(names.into_iter().map(|name| (name.to_owned(), value)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: &str = "kernel,gpu,source,defines,grid_x,grid_y,grid_z,block_x,block_y,block_z,\
                         problem,measured_ms,median_ms,valid,regs,sm_clock_mhz,extra\n";

    fn table(rows: &str) -> Table {
        parse("made-up", &format!("{HEADS}{rows}"), &Value::Null).unwrap()
    }

    #[test]
    fn a_row_is_a_configuration_and_what_was_measured() {
        let table = table(
            "blur<double>,Some GPU,k/blur.cu,-Dtile=2 -Dloop_unroll_factor_x=0,8,4,1,32,2,1,\
             N=M=64 a=0.5,2.5,2.0,1,40,1500,\"{\"\"l2\"\": 7, \"\"template\"\": \"\"T=float,B=3\"\"}\"\n",
        );
        assert_eq!(table.problems, Vec::<String>::new());
        let row = &table.rows[0];
        assert_eq!(
            (row.kernel.as_str(), &row.types[..]),
            ("blur", &["double".to_owned()][..])
        );
        assert_eq!(row.measured_ms, Some(2.0));
        assert_eq!(row.measured_cycles, Some(3e6));
        assert_eq!(row.counters["l2"], 7.0);
        assert_eq!(row.counters["regs"], 40.0);
        let configuration = &row.configuration;
        assert_eq!(configuration.grid, Some(Extents([8, 4, 1])));
        assert_eq!(configuration.defines["tile"], "2");
        assert_eq!(configuration.defines["block_size_y"], "2");
        assert_eq!(configuration.defines["grid_size_x"], "8");
        assert_eq!(configuration.defines["kernel_tuner"], "1");
        assert_eq!(configuration.without_unroll, ["loop_unroll_factor_x"]);
        assert_eq!(configuration.template["T"], "float");
        assert_eq!(configuration.template["B"], "3");
        let args: Vec<_> = configuration.args.iter().collect();
        assert_eq!(args, [(&"M".to_owned(), &64), (&"N".to_owned(), &64)]);
    }

    #[test]
    fn what_did_not_compile_has_the_block_that_its_macros_name() {
        let table = table("f,G,f.cu,-DBLOCK_SIZE_X=32 -DBLOCK_SIZE_Y=8,,,,,,,,,,0,,,\n");
        let row = &table.rows[0];
        assert_eq!(row.measured_ms, None);
        assert_eq!(row.configuration.block, Some(Extents([32, 8, 1])));
        assert_eq!(row.configuration.grid, None);
    }

    #[test]
    fn rows_that_cannot_be_read_are_named_by_their_line() {
        let good = "f,G,f.cu,,1,1,1,32,1,1,,1.0,,1,,,\n";
        let bad = [
            (
                "f,G,f.cu,,1,1,1,32,1,1,,fast,,1,,,\n",
                "measured_ms is `fast`",
            ),
            ("f,G,f.cu,,1,1,1,32,1,1,,-1,,1,,,\n", "measured_ms is `-1`"),
            (
                "f,G,f.cu,,1,1,1,32,1,1,,NaN,,1,,,\n",
                "measured_ms is `NaN`",
            ),
            ("f,G,f.cu,,1,1,1,32,1,1,,,,1,,,\n", "without a time"),
            ("f,G,f.cu,,x,1,1,32,1,1,,1,,1,,,\n", "grid_x is `x`"),
            ("f,G,f.cu,,,,,,,,,1,,1,,,\n", "no grid or no block"),
            ("f,G,f.cu,,1,1,1,32,1,1,,1,,yes,,,\n", "valid is `yes`"),
            (
                "f,G,f.cu,tile=2,1,1,1,32,1,1,,1,,1,,,\n",
                "`tile=2` among the defines",
            ),
            ("f,G,f.cu,,1,1,1,32,1,1,,1,,1,,,{\n", "extra:"),
            (",G,f.cu,,1,1,1,32,1,1,,1,,1,,,\n", "no kernel"),
            ("f,G\n", "2 cells, not 17"),
        ];
        for (row, why) in bad {
            let table = table(&format!("{good}{row}{good}"));
            assert_eq!(table.rows.len(), 2, "{row}");
            let said = &table.problems[0];
            assert!(said.starts_with("line 3: ") && said.contains(why), "{said}");
        }
        assert!(table("").rows.is_empty());
    }

    #[test]
    fn a_table_of_something_else_is_refused() {
        let error = parse("t", "a,b\n1,2\n", &Value::Null).unwrap_err();
        assert_eq!(error.to_string(), "no column `kernel`");
        assert!(parse("t", "", &Value::Null).is_err());
    }

    #[test]
    fn arguments_come_from_the_description_the_problem_and_the_launch() {
        let meta = serde_json::json!({"args": [{"name": "n", "value": 4}, {"name": "x", "value": 0.5}, {"name": "p"}]});
        let row = "f,G,f.cu,,1,1,1,32,1,1,n=8,1.0,,1,,,\n";
        let table = parse("gpu_stream_public", &format!("{HEADS}{row}"), &meta).unwrap();
        let args = &table.rows[0].configuration.args;
        assert_eq!((args["n"], args["secretlyFalse"], args.len()), (8, 0, 2));
    }
}
