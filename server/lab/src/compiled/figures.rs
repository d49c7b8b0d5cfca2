//! What is counted of a kernel, and how far counts are from counts.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;
use warplens_codegen::Class;

use crate::machine_code::Function;

/// What is compared of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub registers: u64,
    /// Bytes.
    pub spills: u64,
    /// By class: `LDG`, `STG`, `LDS`, `STS`, `BAR`.
    pub memory: [u64; 5],
    pub fp32: u64,
    pub fp64: u64,
    pub total: u64,
}

/// The names of `Counts::memory`.
pub const MEMORY: [&str; 5] = ["LDG", "STG", "LDS", "STS", "BAR"];

/// The columns of a table that are of one class, where that is not the class's own name.
const COLUMNS: [(Class, &[&str]); 4] = [
    (Class::Ldg, &["LDG", "LD", "LDGSTS"]),
    (Class::Stg, &["STG", "ST"]),
    (Class::Lds, &["LDS", "LDSM"]),
    (Class::Sts, &["STS"]),
];

impl Counts {
    /// Those of a compiled kernel.
    pub fn of_function(function: &Function) -> Counts {
        let count = |class: Class| function.instructions.get(&class).copied().unwrap_or(0);
        Counts {
            registers: function.registers,
            spills: function.spills,
            total: function.instructions.values().sum(),
            ..Counts::by_class(count)
        }
    }

    /// Those of a row of a table, by its columns.
    pub fn of_table(row: &BTreeMap<String, String>) -> anyhow::Result<Counts> {
        let number = |name: &str| row.get(name).and_then(|text| text.parse::<u64>().ok());
        let needed = |name: &str| number(name).with_context(|| format!("no column {name}"));
        Ok(Counts {
            registers: needed("regs")?,
            spills: number("spill_st").unwrap_or(0) + number("spill_ld").unwrap_or(0),
            total: needed("sass_n")?,
            ..Counts::by_class(|class| {
                let own = class.name().to_uppercase();
                let columns = COLUMNS.iter().find(|(of, _)| *of == class);
                match columns {
                    Some((_, columns)) => columns.iter().filter_map(|name| number(name)).sum(),
                    None => number(&own).unwrap_or(0),
                }
            })
        })
    }

    /// Those that are predicted.
    pub fn of_prediction(result: &Value) -> Counts {
        let instructions = &result["instructions"];
        let resources = &result["resources"];
        // Counts are whole, whatever JSON makes of them.
        let count = |value: &Value| value.as_f64().unwrap_or(0.0).round() as u64;
        Counts {
            registers: count(&resources["registers_per_thread"]),
            spills: count(&resources["spill_bytes"]),
            total: count(&instructions["total"]),
            ..Counts::by_class(|class| count(&instructions[class.name()]))
        }
    }

    fn by_class(count: impl Fn(Class) -> u64) -> Counts {
        Counts {
            memory: [Class::Ldg, Class::Stg, Class::Lds, Class::Sts, Class::Bar].map(&count),
            fp32: [Class::Ffma, Class::Fadd, Class::Fmul]
                .map(&count)
                .iter()
                .sum(),
            fp64: [Class::Dfma, Class::Dadd, Class::Dmul]
                .map(&count)
                .iter()
                .sum(),
            ..Counts::default()
        }
    }
}

/// A kernel.
#[derive(Debug, Clone)]
pub struct Row {
    pub file: String,
    pub kernel: String,
    pub measured: Counts,
    pub predicted: Counts,
}

impl Row {
    /// Its memory and barrier counts that are not those of the compiler.
    pub fn differing(&self) -> Vec<String> {
        let all = MEMORY
            .iter()
            .zip(self.measured.memory)
            .zip(self.predicted.memory);
        all.filter(|((_, measured), predicted)| measured != predicted)
            .map(|((name, measured), predicted)| {
                format!("{}: {name} {predicted}, compiled {measured}", self.kernel)
            })
            .collect()
    }
}

/// A part of a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub part: usize,
    pub whole: usize,
}

impl Share {
    /// Those of `all` that are so.
    pub fn of<T>(all: impl IntoIterator<Item = T>, is: impl Fn(&T) -> bool) -> Share {
        let mut share = Share::default();
        for one in all {
            share.whole += 1;
            share.part += usize::from(is(&one));
        }
        share
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.whole == 0 {
            return f.write_str("-");
        }
        write!(f, "{:.0} %", 100.0 * self.part as f64 / self.whole as f64)
    }
}

