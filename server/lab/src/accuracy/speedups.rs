//! Predicted speedups held against measured ones: rows of a table that differ in no more than what a code action does.

use std::collections::BTreeMap;

use super::description::{Change, described};
use super::predict::Predicted;
use super::row::Row;
use super::score;

/// Below such a measured difference, up or down, the repeatability of the measurements decides which is faster.
const TOLD: f64 = 0.05;

/// Two rows of which the second is the first with one change made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The change.
    pub change: Change,
    /// Time before over time after, as predicted.
    pub predicted: f64,
    /// The same, as measured.
    pub measured: f64,
}

impl Pair {
    /// How far the predicted speedup is off, as a share of the measured one.
    pub fn error(&self) -> f64 {
        (self.predicted / self.measured - 1.0).abs()
    }

    /// True where the measurements tell which of the two is faster.
    fn is_told(&self) -> bool {
        self.measured.ln().abs() > (1.0 + TOLD).ln()
    }

    fn same_way(&self) -> bool {
        (self.predicted > 1.0) == (self.measured > 1.0)
    }
}

/// Every pair of a table's rows.
pub fn pairs(rows: &[&Row], predicted: &[Predicted]) -> Vec<Pair> {
    let timed: Vec<(&Row, f64, f64)> = rows
        .iter()
        .zip(predicted)
        .filter_map(|(row, predicted)| Some((*row, predicted.ms?, row.measured_ms?)))
        .collect();
    let mut found = Vec::new();
    for (name, &change) in &described().parameters {
        // Rows that are alike but for this parameter, by its value.
        let mut alike: BTreeMap<String, BTreeMap<u64, (f64, f64)>> = BTreeMap::new();
        for (row, ms, measured) in &timed {
            let configuration = &row.configuration;
            let value = configuration.defines.get(name);
            let Some(value) = value.and_then(|value| value.parse().ok()) else {
                continue;
            };
            let mut others = configuration.defines.clone();
            others.remove(name);
            let (grid, block) = (&configuration.grid, &configuration.block);
            let key = format!(
                "{} {} {:?} {others:?} {grid:?} {block:?}",
                row.gpu, row.kernel, row.types
            );
            let times = (*ms, *measured);
            alike.entry(key).or_default().insert(value, times);
        }
        for values in alike.values() {
            let mut values = values.iter();
            let Some((first, mut before)) = values.next() else {
                continue;
            };
            // A bound is set where there was none, and not moved; the others go on step by step.
            if change == Change::Bounds && *first != 0 {
                continue;
            }
            for (_, after) in values {
                found.push(pair(change, *before, *after));
                if change != Change::Bounds {
                    before = after;
                }
            }
        }
    }
    for step in &described().steps {
        for before in timed.iter().filter(|(row, ..)| row.kernel == step.before) {
            let after = timed
                .iter()
                .find(|(row, ..)| row.kernel == step.after && row.gpu == before.0.gpu);
            let after =
                after.map(|after| pair(step.change, (before.1, before.2), (after.1, after.2)));
            found.extend(after);
        }
    }
    found
}

fn pair(change: Change, before: (f64, f64), after: (f64, f64)) -> Pair {
    Pair {
        change,
        predicted: before.0 / after.0,
        measured: before.1 / after.1,
    }
}

/// The errors of some pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speedups {
    /// How many pairs there are.
    pub pairs: usize,
    /// The mean of their errors.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The least and the largest measured speedup.
    pub measured: (f64, f64),
    /// Of the pairs that differ by more than the measurements repeat: how many, the mean of their errors, and how many
    /// are predicted to go the way that they go.
    pub told: Option<(usize, f64, usize)>,
}

