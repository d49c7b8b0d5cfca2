//! What `cargo lab measure` measured of our own kernels, as a table.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use serde_json::Value;
use warplens_tuning::{Configuration, Extents};

use super::row::{Row, Table};

/// ncu's names, and what tables of measured times call the same; the factor makes sectors of bytes.
const COUNTERS: [(&str, &str, f64); 8] = [
    ("smsp__inst_executed.sum", "warp_inst_executed", 1.0),
    ("lts__t_sectors_op_read.sum", "l2_rd_sectors", 1.0),
    ("lts__t_sectors_op_write.sum", "l2_wr_sectors", 1.0),
    ("dram__bytes_read.sum", "dram_rd_sectors", 1.0 / 32.0),
    ("dram__bytes_write.sum", "dram_wr_sectors", 1.0 / 32.0),
    (
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "achieved_occupancy_pct",
        1.0,
    ),
    (
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "avg_active_threads_per_warp_inst",
        1.0,
    ),
    ("launch__registers_per_thread", "regs", 1.0),
];

/// A launch's share of many says nothing of the kernel where it is less than this many times that of the shortest kernel: then
/// it is how fast the host launches.
const LAUNCHES: f64 = 2.0;

/// Reads a `kernels.json`.
pub fn read(id: &str, path: &Path) -> anyhow::Result<Table> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let all = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    parse(id, &all).with_context(|| path.display().to_string())
}

/// The launches whose results were right, each with its time; counters belong to the launch that they were read of.
pub fn parse(id: &str, all: &Value) -> anyhow::Result<Table> {
    if all["schema"] != "warplens.measured/1" {
        bail!("not of the form `warplens.measured/1`");
    }
    let gpu = all["device"]["name"].as_str().unwrap_or_default();
    let counters = all["counters"].as_array().into_iter().flatten();
    let counters: Vec<&Value> = counters.collect();
    let mut table = Table {
        id: id.to_owned(),
        rows: Vec::new(),
        origin: "our own kernels, by `cargo lab measure`".to_owned(),
        problems: Vec::new(),
    };
    let runs = || all["runs"].as_array().into_iter().flatten();
    // Launches follow one another no faster than the host makes them.
    let in_a_row = runs().filter_map(|run| run["ms"]["in_a_row"].as_f64());
    let least = LAUNCHES * in_a_row.fold(f64::INFINITY, f64::min);
    for (run, number) in runs().zip(1_u64..) {
        if run["ms"]["in_a_row"].as_f64().is_some_and(|ms| ms < least) {
            continue;
        }
        match row(run, number, gpu, &counters) {
            Ok(Some(row)) => table.rows.push(row),
            Ok(None) => {}
            Err(why) => table.problems.push(format!("run {number}: {why}")),
        }
    }
    Ok(table)
}

fn row(run: &Value, number: u64, gpu: &str, counters: &[&Value]) -> Result<Option<Row>, String> {
    if run["right"] != true {
        return Ok(None);
    }
    let (Some(program), Some(name)) = (run["program"].as_str(), run["kernel"].as_str()) else {
        return Err("no program or no kernel".to_owned());
    };
    // A launch's share of many in a row has no launch overhead in it, as a kernel's duration has none.
    let time = |key: &str| run["ms"][key].as_f64().filter(|ms| *ms > 0.0);
    let share = time("in_a_row");
    let measured = share.or_else(|| time("median"));
    let (kernel, types) = match name.split_once('<') {
        Some((kernel, types)) => (kernel, vec![types.trim_end_matches('>').to_owned()]),
        None => (name, Vec::new()),
    };
    let args = run["args"].as_object().into_iter().flatten();
    let configuration = Configuration {
        args: args
            .filter_map(|(name, value)| Some((name.clone(), value.as_i64()?)))
            .collect(),
        grid: Some(extents(run, "grid")?),
        block: Some(extents(run, "block")?),
        dynamic_shared_bytes: run["dynamic_shared_bytes"].as_u64(),
        ..Configuration::default()
    };
    let same = |entry: &&&Value| {
        let keys = ["kernel", "grid", "block", "args"];
        entry["program"] == program && keys.iter().all(|key| entry["launch"][key] == run[key])
    };
    let counted = counters.iter().find(same);
    let counted = counted.map_or_else(BTreeMap::new, |entry| metrics(&entry["metrics"]));
    Ok(Some(Row {
        line: number,
        kernel: kernel.to_owned(),
        types,
        gpu: gpu.to_owned(),
        source: format!("{program}.cu"),
        options: Vec::new(),
        array_bytes: BTreeMap::new(),
        configuration,
        blocks_per_sm: None,
        measured_ms: Some(measured.ok_or("no time")?),
        with_launch: share.is_none(),
        measured_cycles: None,
        counters: counted,
    }))
}

fn extents(run: &Value, key: &str) -> Result<Extents, String> {
    let given = run[key].as_array().into_iter().flatten();
    let given: Option<Vec<u64>> = given.map(Value::as_u64).collect();
    let given = given.ok_or_else(|| format!("{key} is no list of numbers"))?;
    Extents::try_from(given).map_err(|why| format!("{key}: {why}"))
}

/// ncu's metrics as the counters of tables.
fn metrics(metrics: &Value) -> BTreeMap<String, f64> {
    let counters = COUNTERS.iter().filter_map(|(theirs, ours, factor)| {
        let metric = &metrics[theirs];
        let unit = match metric["unit"].as_str().unwrap_or_default() {
            "Kbyte" => 1e3,
            "Mbyte" => 1e6,
            "Gbyte" => 1e9,
            _ => 1.0,
        };
        Some((
            (*ours).to_owned(),
            metric["value"].as_f64()? * unit * factor,
        ))
    });
    counters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn right_runs_are_rows_and_counters_find_theirs() {
        let launch = json!({"kernel": "add<float>", "grid": [8, 1, 1], "block": [64, 1, 1], "args": {"n": 512}});
        let mut run = launch.clone();
        run["program"] = json!("linear_measure");
        run["right"] = json!(true);
        run["ms"] = json!({"median": 0.25});
        let mut wrong = run.clone();
        wrong["right"] = json!(false);
        let mut broken = run.clone();
        broken["grid"] = json!("8");
        let table = parse(
            "h200",
            &json!({
                "schema": "warplens.measured/1",
                "device": {"name": "NVIDIA H200"},
                "runs": [run, wrong, broken],
                "counters": [{"program": "linear_measure", "launch": launch,
                    "metrics": {"dram__bytes_read.sum": {"value": 3.2, "unit": "Kbyte"}}}],
            }),
        )
        .unwrap();
        assert_eq!(table.rows.len(), 1);
        let row = &table.rows[0];
        assert_eq!(
            (row.kernel.as_str(), row.types[0].as_str()),
            ("add", "float")
        );
        assert_eq!(row.configuration.grid, Some(Extents([8, 1, 1])));
        assert_eq!(row.configuration.args["n"], 512);
        assert_eq!(row.measured_ms, Some(0.25));
        assert!((row.counters["dram_rd_sectors"] - 100.0).abs() < 1e-9);
        assert_eq!(table.problems.len(), 1);
        assert!(
            table.problems[0].starts_with("run 3: grid"),
            "{:?}",
            table.problems
        );
        assert!(parse("x", &json!({})).is_err());
    }
}
