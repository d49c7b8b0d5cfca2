//! A measured launch, whatever form of table it was read from.

use std::collections::BTreeMap;

use warplens_tuning::Configuration;

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The file's name without its endings.
    pub id: String,
    /// Its rows in their order.
    pub rows: Vec<Row>,
    /// Who measured, as the description says it.
    pub origin: String,
    /// Rows that could not be read, each with its line.
    pub problems: Vec<String>,
}

/// One launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its line in the file, from 1.
    pub line: u64,
    /// The kernel's plain name.
    pub kernel: String,
    /// What is in angle brackets behind the name: `double`.
    pub types: Vec<String>,
    /// The GPU as the table calls it.
    pub gpu: String,
    /// Where the kernel's source lies.
    pub source: String,
    /// Options of the compiler, as the table says them.
    pub options: Vec<String>,
    /// Bytes of the arrays that are passed, by the parameters' names, where the table says them.
    pub array_bytes: BTreeMap<String, u64>,
    /// Macros, template parameters, arguments and the launch.
    pub configuration: Configuration,
    /// Blocks that an SM was made to hold.
    pub blocks_per_sm: Option<u32>,
    /// Milliseconds; `None` where it did not compile or launch.
    pub measured_ms: Option<f64>,
    /// The launch is in that time too: that of events around one launch, not a share of many.
    pub with_launch: bool,
    /// Cycles of the SM's clock, where that clock is known.
    pub measured_cycles: Option<f64>,
    /// What was counted, by the table's names.
    pub counters: BTreeMap<String, f64>,
}
