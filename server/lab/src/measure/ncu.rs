//! What ncu prints of a report as CSV.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::sass::memory;

/// A number as a number, anything else as it was printed.
pub fn number(text: &str) -> Value {
    text.replace(',', "")
        .parse::<f64>()
        .ok()
        .and_then(serde_json::Number::from_f64)
        .map_or_else(|| json!(text), Value::Number)
}

/// The page `raw`: a row of names, a row of units, a row per launch. The first launch's metrics: those that were asked for, and
/// what limits the resident blocks. (ncu adds all that the device says of itself.)
pub fn raw_metrics(csv: &str, wanted: &str) -> BTreeMap<String, Value> {
    let rows = rows(csv);
    let [names, units, values, ..] = &rows[..] else {
        return BTreeMap::new();
    };
    names
        .iter()
        .zip(units)
        .zip(values)
        .filter(|((name, _), value)| {
            let asked = wanted.split(',').any(|wanted| wanted == name.as_str());
            (asked || name.starts_with("launch__occupancy_limit")) && !value.is_empty()
        })
        .map(|((name, unit), value)| (name.clone(), json!({"value": number(value), "unit": unit})))
        .collect()
}

/// What the page `source` says of one file.
#[derive(Debug, Default, PartialEq)]
pub struct Source {
    /// Each line that executed something: `line`, `source`, and its counts under ncu's own headings.
    pub lines: Vec<Value>,
    /// Each instruction that was executed and accesses memory: `sass`, the `lines` of the file that it belongs to (that of a
    /// function that was put in place, and that of its call), and its counts. The counts of the others are in those of their lines.
    pub instructions: Vec<Value>,
}

/// Headings of the columns that place a row; all others are counts.
const LINE: [&str; 3] = ["Line No", "# Line", "#"];
const ADDRESS: [&str; 2] = ["Address", "# Address"];
const SOURCE: &str = "Source";

/// The counts that are kept of a line and of an instruction. The others follow from these, or are samples of where warps were,
/// which the next run takes elsewhere.
const KEPT: [&str; 7] = [
    "Instructions Executed",
    "Predicated-On Thread Instructions Executed",
    "L1 Tag Requests Global",
    "L1 Wavefronts Shared",
    "L1 Wavefronts Shared Ideal",
    "L2 Theoretical Sectors Global",
    "L2 Theoretical Sectors Global Ideal",
];

/// The page `source` in the view `cuda,sass`: for each source file a row with its path, one with the headings, then
/// lines, each followed by its instructions. An instruction is below every line that it belongs to.
pub fn source(csv: &str, file: &str) -> Source {
    let mut lines = Vec::new();
    let mut instructions: BTreeMap<String, (Vec<u64>, Value)> = BTreeMap::new();
    let mut heading: Option<Vec<String>> = None;
    let mut here = false;
    let mut line = 0;
    for row in rows(csv) {
        let first = row[0].as_str();
        if first == "File Path" {
            let name = row[1].rsplit(['/', '\\']).next().unwrap_or_default();
            (here, heading, line) = (name == file, None, 0);
            continue;
        }
        let is_heading =
            |cell: &String| LINE.contains(&cell.as_str()) || ADDRESS.contains(&cell.as_str());
        if is_heading(&row[0]) {
            heading = Some(row);
            continue;
        }
        let Some(heading) = heading.as_ref().filter(|of| of.len() == row.len() && here) else {
            continue;
        };
        let cell = |names: &[&str]| {
            let at = heading
                .iter()
                .position(|name| names.contains(&name.as_str()));
            at.map_or("", |at| row[at].as_str())
        };
        let counts: BTreeMap<&str, Value> = heading
            .iter()
            .zip(&row)
            .filter(|(name, cell)| {
                let name = name.as_str();
                KEPT.contains(&name) && !matches!(cell.as_str(), "" | "0" | "-" | "...")
            })
            .map(|(name, cell)| (name.as_str(), number(cell)))
            .collect();
        let executed = counts.get("Instructions Executed").and_then(Value::as_f64);
        let executed = executed.is_some_and(|count| count > 0.0);
        // Of two columns `Source` the first is the line's text, the last the instruction's.
        let mut texts = heading
            .iter()
            .zip(&row)
            .filter(|(name, _)| *name == SOURCE)
            .map(|(_, cell)| cell.as_str());
        if let Ok(number) = cell(&LINE).parse::<u64>() {
            line = number;
            if executed {
                lines.push(with(
                    &counts,
                    [("line", json!(line)), ("source", json!(texts.next()))],
                ));
            }
        } else if cell(&ADDRESS).starts_with("0x") && executed && line > 0 {
            let known = instructions.entry(cell(&ADDRESS).to_owned());
            let (of, _) = known.or_insert_with(|| {
                let text = texts.next_back().unwrap_or_default();
                (Vec::new(), with(&counts, [("sass", json!(text))]))
            });
            if !of.contains(&line) {
                of.push(line);
            }
        }
    }
    let accesses = |counts: &Value| {
        let sass = counts["sass"].as_str().unwrap_or_default();
        !memory(sass).is_empty()
    };
    let instructions = instructions
        .into_values()
        .filter(|(_, counts)| accesses(counts))
        .map(|(lines, mut counts)| {
            counts["lines"] = json!(lines);
            counts
        });
    Source {
        lines,
        instructions: instructions.collect(),
    }
}