/// The middle of what is given; between the two middle ones of an even number.
pub fn median(values: impl IntoIterator<Item = u64>) -> f64 {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle] as f64,
        _ => (values[middle - 1] + values[middle]) as f64 / 2.0,
    }
}

/// The registers' median absolute error.
pub fn registers_error(rows: &[Row]) -> f64 {
    median(
        rows.iter()
            .map(|row| row.measured.registers.abs_diff(row.predicted.registers)),
    )
}

/// Whether a count is so near the true one.
pub fn within(percent: u64, measured: u64, predicted: u64) -> bool {
    100 * measured.abs_diff(predicted) <= percent * measured
}

/// Blocks of 256 threads that fit on a multiprocessor of 65 536 registers and 64 warps, which hands them out to warps
/// by 256: what registers alone allow.
pub fn blocks(registers: u64) -> u64 {
    let warp = (registers.max(1) * 32).next_multiple_of(256);
    (65_536 / (8 * warp)).min(8)
}

/// How many steps of occupancy lie between two counts of registers: registers allow 1, 2, 3, 4, 5, 6 and 8 blocks.
pub fn steps(a: u64, b: u64) -> usize {
    let level = |registers: u64| -> usize {
        let most = blocks(registers);
        let below = (1..registers).map(blocks).filter(|&found| found > most);
        let mut above: Vec<u64> = below.collect();
        above.dedup();
        above.len()
    };
    level(a).abs_diff(level(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiled_kernel_is_counted_by_classes() {
        let counts = Counts::of_function(&Function {
            registers: 12,
            spills: 8,
            instructions: BTreeMap::from([
                (Class::Ldg, 2),
                (Class::Stg, 1),
                (Class::Bar, 1),
                (Class::Ffma, 1),
                (Class::Fadd, 1),
                (Class::Dfma, 1),
                (Class::Other, 3),
            ]),
        });
        assert_eq!((counts.registers, counts.spills, counts.total), (12, 8, 10));
        assert_eq!(counts.memory, [2, 1, 0, 0, 1]);
        assert_eq!((counts.fp32, counts.fp64), (2, 1));
    }

    #[test]
    fn a_prediction_is_read_from_its_json() {
        let counts = Counts::of_prediction(&serde_json::json!({
            "instructions": {"ldg": 5.0, "stg": 1.0, "ffma": 4.0, "fmul": 1.0, "total": 20.0},
            "resources": {"registers_per_thread": 16, "spill_bytes": null},
        }));
        assert_eq!((counts.registers, counts.spills, counts.total), (16, 0, 20));
        assert_eq!((counts.memory, counts.fp32), ([5, 1, 0, 0, 0], 5));
    }

    #[test]
    fn a_row_of_a_table_is_read_by_its_columns() {
        let row = |cells: &[(&str, &str)]| {
            let cells = cells.iter();
            cells
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect()
        };
        let counts = Counts::of_table(&row(&[
            ("regs", "30"),
            ("sass_n", "90"),
            ("LD", "1"),
            ("LDG", "2"),
            ("spill_st", "4"),
        ]));
        let counts = counts.unwrap();
        assert_eq!((counts.registers, counts.total, counts.spills), (30, 90, 4));
        assert_eq!(counts.memory[0], 3);
        let error = Counts::of_table(&row(&[("regs", "30")])).unwrap_err();
        assert!(error.to_string().contains("sass_n"));
    }

    #[test]
    fn the_middle_and_shares_are_of_what_there_is() {
        assert_eq!(median([5, 1, 3]), 3.0);
        assert_eq!(median([4, 1, 3, 2]), 2.5);
        assert_eq!(median([]), 0.0);
        assert_eq!(Share::of([1, 2, 3], |&n| n > 1).to_string(), "67 %");
        assert_eq!(Share::default().to_string(), "-");
        assert!(
            within(25, 100, 125) && !within(25, 100, 126) && within(10, 0, 0) && !within(10, 0, 1)
        );
    }

    #[test]
    fn registers_allow_blocks_by_steps() {
        let allowed: Vec<u64> = [32, 33, 40, 48, 64, 80, 128, 255].map(blocks).to_vec();
        assert_eq!(allowed, [8, 6, 6, 5, 4, 3, 2, 1]);
        assert_eq!(
            (steps(20, 32), steps(32, 33), steps(40, 32), steps(255, 20)),
            (0, 1, 1, 6)
        );
    }
}