impl Speedups {
    /// `None` of nothing.
    pub fn of(pairs: &[Pair]) -> Option<Speedups> {
        let errors = |pairs: &[Pair]| pairs.iter().map(Pair::error).collect::<Vec<f64>>();
        let all = errors(pairs);
        let measured = || pairs.iter().map(|pair| pair.measured);
        let told: Vec<Pair> = pairs.iter().copied().filter(Pair::is_told).collect();
        let same_way = told.iter().filter(|pair| pair.same_way()).count();
        Some(Speedups {
            pairs: pairs.len(),
            mean: score::mean(&all)?,
            median: score::quantile(&all, 0.5)?,
            measured: (
                measured().min_by(f64::total_cmp)?,
                measured().max_by(f64::total_cmp)?,
            ),
            told: score::mean(&errors(&told)).map(|mean| (told.len(), mean, same_way)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::table;

    fn paired(lines: &[(&str, f64, f64)]) -> Vec<Pair> {
        let heads = "kernel,gpu,source,defines,grid_x,block_x,measured_ms,valid\n";
        let rows: Vec<String> = lines
            .iter()
            .map(|(defines, measured, _)| format!("f,G,f.cu,{defines},8,32,{measured},1\n"))
            .collect();
        let table = table::parse(
            "t",
            &[heads, &rows.concat()].concat(),
            &serde_json::Value::Null,
        )
        .expect("a table");
        let rows: Vec<&Row> = table.rows.iter().collect();
        let predicted: Vec<Predicted> = lines
            .iter()
            .map(|(_, _, ms)| Predicted {
                ms: Some(*ms),
                ..Predicted::default()
            })
            .collect();
        pairs(&rows, &predicted)
    }

    #[test]
    fn rows_are_paired_that_differ_in_one_parameter_only() {
        let found = paired(&[
            ("-Dtile=2 -Duse_padding=0", 3.0, 6.0),
            ("-Dtile=2 -Duse_padding=1", 2.0, 3.0),
            // Another tile has no partner.
            ("-Dtile=4 -Duse_padding=1", 1.0, 1.0),
            // Nothing that an action does.
            ("-Dtile=8", 9.0, 1.0),
            ("-Dtile=9", 1.0, 9.0),
        ]);
        let [pair] = found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(pair.change, Change::Banks);
        assert_eq!((pair.predicted, pair.measured), (2.0, 1.5));
        assert!((pair.error() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn unrolling_goes_step_by_step_and_bounds_are_set_where_there_were_none() {
        let unrolled = paired(&[
            ("-Dloop_unroll_factor_t=4", 1.0, 1.0),
            ("-Dloop_unroll_factor_t=1", 4.0, 4.0),
            ("-Dloop_unroll_factor_t=2", 2.0, 2.0),
        ]);
        let speedups: Vec<f64> = unrolled.iter().map(|pair| pair.measured).collect();
        assert_eq!(speedups, [2.0, 2.0]);
        let bounded = paired(&[
            ("-Dblocks_per_sm=0", 4.0, 4.0),
            ("-Dblocks_per_sm=1", 2.0, 2.0),
            ("-Dblocks_per_sm=2", 1.0, 1.0),
        ]);
        let speedups: Vec<f64> = bounded.iter().map(|pair| pair.measured).collect();
        assert_eq!(speedups, [2.0, 4.0]);
        let moved = paired(&[
            ("-Dblocks_per_sm=1", 2.0, 2.0),
            ("-Dblocks_per_sm=2", 1.0, 1.0),
        ]);
        assert!(moved.is_empty());
    }

    #[test]
    fn what_repeats_no_better_tells_no_direction() {
        let of = |predicted, measured| Pair {
            change: Change::Wider,
            predicted,
            measured,
        };
        let found = Speedups::of(&[of(0.9, 1.0), of(1.5, 2.0), of(1.1, 0.5)]).expect("pairs");
        assert_eq!(found.pairs, 3);
        assert_eq!(found.measured, (0.5, 2.0));
        let (told, mean, same_way) = found.told.expect("two of them");
        assert_eq!((told, same_way), (2, 1));
        assert!((mean - 0.725).abs() < 1e-12);
        assert!(Speedups::of(&[]).is_none());
        assert!(Speedups::of(&[of(1.0, 1.0)]).expect("one").told.is_none());
    }
}