fn with<const N: usize>(counts: &BTreeMap<&str, Value>, places: [(&str, Value); N]) -> Value {
    let all = places
        .into_iter()
        .chain(counts.iter().map(|(name, count)| (*name, count.clone())));
    Value::Object(all.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Rows of more than one cell: ncu prints remarks of its own between the tables.
fn rows(csv: &str) -> Vec<Vec<String>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(csv.as_bytes())
        .records()
        .flatten()
        .filter(|row| row.len() > 1)
        .map(|row| row.iter().map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_by_their_names() {
        let raw = "==PROF== Connected\n\"ID\",\"Kernel Name\",\"dram__bytes_read.sum\",\"x__y\"\n\
                   \"\",\"\",\"Mbyte\",\"\"\n\"0\",\"f(int *, int)\",\"1,024.5\",\"\"\n";
        let metrics = raw_metrics(raw, "dram__bytes_read.sum");
        assert_eq!(metrics.len(), 1);
        assert_eq!(
            metrics["dram__bytes_read.sum"],
            json!({"value": 1024.5, "unit": "Mbyte"})
        );
        assert!(raw_metrics("", "dram__bytes_read.sum").is_empty());
    }

    #[test]
    fn instructions_stand_below_the_lines_that_they_belong_to() {
        let page = "==PROF== remarks\n\
            \"File Path\",\"/usr/include/other.h\"\n\"Function Name\",\"f(int *, int)\"\n\
            \"Line No\",\"Source\",\"Address\",\"Source\",\"Instructions Executed\",\"L2 Theoretical Sectors Global\"\n\
            \"5\",\"elsewhere();\",\"\",\"\",\"9\",\"9\"\n\
            \"\",\"\",\"0x10\",\"LDG.E R1, [R2]\",\"9\",\"9\"\n\
            \"File Path\",\"/home/user/k.cu\"\n\"Function Name\",\"f(int *, int)\"\n\
            \"Line No\",\"Source\",\"Address\",\"Source\",\"Instructions Executed\",\"L2 Theoretical Sectors Global\"\n\
            \"7\",\"a[i] = b[\"\"k\"\"];\",\"\",\"\",\"1,064\",\"256\"\n\
            \"\",\"\",\"0x20\",\"  LDG.E R2, [R4.64]\",\"1,064\",\"256\"\n\
            \"\",\"\",\"0x28\",\"IADD3 R2, R2, 1, RZ\",\"1,064\",\"0\"\n\
            \"8\",\"}\",\"\",\"\",\"0\",\"0\"\n\
            \"\",\"\",\"0x30\",\"NOP\",\"0\",\"0\"\n\
            \"...\",\"...\",\"\",\"\",\"-\",\"-\"\n\
            \"9\",\"call();\",\"\",\"\",\"1,064\",\"256\"\n\
            \"\",\"\",\"0x20\",\"LDG.E R2, [R4.64]\",\"1,064\",\"256\"\n";
        let found = source(page, "k.cu");
        assert_eq!(found.lines.len(), 2);
        assert_eq!(
            found.lines[0],
            json!({"line": 7, "source": "a[i] = b[\"k\"];", "Instructions Executed": 1064.0,
                   "L2 Theoretical Sectors Global": 256.0})
        );
        assert_eq!(
            found.instructions,
            [
                json!({"sass": "LDG.E R2, [R4.64]", "Instructions Executed": 1064.0,
                    "L2 Theoretical Sectors Global": 256.0, "lines": [7, 9]})
            ]
        );
        // Cut off anywhere, it is what was there.
        for end in 0..page.len() {
            let cut = source(&page[..end], "k.cu");
            assert!(cut.lines.len() <= 2 && cut.instructions.len() <= 1);
        }
        assert_eq!(source("==ERROR== nothing", "k.cu"), Source::default());
    }
}
