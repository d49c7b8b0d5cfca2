//! What one source line of a kernel costs.

use std::collections::BTreeMap;

use warplens_db::PlacedKernel;
use warplens_facts::facts::{Access, Branch, Space};
use warplens_models::ExecutedAccess;

/// A line's accesses and branches, and its share of the kernel's cycles.
#[derive(Debug, Default)]
pub struct Line<'a> {
    /// In source order.
    pub accesses: Vec<&'a Access>,
    /// Those that only the compiled kernel has: of registers that found no room.
    pub compilers_own: Vec<&'a ExecutedAccess>,
    /// In source order.
    pub branches: Vec<&'a Branch>,
    /// Of the kernel, 0 to 1.
    pub share: f64,
    /// Its instructions in the compiler report.
    pub instructions: Option<Instructions>,
}

/// The machine instructions of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// By class, most first.
    pub classes: Vec<(&'static str, u64)>,
    /// False where the kernel was edited since.
    pub current: bool,
}

impl Instructions {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.classes.iter().map(|(_, count)| count).sum()
    }
}

/// Every line of a kernel that costs something, by its place in the file.
pub fn of(kernel: &PlacedKernel) -> BTreeMap<u32, Line<'_>> {
    let mut lines: BTreeMap<u32, Line<'_>> = BTreeMap::new();
    for (line, share) in kernel.analysis.lines() {
        lines.entry(kernel.place_line(line)).or_default().share += share;
    }
    let input = &kernel.analysis.input;
    for access in (kernel.analysis.facts.accesses.iter()).filter(|access| input.is_memory(access)) {
        lines
            .entry(kernel.place_line(access.site.line))
            .or_default()
            .accesses
            .push(access);
    }
    for access in kernel.analysis.input.compilers_own() {
        let line = lines
            .entry(kernel.place_line(access.site.line))
            .or_default();
        line.compilers_own.push(access);
    }
    for branch in &kernel.analysis.facts.branches {
        lines
            .entry(kernel.place_line(branch.site.line))
            .or_default()
            .branches
            .push(branch);
    }
    let current = kernel.compiler.as_ref().is_some_and(|said| said.current);
    for (line, counts) in kernel.compiled_lines() {
        let counts = counts.iter();
        let mut classes: Vec<_> = counts
            .map(|(class, count)| (class.name(), *count))
            .collect();
        classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        lines.entry(line).or_default().instructions = Some(Instructions { classes, current });
    }
    lines
}

/// What an access moves for one request and the least it could: transactions where it has them, passes in
/// shared and constant memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// As written.
    pub figure: f64,
    /// At best.
    pub ideal: f64,
    /// What is counted.
    pub unit: Unit,
}

/// What a cost counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 32-byte sectors.
    Sectors,
    /// Longer units: cache lines or segments.
    Lines,
    /// Times a bank array is cycled, or distinct words or addresses served one after the other.
    Passes,
}

impl Unit {
    /// What an access of device memory moves.
    fn of(access: &Access) -> Unit {
        if access.transaction_bytes == 32 {
            Unit::Sectors
        } else {
            Unit::Lines
        }
    }

    /// Its name, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Sectors => "sectors",
            Unit::Lines => "lines",
            Unit::Passes => "passes",
        }
    }

    /// A figure of it: `32 sectors`, `1 sector`.
    pub fn counted(self, figure: &str) -> String {
        let name = match self {
            _ if figure != "1" => self.name(),
            Unit::Sectors => "sector",
            Unit::Lines => "line",
            Unit::Passes => "pass",
        };
        format!("{figure} {name}")
    }
}

impl Cost {
    /// The cost of an access, where it is known.
    pub fn of(access: &Access) -> Option<Cost> {
        let transactions = || {
            let (figure, ideal) = (
                access.transactions_per_request?,
                access.ideal_transactions_per_request?,
            );
            Some(Cost {
                figure,
                ideal,
                unit: Unit::of(access),
            })
        };
        let passes = || {
            let figure = access.passes_per_request?;
            let ideal = access.ideal_passes_per_request.unwrap_or(1.0);
            Some(Cost {
                figure,
                ideal,
                unit: Unit::Passes,
            })
        };
        match access.space {
            Space::Shared | Space::Constant => passes(),
            Space::Global | Space::Local | Space::Texture => transactions().or_else(passes),
        }
    }

    /// What is counted of an access whose cost is not known.
    pub fn unit(access: &Access) -> Unit {
        match access.space {
            Space::Shared | Space::Constant => Unit::Passes,
            Space::Global | Space::Local | Space::Texture => Unit::of(access),
        }
    }

    /// How many times the ideal it costs.
    pub fn excess(self) -> f64 {
        if self.ideal > 0.0 {
            self.figure / self.ideal
        } else {
            1.0
        }
    }
}
