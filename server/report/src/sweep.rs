//! Predictions of many configurations: a line of JSON each, the best as a table.

use std::cmp::Ordering;

use warplens_db::wire::SweepLine;

use crate::figure::{grouped, percent, time};
use crate::style::{Paint, Style};
use crate::table::{Align, Cell, Table};

fn order(line: &SweepLine, other: &SweepLine) -> Ordering {
    let time = |line: &SweepLine| line.time_ms.unwrap_or(f64::INFINITY);
    time(line).total_cmp(&time(other))
}

/// True where another is no worse in time, registers and shared memory, and better in one.
fn beaten_by(line: &SweepLine, other: &SweepLine) -> bool {
    let order = order(line, other);
    let resources = |line: &SweepLine| (line.registers_per_thread, line.shared_bytes);
    let ((r, s), (other_r, other_s)) = (resources(line), resources(other));
    order.is_ge() && r >= other_r && s >= other_s && (order.is_gt() || r > other_r || s > other_s)
}

/// Keeps the fastest lines, up to a limit.
#[derive(Debug)]
pub struct Best {
    most: usize,
    lines: Vec<SweepLine>,
}

impl Best {
    /// The `count` fastest.
    pub fn new(most: usize) -> Best {
        Best {
            most,
            lines: Vec::new(),
        }
    }

    /// Looks at one more; among equals the first stays.
    pub fn add(&mut self, line: &SweepLine) {
        if !line.valid || self.most == 0 {
            return;
        }
        let at = self.lines.partition_point(|one| order(one, line).is_le());
        if at < self.most {
            self.lines.insert(at, line.clone());
            self.lines.truncate(self.most);
        }
    }

    /// As a table.
    pub fn table(&self, style: Style) -> String {
        table(&self.lines, style)
    }
}

/// Those that no other beats in time, registers and shared memory together.
#[derive(Debug, Default)]
pub struct Pareto {
    lines: Vec<SweepLine>,
}

impl Pareto {
    /// Looks at one more.
    pub fn add(&mut self, line: &SweepLine) {
        if !line.valid || self.lines.iter().any(|one| beaten_by(line, one)) {
            return;
        }
        self.lines.retain(|one| !beaten_by(one, line));
        let at = self.lines.partition_point(|one| order(one, line).is_le());
        self.lines.insert(at, line.clone());
    }

    /// As a table.
    pub fn table(&self, style: Style) -> String {
        table(&self.lines, style)
    }
}

fn table(lines: &[SweepLine], style: Style) -> String {
    let mut table = Table::new(&[
        ("rank", Align::Right),
        ("time", Align::Right),
        ("slower", Align::Right),
        ("bound by", Align::Left),
        ("occupancy", Align::Right),
        ("registers", Align::Right),
        ("shared", Align::Right),
        ("configuration", Align::Left),
    ])
    .elastic(7);
    let first = lines.first().and_then(|line| line.time_ms);
    for (rank, line) in (1_u64..).zip(lines) {
        let milliseconds = line.time_ms.unwrap_or(f64::NAN);
        let slower = first.map_or(f64::NAN, |first| milliseconds / first - 1.0);
        let plain = |text: String| Cell::new(text, Paint::Plain);
        table.row([
            plain(rank.to_string()),
            plain(time(milliseconds)),
            plain(if rank == 1 {
                String::new()
            } else {
                percent(slower)
            }),
            plain(line.bottleneck.unwrap_or_default().replace('_', " ")),
            plain(line.occupancy.map_or_else(String::new, percent)),
            plain(line.registers_per_thread.unwrap_or_default().to_string()),
            plain(format!(
                "{} B",
                grouped(line.shared_bytes.unwrap_or_default())
            )),
            plain(words(&line.id)),
        ]);
    }
    table.render(style, 0)
}

/// An id on one line: `block_size_x=32 tile=2`.
fn words(id: &serde_json::Value) -> String {
    match id {
        serde_json::Value::Object(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|(name, value)| format!("{name}={}", words(value)))
                .collect();
            parts.join(" ")
        }
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: i64, time_ms: f64, registers: u32, shared: u64) -> SweepLine {
        SweepLine {
            time_ms: Some(time_ms),
            cycles: Some(time_ms * 1e6),
            bottleneck: Some("compute"),
            occupancy: Some(0.5),
            registers_per_thread: Some(registers),
            shared_bytes: Some(shared),
            valid: true,
            why_invalid: None,
            assumptions: Vec::new(),
            ..SweepLine::invalid(id.into(), String::new())
        }
    }

    fn ids(lines: &[SweepLine]) -> Vec<i64> {
        lines.iter().filter_map(|line| line.id.as_i64()).collect()
    }

    #[test]
    fn the_best_come_in_order_and_only_so_many() {
        let mut best = Best::new(3);
        for (id, time) in [(1, 5.0), (2, 1.0), (3, 9.0), (4, 1.0), (5, 3.0)] {
            best.add(&line(id, time, 32, 0));
        }
        best.add(&SweepLine::invalid(9.into(), "too many threads".to_owned()));
        assert_eq!(ids(&best.lines), [2, 4, 5]);
        let table = best.table(Style::PLAIN);
        assert!(
            table
                .lines()
                .nth(1)
                .is_some_and(|row| row.trim_start().starts_with('1')),
            "{table}"
        );
    }

    #[test]
    fn none_of_the_front_is_beaten() {
        let mut front = Pareto::default();
        for one in [
            line(1, 5.0, 32, 100),
            line(2, 4.0, 40, 100),
            line(3, 6.0, 32, 100),
            line(4, 6.0, 32, 50),
            line(5, 4.0, 40, 100),
            line(6, 3.0, 20, 20),
        ] {
            front.add(&one);
        }
        assert_eq!(ids(&front.lines), [6]);
        let mut front = Pareto::default();
        for one in [
            line(1, 5.0, 32, 100),
            line(2, 4.0, 40, 100),
            line(3, 6.0, 32, 100),
            line(4, 6.0, 32, 50),
        ] {
            front.add(&one);
        }
        assert_eq!(ids(&front.lines), [2, 1, 4]);
    }
}
